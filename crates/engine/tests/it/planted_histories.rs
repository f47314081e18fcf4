//! Histories that random faults hardly ever meet. Each ends well, and does not where the bug is planted that it is for:
//! what was acknowledged is not there, copies differ, or the history of one has a hole.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use engine::state::Event;
use engine::transport::{Operations, Replicate, Request, Response};
use engine::{Node, planted};
use record::ledger::{self, Action, Fate, Ledger, WriteId};
use serde_json::{Value, json};
use store::Operation;
use world::{Env, Task};

use crate::common::between::{Between, cluster_behind, cluster_behind_each, starts_a_copy};
use crate::common::{Cluster, eventually, raw};

/// Declares a test of each history, behind the bug that it shows.
macro_rules! shown {
    ($($test:ident: $bug:expr, $history:ident;)+) => {$(
        #[test]
        fn $test() {
            shows($bug, $history);
        }
    )+};
}

shown! {
    a_failed_copy_is_reported_after_its_write_has_given_up:
        planted::STALE_COPY_FORGOTTEN, a_replica_misses_a_write;
    a_new_primary_fills_the_gaps:
        planted::GAPS_STAY, a_replica_with_a_gap_is_promoted;
    the_global_checkpoint_waits_for_a_copy_that_joins:
        planted::JOINING_COPY_NOT_COUNTED, a_copy_that_joins_misses_a_write;
    a_leader_gives_its_followers_what_is_durable:
        store::planted::APPLIED_COUNTS_AS_DURABLE, a_leader_loses_what_it_did_not_sync;
    a_recovery_from_remote_ends_at_the_global_checkpoint:
        planted::REMOTE_BEYOND_CHECKPOINT, a_leader_is_lost_while_a_follower_recovers;
    a_follower_reads_up_to_the_global_checkpoint:
        planted::CHANGES_BEYOND_CHECKPOINT, a_leader_is_lost_with_what_its_replica_lacks;
    a_read_that_failed_is_sent_again:
        planted::WINDOW_MISCOUNTED, a_leader_starts_again;
    a_primary_is_not_written_before_its_following_has_ended:
        planted::WRITTEN_BEFORE_THE_END, a_follower_is_let_go_while_a_replica_is_ahead;
    a_reopened_follower_gives_what_every_copy_has:
        planted::CHECKPOINT_NOT_CONFIRMED, a_follower_is_reopened_while_a_replica_is_away;
    a_term_is_of_one_primary_although_that_was_never_started:
        planted::TERM_LEFT_TO_ANOTHER, a_primary_is_lost_before_it_counts_as_started;
    a_leader_gave_at_most_its_highest_operation:
        planted::LEADER_BOUND_BY_CHECKPOINT, a_follower_is_let_go_by_a_leader_that_knows_less;
    a_write_is_not_acknowledged_once_its_shard_is_gone:
        planted::ACKNOWLEDGED_WITHOUT_SHARD, an_index_is_deleted_while_it_is_written;
}

/// Plays a history without a bug and with it. It answers whether the ledger found nothing in the end.
#[track_caller]
fn shows<F: Future<Output = bool> + 'static>(bug: &'static str, history: impl Fn(Env) -> F) {
    let ends_well = |planted: Option<&'static str>| {
        world::virtual_world::run(7, |env| {
            planted.into_iter().for_each(|bug| env.plant(bug));
            history(env)
        })
    };
    assert!(ends_well(None), "something is wrong without a bug");
    assert!(!ends_well(Some(bug)), "nobody sees it: {bug}");
}

/// The replica gets one operation less than the primary. The manager, on the replica's node, hears of nothing until the
/// write has given up, and of all that is said then.
async fn a_replica_misses_a_write(env: Env) -> bool {
    let mut ledger = Ledger::default();
    let (between, cluster) = leader_with_its_replica_behind(&env, &mut ledger).await;
    between.hold(|request| match request {
        // Without operations it asks what the replica has.
        Request::Replicate(sent) => !sent.ops.is_empty(),
        other => matches!(other, Request::Submit(_)),
    });
    assert_eq!(write(&mut ledger, cluster.node(1), 10..11).await, 0, "the write has to give up");
    between.lose_what_is_held();
    assert_eq!(write(&mut ledger, cluster.node(1), 11..20).await, 9);
    becomes_whole(&env, &ledger, 2, &[(&cluster, "a")]).await
}

/// An operation is lost with its connection, the next one comes on another, and the primary dies.
async fn a_replica_with_a_gap_is_promoted(env: Env) -> bool {
    let mut leader = Cluster::start(&env, "leader", 2).await;
    let mut ledger = Ledger::default();
    create_on(&leader, "leader-1").await;
    add_replica(&leader, None).await;
    leader.green("a").await;
    assert_eq!(write(&mut ledger, leader.node(1), 0..10).await, 10);
    let follower = follower_of(&env, &leader).await;
    let state = leader.any().state();
    let shard = state.shard("a", 0).unwrap();
    let next_but_one = Request::Replicate(Replicate {
        index_uuid: state.indices["a"].uuid.clone(),
        allocation_id: shard.replicas().next().unwrap().allocation_id.clone(),
        primary_term: shard.primary_term,
        ops: Arc::new(vec![Operation::no_op(11)]),
        sync: true,
        ..Replicate::default()
    });
    leader.ask_node("leader-0", next_but_one).await.unwrap();
    leader.kill_node(1).await;
    assert_eq!(write(&mut ledger, leader.node(0), 10..20).await, 10);
    becomes_whole(&env, &ledger, 2, &[(&leader, "a"), (&follower, "b")]).await
}

/// A copy has joined, and its primary does not know yet that the manager counts it: it misses a write and has the next
/// one. Then it becomes the primary. A follower must not have read what it missed.
async fn a_copy_that_joins_misses_a_write(env: Env) -> bool {
    let (between, mut leader) = cluster_behind_each(&env, "leader", 3, &[0, 2]).await;
    let (manager, joining) = (&between[0], &between[1]);
    let mut ledger = Ledger::default();
    create_on(&leader, "leader-1").await;
    assert_eq!(write(&mut ledger, leader.node(1), 0..10).await, 10);
    let follower = follower_of(&env, &leader).await;
    manager.hold(starts_a_copy);
    add_replica(&leader, Some("leader-0")).await;
    eventually(&env, "a copy has joined", async || manager.held() > 0).await;

    joining.hold(|request| replicates(request, &["10"]));
    let _writing = send(&env, &mut ledger, leader.node(1), 10..11);
    eventually(&env, "the copy misses a write", async || joining.held() > 0).await;
    assert_eq!(write(&mut ledger, leader.node(1), 11..20).await, 9);
    // A follower has read by now what it was given.
    env.sleep(Duration::from_secs(5)).await;

    manager.be_honest();
    leader.green("a").await;
    joining.lose_what_is_held();
    leader.kill_node(1).await;
    becomes_whole(&env, &ledger, 2, &[(&leader, "a"), (&follower, "b")]).await
}

/// A leader whose writes do not wait for its disk gives the places of what it has lost to others.
async fn a_leader_loses_what_it_did_not_sync(env: Env) -> bool {
    let mut leader = Cluster::start(&env, "leader", 1).await;
    let mut ledger = Ledger::default();
    create_on(&leader, "leader-0").await;
    let settings = json!({
        "index.translog.durability": "async", "index.translog.sync_interval": "60s",
    });
    leader.must("PUT", "/a/_settings", settings).await;
    let follower = follower_of(&env, &leader).await;
    // Nobody was promised that these stay.
    let (_, body) = begin(&mut ledger, 0..10);
    let (status, answer) = raw(leader.node(0), "POST", "/a/_bulk", body).await;
    assert_eq!((status, &answer["errors"]), (200, &json!(false)), "{answer}");
    env.sleep(Duration::from_secs(5)).await;
    leader.kill_node(0).await;
    leader.start_node(0).await;
    leader.green("a").await;
    assert_eq!(write(&mut ledger, leader.node(0), 10..30).await, 20);
    becomes_whole(&env, &ledger, 2, &[(&leader, "a"), (&follower, "b")]).await
}

/// The recovery of a follower waits for the replica to have all that its files hold. Meanwhile the primary takes one
/// more write, which the replica never gets, and dies.
async fn a_leader_is_lost_while_a_follower_recovers(env: Env) -> bool {
    let mut ledger = Ledger::default();
    let (between, mut leader) = leader_with_its_replica_behind(&env, &mut ledger).await;
    // The lease of a follower is sent to the replica once the files are pinned that it is to copy.
    between.hold(|request| {
        matches!(request, Request::Leases { .. }) || replicates(request, &["10", "11"])
    });
    let _first = send(&env, &mut ledger, leader.node(1), 10..11);
    eventually(&env, "the replica lacks a write", async || between.held() >= 1).await;
    let follower = begin_to_follow(&env, &leader, "0").await;
    eventually(&env, "files are pinned", async || between.held() >= 2).await;
    let _second = send(&env, &mut ledger, leader.node(1), 11..12);
    eventually(&env, "the replica lacks another", async || between.held() >= 3).await;
    between.hold(|request| replicates(request, &["11"]));
    follower.green("b").await;
    leader.kill_node(1).await;
    assert_eq!(write(&mut ledger, leader.node(0), 12..20).await, 8);
    becomes_whole(&env, &ledger, 2, &[(&leader, "a"), (&follower, "b")]).await
}

/// News of the index end a follower's read while its replica lacks a write, and the primary dies.
async fn a_leader_is_lost_with_what_its_replica_lacks(env: Env) -> bool {
    let mut ledger = Ledger::default();
    let (between, mut leader) = leader_with_its_replica_behind(&env, &mut ledger).await;
    let follower = follower_of(&env, &leader).await;
    between.hold(|request| replicates(request, &["10"]));
    let _writing = send(&env, &mut ledger, leader.node(1), 10..11);
    eventually(&env, "the replica lacks a write", async || between.held() >= 1).await;
    leader.must("PUT", "/a/_settings", json!({ "index.refresh_interval": "2s" })).await;
    // A follower has read by now what it was given.
    env.sleep(Duration::from_secs(5)).await;
    leader.kill_node(1).await;
    assert_eq!(write(&mut ledger, leader.node(0), 11..20).await, 9);
    becomes_whole(&env, &ledger, 2, &[(&leader, "a"), (&follower, "b")]).await
}

/// A read that waits for news fails with its leader.
async fn a_leader_starts_again(env: Env) -> bool {
    let mut leader = Cluster::start(&env, "leader", 1).await;
    let mut ledger = Ledger::default();
    create_on(&leader, "leader-0").await;
    let follower = follower_of(&env, &leader).await;
    assert_eq!(write(&mut ledger, leader.node(0), 0..10).await, 10);
    env.sleep(Duration::from_secs(5)).await;
    leader.kill_node(0).await;
    leader.start_node(0).await;
    leader.green("a").await;
    assert_eq!(write(&mut ledger, leader.node(0), 10..20).await, 10);
    becomes_whole(&env, &ledger, 2, &[(&leader, "a"), (&follower, "b")]).await
}

/// A primary has a write that its replica lacks, and nobody acknowledged it. Both are lost; the primary is opened from
/// its disk, and lost again before the manager hears of that. Then the replica comes back and takes writes.
async fn a_primary_is_lost_before_it_counts_as_started(env: Env) -> bool {
    let (manager, mut leader) = cluster_behind(&env, "leader", 3, 0).await;
    let mut ledger = Ledger::default();
    create_on(&leader, "leader-1").await;
    add_replica(&leader, Some("leader-0")).await;
    leader.green("a").await;
    assert_eq!(write(&mut ledger, leader.node(1), 0..10).await, 10);
    manager.hold(|request| {
        let is_held = |event: &Event| {
            matches!(event, Event::CopyOutOfSync { .. } | Event::ShardStarted { .. })
        };
        matches!(request, Request::Submit(event) if is_held(event))
    });
    leader.kill_node(2).await;
    let _writing = send(&env, &mut ledger, leader.node(1), 10..11);
    eventually(&env, "the replica is to leave the set in sync", async || manager.held() > 0).await;
    leader.kill_node(1).await;
    let is_there = |leader: &Cluster, node: &str| leader.any().state().present.contains(node);
    eventually(&env, "both are gone", async || {
        !is_there(&leader, "leader-1") && !is_there(&leader, "leader-2")
    })
    .await;

    let before = manager.held();
    leader.start_node(1).await;
    eventually(&env, "it is open, and the manager does not know", async || manager.held() > before)
        .await;
    leader.kill_node(1).await;
    manager.lose_what_is_held();
    eventually(&env, "it is gone again", async || !is_there(&leader, "leader-1")).await;
    leader.start_node(2).await;
    assert_eq!(write(&mut ledger, leader.node(2), 11..20).await, 9);
    leader.start_node(1).await;
    becomes_whole(&env, &ledger, 2, &[(&leader, "a")]).await
}

/// In virtual time so many documents are indexed for seconds.
async fn an_index_is_deleted_while_it_is_written(env: Env) -> bool {
    let cluster = Cluster::start(&env, "one", 1).await;
    create_on(&cluster, "one-0").await;
    let (node, run) = (cluster.node(0).clone(), "documents=1000000&source_bytes=300000000");
    let path = format!("/a/_narrows/run?{run}");
    let writing = env.spawn("writes", async move { raw(&node, "POST", &path, Bytes::new()).await });
    env.sleep(Duration::from_secs(2)).await;
    cluster.delete("/a").await;
    let (_, answer) = writing.await.unwrap();
    answer["shards"][0]["status"] == 503
}

/// The leader does not answer any more, and the manager hears of nothing that the end of following asks for.
async fn a_follower_is_let_go_while_a_replica_is_ahead(env: Env) -> bool {
    let mut ledger = Ledger::default();
    let mut c = Ahead::begin(&env, &mut ledger).await;
    c.of_leader.hold(|request| matches!(request, Request::ReadChanges(_)));
    c.lose_primary(&env).await;
    c.of_manager.hold(|request| {
        let is_held = |event: &Event| {
            matches!(event, Event::CopyOutOfSync { reason, .. } if reason.starts_with("following ended"))
        };
        matches!(request, Request::Submit(event) if is_held(event))
    });
    c.end_following().await;
    let writing = write_to(&mut ledger, c.follower.node(2), "b", 20..21);
    let _ = env.timeout(Duration::from_secs(10), writing).await;
    c.follower.kill_node(1).await;
    c.of_manager.lose_what_is_held();
    becomes_whole(&env, &ledger, 1, &[(&c.follower, "b")]).await
}

/// The leader says what it would say once it was opened anew: not all that it gave before counts as being everywhere.
async fn a_follower_is_let_go_by_a_leader_that_knows_less(env: Env) -> bool {
    let mut ledger = Ledger::default();
    let mut c = Ahead::begin(&env, &mut ledger).await;
    c.of_leader.change(|_, mut answer| {
        if let Ok(Response::Changes(changes)) = &mut answer {
            changes.global_checkpoint = Some(9);
            if let Operations::Plain(ops) = &mut changes.ops {
                Arc::make_mut(ops).retain(|op| op.seq_no <= 9);
            }
        }
        answer
    });
    c.lose_primary(&env).await;
    eventually(&env, "the next primary has heard the leader", async || {
        let (_, stats) = c.follower.ask("GET", "/b/_ccr/stats", Value::Null).await;
        let shard = &stats["indices"][0]["shards"][0];
        shard["successful_read_requests"].as_u64() > Some(0)
    })
    .await;
    c.end_following().await;
    assert_eq!(write_to(&mut ledger, c.follower.node(2), "b", 20..21).await, 1);
    becomes_whole(&env, &ledger, 2, &[(&c.follower, "b")]).await
}

/// In a chain of three, the second one's primary has operations that its replica lacks, which is away and stays in
/// sync, as the manager does not hear of it. The primary is opened anew while its leader does not answer, and is lost
/// for good. Then the replica is the primary, its following is ended, and it takes writes of its own.
async fn a_follower_is_reopened_while_a_replica_is_away(env: Env) -> bool {
    let mut ledger = Ledger::default();
    let (of_leader, leader) = cluster_behind(&env, "leader", 1, 0).await;
    create_on(&leader, "leader-0").await;
    let (manager, mut follower) = cluster_behind(&env, "follower", 3, 0).await;
    follow_with_replicas(&follower, &leader, ("follower-1", 1)).await;
    let third = Cluster::start(&env, "third", 1).await;
    tell_of_leader(&third, &follower).await;
    third.follow("c", ("leader", "b"), 0, "1").await;
    assert_eq!(write(&mut ledger, leader.node(0), 0..10).await, 10);
    let indices = [(&leader, "a"), (&follower, "b"), (&third, "c")];
    assert!(becomes_whole(&env, &ledger, 4, &indices).await);

    manager.hold(|request| {
        let is_held = |event: &Event| matches!(event, Event::CopyOutOfSync { .. });
        matches!(request, Request::Submit(event) if is_held(event))
    });
    follower.kill_node(2).await;
    // They are the follower's as long as it follows, and no longer.
    send(&env, &mut ledger, leader.node(0), 10..15).await.unwrap();
    eventually(&env, "the primary is ahead", async || {
        let copies = follower.node(1).copies("b").await.unwrap_or_default();
        manager.held() > 0 && copies.iter().any(|copy| copy.documents.len() == 15)
    })
    .await;
    of_leader.hold(|request| matches!(request, Request::ReadChanges(_)));
    follower.kill_node(1).await;
    let is_there = |c: &Cluster, node: &str| c.any().state().present.contains(node);
    eventually(&env, "both are gone", async || {
        !is_there(&follower, "follower-1") && !is_there(&follower, "follower-2")
    })
    .await;

    follower.start_node(1).await;
    has_primary_on(&env, &follower, "follower-1").await;
    // The last one has read by now what it was given.
    env.sleep(Duration::from_secs(10)).await;
    follower.kill_node(1).await;
    manager.lose_what_is_held();
    eventually(&env, "it is gone again", async || !is_there(&follower, "follower-1")).await;
    follower.start_node(2).await;
    has_primary_on(&env, &follower, "follower-2").await;
    end_following(&follower).await;
    assert_eq!(write_to(&mut ledger, follower.node(2), "b", 20..25).await, 5);
    becomes_whole(&env, &ledger, 2, &[(&follower, "b"), (&third, "c")]).await
}

/// A follower whose primary is on node 3. It sends operations 10 to 14 of its leader to its replicas: that on node 2
/// has them, that on node 1 does not get them. The leader, the follower's manager and node 1 are behind somebody each.
struct Ahead {
    of_leader: Between,
    of_manager: Between,
    of_lagging: Between,
    _leader: Cluster,
    follower: Cluster,
}

impl Ahead {
    async fn begin(env: &Env, ledger: &mut Ledger) -> Ahead {
        let (of_leader, leader) = cluster_behind(env, "leader", 1, 0).await;
        create_on(&leader, "leader-0").await;
        let (mut between, follower) = cluster_behind_each(env, "follower", 4, &[0, 1]).await;
        let (of_lagging, of_manager) = (between.pop().unwrap(), between.pop().unwrap());
        follow_with_replicas(&follower, &leader, ("follower-3", 2)).await;
        assert_eq!(write(ledger, leader.node(0), 0..10).await, 10);
        let indices = [(&leader, "a"), (&follower, "b")];
        assert!(becomes_whole(env, ledger, 4, &indices).await);

        of_lagging.hold(|request| replicates(request, &["10", "11", "12", "13", "14"]));
        // They are the follower's as long as it follows, and no longer.
        send(env, ledger, leader.node(0), 10..15).await.unwrap();
        eventually(env, "one replica is ahead", async || {
            let copies = follower.node(2).copies("b").await.unwrap_or_default();
            copies.iter().any(|copy| copy.documents.len() == 15)
        })
        .await;
        assert!(of_lagging.held() > 0);
        Ahead { of_leader, of_manager, of_lagging, _leader: leader, follower }
    }

    /// The replica that lags takes the primary's place: the first by name of two nodes with as many copies.
    async fn lose_primary(&mut self, env: &Env) {
        self.follower.kill_node(3).await;
        has_primary_on(env, &self.follower, "follower-1").await;
        self.of_lagging.lose_what_is_held();
    }

    async fn end_following(&self) {
        end_following(&self.follower).await;
    }
}

/// Waits until the follower's started primary is on this node.
async fn has_primary_on(env: &Env, follower: &Cluster, node: &str) {
    eventually(env, "the primary is where it should be", async || {
        let state = follower.any().state();
        let primary = state.shard("b", 0).unwrap().started_primary();
        primary.is_some_and(|primary| primary.is_on(node))
    })
    .await;
}

async fn end_following(follower: &Cluster) {
    for what in ["pause_follow", "unfollow"] {
        follower.post(&format!("/b/_ccr/{what}")).await;
    }
}

/// Has `b` follow `a`: the primary on this node, and so many replicas, all of them on other nodes than the manager's.
async fn follow_with_replicas(follower: &Cluster, leader: &Cluster, at: (&str, u32)) {
    tell_of_leader(follower, leader).await;
    let body = json!({
        "remote_cluster": "leader", "leader_index": "a",
        "settings": {
            "index.number_of_replicas": 0,
            "index.routing.allocation.require._name": at.0,
        },
    });
    follower.must("PUT", "/b/_ccr/follow?wait_for_active_shards=1", body).await;
    let settings = json!({
        "index.number_of_replicas": at.1,
        "index.routing.allocation.require._name": null,
        "index.routing.allocation.exclude._name": "follower-0",
    });
    follower.must("PUT", "/b/_settings", settings).await;
    follower.green("b").await;
}

/// A leader with ten documents: the primary is on its node 1, and the replica on node 0, behind somebody.
async fn leader_with_its_replica_behind(env: &Env, ledger: &mut Ledger) -> (Between, Cluster) {
    let (between, leader) = cluster_behind(env, "leader", 2, 0).await;
    create_on(&leader, "leader-1").await;
    add_replica(&leader, None).await;
    leader.green("a").await;
    assert_eq!(write(ledger, leader.node(1), 0..10).await, 10);
    (between, leader)
}

/// Whether a primary sends a write of one of these documents.
fn replicates(request: &Request, documents: &[&str]) -> bool {
    let is_one = |op: &Operation| documents.iter().any(|document| **document == *op.id);
    matches!(request, Request::Replicate(sent) if sent.ops.iter().any(is_one))
}

/// An index `a` of one shard, whose primary is on this node.
async fn create_on(cluster: &Cluster, node: &str) {
    let body = json!({
        "settings": {
            "number_of_shards": 1, "number_of_replicas": 0,
            "index.routing.allocation.require._name": node,
        },
        "mappings": { "dynamic": false },
    });
    cluster.make("a", body).await;
}

/// Has a replica of it made, on any other node but this one.
async fn add_replica(cluster: &Cluster, except: Option<&str>) {
    let settings = json!({
        "index.number_of_replicas": 1,
        "index.routing.allocation.require._name": null,
        "index.routing.allocation.exclude._name": except,
    });
    cluster.must("PUT", "/a/_settings", settings).await;
}

/// A cluster of one node whose index `b` follows `a`.
async fn follower_of(env: &Env, leader: &Cluster) -> Cluster {
    begin_to_follow(env, leader, "1").await
}

/// The same, once so many copies of it are there.
async fn begin_to_follow(env: &Env, leader: &Cluster, copies: &str) -> Cluster {
    let follower = Cluster::start(env, "follower", 1).await;
    tell_of_leader(&follower, leader).await;
    follower.follow("b", ("leader", "a"), 0, copies).await;
    follower
}

async fn tell_of_leader(follower: &Cluster, leader: &Cluster) {
    follower.set(json!({ "cluster.remote.leader.seeds": leader.seeds() })).await;
}

/// Enters writes that begin, one to each of these documents; answers with the bulk request for them.
fn begin(ledger: &mut Ledger, documents: Range<u64>) -> (Vec<WriteId>, Bytes) {
    let (mut writes, mut body) = (Vec::new(), String::new());
    for number in documents {
        let (id, source) = (number.to_string(), format!("{{\"n\":{number}}}"));
        let content = store::document_hash(&id, source.as_bytes());
        writes.push(ledger.begin(&id, 0, Action::Index { content }));
        body.push_str(&format!("{{\"index\":{{\"_id\":\"{id}\"}}}}\n{source}\n"));
    }
    (writes, body.into())
}

/// Sends writes that may never be answered; what became of them stays unknown.
fn send(env: &Env, ledger: &mut Ledger, node: &Node, documents: Range<u64>) -> Task<(u16, Value)> {
    let ((_, body), node) = (begin(ledger, documents), node.clone());
    env.spawn("writes", async move { raw(&node, "POST", "/a/_bulk", body).await })
}

/// Writes documents to `a` through a node, and enters what became of them; answers how many were acknowledged.
async fn write(ledger: &mut Ledger, node: &Node, documents: Range<u64>) -> usize {
    write_to(ledger, node, "a", documents).await
}

async fn write_to(ledger: &mut Ledger, node: &Node, index: &str, documents: Range<u64>) -> usize {
    let (writes, body) = begin(ledger, documents);
    let (_, answer) = raw(node, "POST", &format!("/{index}/_bulk"), body).await;
    let fate = |place: usize| Fate::of_bulk_item(&answer["items"][place]);
    writes.iter().enumerate().for_each(|(place, write)| ledger.settle(write, fate(place)));
    let is_acknowledged = |place: &usize| matches!(fate(*place), Fate::Acknowledged { .. });
    (0..writes.len()).filter(is_acknowledged).count()
}

/// How long copies may take until nothing is wrong with them: longer than anything is waited for.
const PATIENCE_S: u64 = 180;

/// Whether so many copies come to hold what the ledger says, and all the same.
async fn becomes_whole(
    env: &Env,
    ledger: &Ledger,
    wanted: usize,
    indices: &[(&Cluster, &str)],
) -> bool {
    for _ in 0..PATIENCE_S {
        let copies = copies_of(indices).await;
        if copies.len() == wanted && ledger.check(&copies).is_empty() {
            return true;
        }
        env.sleep(Duration::from_secs(1)).await;
    }
    false
}

async fn copies_of(indices: &[(&Cluster, &str)]) -> Vec<ledger::Copy> {
    let mut copies = Vec::new();
    for (cluster, index) in indices {
        for node in cluster.nodes.values() {
            // Those that cannot be read now are not there yet.
            copies.extend(node.copies(index).await.unwrap_or_default());
        }
    }
    copies
}
