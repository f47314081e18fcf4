//! Addresses of live clusters, as people write them.

use std::fmt;

use record::text::{authority, host_and_port, is_host, without_user};

use crate::{Error, Result};

/// The port that Elasticsearch and OpenSearch listen on, with and without TLS.
const DEFAULT_PORT: u16 = 9200;

/// Why an address with a user in it is refused.
const NO_USER: &str = "a user and password in a URL end up in histories and logs; put them into NARROWS_USER and \
                       NARROWS_PASSWORD, or into a file given with --credentials";

/// One host of a cluster: `http://a:9200`, `https://search.example.org/behind/a/proxy`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// Whether TLS is spoken.
    pub tls: bool,
    /// Name or address of the host, without brackets.
    pub host: String,
    /// Port.
    pub port: u16,
    /// Path prefix of every request: empty, or `/prefix` without a slash at its end.
    pub prefix: String,
}

impl Address {
    /// Reads one address. Without a scheme it is plain HTTP, and without a port 9200; `https` without a port is
    /// 9200 too, as clients of the field have it.
    pub fn parse(text: &str) -> Result<Address> {
        // A password must not be repeated in the message that refuses it.
        let refuse =
            |why: &str| Err(Error::Address { what: without_user(text), why: why.to_owned() });
        let (tls, rest) = match text.split_once("://") {
            None => (false, text),
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => (false, rest),
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => (true, rest),
            Some(("couchbase" | "couchbases", _)) => {
                return refuse(
                    "it is a bucket: narrows explain looks at it, and narrows dcp drain reads it",
                );
            }
            Some((_, rest)) => {
                // Behind a user and password, which may hold anything.
                let host = rest.rsplit('@').next().unwrap_or_default();
                let host = host.split(['/', '?', '#', ':']).next().unwrap_or_default();
                let host = if host.is_empty() || host.starts_with('[') { "HOST" } else { host };
                return refuse(&format!(
                    "only http:// and https:// are spoken; write http://{host}:9200"
                ));
            }
        };
        let (server, path) = match rest.find(['/', '?', '#']) {
            Some(at) => rest.split_at(at),
            None => (rest, ""),
        };
        // A password may hold a slash: then it looks like a port with a path behind it.
        if rest.contains('@') {
            return refuse(NO_USER);
        }
        if path.contains(['?', '#']) {
            return refuse("it has a query; give scheme, host, port and path alone");
        }
        let Some((host, port)) = host_and_port(server) else {
            return refuse("its port is no number from 1 to 65535");
        };
        let port = port.unwrap_or(DEFAULT_PORT);
        if !is_host(host) {
            return refuse("it names no host; write http://host:9200 or https://host:9200");
        }
        if path.split('/').any(|part| part.starts_with('_')) {
            let before = path.split("/_").next().unwrap_or_default().trim_end_matches('/');
            let whole = Address { tls, host: host.to_owned(), port, prefix: before.to_owned() };
            return refuse(&format!("it is the address of an API; write {whole}"));
        }
        let is_plain = |c: char| c.is_ascii_graphic();
        if !path.chars().all(is_plain) {
            return refuse("its path holds a character that a URL cannot hold");
        }
        let prefix = path.trim_end_matches('/').to_owned();
        Ok(Address { tls, host: host.to_owned(), port, prefix })
    }

    /// Reads several: each text may hold some, joined by commas.
    pub fn parse_all<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<Vec<Address>> {
        let mut addresses = Vec::new();
        for text in texts {
            // A password may hold commas: its parts look like hosts, and a message would repeat them.
            if text.contains(',') && text.contains('@') {
                let what = without_user(text);
                return Err(Error::Address { what, why: NO_USER.to_owned() });
            }
            let all = text.split(',').map(str::trim).filter(|text| !text.is_empty());
            addresses.extend(all.map(Address::parse).collect::<Result<Vec<_>>>()?);
        }
        if addresses.is_empty() {
            let why = "no host is given; write http://host:9200".to_owned();
            return Err(Error::Address { what: String::new(), why });
        }
        Ok(addresses)
    }

    /// `host:port`, with brackets where the host is an IPv6 address.
    pub fn authority(&self) -> String {
        authority(&self.host, self.port)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.authority(), self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_people_write() {
        for (text, shown) in [
            ("localhost", "http://localhost:9200"),
            ("10.0.0.1:9201", "http://10.0.0.1:9201"),
            ("https://es.example.org", "https://es.example.org:9200"),
            ("HTTPS://es:443/behind/proxy/", "https://es:443/behind/proxy"),
            ("http://[::1]:9200", "http://[::1]:9200"),
        ] {
            assert_eq!(Address::parse(text).unwrap().to_string(), shown);
        }
        let all = Address::parse_all(["a, b:1,", "https://c"]).unwrap();
        let shown: Vec<String> = all.iter().map(Address::to_string).collect();
        assert_eq!(shown, ["http://a:9200", "http://b:1", "https://c:9200"]);
    }

    #[test]
    fn a_password_in_a_url_is_refused_and_not_repeated() {
        for text in [
            "https://elastic:s3cret@host:9200",
            "elastic:s3cret@host",
            "a:s3cret@b@c",
            "https://elastic:12/s3cret@host:9200",
            "elastic:12?s3cret@host",
        ] {
            let said = Address::parse(text).unwrap_err().to_string();
            assert!(said.contains("NARROWS_PASSWORD") && !said.contains("s3cret"), "{said}");
        }
        for text in ["https://elastic:s3,cret@h", "http://a,http://me:s3,cret@h", "me:1,s3/@h"] {
            let said = Address::parse_all([text]).unwrap_err().to_string();
            assert!(said.contains("NARROWS_PASSWORD") && !said.contains("s3"), "{said}");
            assert!(!said.contains("cret"), "{said}");
        }
    }

    #[test]
    fn what_is_no_address_is_refused_with_an_example() {
        for text in
            ["ftp://a", "http://", "a:0", "a:99999", "http://a:b", "http://a/?q", "a b", "[::1"]
        {
            assert!(matches!(Address::parse(text), Err(Error::Address { .. })), "{text}");
        }
        assert!(Address::parse_all([" , "]).is_err());
        for (text, line) in [
            ("ftp://me:s3/cret@es:21", "write http://es:9200"),
            ("me:s3://cret@es:21", "write http://es:9200"),
            ("ftp://", "write http://HOST:9200"),
            ("http://es/_cat/health", "write http://es:9200"),
            ("https://es:443/behind/_search", "write https://es:443/behind"),
        ] {
            let said = Address::parse(text).unwrap_err().to_string();
            assert!(said.ends_with(line) && !said.contains("s3"), "{said}");
        }
    }
}
