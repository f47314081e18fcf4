//! Copies are moved while clients write and search: nothing is lost, nothing is refused, and whatever fails, the shard
//! goes on.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use crate::common::between::{Between, cluster_behind, starts_a_copy};
use crate::common::{Cluster, ask, eventually, fails_with, raw};
use crate::leases::opening;
use engine::transport::{Request, Response, ShardAction, ShardAnswer};
use engine::{Node, planted};
use policy::retention::Leases;
use serde_json::{Value, json};
use world::{Env, Task};

testbed::both_worlds!(
    a_replica_moves,
    a_primary_moves_under_writes_and_searches,
    a_primary_moves_to_and_fro,
    a_move_is_cancelled,
    a_node_is_drained,
    nodes_are_evened_out_where_that_is_asked_for,
    what_is_above_a_limit_is_moved_and_nothing_goes_where_it_would_be,
    a_source_that_is_killed_leaves_a_whole_shard,
    a_target_that_is_killed_leaves_the_source,
    a_manager_that_stops_meanwhile_finds_the_shard_whole,
    what_is_shown_of_a_move_is_true,
    leases_that_come_late_are_not_taken_by_who_has_taken_over,
    a_primary_that_has_handed_over_ends_no_lease,
    a_primary_that_has_handed_over_counts_no_copies,
    a_primary_that_has_handed_over_reads_what_the_next_one_has;
    real: a_target_that_fails_after_the_hand_off_gives_the_move_up,
);

#[test]
fn planted_bugs_fail_the_tests_that_they_are_for() {
    let late = leases_that_come_late_are_not_taken_by_who_has_taken_over;
    fails_with(planted::OLD_LEASES_TAKEN, late, "the new primary keeps them");
    let counts = a_primary_that_has_handed_over_counts_no_copies;
    fails_with(planted::HANDED_OVER_AND_COUNTING, counts, "it cannot know");
}

/// The node of a copy of shard 0 of index `a`.
fn node_of(cluster: &Cluster, primary: bool) -> String {
    let state = cluster.any().state();
    let shard = state.shard("a", 0).unwrap();
    let copy = shard.copies.iter().find(|copy| copy.primary == primary).unwrap();
    copy.node.clone().unwrap()
}

/// A node that has no copy of shard 0 of index `a`.
fn free_node(cluster: &Cluster) -> String {
    let state = cluster.any().state();
    let shard = state.shard("a", 0).unwrap();
    cluster.nodes.keys().rev().find(|node| shard.on_node(node).is_none()).unwrap().clone()
}

fn number_of(cluster: &Cluster, node: &str) -> usize {
    cluster.nodes.keys().position(|name| name == node).unwrap()
}

fn move_of(from_node: &str, to_node: &str) -> Value {
    json!({ "commands": [
        { "move": { "index": "a", "shard": 0, "from_node": from_node, "to_node": to_node } },
    ] })
}

async fn start_move(cluster: &Cluster, from: &str, to: &str) {
    cluster.must("POST", "/_cluster/reroute", move_of(from, to)).await;
}

async fn wait_for_moves(cluster: &Cluster) {
    let path = "/_cluster/health?wait_for_no_relocating_shards=true&timeout=300s";
    let health = cluster.get(path).await;
    assert_eq!((&health["relocating_shards"], &health["timed_out"]), (&json!(0), &json!(false)));
}

async fn move_copy(cluster: &Cluster, from: &str, to: &str) {
    start_move(cluster, from, to).await;
    wait_for_moves(cluster).await;
}

/// A rate at which a move is under way for long enough to be seen, and meddled with, on the machine.
fn slow(cluster: &Cluster) -> &'static str {
    if cluster.env.is_virtual() { "20kb" } else { "2kb" }
}

/// Recoveries take a while: so many bytes a second, in chunks that are small enough for that to show.
async fn slow_down(cluster: &Cluster, rate: &str) {
    let settings = json!({
        "indices.recovery.max_bytes_per_sec": rate, "indices.recovery.chunk_size": "4kb",
    });
    cluster.set_for_now(settings).await;
}

/// Clients that write and search without a pause, until they are stopped. Nothing that they ask may fail.
struct Clients {
    stop: Rc<Cell<bool>>,
    writers: Vec<Task<u64>>,
    searchers: Vec<Task<u64>>,
}

impl Clients {
    fn start(cluster: &Cluster) -> Clients {
        let stop = Rc::new(Cell::new(false));
        let env = cluster.env.clone();
        let nodes: Vec<Node> = cluster.nodes.values().cloned().collect();
        let writers = nodes.iter().enumerate().map(|(number, node)| {
            let (node, stop, env2) = (node.clone(), stop.clone(), env.clone());
            env.spawn("writes", async move { write(&env2, &node, number, &stop).await })
        });
        let searchers = nodes.iter().map(|node| {
            let (node, stop, env2) = (node.clone(), stop.clone(), env.clone());
            env.spawn("searches", async move { search(&env2, &node, &stop).await })
        });
        Clients { stop: stop.clone(), writers: writers.collect(), searchers: searchers.collect() }
    }

    /// Answers with the documents that were acknowledged.
    async fn stop(self) -> u64 {
        self.stop.set(true);
        let (mut written, mut searched) = (0, 0);
        for writer in self.writers {
            written += writer.await.unwrap();
        }
        for searcher in self.searchers {
            searched += searcher.await.unwrap();
        }
        assert!(written > 0 && searched > 0, "{written} writes, {searched} searches");
        written
    }
}

async fn write(env: &Env, node: &Node, number: usize, stop: &Cell<bool>) -> u64 {
    let mut written = 0;
    while !stop.get() {
        let id = format!("w{number}-{written}");
        let (status, answer) =
            ask(node, "PUT", &format!("/a/_create/{id}"), json!({ "n": 1 })).await;
        assert_eq!(status, 201, "a write while a copy is moved: {answer}");
        written += 1;
        env.sleep(Duration::from_millis(2)).await;
    }
    written
}

async fn search(env: &Env, node: &Node, stop: &Cell<bool>) -> u64 {
    let mut searched = 0;
    while !stop.get() {
        // The virtual world holds no documents that could be fetched.
        let size = if env.is_virtual() { 0 } else { 3 };
        let body = json!({ "query": { "match_all": {} }, "size": size });
        let (status, answer) = ask(node, "POST", "/a/_search", body).await;
        let failed = &answer["_shards"]["failed"];
        assert_eq!((status, failed), (200, &json!(0)), "a search while a copy is moved: {answer}");
        searched += 1;
        env.sleep(Duration::from_millis(3)).await;
    }
    searched
}

/// A move comes to where the target has taken over, and the manager does not hear of that yet.
async fn hand_over(manager: &Between, cluster: &Cluster, from: &str, to: &str) {
    manager.hold(starts_a_copy);
    start_move(cluster, from, to).await;
    eventually(&cluster.env, "the target has taken over", async || manager.held() > 0).await;
}

/// The primary of `a` has come so far, after a follower began for which it keeps operations.
async fn handed_over(env: &Env) -> (Between, Cluster, String, String) {
    let (manager, cluster) = cluster_behind(env, "one", 3, 0).await;
    cluster.create("a", 1, 0).await;
    cluster.index("a", 0, 10).await;
    let (from, to) = (node_of(&cluster, true), free_node(&cluster));
    cluster.ask_node(&from, opening(&cluster, 1)).await.unwrap();
    hand_over(&manager, &cluster, &from, &to).await;
    (manager, cluster, from, to)
}

/// The source sent its leases to the target before it handed over, and they come after that: since then it has more.
async fn leases_that_come_late_are_not_taken_by_who_has_taken_over(env: Env) {
    let (manager, cluster, _, to) = handed_over(&env).await;
    let index_uuid = cluster.any().state().indices["a"].uuid.clone();
    let leases = Leases::default();
    let late = Request::Leases { index_uuid, shard: 0, primary_term: 1, leases };
    cluster.ask_node(&to, late).await.unwrap();
    manager.be_honest();
    wait_for_moves(&cluster).await;
    eventually(&env, "the new primary keeps them", async || {
        let kept = cluster.nodes[&to].retention_leases("a").unwrap_or_default();
        kept.iter().any(|(id, _)| id == "f")
    })
    .await;
}

/// The replicas would take what it sends for the next primary's, of the same term, which may have leases that it lacks.
async fn a_primary_that_has_handed_over_ends_no_lease(env: Env) {
    let (manager, cluster, from, _) = handed_over(&env).await;
    for (period, waits_s) in [("1s", 4), ("12h", 0)] {
        let period = json!({ "index.soft_deletes.retention_lease.period": period });
        cluster.must("PUT", "/a/_settings", period).await;
        env.sleep(Duration::from_secs(waits_s)).await;
    }
    let kept = cluster.nodes[&from].retention_leases("a").unwrap();
    assert!(kept.iter().any(|(id, _)| id == "f"), "{kept:?}");
    manager.be_honest();
    wait_for_moves(&cluster).await;
}

/// The next primary takes writes as soon as the manager says so, which the one before may hear later.
async fn a_primary_that_has_handed_over_counts_no_copies(env: Env) {
    let (manager, cluster) = cluster_behind(&env, "one", 3, 0).await;
    cluster.create("a", 1, 0).await;
    let (from, to) = (node_of(&cluster, true), free_node(&cluster));
    let counted = async || {
        let refresh = Request::Shard("a".to_owned(), 0, ShardAction::Refresh);
        let answer = cluster.ask_node(&from, refresh).await;
        let Ok(Response::Shard(ShardAnswer::Refreshed(copy))) = answer else {
            panic!("the copy is there")
        };
        copy.counted
    };
    assert!(counted().await.is_some());
    hand_over(&manager, &cluster, &from, &to).await;
    assert_eq!(counted().await, None, "it cannot know");
    manager.be_honest();
    wait_for_moves(&cluster).await;
}

/// The source hears late that its target is the primary: until then it must not answer with what it has.
async fn a_primary_that_has_handed_over_reads_what_the_next_one_has(env: Env) {
    let (manager, cluster) = cluster_behind(&env, "one", 3, 0).await;
    cluster.create("a", 1, 0).await;
    // The manager hears of nothing late.
    if node_of(&cluster, true) == "one-0" {
        move_copy(&cluster, "one-0", "one-1").await;
    }
    let path = "/a/_doc/1";
    cluster.must("PUT", path, json!({ "n": 1 })).await;
    let (from, to) = (node_of(&cluster, true), free_node(&cluster));
    hand_over(&manager, &cluster, &from, &to).await;
    let source = cluster.nodes[&from].clone();
    source.cut_off(true);
    manager.be_honest();
    let is_next = async || node_of(&cluster, true) == to;
    eventually(&env, "the target is the primary", is_next).await;
    let written = cluster.must("PUT", path, json!({ "n": 2 })).await;
    assert_eq!(written["_version"], 2, "the next primary has it: {written}");
    let asked = source.clone();
    let reads = async move { ask(&asked, "GET", path, Value::Null).await };
    let reading = env.spawn("reads", reads);
    env.sleep(Duration::from_millis(500)).await;
    source.cut_off(false);
    let (status, found) = reading.await.unwrap();
    assert_eq!((status, &found["_version"]), (200, &json!(2)), "{found}");
    wait_for_moves(&cluster).await;
}

/// The source takes no writes from the hand-off on: its target does not try again for minutes.
async fn a_target_that_fails_after_the_hand_off_gives_the_move_up(env: Env) {
    let cluster = Cluster::holding(&env, "c", 3, ("a", 1, 0), 10).await;
    let (from, to) = (node_of(&cluster, true), free_node(&cluster));
    let uuid = cluster.any().state().indices["a"].uuid.clone();
    // It writes its leases last, and no file can take this place.
    let index_dir = cluster.data_dir(number_of(&cluster, &to)).join("indices").join(uuid);
    std::fs::create_dir_all(index_dir.join("0.leases.json").join("is in the way")).unwrap();
    start_move(&cluster, &from, &to).await;
    let is_given_up = async || {
        let state = cluster.any().state();
        let primary = state.shard("a", 0).unwrap().primary();
        let why = primary.last_failure.as_ref();
        why.is_some_and(|why| why.contains("cannot write the retention leases"))
    };
    let waiting = eventually(&env, "the move is given up", is_given_up);
    env.timeout(Duration::from_secs(60), waiting).await.expect("at once");
    assert_eq!(node_of(&cluster, true), from);
    assert_eq!(cluster.index("a", 10, 20).await, 10);
}

async fn a_replica_moves(env: Env) {
    let cluster = Cluster::holding(&env, "c", 3, ("a", 1, 1), 500).await;
    let (from, to) = (node_of(&cluster, false), free_node(&cluster));
    let clients = Clients::start(&cluster);
    move_copy(&cluster, &from, &to).await;
    env.sleep(Duration::from_millis(200)).await;
    let written = clients.stop().await;
    assert_eq!(node_of(&cluster, false), to);
    cluster.has(2, 500 + written).await;
    // What is left on the disk of the source goes.
    let uuid = cluster.any().state().indices["a"].uuid.clone();
    let dir = cluster.nodes[&from].copy_dir(&uuid, 0);
    eventually(&env, "the files of the source are gone", async || {
        !store::holds_anything(&env.host(&from), &dir).await.unwrap()
    })
    .await;
}

async fn a_primary_moves_under_writes_and_searches(env: Env) {
    let cluster = Cluster::holding(&env, "c", 3, ("a", 1, 0), 500).await;
    let (from, to) = (node_of(&cluster, true), free_node(&cluster));
    let clients = Clients::start(&cluster);
    move_copy(&cluster, &from, &to).await;
    env.sleep(Duration::from_millis(200)).await;
    let written = clients.stop().await;
    let state = cluster.any().state();
    let shard = state.shard("a", 0).unwrap();
    assert_eq!((shard.primary().node.as_ref(), shard.primary_term), (Some(&to), 1));
    assert_eq!(shard.in_sync.len(), 1);
    cluster.has(1, 500 + written).await;
}

async fn a_primary_moves_to_and_fro(env: Env) {
    let cluster = Cluster::holding(&env, "c", 4, ("a", 1, 1), 300).await;
    let clients = Clients::start(&cluster);
    for _ in 0..6 {
        let (from, to) = (node_of(&cluster, true), free_node(&cluster));
        move_copy(&cluster, &from, &to).await;
        let (from, to) = (node_of(&cluster, false), free_node(&cluster));
        move_copy(&cluster, &from, &to).await;
    }
    let written = clients.stop().await;
    let state = cluster.any().state();
    assert_eq!(state.shard("a", 0).unwrap().primary_term, 1, "nothing was lost on the way");
    cluster.has(2, 300 + written).await;
}

async fn a_move_is_cancelled(env: Env) {
    let cluster = Cluster::holding(&env, "c", 3, ("a", 1, 1), 2000).await;
    cluster.post("/a/_flush").await;
    slow_down(&cluster, slow(&cluster)).await;
    let (from, to) = (node_of(&cluster, true), free_node(&cluster));
    start_move(&cluster, &from, &to).await;
    let again = move_of(&from, &to);
    cluster.refuses(400, "cancel that first", "POST", "/_cluster/reroute", again).await;
    env.sleep(Duration::from_millis(300)).await;
    let cancel = json!({ "commands": [{ "cancel": { "index": "a", "shard": 0, "node": to } }] });
    cluster.must("POST", "/_cluster/reroute", cancel).await;
    wait_for_moves(&cluster).await;
    assert_eq!(node_of(&cluster, true), from);
    assert_eq!(cluster.index("a", 2000, 2100).await, 100);
    cluster.has(2, 2100).await;
}

async fn a_node_is_drained(env: Env) {
    let cluster = Cluster::holding(&env, "c", 4, ("a", 4, 1), 800).await;
    let clients = Clients::start(&cluster);
    cluster.set_for_now(json!({ "cluster.routing.allocation.exclude._name": "c-1" })).await;
    eventually(&env, "the node is empty", async || {
        cluster.any().state().copies_on("c-1").next().is_none()
    })
    .await;
    wait_for_moves(&cluster).await;
    let written = clients.stop().await;
    cluster.green("a").await;
    assert_eq!(cluster.counted("a").await["count"], 800 + written);
}

async fn nodes_are_evened_out_where_that_is_asked_for(env: Env) {
    let cluster = Cluster::start(&env, "c", 3).await;
    cluster.set_for_now(json!({ "cluster.routing.allocation.include._name": "c-0,c-1" })).await;
    cluster.create("a", 6, 1).await;
    cluster.index("a", 0, 600).await;
    cluster.set_for_now(json!({ "cluster.routing.allocation.include._name": "" })).await;
    let on = |node: &str| cluster.any().state().copies_on(node).count();
    assert_eq!((on("c-0"), on("c-2")), (6, 0), "nothing is moved by itself");
    let asked = json!({ "index": "a", "shard": 0, "primary": true });
    let said = cluster.must("GET", "/_cluster/allocation/explain", asked).await;
    assert_eq!(said["rebalance_explanation"], "cluster.routing.rebalance.enable is [none]");
    let clients = Clients::start(&cluster);
    cluster.set_for_now(json!({ "cluster.routing.rebalance.enable": "all" })).await;
    eventually(&env, "each node holds as many", async || {
        ["c-0", "c-1", "c-2"].iter().all(|node| on(node) == 4)
    })
    .await;
    wait_for_moves(&cluster).await;
    let written = clients.stop().await;
    assert_eq!(cluster.counted("a").await["count"], 600 + written);
}

async fn what_is_above_a_limit_is_moved_and_nothing_goes_where_it_would_be(env: Env) {
    let cluster = Cluster::start(&env, "c", 3).await;
    cluster.set_for_now(json!({ "cluster.routing.allocation.include._name": "c-0,c-1" })).await;
    cluster.create("a", 6, 0).await;
    cluster.index("a", 0, 600).await;
    cluster.set_for_now(json!({ "cluster.routing.allocation.include._name": "" })).await;
    let on = || ["c-0", "c-1", "c-2"].map(|node| cluster.any().state().copies_on(node).count());
    assert_eq!(on(), [3, 3, 0]);
    let of_index = |most: i32| json!({ "index.routing.allocation.total_shards_per_node": most });
    cluster.must("PUT", "/a/_settings", of_index(2)).await;
    eventually(&env, "one of each node is moved", async || on() == [2, 2, 2]).await;
    wait_for_moves(&cluster).await;
    let asked = json!({ "index": "a", "shard": 0, "primary": true });
    let said = cluster.must("GET", "/_cluster/allocation/explain", asked).await;
    assert!(said.to_string().contains("shards_limit"), "{said}");
    let of_all = json!({ "cluster.routing.allocation.total_shards_per_node": 2 });
    cluster.set_for_now(of_all).await;
    cluster.must("PUT", "/a/_settings", of_index(-1)).await;
    let replicas = json!({ "index.number_of_replicas": 1 });
    cluster.must("PUT", "/a/_settings", replicas).await;
    let health = cluster.get("/_cluster/health").await;
    assert_eq!(health["unassigned_shards"], 6, "{health}");
    assert_eq!(cluster.counted("a").await["count"], 600);
}

async fn a_source_that_is_killed_leaves_a_whole_shard(env: Env) {
    let mut cluster = Cluster::holding(&env, "c", 4, ("a", 1, 1), 2000).await;
    cluster.post("/a/_flush").await;
    // The manager must stay: the primary is brought to another node first.
    if node_of(&cluster, true) == "c-0" {
        let to = free_node(&cluster);
        move_copy(&cluster, "c-0", &to).await;
    }
    slow_down(&cluster, slow(&cluster)).await;
    let (from, to) = (node_of(&cluster, true), free_node(&cluster));
    start_move(&cluster, &from, &to).await;
    env.sleep(Duration::from_millis(300)).await;
    cluster.kill_node(number_of(&cluster, &from)).await;
    slow_down(&cluster, "-1").await;
    assert_eq!(cluster.index("a", 2000, 2100).await, 100);
    cluster.green("a").await;
    let state = cluster.any().state();
    assert_eq!(state.shard("a", 0).unwrap().primary_term, 2, "the replica took over");
    cluster.has(2, 2100).await;
}

async fn a_target_that_is_killed_leaves_the_source(env: Env) {
    let mut cluster = Cluster::holding(&env, "c", 3, ("a", 1, 0), 2000).await;
    cluster.post("/a/_flush").await;
    slow_down(&cluster, slow(&cluster)).await;
    let (from, to) = (node_of(&cluster, true), free_node(&cluster));
    start_move(&cluster, &from, &to).await;
    env.sleep(Duration::from_millis(300)).await;
    cluster.kill_node(number_of(&cluster, &to)).await;
    assert_eq!(cluster.index("a", 2000, 2100).await, 100);
    wait_for_moves(&cluster).await;
    let state = cluster.any().state();
    let shard = state.shard("a", 0).unwrap();
    assert_eq!((shard.primary().node.as_ref(), shard.primary_term), (Some(&from), 1));
    cluster.has(1, 2100).await;
}

/// At whatever moment of a move the manager stops: a little later with each round.
async fn a_manager_that_stops_meanwhile_finds_the_shard_whole(env: Env) {
    let mut cluster = Cluster::with(&env, "c", 3, ("a", 1, 0)).await;
    if node_of(&cluster, true) == "c-0" {
        move_copy(&cluster, "c-0", "c-1").await;
    }
    cluster.index("a", 0, 300).await;
    for round in 0..if env.is_virtual() { 40 } else { 6 } {
        let from = node_of(&cluster, true);
        let to = if from == "c-1" { "c-2" } else { "c-1" };
        // A manager that has just started knows the nodes that have joined again.
        cluster.get("/_cluster/health?wait_for_nodes=3&timeout=300s").await;
        start_move(&cluster, &from, to).await;
        env.sleep(Duration::from_micros(500 * round * round)).await;
        cluster.kill_node(0).await;
        cluster.start_node(0).await;
        cluster.green("a").await;
        wait_for_moves(&cluster).await;
        let id = format!("r{round}");
        let path = format!("/a/_doc/{id}");
        let (status, answer) = raw(cluster.any(), "PUT", &path, "{\"n\":1}".into()).await;
        assert_eq!(status, 201, "{answer}");
        cluster.has(1, 301 + round).await;
    }
}

async fn what_is_shown_of_a_move_is_true(env: Env) {
    let cluster = Cluster::holding(&env, "c", 3, ("a", 1, 1), 2000).await;
    cluster.post("/a/_flush").await;
    slow_down(&cluster, slow(&cluster)).await;
    let (from, to) = (node_of(&cluster, true), free_node(&cluster));
    let tried = cluster.must("POST", "/_cluster/reroute?dry_run=true", move_of(&from, &to)).await;
    let copies = &tried["state"]["routing_table"]["indices"]["a"]["shards"]["0"];
    let primary = copies.as_array().unwrap().iter().find(|copy| copy["primary"] == true).unwrap();
    assert_eq!(primary["state"], "RELOCATING");
    assert_eq!(primary["relocating_node"], json!(to));
    let health = cluster.get("/_cluster/health").await;
    assert_eq!(health["relocating_shards"], 0, "it was tried alone");

    start_move(&cluster, &from, &to).await;
    env.sleep(Duration::from_millis(200)).await;
    eventually(&env, "the recovery of the target is shown", async || {
        let path = "/_cat/recovery?format=json&active_only=true";
        cluster.get(path).await[0]["source_node"] == json!(from)
    })
    .await;
    let path = "/_cluster/health?level=shards&wait_for_no_relocating_shards=true&timeout=1ms";
    let health = cluster.answers(408, "GET", path, Value::Null).await;
    let shown = ["active_shards", "relocating_shards", "initializing_shards", "unassigned_shards"];
    for shown in
        [shown.map(|name| &health[name]), shown.map(|n| &health["indices"]["a"]["shards"]["0"][n])]
    {
        assert_eq!(shown, [&json!(2), &json!(1), &json!(0), &json!(0)], "{health}");
    }
    let rows = cluster.get("/_cat/shards?format=json").await;
    let row = rows.as_array().unwrap().iter().find(|row| row["prirep"] == "p").unwrap();
    let node = row["node"].as_str().unwrap();
    assert!(node.starts_with(&format!("{from} -> ")) && node.ends_with(&to), "{row}");
    assert_eq!(row["state"], "RELOCATING");
    let rows = cluster.get("/_cat/recovery?format=json&active_only=true").await;
    let row = &rows[0];
    assert_eq!(row["type"], "peer");
    assert_eq!(row["source_node"], json!(from));
    assert_eq!(row["target_node"], json!(to));
    let recovery = cluster.get("/a/_recovery?active_only=true").await;
    assert_eq!(recovery["a"]["shards"][0]["primary"], true, "{recovery}");
    slow_down(&cluster, "-1").await;
    wait_for_moves(&cluster).await;
    cluster.has(2, 2000).await;
}
