//! Who may ask. A page of a stranger can have its own name lead to this machine, or send requests through the browser
//! of whoever looks at it; and what listens beyond loopback is reached by everybody on that network.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clusters::Credentials;
use rest::{BasicAuth, is_own_name};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::exit::{Usage, refuse};

/// The user of HTTP basic authentication, by which browsers ask for the token.
const USER: &str = "narrows";
/// A token that is shorter can be guessed.
const TOKEN_LETTERS_MIN: usize = 16;

/// Who may reach the server, as the command line says.
pub(crate) struct Guard {
    pub(crate) token_file: Option<PathBuf>,
    pub(crate) cert: Option<PathBuf>,
    pub(crate) key: Option<PathBuf>,
    pub(crate) allowed_hosts: Vec<String>,
}

/// What a request must show.
#[derive(Clone)]
pub(crate) struct Access {
    bound: IpAddr,
    allowed: Vec<String>,
    /// The token as the password of HTTP basic authentication.
    token: Option<BasicAuth>,
    is_tls: bool,
}

/// The parts of a request that tell who asks.
pub(crate) struct Asked<'a> {
    pub(crate) method: &'a str,
    pub(crate) host: Option<&'a str>,
    pub(crate) origin: Option<&'a str>,
    pub(crate) authorization: Option<&'a [u8]>,
}

/// Why a request is refused: its status, and a sentence.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) why: String,
}

fn refusal(status: u16, why: impl Into<String>) -> Refusal {
    Refusal { status, why: why.into() }
}

impl Access {
    /// Of a server on this address.
    pub(crate) fn new(
        bound: IpAddr,
        allowed: Vec<String>,
        token: Option<BasicAuth>,
        is_tls: bool,
    ) -> Access {
        Access { bound, allowed, token, is_tls }
    }

    /// `https` or `http`.
    pub(crate) fn scheme(&self) -> &'static str {
        if self.is_tls { "https" } else { "http" }
    }

    /// Refuses whoever may not ask.
    pub(crate) fn check(&self, asked: &Asked<'_>) -> Result<(), Refusal> {
        let host = asked.host.unwrap_or_default();
        if !is_own_name(host, Some(self.bound), &self.allowed) {
            let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
            return Err(refusal(
                403,
                format!(
                    "narrows is not asked by the name \"{name}\", which a page of a stranger may have given it; ask by \
                     its address or localhost, or start it with --allow-host {name}"
                ),
            ));
        }
        let own = format!("{}://{host}", self.scheme());
        if asked.origin.is_some_and(|origin| !origin.eq_ignore_ascii_case(&own)) {
            return Err(refusal(403, "pages of other sites are not answered"));
        }
        let is_known = |token: &BasicAuth| {
            asked.authorization.is_some_and(|shown| token.admits(&as_basic(shown)))
        };
        if self.token.as_ref().is_some_and(|token| !is_known(token)) {
            let why =
                format!("show the token: as the password of user {USER}, or as a bearer token");
            return Err(refusal(401, why));
        }
        if asked.method != "GET" {
            return Err(refusal(405, "narrows only shows: GET is the one method"));
        }
        Ok(())
    }
}

/// `Bearer TOKEN` as HTTP basic authentication writes it; everything else as it is.
fn as_basic(authorization: &[u8]) -> Vec<u8> {
    let text = std::str::from_utf8(authorization).unwrap_or_default();
    let bearer = text.split_once(' ').filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
    let auth = bearer.and_then(|(_, token)| BasicAuth::new(USER, token.trim()).ok());
    auth.map_or_else(|| authorization.to_vec(), |auth| auth.authorization().into_bytes())
}

/// The token in a file: TOML with `token = "..."`, readable by nobody else.
fn token(file: &Path) -> anyhow::Result<BasicAuth> {
    let usage = |text: String| anyhow::Error::from(Usage(text));
    let shown = file.display();
    match Credentials::from_file(file).map_err(|error| usage(error.to_string()))? {
        Credentials::Token(token) if token.chars().count() < TOKEN_LETTERS_MIN => refuse!(
            "{shown}: a token of fewer than {TOKEN_LETTERS_MIN} letters can be guessed; for example \
             token = \"$(openssl rand -hex 16)\""
        ),
        Credentials::Token(token) => {
            BasicAuth::new(USER, &token).map_err(|error| usage(format!("{shown}: {error}")))
        }
        other => {
            refuse!("{shown} holds {}; --web-token-file wants a line token = \"...\"", other.kind())
        }
    }
}

/// Where to listen, and what whoever asks there must show. Only this machine may ask without a token and TLS.
pub(crate) fn guard(
    option: &str,
    text: &str,
    guard: &Guard,
) -> anyhow::Result<(SocketAddr, Access, Option<Arc<ServerConfig>>)> {
    let address = parse(text).ok_or_else(|| {
        Usage(format!(
            "{option} {text}: \"{text}\" is no address to listen on; write for example {option} 127.0.0.1:9290, and a \
             cluster as http://HOST:9200"
        ))
    })?;
    let token = guard.token_file.as_deref().map(token).transpose()?;
    let tls = match (&guard.cert, &guard.key) {
        (Some(cert), Some(key)) => Some(tls(cert, key)?),
        _ => None,
    };
    let lacks = match (&token, &tls) {
        (None, None) => "--web-token-file FILE, --web-cert FILE and --web-key FILE",
        (None, Some(_)) => "--web-token-file FILE",
        (Some(_), None) => "--web-cert FILE and --web-key FILE",
        (Some(_), Some(_)) => "",
    };
    if !address.ip().is_loopback() && !lacks.is_empty() {
        refuse!(
            "{option} {text}: others can reach {}: that takes a token and TLS, so give {lacks} as well; or listen on \
             127.0.0.1 and reach it with ssh -L",
            address.ip()
        );
    }
    let access = Access::new(address.ip(), guard.allowed_hosts.clone(), token, tls.is_some());
    Ok((address, access, tls))
}

/// `127.0.0.1:9290`, `localhost:9290`, `[::1]:9290`, or a port of loopback alone.
fn parse(text: &str) -> Option<SocketAddr> {
    if let Ok(port) = text.parse::<u16>() {
        return Some((Ipv4Addr::LOCALHOST, port).into());
    }
    match text.split_once(':') {
        Some(("localhost" | "", port)) => Some((Ipv4Addr::LOCALHOST, port.parse().ok()?).into()),
        _ => text.parse().ok(),
    }
}

fn tls(cert: &Path, key: &Path) -> anyhow::Result<Arc<ServerConfig>> {
    let wrong = |path: &Path, what: &str, error: &dyn std::fmt::Display| {
        anyhow::Error::from(Usage(format!("{}: {what}: {error}", path.display())))
    };
    let certificates = CertificateDer::pem_file_iter(cert)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| wrong(cert, "cannot read certificates (PEM)", &error))?;
    let secret = PrivateKeyDer::from_pem_file(key)
        .map_err(|error| wrong(key, "no private key in it (PEM)", &error))?;
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong(cert, "cannot set up TLS", &error))?
        .with_no_client_auth()
        .with_single_cert(certificates, secret)
        .map_err(|error| wrong(cert, "does not belong to the key", &error))?;
    Ok(Arc::new(config))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "0123456789abcdef";

    fn asked(host: &'static str) -> Asked<'static> {
        Asked { method: "GET", host: Some(host), origin: None, authorization: None }
    }

    fn local() -> Access {
        Access::new("127.0.0.1".parse().unwrap(), vec!["watch.example".into()], None, false)
    }

    #[track_caller]
    fn status(access: &Access, asked: &Asked<'_>) -> u16 {
        access.check(asked).map_or_else(|refusal| refusal.status, |()| 200)
    }

    #[test]
    fn only_own_names_and_own_pages_are_answered() {
        for host in ["127.0.0.1:9290", "localhost:9290", "[::1]:9290", "watch.example"] {
            assert_eq!(status(&local(), &asked(host)), 200, "{host}");
        }
        for host in ["evil.example", "evil.example:9290", "", "127.0.0.1.evil.example"] {
            assert_eq!(status(&local(), &asked(host)), 403, "{host}");
        }
        let from = |origin| Asked { origin: Some(origin), ..asked("localhost:9290") };
        assert_eq!(status(&local(), &from("http://localhost:9290")), 200);
        let strangers =
            ["http://localhost:80", "https://localhost:9290", "http://evil.example", "null", ""];
        for origin in strangers {
            assert_eq!(status(&local(), &from(origin)), 403, "{origin}");
        }
        assert_eq!(status(&local(), &Asked { method: "POST", ..asked("localhost") }), 405);
        assert_eq!(status(&local(), &Asked { host: None, ..asked("") }), 403);
    }

    #[test]
    fn a_token_is_asked_for_where_there_is_one() {
        let token = BasicAuth::new(USER, TOKEN).unwrap();
        let access = Access::new("0.0.0.0".parse().unwrap(), vec![], Some(token.clone()), true);
        let shows = |shown: &str| {
            let asked = Asked { authorization: Some(shown.as_bytes()), ..asked("192.0.2.1:9290") };
            status(&access, &asked)
        };
        assert_eq!(shows(&token.authorization()), 200);
        assert_eq!(shows(&format!("bearer {TOKEN}")), 200);
        let other = BasicAuth::new(USER, "0123456789abcdeF").unwrap().authorization();
        for wrong in ["", "Bearer", "Bearer x", "Bearer 0123456789abcdef0", TOKEN, other.as_str()] {
            assert_eq!(shows(wrong), 401, "{wrong}");
        }
        assert_eq!(status(&access, &asked("192.0.2.1:9290")), 401);
    }

    #[test]
    fn addresses_are_written_as_people_do() {
        let of = |text| parse(text).map(|address| address.to_string());
        assert_eq!(of("9290").as_deref(), Some("127.0.0.1:9290"));
        assert_eq!(of("localhost:1").as_deref(), Some("127.0.0.1:1"));
        assert_eq!(of("[::1]:2").as_deref(), Some("[::1]:2"));
        assert_eq!(of("0.0.0.0:3").as_deref(), Some("0.0.0.0:3"));
        for wrong in ["es:9200", "http://es:9200", "127.0.0.1", "99999", ""] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
    }
}
