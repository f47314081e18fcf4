//! `what-if` on clusters of processes and on files: a twin is imported, saved, read again and asked.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Output;

use record::{Line, RunDir};
use serde_json::{Value, json};

use crate::common::cluster::Cluster;
use crate::common::{self, failed, narrows, noise, said};

/// A twin of three nodes: six shards of 30 MB with a replica, at a rate that makes their recovery take seconds.
pub(crate) const TWIN: &str = r#"
name = "twin-small"
about = "A twin of nobody."
steps = ["start", "what_if"]

[leader]
nodes = 4

[virtual]
"disk.write_bytes_per_s" = { value = "400MB/s", source = "assumed" }

[settings]
"indices.recovery.max_bytes_per_sec" = "10mb"

[twin]
node = [
  { name = "a", zone = "east" },
  { name = "b", zone = "east" },
  { name = "c", zone = "west" },
]
uncertain = [
  { parameter = "disk.write_bytes_per_s", least = "200MB/s", most = "800MB/s" },
]
lose = ["c"]

[[twin.index]]
name = "logs"
replicas = 1
settings = { "index.unassigned.node_left.delayed_timeout" = "1m" }
shard = [
  { bytes = "30mb", documents = 10000, segments = 8, copies = ["a", "b"] },
  { bytes = "30mb", documents = 10000, segments = 8, copies = ["b", "c"] },
  { bytes = "30mb", documents = 10000, segments = 8, copies = ["c", "a"] },
]

[[variant]]
name = "as it is"
"#;

/// A directory with the twin in a file.
pub(crate) fn twin() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("twin.toml");
    std::fs::write(&file, TWIN).unwrap();
    (dir, file)
}

pub(crate) fn asked(dir: &Path, args: &[&str]) -> Output {
    let runs = dir.join("runs");
    let runs = runs.to_str().unwrap();
    narrows(&[&["what-if"], args, &["--runs", runs]].concat())
}

pub(crate) fn answer(dir: &Path, args: &[&str]) -> Value {
    common::json(&asked(dir, &[args, &["--json"]].concat()))
}

pub(crate) fn green_s(answer: &Value) -> f64 {
    answer["green_s"].as_f64().unwrap()
}

/// What was copied; a commit is some kilobytes besides the segments.
fn mb(answer: &Value) -> u64 {
    answer["bytes"].as_u64().unwrap() >> 20
}

/// A second for the node to be missed, a minute of waiting, and two copies of 30 MB, one from a to b and one from b to
/// a: what a node sends and what it receives have 10 MB/s together, so that they take six seconds.
#[test]
fn a_lost_node_takes_the_delay_and_what_the_rate_lets_through() {
    let (dir, file) = twin();
    let file = file.to_str().unwrap();
    let found = answer(dir.path(), &[file, "--lose", "c", "--draws", "2"]);
    let first = &found["answers"][0];
    let green = green_s(first);
    assert!((66.0..69.0).contains(&green), "{first}");
    assert_eq!(first["draws"], 2);
    let least = first["between_s"][0].as_f64().unwrap();
    assert!((59.0..62.0).contains(&least), "nothing is made before the minute is over: {first}");
    assert!(first["away_s"].as_f64().unwrap().is_sign_positive(), "no node is away: {first}");
    let what: Vec<&str> =
        first["phases"].as_array().unwrap().iter().map(|p| p["what"].as_str().unwrap()).collect();
    assert_eq!(what, ["not_noticed", "delayed", "copying"], "{first}");
    let last = first["curve"].as_array().unwrap().last().unwrap();
    assert_eq!((&last["copies"], &last["bytes"]), (&json!(0), &json!(0)), "{first}");
    let tried = found["tried"].as_array().unwrap();
    let of = |name: &str| {
        let found =
            tried.iter().find(|answer| answer["variant"].as_str().unwrap().starts_with(name));
        green_s(found.unwrap_or_else(|| panic!("{name} was not tried: {tried:?}")))
    };
    assert!(of("index.unassigned.node_left.delayed_timeout") < 9.0);
    assert!(of("indices.recovery.max_bytes_per_sec") < green - 1.5);
    assert!(of("all of these") < 5.0);
    assert_eq!(found["assumed"][0]["parameter"], "disk.write_bytes_per_s");
    // A setting that is asked for is the only one that is tried; the same twin gives the same answer.
    let delay = "index.unassigned.node_left.delayed_timeout=10s";
    let set = answer(dir.path(), &[file, "--lose", "west", "--set", delay, "--draws", "1"]);
    assert_eq!(green_s(&set["answers"][0]), green, "west is c");
    assert!((16.0..19.0).contains(&green_s(&set["answers"][1])), "{set}");
    assert_eq!(set["tried"], json!([]));
    let text = said(&asked(dir.path(), &[file, "--lose", "c", "--set", delay, "--draws", "1"]));
    assert!(text.contains("nothing is drawn") && !text.contains("drawn from"), "{text}");
}

#[test]
fn restarts_and_replicas_are_asked_of_the_same_twin() {
    let (dir, file) = twin();
    let file = file.to_str().unwrap();
    let restarts =
        answer(dir.path(), &[file, "--rolling-restart", "--down", "20s", "--draws", "1"]);
    let green = green_s(&restarts["answers"][0]);
    // Three nodes are away for 20 s each, less than the delay, and have their copies when they are back.
    assert!((60.0..75.0).contains(&green), "{restarts}");
    assert_eq!(restarts["answers"][0]["bytes"], 0, "{restarts}");
    // Whatever is not modelled, nodes are away for a minute.
    let (least, away) =
        (&restarts["answers"][0]["between_s"][0], &restarts["answers"][0]["away_s"]);
    let (least, away) = (least.as_f64().unwrap(), away.as_f64().unwrap());
    assert!((59.9..60.1).contains(&away) && least >= away, "{restarts}");
    // One that is away for longer: its copies are made elsewhere in six seconds, and then nothing is held by anything.
    let long = asked(dir.path(), &[file, "--restart", "c", "--down", "90s", "--draws", "1"]);
    assert!(said(&long).starts_with("c restarts\n"), "{}", said(&long));
    let long = answer(dir.path(), &[file, "--restart", "c", "--down", "90s", "--draws", "1"]);
    let phases = long["answers"][0]["phases"].as_array().unwrap();
    let copying = phases.iter().find(|phase| phase["what"] == "copying").unwrap();
    let (from, to) = (copying["from_s"].as_f64().unwrap(), copying["to_s"].as_f64().unwrap());
    assert!(from > 60.0 && to < 75.0, "{phases:?}");
    assert_eq!(phases.last().unwrap()["what"], "away", "{phases:?}");
    // Nobody knows how long it is away: draws are from 10 s to 32 s, and from there to 100 s.
    let bounds = [file, "--restart", "c", "--down", "10s..100s", "--draws", "3"];
    let drawn = answer(dir.path(), &bounds);
    let first = &drawn["answers"][0];
    assert!((55.0..57.0).contains(&green_s(first)), "{first}");
    let (least, away) =
        (first["between_s"][0].as_f64().unwrap(), first["away_s"].as_f64().unwrap());
    assert!((9.9..32.1).contains(&away) && (away..34.0).contains(&least), "{first}");
    let more = answer(dir.path(), &[file, "--replicas", "logs=2", "--draws", "1"]);
    assert!((5.0..8.0).contains(&green_s(&more["answers"][0])), "{more}");
    assert_eq!(more["asked"], "logs with 2 replicas");
    failed(&asked(dir.path(), &[file, "--replicas", "logs=1"]), 2, &["nothing would be copied"]);
}

#[test]
fn a_run_says_what_was_asked_in_the_names_of_the_cluster() {
    let (dir, file) = twin();
    let set = "indices.recovery.max_bytes_per_sec=80mb";
    let args = [file.to_str().unwrap(), "--drain", "b", "--set", set, "--draws", "1"];
    let text = said(&asked(dir.path(), &args));
    assert!(text.starts_with("everything is moved away from b\n"), "{text}");
    let runs = dir.path().join("runs");
    let listed = said(&narrows(&["runs", "--runs", runs.to_str().unwrap()]));
    assert!(listed.contains("everything is moved away from b: empty after"), "{listed}");
    assert!(listed.contains(&format!("; with {set} ")), "{listed}");
    let entries = std::fs::read_dir(&runs).unwrap().map(|entry| entry.unwrap().path());
    let run = entries.filter(|path| path.is_dir()).map(|path| RunDir::open(&path).unwrap());
    let run = run.last().unwrap();
    let names: Vec<&str> = run.manifest.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(names, ["manager of the twin", "a", "b", "c"]);
    let sampled: BTreeSet<&str> = (run.lines.iter())
        .filter_map(|line| match line {
            Line::Node { sample, .. } => Some(sample.node.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(sampled, names.into_iter().collect::<BTreeSet<_>>());
}

/// A replica that was missing is made as soon as the twin may do so, some milliseconds before it is asked for more.
#[test]
fn a_copy_that_was_missing_is_copied_with_those_that_are_asked_for() {
    let (dir, file) = twin();
    std::fs::write(&file, TWIN.replacen("[\"a\", \"b\"]", "[\"a\"]", 1)).unwrap();
    let more = ["--replicas", "logs=2", "--rtt", "20ms", "--draws", "1"];
    let found = answer(dir.path(), &[&[file.to_str().unwrap()], &more[..]].concat());
    let first = &found["answers"][0];
    assert_eq!(mb(first), 4 * 30, "{first}");
}

/// The twin's manager stands for no node: a cluster of these three nodes gives each of them one replica, so that each
/// sends 30 MB and receives 30 MB. Three copies that share one node's 10 MB/s would take nine seconds.
#[test]
fn replicas_are_placed_as_a_cluster_of_our_own_nodes_places_them() {
    let (dir, file) = twin();
    let mut alone = TWIN.replacen("replicas = 1", "replicas = 0", 1);
    for pair in [["a", "b"], ["b", "c"], ["c", "a"]] {
        alone = alone.replacen(&format!("{pair:?}"), &format!("{:?}", &pair[..1]), 1);
    }
    std::fs::write(&file, alone).unwrap();
    let args = [file.to_str().unwrap(), "--replicas", "logs=1", "--draws", "1"];
    let found = answer(dir.path(), &args);
    let first = &found["answers"][0];
    assert!((5.5..7.5).contains(&green_s(first)), "{first}");
}

/// Its copies are made elsewhere from 61 s on, for six seconds; it is back before they are there.
#[test]
fn a_node_that_comes_back_late_has_its_copies_at_once_as_in_the_field() {
    let (dir, file) = twin();
    let green_with = |returns: &str| {
        let setting =
            format!("[settings]\n\"narrows.allocation.return_to_files\" = \"{returns}\"\n");
        std::fs::write(&file, TWIN.replacen("[settings]\n", &setting, 1)).unwrap();
        let args = [file.to_str().unwrap(), "--restart", "c", "--down", "63s", "--draws", "1"];
        green_s(&answer(dir.path(), &args)["answers"][0])
    };
    let (returns, stays) = (green_with("true"), green_with("false"));
    assert!((63.0..66.0).contains(&returns) && stays > returns + 1.5, "{returns} s, {stays} s");
}

#[test]
fn a_shard_with_one_copy_is_said_to_be_away_with_its_node() {
    let (dir, file) = twin();
    let alone = TWIN.replacen("copies = [\"c\", \"a\"]", "copies = [\"c\"]", 1);
    std::fs::write(&file, alone.replacen("replicas = 1", "replicas = 0", 1)).unwrap();
    let alone = std::fs::read_to_string(&file).unwrap();
    let alone = alone.replacen("[\"a\", \"b\"]", "[\"a\"]", 1);
    std::fs::write(&file, alone.replacen("[\"b\", \"c\"]", "[\"b\"]", 1)).unwrap();
    let path = file.to_str().unwrap();
    let away = |args: &[&str]| {
        let output =
            asked(dir.path(), &[&[path], args, &["--down", "5s", "--draws", "1"]].concat());
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        said(&output)
    };
    // Whoever names it twice means it once.
    let one = away(&["--restart", "c", "--restart", "c"]);
    assert!(one.starts_with("c restarts\n"), "{one}");
    assert!(one.contains("the node is away") && !one.contains("the allocator"), "{one}");
    assert!(one.contains("logs[2] has one copy, so that the cluster was red"), "{one}");
    let all = away(&["--rolling-restart"]);
    assert!(all.contains("3 shards (logs[0] is the first) have one copy, so"), "{all}");
}

/// What a node of ours reads ahead is 32 MB at most, which two chunks of 24 MB exceed; a node of the field has no such
/// bound, and terabytes are copied in steps as large.
#[test]
fn the_memory_of_our_own_nodes_holds_no_twin() {
    let (dir, file) = twin();
    let large = "[settings]\n\"indices.recovery.chunk_size\" = \"24mb\"";
    let twin = TWIN.replacen("[settings]", large, 1).replace("\"30mb\"", "\"300mb\"");
    std::fs::write(&file, twin).unwrap();
    let chunks = "indices.recovery.max_concurrent_file_chunks=4";
    let args = [file.to_str().unwrap(), "--lose", "c", "--set", chunks, "--draws", "1"];
    let found = answer(dir.path(), &args);
    for answer in found["answers"].as_array().unwrap() {
        let phases = answer["phases"].as_array().unwrap();
        let copying = phases.iter().find(|phase| phase["what"] == "copying").unwrap();
        let limits = copying["limits"].to_string();
        assert!(limits.contains("throttle") && !limits.contains("memory"), "{limits}");
    }
    let text = said(&asked(dir.path(), &args));
    assert!(text.contains(&format!("What holds it with {}", chunks.replace('=', " = "))), "{text}");
}

/// 100 documents a second go on to an index of 30 000: what a node misses in 20 s is less than a tenth of a shard, and
/// is brought by operations, but for copies that were primaries. 1000 a second are more: the primary gives them up once
/// it has committed them.
#[test]
fn writes_go_on_beside_restarts_and_come_back_by_operations_or_by_files() {
    let (dir, file) = twin();
    let path = file.to_str().unwrap();
    let restart = |args: &[&str]| {
        let restart = ["--rolling-restart", "--down", "20s", "--draws", "1"];
        let found = answer(dir.path(), &[&[path], &restart[..], args].concat());
        let first = found["answers"][0].clone();
        let words = first["came_back"][0].as_str().unwrap_or_default().to_owned();
        (words, first["bytes"].as_u64().unwrap())
    };
    let (quiet, _) = restart(&[]);
    assert!(quiet.starts_with("Nothing was written meanwhile"), "{quiet}");
    let (few, few_bytes) = restart(&["--indexing", "100"]);
    assert!(!few.contains("no copy came back by operations"), "{few}");
    let number = |before: &str| -> u64 {
        let words = few.split(before).next().unwrap();
        words.rsplit(' ').next().unwrap().parse().unwrap()
    };
    assert!(number(" documents were written") > 4000, "a minute and more: {few}");
    assert!(
        number(" operations of ") > 600,
        "two copies missed 20 s of a third of the writes: {few}"
    );
    // What is written is kept in the plan; it goes on beside restarts alone.
    let saved = dir.path().join("saved.toml");
    let saved = saved.to_str().unwrap();
    let output = asked(dir.path(), &[path, "--indexing", "100", "--save", saved]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let text = std::fs::read_to_string(saved).unwrap();
    assert!(text.contains("documents_per_s = 100.0"), "{text}");
    let lost = answer(dir.path(), &[saved, "--lose", "c", "--draws", "1"]);
    let left_out = lost["left_out"][0].as_str().unwrap();
    assert!(left_out.starts_with("100 documents a second"), "{left_out}");
    failed(&asked(dir.path(), &[path, "--rolling-restart", "--flush"]), 2, &["--indexing RATE"]);
    let commits = "settings = { \"index.translog.flush_threshold_size\" = \"256kb\", ";
    std::fs::write(&file, TWIN.replacen("settings = { ", commits, 1)).unwrap();
    let (many, bytes) = restart(&["--indexing", "1000", "--flush"]);
    assert!(bytes > few_bytes && many.contains("no copy came back by operations"), "{many}");
}

/// c's two copies of 30 MB leave it, one to a and one to b, as nodes hold no shard twice: 10 MB/s out of each primary
/// and into each node.
#[test]
fn a_drained_node_ends_empty_and_what_cannot_leave_it_is_said_before() {
    let (dir, file) = twin();
    let path = file.to_str().unwrap();
    let found = answer(dir.path(), &[path, "--drain", "c", "--draws", "1"]);
    let first = &found["answers"][0];
    assert_eq!(found["until"], "empty");
    assert_eq!(mb(first), 2 * 30, "{first}");
    assert!((3.0..8.0).contains(&green_s(first)), "{first}");
    let last = first["curve"].as_array().unwrap().last().unwrap();
    assert_eq!((&last["copies"], &last["bytes"]), (&json!(0), &json!(0)), "{first}");
    let start = &first["curve"][0];
    assert_eq!(start["copies"], 2, "what has not begun to move is outstanding: {first}");
    let said_of = |args: &[&str]| {
        let output = asked(dir.path(), &[&[path], args].concat());
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
        said(&output)
    };
    // One node is left, and each shard has two copies.
    let words = said_of(&["--drain", "b", "--drain", "c"]);
    assert!(words.contains("copies of 3 shards (logs[0] is the first) would stay:"), "{words}");
    let nobody = "cluster.routing.allocation.exclude._name=nobody";
    let words = said_of(&["--drain", "c", "--set", nobody]);
    assert!(words.contains("no node is called \"nobody\""), "{words}");
    // Three nodes have no room for four copies of a shard.
    let words = said_of(&["--replicas", "logs=3"]);
    assert!(words.contains("stay yellow: 3 copies have no node left to go to (logs[0]"), "{words}");
    assert!(words.contains("lower number_of_replicas"), "{words}");
    // Two nodes with one replica.
    let pair = TWIN.replacen("nodes = 4", "nodes = 3", 1);
    let pair = pair.replacen("  { name = \"b\", zone = \"east\" },\n", "", 1);
    let pair = pair.replace("[\"a\", \"b\"]", "[\"a\", \"c\"]");
    let pair = pair.replace("[\"b\", \"c\"]", "[\"a\", \"c\"]");
    std::fs::write(&file, pair).unwrap();
    let words = said_of(&["--lose", "c"]);
    assert!(words.contains("stay yellow: 3 copies have no node left to go to (logs[0]"), "{words}");
    let none = "[settings]\n\"cluster.routing.allocation.enable\" = \"none\"";
    std::fs::write(&file, TWIN.replacen("[settings]", none, 1)).unwrap();
    let words = said_of(&["--drain", "c"]);
    assert!(words.contains("cluster.routing.allocation.enable is none"), "{words}");
}

/// A replica that only a may have finds no place, before and after: the cluster is yellow, and c becomes empty all the
/// same.
#[test]
fn a_drained_node_ends_empty_where_the_cluster_is_yellow_for_another_reason() {
    let (dir, file) = twin();
    let pinned = r#"
[[twin.index]]
name = "pinned"
replicas = 1
settings = { "index.routing.allocation.include._name" = "a" }
shard = [{ bytes = "1mb", documents = 100, segments = 1, copies = ["a"] }]

[[variant]]"#;
    std::fs::write(&file, TWIN.replacen("\n[[variant]]", pinned, 1)).unwrap();
    let path = file.to_str().unwrap();
    let found = answer(dir.path(), &[path, "--drain", "c", "--draws", "1"]);
    let first = &found["answers"][0];
    assert_eq!((&found["until"], mb(first)), (&json!("empty"), 2 * 30), "{first}");
    assert!((3.0..8.0).contains(&green_s(first)), "{first}");
    let last = first["curve"].as_array().unwrap().last().unwrap();
    assert_eq!(last["copies"], 1, "the replica that has no place: {first}");
    failed(
        &asked(dir.path(), &[path, "--lose", "c", "--draws", "1"]),
        2,
        &["1 copy has no node left to go to (pinned[0]"],
    );
}

#[test]
fn nodes_that_join_get_their_share_where_rebalancing_is_on() {
    let (dir, file) = twin();
    let path = file.to_str().unwrap();
    failed(
        &asked(dir.path(), &[path, "--add", "1"]),
        2,
        &["cluster.routing.rebalance.enable is none"],
    );
    let settings = "[settings]\n\"cluster.routing.rebalance.enable\" = \"all\"";
    std::fs::write(&file, TWIN.replacen("[settings]", settings, 1)).unwrap();
    let found = answer(dir.path(), &[path, "--add", "1", "--draws", "1"]);
    let first = &found["answers"][0];
    assert_eq!(found["until"], "balanced");
    // Six copies on three nodes: one goes to the fourth, and then no node has two more than another.
    assert_eq!(mb(first), 30, "{first}");
    let left = first["curve"][0]["bytes"].as_u64();
    assert!(left > Some(0) && left <= first["bytes"].as_u64(), "{first}");
    assert!((2.9..6.0).contains(&green_s(first)), "{first}");
    failed(&asked(dir.path(), &[path, "--add", "1", "--like", "aa"]), 2, &[]);
}

/// East has a and b, west has c: with a copy of each shard in both, what is lost with west is not made in east where
/// both are forced.
#[test]
fn a_lost_zone_is_not_refilled_against_forced_awareness() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("twin.toml");
    let awareness = "[settings]\n\"cluster.routing.allocation.awareness.attributes\" = \"zone\"";
    let twin = TWIN.replacen("[settings]", awareness, 1);
    let twin = twin.replacen("copies = [\"a\", \"b\"]", "copies = [\"a\", \"c\"]", 1);
    let path = file.to_str().unwrap();
    std::fs::write(&file, &twin).unwrap();
    let found = answer(dir.path(), &[path, "--lose", "west", "--draws", "1"]);
    assert!(found["answers"][0]["bytes"].as_u64() > Some(80 << 20), "{found}");
    let forced =
        "[settings]\n\"cluster.routing.allocation.awareness.force.zone.values\" = \"east,west\"";
    std::fs::write(&file, twin.replacen("[settings]", forced, 1)).unwrap();
    failed(
        &asked(dir.path(), &[path, "--lose", "west", "--draws", "1"]),
        1,
        &["[zone] = [east], and 1 may be"],
    );
}

/// a is to get a copy of 30 MB: with 165 MB of 1 GB free it may and ends above the low watermark, with 150 MB it may
/// not.
#[test]
fn a_full_disk_is_said_and_is_given_no_copy() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("twin.toml");
    let path = file.to_str().unwrap();
    let enabled = "[settings]\n\"cluster.routing.allocation.disk.threshold_enabled\" = true";
    let with_free = |free: &str| {
        let a = format!("{{ name = \"a\", disk = \"1gb\", disk_free = \"{free}\",");
        let twin = TWIN.replacen("{ name = \"a\",", &a, 1);
        std::fs::write(&file, twin.replacen("[settings]", enabled, 1)).unwrap();
    };
    with_free("165mb");
    let found = answer(dir.path(), &[path, "--lose", "c", "--draws", "1"]);
    let disks = &found["answers"][0]["full_disks"];
    let says = "The disk of a is 86.8 % full in the end, above \
                cluster.routing.allocation.disk.watermark.low [85%]";
    assert_eq!(disks, &json!([says]), "{found}");
    with_free("150mb");
    let output = asked(dir.path(), &[path, "--lose", "c", "--draws", "1"]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let words = "[a]: its disk of 1.07 GB has 157 MB (14.6 %) free";
    assert!(said(&output).contains(words), "{}", said(&output));
}

#[test]
fn a_twin_runs_as_any_plan_and_a_mistake_in_it_is_shown() {
    let (dir, file) = twin();
    let runs = dir.path().join("runs");
    let (path, runs) = (file.to_str().unwrap(), runs.to_str().unwrap());
    let run = narrows(&["run", path, "--on", "virtual", "--runs", runs]);
    assert_eq!(run.status.code(), Some(0), "{}", said(&run));
    assert!(said(&run).contains("as it is"), "{}", said(&run));
    let real = narrows(&["run", path, "--runs", runs]);
    assert_eq!(real.status.code(), Some(2));
    assert!(said(&real).contains("--on virtual"), "{}", said(&real));
    for (from, to, says) in [
        ("copies = [\"a\", \"b\"]", "copies = [\"a\", \"bb\"]", "did you mean \"b\""),
        ("copies = [\"a\", \"b\"]", "copies = [\"a\", \"a\"]", "each once"),
        ("nodes = 4", "nodes = 3", "write nodes = 4"),
        ("lose = [\"c\"]", "lose = [\"north\"]", "no node, zone or attribute"),
        ("lose = [\"c\"]", "", "asked one thing"),
        ("lose = [\"c\"]", "lose = [\"east\"]", "no copy would be left of 1 shard (logs[0])"),
        ("least = \"200MB/s\"", "least = \"2GB/s\"", "least is at most"),
        ("lose = [\"c\"]", "restart = [\"c\"]\nbefore_restart = \"sleep\"", "is \"flush\""),
        ("replicas = 1", "replicas = 1\ndocuments_per_s = -1.0", "documents_per_s"),
    ] {
        std::fs::write(&file, TWIN.replacen(from, to, 1)).unwrap();
        let wrong = narrows(&["run", path, "--on", "virtual", "--runs", runs]);
        let answer = said(&wrong);
        assert_eq!(wrong.status.code(), Some(2), "{to}: {answer}");
        assert!(answer.contains(says), "{to}: {answer}");
    }
}

#[test]
fn a_node_that_is_not_there_is_told_without_a_text_that_nobody_wrote() {
    let (dir, file) = twin();
    let output = asked(dir.path(), &[file.to_str().unwrap(), "--lose", "nope"]);
    let answer = said(&output);
    assert_eq!(output.status.code(), Some(2), "{answer}");
    let says = "narrows: no node, zone or attribute of the twin is called \"nope\"";
    assert!(answer.contains(says), "{answer}");
}

#[test]
fn a_node_is_lost_by_its_id_and_by_any_attribute() {
    let (dir, file) = twin();
    let row = "{ name = \"c\", zone = \"west\", id = \"K3x\", attributes = { rack = \"r3\" } }";
    std::fs::write(&file, TWIN.replacen("{ name = \"c\", zone = \"west\" }", row, 1)).unwrap();
    let file = file.to_str().unwrap();
    for lost in ["K3x", "rack=r3"] {
        let found = answer(dir.path(), &[file, "--lose", lost, "--draws", "1"]);
        assert_eq!(found["lost"], json!(["c"]), "{lost}: {found}");
        assert_eq!(found["asked"], format!("{lost} lost for good"), "{found}");
    }
    failed(&asked(dir.path(), &[file, "--lose", "rack=r9"]), 2, &["west, a", "rack=r3"]);
}

/// No directory can be created below a file, not even by root.
#[test]
fn an_answer_that_cannot_be_kept_is_told() {
    let (dir, file) = twin();
    let below = file.join("runs");
    let (file, below) = (file.to_str().unwrap(), below.to_str().unwrap());
    let asked =
        |runs: &str| narrows(&["what-if", file, "--lose", "c", "--draws", "1", "--runs", runs]);
    let output = asked(below);
    let (shown, stderr) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    assert!(shown.contains("c lost for good") && !shown.contains("Report: "), "{shown}");
    let why = "the answer is not kept: create run directory ";
    assert_eq!(stderr.matches(why).count(), 1, "settings are tried, too: {stderr}");
    failed(&asked(file), 2, &["is a file; write --runs DIR"]);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "the twin alone");
}

#[test]
fn a_cluster_is_imported_read_only_and_asked_without_it() {
    let dir = tempfile::tempdir().unwrap();
    let cluster = Cluster::start(3);
    cluster.set(&json!({ "indices.recovery.max_bytes_per_sec": "20mb" }));
    noise::fill(&cluster, 4, 2000);
    let replicas = json!({ "index.number_of_replicas": 1 }).to_string();
    cluster.ask("PUT", "/logs/_settings", &replicas);
    cluster.until_healthy("wait_for_status=green");
    let before = cluster.settings();
    let file = dir.path().join("twin.toml");
    let file = file.to_str().unwrap();
    let found =
        answer(dir.path(), &[cluster.url(), "--lose", "narrows-2", "--save", file, "--draws", "1"]);
    assert_eq!(cluster.settings(), before, "it only reads");
    let text = std::fs::read_to_string(file).unwrap();
    assert!(text.contains("\"indices.recovery.max_bytes_per_sec\" = \"20mb\""), "{text}");
    let seen = "source = \"assumed; seen: at least ";
    assert!(text.contains(seen) && text.contains("in a recovery of"), "{text}");
    assert!(!text.contains("documents_per_s"), "nobody writes now: {text}");
    let green = green_s(&found["answers"][0]);
    // Its copies of some 7 MB that a node may receive, and send, at 20 MB/s.
    let bytes = found["answers"][0]["bytes"].as_u64().unwrap();
    assert!(bytes > 5_000_000 && green < 10.0, "{found}");
    let hidden = dir.path().join("hidden.toml");
    let hidden = hidden.to_str().unwrap();
    let saved = asked(dir.path(), &[cluster.url(), "--save", hidden, "--anonymous"]);
    assert_eq!(saved.status.code(), Some(0), "{}", said(&saved));
    let second = dir.path().join("second.toml");
    let second = second.to_str().unwrap();
    asked(dir.path(), &[cluster.url(), "--save", second, "--anonymous"]);
    drop(cluster);
    let again = answer(dir.path(), &[file, "--lose", "narrows-2", "--draws", "1"]);
    assert_eq!(green_s(&again["answers"][0]), green, "without the cluster the answer is the same");
    let text = std::fs::read_to_string(hidden).unwrap();
    assert!(!text.contains("logs") && !text.contains("narrows-2"), "{text}");
    let nodes = |text: &str| -> BTreeSet<String> {
        text.split('"').filter(|name| name.starts_with("node-")).map(str::to_owned).collect()
    };
    let others = nodes(&std::fs::read_to_string(second).unwrap());
    assert_eq!(others.len(), 3, "{others:?}");
    assert!(nodes(&text).is_disjoint(&others), "no name is hashed twice alike: {others:?}");
    let run = narrows(&["run", hidden, "--on", "virtual", "--runs", dir.path().to_str().unwrap()]);
    assert_eq!(run.status.code(), Some(0), "{}", said(&run));
}
