//! What share of a link the adaptive scheduler carries, start-up included, beside fixed settings.
//!
//! `cargo bench -p narrows --bench adaptive`: real sockets and files, every combination of round trip and rate,
//! transfers of at least 20 bandwidth-delay products. "of link" counts from the follow request, "files" from when
//! the files were known, their first chunks already under way, until the last was verified and synced.
//! NARROWS_LAPS sets the repetitions (the best of them counts for each setting alike).

mod common;

use std::time::Duration;

use clusters::{Clusters, EmbeddedClusters};
use lab::corpus::Corpus;
use serde_json::{Value, json};
use testbed::bench::Table;
use world::{Env, LinkConfig};

const FIXED: [(&str, &str, &str, u32); 6] = [
    ("64 KB x 1", "sequential", "64kb", 1),
    ("1 MB x 1", "sequential", "1mb", 1),
    ("5 MB x 1", "sequential", "5mb", 1),
    ("1 MB x 5", "file_window", "1mb", 5),
    ("5 MB x 8", "file_window", "5mb", 8),
    ("1 MB x 10", "file_window", "1mb", 10),
];

const TABLE: Table = Table {
    page: "adaptive",
    name: "measured",
    columns: &[
        "round trip", "rate", "MB", "whole, s", "whole, of the link", "files, of the link",
        "best fixed", "its time over ours",
    ],
};

fn main() {
    let laps = common::sized("NARROWS_LAPS", 1);
    world::real_world::run(1, async |env| {
        TABLE.begin();
        for (rate_name, rate) in [("100mbit", 12_500_000), ("1gbit", 125_000_000u64)] {
            for rtt_ms in [10u64, 100, 300] {
                one_link(&env, rate_name, rate, rtt_ms, laps).await;
            }
        }
    });
}

async fn one_link(env: &Env, rate_name: &str, rate: u64, rtt_ms: u64, laps: u64) {
    let config = LinkConfig {
        rtt: Duration::from_millis(rtt_ms),
        rate_bytes_per_s: Some(rate),
        ..LinkConfig::default()
    };
    let bytes = 205 * rate * rtt_ms / 10_000;
    // A document takes some 50 bytes in the files.
    let documents = (bytes / 49).max(100_000);
    let mut target = common::start(env, &[("leader", 1), ("follower", 1)], Some(config)).await;
    common::create(&target, "leader", Corpus::Geopoint, 1).await;
    common::index(&target, "leader", Corpus::Geopoint, documents, 4, 5000).await;
    common::ask(&target, "leader", "POST", "/a/_flush", Value::Null).await;
    let mut best_fixed = (f64::MAX, "");
    for (name, scheduler, chunk, concurrent) in FIXED {
        // A setting that cannot come near is not waited for.
        let per_trip = u64::from(concurrent) * record::units::parse_size(chunk).expect("a size");
        if per_trip * 4 < rate * rtt_ms / 1000 {
            continue;
        }
        for _ in 0..laps {
            let seconds = recover(&target, env, scheduler, chunk, concurrent).await.seconds;
            if seconds < best_fixed.0 {
                best_fixed = (seconds, name);
            }
        }
    }
    let mut adaptive = Recovered { seconds: f64::MAX, files_s: 0.0, bytes: 0.0 };
    for _ in 0..laps {
        let recovered = recover(&target, env, "adaptive", "1mb", 5).await;
        if recovered.seconds < adaptive.seconds {
            adaptive = recovered;
        }
    }
    let Recovered { seconds, files_s, bytes } = adaptive;
    let share = |seconds: f64| bytes / seconds / rate as f64 * 100.0;
    TABLE.row(&[
        format!("{rtt_ms} ms"),
        rate_name.to_owned(),
        format!("{:.1}", bytes / 1e6),
        format!("{seconds:.2}"),
        format!("{:.1} %", share(seconds)),
        format!("{:.1} %", share(files_s)),
        best_fixed.1.to_string(),
        format!("{:.2}", best_fixed.0 / seconds),
    ]);
    target.stop().await;
}

/// One recovery.
struct Recovered {
    /// From the follow request until the follower was complete.
    seconds: f64,
    /// From when the files were known until the last was verified.
    files_s: f64,
    bytes: f64,
}

/// Recovers once.
async fn recover(
    target: &EmbeddedClusters,
    env: &Env,
    scheduler: &str,
    chunk: &str,
    concurrent: u32,
) -> Recovered {
    // Leader and follower throttle alike; neither is to.
    let unthrottled = json!({ "persistent": { "ccr.indices.recovery.max_bytes_per_sec": "-1" } });
    common::ask(target, "leader", "PUT", "/_cluster/settings", unthrottled).await;
    let settings = json!({
        "ccr.indices.recovery.max_bytes_per_sec": "-1",
        "ccr.indices.recovery.chunk_size": chunk,
        "ccr.indices.recovery.max_concurrent_file_chunks": concurrent,
        "narrows.recovery.scheduler": scheduler,
    });
    common::connect(env, target, settings).await;
    let began = env.epoch_ms();
    common::follow(target, 0).await;
    let row = loop {
        env.sleep(Duration::from_millis(50)).await;
        let answer = common::ask(target, "follower", "GET", "/a/_recovery", Value::Null).await;
        let row = answer["a"]["shards"][0].clone();
        if row["stage"] == "DONE" {
            break row;
        }
    };
    let stopped = row["stop_time_in_millis"].as_u64().expect("it has stopped");
    let bytes = row["index"]["size"]["recovered_in_bytes"].as_f64().expect("bytes");
    common::ask(target, "follower", "DELETE", "/a", Value::Null).await;
    let files_ms = row["index"]["total_time_in_millis"].as_f64().expect("a time");
    Recovered { seconds: (stopped - began) as f64 / 1e3, files_s: files_ms / 1e3, bytes }
}
