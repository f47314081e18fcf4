//! Flavour and version of a cluster, and whether narrows was built for it.

use record::observation::Identity;
use serde_json::Value;

use super::{LiveClient, parse};
use crate::http::Address;
use crate::{Error, Result};

/// Asks a host for its version: the whole answer, and the identity in it. Fails where the host is no cluster.
pub(crate) async fn ask_version(client: &LiveClient) -> Result<(Value, Identity)> {
    let answer = match client.get("/").await {
        Err(error @ (Error::Refused { status: 404, .. } | Error::NotJson { .. })) => {
            return Err(path_of_none(client.hosts()).unwrap_or(error));
        }
        answer => answer?,
    };
    if let Some(identity) = parse::identity(&answer) {
        return Ok((answer, identity));
    }
    let sentence = "what answers has no version.number, so it is neither Elasticsearch nor OpenSearch; give the \
                    address of a node";
    let unknown = Error::Unfamiliar { sentence: sentence.to_owned() };
    Err(path_of_none(client.hosts()).unwrap_or(unknown))
}

/// The error where an address has a path, which a proxy may have, and no cluster answers below it.
fn path_of_none(hosts: &[Address]) -> Option<Error> {
    let host = hosts.iter().find(|host| !host.prefix.is_empty())?;
    let without = Address { prefix: String::new(), ..host.clone() };
    let why = format!(
        "it has the path {}, and no cluster answers there; write {without}, or the path at which a proxy serves it",
        host.prefix
    );
    Some(Error::Address { what: host.to_string(), why })
}

/// Refuses a version that narrows was not built for. A version that is unknown is not refused.
pub(crate) fn check_version(identity: &Identity) -> Result<()> {
    let Identity { flavour, version, .. } = identity;
    let major = version.split('.').next().and_then(|text| text.parse::<u32>().ok());
    let known = matches!(
        (flavour.as_str(), major),
        // OpenSearch 1 and 2 may be told to call themselves 7.10.2, for clients of Elasticsearch.
        ("elasticsearch", Some(7..=9)) | ("opensearch", Some(1..=3 | 7)) | ("narrows", _)
    );
    if known || version.is_empty() {
        return Ok(());
    }
    if flavour == parse::SERVERLESS {
        let sentence = "a serverless project of Elasticsearch answers: it tells nobody of nodes, copies, recoveries or \
                        settings (410), so there is nothing to look at and nothing to set; give the address of a \
                        deployment with nodes";
        return Err(Error::Unfamiliar { sentence: sentence.to_owned() });
    }
    let sentence = format!(
        "{flavour} {version} was never tried with narrows, which knows Elasticsearch 7 to 9 and OpenSearch 1 to 3; \
         nothing was asked of it but its version: say --any-version to go on all the same, and what it does \
         not say is left out"
    );
    Err(Error::Unfamiliar { sentence })
}
