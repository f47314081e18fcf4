//! The target on this machine: real processes, real sockets.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::path::{Path, PathBuf};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use clusters::{Answer, ClusterSpec, EmbeddedTarget, Error, Target, TopologySpec};
use world::{Direction, Env, LinkConfig};

const BINARY: &str = env!("CARGO_BIN_EXE_narrows");

fn topology() -> TopologySpec {
    let cluster = |name: &str, nodes| ClusterSpec {
        name: name.to_owned(),
        nodes,
        settings: Default::default(),
    };
    let link = LinkConfig {
        rtt: Duration::from_millis(10),
        rate_bytes_per_s: Some(100_000_000),
        window_bytes: None,
    };
    TopologySpec {
        clusters: vec![cluster("leader", 2), cluster("follower", 1)],
        link: Some(link),
        joined: false,
    }
}

async fn ask(target: &impl Target, method: &str, path: &str, body: &str) -> Result<Answer, Error> {
    target.request("leader", method, path, Bytes::from(body.to_owned())).await
}

/// The nodes that this process has started and not yet reaped.
fn children() -> BTreeSet<u32> {
    let threads = std::fs::read_dir("/proc/self/task").unwrap();
    let lists =
        threads.map(|thread| std::fs::read_to_string(thread.unwrap().path().join("children")));
    let text: Vec<String> = lists.map(Result::unwrap_or_default).collect();
    text.iter().flat_map(|list| list.split_whitespace()).map(|pid| pid.parse().unwrap()).collect()
}

/// The directory that a target made for its nodes, found by a file that one of them holds open.
fn data_of(pid: u32) -> PathBuf {
    let files = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    let open = files.filter_map(|file| std::fs::read_link(file.unwrap().path()).ok());
    let mut above = open.flat_map(|path| path.ancestors().map(Path::to_owned).collect::<Vec<_>>());
    let is_ours = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("narrows-"))
            && path.parent() == Some(&std::env::temp_dir())
    };
    above.find(is_ours).expect("a node holds its data directory")
}

async fn kills_and_starts_again(target: &mut EmbeddedTarget) {
    let before = target.nodes("leader");
    let settings = r#"{"settings":{"number_of_shards":2,"number_of_replicas":1}}"#;
    ask(target, "PUT", "/a", settings).await.unwrap();
    let green = "/_cluster/health/a?wait_for_nodes=2&wait_for_status=green&timeout=60s";
    assert_eq!(ask(target, "GET", green, "").await.unwrap().status, 200);
    let bulk: String = (0..200).map(|n| format!("{{\"index\":{{}}}}\n{{\"n\":{n}}}\n")).collect();
    let answer = ask(target, "POST", "/a/_bulk", &bulk).await.unwrap();
    assert_eq!(answer.json().unwrap()["errors"], false);
    target.kill_node("leader-1").await.unwrap();
    for _ in 0..4 {
        ask(target, "GET", "/_cluster/health", "").await.unwrap();
    }
    target.start_node("leader-1").await.unwrap();
    assert_eq!(target.nodes("leader"), before);
    assert_eq!(ask(target, "GET", green, "").await.unwrap().status, 200);
    ask(target, "POST", "/a/_refresh", "").await.unwrap();
    // On the restarted node too, over connections that were kept from before.
    for _ in 0..4 {
        let count = ask(target, "GET", "/a/_count", "").await.unwrap().json().unwrap();
        assert_eq!(count["count"], 200);
    }
}

async fn sees_the_leader_through_the_link(env: &Env, target: &EmbeddedTarget) {
    let seeds = target.seeds_through_link("leader").join(",");
    let body = format!(r#"{{"persistent":{{"cluster.remote.leader.seeds":"{seeds}"}}}}"#);
    let ask = async |method, path, body: String| {
        target.request("follower", method, path, Bytes::from(body)).await.unwrap().json().unwrap()
    };
    ask("PUT", "/_cluster/settings", body).await;
    let info = ask("GET", "/_remote/info", String::new()).await;
    assert_eq!(info["leader"]["connected"], true);
    let link = target.link().unwrap();
    while link.stats(Direction::Back).bytes == 0 || link.stats(Direction::Out).bytes == 0 {
        env.sleep(Duration::from_millis(1)).await;
    }
    link.cut();
    let info = ask("GET", "/_remote/info", String::new()).await;
    assert_eq!(info["leader"]["connected"], false);
    link.heal();
    let info = ask("GET", "/_remote/info", String::new()).await;
    assert_eq!(info["leader"]["connected"], true);
}

/// One test, for what it looks at is of the whole process.
#[test]
fn clusters_of_processes_from_start_to_end() {
    world::real_world::run(1, async |env| {
        let mut target = EmbeddedTarget::new(&env, PathBuf::from(BINARY));
        target.start(&topology()).await.unwrap();
        assert_eq!(children().len(), 3);
        let data = data_of(*children().first().unwrap());
        kills_and_starts_again(&mut target).await;
        sees_the_leader_through_the_link(&env, &target).await;
        target.stop().await;
        assert_eq!(children().len(), 0);
        assert!(!data.exists());

        // The same without a word, as on a failure.
        target.start(&topology()).await.unwrap();
        let data = data_of(*children().first().unwrap());
        drop(target);
        assert_eq!(children().len(), 0);
        assert!(!data.exists());

        // A start that is given up half-way.
        let mut target = EmbeddedTarget::new(&env, PathBuf::from(BINARY));
        let begun =
            poll_fn(|_| if children().is_empty() { Poll::Pending } else { Poll::Ready(()) });
        let topology = topology();
        tokio::select! {
            biased;
            () = begun => {}
            started = target.start(&topology) => panic!("not given up: {started:?}"),
        }
        drop(target);
        assert_eq!(children().len(), 0);
    });
}
