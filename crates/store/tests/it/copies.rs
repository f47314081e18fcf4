//! One body for each promise of a copy, run on real files and in the virtual world.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::common::*;
use bytes::Bytes;
use query::Mapping;
use serde_json::json;
use store::{
    Error, Extent, OpKind, Operation, Options, Rejection, Shard, WriteOutcome, WriteRequest,
    committed, extent,
};
use world::Env;

crate::in_both_worlds!(
    a_primary_answers_as_the_field_does,
    the_newest_operation_wins_in_any_order,
    what_was_synced_is_there_after_a_drop,
    a_flush_trims_to_what_leases_need,
    a_flush_of_nothing_makes_no_commit,
    waiters_share_syncs,
    merging_keeps_documents_and_drops_the_deleted,
    a_mapping_waits_for_no_merge,
    a_damaged_file_is_named_at_open,
    a_copy_is_open_once,
    a_copy_is_created_once,
    gaps_are_known_and_can_be_filled,
    a_lookup_sees_appends_that_are_not_searchable,
    what_comes_twice_counts_once,
    how_far_a_copy_goes_is_on_its_disk,
    a_copy_begins_another_history_with_what_it_has,
);

async fn how_far_a_copy_goes_is_on_its_disk(env: Env, dir: PathBuf) {
    let found = async || {
        let Extent { next_seq_no, global_checkpoint, .. } = extent(&env, &dir).await.unwrap();
        (next_seq_no, global_checkpoint)
    };
    assert_eq!(found().await, (0, None), "there is no copy");
    let shard = create(&env, &dir).await;
    write(&shard, (0..10).map(|n| put(&format!("id{n}"), n)).collect()).await;
    shard.advance_global_checkpoint(7);
    shard.sync().await.unwrap();
    assert_eq!(found().await, (10, Some(7)));
    shard.advance_global_checkpoint(9);
    shard.note_global_checkpoint().await.unwrap();
    assert_eq!(found().await, (10, Some(9)));
    drop(shard);
    let shard = open(&env, &dir).await.unwrap();
    shard.flush().await.unwrap();
    shard.close().await.unwrap();
    let of = extent(&env, &dir).await.unwrap();
    assert_eq!((of.next_seq_no, of.global_checkpoint, of.is_loss_accepted), (10, Some(9), false));
}

async fn a_copy_begins_another_history_with_what_it_has(env: Env, dir: PathBuf) {
    let shard = create(&env, &dir).await;
    write(&shard, (0..10).map(|n| put(&format!("id{n}"), n)).collect()).await;
    shard.flush().await.unwrap();
    write(&shard, (10..20).map(|n| put(&format!("id{n}"), n)).collect()).await;
    shard.close().await.unwrap();
    for history in ["second", "third"] {
        let options = Options { history_uuid: Some(history.to_owned()), ..Options::default() };
        let begun = Shard::open(&env, &dir, &mapping(), options).await.unwrap();
        assert_eq!(begun.history_uuid(), history);
        assert_eq!(begun.commit().history_uuid, history);
        // It is killed at once: its log has operations of before.
        drop(begun);
        let again = open(&env, &dir).await.unwrap();
        assert_eq!((again.history_uuid(), again.digest().await.unwrap().documents), (history, 20));
        let Extent { history_uuid, next_seq_no, .. } = extent(&env, &dir).await.unwrap();
        assert_eq!((history_uuid.as_str(), next_seq_no), (history, 20));
        again.close().await.unwrap();
    }
    let shard = open(&env, &dir).await.unwrap();
    write(&shard, vec![put("id20", 20)]).await;
    shard.flush().await.unwrap();
    write(&shard, vec![put("id21", 21)]).await;
    shard.close().await.unwrap();
    let shard = open(&env, &dir).await.unwrap();
    assert_eq!((shard.history_uuid(), shard.digest().await.unwrap().documents), ("third", 22));
}

async fn a_primary_answers_as_the_field_does(env: Env, dir: PathBuf) {
    let shard = create(&env, &dir).await;
    let mut create_a = put("a", 1);
    if let WriteRequest::Index { create, .. } = &mut create_a {
        *create = true;
    }
    let again = create_a.clone();
    let results = shard
        .index(vec![create_a, again, put("a", 2), delete("a"), delete("b"), put("a", 3)])
        .await
        .unwrap();
    let conflict = Rejection::VersionConflict { id: Arc::from("a"), version: 1 };
    assert_eq!(results[1], Err(conflict));
    let accepted: Vec<(u64, u64, WriteOutcome)> =
        results.iter().flatten().map(|(op, out)| (op.seq_no, op.version, *out)).collect();
    assert_eq!(
        accepted,
        [
            (0, 1, WriteOutcome::Created),
            (1, 2, WriteOutcome::Updated),
            (2, 3, WriteOutcome::Deleted),
            (3, 1, WriteOutcome::NotFound),
            (4, 4, WriteOutcome::Created),
        ]
    );
    assert_eq!((shard.max_seq_no(), shard.local_checkpoint()), (Some(4), Some(4)));
    let got = shard.get("a").await.unwrap().unwrap();
    assert_eq!((got.version, got.seq_no, got.source), (4, 4, Some(source(3))));
    assert_eq!(shard.get("b").await.unwrap(), None);
    assert_eq!(shard.digest().await.unwrap().documents, 1);
    // After a refresh the index answers in place of the version map.
    let got = shard.get("a").await.unwrap().unwrap();
    assert_eq!((got.version, got.seq_no, got.source), (4, 4, Some(source(3))));
    assert_eq!(
        write(&shard, vec![put("a", 4), delete("a")]).await,
        [WriteOutcome::Updated, WriteOutcome::Deleted]
    );
    assert_eq!(shard.digest().await.unwrap().documents, 0);
    assert_eq!(shard.stats().documents, 0);
}

/// A history of appends, updates, deletes and no-ops, with what must be left of it.
async fn history(env: &Env, dir: PathBuf, seed: u64) -> (Vec<Operation>, store::Shard) {
    let primary = create(env, &dir).await;
    let mut numbers = Numbers(seed);
    let mut ops = Vec::new();
    for round in 0..30u64 {
        let mut batch = Vec::new();
        for n in 0..numbers.below(12) + 1 {
            let old = format!("id{}", numbers.below(60));
            batch.push(match numbers.below(6) {
                0 | 1 => append(&format!("auto-{round}-{n}"), n),
                2 | 3 => put(&old, round * 100 + n),
                4 => delete(&old),
                _ => delete(&format!("auto-{}-{n}", numbers.below(round + 1))),
            });
        }
        let results = primary.index(batch).await.unwrap();
        ops.extend(results.into_iter().map(|result| result.unwrap().0));
        if numbers.below(5) == 0 {
            primary.apply(vec![Operation::no_op(ops.len() as u64)]).await.unwrap();
            ops.push(Operation::no_op(ops.len() as u64));
        }
        if numbers.below(6) == 0 {
            primary.flush().await.unwrap();
        }
    }
    (ops, primary)
}

async fn the_newest_operation_wins_in_any_order(env: Env, dir: PathBuf) {
    for seed in 0..12 {
        let (ops, primary) = history(&env, dir.join(format!("p{seed}")), seed).await;
        let expected = primary.digest().await.unwrap();
        assert_eq!(expected.documents, primary.stats().documents, "seed {seed}");
        let replica_dir = dir.join(format!("r{seed}"));
        let mut replica = create(&env, &replica_dir).await;
        let mut numbers = Numbers(seed + 1000);
        let mut shuffled = ops.clone();
        numbers.shuffle(&mut shuffled);
        let mut rest = shuffled.as_slice();
        while !rest.is_empty() {
            let (batch, more) = rest.split_at(rest.len().min(numbers.below(20) as usize + 1));
            // Some come twice, some in the same batch.
            let mut batch = batch.to_vec();
            batch.push(ops[numbers.below(ops.len() as u64) as usize].clone());
            batch.push(batch[0].clone());
            replica.apply(batch).await.unwrap();
            rest = more;
            match numbers.below(8) {
                0 => replica.refresh().await.unwrap(),
                1 => drop(replica.flush().await.unwrap()),
                2 => {
                    replica.sync().await.unwrap();
                    drop(replica);
                    replica = open(&env, &replica_dir).await.unwrap();
                }
                _ => {}
            }
        }
        assert_eq!(replica.digest().await.unwrap(), expected, "seed {seed}");
        assert_eq!(replica.stats().documents, expected.documents, "seed {seed}");
        let last = Some(ops.len() as u64 - 1);
        assert_eq!((replica.local_checkpoint(), replica.max_seq_no()), (last, last));
        for op in &ops {
            let (here, there) =
                (replica.get(&op.id).await.unwrap(), primary.get(&op.id).await.unwrap());
            let place = |got: Option<store::GetResult>| got.map(|got| (got.seq_no, got.version));
            assert_eq!(place(here), place(there), "seed {seed}, {}", op.id);
        }
    }
}

async fn what_was_synced_is_there_after_a_drop(env: Env, dir: PathBuf) {
    let shard = create(&env, &dir).await;
    write(&shard, vec![put("a", 1), append("b", 2), delete("a")]).await;
    shard.sync().await.unwrap();
    drop(shard);
    let shard = open(&env, &dir).await.unwrap();
    assert_eq!(shard.opened().replayed_ops, 3);
    assert_eq!(shard.digest().await.unwrap().documents, 1);
    assert_eq!(shard.get("b").await.unwrap().unwrap().source, Some(source(2)));
    assert_eq!(shard.max_seq_no(), Some(2));
    shard.flush().await.unwrap();
    write(&shard, vec![put("b", 3), put("c", 4)]).await;
    let digest = shard.digest().await.unwrap();
    shard.close().await.unwrap();
    let shard = open(&env, &dir).await.unwrap();
    assert_eq!(shard.opened().replayed_ops, 2);
    assert_eq!(shard.digest().await.unwrap(), digest);
    let after: Vec<WriteOutcome> = write(&shard, vec![put("b", 5), delete("c")]).await;
    assert_eq!(after, [WriteOutcome::Updated, WriteOutcome::Deleted]);
    assert_eq!(shard.get("b").await.unwrap().unwrap().version, 3);
}

async fn a_flush_trims_to_what_leases_need(env: Env, dir: PathBuf) {
    let shard = create(&env, &dir).await;
    for first in [0, 10, 20] {
        write(&shard, (first..first + 10).map(|n| append(&format!("id{n}"), n)).collect()).await;
        if first == 0 {
            shard.retain_ops_from("follower", Some(7));
        }
        shard.flush().await.unwrap();
    }
    assert_eq!(shard.log_complete_from(), 7);
    let seq_nos = |ops: Vec<Operation>| ops.iter().map(|op| op.seq_no).collect::<Vec<_>>();
    let all = shard.ops_between(7..=u64::MAX, usize::MAX, usize::MAX).await.unwrap();
    assert_eq!(seq_nos(all), (7..30).collect::<Vec<_>>());
    let some = shard.ops_between(12..=u64::MAX, 5, usize::MAX).await.unwrap();
    assert_eq!(seq_nos(some), [12, 13, 14, 15, 16]);
    let one = shard.ops_between(12..=u64::MAX, 5, 1).await.unwrap();
    assert_eq!(seq_nos(one.clone()), [12]);
    let kind = OpKind::Index { source: source(12), auto_id: true, routing: None };
    assert_eq!(one[0], Operation { seq_no: 12, version: 1, id: Arc::from("id12"), kind });
    assert!(shard.ops_between(30..=u64::MAX, 5, 1).await.unwrap().is_empty());
    let gone = shard.ops_between(6..=u64::MAX, 5, usize::MAX).await.unwrap_err();
    assert!(matches!(gone, Error::OperationsGone { from: 6, oldest: 7 }), "{gone}");
    shard.retain_ops_from("follower", Some(15));
    shard.advance_global_checkpoint(11);
    write(&shard, vec![append("x", 1)]).await;
    shard.flush().await.unwrap();
    assert_eq!(shard.log_complete_from(), 12);
    assert_eq!(shard.stats().leases["follower"], 15);
    shard.retain_ops_from("follower", None);
    shard.advance_global_checkpoint(30);
    write(&shard, vec![append("y", 1)]).await;
    shard.flush().await.unwrap();
    assert_eq!(shard.log_complete_from(), 31);
    let stats = shard.stats();
    assert!(stats.log_ops <= 1, "{stats:?}");
    shard.close().await.unwrap();
    let shard = open(&env, &dir).await.unwrap();
    assert_eq!((shard.log_complete_from(), shard.opened().replayed_ops), (31, 0));
    assert_eq!(shard.global_checkpoint(), Some(30));
    assert_eq!(shard.digest().await.unwrap().documents, 32);
}

async fn a_flush_of_nothing_makes_no_commit(env: Env, dir: PathBuf) {
    let shard = create(&env, &dir).await;
    let first = shard.flush().await.unwrap();
    assert_eq!((first.generation, first.documents, first.max_seq_no), (1, 0, None));
    write(&shard, vec![put("a", 1)]).await;
    let second = shard.flush().await.unwrap();
    assert_eq!(shard.flush().await.unwrap(), second);
    assert_eq!((second.generation, second.documents), (2, 1));
    assert_eq!((second.local_checkpoint, second.max_seq_no), (Some(0), Some(0)));
    assert_eq!(committed(&env, &dir).await.unwrap(), Some(second));
    assert_eq!(shard.stats().uncommitted_ops, 0);
}

async fn waiters_share_syncs(env: Env, dir: PathBuf) {
    let shard = create(&env, &dir).await;
    let mut writers = Vec::new();
    for n in 0..64 {
        let shard = shard.clone();
        writers.push(env.spawn("writer", async move {
            write(&shard, vec![append(&format!("id{n}"), n)]).await;
            shard.sync().await.unwrap();
        }));
    }
    for writer in writers {
        writer.await.unwrap();
    }
    let stats = shard.stats();
    assert_eq!((stats.log_ops, stats.local_checkpoint), (64, Some(63)));
    assert!((1..=64).contains(&stats.log_syncs), "{stats:?}");
    shard.sync().await.unwrap();
    assert_eq!(shard.stats().log_syncs, stats.log_syncs, "nothing new, so no sync");
}

async fn merging_keeps_documents_and_drops_the_deleted(env: Env, dir: PathBuf) {
    let shard = sample(&env, &dir).await;
    let before = shard.digest().await.unwrap();
    let stats = shard.stats();
    assert!(stats.segments > 1 && stats.deleted > 0, "{stats:?}");
    shard.force_merge(1).await.unwrap();
    let stats = shard.stats();
    assert_eq!((stats.segments, stats.deleted), (1, 0));
    assert_eq!(shard.digest().await.unwrap(), before);
    write(&shard, vec![delete("id1")]).await;
    shard.force_merge(1).await.unwrap();
    assert_eq!((shard.stats().segments, shard.stats().deleted), (1, 0));
    let commit = shard.flush().await.unwrap();
    assert_eq!(commit.documents, before.documents - 1);
    shard.close().await.unwrap();
    let shard = open(&env, &dir).await.unwrap();
    assert_eq!(shard.stats().segments, 1);
    assert_eq!(shard.digest().await.unwrap().documents, commit.documents);
    let many = open_many_segments(&shard).await;
    assert!(many < 40, "merges keep up: {many} segments");
}

async fn open_many_segments(shard: &store::Shard) -> u64 {
    for n in 0..60 {
        write(shard, vec![put(&format!("seg{n}"), n)]).await;
        shard.refresh().await.unwrap();
    }
    shard.force_merge(20).await.unwrap();
    shard.stats().segments
}

/// Documents with so many words that merging them takes a while.
fn wordy(numbers: &mut Numbers, count: u64) -> Vec<WriteRequest> {
    let document = |_| {
        let words: Vec<String> = (0..400).map(|_| numbers.noise(4)).collect();
        let source = Bytes::from(json!({ "text": words.join(" ") }).to_string());
        WriteRequest::append(numbers.noise(20).into(), source)
    };
    (0..count).map(document).collect()
}

/// Whoever writes a document with a new field waits for its mapping. The merge begins anew.
async fn a_mapping_waits_for_no_merge(env: Env, dir: PathBuf) {
    let shard = create(&env, &dir).await;
    let mut numbers = Numbers(5);
    let mut mapping = json!({"properties": {
        "location": {"type": "geo_point"}, "n": {"type": "long"}, "text": {"type": "text"},
    }});
    // A merge may end before the mapping comes: then there is more to merge the next time.
    for round in 1..=10 {
        for _ in 0..3 {
            write(&shard, wordy(&mut numbers, 400 * round)).await;
            shard.refresh().await.unwrap();
        }
        let merged = shard.clone();
        let merge = env.spawn("merges", async move { merged.force_merge(1).await });
        while shard.stats().merging == 0 && !merge.is_finished() {
            env.sleep(Duration::from_micros(100)).await;
        }
        mapping["properties"][format!("added{round}")] = json!({"type": "long"});
        let wider = Mapping::parse(&mapping).unwrap();
        shard.set_mapping(&wider).await.unwrap();
        let waited = merge.is_finished();
        merge.await.unwrap().unwrap();
        assert_eq!(shard.stats().segments, 1);
        let digest = shard.digest().await.unwrap();
        assert_eq!(digest.documents, 600 * round * (round + 1));
        if !waited {
            shard.flush().await.unwrap();
            drop(shard);
            let shard = Shard::open(&env, &dir, &wider, Options::default()).await.unwrap();
            assert_eq!(shard.digest().await.unwrap(), digest);
            return;
        }
    }
    panic!("the mapping waited for every merge");
}

async fn a_damaged_file_is_named_at_open(env: Env, dir: PathBuf) {
    let shard = sample(&env, &dir).await;
    shard.close().await.unwrap();
    let file = store::damage_largest_file(&env, &dir).await.unwrap();
    let error = open(&env, &dir).await.err().unwrap();
    match &error {
        Error::FileDamaged { path, expected, found } => {
            assert!(path.ends_with(&file) && expected != found);
        }
        other => panic!("{other}"),
    }
    assert!(error.to_string().contains(&file), "{error}");
    // Damaging it again flips the bit back.
    store::damage_largest_file(&env, &dir).await.unwrap();
    let shard = open(&env, &dir).await.unwrap();
    assert!(shard.opened().verified_bytes > 0);
    let documents = shard.digest().await.unwrap().documents;
    drop(shard);
    let trusting = Options { check_on_startup: false, ..Options::default() };
    let shard = Shard::open(&env, &dir, &mapping(), trusting).await.unwrap();
    assert_eq!(shard.opened().verified_bytes, 0);
    assert_eq!(shard.digest().await.unwrap().documents, documents);
}

async fn a_copy_is_open_once(env: Env, dir: PathBuf) {
    let shard = create(&env, &dir).await;
    let error = open(&env, &dir).await.err().unwrap();
    assert!(matches!(error, Error::InUse { .. }), "{error}");
    drop(shard);
    assert_eq!(open(&env, &dir).await.unwrap().digest().await.unwrap().documents, 0);
}

async fn a_copy_is_created_once(env: Env, dir: PathBuf) {
    let one = dir.join("1");
    assert_eq!(committed(&env, &one).await.unwrap(), None);
    assert!(matches!(open(&env, &one).await.err().unwrap(), Error::NoCommit { .. }));
    let shard = create(&env, &one).await;
    let uuid = shard.history_uuid().to_owned();
    assert_eq!(uuid.len(), 32);
    drop(shard);
    let again = store::Shard::create(&env, &one, &mapping(), store::Options::default()).await;
    assert!(matches!(again.err().unwrap(), Error::AlreadyThere { .. }));
    let other = create(&env, &dir.join("10")).await;
    assert_ne!(other.history_uuid(), uuid);
    assert_eq!(open(&env, &one).await.unwrap().history_uuid(), uuid);
}

/// A commit whose flush failed may be on the disk all the same: at its number there is never another.
#[test]
fn a_flush_that_failed_has_used_its_number() {
    on_real_files(async |env, dir| {
        let shard = create(&env, &dir).await;
        let before = shard.commit().generation;
        shard.index(vec![put("a", 1)]).await.unwrap();
        let uncommitted = shard.stats();
        assert_eq!(uncommitted.uncommitted_ops, 1);
        // It cannot be prepared, then not be published.
        for (failed, suffix) in [(1, "tmp"), (2, "json")] {
            let blocks = dir.join(format!("commit-{}.{suffix}", before + failed));
            std::fs::create_dir(&blocks).unwrap();
            shard.flush().await.unwrap_err();
            std::fs::remove_dir(&blocks).unwrap();
            let stats = shard.stats();
            assert_eq!(stats.uncommitted_ops, 1);
            assert_eq!(stats.uncommitted_bytes, uncommitted.uncommitted_bytes);
        }
        assert_eq!(shard.flush().await.unwrap().generation, before + 3);
        let names = std::fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
        names.retain(|name| name.starts_with("commit-"));
        names.sort();
        assert_eq!(names, ["commit-4", "commit-4.json"], "what was begun is gone");
        drop(shard);
        let shard = open(&env, &dir).await.unwrap();
        assert_eq!((shard.digest().await.unwrap().documents, shard.opened().replayed_ops), (1, 0));
    });
}

async fn gaps_are_known_and_can_be_filled(env: Env, dir: PathBuf) {
    let shard = create(&env, &dir).await;
    let op = |seq_no: u64| {
        let kind = OpKind::Index { source: source(1), auto_id: true, routing: None };
        Operation { seq_no, version: 1, id: seq_no.to_string().into(), kind }
    };
    shard.apply(vec![op(1), op(4)]).await.unwrap();
    assert_eq!((shard.local_checkpoint(), shard.max_seq_no()), (None, Some(4)));
    assert_eq!(shard.gaps(), [0..1, 2..4]);
    shard.flush().await.unwrap();
    shard.close().await.unwrap();
    // What lies above the checkpoint stays in the log and is not applied twice.
    let shard = open(&env, &dir).await.unwrap();
    assert_eq!(shard.opened().replayed_ops, 2);
    assert_eq!(shard.gaps(), [0..1, 2..4]);
    assert_eq!(shard.digest().await.unwrap().documents, 2);
    let fill: Vec<Operation> = shard.gaps().into_iter().flatten().map(Operation::no_op).collect();
    shard.apply(fill).await.unwrap();
    assert_eq!(shard.local_checkpoint(), Some(4));
    assert_eq!(shard.digest().await.unwrap().documents, 2);
}

async fn a_lookup_sees_appends_that_are_not_searchable(env: Env, dir: PathBuf) {
    let shard = create(&env, &dir).await;
    write(&shard, vec![append("a", 1), append("b", 2)]).await;
    // One batch, before any refresh, and an update of an append within the batch.
    let outcomes =
        write(&shard, vec![put("a", 3), append("c", 4), delete("c"), put("new", 5)]).await;
    assert_eq!(
        outcomes,
        [
            WriteOutcome::Updated,
            WriteOutcome::Created,
            WriteOutcome::Deleted,
            WriteOutcome::Created
        ]
    );
    write(&shard, vec![append("d", 6)]).await;
    assert_eq!(write(&shard, vec![delete("d")]).await, [WriteOutcome::Deleted]);
    assert_eq!(shard.get("a").await.unwrap().unwrap().version, 2);
    assert_eq!(shard.get("b").await.unwrap().unwrap().source, Some(source(2)));
    assert_eq!(shard.digest().await.unwrap().documents, 3);
    let big = Bytes::from(format!("{{\"text\":\"{}\"}}", Numbers(1).noise(100_000)));
    let request = WriteRequest::Index {
        id: "big".into(),
        source: big.clone(),
        auto_id: false,
        create: true,
        routing: None,
    };
    shard.index(vec![request]).await.unwrap()[0].as_ref().unwrap();
    assert_eq!(shard.get("big").await.unwrap().unwrap().source, Some(big));
}

async fn what_comes_twice_counts_once(env: Env, dir: PathBuf) {
    let primary = create(&env, &dir.join("primary")).await;
    let requests = (0..20).map(|n| append(&format!("id{n}"), n)).collect();
    let ops = primary.index(requests).await.unwrap().into_iter().map(|r| r.unwrap().0);
    let ops: Vec<Operation> = ops.collect();
    let replica = create(&env, &dir.join("replica")).await;
    replica.apply(ops[5..].to_vec()).await.unwrap();
    replica.apply([&ops[..10], &ops[..10]].concat()).await.unwrap();
    replica.apply(ops.clone()).await.unwrap();
    assert_eq!(replica.stats().log_ops, 20);
    assert_eq!(replica.digest().await.unwrap(), primary.digest().await.unwrap());
    // Nor do they once they are committed, and the copy is open again.
    replica.flush().await.unwrap();
    replica.close().await.unwrap();
    let replica = open(&env, &dir.join("replica")).await.unwrap();
    replica.apply(ops).await.unwrap();
    assert_eq!(replica.digest().await.unwrap().documents, 20);
}
