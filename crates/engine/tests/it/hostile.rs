//! Nodes that answer nonsense, that refuse for a while, and that are asked too early or too late.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use engine::planted;
use engine::state::ClusterState;
use engine::transport::{
    CallError, Changes, Class, Failure, NodeRow, Operations, Pool, Publication, RemoteIndex,
    Request, Response, SessionKind, SessionOpened, ShardAction, ShardSearch, WireChunk,
};
use serde_json::{Value, json};
use store::{Chunk, FileMeta, Operation};
use world::Env;

use crate::common::between::{Answer, Between, cluster_behind};
use crate::common::{Cluster, eventually, fails_with};
use crate::sniffing::whom;

testbed::both_worlds!(
    a_copy_that_recovers_is_not_read,
    a_node_joins_once_its_manager_can_take_it,
    a_leader_that_answers_nonsense_harms_no_follower,
    what_is_of_another_cluster_is_refused,
    sessions_of_an_earlier_life_are_gone,
);

/// Random faults hardly ever meet what these are for.
#[test]
fn planted_bugs_fail_the_tests_that_they_are_for() {
    let recovering = a_copy_that_recovers_is_not_read;
    fails_with(planted::SEARCHED_BEFORE_STARTED, recovering, "is answered with Ok(Searched");
    let sessions = sessions_of_an_earlier_life_are_gone;
    fails_with(planted::SESSIONS_BEGIN_AGAIN, sessions, "[1, 2], [1, 2]");
}

/// Who has an older state may ask a copy that is being brought up: its store is open, and lacks operations.
async fn a_copy_that_recovers_is_not_read(env: Env) {
    let (between, mut cluster) = cluster_behind(&env, "one", 2, 0).await;
    cluster.stop_node(1).await;
    cluster.create("a", 1, 0).await;
    assert_eq!(cluster.index("a", 0, 100).await, 100);
    between.hold(|request| matches!(request, Request::Finalize { .. }));
    cluster.start_node(1).await;
    cluster.must("PUT", "/a/_settings", json!({ "index.number_of_replicas": 1 })).await;
    eventually(&env, "the copy is about to join", async || between.held() > 0).await;

    let shard = |action| Request::Shard("a".to_owned(), 0, action);
    // A store of the virtual world has no words to show.
    let asked: &[u8] = if env.is_virtual() { b"{\"size\":0}" } else { b"{}" };
    let search = ShardSearch {
        index: "a".to_owned(),
        shard: 0,
        request: Arc::new(query::parse_search(asked).unwrap()),
        now_ms: 0,
        max_buckets: 10,
        fetch: true,
        held: None,
    };
    let reads = || {
        let get = shard(ShardAction::Get { id: "7".to_owned() });
        [get, Request::Search(Box::new(search.clone())), shard(ShardAction::Digest)]
    };
    assert!(
        cluster.ask_node("one-1", shard(ShardAction::Stats { segments: false })).await.is_ok(),
        "the store is open"
    );
    for request in reads() {
        let kind = format!("{request:?}");
        match cluster.ask_node("one-1", request).await {
            Err(CallError::Failed(failure)) => {
                assert_eq!(failure.status, 503, "{kind}: {failure:?}");
                assert!(failure.reason.contains("still recovering"), "{kind}: {failure:?}");
            }
            other => panic!("{kind} is answered with {other:?}"),
        }
    }
    between.be_honest();
    cluster.green("a").await;
    for request in reads() {
        let kind = format!("{request:?}");
        assert!(cluster.ask_node("one-1", request).await.is_ok(), "{kind}");
    }
}

/// A manager that has too much to do, or no room for the state, takes the node in later.
async fn a_node_joins_once_its_manager_can_take_it(env: Env) {
    let (between, mut cluster) = cluster_behind(&env, "one", 2, 0).await;
    for refusal in [
        Failure::new(429, "circuit_breaking_exception", "too much at once"),
        Failure::new(429, "cluster_block_exception", "the disk is full"),
        Failure::new(503, "cluster_block_exception", "the disk was full"),
    ] {
        cluster.stop_node(1).await;
        let refused = Rc::new(std::cell::Cell::new(0));
        let (counts, kind) = (refused.clone(), format!("{refusal:?}"));
        between.change(move |request, answer| match request {
            Request::Join(..) if counts.get() < 3 => {
                counts.set(counts.get() + 1);
                Err(refusal.clone())
            }
            _ => answer,
        });
        cluster.start_node(1).await;
        assert_eq!(refused.get(), 3, "{kind}");
        eventually(&env, "both nodes are there", async || {
            let health = cluster.get("/_cluster/health").await;
            health["number_of_nodes"] == 2
        })
        .await;
    }
}

/// The address of a node that is gone may be that of another cluster's node by now.
async fn what_is_of_another_cluster_is_refused(env: Env) {
    let one = Cluster::start(&env, "one", 2).await;
    let two = Cluster::start(&env, "two", 1).await;
    let row = NodeRow {
        name: "one-1".to_owned(),
        cluster: "two".to_owned(),
        transport: two.any().transport_address().to_owned(),
        http: two.any().http_address().to_owned(),
        attributes: BTreeMap::new(),
    };
    let asked = [
        (1, Request::Publish(Publication::Whole(two.any().state()))),
        (0, Request::Join(Box::new(row), Vec::new())),
    ];
    for (number, request) in asked {
        let known = || {
            let state = one.node(number).state();
            (state.cluster_uuid.clone(), state.members.clone())
        };
        let before = known();
        let answer = one.ask_node(&one.config(number).name, request).await;
        let said = answer.map(drop).unwrap_err().to_string();
        assert!(said.contains("[one]") && said.contains("[two]"), "{said}");
        assert_eq!(known(), before);
    }
    // Its own manager may have lost its state, and the answer to the join that followed may be lost.
    let mut anew = ClusterState::clone(&one.node(1).state());
    anew.cluster_uuid = "anew".to_owned();
    let request = Request::Publish(Publication::Whole(Arc::new(anew)));
    let answer = one.ask_node("one-1", request).await;
    assert!(matches!(answer, Ok(Response::Done)), "{answer:?}");
}

/// Who read from a node before its restart must not read on in somebody else's session.
async fn sessions_of_an_earlier_life_are_gone(env: Env) {
    let mut cluster = Cluster::holding(&env, "c", 2, ("a", 1, 0), 10).await;
    let here = cluster.primary_of("a");
    let number = (0..2).find(|number| *cluster.config(*number).name == *here).unwrap();
    let index_uuid = cluster.any().state().indices["a"].uuid.clone();
    let pool = Pool::new(env.host("asks"));
    let open = async |cluster: &Cluster, lease: &str| {
        let kind = SessionKind::Remote { lease: lease.to_owned(), index_uuid: index_uuid.clone() };
        let request = Request::OpenSession { index: "a".to_owned(), shard: 0, kind, key: 1 };
        let address = cluster.node(number).transport_address();
        match pool.call(address, Class::Control, request, Duration::from_secs(60)).await {
            Ok(Response::Session(session)) => session.session,
            other => panic!("{other:?}"),
        }
    };
    let before = [open(&cluster, "x").await, open(&cluster, "y").await];
    cluster.kill_node(number).await;
    cluster.start_node(number).await;
    cluster.green("a").await;
    let after = [open(&cluster, "x").await, open(&cluster, "y").await];
    assert!(after.iter().all(|number| !before.contains(number)), "{before:?}, {after:?}");
    pool.close();
}

/// What a leader may say in place of the truth.
enum Lie {
    Operations(fn(&mut Vec<Operation>)),
    Changes(fn(&mut Changes)),
    Session(fn(&mut SessionOpened)),
    Chunk(fn(&mut WireChunk)),
    Index(fn(&mut RemoteIndex)),
    Any(fn(&Request, Response) -> Response),
}

impl Lie {
    fn tell(&self, request: &Request, mut response: Response) -> Response {
        match (self, &mut response) {
            (Lie::Operations(lie), Response::Ops { ops, .. }) => lie(ops),
            (Lie::Operations(lie), Response::Changes(changes)) => {
                if let Operations::Plain(ops) = &mut changes.ops {
                    lie(Arc::make_mut(ops));
                }
            }
            (Lie::Changes(lie), Response::Changes(changes)) => lie(changes),
            (Lie::Session(lie), Response::Session(session)) => lie(session),
            (Lie::Chunk(lie), Response::Chunk(chunk)) => lie(chunk),
            (Lie::Index(lie), Response::RemoteIndex(index)) => lie(index),
            (Lie::Any(lie), _) => return lie(request, response),
            _ => {}
        }
        response
    }
}

fn files_of(session: &mut SessionOpened) -> impl Iterator<Item = &mut FileMeta> {
    session.commit.iter_mut().flat_map(|commit| Arc::make_mut(&mut commit.files))
}

/// Not operations, though they are called so.
fn packed(plain_bytes: u64) -> Operations {
    Operations::Packed { bytes: Bytes::from_static(b"\x02 these are no operations"), plain_bytes }
}

fn checkpoint_at(changes: &mut Changes, seq_no: u64) {
    (changes.global_checkpoint, changes.max_seq_no) = (Some(seq_no), Some(seq_no));
}

/// Each with what is said of it, where it is not harmless.
const LIES: &[(&str, Lie, &str)] = &[
    (
        "another kind of answer",
        Lie::Any(|request, response| match request {
            Request::Ping | Request::Hello => response,
            _ => Response::Json("{}".to_owned()),
        }),
        "an answer of another kind",
    ),
    ("nothing to every question", Lie::Any(|_, _| Response::Done), "an answer of another kind"),
    (
        "operations far beyond the one that was asked for",
        Lie::Operations(|ops| ops.iter_mut().for_each(|op| op.seq_no += 1 << 40)),
        "it lacks operation",
    ),
    ("operations backwards", Lie::Operations(|ops| ops.reverse()), "it lacks operation"),
    ("operations twice", Lie::Operations(|ops| ops.extend(ops.clone())), "it lacks operation"),
    (
        "operations above its checkpoint",
        Lie::Changes(|changes| changes.global_checkpoint = Some(100)),
        "may have none above 100",
    ),
    (
        "no operations, and no pause before it says so",
        Lie::Changes(|changes| changes.ops = Operations::Plain(Arc::default())),
        // "no operations" or "nothing new", as the follower knows already that there are some, or does not.
        "refused: it has no",
    ),
    (
        "a checkpoint beyond all",
        Lie::Changes(|changes| checkpoint_at(changes, u64::MAX)),
        "the highest sequence number is 18446744073709551615",
    ),
    (
        "a checkpoint far away, and no operations up to it",
        Lie::Changes(|changes| checkpoint_at(changes, 1 << 40)),
        "",
    ),
    (
        "versions that nothing has",
        Lie::Changes(|changes| {
            let versions = &mut changes.versions;
            (versions.mappings, versions.settings, versions.aliases) =
                (u64::MAX, u64::MAX, u64::MAX);
        }),
        "has not heard of a change",
    ),
    (
        "packed operations that are none",
        Lie::Changes(|changes| changes.ops = packed(1 << 20)),
        "cannot be read",
    ),
    (
        "packed operations that claim to be large",
        Lie::Changes(|changes| changes.ops = packed(u64::MAX)),
        "claim to be 18446744073709551615 bytes",
    ),
    (
        "it took for ever",
        Lie::Any(|_, mut response| {
            match &mut response {
                Response::Changes(changes) => {
                    (changes.served, changes.waited) = (Duration::MAX, Duration::MAX);
                }
                Response::Chunk(chunk) => {
                    let phases = &mut chunk.phases;
                    (phases.throttle, phases.disk_read) = (Duration::MAX, Duration::MAX);
                    (phases.cpu, phases.memory) = (Duration::MAX, Duration::MAX);
                }
                _ => {}
            }
            response
        }),
        "",
    ),
    (
        "an index of a thousand million shards",
        Lie::Index(|index| index.shards = 1_000_000_000),
        "index.number_of_shards",
    ),
    (
        "a mapping that is none",
        Lie::Index(|index| index.mappings = "{\"properties\":7}".to_owned()),
        "[properties]",
    ),
    (
        "a file outside of the copy",
        Lie::Session(|session| {
            files_of(session)
                .for_each(|file| file.name = format!("../../../outside-{}", file.name).into());
        }),
        "outside",
    ),
    (
        "files without end",
        Lie::Session(|session| files_of(session).for_each(|file| file.len = u64::MAX)),
        "it lists files of",
    ),
    (
        "documents without end",
        Lie::Session(|session| {
            session.commit.iter_mut().for_each(|commit| commit.documents = u64::MAX);
        }),
        "it has 18446744073709551615 documents of",
    ),
    (
        "a history without end",
        Lie::Session(|session| session.max_seq_no = Some(u64::MAX)),
        "the highest sequence number is 18446744073709551615",
    ),
    (
        "chunks of another length",
        Lie::Chunk(|chunk| chunk.chunk = Chunk::Bytes(Bytes::from_static(b"short"))),
        "came damaged",
    ),
    (
        "chunks that claim to be large",
        Lie::Chunk(|chunk| (chunk.plain_len, chunk.wire_len) = (Some(u64::MAX), u64::MAX)),
        "came damaged",
    ),
    (
        "leases that end at once",
        Lie::Any(|_, response| match response {
            Response::Leased { .. } => Response::Leased { period: Duration::ZERO },
            other => other,
        }),
        "",
    ),
];

/// A follower says what it was told, keeps nothing of it, does not ask without end, and follows once its leader tells
/// the truth. Other indices and the node itself go on meanwhile.
async fn a_leader_that_answers_nonsense_harms_no_follower(env: Env) {
    let leader = Cluster::holding(&env, "leader", 1, ("a", 1, 0), 200).await;
    let follower = Cluster::with(&env, "follower", 1, ("own", 1, 0)).await;
    let between = Between::before(&env, leader.any().transport_address()).await;
    follower.set(json!({ "cluster.remote.leader.seeds": [between.address] })).await;
    let body = whom();
    // The manager waits for new indices all the while.
    let pattern = json!({ "remote_cluster": "leader", "leader_index_patterns": ["none-*"] });
    follower.must("PUT", "/_ccr/auto_follow/none", pattern).await;
    let (mut documents, mut own) = (200, 0);
    for (n, (what, lie, says)) in LIES.iter().enumerate() {
        // One that follows already hears the lie, and one that begins while it is told.
        let before = format!("before-{n}");
        follower.must("PUT", &format!("/{before}/_ccr/follow"), body.clone()).await;
        follower.green(&before).await;
        between.change(move |request, answer: Answer| answer.map(|said| lie.tell(request, said)));
        let during = format!("during-{n}");
        let path = format!("/{during}/_ccr/follow?wait_for_active_shards=0");
        let (status, answer) = follower.ask("PUT", &path, body.clone()).await;
        assert!(status < 600, "{what}: {answer}");
        assert_eq!(leader.index("a", documents, documents + 50).await, 50);
        documents += 50;
        let (asked, began) = (between.asked(), env.now());
        env.sleep(Duration::from_secs(2)).await;
        let (questions, took_s) = (between.asked() - asked, (env.now() - began).as_secs_f64());
        assert!(
            (questions as f64) < 1000.0 * took_s,
            "{what}: {questions} questions in {took_s} s"
        );
        eventually(&env, &format!("{what}: something says {says:?}"), async || {
            let mut said = answer.to_string();
            for path in [
                format!("/{before}/_ccr/stats"),
                format!("/{during}/_recovery"),
                format!("/_cat/shards/{during}?h=unassigned.details"),
            ] {
                said += &follower.ask("GET", &path, Value::Null).await.1.to_string();
            }
            said.contains(says)
        })
        .await;
        assert_eq!(follower.index("own", own, own + 10).await, 10, "{what}");
        own += 10;

        between.be_honest();
        follower.post("/_cluster/reroute?retry_failed").await;
        // Where the lie was that the index is another one, following has to be begun again.
        let (status, _) = follower.ask("GET", &format!("/{during}"), Value::Null).await;
        if status == 404 {
            follower.must("PUT", &path, body.clone()).await;
        }
        for index in [&before, &during] {
            eventually(&env, &format!("{what}: {index} is what the leader is"), async || {
                let pause = format!("/{index}/_ccr/pause_follow");
                let stats =
                    follower.ask("GET", &format!("/{index}/_ccr/stats"), Value::Null).await.1;
                if !stats["indices"][0]["shards"][0]["fatal_exception"].is_null() {
                    follower.ask("POST", &pause, Value::Null).await;
                    follower
                        .ask("POST", &format!("/{index}/_ccr/resume_follow"), Value::Null)
                        .await;
                }
                let health =
                    follower.ask("GET", &format!("/_cluster/health/{index}"), Value::Null).await.1;
                if health["status"] != "green" {
                    follower.ask("POST", "/_cluster/reroute?retry_failed", Value::Null).await;
                    return false;
                }
                let expected = leader.digests("a").await;
                follower.answered_digests(index).await.is_ok_and(|found| found == expected)
            })
            .await;
            follower.ask("POST", &format!("/{index}/_ccr/pause_follow"), Value::Null).await;
            follower.delete(&format!("/{index}")).await;
        }
    }
    let count = follower.counted("own").await["count"].as_u64();
    assert_eq!(count, Some(own));
}
