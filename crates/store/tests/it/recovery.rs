//! Copying a copy: snapshots on one side, receptions on the other, in both worlds.

use std::path::PathBuf;
use std::time::Duration;

use crate::common::*;
use bytes::Bytes;
use store::{Commit, Error, FileMeta, Incoming, Options, Shard, WriteRequest, damage_largest_file};
use world::Env;

crate::in_both_worlds!(
    a_recovered_copy_has_the_same_documents,
    writes_and_merges_go_on_while_files_are_copied,
    a_damaged_source_is_not_copied,
    a_damaged_chunk_costs_one_file,
    what_was_received_is_kept,
    what_was_begun_is_done_though_its_bringer_is_gone,
    an_older_copy_lends_its_files,
    what_is_missing_or_wrong_is_said,
);

async fn a_recovered_copy_has_the_same_documents(env: Env, dir: PathBuf) {
    let source = sample(&env, &dir.join("source")).await;
    let (target, commit) = recover(&env, &source, &dir.join("target"), 1000).await;
    assert_eq!(target.digest().await.unwrap(), source.digest().await.unwrap());
    assert_eq!(target.history_uuid(), source.history_uuid());
    assert_eq!(target.max_seq_no(), commit.max_seq_no);
    assert_eq!(target.log_complete_from(), commit.local_checkpoint.unwrap() + 1);
    target.close().await.unwrap();
    let target = open(&env, &dir.join("target")).await.unwrap();
    assert_eq!(target.digest().await.unwrap(), source.digest().await.unwrap());
    assert_eq!(target.opened().verified_bytes, commit.bytes());
}

async fn writes_and_merges_go_on_while_files_are_copied(env: Env, dir: PathBuf) {
    let source = sample(&env, &dir.join("source")).await;
    let from = source.max_seq_no().unwrap() + 1;
    source.retain_ops_from("recovery", Some(from));
    let snapshot = source.snapshot("a/b c").await.unwrap();
    write(&source, (0..100).map(|n| put(&format!("id{n}"), n + 5000)).collect()).await;
    source.force_merge(1).await.unwrap();
    source.flush().await.unwrap();
    write(&source, (0..40).map(|n| delete(&format!("id{n}"))).collect()).await;
    source.flush().await.unwrap();
    let incoming =
        Incoming::begin(&env, &dir.join("target"), snapshot.commit().clone()).await.unwrap();
    for file in 0..snapshot.commit().files.len() {
        snapshot.verify_file(file).await.unwrap();
    }
    let copied = copy_files(&snapshot, &incoming, 777, 1).await.unwrap();
    assert_eq!(copied, snapshot.commit().bytes());
    let target = incoming.install(&mapping(), Options::default()).await.unwrap();
    assert_eq!(target.digest().await.unwrap().documents, snapshot.commit().documents);
    let mut next = from;
    loop {
        let ops = source.ops_between(next..=u64::MAX, 17, usize::MAX).await.unwrap();
        let Some(last) = ops.last() else { break };
        next = last.seq_no + 1;
        target.apply(ops).await.unwrap();
    }
    assert_eq!(target.digest().await.unwrap(), source.digest().await.unwrap());
    assert_eq!(target.local_checkpoint(), source.local_checkpoint());
}

async fn a_damaged_source_is_not_copied(env: Env, dir: PathBuf) {
    let source = sample(&env, &dir.join("source")).await;
    let snapshot = source.snapshot("s").await.unwrap();
    let name = damage_largest_file(&env, &dir.join("source")).await.unwrap();
    let files = &snapshot.commit().files;
    for (number, file) in files.iter().enumerate() {
        let verified = snapshot.verify_file(number).await;
        match verified {
            Ok(()) => assert_ne!(*file.name, *name),
            Err(Error::SourceDamaged { file: damaged, .. }) => {
                assert_eq!((&*damaged, &*file.name), (&*name, &*name));
            }
            Err(other) => panic!("{other}"),
        }
    }
    // Whoever copies without looking is stopped at the other end.
    let incoming =
        Incoming::begin(&env, &dir.join("target"), snapshot.commit().clone()).await.unwrap();
    let error = copy_files(&snapshot, &incoming, 1000, 2).await.unwrap_err();
    assert!(matches!(&error, Error::ReceivedDamaged { file, .. } if *file == name), "{error}");
    let refused = incoming.install(&mapping(), Options::default()).await.err().unwrap();
    assert!(matches!(refused, Error::Incomplete { .. }), "{refused}");
}

async fn a_damaged_chunk_costs_one_file(env: Env, dir: PathBuf) {
    let source = sample(&env, &dir.join("source")).await;
    let snapshot = source.snapshot("s").await.unwrap();
    let commit = snapshot.commit().clone();
    let incoming = Incoming::begin(&env, &dir.join("target"), commit.clone()).await.unwrap();
    let largest = (0..commit.files.len()).max_by_key(|file| commit.files[*file].len).unwrap();
    let len = commit.files[largest].len;
    let sound = snapshot.read_chunk(largest, 0, len).await.unwrap();
    let crc = sound.crc32c();
    let flipped = sound.with_a_flipped_bit();
    assert_ne!(flipped.crc32c(), crc);
    incoming.write_chunk(largest, 0, flipped).await.unwrap();
    let error = incoming.finish_file(largest).await.unwrap_err();
    assert!(matches!(error, Error::ReceivedDamaged { .. }), "{error}");
    assert_eq!(incoming.have()[largest], (largest, 0));
    copy_files(&snapshot, &incoming, 1 << 20, 2).await.unwrap();
    let target = incoming.install(&mapping(), Options::default()).await.unwrap();
    assert_eq!(target.digest().await.unwrap(), source.digest().await.unwrap());
}

/// A handler is dropped with the node that asked it, in the midst of a chunk.
async fn what_was_begun_is_done_though_its_bringer_is_gone(env: Env, dir: PathBuf) {
    let source = sample(&env, &dir.join("source")).await;
    let snapshot = source.snapshot("s").await.unwrap();
    let commit = snapshot.commit().clone();
    let incoming = Incoming::begin(&env, &dir.join("target"), commit.clone()).await.unwrap();
    for (file, meta) in commit.files.iter().enumerate() {
        let chunk = snapshot.read_chunk(file, 0, meta.len).await.unwrap();
        tokio::select! {
            biased;
            written = incoming.write_chunk(file, 0, chunk) => panic!("it was awaited: {written:?}"),
            () = std::future::ready(()) => {}
        }
    }
    let lacks = || {
        let received = incoming.have().into_iter().zip(commit.files.iter());
        received.filter(|((_, have), meta)| *have < meta.len).count()
    };
    let mut looks = 0;
    while lacks() > 0 {
        assert!(looks < 60_000, "{} files never came", lacks());
        looks += 1;
        env.sleep(Duration::from_millis(1)).await;
    }
    for file in 0..commit.files.len() {
        incoming.finish_file(file).await.unwrap();
    }
    let target = incoming.install(&mapping(), Options::default()).await.unwrap();
    assert_eq!(target.digest().await.unwrap(), source.digest().await.unwrap());
}

/// Some 60 MB of sources in one segment.
async fn large(env: &Env, dir: PathBuf) -> Shard {
    let shard = create(env, &dir).await;
    let mut numbers = Numbers(5);
    for first in (0..6000).step_by(500) {
        let requests = (first..first + 500).map(|n| {
            let source = Bytes::from(format!("{{\"body\":\"{}\"}}", numbers.noise(10_000)));
            WriteRequest::append(format!("id{n}").into(), source)
        });
        write(&shard, requests.collect()).await;
    }
    shard.force_merge(1).await.unwrap();
    shard.flush().await.unwrap();
    shard
}

async fn what_was_received_is_kept(env: Env, dir: PathBuf) {
    let source = large(&env, dir.join("source")).await;
    let target_dir = dir.join("target");
    let snapshot = source.snapshot("s").await.unwrap();
    let commit = snapshot.commit().clone();
    let largest = (0..commit.files.len()).max_by_key(|file| commit.files[*file].len).unwrap();
    let len = commit.files[largest].len;
    assert!(len > 20 << 20, "{commit:?}");
    let chunk = 1 << 20;
    let incoming = Incoming::begin(&env, &target_dir, commit.clone()).await.unwrap();
    for (file, meta) in commit.files.iter().enumerate().filter(|(file, _)| *file != largest) {
        let whole = snapshot.read_chunk(file, 0, meta.len).await.unwrap();
        incoming.write_chunk(file, 0, whole).await.unwrap();
        incoming.finish_file(file).await.unwrap();
    }
    // The first 12 MiB, and a piece further on that must not count.
    for offset in (0..12 << 20).step_by(chunk).chain([15 << 20]) {
        let piece = snapshot.read_chunk(largest, offset, chunk as u64).await.unwrap();
        incoming.write_chunk(largest, offset, piece).await.unwrap();
    }
    assert_eq!(incoming.have()[largest].1, 12 << 20);
    drop(incoming);
    let incoming = Incoming::begin(&env, &target_dir, commit.clone()).await.unwrap();
    for (file, meta) in commit.files.iter().enumerate() {
        let (finished, have) = (incoming.is_finished(file), incoming.have()[file].1);
        let expected = if file == largest { (false, 8 << 20) } else { (true, meta.len) };
        assert_eq!((finished, have), expected, "{}", meta.name);
    }
    let copied = copy_files(&snapshot, &incoming, chunk as u64, 9).await.unwrap();
    assert_eq!(copied, len - (8 << 20));
    let target = incoming.install(&mapping(), Options::default()).await.unwrap();
    assert_eq!(target.digest().await.unwrap(), source.digest().await.unwrap());
}

async fn an_older_copy_lends_its_files(env: Env, dir: PathBuf) {
    let source = sample(&env, &dir.join("source")).await;
    let target_dir = dir.join("target");
    let (target, first) = recover(&env, &source, &target_dir, 1000).await;
    // The older copy goes its own way before it is replaced.
    write(&target, vec![put("only here", 1)]).await;
    target.flush().await.unwrap();
    // These stay in its log, above all that the new files hold.
    write(&target, (0..9).map(|n| put("only here", n)).collect()).await;
    target.close().await.unwrap();
    write(&source, vec![append("more", 1), append("and more", 2)]).await;
    let snapshot = source.snapshot("again").await.unwrap();
    let incoming = Incoming::begin(&env, &target_dir, snapshot.commit().clone()).await.unwrap();
    let shared = |file: &FileMeta| first.files.contains(file);
    let common = snapshot.commit().files.iter().filter(|file| shared(file)).count();
    assert!(common >= 6, "both commits have the old segments");
    let kept =
        (0..snapshot.commit().files.len()).filter(|file| incoming.is_finished(*file)).count();
    assert_eq!(kept, common);
    copy_files(&snapshot, &incoming, 1 << 20, 4).await.unwrap();
    let target = incoming.install(&mapping(), Options::default()).await.unwrap();
    assert_eq!(target.digest().await.unwrap(), source.digest().await.unwrap());
    assert_eq!(target.get("only here").await.unwrap(), None);
    target.close().await.unwrap();
    let target = open(&env, &target_dir).await.unwrap();
    assert_eq!(target.opened().replayed_ops, 0);
    assert_eq!(target.digest().await.unwrap(), source.digest().await.unwrap());
}

async fn what_is_missing_or_wrong_is_said(env: Env, dir: PathBuf) {
    let source = sample(&env, &dir.join("source")).await;
    let target_dir = dir.join("target");
    let snapshot = source.snapshot("s").await.unwrap();
    let commit = snapshot.commit().clone();
    for name in ["../x", "", ".lock", "a/b", "a\\b"] {
        let file = FileMeta { name: name.into(), len: 1, xxh3: 1 };
        let commit = Commit { files: [file].into(), ..commit.clone() };
        let error = Incoming::begin(&env, &target_dir, commit).await.err().unwrap();
        assert!(matches!(error, Error::UnsafeName { .. }), "{error}");
    }
    let incoming = Incoming::begin(&env, &target_dir, commit.clone()).await.unwrap();
    let busy = Incoming::begin(&env, &target_dir, commit.clone()).await.err().unwrap();
    assert!(matches!(busy, Error::InUse { .. }), "{busy}");
    let len = commit.files[0].len;
    let piece = snapshot.read_chunk(0, 0, 10).await.unwrap();
    assert_eq!(piece.len(), 10);
    assert_eq!(snapshot.read_chunk(0, len - 4, 10).await.unwrap().len(), 4);
    let outside = snapshot.read_chunk(0, len + 1, 10).await.unwrap_err();
    assert!(matches!(outside, Error::OutOfRange { .. }), "{outside}");
    let outside = incoming.write_chunk(0, len - 9, piece.clone()).await.unwrap_err();
    assert!(matches!(outside, Error::OutOfRange { .. }), "{outside}");
    let outside = incoming.write_chunk(99, 0, piece.clone()).await.unwrap_err();
    assert!(matches!(outside, Error::OutOfRange { file: 99, .. }), "{outside}");
    incoming.write_chunk(0, 0, piece.clone()).await.unwrap();
    incoming.write_chunk(0, 0, piece).await.unwrap();
    let early = incoming.finish_file(0).await.unwrap_err();
    assert!(matches!(early, Error::Incomplete { have: 10, .. }), "{early}");
    // Chunks that overlap and come in any order: what overlaps counts once.
    let last = commit.files.len() - 1;
    for (offset, len) in [(20, 20), (10, 20), (0, 15), (35, u64::MAX)] {
        let piece = snapshot.read_chunk(last, offset, len).await.unwrap();
        incoming.write_chunk(last, offset, piece).await.unwrap();
    }
    incoming.finish_file(last).await.unwrap();
    let rest = snapshot.read_chunk(0, 5, len).await.unwrap();
    incoming.write_chunk(0, 5, rest).await.unwrap();
    incoming.finish_file(0).await.unwrap();
    incoming.finish_file(0).await.unwrap();
    assert!(incoming.is_finished(0));
}
