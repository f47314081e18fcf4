//! What an acknowledged operation survives: kills at any moment, and logs cut behind what was synced.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::time::Duration;

use crate::common::*;
use store::{Error, Incoming, OpKind, Segments, Shard};
use world::{Env, real_world, virtual_world};

/// A test runs itself again with these variables: that process writes, and is killed.
const DIR: &str = "NARROWS_TEST_KILLED_DIR";
const SEED: &str = "NARROWS_TEST_KILLED_SEED";
const IDS: u64 = 300;
/// How often a copy is killed.
const KILLS: u64 = 8;

/// Writes until it is killed; says id, sequence number and whether the document lives, of each acknowledged operation,
/// after its sync.
async fn write_on(
    env: &Env,
    shard: &Shard,
    seed: u64,
    mut acknowledge: impl FnMut(String, u64, bool),
) {
    let mut numbers = Numbers(seed);
    for round in 0.. {
        let batch = (0..numbers.below(30) + 1).map(|n| {
            let id = format!("id{}", numbers.below(IDS));
            match numbers.below(8) {
                0 => delete(&id),
                1..=4 => put(&id, round * 100 + n),
                _ => append(&format!("auto-{seed}-{round}-{n}"), n),
            }
        });
        let results = shard.index(batch.collect()).await.unwrap();
        shard.sync().await.unwrap();
        for (op, _) in results.into_iter().map(Result::unwrap) {
            acknowledge(op.id.to_string(), op.seq_no, op.kind != OpKind::Delete);
        }
        match numbers.below(20) {
            0 => drop(shard.flush().await.unwrap()),
            // Many small segments: a kill finds some that wait to be merged, and some that are being merged.
            1..4 => shard.refresh().await.unwrap(),
            4 if numbers.below(8) == 0 => shard.force_merge(2).await.unwrap(),
            _ => env.sleep(Duration::from_micros(numbers.below(300))).await,
        }
    }
}

/// The newest known operation on each document: its sequence number, and whether it left the document alive.
type Known = BTreeMap<String, (u64, bool)>;

/// Checks that the copy holds every acknowledged operation. What was written after them and survived, too, is
/// in the log and is added to `known`; with that, every document must be exactly as it should be.
async fn check(shard: &Shard, known: &mut Known, what: &str) {
    let top = known.values().map(|(seq_no, _)| *seq_no).max();
    assert!(shard.local_checkpoint() >= top, "{what}: {:?} of {top:?}", shard.local_checkpoint());
    assert_eq!(shard.local_checkpoint(), shard.max_seq_no(), "{what}: no gaps");
    let from = top.map_or(0, |top| top + 1);
    for op in shard.ops_between(from..=u64::MAX, usize::MAX, usize::MAX).await.unwrap() {
        known.insert(op.id.to_string(), (op.seq_no, op.kind != OpKind::Delete));
    }
    let mut alive = 0;
    for (id, (seq_no, live)) in known {
        let got = shard.get(id).await.unwrap().map(|got| got.seq_no);
        assert_eq!(got, live.then_some(*seq_no), "{what}: {id}");
        alive += u64::from(*live);
    }
    assert_eq!(shard.stats().documents, alive, "{what}");
    assert_eq!(shard.digest().await.unwrap().documents, alive, "{what}");
}

/// What the process does that is killed.
fn write_until_killed(dir: PathBuf) {
    let seed: u64 = std::env::var(SEED).unwrap().parse().unwrap();
    real_world::run(seed, |env| async move {
        let shard = open(&env, &dir).await.unwrap();
        let mut out = std::io::stdout().lock();
        let say = |id, seq_no, live| writeln!(out, "ack {id} {seq_no} {live}").unwrap();
        write_on(&env, &shard, seed, say).await;
    });
}

#[test]
fn a_kill_of_the_process_loses_nothing_acknowledged() {
    if let Some(dir) = std::env::var_os(DIR) {
        return write_until_killed(dir.into());
    }
    let seeds = testbed::night::seeds("kills of a process that writes", KILLS);
    for first in seeds.step_by(KILLS as usize) {
        kill_again_and_again(first..first + KILLS);
    }
}

/// One copy is written to and killed, once for each seed.
fn kill_again_and_again(seeds: Range<u64>) {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().join("copy");
    real_world::run(1, |env| {
        let dir = dir.clone();
        async move { create(&env, &dir).await.close().await.unwrap() }
    });
    let mut known = Known::new();
    for (kills, seed) in seeds.enumerate() {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "crash::a_kill_of_the_process_loses_nothing_acknowledged",
                "--nocapture",
            ])
            .env(DIR, &dir)
            .env(SEED, seed.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let enough = 200 + 350 * kills;
        let mut seen = 0;
        // What it said before the kill was acknowledged, even where it is read after.
        while let Some(Ok(line)) = lines.next() {
            let words: Vec<&str> = line.split(' ').collect();
            if let ["ack", id, seq_no, live] = words[..]
                && let (Ok(seq_no), Ok(live)) = (seq_no.parse(), live.parse())
            {
                known.insert(id.to_owned(), (seq_no, live));
                seen += 1;
            }
            if seen == enough {
                child.kill().unwrap();
            }
        }
        child.wait().unwrap();
        assert!(seen >= enough, "seed {seed}: the writer ended by itself after {seen}");
        known = real_world::run(1, |env| {
            let (dir, mut known) = (dir.clone(), known.clone());
            async move {
                let shard = open(&env, &dir).await.unwrap();
                check(&shard, &mut known, &format!("seed {seed}")).await;
                shard.close().await.unwrap();
                known
            }
        });
    }
}

fn copy_dir(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_dir(&entry.path(), &to);
        } else {
            match fs::copy(entry.path(), &to) {
                // The index library removes what it has merged, in a directory that an open makes anew.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                copied => drop(copied.unwrap()),
            }
        }
    }
}

fn newest_log(dir: &Path) -> PathBuf {
    let number = |path: &PathBuf| {
        let name = path.file_name()?.to_str()?;
        name.strip_prefix("oplog-")?.strip_suffix(".log")?.parse::<u64>().ok()
    };
    let paths = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    paths.max_by_key(|path| number(path).map_or(0, |n| n + 1)).unwrap()
}

#[test]
fn a_log_cut_behind_the_synced_part_keeps_that_part() {
    on_real_files(async |env, scratch| {
        let dir = scratch.join("copy");
        let shard = create(&env, &dir).await;
        write(&shard, (0..40).map(|n| put(&format!("id{n}"), n)).collect()).await;
        shard.sync().await.unwrap();
        let log = newest_log(&dir);
        let synced = fs::metadata(&log).unwrap().len();
        write(&shard, (0..40).map(|n| put(&format!("id{n}"), n + 100)).collect()).await;
        let whole = fs::metadata(&log).unwrap().len();
        assert!(whole > synced);
        for (number, len) in (synced..whole).step_by(61).enumerate() {
            for fill in [None, Some(0u8), Some(0x55)] {
                let other = scratch.join(format!("cut-{number}-{fill:?}"));
                copy_dir(&dir, &other);
                let mut bytes = fs::read(&log).unwrap();
                bytes.truncate(len as usize);
                bytes.resize(len as usize + fill.map_or(0, |_| 200), fill.unwrap_or(0));
                fs::write(newest_log(&other), &bytes).unwrap();
                let shard = open(&env, &other).await.unwrap();
                let kept = shard.max_seq_no().unwrap();
                assert!((39..79).contains(&kept), "cut at {len}: {kept}");
                assert_eq!(shard.digest().await.unwrap().documents, 40);
                let opened = shard.opened();
                assert_eq!(opened.replayed_ops, kept + 1);
                assert!(opened.torn_bytes > 0 || fill.is_none(), "{opened:?}");
                let next = write(&shard, vec![put("id0", 7)]).await;
                assert_eq!(next, [store::WriteOutcome::Updated]);
                assert_eq!(shard.max_seq_no(), Some(kept + 1));
                drop(shard);
                let _ = fs::remove_dir_all(&other);
            }
        }
    });
}

/// A kill comes between the commit of the files that were received and the log that begins with them.
#[test]
fn a_received_commit_is_not_taken_for_one_with_the_log_of_before() {
    on_real_files(async |env, dir| {
        let (from, to) = (dir.join("from"), dir.join("to"));
        let source = sample(&env, &from).await;
        let (copy, _) = recover(&env, &source, &to, 1 << 20).await;
        write(&copy, (0..9).map(|n| put("only here", n)).collect()).await;
        copy.close().await.unwrap();
        let checkpoint = fs::read(to.join("oplog.ckp")).unwrap();
        let (copy, commit) = recover(&env, &source, &to, 1 << 20).await;
        drop(copy);
        fs::remove_file(newest_log(&to)).unwrap();
        fs::write(to.join("oplog.ckp"), checkpoint).unwrap();
        let extent = store::extent(&env, &to).await.unwrap();
        assert_eq!(extent.next_seq_no, commit.max_seq_no.unwrap() + 1);
        let copy = open(&env, &to).await.unwrap();
        assert_eq!(copy.digest().await.unwrap(), source.digest().await.unwrap());
    });
}

/// Nobody could tell it from one whose log is gone.
#[test]
fn where_no_copy_was_a_received_commit_is_not_there_before_its_log() {
    on_real_files(async |env, dir| {
        let to = dir.join("to");
        let source = sample(&env, &dir.join("from")).await;
        let snapshot = source.snapshot("s").await.unwrap();
        let blocks = to.join("oplog.tmp");
        fs::create_dir_all(&blocks).unwrap();
        let incoming = Incoming::begin(&env, &to, snapshot.commit().clone()).await.unwrap();
        copy_files(&snapshot, &incoming, 1 << 20, 3).await.unwrap();
        let refused = incoming.install(&mapping(), store::Options::default()).await.err().unwrap();
        assert!(refused.to_string().contains("oplog.tmp"), "{refused}");
        assert_eq!(store::committed(&env, &to).await.unwrap(), None);
        fs::remove_dir(&blocks).unwrap();
        let (copy, _) = recover(&env, &source, &to, 1 << 20).await;
        assert_eq!(copy.digest().await.unwrap(), source.digest().await.unwrap());
    });
}

#[test]
fn what_the_disk_refuses_is_said_with_its_path() {
    on_real_files(async |env, dir| {
        let file = dir.join("file");
        fs::write(&file, "in the way").unwrap();
        let dir = file.join("copy");
        let options = store::Options::default;
        let error = Shard::create(&env, &dir, &mapping(), options()).await.err().unwrap();
        assert!(error.to_string().contains("file/copy"), "{error}");
        let home = file.with_file_name("home");
        let shard = create(&env, &home).await;
        write(&shard, vec![put("a", 1)]).await;
        shard.close().await.unwrap();
        let json = home.join("commit-1.json");
        fs::write(&json, "{").unwrap();
        let error = open(&env, &home).await.err().unwrap();
        assert!(matches!(error, Error::CommitDamaged { .. }), "{error}");
        fs::write(&json, "{\"format\": 99}").unwrap();
        let error = open(&env, &home).await.err().unwrap();
        assert!(matches!(error, Error::Newer { found: 99, .. }), "{error}");
    });
}

#[test]
fn a_document_that_does_not_fit_stops_no_other() {
    on_real_files(async |env, dir| {
        let shard = create(&env, &dir.join("primary")).await;
        let bad = store::WriteRequest::index("bad".into(), "{\"n\":\"x\"}".into());
        let results = shard.index(vec![put("a", 1), bad, put("b", 2)]).await.unwrap();
        let said = results[1].as_ref().unwrap_err().to_string();
        assert!(said.contains("[bad]") && said.contains("field [n] of type [long]"), "{said}");
        let op = |at: usize| results[at].as_ref().unwrap().0.clone();
        assert_eq!((op(0).seq_no, op(2).seq_no), (0, 1));
        let got = shard.get("b").await.unwrap().unwrap();
        assert_eq!((got.seq_no, got.source), (1, Some(source(2))));
        // On another copy, what is no document stops the batch before anything is logged.
        let replica = create(&env, &dir.join("replica")).await;
        let mut wrong = op(2);
        if let OpKind::Index { source, .. } = &mut wrong.kind {
            *source = "{\"n\":".into();
        }
        let error = replica.apply(vec![op(0), wrong]).await.unwrap_err();
        assert!(matches!(&error, Error::Document { id, .. } if id == "b"), "{error}");
        assert_eq!((replica.max_seq_no(), replica.stats().log_ops), (None, 0));
        replica.apply(vec![op(0), op(2)]).await.unwrap();
        assert_eq!(replica.digest().await.unwrap(), shard.digest().await.unwrap());
    });
}

#[test]
fn a_kill_of_a_virtual_host_loses_nothing_acknowledged_and_what_was_not_synced() {
    for seed in 0..40u64 {
        virtual_world::run(seed, move |env| async move {
            let dir = PathBuf::from("/data/copy");
            let host = env.host("node");
            create(&host, &dir).await;
            let acknowledged = Rc::new(RefCell::new(Known::new()));
            let writer = {
                let (host, dir, acknowledged) = (host.clone(), dir.clone(), acknowledged.clone());
                let inner = host.clone();
                host.spawn("writer", async move {
                    let shard = open(&inner, &dir).await.unwrap();
                    write_on(&inner, &shard, seed, |id, seq_no, live| {
                        acknowledged.borrow_mut().insert(id, (seq_no, live));
                    })
                    .await;
                })
            };
            let mut numbers = Numbers(seed);
            env.sleep(Duration::from_micros(20_000 + numbers.below(100_000))).await;
            assert!(env.kill_host("node"));
            drop(writer);
            let host = env.host("node");
            let shard = open(&host, &dir).await.unwrap();
            let mut known = acknowledged.borrow().clone();
            assert!(!known.is_empty());
            check(&shard, &mut known, &format!("seed {seed}")).await;
            let synced = shard.max_seq_no();
            write(&shard, vec![append("never synced", 1)]).await;
            drop(shard);
            let shard = open(&host, &dir).await.unwrap();
            assert_eq!(shard.max_seq_no(), synced);
            assert_eq!(shard.get("never synced").await.unwrap(), None);
        });
    }
}

#[test]
fn a_commit_keeps_the_log_behind_it_that_nobody_synced() {
    virtual_world::run(1, |env| async move {
        let dir = PathBuf::from("/data/copy");
        let shard = create(&env, &dir).await;
        shard.retain_ops_from("follower", Some(0));
        write(&shard, (0..5).map(|n| put(&format!("id{n}"), n)).collect()).await;
        shard.flush().await.unwrap();
        write(&shard, vec![append("never synced", 1)]).await;
        drop(shard);
        let shard = open(&env, &dir).await.unwrap();
        assert_eq!((shard.max_seq_no(), shard.log_complete_from()), (Some(4), 0));
        let kept = shard.ops_between(0..=u64::MAX, 10, 1 << 20).await.unwrap();
        assert_eq!(kept.iter().map(|op| op.seq_no).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    });
}

#[test]
fn a_synthesized_corpus_is_recovered_as_a_real_one_would_be() {
    virtual_world::run(3, |env| async move {
        let (from, to) = (PathBuf::from("/from"), PathBuf::from("/to"));
        let shard = create(&env, &from).await;
        write(&shard, vec![put("a", 1)]).await;
        shard.synthesize(10_000_000, 400_000_000, Segments::halving(4)).await.unwrap();
        write(&shard, vec![put("b", 2)]).await;
        assert_eq!(shard.digest().await.unwrap().documents, 10_000_002);
        assert_eq!((shard.max_seq_no(), shard.log_complete_from()), (Some(10_000_001), 10_000_001));
        let (copy, commit) = recover(&env, &shard, &to, 1 << 20).await;
        assert!(commit.bytes() > 400_000_000, "{}", commit.bytes());
        assert_eq!(copy.digest().await.unwrap(), shard.digest().await.unwrap());
        let lens: Vec<u64> = commit.files.iter().map(|file| file.len).collect();
        assert!(lens.iter().max() > lens.iter().min(), "{lens:?}");
    });
}

/// Of 400 MB in four segments, each half as large as the one before.
#[test]
fn a_segment_in_compound_format_is_three_files_of_as_many_bytes() {
    virtual_world::run(3, |env| async move {
        let mut host = env.virtual_host_model().unwrap();
        let mut commits = Vec::new();
        for (dir, compound_files) in [("/six", false), ("/three", true)] {
            host.compound_files = compound_files;
            env.set_host_model(host.clone());
            let shard = create(&env, &PathBuf::from(dir)).await;
            shard.synthesize(1_000_000, 400_000_000, Segments::halving(4)).await.unwrap();
            commits.push(shard.commit());
        }
        let [six, three] = &commits[..] else { panic!("two copies were made") };
        assert_eq!((six.files.len(), three.files.len()), (4 * 6 + 1, 4 * 3 + 1));
        assert_eq!(six.bytes(), three.bytes());
    });
}

#[test]
fn a_corpus_is_synthesized_to_the_size_of_its_files() {
    virtual_world::run(3, |env| async move {
        // geopoint and http_logs as published: documents, bytes of the index, segments of a shard.
        let published =
            [(20_281_468, 1_753_786_641, 8), (64_474_988, 3_543_348_019, 8), (1_000, 60_000, 1)];
        for (number, (documents, bytes, segments)) in published.into_iter().enumerate() {
            let shard = create(&env, &PathBuf::from(format!("/{number}"))).await;
            shard.synthesize_stored(documents, bytes, Segments::halving(segments)).await.unwrap();
            let off = shard.commit().bytes() as f64 / bytes as f64 - 1.0;
            assert!(off.abs() < 0.005 + 2_000.0 / bytes as f64, "{documents}: {off}");
            assert_eq!(shard.digest().await.unwrap().documents, documents);
        }
        let shard = create(&env, &PathBuf::from("/small")).await;
        let error = shard
            .synthesize_stored(1_000, 10_000, Segments::halving(1))
            .await
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("1000 documents in 1 segments take more than 10000 bytes"),
            "{error}"
        );
    });
}
