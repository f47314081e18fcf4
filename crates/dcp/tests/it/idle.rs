//! What a server's thread waits for is counted where somebody wants to know.

use std::time::Duration;

use dcp::idle::IdleTime;
use world::Env;

use crate::common::{Bench, PATIENCE, settings};

testbed::both_worlds!(waits_for_the_disk_and_for_acknowledgements_are_told_apart);

async fn waits_for_the_disk_and_for_acknowledgements_are_told_apart(env: Env) {
    let bench = Bench::start(&env, settings(4, 64 << 20)).await;
    // As if its thread did no work: all of the time counts.
    let idle = || IdleTime::new(&env, || Duration::ZERO);
    let (disk, flow_control) = (idle(), idle());
    bench.bucket.count_disk_waits(disk.clone());
    bench.server.count_flow_control(flow_control.clone());
    bench.fill(0..2000, 1000).await;
    assert!(disk.so_far() > Duration::ZERO, "the flusher wrote");
    assert_eq!(flow_control.so_far(), Duration::ZERO, "nobody streams");
    let drain = bench.drain_slowly().await;
    let held_back = async {
        while flow_control.so_far() < Duration::from_secs(1) {
            env.sleep(Duration::from_millis(50)).await;
        }
    };
    env.timeout(PATIENCE, held_back).await.expect("its window is full nearly always");
    drop(drain);
}
