//! What waits for a node that is silent while its connections stay: the manager, a write, a search, a follower, a
//! request for what every node says. Each wait ends in time, and the node is asked again. Each test fails where its
//! limit is taken out, or is a hundred times as long.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use engine::transport::{Request, Response};
use policy::selection::ProbeAnswer;
use serde_json::{Value, json};
use world::Env;

use crate::common::between::{Answer, Between, cluster_behind, cluster_behind_each};
use crate::common::{Cluster, ask, eventually};
use crate::sniffing::whom;
use crate::waits::{add_replica_on, create_on, within};

testbed::virtual_world!(
    a_node_that_hears_nothing_holds_up_no_change,
    a_node_that_answers_no_check_is_gone,
    a_write_waits_for_a_replica_until_its_node_is_gone,
    a_search_gives_up_on_a_silent_copy,
    what_a_probe_says_late_is_forgotten,
    a_silent_leader_is_asked_again,
    the_nodes_of_a_cluster_are_waited_for_as_the_request_says,
    what_is_dangling_is_waited_for_as_the_request_says,
);

async fn has_nodes(c: &Cluster, nodes: u64) -> bool {
    c.get("/_cluster/health").await["number_of_nodes"] == nodes
}

async fn a_node_that_hears_nothing_holds_up_no_change(env: Env) {
    let (between, c) = cluster_behind(&env, "one", 2, 1).await;
    between.hold(|request| matches!(request, Request::Publish(_)));
    let settings = json!({ "persistent": { "transport.compress": true } });
    let changing = c.must("PUT", "/_cluster/settings", settings);
    let changed = env.timeout(Duration::from_secs(15), changing).await.expect("an answer");
    assert_eq!(changed["acknowledged"], true, "{changed}");
    between.be_honest();
}

async fn a_node_that_answers_no_check_is_gone(env: Env) {
    let (between, c) = cluster_behind(&env, "one", 2, 1).await;
    between.hold(|request| matches!(request, Request::FollowerCheck(_)));
    within(&env, 25, "it counts as gone", async || has_nodes(&c, 1).await).await;
    between.be_honest();
    eventually(&env, "it is back", async || has_nodes(&c, 2).await).await;
}

/// Its connection stays.
async fn a_write_waits_for_a_replica_until_its_node_is_gone(env: Env) {
    let (between, c) = cluster_behind(&env, "one", 3, 2).await;
    create_on(&c, "a", "one-1").await;
    add_replica_on(&c, "a", "one-1,one-2").await;
    between.hold(|request| match request {
        Request::Replicate(sent) => !sent.ops.is_empty(),
        request => matches!(request, Request::FollowerCheck(_)),
    });
    let writing = ask(c.node(1), "PUT", "/a/_doc/1", json!({ "n": 1 }));
    let (status, answer) = env.timeout(Duration::from_secs(25), writing).await.expect("an answer");
    assert_eq!(status, 201, "{answer}");
    between.be_honest();
    c.green("a").await;
    assert_eq!(c.digests("a").await.iter().map(|one| one.1).collect::<Vec<_>>(), [1, 1]);
}

async fn a_search_gives_up_on_a_silent_copy(env: Env) {
    let (between, c) = cluster_behind(&env, "one", 2, 1).await;
    create_on(&c, "a", "one-1").await;
    between.hold(|request| matches!(request, Request::Search(_)));
    let searching = ask(c.node(0), "POST", "/a/_search", json!({ "size": 0 }));
    let answered = env.timeout(Duration::from_secs(130), searching).await;
    let (status, answer) = answered.expect("an answer");
    assert!(status >= 500, "{status}: {answer}");
    assert!(answer.to_string().contains("no answer within 120s"), "{answer}");
    between.lose_what_is_held();
    c.must("POST", "/a/_search", json!({ "size": 0 })).await;
}

/// Of two nodes one says, after seconds, that it has nothing to do. Where that counted, it would be asked each time.
async fn what_a_probe_says_late_is_forgotten(env: Env) {
    let (between, c) = cluster_behind_each(&env, "one", 3, &[1, 2]).await;
    create_on(&c, "a", "one-1").await;
    add_replica_on(&c, "a", "one-1,one-2").await;
    c.set_for_now(json!({ "narrows.search.selection": "prequal" })).await;
    let searched = Rc::new(Cell::new(0));
    for (node, in_flight) in between.iter().zip([0, 1000]) {
        let counts = searched.clone();
        node.change(move |request, answer: Answer| match request {
            Request::Probe => Ok(Response::Probed(ProbeAnswer { in_flight, latency: None })),
            Request::Search(_) if in_flight > 0 => {
                counts.set(counts.get() + 1);
                answer
            }
            _ => answer,
        });
    }
    let hold = |which: fn(&Request) -> bool| between.iter().for_each(|node| node.hold(which));
    let search = async || c.must("POST", "/a/_search", json!({ "size": 0 })).await;
    let is_probe = |request: &Request| matches!(request, Request::Probe);
    let mut busy = 0;
    for _ in 0..20 {
        hold(is_probe);
        search().await;
        env.sleep(Duration::from_secs(3)).await;
        hold(|_| false);
        env.sleep(Duration::from_millis(100)).await;
        hold(is_probe);
        let before = searched.get();
        search().await;
        busy += searched.get() - before;
    }
    assert!(busy > 0, "a late answer decides");
    between.iter().for_each(Between::be_honest);
}

/// What a leader does not answer.
type Silence = fn(&Request) -> bool;

const SILENCES: [(&str, Silence); 2] = [
    ("a read", |request| matches!(request, Request::ReadChanges(_))),
    ("a lease", |request| matches!(request, Request::Lease(_))),
];

async fn a_silent_leader_is_asked_again(env: Env) {
    let (between, leader) = cluster_behind(&env, "leader", 1, 0).await;
    leader.create("a", 1, 0).await;
    assert_eq!(leader.index("a", 0, 10).await, 10);
    let follower = Cluster::start(&env, "follower", 1).await;
    follower.set(json!({ "cluster.remote.leader.seeds": [between.address] })).await;
    let body = whom();
    follower.must("PUT", "/f/_ccr/follow", body.clone()).await;
    follower.green("f").await;
    for (place, (what, silence)) in (10..).zip(SILENCES) {
        follower.post("/f/_ccr/pause_follow").await;
        let before = between.held();
        between.hold(silence);
        follower.must("POST", "/f/_ccr/resume_follow", json!({ "read_poll_timeout": "1s" })).await;
        assert_eq!(leader.index("a", place, place + 1).await, 1);
        eventually(&env, what, async || between.held() > before).await;
        between.lose_what_is_held();
        let expected = leader.digests("a").await;
        within(&env, 45, what, async || {
            follower.answered_digests("f").await.is_ok_and(|found| found == expected)
        })
        .await;
    }

    between.hold(|request| matches!(request, Request::RemoteIndex(_)));
    let following = follower.ask("PUT", "/g/_ccr/follow", body.clone());
    let answered = env.timeout(Duration::from_secs(40), following).await;
    let (status, answer) = answered.expect("an answer");
    assert_eq!(status, 503, "{answer}");
    assert!(answer.to_string().contains("no answer within 30s"), "{answer}");
    between.lose_what_is_held();
    follower.must("PUT", "/g/_ccr/follow", body).await;
    follower.green("g").await;
}

/// Shorter than what these requests wait by themselves.
const SOONER: Duration = Duration::from_secs(20);

async fn the_nodes_of_a_cluster_are_waited_for_as_the_request_says(env: Env) {
    let (between, c) = cluster_behind(&env, "one", 2, 1).await;
    between.hold(|request| matches!(request, Request::NodeStats { .. }));
    let asking = c.get("/_cluster/stats?timeout=1s");
    let stats = env.timeout(SOONER, asking).await.expect("an answer");
    assert_eq!(stats["_nodes"]["failed"], 1, "{stats}");
    between.be_honest();
    let stats = c.get("/_cluster/stats").await;
    assert_eq!(stats["_nodes"]["failed"], 0, "{stats}");
}

/// The manager has lost its state, and one node knows what the index is.
async fn what_is_dangling_is_waited_for_as_the_request_says(env: Env) {
    let c = Cluster::start(&env, "one", 2).await;
    create_on(&c, "a", "one-1").await;
    let uuid = c.any().state().indices["a"].uuid.clone();
    c.stop().await;
    let address = "one-1:9300";
    let between = Between::before(&env, address).await;
    let c = Cluster::start_as(&env, "one", 2, |config| match config.name.as_str() {
        "one-0" => config.data = "/empty".into(),
        _ => {
            config.transport = address.to_owned();
            config.publish = Some(between.address.clone());
        }
    })
    .await;
    eventually(&env, "the index is dangling", async || {
        c.get("/_cluster/health").await["dangling_indices"] == 1
    })
    .await;
    between.hold(|request| matches!(request, Request::Dangling(_)));
    let import = format!("/_dangling/{uuid}?accept_data_loss=true");
    let path = format!("{import}&timeout=1s");
    let asking = c.ask("POST", &path, Value::Null);
    let (status, answer) = env.timeout(SOONER, asking).await.expect("an answer");
    assert_eq!(status, 400, "{answer}");
    assert!(answer.to_string().contains("nobody can read"), "{answer}");
    between.be_honest();
    assert_eq!(c.ask("POST", &import, Value::Null).await.0, 202);
    c.green("a").await;
}
