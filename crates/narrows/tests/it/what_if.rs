//! `what-if` on clusters of processes and on files: a twin is imported, saved, read again and asked.

use std::collections::BTreeSet;
use std::iter;
use std::path::{Path, PathBuf};
use std::process::Output;

use record::{Line, RunDir};
use serde_json::{Value, json};

use crate::common::cluster::Cluster;
use crate::common::{self, done, failed, narrows, noise, refused, said};

/// A twin of three nodes: six shards of 30 MB with a replica, at a rate that makes their recovery take seconds.
const TWIN: &str = r#"
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

/// Each shard has one copy.
pub(crate) const ALONE: [(&str, &str); 4] = [
    ("replicas = 1", "replicas = 0"),
    ("[\"a\", \"b\"]", "[\"a\"]"),
    ("[\"b\", \"c\"]", "[\"b\"]"),
    ("[\"c\", \"a\"]", "[\"c\"]"),
];

/// A twin in a file, in a directory where the answers to what is asked of it are kept.
pub(crate) struct Twin {
    pub(crate) dir: tempfile::TempDir,
    file: PathBuf,
}

impl Twin {
    pub(crate) fn new() -> Twin {
        Twin::with(&[])
    }

    /// The twin of three nodes with some of its words in place of others.
    pub(crate) fn with(changes: &[(&str, &str)]) -> Twin {
        let dir = tempfile::tempdir().unwrap();
        let twin = Twin { file: dir.path().join("twin.toml"), dir };
        twin.change(changes);
        twin
    }

    /// The same in its file, whatever was changed before.
    pub(crate) fn change(&self, changes: &[(&str, &str)]) {
        let changed = |text: String, (from, to): &(&str, &str)| text.replacen(from, to, 1);
        std::fs::write(&self.file, changes.iter().fold(TWIN.to_owned(), changed)).unwrap();
    }

    pub(crate) fn path(&self) -> &str {
        self.file.to_str().unwrap()
    }

    /// Asks it, in words that blanks part.
    pub(crate) fn asked(&self, question: &str) -> Output {
        let words: Vec<&str> = iter::once(self.path()).chain(question.split(' ')).collect();
        asked(self.dir.path(), &words)
    }

    /// What it answers where nothing is drawn.
    pub(crate) fn answer(&self, question: &str) -> Value {
        common::json(&self.asked(&format!("{question} --draws 1 --json")))
    }

    /// The first of its answers.
    pub(crate) fn first(&self, question: &str) -> Value {
        self.answer(question)["answers"][0].clone()
    }
}

pub(crate) fn asked(dir: &Path, args: &[&str]) -> Output {
    let runs = dir.join("runs");
    let runs = runs.to_str().unwrap();
    narrows(&[&["what-if"], args, &["--runs", runs]].concat())
}

pub(crate) fn green_s(answer: &Value) -> f64 {
    answer["green_s"].as_f64().unwrap()
}

/// How long it takes at least, and how long nodes are away.
fn least_and_away_s(answer: &Value) -> (f64, f64) {
    (answer["between_s"][0].as_f64().unwrap(), answer["away_s"].as_f64().unwrap())
}

/// What was copied; a commit is some kilobytes besides the segments.
fn mb(answer: &Value) -> u64 {
    answer["bytes"].as_u64().unwrap() >> 20
}

/// A second for the node to be missed, a minute of waiting, and two copies of 30 MB, one from a to b and one from b to
/// a: what a node sends and what it receives have 10 MB/s together, so that they take six seconds.
#[test]
fn a_lost_node_takes_the_delay_and_what_the_rate_lets_through() {
    let twin = Twin::new();
    let found = common::json(&twin.asked("--lose c --draws 2 --json"));
    let first = &found["answers"][0];
    let green = green_s(first);
    assert!((66.0..69.0).contains(&green), "{first}");
    assert_eq!(first["draws"], 2);
    let (least, away) = least_and_away_s(first);
    assert!((59.0..62.0).contains(&least) && first["delayed_s"] == least, "a minute: {first}");
    assert!(away == 0.0 && away.is_sign_positive(), "no node is away: {first}");
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
    let set = twin.answer(&format!("--lose west --set {delay}"));
    assert_eq!(green_s(&set["answers"][0]), green, "west is c");
    assert!((16.0..19.0).contains(&green_s(&set["answers"][1])), "{set}");
    assert_eq!(set["tried"], json!([]));
    let text = said(&twin.asked(&format!("--lose c --set {delay} --draws 1")));
    assert!(text.contains("nothing is drawn") && !text.contains("drawn from"), "{text}");
}

#[test]
fn restarts_and_replicas_are_asked_of_the_same_twin() {
    let twin = Twin::new();
    let restarts = twin.first("--rolling-restart --down 20s");
    // Three nodes are away for 20 s each, less than the delay, and have their copies when they are back.
    assert!((60.0..75.0).contains(&green_s(&restarts)), "{restarts}");
    assert_eq!(restarts["bytes"], 0, "{restarts}");
    // Whatever is not modelled, nodes are away for a minute.
    let (least, away) = least_and_away_s(&restarts);
    assert!((59.9..60.1).contains(&away) && least >= away, "{restarts}");
    // One that is away for longer: its copies are made elsewhere in six seconds, and then nothing is held by anything.
    let long = said(&twin.asked("--restart c --down 90s --draws 1"));
    assert!(long.starts_with("c restarts\n"), "{long}");
    let long = twin.first("--restart c --down 90s");
    let phases = long["phases"].as_array().unwrap();
    let copying = phases.iter().find(|phase| phase["what"] == "copying").unwrap();
    let (from, to) = (copying["from_s"].as_f64().unwrap(), copying["to_s"].as_f64().unwrap());
    assert!(from > 60.0 && to < 75.0, "{phases:?}");
    assert_eq!(phases.last().unwrap()["what"], "away", "{phases:?}");
    // Nobody knows how long it is away: draws are from 10 s to 32 s, and from there to 100 s.
    let drawn = common::json(&twin.asked("--restart c --down 10s..100s --draws 3 --json"));
    let first = &drawn["answers"][0];
    assert!((55.0..57.0).contains(&green_s(first)), "{first}");
    let (least, away) = least_and_away_s(first);
    assert!((9.9..32.1).contains(&away) && (away..34.0).contains(&least), "{first}");
    let more = twin.answer("--replicas logs=2");
    assert!((5.0..8.0).contains(&green_s(&more["answers"][0])), "{more}");
    assert_eq!(more["asked"], "logs with 2 replicas");
    failed(&twin.asked("--replicas logs=1"), 2, &["nothing would be copied"]);
}

#[test]
fn a_run_says_what_was_asked_in_the_names_of_the_cluster() {
    let twin = Twin::new();
    let set = "indices.recovery.max_bytes_per_sec=80mb";
    let text = said(&twin.asked(&format!("--drain b --set {set} --draws 1")));
    assert!(text.starts_with("everything is moved away from b\n"), "{text}");
    let runs = twin.dir.path().join("runs");
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

/// Copies wait for no node here: they are made elsewhere at once, while what the node knew of its own is forgotten.
#[test]
fn what_is_copied_is_what_came_back() {
    let first = Twin::with(&[("\"1m\"", "\"0s\"")]).first("--rolling-restart --down 20s");
    let copied = record::units::show_bytes(first["bytes"].as_u64().unwrap());
    let words = first["came_back"][0].as_str().unwrap();
    assert!(words.ends_with(&format!(": 0 operations and {copied} of files")), "{first}");
}

/// A replica that was missing is made as soon as the twin may do so, some milliseconds before it is asked for more.
#[test]
fn a_copy_that_was_missing_is_copied_with_those_that_are_asked_for() {
    let twin = Twin::with(&[("[\"a\", \"b\"]", "[\"a\"]")]);
    let first = twin.first("--replicas logs=2 --rtt 20ms");
    assert_eq!(mb(&first), 4 * 30, "{first}");
}

/// The twin's manager stands for no node: a cluster of these three nodes gives each of them one replica, so that each
/// sends 30 MB and receives 30 MB. Three copies that share one node's 10 MB/s would take nine seconds.
#[test]
fn replicas_are_placed_as_a_cluster_of_our_own_nodes_places_them() {
    let first = Twin::with(&ALONE).first("--replicas logs=1");
    assert!((5.5..7.5).contains(&green_s(&first)), "{first}");
}

/// Its copies are made elsewhere from 61 s on, for six seconds; it is back before they are there.
#[test]
fn a_node_that_comes_back_late_has_its_copies_at_once_as_in_the_field() {
    let green_with = |returns: &str| {
        let setting =
            format!("[settings]\n\"narrows.allocation.return_to_files\" = \"{returns}\"\n");
        let twin = Twin::with(&[("[settings]\n", &setting)]);
        green_s(&twin.first("--restart c --down 63s"))
    };
    let (returns, stays) = (green_with("true"), green_with("false"));
    assert!((63.0..66.0).contains(&returns) && stays > returns + 1.5, "{returns} s, {stays} s");
}

#[test]
fn a_shard_with_one_copy_is_said_to_be_away_with_its_node() {
    let twin = Twin::with(&ALONE);
    let away = |question: &str| done(&twin.asked(&format!("{question} --down 5s --draws 1")));
    // Whoever names it twice means it once.
    let one = away("--restart c --restart c");
    assert!(one.starts_with("c restarts\n"), "{one}");
    assert!(one.contains("the node is away") && !one.contains("the allocator"), "{one}");
    assert!(one.contains("logs[2] has one copy, so that the cluster was red"), "{one}");
    assert!(one.contains("a replica on another node would prevent that"), "{one}");
    let all = away("--rolling-restart");
    assert!(all.contains("3 shards (logs[0] is the first) have one copy, so"), "{all}");
}

/// What a node of ours reads ahead is 32 MB at most, which two chunks of 24 MB exceed; a node of the field has no such
/// bound, and terabytes are copied in steps as large.
#[test]
fn the_memory_of_our_own_nodes_holds_no_twin() {
    let large = "[settings]\n\"indices.recovery.chunk_size\" = \"24mb\"";
    let shard = ("\"30mb\"", "\"300mb\"");
    let twin = Twin::with(&[("[settings]", large), shard, shard, shard]);
    let chunks = "indices.recovery.max_concurrent_file_chunks=4";
    let question = format!("--lose c --set {chunks}");
    let found = twin.answer(&question);
    for answer in found["answers"].as_array().unwrap() {
        let phases = answer["phases"].as_array().unwrap();
        let copying = phases.iter().find(|phase| phase["what"] == "copying").unwrap();
        let limits = copying["limits"].to_string();
        assert!(limits.contains("throttle") && !limits.contains("memory"), "{limits}");
    }
    let text = said(&twin.asked(&format!("{question} --draws 1")));
    assert!(text.contains(&format!("What holds it with {}", chunks.replace('=', " = "))), "{text}");
}

/// 100 documents a second go on to an index of 30 000: what a node misses in 20 s is less than a tenth of a shard, and
/// is brought by operations, but for copies that were primaries. 1000 a second are more: the primary gives them up once
/// it has committed them.
#[test]
fn writes_go_on_beside_restarts_and_come_back_by_operations_or_by_files() {
    let twin = Twin::new();
    let restart = |more: &str| {
        let first = twin.first(&format!("--rolling-restart --down 20s{more}"));
        let words = first["came_back"][0].as_str().unwrap_or_default().to_owned();
        (words, first["bytes"].as_u64().unwrap())
    };
    let (quiet, _) = restart("");
    assert!(quiet.starts_with("Nothing was written meanwhile"), "{quiet}");
    let (few, few_bytes) = restart(" --indexing 100");
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
    done(&twin.asked(&format!("--indexing 100 --save {}", twin.path())));
    let text = std::fs::read_to_string(&twin.file).unwrap();
    assert!(text.contains("documents_per_s = 100.0"), "{text}");
    let lost = twin.answer("--lose c");
    let left_out = lost["left_out"][0].as_str().unwrap();
    assert!(left_out.starts_with("100 documents a second"), "{left_out}");
    let commits = "settings = { \"index.translog.flush_threshold_size\" = \"256kb\", ";
    twin.change(&[("settings = { ", commits)]);
    failed(&twin.asked("--rolling-restart --flush"), 2, &["--indexing RATE"]);
    let (many, bytes) = restart(" --indexing 1000 --flush");
    assert!(bytes > few_bytes && many.contains("no copy came back by operations"), "{many}");
}

/// c's two copies of 30 MB leave it, one to a and one to b, as nodes hold no shard twice: 10 MB/s out of each primary
/// and into each node.
#[test]
fn a_drained_node_ends_empty_and_what_cannot_leave_it_is_said_before() {
    let twin = Twin::new();
    let found = twin.answer("--drain c");
    let first = &found["answers"][0];
    assert_eq!(found["until"], "empty");
    assert_eq!(mb(first), 2 * 30, "{first}");
    assert!((3.0..8.0).contains(&green_s(first)), "{first}");
    let last = first["curve"].as_array().unwrap().last().unwrap();
    assert_eq!((&last["copies"], &last["bytes"]), (&json!(0), &json!(0)), "{first}");
    let start = &first["curve"][0];
    assert_eq!(start["copies"], 2, "what has not begun to move is outstanding: {first}");
    // One node is left, and each shard has two copies.
    let would_stay = "copies of 3 shards (logs[0] is the first) would stay:";
    failed(&twin.asked("--drain b --drain c"), 2, &[would_stay]);
    let nobody = "--drain c --set cluster.routing.allocation.exclude._name=nobody";
    failed(&twin.asked(nobody), 2, &["no node is called \"nobody\""]);
    // Three nodes have no room for four copies of a shard.
    let yellow = "stay yellow: 3 copies have no node left to go to (logs[0]";
    let lower = "lower number_of_replicas";
    failed(&twin.asked("--replicas logs=3"), 2, &[yellow, lower]);
    // Two nodes with one replica.
    twin.change(&[
        ("nodes = 4", "nodes = 3"),
        ("  { name = \"b\", zone = \"east\" },\n", ""),
        ("[\"a\", \"b\"]", "[\"a\", \"c\"]"),
        ("[\"b\", \"c\"]", "[\"a\", \"c\"]"),
    ]);
    let found = twin.answer("--lose c");
    let says = found["answers"][0]["never_green"][0].as_str().unwrap();
    assert!(says.starts_with("3 copies find no place"), "{found}");
    assert_eq!((&found["until"], mb(&found["answers"][0])), (&json!("placed"), 0), "{found}");
    twin.change(&[("[settings]", "[settings]\n\"cluster.routing.allocation.enable\" = \"none\"")]);
    failed(&twin.asked("--drain c"), 2, &["cluster.routing.allocation.enable is none"]);
}

/// Copies of c have no place while b is kept free of copies, and have one where it is not.
#[test]
fn a_filter_that_keeps_copies_away_is_lifted_by_one_without_a_value() {
    let twin = Twin::with(&[
        ("[settings]", "[settings]\n\"cluster.routing.allocation.exclude._name\" = \"b\""),
        ("[\"a\", \"b\"]", "[\"a\", \"c\"]"),
        ("[\"b\", \"c\"]", "[\"a\", \"c\"]"),
    ]);
    let found = twin.answer("--lose c --set cluster.routing.allocation.exclude._name=");
    let (first, lifted) = (&found["answers"][0], &found["answers"][1]);
    assert_eq!((mb(first), mb(lifted)), (0, 3 * 30), "{found}");
    let says = first["never_green"][0].as_str().unwrap();
    assert!(says.starts_with("3 copies find no place"), "{says}");
    assert_eq!((&lifted["never_green"], &lifted["gain"]), (&json!([]), &json!(1.0)), "{found}");
    assert_eq!(lifted["variant"], "cluster.routing.allocation.exclude._name = \"\"");
    failed(&twin.asked("--lose c --set indices.recovery.max_bytes_per_sec="), 2, &["NAME=VALUE"]);
}

/// A replica that only a may have finds no place, before and after: the cluster is yellow, and c becomes empty all the
/// same.
#[test]
fn a_drained_node_ends_empty_where_the_cluster_is_yellow_for_another_reason() {
    let pinned = r#"
[[twin.index]]
name = "pinned"
replicas = 1
settings = { "index.routing.allocation.include._name" = "a" }
shard = [{ bytes = "1mb", documents = 100, segments = 1, copies = ["a"] }]

[[variant]]"#;
    let twin = Twin::with(&[("\n[[variant]]", pinned)]);
    let found = twin.answer("--drain c");
    let first = &found["answers"][0];
    assert_eq!((&found["until"], mb(first)), (&json!("empty"), 2 * 30), "{first}");
    assert!((3.0..8.0).contains(&green_s(first)), "{first}");
    let last = first["curve"].as_array().unwrap().last().unwrap();
    assert_eq!(last["copies"], 1, "the replica that has no place: {first}");
    // What c had is made elsewhere, in the time that it takes without the replica that is never made.
    let found = twin.answer("--lose c");
    let first = &found["answers"][0];
    assert_eq!((&found["until"], mb(first)), (&json!("placed"), 2 * 30), "{first}");
    assert!((66.0..69.0).contains(&green_s(first)), "{first}");
    let says = first["never_green"][0].as_str().unwrap();
    assert!(says.starts_with("1 copy finds no place") && says.contains("of pinned[0]: "), "{says}");
    let points = first["curve"].as_array().unwrap();
    let ends = points.iter().filter(|point| point["t_s"].as_f64() >= Some(green_s(first)));
    assert_eq!(ends.count(), 1, "it is waited for longer, and that is no part of it: {first}");
    let runs = twin.dir.path().join("runs");
    let listed = said(&narrows(&["runs", "--runs", runs.to_str().unwrap()]));
    let lost = listed.lines().find(|line| line.contains("c lost for good: placed after"));
    assert!(lost.is_some_and(|line| line.contains(", but never green")), "{listed}");
    // The next node restarts once all is green.
    let words = ["1 copy finds no place", "take away the replicas that find no place"];
    failed(&twin.asked("--rolling-restart --draws 1"), 1, &words);
}

/// One node has a copy of each shard and no place for their replicas; nothing may be moved for balance.
#[test]
fn a_node_that_joins_an_only_one_takes_the_copies_that_are_missing() {
    let twin = Twin::with(&[
        ("nodes = 4", "nodes = 2"),
        ("  { name = \"b\", zone = \"east\" },\n", ""),
        ("  { name = \"c\", zone = \"west\" },\n", ""),
        ("lose = [\"c\"]", "restart = [\"a\"]"),
        ("[\"a\", \"b\"]", "[\"a\"]"),
        ("[\"b\", \"c\"]", "[\"a\"]"),
        ("[\"c\", \"a\"]", "[\"a\"]"),
    ]);
    let first = twin.first("--add 1");
    assert_eq!(mb(&first), 3 * 30, "{first}");
    assert!((8.5..11.0).contains(&green_s(&first)), "{first}");
    failed(&twin.asked("--lose a"), 2, &["ask first what another one brings"]);
}

#[test]
fn nodes_that_join_get_their_share_where_rebalancing_is_on() {
    let twin = Twin::new();
    failed(&twin.asked("--add 1"), 2, &["cluster.routing.rebalance.enable is none"]);
    twin.change(&[("[settings]", "[settings]\n\"cluster.routing.rebalance.enable\" = \"all\"")]);
    let found = twin.answer("--add 1");
    let first = &found["answers"][0];
    assert_eq!(found["until"], "balanced");
    // Six copies on three nodes: one goes to the fourth, and then no node has two more than another.
    assert_eq!(mb(first), 30, "{first}");
    let left = first["curve"][0]["bytes"].as_u64();
    assert!(left > Some(0) && left <= first["bytes"].as_u64(), "{first}");
    assert!((2.9..6.0).contains(&green_s(first)), "{first}");
    let near = "no node is called \"aa\"; did you mean \"a\"?\n";
    failed(&twin.asked("--add 1 --like aa"), 2, &[near]);
    failed(&twin.asked("--add 1 --like zzz"), 2, &["no node is called \"zzz\"; there are a, b, c"]);
}

/// East has a and b, west has c: with a copy of each shard in both, what is lost with west is not made in east where
/// both are forced.
#[test]
fn a_lost_zone_is_not_refilled_against_forced_awareness() {
    let awareness = "[settings]\n\"cluster.routing.allocation.awareness.attributes\" = \"zone\"";
    let both = ("copies = [\"a\", \"b\"]", "copies = [\"a\", \"c\"]");
    let twin = Twin::with(&[("[settings]", awareness), both]);
    let first = twin.first("--lose west");
    assert!(first["bytes"].as_u64() > Some(80 << 20), "{first}");
    let forced =
        "[settings]\n\"cluster.routing.allocation.awareness.force.zone.values\" = \"east,west\"";
    twin.change(&[("[settings]", awareness), both, ("[settings]", forced)]);
    let never = twin.first("--lose west")["never_green"].to_string();
    assert!(never.contains("[zone] = [east], and 1 may be"), "{never}");
}

/// a is to get a copy of 30 MB: with 165 MB of 1 GB free it may and ends above the low watermark, with 150 MB it may
/// not.
#[test]
fn a_full_disk_is_said_and_is_given_no_copy() {
    let enabled = "[settings]\n\"cluster.routing.allocation.disk.threshold_enabled\" = true";
    let with_free = |free: &str| {
        let a = format!("{{ name = \"a\", disk = \"1gb\", disk_free = \"{free}\",");
        Twin::with(&[("{ name = \"a\",", &a), ("[settings]", enabled)])
    };
    let first = with_free("165mb").first("--lose c");
    let says = "The disk of a is 86.8 % full in the end, above \
                cluster.routing.allocation.disk.watermark.low [85%]";
    assert_eq!(first["full_disks"], json!([says]), "{first}");
    let words = "[a]: its disk of 1.07 GB has 157 MB (14.6 %) free";
    let first = with_free("150mb").first("--lose c");
    assert!(first["never_green"].to_string().contains(words) && mb(&first) == 30, "{first}");
}

#[test]
fn a_twin_runs_as_any_plan_and_a_mistake_in_it_is_shown() {
    let twin = Twin::new();
    let runs = twin.dir.path().join("runs");
    let run = ["run", twin.path(), "--runs", runs.to_str().unwrap()];
    let in_virtual_time = [&run[..], &["--on", "virtual"]].concat();
    let ran = done(&narrows(&in_virtual_time));
    assert!(ran.contains("as it is"), "{ran}");
    refused(&run, &["--on virtual"]);
    for (from, to, says) in [
        ("copies = [\"a\", \"b\"]", "copies = [\"a\", \"bb\"]", "did you mean \"b\""),
        ("copies = [\"a\", \"b\"]", "copies = [\"a\", \"a\"]", "each once"),
        ("nodes = 4", "nodes = 3", "write nodes = 4"),
        ("lose = [\"c\"]", "lose = [\"north\"]", "no node, zone or attribute"),
        ("lose = [\"c\"]", "", "asked one thing"),
        ("lose = [\"c\"]", "lose = [\"east\"]", "no copy would be left of 1 shard (logs[0])"),
        ("least = \"200MB/s\"", "least = \"2GB/s\"", "least is at most"),
        ("lose = [\"c\"]", "lose = [\"c\"]\ndown = \"1m\"", "down is for nodes that restart"),
        ("lose = [\"c\"]", "restart = [\"c\"]\nbefore_restart = \"sleep\"", "is \"flush\""),
        ("replicas = 1", "replicas = 1\ndocuments_per_s = -1.0", "documents_per_s"),
    ] {
        twin.change(&[(from, to)]);
        refused(&in_virtual_time, &[says]);
    }
}

#[test]
fn a_node_is_lost_by_its_id_and_by_any_attribute() {
    let row = "{ name = \"c\", zone = \"west\", id = \"K3x\", attributes = { rack = \"r3\" } }";
    let twin = Twin::with(&[("{ name = \"c\", zone = \"west\" }", row)]);
    for lost in ["K3x", "rack=r3"] {
        let found = twin.answer(&format!("--lose {lost}"));
        assert_eq!(found["lost"], json!(["c"]), "{lost}: {found}");
        assert_eq!(found["asked"], format!("{lost} lost for good"), "{found}");
    }
    failed(&twin.asked("--lose rack=r9"), 2, &["west, a", "rack=r3"]);
    // A name comes before a zone of that name.
    let zone = "{ name = \"c\", zone = \"a\" }";
    twin.change(&[("{ name = \"c\", zone = \"west\" }", zone)]);
    assert_eq!(twin.answer("--lose a")["lost"], json!(["a"]));
}

/// No directory can be created below a file, not even by root.
#[test]
fn an_answer_that_cannot_be_kept_is_told() {
    let twin = Twin::new();
    let file = twin.path();
    let asked =
        |runs: &str| narrows(&["what-if", file, "--lose", "c", "--draws", "1", "--runs", runs]);
    let output = asked(twin.file.join("runs").to_str().unwrap());
    let (shown, stderr) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    assert!(shown.contains("c lost for good") && !shown.contains("Report: "), "{shown}");
    let why = "the answer is not kept: create run directory ";
    assert_eq!(stderr.matches(why).count(), 1, "settings are tried, too: {stderr}");
    assert_eq!(stderr.matches("os error").count(), 1, "a cause is told once: {stderr}");
    failed(&asked(file), 2, &["is a file; write --runs DIR"]);
    assert_eq!(common::entries(twin.dir.path()), ["twin.toml"]);
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
    let lose = ["--lose", "narrows-2", "--draws", "1", "--json"];
    let args = [&[cluster.url(), "--save", file], &lose[..]].concat();
    let found = common::json(&asked(dir.path(), &args));
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
    done(&asked(dir.path(), &[cluster.url(), "--save", hidden, "--anonymous"]));
    let second = dir.path().join("second.toml");
    let second = second.to_str().unwrap();
    asked(dir.path(), &[cluster.url(), "--save", second, "--anonymous"]);
    drop(cluster);
    let again = common::json(&asked(dir.path(), &[&[file], &lose[..]].concat()));
    assert_eq!(green_s(&again["answers"][0]), green, "without the cluster the answer is the same");
    let text = std::fs::read_to_string(hidden).unwrap();
    assert!(!text.contains("logs") && !text.contains("narrows-2"), "{text}");
    let nodes = |text: &str| -> BTreeSet<String> {
        text.split('"').filter(|name| name.starts_with("node-")).map(str::to_owned).collect()
    };
    let others = nodes(&std::fs::read_to_string(second).unwrap());
    assert_eq!(others.len(), 3, "{others:?}");
    assert!(nodes(&text).is_disjoint(&others), "no name is hashed twice alike: {others:?}");
    done(&narrows(&["run", hidden, "--on", "virtual", "--runs", dir.path().to_str().unwrap()]));
}
