//! A disk that fills up in the middle of a recovery, and one that has room again.
//!
//! In the virtual world the disk takes only so much. In the real one the shard copies lie on a small file system of
//! their own; mounting it needs rights, so that those runs are in `tests/tools` of the crate `rest`.

use std::collections::BTreeMap;

use crate::common::{Cluster, ask, eventually, raw, refuses};
use serde_json::{Value, json};
use testbed::SmallDisk;
use world::Env;

testbed::virtual_world!(
    a_write_to_a_full_disk_is_refused_by_its_kind,
    a_full_disk_ends_a_recovery_and_room_completes_it,
    a_follower_whose_disk_is_full_goes_on_with_room,
    health_is_what_searches_find_where_the_managers_disk_is_full,
);

const HOST: &str = "follower-0";
const DOCUMENTS: u64 = 400;
/// The source of a document does not compress, so that its size is that of the copy's files, about.
const NOISE_BYTES: usize = 8000;

/// A disk that takes no more than so many bytes until it is told to.
enum Disk {
    Virtual(Env),
    Mounted(SmallDisk),
}

impl Disk {
    /// Puts such a disk below the copies of a cluster; the directory that this cluster has to start in.
    fn new(env: &Env, bytes: u64) -> (Disk, Option<tempfile::TempDir>) {
        Disk::below(env, &format!("{HOST}/indices"), bytes)
    }

    /// In the real world, below a directory of the cluster's.
    fn below(env: &Env, path: &str, bytes: u64) -> (Disk, Option<tempfile::TempDir>) {
        if env.is_virtual() {
            let host = env.host(HOST);
            assert!(store::set_disk_free_bytes(&host, Some(bytes)));
            return (Disk::Virtual(host), None);
        }
        let dir = tempfile::tempdir().unwrap();
        let mount = dir.path().join(path);
        std::fs::create_dir_all(&mount).unwrap();
        (Disk::Mounted(SmallDisk::mount(&mount, bytes).unwrap()), Some(dir))
    }

    /// Nothing more fits.
    fn fill(&self) {
        match self {
            Disk::Virtual(host) => {
                store::set_disk_free_bytes(host, Some(0));
            }
            Disk::Mounted(disk) => disk.fill().unwrap(),
        }
    }

    fn make_room(&self) {
        match self {
            Disk::Virtual(host) => {
                store::set_disk_free_bytes(host, None);
            }
            Disk::Mounted(disk) => disk.resize(64 << 20).unwrap(),
        }
    }
}

/// Letters that no compression makes smaller by much.
fn noise(seed: u64) -> String {
    let mut state = seed;
    let mut letter = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(b'!' + 1 + ((state >> 33) % 90) as u8)
    };
    let text: String = (0..NOISE_BYTES).map(|_| letter()).collect();
    text.replace(['"', '\\'], "x")
}

async fn leader(env: &Env) -> Cluster {
    let leader = Cluster::with(env, "leader", 1, ("a", 1, 0)).await;
    // Two segments and more, so that some files are whole when the disk is full.
    for part in 0..8 {
        index(&leader, part * DOCUMENTS / 8..(part + 1) * DOCUMENTS / 8).await;
        leader.post("/a/_flush").await;
    }
    leader
}

async fn index(leader: &Cluster, numbers: std::ops::Range<u64>) {
    let lines = numbers.map(|n| {
        format!("{{\"index\":{{\"_id\":\"{n}\"}}}}\n{{\"n\":{n},\"noise\":\"{}\"}}\n", noise(n))
    });
    let body: String = lines.collect();
    let (status, answer) = raw(leader.any(), "POST", "/a/_bulk", body.into()).await;
    assert_eq!((status, &answer["errors"]), (200, &json!(false)), "{answer}");
}

/// A follower of one node on a disk of so many bytes.
async fn follower_on(env: &Env, leader: &Cluster, bytes: u64) -> (Disk, Cluster) {
    let (disk, dir) = Disk::new(env, bytes);
    let settings = BTreeMap::from([
        ("ccr.indices.recovery.chunk_size".to_owned(), "64kb".to_owned()),
        ("narrows.recovery.scheduler".to_owned(), "sequential".to_owned()),
    ]);
    let follower =
        Cluster::start_in(env, "follower", 1, |config| config.settings = settings.clone(), dir)
            .await;
    // As often as may be: a test in real time waits for it.
    let settings = json!({
        "cluster.remote.leader.seeds": leader.seeds(), "cluster.info.update.interval": "10s",
    });
    follower.set(settings).await;
    (disk, follower)
}

async fn follow(follower: &Cluster, wait_for_active_shards: &str) {
    follower.follow("b", ("leader", "a"), 0, wait_for_active_shards).await;
}

/// The client learns that the disk is full and that nothing was done; with room the same write succeeds.
pub async fn a_write_to_a_full_disk_is_refused_by_its_kind(env: Env) {
    let (disk, dir) = Disk::new(&env, 40 * NOISE_BYTES as u64);
    let cluster = Cluster::start_in(&env, "follower", 1, |_| (), dir).await;
    cluster.create("a", 1, 0).await;
    // A refresh that finds the disk full first would fail the copy, and the write with it.
    cluster.must("PUT", "/a/_settings", json!({ "index.refresh_interval": "-1" })).await;
    let put = async |n: u64| {
        let path = format!("/a/_doc/{n}");
        cluster.ask("PUT", &path, json!({ "n": n, "noise": noise(n) })).await
    };
    let written = 4;
    for n in 0..written {
        assert_eq!(put(n).await.0, 201);
    }
    // The index library writes beside the log. With nothing open there, the log is the first to meet the full disk.
    cluster.post("/a/_flush").await;
    disk.fill();
    let answer = refuses(put(written).await, 429, "cluster_block_exception");
    let reason = answer["error"]["reason"].as_str().unwrap();
    assert!(reason.contains("disk usage exceeded flood-stage watermark"), "{reason}");
    assert!(reason.contains("No space left on device"), "{reason}");
    let line = format!("{{\"index\":{{\"_id\":\"b\"}}}}\n{{\"noise\":\"{}\"}}\n", noise(7));
    let (status, answer) = raw(cluster.any(), "POST", "/a/_bulk", line.into()).await;
    let item = &answer["items"][0]["index"];
    assert_eq!((status, &item["status"]), (200, &json!(429)), "{answer}");
    assert_eq!(item["error"]["type"], "cluster_block_exception");

    disk.make_room();
    let refused = cluster.ask("GET", &format!("/a/_doc/{written}"), Value::Null).await;
    assert_eq!((refused.0, &refused.1["found"]), (404, &json!(false)), "nothing of it is there");
    // The index library may have met the full disk, too: then the copy is opened again, and has the write once it is.
    let accepted = async || matches!(put(written).await.0, 200 | 201);
    eventually(&env, "there is room for it", accepted).await;
    let count = cluster.counted("a").await["count"].as_u64();
    assert_eq!(count, Some(written + 1));
    cluster.stop().await;
    drop(disk);
}

/// In the real world the cluster state has no room either, so that the manager cannot note that the copy failed.
pub async fn health_is_what_searches_find_where_the_managers_disk_is_full(env: Env) {
    let (disk, dir) = Disk::below(&env, HOST, 8 << 20);
    let cluster = Cluster::start_in(&env, "follower", 2, |_| (), dir).await;
    let settings = json!({
        "number_of_shards": 1, "number_of_replicas": 0, "index.refresh_interval": "-1",
        "index.routing.allocation.require._name": HOST,
    });
    cluster.make("a", json!({ "settings": settings })).await;
    index(&cluster, 0..10).await;
    disk.fill();
    // It has segments to write, and fails the copy.
    cluster.ask("POST", "/a/_refresh", Value::Null).await;
    env.sleep(std::time::Duration::from_secs(3)).await;
    let green = "/_cluster/health?wait_for_status=green&timeout=1s";
    eventually(&env, "health says whether searches are answered", async || {
        let counted = cluster.ask("GET", "/a/_count", Value::Null).await.0;
        // Also where the other node is asked, which neither manages nor has the copy.
        let mut says = Vec::new();
        for node in cluster.nodes.values() {
            says.push(ask(node, "GET", green, Value::Null).await.0);
        }
        says.iter().all(|waited| (counted == 200) == (*waited == 200))
    })
    .await;
    disk.make_room();
    eventually(&env, "it is green with room", async || {
        let waited = cluster.ask("GET", green, Value::Null).await.0;
        waited == 200 && cluster.ask("GET", "/a/_count", Value::Null).await.0 == 200
    })
    .await;
    cluster.stop().await;
    drop(disk);
}

/// What it cannot write it tries again, and says so; nothing of it is the end of following.
pub async fn a_follower_whose_disk_is_full_goes_on_with_room(env: Env) {
    let leader = Cluster::with(&env, "leader", 1, ("a", 1, 0)).await;
    index(&leader, 0..10).await;
    let (disk, follower) = follower_on(&env, &leader, DOCUMENTS * NOISE_BYTES as u64 / 2).await;
    follow(&follower, "1").await;
    for from in (10..DOCUMENTS).step_by(30) {
        index(&leader, from..(from + 30).min(DOCUMENTS)).await;
    }
    let shard = async || {
        let stats = follower.ask("GET", "/b/_ccr/stats", Value::Null).await.1;
        let shard = stats["indices"][0]["shards"][0].clone();
        assert!(shard["fatal_exception"].is_null(), "{shard}");
        shard
    };
    eventually(&env, "its disk is full", async || {
        let shard = shard().await;
        shard.is_null() || shard["failed_write_requests"].as_u64() > Some(0)
    })
    .await;
    disk.make_room();
    eventually(&env, "it has what its leader has", async || {
        let all = shard().await["follower_global_checkpoint"] == DOCUMENTS - 1;
        let expected = leader.digests("a").await;
        all && follower.answered_digests("b").await.is_ok_and(|found| found == expected)
    })
    .await;
    follower.stop().await;
    leader.stop().await;
    drop(disk);
}

pub async fn a_full_disk_ends_a_recovery_and_room_completes_it(env: Env) {
    let leader = leader(&env).await;
    let path = "/_cat/indices?format=json&bytes=b&h=store.size";
    let size = leader.get(path).await[0]["store.size"].clone();
    let size: u64 = size.as_str().and_then(|size| size.parse().ok()).expect("a size in bytes");
    let (disk, follower) = follower_on(&env, &leader, size * 6 / 10).await;
    follow(&follower, "0").await;

    // It is tried again and again, and then given up with what was found and where.
    let explain = async || follower.ask("GET", "/_cluster/allocation/explain", Value::Null).await.1;
    eventually(&env, "the copy is given up", async || {
        explain().await["unassigned_info"]["failed_allocation_attempts"] == 5
    })
    .await;
    let answer = explain().await;
    let details = answer["unassigned_info"]["details"].as_str().unwrap();
    assert!(details.contains("No space left on device"), "{details}");
    let uuid = &follower.any().state().indices["b"].uuid;
    let copy_dir = follower.any().copy_dir(uuid, 0);
    assert!(details.contains(&copy_dir.to_string_lossy().into_owned()), "{details}");
    assert_eq!((&answer["index"], &answer["can_allocate"]), (&json!("b"), &json!("no")));
    let explanation = answer["allocate_explanation"].as_str().unwrap();
    assert!(explanation.contains("_cluster/reroute?retry_failed"), "{explanation}");

    // What is half there does not count.
    let health = follower.get("/_cluster/health/b").await;
    assert_eq!((&health["status"], &health["active_shards"]), (&json!("red"), &json!(0)));
    let (status, answer) = follower.ask("GET", "/b/_count", Value::Null).await;
    assert!(status == 503 || answer["count"] == 0, "{status} {answer}");

    // Nobody has to say that there is room.
    disk.make_room();
    let health = follower.get("/_cluster/health/b?wait_for_status=green&timeout=300s").await;
    assert_eq!(health["status"], "green", "{health}");
    let row = follower.get("/b/_recovery").await["b"]["shards"][0].clone();
    let size = &row["index"]["size"];
    let (total, reused) = (size["total_in_bytes"].as_u64(), size["reused_in_bytes"].as_u64());
    assert!(reused > Some(0) && reused < total, "verified files are not fetched again: {row}");
    let digests = leader.digests("a").await;
    assert_eq!(digests[0].1, DOCUMENTS);
    assert_eq!(digests, follower.digests("b").await);
    follower.stop().await;
    leader.stop().await;
    drop(disk);
}
