//! Buckets, in both worlds: what is written is read, streamed and kept.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use crate::common::{PATIENCE, Place, opened, persisted, place, set, settings};
use bytes::Bytes;
use dcp::bucket::{Bucket, BucketSettings, CheckpointLimits, Condition, ItemData, ItemKind, Take};
use dcp::codec::{Marker, SNAPSHOT_MEMORY, Status, VbucketState, Write};
use tokio::sync::Notify;
use world::Env;

testbed::both_worlds!(
    what_is_written_is_read,
    all_is_there_after_closing,
    many_vbuckets_persist_together,
    a_backfill_is_the_view_at_its_end,
    memory_stays_under_its_quota,
    a_document_written_again_and_again_takes_little_memory,
    cleaning_keeps_what_is_needed,
    the_highest_numbers_of_a_producer_do_not_stop_writes;
    simulated:
    a_full_disk_holds_writes_until_there_is_room,
    a_disk_that_fills_up_within_a_round_has_each_part_of_it_once,
    a_full_disk_is_an_error_of_opening_and_of_closing,
);

/// Opens a bucket again that nobody closed, once nothing works in its directory any more.
pub(crate) async fn open_again(env: &Env, vbuckets: u16, place: &Place) -> Bucket {
    let tries = async {
        loop {
            env.sleep(Duration::from_millis(200)).await;
            match Bucket::open(env, settings(vbuckets, 64 << 20), &place.dir).await {
                Err(dcp::Error::Store(store::Error::InUse { .. })) => {}
                opened => return opened.unwrap(),
            }
        }
    };
    env.timeout(PATIENCE, tries).await.expect("nobody works there any more")
}

async fn what_is_written_is_read(env: Env) {
    let (_place, bucket) = opened(&env, settings(4, 64 << 20)).await;
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

async fn a_full_disk_holds_writes_until_there_is_room(env: Env) {
    let (_place, bucket) = opened(&env, settings(1, 64 << 20)).await;
    assert!(store::set_disk_free_bytes(&env, Some(0)));
    let seqno = set(&bucket, 0, "a", b"one").unwrap();
    let refused = Err(Status::TemporaryFailure);
    assert_eq!(bucket.wait_persisted(0, seqno, PATIENCE).await, refused);
    assert_eq!(set(&bucket, 0, "b", b"two").map(|_| ()), refused);
    assert_eq!(bucket.delete(0, b"a", 0).map(|_| ()), refused);
    store::set_disk_free_bytes(&env, None);
    env.sleep(PATIENCE).await;
    bucket.wait_persisted(0, seqno, PATIENCE).await.unwrap();
    assert_eq!(set(&bucket, 0, "b", b"two"), Ok(seqno + 1));
}

async fn a_full_disk_is_an_error_of_opening_and_of_closing(env: Env) {
    let place = place(&env);
    let open = || Bucket::open(&env, settings(1, 64 << 20), &place.dir);
    assert!(store::set_disk_free_bytes(&env, Some(0)));
    let opened = env.timeout(PATIENCE, open()).await.unwrap();
    assert!(matches!(opened, Err(dcp::Error::Store(error)) if error.is_disk_full()));
    store::set_disk_free_bytes(&env, None);
    let bucket = open().await.unwrap();
    set(&bucket, 0, "a", b"one").unwrap();
    store::set_disk_free_bytes(&env, Some(0));
    // The flusher has tried by then.
    env.sleep(Duration::from_millis(100)).await;
    let closed = env.timeout(PATIENCE, bucket.close()).await.unwrap();
    assert!(matches!(closed, Err(dcp::Error::Store(error)) if error.is_disk_full()));
}

async fn all_is_there_after_closing(env: Env) {
    let (place, bucket) = opened(&env, settings(2, 64 << 20)).await;
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
    let bucket = open_again(&env, 2, &place).await;
    let log = bucket.failover_log(0).unwrap();
    assert_eq!((log.len(), log[0].seqno), (2, bucket.high_seqno(0).unwrap()));
    assert_eq!(log[1..], logs[0][..]);
}

async fn many_vbuckets_persist_together(env: Env) {
    let (_place, bucket) = opened(&env, settings(1024, 256 << 20)).await;
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
pub(crate) async fn stream(bucket: &Bucket, vb: u16, start: u64) -> (Vec<ItemData>, Vec<u64>) {
    let notify = Rc::<Notify>::default();
    let open = bucket.open_stream(vb, start, &notify).unwrap();
    let (mut items, mut ends, mut at) = (Vec::new(), Vec::new(), start);
    let _files = bucket.begin_backfill();
    if let Some(to) = open.from_disk {
        while at < to {
            let part = bucket.backfill(vb, at, to).await.unwrap();
            items.extend(part.items.iter().map(|item| (**item).clone()));
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
    // Little memory for checkpoints, so that most has to come from disk.
    let settings = BucketSettings {
        checkpoints: CheckpointLimits { max_items: 100, max_bytes: 1 << 20 },
        ..settings(1, 2 << 20)
    };
    let (_place, bucket) = opened(&env, settings).await;
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
    let high = bucket.high_seqno(0).unwrap();
    for start in [0, 1, 1000, 2500, high] {
        let (items, ends) = stream(&bucket, 0, start).await;
        assert!(items.is_sorted_by(|a, b| a.by_seqno < b.by_seqno));
        let first = items.first().map(|item| item.by_seqno);
        assert!(first.map_or(start == high, |first| first > start), "{first:?} behind {start}");
        if start != 0 {
            continue;
        }
        assert!(ends.len() > 1, "both from disk and from memory: {ends:?}");
        for end in ends {
            let mut expected = BTreeMap::new();
            for (_, key, value) in history.iter().filter(|(seqno, ..)| *seqno <= end) {
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
    let quota = 4 << 20;
    let (_place, bucket) = opened(&env, settings(2, quota)).await;
    let (mut refused, mut written) = (0, 0);
    // Twice what fits.
    while written < 9000 {
        match set(&bucket, written % 2, &format!("key{written}"), &[1_u8; 900]) {
            Ok(_) => written += 1,
            Err(Status::TemporaryFailure | Status::NoMemory) => {
                refused += 1;
                env.sleep(Duration::from_millis(2)).await;
            }
            Err(other) => panic!("{other:?}"),
        }
        assert!(bucket.used_bytes() <= quota, "{} of {quota}", bucket.used_bytes());
    }
    let stats = bucket.stats();
    assert!(refused > 0, "clients were not slowed down: {stats:?}");
    assert!(stats.ejected_bytes > 0 && stats.expelled_bytes > 0, "{stats:?}");
    persisted(&bucket, 0).await;
    let read = bucket.get(0, b"key0").await.unwrap();
    assert_eq!(read.value.len(), 900);
    assert!(bucket.stats().fetched > 0);
}

async fn a_document_written_again_and_again_takes_little_memory(env: Env) {
    let quota = 4 << 20;
    let (_place, bucket) = opened(&env, settings(1, quota)).await;
    for n in 0..50_000u64 {
        set(&bucket, 0, "key", b"value").unwrap();
        if n % 1000 == 999 {
            persisted(&bucket, 0).await;
        }
        let bytes = bucket.checkpoint_bytes();
        assert!(bytes <= quota / 5, "{bytes} of {quota} after {n}");
    }
}

async fn cleaning_keeps_what_is_needed(env: Env) {
    let (place, bucket) = opened(&env, settings(2, 512 << 20)).await;
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
        let cleans = async {
            while place.dir.join("records-1.log").exists() {
                env.sleep(Duration::from_millis(50)).await;
            }
        };
        env.timeout(PATIENCE, cleans).await.expect("the oldest file is cleaned up");
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

async fn the_highest_numbers_of_a_producer_do_not_stop_writes(env: Env) {
    let (_place, bucket) = opened(&env, settings(1, 64 << 20)).await;
    bucket.set_state(0, VbucketState::Replica).unwrap();
    let marker = |end| Marker { start: 1, end, flags: SNAPSHOT_MEMORY };
    assert!(bucket.begin_snapshot(0, marker(u64::MAX)).is_err());
    bucket.begin_snapshot(0, marker(1)).unwrap();
    let (key, rev_seqno, cas) = (Bytes::from_static(b"a"), u64::MAX, u64::MAX);
    let highest = ItemData { key, by_seqno: 1, rev_seqno, cas, ..ItemData::default() };
    bucket.apply_all(0, [highest]).unwrap();
    bucket.set_state(0, VbucketState::Active).unwrap();
    let mut before = 0;
    for seqno in [2, 3] {
        assert_eq!(set(&bucket, 0, "a", b"x"), Ok(seqno));
        let cas = bucket.get(0, b"a").await.unwrap().cas;
        assert!((before + 1..u64::MAX).contains(&cas), "{cas} after {before}");
        before = cas;
    }
    assert_eq!(bucket.delete(0, b"a", 0).unwrap().seqno, 4);
    persisted(&bucket, 0).await;
}

/// A replica that has taken a snapshot of 150 MiB faster than its disk: all of it is one round of the flusher.
async fn replica_of_a_large_snapshot(env: &Env) -> (Place, Bucket) {
    let (place, bucket) = opened(env, settings(1, 512 << 20)).await;
    bucket.set_state(0, VbucketState::Replica).unwrap();
    bucket.begin_snapshot(0, Marker { start: 1, end: 150, flags: SNAPSHOT_MEMORY }).unwrap();
    let value = Bytes::from(vec![7; 1 << 20]);
    let item = |by_seqno: u64| {
        let (key, value) = (format!("key{by_seqno}").into(), value.clone());
        ItemData { key, value, by_seqno, cas: by_seqno, ..ItemData::default() }
    };
    bucket.apply_all(0, (1..=150).map(item)).unwrap();
    (place, bucket)
}

#[test]
fn a_large_snapshot_is_written_to_files_of_ordinary_size() {
    world::real_world::run(7, async |env| {
        let (place, bucket) = replica_of_a_large_snapshot(&env).await;
        persisted(&bucket, 0).await;
        let files = std::fs::read_dir(&place.dir).unwrap();
        let largest = files.map(|file| file.unwrap().metadata().unwrap().len()).max();
        assert!(largest < Some(70 << 20), "{largest:?}");
        bucket.close().await.unwrap();
        let bucket = Bucket::open(&env, settings(1, 512 << 20), &place.dir).await.unwrap();
        assert_eq!((bucket.high_seqno(0), bucket.documents()), (Some(150), 150));
    });
}

/// It has room for the first part, and then for the others alone.
async fn a_disk_that_fills_up_within_a_round_has_each_part_of_it_once(env: Env) {
    let (_place, bucket) = replica_of_a_large_snapshot(&env).await;
    assert!(store::set_disk_free_bytes(&env, Some(100 << 20)));
    let refused = Err(Status::TemporaryFailure);
    assert_eq!(bucket.wait_persisted(0, 150, PATIENCE).await, refused);
    store::set_disk_free_bytes(&env, Some(100 << 20));
    env.sleep(PATIENCE).await;
    bucket.wait_persisted(0, 150, PATIENCE).await.unwrap();
}
