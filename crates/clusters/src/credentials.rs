//! Credentials for a cluster. A secret is never shown: not in messages, not in records, not by `Debug`.

use std::ffi::OsString;
use std::fmt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rest::BasicAuth;
use serde::Deserialize;

use crate::{Error, Result};

/// Names of the environment variables that hold credentials.
pub const VARIABLES: [&str; 4] =
    ["NARROWS_USER", "NARROWS_PASSWORD", "NARROWS_API_KEY", "NARROWS_TOKEN"];

/// Credentials of one kind.
#[expect(missing_docs, reason = "the fields that a name says enough about have no description")]
#[derive(Clone, Default, PartialEq, Eq)]
pub enum Credentials {
    /// Requests are anonymous.
    #[default]
    None,
    /// HTTP basic authentication.
    Basic { user: String, password: String },
    /// An API key of Elasticsearch, as it is handed out (`encoded`) or as `id:api_key`.
    ApiKey(String),
    /// A bearer token.
    Token(String),
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind())
    }
}

/// What a file of `--credentials` holds.
const HOLDS: &str = "it holds user and password, or api_key, or token, each = \"...\"";

/// The file of `--credentials`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    user: Option<String>,
    password: Option<String>,
    api_key: Option<String>,
    token: Option<String>,
}

impl Credentials {
    /// Reads them from a file, or from the environment of this process where none is given.
    pub fn read(file: Option<&Path>) -> Result<Self> {
        match file {
            Some(path) => Self::from_file(path),
            None => Self::from_environment(std::env::var_os),
        }
    }

    /// Reads them from the environment; `get` looks a variable up. Empty ones count as not set.
    fn from_environment(get: impl Fn(&'static str) -> Option<OsString>) -> Result<Self> {
        const SOURCE: &str = "the environment";
        let text = |name: &'static str| {
            let value = get(name).filter(|value| !value.is_empty());
            value.map(OsString::into_string).transpose().map_err(|_| Error::Credentials {
                source_name: SOURCE.to_owned(),
                why: format!("has a {name} that is no UTF-8"),
            })
        };
        let [user, password, api_key, token] = VARIABLES;
        Self::of(text(user)?, text(password)?, text(api_key)?, text(token)?, SOURCE, VARIABLES)
    }

    /// Reads them from a TOML file with `user` and `password`, `api_key` or `token`. A file that others may
    /// read is refused.
    pub fn from_file(path: &Path) -> Result<Self> {
        let io = |source| Error::Io { what: "read", path: path.to_owned(), source };
        refuse_if_readable_by_others(path)?;
        let text = std::fs::read_to_string(path).map_err(io)?;
        // The parser's message would show a part of the text, which could be the secret.
        let File { user, password, api_key, token } =
            toml::from_str(&text).map_err(|error: toml::de::Error| Error::Credentials {
                source_name: path.display().to_string(),
                why: format!("is not right{}: {HOLDS}", line_of(&text, error.span())),
            })?;
        let names = ["user", "password", "api_key", "token"];
        Self::of(user, password, api_key, token, &path.display().to_string(), names)
    }

    fn of(
        user: Option<String>,
        password: Option<String>,
        api_key: Option<String>,
        token: Option<String>,
        source_name: &str,
        [user_name, password_name, key_name, token_name]: [&str; 4],
    ) -> Result<Self> {
        let refuse =
            |why: String| Err(Error::Credentials { source_name: source_name.to_owned(), why });
        let found = match (user, password, api_key, token) {
            (None, None, None, None) => Credentials::None,
            (Some(user), Some(password), None, None) => Credentials::Basic { user, password },
            (None, None, Some(key), None) => Credentials::ApiKey(key),
            (None, None, None, Some(token)) => Credentials::Token(token),
            (Some(_), None, None, None) => {
                return refuse(format!("has {user_name} but no {password_name}"));
            }
            (None, Some(_), None, None) => {
                return refuse(format!("has {password_name} but no {user_name}"));
            }
            _ => {
                return refuse(format!(
                    "has credentials of more than one kind; keep one of {user_name} with \
                     {password_name}, {key_name}, {token_name}"
                ));
            }
        };
        if found.secrets().any(|text| text.chars().any(char::is_control)) {
            return refuse("has a control character in a credential".to_owned());
        }
        Ok(found)
    }

    /// The kind, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Credentials::None => "no credentials",
            Credentials::Basic { .. } => "user and password",
            Credentials::ApiKey(_) => "an API key",
            Credentials::Token(_) => "a bearer token",
        }
    }

    fn secrets(&self) -> impl Iterator<Item = &str> {
        let texts: Vec<&str> = match self {
            Credentials::None => Vec::new(),
            Credentials::Basic { user, password } => vec![user, password],
            Credentials::ApiKey(text) | Credentials::Token(text) => vec![text],
        };
        texts.into_iter()
    }

    /// User and password, for a node that is to ask for them; none for [`Credentials::None`]. Fails if the credentials
    /// are of a kind that nodes of the embedded engine do not ask for.
    pub fn basic(&self) -> Result<Option<BasicAuth>> {
        match self {
            Credentials::None => Ok(None),
            Credentials::Basic { user, password } => Ok(Some(BasicAuth::new(user, password)?)),
            Credentials::ApiKey(_) | Credentials::Token(_) => Err(Error::Credentials {
                source_name: self.kind().to_owned(),
                why: "is nothing that nodes started here ask for; give user and password"
                    .to_owned(),
            }),
        }
    }

    /// The value of the `Authorization` header.
    pub(crate) fn header(&self) -> Option<String> {
        Some(match self {
            Credentials::None => return None,
            Credentials::Basic { user, password } => {
                format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))
            }
            // A key with a colon is `id:api_key`; one without is encoded already.
            Credentials::ApiKey(key) if key.contains(':') => {
                format!("ApiKey {}", STANDARD.encode(key))
            }
            Credentials::ApiKey(key) => format!("ApiKey {key}"),
            Credentials::Token(token) => format!("Bearer {token}"),
        })
    }
}

fn line_of(text: &str, span: Option<std::ops::Range<usize>>) -> String {
    let Some(before) = span.and_then(|span| text.get(..span.start)) else { return String::new() };
    format!(" at line {}", before.matches('\n').count() + 1)
}

fn refuse_if_readable_by_others(path: &Path) -> Result<()> {
    let io = |source| Error::Io { what: "read", path: path.to_owned(), source };
    let refuse = |why| Err(Error::Credentials { source_name: path.display().to_string(), why });
    if !path.exists() {
        return refuse(format!("is not there; {HOLDS}, and only you may read it (chmod 600)"));
    }
    let mode = std::fs::metadata(path).map_err(io)?.permissions().mode();
    match mode & 0o077 {
        0 => Ok(()),
        _ => refuse(format!("can be read by others (mode {:o}); chmod 600 it", mode & 0o777)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(pairs: &[(&str, &str)]) -> Result<Credentials> {
        Credentials::from_environment(|name| {
            pairs.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).into())
        })
    }

    #[test]
    fn each_kind_has_its_header() {
        let header = |pairs: &[(&str, &str)]| from(pairs).unwrap().header();
        let basic = header(&[("NARROWS_USER", "elastic"), ("NARROWS_PASSWORD", "changeme")]);
        assert_eq!(basic.unwrap(), "Basic ZWxhc3RpYzpjaGFuZ2VtZQ==");
        assert_eq!(header(&[("NARROWS_API_KEY", "aWQ6a2V5")]).unwrap(), "ApiKey aWQ6a2V5");
        assert_eq!(header(&[("NARROWS_API_KEY", "id:key")]).unwrap(), "ApiKey aWQ6a2V5");
        assert_eq!(header(&[("NARROWS_TOKEN", "t")]).unwrap(), "Bearer t");
        assert_eq!(header(&[("NARROWS_TOKEN", "")]), None);
    }

    #[test]
    fn halves_and_mixtures_are_refused_without_the_secret() {
        for pairs in [
            &[("NARROWS_USER", "hush")][..],
            &[("NARROWS_PASSWORD", "hush")],
            &[("NARROWS_TOKEN", "hush"), ("NARROWS_API_KEY", "hush")],
            &[("NARROWS_TOKEN", "hush\r\nX: y")],
        ] {
            let said = from(pairs).unwrap_err().to_string();
            assert!(!said.contains("hush"), "{said}");
        }
        let debug = format!("{:?}", from(&[("NARROWS_TOKEN", "hush")]).unwrap());
        assert_eq!(debug, "a bearer token");
    }

    /// What cannot be read is not passed over: nobody asks without credentials who has set some.
    #[test]
    fn a_variable_that_is_no_text_is_named() {
        use std::os::unix::ffi::OsStringExt;
        for set in VARIABLES {
            let get = |name: &'static str| {
                (name == set).then(|| OsString::from_vec(b"hush\xff".to_vec()))
            };
            let said = Credentials::from_environment(get).unwrap_err().to_string();
            assert_eq!(said, format!("the environment has a {set} that is no UTF-8"));
        }
    }

    #[test]
    fn a_file_that_others_may_read_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("credentials.toml");
        let write = |text: &str, mode| {
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            Credentials::from_file(&path)
        };
        let said = write("token = \"hush\"", 0o644).unwrap_err().to_string();
        assert!(said.contains("chmod 600") && !said.contains("hush"), "{said}");
        assert_eq!(write("token = \"hush\"", 0o600).unwrap(), Credentials::Token("hush".into()));
        let said = write("\ntoken = hush", 0o600).unwrap_err().to_string();
        assert!(said.contains("line 2") && !said.contains("hush"), "{said}");
        assert!(write("tocken = \"hush\"", 0o600).is_err());
    }
}
