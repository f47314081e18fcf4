//! What a plan runs on, as the command line names it.

use std::fmt;

use record::names::did_you_mean;

/// Where the clusters live.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum On {
    /// The embedded engine: real sockets and files, one process a node, loopback.
    Embedded,
    /// The same engine, simulated.
    Virtual,
    /// OpenSearch on this machine, started for the run.
    OpenSearch,
    /// A cluster that is already there: its hosts.
    Url(Vec<String>),
}

const NAMES: [&str; 3] = ["embedded", "virtual", "opensearch"];

impl On {
    /// Reads a name, or hosts joined by commas.
    pub(crate) fn parse(text: &str) -> Result<On, String> {
        match text {
            "embedded" => Ok(On::Embedded),
            "virtual" => Ok(On::Virtual),
            "opensearch" => Ok(On::OpenSearch),
            _ if text.split(',').any(is_address) => {
                // Refused here already where it is no address, or holds a password.
                let hosts = clusters::live::Address::parse_all([text]);
                let hosts = hosts.map_err(|error| error.to_string())?;
                Ok(On::Url(hosts.iter().map(ToString::to_string).collect()))
            }
            _ => {
                let near = did_you_mean(text, NAMES);
                let names = NAMES.join(", ");
                Err(format!("there is {names}, or the URL of a cluster, http://host:9200{near}"))
            }
        }
    }
}

impl On {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            On::Embedded => NAMES[0],
            On::Virtual => NAMES[1],
            On::OpenSearch => NAMES[2],
            On::Url(_) => "url",
        }
    }
}

/// Whether an argument is a cluster's address and not the name of something else.
pub(crate) fn is_address(text: &str) -> bool {
    let has_port = |text: &str| {
        text.rsplit_once(':')
            .is_some_and(|(_, port)| !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()))
    };
    text.contains("://")
        || text.contains(',')
        || text.contains('@')
        || has_port(text)
        || text == "localhost"
}

impl fmt::Display for On {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            On::Url(hosts) => f.write_str(&hosts.join(",")),
            named => f.write_str(named.name()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_urls_are_told_apart() {
        for text in NAMES {
            assert_eq!(On::parse(text).unwrap().to_string(), text);
        }
        let url = On::parse("http://a:9200,https://b").unwrap();
        assert_eq!(url.to_string(), "http://a:9200,https://b:9200");
        assert_eq!(On::parse("127.0.0.1:9200").unwrap().to_string(), "http://127.0.0.1:9200");
        assert_eq!(On::parse("localhost").unwrap().to_string(), "http://localhost:9200");
        assert!(On::parse("embedded,virtual").is_err());
        let near = On::parse("opensarch").unwrap_err();
        assert!(near.contains("did you mean \"opensearch\""), "{near}");
        let secret = On::parse("http://me:s3cret@a").unwrap_err();
        assert!(secret.contains("NARROWS_PASSWORD") && !secret.contains("s3cret"), "{secret}");
    }
}
