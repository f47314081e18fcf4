//! What a cluster says of its recoveries (`_recovery`), summed over those that count.

use std::collections::BTreeMap;

use record::{Limit, RecoverySample};
use serde_json::Value;

/// Which recoveries of a cluster count.
#[derive(Clone, Debug)]
pub(crate) enum Wanted {
    /// Those of primaries.
    Primaries {
        /// How many there should be.
        shards: u32,
    },
    /// Those from other copies of the same cluster.
    Peers {
        /// Older ones do not count.
        since_epoch_ms: u64,
        /// How many there should be.
        copies: u32,
    },
}

impl Wanted {
    fn count(&self) -> u32 {
        match self {
            Wanted::Primaries { shards } => *shards,
            Wanted::Peers { copies, .. } => *copies,
        }
    }

    fn is(&self, row: &Value) -> bool {
        match self {
            Wanted::Primaries { .. } => row["primary"] == true,
            Wanted::Peers { since_epoch_ms, .. } => {
                row["type"] == "PEER"
                    && row["start_time_in_millis"].as_u64() >= Some(*since_epoch_ms)
            }
        }
    }
}

/// The stages whose time a recovery tells, and all of it.
const STAGES: [(&str, &str); 4] = [
    ("INDEX", "/index/total_time_in_millis"),
    ("VERIFY_INDEX", "/verify_index/total_time_in_millis"),
    ("TRANSLOG", "/translog/total_time_in_millis"),
    ("total", "/total_time_in_millis"),
];

/// The recoveries of all indices, as `_recovery` tells them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recoveries {
    pub(crate) sample: RecoverySample,
    /// Whether every shard knows its files.
    pub(crate) listed: bool,
    /// Whether every shard is complete.
    pub(crate) done: bool,
    /// When the last of them was complete, in milliseconds since 1970.
    pub(crate) stopped_epoch_ms: u64,
    /// Bytes of operations that were copied after the files.
    pub(crate) operations_bytes: u64,
    /// Operations that were replayed after the files.
    operations: u64,
    /// Bytes of files that were there already.
    pub(crate) reused_bytes: u64,
    pub(crate) refetched_chunks: u64,
    /// Seconds in which a connection over the link waited for what the line had lost.
    pub(crate) held_by_loss_s: f64,
    /// What the first failing shard says.
    pub(crate) failure: Option<String>,
}

impl Recoveries {
    /// Reads an answer of `GET {indices}/_recovery`.
    pub(crate) fn read(answer: &Value, wanted: &Wanted) -> Self {
        let mut all = Recoveries::default();
        let (mut done, mut listed, mut begun) = (0, 0, 0);
        for row in rows(answer).filter(|row| wanted.is(row)) {
            all.add(row);
            begun += 1;
            done += u32::from(row["stage"] == "DONE");
            listed += u32::from(row["index"]["files"]["total"].as_u64() > Some(0));
        }
        all.sample.waiting = Some(wanted.count().saturating_sub(begun));
        // More than there should be is possible: a cluster may move copies meanwhile. All of them are waited for.
        all.done = done >= wanted.count() && done == begun;
        all.listed = listed >= wanted.count();
        all
    }

    /// The start from which on recoveries are later than all in an answer of `_recovery`, by the cluster's clock.
    pub(crate) fn later_than(answer: &Value) -> u64 {
        let starts = rows(answer).filter_map(|row| row["start_time_in_millis"].as_u64());
        starts.max().map_or(0, |last| last + 1)
    }

    /// A figure that grows while anything moves: bytes of files, and what comes after them.
    pub(crate) fn moved(&self) -> u64 {
        self.sample.recovered_bytes + self.operations_bytes + self.operations
    }

    /// The same, with an end that can be: they were not done when they were asked for at the first of these moments of
    /// the runner's clock, and done at the second. The cluster's clock may be another.
    pub(crate) fn ended_within(self, not_done_ms: u64, done_ms: u64) -> Self {
        let stopped_epoch_ms = self.stopped_epoch_ms.max(not_done_ms).min(done_ms);
        Recoveries { stopped_epoch_ms, ..self }
    }

    /// How long they took that began then.
    pub(crate) fn seconds_since(&self, began_epoch_ms: u64) -> f64 {
        self.stopped_epoch_ms.saturating_sub(began_epoch_ms).max(1) as f64 / 1e3
    }

    /// The sums of these recoveries and of `later` ones, which say whether all are done.
    pub(crate) fn and(mut self, later: Recoveries) -> Self {
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
        for (stage, seconds) in more.stages_s {
            *sample.stages_s.entry(stage).or_default() += seconds;
        }
        sample.waiting = more.waiting;
        sample.chunk_bytes = more.chunk_bytes.or(sample.chunk_bytes);
        sample.in_flight_bytes = more.in_flight_bytes;
        self.listed = later.listed;
        self.done = later.done;
        self.stopped_epoch_ms = self.stopped_epoch_ms.max(later.stopped_epoch_ms);
        self.operations_bytes += later.operations_bytes;
        self.operations += later.operations;
        self.refetched_chunks += later.refetched_chunks;
        self.held_by_loss_s += later.held_by_loss_s;
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
        for (stage, pointer) in STAGES {
            if let Some(ms) = row.pointer(pointer).and_then(Value::as_u64) {
                *sample.stages_s.entry(stage.to_owned()).or_default() += ms as f64 / 1e3;
            }
        }
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
        self.operations += number("/translog/recovered");
        self.refetched_chunks += number("/narrows/refetched_chunks");
        let failure = row["narrows"]["failure"].as_str().map(str::to_owned);
        self.failure = self.failure.take().or(failure);
    }
}

/// The recoveries of all shards in an answer of `_recovery`.
fn rows(answer: &Value) -> impl Iterator<Item = &Value> {
    let indices = answer.as_object().into_iter().flatten();
    indices.flat_map(|(_, index)| index["shards"].as_array().into_iter().flatten())
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
        let peers = |since_epoch_ms, copies| {
            let read = Recoveries::read(&answer, &Wanted::Peers { since_epoch_ms, copies });
            (read.done, read.listed, read.sample.recovered_bytes)
        };
        assert_eq!(peers(0, 3), (false, true, 15));
        assert_eq!(peers(60, 2), (false, true, 10));
        assert_eq!(peers(61, 1), (false, true, 5));
        assert_eq!(peers(71, 1), (false, false, 0));
        assert_eq!(Recoveries::later_than(&answer), 71);
        assert_eq!(Recoveries::later_than(&json!({})), 0);
    }

    #[test]
    fn more_recoveries_than_there_should_be_are_all_waited_for() {
        let done = |last: &str| {
            let rows = [row("PEER", "a", 5, "DONE"), row("PEER", "b", 5, "DONE")];
            let answer =
                json!({ "x": { "shards": rows }, "y": { "shards": [row("PEER", "c", 6, last)] } });
            Recoveries::read(&answer, &Wanted::Peers { since_epoch_ms: 0, copies: 2 }).done
        };
        assert_eq!((done("INDEX"), done("DONE")), (false, true));
    }

    #[test]
    fn replayed_operations_are_a_move() {
        let after = |recovered: u64| {
            let mut shard = row("PEER", "a", 5, "TRANSLOG");
            shard["translog"] = json!({ "recovered": recovered });
            let answer = json!({ "x": { "shards": [shard] } });
            Recoveries::read(&answer, &Wanted::Peers { since_epoch_ms: 0, copies: 1 }).moved()
        };
        assert!(after(3) > after(2));
    }

    #[test]
    fn the_end_lies_between_the_looks_whatever_the_clusters_clock_says() {
        let took_s = |stopped_epoch_ms| {
            let all = Recoveries { stopped_epoch_ms, ..Recoveries::default() };
            all.ended_within(5_000, 6_000).seconds_since(1_000)
        };
        // Slow by an hour, right, and fast by an hour.
        assert_eq!([0, 5_500, 3_600_000].map(took_s), [4.0, 4.5, 5.0]);
    }

    #[test]
    fn parts_of_a_variant_are_summed() {
        let answer = json!({ "x": { "shards": [row("PEER", "a", 50, "DONE")] } });
        let part = Recoveries::read(&answer, &Wanted::Peers { since_epoch_ms: 0, copies: 1 });
        let both = part.clone().and(part);
        assert_eq!((both.done, both.sample.recovered_bytes, both.stopped_epoch_ms), (true, 10, 60));
        assert_eq!(both.sample.stages["DONE"], 2);
    }
}
