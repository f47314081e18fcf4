//! One seed leads to every node of a remote cluster, a wrong one is refused, and a shard that cannot begin says why.

use std::collections::BTreeSet;

use engine::transport::{Failure, Request};
use serde_json::{Value, json};
use world::Env;

use crate::common::between::Between;
use crate::common::{Cluster, eventually};

testbed::both_worlds!(
    one_seed_leads_to_every_shard_and_its_node_may_go,
    a_shard_that_cannot_begin_says_why_at_once,
);

fn seed(address: &str) -> Value {
    json!({ "persistent": { "cluster.remote.leader.seeds": [address] } })
}

fn whom() -> Value {
    json!({
        "remote_cluster": "leader", "leader_index": "a",
        "settings": { "index.number_of_replicas": 0 },
    })
}

/// Waits until an index of the follower holds what the leader holds.
async fn same(leader: &Cluster, follower: &Cluster, index: &str) {
    let content = |rows: Vec<(u64, u64, String)>| rows.into_iter().collect::<BTreeSet<_>>();
    let expected = content(leader.digests("a").await);
    assert_eq!(expected.len(), 3, "{expected:?}");
    eventually(&leader.env, "the follower has what the leader has", async || {
        content(follower.digests(index).await) == expected
    })
    .await;
}

async fn one_seed_leads_to_every_shard_and_its_node_may_go(env: Env) {
    let mut leader = Cluster::holding(&env, "leader", 3, ("a", 3, 1), 300).await;
    let state = leader.any().state();
    let primary = |number| state.shard("a", number).unwrap().primary().node.clone();
    let nodes: BTreeSet<_> = (0..3).map(primary).collect();
    assert_eq!(nodes.len(), 3, "each has a primary: {nodes:?}");
    let follower = Cluster::start(&env, "follower", 2).await;
    // Node 0 manages.
    let settings = seed(leader.node(2).transport_address());
    follower.must("PUT", "/_cluster/settings", settings).await;
    let follow = async |index: &str| {
        let path = format!("/{index}/_ccr/follow?wait_for_active_shards=1");
        let made = follower.must("PUT", &path, whom()).await;
        assert_eq!(made["index_following_started"], true, "{made}");
    };
    follow("b").await;
    same(&leader, &follower, "b").await;
    eventually(&env, "every node is connected", async || {
        let info = follower.must("GET", "/_remote/info", Value::Null).await;
        info["leader"]["num_nodes_connected"] == 3
    })
    .await;

    leader.kill_node(2).await;
    assert_eq!(leader.index("a", 300, 600).await, 300);
    same(&leader, &follower, "b").await;
    follow("c").await;
    same(&leader, &follower, "c").await;

    leader.start_node(2).await;
    leader.green("a").await;
    assert_eq!(leader.index("a", 600, 700).await, 100);
    for index in ["b", "c"] {
        same(&leader, &follower, index).await;
    }
    follower.stop().await;
    leader.stop().await;
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
    follower.must("PUT", "/_cluster/settings", seed(&between.address)).await;
    follower.must("PUT", "/b/_ccr/follow?wait_for_active_shards=0", whom()).await;
    let shards = async || {
        let stats = follower.must("GET", "/b/_ccr/stats", Value::Null).await;
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
    follower.stop().await;
    leader.stop().await;
}

/// In the virtual world nobody mistakes a port.
#[test]
fn a_port_of_rest_is_refused_as_a_seed_and_silence_is_not() {
    world::real_world::run(7, async |env| {
        let leader = Cluster::start(&env, "leader", 1).await;
        let follower = Cluster::start(&env, "follower", 1).await;
        let set =
            async |address: &str| follower.ask("PUT", "/_cluster/settings", seed(address)).await;
        let rest = leader.any().http_address();
        let (status, refused) = set(rest).await;
        assert_eq!(status, 400, "{refused}");
        let reason = refused["error"]["reason"].as_str().unwrap();
        assert!(reason.contains(rest) && reason.contains("transport_address"), "{reason}");
        assert_eq!(follower.must("GET", "/_remote/info", Value::Null).await, json!({}));
        // Nobody listens there now.
        assert_eq!(set("127.0.0.1:1").await.0, 200);
        assert_eq!(set(leader.any().transport_address()).await.0, 200);
        follower.stop().await;
        leader.stop().await;
    });
}
