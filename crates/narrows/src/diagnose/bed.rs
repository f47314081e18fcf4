//! Two nodes on two sites of one cluster, and documents for indices on one of them.

use std::collections::BTreeMap;

use anyhow::Context;
use clusters::{ClusterSpec, Clusters, TopologySpec};
use serde_json::{Value, json};
use world::{Env, LinkConfig};

use crate::terminal::say;

/// The site that has the primaries, and the one that recovers replicas. Each is one node.
pub(crate) const NEAR: &str = "near";
pub(crate) const FAR: &str = "far";
pub(crate) const DOCUMENT_BYTES: usize = 10_000;
const BULK_DOCUMENTS: u32 = 200;
pub(crate) const BULK_BYTES: u64 = BULK_DOCUMENTS as u64 * DOCUMENT_BYTES as u64;

/// Two clusters of one node each, joined across a link, with settings in the nodes' configuration.
fn two_nodes(link: LinkConfig, settings: &BTreeMap<String, String>) -> TopologySpec {
    let site = |name: &str| ClusterSpec { settings: settings.clone(), ..ClusterSpec::new(name, 1) };
    TopologySpec { clusters: vec![site(NEAR), site(FAR)], link: Some(link), joined: true }
}

/// Starts [`two_nodes`], and says beforehand what takes long in silence.
pub(crate) async fn start(
    clusters: &mut impl Clusters,
    link: LinkConfig,
    settings: &BTreeMap<String, String>,
) -> anyhow::Result<()> {
    if let Some(sentence) = clusters.prepares() {
        say!("{sentence}");
    }
    clusters.start(&two_nodes(link, settings)).await.context("start two nodes")
}

/// Asks a node of a cluster.
pub(crate) async fn ask(
    clusters: &dyn Clusters,
    cluster: &str,
    method: &str,
    path: &str,
    body: Value,
) -> anyhow::Result<Value> {
    Ok(clusters.request(cluster, method, path, rest::json_body(&body)).await?.json()?)
}

/// Mappings of [`bulk`]: documents of one field, which is kept as it is.
pub(crate) fn incompressible() -> Value {
    let field = json!({"type": "keyword", "index": false, "doc_values": false});
    json!({"properties": {"t": field}})
}

/// A bulk request of [`BULK_BYTES`] in documents that do not compress.
pub(crate) fn bulk(env: &Env) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut lines = String::with_capacity(BULK_DOCUMENTS as usize * (DOCUMENT_BYTES + 40));
    for _ in 0..BULK_DOCUMENTS {
        lines.push_str("{\"index\":{}}\n{\"t\":\"");
        let ends = lines.len() + DOCUMENT_BYTES;
        while lines.len() < ends {
            // Ten letters of six bits each.
            let bits = env.random_u64();
            lines.extend((0..10).map(|n| char::from(LETTERS[(bits >> (6 * n)) as usize & 63])));
        }
        lines.push_str("\"}\n");
    }
    lines
}
