//! One plan in both worlds: where a link or a throttle holds a recovery, virtual time says what real time does.

use std::collections::BTreeMap;

use crate::common::{json, plans};

/// How far the two worlds may be apart where a link or a throttle holds the recovery.
const TOLERANCE: f64 = 0.10;
/// Laps in real time, at most: the last is the first after which every variant was as fast as in virtual time once.
const LAPS: u32 = 6;

/// Slow enough that a busy machine, or a debug build, is not what holds it. One node on either side, so that the link
/// and the throttle are those of the whole. The link's TCP is not modelled, for the emulated link has none either: it
/// ends every connection on its own side.
const PLAN: &str = r#"
name = "real-against-virtual"
about = "The same small recovery on real sockets and in virtual time."
steps = ["start", "index", "recover", "verify"]
laps = 1
sample = "100ms"
seed = 42

[leader]
nodes = 1

[follower]
nodes = 1

[link]
rtt = "20ms"
rate = "25mbit"

[corpus]
name = "nginx"
documents = 40_000
bulk_documents = 2000
clients = 2

[[index]]
name = "leader"
shards = 1
replicas = 0

[settings]
"ccr.indices.recovery.max_bytes_per_sec" = "-1"

[[variant]]
name = "adaptive"
[variant.settings]
"narrows.recovery.scheduler" = "adaptive"

[[variant]]
name = "256 KB x 5"
[variant.settings]
"ccr.indices.recovery.chunk_size" = "256kb"
"ccr.indices.recovery.max_concurrent_file_chunks" = 5
"narrows.recovery.scheduler" = "file_window"

[[variant]]
name = "throttle of 2mb"
[variant.settings]
"ccr.indices.recovery.max_bytes_per_sec" = "2mb"
"ccr.indices.recovery.chunk_size" = "256kb"
"ccr.indices.recovery.max_concurrent_file_chunks" = 5
"narrows.recovery.scheduler" = "file_window"
"#;

/// A variant's row.
#[derive(Debug)]
struct Row {
    bytes_per_s: f64,
    limit: String,
}

fn run(on: &str) -> BTreeMap<String, Row> {
    let found = json(&plans::run(PLAN, on, &[]).1);
    let row = |row: &serde_json::Value| {
        assert_eq!(row["verified"], true, "{row}");
        let name = row["variant"].as_str().unwrap().to_owned();
        let bytes_per_s = row["bytes_per_s"].as_f64().unwrap();
        let limit = row["limits"][0]["limit"].as_str().unwrap().to_owned();
        (name, Row { bytes_per_s, limit })
    };
    found["rows"].as_array().unwrap().iter().map(row).collect()
}

/// Whether the two worlds are to agree within [`TOLERANCE`]; the other limits depend on the machine.
fn is_held_by_link_or_throttle(row: &Row) -> bool {
    ["link", "throttle"].iter().any(|limit| row.limit.contains(limit))
}

/// What else a machine does can only slow a recovery that a link or a throttle holds. So the fastest lap of a variant
/// says what real time makes of it, and is not to be slower than virtual time by more than [`TOLERANCE`]; and no lap at
/// all is to be faster by more. Rates are compared, not times: the synthetic store's files are about as large as real
/// ones, not exactly.
pub fn virtual_time_says_what_real_time_does() {
    let simulated = run("virtual");
    assert_eq!(simulated.len(), 3, "{simulated:?}");
    assert!(simulated.values().all(is_held_by_link_or_throttle), "{simulated:?}");
    let mut fastest: BTreeMap<&str, f64> = BTreeMap::new();
    for lap in 1..=LAPS {
        for (name, real) in run("embedded") {
            let (name, virtual_row) = simulated.get_key_value(&name).unwrap();
            let ratio = real.bytes_per_s / virtual_row.bytes_per_s;
            println!(
                "lap {lap}, {name:>16}: {:6.2} MB/s real ({}), {:6.2} virtual ({}), {:+5.1} %",
                real.bytes_per_s / 1e6,
                real.limit,
                virtual_row.bytes_per_s / 1e6,
                virtual_row.limit,
                (ratio - 1.0) * 100.0
            );
            assert!(ratio <= 1.0 + TOLERANCE, "{name}: real time is {ratio:.3} times as fast");
            let fastest = fastest.entry(name).or_default();
            *fastest = fastest.max(ratio);
        }
        if fastest.values().all(|ratio| *ratio >= 1.0 - TOLERANCE) {
            return;
        }
    }
    panic!(
        "the fastest of {LAPS} laps in real time, as a part of the rate in virtual time: {fastest:.3?}. At least {} is \
         accepted; was this machine busy with something else all the while?",
        1.0 - TOLERANCE
    );
}
