//! What a leader keeps for its followers, and on which of its copies.

use std::fmt::Debug;
use std::time::Duration;

use crate::common::between::{Between, cluster_behind, cluster_behind_each};
use crate::common::pair::{Pair, pair, pair_of};
use crate::common::{Cluster, eventually, fails_with, same};
use crate::waits::{add_replica_on, create_on};
use engine::planted;
use engine::settings::{FollowParameters, Update};
use engine::state::{Event, FollowChange};
use engine::transport::{
    Class, LeaderShard, LeaseRequest, Pool, Replicate, Request, Response, SessionKind,
    SessionOpened,
};
use policy::retention::Leases;
use serde_json::{Value, json};
use world::Env;

testbed::both_worlds!(
    an_opening_that_comes_late_leaves_a_lease_where_it_is,
    a_lease_keeps_operations_over_a_flush_and_a_restart,
    an_expired_lease_is_recovered_from,
    it_recovers_from_remote_again_once_and_not_twice,
    renewals_at_once_all_succeed,
    leases_of_an_older_term_are_refused,
    a_copy_that_comes_up_has_the_lease_of_a_follower_that_began_meanwhile,
    a_copy_that_comes_up_has_no_lease_that_was_dropped_meanwhile,
    a_lease_that_begins_is_on_every_copy_before_it_is_acknowledged,
    who_asks_again_for_a_lease_that_begins_waits_as_well,
    who_asks_again_for_more_waits_as_well,
    a_copy_joins_with_the_leases_that_began_meanwhile,
    a_list_of_leases_that_comes_after_a_later_one_is_not_taken;
    simulated:
    a_session_whose_target_is_lost_keeps_no_operations,
    a_session_that_reads_is_not_idle,
    a_promoted_primary_lets_go_of_nothing_that_others_may_need,
    a_replica_that_has_left_needs_nothing,
    a_replica_that_has_joined_holds_no_lease_back,
);

#[test]
fn a_planted_bug_fails_the_test_that_it_is_for() {
    let late = a_list_of_leases_that_comes_after_a_later_one_is_not_taken;
    fails_with(planted::OLD_LEASES_TAKEN, late, "has both leases");
}

/// A follower's copy begins: it asks for a session on the one shard of `a`.
pub fn opening(leader: &Cluster, key: u64) -> Request {
    let index_uuid = leader.any().state().indices["a"].uuid.clone();
    let kind = SessionKind::Remote { lease: "f".to_owned(), index_uuid };
    Request::OpenSession { index: "a".to_owned(), shard: 0, kind, key }
}

/// The session that is opened.
pub async fn open(leader: &Cluster) -> SessionOpened {
    match leader.ask_primary("a", opening(leader, 1)).await {
        Ok(Response::Session(opened)) => *opened,
        other => panic!("{other:?}"),
    }
}

/// The connection closes a little later with each session, so that some of them are only being opened then. None keeps
/// operations in the log for good.
async fn a_session_whose_target_is_lost_keeps_no_operations(env: Env) {
    let cluster = Cluster::with(&env, "c", 1, ("a", 1, 0)).await;
    let address = cluster.any().transport_address().to_owned();
    for number in 0..100 {
        cluster.index("a", number, number + 1).await;
        let request = opening(&cluster, number);
        let pool = Pool::new(env.clone());
        let limit = Duration::from_micros(20 * number);
        let _ = pool.call(&address, Class::Control, request, limit).await;
        pool.close();
    }
    // Longer than a session that was opened may be idle.
    env.sleep(Duration::from_secs(90)).await;
    let leases = cluster.any().retention_leases("a").unwrap();
    let ids: Vec<&str> = leases.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(ids, ["f"]);
}

/// A primary that was replaced, and does not know it yet, sends its replicas what it keeps.
async fn leases_of_an_older_term_are_refused(env: Env) {
    let cluster = Cluster::with(&env, "c", 2, ("a", 1, 1)).await;
    let state = cluster.any().state();
    let shard = state.shard("a", 0).unwrap();
    let replica = shard.copies.iter().find(|copy| !copy.primary).unwrap().node.clone().unwrap();
    let send = async |primary_term| {
        let (index_uuid, leases) = (state.indices["a"].uuid.clone(), Leases::default());
        let request = Request::Leases { index_uuid, shard: 0, primary_term, leases };
        cluster.ask_node(&replica, request).await
    };
    let refused = send(shard.primary_term - 1).await.map(drop).unwrap_err().to_string();
    assert!(refused.contains("is over"), "{refused}");
    let taken = send(shard.primary_term).await;
    assert!(matches!(taken, Ok(Response::Done)), "{taken:?}");
}

/// A copy on the second node of three.
async fn one_copy(env: &Env) -> (Between, Cluster) {
    let (primary, cluster) = cluster_behind(env, "one", 3, 1).await;
    create_on(&cluster, "a", "one-1").await;
    cluster.must("PUT", "/a/_doc/1", json!({ "n": 1 })).await;
    (primary, cluster)
}

/// The same with another copy on the third one.
async fn two_copies(env: &Env) -> (Between, Cluster) {
    let (replica, cluster) = cluster_behind(env, "one", 3, 2).await;
    create_on(&cluster, "a", "one-1").await;
    add_replica_on(&cluster, "a", "one-1,one-2").await;
    (replica, cluster)
}

/// The primary of `a` as a follower knows it that has begun.
async fn followed(cluster: &Cluster) -> LeaderShard {
    let SessionOpened { history_uuid, .. } = open(cluster).await;
    let index_uuid = cluster.any().state().indices["a"].uuid.clone();
    LeaderShard { index: "a".to_owned(), index_uuid, shard: 0, history_uuid }
}

/// No answer comes before the replica is sent so many lists, which it does not get.
async fn is_not_answered_before<T: Debug>(
    (env, replica, lists): (&Env, &Between, usize),
    asking: impl Future<Output = T>,
) {
    tokio::select! {
        biased;
        answer = asking => panic!("{} lists were sent: {answer:?}", replica.held()),
        () = eventually(env, "lists are sent", async || replica.held() >= lists) => {}
    }
}

/// Another one begins to copy the files of that, and waits for them.
async fn begin_to_copy(env: &Env, primary: &Between, cluster: &Cluster) {
    primary
        .hold(|request| matches!(request, Request::ReadOpening { .. } | Request::ReadChunk { .. }));
    let settings = json!({
        "index.number_of_replicas": 1, "index.routing.allocation.require._name": null,
        "index.routing.allocation.include._name": "one-1,one-2",
    });
    cluster.must("PUT", "/a/_settings", settings).await;
    eventually(env, "the replica asks for files", async || primary.held() > 0).await;
    // Its session is open by then.
    env.sleep(Duration::from_secs(1)).await;
}

/// The copy gets its files and becomes the primary. Whether it has the lease.
async fn is_kept_by_the_copy(env: &Env, primary: &Between, cluster: &mut Cluster) -> bool {
    primary.be_honest();
    cluster.green("a").await;
    leases_of_the_next_primary(env, cluster).await.iter().any(|id| id == "f")
}

/// The leases of the copy on the third node, which becomes the primary.
async fn leases_of_the_next_primary(env: &Env, cluster: &mut Cluster) -> Vec<String> {
    cluster.kill_node(1).await;
    eventually(env, "the replica is the primary", async || {
        cluster.node(2).retention_leases("a").is_some()
    })
    .await;
    let kept = cluster.node(2).retention_leases("a").unwrap();
    kept.into_iter().map(|(id, _)| id).collect()
}

/// It copies files when the lease begins, and cannot take it. A follower that rests renews it an hour later.
async fn a_copy_that_comes_up_has_the_lease_of_a_follower_that_began_meanwhile(env: Env) {
    let (primary, mut cluster) = one_copy(&env).await;
    begin_to_copy(&env, &primary, &cluster).await;
    cluster.ask_primary("a", opening(&cluster, 1)).await.unwrap();
    assert!(is_kept_by_the_copy(&env, &primary, &mut cluster).await);
}

/// It got the lease when its session was opened. Its primary, which has none any more, would send it none later.
async fn a_copy_that_comes_up_has_no_lease_that_was_dropped_meanwhile(env: Env) {
    let (primary, mut cluster) = one_copy(&env).await;
    let leader = followed(&cluster).await;
    begin_to_copy(&env, &primary, &cluster).await;
    let drops = LeaseRequest { leader, id: "f".to_owned(), from: None, at_least: false };
    let dropped = cluster.ask_primary("a", Request::Lease(Box::new(drops))).await;
    assert!(matches!(dropped, Ok(Response::Done)), "{dropped:?}");
    assert!(!is_kept_by_the_copy(&env, &primary, &mut cluster).await);
}

/// Its follower relies on it whichever copy is the primary by then, and a follower that rests renews it an hour later.
async fn a_lease_that_begins_is_on_every_copy_before_it_is_acknowledged(env: Env) {
    let (replica, mut cluster) = two_copies(&env).await;
    replica.hold(|request| matches!(request, Request::Leases { .. }));
    {
        let asking = cluster.ask_primary("a", opening(&cluster, 1));
        tokio::pin!(asking);
        is_not_answered_before((&env, &replica, 1), &mut asking).await;
        replica.be_honest();
        asking.await.unwrap();
    }
    assert!(is_kept_by_the_copy(&env, &replica, &mut cluster).await);
}

/// The follower was cut off from its leader, and begins anew under the same lease.
async fn who_asks_again_for_a_lease_that_begins_waits_as_well(env: Env) {
    let (replica, cluster) = two_copies(&env).await;
    replica.hold(|request| matches!(request, Request::Leases { .. }));
    {
        let first = cluster.ask_primary("a", opening(&cluster, 1));
        let again = cluster.ask_primary("a", opening(&cluster, 2));
        tokio::pin!(first, again);
        is_not_answered_before((&env, &replica, 1), &mut first).await;
        let either = async {
            tokio::select! { biased; answer = &mut first => answer, answer = &mut again => answer }
        };
        is_not_answered_before((&env, &replica, 2), either).await;
        replica.be_honest();
        first.await.unwrap();
        again.await.unwrap();
    }
}

/// Two ask for it, the second one for more: the replica has what the first one asked for.
async fn who_asks_again_for_more_waits_as_well(env: Env) {
    let (replica, cluster) = two_copies(&env).await;
    cluster.index("a", 0, 10).await;
    let leader = followed(&cluster).await;
    let ask = |from: u64| {
        let (leader, id) = (leader.clone(), "g".to_owned());
        let ask = LeaseRequest { leader, id, from: Some(from), at_least: true };
        cluster.ask_primary("a", Request::Lease(Box::new(ask)))
    };
    replica.hold(|request| matches!(request, Request::Leases { .. }));
    {
        let (first, second, third) = (ask(5), ask(3), ask(3));
        tokio::pin!(first, second, third);
        is_not_answered_before((&env, &replica, 1), &mut first).await;
        is_not_answered_before((&env, &replica, 2), &mut second).await;
        replica.hold(|request| {
            matches!(request, Request::Leases { leases, .. } if leases.retained_from("g") == Some(3))
        });
        first.await.unwrap();
        is_not_answered_before((&env, &replica, 2), &mut third).await;
        replica.be_honest();
        second.await.unwrap();
        third.await.unwrap();
    }
}

/// Whatever its primary sends it of leases from then on may be lost or late.
async fn a_copy_joins_with_the_leases_that_began_meanwhile(env: Env) {
    let (between, mut cluster) = cluster_behind_each(&env, "one", 3, &[1, 2]).await;
    let (primary, joining) = (&between[0], &between[1]);
    create_on(&cluster, "a", "one-1").await;
    cluster.must("PUT", "/a/_doc/1", json!({ "n": 1 })).await;
    joining.hold(|request| matches!(request, Request::Leases { .. }));
    begin_to_copy(&env, primary, &cluster).await;
    cluster.ask_primary("a", opening(&cluster, 1)).await.unwrap();
    assert!(is_kept_by_the_copy(&env, primary, &mut cluster).await);
}

/// Of two leases that begin at once, the replica hears of both before it hears of the first alone.
async fn a_list_of_leases_that_comes_after_a_later_one_is_not_taken(env: Env) {
    let (replica, mut cluster) = two_copies(&env).await;
    replica
        .hold(|request| matches!(request, Request::Leases { leases, .. } if !leases.contains("g")));
    let mut second = opening(&cluster, 2);
    if let Request::OpenSession { kind: SessionKind::Remote { lease, .. }, .. } = &mut second {
        *lease = "g".to_owned();
    }
    {
        let first = cluster.ask_primary("a", opening(&cluster, 1));
        tokio::pin!(first);
        is_not_answered_before((&env, &replica, 1), &mut first).await;
        cluster.ask_primary("a", second).await.unwrap();
        replica.be_honest();
        first.await.unwrap();
    }
    let kept = leases_of_the_next_primary(&env, &mut cluster).await;
    let has = |id: &str| kept.iter().any(|kept| kept == id);
    assert!(has("f") && has("g"), "the next primary has both leases: {kept:?}");
}

/// The rate limit holds a chunk back for longer than a session may be idle.
async fn a_session_that_reads_is_not_idle(env: Env) {
    let cluster = Cluster::holding(&env, "c", 1, ("a", 1, 0), 1000).await;
    let address = cluster.any().transport_address().to_owned();
    let pool = Pool::new(env.clone());
    let ask = async |request| {
        pool.call(&address, Class::Control, request, Duration::from_secs(600)).await
    };
    let Ok(Response::Session(opened)) = ask(opening(&cluster, 0)).await else {
        panic!("the primary is here")
    };
    let (session, commit) = (opened.session, opened.commit.clone().unwrap());
    let files = (0..).zip(commit.files.iter().map(|file| file.len));
    let (file, len) = files.max_by_key(|(_, len)| *len).unwrap();
    let rate = json!({ "ccr.indices.recovery.max_bytes_per_sec": format!("{}b", len / 180) });
    cluster.set_for_now(rate).await;
    let asked = env.now();
    let read = Request::ReadChunk { session, file, offset: 0, len: len as u32, compress: 0 };
    assert!(matches!(ask(read).await, Ok(Response::Chunk(_))));
    assert!(env.now() - asked > Duration::from_secs(90), "the limit does not hold it back");
    let verified = ask(Request::VerifyFile { session, file }).await;
    assert!(matches!(verified, Ok(Response::Done)), "{verified:?}");
    pool.close();
}

/// The leader commits what its follower has not read yet; then a session is opened under the lease of that follower, as
/// by a copy of it that is gone already.
async fn an_opening_that_comes_late_leaves_a_lease_where_it_is(env: Env) {
    let cluster = Cluster::with(&env, "c", 1, ("a", 1, 0)).await;
    let retained = || {
        let leases = cluster.any().retention_leases("a").unwrap();
        leases.into_iter().find(|(id, _)| id == "f").map(|(_, from)| from)
    };
    let open = async |key: u64| {
        cluster.ask_primary("a", opening(&cluster, key)).await.unwrap();
        retained().expect("the lease of the session")
    };
    cluster.index("a", 0, 1).await;
    let followed_from = open(0).await;
    cluster.index("a", 1, 10).await;
    cluster.post("/a/_flush").await;
    assert_eq!(open(1).await, followed_from);
}

pub async fn follow(cluster: &Cluster, index: &str, alias: &str, leader: &str) {
    cluster.follow(index, (alias, leader), 0, "1").await;
}

/// The paused follower's operations stay in the leader's log, though it commits and is started again.
async fn a_lease_keeps_operations_over_a_flush_and_a_restart(env: Env) {
    let mut pair = pair(&env, 4, 50_000_000, 100).await;
    follow(&pair.follower, "b", "leader", "a").await;
    pair.leader.index("a", 100, 200).await;
    pair.same("b").await;
    pair.follower.post("/b/_ccr/pause_follow").await;
    pair.leader.index("a", 200, 400).await;
    pair.leader.post("/a/_flush").await;
    pair.leader.kill_all().await;
    pair.leader.start_all().await;
    pair.leader.green("a").await;
    pair.leader.index("a", 400, 500).await;
    pair.leader.post("/a/_flush").await;
    pair.follower.post("/b/_ccr/resume_follow").await;
    pair.same("b").await;
    for shard in pair.stats("b").await {
        assert!(shard["operations_read"].as_u64().unwrap() >= 100, "they came one by one: {shard}");
        assert!(shard["narrows"]["recovered_from_remote_again"].is_null(), "{shard}");
    }
}

/// The primary of a follower is lost when one of its replicas has heard of a later global checkpoint than the other.
/// That one becomes the primary and is lost before it has told the other anything, which still finds what it reads.
async fn a_promoted_primary_lets_go_of_nothing_that_others_may_need(env: Env) {
    let mut pair = pair_of(&env, (1, 4), (4, 50_000_000), (0, 0)).await;
    let apart = json!({ "cluster.routing.allocation.exclude._name": "follower-0" });
    pair.follower.set(apart).await;
    pair.leader.create("x", 1, 0).await;
    pair.follower.follow("b", ("leader", "x"), 2, "all").await;
    pair.follower.green("b").await;
    for from in [0, 50] {
        pair.leader.index("x", from, from + 50).await;
        env.sleep(Duration::from_secs(1)).await;
    }
    let state = pair.follower.any().state();
    let shard = state.shard("b", 0).unwrap();
    let mut replicas: Vec<_> = shard.replicas().collect();
    replicas.sort_by_key(|copy| copy.node.clone());
    let told = Request::Replicate(Replicate {
        index_uuid: state.indices["b"].uuid.clone(),
        allocation_id: replicas[0].allocation_id.clone(),
        primary_term: shard.primary_term,
        global_checkpoint: Some(99),
        sync: true,
        ..Replicate::default()
    });
    let in_turn = [shard.primary(), replicas[0], replicas[1]];
    let [first, second, third] = in_turn.map(|copy| copy.node.clone().unwrap());
    pair.follower.ask_node(&second, told).await.unwrap();
    let is_primary = |pair: &Pair, node: &str| {
        let state = pair.follower.any().state();
        let primary = state.shard("b", 0).unwrap().primary();
        primary.is_started() && primary.is_on(node)
    };
    let number = |node: &str| node.rsplit('-').next().unwrap().parse().unwrap();
    pair.follower.kill_node(number(&first)).await;
    eventually(&env, "the second is the primary", async || is_primary(&pair, &second)).await;
    // Until it has renewed the lease, and asked for more.
    env.sleep(Duration::from_secs(5)).await;
    pair.leader.post("/x/_flush").await;
    pair.follower.kill_node(number(&second)).await;
    eventually(&env, "the third is the primary", async || is_primary(&pair, &third)).await;
    pair.leader.index("x", 100, 150).await;
    eventually(&env, "it has everything", async || {
        let (_, count) = pair.follower.ask("GET", "/b/_count", Value::Null).await;
        count["count"] == 150
    })
    .await;
    let shards = pair.stats("b").await;
    assert!(shards[0]["narrows"]["recovered_from_remote_again"].is_null(), "{}", shards[0]);
}

/// What a replica would have needed that is no more keeps nothing.
async fn a_replica_that_has_left_needs_nothing(env: Env) {
    let pair = pair_of(&env, (1, 3), (4, 50_000_000), (0, 0)).await;
    pair.leader.create("x", 1, 0).await;
    pair.follower.follow("b", ("leader", "x"), 1, "all").await;
    pair.follower.green("b").await;
    for from in [0, 50] {
        pair.leader.index("x", from, from + 50).await;
        env.sleep(Duration::from_secs(1)).await;
    }
    pair.follower.must("PUT", "/b/_settings", json!({ "index.number_of_replicas": 0 })).await;
    for from in [100, 150] {
        pair.leader.index("x", from, from + 50).await;
        env.sleep(Duration::from_secs(60)).await;
    }
    let leases = pair.leader.any().retention_leases("x").unwrap();
    assert!(!leases.is_empty() && leases.iter().all(|(_, from)| *from >= 150), "{leases:?}");
}

/// A replica hears of the global checkpoint when it joins, and would read from there: the lease moves on although no
/// write comes that tells it more. While it were unknown what the replica needs, the lease would stay.
async fn a_replica_that_has_joined_holds_no_lease_back(env: Env) {
    let pair = pair_of(&env, (1, 2), (4, 50_000_000), (0, 0)).await;
    pair.leader.create("x", 1, 0).await;
    follow(&pair.follower, "b", "leader", "x").await;
    pair.leader.index("x", 0, 50).await;
    same((&pair.leader, "x"), (&pair.follower, "b")).await;
    pair.follower.must("PUT", "/b/_settings", json!({ "index.number_of_replicas": 1 })).await;
    pair.follower.green("b").await;
    let retained = || {
        let leases = pair.leader.any().retention_leases("x").unwrap().into_iter();
        let of_followers = leases.filter(|(id, _)| !id.starts_with("recovery/"));
        of_followers.map(|(_, from)| from).collect::<Vec<_>>()
    };
    assert_eq!(retained(), [0], "the replica has joined before the lease is renewed");
    eventually(&env, "the lease leaves what both copies have", async || retained() == [50]).await;
}

/// Every shard says that it recovered from remote again, and why, and goes on.
async fn recovered_again(pair: &Pair) {
    for shard in pair.stats("b").await {
        let why = shard["narrows"]["recovered_from_remote_again"].as_str().unwrap_or_default();
        assert!(why.contains("no longer available for replicating"), "{shard}");
        assert!(why.contains("index.soft_deletes.retention_lease.period"), "{shard}");
        assert!(shard["fatal_exception"].is_null(), "{shard}");
    }
}

/// Without a lease the operations are gone after a commit: the files come again, and the stats say so.
async fn an_expired_lease_is_recovered_from(env: Env) {
    let pair = pair(&env, 4, 50_000_000, 100).await;
    let lose = async |from: u64| {
        pair.follower.post("/b/_ccr/pause_follow").await;
        write_and_forget(&env, &pair, from).await;
        pair.follower.post("/b/_ccr/resume_follow").await;
    };
    follow(&pair.follower, "b", "leader", "a").await;
    pair.leader.index("a", 100, 200).await;
    pair.same("b").await;
    lose(200).await;
    pair.same("b").await;
    recovered_again(&pair).await;
    // It goes on following.
    pair.leader.index("a", 400, 500).await;
    pair.same("b").await;
}

/// A follower that loses its operations again and again is somebody's to look at, and says why; who resumes it lets it
/// try again. It is down while they go: no read waits at the leader that could still bring them.
async fn it_recovers_from_remote_again_once_and_not_twice(env: Env) {
    let mut pair = pair(&env, 4, 50_000_000, 100).await;
    follow(&pair.follower, "b", "leader", "a").await;
    pair.same("b").await;
    lose_operations(&env, &mut pair, 100).await;
    pair.same("b").await;
    recovered_again(&pair).await;
    lose_operations(&env, &mut pair, 300).await;
    let is_fatal =
        |shard: &Value| shard["fatal_exception"]["type"] == "resource_not_found_exception";
    pair.both_shards("b", "both shards say that they cannot go on", is_fatal).await;
    let count = pair.follower.counted("b").await;
    assert_eq!(count["_shards"]["failed"], 0, "{count}");
    assert_eq!(count["count"], 300, "what it had stays, and no more came: {count}");
    pause_and_resume_at_once(&env, &pair.follower).await;
    pair.same("b").await;
}

/// One version of the state after another is published: what comes meanwhile goes together into the next, so that no
/// node sees the follower paused.
async fn pause_and_resume_at_once(env: &Env, follower: &Cluster) {
    let index = || follower.any().state().index("b").unwrap();
    let refresh = Some("2s".to_owned());
    let settings = Update::from([("index.refresh_interval".to_owned(), refresh)]);
    let set = |change| Event::SetFollowing { index: index(), change };
    let events = [
        Event::PutIndexSettings { index: index(), settings },
        set(FollowChange::Pause),
        set(FollowChange::Resume { parameters: FollowParameters::default() }),
    ];
    let address = follower.node(0).transport_address().to_owned();
    let pool = Pool::new(env.clone());
    // Once it is connected, they go out in their order.
    pool.call(&address, Class::Control, Request::Published, Duration::from_secs(60)).await.unwrap();
    let submits = events.map(|event| {
        let (pool, address) = (pool.clone(), address.clone());
        let request = Request::Submit(Box::new(event));
        env.spawn("submits", async move {
            pool.call(&address, Class::Control, request, Duration::from_secs(60)).await
        })
    });
    for submit in submits {
        submit.await.unwrap().unwrap();
    }
    pool.close();
}

/// Has the leader write, and forget that at once: nobody renewed a lease in time.
async fn write_and_forget(env: &Env, pair: &Pair, from: u64) {
    let period = json!({ "index.soft_deletes.retention_lease.period": "1s" });
    pair.leader.must("PUT", "/a/_settings", period).await;
    env.sleep(Duration::from_millis(2500)).await;
    pair.leader.index("a", from, from + 200).await;
    pair.leader.post("/a/_flush").await;
    let period = json!({ "index.soft_deletes.retention_lease.period": "12h" });
    pair.leader.must("PUT", "/a/_settings", period).await;
}

/// Ends the follower, has the leader write and forget what it lacks, and starts it again.
async fn lose_operations(env: &Env, pair: &mut Pair, from: u64) {
    eventually(env, "nobody copies files any more, which keeps operations, too", async || {
        let leases = pair.leader.nodes.values().filter_map(|node| node.retention_leases("a"));
        leases.flatten().all(|(id, _)| !id.starts_with("recovery/"))
    })
    .await;
    pair.follower.kill_all().await;
    write_and_forget(env, pair, from).await;
    pair.follower.start_all().await;
}

/// As after a link was cut: reads and renewals that waited come together.
async fn renewals_at_once_all_succeed(env: Env) {
    let pair = pair(&env, 4, 50_000_000, 10).await;
    let node = pair.leader.primary_of("a");
    let address = pair.leader.nodes[&node].transport_address().to_owned();
    let pool = Pool::new(env.clone());
    let leader = followed(&pair.leader).await;
    for _ in 0..10 {
        let renewals: Vec<_> = (0..30)
            .map(|number| {
                let (leader, id) = (leader.clone(), format!("follower {}", number % 3));
                let ask = LeaseRequest { leader, id, from: Some(0), at_least: false };
                let renew = Request::Lease(Box::new(ask));
                let (pool, address) = (pool.clone(), address.clone());
                env.spawn("renews", async move {
                    pool.call(&address, Class::Control, renew, Duration::from_secs(60)).await
                })
            })
            .collect();
        for renewal in renewals {
            let answer = renewal.await.unwrap();
            assert!(matches!(answer, Ok(Response::Leased { .. })), "{answer:?}");
        }
    }
    pool.close();
}
