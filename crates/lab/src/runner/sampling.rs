//! Telemetry of nodes and of the link, as lines of the record.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

use record::{Line, LinkSample, NodeSample, NodeUse};
use serde_json::Value;
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
            true => "/_nodes/stats/process,transport,indices/recovery",
            false => "/_nodes/stats/process,jvm,os,transport,indices/recovery",
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
        let number = |pointer: &str| stats.pointer(pointer).and_then(Value::as_u64).unwrap_or(0);
        let node = stats["name"].as_str().unwrap_or("?").to_owned();
        let (now, cpu_ms) = (self.env.now(), number("/process/cpu/total_in_millis"));
        let key = (cluster.to_owned(), node.clone());
        let last = telemetry.cpu.borrow_mut().insert(key, (now, cpu_ms));
        let cpu_cores = last.map_or(0.0, |(then, ms)| {
            let wall_ms = (now - then).as_secs_f64() * 1e3;
            if wall_ms > 0.0 { cpu_ms.saturating_sub(ms) as f64 / wall_ms } else { 0.0 }
        });
        NodeSample {
            cluster: cluster.to_owned(),
            node,
            cpu_cores,
            resident_bytes: number("/process/mem/resident_in_bytes"),
            heap_used_bytes: stats.pointer("/jvm/mem/heap_used_in_bytes").and_then(Value::as_u64),
            open_files: stats.pointer("/process/open_file_descriptors").and_then(Value::as_u64),
            transport_rx_bytes: number("/transport/rx_size_in_bytes"),
            transport_tx_bytes: number("/transport/tx_size_in_bytes"),
            throttle_ms: number("/indices/recovery/throttle_time_in_millis"),
            machine_cpu: stats
                .pointer("/os/cpu/percent")
                .and_then(Value::as_f64)
                .map(|p| p / 100.0),
        }
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
