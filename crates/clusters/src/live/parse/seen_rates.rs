//! What links and disks have carried, out of finished recoveries and of counters of nodes; and what was indexed.

use std::collections::BTreeMap;
use std::time::Duration;

use record::inventory::{RateOf, SeenRate};
use record::units::{show_bytes, show_seconds};
use serde_json::Value;

use super::{at, count_at, elements, entries};

/// A lower rate says next to nothing of a link or a disk.
const RATE_MIN: u64 = 1_000_000;
/// A recovery that waited for its rate limit for more than this part of its time was held back by it.
const THROTTLED_PART: u64 = 10;
/// The field looks at its disks once a second at most: two looks that are said to be nearer to each other have a clock
/// between them that was set.
const LOOKS_APART_MS: u64 = 900;

/// What finished recoveries of copies from other nodes reached: the link between two nodes carried it, and the target's
/// disk wrote it, as the field syncs each file before the next stage.
pub(crate) fn rates_of_recoveries(answer: &Value) -> Vec<SeenRate> {
    let copies = entries(Some(answer)).flat_map(|(_, index)| elements(index.get("shards")));
    copies.filter_map(rate_of_recovery).flatten().collect()
}

fn rate_of_recovery(copy: &Value) -> Option<[SeenRate; 2]> {
    let is = |path: &str, word: &str| at(copy, path).and_then(Value::as_str) == Some(word);
    if !is("/type", "PEER") || !is("/stage", "DONE") {
        return None;
    }
    let figure = |name: &str| count_at(copy, &format!("/index/{name}"));
    // What came from a snapshot came from no node.
    let elsewhere = figure("size/recovered_from_snapshot_in_bytes").unwrap_or(0);
    let bytes = figure("size/recovered_in_bytes")?.saturating_sub(elsewhere);
    // Milliseconds are cut off.
    let ms = figure("total_time_in_millis")?.saturating_add(1);
    let waited = ["source", "target"].map(|end| figure(&format!("{end}_throttle_time_in_millis")));
    let waited = waited.into_iter().flatten().max().unwrap_or(0);
    let held = if waited > ms / THROTTLED_PART { ", held back by its rate limit" } else { "" };
    let took = show_seconds(ms as f64 / 1e3);
    let seen_in = format!("a recovery of {} in {took}{held}", show_bytes(bytes));
    let seen = |of| SeenRate { of, bytes_per_s: per_s(bytes, ms), seen_in: seen_in.clone() };
    Some([seen(RateOf::Link), seen(RateOf::DiskWrite)])
}

/// What nodes sent, received, read and wrote between two answers of `_nodes/stats`, of which the first was asked for so
/// long before the second had come.
pub(crate) fn rates_between(before: &Value, after: &Value, elapsed: Duration) -> Vec<SeenRate> {
    let elapsed_ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX).saturating_add(1);
    let mut seen = Vec::new();
    for (id, now) in entries(after.get("nodes")) {
        let Some(then) = before.get("nodes").and_then(|nodes| nodes.get(id)) else { continue };
        // A node that restarted in between counts from zero.
        let more = |path: &str| count_at(now, path)?.checked_sub(count_at(then, path)?);
        let mut rate = |of, bytes: Option<u64>, ms: u64| {
            if let Some(bytes) = bytes {
                let seen_in = format!("{} of the import", show_seconds(ms as f64 / 1e3));
                seen.push(SeenRate { of, bytes_per_s: per_s(bytes, ms), seen_in });
            }
        };
        for way in ["rx", "tx"] {
            rate(RateOf::Link, more(&format!("/transport/{way}_size_in_bytes")), elapsed_ms);
        }
        // What it answers is what it saw at its last look.
        let Some(ms) = more("/fs/timestamp").filter(|ms| *ms >= LOOKS_APART_MS) else { continue };
        for (of, way) in [(RateOf::DiskRead, "read"), (RateOf::DiskWrite, "write")] {
            let kib = more(&format!("/fs/io_stats/total/{way}_kilobytes"));
            rate(of, kib.map(|kib| kib.saturating_mul(1024)), ms);
        }
    }
    seen
}

fn per_s(bytes: u64, ms: u64) -> u64 {
    bytes.saturating_mul(1000) / ms.max(1)
}

/// The highest rate of each link or disk, where it says anything.
pub(crate) fn highest(rates: Vec<SeenRate>) -> Vec<SeenRate> {
    let mut highest: BTreeMap<RateOf, SeenRate> = BTreeMap::new();
    for rate in rates.into_iter().filter(|rate| rate.bytes_per_s >= RATE_MIN) {
        let known = highest.get(&rate.of).map_or(0, |known| known.bytes_per_s);
        if rate.bytes_per_s > known {
            highest.insert(rate.of, rate);
        }
    }
    highest.into_values().collect()
}

/// Documents that were indexed so far, by index, each counted once, out of `_stats`.
pub(crate) fn indexed_documents(answer: &Value) -> BTreeMap<String, u64> {
    let of = |(index, value): (&String, &Value)| {
        Some((index.clone(), count_at(value, "/primaries/indexing/index_total")?))
    };
    entries(answer.get("indices")).filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(rates: Vec<SeenRate>) -> Vec<(RateOf, u64)> {
        highest(rates).into_iter().map(|rate| (rate.of, rate.bytes_per_s)).collect()
    }

    #[test]
    fn a_finished_recovery_from_a_node_says_what_link_and_disk_can_do() {
        let copy = |kind: &str, stage: &str, bytes: u64, from_snapshot: u64, waited_ms: u64| {
            json!({
                "type": kind, "stage": stage,
                "index": {
                    "size": {
                        "recovered_in_bytes": bytes,
                        "recovered_from_snapshot_in_bytes": from_snapshot,
                    },
                    "total_time_in_millis": 999,
                    "source_throttle_time_in_millis": waited_ms,
                },
            })
        };
        let answer = |copies: Value| json!({ "logs": { "shards": copies } });
        let seen = answer(json!([
            copy("PEER", "DONE", 30_000_000, 0, 0),
            copy("PEER", "DONE", 90_000_000, 70_000_000, 0),
            copy("PEER", "INDEX", 300_000_000, 0, 0),
            copy("SNAPSHOT", "DONE", 500_000_000, 0, 0),
        ]));
        let rates = rates_of_recoveries(&seen);
        assert_eq!(rates[0].seen_in, "a recovery of 30.0 MB in 1.00 s");
        assert_eq!(
            found(rates),
            [(RateOf::Link, 30_000_000), (RateOf::DiskWrite, 30_000_000)],
            "20 MB came from a node, the rest of the second from a snapshot"
        );
        let slow = answer(json!([copy("PEER", "DONE", 900_000, 0, 800)]));
        let rates = rates_of_recoveries(&slow);
        assert!(rates[0].seen_in.ends_with("held back by its rate limit"), "{rates:?}");
        assert_eq!(found(rates), [], "so little says nothing");
    }

    #[test]
    fn counters_say_what_goes_on_now() {
        let node = |tx: u64, timestamp: u64, kib: u64| {
            json!({
                "transport": { "rx_size_in_bytes": 0, "tx_size_in_bytes": tx },
                "fs": {
                    "timestamp": timestamp,
                    "io_stats": { "total": { "read_kilobytes": 0, "write_kilobytes": kib } },
                },
            })
        };
        let look = |nodes: [Value; 3]| {
            let [a, b, c] = nodes;
            json!({ "nodes": { "a": a, "b": b, "c": c } })
        };
        let before = look([node(1000, 5_000, 0), node(9_000_000_000, 5_000, 7), node(0, 5_000, 0)]);
        let after = look([
            node(80_001_000, 6_000, 50_000),
            node(10, 5_000, 900_000_000),
            node(0, 5_003, 9_000),
        ]);
        let rates = rates_between(&before, &after, Duration::from_millis(1999));
        assert_eq!(
            found(rates),
            [(RateOf::Link, 40_000_000), (RateOf::DiskWrite, 51_200_000)],
            "b restarted, and did not look at its disk; the clock of c was set back"
        );
    }

    #[test]
    fn documents_are_counted_once() {
        let count = |total: u64| json!({ "indexing": { "index_total": total } });
        let of = |primaries: u64| json!({ "primaries": count(primaries), "total": count(99) });
        let answer = json!({ "indices": { "a": of(7), "b": { "primaries": {} } } });
        assert_eq!(indexed_documents(&answer), BTreeMap::from([("a".to_owned(), 7)]));
        assert_eq!(indexed_documents(&json!({})), BTreeMap::new());
    }
}
