//! Buckets and consumers whose memory is short, in both worlds.

use std::time::Duration;

use crate::common::{Bench, catch_up, follow, persisted, settings};
use bytes::Bytes;
use dcp::bucket::{Bucket, BucketSettings};
use dcp::codec::{Status, VbucketState};
use dcp::consumer::{ConsumerKind, Sink};
use dcp::policy::{MemorySettings, memory_of_2020, memory_of_today};
use world::Env;

testbed::both_worlds!(
    clients_are_told_that_memory_is_short,
    without_expelling_whole_checkpoints_are_removed,
    over_the_threshold_of_2020_messages_wait,
    over_the_threshold_of_today_acknowledgements_wait,
);

const QUOTA_BYTES: u64 = 2 << 20;
const ITEMS: u32 = 6000;
const VALUE_BYTES: usize = 1000;

async fn clients_are_told_that_memory_is_short(env: Env) {
    let bench = Bench::start(&env, settings(4, QUOTA_BYTES)).await;
    let mut client = bench.client().await;
    // Keys stay in memory, so that ejecting values does not help.
    let key = |n: u32| format!("{n:0>240}");
    let most = (QUOTA_BYTES / 240) as u32;
    let (mut taken, mut refused, mut in_turn) = (0, 0, 0);
    // Twice: what is written to disk after the first time may make room, on a disk that is slow.
    while in_turn < 2 {
        match client.set(0, &key(taken), Bytes::new()).await.unwrap() {
            Ok(Status::Success) => (taken, in_turn) = (taken + 1, 0),
            other => {
                assert_eq!(other, Ok(Status::TemporaryFailure));
                (refused, in_turn) = (refused + 1, in_turn + 1);
                persisted(&bench.bucket, 0).await;
                env.sleep(Duration::from_millis(100)).await;
            }
        }
        assert!(taken < most, "more keys than the quota has bytes for");
    }
    assert!(bench.bucket.used_bytes() > QUOTA_BYTES * 93 / 100);
    let huge = Bytes::from(vec![1; QUOTA_BYTES as usize]);
    assert_eq!(client.set(0, "huge", huge).await.unwrap(), Ok(Status::NoMemory));
    let stats = client.stats("").await.unwrap();
    assert_eq!(stats["ep_tmp_oom_errors"], refused.to_string());
    assert_eq!(stats["ep_oom_errors"], "1");
    assert_eq!(bench.bucket.documents(), u64::from(taken));
}

async fn without_expelling_whole_checkpoints_are_removed(env: Env) {
    let remover = Duration::from_millis(20);
    let memory = MemorySettings {
        item_expel: false,
        chk_remover_stime: remover,
        ..memory_of_2020(QUOTA_BYTES)
    };
    let bench = Bench::start(&env, BucketSettings { memory, ..settings(4, QUOTA_BYTES) }).await;
    bench.fill(0..ITEMS, VALUE_BYTES).await;
    let stats = bench.bucket.stats();
    assert!(stats.removed_bytes > 0 && stats.expelled_bytes == 0, "{stats:?}");
    assert_eq!(bench.bucket.documents(), u64::from(ITEMS));
    // Whoever comes now has all of it from disk.
    let into = replica(&bench, memory_of_today(64 << 20)).await;
    let sink = Sink::Bucket(into.clone());
    let kind = ConsumerKind::Mainstream;
    let mut follower = follow(&env, &bench, "all", sink, kind, 1 << 20).await;
    (0..4).for_each(|vb| follower.add_stream(vb, 0).unwrap());
    catch_up(&mut follower, &bench.bucket, &into).await;
    assert_eq!(into.documents(), u64::from(ITEMS));
}

async fn replica(bench: &Bench, memory: MemorySettings) -> Bucket {
    let quota_bytes = memory.quota_bytes;
    bench.replica(BucketSettings { memory, ..settings(4, quota_bytes) }).await
}

/// What was seen while a replica with too little memory caught up.
struct Seen {
    stops: u64,
    buffered_items_max: u64,
    used_bytes_max: u64,
    /// Bytes that came, over those that were acknowledged.
    unacknowledged_bytes_max: u64,
}

async fn catch_up_with_little(env: &Env, memory: MemorySettings) -> Seen {
    let bench = Bench::start(env, settings(4, 64 << 20)).await;
    bench.fill(0..ITEMS, VALUE_BYTES).await;
    // In the real world the disk is what it is.
    let mut model = env.virtual_host_model().unwrap_or_default();
    model.disk.write_bytes_per_s = 50_000_000;
    env.set_host_model(model);
    let into = replica(&bench, memory).await;
    // More than fits may be on its way, so that the disk cannot keep up.
    let window_bytes = 2 * QUOTA_BYTES as u32;
    let sink = Sink::Bucket(into.clone());
    let kind = ConsumerKind::Mainstream;
    let mut follower = follow(env, &bench, "little", sink, kind, window_bytes).await;
    (0..4).for_each(|vb| follower.add_stream(vb, 0).unwrap());
    let mut seen =
        Seen { stops: 0, buffered_items_max: 0, used_bytes_max: 0, unacknowledged_bytes_max: 0 };
    while (0..4).any(|vb| into.high_seqno(vb) != bench.bucket.high_seqno(vb)) {
        follower.step().await.unwrap();
        let stats = follower.consumer().stats();
        seen.stops = stats.stops;
        seen.buffered_items_max = seen.buffered_items_max.max(stats.buffered_items);
        seen.used_bytes_max = seen.used_bytes_max.max(into.used_bytes());
        let unacknowledged = stats.bytes - stats.acknowledged_bytes;
        seen.unacknowledged_bytes_max = seen.unacknowledged_bytes_max.max(unacknowledged);
    }
    assert_eq!(into.documents(), u64::from(ITEMS));
    for n in (0..ITEMS).step_by(501) {
        into.set_state((n % 4) as u16, VbucketState::Active).unwrap();
        let read = into.get((n % 4) as u16, format!("key{n}").as_bytes()).await.unwrap();
        assert!(read.value.starts_with(format!("{n}-").as_bytes()), "key{n}");
    }
    // No more is ever on its way than the window, and one message.
    let most = u64::from(window_bytes) + 2 * VALUE_BYTES as u64;
    assert!(seen.unacknowledged_bytes_max <= most, "{}", seen.unacknowledged_bytes_max);
    seen
}

async fn over_the_threshold_of_2020_messages_wait(env: Env) {
    let seen = catch_up_with_little(&env, memory_of_2020(QUOTA_BYTES)).await;
    assert!(seen.stops > 0 && seen.buffered_items_max > 0, "{}", seen.stops);
    let threshold = QUOTA_BYTES * 99 / 100 + 2 * VALUE_BYTES as u64;
    assert!(seen.used_bytes_max <= threshold, "{} over {threshold}", seen.used_bytes_max);
}

async fn over_the_threshold_of_today_acknowledgements_wait(env: Env) {
    let seen = catch_up_with_little(&env, memory_of_today(QUOTA_BYTES)).await;
    assert!(seen.stops > 0, "it was never short of memory");
    assert_eq!(seen.buffered_items_max, 0, "what comes is applied at once");
    // The window bounds by how much the quota is passed.
    assert!(seen.used_bytes_max > QUOTA_BYTES * 93 / 100, "{}", seen.used_bytes_max);
}
