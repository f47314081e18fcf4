//! One seed, one trace, whatever else lives in the same virtual world.

use std::time::Duration;

use crate::common::Cluster;
use serde_json::json;
use world::{Env, Trace};

const HOSTS: [&str; 3] = ["main", "c-0", "c-1"];

/// Documents, a replica that recovers, a node that dies and comes back.
async fn scenario(env: &Env) {
    let mut cluster = Cluster::holding(env, "c", 2, ("a", 2, 0), 500).await;
    cluster.must("PUT", "/a/_settings", json!({ "index.number_of_replicas": 1 })).await;
    cluster.green("a").await;
    // Nothing else here is left to chance: ids differ from seed to seed, and their lengths do not.
    env.sleep(Duration::from_micros(env.random_u64() % 1000)).await;
    cluster.kill_node(1).await;
    cluster.index("a", 500, 600).await;
    cluster.start_node(1).await;
    cluster.green("a").await;
    cluster.stop().await;
}

/// The scenario's trace beside so many tasks on a host that has nothing to do with it.
fn traced(seed: u64, bystanders: usize) -> Trace {
    let traced = world::virtual_world::run_traced(seed, async move |env| {
        let host = env.host("bystander");
        let tasks: Vec<world::Task<()>> = (0..bystanders)
            .map(|_| {
                let env = host.clone();
                host.spawn("stands by", async move {
                    loop {
                        env.sleep(Duration::from_nanos(env.random_u64() % 10_000_000)).await;
                        env.work(world::Work::Hash { bytes: 1 << 20 }, || ()).await;
                    }
                })
            })
            .collect();
        scenario(&env).await;
        drop(tasks);
    });
    traced.unwrap_or_else(|deadlock| panic!("seed {seed}: {deadlock}")).1
}

#[test]
fn a_seed_gives_a_trace_and_bystanders_do_not_change_it() {
    const SEED: u64 = 11;
    let alone = traced(SEED, 0);
    assert_eq!(alone, traced(SEED, 0), "seed {SEED}");
    assert!(alone.events > 500, "{}", alone.events);
    for bystanders in [1, 50] {
        let beside = traced(SEED, bystanders);
        for host in HOSTS {
            let (first, second) = (alone.hosts[host], beside.hosts[host]);
            assert_eq!(first, second, "seed {SEED}, {host}, {bystanders} bystanders");
        }
        assert!(beside.events > alone.events);
    }
    assert_ne!(alone.hosts, traced(SEED + 1, 0).hosts);
}
