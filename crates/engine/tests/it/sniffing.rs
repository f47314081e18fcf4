//! One seed leads to every node of a remote cluster, a wrong one is refused, and a shard that cannot begin says why.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

use engine::transport::{Failure, Request, ShardAction};
use serde_json::{Value, json};
use world::{Env, LinkConfig};

use crate::common::between::{Between, cluster_behind};
use crate::common::pair::pair_of;
use crate::common::{Cluster, eventually, same};
use crate::proxied::{follow, leader};

testbed::both_worlds!(
    one_seed_leads_to_every_shard_and_its_node_may_go,
    a_shard_that_cannot_begin_says_why_at_once,
    a_silent_cluster_holds_up_no_other,
    a_node_that_can_say_nothing_is_passed_over;
    simulated:
    a_silent_node_does_not_make_each_try_last,
    a_long_path_makes_no_node_silent,
    statistics_of_following_wait_for_a_silent_node_once,
);

fn seed(address: &str) -> Value {
    json!({ "cluster.remote.leader.seeds": [address] })
}

pub(crate) fn whom() -> Value {
    json!({
        "remote_cluster": "leader", "leader_index": "a",
        "settings": { "index.number_of_replicas": 0 },
    })
}

/// It has not joined its cluster yet, or has not heard of the index.
async fn a_node_that_can_say_nothing_is_passed_over(env: Env) {
    let (between, leader) = cluster_behind(&env, "leader", 2, 1).await;
    leader.create("a", 1, 0).await;
    for (status, kind) in
        [(503, "unavailable_shards_exception"), (404, "index_not_found_exception")]
    {
        between.change(move |request, answer| match request {
            Request::RemoteIndex(_) | Request::RemoteIndices { .. } => {
                Err(Failure::new(status, kind, "it cannot say"))
            }
            _ => answer,
        });
        let follower = Cluster::start(&env, &format!("follower-{status}"), 1).await;
        let seeds = json!([between.address, leader.node(0).transport_address()]);
        follower.set(json!({ "cluster.remote.leader.seeds": seeds })).await;
        follower.follow("b", ("leader", "a"), 0, "1").await;
        follower.stop().await;
        between.be_honest();
    }
}

async fn one_seed_leads_to_every_shard_and_its_node_may_go(env: Env) {
    let mut leader = leader(&env).await;
    let follower = Cluster::start(&env, "follower", 2).await;
    // Node 0 manages.
    follower.set(seed(leader.node(2).transport_address())).await;
    follow(&follower, "b").await;
    same((&leader, "a"), (&follower, "b")).await;
    eventually(&env, "every node is connected", async || {
        let info = follower.get("/_remote/info").await;
        info["leader"]["num_nodes_connected"] == 3
    })
    .await;

    leader.kill_node(2).await;
    assert_eq!(leader.index("a", 300, 600).await, 300);
    same((&leader, "a"), (&follower, "b")).await;
    follow(&follower, "c").await;
    same((&leader, "a"), (&follower, "c")).await;

    leader.start_node(2).await;
    leader.green("a").await;
    assert_eq!(leader.index("a", 600, 700).await, 100);
    for index in ["b", "c"] {
        same((&leader, "a"), (&follower, index)).await;
    }
}

async fn a_shard_that_cannot_begin_says_why_at_once(env: Env) {
    let leader = Cluster::holding(&env, "leader", 1, ("a", 1, 0), 50).await;
    let between = Between::before(&env, leader.any().transport_address()).await;
    between.change(|request, answer| match request {
        Request::OpenSession { .. } => {
            Err(Failure::new(503, "unavailable_shards_exception", "[a][0] is nowhere"))
        }
        _ => answer,
    });
    let follower = Cluster::start(&env, "follower", 1).await;
    follower.set(seed(&between.address)).await;
    follower.must("PUT", "/b/_ccr/follow?wait_for_active_shards=0", whom()).await;
    let shards = async || {
        let stats = follower.get("/b/_ccr/stats").await;
        stats["indices"][0]["shards"].as_array().cloned().unwrap()
    };
    eventually(&env, "its statistics say why it waits", async || {
        let shards = shards().await;
        let [shard] = &shards[..] else { return false };
        let exception = &shard["read_exceptions"][0]["exception"];
        shard["shard_id"] == 0 && exception["reason"] == "[a][0] is nowhere"
    })
    .await;
    let asked = json!({ "index": "b", "shard": 0, "primary": true });
    let explained = follower.must("GET", "/_cluster/allocation/explain", asked).await;
    assert_eq!(explained["current_state"], "initializing", "{explained}");
    assert_eq!(explained["recovery_failure"], "[a][0] is nowhere", "{explained}");
    let words = explained["explanation"].as_str().unwrap();
    assert!(words.contains("initializing on node [follower-0]"), "{words}");
    assert!(words.ends_with("[a][0] is nowhere"), "{words}");

    between.be_honest();
    follower.green("b").await;
    eventually(&env, "it follows, and nothing is said of before", async || {
        let shards = shards().await;
        shards.len() == 1 && shards[0]["read_exceptions"] == json!([])
    })
    .await;
}

/// Three clusters that give no answer would take half a minute each, one after another.
async fn a_silent_cluster_holds_up_no_other(env: Env) {
    let leader = Cluster::holding(&env, "leader", 2, ("a", 1, 0), 50).await;
    let place = leader.any().state().shard("a", 0).unwrap().primary().node.clone();
    let other = if place.as_deref() == Some("leader-0") { 1 } else { 0 };
    let silent = Between::before(&env, leader.node(other).transport_address()).await;
    silent.hold(|_| true);
    let follower = Cluster::start(&env, "follower", 1).await;
    let mut settings = seed(leader.node(other).transport_address());
    for alias in ["a", "b", "c"] {
        settings[format!("cluster.remote.{alias}.seeds")] = json!([silent.address]);
    }
    follower.set(settings).await;
    follower.must("PUT", "/b/_ccr/follow?wait_for_active_shards=0", whom()).await;
    // The seed's node has no copy: where the other one is comes with the answer to a refresh.
    follower.green_within("b", if env.is_virtual() { 30 } else { 60 }).await;
}

/// In virtual time, where tries of a minute each take no time to wait for.
async fn a_silent_node_does_not_make_each_try_last(env: Env) {
    let (behind, leader) = cluster_behind(&env, "leader", 2, 1).await;
    leader.create("a", 1, 1).await;
    let front = Between::before(&env, leader.any().transport_address()).await;
    let refused = Rc::new(Cell::new(0));
    let count = refused.clone();
    front.change(move |request, answer| match request {
        Request::OpenSession { .. } => {
            count.set(count.get() + 1);
            Err(Failure::new(503, "unavailable_shards_exception", "[a][0] is nowhere"))
        }
        _ => answer,
    });
    // Of what the follower asks; among themselves the leader's nodes go on.
    behind.hold(|request| {
        matches!(
            request,
            Request::Hello
                | Request::Ping
                | Request::OpenSession { .. }
                | Request::ReadOpening { .. }
        )
    });
    let follower = Cluster::start(&env, "follower", 1).await;
    follower.set(seed(&front.address)).await;
    follower.must("PUT", "/b/_ccr/follow?wait_for_active_shards=0", whom()).await;
    eventually(&env, "the silent node is asked", async || behind.held() > 0).await;
    let so_far = refused.get();
    eventually(&env, "the other is asked again", async || refused.get() >= so_far + 3).await;

    front.be_honest();
    behind.be_honest();
    follower.green("b").await;
}

/// An answer takes longer on this path than a silent node and its ping are waited for: whoever has a shard is none.
async fn a_long_path_makes_no_node_silent(env: Env) {
    let pair = pair_of(&env, (2, 1), (10, 50_000_000), (0, 10)).await;
    let allocation = async |enable: Value| {
        pair.follower.set(json!({ "cluster.routing.allocation.enable": enable })).await;
    };
    allocation(json!("none")).await;
    pair.follower.must("PUT", "/b/_ccr/follow?wait_for_active_shards=0", whom()).await;
    let rtt = Duration::from_secs(11);
    pair.link.configure(LinkConfig { rtt, ..LinkConfig::default() }).unwrap();
    allocation(Value::Null).await;
    pair.follower.green_within("b", 600).await;
    for recovery in pair.recoveries("b").await {
        assert_eq!(recovery["narrows"]["retries"], 0, "{recovery}");
    }
}

/// In virtual time: a silent node has a shard that follows and one that cannot begin, and is asked of both.
async fn statistics_of_following_wait_for_a_silent_node_once(env: Env) {
    let leader = Cluster::holding(&env, "leader", 1, ("a", 3, 0), 50).await;
    let front = Between::before(&env, leader.any().transport_address()).await;
    let (behind, follower) = cluster_behind(&env, "follower", 3, 1).await;
    follower.set(seed(&front.address)).await;
    follower.must("PUT", "/b/_ccr/follow?wait_for_active_shards=0", whom()).await;
    follower.green("b").await;
    front.change(|request, answer| match request {
        Request::OpenSession { .. } => {
            Err(Failure::new(503, "unavailable_shards_exception", "[a][0] is nowhere"))
        }
        _ => answer,
    });
    follower.must("PUT", "/c/_ccr/follow?wait_for_active_shards=0", whom()).await;
    for index in ["b", "c"] {
        eventually(&env, "each node has a shard", async || {
            let state = follower.any().state();
            let place = |shard| state.shard(index, shard)?.primary().node.clone();
            (0..3).filter_map(place).collect::<BTreeSet<_>>().len() == 3
        })
        .await;
    }
    let reasons = async |path: &str| {
        let stats = follower.get(path).await;
        let indices = &stats["follow_stats"]["indices"];
        let shards = indices[1]["shards"].as_array().into_iter().flatten();
        let are_said = shards.filter(|shard| shard["read_exceptions"] != json!([])).count();
        (indices.as_array().map_or(0, Vec::len), are_said)
    };
    eventually(&env, "each shard says why it waits", async || {
        reasons("/_ccr/stats").await == (2, 3)
    })
    .await;
    behind.hold(|request| {
        let is_following = matches!(request, Request::Shard(_, _, ShardAction::Following));
        is_following || matches!(request, Request::Recoveries { .. })
    });
    let began = env.now();
    // The other nodes' shards say it all the same.
    assert_eq!(reasons("/_ccr/stats?timeout=10s").await, (2, 2));
    assert!(behind.held() > 0 && env.now() - began < Duration::from_secs(15));
    behind.be_honest();
}

/// In the virtual world nobody mistakes a port.
#[test]
fn a_port_of_rest_is_refused_as_a_seed_and_silence_is_not() {
    world::real_world::run(7, async |env| {
        let leader = Cluster::start(&env, "leader", 1).await;
        let follower = Cluster::start(&env, "follower", 1).await;
        let set = async |address: &str| {
            let settings = json!({ "persistent": seed(address) });
            follower.ask("PUT", "/_cluster/settings", settings).await
        };
        let rest = leader.any().http_address();
        let (status, refused) = set(rest).await;
        assert_eq!(status, 400, "{refused}");
        let reason = refused["error"]["reason"].as_str().unwrap();
        assert!(reason.contains(rest) && reason.contains("transport_address"), "{reason}");
        assert_eq!(follower.get("/_remote/info").await, json!({}));
        // Nobody listens there now.
        assert_eq!(set("127.0.0.1:1").await.0, 200);
        assert_eq!(set(leader.any().transport_address()).await.0, 200);
        follower.stop().await;
        leader.stop().await;
    });
}
