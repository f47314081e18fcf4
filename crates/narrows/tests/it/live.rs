//! `watch` and `explain` on clusters of real processes: each injected cause gets its verdict, and what is healthy
//! gets none. The link runs on a thread of its own and the nodes are processes, so asking may block here.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use clusters::{ClusterSpec, Clusters, EmbeddedClusters, FaultKind, Faults, TopologySpec};
use serde_json::{Value, json};
use world::{Env, LinkConfig};

use crate::common::running::Running;
use crate::common::{
    self, BINARY, assert_no_secret, done, failed, files_below, look_until, narrows, printed,
    refused, said, signal, started,
};

fn topology() -> TopologySpec {
    let link = LinkConfig {
        rtt: Duration::from_millis(100),
        rate_bytes_per_s: Some(125_000_000),
        ..LinkConfig::default()
    };
    TopologySpec {
        clusters: vec![ClusterSpec::new("leader", 2), ClusterSpec::new("follower", 1)],
        link: Some(link),
        joined: false,
    }
}

struct Lab {
    env: Env,
    target: EmbeddedClusters,
}

impl Lab {
    async fn start(env: Env) -> Lab {
        let mut target = EmbeddedClusters::new(&env, PathBuf::from(BINARY));
        target.start(&topology()).await.unwrap();
        Lab { env, target }
    }

    async fn ask(&self, cluster: &str, method: &str, path: &str, body: Value) -> Value {
        started::ask(&self.target, cluster, method, path, body).await
    }

    async fn set(&self, cluster: &str, settings: Value) {
        self.ask(cluster, "PUT", "/_cluster/settings", json!({ "persistent": settings })).await;
    }

    fn urls(&self, cluster: &str) -> String {
        started::urls(&self.target, cluster)
    }

    /// What `explain` finds, once that is right; it knows a password that the cluster never asks for.
    #[track_caller]
    fn explain(&self, cluster: &str, span: &str, is_right: impl Fn(&Value) -> bool) -> Value {
        let urls = self.urls(cluster);
        let args = ["explain", &urls, "--for", span, "--interval", "250ms", "--json"];
        look_until(|| common::json(&narrows(&args)), is_right)
    }

    async fn until_active(&self, cluster: &str, index: &str) {
        let path = format!("/{index}/_recovery?active_only=true");
        let size = format!("/{index}/shards/0/index/size/total_in_bytes");
        let is_active = async || {
            let active = self.ask(cluster, "GET", &path, Value::Null).await;
            active.pointer(&size).is_some_and(|bytes| *bytes != 0)
        };
        started::until(&self.env, "a recovery is active", is_active).await;
    }

    async fn until_green(&self, index: &str) {
        let path = format!("/_cluster/health/{index}?wait_for_status=green&timeout=3m");
        let health = self.ask("leader", "GET", &path, Value::Null).await;
        assert_eq!(health["status"], "green");
    }
}

fn classes(diagnosis: &Value) -> Vec<&str> {
    let findings = diagnosis["findings"].as_array().unwrap();
    findings.iter().map(|finding| finding["class"].as_str().unwrap()).collect()
}

/// Whether it was said, in JSON, that a limit holds and nothing else.
fn is_rate_limited(output: &Output) -> bool {
    let found = serde_json::from_slice::<Value>(&output.stdout);
    found.is_ok_and(|found| classes(&found) == ["rate_limit"])
}

/// Hosts are those of one cluster; the second would not be looked at.
fn two_clusters(lab: &Lab) {
    let (leader, follower) = (lab.urls("leader"), lab.urls("follower"));
    for command in ["explain", "watch"] {
        let other = format!("and {follower} of follower");
        let words = [other.as_str(), "give each cluster a command of its own"];
        refused(&[command, &leader, &follower, "--for", "1s"], &words);
    }
}

async fn a_throttle(lab: &Lab) {
    lab.set("leader", json!({"indices.recovery.max_bytes_per_sec": "2mb"})).await;
    lab.ask("leader", "PUT", "/a/_settings", json!({"number_of_replicas": 1})).await;
    lab.until_active("leader", "a").await;
    let found = lab.explain("leader", "4s", |found| classes(found) == ["rate_limit"]);
    assert_eq!(classes(&found), ["rate_limit"], "{found:#}");
    let lift = &found["findings"][0]["lift"];
    assert_eq!(lift["setting"], "indices.recovery.max_bytes_per_sec");
    assert_eq!((&lift["now"], &lift["set_by"]), (&json!("2mb"), &json!("persistent")));
    recorded_and_opened_again(lab);
    kept_and_looked_at_again(lab);
    lab.set("leader", json!({"indices.recovery.max_bytes_per_sec": "-1"})).await;
    lab.until_green("a").await;
}

/// The same recovery watched, recorded, and explained from the record; the password is nowhere.
fn recorded_and_opened_again(lab: &Lab) {
    let dir = tempfile::tempdir().unwrap();
    let runs = dir.path().to_str().unwrap();
    let urls = lab.urls("leader");
    let watch = ["watch", &urls, "--for", "3s", "--interval", "500ms", "--record", runs];
    let explain = ["explain", "last", "--runs", runs, "--json"];
    let both = || (narrows(&watch), narrows(&explain));
    let (watched, explained) = look_until(both, |(_, explained)| is_rate_limited(explained));
    assert!(done(&watched).contains("a[0] leader-"), "{}", said(&watched));
    let found: Value = serde_json::from_slice(&explained.stdout).unwrap();
    assert_eq!(classes(&found), ["rate_limit"], "{found:#}");
    let since = narrows(&["explain", "last", "--runs", runs, "--json", "--diff", "last"]);
    nothing_changed(&since);
    let shown = narrows(&["show", "last", "--runs", runs]);
    assert!(said(&shown).contains("max_bytes_per_sec"), "{}", said(&shown));
    let page = narrows(&["report", "last", "--runs", runs]);
    let path = PathBuf::from(printed(&page).trim());
    assert!(std::fs::read_to_string(&path).unwrap().contains("rate limit"));
    done(&narrows(&["watch", &urls, "--for", "1ms", "--plain", "--record", runs]));
    let of_one = narrows(&["explain", "last", "--runs", runs]);
    failed(&of_one, 2, &["one look is not enough"]);
    assert!(!said(&of_one).contains("--for"), "it is over: {}", said(&of_one));
    for output in [&watched, &explained, &shown, &page] {
        assert_no_secret(said(output).as_bytes());
    }
    no_file_has_the_secret(dir.path());
}

/// Between two looks that are the same, what holds is what held, and nothing came or went.
#[track_caller]
fn nothing_changed(output: &Output) {
    let found = common::json(output);
    let since = &found["since"];
    let held = &since["stayed"][0];
    let sentence = found["findings"][0]["sentence"].as_str().unwrap();
    assert_eq!(held["was"], held["is"], "{since}");
    assert!(held["is"].as_str().unwrap().ends_with(sentence), "{since}");
    for name in ["gone", "came", "nodes_gone", "nodes_came"] {
        assert_eq!(since[name], json!([]), "{name}: {since}");
    }
    assert_eq!(since["settings"], json!({}), "{since}");
}

/// Looks that are kept can be had again, to the letter; the password is nowhere.
fn kept_and_looked_at_again(lab: &Lab) {
    let dir = tempfile::tempdir().unwrap();
    let kept = dir.path().join("kept");
    let to = kept.to_str().unwrap();
    let urls = lab.urls("leader");
    let look = ["explain", &urls, "--for", "4s", "--interval", "250ms", "--json", "--record", to];
    let afresh = || {
        let _ = std::fs::remove_dir_all(&kept);
        narrows(&look)
    };
    let seen = look_until(afresh, is_rate_limited);
    done(&seen);
    let again = narrows(&["explain", to, "--json"]);
    let found = common::json(&again);
    assert_eq!(again.stdout, seen.stdout);
    assert_eq!((classes(&found), &found["format"]), (vec!["rate_limit"], &json!(1)));
    no_file_has_the_secret(&kept);
    nothing_changed(&narrows(&["explain", to, "--json", "--diff", to]));
    let words = said(&narrows(&["explain", to, "--diff", to]));
    assert!(words.contains(&format!("since {to}")) && words.contains("still "), "{words}");

    refused(&look, &["holds a transcript already"]);
    refused(&["explain", to, "--for", "3s"], &["how often somebody looked is over"]);
    is_a_case_of_the_bench(dir.path(), &kept);

    // Whoever recorded was interrupted in the middle of a line.
    let file = kept.join("transcript.jsonl");
    let whole = std::fs::read(&file).unwrap();
    std::fs::write(&file, &whole[..whole.len() * 2 / 3]).unwrap();
    let part = narrows(&["explain", to, "--json"]);
    assert!(said(&part).contains("breaks off"), "{}", said(&part));
    let looks = |output: &Output| {
        serde_json::from_slice::<Value>(&output.stdout).unwrap()["looks"].as_u64().unwrap()
    };
    assert!((2..looks(&seen)).contains(&looks(&part)), "{} looks", looks(&part));
    let text = String::from_utf8(whole).unwrap();
    for (damage, words) in [
        (text.replacen("\"format\":1", "\"format\":7", 1), "in format 7, and this build reads"),
        (text.replacen("{\"clock\"", "{\"clock", 1), "is damaged in line"),
        (String::new(), "does not begin as a transcript does"),
    ] {
        std::fs::write(&file, damage).unwrap();
        refused(&["explain", to], &[words]);
    }
}

/// A recording is scored against what somebody knows of the cause.
fn is_a_case_of_the_bench(dir: &Path, kept: &Path) {
    let scored = |label: &str| {
        std::fs::write(kept.join("case.toml"), label).unwrap();
        let dir = dir.to_str().unwrap();
        narrows(&["diagnose", "--bench", "--recordings", dir, "--json"])
    };
    let right = scored("name = \"a limit\"\nclasses = [\"rate_limit\"]\n");
    let found = common::json(&right);
    assert_eq!(found["scores"]["ac1"], 1.0, "{found:#}");
    assert_eq!(found["cases"][0]["verdicts"], json!(["rate_limit"]));
    failed(&scored("name = \"nothing\"\nclasses = []\n"), 1, &["1 of 1 recordings"]);
    let unknown = scored("name = \"a limit\"\nclasses = [\"the_moon\"]\n");
    failed(&unknown, 2, &["the_moon", "rate_limit"]);
    std::fs::remove_file(kept.join("case.toml")).unwrap();
    let unlabelled = ["diagnose", "--bench", "--recordings", dir.to_str().unwrap()];
    refused(&unlabelled, &["write what is right into it"]);
}

#[track_caller]
fn no_file_has_the_secret(dir: &Path) {
    for path in files_below(dir) {
        assert_no_secret(&std::fs::read(path).unwrap());
    }
}

/// A node that is killed is shown as gone, and picked up when it is back; another host answers meanwhile.
async fn a_node_is_gone_for_a_while(lab: &mut Lab) {
    let mut command = Command::new(BINARY);
    // The killed node stands first, so that its successor has to answer.
    let urls: Vec<String> = lab.urls("leader").split(',').rev().map(str::to_owned).collect();
    command.args(["watch", &urls.join(","), "--json", "--interval", "200ms", "--for", "5m"]);
    let mut watching = Running::start(command.stdout(Stdio::piped()).stderr(Stdio::null()));
    let gone = |look: &Value| look["observation"]["gone"] == json!(["leader-1"]);
    let is_whole = |look: &Value| {
        look["observation"]["gone"] == json!([])
            && look["trouble"].is_null()
            && look["nodes"].as_array().is_some_and(|nodes| nodes.len() == 2)
    };
    assert!(watching.find(is_whole).is_some(), "it is not seen whole");
    lab.target.begin("leader-1", FaultKind::Kill).await.unwrap();
    assert!(watching.find(gone).is_some(), "it is not shown as gone");
    lab.target.end("leader-1", FaultKind::Kill).await.unwrap();
    assert!(watching.find(is_whole).is_some(), "it is not picked up again");
    signal(watching.id(), "INT");
    // Nothing that it says before its end is left in its pipe.
    watching.find(|_| false);
    assert_eq!(watching.wait().unwrap().code(), Some(0));
}

async fn a_block_and_then_health(lab: &Lab) {
    lab.ask("leader", "PUT", "/a/_settings", json!({"number_of_replicas": 2})).await;
    let found = lab.explain("leader", "1s", |found| classes(found) == ["allocation_block"]);
    assert_eq!(classes(&found), ["allocation_block"], "{found:#}");
    assert_eq!(found["findings"][0]["place"], "same_shard");
    lab.ask("leader", "PUT", "/a/_settings", json!({"number_of_replicas": 0})).await;
    lab.until_green("a").await;
    lab.ask("leader", "PUT", "/a/_settings", json!({"number_of_replicas": 1})).await;
    // Where it is still on its way when the look begins, a slow disk or slow cores may hold it.
    let found = lab.explain("leader", "2s", |found| classes(found).is_empty());
    assert_eq!(classes(&found), Vec::<&str>::new(), "{found:#}");
    assert!(found["headline"].as_str().unwrap().starts_with("healthy"));
}

/// Shards of one copy each that leave a node for a filter, at the pace of the limiter.
async fn copies_that_move(lab: &Lab) {
    let filter = "cluster.routing.allocation.exclude._name";
    let limit = "indices.recovery.max_bytes_per_sec";
    lab.set("leader", json!({ limit: "1mb", filter: "leader-1" })).await;
    lab.until_active("leader", "s").await;
    let found = lab.explain("leader", "3s", |found| classes(found) == ["rate_limit"]);
    assert_eq!(classes(&found), ["rate_limit"], "{found:#}");
    let moves = found["healthy"].to_string();
    assert!(moves.contains("from leader-1 (s["), "{found:#}");
    assert!(
        moves.contains(&format!("to leader-0): {filter} = leader-1 wants it away")),
        "{found:#}"
    );
    lab.set("leader", json!({ limit: "-1" })).await;
    let path = "/_cluster/health?wait_for_no_relocating_shards=true&timeout=3m";
    assert_eq!(lab.ask("leader", "GET", path, Value::Null).await["timed_out"], false);
    let moves = |found: &Value| found["healthy"].to_string().contains("leader-1 (s[");
    let found = lab.explain("leader", "1s", |found| !moves(found));
    assert!(!moves(&found), "{found:#}");
    lab.set("leader", json!({ filter: null })).await;
}

/// The node of a replica is gone, which holds nothing else, and the replica waits for it.
async fn a_node_that_may_come_back(lab: &mut Lab) {
    let delay = json!({ "index.unassigned.node_left.delayed_timeout": "10m" });
    lab.ask("leader", "PUT", "/a/_settings", delay).await;
    lab.target.begin("leader-1", FaultKind::Kill).await.unwrap();
    let health = "/_cluster/health?wait_for_nodes=1&timeout=3m";
    lab.ask("leader", "GET", health, Value::Null).await;
    let waits = |found: &Value| found["healthy"].to_string().contains("for a node to come back");
    let found = lab.explain("leader", "2s", waits);
    let said = found["healthy"].to_string();
    assert!(said.contains("replica of a[0] waits for a node to come back"), "{found:#}");
    assert!(said.contains("delayed_timeout = 10:00): "), "{found:#}");
    assert!(said.contains(" left, then another node takes over"), "{found:#}");
    lab.target.end("leader-1", FaultKind::Kill).await.unwrap();
    lab.until_green("a").await;
}

async fn a_long_way(lab: &Lab) {
    let seeds = lab.target.seeds_through_link("leader").join(",");
    lab.set(
        "follower",
        json!({
            "cluster.remote.leader.seeds": seeds,
            "ccr.indices.recovery.chunk_size": "64kb",
            "ccr.indices.recovery.max_concurrent_file_chunks": "2",
        }),
    )
    .await;
    let follow = |leader: &str| json!({"remote_cluster": "leader", "leader_index": leader});
    let path = "/f/_ccr/follow?wait_for_active_shards=0";
    lab.ask("follower", "PUT", path, follow("a")).await;
    lab.until_active("follower", "f").await;
    let found = lab.explain("follower", "4s", |found| {
        classes(found) == ["latency"] && found["findings"][0]["doubt"].is_null()
    });
    assert_eq!(classes(&found), ["latency"], "{found:#}");
    let finding = &found["findings"][0];
    let setting = "ccr.indices.recovery.max_concurrent_file_chunks";
    assert_eq!(
        (&finding["lift"]["setting"], &finding["lift"]["to"]),
        (&json!(setting), &json!("10"))
    );
    assert!(finding["doubt"].is_null(), "the round trip is measured: {finding:#}");

    // Eight primaries at once, of which four have a slot, and have it for a while.
    lab.set("follower", json!({ "ccr.indices.recovery.chunk_size": "8kb" })).await;
    let path = "/g/_ccr/follow?wait_for_active_shards=0";
    lab.ask("follower", "PUT", path, follow("s")).await;
    lab.until_active("follower", "g").await;
    let waits = |found: &Value| classes(found).contains(&"allocation_slots");
    let found = lab.explain("follower", "2s", waits);
    assert!(classes(&found).contains(&"allocation_slots"), "{found:#}");
    let all = found["findings"].as_array().unwrap();
    let slots = all.iter().find(|finding| finding["class"] == "allocation_slots").unwrap();
    let setting = "cluster.routing.allocation.node_initial_primaries_recoveries";
    assert_eq!(slots["lift"]["setting"], setting);
}

#[test]
fn a_node_goes_and_returns() {
    world::real_world::run(1, async |env| {
        let mut lab = Lab::start(env).await;
        a_node_is_gone_for_a_while(&mut lab).await;
        lab.target.stop().await;
    });
}

/// One test, for its clusters and data are dear.
#[test]
fn each_cause_gets_its_verdict() {
    world::real_world::run(1, async |env| {
        let mut lab = Lab::start(env).await;
        // What is looked at goes on for longer than several looks: 80 MB and eight times 5 MB.
        started::fill(&lab.target, "leader", "a", 1, 8000).await;
        started::fill(&lab.target, "leader", "s", 8, 4000).await;
        two_clusters(&lab);
        a_throttle(&lab).await;
        a_block_and_then_health(&lab).await;
        copies_that_move(&lab).await;
        a_node_that_may_come_back(&mut lab).await;
        a_long_way(&lab).await;
        lab.target.stop().await;
    });
}

#[test]
fn the_rules_are_for_operators_to_read() {
    let text = said(&narrows(&["explain", "--rules"]));
    for word in [
        "rate limit", "throttle_time_in_millis", "node_concurrent_recoveries", "threshold",
        "(default 40mb)",
    ] {
        assert!(text.contains(word), "{word}");
    }
}
