//! A large cluster that is not there: it answers what a look asks for, as a cluster of hundreds of nodes would while it
//! brings back copies that were lost.

use std::io::{self, BufReader, Write};
use std::net::TcpStream;
use std::time::Instant;

use serde_json::{Map, Value, json};

use super::answering::{message, serving};

const SHARDS_OF_INDEX: usize = 20;
const SHARD_BYTES: u64 = 20_000_000_000;
/// What the limiter of a node lets through.
const RATE_BYTES_PER_S: u64 = 41_900_000;

/// How large it is, and since when it runs.
pub struct Large {
    pub nodes: usize,
    pub shards: usize,
    /// Recoveries that go on, and copies that wait for a slot.
    pub recovering: usize,
    pub waiting: usize,
    began: Instant,
}

impl Large {
    /// Answers on a port of its own as long as the process runs; returns its URL.
    pub fn start(nodes: usize, shards: usize, recovering: usize, waiting: usize) -> String {
        let large = Large { nodes, shards, recovering, waiting, began: Instant::now() };
        format!("http://{}", serving(move |stream| large.serve(stream)))
    }

    fn serve(&self, stream: TcpStream) -> io::Result<()> {
        let mut input = BufReader::new(stream);
        loop {
            let request = message(&mut input)?;
            let request = String::from_utf8_lossy(&request);
            let path = request.split(' ').nth(1).unwrap_or_default();
            let (asked, query) = path.split_once('?').unwrap_or((path, ""));
            let body = match asked {
                "/_cat/shards" => Some(self.copies()),
                _ => self.answer(asked, query).map(|body| body.to_string()),
            };
            let (status, body) = body.map_or((404, "{}".to_owned()), |body| (200, body));
            let head = format!(
                "HTTP/1.1 {status} -\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
                body.len()
            );
            input.get_mut().write_all(&[head.as_bytes(), body.as_bytes()].concat())?;
        }
    }

    fn s(&self) -> u64 {
        self.began.elapsed().as_secs()
    }

    fn name(&self, node: usize) -> String {
        format!("es-data-{:03}", node % self.nodes)
    }

    fn answer(&self, path: &str, query: &str) -> Option<Value> {
        Some(match path {
            "/" => {
                json!({"cluster_name": "large", "version": {"distribution": "opensearch", "number": "2.19.1"}})
            }
            "/_cluster/health" => json!({
                "status": "yellow", "number_of_nodes": self.nodes, "initializing_shards": self.recovering,
                "relocating_shards": 0, "unassigned_shards": self.waiting, "delayed_unassigned_shards": 0,
                "number_of_pending_tasks": 0,
            }),
            "/_recovery" => self.recoveries(),
            "/_cluster/settings" => settings(query.contains("include_defaults=true")),
            "/_cluster/allocation/explain" => json!({
                "can_allocate": "throttled",
                "allocate_explanation": "allocation temporarily throttled",
                "node_allocation_decisions": (0..self.nodes).map(|node| json!({
                    "node_name": self.name(node), "deciders": [{"decider": "throttling", "decision": "THROTTLE",
                    "explanation": "reached the limit of outgoing shard recoveries [2]"}],
                })).collect::<Vec<_>>(),
            }),
            "/_remote/info" => json!({}),
            "/_nodes/os" => self.every_node(|_| json!({"os": {"allocated_processors": 16}})),
            "/_nodes/stats/search_backpressure" => json!({"nodes": {}}),
            path if path.starts_with("/_nodes/stats") => self.every_node(|node| self.stats(node)),
            _ => return None,
        })
    }

    fn every_node(&self, of: impl Fn(usize) -> Value) -> Value {
        let one = |node: usize| (format!("id{node:020}"), of(node));
        json!({"nodes": (0..self.nodes).map(one).collect::<Map<_, _>>()})
    }

    fn stats(&self, node: usize) -> Value {
        let s = self.s();
        let busy = u64::from(node < 2 * self.recovering);
        let breakers = ["request", "fielddata", "in_flight_requests", "parent"];
        let tripped = |name: &str| (name.to_owned(), json!({"tripped": 0}));
        json!({
            "name": self.name(node), "timestamp": 1_700_000_000_000 + s * 1000,
            "os": {"cpu": {"percent": 12 + node % 20}, "cgroup": {"cpu": {"stat": {"time_throttled_nanos": 0}}}},
            "process": {"cpu": {"total_in_millis": s * 1900}, "mem": {"resident_in_bytes": 34_000_000_000_u64}},
            "fs": {"total": {"total_in_bytes": 8_000_000_000_000_u64, "available_in_bytes": 3_000_000_000_000_u64},
                "io_stats": {"total": {"read_kilobytes": s * 41_000 * busy, "write_kilobytes": s * 40_000,
                    "io_time_in_millis": s * 120}}},
            "jvm": {"uptime_in_millis": 900_000 + s * 1000, "mem": {"heap_used_percent": 40 + node % 30},
                "gc": {"collectors": {"young": {"collection_time_in_millis": s * 8}, "old": {"collection_time_in_millis": 0}}}},
            "transport": {"rx_size_in_bytes": s * 45_000_000, "tx_size_in_bytes": s * 45_000_000},
            "breakers": breakers.map(tripped).into_iter().collect::<Map<_, _>>(),
            "indexing_pressure": {"memory": {"total": {"coordinating_rejections": 0, "primary_rejections": 0,
                "replica_rejections": 0}}},
            "indices": {"recovery": {"current_as_source": busy, "current_as_target": busy,
                "throttle_time_in_millis": s * 700 * busy},
                "indexing": {"index_total": s * 2000, "is_throttled": false}, "search": {"query_total": s * 90},
                "merges": {"total_throttled_time_in_millis": 0}},
        })
    }

    fn recoveries(&self) -> Value {
        let s = self.s();
        let one = |at: usize| {
            let shard = json!({
                "id": at % SHARDS_OF_INDEX, "type": "PEER", "stage": "INDEX", "primary": false,
                "start_time_in_millis": 1_700_000_000_000_u64 + at as u64, "total_time_in_millis": 5000 + s * 1000,
                "source": {"name": self.name(2 * at)}, "target": {"name": self.name(2 * at + 1)},
                "index": {"size": {"total_in_bytes": SHARD_BYTES, "reused_in_bytes": 0,
                        "recovered_in_bytes": (s + 5) * RATE_BYTES_PER_S + at as u64 * 1000 % 777},
                    "files": {"total": 120, "recovered": 30},
                    "source_throttle_time_in_millis": s * 700, "target_throttle_time_in_millis": 0},
                "translog": {"total": 10, "recovered": 0},
            });
            (format!("logs-{at:05}"), json!({"shards": [shard]}))
        };
        Value::Object((0..self.recovering).map(one).collect())
    }

    /// Columns in the order in which a look asks for them, as clusters write them.
    fn copies(&self) -> String {
        let row = |at: usize| {
            let state = match at {
                at if at < self.recovering => "INITIALIZING",
                at if at < self.recovering + self.waiting => "UNASSIGNED",
                _ => "STARTED",
            };
            let is_lost = state != "STARTED";
            let index = if is_lost { at } else { at / SHARDS_OF_INDEX };
            let kind = if is_lost || at.is_multiple_of(2) { "r" } else { "p" };
            let node = json!((state != "UNASSIGNED").then(|| self.name(2 * at + 1)));
            let reason = json!(is_lost.then_some("NODE_LEFT"));
            format!(
                r#"{{"state":"{state}","index":"logs-{index:05}","shard":"{shard}","prirep":"{kind}","node":{node},"unassigned.reason":{reason}}}"#,
                shard = at % SHARDS_OF_INDEX
            )
        };
        format!("[{}]", (0..self.shards).map(row).collect::<Vec<_>>().join(","))
    }
}

fn settings(tells_defaults: bool) -> Value {
    let set = json!({"indices.recovery.max_bytes_per_sec": "40mb"});
    if !tells_defaults {
        return json!({"persistent": set, "transient": {}});
    }
    let mut defaults: Map<String, Value> =
        (0..300).map(|n| (format!("cluster.routing.some.setting.{n}"), json!("value"))).collect();
    defaults.insert("indices.recovery.max_concurrent_file_chunks".to_owned(), json!("2"));
    json!({"persistent": set, "transient": {}, "defaults": defaults})
}
