//! Buckets that are rolled back: by whom, to where, and what is left then.

use std::fs::OpenOptions;
use std::time::Duration;

use bytes::Bytes;
use dcp::bucket::{Bucket, ItemData};
use dcp::codec::{
    Marker, SNAPSHOT_CHECKPOINT, SNAPSHOT_DISK, SNAPSHOT_MEMORY, Status, VbucketState,
};
use dcp::policy::{StartDecision, StreamStart};
use world::Env;

use crate::bucket::{open_again, stream};
use crate::common::{Place, opened, persisted, set, settings};

testbed::both_worlds!(
    a_replica_rolls_back,
    a_rollback_leads_to_what_is_whole_on_disk,
    a_history_begins_where_the_view_was_whole;
    simulated: a_rollback_that_fails_changes_nothing, an_active_vbucket_is_not_rolled_back,
);

fn item(seqno: u64, key: &str) -> ItemData {
    let (by_seqno, value) = (seqno, Bytes::from(format!("{key}@{seqno}")));
    ItemData { key: key.to_owned().into(), value, by_seqno, cas: seqno, ..ItemData::default() }
}

/// A producer's snapshot, or a part of it.
fn stream_in(bucket: &Bucket, vb: u16, marker: (u64, u64, u32), items: &[(u64, &str)]) {
    let (start, end, flags) = marker;
    bucket.begin_snapshot(vb, Marker { start, end, flags }).unwrap();
    items.iter().for_each(|(seqno, key)| bucket.apply_all(vb, [item(*seqno, key)]).unwrap());
}

/// A replica with one whole snapshot, up to 4, and a part of another.
async fn replica_in_mid_snapshot(env: &Env) -> (Place, Bucket) {
    let (place, bucket) = opened(env, settings(1, 64 << 20)).await;
    bucket.set_state(0, VbucketState::Replica).unwrap();
    stream_in(&bucket, 0, (0, 4, SNAPSHOT_DISK), &[(1, "a"), (2, "b"), (4, "c")]);
    stream_in(&bucket, 0, (4, 9, SNAPSHOT_DISK), &[(5, "a"), (7, "d")]);
    (place, bucket)
}

async fn a_rollback_that_fails_changes_nothing(env: Env) {
    let (_place, bucket) = replica_in_mid_snapshot(&env).await;
    persisted(&bucket, 0).await;
    assert!(store::set_disk_free_bytes(&env, Some(0)));
    assert!(bucket.roll_back(0, 4).await.is_err());
    assert_eq!((bucket.high_seqno(0), bucket.documents()), (Some(7), 4));
    store::set_disk_free_bytes(&env, None);
    assert_eq!(bucket.roll_back(0, 4).await.unwrap(), 4);
    assert_eq!((bucket.high_seqno(0), bucket.documents()), (Some(4), 3));
}

async fn an_active_vbucket_is_not_rolled_back(env: Env) {
    let (_place, bucket) = replica_in_mid_snapshot(&env).await;
    let mut model = env.virtual_host_model().unwrap();
    model.disk.sync = Duration::from_millis(20);
    env.set_host_model(model);
    let roll_back = || {
        let bucket = bucket.clone();
        env.spawn("rolls back", async move { bucket.roll_back(0, 4).await })
    };
    // It becomes active while what it has is written, and a client does not stop writing to it.
    let rolling = roll_back();
    env.sleep(Duration::from_millis(1)).await;
    bucket.set_state(0, VbucketState::Active).unwrap();
    let (written, clock) = (bucket.clone(), env.clone());
    let writing = env.spawn("writes", async move {
        while set(&written, 0, "e", b"one").is_ok() {
            clock.sleep(Duration::from_millis(1)).await;
        }
    });
    let rolled_back = env.timeout(Duration::from_secs(1), rolling).await;
    assert!(rolled_back.expect("it ends").unwrap().is_err());
    drop(writing);
    assert!(bucket.high_seqno(0) > Some(7));
    assert_eq!(bucket.documents(), 5);
    let log = bucket.failover_log(0).unwrap();
    assert!(bucket.adopt_failover(0, 7, log.clone()).is_err(), "its history is its own");
    bucket.set_state(0, VbucketState::Replica).unwrap();
    env.sleep(Duration::from_millis(100)).await;
    // It is to become active while the rollback is written, and whoever wanted the rollback goes.
    let rolling = roll_back();
    env.sleep(Duration::from_millis(5)).await;
    let refused = Err(Status::TemporaryFailure);
    assert_eq!(bucket.set_state(0, VbucketState::Active), refused);
    drop(rolling);
    env.sleep(Duration::from_millis(100)).await;
    assert_eq!((bucket.high_seqno(0), bucket.documents()), (Some(4), 3));
    assert!(bucket.adopt_failover(0, 7, log.clone()).is_err(), "the stream would leave a gap");
    assert!(bucket.adopt_failover(0, 4, log).unwrap());
    bucket.set_state(0, VbucketState::Active).unwrap();
}

async fn a_rollback_leads_to_what_is_whole_on_disk(env: Env) {
    let (place, bucket) = opened(&env, settings(2, 64 << 20)).await;
    set(&bucket, 0, "j", b"one").unwrap();
    persisted(&bucket, 0).await;
    // The flusher takes the second version alone: there is no view at 2.
    set(&bucket, 0, "k", b"one").unwrap();
    set(&bucket, 0, "k", b"two").unwrap();
    persisted(&bucket, 0).await;
    bucket.set_state(0, VbucketState::Replica).unwrap();
    // Version 25 replaced an earlier one of this snapshot, which never came: there is no view at 25.
    bucket.set_state(1, VbucketState::Replica).unwrap();
    stream_in(&bucket, 1, (0, 5, SNAPSHOT_DISK), &[(1, "a"), (3, "b"), (5, "c")]);
    stream_in(&bucket, 1, (5, 30, SNAPSHOT_DISK), &[(25, "a")]);
    persisted(&bucket, 1).await;
    bucket.close().await.unwrap();
    let bucket = Bucket::open(&env, settings(2, 64 << 20), &place.dir).await.unwrap();
    assert_eq!(bucket.roll_back(0, 2).await.unwrap(), 1);
    assert_eq!((bucket.high_seqno(0), bucket.documents_of(0)), (Some(1), Some(1)));
    assert_eq!(bucket.roll_back(1, 25).await.unwrap(), 5);
    assert_eq!((bucket.high_seqno(1), bucket.documents_of(1)), (Some(5), Some(3)));
    bucket.set_state(1, VbucketState::Active).unwrap();
    assert_eq!(&bucket.get(1, b"a").await.unwrap().value[..], b"a@1");
    bucket.set_state(1, VbucketState::Replica).unwrap();
    assert_eq!(bucket.roll_back(1, 4).await.unwrap(), 0);
    assert_eq!((bucket.high_seqno(1), bucket.documents_of(1)), (Some(0), Some(0)));
}

async fn a_history_begins_where_the_view_was_whole(env: Env) {
    let (place, bucket) = replica_in_mid_snapshot(&env).await;
    let uuid = bucket.failover_log(0).unwrap()[0].uuid;
    bucket.set_state(0, VbucketState::Active).unwrap();
    assert_eq!(bucket.failover_log(0).unwrap()[0].seqno, 4);
    // Whoever has all of the history before may have what the rest of the snapshot would have replaced.
    let at = StreamStart { start: 7, uuid, snap_start: 7, snap_end: 7 };
    assert_eq!(bucket.decide_start(0, at), Some(StartDecision::Rollback(4)));
    persisted(&bucket, 0).await;
    drop(bucket);
    // Nobody closed it.
    let bucket = open_again(&env, 1, &place).await;
    let log = bucket.failover_log(0).unwrap();
    assert_eq!((bucket.high_seqno(0), log.len(), log[0].seqno), (Some(7), 3, 4));
    // What it writes itself is whole.
    set(&bucket, 0, "e", b"one").unwrap();
    persisted(&bucket, 0).await;
    drop(bucket);
    let bucket = open_again(&env, 1, &place).await;
    assert_eq!(bucket.failover_log(0).unwrap()[0].seqno, 8);
}

/// The end of the log's first file is cut, as where the process is killed in the middle of an append.
async fn tear(env: &Env, place: &Place, bytes: u64) {
    env.sleep(Duration::from_millis(200)).await;
    let file = OpenOptions::new().write(true).open(place.dir.join("records-1.log")).unwrap();
    file.set_len(file.metadata().unwrap().len() - bytes).unwrap();
}

#[test]
fn a_torn_round_of_an_active_vbucket_ends_no_whole_view() {
    world::real_world::run(7, async |env| {
        let (place, bucket) = opened(&env, settings(1, 64 << 20)).await;
        set(&bucket, 0, "a", b"one").unwrap();
        persisted(&bucket, 0).await;
        for key in ["b", "c", "d"] {
            set(&bucket, 0, key, b"one").unwrap();
        }
        persisted(&bucket, 0).await;
        drop(bucket);
        tear(&env, &place, 5).await;
        let bucket = open_again(&env, 1, &place).await;
        let log = bucket.failover_log(0).unwrap();
        assert_eq!((bucket.high_seqno(0), log[0].seqno), (Some(3), 1));
    });
}

#[test]
fn a_torn_round_of_a_replica_is_a_part_of_a_snapshot() {
    world::real_world::run(7, async |env| {
        let (place, bucket) = opened(&env, settings(1, 64 << 20)).await;
        bucket.set_state(0, VbucketState::Replica).unwrap();
        let uuid = bucket.failover_log(0).unwrap()[0].uuid;
        stream_in(&bucket, 0, (0, 4, SNAPSHOT_DISK), &[(1, "a"), (2, "b")]);
        let large = ItemData { value: Bytes::from(vec![1; 1000]), ..item(4, "c") };
        bucket.apply_all(0, [large]).unwrap();
        stream_in(&bucket, 0, (4, 9, SNAPSHOT_DISK), &[(5, "a"), (9, "d")]);
        persisted(&bucket, 0).await;
        drop(bucket);
        // Into the version at 4.
        tear(&env, &place, 500).await;
        let bucket = open_again(&env, 1, &place).await;
        let resume = StreamStart { start: 2, uuid, snap_start: 0, snap_end: 9 };
        assert_eq!(bucket.resume(0), Some(resume));
    });
}

async fn a_replica_rolls_back(env: Env) {
    let (place, bucket) = opened(&env, settings(1, 64 << 20)).await;
    assert!(bucket.apply_all(0, [item(1, "a")]).is_err(), "an active vbucket takes no stream");
    bucket.set_state(0, VbucketState::Replica).unwrap();
    let uuid = bucket.failover_log(0).unwrap()[0].uuid;
    assert!(bucket.apply_all(0, [item(1, "a")]).is_err(), "no snapshot yet");
    let flags = SNAPSHOT_MEMORY | SNAPSHOT_CHECKPOINT;
    stream_in(&bucket, 0, (0, 4, flags), &[(1, "a"), (2, "b"), (4, "c")]);
    stream_in(&bucket, 0, (5, 9, flags), &[(5, "a"), (7, "d")]);
    assert!(bucket.apply_all(0, [item(10, "e")]).is_err(), "outside its snapshot");
    let resume = StreamStart { start: 7, uuid, snap_start: 5, snap_end: 9 };
    assert_eq!(bucket.resume(0), Some(resume));
    persisted(&bucket, 0).await;
    // A kill in the middle of a snapshot.
    drop(bucket);
    let bucket = open_again(&env, 1, &place).await;
    assert_eq!((bucket.state(0), bucket.resume(0)), (Some(VbucketState::Replica), Some(resume)));
    assert_eq!(bucket.roll_back(0, 4).await.unwrap(), 4);
    let check = async |bucket: &Bucket| {
        assert_eq!((bucket.high_seqno(0), bucket.documents()), (Some(4), 3));
        bucket.set_state(0, VbucketState::Active).unwrap();
        assert_eq!(&bucket.get(0, b"a").await.unwrap().value[..], b"a@1");
        assert_eq!(bucket.get(0, b"d").await, Err(Status::NotFound));
        let (items, _) = stream(bucket, 0, 0).await;
        assert_eq!(items.iter().map(|item| item.by_seqno).collect::<Vec<_>>(), [1, 2, 4]);
    };
    check(&bucket).await;
    bucket.close().await.unwrap();
    let bucket = Bucket::open(&env, settings(1, 64 << 20), &place.dir).await.unwrap();
    check(&bucket).await;
    bucket.set_state(0, VbucketState::Replica).unwrap();
    assert_eq!(bucket.roll_back(0, 0).await.unwrap(), 0);
    assert_eq!((bucket.high_seqno(0), bucket.documents()), (Some(0), 0));
}
