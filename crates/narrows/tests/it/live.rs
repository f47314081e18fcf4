//! `watch` and `explain` on clusters of real processes: each injected cause gets its verdict, and what is healthy
//! gets none. The link runs on a thread of its own and the nodes are processes, so asking may block here.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use bytes::Bytes;
use clusters::{ClusterSpec, Clusters, EmbeddedClusters, FaultKind, Faults, TopologySpec};
use serde_json::{Value, json};
use world::{Env, LinkConfig};

use crate::common::{self, BINARY, assert_no_secret, narrows, noise, said};

fn topology() -> TopologySpec {
    let cluster = |name: &str, nodes| ClusterSpec {
        name: name.to_owned(),
        nodes,
        settings: Default::default(),
        attributes: Vec::new(),
    };
    let link = LinkConfig {
        rtt: Duration::from_millis(100),
        rate_bytes_per_s: Some(125_000_000),
        window_bytes: None,
        ..LinkConfig::default()
    };
    TopologySpec {
        clusters: vec![cluster("leader", 2), cluster("follower", 1)],
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
        let body = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
        self.target.request(cluster, method, path, body).await.unwrap().json().unwrap()
    }

    async fn set(&self, cluster: &str, settings: Value) {
        self.ask(cluster, "PUT", "/_cluster/settings", json!({ "persistent": settings })).await;
    }

    /// An index of so many documents of 10 000 bytes that do not compress.
    async fn index(&self, name: &str, shards: u32, documents: u32) {
        self.ask("leader", "PUT", &format!("/{name}"), noise::index(shards)).await;
        for lines in noise::bulks(documents) {
            let path = format!("/{name}/_bulk");
            let answer = self.target.request("leader", "POST", &path, Bytes::from(lines)).await;
            assert_eq!(answer.unwrap().json().unwrap()["errors"], false);
        }
        self.ask("leader", "POST", &format!("/{name}/_flush"), Value::Null).await;
    }

    fn urls(&self, cluster: &str) -> String {
        let nodes = self.target.nodes(cluster);
        let urls: Vec<String> = nodes.iter().map(|node| format!("http://{}", node.http)).collect();
        urls.join(",")
    }

    /// What `explain` finds; it knows a password that the cluster never asks for.
    #[track_caller]
    fn explain(&self, cluster: &str, span: &str) -> Value {
        let urls = self.urls(cluster);
        common::json(&narrows(&["explain", &urls, "--for", span, "--interval", "250ms", "--json"]))
    }

    async fn until_active(&self, cluster: &str, index: &str) {
        loop {
            let path = format!("/{index}/_recovery?active_only=true");
            let active = self.ask(cluster, "GET", &path, Value::Null).await;
            if active
                .pointer(&format!("/{index}/shards/0/index/size/total_in_bytes"))
                .is_some_and(|b| *b != 0)
            {
                return;
            }
            self.env.sleep(Duration::from_millis(50)).await;
        }
    }

    async fn until_green(&self, index: &str) {
        let path = format!("/_cluster/health/{index}?wait_for_status=green&timeout=60s");
        let health = self.ask("leader", "GET", &path, Value::Null).await;
        assert_eq!(health["status"], "green");
    }
}

fn classes(diagnosis: &Value) -> Vec<&str> {
    let findings = diagnosis["findings"].as_array().unwrap();
    findings.iter().map(|finding| finding["class"].as_str().unwrap()).collect()
}

/// Hosts are those of one cluster; the second would not be looked at.
fn two_clusters(lab: &Lab) {
    let (leader, follower) = (lab.urls("leader"), lab.urls("follower"));
    for command in ["explain", "watch"] {
        let refused = narrows(&[command, &leader, &follower, "--for", "1s"]);
        let words = said(&refused);
        assert_eq!(refused.status.code(), Some(2), "{words}");
        assert!(words.contains(&format!("and {follower} of follower")), "{words}");
        assert!(words.contains("give each cluster a command of its own"), "{words}");
    }
}

async fn a_throttle(lab: &Lab) {
    lab.set("leader", json!({"indices.recovery.max_bytes_per_sec": "2mb"})).await;
    lab.ask("leader", "PUT", "/a/_settings", json!({"number_of_replicas": 1})).await;
    lab.until_active("leader", "a").await;
    let found = lab.explain("leader", "4s");
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
    let watched = narrows(&[
        "watch",
        &lab.urls("leader"),
        "--for",
        "3s",
        "--interval",
        "500ms",
        "--record",
        runs,
    ]);
    assert_eq!(watched.status.code(), Some(0), "{}", said(&watched));
    assert!(said(&watched).contains("a[0] leader-"), "{}", said(&watched));
    let explained = narrows(&["explain", "last", "--runs", runs, "--json"]);
    let found: Value = serde_json::from_slice(&explained.stdout).unwrap();
    assert_eq!(classes(&found), ["rate_limit"], "{found:#}");
    let shown = narrows(&["show", "last", "--runs", runs]);
    assert!(said(&shown).contains("max_bytes_per_sec"), "{}", said(&shown));
    let page = narrows(&["report", "last", "--runs", runs]);
    let path = PathBuf::from(String::from_utf8(page.stdout.clone()).unwrap().trim());
    assert!(std::fs::read_to_string(&path).unwrap().contains("rate limit"));
    for output in [&watched, &explained, &shown, &page] {
        assert_no_secret(said(output).as_bytes());
    }
    every_file(dir.path(), &|path| assert_no_secret(&std::fs::read(path).unwrap()));
}

/// Looks that are kept can be had again, to the letter; the password is nowhere.
fn kept_and_looked_at_again(lab: &Lab) {
    let dir = tempfile::tempdir().unwrap();
    let kept = dir.path().join("kept");
    let to = kept.to_str().unwrap();
    let urls = lab.urls("leader");
    let look = ["explain", &urls, "--for", "2s", "--interval", "250ms", "--json", "--record", to];
    let seen = narrows(&look);
    assert_eq!(seen.status.code(), Some(0), "{}", said(&seen));
    let again = narrows(&["explain", to, "--json"]);
    assert_eq!(again.status.code(), Some(0), "{}", said(&again));
    assert_eq!(again.stdout, seen.stdout);
    let found: Value = serde_json::from_slice(&again.stdout).unwrap();
    assert_eq!((classes(&found), &found["format"]), (vec!["rate_limit"], &json!(1)));
    every_file(&kept, &|path| assert_no_secret(&std::fs::read(path).unwrap()));

    let refused = narrows(&look);
    assert_eq!(refused.status.code(), Some(2));
    assert!(said(&refused).contains("holds a transcript already"), "{}", said(&refused));
    let refused = narrows(&["explain", to, "--for", "3s"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(said(&refused).contains("how often somebody looked is over"), "{}", said(&refused));
    is_a_case_of_the_bench(dir.path(), &kept);

    // Whoever recorded was interrupted in the middle of a line.
    let file = kept.join("transcript.jsonl");
    let whole = std::fs::read(&file).unwrap();
    std::fs::write(&file, &whole[..whole.len() * 2 / 3]).unwrap();
    let part = narrows(&["explain", to, "--json"]);
    assert!(said(&part).contains("breaks off"), "{}", said(&part));
    let looks = |output: &std::process::Output| {
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
        let refused = narrows(&["explain", to]);
        assert_eq!(refused.status.code(), Some(2), "{}", said(&refused));
        assert!(said(&refused).contains(words), "{}", said(&refused));
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
    assert_eq!(right.status.code(), Some(0), "{}", said(&right));
    let found: Value = serde_json::from_slice(&right.stdout).unwrap();
    assert_eq!(found["scores"]["ac1"], 1.0, "{found:#}");
    assert_eq!(found["cases"][0]["verdicts"], json!(["rate_limit"]));
    let wrong = scored("name = \"nothing\"\nclasses = []\n");
    assert_eq!(wrong.status.code(), Some(1), "{}", said(&wrong));
    assert!(said(&wrong).contains("1 of 1 recordings"), "{}", said(&wrong));
    let unknown = scored("name = \"a limit\"\nclasses = [\"the_moon\"]\n");
    assert_eq!(unknown.status.code(), Some(2), "{}", said(&unknown));
    assert!(said(&unknown).contains("the_moon") && said(&unknown).contains("rate_limit"));
    std::fs::remove_file(kept.join("case.toml")).unwrap();
    let without = narrows(&["diagnose", "--bench", "--recordings", dir.to_str().unwrap()]);
    assert_eq!(without.status.code(), Some(2), "{}", said(&without));
    assert!(said(&without).contains("write what is right into it"), "{}", said(&without));
}

fn every_file(dir: &Path, look: &dyn Fn(&Path)) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { every_file(&path, look) } else { look(&path) }
    }
}

/// A node that is killed is shown as gone, and picked up when it is back; another host answers meanwhile.
async fn a_node_is_gone_for_a_while(lab: &mut Lab) {
    let mut command = Command::new(BINARY);
    // The killed node stands first, so that its successor has to answer.
    let urls: Vec<String> = lab.urls("leader").split(',').rev().map(str::to_owned).collect();
    command.args(["watch", &urls.join(","), "--json", "--interval", "200ms", "--for", "9s"]);
    let watching = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    lab.env.sleep(Duration::from_secs(2)).await;
    lab.target.begin("leader-1", FaultKind::Kill).await.unwrap();
    lab.env.sleep(Duration::from_secs(2)).await;
    lab.target.end("leader-1", FaultKind::Kill).await.unwrap();
    let output = watching.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let lines: Vec<Value> = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let gone = |line: &Value| line["observation"]["gone"] == json!(["leader-1"]);
    assert!(!gone(&lines[0]) && lines.iter().any(gone), "{lines:?}");
    let last = &lines[lines.len() - 1];
    assert_eq!((&last["observation"]["gone"], &last["trouble"]), (&json!([]), &Value::Null));
    assert_eq!(last["nodes"].as_array().unwrap().len(), 2);
}

async fn a_block_and_then_health(lab: &Lab) {
    lab.ask("leader", "PUT", "/a/_settings", json!({"number_of_replicas": 2})).await;
    let found = lab.explain("leader", "1s");
    assert_eq!(classes(&found), ["allocation_block"], "{found:#}");
    assert_eq!(found["findings"][0]["place"], "same_shard");
    lab.ask("leader", "PUT", "/a/_settings", json!({"number_of_replicas": 0})).await;
    lab.until_green("a").await;
    lab.ask("leader", "PUT", "/a/_settings", json!({"number_of_replicas": 1})).await;
    let found = lab.explain("leader", "2s");
    assert_eq!(classes(&found), Vec::<&str>::new(), "{found:#}");
    assert!(found["headline"].as_str().unwrap().starts_with("healthy"));
}

/// Shards of one copy each that leave a node for a filter, at the pace of the limiter.
async fn copies_that_move(lab: &Lab) {
    let filter = "cluster.routing.allocation.exclude._name";
    let limit = "indices.recovery.max_bytes_per_sec";
    lab.set("leader", json!({ limit: "1mb", filter: "leader-1" })).await;
    lab.until_active("leader", "s").await;
    let found = lab.explain("leader", "3s");
    assert_eq!(classes(&found), ["rate_limit"], "{found:#}");
    let moves = found["healthy"].to_string();
    assert!(moves.contains("from leader-1 (s["), "{found:#}");
    assert!(
        moves.contains(&format!("to leader-0): {filter} = leader-1 wants it away")),
        "{found:#}"
    );
    lab.set("leader", json!({ limit: "-1" })).await;
    let path = "/_cluster/health?wait_for_no_relocating_shards=true&timeout=60s";
    assert_eq!(lab.ask("leader", "GET", path, Value::Null).await["timed_out"], false);
    let found = lab.explain("leader", "1s");
    assert!(!found["healthy"].to_string().contains("leader-1 (s["), "{found:#}");
    lab.set("leader", json!({ filter: null })).await;
}

/// The node of a replica is gone, which holds nothing else, and the replica waits for it.
async fn a_node_that_may_come_back(lab: &mut Lab) {
    let delay = json!({ "index.unassigned.node_left.delayed_timeout": "10m" });
    lab.ask("leader", "PUT", "/a/_settings", delay).await;
    lab.target.begin("leader-1", FaultKind::Kill).await.unwrap();
    let health = "/_cluster/health?wait_for_nodes=1&timeout=30s";
    lab.ask("leader", "GET", health, Value::Null).await;
    let found = lab.explain("leader", "2s");
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
    let found = lab.explain("follower", "4s");
    assert_eq!(classes(&found), ["latency"], "{found:#}");
    let finding = &found["findings"][0];
    let setting = "ccr.indices.recovery.max_concurrent_file_chunks";
    assert_eq!(
        (&finding["lift"]["setting"], &finding["lift"]["to"]),
        (&json!(setting), &json!("10"))
    );
    assert!(finding["doubt"].is_null(), "the round trip is measured: {finding:#}");

    // Eight primaries at once, of which four have a slot.
    let path = "/g/_ccr/follow?wait_for_active_shards=0";
    lab.ask("follower", "PUT", path, follow("s")).await;
    lab.until_active("follower", "g").await;
    let found = lab.explain("follower", "2s");
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
        lab.index("a", 1, 2400).await;
        lab.index("s", 8, 2400).await;
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
        "rate limit",
        "throttle_time_in_millis",
        "node_concurrent_recoveries",
        "threshold",
        "(default 40mb)",
    ] {
        assert!(text.contains(word), "{word}");
    }
}
