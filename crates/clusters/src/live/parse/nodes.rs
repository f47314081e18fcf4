//! `_nodes/stats` and `_nodes/os`.

use std::collections::BTreeMap;
use std::fmt;

use record::observation::{Node, Selection};
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::{at, count, count_at, entries, sum, text_at};

/// The metrics of `_nodes/stats` that are asked for. Of `indices` only those that cost little: the others walk through
/// every segment.
pub(crate) const METRICS: [&str; 8] =
    ["os", "process", "fs", "jvm", "transport", "breaker", "indexing_pressure", "indices"];

/// The parts of `indices`.
pub(crate) const INDEX_METRICS: &str = "recovery,indexing,search,merge";

/// The fields of them that the cluster is to send.
pub(crate) const FILTER: &str = "nodes.*.name,nodes.*.timestamp,nodes.*.os.cpu.percent,\
    nodes.*.os.cgroup.cpu.stat.time_throttled_nanos,nodes.*.process.cpu.total_in_millis,\
    nodes.*.process.mem.resident_in_bytes,nodes.*.fs.total.total_in_bytes,\
    nodes.*.fs.total.available_in_bytes,nodes.*.fs.io_stats.total.*_kilobytes,\
    nodes.*.fs.io_stats.total.io_time_in_millis,nodes.*.jvm.uptime_in_millis,\
    nodes.*.jvm.mem.heap_used_percent,nodes.*.jvm.gc.collectors.*.collection_time_in_millis,\
    nodes.*.transport.*x_size_in_bytes,nodes.*.breakers.*.tripped,\
    nodes.*.indexing_pressure.memory.total.*_rejections,nodes.*.indices.recovery,\
    nodes.*.indices.indexing.index_total,nodes.*.indices.indexing.is_throttled,\
    nodes.*.indices.search.query_total,nodes.*.indices.merges.total_throttled_time_in_millis,\
    nodes.*.adaptive_selection";

/// Every node of `_nodes/stats`, by name. Nodes are read one by one: what a large cluster tells of all of them takes
/// many times the memory of what is kept.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Nodes {
    #[serde(deserialize_with = "one_by_one")]
    pub(crate) nodes: Vec<Node>,
}

fn one_by_one<'de, D: Deserializer<'de>>(nodes: D) -> Result<Vec<Node>, D::Error> {
    let mut all = nodes.deserialize_map(ById)?;
    all.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(all)
}

struct ById;

impl<'de> Visitor<'de> for ById {
    type Value = Vec<Node>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("nodes by their ids")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut nodes: A) -> Result<Self::Value, A::Error> {
        let mut all = Vec::new();
        while let Some((id, value)) = nodes.next_entry::<String, Value>()? {
            all.push(node(&id, &value));
        }
        Ok(all)
    }
}

/// Cores by node id, from `_nodes/os`.
pub(crate) fn cores(answer: &Value) -> BTreeMap<String, u64> {
    let cores = |(id, value): (&String, &Value)| {
        Some((id.clone(), count_at(value, "/os/allocated_processors")?))
    };
    entries(answer.get("nodes")).filter_map(cores).collect()
}

/// Ids and names of an answer's nodes.
pub(crate) fn names(answer: &Value) -> Vec<(String, String)> {
    let name = |(id, value): (&String, &Value)| (id.clone(), name_of(id, value));
    entries(answer.get("nodes")).map(name).collect()
}

fn name_of(id: &str, value: &Value) -> String {
    text_at(value, "/name").unwrap_or_else(|| id.to_owned())
}

fn node(id: &str, value: &Value) -> Node {
    let number = |path: &str| count_at(value, path);
    let tripped =
        |(name, breaker): (&String, &Value)| Some((name.clone(), count_at(breaker, "/tripped")?));
    let collections = entries(at(value, "/jvm/gc/collectors"))
        .map(|(_, collector)| count_at(collector, "/collection_time_in_millis"));
    let rejections = entries(at(value, "/indexing_pressure/memory/total"))
        .map(|(name, rejected)| count(Some(rejected)).filter(|_| name.ends_with("_rejections")));
    Node {
        id: id.to_owned(),
        name: name_of(id, value),
        timestamp_ms: number("/timestamp"),
        uptime_ms: number("/jvm/uptime_in_millis"),
        as_source: number("/indices/recovery/current_as_source"),
        as_target: number("/indices/recovery/current_as_target"),
        throttle_ms: number("/indices/recovery/throttle_time_in_millis"),
        cores: None,
        os_cpu_percent: number("/os/cpu/percent").filter(|percent| *percent <= 100),
        process_cpu_ms: number("/process/cpu/total_in_millis"),
        cgroup_throttled_ns: number("/os/cgroup/cpu/stat/time_throttled_nanos"),
        read_kib: number("/fs/io_stats/total/read_kilobytes"),
        write_kib: number("/fs/io_stats/total/write_kilobytes"),
        io_time_ms: number("/fs/io_stats/total/io_time_in_millis"),
        disk_total_bytes: number("/fs/total/total_in_bytes"),
        disk_available_bytes: number("/fs/total/available_in_bytes"),
        transport_rx_bytes: number("/transport/rx_size_in_bytes"),
        transport_tx_bytes: number("/transport/tx_size_in_bytes"),
        heap_used_percent: number("/jvm/mem/heap_used_percent"),
        resident_bytes: number("/process/mem/resident_in_bytes"),
        gc_ms: sum(collections),
        breakers_tripped: entries(value.get("breakers")).filter_map(tripped).collect(),
        pressure_rejections: sum(rejections),
        indexed_ops: number("/indices/indexing/index_total"),
        indexing_throttled: at(value, "/indices/indexing/is_throttled").and_then(Value::as_bool),
        searches: number("/indices/search/query_total"),
        merge_throttled_ms: number("/indices/merges/total_throttled_time_in_millis"),
        adaptive_selection: entries(value.get("adaptive_selection")).map(selection).collect(),
    }
}

fn selection((id, value): (&String, &Value)) -> (String, Selection) {
    let float = |key: &str| match value.get(key)? {
        Value::String(text) => text.parse().ok(),
        other => other.as_f64(),
    };
    let selection = Selection {
        rank: float("rank").filter(|rank: &f64| rank.is_finite()),
        queue: float("avg_queue_size").filter(|queue: &f64| queue.is_finite()),
        service_ns: count(value.get("avg_service_time_ns")),
        response_ns: count(value.get("avg_response_time_ns")),
    };
    (id.clone(), selection)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn reads_what_is_there_and_makes_up_nothing() {
        let nodes = |answer: &str| serde_json::from_str::<Nodes>(answer).unwrap().nodes;
        let found = nodes(include_str!("samples/nodes_stats.json"));
        let [node] = &found[..] else { panic!("{found:?}") };
        assert_eq!(
            (node.name.as_str(), node.gc_ms, node.os_cpu_percent),
            ("es-1", Some(100), Some(17))
        );
        assert_eq!((node.io_time_ms, node.throttle_ms), (Some(300), Some(1200)));
        assert_eq!((node.pressure_rejections, node.breakers_tripped["request"]), (Some(5), 2));
        assert_eq!(node.adaptive_selection["bbb"].rank, Some(41.2));
        let bare = nodes(r#"{"nodes": {"n": {}}}"#);
        assert_eq!(bare, [Node { id: "n".into(), name: "n".into(), ..Node::default() }]);
        assert_eq!(cores(&json!({"nodes": {"a": {"os": {"allocated_processors": 8}}}}))["a"], 8);
    }
}
