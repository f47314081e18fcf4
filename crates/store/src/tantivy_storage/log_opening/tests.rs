//! Logs that are whole, torn, damaged, exchanged or older, opened.

use std::fs::{self, OpenOptions};
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::super::log::LogError;
use super::super::log_file::read;
use super::*;
use crate::{OpKind, Operation};

fn op(seq_no: u64, bytes: usize) -> Operation {
    let source = Bytes::from(vec![b'x'; bytes]);
    let kind = OpKind::Index { source, auto_id: true, routing: None };
    Operation { seq_no, version: 1, id: Arc::from(format!("id{seq_no}")), kind }
}

const HISTORY: &str = "history";

/// Opens the log of a copy whose commit holds nothing.
fn open(dir: &Path) -> Result<OpenedLog> {
    open_by(dir, HISTORY, None)
}

fn open_by(dir: &Path, history: &str, committed: Option<u64>) -> Result<OpenedLog> {
    let commit = crate::Commit {
        local_checkpoint: committed,
        history_uuid: history.to_owned(),
        ..crate::Commit::default()
    };
    let stored = StoredCommit::new(commit, 1);
    if files::names(dir).unwrap().is_empty() {
        begin(dir, &stored)?;
    }
    super::open(dir, Expected::by(&stored))
}

/// The log of a copy without operations, and its directory.
fn begun() -> (tempfile::TempDir, Log) {
    let dir = tempfile::tempdir().unwrap();
    let log = open(dir.path()).unwrap().log;
    (dir, log)
}

fn said(opened: Result<OpenedLog>) -> String {
    opened.err().unwrap().to_string()
}

fn sync(log: &mut Log) {
    let (file, _, position) = log.current();
    file.sync_data().unwrap();
    log.note_synced(position, None).unwrap();
}

fn put(log: &mut Log, seq_nos: Range<u64>) {
    log.append(&seq_nos.map(|n| op(n, 10)).collect::<Vec<_>>()).unwrap();
}

/// The sequence numbers of all operations that a log gives back.
fn held(log: &Log) -> Vec<u64> {
    let all = 0..=u64::MAX;
    let ops = read(&log.pieces(&all), &all, usize::MAX, usize::MAX).unwrap();
    ops.iter().map(|op| op.seq_no).collect()
}

#[test]
fn gives_back_in_order_what_came_out_of_order_and_twice() {
    let dir = tempfile::tempdir().unwrap();
    let OpenedLog { mut log, torn_bytes, .. } = open(dir.path()).unwrap();
    assert_eq!(torn_bytes, 0);
    let ops: Vec<Operation> = (0..3000).map(|n| op((n * 7) % 3000, 200)).collect();
    for batch in ops.chunks(50) {
        log.append(batch).unwrap();
    }
    log.roll().unwrap();
    log.append(&ops[..100]).unwrap();
    for from in [0, 1, 1500, 2999, 3000] {
        let some =
            read(&log.pieces(&(from..=u64::MAX)), &(from..=u64::MAX), 100, usize::MAX).unwrap();
        let expected: Vec<u64> = (from..3000).take(100).collect();
        assert_eq!(some.iter().map(|op| op.seq_no).collect::<Vec<_>>(), expected);
    }
    let from_10 = 10..=u64::MAX;
    let few = read(&log.pieces(&from_10), &from_10, 1000, 1000).unwrap();
    assert_eq!(few.len(), (1000 / few[0].encoded_bytes()) as usize);
    assert_eq!(read(&log.pieces(&from_10), &from_10, 1000, 1).unwrap().len(), 1);
    drop(log);
    let OpenedLog { log, torn_bytes, .. } = open(dir.path()).unwrap();
    assert_eq!((torn_bytes, log.size().0), (0, 3100));
    assert_eq!(held(&log), (0..3000).collect::<Vec<_>>());
}

/// A sync that failed leaves it in memory, where the next one takes it for written.
#[test]
fn what_was_not_synced_is_written_again() {
    let dir = tempfile::tempdir().unwrap();
    let long_ago = std::time::SystemTime::UNIX_EPOCH;
    let is_written = |path: &Path| {
        let file = OpenOptions::new().write(true).open(path).unwrap();
        file.set_modified(long_ago).unwrap();
        drop(open(dir.path()).unwrap());
        file.metadata().unwrap().modified().unwrap() > long_ago
    };
    let mut log = open(dir.path()).unwrap().log;
    put(&mut log, 0..1);
    sync(&mut log);
    let path = log.current().1;
    drop(log);
    assert!(!is_written(&path), "all of it was synced");
    let mut log = open(dir.path()).unwrap().log;
    put(&mut log, 1..2);
    let path = log.current().1;
    drop(log);
    assert!(is_written(&path));
    assert_eq!(open(dir.path()).unwrap().log.size().0, 2);
}

/// What is held open in a directory.
fn handles(dir: &Path) -> Vec<String> {
    let dir = dir.canonicalize().unwrap();
    let open = fs::read_dir("/proc/self/fd").unwrap();
    let open = open.filter_map(|handle| fs::read_link(handle.unwrap().path()).ok());
    let name = |path: std::path::PathBuf| Some(path.strip_prefix(&dir).ok()?.display().to_string());
    let mut names: Vec<String> = open.filter_map(name).collect();
    names.sort_unstable();
    names
}

/// A log that is retained for long has many files.
#[test]
fn only_the_newest_file_is_held_open() {
    let (dir, mut log) = begun();
    for seq_no in 0..20 {
        put(&mut log, seq_no..seq_no + 1);
        log.roll().unwrap();
    }
    assert_eq!(held(&log).len(), 20);
    assert_eq!(handles(dir.path()), ["oplog-21.log", "oplog.ckp"]);
    drop(log);
    let log = open(dir.path()).unwrap().log;
    assert_eq!(handles(dir.path()), ["oplog-22.log", "oplog.ckp"]);
    assert_eq!(log.size().0, 20);
}

/// As on a full disk: there is no next file, and the one before goes on.
#[test]
fn a_file_that_cannot_be_begun_costs_no_operation_and_not_the_log() {
    let (dir, mut log) = begun();
    put(&mut log, 0..1);
    let next = dir.path().join("oplog-2.log");
    std::fs::create_dir(&next).unwrap();
    assert!(matches!(log.roll(), Err(LogError::Refused(_))));
    put(&mut log, 1..2);
    std::fs::remove_dir(&next).unwrap();
    log.roll().unwrap();
    put(&mut log, 2..3);
    sync(&mut log);
    drop(log);
    let log = open(dir.path()).unwrap().log;
    assert_eq!(held(&log), [0, 1, 2]);
}

/// Whoever reads without a lease may be late.
#[test]
fn operations_that_were_trimmed_before_they_were_read_are_said_to_be_gone() {
    let (_dir, mut log) = begun();
    put(&mut log, 0..2);
    log.roll().unwrap();
    put(&mut log, 2..3);
    let all = 0..=u64::MAX;
    let pieces = log.pieces(&all);
    log.trim(2).unwrap();
    let error = read(&pieces, &all, usize::MAX, usize::MAX).unwrap_err();
    assert!(matches!(error, Error::OperationsGone { from: 0, oldest: 2 }), "{error}");
}

/// A full disk leaves no header, at each try of an opening; so did earlier builds, which left the file, too.
#[test]
fn files_that_never_began_are_no_damage() {
    let (dir, mut log) = begun();
    put(&mut log, 0..2);
    sync(&mut log);
    drop(log);
    fs::write(dir.path().join("oplog-2.log"), "").unwrap();
    fs::write(dir.path().join("oplog-3.log"), "nrws").unwrap();
    fs::write(dir.path().join("oplog-4.log"), "").unwrap();
    let log = open(dir.path()).unwrap().log;
    assert_eq!(log.size().0, 2);
    let left = files::names(dir.path()).unwrap();
    assert_eq!(left, ["oplog-1.log", "oplog-5.log", "oplog.ckp"]);
    drop(log);
    // One that had begun is damaged without its header.
    fs::write(dir.path().join("oplog-5.log"), "").unwrap();
    fs::write(dir.path().join("oplog-6.log"), "").unwrap();
    let error = said(open(dir.path()));
    assert!(error.contains("oplog-5.log"), "{error}");
}

/// A kill may come at any moment of an opening: once the checkpoint is beyond them, such files are damage.
#[test]
fn files_that_never_began_go_before_the_checkpoint_is_beyond_them() {
    let (dir, mut log) = begun();
    put(&mut log, 0..1);
    sync(&mut log);
    drop(log);
    fs::write(dir.path().join("oplog-2.log"), "").unwrap();
    // The checkpoint cannot be written anew.
    let blocks = dir.path().join("oplog.tmp");
    fs::create_dir(&blocks).unwrap();
    let error = said(open(dir.path()));
    assert!(error.contains("oplog.tmp"), "{error}");
    assert!(!dir.path().join("oplog-2.log").exists());
    fs::remove_dir(&blocks).unwrap();
    assert_eq!(open(dir.path()).unwrap().log.size().0, 1);
}

#[test]
fn trims_whole_files_only() {
    let (dir, mut log) = begun();
    put(&mut log, 0..2);
    log.roll().unwrap();
    put(&mut log, 2..4);
    log.roll().unwrap();
    for (floor, left) in [(2, 2), (3, 2), (4, 0)] {
        log.trim(floor).unwrap();
        assert_eq!(log.size().0, left);
    }
    assert_eq!(files::names(dir.path()).unwrap(), ["oplog-3.log", "oplog.ckp"]);
}

#[test]
fn cuts_a_torn_end_and_names_other_damage() {
    let (dir, mut log) = begun();
    put(&mut log, 0..3);
    drop(log);
    let path = dir.path().join("oplog-1.log");
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() - 3]).unwrap();
    let OpenedLog { log, torn_bytes, .. } = open(dir.path()).unwrap();
    assert_eq!((log.size().0, torn_bytes), (2, op(2, 10).encoded_bytes() - 3));
    drop(log);
    // The cut file is no longer the newest: it must now be whole.
    let mut flipped = whole.clone();
    flipped[HEADER_BYTES as usize + 12] ^= 1;
    fs::write(&path, &flipped).unwrap();
    let error = open(dir.path()).err().unwrap();
    assert!(matches!(&error, Error::LogDamaged { offset: HEADER_BYTES, .. }), "{error}");
    assert!(error.to_string().contains("oplog-1.log"), "{error}");
    fs::write(&path, &whole[..whole.len() - 3]).unwrap();
    let error = said(open(dir.path()));
    assert!(error.contains("newer ones follow"), "{error}");
}

/// A log of three files: operations 0 to 9, 10 to 19, and 20 to 29, of which the last five were not synced.
fn three_files(dir: &Path) {
    let mut log = open(dir).unwrap().log;
    for from in [0, 10, 20] {
        put(&mut log, from..from + 5);
        sync(&mut log);
        put(&mut log, from + 5..from + 10);
        if from < 20 {
            log.roll().unwrap();
        }
    }
}

#[test]
fn what_was_synced_and_is_gone_is_named() {
    let record = op(20, 10).encoded_bytes();
    let part = |records: u64| Some(HEADER_BYTES + records * record + 3);
    for (file, keep, words) in [
        ("oplog-1.log", None, Some("operations 0 to 9 are missing")),
        ("oplog-2.log", None, Some("operations 10 to 19 are missing")),
        ("oplog-3.log", None, Some("operations 20 to 24 are missing")),
        ("oplog-1.log", Some(0), Some("operations 0 to 9 are missing")),
        ("oplog-3.log", Some(0), Some("operations 20 to 24 are missing")),
        ("oplog-3.log", Some(20), Some("operations 20 to 24 are missing")),
        ("oplog-3.log", Some(HEADER_BYTES), Some("operations 20 to 24 are missing")),
        ("oplog-3.log", part(2), Some("operations 22 to 24 are missing")),
        ("oplog-3.log", part(7), None),
        ("oplog-2.log", part(7), Some("operations 17 to 19 are missing")),
        ("oplog.ckp", None, Some("nobody else knows how far")),
        ("oplog.ckp", Some(0), Some("nobody else knows how far")),
    ] {
        let dir = tempfile::tempdir().unwrap();
        three_files(dir.path());
        let path = dir.path().join(file);
        match keep {
            None => fs::remove_file(&path).unwrap(),
            Some(len) => {
                let file = OpenOptions::new().write(true).open(&path).unwrap();
                file.set_len(len).unwrap();
            }
        }
        for _ in 0..2 {
            match (open(dir.path()), words) {
                (Ok(opened), None) => assert!(opened.log.size().0 >= 25, "{file} {keep:?}"),
                (Err(error), Some(words)) => {
                    let error = error.to_string();
                    let by_name = error.contains(file) && error.contains(words);
                    assert!(by_name, "{file} {keep:?}: {error}");
                }
                (opened, _) => panic!("{file} {keep:?}: {:?}", opened.map(|o| o.log.size())),
            }
        }
    }
}

#[test]
fn all_files_gone_is_no_log_that_has_not_begun() {
    let dir = tempfile::tempdir().unwrap();
    three_files(dir.path());
    for name in ["oplog-1.log", "oplog-2.log", "oplog-3.log"] {
        fs::remove_file(dir.path().join(name)).unwrap();
    }
    let error = said(open(dir.path()));
    assert!(error.contains("operations 0 to 24 are missing"), "{error}");
    // What is in the commit is not lost with the log.
    let opened = open_by(dir.path(), HISTORY, Some(24)).unwrap();
    assert_eq!((opened.begins_at, opened.log.size().0), (Some(25), 0));
    drop(opened);
    let opened = open_by(dir.path(), HISTORY, Some(24)).unwrap();
    assert_eq!(opened.begins_at, None, "the log has begun anew");
}

/// It stays where it is until the next commit, and says nothing of what was written since.
#[test]
fn damage_that_one_open_got_over_is_none_to_the_next() {
    let dir = tempfile::tempdir().unwrap();
    three_files(dir.path());
    drop(open(dir.path()).unwrap());
    turn_a_byte(&dir.path().join("oplog-1.log"));
    let OpenedLog { mut log, begins_at, .. } = open_by(dir.path(), HISTORY, Some(29)).unwrap();
    assert_eq!(begins_at, Some(30));
    put(&mut log, 30..31);
    sync(&mut log);
    drop(log);
    let opened = open_by(dir.path(), HISTORY, Some(29)).unwrap();
    assert_eq!((opened.begins_at, opened.log.size().0), (None, 1));
}

/// Of the first record of a log file.
fn turn_a_byte(path: &Path) {
    let mut bytes = fs::read(path).unwrap();
    bytes[HEADER_BYTES as usize + 12] ^= 1;
    fs::write(path, &bytes).unwrap();
}

/// They may have been acknowledged: nobody can tell whether it is the file or the checkpoint that is not what it
/// was.
#[test]
fn whole_records_that_the_commit_lacks_are_not_thrown_away_with_a_damaged_file() {
    let dir = tempfile::tempdir().unwrap();
    three_files(dir.path());
    turn_a_byte(&dir.path().join("oplog-1.log"));
    for _ in 0..2 {
        let error = said(open_by(dir.path(), HISTORY, Some(24)));
        assert!(error.contains("oplog-1.log"), "{error}");
    }
}

/// Operations 0 to 9 are in the commit and their file is trimmed, 10 to 14 are in the next file.
#[test]
fn an_older_checkpoint_is_refused_and_costs_no_operation() {
    let dir = tempfile::tempdir().unwrap();
    let checkpoint = dir.path().join("oplog.ckp");
    let mut log = open(dir.path()).unwrap().log;
    put(&mut log, 0..5);
    sync(&mut log);
    let oldest = fs::read(&checkpoint).unwrap();
    put(&mut log, 5..10);
    sync(&mut log);
    let older = fs::read(&checkpoint).unwrap();
    log.roll().unwrap();
    log.trim(10).unwrap();
    put(&mut log, 10..15);
    sync(&mut log);
    drop(log);
    for (bytes, words) in
        [(oldest, "older than the commit, which has operation 9"), (older, "oplog-2.log")]
    {
        fs::write(&checkpoint, bytes).unwrap();
        for _ in 0..2 {
            let error = said(open_by(dir.path(), HISTORY, Some(9)));
            let by_name = error.contains("oplog.ckp") && error.contains("older");
            assert!(by_name && error.contains(words), "{error}");
        }
    }
    fs::write(&checkpoint, log_checkpoint::ACCEPTED).unwrap();
    let opened = open_by(dir.path(), HISTORY, Some(9)).unwrap();
    assert_eq!((opened.log.size().0, opened.begins_at), (5, None));
}

#[test]
fn an_exchanged_log_and_an_older_commit_are_refused() {
    let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    three_files(dir.path());
    let mut log = open_by(other.path(), "another", None).unwrap().log;
    put(&mut log, 0..100);
    sync(&mut log);
    drop(log);
    let exchanged = |name: &str| {
        fs::copy(other.path().join(name), dir.path().join(name)).unwrap();
        let error = said(open(dir.path()));
        assert!(error.contains(name) && error.contains("another shard"), "{error}");
    };
    exchanged("oplog-1.log");
    exchanged("oplog.ckp");
    let dir = tempfile::tempdir().unwrap();
    three_files(dir.path());
    let mut log = open_by(dir.path(), HISTORY, Some(24)).unwrap().log;
    log.roll().unwrap();
    log.trim(20).unwrap();
    drop(log);
    assert!(open_by(dir.path(), HISTORY, Some(24)).is_ok());
    let error = said(open_by(dir.path(), HISTORY, Some(9)));
    assert!(error.contains("older than the log"), "{error}");
    assert!(error.contains("operations 10 to 19 are missing"), "{error}");
}
