//! Telemetry: what the clusters and the link say, as lines of the record.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

use record::{Limit, Line, LinkSample, NodeSample, RecoverySample};
use serde_json::Value;
use world::{Direction, Time};

use super::{FOLLOWER, LEADER, Runner};
use crate::Error;

/// What the samples before said, to tell rates from counters.
#[derive(Default)]
pub(super) struct Before {
    cpu: RefCell<BTreeMap<(String, String), (Time, u64)>>,
    link: RefCell<Option<(Time, Duration)>>,
}

impl Runner<'_> {
    /// One sample of every node and of the link.
    pub(super) async fn sample_nodes(
        &self,
        variant: &str,
        lap: u32,
        before: &Before,
    ) -> Result<(), Error> {
        let path = "/_nodes/stats/process,transport,indices/recovery";
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
                let sample = self.node_sample(cluster, node, before);
                let (t_ms, variant) = (self.journal.t_ms(), Some(variant.to_owned()));
                self.journal.line(&Line::Node { t_ms, variant, lap, sample })?;
            }
        }
        self.sample_link(variant, lap, before)
    }

    fn is_of_follower(&self, node: &Value) -> bool {
        self.target.nodes(FOLLOWER).iter().any(|far| *node == far.name.as_str())
    }

    fn node_sample(&self, cluster: &str, stats: &Value, before: &Before) -> NodeSample {
        let number = |pointer: &str| stats.pointer(pointer).and_then(Value::as_u64).unwrap_or(0);
        let node = stats["name"].as_str().unwrap_or("?").to_owned();
        let (now, cpu_ms) = (self.env.now(), number("/process/cpu/total_in_millis"));
        let key = (cluster.to_owned(), node.clone());
        let last = before.cpu.borrow_mut().insert(key, (now, cpu_ms));
        let cpu_cores = last.map_or(0.0, |(then, ms)| {
            let wall_ms = (now - then).as_secs_f64() * 1e3;
            if wall_ms > 0.0 { cpu_ms.saturating_sub(ms) as f64 / wall_ms } else { 0.0 }
        });
        NodeSample {
            cluster: cluster.to_owned(),
            node,
            cpu_cores,
            resident_bytes: number("/process/mem/resident_in_bytes"),
            transport_rx_bytes: number("/transport/rx_size_in_bytes"),
            transport_tx_bytes: number("/transport/tx_size_in_bytes"),
            throttle_ms: number("/indices/recovery/throttle_time_in_millis"),
        }
    }

    fn sample_link(&self, variant: &str, lap: u32, before: &Before) -> Result<(), Error> {
        let Some(link) = self.target.link() else { return Ok(()) };
        let (out, back) = (link.stats(Direction::Out), link.stats(Direction::Back));
        let now = self.env.now();
        let last = before.link.borrow_mut().replace((now, back.busy));
        let busy_share = last.map_or(0.0, |(then, busy)| {
            let wall = (now - then).as_secs_f64();
            let sending = back.busy.saturating_sub(busy).as_secs_f64();
            if wall > 0.0 { (sending / wall).min(1.0) } else { 0.0 }
        });
        let sample =
            LinkSample { to_follower_bytes: back.bytes, to_leader_bytes: out.bytes, busy_share };
        let (t_ms, variant) = (self.journal.t_ms(), Some(variant.to_owned()));
        self.journal.line(&Line::Link { t_ms, variant, lap, sample })
    }
}

/// Which recoveries of a cluster count.
#[derive(Clone, Debug)]
pub(super) enum Wanted<'a> {
    /// Those of primaries.
    Primaries {
        /// How many there should be.
        shards: u32,
    },
    /// Those from other copies of the same cluster.
    Peers {
        /// The node that receives; any without one.
        target: Option<&'a str>,
        /// Older ones do not count.
        since_epoch_ms: u64,
        /// How many there should be.
        copies: u32,
    },
}

impl Wanted<'_> {
    fn count(&self) -> u32 {
        match self {
            Wanted::Primaries { shards } => *shards,
            Wanted::Peers { copies, .. } => *copies,
        }
    }

    fn is(&self, row: &Value) -> bool {
        match self {
            Wanted::Primaries { .. } => row["primary"] == true,
            Wanted::Peers { target, since_epoch_ms, .. } => {
                row["type"] == "PEER"
                    && row["start_time_in_millis"].as_u64() >= Some(*since_epoch_ms)
                    && target.is_none_or(|target| row["target"]["name"] == target)
            }
        }
    }
}

/// The recoveries of all indices, as `_recovery` tells them.
#[derive(Clone, Debug, Default)]
pub(super) struct Recoveries {
    pub(super) sample: RecoverySample,
    /// Whether every shard knows its files.
    pub(super) listed: bool,
    /// Whether every shard is complete.
    pub(super) done: bool,
    /// When the last of them was complete, in milliseconds since 1970.
    pub(super) stopped_epoch_ms: u64,
    /// Bytes of operations that were copied after the files.
    pub(super) operations_bytes: u64,
    /// Bytes of files that were there already.
    pub(super) reused_bytes: u64,
    pub(super) refetched_chunks: u64,
    /// What the first failing shard says.
    pub(super) failure: Option<String>,
}

impl Recoveries {
    /// Reads an answer of `GET {indices}/_recovery`.
    pub(super) fn read(answer: &Value, wanted: &Wanted<'_>) -> Self {
        let mut all = Recoveries::default();
        let indices = answer.as_object().into_iter().flatten();
        let rows = indices.flat_map(|(_, index)| index["shards"].as_array().into_iter().flatten());
        let (mut done, mut listed) = (0, 0);
        for row in rows.filter(|row| wanted.is(row)) {
            all.add(row);
            done += u32::from(row["stage"] == "DONE");
            listed += u32::from(row["index"]["files"]["total"].as_u64() > Some(0));
        }
        (all.done, all.listed) = (done == wanted.count(), listed == wanted.count());
        all
    }

    /// How long they took that began then.
    pub(super) fn seconds_since(&self, began_epoch_ms: u64) -> f64 {
        self.stopped_epoch_ms.saturating_sub(began_epoch_ms).max(1) as f64 / 1e3
    }

    /// These, and those that went before: sums of both; whether all is done is told by `later`.
    pub(super) fn and(mut self, later: Recoveries) -> Self {
        let (sample, more) = (&mut self.sample, later.sample);
        sample.recovered_bytes += more.recovered_bytes;
        sample.total_bytes += more.total_bytes;
        sample.recovered_files += more.recovered_files;
        sample.total_files += more.total_files;
        for (stage, count) in more.stages {
            *sample.stages.entry(stage).or_default() += count;
        }
        for (limit, seconds) in more.charged_s {
            *sample.charged_s.entry(limit).or_default() += seconds;
        }
        sample.chunk_bytes = more.chunk_bytes.or(sample.chunk_bytes);
        sample.in_flight_bytes = more.in_flight_bytes;
        self.listed = later.listed;
        self.done = later.done;
        self.stopped_epoch_ms = self.stopped_epoch_ms.max(later.stopped_epoch_ms);
        self.operations_bytes += later.operations_bytes;
        self.refetched_chunks += later.refetched_chunks;
        self.failure = later.failure.or(self.failure);
        self
    }

    fn add(&mut self, row: &Value) {
        let number = |pointer: &str| row.pointer(pointer).and_then(Value::as_u64).unwrap_or(0);
        let reused = number("/index/size/reused_in_bytes");
        let sample = &mut self.sample;
        sample.recovered_bytes += number("/index/size/recovered_in_bytes");
        sample.total_bytes += number("/index/size/total_in_bytes").saturating_sub(reused);
        sample.recovered_files += number("/index/files/recovered");
        sample.total_files += number("/index/files/total");
        let stage = row["stage"].as_str().unwrap_or("?").to_owned();
        *sample.stages.entry(stage).or_default() += 1;
        let charged: BTreeMap<Limit, u64> =
            serde_json::from_value(row["narrows"]["charged_ns"].clone()).unwrap_or_default();
        for (limit, ns) in charged {
            *sample.charged_s.entry(limit).or_default() += ns as f64 / 1e9;
        }
        // Only the embedded engine tells what is in flight.
        if row["narrows"].is_object() {
            let chunk_bytes = number("/narrows/chunk_bytes");
            sample.chunk_bytes = Some(sample.chunk_bytes.unwrap_or(0).max(chunk_bytes));
            let in_flight = number("/narrows/in_flight_bytes");
            sample.in_flight_bytes = Some(sample.in_flight_bytes.unwrap_or(0) + in_flight);
        }
        self.reused_bytes += reused;
        self.stopped_epoch_ms = self.stopped_epoch_ms.max(number("/stop_time_in_millis"));
        self.operations_bytes += number("/narrows/operations_bytes");
        self.refetched_chunks += number("/narrows/refetched_chunks");
        let failure = row["narrows"]["failure"].as_str().map(str::to_owned);
        self.failure = self.failure.take().or(failure);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn row(kind: &str, target: &str, start: u64, stage: &str) -> Value {
        json!({
            "type": kind, "primary": kind == "SNAPSHOT", "stage": stage, "start_time_in_millis": start,
            "stop_time_in_millis": start + 10, "target": { "name": target },
            "index": {
                "size": { "total_in_bytes": 7, "reused_in_bytes": 0, "recovered_in_bytes": 5 },
                "files": { "total": 1, "recovered": 1 },
            },
        })
    }

    #[test]
    fn only_what_is_wanted_counts() {
        let rows = [
            row("SNAPSHOT", "a", 1, "DONE"),
            row("PEER", "a", 50, "DONE"),
            row("PEER", "b", 60, "DONE"),
            row("PEER", "b", 70, "INDEX"),
        ];
        let answer = json!({ "x": { "shards": rows[..2] }, "y": { "shards": rows[2..] } });
        let primaries = Recoveries::read(&answer, &Wanted::Primaries { shards: 1 });
        assert_eq!((primaries.done, primaries.sample.recovered_bytes), (true, 5));
        let peers = |target, since_epoch_ms, copies| {
            let read = Recoveries::read(&answer, &Wanted::Peers { target, since_epoch_ms, copies });
            (read.done, read.listed, read.sample.recovered_bytes)
        };
        assert_eq!(peers(None, 0, 3), (false, true, 15));
        assert_eq!(peers(Some("b"), 0, 2), (false, true, 10));
        assert_eq!(peers(Some("a"), 50, 1), (true, true, 5));
        assert_eq!(peers(Some("a"), 51, 1), (false, false, 0));
    }

    #[test]
    fn parts_of_a_variant_are_summed() {
        let answer = json!({ "x": { "shards": [row("PEER", "a", 50, "DONE")] } });
        let part = Recoveries::read(
            &answer,
            &Wanted::Peers { target: None, since_epoch_ms: 0, copies: 1 },
        );
        let both = part.clone().and(part);
        assert_eq!((both.done, both.sample.recovered_bytes, both.stopped_epoch_ms), (true, 10, 60));
        assert_eq!(both.sample.stages["DONE"], 2);
    }
}
