//! `steer` on a cluster of real processes: it raises what holds, and everything is as it was at the end.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use record::{Line, RunDir, Status};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::common::busy::BusyWay;
use crate::common::cluster::Cluster;
use crate::common::steered::{Steering, Way, journals, steer};
use crate::common::{
    BINARY, done, entries, failed, narrows, noise, restore, said, signal, spawned,
};

const LIMIT: &str = "indices.recovery.max_bytes_per_sec";
const LEASE: &str = "cluster.metadata.narrows_steerer";
/// What somebody set before we came.
const FOUND: &str = "1mb";

/// A cluster that recovers 100 MB at 1 MB/s.
pub fn recovering() -> Cluster {
    let cluster = Cluster::start(2);
    cluster.set(&persistent());
    noise::recover(&cluster, 10_000);
    cluster
}

/// That cluster, and whoever steers it.
fn steered(more: &[&str]) -> (Cluster, TempDir, Steering) {
    let (cluster, dir) = (recovering(), tempfile::tempdir().unwrap());
    let steering = Steering::start(steer(cluster.url(), dir.path(), more));
    (cluster, dir, steering)
}

/// The same over a way that is closed once a setting was raised.
fn silenced(more: &[&str]) -> (Cluster, TempDir, Steering, Way) {
    let (cluster, dir) = (recovering(), tempfile::tempdir().unwrap());
    let mut way = Way::to(cluster.url());
    let mut steering = Steering::start(steer(&way.url(), dir.path(), more));
    steering.until("set");
    way.close();
    assert_ne!(cluster.settings()[LIMIT], FOUND);
    (cluster, dir, steering, way)
}

fn persistent() -> Value {
    // Small chunks, so that the rate can be told after seconds.
    json!({ LIMIT: FOUND, "indices.recovery.chunk_size": "64kb" })
}

#[track_caller]
fn everything_is_as_it_was(cluster: &Cluster, runs: &Path) {
    assert_eq!((cluster.settings(), cluster.set_at("transient")), (persistent(), json!({})));
    assert_eq!(journals(runs), Vec::<PathBuf>::new());
}

/// The record of the only run.
#[track_caller]
fn recorded(runs: &Path) -> RunDir {
    let ids: Vec<_> = entries(runs).into_iter().filter(|name| *name != "clusters").collect();
    assert_eq!(ids.len(), 1, "{ids:?}");
    RunDir::open(&runs.join(&ids[0])).unwrap()
}

/// How many runs have begun, and how many ended, as the page of the cluster is told.
fn begun_and_ended(runs: &Path) -> (usize, usize) {
    let folder = std::fs::read_dir(runs.join("clusters")).unwrap().next().unwrap().unwrap();
    let steps = std::fs::read_to_string(folder.path().join("steps.jsonl")).unwrap();
    let count = |step: &str| steps.matches(&format!("\"step\":\"{step}\"")).count();
    (count("begin"), count("end"))
}

/// It is told to stop, ends well, and leaves everything as it was; its last step.
#[track_caller]
fn stops_well(steering: Steering, by: &str, cluster: &Cluster, runs: &Path) -> Value {
    signal(steering.child.id(), by);
    let end = steering.end(0);
    everything_is_as_it_was(cluster, runs);
    end
}

#[test]
fn a_dry_run_says_what_it_would_do_and_changes_nothing() {
    let (cluster, dir, mut steering) = steered(&["--for", "3m"]);
    let would = steering.until("would_set");
    assert_eq!((&would["setting"], &would["from"]), (&json!(LIMIT), &json!(FOUND)), "{would}");
    assert_eq!(would["holds"], "rate limit", "{would}");
    everything_is_as_it_was(&cluster, dir.path());
    let end = stops_well(steering, "INT", &cluster, dir.path());
    assert_eq!(end["step"], "end", "{end}");
    assert!(end["why"].as_str().unwrap().contains("nothing was changed"), "{end}");
    assert!(entries(dir.path()).is_empty(), "not even a run directory");
}

#[test]
fn a_recovery_that_a_throttle_holds_is_steered_and_ctrl_c_puts_everything_back() {
    let more = ["--apply", "--max", "indices.recovery.max_bytes_per_sec=2mb"];
    let (cluster, dir, mut steering) = steered(&more);
    let set = steering.until("set");
    assert_eq!((&set["setting"], &set["to"]), (&json!(LIMIT), &json!("2mb")), "{set}");
    assert_eq!(cluster.settings()[LIMIT], "2mb");
    assert!(cluster.settings()[LEASE].is_string(), "it says that it steers");
    let kept = steering.until("keep");
    let got = kept["got"].as_f64().unwrap();
    assert!(got > 1.3, "twice the limit, {got} times the rate: {kept}");
    // Neither does another one steer beside it, nor does a run begin.
    let mut run = Command::new(BINARY);
    run.args(["run", "replica-over-link", "--on", cluster.url(), "--allow-changes", "--runs"]);
    let run = spawned(run.arg(dir.path()));
    let other = steer(cluster.url(), dir.path(), &["--apply"]).output().unwrap();
    for other in [other, run.wait_with_output()] {
        failed(&other, 2, &["changes settings of that cluster already"]);
    }
    assert_eq!(cluster.settings()[LIMIT], "2mb", "and hinders nobody");
    assert_eq!(begun_and_ended(dir.path()), (1, 0), "its page tells of one alone");
    let end = stops_well(steering, "INT", &cluster, dir.path());
    assert!(end["why"].as_str().unwrap().contains("every setting is as it was"), "{end}");
    failed(&restore("last", dir.path()), 0, &["nothing to put back", "goes once all is put back"]);
}

#[test]
fn after_kill_9_restore_puts_everything_back_and_another_one_may_steer() {
    let (cluster, dir, mut steering) = steered(&["--apply"]);
    steering.until("set");
    steering.child.kill();
    assert_ne!(cluster.settings()[LIMIT], FOUND);
    let left = journals(dir.path());
    assert_eq!(left.len(), 1);
    let killed = left[0].parent().unwrap().file_name().unwrap().to_str().unwrap();
    // A later run has changed nothing. The one that has is named, and nothing is done to it unasked.
    let later = dir.path().join("99991231-235959-steer");
    std::fs::create_dir(&later).unwrap();
    std::fs::copy(left[0].with_file_name("manifest.json"), later.join("manifest.json")).unwrap();
    let command = format!("`narrows restore {}`", dir.path().join(killed).display());
    failed(&restore("last", dir.path()), 1, &["nothing to put back", &command]);
    // Nor while the later one lives.
    let journal = later.join("changes.jsonl");
    let lives = std::fs::File::create(&journal).unwrap();
    lives.lock().unwrap();
    failed(&restore("last", dir.path()), 1, &["still lives", &command]);
    std::fs::remove_file(&journal).unwrap();
    assert_ne!(cluster.settings()[LIMIT], FOUND);
    let again = format!("{LIMIT} is \"{FOUND}\" again");
    failed(&restore(killed, dir.path()), 0, &["60.0 s at most", &again]);
    everything_is_as_it_was(&cluster, dir.path());
    assert_eq!(begun_and_ended(dir.path()), (1, 1), "its page shades no more");
}

#[test]
fn the_lease_of_one_who_died_expires() {
    let (cluster, dir) = (&recovering(), tempfile::tempdir().unwrap());
    let mut left = persistent();
    left[LEASE] = json!("20261125-010000-steer-1-0badcafe 7");
    cluster.set(&left);
    // Where nothing can be kept for the page of watch it steers all the same.
    std::fs::write(dir.path().join("clusters"), "").unwrap();
    let mut steering = Steering::start(steer(cluster.url(), dir.path(), &["--apply"]));
    let waits = steering.until("wait");
    assert!(waits["why"].as_str().unwrap().contains("20261125-010000-steer-1-0badcafe"), "{waits}");
    let lease = steering.until("lease");
    assert!(lease["why"].as_str().unwrap().contains("died"), "{lease}");
    let end = stops_well(steering, "TERM", cluster, dir.path());
    let rest = end["why"].as_str().unwrap().strip_prefix("told to stop, after ").unwrap();
    let seconds: f64 = rest.split(' ').next().unwrap().parse().unwrap();
    // `2026-11-25T00:12:03Z`.
    let told_s = |step: &Value| {
        let parts = step["time"].as_str().unwrap()[11..19].split(':');
        parts.fold(0, |sum, part| 60 * sum + part.parse::<i64>().unwrap())
    };
    let since_lease_s = (told_s(&end) - told_s(&lease)).rem_euclid(86_400);
    let is_apart = seconds <= (since_lease_s + 2) as f64;
    assert!(is_apart, "the wait for the lease is no steering: {lease} {end}");
}

#[test]
fn what_somebody_else_sets_meanwhile_stays_and_it_stops() {
    let (cluster, dir, mut steering) = steered(&["--apply"]);
    steering.until("set");
    cluster.set(&json!({ LIMIT: "3mb" }));
    let beside = steering.child.said();
    let end = steering.end(1);
    let beside = beside.collect::<Vec<_>>().join("\n");
    assert!(beside.contains("its last line says why") && !beside.contains(LIMIT), "{beside}");
    for word in ["somebody else", "3mb", LIMIT] {
        assert!(end["why"].as_str().unwrap().contains(word), "{word}: {end}");
    }
    let mut left = persistent();
    left[LIMIT] = json!("3mb");
    assert_eq!(cluster.settings(), left);
    let manifest = recorded(dir.path()).manifest;
    assert_eq!(manifest.status, Status::Failed);
    assert!(manifest.failure.as_ref().is_some_and(|why| why.contains("3mb")), "{manifest:?}");
    assert_eq!(journals(dir.path()), Vec::<PathBuf>::new());
}

#[test]
fn what_helped_stays_where_that_is_wanted() {
    let more = ["--apply", "--keep", "--max", "indices.recovery.max_bytes_per_sec=2mb"];
    let (cluster, dir, mut steering) = steered(&more);
    steering.until("keep");
    signal(steering.child.id(), "TERM");
    steering.end(0);
    let mut left = persistent();
    left[LIMIT] = json!("2mb");
    assert_eq!(cluster.settings(), left, "and no lease");
    assert_eq!(journals(dir.path()), Vec::<PathBuf>::new());
    let (lines, kept) = (recorded(dir.path()).lines, format!("{LIMIT} = 2mb"));
    let told = lines.iter().rev().find_map(|line| match line {
        Line::Fault { what, begins, .. } if what.starts_with(LIMIT) => Some((what, *begins)),
        _ => None,
    });
    assert_eq!(told, Some((&kept, true)), "its page shades it to the end");
}

#[test]
fn a_cluster_that_falls_silent_gets_its_setting_back_as_soon_as_it_answers() {
    let (cluster, dir, mut steering, mut way) = silenced(&["--apply", "--for", "5m"]);
    steering.until("wait");
    // For more than two looks.
    std::thread::sleep(Duration::from_secs(4));
    assert_ne!(cluster.settings()[LIMIT], FOUND);
    way.open();
    let given = steering.until("give_way");
    assert_eq!((&given["setting"], &given["to"]), (&json!(LIMIT), &json!(FOUND)), "{given}");
    stops_well(steering, "INT", &cluster, dir.path());
}

#[test]
fn what_is_owed_to_a_silent_cluster_is_not_kept() {
    let (cluster, dir, mut steering, mut way) = silenced(&["--apply", "--keep"]);
    steering.until("wait");
    // Until it has decided to give way.
    std::thread::sleep(Duration::from_millis(1500));
    way.open();
    stops_well(steering, "TERM", &cluster, dir.path());
}

/// Tells it to stop, and returns once it says that the cluster does not answer.
fn end_in_silence(steering: &mut Steering) {
    signal(steering.child.id(), "TERM");
    let waits = steering.child.said().any(|line| line.contains("tried again for a minute"));
    assert!(waits, "it did not wait");
}

#[test]
fn a_cluster_that_is_silent_at_the_end_is_put_back_as_soon_as_it_answers() {
    let (cluster, dir, mut steering, mut way) = silenced(&["--apply"]);
    end_in_silence(&mut steering);
    way.open();
    steering.end(0);
    everything_is_as_it_was(&cluster, dir.path());
}

#[test]
fn where_it_ends_while_the_cluster_is_silent_the_journal_stays() {
    let (cluster, dir, mut steering, mut way) = silenced(&["--apply", "--keep"]);
    steering.until("wait");
    end_in_silence(&mut steering);
    // Whoever does not want to wait says so.
    signal(steering.child.id(), "TERM");
    steering.end(1);
    assert_ne!(cluster.settings()[LIMIT], FOUND);
    way.open();
    done(&restore("last", dir.path()));
    everything_is_as_it_was(&cluster, dir.path());
}

/// Ctrl-C while a setting is raised: the manager has it in its queue, and would make it once all is over.
#[test]
fn a_raise_that_is_made_after_the_end_is_not_kept() {
    let (cluster, dir) = (&recovering(), tempfile::tempdir().unwrap());
    let way = BusyWay::to(cluster.url());
    way.hold(LIMIT);
    let steering = Steering::start(steer(&way.url, dir.path(), &["--apply", "--keep"]));
    way.until_held();
    signal(steering.child.id(), "TERM");
    let end = steering.end(0);
    let why = end["why"].as_str().unwrap();
    assert!(why.contains(&format!(", with {LIMIT} {FOUND} -> ")), "{why}");
    assert!(why.ends_with(" on trial; what helped: nothing; every setting is as it was"), "{why}");
    way.make_held();
    everything_is_as_it_was(cluster, dir.path());
}

#[test]
fn a_raise_that_is_not_answered_is_taken_back_and_it_goes_on() {
    let (cluster, dir) = (&recovering(), tempfile::tempdir().unwrap());
    let way = BusyWay::to(cluster.url());
    way.hold(LIMIT);
    let more = ["--apply", "--for", "5m", "--timeout", "5s"];
    let mut steering = Steering::start(steer(&way.url, dir.path(), &more));
    let given = steering.until("give_way");
    assert_eq!((&given["setting"], &given["to"]), (&json!(LIMIT), &json!(FOUND)), "{given}");
    assert!(way.has_held());
    assert_eq!(cluster.settings()[LIMIT], FOUND);
    stops_well(steering, "INT", cluster, dir.path());
}

/// Users suffer, and so does whoever wants to help them.
#[test]
fn a_cluster_too_busy_to_give_way_is_asked_again() {
    let (cluster, dir) = (&recovering(), tempfile::tempdir().unwrap());
    let way = BusyWay::to(cluster.url());
    way.hold_and_refuse_after(LIMIT, "logs/_search");
    let (guard, p99) = ("--guard=logs/_search?size=0", "--guard-p99=20s");
    let more = ["--apply", "--for", "5m", "--timeout", "5s", guard, p99];
    let mut steering = Steering::start(steer(&way.url, dir.path(), &more));
    steering.until("set");
    let given = steering.until("give_way");
    assert_eq!((&given["setting"], &given["to"]), (&json!(LIMIT), &json!(FOUND)), "{given}");
    assert!(way.has_held(), "the first time it was not answered");
    assert_eq!(cluster.settings()[LIMIT], FOUND);
    stops_well(steering, "INT", cluster, dir.path());
}

#[test]
fn it_ends_by_itself_once_its_time_is_over() {
    let cluster = Cluster::start(1);
    let output = narrows(&["steer", cluster.url(), "--for", "1s", "--interval", "10s"]);
    assert!(said(&output).contains("end: the time is over"), "{}", said(&output));
}
