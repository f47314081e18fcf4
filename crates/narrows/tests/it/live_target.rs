//! `run --on URL`: a cluster that is already there is left as it was, whatever the end.

use std::fs::File;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::common::answering::answering;
use crate::common::cluster::Cluster;
use crate::common::{
    self, BINARY, done, entries, failed, look_until, said, signal, spawned, until,
};

const THROTTLE: &str = "indices.recovery.max_bytes_per_sec";
const CHUNKS: &str = "indices.recovery.max_concurrent_file_chunks";
/// What a cluster says that it is.
const ROOT: &str = r#"{"cluster_name":"c","cluster_uuid":"u",
    "version":{"number":"2.19.1","distribution":"opensearch"}}"#;

fn run(url: &str, runs: &TempDir, more: &[&str]) -> Command {
    run_plan("replica-over-link", url, runs, more)
}

fn run_plan(plan: &str, url: &str, runs: &TempDir, more: &[&str]) -> Command {
    let mut command = Command::new(BINARY);
    command.args(["run", plan, "--on", url, "--runs"]).arg(runs.path()).args(more);
    command.env_remove("NARROWS_USER").env_remove("NARROWS_PASSWORD");
    command
}

/// The same of a plan that is written here.
fn run_text(plan: &str, url: &str, runs: &TempDir, more: &[&str]) -> Command {
    let file = runs.path().join("plan.toml");
    std::fs::write(&file, plan).unwrap();
    run_plan(file.to_str().unwrap(), url, runs, more)
}

/// A run that is over and has left journals, by name and text.
fn left(journals: &[(&str, &str)]) -> TempDir {
    let run = tempfile::tempdir().unwrap();
    for (name, text) in journals.iter().chain(&[("manifest.json", "{}")]) {
        std::fs::write(run.path().join(name), text).unwrap();
    }
    run
}

/// The first line of the journal of changes on a cluster.
fn journal_of(hosts: &[&str]) -> String {
    let head = json!({ "format": 2, "cluster_uuid": "u", "hosts": hosts });
    format!("{head}\n")
}

fn restoring(run: &TempDir) -> Command {
    let mut command = Command::new(BINARY);
    command.arg("restore").arg(run.path());
    command
}

#[test]
fn nothing_is_written_unless_that_is_allowed() {
    let (cluster, runs) = (Cluster::start(1), tempfile::tempdir().unwrap());
    let output = run(cluster.url(), &runs, &[]).output().unwrap();
    failed(&output, 2, &["--allow-changes"]);
    // Nobody is asked to allow what cannot be done.
    let output = run_plan("remote-recovery", cluster.url(), &runs, &[]).output().unwrap();
    failed(&output, 2, &["give the one that has the data with --leader URL"]);
    assert!(!said(&output).contains("--allow-changes"), "{}", said(&output));
    let output = run(cluster.url(), &runs, &["--rtt", "5ms"]).output().unwrap();
    failed(&output, 2, &["--rtt and --rate are of a link that is made for the run"]);
    assert!(!said(&output).contains("--allow-changes"), "{}", said(&output));
    assert!(entries(runs.path()).is_empty(), "not even a run directory");
    // A cluster that is too small is found before anything is written, too.
    let output = run(cluster.url(), &runs, &["--allow-changes"]).output().unwrap();
    failed(&output, 2, &["has 1 data nodes"]);
    assert_eq!((cluster.settings(), cluster.indices()), (json!({}), vec![]));
}

#[test]
fn where_nobody_answers_no_record_is_begun() {
    let runs = tempfile::tempdir().unwrap();
    let nowhere = "http://127.0.0.1:1";
    let mut run = run(nowhere, &runs, &["--allow-changes"]);
    failed(&run.output().unwrap(), 2, &["nobody listens there", "http://HOST:9200"]);
    assert!(entries(runs.path()).is_empty(), "not even a run directory");
}

/// Where one host stumbles, the other is asked, and would be changed in its place.
#[test]
fn hosts_of_two_clusters_are_not_changed() {
    let (one, other) = (Cluster::start(1), Cluster::start(1));
    let runs = tempfile::tempdir().unwrap();
    let both = format!("{},{}", one.url(), other.url());
    let mut run = run(&both, &runs, &["--allow-changes"]);
    failed(&run.output().unwrap(), 2, &["several hosts are those of one cluster"]);
    assert!(entries(runs.path()).is_empty(), "not even a run directory");
    for cluster in [&one, &other] {
        assert_eq!((cluster.settings(), cluster.indices()), (json!({}), vec![]));
    }
}

#[test]
fn a_run_leaves_settings_and_indices_as_they_were() {
    let (cluster, runs) = (Cluster::start(2), tempfile::tempdir().unwrap());
    let mine = json!({ THROTTLE: "77mb" });
    cluster.set(&mine);
    cluster.ask("PUT", "/logs", r#"{"settings":{"number_of_replicas":0}}"#);
    let more = ["--allow-changes", "--scale", "0.01", "--json", "--variant", "512 KB x 5"];
    let output = run(cluster.url(), &runs, &more).output().unwrap();
    let found = common::json(&output);
    assert_eq!(found["rows"][0]["verified"], true, "{found}");
    assert_eq!(found["rows"][0]["link_share"], Value::Null, "there is no link of ours");
    assert_eq!((cluster.settings(), cluster.indices()), (mine, vec!["logs".to_owned()]));
}

#[test]
fn after_kill_9_restore_puts_everything_back_but_what_others_changed() {
    let (cluster, runs) = (Cluster::start(2), tempfile::tempdir().unwrap());
    cluster.set(&json!({ THROTTLE: "77mb" }));
    let more = ["--allow-changes", "--scale", "0.01", "--laps", "100"];
    let mut killed = spawned(&mut run(cluster.url(), &runs, &more));
    until("a variant begins", || cluster.settings().get(CHUNKS).is_some());
    killed.kill();
    cluster.until_quiet();
    let run = common::only_run(runs.path());
    let (index, run) = (cluster.indices().concat(), run.file_name().unwrap().to_str().unwrap());
    let letters = index.strip_prefix(&format!("narrows-{run}-"));
    assert!(letters.is_some_and(|letters| letters.len() == 8), "another machine's run: {index}");
    // Someone raised it in the meantime.
    cluster.set(&json!({ CHUNKS: "8" }));
    let restore = || {
        let output = common::restore("last", runs.path());
        (output.status.code(), said(&output))
    };
    let (code, said) = restore();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains(CHUNKS) && said.contains("\"8\" now"), "{said}");
    assert!(said.contains("as it was but for what somebody else has changed"), "{said}");
    assert_eq!(cluster.settings(), json!({ THROTTLE: "77mb", CHUNKS: "8" }));
    assert_eq!(cluster.indices(), Vec::<String>::new());
    let (code, said) = restore();
    assert!(code == Some(0) && said.contains("nothing to put back"), "{said}");
}

/// One of two journals is damaged: the cluster of the other is put back all the same.
#[test]
fn a_cluster_that_cannot_be_put_back_keeps_no_other_from_it() {
    let url = answering(|_| Some(("200 OK", ROOT)));
    let leader = journal_of(&[&url]);
    let run = left(&[("changes.jsonl", "damaged\n"), ("changes-leader.jsonl", &leader)]);
    failed(&restoring(&run).output().unwrap(), 1, &["changes.jsonl"]);
    assert!(!run.path().join("changes-leader.jsonl").exists());
}

/// A change of either may be made yet, for some seconds.
#[test]
fn both_clusters_of_a_run_are_put_back_before_either_is_waited_for() {
    const ANSWER: &str =
        r#"{"cluster_uuid":"u","version":{"number":"2.19.1"},"persistent":{},"transient":{}}"#;
    let asked = Arc::new(Mutex::new(String::new()));
    let run = left(&[]);
    for (journal, host) in [("changes.jsonl", 'F'), ("changes-leader.jsonl", 'L')] {
        let noted = asked.clone();
        let url = answering(move |_| {
            noted.lock().unwrap().push(host);
            Some(("200 OK", ANSWER))
        });
        let change = json!({ "change": "settings", "before": { "a": null }, "set": { "a": null } });
        let path = run.path().join(journal);
        std::fs::write(&path, format!("{}{change}\n", journal_of(&[&url, &url]))).unwrap();
        let file = File::options().append(true).open(&path).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(26)).unwrap();
    }
    done(&restoring(&run).output().unwrap());
    let asked = asked.lock().unwrap();
    assert!(asked.find('L') < asked.rfind('F'), "{asked}");
    assert!(!run.path().join("changes-leader.jsonl").exists());
}

#[test]
fn a_cluster_that_is_silent_is_waited_for_as_long_as_is_said() {
    let url = answering(|_| None);
    let run = left(&[("changes.jsonl", &journal_of(&[&url]))]);
    let output = restoring(&run).args(["--timeout", "1500ms"]).output();
    failed(&output.unwrap(), 2, &["1.50 s at most", "within 1.5s"]);
    let (runs, more) = (tempfile::tempdir().unwrap(), ["--allow-changes", "--timeout", "1500ms"]);
    let output = self::run(&url, &runs, &more).output().unwrap();
    failed(&output, 2, &["within 1.5s"]);
    let calibrate = ["calibrate", "--on", url.as_str(), "--runs", runs.path().to_str().unwrap()];
    failed(&common::narrows(&[&calibrate[..], &more].concat()), 2, &["within 1.5s"]);
}

#[test]
fn the_journal_of_a_cluster_that_is_gone_stays_and_it_is_said_how_to_be_rid_of_it() {
    const OTHER: &str = r#"{"cluster_uuid":"v","version":{"number":"2.19.1"}}"#;
    let other = answering(|_| Some(("200 OK", OTHER)));
    let gone = ("http://127.0.0.1:1", "127.0.0.1:1");
    for (url, why) in [gone, (other.as_str(), "the cluster that answers is v")] {
        let run = left(&[("changes.jsonl", &journal_of(&[url]))]);
        let output = restoring(&run).output().unwrap();
        let again = format!("narrows restore {}", run.path().display());
        failed(&output, 2, &[why, "changes.jsonl stays", &again, "gone for good, remove the file"]);
        assert!(!said(&output).contains("write where REST does"), "{}", said(&output));
        assert!(run.path().join("changes.jsonl").exists());
    }
}

/// A run's directory may come from somebody else, whose host would be handed the credentials.
#[test]
fn credentials_go_to_no_host_that_only_a_journal_names() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = asked.clone();
    let url = answering(move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
        Some(("200 OK", ROOT))
    });
    let run = left(&[("changes.jsonl", &journal_of(&[&url]))]);
    let journal = run.path().join("changes.jsonl");
    let restore = |more: &[&str]| {
        let mut command = restoring(&run);
        command.args(more);
        command.env_remove("NARROWS_API_KEY").env_remove("NARROWS_TOKEN");
        command.env("NARROWS_USER", "me").env("NARROWS_PASSWORD", "hush").output().unwrap()
    };
    for more in [vec![], vec!["--on", "http://127.0.0.1:1"]] {
        failed(&restore(&more), 2, &[url.as_str(), "credentials", "say --on URL"]);
        assert_eq!(asked.load(Ordering::Relaxed), 0, "{more:?}");
        assert!(journal.exists(), "{more:?}");
    }
    done(&restore(&["--on", &format!("http://127.0.0.1:1,{url}")]));
    assert!(asked.load(Ordering::Relaxed) > 0 && !journal.exists());
}

#[test]
fn ctrl_c_puts_everything_back() {
    let (cluster, runs) = (Cluster::start(2), tempfile::tempdir().unwrap());
    let more = ["--allow-changes", "--scale", "0.01", "--laps", "100"];
    let mut running = spawned(&mut run(cluster.url(), &runs, &more));
    let mut lines = running.said();
    assert!(lines.any(|line| line.starts_with("recover default")));
    // Nobody pulls the indices away from under a run.
    failed(&common::restore("last", runs.path()), 1, &["still lives", "Ctrl-C"]);
    assert_eq!(cluster.indices().len(), 1);
    signal(running.id(), "INT");
    let rest: Vec<String> = lines.collect();
    assert_eq!(running.wait().unwrap().code(), Some(1), "{rest:?}");
    assert_eq!((cluster.settings(), cluster.indices()), (json!({}), vec![]));
    let run = common::only_run(runs.path());
    assert!(!run.join("changes.jsonl").exists());
}

/// A small replica whose limit is changed while it recovers.
fn changing(changes: &[String]) -> String {
    let bundled = include_str!("../../../../plans/replica-over-link.toml");
    let (head, _) = bundled.split_once("[[variant]]").unwrap();
    let small = head.replace("1_000_000", "10_000").replace("5000", "1000");
    format!(
        "{small}[settings]\n\"{THROTTLE}\" = \"100kb\"\n[[variant]]\nname = \"changed\"\nchange = [{}]\n",
        changes.join(", ")
    )
}

fn change(at: &str, to: &str) -> String {
    format!("{{ at = \"{at}\", settings = {{ \"{THROTTLE}\" = \"{to}\" }} }}")
}

#[test]
fn a_setting_that_a_plan_changes_meanwhile_is_put_back_at_the_end_and_on_ctrl_c() {
    let (cluster, runs) = (Cluster::start(2), tempfile::tempdir().unwrap());
    let mine = json!({ THROTTLE: "77mb" });
    cluster.set(&mine);
    let run = |to: &str, more: &[&str]| {
        run_text(&changing(&[change("1ms", to)]), cluster.url(), &runs, more)
    };
    failed(&run("1024mb", &[]).output().unwrap(), 2, &["--allow-changes"]);
    // The engine keeps it as 1gb.
    let said = done(&run("1024mb", &["--allow-changes"]).output().unwrap());
    assert!(said.contains(&format!("{THROTTLE} is 1024mb from now on")), "{said}");
    assert_eq!((cluster.settings(), cluster.indices()), (mine.clone(), vec![]), "{said}");
    // So slow that it is interrupted long before its end.
    let mut running = spawned(&mut run("20kb", &["--allow-changes"]));
    until("the limit is changed", || cluster.settings()[THROTTLE] == "20kb");
    signal(running.id(), "INT");
    assert_eq!(running.wait().unwrap().code(), Some(1));
    assert_eq!((cluster.settings(), cluster.indices()), (mine, vec![]));
}

/// Whoever runs the cluster lowers the limit while the run changes it.
#[test]
fn a_run_whose_setting_somebody_else_changes_has_failed_and_leaves_that_setting() {
    let (cluster, runs) = (Cluster::start(2), tempfile::tempdir().unwrap());
    // Many changes: whenever the other one comes, one is yet to be made.
    let changes = (1..10).map(|s| change(&format!("{s}s"), &format!("{}kb", 20 + s)));
    let plan = changing(&changes.collect::<Vec<_>>());
    let mut running = spawned(&mut run_text(&plan, cluster.url(), &runs, &["--allow-changes"]));
    let is_changed = |limit: &str| limit.starts_with('2') && limit.ends_with("kb");
    until("the limit is changed", || cluster.settings()[THROTTLE].as_str().is_some_and(is_changed));
    let theirs = json!({ THROTTLE: "10kb" });
    until("the run ends", || {
        cluster.set(&theirs);
        running.try_wait().unwrap().is_some()
    });
    failed(&running.wait_with_output(), 1, &[THROTTLE, "someone else is changing it"]);
    assert_eq!((cluster.settings(), cluster.indices()), (theirs, vec![]));
}

/// Before, allocation was switched off there, and then the run had failed.
#[test]
fn a_plan_that_restarts_nodes_leaves_a_cluster_that_is_there_alone() {
    let (cluster, runs) = (Cluster::start(1), tempfile::tempdir().unwrap());
    let drains = include_str!("../../../../plans/drain-node.toml");
    let restarts = drains.replace("\"drain\"", "{ recover_peers = { restart = 1 } }");
    let more = ["--allow-changes", "--scale", "0.005"];
    let output = run_text(&restarts, cluster.url(), &runs, &more).output().unwrap();
    failed(&output, 2, &["restarts nodes", "--on embedded"]);
    assert_eq!((cluster.settings(), cluster.indices()), (json!({}), vec![]));
}

/// The copies of the run's index leave a node, and nobody else's.
#[test]
fn a_node_of_a_cluster_that_is_there_is_drained_of_the_runs_own_copies_alone() {
    let (cluster, runs) = (Cluster::start(3), tempfile::tempdir().unwrap());
    let mine = json!({ THROTTLE: "77mb" });
    cluster.set(&mine);
    let settings = r#"{"settings":{"number_of_shards":3,"number_of_replicas":1}}"#;
    cluster.ask("PUT", "/logs", settings);
    cluster.until_healthy("wait_for_status=green");
    let where_mine_are = || {
        let path = "/_cat/shards/logs?format=json&h=shard,prirep,node&s=shard,prirep,node";
        cluster.ask("GET", path, "")
    };
    let before = where_mine_are();
    let more = ["--allow-changes", "--scale", "0.005", "--variant", "no throttle"];
    let said = done(&run_plan("drain-node", cluster.url(), &runs, &more).output().unwrap());
    assert!(said.contains("copies left narrows-2"), "{said}");
    assert_eq!(where_mine_are(), before);
    assert_eq!((cluster.settings(), cluster.indices()), (mine, vec!["logs".to_owned()]));
    // Two nodes are too few for two copies and one that is drained: that is found before anything is made.
    let (small, runs) = (Cluster::start(2), tempfile::tempdir().unwrap());
    let output = run_plan("drain-node", small.url(), &runs, &more).output().unwrap();
    failed(&output, 2, &["has 2 data nodes", "takes 3"]);
    assert_eq!((small.settings(), small.indices()), (json!({}), vec![]));
}

/// `remote-recovery` between two clusters that are there, through `_ccr`.
#[test]
fn one_cluster_follows_another_and_both_are_left_as_they_were() {
    let (leader, follower) = (Cluster::start(2), Cluster::start(1));
    let runs = tempfile::tempdir().unwrap();
    let mine = json!({ "ccr.indices.recovery.max_bytes_per_sec": "33mb" });
    follower.set(&mine);
    let more = ["--allow-changes", "--scale", "0.004", "--json", "--leader", leader.url()];
    let variants = ["--variant", "1 MB x 5", "--variant", "5 MB x 1"];
    let more = [&more[..], &variants[..]].concat();
    let output = run_plan("remote-recovery", follower.url(), &runs, &more).output().unwrap();
    let found = common::json(&output);
    for row in found["rows"].as_array().unwrap() {
        assert_eq!((&row["verified"], &row["documents"]), (&true.into(), &10_000.into()), "{row}");
    }
    assert_eq!(found["rows"].as_array().unwrap().len(), 2, "{found}");
    assert_eq!((follower.settings(), follower.indices()), (mine, vec![]));
    assert_eq!((leader.settings(), leader.indices()), (json!({}), vec![]));
    let run = common::only_run(runs.path());
    for journal in ["changes.jsonl", "changes-leader.jsonl"] {
        assert!(!run.join(journal).exists(), "{journal}");
    }
}

#[test]
fn two_clusters_that_are_one_or_read_each_other_already_are_left_alone() {
    let (leader, follower) = (Cluster::start(1), Cluster::start(1));
    let runs = tempfile::tempdir().unwrap();
    let refused = |more: &[&str], words: &str| {
        let more = [&["--allow-changes", "--scale", "0.004"], more].concat();
        let output = run_plan("remote-recovery", follower.url(), &runs, &more).output().unwrap();
        failed(&output, 2, &[words]);
    };
    refused(&["--leader", follower.url()], "the same cluster");
    // Someone reads from a cluster of that name.
    let others = json!({ "cluster.remote.leader.seeds": "127.0.0.1:1" });
    follower.set(&others);
    refused(&["--leader", leader.url()], "cluster.remote.leader.seeds is set");
    let others = json!({ "cluster.remote.leader.seeds": ["127.0.0.1:1"] });
    assert_eq!((follower.settings(), follower.indices()), (others, vec![]));
    assert_eq!((leader.settings(), leader.indices()), (json!({}), vec![]));
}

/// Documents are written and changed while one cluster follows the other; a node is to be killed meanwhile, which is
/// left out.
fn follows() -> String {
    let steps = r#"{ wait = { lasts = "4s" } },
    { fault = { kind = "kill", node = "follower-0", lasts = "1s" } },
    { wait_for_lag = { under = 1_000, within = "5m" } },"#;
    let plan = testbed::plans::following(1, steps).replace("replicas = 1", "replicas = 0");
    let pace =
        |pace: &str| format!("[variant.settings]\n\"narrows.following.pace\" = \"{pace}\"\n");
    format!("{plan}{}[[variant]]\nname = \"field\"\n{}", pace("adaptive"), pace("field"))
}

/// Through `_ccr` and through OpenSearch's plugin: every document of every copy is held against what was answered, and
/// nothing is left on either cluster.
#[test]
fn clusters_follow_each_other_through_the_api_that_they_have() {
    for release in ["elasticsearch-7.10", "opensearch-2"] {
        let (leader, follower) = (Cluster::start_as(release, 1), Cluster::start_as(release, 1));
        let runs = tempfile::tempdir().unwrap();
        let more = ["--allow-changes", "--json", "--leader", leader.url()];
        let output = run_text(&follows(), follower.url(), &runs, &more).output().unwrap();
        let found = common::json(&output);
        let rows = found["rows"].as_array().unwrap();
        assert_eq!(rows.len(), 1, "the variants are one here: {found}");
        let following = &found["following"][0]["laps"][0];
        assert_eq!(
            (&rows[0]["verified"], &rows[0]["variant"]),
            (&json!(true), &json!("as it is set"))
        );
        assert_eq!(following["copies"], 6, "{release}: three of each side: {found}");
        assert!(following["acknowledged"].as_u64() > Some(2_500), "{release}: {found}");
        let said = said(&output);
        assert!(said.contains("Faults are left out"), "{said}");
        for cluster in [&leader, &follower] {
            assert_eq!((cluster.settings(), cluster.indices()), (json!({}), vec![]), "{release}");
        }
        let stats = follower.ask("GET", "/_plugins/_replication/follower_stats", "");
        assert_eq!(stats["num_syncing_indices"], 0, "{stats}");
    }
}

/// What a follower lacks is said by what it refuses to answer, before the leader is looked at.
#[test]
fn a_follower_with_neither_api_is_told_what_it_lacks() {
    const NONE: &str = r#"{"error":"no handler found for uri"}"#;
    let start = || {
        answering(|path| match path {
            "/" => Some(("200 OK", ROOT)),
            _ if path.starts_with("/_cluster/health") => Some(("200 OK", r#"{"status":"green"}"#)),
            _ => Some(("400 Bad Request", NONE)),
        })
    };
    let runs = tempfile::tempdir().unwrap();
    let more = ["--leader", &start(), "--allow-changes"];
    let mut run = run_text(&follows(), &start(), &runs, &more);
    let lacks = [
        "opensearch 2.19.1 has no cross-cluster replication",
        "/_plugins/_replication",
        "/_ccr/stats",
        "opensearch-cross-cluster-replication",
        "nothing was changed",
    ];
    failed(&run.output().unwrap(), 2, &lacks);
}

/// A follower that somebody paused neither reads nor writes: explained through `_ccr` and through OpenSearch's plugin.
#[test]
fn a_paused_follower_is_explained_through_either_api() {
    for (release, follow, pause) in [
        ("elasticsearch-7.10", "/f/_ccr/follow?wait_for_active_shards=1", "/f/_ccr/pause_follow"),
        ("opensearch-2", "/_plugins/_replication/f/_start", "/_plugins/_replication/f/_pause"),
    ] {
        let (leader, follower) = (Cluster::start_as(release, 1), Cluster::start_as(release, 1));
        leader.ask("PUT", "/l", r#"{"settings":{"number_of_replicas":0}}"#);
        leader.ask("PUT", "/l/_doc/1?refresh=true", r#"{"n":1}"#);
        let nodes = leader.ask("GET", "/_nodes/transport", "");
        let seed =
            nodes["nodes"].as_object().unwrap().values().next().unwrap()["transport_address"]
                .clone();
        follower.set(&json!({ "cluster.remote.eu.seeds": seed }));
        let body = match release {
            "opensearch-2" => json!({ "leader_alias": "eu", "leader_index": "l" }),
            _ => json!({ "remote_cluster": "eu", "leader_index": "l" }),
        };
        follower.ask("PUT", follow, &body.to_string());
        // One node has no room for a replica.
        follower.ask("PUT", "/f/_settings", r#"{"index.number_of_replicas":0}"#);
        let green = "/_cluster/health/f?wait_for_status=green&timeout=2m";
        let health = follower.ask("GET", green, "");
        assert_eq!(health["status"], "green", "{release}: {health}");
        let explain = || {
            let args = ["explain", follower.url(), "--for", "1s", "--interval", "250ms", "--json"];
            common::json(&common::narrows(&args))
        };
        let running = look_until(explain, |running| running["findings"] == json!([]));
        assert_eq!(running["findings"], json!([]), "{release}: {running:#}");
        follower.ask("POST", pause, "");
        let is_stopped = |found: &Value| found["findings"][0]["class"] == "follower_stopped";
        let paused = look_until(explain, is_stopped);
        let finding = &paused["findings"][0];
        assert_eq!(finding["class"], "follower_stopped", "{release}: {paused:#}");
        assert!(finding["sentence"].as_str().unwrap().starts_with("f is paused"), "{finding:#}");
        let action = finding["lift"]["action"].as_str().unwrap();
        assert!(
            action.starts_with("POST ") && action.contains("_resume")
                || action.contains("resume_follow")
        );
    }
}

/// What could not all be taken back is refused before anything is made.
#[test]
fn a_plan_that_makes_indices_by_a_pattern_does_not_run_on_clusters_that_are_there() {
    let runs = tempfile::tempdir().unwrap();
    let by_name = follows().replace("    \"index\",\n", "").replace("    \"follow\",\n", "");
    let by_pattern = by_name.replace(
        "    \"start\",\n",
        "    \"start\",\n    { auto_follow = { name = \"all\", patterns = [\"*\"] } },\n",
    );
    let (leader, follower) = (Cluster::start(1), Cluster::start(1));
    let with_leader = ["--allow-changes", "--leader", leader.url()];
    let output = run_text(&by_pattern, follower.url(), &runs, &with_leader).output().unwrap();
    failed(&output, 2, &["a pattern or a rollover", "--on virtual"]);
    let output =
        run_plan("follow-small", follower.url(), &runs, &["--allow-changes"]).output().unwrap();
    failed(&output, 2, &["--leader URL"]);
    assert_eq!((follower.settings(), follower.indices()), (json!({}), vec![]));
}

#[test]
fn a_load_reaches_the_hosts_of_a_cluster_that_is_there() {
    let (cluster, runs) = (Cluster::start(2), tempfile::tempdir().unwrap());
    let more = ["--allow-changes", "--scale", "0.02", "--json", "--variant", "1 replica: none"];
    let output = run_plan("replica-selection", cluster.url(), &runs, &more).output().unwrap();
    let found = common::json(&output);
    let load = &found["loads"][0];
    assert!(load["requests"].as_u64().is_some_and(|requests| requests > 0), "{found}");
    assert_eq!(load["failed"], 0, "{load}");
    let loaded = ["--allow-changes", "--variant", "1 replica, es3 loaded: none"];
    let output = run_plan("replica-selection", cluster.url(), &runs, &loaded).output().unwrap();
    failed(&output, 2, &["\"1 replica, es3 loaded: none\" has faults", "--on embedded"]);
    assert_eq!((cluster.settings(), cluster.indices()), (json!({}), vec![]));
}
