//! What a cluster and its nodes say of themselves: the release that they present themselves as, manager, hosts.

use serde_json::{Value, json};

use engine::Node;
use engine::core::PresentedAs;

/// What clients are told, and go by, of the release that a node presents itself as. What a node is called by its own
/// name stands beside it, in `version.narrows`.
pub(super) struct Release {
    /// `version.number`.
    pub(super) number: &'static str,
    /// `index.version.created`.
    pub(super) version_created: &'static str,
    /// `version.distribution`, which Elasticsearch does not have.
    distribution: Option<&'static str>,
    /// `version.build_flavor`, which OpenSearch does not have.
    build_flavor: Option<&'static str>,
    /// The Lucene of that release.
    lucene_version: &'static str,
    minimum_wire_compatibility_version: &'static str,
    minimum_index_compatibility_version: &'static str,
    tagline: &'static str,
    /// The header by which Elasticsearch's clients know it from 7.14 on, with its value.
    pub(super) product: Option<(&'static str, &'static str)>,
}

/// Type, hash and date of a build that does not know them, as the field writes it.
const UNKNOWN: &str = "unknown";

pub(super) static ELASTICSEARCH: Release = Release {
    number: "7.10.2",
    version_created: "7100299",
    distribution: None,
    build_flavor: Some("default"),
    lucene_version: "8.7.0",
    minimum_wire_compatibility_version: "6.8.0",
    minimum_index_compatibility_version: "6.0.0-beta1",
    tagline: "You Know, for Search",
    product: Some(("x-elastic-product", "Elasticsearch")),
};

static OPENSEARCH: Release = Release {
    number: "2.19.1",
    version_created: "136407927",
    distribution: Some("opensearch"),
    build_flavor: None,
    lucene_version: "9.12.1",
    minimum_wire_compatibility_version: "7.10.0",
    minimum_index_compatibility_version: "7.0.0",
    tagline: "The OpenSearch Project: https://opensearch.org/",
    product: None,
};

/// The release that a node presents itself as.
pub(super) fn release(node: &Node) -> &'static Release {
    match node.core().config.presented_as {
        PresentedAs::Elasticsearch7 => &ELASTICSEARCH,
        PresentedAs::OpenSearch2 => &OPENSEARCH,
    }
}

impl Release {
    /// `version` and `tagline` of the answer to `/`.
    pub(super) fn root(&self) -> (Value, &'static str) {
        let mut version = json!({
            "number": self.number,
            "narrows": env!("CARGO_PKG_VERSION"),
            "build_date": UNKNOWN,
            "build_snapshot": false,
            "lucene_version": self.lucene_version,
            "minimum_wire_compatibility_version": self.minimum_wire_compatibility_version,
            "minimum_index_compatibility_version": self.minimum_index_compatibility_version,
        });
        if let Some(distribution) = self.distribution {
            version["distribution"] = json!(distribution);
        }
        self.add_build(&mut version);
        (version, self.tagline)
    }

    /// Adds what `/` and `_nodes` say of the build.
    pub(super) fn add_build(&self, to: &mut Value) {
        to["build_type"] = json!(UNKNOWN);
        to["build_hash"] = json!(UNKNOWN);
        if let Some(flavor) = self.build_flavor {
            to["build_flavor"] = json!(flavor);
        }
    }
}

/// Name of the node that manages the cluster.
pub(super) fn manager(node: &Node) -> &str {
    node.core().config.members.first().map_or(node.name(), String::as_str)
}

/// The host of an address.
pub(super) fn host(address: &str) -> &str {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    host.trim_matches(['[', ']'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_release_says_what_its_clients_look_at() {
        let (version, tagline) = ELASTICSEARCH.root();
        assert_eq!(tagline, "You Know, for Search");
        assert_eq!(version["build_flavor"], "default");
        assert_eq!(version.get("distribution"), None);
        let (version, _) = OPENSEARCH.root();
        assert_eq!(version["distribution"], "opensearch");
        assert_eq!(version.get("build_flavor"), None);
        for release in [&ELASTICSEARCH, &OPENSEARCH] {
            let (version, _) = release.root();
            let text = |key: &str| version[key].as_str().is_some_and(|text| !text.is_empty());
            assert!(
                ["number", "narrows", "build_hash", "build_type", "lucene_version"]
                    .into_iter()
                    .all(text)
            );
        }
    }

    #[test]
    fn hosts_of_addresses() {
        assert_eq!(host("127.0.0.1:9300"), "127.0.0.1");
        assert_eq!(host("[::1]:9300"), "::1");
        assert_eq!(host("leader-1:40001"), "leader-1");
    }
}
