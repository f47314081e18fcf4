//! Clusters in virtual time: start, ask, kill, start again, stop.

use std::time::Duration;

use crate::common::{ask, connect_follower, count, follower_is_connected, index_some, topology};
use bytes::Bytes;
use clusters::live::{Address, LiveClient, LiveOptions};
use clusters::{
    ClusterIdentity, Clusters, Error, FaultKind, Faults, FollowApi, Head, Journal, LiveCluster,
    LiveClusters, TopologySpec, VirtualClusters,
};
use futures_util::future::join;
use rest::RestRequest;
use world::Direction;

testbed::rest_host!();

#[test]
fn a_killed_node_is_asked_no_more_and_comes_back_with_its_data() {
    world::virtual_world::run(3, async |env| {
        let mut target = VirtualClusters::new(&env);
        target.start(&topology(3)).await.unwrap();
        let before = target.nodes("leader");
        let names: Vec<&str> = before.iter().map(|node| node.name.as_str()).collect();
        assert_eq!(names, ["leader-0", "leader-1", "leader-2"]);
        index_some(&target).await;
        target.begin("leader-2", FaultKind::Kill).await.unwrap();
        assert_eq!(target.nodes("leader").len(), 2);
        for _ in 0..6 {
            ask(&target, "GET", "/_cluster/health", "").await.unwrap();
        }
        target.end("leader-2", FaultKind::Kill).await.unwrap();
        assert_eq!(target.nodes("leader"), before);
        let path = "/_cluster/health/a?wait_for_nodes=3&wait_for_status=green&timeout=60s";
        let health = ask(&target, "GET", path, "").await.unwrap().json().unwrap();
        assert_eq!((&health["timed_out"], &health["number_of_nodes"]), (&false.into(), &3.into()));
        assert_eq!(count(&target).await, 200);
        target.stop().await;
    });
}

#[test]
fn the_other_cluster_is_seen_through_the_link() {
    world::virtual_world::run(3, async |env| {
        let mut target = VirtualClusters::new(&env);
        target.start(&topology(3)).await.unwrap();
        let seeds = target.seeds_through_link("leader");
        assert_eq!(seeds.len(), 3);
        let plain: Vec<String> = target.nodes("leader").into_iter().map(|n| n.transport).collect();
        assert!(seeds.iter().zip(&plain).all(|(seed, plain)| seed != plain));
        assert_eq!(target.link().unwrap().stats(Direction::Back).bytes, 0);
        assert!(connect_follower(&target).await);
        assert!(target.link().unwrap().stats(Direction::Back).bytes > 0);
        let cut_since = env.now();
        target.link().unwrap().cut();
        assert!(!follower_is_connected(&target).await);
        assert!(env.now() - cut_since >= Duration::from_secs(1));
        target.link().unwrap().heal();
        assert!(follower_is_connected(&target).await);
        target.stop().await;
    });
}

#[test]
fn nothing_is_left_after_a_stop() {
    world::virtual_world::run(3, async |env| {
        let mut target = VirtualClusters::new(&env);
        for _ in 0..2 {
            target.start(&topology(3)).await.unwrap();
            let missing = ask(&target, "GET", "/a/_count", "").await;
            assert!(matches!(missing, Err(Error::Refused { status: 404, .. })), "{missing:?}");
            index_some(&target).await;
            target.stop().await;
            let none = ask(&target, "GET", "/", "").await;
            assert!(matches!(none, Err(Error::NoNode { .. })), "{none:?}");
        }
        let unknown = target.begin("leader-0", FaultKind::Kill).await;
        assert!(matches!(unknown, Err(Error::Unknown { .. })), "{unknown:?}");
    });
}

#[test]
fn nodes_that_do_not_come_are_told() {
    world::virtual_world::run(3, async |env| {
        let mut target = VirtualClusters::new(&env);
        target.start(&topology(3)).await.unwrap();
        let path = "/_cluster/health?wait_for_nodes=4&timeout=2s";
        let health = ask(&target, "GET", path, "").await.unwrap();
        assert_eq!((health.status, &health.json().unwrap()["timed_out"]), (408, &true.into()));
        target.stop().await;
    });
}

#[test]
fn a_start_that_fails_leaves_nothing_behind() {
    world::virtual_world::run(3, async |env| {
        let mut target = VirtualClusters::new(&env);
        let mut wrong = topology(2);
        wrong.clusters[1].name = "../follower".to_owned();
        let refused = target.start(&wrong).await.unwrap_err();
        assert!(matches!(refused, Error::ClusterName { .. }), "{refused}");
        assert!(target.nodes("leader").is_empty());
        target.start(&topology(2)).await.unwrap();
        target.stop().await;
    });
}

/// A bulk request that is long on its way would make the index anew that the run has deleted.
#[test]
fn a_write_that_is_under_way_where_a_run_ends_leaves_no_index() {
    const PATIENCE: Duration = Duration::from_secs(10);
    world::virtual_world::run(3, async |env| {
        let mut target = VirtualClusters::new(&env);
        target.start(&TopologySpec::alone("leader", 1)).await.unwrap();
        let (asker, clock) = (target.asker("leader", PATIENCE).unwrap(), env.clone());
        let forwards = async move |request: RestRequest| {
            let RestRequest { method, path, body } = request;
            if path.ends_with("_bulk") {
                clock.sleep(Duration::from_secs(1)).await;
            }
            match asker.ask(&method, &path, body).await {
                Ok(answer) => Some((answer.status, answer.body)),
                Err(Error::Refused { status, .. }) => Some((status, Bytes::from("{}"))),
                Err(_) => None,
            }
        };
        let (address, _task) = rest_host(&env, "proxy", forwards).await;
        let hosts = Address::parse_all([address.as_str()]).unwrap();
        let options = LiveOptions::anonymous(hosts, PATIENCE);
        let client = || LiveClient::new(&env, &options).unwrap();
        let (asking, dir) = (client(), tempfile::tempdir().unwrap());
        let identity = ClusterIdentity::ask(&asking).await.unwrap();
        let head = Head::new(identity.uuid.clone(), vec![address]);
        let journal = Journal::create(&dir.path().join("changes.jsonl"), head).unwrap();
        let there = LiveCluster::new(asking, client(), identity, journal);
        let mut run = LiveClusters::new(vec![there], FollowApi::Ccr);
        run.start(&TopologySpec::alone("leader", 1)).await.unwrap();
        let index = Bytes::from(r#"{"settings":{"number_of_shards":1,"number_of_replicas":0}}"#);
        run.request("leader", "PUT", "/narrows-1", index).await.unwrap();
        let writer = run.asker("leader", PATIENCE).unwrap();
        let bulk = Bytes::from("{\"index\":{}}\n{\"n\":1}\n");
        let stops = async {
            env.sleep(Duration::from_millis(500)).await;
            run.stop().await;
        };
        let (written, ()) = join(writer.ask("POST", "/narrows-1/_bulk", bulk), stops).await;
        assert_eq!(written.unwrap().json().unwrap()["errors"], false);
        assert_eq!(run.ended().unwrap().unwrap(), Vec::<String>::new());
        let missing = ask(&target, "GET", "/narrows-1/_count", "").await;
        assert!(matches!(missing, Err(Error::Refused { status: 404, .. })), "{missing:?}");
        target.stop().await;
    });
}
