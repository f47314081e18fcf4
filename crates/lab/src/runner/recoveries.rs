//! What a cluster says of its recoveries (`_recovery`), summed over those that count.

use std::collections::BTreeMap;

use record::RecoverySample;

use super::recovery_rows::{RecoveryRow, RecoveryRows};

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

    fn is(&self, row: &RecoveryRow) -> bool {
        match self {
            Wanted::Primaries { .. } => row.is_primary,
            Wanted::Peers { since_epoch_ms, .. } => {
                row.is_peer && row.start_epoch_ms >= Some(*since_epoch_ms)
            }
        }
    }
}

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
    /// Sums an answer of `GET {indices}/_recovery`.
    pub(crate) fn of(answer: &RecoveryRows, wanted: &Wanted) -> Self {
        let mut all = Recoveries::default();
        let (mut done, mut listed, mut begun) = (0, 0, 0);
        for row in answer.rows.iter().filter(|row| wanted.is(row)) {
            all.add(row);
            begun += 1;
            done += u32::from(row.stage.as_deref() == Some("DONE"));
            listed += u32::from(row.total_files > 0);
        }
        all.sample.waiting = Some(wanted.count().saturating_sub(begun));
        // More than there should be is possible: a cluster may move copies meanwhile. All of them are waited for.
        all.done = done >= wanted.count() && done == begun;
        all.listed = listed >= wanted.count();
        all
    }

    /// Bytes of files and of operations that each of them has copied, by which recovery it is.
    pub(crate) fn bytes_of_each(
        answer: &RecoveryRows,
        wanted: &Wanted,
    ) -> BTreeMap<u64, (u64, u64)> {
        let rows = answer.rows.iter().filter(|row| wanted.is(row));
        rows.map(|row| (row.identity(), (row.recovered_bytes, row.operations_bytes))).collect()
    }

    /// The start from which on recoveries are later than all in an answer of `_recovery`, by the cluster's clock.
    pub(crate) fn later_than(answer: &RecoveryRows) -> u64 {
        let starts = answer.rows.iter().filter_map(|row| row.start_epoch_ms);
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

    /// How long recoveries that began at `began_epoch_ms` took.
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
        self.reused_bytes += later.reused_bytes;
        self.refetched_chunks += later.refetched_chunks;
        self.held_by_loss_s += later.held_by_loss_s;
        self.failure = later.failure.or(self.failure);
        self
    }

    fn add(&mut self, row: &RecoveryRow) {
        let sample = &mut self.sample;
        sample.recovered_bytes += row.recovered_bytes;
        sample.total_bytes += row.total_bytes.saturating_sub(row.reused_bytes);
        sample.recovered_files += row.recovered_files;
        sample.total_files += row.total_files;
        let stage = row.stage.as_deref().unwrap_or("?").to_owned();
        *sample.stages.entry(stage).or_default() += 1;
        for (stage, ms) in &row.stages_ms {
            *sample.stages_s.entry((*stage).to_owned()).or_default() += *ms as f64 / 1e3;
        }
        for (limit, ns) in &row.charged_ns {
            *sample.charged_s.entry(*limit).or_default() += *ns as f64 / 1e9;
        }
        sample.chunk_bytes = sample.chunk_bytes.max(row.chunk_bytes);
        if let Some(bytes) = row.in_flight_bytes {
            *sample.in_flight_bytes.get_or_insert_default() += bytes;
        }
        self.reused_bytes += row.reused_bytes;
        self.stopped_epoch_ms = self.stopped_epoch_ms.max(row.stop_epoch_ms);
        self.operations_bytes += row.operations_bytes;
        self.operations += row.operations;
        self.refetched_chunks += row.refetched_chunks;
        self.failure = self.failure.take().or_else(|| row.failure.clone());
    }
}

#[cfg(test)]
mod tests {
    use record::Limit;
    use serde_json::{Value, json};

    use super::*;

    fn rows(answer: Value) -> RecoveryRows {
        serde_json::from_value(answer).unwrap()
    }

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
        let all = [
            row("SNAPSHOT", "a", 1, "DONE"),
            row("PEER", "a", 50, "DONE"),
            row("PEER", "b", 60, "DONE"),
            row("PEER", "b", 70, "INDEX"),
        ];
        let answer = json!({ "x": { "shards": all[..2] }, "y": { "shards": all[2..] } });
        let answer = rows(answer);
        let primaries = Recoveries::of(&answer, &Wanted::Primaries { shards: 1 });
        assert_eq!((primaries.done, primaries.sample.recovered_bytes), (true, 5));
        let peers = |since_epoch_ms, copies| {
            let sums = Recoveries::of(&answer, &Wanted::Peers { since_epoch_ms, copies });
            (sums.done, sums.listed, sums.sample.recovered_bytes)
        };
        assert_eq!(peers(0, 3), (false, true, 15));
        assert_eq!(peers(60, 2), (false, true, 10));
        assert_eq!(peers(61, 1), (false, true, 5));
        assert_eq!(peers(71, 1), (false, false, 0));
        assert_eq!(Recoveries::later_than(&answer), 71);
        assert_eq!(Recoveries::later_than(&rows(json!({}))), 0);
    }

    #[test]
    fn a_recovery_is_the_same_one_in_each_answer_whatever_has_come() {
        let of = |index: &str, target: &str, start: u64, recovered: u64| {
            let mut shard = row("PEER", target, start, "INDEX");
            shard["index"]["size"]["recovered_in_bytes"] = json!(recovered);
            let answer = rows(json!({ index: { "shards": [shard] } }));
            let wanted = Wanted::Peers { since_epoch_ms: 0, copies: 1 };
            Recoveries::bytes_of_each(&answer, &wanted).pop_first().unwrap()
        };
        let (first, bytes) = of("x", "a", 5, 7);
        assert_eq!((of("x", "a", 5, 9).0, bytes), (first, (7, 0)));
        for (other, _) in [of("y", "a", 5, 7), of("x", "b", 5, 7), of("x", "a", 6, 7)] {
            assert_ne!(other, first);
        }
    }

    #[test]
    fn more_recoveries_than_there_should_be_are_all_waited_for() {
        let done = |last: &str| {
            let two = [row("PEER", "a", 5, "DONE"), row("PEER", "b", 5, "DONE")];
            let answer =
                json!({ "x": { "shards": two }, "y": { "shards": [row("PEER", "c", 6, last)] } });
            Recoveries::of(&rows(answer), &Wanted::Peers { since_epoch_ms: 0, copies: 2 }).done
        };
        assert_eq!((done("INDEX"), done("DONE")), (false, true));
    }

    #[test]
    fn replayed_operations_are_a_move() {
        let after = |recovered: u64| {
            let mut shard = row("PEER", "a", 5, "TRANSLOG");
            shard["translog"] = json!({ "recovered": recovered });
            let answer = rows(json!({ "x": { "shards": [shard] } }));
            Recoveries::of(&answer, &Wanted::Peers { since_epoch_ms: 0, copies: 1 }).moved()
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
        let mut shard = row("PEER", "a", 50, "DONE");
        shard["index"]["size"]["reused_in_bytes"] = json!(2);
        let answer = rows(json!({ "x": { "shards": [shard] } }));
        let part = Recoveries::of(&answer, &Wanted::Peers { since_epoch_ms: 0, copies: 1 });
        // A turn of one part adds it to nothing.
        assert_eq!(Recoveries::default().and(part.clone()).reused_bytes, 2);
        let both = part.clone().and(part);
        assert_eq!((both.done, both.sample.recovered_bytes, both.stopped_epoch_ms), (true, 10, 60));
        assert_eq!(both.reused_bytes, 4);
        assert_eq!(both.sample.stages["DONE"], 2);
    }

    #[test]
    fn what_the_engine_adds_is_summed() {
        let shard = |in_flight: u64, failure: Value| {
            let mut shard = row("PEER", "a", 5, "INDEX");
            shard["index"]["total_time_in_millis"] = json!(1500);
            shard["narrows"] = json!({
                "charged_ns": { "throttle": 2_000_000_000_u64, "disk_read": 0 }, "failure": failure,
                "chunk_bytes": in_flight, "in_flight_bytes": in_flight, "operations_bytes": 2,
                "refetched_chunks": 1,
            });
            shard
        };
        let shards = [shard(4, Value::Null), shard(8, json!("first")), shard(6, json!("second"))];
        let answer = json!({ "x": { "shards": shards } }).to_string();
        let answer: RecoveryRows = serde_json::from_str(&answer).unwrap();
        let all = Recoveries::of(&answer, &Wanted::Peers { since_epoch_ms: 0, copies: 4 });
        let sample = &all.sample;
        assert_eq!((sample.chunk_bytes, sample.in_flight_bytes), (Some(8), Some(18)));
        assert_eq!(sample.charged_s[&Limit::Throttle], 6.0);
        assert_eq!(sample.charged_s[&Limit::DiskRead], 0.0);
        assert_eq!((sample.stages_s["INDEX"], sample.waiting), (4.5, Some(1)));
        assert_eq!((all.operations_bytes, all.refetched_chunks), (6, 3));
        assert_eq!(all.failure.as_deref(), Some("first"));
    }

    #[test]
    fn fields_of_another_kind_count_as_if_they_were_not_there() {
        let answer = json!({
            "x": { "shards": [
                {
                    "type": "PEER", "start_time_in_millis": 5, "stage": 7, "index": "?",
                    "translog": [1], "primary": "yes",
                    "narrows": { "charged_ns": { "throttle": 3, "of another build": 1, "cpu": null } },
                },
                3, null, { "type": 1, "start_time_in_millis": "soon", "primary": 1 },
            ] },
            "y": 7,
            "z": { "shards": { "stage": "DONE" } },
        });
        let answer = rows(answer);
        let all = Recoveries::of(&answer, &Wanted::Peers { since_epoch_ms: 0, copies: 1 });
        assert_eq!((all.done, all.listed, all.sample.total_bytes), (false, false, 0));
        assert_eq!(all.sample.stages, BTreeMap::from([("?".to_owned(), 1)]));
        assert_eq!(all.sample.charged_s, BTreeMap::from([(Limit::Throttle, 3e-9)]));
        assert_eq!((all.sample.chunk_bytes, all.sample.in_flight_bytes), (None, None));
        let primaries = Recoveries::of(&answer, &Wanted::Primaries { shards: 1 });
        assert_eq!(primaries.sample.waiting, Some(1));
        assert_eq!(Recoveries::later_than(&answer), 6);
        let none: RecoveryRows = serde_json::from_str("null").unwrap();
        assert_eq!(Recoveries::later_than(&none), 0);
    }
}
