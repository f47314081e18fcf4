//! `_nodes/stats` and `_nodes/os`.

use std::collections::BTreeMap;
use std::fmt;

use record::observation::Node;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::leaves::{Leaf, Leaves, Take};
use super::{count_at, entries, text_at};

/// The metrics of `_nodes/stats` that are asked for. Of `indices` only those that cost little: the others walk through
/// every segment.
#[rustfmt::skip]
pub(crate) const METRICS: [&str; 9] = [
    "os", "process", "fs", "jvm", "transport", "breaker", "indexing_pressure", "thread_pool", "indices",
];

/// The parts of `indices`.
pub(crate) const INDEX_METRICS: &str = "recovery,indexing,search,merge";

/// The fields of them that the cluster is to send.
pub(crate) const FILTER: &str = "_nodes.failed,nodes.*.name,nodes.*.roles,nodes.*.timestamp,nodes.*.os.cpu.percent,\
    nodes.*.os.mem.total_in_bytes,\
    nodes.*.os.cgroup.cpu.stat.time_throttled_nanos,nodes.*.process.cpu.total_in_millis,\
    nodes.*.process.mem.resident_in_bytes,nodes.*.fs.total.total_in_bytes,\
    nodes.*.fs.total.available_in_bytes,nodes.*.fs.io_stats.total.*_kilobytes,\
    nodes.*.fs.io_stats.total.io_time_in_millis,nodes.*.fs.io_stats.devices.io_time_in_millis,nodes.*.jvm.uptime_in_millis,\
    nodes.*.jvm.mem.heap_used_*,nodes.*.jvm.gc.collectors.*.collection_time_in_millis,\
    nodes.*.transport.*x_size_in_bytes,nodes.*.breakers.*.tripped,\
    nodes.*.indexing_pressure.memory.total.*_rejections,nodes.*.indices.recovery,\
    nodes.*.indices.indexing.index_total,nodes.*.indices.indexing.is_throttled,\
    nodes.*.indices.search.query_total,nodes.*.thread_pool.search.rejected,\
    nodes.*.indices.merges.total_throttled_time_in_millis,\
    nodes.*.adaptive_selection";

/// Every node of `_nodes/stats`, by name. Nodes are read one by one: what a large cluster tells of all of them takes
/// many times the memory of what is kept.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Nodes {
    #[serde(deserialize_with = "one_by_one")]
    pub(crate) nodes: Vec<Node>,
    /// What is said of all of them.
    #[serde(rename = "_nodes")]
    pub(crate) all: Counted,
}

/// Of the nodes that the cluster has asked.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Counted {
    /// Those that did not answer in time.
    pub(crate) failed: u64,
}

fn one_by_one<'de, D: Deserializer<'de>>(nodes: D) -> Result<Vec<Node>, D::Error> {
    let mut all = nodes.deserialize_map(ById)?;
    // In place: a buffer for so many large rows costs more than the order.
    all.sort_unstable_by(|a, b| (&a.name, &a.id).cmp(&(&b.name, &b.id)));
    Ok(all)
}

struct ById;

impl<'de> Visitor<'de> for ById {
    type Value = Vec<Node>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("nodes by their ids")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut nodes: A) -> Result<Self::Value, A::Error> {
        let (mut all, mut path) = (Vec::new(), String::new());
        while let Some(id) = nodes.next_key::<String>()? {
            let mut node = Node { name: id.clone(), id, ..Node::default() };
            nodes.next_value_seed(Leaves::new(&mut path, &mut node))?;
            all.push(node);
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

/// By node id, what search backpressure cancelled. Where it only watches, it cancels nothing.
pub(crate) fn cancelled(answer: &Value) -> BTreeMap<String, BTreeMap<String, u64>> {
    let of_node = |(id, node): (&String, &Value)| {
        let own = node.get("search_backpressure")?;
        let mut all = BTreeMap::<String, u64>::new();
        for task in ["search_task", "search_shard_task"] {
            let trackers = own.get(task).and_then(|task| task.get("resource_tracker_stats"));
            for (name, stats) in entries(trackers) {
                let name = name.strip_suffix("_tracker").unwrap_or(name);
                let sum = all.entry(name.to_owned()).or_default();
                *sum = sum.saturating_add(count_at(stats, "/cancellation_count").unwrap_or(0));
            }
        }
        (text_at(own, "/mode")? == "enforced").then(|| (id.clone(), all))
    };
    entries(answer.get("nodes")).filter_map(of_node).collect()
}

/// The names of an answer's nodes.
pub(crate) fn names(answer: &Value) -> Vec<String> {
    let name =
        |(id, value): (&String, &Value)| text_at(value, "/name").unwrap_or_else(|| id.clone());
    entries(answer.get("nodes")).map(name).collect()
}

impl Take for Node {
    fn leaf(&mut self, path: &str, leaf: Leaf<'_>) {
        let field = match path {
            "/timestamp" => &mut self.timestamp_ms,
            "/jvm/uptime_in_millis" => &mut self.uptime_ms,
            "/indices/recovery/current_as_source" => &mut self.as_source,
            "/indices/recovery/current_as_target" => &mut self.as_target,
            "/indices/recovery/throttle_time_in_millis" => &mut self.throttle_ms,
            "/os/cpu/percent" => {
                self.os_cpu_percent = leaf.count().filter(|percent| *percent <= 100);
                return;
            }
            "/os/mem/total_in_bytes" => &mut self.memory_bytes,
            "/process/cpu/total_in_millis" => &mut self.process_cpu_ms,
            "/os/cgroup/cpu/stat/time_throttled_nanos" => &mut self.cgroup_throttled_ns,
            "/fs/io_stats/total/read_kilobytes" => &mut self.read_kib,
            "/fs/io_stats/total/write_kilobytes" => &mut self.write_kib,
            "/fs/io_stats/total/io_time_in_millis" => &mut self.io_time_ms,
            "/fs/total/total_in_bytes" => &mut self.disk_total_bytes,
            "/fs/total/available_in_bytes" => &mut self.disk_available_bytes,
            "/transport/rx_size_in_bytes" => &mut self.transport_rx_bytes,
            "/transport/tx_size_in_bytes" => &mut self.transport_tx_bytes,
            "/jvm/mem/heap_used_percent" => &mut self.heap_used_percent,
            "/jvm/mem/heap_used_in_bytes" => &mut self.heap_used_bytes,
            "/process/mem/resident_in_bytes" => &mut self.resident_bytes,
            "/indices/indexing/index_total" => &mut self.indexed_ops,
            "/indices/search/query_total" => &mut self.searches,
            "/thread_pool/search/rejected" => &mut self.searches_refused,
            "/indices/merges/total_throttled_time_in_millis" => &mut self.merge_throttled_ms,
            "/fs/io_stats/devices/io_time_in_millis" => {
                self.io_times_ms.extend(leaf.count());
                return;
            }
            "/indices/indexing/is_throttled" => {
                self.indexing_throttled = leaf.flag();
                return;
            }
            "/roles" => {
                self.roles.extend(leaf.text());
                return;
            }
            "/name" => {
                self.name = leaf.text().unwrap_or_else(|| self.id.clone());
                return;
            }
            _ => return one_of_many(self, path, &leaf),
        };
        *field = leaf.count();
    }
}

/// Leaves whose paths hold a name: of a breaker, a collector, a kind of request or another node.
fn one_of_many(node: &mut Node, path: &str, leaf: &Leaf<'_>) {
    let named = |before: &str, after: &str| path.strip_prefix(before)?.strip_suffix(after);
    let add = |sum: &mut Option<u64>| {
        if let Some(count) = leaf.count() {
            *sum = Some(sum.unwrap_or(0).saturating_add(count));
        }
    };
    if let Some(name) = named("/breakers/", "/tripped") {
        node.breakers_tripped.extend(leaf.count().map(|count| (name.to_owned(), count)));
    } else if let Some(name) = named("/jvm/gc/collectors/", "/collection_time_in_millis") {
        // Collectors that work beside the node count their pauses apart ("ZGC Pauses"), and their work as "ZGC Cycles".
        if !name.ends_with("Cycles") {
            add(&mut node.gc_ms);
        }
    } else if let Some(stage) = named("/indexing_pressure/memory/total/", "_rejections") {
        // Elasticsearch since 8.14 counts the documents of such requests besides, and later what is too large for any.
        if ["coordinating", "primary", "replica"].contains(&stage) {
            add(&mut node.pressure_rejections);
        }
    } else if let Some((id, key)) =
        named("/adaptive_selection/", "").and_then(|it| it.split_once('/'))
    {
        let seen = node.adaptive_selection.entry(id.to_owned()).or_default();
        match key {
            "rank" => seen.rank = leaf.number(),
            "avg_queue_size" => seen.queue = leaf.number(),
            "avg_service_time_ns" => seen.service_ns = leaf.count(),
            "avg_response_time_ns" => seen.response_ns = leaf.count(),
            _ => {}
        }
    }
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
        assert_eq!(node.io_times_ms, [200, 100]);
        assert_eq!(node.roles, ["data_hot", "master"]);
        assert_eq!(node.memory_bytes, Some(34_359_738_368));
        assert_eq!((node.heap_used_percent, node.heap_used_bytes), (Some(41), Some(440_401_920)));
        assert_eq!((node.pressure_rejections, node.breakers_tripped["request"]), (Some(5), 2));
        assert_eq!(node.adaptive_selection["bbb"].rank, Some(41.2));
        assert_eq!((node.searches, node.searches_refused), (Some(88), Some(0)));
        let bare = nodes(r#"{"nodes": {"n": {}}}"#);
        assert_eq!(bare, [Node { id: "n".into(), name: "n".into(), ..Node::default() }]);
        let backpressure = |mode: &str| {
            let of = |count: u64| {
                let told = json!({"cpu_usage_tracker": {"cancellation_count": count}});
                json!({"resource_tracker_stats": told})
            };
            let told = json!({"mode": mode, "search_task": of(2), "search_shard_task": of(3)});
            cancelled(&json!({"nodes": {"a": {"search_backpressure": told}}}))
        };
        assert_eq!(backpressure("enforced")["a"], BTreeMap::from([("cpu_usage".to_owned(), 5)]));
        assert!(backpressure("monitor_only").is_empty());
        assert_eq!(cores(&json!({"nodes": {"a": {"os": {"allocated_processors": 8}}}}))["a"], 8);
    }
}
