//! `/`, `_cluster/health`, `_cluster/settings`, `_cluster/state/blocks` and `_remote/info`.

use std::collections::{BTreeMap, BTreeSet};

use record::observation::{Health, Identity, IndexBlock, Remote, Scope, Setting};
use record::units::show_size_setting;
use serde_json::Value;

use super::{at, count, count_at, entries, index_settings, scalar, text_at};

/// The settings that the cluster is to send: those of transfers, allocation and links.
pub(crate) const SETTINGS_FILTER: &str =
    "*.indices*,*.ccr*,*.cluster*,*.transport*,*.plugins*,*.indexing_pressure*,*.narrows*";

/// The same for what tells of TLS between nodes, in Elasticsearch.
pub(crate) const TLS_FILTER: &str = "*.xpack*transport*enabled";
const TLS_OF_XPACK: &str = "xpack.security.transport.ssl.enabled";
/// What tells of it in OpenSearch, and how transports are written that encrypt: its own `netty4-secure`, and
/// `org.opensearch.security.ssl.http.netty.SecuritySSLNettyTransport` of its security plugin.
const TRANSPORT: &str = "transport.type";
const ENCRYPTING: [&str; 2] = ["-secure", "SSL"];

/// The settings that are kept of those.
const KEPT: [&str; 12] = [
    "indices.recovery.",
    "ccr.indices.recovery.",
    "cluster.blocks.",
    "cluster.info.update.",
    "cluster.max_shards_per_node",
    "cluster.routing.",
    "cluster.remote.",
    "transport.compress",
    "transport.connections_per_node.",
    "plugins.replication.follower.",
    "indexing_pressure.memory.",
    "narrows.recovery.",
];

/// Settings of indices by the ids of the blocks that they set (`IndexMetadata` of the field). Others, as that of a
/// closed index, are no setting.
const BLOCKS: [(&str, &str); 5] = [
    ("5", "index.blocks.read_only"),
    ("7", "index.blocks.read"),
    ("8", NOT_WRITTEN),
    ("9", "index.blocks.metadata"),
    ("12", "index.blocks.read_only_allow_delete"),
];
/// The block of an index that is not written to.
pub(crate) const NOT_WRITTEN: &str = "index.blocks.write";
/// So many indices of each block are named.
const BLOCKED_MAX: usize = 10;

/// Elasticsearch without servers that anybody sees, as it calls its build.
pub(crate) const SERVERLESS: &str = "serverless";

/// How names of settings end that say where another cluster or its proxy is: those stay out of observations.
const ADDRESSES: [&str; 4] = [".seeds", ".proxy", ".proxy_address", ".server_name"];

/// The identity in the answer to `/`. Elasticsearch does not name its distribution, OpenSearch does unless it is to be
/// taken for Elasticsearch (`compatibility.override_main_response_version`); the embedded engine presents itself as
/// either, and says what it is beside that.
pub(crate) fn identity(answer: &Value) -> Option<Identity> {
    let version = text_at(answer, "/version/number")?;
    let tagline = text_at(answer, "/tagline").unwrap_or_default();
    let flavour = match text_at(answer, "/version/distribution") {
        _ if at(answer, "/version/narrows").is_some() => "narrows".to_owned(),
        Some(name) => name.to_lowercase(),
        None if tagline.contains("OpenSearch") => "opensearch".to_owned(),
        None if text_at(answer, "/version/build_flavor").as_deref() == Some(SERVERLESS) => {
            SERVERLESS.to_owned()
        }
        None if tagline.contains("for Search") => "elasticsearch".to_owned(),
        None => "unknown".to_owned(),
    };
    let name = text_at(answer, "/cluster_name").unwrap_or_default();
    Some(Identity { name, flavour, version })
}

/// The cluster's health.
pub(crate) fn health(answer: &Value) -> Option<Health> {
    let at = |key: &str| count(answer.get(key));
    Some(Health {
        status: text_at(answer, "/status")?,
        nodes: at("number_of_nodes"),
        initializing: at("initializing_shards"),
        relocating: at("relocating_shards"),
        unassigned: at("unassigned_shards"),
        delayed: at("delayed_unassigned_shards"),
        pending_tasks: at("number_of_pending_tasks"),
        task_waited_ms: at("task_max_waiting_in_queue_millis"),
    })
}

/// The blocks that some index has; an index that is mounted from a snapshot is never written to, and its block of
/// writes is none of these.
pub(crate) fn index_blocks(answer: &Value, mounted: &BTreeSet<String>) -> Vec<IndexBlock> {
    let blocked = |(id, setting): (&str, &str)| {
        let all = entries(at(answer, "/blocks/indices"));
        let is_meant = |index: &String| setting == NOT_WRITTEN && mounted.contains(index);
        let mut names = all
            .filter(|(index, own)| own.get(id).is_some() && !is_meant(index))
            .map(|(index, _)| index);
        let indices: Vec<String> = names.by_ref().take(BLOCKED_MAX).cloned().collect();
        let count = (indices.len() + names.count()) as u64;
        (count > 0).then(|| IndexBlock { setting: setting.to_owned(), count, indices })
    };
    BLOCKS.into_iter().filter_map(blocked).collect()
}

/// The indices that are mounted from a snapshot, out of `/_all/_settings/index.store.type`.
pub(crate) fn mounted(answer: &Value) -> BTreeSet<String> {
    let is_mounted = |own: &BTreeMap<String, String>| {
        let kind = own.get("index.store.type").map(String::as_str);
        matches!(kind, Some("snapshot" | "remote_snapshot"))
    };
    let all = index_settings(answer).into_iter().filter(|(_, own)| is_mounted(own));
    all.map(|(index, _)| index).collect()
}

/// The settings that are kept, each as the highest scope has it.
pub(crate) fn settings(answer: &Value) -> BTreeMap<String, Setting> {
    let mut all = BTreeMap::new();
    let ranks = [
        ("defaults", Scope::Default),
        ("persistent", Scope::Persistent),
        ("transient", Scope::Transient),
    ];
    for (key, scope) in ranks {
        for (name, value) in entries(answer.get(key)) {
            let is_address = name.starts_with("cluster.remote.")
                && ADDRESSES.iter().any(|end| name.ends_with(end));
            let kept = !is_address && KEPT.iter().any(|start| name.starts_with(start));
            let value = match value {
                // As awareness is where nodes' files have it.
                Value::Array(values) if name.starts_with("cluster.routing.") => {
                    Some(values.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(","))
                }
                value => scalar(value),
            };
            if let Some(value) = value.filter(|_| kept) {
                // Whoever changes one looks again whether nobody has set it, and not at these words.
                let value = if scope == Scope::Default { as_written(value) } else { value };
                all.insert(name.clone(), Setting { value, scope });
            }
        }
    }
    all
}

/// Whether nodes encrypt what they send each other; none where the cluster does not tell. Both are settings of nodes,
/// which are among the defaults.
pub(crate) fn encrypts(answer: &Value) -> Option<bool> {
    let value = |name: &str| scalar(answer.get("defaults")?.get(name)?);
    let by_transport = |kind: String| ENCRYPTING.iter().any(|written| kind.contains(written));
    let of_xpack = value(TLS_OF_XPACK).map(|enabled| enabled == "true");
    of_xpack.or_else(|| value(TRANSPORT).map(by_transport))
}

/// A size as people write it: `40mb`. OpenSearch tells those of its defaults in bytes.
fn as_written(value: String) -> String {
    let bytes = value.strip_suffix('b').and_then(|digits| digits.parse::<u64>().ok());
    bytes.map_or(value, show_size_setting)
}

/// Other clusters, by alias.
pub(crate) fn remotes(answer: &Value) -> Vec<Remote> {
    let remote = |(alias, value): (&String, &Value)| Remote {
        alias: alias.clone(),
        connected: value.get("connected").and_then(Value::as_bool),
        mode: text_at(value, "/mode"),
        proxy_sockets: count_at(value, "/num_proxy_sockets_connected"),
        proxy_sockets_max: count_at(value, "/max_proxy_socket_connections"),
    };
    entries(Some(answer)).filter(|(_, value)| value.is_object()).map(remote).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tells_the_flavours_apart() {
        let of = |version: Value, tagline: &str| {
            let answer = json!({"cluster_name": "c", "version": version, "tagline": tagline});
            identity(&answer).map(|id| (id.flavour, id.version))
        };
        let pair = |flavour: &str, version: &str| Some((flavour.to_owned(), version.to_owned()));
        let elastic =
            of(json!({"number": "8.15.0", "build_flavor": "default"}), "You Know, for Search");
        assert_eq!(elastic, pair("elasticsearch", "8.15.0"));
        let open =
            of(json!({"distribution": "opensearch", "number": "2.19.1"}), "The OpenSearch Project");
        assert_eq!(open, pair("opensearch", "2.19.1"));
        // As OpenSearch 1 and 2 answer where they are to be taken for Elasticsearch (their pull request 898).
        let project = "The OpenSearch Project: https://opensearch.org/";
        let hidden = of(json!({"number": "7.10.2", "build_type": "tar"}), project);
        assert_eq!(hidden, pair("opensearch", "7.10.2"));
        // Made after the documentation: no such project was asked.
        let version = json!({"number": "8.11.0", "build_flavor": "serverless"});
        assert_eq!(of(version, "You Know, for Search"), pair(SERVERLESS, "8.11.0"));
        for distribution in [json!(null), json!("opensearch")] {
            let version =
                json!({"distribution": distribution, "number": "2.19.1", "narrows": "0.1.0"});
            assert_eq!(of(version, "You Know, for Search"), pair("narrows", "2.19.1"));
        }
        assert_eq!(of(json!({"number": "1.0"}), "Hello"), pair("unknown", "1.0"));
        assert_eq!(of(json!({}), ""), None);
    }

    #[test]
    fn the_highest_rank_counts() {
        let found = settings(&json!({
            "persistent": {"indices.recovery.max_bytes_per_sec": "80mb"},
            "transient": {"indices.recovery.max_bytes_per_sec": "1mb"},
            "defaults": {
                "indices.recovery.max_concurrent_file_chunks": "2", "cluster.name": "x",
                "cluster.max_shards_per_node": "1000",
                "cluster.remote.a.seeds": ["10.0.0.1:9300"],
                "cluster.routing.allocation.awareness.attributes": ["zone", "rack"],
            },
        }));
        let rate = &found["indices.recovery.max_bytes_per_sec"];
        assert_eq!((rate.value.as_str(), rate.scope), ("1mb", Scope::Transient));
        assert_eq!(found["indices.recovery.max_concurrent_file_chunks"].scope, Scope::Default);
        assert_eq!(found["cluster.routing.allocation.awareness.attributes"].value, "zone,rack");
        assert_eq!(found["cluster.max_shards_per_node"].value, "1000");
        assert_eq!(found.len(), 4);
    }

    #[test]
    fn a_default_in_bytes_is_told_as_people_write_it_and_what_somebody_set_as_it_is() {
        let found = settings(&json!({
            "persistent": {"indices.recovery.chunk_size": "1048576b"},
            "defaults": {
                "indices.recovery.max_bytes_per_sec": "41943040b", "cluster.info.update.interval": "30s",
            },
        }));
        let values: Vec<&str> = found.values().map(|setting| setting.value.as_str()).collect();
        assert_eq!(values, ["30s", "1048576b", "40mb"]);
    }

    #[test]
    fn tls_between_nodes_is_told_by_their_transport() {
        for (name, value, told) in [
            (TRANSPORT, "org.opensearch.security.ssl.http.netty.SecuritySSLNettyTransport", true),
            (TRANSPORT, "netty4-secure", true),
            (TRANSPORT, "netty4", false),
            (TLS_OF_XPACK, "true", true),
            (TLS_OF_XPACK, "false", false),
        ] {
            let defaults = json!({ name: value });
            assert_eq!(encrypts(&json!({ "defaults": defaults })), Some(told), "{name} = {value}");
        }
        let security = json!({ TRANSPORT: "security4", TLS_OF_XPACK: "true" });
        assert_eq!(encrypts(&json!({ "defaults": security })), Some(true));
        assert_eq!(encrypts(&json!({ "defaults": {} })), None);
    }

    #[test]
    fn blocks_of_indices_are_named_by_their_settings() {
        let by_hand = json!({"8": {"description": "index write (api)"}});
        let closed = json!({"4": {"description": "index closed"}});
        let mut indices = serde_json::Map::new();
        for number in 10..22 {
            indices.insert(format!("old-{number}"), by_hand.clone());
        }
        indices.insert("shut".to_owned(), closed);
        let answer = json!({"blocks": {"indices": indices}});
        let found = index_blocks(&answer, &BTreeSet::new());
        let [block] = &found[..] else { panic!("{found:?}") };
        assert_eq!((block.setting.as_str(), block.count), ("index.blocks.write", 12));
        assert_eq!((block.indices.len(), block.indices[0].as_str()), (BLOCKED_MAX, "old-10"));
        assert_eq!(index_blocks(&json!({"status": "green"}), &BTreeSet::new()), []);
        // Made after the documentation of searchable snapshots: both products mount indices that are not written to.
        let store = |kind: &str| json!({"settings": {"index.store.type": kind}});
        let mounted = mounted(&json!({
            "old-10": store("snapshot"), "old-11": store("remote_snapshot"), "old-12": store("hybridfs"),
        }));
        let found = index_blocks(&answer, &mounted);
        assert_eq!((found[0].count, found[0].indices[0].as_str()), (10, "old-12"));
    }

    #[test]
    fn addresses_of_other_clusters_are_not_kept() {
        let found = settings(&json!({
            "persistent": {
                "cluster.remote.a.mode": "proxy",
                "cluster.remote.a.proxy_address": "proxy.example.org:9300",
                "cluster.remote.a.server_name": "a.example.org",
                "cluster.remote.b.seeds": "10.0.0.1:9300",
                "cluster.remote.c.proxy": "10.0.0.2:9300",
            },
            "defaults": {"cluster.remote.a.proxy_socket_connections": "18"},
        }));
        let names: Vec<&str> = found.keys().map(String::as_str).collect();
        assert_eq!(names, ["cluster.remote.a.mode", "cluster.remote.a.proxy_socket_connections"]);
    }
}
