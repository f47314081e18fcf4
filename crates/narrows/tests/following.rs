//! A plan that follows, on processes: its faults pass, nothing is lost, and the report says so; what cannot be done there
//! is refused before anything starts.

mod common;

use common::{narrows, refused, said};
use serde_json::Value;

const PLAN: &str = r#"
name = "following"
about = "Following."
steps = [
    "start",
    "index",
    { index_in_background = { documents_per_s = 300, updates = 0.2, deletes = 0.1 } },
    "follow",
    { wait_for_lag = { under = 200, within = "1m" } },
    { fault = { kind = "cut", lasts = "2s" } },
    { wait_for_lag = { under = 200, within = "1m" } },
    { fault = { kind = "kill", node = "follower", lasts = "1s" } },
    { wait_for_lag = { under = 200, within = "1m" } },
    { fault = { kind = "stop", node = "leader-1", lasts = "1s" } },
    { fault = { kind = "pause", node = "follower-1", lasts = "1s" } },
    "stop_indexing",
    { wait_for_lag = { under = 1, within = "1m" } },
    "verify",
]
laps = 1
sample = "250ms"
seed = 42
[leader]
nodes = 2
[follower]
nodes = 2
[link]
rtt = "50ms"
rate = "100mbit"
[corpus]
name = "http_logs"
documents = 1000
bulk_documents = 50
clients = 2
[[index]]
name = "logs"
shards = 2
replicas = 1
[[variant]]
name = "adaptive"
"#;

fn run(text: &str, on: &str) -> (tempfile::TempDir, Vec<String>) {
    let dir = tempfile::tempdir().unwrap();
    let (plan, runs) = (dir.path().join("plan.toml"), dir.path().join("runs"));
    std::fs::write(&plan, text).unwrap();
    let path = |path: &std::path::Path| path.to_str().unwrap().to_owned();
    let args = ["run", &path(&plan), "--on", on, "--json", "--runs", &path(&runs)];
    let args = args.map(str::to_owned).to_vec();
    (dir, args)
}

#[test]
fn processes_are_killed_and_cut_off_and_nothing_is_lost() {
    let (dir, args) = run(PLAN, "embedded");
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let output = narrows(&args);
    assert!(output.status.success(), "{}", said(&output));
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    let lap = &json["following"][0]["laps"][0];
    assert_eq!((&lap["copies"], &lap["violations"]), (&8.into(), &0.into()), "{lap}");
    assert!(lap["acknowledged"].as_u64() > Some(1500), "{lap}");
    let waits = lap["catch_ups"].as_array().unwrap();
    assert_eq!(waits.len(), 4);
    assert_eq!(waits[1]["after"], "the link was cut off for 2.00 s");
    let run = std::fs::read_dir(dir.path().join("runs")).unwrap().next().unwrap().unwrap();
    let page = std::fs::read_to_string(run.path().join("report.html")).unwrap();
    assert!(page.contains("How far behind the follower was") && page.contains("lag-0-wide"));
    let shown = narrows(&["show", run.path().to_str().unwrap()]);
    // Lines end where the terminal does.
    let shown: Vec<String> = said(&shown).split_whitespace().map(str::to_owned).collect();
    let shown = shown.join(" ");
    let expected = "8 copies read, each has every acknowledged write once";
    assert!(shown.contains(expected), "{shown}");
}

/// Disks that are full for a while, of a follower and of a leader. Only who may mount has such a disk: elsewhere this says so and ends.
#[test]
fn full_disks_stop_a_follower_and_a_leader_and_room_has_them_go_on() {
    let full = "kind = \"full_disk\", node = \"follower-0\", free = \"4kb\", lasts = \"3s\"";
    let text = PLAN
        .replacen("kind = \"cut\", lasts = \"2s\"", full, 1)
        .replace("{ fault = { kind = \"kill\", node = \"follower\", lasts = \"1s\" } },", "")
        .replace(
            "kind = \"stop\", node = \"leader-1\", lasts = \"1s\"",
            "kind = \"full_disk\", node = \"leader-1\", free = \"4kb\", lasts = \"3s\"",
        )
        // Nobody else could go on as the primary.
        .replace("[follower]\nnodes = 2", "[follower]\nnodes = 1")
        .replace("follower-1", "follower-0");
    let (_dir, args) = run(&text, "embedded");
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let output = narrows(&args);
    if output.status.code() == Some(2) && said(&output).contains("may not mount") {
        eprintln!("left out: {}", said(&output));
        return;
    }
    assert!(output.status.success(), "{}", said(&output));
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    let lap = &json["following"][0]["laps"][0];
    assert_eq!((&lap["copies"], &lap["violations"]), (&6.into(), &0.into()), "{lap}");
    let waits = lap["catch_ups"].as_array().unwrap();
    assert_eq!(waits[1]["after"], "follower-0 was left with 4.10 kB of disk for 3.00 s");
    assert!(waits[1]["lag_operations"].as_u64() > Some(200), "{lap}");
}

#[test]
fn what_only_the_virtual_world_has_is_refused_before_anything_starts() {
    let with =
        |fault: &str| PLAN.replacen("{ fault = { kind = \"cut\", lasts = \"2s\" } }", fault, 1);
    let fault = "{ fault = { kind = \"clock\", node = \"leader\", by = \"1h\" } }";
    let (_dir, args) = run(&with(fault), "embedded");
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    refused(&args, &["move a node's clock", "--on virtual"]);
    refused(&["run", "follow-small", "--on", "opensearch"], &["--on embedded or --on virtual"]);
}
