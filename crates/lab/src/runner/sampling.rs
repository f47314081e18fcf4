//! Telemetry of nodes and of the link, as lines of the record.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

use record::{Line, LinkSample, NodeSample, NodeUse};
use serde_json::{Map, Value};
use world::{Direction, Time};

use super::base::Runner;
use crate::error::Result;
use crate::plan::{FOLLOWER, LEADER};

/// What the samples before said, from which counters become rates.
#[derive(Default)]
pub(crate) struct Telemetry {
    cpu: RefCell<BTreeMap<(String, String), (Time, u64)>>,
    link: RefCell<Option<(Time, Duration)>>,
}

impl Runner<'_> {
    /// One sample of every node and of the link. Answers the most that any node uses, as far as nodes say it.
    pub(crate) async fn sample_nodes(
        &self,
        variant: &str,
        lap: u32,
        telemetry: &Telemetry,
    ) -> Result<Option<NodeUse>> {
        let mut most = None::<NodeUse>;
        // Virtual nodes have no heap.
        let path = match self.clusters.is_virtual() {
            true => "/_nodes/stats/process,fs,transport,indices/recovery",
            false => "/_nodes/stats/process,jvm,os,fs,transport,indices/recovery",
        };
        let follower = async {
            match self.plan.follower {
                Some(_) if !self.plan.joined => self.ask(FOLLOWER, "GET", path, None).await,
                // One cluster: either site answers for both.
                _ => Ok(Value::Null),
            }
        };
        let (leader, follower) = tokio::join!(self.ask(LEADER, "GET", path, None), follower);
        for (cluster, stats) in [(LEADER, leader), (FOLLOWER, follower)] {
            // A cluster that does not answer is a gap in the telemetry, not the end of the run.
            let Ok(stats) = stats else { continue };
            for node in stats["nodes"].as_object().into_iter().flat_map(|nodes| nodes.values()) {
                let far = self.plan.joined && self.is_of_follower(&node["name"]);
                let cluster = if far { FOLLOWER } else { cluster };
                let sample = self.node_sample(cluster, node, telemetry);
                if let Some(open_files) = sample.open_files {
                    let most = most.get_or_insert_default();
                    most.open_files = most.open_files.max(open_files);
                    most.resident_bytes = most.resident_bytes.max(sample.resident_bytes);
                    let anonymous = node.pointer("/process/mem/anonymous_in_bytes");
                    let anonymous = anonymous.and_then(Value::as_u64).unwrap_or(0);
                    most.anonymous_bytes = most.anonymous_bytes.max(anonymous);
                }
                let (t_ms, variant) = (self.journal.t_ms(), Some(variant.to_owned()));
                self.journal.line(&Line::Node { t_ms, variant, lap, sample })?;
            }
        }
        self.sample_link(variant, lap, telemetry)?;
        Ok(most)
    }

    fn is_of_follower(&self, node: &Value) -> bool {
        self.clusters.nodes(FOLLOWER).iter().any(|far| *node == far.name.as_str())
    }

    fn node_sample(&self, cluster: &str, stats: &Value, telemetry: &Telemetry) -> NodeSample {
        let mut sample = sample_of(cluster, stats);
        if let Some(twin) = &self.plan.twin {
            sample.node = twin.recorded_name(&sample.node).to_owned();
        }
        let cpu_ms = stats.pointer("/process/cpu/total_in_millis").and_then(Value::as_u64);
        let (now, cpu_ms) = (self.env.now(), cpu_ms.unwrap_or(0));
        let key = (cluster.to_owned(), sample.node.clone());
        let last = telemetry.cpu.borrow_mut().insert(key, (now, cpu_ms));
        let cpu_cores = last.map_or(0.0, |(then, ms)| {
            let wall_ms = (now - then).as_secs_f64() * 1e3;
            if wall_ms > 0.0 { cpu_ms.saturating_sub(ms) as f64 / wall_ms } else { 0.0 }
        });
        NodeSample { cpu_cores, ..sample }
    }

    fn sample_link(&self, variant: &str, lap: u32, telemetry: &Telemetry) -> Result<()> {
        let Some(link) = self.clusters.link() else { return Ok(()) };
        let (out, back) = (link.stats(Direction::Out), link.stats(Direction::Back));
        let now = self.env.now();
        let last = telemetry.link.borrow_mut().replace((now, back.busy));
        let busy_share = last.map_or(0.0, |(then, busy)| {
            let wall = (now - then).as_secs_f64();
            let sending = back.busy.saturating_sub(busy).as_secs_f64();
            if wall > 0.0 { (sending / wall).min(1.0) } else { 0.0 }
        });
        let times = link.times();
        let sample = LinkSample {
            to_follower_bytes: back.bytes,
            to_leader_bytes: out.bytes,
            busy_share,
            carrying_s: times.map(|times| times.carrying.as_secs_f64()),
            window_full_s: times.map(|times| times.window_full.as_secs_f64()),
        };
        let (t_ms, variant) = (self.journal.t_ms(), Some(variant.to_owned()));
        self.journal.line(&Line::Link { t_ms, variant, lap, sample })
    }
}

/// What a node says of itself, without the cores that it used since the sample before.
fn sample_of(cluster: &str, stats: &Value) -> NodeSample {
    let count = |pointer: &str| stats.pointer(pointer).and_then(Value::as_u64);
    let number = |pointer: &str| count(pointer).unwrap_or(0);
    // The embedded engine tells the bytes of its process; of other nodes the disk is told, in KiB.
    let disk_bytes = |of_process: &str, of_disk: &str| {
        count(of_process).or_else(|| Some(count(of_disk)?.saturating_mul(1024)))
    };
    let heap_used_bytes = count("/jvm/mem/heap_used_in_bytes");
    // Who has no heap may tell of collectors all the same, because clients read them.
    let collectors = stats.pointer("/jvm/gc/collectors").and_then(Value::as_object);
    let collectors = heap_used_bytes.and(collectors);
    let collected_ms = |all: &Map<String, Value>| {
        let each = all.values().filter_map(|one| one["collection_time_in_millis"].as_u64());
        each.sum::<u64>()
    };
    NodeSample {
        cluster: cluster.to_owned(),
        node: stats["name"].as_str().unwrap_or("?").to_owned(),
        cpu_cores: 0.0,
        resident_bytes: number("/process/mem/resident_in_bytes"),
        heap_used_bytes,
        gc_ms: collectors.map(collected_ms),
        disk_read_bytes: disk_bytes(
            "/narrows/disk/read_size_in_bytes",
            "/fs/io_stats/total/read_kilobytes",
        ),
        disk_written_bytes: disk_bytes(
            "/narrows/disk/written_size_in_bytes",
            "/fs/io_stats/total/write_kilobytes",
        ),
        disk_busy_ms: count("/fs/io_stats/total/io_time_in_millis"),
        open_files: count("/process/open_file_descriptors"),
        transport_rx_bytes: number("/transport/rx_size_in_bytes"),
        transport_tx_bytes: number("/transport/tx_size_in_bytes"),
        throttle_ms: number("/indices/recovery/throttle_time_in_millis"),
        machine_cpu: stats.pointer("/os/cpu/percent").and_then(Value::as_f64).map(|p| p / 100.0),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn disks_and_collections_are_as_each_kind_of_node_tells_them() {
        let of = |stats: Value| {
            let sample = sample_of(LEADER, &stats);
            let bytes = (sample.disk_read_bytes, sample.disk_written_bytes);
            (bytes, sample.disk_busy_ms, sample.gc_ms)
        };
        let collectors = |ms: u64| {
            let of = |ms: u64| json!({ "collection_time_in_millis": ms });
            json!({ "young": of(ms), "old": of(70) })
        };
        let disk = json!({ "io_stats": { "total": {
            "read_kilobytes": 2, "write_kilobytes": 3, "io_time_in_millis": 40,
        } } });
        let field = json!({
            "jvm": { "mem": { "heap_used_in_bytes": 1 }, "gc": { "collectors": collectors(30) } },
            "fs": disk,
        });
        assert_eq!(of(field), ((Some(2048), Some(3072)), Some(40), Some(100)));
        // Without a heap nothing is collected. The bytes are those of the process, also while it has a slow disk.
        let embedded = json!({
            "jvm": { "mem": { "pools": {} }, "gc": { "collectors": collectors(0) } },
            "narrows": { "disk": { "read_size_in_bytes": 5, "written_size_in_bytes": 6 } },
            "fs": disk,
        });
        assert_eq!(of(embedded), ((Some(5), Some(6)), Some(40), None));
        let old = json!({ "fs": { "io_stats": { "total": { "read_kilobytes": 1 } } } });
        assert_eq!(of(old), ((Some(1024), None), None, None));
        assert_eq!(of(json!({})), ((None, None), None, None), "not known is not zero");
    }
}
