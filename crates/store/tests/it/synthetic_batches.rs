//! Runs of documents that exist only as a number: in whatever parts and order they come, each counts once.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use crate::common::{Numbers, create, on_real_files, open, put, recover, write};
use store::{Operation, Shard, SyntheticBatch, WriteRequest};
use world::Env;

fn batch(name: &str, documents: u64) -> WriteRequest {
    WriteRequest::SyntheticBatch {
        id: Arc::from(name),
        batch: SyntheticBatch::new(documents, documents * 137 + 11),
    }
}

/// A history of synthetic batches and documents, on a copy.
async fn history(env: &Env, dir: &Path, numbers: &mut Numbers) -> Shard {
    let shard = create(env, dir).await;
    for n in 0..12 {
        let mut requests = vec![batch(&format!("run-{n}"), 1 + numbers.below(500))];
        if numbers.below(2) == 0 {
            requests.push(put(&format!("doc-{}", numbers.below(4)), 5));
        }
        write(&shard, requests).await;
    }
    shard.sync().await.unwrap();
    shard
}

/// The whole history, read in pieces of odd sizes.
async fn pieces(shard: &Shard, numbers: &mut Numbers) -> Vec<Operation> {
    let end = shard.max_seq_no().unwrap() + 1;
    let (mut from, mut ops) = (0, Vec::new());
    while from < end {
        let (max_ops, max_bytes) = (1 + numbers.below(300), 1 + numbers.below(40_000));
        let some =
            shard.ops_between(from..=u64::MAX, max_ops as usize, max_bytes as usize).await.unwrap();
        let places: u64 = some.iter().map(Operation::count).sum();
        let bytes: u64 = some.iter().map(Operation::encoded_bytes).sum();
        assert!(places >= 1 && places <= max_ops, "{places} of {max_ops}");
        assert!(bytes <= max_bytes || places == 1, "{bytes} of {max_bytes}");
        for op in some {
            assert_eq!(op.seq_no, from, "without holes");
            from = op.places().end;
            ops.push(op);
        }
    }
    ops
}

async fn same(one: &Shard, other: &Shard, seed: u64) {
    assert_eq!(one.digest().await.unwrap(), other.digest().await.unwrap(), "seed {seed}");
    let documents = |shard: &Shard| shard.stats().documents;
    assert_eq!(documents(one), documents(other), "seed {seed}");
    assert_eq!(one.local_checkpoint(), other.local_checkpoint(), "seed {seed}");
}

/// Parts that overlap, twice and in disorder, between flushes and kills: every copy comes to the same.
#[test]
fn parts_in_any_order_count_once() {
    for seed in 0..30 {
        world::virtual_world::run(seed, move |env| async move {
            let mut numbers = Numbers(seed);
            let primary = history(&env, Path::new("/a"), &mut numbers).await;
            let mut ops = pieces(&primary, &mut numbers).await;
            // Read again with other cuts: the pieces overlap.
            ops.extend(pieces(&primary, &mut numbers).await);
            numbers.shuffle(&mut ops);
            let mut copy = create(&env, Path::new("/b")).await;
            for some in ops.chunks(5) {
                copy.apply(some.to_vec()).await.unwrap();
                match numbers.below(5) {
                    0 => drop(copy.flush().await.unwrap()),
                    1 => {
                        copy.sync().await.unwrap();
                        drop(copy);
                        copy = open(&env, Path::new("/b")).await.unwrap();
                    }
                    _ => {}
                }
            }
            same(&primary, &copy, seed).await;
            assert_eq!(copy.gaps(), Vec::<Range<u64>>::new());
            // Its log is as good as that of the primary, from where it begins.
            let from = copy.log_complete_from();
            let of = |shard: Shard| async move {
                let ops = shard.ops_between(from..=u64::MAX, usize::MAX, usize::MAX).await.unwrap();
                ops.iter().map(Operation::count).sum::<u64>()
            };
            assert_eq!(of(primary.clone()).await, of(copy.clone()).await, "seed {seed}");
        });
    }
}

/// A copy is made of files that hold more than the checkpoint says, and of the operations after it.
#[test]
fn files_with_holes_and_the_operations_after() {
    for seed in 0..20 {
        world::virtual_world::run(seed, move |env| async move {
            let mut numbers = Numbers(seed);
            let primary = history(&env, Path::new("/a"), &mut numbers).await;
            let ops = pieces(&primary, &mut numbers).await;
            // A source that lacks some of the middle when its files are taken.
            let source = create(&env, Path::new("/b")).await;
            let (some, late): (Vec<Operation>, Vec<Operation>) =
                ops.into_iter().partition(|_| numbers.below(3) > 0);
            source.apply(some).await.unwrap();
            let (target, _) = recover(&env, &source, Path::new("/c"), 1 << 20).await;
            source.apply(late).await.unwrap();
            same(&primary, &source, seed).await;
            let from = target.local_checkpoint().map_or(0, |seq_no| seq_no + 1);
            let rest = source.ops_between(from..=u64::MAX, usize::MAX, usize::MAX).await.unwrap();
            target.apply(rest).await.unwrap();
            same(&primary, &target, seed).await;
        });
    }
}

#[test]
fn on_real_files_a_run_is_refused() {
    on_real_files(async |env, dir| {
        let shard = create(&env, &dir).await;
        let results = shard.index(vec![batch("r", 5), put("d", 1)]).await.unwrap();
        let said = results[0].as_ref().unwrap_err().to_string();
        assert!(said.contains("of the virtual world"), "{said}");
        assert!(results[1].is_ok());
        let kind = store::OpKind::SyntheticBatch(SyntheticBatch::new(5, 100));
        let op = Operation { seq_no: 1, version: 1, id: Arc::from("r"), kind };
        assert!(shard.apply(vec![op]).await.unwrap_err().to_string().contains("virtual world"));
        assert_eq!((shard.stats().documents, shard.max_seq_no()), (1, Some(0)));
    });
}
