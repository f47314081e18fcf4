//! HTTP basic authentication (RFC 7617): who may ask a node.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use crate::error::Error;

/// A user and his password. Neither is ever shown: [`fmt::Debug`] hides the password.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BasicAuth {
    user: String,
    password: String,
}

impl fmt::Debug for BasicAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BasicAuth").field("user", &self.user).finish_non_exhaustive()
    }
}

impl BasicAuth {
    /// Credentials. Refuses an empty user or password, a user with a colon, and control characters: RFC 7617 cannot
    /// carry them, or they protect nothing.
    pub fn new(user: &str, password: &str) -> Result<BasicAuth, Error> {
        let control = |text: &str| text.chars().any(char::is_control);
        let reason = if user.is_empty() || password.is_empty() {
            "user and password must not be empty"
        } else if user.contains(':') {
            "a user's name cannot have a colon in HTTP basic authentication"
        } else if control(user) || control(password) {
            "there is a line break or another control character in them"
        } else {
            return Ok(BasicAuth { user: user.to_owned(), password: password.to_owned() });
        };
        Err(Error::Credentials { reason })
    }

    /// The value of the header `Authorization`.
    pub fn authorization(&self) -> String {
        format!("Basic {}", self.token())
    }

    fn token(&self) -> String {
        STANDARD.encode(format!("{}:{}", self.user, self.password))
    }

    /// Whether a request's `Authorization` is this. The comparison takes the same time wherever they differ.
    pub fn admits(&self, authorization: &[u8]) -> bool {
        const SCHEME: &[u8] = b"basic ";
        let Some((scheme, token)) = authorization.split_at_checked(SCHEME.len()) else {
            return false;
        };
        scheme.eq_ignore_ascii_case(SCHEME) && is_same(self.token().as_bytes(), token)
    }
}

/// Compares in a time that depends on the lengths alone.
fn is_same(expected: &[u8], given: &[u8]) -> bool {
    let mut differs = expected.len() ^ given.len();
    for (place, byte) in expected.iter().enumerate() {
        differs |= usize::from(byte ^ given.get(place).unwrap_or(byte));
    }
    std::hint::black_box(differs) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_written_as_in_the_rfc() {
        let auth = BasicAuth::new("Aladdin", "open sesame").unwrap();
        assert_eq!(auth.authorization(), "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
        let utf8 = BasicAuth::new("test", "123\u{a3}").unwrap();
        assert_eq!(utf8.authorization(), "Basic dGVzdDoxMjPCow==");
    }

    #[test]
    fn admits_itself_alone() {
        let auth = BasicAuth::new("anna", "secret").unwrap();
        let right = auth.authorization();
        assert!(auth.admits(right.as_bytes()));
        assert!(auth.admits(right.replace("Basic", "bAsIc").as_bytes()));
        for n in 0..right.len() {
            assert!(!auth.admits(&right.as_bytes()[..n]), "{n} bytes of it");
        }
        for other in [("anna", "secreT"), ("Anna", "secret"), ("anna", "secret1"), ("a", "b")] {
            let other = BasicAuth::new(other.0, other.1).unwrap();
            assert!(!auth.admits(other.authorization().as_bytes()), "{other:?}");
        }
        assert!(!auth.admits(right.replace("Basic", "Digest").as_bytes()));
        assert!(!auth.admits(b"\xff"));
    }

    #[test]
    fn refuses_what_guards_nothing_and_shows_nothing() {
        for (user, password) in [("", "p"), ("u", ""), ("a:b", "p"), ("u", "p\n"), ("u\0", "p")] {
            let refused = BasicAuth::new(user, password).unwrap_err().to_string();
            assert!(!refused.contains(password) || password.len() < 2, "{refused}");
        }
        let shown = format!("{:?}", BasicAuth::new("anna", "secret").unwrap());
        assert!(shown.contains("anna") && !shown.contains("secret"), "{shown}");
    }
}
