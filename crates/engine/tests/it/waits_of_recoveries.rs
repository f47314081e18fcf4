//! What waits inside of recoveries, hand-offs and replication for a peer that is silent: each wait ends in time, says
//! what did not come, and all goes well once the peer answers. Each test fails where its limit is taken out, or is a
//! hundred times as long.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use engine::state::Event;
use engine::transport::{CallError, Class, Failure, Pool, Request, Response, SessionKind};
use serde_json::{Value, json};
use world::{Env, Task};

use crate::common::between::{Answer, Between, cluster_behind, cluster_behind_each};
use crate::common::{Cluster, ask, eventually};
use crate::leases::{open, opening};
use crate::waits::{add_replica_on, create_on, within};

testbed::virtual_world!(
    a_source_says_what_did_not_come,
    a_recovery_that_comes_to_nothing_is_given_up,
    a_directory_that_stays_in_use_is_given_up,
    a_primary_with_operations_that_do_not_end_refuses_to_hand_over,
    a_primary_that_does_not_answer_stays_where_it_is,
    a_silent_replica_leaves_the_copies_in_sync,
    a_copy_that_cannot_be_taken_out_of_sync_fails_the_write,
    a_write_to_an_index_that_is_made_anew_meanwhile_is_not_acknowledged,
    a_replica_that_takes_no_lease_leaves_the_copies_in_sync,
    who_asks_for_a_lease_is_told_to_try_again_where_the_term_is_over,
);

/// A manager, a primary and its replica with ten documents, each node behind somebody of its own.
async fn shard_behind(env: &Env, nodes: usize) -> (Vec<Between>, Cluster) {
    let (between, c) = cluster_behind_each(env, "one", nodes, &[0, 1, 2]).await;
    create_on(&c, "a", "one-1").await;
    add_replica_on(&c, "a", "one-1,one-2").await;
    for id in 0..10 {
        c.must("PUT", &format!("/a/_doc/{id}"), json!({ "n": id })).await;
    }
    (between, c)
}

fn brings_operations(request: &Request) -> bool {
    matches!(request, Request::Replicate(sent) if !sent.ops.is_empty())
}

fn takes_out_of_sync(request: &Request) -> bool {
    matches!(request, Request::Submit(event) if matches!(**event, Event::CopyOutOfSync { .. }))
}

/// A write that the primary's own node is asked for: nobody gives it up before the primary does.
fn start_write(env: &Env, c: &Cluster) -> Task<(u16, Value)> {
    let node = c.node(1).clone();
    env.spawn("writes", async move { ask(&node, "PUT", "/a/_doc/more", json!({ "n": 1 })).await })
}

/// Whether a copy failed, and was said to have failed of this.
fn has_failed(c: &Cluster, says: &str) -> bool {
    let state = c.node(0).state();
    let copies = &state.shard("a", 0).unwrap().copies;
    let why = |why: &String| why.contains(says);
    copies.iter().any(|copy| copy.last_failure.as_ref().is_some_and(why))
}

async fn set(c: &Cluster, settings: Value) {
    c.must("PUT", "/a/_settings", settings).await;
}

async fn move_primary(c: &Cluster, to: &str) {
    let everywhere = json!({
        "index.routing.allocation.require._name": null,
        "index.routing.allocation.include._name": null,
    });
    set(c, everywhere).await;
    let moved = json!({ "index": "a", "shard": 0, "from_node": "one-1", "to_node": to });
    c.must("POST", "/_cluster/reroute", json!({ "commands": [{ "move": moved }] })).await;
}

fn node_of_primary(c: &Cluster) -> Option<String> {
    c.node(0).state().shard("a", 0).unwrap().primary().node.clone()
}

#[track_caller]
fn assert_refused(answer: Result<Response, CallError>, says: &str) {
    match answer {
        Err(CallError::Failed(failure)) => {
            assert_eq!(failure.status, 503, "{failure:?}");
            assert!(failure.reason.contains(says), "{failure:?}");
        }
        other => panic!("{says}: {other:?}"),
    }
}

/// Operations that not every copy has, a target that the state does not name, and a session that nobody opens.
async fn a_source_says_what_did_not_come(env: Env) {
    let (between, c) = shard_behind(&env, 3).await;
    let (manager, replica) = (&between[0], &between[2]);
    let index_uuid = c.any().state().indices["a"].uuid.clone();
    let pool = Pool::new(env.host("asks"));
    let address = c.node(1).transport_address().to_owned();
    let ask_it = async |request: Request, limit_s: u64| {
        pool.call(&address, Class::Control, request, Duration::from_secs(limit_s)).await
    };
    let open = |kind| Request::OpenSession { index: "a".to_owned(), shard: 0, kind, key: 1 };
    let of_follower = |lease: &str| {
        open(SessionKind::Remote { lease: lease.to_owned(), index_uuid: index_uuid.clone() })
    };
    let session = match ask_it(of_follower("before"), 40).await {
        Ok(Response::Session(opened)) => opened.session,
        other => panic!("{other:?}"),
    };

    replica.hold(brings_operations);
    manager.hold(takes_out_of_sync);
    let writing = start_write(&env, &c);
    eventually(&env, "the replica has still to answer", async || replica.held() > 0).await;
    let rest = Request::ReadOps { session, from: 10, max_ops: 10, max_bytes: 1 << 20 };
    match ask_it(rest, 15).await {
        Ok(Response::Ops { ops, .. }) => assert!(ops.is_empty(), "{ops:?}"),
        other => panic!("operations that not every copy has: {other:?}"),
    }
    assert_refused(ask_it(of_follower("meanwhile"), 35).await, "that not every copy in sync has");
    manager.be_honest();
    replica.be_honest();
    assert_eq!(writing.await.unwrap().0, 201);

    let (allocation_id, has) = ("nobody".to_owned(), None);
    let unknown = open(SessionKind::Peer { index_uuid, allocation_id, has, retries: 0 });
    assert_refused(ask_it(unknown, 35).await, "does not know of yet");
    let chunk = Request::ReadOpening {
        index: "a".to_owned(),
        shard: 0,
        key: 2,
        number: 0,
        chunk_bytes: 1 << 20,
        compress: 0,
    };
    assert_refused(ask_it(chunk, 35).await, "no session was opened");
    pool.close();
    c.green("a").await;
}

type Lie = fn(&Request, Answer) -> Answer;

/// What a source says in place of the truth, how long its target bears that in seconds, and what it says then.
const LIES: [(&str, Lie, u64, &str); 2] = [
    (
        "operations that do not come are given up",
        |request, answer| match request {
            Request::Finalize { .. } => Ok(Response::SeqNo(Some(1000))),
            _ => answer,
        },
        15,
        "all others up to Some(1000)",
    ),
    (
        "a source that is never ready is given up",
        |request, answer| match request {
            Request::OpenSession { .. } => {
                Err(Failure::new(503, "unavailable_shards_exception", "is never ready"))
            }
            _ => answer,
        },
        130,
        "is never ready",
    ),
];

async fn a_recovery_that_comes_to_nothing_is_given_up(env: Env) {
    let (between, c) = cluster_behind(&env, "one", 3, 1).await;
    create_on(&c, "a", "one-1").await;
    for (what, lie, limit_s, says) in LIES {
        between.change(lie);
        let with_replica = json!({
            "index.number_of_replicas": 1, "index.routing.allocation.require._name": null,
            "index.routing.allocation.include._name": "one-1,one-2",
        });
        set(&c, with_replica).await;
        within(&env, limit_s, what, async || has_failed(&c, says)).await;
        between.be_honest();
        c.post("/_cluster/reroute?retry_failed").await;
        c.green("a").await;
        set(&c, json!({ "index.number_of_replicas": 0 })).await;
        c.green("a").await;
    }
}

/// A copy is not given up because work of its life before takes ten minutes; it is where that never ends.
async fn a_directory_that_stays_in_use_is_given_up(env: Env) {
    let mut c = Cluster::start(&env, "one", 2).await;
    create_on(&c, "a", "one-1").await;
    let uuid = c.any().state().indices["a"].uuid.clone();
    let dir = c.node(1).copy_dir(&uuid, 0);
    c.stop_node(1).await;
    let (mapping, options) = (query::Mapping::default(), store::Options::default());
    let host = env.host("one-1");
    let held = store::Shard::open(&host, &dir, &mapping, options).await.unwrap();
    c.start_node(1).await;
    env.sleep(Duration::from_secs(500)).await;
    assert!(!has_failed(&c, ""), "it is waited for");
    within(&env, 150, "it says so", async || has_failed(&c, "is open elsewhere")).await;
    held.close().await.unwrap();
    c.post("/_cluster/reroute?retry_failed").await;
    c.green("a").await;
}

/// It takes no operation meanwhile, so that it waits for those that run no longer than half a minute.
async fn a_primary_with_operations_that_do_not_end_refuses_to_hand_over(env: Env) {
    let (between, c) = shard_behind(&env, 4).await;
    let (manager, primary, replica) = (&between[0], &between[1], &between[2]);
    replica.hold(brings_operations);
    manager.hold(takes_out_of_sync);
    let said = Rc::new(RefCell::new(String::new()));
    let hears = said.clone();
    primary.change(move |request, answer: Answer| {
        if let (Request::HandOff { .. }, Err(refused)) = (request, &answer) {
            hears.replace(refused.reason.clone());
        }
        answer
    });
    let writing = start_write(&env, &c);
    eventually(&env, "the replica has still to answer", async || replica.held() > 0).await;
    move_primary(&c, "one-3").await;
    let is_refused = async || said.borrow().contains("has operations that do not end");
    within(&env, 40, "the target is told", is_refused).await;
    between.iter().for_each(Between::be_honest);
    assert_eq!(writing.await.unwrap().0, 201);
    let is_moved = async || node_of_primary(&c).as_deref() == Some("one-3");
    eventually(&env, "it hands over once they have ended", is_moved).await;
    c.green_within("a", 60).await;
}

/// What its target asked is lost: the move is given up.
async fn a_primary_that_does_not_answer_stays_where_it_is(env: Env) {
    let (between, c) = cluster_behind(&env, "one", 3, 1).await;
    create_on(&c, "a", "one-1").await;
    between.hold(|request| matches!(request, Request::HandOff { .. }));
    move_primary(&c, "one-2").await;
    eventually(&env, "the primary is asked", async || between.held() > 0).await;
    let says = "nobody knows whether the primary has handed over";
    within(&env, 65, "the move is given up", async || has_failed(&c, says)).await;
    between.lose_what_is_held();
    assert_eq!(node_of_primary(&c).as_deref(), Some("one-1"));
    c.must("PUT", "/a/_doc/1", json!({ "n": 1 })).await;
}

async fn a_silent_replica_leaves_the_copies_in_sync(env: Env) {
    let (between, c) = shard_behind(&env, 3).await;
    between[2].hold(brings_operations);
    let writing = start_write(&env, &c);
    let written = env.timeout(Duration::from_secs(35), writing).await.expect("an answer");
    assert_eq!(written.unwrap().0, 201);
    between[2].be_honest();
    c.green("a").await;
    assert_eq!(c.digests("a").await.iter().map(|one| one.1).collect::<Vec<_>>(), [11, 11]);
}

/// The manager and the replica are gone: nobody can say that the replica lacks the write.
async fn a_copy_that_cannot_be_taken_out_of_sync_fails_the_write(env: Env) {
    let mut c = Cluster::start(&env, "one", 3).await;
    create_on(&c, "a", "one-1").await;
    add_replica_on(&c, "a", "one-1,one-2").await;
    c.kill_node(0).await;
    c.kill_node(2).await;
    let writing = start_write(&env, &c);
    let written = env.timeout(Duration::from_secs(80), writing).await.expect("an answer");
    let (status, answer) = written.unwrap();
    assert_eq!(status, 503, "{answer}");
    assert!(answer.to_string().contains("it may have been done or not"), "{answer}");
    c.start_node(0).await;
    c.start_node(2).await;
    c.green_within("a", 60).await;
    eventually(&env, "both copies have the same", async || {
        let found = c.answered_digests("a").await;
        found.is_ok_and(|found| found.len() == 2 && found[0] == found[1])
    })
    .await;
}

/// The manager hears of the copy that lacks the write once another index has the name, whose primary has the same term.
async fn a_write_to_an_index_that_is_made_anew_meanwhile_is_not_acknowledged(env: Env) {
    let (between, c) = shard_behind(&env, 3).await;
    let (manager, replica) = (&between[0], &between[2]);
    replica.hold(brings_operations);
    manager.hold(takes_out_of_sync);
    let writing = start_write(&env, &c);
    within(&env, 40, "the replica is given up", async || manager.held() > 0).await;
    c.delete("/a").await;
    create_on(&c, "a", "one-1").await;
    between.iter().for_each(Between::be_honest);
    let written = env.timeout(Duration::from_secs(30), writing).await.expect("an answer");
    let (status, answer) = written.unwrap();
    assert_eq!(status, 503, "{answer}");
    assert!(answer.to_string().contains("it may have been done or not"), "{answer}");
    assert_eq!(c.counted("a").await["count"], 0);
}

/// It would let go of what a follower was told that it is kept.
async fn a_replica_that_takes_no_lease_leaves_the_copies_in_sync(env: Env) {
    let (between, c) = shard_behind(&env, 3).await;
    let in_sync = || c.any().state().shard("a", 0).unwrap().in_sync.clone();
    let before = in_sync();
    between[2].hold(|request| matches!(request, Request::Leases { .. }));
    env.timeout(Duration::from_secs(40), open(&c)).await.expect("an answer");
    assert_ne!(in_sync(), before);
    between[2].be_honest();
    c.green("a").await;
}

/// Otherwise a follower takes the refusal for one of its own request, and stops.
async fn who_asks_for_a_lease_is_told_to_try_again_where_the_term_is_over(env: Env) {
    let (between, c) = shard_behind(&env, 3).await;
    let (manager, replica) = (&between[0], &between[2]);
    replica.change(|request, answer: Answer| match request {
        Request::Leases { .. } => Err(Failure::new(500, "engine_exception", "its disk fails")),
        _ => answer,
    });
    manager.hold(takes_out_of_sync);
    {
        let asking = c.ask_node("one-1", opening(&c, 1));
        tokio::pin!(asking);
        tokio::select! {
            biased;
            answer = &mut asking => panic!("the replica has not taken it: {answer:?}"),
            () = eventually(&env, "the manager is told", async || manager.held() > 0) => {}
        }
        let lost = Event::ShardFailed {
            index: "a".to_owned(),
            shard: 0,
            allocation_id: c.any().state().shard("a", 0).unwrap().primary().allocation_id.clone(),
            reason: "its node was cut off".to_owned(),
            disk_full: false,
        };
        c.ask_node("one-0", Request::Submit(Box::new(lost))).await.unwrap();
        between.iter().for_each(Between::be_honest);
        assert_refused(asking.await, "the sender is no longer the primary");
    }
    c.green("a").await;
    c.stop().await;
}
