//! What a large twin takes of this machine: a node of it dies, and all is green again.
//!
//! `cargo bench -p narrows --bench twin_size` asks twins of 300 nodes with 20 000 copies of 10 GB and of 1000 nodes
//! with 200 000; `-- 100x2000` (nodes x shards, each with a replica) another. `NARROWS_BIN` names another build.

mod common;

use std::fmt::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use record::random::split_mix;
use serde_json::Value;
use testbed::bench::Table;

/// Nodes and shards.
const SIZES: [&str; 2] = ["300x10000", "1000x100000"];
const SHARDS_OF_AN_INDEX: usize = 50;
const SHARD_BYTES: &str = "10gb";
const SEGMENTS: u32 = 10;
/// How copies are placed in twins that were made from a cluster of OpenSearch.
const OF_OPENSEARCH: &str = "\"narrows.allocation.weights\" = \"opensearch\"\n\
    \"narrows.allocation.field_order\" = true\n\"narrows.allocation.replica_ring\" = true\n\
    \"narrows.allocation.return_to_files\" = true\n";
const LOOK: Duration = Duration::from_millis(100);

const TABLE: Table = Table {
    page: "what_if",
    name: "size",
    columns: &[
        "nodes x shards", "copied, GB", "green after, virtual s", "wall s", "core s",
        "peak memory, MB",
    ],
};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    let sizes = if args.is_empty() { SIZES.map(str::to_owned).to_vec() } else { args };
    TABLE.begin();
    for size in sizes {
        let (nodes, shards) = common::nodes_and_shards(&size);
        TABLE.row(&ask(&size, nodes, shards));
    }
}

/// A twin of so many nodes, whose copies are anywhere but twice on a node.
fn twin(nodes: usize, shards: usize) -> String {
    let mut text = format!(
        "name = \"twin-large\"\nabout = \"A twin of nobody.\"\nsteps = [\"start\", \"what_if\"]\n\n\
         [leader]\nnodes = {}\n\n\
         [virtual]\n\"card.bytes_per_s\" = {{ value = \"10gbit\", source = \"assumed\" }}\n\n\
         [settings]\n\"indices.recovery.max_bytes_per_sec\" = \"250mb\"\n{OF_OPENSEARCH}\n[twin]\nnode = [\n",
        nodes + 1
    );
    for node in 0..nodes {
        let _ = writeln!(text, "  {{ name = \"n{node:04}\" }},");
    }
    text.push_str("]\nlose = [\"n0000\"]\n");
    let mut random = 7;
    for shard in 0..shards {
        if shard % SHARDS_OF_AN_INDEX == 0 {
            let end = if shard == 0 { "" } else { "]\n" };
            let index = shard / SHARDS_OF_AN_INDEX;
            let _ = write!(
                text,
                "{end}\n[[twin.index]]\nname = \"i{index:04}\"\nreplicas = 1\nshard = [\n"
            );
        }
        let primary = shard % nodes;
        let away = 1 + split_mix(&mut random) as usize % (nodes - 1);
        let replica = (primary + away) % nodes;
        let _ = writeln!(
            text,
            "  {{ bytes = \"{SHARD_BYTES}\", documents = 10000000, segments = {SEGMENTS}, \
             copies = [\"n{primary:04}\", \"n{replica:04}\"] }},"
        );
    }
    text.push_str("]\n\n[[variant]]\nname = \"as it is\"\n");
    text
}

fn ask(size: &str, nodes: usize, shards: usize) -> Vec<String> {
    let dir = tempfile::tempdir().expect("there is room");
    let file = dir.path().join("twin.toml");
    std::fs::write(&file, twin(nodes, shards)).expect("there is room");
    let other = std::env::var("NARROWS_BIN");
    let mut command = Command::new(other.as_deref().unwrap_or(env!("CARGO_BIN_EXE_narrows")));
    command.arg("run").arg(&file).args(["--on", "virtual", "--laps", "1", "--json"]);
    command.arg("--runs").arg(dir.path().join("runs"));
    let began = Instant::now();
    let mut child = command.stdout(Stdio::piped()).spawn().expect("narrows runs");
    let (mut core_s, mut peak_mb) = (0.0, 0);
    while child.try_wait().expect("it can be waited for").is_none() {
        (core_s, peak_mb) = common::used(child.id()).unwrap_or((core_s, peak_mb));
        std::thread::sleep(LOOK);
    }
    let wall_s = began.elapsed().as_secs_f64();
    let output = child.wait_with_output().expect("it has ended");
    let found: Value = serde_json::from_slice(&output.stdout).expect("an answer");
    let row = &found["rows"][0];
    let number = |name: &str| row[name].as_f64().unwrap_or(f64::NAN);
    vec![
        size.to_owned(),
        format!("{:.0}", number("bytes") / 1e9),
        format!("{:.1}", number("seconds")),
        format!("{wall_s:.1}"),
        format!("{core_s:.1}"),
        peak_mb.to_string(),
    ]
}
