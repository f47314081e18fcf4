//! The target in virtual time: start, ask, kill, start again, stop.

use std::time::Duration;

use bytes::Bytes;
use clusters::{Answer, ClusterSpec, Error, Target, TopologySpec, VirtualTarget};
use world::{Direction, LinkConfig};

fn topology() -> TopologySpec {
    let cluster = |name: &str, nodes| ClusterSpec {
        name: name.to_owned(),
        nodes,
        settings: Default::default(),
    };
    let link = LinkConfig {
        rtt: Duration::from_millis(50),
        rate_bytes_per_s: Some(10_000_000),
        window_bytes: None,
    };
    TopologySpec {
        clusters: vec![cluster("leader", 3), cluster("follower", 1)],
        link: Some(link),
        joined: false,
    }
}

async fn ask(target: &impl Target, method: &str, path: &str, body: &str) -> Result<Answer, Error> {
    target.request("leader", method, path, Bytes::from(body.to_owned())).await
}

async fn count(target: &impl Target) -> u64 {
    ask(target, "POST", "/a/_refresh", "").await.unwrap();
    let answer = ask(target, "GET", "/a/_count", "").await.unwrap();
    answer.json().unwrap()["count"].as_u64().unwrap()
}

async fn index_some(target: &impl Target) {
    let settings = r#"{"settings":{"number_of_shards":2,"number_of_replicas":1}}"#;
    ask(target, "PUT", "/a", settings).await.unwrap();
    let green = "/_cluster/health/a?wait_for_status=green&timeout=30s";
    assert_eq!(ask(target, "GET", green, "").await.unwrap().status, 200);
    let bulk: String = (0..200).map(|n| format!("{{\"index\":{{}}}}\n{{\"n\":{n}}}\n")).collect();
    let answer = ask(target, "POST", "/a/_bulk", &bulk).await.unwrap();
    assert_eq!(answer.json().unwrap()["errors"], false);
}

#[test]
fn a_killed_node_is_asked_no_more_and_comes_back_with_its_data() {
    world::virtual_world::run(3, async |env| {
        let mut target = VirtualTarget::new(&env);
        target.start(&topology()).await.unwrap();
        let before = target.nodes("leader");
        let names: Vec<&str> = before.iter().map(|node| node.name.as_str()).collect();
        assert_eq!(names, ["leader-0", "leader-1", "leader-2"]);
        index_some(&target).await;
        target.kill_node("leader-2").await.unwrap();
        assert_eq!(target.nodes("leader").len(), 2);
        for _ in 0..6 {
            ask(&target, "GET", "/_cluster/health", "").await.unwrap();
        }
        target.start_node("leader-2").await.unwrap();
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
        let mut target = VirtualTarget::new(&env);
        target.start(&topology()).await.unwrap();
        let seeds = target.seeds_through_link("leader");
        assert_eq!(seeds.len(), 3);
        let plain: Vec<String> = target.nodes("leader").into_iter().map(|n| n.transport).collect();
        assert!(seeds.iter().zip(&plain).all(|(seed, plain)| seed != plain));
        assert_eq!(target.link().unwrap().stats(Direction::Back).bytes, 0);
        let body =
            format!(r#"{{"persistent":{{"cluster.remote.leader.seeds":"{}"}}}}"#, seeds.join(","));
        let ask = async |method, path, body: String| {
            target
                .request("follower", method, path, Bytes::from(body))
                .await
                .unwrap()
                .json()
                .unwrap()
        };
        ask("PUT", "/_cluster/settings", body).await;
        let info = ask("GET", "/_remote/info", String::new()).await;
        assert_eq!(info["leader"]["connected"], true);
        assert!(target.link().unwrap().stats(Direction::Back).bytes > 0);
        let cut_since = env.now();
        target.link().unwrap().cut();
        let info = ask("GET", "/_remote/info", String::new()).await;
        assert_eq!(info["leader"]["connected"], false);
        assert!(env.now() - cut_since >= Duration::from_secs(1));
        target.link().unwrap().heal();
        let info = ask("GET", "/_remote/info", String::new()).await;
        assert_eq!(info["leader"]["connected"], true);
        target.stop().await;
    });
}

#[test]
fn nothing_is_left_after_a_stop() {
    world::virtual_world::run(3, async |env| {
        let mut target = VirtualTarget::new(&env);
        for _ in 0..2 {
            target.start(&topology()).await.unwrap();
            let missing = ask(&target, "GET", "/a/_count", "").await;
            assert!(matches!(missing, Err(Error::Refused { status: 404, .. })), "{missing:?}");
            index_some(&target).await;
            target.stop().await;
            let none = ask(&target, "GET", "/", "").await;
            assert!(matches!(none, Err(Error::NoNode { .. })), "{none:?}");
        }
        let unknown = target.kill_node("leader-0").await;
        assert!(matches!(unknown, Err(Error::Unknown { .. })), "{unknown:?}");
    });
}

#[test]
fn nodes_that_do_not_come_are_told() {
    world::virtual_world::run(3, async |env| {
        let mut target = VirtualTarget::new(&env);
        target.start(&topology()).await.unwrap();
        let path = "/_cluster/health?wait_for_nodes=4&timeout=2s";
        let health = ask(&target, "GET", path, "").await.unwrap();
        assert_eq!((health.status, &health.json().unwrap()["timed_out"]), (408, &true.into()));
        target.stop().await;
    });
}
