//! Buckets, in both worlds: what is written is read, streamed, kept, and rolled back.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use dcp::bucket::{Bucket, BucketSettings, CheckpointLimits, Condition, ItemData, ItemKind, Take};
use dcp::codec::{
    Marker, SNAPSHOT_CHECKPOINT, SNAPSHOT_DISK, SNAPSHOT_MEMORY, Status, VbucketState, Write,
};
use dcp::policy::{StartDecision, StreamStart};
use tokio::sync::Notify;
use world::Env;

testbed::both_worlds!(
    what_is_written_is_read,
    all_is_there_after_closing,
    many_vbuckets_persist_together,
    a_backfill_is_the_view_at_its_end,
    memory_stays_under_its_quota,
    a_document_written_again_and_again_takes_little_memory,
    a_replica_rolls_back,
    a_rollback_leads_to_what_is_whole_on_disk,
    a_history_begins_where_the_view_was_whole,
    cleaning_keeps_what_is_needed,
);

const SOON: Duration = Duration::from_secs(60);

struct Place {
    dir: PathBuf,
    _kept: tempfile::TempDir,
}

fn place(env: &Env) -> Place {
    let kept = tempfile::tempdir().unwrap();
    let dir = if env.is_virtual() { PathBuf::from("/data") } else { kept.path().join("bucket") };
    Place { dir, _kept: kept }
}

fn settings(vbuckets: u16, quota_bytes: u64) -> BucketSettings {
    BucketSettings::new("example", vbuckets, quota_bytes)
}

fn set(bucket: &Bucket, vb: u16, key: &str, value: &[u8]) -> Result<u64, Status> {
    let write = Write {
        flags: 7,
        expiry: 0,
        key: Bytes::copy_from_slice(key.as_bytes()),
        value: Bytes::copy_from_slice(value),
    };
    bucket.write(vb, write, 0, 0, Condition::Always).map(|written| written.seqno)
}

async fn persisted(bucket: &Bucket, vb: u16) {
    let high = bucket.high_seqno(vb).unwrap();
    bucket.wait_persisted(vb, high, SOON).await.unwrap();
}

async fn what_is_written_is_read(env: Env) {
    let place = place(&env);
    let bucket = Bucket::open(&env, settings(4, 64 << 20), &place.dir).await.unwrap();
    assert_eq!(set(&bucket, 1, "a", b"one"), Ok(1));
    assert_eq!(set(&bucket, 1, "a", b"two"), Ok(2));
    let read = bucket.get(1, b"a").await.unwrap();
    assert_eq!((&read.value[..], read.flags), (&b"two"[..], 7));
    assert_eq!(bucket.get(2, b"a").await, Err(Status::NotFound));
    assert_eq!(bucket.get(4, b"a").await, Err(Status::NotMyVbucket));
    let write = |key: &'static str, cas, condition| {
        let key = Bytes::from_static(key.as_bytes());
        let write = Write { flags: 0, expiry: 0, key, value: Bytes::from_static(b"x") };
        bucket.write(1, write, cas, 0, condition).map(|_| ())
    };
    assert_eq!(write("a", 0, Condition::Absent), Err(Status::Exists));
    assert_eq!(write("b", 0, Condition::Present), Err(Status::NotFound));
    assert_eq!(write("a", read.cas + 1, Condition::Always), Err(Status::Exists));
    assert_eq!(write("b", 5, Condition::Always), Err(Status::NotFound));
    assert_eq!(write("a", read.cas, Condition::Always), Ok(()));
    assert_eq!(bucket.delete(1, b"a", read.cas), Err(Status::Exists));
    bucket.delete(1, b"a", 0).unwrap();
    assert_eq!(bucket.delete(1, b"a", 0), Err(Status::NotFound));
    assert_eq!(bucket.get(1, b"a").await, Err(Status::NotFound));
    assert_eq!(bucket.documents(), 0);
    bucket.set_state(1, VbucketState::Dead).unwrap();
    assert_eq!(set(&bucket, 1, "a", b"x"), Err(Status::NotMyVbucket));
    let now_s = (env.epoch_ms() / 1000) as u32;
    let old =
        Write { flags: 0, expiry: now_s - 5, key: Bytes::from_static(b"old"), value: Bytes::new() };
    bucket.write(0, old, 0, 0, Condition::Always).unwrap();
    assert_eq!(bucket.get(0, b"old").await, Err(Status::NotFound));
    assert_eq!(bucket.high_seqno(0), Some(2), "the expiration has a place of its own");
}

#[test]
fn a_full_disk_holds_writes_until_there_is_room() {
    world::virtual_world::run(7, async |env| {
        let place = place(&env);
        let bucket = Bucket::open(&env, settings(1, 64 << 20), &place.dir).await.unwrap();
        assert!(store::set_disk_free_bytes(&env, Some(0)));
        let seqno = set(&bucket, 0, "a", b"one").unwrap();
        let refused = Err(Status::TemporaryFailure);
        assert_eq!(bucket.wait_persisted(0, seqno, SOON).await, refused);
        assert_eq!(set(&bucket, 0, "b", b"two").map(|_| ()), refused);
        assert_eq!(bucket.delete(0, b"a", 0).map(|_| ()), refused);
        store::set_disk_free_bytes(&env, None);
        env.sleep(SOON).await;
        bucket.wait_persisted(0, seqno, SOON).await.unwrap();
        assert_eq!(set(&bucket, 0, "b", b"two"), Ok(seqno + 1));
    });
}

#[test]
fn a_full_disk_is_an_error_of_opening_and_of_closing() {
    world::virtual_world::run(7, async |env| {
        let place = place(&env);
        let open = || Bucket::open(&env, settings(1, 64 << 20), &place.dir);
        assert!(store::set_disk_free_bytes(&env, Some(0)));
        let opened = env.timeout(SOON, open()).await.unwrap();
        assert!(matches!(opened, Err(dcp::Error::Store(error)) if error.is_disk_full()));
        store::set_disk_free_bytes(&env, None);
        let bucket = open().await.unwrap();
        set(&bucket, 0, "a", b"one").unwrap();
        store::set_disk_free_bytes(&env, Some(0));
        // The flusher has tried by then.
        env.sleep(Duration::from_millis(100)).await;
        let closed = env.timeout(SOON, bucket.close()).await.unwrap();
        assert!(matches!(closed, Err(dcp::Error::Store(error)) if error.is_disk_full()));
    });
}

async fn all_is_there_after_closing(env: Env) {
    let place = place(&env);
    let bucket = Bucket::open(&env, settings(2, 64 << 20), &place.dir).await.unwrap();
    for n in 0..500 {
        set(&bucket, n % 2, &format!("key{}", n % 300), format!("value{n}").as_bytes()).unwrap();
    }
    bucket.delete(0, b"key4", 0).unwrap();
    let logs = [0, 1].map(|vb| bucket.failover_log(vb).unwrap());
    let seqnos = bucket.seqnos(None);
    bucket.close().await.unwrap();
    let bucket = Bucket::open(&env, settings(2, 64 << 20), &place.dir).await.unwrap();
    assert_eq!(bucket.seqnos(None), seqnos);
    assert_eq!([0, 1].map(|vb| bucket.failover_log(vb).unwrap()), logs, "the histories go on");
    assert_eq!(bucket.documents(), 299);
    assert_eq!(bucket.get(0, b"key4").await, Err(Status::NotFound));
    assert_eq!(&bucket.get(1, b"key7").await.unwrap().value[..], b"value307");
    drop(bucket);
    // Nobody closed it: another history begins.
    env.sleep(Duration::from_millis(200)).await;
    let bucket = Bucket::open(&env, settings(2, 64 << 20), &place.dir).await.unwrap();
    let log = bucket.failover_log(0).unwrap();
    assert_eq!((log.len(), log[0].seqno), (2, bucket.high_seqno(0).unwrap()));
    assert_eq!(log[1..], logs[0][..]);
}

async fn many_vbuckets_persist_together(env: Env) {
    let place = place(&env);
    let bucket = Bucket::open(&env, settings(1024, 256 << 20), &place.dir).await.unwrap();
    for round in 0..4 {
        for vb in 0..1024 {
            set(&bucket, vb, &format!("k{round}"), &[vb as u8; 50]).unwrap();
        }
    }
    for vb in 0..1024 {
        persisted(&bucket, vb).await;
        assert_eq!(bucket.persisted_seqno(vb), Some(4));
    }
    let stats = bucket.stats();
    assert_eq!(stats.flushed_items, 4096);
    assert!(stats.flushes < 100, "one sync for many vbuckets: {stats:?}");
}

/// All of a vbucket's stream from `start`, from disk and from memory, with the snapshots' ends.
async fn stream(bucket: &Bucket, vb: u16, start: u64) -> (Vec<ItemData>, Vec<u64>) {
    let notify = Rc::<Notify>::default();
    let open = bucket.open_stream(vb, start, &notify).unwrap();
    let (mut items, mut ends, mut at) = (Vec::new(), Vec::new(), start);
    let _files = bucket.begin_backfill();
    if let Some(to) = open.from_disk {
        while at < to {
            let part = bucket.backfill(vb, at, to).await.unwrap();
            items.extend(part.items);
            at = part.read_to;
        }
        ends.push(to);
        bucket.advance(vb, open.cursor, to);
    }
    while let Some(Take::Some(taken)) = bucket.take(vb, open.cursor) {
        items.extend(taken.items.iter().map(|item| (***item).clone()));
        ends.push(taken.end);
    }
    bucket.close_stream(vb, open.cursor);
    (items, ends)
}

/// What a consumer has after these items.
fn view(items: &[ItemData], to: u64) -> BTreeMap<Bytes, Bytes> {
    let mut view = BTreeMap::new();
    for item in items.iter().filter(|item| item.by_seqno <= to) {
        match item.kind {
            ItemKind::Mutation => view.insert(item.key.clone(), item.value.clone()),
            _ => view.remove(&item.key),
        };
    }
    view
}

async fn a_backfill_is_the_view_at_its_end(env: Env) {
    let place = place(&env);
    // Little memory for checkpoints, so that most has to come from disk.
    let settings = BucketSettings {
        checkpoints: CheckpointLimits { max_items: 100, max_bytes: 1 << 20 },
        ..settings(1, 2 << 20)
    };
    let bucket = Bucket::open(&env, settings, &place.dir).await.unwrap();
    let mut history = Vec::new();
    for n in 0..3000u64 {
        let key = format!("key{}", env.random_u64() % 200);
        let value = format!("{n}-{}", "x".repeat(400));
        match set(&bucket, 0, &key, value.as_bytes()) {
            Ok(seqno) => history.push((seqno, key, Some(value))),
            Err(status) => panic!("{status:?} at {n}"),
        }
        if n % 5 == 0 && bucket.get(0, b"key7").await.is_ok() {
            let seqno = bucket.delete(0, b"key7", 0).unwrap().seqno;
            history.push((seqno, "key7".to_owned(), None));
        }
        if n % 100 == 0 {
            persisted(&bucket, 0).await;
        }
    }
    persisted(&bucket, 0).await;
    // These are in memory alone when the stream begins.
    for n in 0..20 {
        let (key, value) = (format!("key{n}"), format!("late{n}"));
        let seqno = set(&bucket, 0, &key, value.as_bytes()).unwrap();
        history.push((seqno, key, Some(value)));
    }
    for start in [0, 1, 1000, 2500, bucket.high_seqno(0).unwrap()] {
        let (items, ends) = stream(&bucket, 0, start).await;
        assert!(items.is_sorted_by(|a, b| a.by_seqno < b.by_seqno));
        assert!(items.first().is_none_or(|item| item.by_seqno > start));
        if start != 0 {
            continue;
        }
        assert!(ends.len() > 1, "both from disk and from memory: {ends:?}");
        for end in ends {
            let mut expected = BTreeMap::new();
            for (seqno, key, value) in history.iter().filter(|(seqno, ..)| *seqno <= end) {
                assert!(*seqno <= end);
                match value {
                    Some(value) => {
                        expected.insert(Bytes::from(key.clone()), Bytes::from(value.clone()))
                    }
                    None => expected.remove(key.as_bytes()),
                };
            }
            assert_eq!(view(&items, end), expected, "the view at {end}");
        }
    }
}

async fn memory_stays_under_its_quota(env: Env) {
    let place = place(&env);
    let quota = 4 << 20;
    let bucket = Bucket::open(&env, settings(2, quota), &place.dir).await.unwrap();
    let (mut refused, mut written) = (0, 0);
    // Four times what fits.
    while written < 16_000 {
        match set(&bucket, written % 2, &format!("key{written}"), &[1; 900]) {
            Ok(_) => written += 1,
            Err(Status::TemporaryFailure | Status::NoMemory) => {
                refused += 1;
                env.sleep(Duration::from_millis(2)).await;
            }
            Err(other) => panic!("{other:?}"),
        }
        assert!(bucket.used_bytes() <= quota, "{} of {quota}", bucket.used_bytes());
        if written == 9000 {
            break;
        }
    }
    let stats = bucket.stats();
    assert!(refused > 0, "clients were not slowed down: {stats:?}");
    assert!(stats.ejected_bytes > 0 && stats.expelled_bytes > 0, "{stats:?}");
    persisted(&bucket, 0).await;
    let read = bucket.get(0, b"key0").await.unwrap();
    assert_eq!(read.value.len(), 900);
    assert!(bucket.stats().fetched > 0);
    let write = Write {
        flags: 0,
        expiry: 0,
        key: Bytes::from_static(b"huge"),
        value: Bytes::from(vec![0; 5 << 20]),
    };
    let refused = bucket.write(0, write, 0, 0, Condition::Always);
    assert_eq!(refused, Err(Status::NoMemory));
}

async fn a_document_written_again_and_again_takes_little_memory(env: Env) {
    let place = place(&env);
    let quota = 4 << 20;
    let bucket = Bucket::open(&env, settings(1, quota), &place.dir).await.unwrap();
    for n in 0..50_000u64 {
        set(&bucket, 0, "key", b"value").unwrap();
        if n % 1000 == 999 {
            persisted(&bucket, 0).await;
        }
        let bytes = bucket.checkpoint_bytes();
        assert!(bytes <= quota / 5, "{bytes} of {quota} after {n}");
    }
}

fn item(seqno: u64, key: &str) -> ItemData {
    ItemData {
        kind: ItemKind::Mutation,
        key: Bytes::copy_from_slice(key.as_bytes()),
        value: Bytes::from(format!("{key}@{seqno}")),
        by_seqno: seqno,
        rev_seqno: 1,
        cas: seqno,
        flags: 0,
        time_s: 0,
        datatype: 0,
    }
}

/// A producer's snapshot, or a part of it.
fn stream_in(bucket: &Bucket, vb: u16, marker: (u64, u64, u32), items: &[(u64, &str)]) {
    let (start, end, flags) = marker;
    bucket.begin_snapshot(vb, Marker { start, end, flags }).unwrap();
    items.iter().for_each(|(seqno, key)| bucket.apply(vb, item(*seqno, key)).unwrap());
}

/// A replica with one whole snapshot, up to 4, and a part of another.
async fn replica_in_mid_snapshot(env: &Env, place: &Place) -> Bucket {
    let bucket = Bucket::open(env, settings(1, 64 << 20), &place.dir).await.unwrap();
    bucket.set_state(0, VbucketState::Replica).unwrap();
    stream_in(&bucket, 0, (0, 4, SNAPSHOT_DISK), &[(1, "a"), (2, "b"), (4, "c")]);
    stream_in(&bucket, 0, (4, 9, SNAPSHOT_DISK), &[(5, "a"), (7, "d")]);
    bucket
}

#[test]
fn a_rollback_that_fails_changes_nothing() {
    world::virtual_world::run(7, async |env| {
        let place = place(&env);
        let bucket = replica_in_mid_snapshot(&env, &place).await;
        persisted(&bucket, 0).await;
        assert!(store::set_disk_free_bytes(&env, Some(0)));
        assert!(bucket.roll_back(0, 4).await.is_err());
        assert_eq!((bucket.high_seqno(0), bucket.documents()), (Some(7), 4));
        store::set_disk_free_bytes(&env, None);
        assert_eq!(bucket.roll_back(0, 4).await.unwrap(), 4);
        assert_eq!((bucket.high_seqno(0), bucket.documents()), (Some(4), 3));
    });
}

#[test]
fn an_active_vbucket_is_not_rolled_back() {
    world::virtual_world::run(7, async |env| {
        let place = place(&env);
        let bucket = replica_in_mid_snapshot(&env, &place).await;
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
    });
}

async fn a_rollback_leads_to_what_is_whole_on_disk(env: Env) {
    let place = place(&env);
    let bucket = Bucket::open(&env, settings(2, 64 << 20), &place.dir).await.unwrap();
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
    let place = place(&env);
    let bucket = replica_in_mid_snapshot(&env, &place).await;
    let uuid = bucket.failover_log(0).unwrap()[0].uuid;
    bucket.set_state(0, VbucketState::Active).unwrap();
    assert_eq!(bucket.failover_log(0).unwrap()[0].seqno, 4);
    // Whoever has all of the history before may have what the rest of the snapshot would have replaced.
    let at = StreamStart { start: 7, uuid, snap_start: 7, snap_end: 7 };
    assert_eq!(bucket.decide_start(0, at), Some(StartDecision::Rollback(4)));
    persisted(&bucket, 0).await;
    drop(bucket);
    // Nobody closed it.
    env.sleep(Duration::from_millis(200)).await;
    let bucket = Bucket::open(&env, settings(1, 64 << 20), &place.dir).await.unwrap();
    let log = bucket.failover_log(0).unwrap();
    assert_eq!((bucket.high_seqno(0), log.len(), log[0].seqno), (Some(7), 3, 4));
    // What it writes itself is whole.
    set(&bucket, 0, "e", b"one").unwrap();
    persisted(&bucket, 0).await;
    drop(bucket);
    env.sleep(Duration::from_millis(200)).await;
    let bucket = Bucket::open(&env, settings(1, 64 << 20), &place.dir).await.unwrap();
    assert_eq!(bucket.failover_log(0).unwrap()[0].seqno, 8);
}

/// The end of the log's first file is cut, as where the process is killed in the middle of an append.
fn tear(place: &Place, bytes: u64) {
    let file = OpenOptions::new().write(true).open(place.dir.join("records-1.log")).unwrap();
    file.set_len(file.metadata().unwrap().len() - bytes).unwrap();
}

#[test]
fn a_torn_round_of_an_active_vbucket_ends_no_whole_view() {
    world::real_world::run(7, async |env| {
        let place = place(&env);
        let bucket = Bucket::open(&env, settings(1, 64 << 20), &place.dir).await.unwrap();
        set(&bucket, 0, "a", b"one").unwrap();
        persisted(&bucket, 0).await;
        for key in ["b", "c", "d"] {
            set(&bucket, 0, key, b"one").unwrap();
        }
        persisted(&bucket, 0).await;
        drop(bucket);
        env.sleep(Duration::from_millis(200)).await;
        tear(&place, 5);
        let bucket = Bucket::open(&env, settings(1, 64 << 20), &place.dir).await.unwrap();
        let log = bucket.failover_log(0).unwrap();
        assert_eq!((bucket.high_seqno(0), log[0].seqno), (Some(3), 1));
    });
}

#[test]
fn a_torn_round_of_a_replica_is_a_part_of_a_snapshot() {
    world::real_world::run(7, async |env| {
        let place = place(&env);
        let bucket = Bucket::open(&env, settings(1, 64 << 20), &place.dir).await.unwrap();
        bucket.set_state(0, VbucketState::Replica).unwrap();
        let uuid = bucket.failover_log(0).unwrap()[0].uuid;
        stream_in(&bucket, 0, (0, 4, SNAPSHOT_DISK), &[(1, "a"), (2, "b")]);
        let large = ItemData { value: Bytes::from(vec![1; 1000]), ..item(4, "c") };
        bucket.apply(0, large).unwrap();
        stream_in(&bucket, 0, (4, 9, SNAPSHOT_DISK), &[(5, "a"), (9, "d")]);
        persisted(&bucket, 0).await;
        drop(bucket);
        env.sleep(Duration::from_millis(200)).await;
        // Into the version at 4.
        tear(&place, 500);
        let bucket = Bucket::open(&env, settings(1, 64 << 20), &place.dir).await.unwrap();
        let resume = StreamStart { start: 2, uuid, snap_start: 0, snap_end: 9 };
        assert_eq!(bucket.resume(0), Some(resume));
    });
}

async fn a_replica_rolls_back(env: Env) {
    let place = place(&env);
    let bucket = Bucket::open(&env, settings(1, 64 << 20), &place.dir).await.unwrap();
    assert!(bucket.apply(0, item(1, "a")).is_err(), "an active vbucket takes no stream");
    bucket.set_state(0, VbucketState::Replica).unwrap();
    let uuid = bucket.failover_log(0).unwrap()[0].uuid;
    assert!(bucket.apply(0, item(1, "a")).is_err(), "no snapshot yet");
    let flags = SNAPSHOT_MEMORY | SNAPSHOT_CHECKPOINT;
    bucket.begin_snapshot(0, Marker { start: 0, end: 4, flags }).unwrap();
    for (seqno, key) in [(1, "a"), (2, "b"), (4, "c")] {
        bucket.apply(0, item(seqno, key)).unwrap();
    }
    bucket.begin_snapshot(0, Marker { start: 5, end: 9, flags }).unwrap();
    for (seqno, key) in [(5, "a"), (7, "d")] {
        bucket.apply(0, item(seqno, key)).unwrap();
    }
    assert!(bucket.apply(0, item(10, "e")).is_err(), "outside its snapshot");
    let resume = StreamStart { start: 7, uuid, snap_start: 5, snap_end: 9 };
    assert_eq!(bucket.resume(0), Some(resume));
    persisted(&bucket, 0).await;
    // A kill in the middle of a snapshot.
    drop(bucket);
    env.sleep(Duration::from_millis(200)).await;
    let bucket = Bucket::open(&env, settings(1, 64 << 20), &place.dir).await.unwrap();
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

async fn cleaning_keeps_what_is_needed(env: Env) {
    let place = place(&env);
    let bucket = Bucket::open(&env, settings(2, 512 << 20), &place.dir).await.unwrap();
    set(&bucket, 0, "early", b"stays").unwrap();
    let value = vec![3; 1 << 20];
    for round in 0..300u64 {
        set(&bucket, (round % 2) as u16, &format!("key{}", round % 10), &value).unwrap();
        if round % 10 == 9 {
            persisted(&bucket, 0).await;
            persisted(&bucket, 1).await;
        }
    }
    // More was written than two files hold, and most of it is replaced; the oldest file went.
    env.sleep(Duration::from_millis(300)).await;
    if !env.is_virtual() {
        assert!(!place.dir.join("records-1.log").exists(), "the oldest file was not cleaned up");
    }
    bucket.close().await.unwrap();
    let bucket = Bucket::open(&env, settings(2, 512 << 20), &place.dir).await.unwrap();
    assert_eq!(bucket.documents(), 11);
    assert_eq!(&bucket.get(0, b"early").await.unwrap().value[..], b"stays");
    let (items, _) = stream(&bucket, 0, 0).await;
    assert_eq!(items.len(), 6);
    bucket.set_state(0, VbucketState::Replica).unwrap();
    assert_eq!(bucket.roll_back(0, 3).await.unwrap(), 0, "what was the newest then is gone");
}

#[test]
fn a_persisted_sequence_number_survives_the_host() {
    world::virtual_world::run(11, async |env| {
        for round in 0..20u64 {
            let host = env.host("a");
            let dir = PathBuf::from(format!("/data{round}"));
            let bucket = Bucket::open(&host, settings(4, 64 << 20), &dir).await.unwrap();
            let (acked_in, mut acked_out) = tokio::sync::mpsc::unbounded_channel();
            let inner = bucket.clone();
            host.spawn("writes", async move {
                for n in 0.. {
                    let vb = (n % 4) as u16;
                    set(&inner, vb, &format!("key{}", n % 50), format!("{n}").as_bytes()).unwrap();
                    if n % 7 == 0 {
                        let high = inner.high_seqno(vb).unwrap();
                        inner.wait_persisted(vb, high, SOON).await.unwrap();
                        let _ = acked_in.send((vb, high));
                    }
                }
            })
            .detach();
            env.sleep(Duration::from_micros(500 + env.random_u64() % 20_000)).await;
            env.kill_host("a");
            drop(bucket);
            let bucket = Bucket::open(&env.host("a"), settings(4, 64 << 20), &dir).await.unwrap();
            let mut acked = 0;
            while let Ok((vb, seqno)) = acked_out.try_recv() {
                assert!(bucket.high_seqno(vb).unwrap() >= seqno, "round {round}");
                acked += 1;
            }
            assert!(acked > 0 || round > 0, "nothing was acknowledged in time");
        }
    });
}
