//! `_nodes/os`, `_cat/shards` and `_settings`, for who asks what a cluster consists of.

use std::collections::BTreeMap;

use record::inventory::{InventoryCopy, InventoryNode};
use record::roles::holds_data;
use serde_json::Value;

use super::{count, count_at, elements, entries, lags, primary_of, scalar, text_at};

/// The nodes of an answer, by name.
pub(crate) fn inventory_nodes(answer: &Value) -> Vec<InventoryNode> {
    let mut all: Vec<InventoryNode> =
        entries(answer.get("nodes")).map(|(id, value)| node(id, value)).collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}

fn node(id: &str, value: &Value) -> InventoryNode {
    let roles: Option<Vec<&str>> = value
        .get("roles")
        .and_then(Value::as_array)
        .map(|roles| roles.iter().filter_map(Value::as_str).collect());
    let attribute =
        |(name, value): (&String, &Value)| Some((name.clone(), value.as_str()?.to_owned()));
    InventoryNode {
        id: id.to_owned(),
        name: text_at(value, "/name").unwrap_or_else(|| id.to_owned()),
        holds_data: roles.as_ref().map(|roles| roles.iter().any(|role| holds_data(role))),
        manages: false,
        roles: roles.into_iter().flatten().map(str::to_owned).collect(),
        addresses: ["/host", "/ip"].iter().filter_map(|part| text_at(value, part)).collect(),
        attributes: entries(value.get("attributes")).filter_map(attribute).collect(),
        cores: count_at(value, "/os/allocated_processors"),
        disk_bytes: None,
    }
}

/// Adds their ids to the names of nodes that are called alike, as two on one host are by default; whether some are.
pub(crate) fn tell_apart(nodes: &mut [InventoryNode]) -> bool {
    let alike = nodes.chunk_by_mut(|a, b| a.name == b.name).filter(|alike| alike.len() > 1);
    let mut found = false;
    for node in alike.flatten() {
        node.name = format!("{}-{}", node.name, node.id);
        found = true;
    }
    found
}

/// Every copy of an answer, by index and shard, the primary first. Where it tells the ids of nodes, copies are on the
/// nodes that have these, whatever they are called.
pub(crate) fn inventory_copies(answer: &Value, nodes: &[InventoryNode]) -> Vec<InventoryCopy> {
    let names: BTreeMap<&str, &str> =
        nodes.iter().map(|node| (node.id.as_str(), node.name.as_str())).collect();
    let copy = |row: &Value| {
        let by_id = row.get("id").and_then(Value::as_str).and_then(|id| names.get(id));
        let mut copy = copy(row)?;
        copy.node = by_id.map(|name| (*name).to_owned()).or(copy.node);
        Some(copy)
    };
    let mut all: Vec<InventoryCopy> = elements(Some(answer)).filter_map(copy).collect();
    all.sort_by(|a, b| {
        (&a.index, a.shard, !a.primary, &a.node).cmp(&(&b.index, b.shard, !b.primary, &b.node))
    });
    all
}

fn copy(row: &Value) -> Option<InventoryCopy> {
    Some(InventoryCopy {
        index: text_at(row, "/index")?,
        shard: u32::try_from(count(row.get("shard"))?).ok()?,
        primary: text_at(row, "/prirep").is_some_and(|kind| kind.starts_with('p')),
        state: text_at(row, "/state")?,
        // A copy that moves is "a -> 10.0.0.2 id b": it is on the node that it moves from until it has arrived.
        node: text_at(row, "/node").map(|node| match node.split_once(" -> ") {
            Some((from, _)) => from.to_owned(),
            None => node,
        }),
        documents: count(row.get("docs")),
        bytes: count(row.get("store")),
        segments: count(row.get("segments.count")),
        lease_lag: None,
    })
}

/// What is committed of each primary in an answer of `_segments`, by index and shard: bytes and segments. That is what
/// a recovery copies; the directory, whose size `_cat/shards` gives, may hold files of merged segments besides.
pub(crate) fn committed(answer: &Value) -> BTreeMap<(String, u32), (u64, u64)> {
    let is_committed = |segment: &&Value| segment.get("committed") == Some(&Value::Bool(true));
    let of = |(index, number, copy): (&String, u32, &Value)| {
        let segments = entries(copy.get("segments")).map(|(_, segment)| segment);
        let sizes: Vec<u64> = segments
            .filter(is_committed)
            .filter_map(|segment| count_at(segment, "/size_in_bytes"))
            .collect();
        let bytes = sizes.iter().fold(0u64, |sum, bytes| sum.saturating_add(*bytes));
        ((index.clone(), number), (bytes, sizes.len() as u64))
    };
    primaries(answer).map(of).collect()
}

/// The bytes of the files of primaries, out of `_stats/store?level=shards`, by index and shard.
pub(crate) fn store_sizes(answer: &Value) -> BTreeMap<(String, u32), u64> {
    let of = |(index, number, copy): (&String, u32, &Value)| {
        Some(((index.clone(), number), count_at(copy, "/store/size_in_bytes")?))
    };
    primaries(answer).filter_map(of).collect()
}

/// By how many operations the retention leases of copies lag behind their primaries, out of `_stats?level=shards`: by
/// index, shard, and the id of the copy's node.
pub(crate) fn lease_lags(answer: &Value) -> BTreeMap<(String, u32, String), u64> {
    let mut found = BTreeMap::new();
    for (index, number, primary) in primaries(answer) {
        for (node, lag) in lags(primary).into_iter().flatten() {
            found.insert((index.clone(), number, node.to_owned()), lag);
        }
    }
    found
}

/// The primaries of an answer of `_stats` or `_segments`, each with its index and its shard.
fn primaries(answer: &Value) -> impl Iterator<Item = (&String, u32, &Value)> {
    entries(answer.get("indices")).flat_map(|(index, value)| {
        entries(value.get("shards")).filter_map(move |(number, copies)| {
            Some((index, number.parse().ok()?, primary_of(Some(copies))?))
        })
    })
}

/// Settings of indices by their flat names, each index by its name.
pub(crate) fn index_settings(answer: &Value) -> BTreeMap<String, BTreeMap<String, String>> {
    let value = |(name, value): (&String, &Value)| Some((name.clone(), scalar(value)?));
    let one = |(index, settings): (&String, &Value)| {
        (index.clone(), entries(settings.get("settings")).filter_map(value).collect())
    };
    entries(Some(answer)).map(one).collect()
}

/// How large the disks of nodes are, and what is free of them, by the ids of the nodes that tell both.
pub(crate) fn disks(answer: &Value) -> BTreeMap<String, (u64, u64)> {
    let of = |(id, node): (&String, &Value)| {
        let bytes = |name: &str| count_at(node, &format!("/fs/total/{name}_in_bytes"));
        Some((id.clone(), (bytes("total")?, bytes("available")?)))
    };
    entries(answer.get("nodes")).filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn reads_nodes_with_their_roles_and_zones() {
        let answer = serde_json::from_str(include_str!("samples/inventory_nodes.json")).unwrap();
        let found = inventory_nodes(&answer);
        let seen: Vec<_> = found
            .iter()
            .map(|n| {
                (
                    n.name.as_str(),
                    n.holds_data,
                    n.cores,
                    n.attributes.get("zone").map(String::as_str),
                )
            })
            .collect();
        let expected = [
            ("os-0", Some(true), Some(2), Some("a")),
            ("os-1", Some(true), Some(2), Some("b")),
            ("os-manager", Some(false), Some(1), None),
        ];
        assert_eq!(seen, expected);
        let bare = inventory_nodes(&json!({"nodes": {"x": {}}}));
        assert_eq!((bare[0].name.as_str(), bare[0].holds_data, bare[0].cores), ("x", None, None));
        assert_eq!((&found[0].roles[1][..], bare[0].roles.len()), ("data", 0));
        let at = json!({"host": "es1.example", "ip": "10.0.0.7"});
        assert_eq!(
            inventory_nodes(&json!({"nodes": {"x": at}}))[0].addresses,
            ["es1.example", "10.0.0.7"]
        );
        assert!(bare[0].addresses.is_empty());
    }

    #[test]
    fn reads_copies_and_those_that_have_no_place() {
        let answer = serde_json::from_str(include_str!("samples/inventory_shards.json")).unwrap();
        let found = inventory_copies(&answer, &[]);
        assert_eq!(found.len(), 5);
        let first = &found[0];
        assert_eq!(
            (first.index.as_str(), first.shard, first.primary, first.node.as_deref()),
            ("logs", 0, true, Some("os-0"))
        );
        assert_eq!(
            (first.documents, first.bytes, first.segments),
            (Some(120_000), Some(31_457_280), Some(9))
        );
        let moving = found.iter().find(|copy| copy.state == "RELOCATING").unwrap();
        assert_eq!(moving.node.as_deref(), Some("os-1"));
        let homeless = found.iter().find(|copy| copy.state == "UNASSIGNED").unwrap();
        assert_eq!((&homeless.node, homeless.bytes), (&None, None));
    }

    /// Elasticsearch calls a node as its host where nobody names it.
    #[test]
    fn nodes_that_are_called_alike_are_told_apart_by_their_ids() {
        let node = |name: &str| json!({"name": name, "roles": ["data"]});
        let answer = json!({"nodes": {"x1": node("host"), "x2": node("host"), "y": node("other")}});
        let mut nodes = inventory_nodes(&answer);
        assert!(tell_apart(&mut nodes) && !tell_apart(&mut nodes));
        let names: Vec<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
        assert_eq!(names, ["host-x1", "host-x2", "other"]);
        let copy = |prirep: &str, id: Option<&str>, node: Option<&str>| {
            let state = if id.is_some() { "STARTED" } else { "UNASSIGNED" };
            json!({"index": "a", "shard": "0", "prirep": prirep, "state": state, "node": node, "id": id})
        };
        let rows = json!([
            copy("p", Some("x2"), Some("host -> 10.0.0.2 y other")),
            copy("r", Some("x1"), Some("host")),
            copy("r", None, None),
        ]);
        let copies = inventory_copies(&rows, &nodes);
        let mut places: Vec<Option<&str>> =
            copies.iter().map(|copy| copy.node.as_deref()).collect();
        places.sort_unstable();
        assert_eq!(places, [None, Some("host-x1"), Some("host-x2")]);
    }

    #[test]
    fn what_is_committed_is_what_is_copied() {
        let segment =
            |bytes: u64, committed: bool| json!({"size_in_bytes": bytes, "committed": committed});
        let copy = |primary: bool| {
            json!({
                "routing": {"primary": primary},
                "segments": {"_0": segment(5, true), "_1": segment(7, true), "_2": segment(90, false)},
            })
        };
        let answer =
            json!({"indices": {"logs": {"shards": {"3": [copy(false), copy(true)], "x": []}}}});
        let found = committed(&answer);
        assert_eq!(found, BTreeMap::from([(("logs".to_owned(), 3), (12, 2))]));
    }

    #[test]
    fn sizes_of_closed_indices_are_those_of_their_primaries() {
        let copy = |primary: bool, bytes: u64| {
            let store = json!({"size_in_bytes": bytes});
            json!({"routing": {"primary": primary}, "store": store})
        };
        let shards =
            json!({"0": [copy(false, 5), copy(true, 7)], "1": [copy(false, 9)], "2": [{}]});
        let found = store_sizes(&json!({"indices": {"old": {"shards": shards}}}));
        assert_eq!(found, BTreeMap::from([(("old".to_owned(), 0), 7)]));
    }

    /// Of the shape that OpenSearch 2.19.1 answers with.
    #[test]
    fn leases_say_what_copies_would_replay() {
        let answer = serde_json::from_str(include_str!("samples/leases.json")).unwrap();
        let of = |node: &str| ("logs".to_owned(), 0, node.to_owned());
        let expected = BTreeMap::from([(of("node-a"), 0), (of("node-b"), 100)]);
        assert_eq!(lease_lags(&answer), expected);
    }

    #[test]
    fn reads_settings_and_disks() {
        let answer = json!({"logs": {"settings": {"index.priority": "5", "index.x": {}}}});
        assert_eq!(index_settings(&answer)["logs"]["index.priority"], "5");
        let fs = json!({"total": {"total_in_bytes": 90, "available_in_bytes": 30}});
        let stats =
            json!({"nodes": {"a": {"fs": fs}, "b": {"fs": {"total": {"total_in_bytes": 9}}}}});
        assert_eq!(disks(&stats), BTreeMap::from([("a".to_owned(), (90, 30))]));
    }
}
