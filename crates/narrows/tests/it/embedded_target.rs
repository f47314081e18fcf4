//! Embedded clusters on this machine: real processes, real sockets.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::task::Poll;
use std::time::Duration;

use clusters::{Clusters, DiskRates, EmbeddedClusters, Error, FaultKind, Faults, Strain};
use testbed::free_port;
use world::{Direction, Env};

use crate::clusters_common::{
    ask, connect_follower, count, follower_is_connected, index_some, topology,
};
use crate::common::started::until;
use crate::common::{BINARY, PATIENCE, done, narrows, signal};

/// The nodes that this test's thread has started and not yet reaped.
fn children() -> BTreeSet<u32> {
    let text = std::fs::read_to_string("/proc/thread-self/children").unwrap();
    text.split_whitespace().map(|pid| pid.parse().unwrap()).collect()
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

/// Each variant finds the node filled: what the one before it excluded is there again, or the run ends with an error.
/// How many copies that are is not asserted: where a replica may not be beside its primary, the last one makes it five
/// or seven of 24, by the order in which processes start their primaries.
#[test]
fn every_variant_of_a_plan_drains_a_node_of_processes() {
    let dir = tempfile::tempdir().unwrap();
    let runs = dir.path().to_str().unwrap();
    let words = done(&narrows(&["run", "drain-node", "--scale", "0.01", "--runs", runs]));
    assert_eq!(words.matches(" copies left leader-3").count(), 3, "{words}");
}

async fn kills_and_starts_again(target: &mut EmbeddedClusters) {
    let before = target.nodes("leader");
    index_some(target).await;
    target.begin("leader-1", FaultKind::Kill).await.unwrap();
    for _ in 0..4 {
        ask(target, "GET", "/_cluster/health", "").await.unwrap();
    }
    target.end("leader-1", FaultKind::Kill).await.unwrap();
    assert_eq!(target.nodes("leader"), before);
    let green = "/_cluster/health/a?wait_for_nodes=2&wait_for_status=green&timeout=60s";
    assert_eq!(ask(target, "GET", green, "").await.unwrap().status, 200);
    // On the restarted node too, over connections that were kept from before.
    for _ in 0..4 {
        assert_eq!(count(target).await, 200);
    }
}

/// The system may give the port of a node that is down to another process, mostly for a moment.
async fn waits_for_a_taken_port(env: &Env, target: &mut EmbeddedClusters) {
    let before = target.nodes("leader");
    target.begin("leader-1", FaultKind::Kill).await.unwrap();
    let taken = TcpListener::bind(&before[1].http).unwrap();
    let given_up = async {
        env.sleep(Duration::from_millis(400)).await;
        drop(taken);
    };
    let (started, ()) = tokio::join!(target.end("leader-1", FaultKind::Kill), given_up);
    started.unwrap();
    assert_eq!(target.nodes("leader"), before);
}

async fn sees_the_leader_through_the_link(env: &Env, target: &EmbeddedClusters) {
    connect_follower(target).await;
    // A node gives up on another that does not answer within a second or so, and tries it again when it is asked.
    until(env, "the follower is connected", async || follower_is_connected(target).await).await;
    let link = target.link().unwrap();
    let has_carried = |to: Direction| link.stats(to).bytes > 0;
    let both = async || has_carried(Direction::Back) && has_carried(Direction::Out);
    until(env, "the link carries bytes both ways", both).await;
    link.cut();
    assert!(!follower_is_connected(target).await);
    link.heal();
    until(env, "the follower is connected", async || follower_is_connected(target).await).await;
}

async fn shows_the_slow_disk_that_it_is_told_to_have(env: &Env, target: &EmbeddedClusters) {
    let shows_a_disk = async || {
        let stats = ask(target, "GET", "/_nodes/stats", "").await.unwrap().json().unwrap();
        let nodes = stats["nodes"].as_object().unwrap();
        nodes.values().any(|node| node["fs"]["io_stats"].is_object())
    };
    assert!(!shows_a_disk().await, "the machine's is not a node's own");
    let rates = DiskRates { read_bytes_per_s: 5_000_000, write_bytes_per_s: 5_000_000 };
    target.strain("leader-1", Strain::Disk(Some(rates))).await.unwrap();
    until(env, "a disk is shown", async || shows_a_disk().await).await;
    target.strain("leader-1", Strain::Disk(None)).await.unwrap();
    until(env, "no disk is shown", async || !shows_a_disk().await).await;
    let refused = target.strain("leader-1", Strain::Collections(0.5)).await.unwrap_err();
    assert!(refused.to_string().contains("cannot have leader-1 strain itself"), "{refused}");
}

async fn a_start_that_fails_leaves_no_node(env: &Env) {
    // The third node finds its port taken.
    let port = free_port();
    let _taken = TcpListener::bind(("127.0.0.1", port + 2)).unwrap();
    let mut target = EmbeddedClusters::new(env, PathBuf::from(BINARY)).with_port(port);
    let failed = target.start(&topology(3)).await.unwrap_err();
    assert!(matches!(&failed, Error::AddressTaken { node, .. } if node == "leader-2"), "{failed}");
    assert_eq!(children().len(), 0);
    assert!(target.nodes("leader").is_empty());
}

async fn a_node_that_ends_by_itself_is_told(env: &Env, target: &mut EmbeddedClusters) {
    assert!(target.failed_node().await.is_none());
    let ended = target.node_ended();
    let victim = children().last().copied().unwrap();
    signal(victim, "KILL");
    env.timeout(PATIENCE, ended).await.unwrap();
    let told = target.failed_node().await.unwrap().to_string();
    assert!(told.contains("ended by itself (signal: 9"), "{told}");
}

/// One test, for its parts go on where the one before stopped.
#[test]
fn clusters_of_processes_from_start_to_end() {
    world::real_world::run(1, async |env| {
        let mut target = EmbeddedClusters::new(&env, PathBuf::from(BINARY));
        target.start(&topology(2)).await.unwrap();
        assert_eq!(children().len(), 3);
        let data = data_of(*children().first().unwrap());
        kills_and_starts_again(&mut target).await;
        waits_for_a_taken_port(&env, &mut target).await;
        sees_the_leader_through_the_link(&env, &target).await;
        shows_the_slow_disk_that_it_is_told_to_have(&env, &target).await;
        target.stop().await;
        assert_eq!(children().len(), 0);
        assert!(!data.exists());

        // The same without a word, as on a failure.
        target.start(&topology(2)).await.unwrap();
        let data = data_of(*children().first().unwrap());
        a_node_that_ends_by_itself_is_told(&env, &mut target).await;
        drop(target);
        assert_eq!(children().len(), 0);
        assert!(!data.exists());

        a_start_that_fails_leaves_no_node(&env).await;

        // A start that is given up half-way.
        let mut target = EmbeddedClusters::new(&env, PathBuf::from(BINARY));
        let begun =
            poll_fn(|_| if children().is_empty() { Poll::Pending } else { Poll::Ready(()) });
        let topology = topology(2);
        tokio::select! {
            biased;
            () = begun => {}
            started = target.start(&topology) => panic!("not given up: {started:?}"),
        }
        drop(target);
        assert_eq!(children().len(), 0);
    });
}
