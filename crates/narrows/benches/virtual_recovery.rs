//! Peer recoveries on the virtual world through the engine's own code: wall time, events a second of the core that
//! it runs on (other programs do not count), and memory.
//!
//! `cargo bench -p narrows --bench virtual_recovery [name]`; NARROWS_SHARD_GB sets the size of a shard.

mod common;

use std::time::{Duration, Instant};

use clusters::{Clusters, SyntheticIndex, TopologySpec, VirtualClusters, VirtualControls};
use serde_json::{Value, json};
use testbed::bench::Table;
use world::Env;

use crate::common::ask;

struct Case {
    name: &'static str,
    nodes: usize,
    shards: u32,
    shard_gb: u64,
    chunk: &'static str,
    scheduler: &'static str,
}

#[rustfmt::skip]
const CASES: [Case; 3] = [
    Case { name: "one shard of 100 GB, 512 KB x 2", nodes: 2, shards: 1, shard_gb: 100,
           chunk: "512kb", scheduler: "file_window" },
    Case { name: "one shard of 1 TB, adaptive", nodes: 2, shards: 1, shard_gb: 1000,
           chunk: "512kb", scheduler: "adaptive" },
    Case { name: "12.8 TB in 128 shards on 8 nodes, 32 MB x 2", nodes: 8, shards: 128, shard_gb: 100,
           chunk: "32mb", scheduler: "file_window" },
];

const TABLE: Table = Table {
    page: "virtual_recovery",
    name: "measured",
    columns: &[
        "case", "TB", "virtual s", "wall s", "core s", "events, M", "M events/s of a core",
        "memory, MB",
    ],
};

fn main() {
    TABLE.begin();
    let wanted = std::env::args().skip(1).find(|arg| !arg.starts_with('-'));
    for case in
        CASES.iter().filter(|case| wanted.as_ref().is_none_or(|w| case.name.contains(w.as_str())))
    {
        run(case);
    }
}

fn run(case: &'static Case) {
    let bytes =
        u64::from(case.shards) * common::sized("NARROWS_SHARD_GB", case.shard_gb) * 1_000_000_000;
    let (began, began_core_s) = (Instant::now(), common::core_seconds());
    let (virtual_time, trace) =
        world::virtual_world::run_traced(1, async move |env| recover(&env, case, bytes).await)
            .unwrap_or_else(|deadlock| panic!("{deadlock}"));
    let wall_s = began.elapsed().as_secs_f64();
    let core_s = common::core_seconds() - began_core_s;
    let (_, peak_mb) = common::used(std::process::id()).unwrap_or_default();
    let events_m = trace.events as f64 / 1e6;
    TABLE.row(&[
        case.name.to_owned(),
        format!("{:.2}", bytes as f64 / 1e12),
        format!("{:.0}", virtual_time.as_secs_f64()),
        format!("{wall_s:.2}"),
        format!("{core_s:.2}"),
        format!("{events_m:.2}"),
        format!("{:.2}", events_m / core_s),
        peak_mb.to_string(),
    ]);
}

async fn recover(env: &Env, case: &Case, bytes: u64) -> Duration {
    let mut target = VirtualClusters::new(env);
    target.start(&TopologySpec::alone("c", case.nodes)).await.expect("it starts");
    let settings = json!({ "persistent": {
        "indices.recovery.max_bytes_per_sec": "-1",
        "indices.recovery.chunk_size": case.chunk,
        "narrows.recovery.scheduler": case.scheduler,
        "cluster.routing.allocation.node_concurrent_recoveries": "6",
    } });
    ask(&target, "c", "PUT", "/_cluster/settings", settings).await;
    let body = json!({ "settings": { "number_of_shards": case.shards, "number_of_replicas": 0 } });
    ask(&target, "c", "PUT", "/a", body).await;
    ask(&target, "c", "GET", "/_cluster/health/a?wait_for_status=green", Value::Null).await;
    let segments = 24 * case.shards;
    let index = SyntheticIndex {
        name: "a".to_owned(),
        documents: bytes / 100,
        bytes,
        segments,
        segment_ratio: 0.5,
    };
    target.load_index("c", &index).await.expect("it loads");
    let began = env.now();
    let replicas = json!({ "index.number_of_replicas": 1 });
    ask(&target, "c", "PUT", "/a/_settings", replicas).await;
    loop {
        env.sleep(Duration::from_secs(5)).await;
        let health = ask(&target, "c", "GET", "/_cluster/health/a", Value::Null).await;
        if health["status"] == "green" {
            break;
        }
    }
    let took = env.now() - began;
    target.stop().await;
    took
}
