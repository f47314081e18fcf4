//! Clients that go through steps, at a cluster that answers as it is told.

use std::cell::Cell;
use std::rc::Rc;

use clusters::live::{Address, LiveClient, LiveOptions};
use clusters::{
    ClusterIdentity, Clusters, FollowApi, Head, Journal, LiveCluster, LiveClusters, TopologySpec,
};
use rest::RestRequest;
use serde_json::json;

use super::*;
use crate::load::{Arrival, Extent};
use crate::plan::LEADER;
use crate::track::Action;

const WHO: &str = r#"{"cluster_uuid":"u","version":{"distribution":"opensearch","number":"2.19.1"},
    "nodes":{"a":{"name":"a"}}}"#;
/// Of more than thirty, `try_join_all` would tell an error once those before are done.
const MANY: u32 = 40;
/// What is merged whenever that is asked. One of the answers is no JSON.
const MERGED: [&str; 4] = ["[d, narrows-1-a]", "\"", "[narrows-1-a, narrows-1-b]", "[d]"];

fn merging(what: &str) -> String {
    let said = format!("Force-merge indices {what}, maxSegments[1]");
    format!(r#"{{"nodes":{{"a":{{"tasks":{{"a:1":{{"node":"a","description":"{said}"}}}}}}}}}}"#)
}

testbed::rest_host!();

/// A cluster that does not answer a merge, and says what is merged. To open a point in time takes it a second; the last
/// of `MANY` it answers at once, without an id. Beside its address is how many were ended.
async fn serve(env: &Env) -> (String, Rc<Cell<u32>>) {
    let (merged, opened, ended) = (RefCell::new(MERGED.into_iter()), Cell::new(0), Rc::default());
    let (clock, counted): (Env, Rc<Cell<u32>>) = (env.clone(), Rc::clone(&ended));
    let answer = async move |asked: RestRequest| {
        let said = match asked.path.as_str() {
            MERGES => merging(merged.borrow_mut().next().unwrap()),
            path if path.ends_with("/_forcemerge") => return std::future::pending().await,
            path if path.ends_with("/_search/point_in_time") && asked.method == "DELETE" => {
                counted.set(counted.get() + 1);
                "{}".to_owned()
            }
            path if path.ends_with("/_search/point_in_time") => {
                let number = opened.get() + 1;
                opened.set(number);
                if number == MANY {
                    "{}".to_owned()
                } else {
                    clock.sleep(Duration::from_secs(1)).await;
                    format!(r#"{{"pit_id":"{number}"}}"#)
                }
            }
            _ => WHO.to_owned(),
        };
        Some((200, Bytes::from(said)))
    };
    let (address, server) = rest_host(env, "a", answer).await;
    server.detach();
    (address, ended)
}

async fn cluster(env: &Env, journal: &std::path::Path) -> (LiveClusters, Rc<Cell<u32>>) {
    let (address, ended) = serve(env).await;
    let options = LiveOptions::anonymous(
        Address::parse_all([address.as_str()]).unwrap(),
        Duration::from_secs(5),
    );
    let client = || LiveClient::new(env, &options).unwrap();
    let asking = client();
    let identity = ClusterIdentity::ask(&asking).await.unwrap();
    let journal = Journal::create(journal, Head::new("u".to_owned(), vec![address])).unwrap();
    let there = LiveCluster::new(asking, client(), identity, journal);
    let mut clusters = LiveClusters::new(vec![there], FollowApi::Ccr);
    clusters.start(&TopologySpec::alone(LEADER, 1)).await.unwrap();
    (clusters, ended)
}

/// Goes through steps as a client of that cluster.
fn at_the_cluster(go: impl AsyncFnOnce(&Through<'_>) + 'static) {
    world::virtual_world::run(1, async move |env| {
        let dir = tempfile::tempdir().unwrap();
        let (clusters, _) = cluster(&env, &dir.path().join("changes.jsonl")).await;
        let asker = clusters.asker(LEADER, Duration::from_secs(60)).unwrap();
        let (env, asker, live, room) = (&env, &asker, &Live::default(), &Semaphore::new(1));
        let (points, opening, nodes) = (&Points::new(false), &RwLock::new(()), None);
        let (task, number) = ("x", 0);
        go(&Through { env, asker, task, live, room, nodes, points, number, opening }).await;
    });
}

#[test]
fn a_merge_whose_answer_does_not_come_is_asked_for_until_it_has_ended() {
    at_the_cluster(async |through| {
        let path = "/narrows-1-a,narrows-1-b/_forcemerge";
        let request = |polled: Option<Duration>| Request {
            polled,
            ..Request::new("POST", path.to_owned(), None)
        };
        let began = through.env.now();
        let polled = answered(through, &request(Some(Duration::from_secs(10)))).await;
        assert!(matches!(polled, Ok(0)));
        let took_s = (through.env.now() - began).as_secs_f64();
        assert!((took_s - 100.0).abs() < 1.0, "one minute, and four looks: {took_s}");
        let blocking = answered(through, &request(None)).await;
        assert!(matches!(blocking, Err(Lost::Run(_))));
    });
}

#[test]
fn a_request_that_only_reads_counts_where_its_last_try_fails() {
    at_the_cluster(async |through| {
        let request = |is_counted: bool| Request {
            is_counted,
            tries: 3,
            pause: Duration::from_secs(2),
            timeout: Some(Duration::from_secs(5)),
            ..Request::new("POST", "/narrows-1-a/_forcemerge".to_owned(), None)
        };
        let began = through.env.now();
        let counted = answered(through, &request(true)).await;
        assert!(matches!(counted, Err(Lost::Request(Failure::NoAnswer))));
        let took_s = (through.env.now() - began).as_secs_f64();
        assert_eq!(took_s.round(), 3.0 * 5.0 + 2.0 * 2.0);
        assert!(matches!(answered(through, &request(false)).await, Err(Lost::Run(_))));
    });
}

fn task(steps: &[Step], load: &Load) -> Task {
    Task {
        name: "slow".to_owned(),
        operation_type: "composite".to_owned(),
        action: Action::Do(steps.to_vec()),
        load: load.clone(),
        connections: None,
        reported: true,
    }
}

/// The last of many clients fails. The others wait for an hour once each has opened one.
#[test]
fn what_others_open_while_a_client_fails_is_ended_and_they_are_not_waited_for() {
    world::virtual_world::run(1, async |env| {
        let dir = tempfile::tempdir().unwrap();
        let (clusters, ended) = cluster(&env, &dir.path().join("changes.jsonl")).await;
        let asker = clusters.asker(LEADER, Duration::from_secs(60)).unwrap();
        let path = "/narrows-1-a/_search/point_in_time".to_owned();
        let point_in_time = Some(PointInTime::Opens("p".to_owned()));
        let opens = Request { point_in_time, ..Request::new("POST", path, None) };
        let steps = vec![Step::Request(opens), Step::Sleep(Duration::from_secs(3600))];
        let measured = Extent::Requests(u64::from(MANY));
        let load = Load::closed(vec!["a:9200".to_owned()], MANY, measured, 1);
        let (task, live, began) = (task(&steps, &load), Arc::default(), env.now());
        let done = go_through(&env, &asker, &task, &load, &steps, &live, None).await;
        let Err(Error::Task { why, .. }) = done else { panic!("it ended well") };
        assert!(why.contains("no id of a point in time"), "{why}");
        assert_eq!(ended.get(), MANY - 1);
        assert!(env.now() - began < Duration::from_secs(5));
    });
}

#[test]
fn starts_for_which_no_client_was_free_are_told() {
    world::virtual_world::run(1, async |env| {
        let dir = tempfile::tempdir().unwrap();
        let (clusters, _) = cluster(&env, &dir.path().join("changes.jsonl")).await;
        let asker = clusters.asker(LEADER, Duration::from_secs(60)).unwrap();
        let arrival = Arrival::Deterministic { rate_per_s: 8.0 };
        let measured = Extent::Time(Duration::from_secs(10));
        let steps = vec![Step::Sleep(Duration::from_secs(1))];
        let load = Load { arrival, ..Load::closed(vec!["a:9200".to_owned()], 1, measured, 1) };
        let task = task(&steps, &load);
        let unsent = Failure::NotSent.to_string();
        let live = Arc::new(Live::default());
        let figures = go_through(&env, &asker, &task, &load, &steps, &live, None).await;
        let figures = figures.unwrap();
        // One a second, the last a second after the end, of eight a second for ten.
        assert_eq!((figures.requests, figures.errors[&unsent]), (80, 69));
        let stop = async {
            env.sleep(Duration::from_millis(5500)).await;
            live.stop();
        };
        let ended = go_through(&env, &asker, &task, &load, &steps, &live, None);
        let (figures, ()) = tokio::join!(ended, stop);
        // Of the 44 that were due, five were done and one was under way.
        assert_eq!(figures.unwrap().errors[&unsent], 38);
    });
}

#[test]
fn nobody_waits_for_a_merge_of_other_indices_or_for_the_end_of_a_task() {
    let tasks = |what: &str| serde_json::from_str::<Value>(&merging(what)).unwrap();
    assert!(is_merging(&tasks("[b, node]"), "node"));
    assert!(!is_merging(&tasks("[node-2]"), "node"));
    assert!(!is_merging(&json!({ "nodes": {} }), "node") && !is_merging(&json!({}), "node"));
    world::virtual_world::run(1, async |env| {
        let (live, hour) = (Live::default(), env.now() + Duration::from_secs(3600));
        let stop = async {
            env.sleep(Duration::from_secs(5)).await;
            live.stop();
        };
        let (goes_on, ()) = tokio::join!(wait_until(&env, hour, &live), stop);
        assert_eq!((goes_on, env.now().as_secs_f64()), (false, 5.0));
        assert!(!wait_until(&env, hour, &live).await, "what was told before is known");
    });
}
