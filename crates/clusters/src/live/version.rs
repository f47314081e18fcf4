//! Flavour and version of a cluster, and whether narrows was built for it.

use record::observation::Identity;
use serde_json::Value;

use super::{LiveClient, parse};
use crate::{Error, Result};

/// Asks a host for its version: the whole answer, and the identity in it. Fails where the host is no cluster.
pub(crate) async fn ask_version(client: &LiveClient) -> Result<(Value, Identity)> {
    let answer = client.get("/").await?;
    let identity = parse::identity(&answer).ok_or_else(|| Error::NotJson {
        path: "/".to_owned(),
        reason: "JSON without version.number, so neither Elasticsearch nor OpenSearch; give the address of a node"
            .to_owned(),
    })?;
    Ok((answer, identity))
}

/// Refuses a version that narrows was not built for. A version that is unknown is not refused.
pub(crate) fn check_version(identity: &Identity) -> Result<()> {
    let Identity { flavour, version, .. } = identity;
    let major = version.split('.').next().and_then(|text| text.parse::<u32>().ok());
    let known = matches!(
        (flavour.as_str(), major),
        ("elasticsearch", Some(7..=9)) | ("opensearch", Some(1..=3)) | ("narrows", _)
    );
    if known || version.is_empty() {
        return Ok(());
    }
    let sentence = format!(
        "{flavour} {version} was never tried with narrows, which knows Elasticsearch 7 to 9 and OpenSearch 1 to 3; \
         nothing was asked of it but its version: say --any-version to go on all the same, and what it does \
         not say is left out"
    );
    Err(Error::Unfamiliar { sentence })
}
