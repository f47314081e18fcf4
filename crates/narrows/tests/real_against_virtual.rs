//! One plan in both worlds: where a link or a throttle holds a recovery, virtual time says what real time does.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// What a link or a throttle holds is to differ by no more.
const TOLERANCE: f64 = 0.10;
/// The machine may be busy with something else: the best of so many tries counts.
const TRIES: u32 = 3;

/// Slow enough that a busy machine, or a debug build, is not what holds it. One node on either side, so that the link and the throttle are those of the whole. The link's TCP is not
/// modelled, for the emulated link has none either: it ends every connection on its own side.
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

[[variant]]
name = "32 KB x 1"
[variant.settings]
"ccr.indices.recovery.chunk_size" = "32kb"
"ccr.indices.recovery.max_concurrent_file_chunks" = 1
"narrows.recovery.scheduler" = "sequential"
"#;

/// A variant's row.
#[derive(Debug)]
struct Row {
    bytes_per_s: f64,
    limit: String,
}

fn run(plan: &Path, runs: &Path, on: &str) -> BTreeMap<String, Row> {
    let output = Command::new(env!("CARGO_BIN_EXE_narrows"))
        .args(["run", plan.to_str().unwrap(), "--on", on, "--json", "--runs"])
        .arg(runs)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let row = |row: &serde_json::Value| {
        assert_eq!(row["verified"], true, "{row}");
        let name = row["variant"].as_str().unwrap().to_owned();
        let bytes_per_s = row["bytes_per_s"].as_f64().unwrap();
        let limit = row["limits"][0]["limit"].as_str().unwrap().to_owned();
        (name, Row { bytes_per_s, limit })
    };
    json["rows"].as_array().unwrap().iter().map(row).collect()
}

/// Whether the two worlds are to agree within [`TOLERANCE`]; the other limits depend on the machine.
fn is_held_by_link_or_throttle(row: &Row) -> bool {
    ["link", "throttle"].iter().any(|limit| row.limit.contains(limit))
}

#[test]
fn virtual_time_says_what_real_time_does() {
    let dir = tempfile::tempdir().unwrap();
    let plan = dir.path().join("plan.toml");
    std::fs::write(&plan, PLAN).unwrap();
    let simulated = run(&plan, dir.path(), "virtual");
    let held = simulated.values().filter(|row| is_held_by_link_or_throttle(row)).count();
    assert_eq!((held, simulated.len()), (3, 4), "{simulated:?}");
    // Rates are compared, not times: the synthetic store's files are about as large as real ones, not exactly.
    let mut best: BTreeMap<&str, f64> = BTreeMap::new();
    for attempt in 1..=TRIES {
        for (name, real) in run(&plan, dir.path(), "embedded") {
            let (name, virtual_row) = simulated.get_key_value(&name).unwrap();
            let difference = virtual_row.bytes_per_s / real.bytes_per_s - 1.0;
            println!(
                "try {attempt}, {name:>16}: {:6.2} MB/s real ({}), {:6.2} virtual ({}), {:+5.1} %",
                real.bytes_per_s / 1e6,
                real.limit,
                virtual_row.bytes_per_s / 1e6,
                virtual_row.limit,
                difference * 100.0
            );
            let kept = best.entry(name).or_insert(f64::INFINITY);
            *kept = kept.min(difference.abs());
        }
        let far = |(name, difference): (&&str, &f64)| {
            *difference > TOLERANCE && is_held_by_link_or_throttle(&simulated[*name])
        };
        if !best.iter().any(far) {
            return;
        }
    }
    panic!("after {TRIES} tries these still differ by more than {TOLERANCE}: {best:?}");
}
