//! Authentication: SASL PLAIN, and SCRAM with SHA-1, SHA-256 and SHA-512, both sides.
//!
//! Pure: nonces come from the caller. With SCRAM neither side sends the password: the client proves that it knows it,
//! and so does the server.

mod nonce;
mod scram;

use std::fmt;

use ring::{hmac, pbkdf2};

pub(crate) use nonce::{fresh_u64, nonce};
pub(crate) use scram::escaped;
pub use scram::{ScramClient, ScramServer, salted};

/// A user and their password. [`fmt::Debug`] hides the password.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The user's name.
    pub user: String,
    /// The password.
    pub password: String,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("user", &self.user).finish_non_exhaustive()
    }
}

/// A hash function of SCRAM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hash {
    /// SHA-1.
    Sha1,
    /// SHA-256.
    Sha256,
    /// SHA-512.
    Sha512,
}

impl Hash {
    /// All.
    pub const ALL: [Hash; 3] = [Hash::Sha1, Hash::Sha256, Hash::Sha512];

    fn hmac(self) -> hmac::Algorithm {
        match self {
            Hash::Sha1 => hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY,
            Hash::Sha256 => hmac::HMAC_SHA256,
            Hash::Sha512 => hmac::HMAC_SHA512,
        }
    }

    fn pbkdf2(self) -> pbkdf2::Algorithm {
        match self {
            Hash::Sha1 => pbkdf2::PBKDF2_HMAC_SHA1,
            Hash::Sha256 => pbkdf2::PBKDF2_HMAC_SHA256,
            Hash::Sha512 => pbkdf2::PBKDF2_HMAC_SHA512,
        }
    }
}

/// A mechanism of SASL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mechanism {
    /// The password in plain text.
    Plain,
    /// A proof that the client knows it.
    Scram(Hash),
}

impl Mechanism {
    /// All, the strongest first.
    pub const ALL: [Mechanism; 4] = [
        Mechanism::Scram(Hash::Sha512),
        Mechanism::Scram(Hash::Sha256),
        Mechanism::Scram(Hash::Sha1),
        Mechanism::Plain,
    ];

    /// Its name, as servers list it.
    pub const fn name(self) -> &'static str {
        match self {
            Mechanism::Plain => "PLAIN",
            Mechanism::Scram(Hash::Sha1) => "SCRAM-SHA1",
            Mechanism::Scram(Hash::Sha256) => "SCRAM-SHA256",
            Mechanism::Scram(Hash::Sha512) => "SCRAM-SHA512",
        }
    }

    /// The mechanism of this name; none if it is unknown.
    pub fn of(name: &[u8]) -> Option<Mechanism> {
        Mechanism::ALL.into_iter().find(|mechanism| mechanism.name().as_bytes() == name)
    }
}

/// The client's message of PLAIN (RFC 4616).
pub fn plain(credentials: &Credentials) -> Vec<u8> {
    format!("\0{}\0{}", credentials.user, credentials.password).into_bytes()
}

/// User and password from the client's message of PLAIN; none if it is malformed.
pub fn parse_plain(message: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut parts = message.split(|byte| *byte == 0);
    let (_, user, password) = (parts.next()?, parts.next()?, parts.next()?);
    parts.next().is_none().then_some((user, password))
}

/// Compares in constant time.
pub(crate) fn is_same(expected: &[u8], given: &[u8]) -> bool {
    // Tags under the same key are equal where the texts are, and ring compares tags in constant time.
    let key = hmac::Key::new(hmac::HMAC_SHA256, b"compare");
    hmac::verify(&key, given, hmac::sign(&key, expected).as_ref()).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_is_three_parts() {
        let credentials = Credentials { user: "a".to_owned(), password: "b c".to_owned() };
        assert_eq!(parse_plain(&plain(&credentials)), Some((&b"a"[..], &b"b c"[..])));
        for wrong in [&b""[..], b"a", b"\0a", b"\0a\0b\0c"] {
            assert_eq!(parse_plain(wrong), None, "{wrong:?}");
        }
        assert!(!format!("{credentials:?}").contains("b c"));
    }

    #[test]
    fn comparing_is_by_content() {
        assert!(is_same(b"abc", b"abc") && is_same(b"", b""));
        assert!(!is_same(b"abc", b"abd") && !is_same(b"abc", b"ab"));
    }
}
