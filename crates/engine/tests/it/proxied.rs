//! A remote cluster is reached through one of its nodes alone, which passes on what is for the others.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

use engine::transport::{CallError, Class, Request};
use serde_json::{Value, json};
use world::Env;

use crate::common::between::Between;
use crate::common::{Cluster, eventually, same};
use crate::sniffing::whom;

testbed::both_worlds!(
    every_shard_is_followed_through_one_node_and_again_once_it_is_back,
    all_that_is_asked_of_others_goes_through_the_proxy,
    a_node_names_another_that_it_cannot_pass_a_request_on_to,
    settings_of_both_modes_at_once_are_refused,
);

fn proxy(address: &str, sockets: u32) -> Value {
    json!({
        "cluster.remote.leader.mode": "proxy",
        "cluster.remote.leader.proxy_address": address,
        "cluster.remote.leader.proxy_socket_connections": sockets,
    })
}

pub(crate) async fn follow(follower: &Cluster, index: &str) {
    let path = format!("/{index}/_ccr/follow?wait_for_active_shards=1");
    let made = follower.must("PUT", &path, whom()).await;
    assert_eq!(made["index_following_started"], true, "{made}");
}

/// Waits until so many of the sockets are open.
async fn connected(follower: &Cluster, (open, most): (u64, u64)) {
    eventually(&follower.env, "the sockets are counted", async || {
        let info = follower.get("/_remote/info").await;
        let info = &info["leader"];
        info["num_proxy_sockets_connected"] == open
            && info["max_proxy_socket_connections"] == most
            && info["connected"] == (open > 0)
    })
    .await;
}

/// A leader of three nodes, each with a primary of the index `a`.
pub(crate) async fn leader(env: &Env) -> Cluster {
    let leader = Cluster::holding(env, "leader", 3, ("a", 3, 1), 300).await;
    let state = leader.any().state();
    let primary = |number| state.shard("a", number).unwrap().primary().node.clone();
    let nodes: BTreeSet<_> = (0..3).map(primary).collect();
    assert_eq!(nodes.len(), 3, "each has a primary: {nodes:?}");
    leader
}

async fn every_shard_is_followed_through_one_node_and_again_once_it_is_back(env: Env) {
    let mut leader = leader(&env).await;
    let follower = Cluster::start(&env, "follower", 1).await;
    // Node 0 manages.
    let address = leader.node(2).transport_address().to_owned();
    follower.set(proxy(&address, 3)).await;
    follow(&follower, "b").await;
    same((&leader, "a"), (&follower, "b")).await;
    connected(&follower, (3, 3)).await;
    let info = follower.get("/_remote/info").await;
    assert_eq!(info["leader"]["mode"], "proxy", "{info}");
    assert_eq!(info["leader"]["proxy_address"], address, "{info}");
    assert_eq!(info["leader"]["seeds"], Value::Null, "{info}");

    leader.kill_node(2).await;
    assert_eq!(leader.index("a", 300, 600).await, 300);
    connected(&follower, (0, 3)).await;

    leader.start_node(2).await;
    leader.green("a").await;
    same((&leader, "a"), (&follower, "b")).await;
    connected(&follower, (3, 3)).await;
    follow(&follower, "c").await;
    same((&leader, "a"), (&follower, "c")).await;
}

async fn all_that_is_asked_of_others_goes_through_the_proxy(env: Env) {
    let leader = leader(&env).await;
    let between = Between::before(&env, leader.node(2).transport_address()).await;
    let chunks = Rc::new(Cell::new(0));
    let counted = chunks.clone();
    between.change(move |request, answer| {
        if let Request::Forward { request, .. } = request
            && matches!(**request, Request::ReadChunk { .. } | Request::ReadOpening { .. })
        {
            counted.set(counted.get() + 1);
        }
        answer
    });
    let follower = Cluster::start(&env, "follower", 2).await;
    follower.set(proxy(&between.address, 2)).await;
    follow(&follower, "b").await;
    same((&leader, "a"), (&follower, "b")).await;
    assert!(chunks.get() >= 2, "{} chunks of the two shards elsewhere", chunks.get());
}

async fn a_node_names_another_that_it_cannot_pass_a_request_on_to(env: Env) {
    let leader = Cluster::start(&env, "leader", 2).await;
    let asked = async |to: &str, request: Request| {
        let (to, class, limit) = (to.to_owned(), Class::Control, Duration::from_secs(20));
        let request = Request::Forward { to, class, request: Box::new(request), limit };
        leader.ask_node("leader-0", request).await
    };
    for number in [0, 1] {
        let answer = asked(leader.node(number).transport_address(), Request::Hello).await;
        assert!(answer.is_ok(), "{answer:?}");
    }
    let Err(CallError::Failed(gone)) = asked("10.9.9.9:1", Request::Hello).await else {
        panic!("no node of the cluster has that address");
    };
    assert_eq!((gone.status, &*gone.kind), (503, "node_disconnected_exception"));
    assert!(gone.reason.contains("leader-0") && gone.reason.contains("10.9.9.9:1"), "{gone}");
    let inside = asked(leader.node(1).transport_address(), Request::State).await;
    let Err(CallError::Failed(refused)) = inside else {
        panic!("another cluster may not ask for the state");
    };
    assert_eq!(refused.status, 400, "{refused}");
}

async fn settings_of_both_modes_at_once_are_refused(env: Env) {
    let follower = Cluster::start(&env, "follower", 1).await;
    let mut both = json!({ "persistent": proxy("127.0.0.1:1", 4) });
    both["persistent"]["cluster.remote.leader.seeds"] = json!(["127.0.0.1:2"]);
    let refused = follower.answers(400, "PUT", "/_cluster/settings", both).await;
    let reason = refused["error"]["reason"].as_str().unwrap();
    assert!(reason.contains("required=SNIFF, configured=PROXY"), "{reason}");
    assert_eq!(follower.get("/_remote/info").await, json!({}));
}
