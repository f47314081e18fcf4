//! What befalls nodes while they are searched: whatever it is, every search is answered, and no slot and no count is
//! left.

use std::time::Duration;

use crate::common::{Cluster, ask, eventually, settled};
use serde_json::{Value, json};
use world::{Env, Task};

testbed::both_worlds!(
    all_copies_are_slow,
    a_node_is_lost_in_mid_query,
    a_node_that_is_cut_off_is_passed_over,
    clients_hang_up,
    a_node_that_fails_every_search_is_passed_over,
);

const POLICIES: [&str; 4] = ["none", "ars_7_13", "c3", "narrows"];

/// An index of three copies on three nodes.
async fn cluster(env: &Env) -> Cluster {
    cluster_called(env, "c").await
}

async fn cluster_called(env: &Env, name: &str) -> Cluster {
    // A node that says nothing is given up soon.
    let quick = [("cluster.fault_detection.follower_check.interval", "100ms")];
    let c = Cluster::start_with(env, name, 3, &quick).await;
    c.create("a", 4, 2).await;
    c.index("a", 0, 400).await;
    c.post("/a/_refresh").await;
    c
}

/// A search that takes a while: some milliseconds of a core in virtual time.
fn body(env: &Env) -> Value {
    match env.is_virtual() {
        true => {
            json!({"size": 0, "track_total_hits": true, "ext": {"narrows": {"cost": {"documents": 200_000}}}})
        }
        false => {
            json!({"size": 0, "track_total_hits": true, "aggs": {"w": {"terms": {"field": "word"}}}})
        }
    }
}

async fn choose_by(c: &Cluster, policy: &str) {
    c.set_for_now(json!({"narrows.search.selection": policy})).await;
}

/// So many searches at once, each through the next of some nodes.
fn start(c: &Cluster, count: usize, through: &[usize]) -> Vec<Task<(u16, Value)>> {
    let one = |n: usize| {
        let (node, body) = (c.node(through[n % through.len()]).clone(), body(&c.env));
        c.env.spawn("searches", async move { ask(&node, "POST", "/a/_search", body).await })
    };
    (0..count).map(one).collect()
}

/// All of them are answered in whole.
async fn all_answered(searches: Vec<Task<(u16, Value)>>, what: &str) {
    for search in searches {
        let (status, found) = search.await.unwrap();
        assert_eq!(status, 200, "{what}: {found}");
        assert_eq!(found["_shards"]["failed"], 0, "{what}: {found}");
        assert_eq!(found["hits"]["total"]["value"], 400, "{what}: {found}");
    }
}

/// On a real machine the engine itself is slow; in virtual time the host is.
fn slow_down(c: &Cluster, node: usize, factor: f64) {
    c.node(node).slow_down(factor);
    let host = c.env.host(&format!("c-{node}"));
    if let Some(mut model) = host.virtual_host_model() {
        model.costs = model.costs.slowed(factor);
        host.set_host_model(model);
    }
}

async fn all_copies_are_slow(env: Env) {
    let c = cluster(&env).await;
    let before = env.now();
    all_answered(start(&c, 30, &[0, 1, 2]), "as they are").await;
    let quick = env.now() - before;
    (0..3).for_each(|node| slow_down(&c, node, 20.0));
    for policy in POLICIES {
        choose_by(&c, policy).await;
        let before = env.now();
        all_answered(start(&c, 30, &[0, 1, 2]), policy).await;
        // Wall time is nobody's promise; virtual time is exact.
        assert!(!env.is_virtual() || env.now() - before > 10 * quick, "{policy}");
    }
    settled(&c).await;
}

async fn a_node_is_lost_in_mid_query(env: Env) {
    for policy in POLICIES {
        // In virtual time disks outlive a cluster.
        let mut c = cluster_called(&env, &policy.replace('_', "-")).await;
        choose_by(&c, policy).await;
        let searches = start(&c, 40, &[0, 1]);
        env.sleep(Duration::from_millis(1)).await;
        c.kill_node(2).await;
        all_answered(searches, policy).await;
        settled(&c).await;
        c.stop().await;
    }
}

async fn a_node_that_is_cut_off_is_passed_over(env: Env) {
    let c = cluster(&env).await;
    choose_by(&c, "none").await;
    all_answered(start(&c, 9, &[0, 1, 2]), "before").await;
    c.node(2).cut_off(true);
    // Some of them go there and hear nothing, until the manager has given the node up; then another copy is asked.
    all_answered(start(&c, 12, &[0, 1]), "while it is cut off").await;
    eventually(&env, "the node has left", async || {
        c.get("/_cluster/health").await["number_of_nodes"] == 2
    })
    .await;
    // A client of the node itself hears nothing, either.
    let unheard = start(&c, 1, &[2]);
    env.sleep(Duration::from_millis(50)).await;
    assert!(unheard.iter().all(|search| !search.is_finished()));
    c.node(2).cut_off(false);
    let back = "/_cluster/health/a?wait_for_nodes=3&wait_for_status=green&timeout=300s";
    assert_eq!(c.get(back).await["timed_out"], false);
    // It answers now, with what it had or by asking the others.
    for search in unheard {
        assert_eq!(search.await.unwrap().0, 200);
    }
    all_answered(start(&c, 9, &[0, 1, 2]), "afterwards").await;
    settled(&c).await;
}

async fn clients_hang_up(env: Env) {
    let c = cluster(&env).await;
    for policy in POLICIES {
        choose_by(&c, policy).await;
        for pause_us in [0, 100, 1000, 5000, 20_000] {
            let mut searches = start(&c, 20, &[0, 1, 2]);
            env.sleep(Duration::from_micros(pause_us)).await;
            // Every other one is let go in the middle.
            let kept = searches.split_off(10);
            drop(searches);
            all_answered(kept, policy).await;
        }
    }
    settled(&c).await;
}

async fn a_node_that_fails_every_search_is_passed_over(env: Env) {
    let c = cluster(&env).await;
    c.node(2).fail_searches(true);
    for policy in POLICIES {
        choose_by(&c, policy).await;
        all_answered(start(&c, 20, &[0, 1]), policy).await;
    }
    let failed = async || {
        let stats = c.get("/_nodes/c-2/stats").await;
        stats["nodes"]["c-2"]["indices"]["search"]["query_total"].as_u64().unwrap()
    };
    assert_eq!(failed().await, 0, "it searches nothing");
    c.node(2).fail_searches(false);
    choose_by(&c, "none").await;
    all_answered(start(&c, 20, &[0, 1, 2]), "afterwards").await;
    assert!(failed().await > 0);
    settled(&c).await;
}
