//! Recoveries beside clients: the adaptive scheduler gives way, and takes what is free when nobody suffers.
//!
//! In the virtual world disks are slow and latencies exact, so they are asserted; in the real one the same goes on, and
//! only what comes of it is.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use crate::common::{Cluster, eventually, raw};
use serde_json::{Value, json};
use world::Env;
use world::model::{Disk, Host};

testbed::both_worlds!(a_recovery_gives_way_to_clients,);

const NOISE_BYTES: u64 = 8000;
const CLIENT_EVERY: Duration = Duration::from_millis(20);
/// A disk that a recovery can keep busy for seconds.
const DISK_BYTES_PER_S: u64 = 4_000_000;
/// What is in flight before anything is known has to pass first.
const REACTION: Duration = Duration::from_secs(3);

async fn fill(cluster: &Cluster, documents: u64) {
    for first in (0..documents).step_by(100) {
        let lines = (first..first + 100).map(|n| {
            let text = "x".repeat(NOISE_BYTES as usize);
            format!("{{\"index\":{{\"_id\":\"{n}\"}}}}\n{{\"n\":{n},\"noise\":\"{text}\"}}\n")
        });
        let body: String = lines.collect();
        let (status, answer) = raw(cluster.any(), "POST", "/a/_bulk", body.into()).await;
        assert_eq!((status, &answer["errors"]), (200, &json!(false)), "{answer}");
    }
    cluster.post("/a/_flush").await;
}

/// Clients that write to both nodes at a steady rate, whatever the answers take, until dropped.
struct Clients {
    latencies: Rc<RefCell<Vec<Duration>>>,
    _task: world::Task<()>,
}

impl Clients {
    fn start(env: &Env, cluster: &Cluster) -> Clients {
        let latencies: Rc<RefCell<Vec<Duration>>> = Rc::default();
        let (env2, node, noted) = (env.clone(), cluster.any().clone(), latencies.clone());
        let task = env.spawn("writes steadily", async move {
            for n in 0u64.. {
                let (env, node, noted) = (env2.clone(), node.clone(), noted.clone());
                env2.spawn("writes a document", async move {
                    let began = env.now();
                    let path = format!("/b/_doc/{n}");
                    let (status, answer) = raw(&node, "PUT", &path, "{\"n\":1}".into()).await;
                    assert_eq!(status, 201, "{answer}");
                    noted.borrow_mut().push(env.now() - began);
                })
                .detach();
                env2.sleep(CLIENT_EVERY).await;
            }
        });
        Clients { latencies, _task: task }
    }

    /// The slow tenth of what was noted since the last look.
    fn slow_tenth(&self) -> Duration {
        let mut latencies = std::mem::take(&mut *self.latencies.borrow_mut());
        assert!(latencies.len() >= 20, "{} requests were answered", latencies.len());
        latencies.sort();
        latencies[latencies.len() * 9 / 10]
    }
}

async fn set(cluster: &Cluster, scheduler: &str) {
    let settings = json!({
        "indices.recovery.max_bytes_per_sec": "-1",
        "indices.recovery.chunk_size": "1mb",
        "indices.recovery.max_concurrent_file_chunks": 5,
        "narrows.recovery.scheduler": scheduler,
    });
    cluster.set(settings).await;
}

/// Makes a replica and takes it away again; answers how long the recovery took, and what clients felt of it from
/// [`REACTION`] on.
async fn replicate(
    env: &Env,
    cluster: &Cluster,
    clients: Option<&Clients>,
) -> (Duration, Duration) {
    let replicas = |n: u32| json!({ "index.number_of_replicas": n });
    cluster.must("PUT", "/a/_settings", replicas(1)).await;
    let mut slow_tenth = Duration::ZERO;
    if let (Some(clients), true) = (clients, env.is_virtual()) {
        env.sleep(REACTION).await;
        clients.slow_tenth();
        env.sleep(Duration::from_secs(3)).await;
        slow_tenth = clients.slow_tenth();
    }
    let row = RefCell::new(Value::Null);
    eventually(env, "the replica is there", async || {
        let answer = cluster.get("/a/_recovery").await;
        let rows = answer["a"]["shards"].as_array().cloned().unwrap_or_default();
        let peer = rows.into_iter().find(|row| row["type"] == "PEER" && row["stage"] == "DONE");
        *row.borrow_mut() = peer.unwrap_or_default();
        row.borrow().is_object()
    })
    .await;
    cluster.green("a").await;
    let digests = cluster.digests("a").await;
    assert_eq!((digests.len(), &digests[0]), (2, &digests[1]));
    cluster.must("PUT", "/a/_settings", replicas(0)).await;
    let took_ns = row.borrow()["narrows"]["elapsed_ns"].as_u64().unwrap();
    (Duration::from_nanos(took_ns), slow_tenth)
}

async fn a_recovery_gives_way_to_clients(env: Env) {
    let cluster = Cluster::with(&env, "c", 2, ("a", 1, 0)).await;
    cluster.create("b", 2, 0).await;
    fill(&cluster, if env.is_virtual() { 4000 } else { 200 }).await;
    for node in ["c-0", "c-1"] {
        env.host(node).set_host_model(Host {
            disk: Disk {
                read_bytes_per_s: DISK_BYTES_PER_S,
                write_bytes_per_s: DISK_BYTES_PER_S,
                ..Disk::default()
            },
            ..Host::default()
        });
    }
    // Where no latencies are asserted nobody has to wait for them to be as they were.
    let settle = async |seconds| {
        env.sleep(Duration::from_secs(if env.is_virtual() { seconds } else { 0 })).await;
    };
    let clients = Clients::start(&env, &cluster);
    settle(2).await;
    eventually(&env, "clients are answered", async || clients.latencies.borrow().len() >= 20).await;
    let alone = clients.slow_tenth();

    set(&cluster, "file_window").await;
    let (_, beside_fixed) = replicate(&env, &cluster, Some(&clients)).await;
    // The detectors need a quiet moment to learn what clients are used to.
    settle(3).await;

    set(&cluster, "adaptive").await;
    let (pressed, beside_adaptive) = replicate(&env, &cluster, Some(&clients)).await;
    drop(clients);
    settle(3).await;
    let (free, _) = replicate(&env, &cluster, None).await;

    println!(
        "slow tenth: alone {alone:?}, fixed {beside_fixed:?}, adaptive {beside_adaptive:?}; \
         recovery: pressed {pressed:?}, free {free:?}"
    );
    if env.is_virtual() {
        assert!(beside_adaptive * 4 < beside_fixed, "{beside_adaptive:?} of {beside_fixed:?}");
        assert!(beside_adaptive < Duration::from_millis(60), "{beside_adaptive:?}");
        assert!(pressed > free * 6 / 5, "it gave way: {pressed:?}, free {free:?}");
        let bytes = (4000 * NOISE_BYTES) as f64;
        assert!(
            free.as_secs_f64() < 1.5 * bytes / DISK_BYTES_PER_S as f64,
            "fast when free: {free:?}"
        );
    }
}
