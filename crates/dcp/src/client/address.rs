//! Addresses of buckets: `couchbase://HOST[:PORT]/BUCKET`.

use std::fmt;

use record::text::{authority, host_and_port, is_host, without_user};

use crate::{Error, Result};

/// Ports of data nodes, without and with TLS.
const DATA_PORTS: [u16; 2] = [11210, 11207];

/// A bucket on a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketAddress {
    /// Whether to use TLS.
    pub tls: bool,
    /// Name or address of the host, without brackets.
    pub host: String,
    /// Port.
    pub port: u16,
    /// The bucket.
    pub bucket: String,
}

impl BucketAddress {
    /// Reads one. Without a port it is 11210, and 11207 with TLS. Fails with what is wrong with it, and how to write
    /// it. A password in it is never repeated.
    pub fn parse(text: &str) -> Result<BucketAddress> {
        let shown = without_user(text);
        let refuse = |why: &str| {
            Err(Error::Settings(format!(
                "\"{shown}\": {why}; write couchbase://HOST[:PORT]/BUCKET, or couchbases:// for TLS"
            )))
        };
        let (tls, rest) = match text.split_once("://") {
            Some(("couchbase", rest)) => (false, rest),
            Some(("couchbases", rest)) => (true, rest),
            Some(_) => return refuse("only couchbase:// and couchbases:// are spoken"),
            None => return refuse("it has no scheme"),
        };
        if rest.contains('@') {
            return refuse(
                "a user and password in a URL end up in histories and logs: put them into NARROWS_USER and \
                 NARROWS_PASSWORD, or into a file given with --credentials",
            );
        }
        let Some((server, bucket)) = rest.split_once('/') else {
            return refuse("it names no bucket");
        };
        if server.contains(',') {
            return refuse("give one host: the others are found by it");
        }
        if bucket.is_empty() || bucket.contains(['/', '?', '#']) {
            return refuse("it names no bucket, or has something behind it");
        }
        let Some((host, port)) = host_and_port(server) else {
            return refuse("its port is no number from 1 to 65535");
        };
        let port = port.unwrap_or(DATA_PORTS[usize::from(tls)]);
        if !is_host(host) {
            return refuse("it names no host");
        }
        Ok(BucketAddress { tls, host: host.to_owned(), port, bucket: bucket.to_owned() })
    }

    /// `host:port`, with brackets where the host is an IPv6 address.
    pub fn authority(&self) -> String {
        authority(&self.host, self.port)
    }
}

impl fmt::Display for BucketAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls { "couchbases" } else { "couchbase" };
        write!(f, "{scheme}://{}/{}", self.authority(), self.bucket)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_people_write() {
        for (text, shown) in [
            ("couchbase://localhost/b", "couchbase://localhost:11210/b"),
            (
                "couchbases://cb.example.org/travel-sample",
                "couchbases://cb.example.org:11207/travel-sample",
            ),
            ("couchbase://10.0.0.1:12000/b", "couchbase://10.0.0.1:12000/b"),
            ("couchbase://[::1]/b", "couchbase://[::1]:11210/b"),
            ("couchbase://[::1]:9/b", "couchbase://[::1]:9/b"),
        ] {
            assert_eq!(BucketAddress::parse(text).unwrap().to_string(), shown);
        }
    }

    #[test]
    fn what_is_no_address_is_refused_and_no_password_repeated() {
        for text in [
            "http://a/b", "a/b", "couchbase://a", "couchbase://a/", "couchbase:///b",
            "couchbase://a:0/b", "couchbase://a:x/b", "couchbase://[::1]9/b", "couchbase://a,b/c",
            "couchbase://a/b?c", "couchbase://u:s3cret@a/b", "u:s3cret@a/b", "u:s3cret://x@a/b",
        ] {
            let said = BucketAddress::parse(text).unwrap_err().to_string();
            assert!(said.contains("couchbase://HOST") && !said.contains("s3cret"), "{said}");
        }
    }
}
