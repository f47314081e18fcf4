//! Answers of a cluster as typed observations.
//!
//! The one rule: any JSON goes in, and nothing panics. A field that is missing or of another type is `None`; an object
//! without its name is left out.

mod allocation;
mod cluster;
mod followers;
mod hot_threads;
mod inventory;
mod leaves;
mod node_times;
mod nodes;
mod recovery;
mod seen_rates;
mod snapshots;

pub(crate) use allocation::{Unsettled, allocation_filters, explain_into, lack};
pub(crate) use cluster::{
    NOT_WRITTEN, SERVERLESS, SETTINGS_FILTER, TLS_FILTER, encrypts, health, identity, index_blocks,
    mounted, remotes, settings,
};
pub(crate) use followers::{
    auto_follow_errors, ccr, ccr_limits, ccr_paused, replicated, replication, replication_status,
    replication_stopped,
};
pub(crate) use hot_threads::hot_threads;
pub(crate) use inventory::{
    committed, disks, index_settings, inventory_copies, inventory_nodes, lease_lags, store_sizes,
    tell_apart,
};
pub use leaves::{Leaf, Leaves, Take};
pub(crate) use node_times::{NodeTimes, node_times};
pub(crate) use nodes::{FILTER, INDEX_METRICS, METRICS, Nodes, cancelled, cores, names};
pub(crate) use recovery::Recoveries;
pub(crate) use seen_rates::{highest, indexed_documents, rates_between, rates_of_recoveries};
pub(crate) use snapshots::{repository_setting, snapshots};

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// A count that is zero or more; `_cat` and some versions write numbers as texts. Minus one means unknown.
fn count(value: Option<&Value>) -> Option<u64> {
    match value? {
        Value::Number(number) => number.as_u64().or_else(|| whole(number.as_f64()?)),
        Value::String(text) => text.parse().ok(),
        _ => None,
    }
}

fn whole(number: f64) -> Option<u64> {
    (0.0..1.8e19).contains(&number).then_some(number as u64)
}

/// What is below `value` at the end of a path of keys, each after a `/`. Unlike a JSON pointer it knows no escapes,
/// which would be looked for in every key.
fn at<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('/').skip(1).try_fold(value, |value, key| value.get(key))
}

/// A count somewhere below `value`, by a path of keys.
fn count_at(value: &Value, path: &str) -> Option<u64> {
    count(at(value, path))
}

/// A text of some length somewhere below `value`.
fn text_at(value: &Value, path: &str) -> Option<String> {
    let text = at(value, path)?.as_str()?;
    (!text.is_empty()).then(|| text.to_owned())
}

/// A text, a number or a flag, as text.
fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        _ => None,
    }
}

/// The entries of an object; none where it is something else.
fn entries(value: Option<&Value>) -> impl Iterator<Item = (&String, &Value)> {
    value.and_then(Value::as_object).into_iter().flat_map(Map::iter)
}

/// The elements of an array; none where it is something else.
fn elements(value: Option<&Value>) -> impl Iterator<Item = &Value> {
    value.and_then(Value::as_array).into_iter().flatten()
}

/// The primary among the copies of a shard, as `_stats` and `_segments` list them.
fn primary_of(copies: Option<&Value>) -> Option<&Value> {
    elements(copies).find(|copy| at(copy, "/routing/primary") == Some(&Value::Bool(true)))
}

/// By how many operations the retention lease of each copy lags behind the primary that holds it, by the id of the
/// copy's node; none where the primary does not say it.
fn lags(primary: &Value) -> Option<BTreeMap<&str, u64>> {
    let next = at(primary, "/seq_no/max_seq_no")?.as_i64()?.saturating_add(1);
    let leases = elements(Some(at(primary, "/retention_leases/leases")?));
    let of_peers = leases.filter_map(|lease| Some((peer_of(lease)?, lease)));
    let lag = |(node, lease): (_, &Value)| {
        let from = lease.get("retaining_seq_no")?.as_i64()?;
        Some((node, u64::try_from(next.saturating_sub(from)).unwrap_or(0)))
    };
    of_peers.map(lag).collect()
}

/// The id of the node whose copy a lease is of.
fn peer_of(lease: &Value) -> Option<&str> {
    lease.get("id")?.as_str()?.strip_prefix("peer_recovery/")
}

/// The sum of the counts that are known; none where none is.
fn sum(counts: impl IntoIterator<Item = Option<u64>>) -> Option<u64> {
    let known = counts.into_iter().flatten();
    known.fold(None, |sum, count| Some(sum.unwrap_or(0u64).saturating_add(count)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn counts_are_numbers_or_texts_and_never_negative() {
        for (value, found) in [
            (json!(5), Some(5)),
            (json!("5"), Some(5)),
            (json!(5.0), Some(5)),
            (json!(-1), None),
            (json!("a"), None),
            (json!(null), None),
            (json!([5]), None),
            (json!(1e300), None),
        ] {
            assert_eq!(count(Some(&value)), found, "{value}");
        }
        assert_eq!(sum([None, Some(1), Some(u64::MAX)]), Some(u64::MAX));
        assert_eq!(sum([None, None]), None);
    }

    #[test]
    fn a_path_ends_where_a_key_is_missing() {
        let value = json!({"a": {"b": {"c": 1}}, "l": [7]});
        assert_eq!(at(&value, "/a/b/c"), Some(&json!(1)));
        assert_eq!(at(&value, "/l"), Some(&json!([7])));
        for missing in ["/a/c", "/a/b/c/d", "/l/0", "/"] {
            assert_eq!(at(&value, missing), None, "{missing}");
        }
    }

    /// Short answers by what was asked.
    fn others() -> BTreeMap<String, Value> {
        serde_json::from_str(include_str!("samples/others.json")).unwrap()
    }

    /// Whole answers of the shapes that the parsers know.
    fn samples() -> Vec<Value> {
        let long = [
            include_str!("samples/recovery.json"),
            include_str!("samples/nodes_stats.json"),
            include_str!("samples/explain.json"),
            include_str!("samples/ccr_stats.json"),
            include_str!("samples/follower_stats.json"),
            include_str!("samples/inventory_nodes.json"),
            include_str!("samples/inventory_shards.json"),
            include_str!("samples/snapshot_status.json"),
            include_str!("samples/leases.json"),
        ];
        let long = long.iter().map(|text| serde_json::from_str(text).unwrap());
        long.chain(others().into_values()).collect()
    }

    /// Seeds that a parser makes nothing of would try it with nothing.
    #[test]
    fn short_answers_are_read() {
        let all = others();
        let of = |path: &str| &all[path];
        assert_eq!(identity(of("/")).unwrap().flavour, "elasticsearch");
        assert_eq!(identity(of("/ of OpenSearch")).unwrap().flavour, "opensearch");
        assert_eq!(health(of("/_cluster/health")).unwrap().unassigned, Some(4));
        assert_eq!(settings(of("/_cluster/settings")).len(), 5, "all but the seeds");
        assert_eq!(remotes(of("/_remote/info")).len(), 2);
        let shards: Unsettled = serde_json::from_str(&of("/_cat/shards").to_string()).unwrap();
        assert_eq!((shards.rows, shards.waiting.len(), shards.moves.len()), (3, 1, 1));
        let stats = of("/_nodes/stats/fs,transport");
        assert_eq!((disks(stats).len(), cores(stats)["aaa"]), (1, 8));
        assert_eq!(node_times(stats)["aaa"].rejected, Some(3));
        assert_eq!(indexed_documents(of("/_stats/indexing")).len(), 1);
        assert_eq!(rates_of_recoveries(of("/_recovery")).len(), 2);
        assert_eq!(committed(of("/_segments")).len(), 1);
        let own = of("/_settings");
        assert_eq!((replicated(own).len(), allocation_filters(own)["logs"].len()), (1, 1));
        assert_eq!(index_settings(own)["logs"].len(), 3);
        let limit = "max_restore_bytes_per_sec";
        assert!(repository_setting("backups", limit, of("/_snapshot/backups")).is_some());
        let info = of("/_all/_ccr/info");
        assert_eq!((ccr_paused(info).len(), ccr_limits(info).len()), (1, 1));
        let status = of("/_plugins/_replication/logs/_status");
        assert!(replication_status("logs", status).is_some());
    }

    fn every_parser(value: &Value) {
        let mut copy = record::observation::WaitingCopy::default();
        explain_into(&mut copy, value);
        let _ = (identity(value), health(value), settings(value), remotes(value));
        let _ = index_blocks(value, &mounted(value));
        copy.index = "logs".to_owned();
        let _ = (lack(&copy, "node-b", value), allocation_filters(value));
        let _ = (snapshots(value), repository_setting("backups", "type", value));
        // As text, in which these come: another source would have their readers compiled once more.
        let text = value.to_string();
        let _ = serde_json::from_str::<Unsettled>(&text);
        let _ = serde_json::from_str::<Nodes>(&text);
        let _ = auto_follow_errors(value);
        let _ = (ccr(value), replication(value), cores(value), names(value), cancelled(value));
        let _ =
            (ccr_limits(value), ccr_paused(value), replication_stopped(value), replicated(value));
        let _ = (replication_status("logs", value), disks(value), node_times(value));
        let _ = (inventory_nodes(value), inventory_copies(value, &[]), index_settings(value));
        let _ = (committed(value), lease_lags(value), store_sizes(value), indexed_documents(value));
        let rates = rates_between(value, value, std::time::Duration::ZERO);
        let _ = (highest(rates), highest(rates_of_recoveries(value)));
        let _ = serde_json::from_str::<Recoveries>(&text);
        let _ = hot_threads(&text);
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            ".{0,8}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[a-z_]{1,9}", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    /// Replaces the value at the n-th place, counted in depth-first order.
    fn mangle(value: &mut Value, at: &mut usize, with: &Value) {
        if *at == 0 {
            *value = with.clone();
            *at = usize::MAX;
            return;
        }
        if *at == usize::MAX {
            return;
        }
        *at -= 1;
        match value {
            Value::Array(items) => items.iter_mut().for_each(|item| mangle(item, at, with)),
            Value::Object(map) => map.values_mut().for_each(|item| mangle(item, at, with)),
            _ => {}
        }
    }

    /// Answers of a cluster, changed at random.
    #[test]
    fn answers() {
        let samples: Vec<Vec<u8>> =
            samples().iter().map(|value| value.to_string().into_bytes()).collect();
        let text: &[u8] = include_bytes!("samples/hot_threads.txt");
        let samples: Vec<&[u8]> = samples.iter().map(Vec::as_slice).chain([text]).collect();
        let budget = testbed::fuzz::Budget { allocations: 50_000, ..Default::default() };
        testbed::fuzz::search("live answers", &samples, 5_000, budget, |bytes| {
            match serde_json::from_slice(bytes) {
                Ok(value) => every_parser(&value),
                Err(_) => drop(hot_threads(&String::from_utf8_lossy(bytes))),
            }
        });
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn nothing_panics_on_mangled_answers(sample in 0..samples().len(), at in 0usize..120, with in any_json()) {
            let mut value = samples().swap_remove(sample);
            let mut at = at;
            mangle(&mut value, &mut at, &with);
            every_parser(&value);
        }

        #[test]
        fn nothing_panics_on_any_json(value in any_json()) {
            every_parser(&value);
        }

        #[test]
        fn nothing_panics_on_any_text(text in ".{0,400}") {
            let _ = hot_threads(&text);
        }
    }
}
