//! The journal of the changes on a cluster that was not started here.
//!
//! Each line is on disk before its request is sent, so that the journal is always enough to put everything back, even
//! after a kill -9. The file is removed once that is done.
//!
//! A line ends with a hash of itself and of the line before: of a journal that was damaged nothing is put back, as a
//! digit that was turned would be a setting of somebody's cluster. Nobody can tell whole lines that are missing at its
//! end from a run that changed no more.

use std::collections::BTreeSet;
use std::fs::{File, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use record::observation::Scope;
use serde::{Deserialize, Serialize};

use super::change::{Change, SettingValue, Values};
use super::hashed_line::{checked, hashed, lacks_its_end_alone};
use super::index_names::is_of_a_run;
use super::late::{COMES_LATE_MAX, LateChanges};
use crate::{Error, Result};

/// The format that is written. Format 1, which has persistent settings alone, and 2, which has no hashes, are still
/// read.
const FORMAT: u32 = 3;
const FIRST_WITH_HASHES: u32 = 3;
/// A larger one is not read into memory, and not written. A run writes some hundred bytes for each change, and whoever
/// steers renews its lease every 10 s until somebody says stop.
const BYTES_MAX: u64 = 1 << 30;

/// Which cluster the changes are made on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// The journal's format.
    pub format: u32,
    /// `cluster_uuid`: another cluster at the same address is left alone.
    pub cluster_uuid: String,
    /// Its hosts, without credentials.
    pub hosts: Vec<String>,
}

impl Head {
    /// A head in today's format.
    pub fn new(cluster_uuid: String, hosts: Vec<String>) -> Head {
        Head { format: FORMAT, cluster_uuid, hosts }
    }
}

/// The cluster of many tests, which has one host.
#[cfg(test)]
pub(super) fn head() -> Head {
    Head::new("uuid".to_owned(), vec!["http://a:9200".to_owned()])
}

fn damaged(line: usize) -> io::Error {
    io::Error::other(format!(
        "line {line} is not as it was written, or one before it is missing, so that nothing of it is put back; compare \
         the settings that it names with those of the cluster, and put back what has to be"
    ))
}

/// Keeps others from putting back what is still being changed. The kernel lets go of it with the process, however that
/// ends.
fn lock(file: &File) -> io::Result<()> {
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Err(io::Error::other(
            "the run that it belongs to still lives; end that, as with Ctrl-C: it puts everything back then, but for \
             what it was told to keep",
        )),
        // Where the file system has no locks, nobody is kept from anything.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(()),
    }
}

/// An open journal, which nobody else opens meanwhile.
pub struct Journal {
    path: PathBuf,
    file: File,
    /// The hash of the last line.
    hash: u64,
    /// Length of all whole lines.
    bytes: u64,
    head: Head,
    changes: Vec<Change>,
    /// Which of them may be made yet, by their numbers.
    unanswered: BTreeSet<usize>,
    /// How long ago the last change had been sent when it was opened.
    age: Duration,
}

impl Journal {
    /// Creates a journal. Fails if there is a journal at this path already, or it cannot be written.
    pub fn create(path: &Path, head: Head) -> Result<Journal> {
        let failed = |source| io_error("create the journal of changes", path, source);
        let file = File::options().append(true).create_new(true).open(path);
        let file = file.and_then(|file| lock(&file).map(|()| file));
        let mut journal = Journal {
            path: path.to_owned(),
            file: file.map_err(failed)?,
            hash: 0,
            bytes: 0,
            head,
            changes: Vec::new(),
            unanswered: BTreeSet::new(),
            age: Duration::ZERO,
        };
        let line = serde_json::to_string(&journal.head).expect("a head is plain data");
        match journal.write(line).and_then(|()| sync_parent(path).map_err(failed)) {
            Ok(()) => Ok(journal),
            Err(error) => {
                // Nothing was changed, and nobody is to look for what has to be put back.
                let _ = std::fs::remove_file(path);
                Err(error)
            }
        }
    }

    /// Opens a journal that was left behind. A last line that is incomplete is dropped: its change was never made.
    /// Fails if it cannot be read, was damaged, is of a newer narrows, or of a run that still lives.
    pub fn open(path: &Path) -> Result<Journal> {
        Journal::read(path).map_err(|source| io_error("read the journal of changes", path, source))
    }

    fn read(path: &Path) -> io::Result<Journal> {
        // A run may come from somebody else. A pipe would never answer, and other things have no end.
        let found = std::fs::metadata(path)?;
        if !found.is_file() || found.len() > BYTES_MAX {
            return Err(io::Error::other(format!(
                "it is no file of at most {} MB, so that no run wrote it; nothing of it is put back",
                BYTES_MAX >> 20
            )));
        }
        let mut file = File::options().read(true).append(true).open(path)?;
        lock(&file)?;
        // Where the clocks of two machines differ, it was just now.
        let age = file.metadata()?.modified()?.elapsed().unwrap_or_default();
        let mut bytes = Vec::new();
        let read = file.read_to_end(&mut bytes)?;
        let text = text_of(bytes)?;
        let (mut whole, torn) = text.split_at(text.rfind('\n').map_or(0, |end| end + 1));
        // Its end may have been there.
        if lacks_its_end_alone(torn) {
            whole = &text;
        }
        let mut lines = whole.lines();
        let Some(first) = lines.next() else {
            if !text.is_empty() && !text.starts_with('{') {
                return Err(damaged(1));
            }
            return Err(io::Error::other(
                "its first line was never written to its end: its run, which was killed, had changed nothing; remove \
                 the file",
            ));
        };
        let mut hash = checked(first, 0).ok_or_else(|| damaged(1))?;
        let head: Head = serde_json::from_str(first)?;
        if head.format > FORMAT {
            let why = format!("its format {} is of a newer narrows; update narrows", head.format);
            return Err(io::Error::other(why));
        }
        let mut changes: Vec<Change> = Vec::new();
        for (number, line) in (2..).zip(lines) {
            hash = checked(line, hash).ok_or_else(|| damaged(number))?;
            changes.push(serde_json::from_str(line)?);
        }
        if hash == 0 && head.format >= FIRST_WITH_HASHES {
            return Err(damaged(1 + changes.len()));
        }
        // The next line must not be appended to half of another. What is whole keeps the time of its last line.
        if whole.len() < read {
            file.set_len(whole.len() as u64)?;
        }
        if !whole.ends_with('\n') {
            file.write_all(b"\n")?;
        }
        let bytes = file.metadata()?.len();
        // What was answered is not written down.
        let unanswered = (0..changes.len()).collect();
        let path = path.to_owned();
        Ok(Journal { path, file, hash, bytes, head, changes, unanswered, age })
    }

    /// The cluster on which the changes are made.
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// Writes a change to disk; it may be made once this has returned. Answers its number.
    pub fn record(&mut self, change: Change) -> Result<usize> {
        self.write(serde_json::to_string(&change).expect("a change is plain data"))?;
        let number = self.changes.len();
        self.unanswered.insert(number);
        self.changes.push(change);
        Ok(number)
    }

    /// To be called before a change is sent to a host, which may be long after it was written, where another host was
    /// asked first: the file's time is that of the last change that was sent. Where that cannot be set, it is that of
    /// the last line.
    pub(super) fn stamp(&self) -> impl Fn() + use<> {
        let path = self.path.clone();
        move || {
            // A file of its own: a copy of the journal's would keep the lock.
            let file = File::options().append(true).open(&path);
            let _ = file.and_then(|file| file.set_modified(SystemTime::now()));
        }
    }

    /// Takes note that every host that was sent a change has said what came of it: it is not made later.
    pub(super) fn answered(&mut self, number: usize) {
        self.unanswered.remove(&number);
    }

    /// What may be made yet of its changes.
    pub(super) fn late(&self) -> LateChanges<'_> {
        LateChanges {
            changes: &self.changes,
            unanswered: &self.unanswered,
            has_several_hosts: self.head.hosts.len() > 1,
        }
    }

    /// How long settings may be changed yet by a run that was killed.
    pub fn may_come_for(&self) -> Duration {
        match self.late().settings_may_come() {
            true => COMES_LATE_MAX.saturating_sub(self.age),
            false => Duration::ZERO,
        }
    }

    /// The value of a setting in a scope before the first change; none if it was not changed.
    pub fn original(&self, scope: Scope, setting: &str) -> Option<&SettingValue> {
        self.of(scope).find_map(|(before, _)| before.get(setting))
    }

    /// Whether any of these settings was changed.
    pub(super) fn has_changed(&self, which: impl Fn(&str) -> bool) -> bool {
        self.changes.iter().any(|change| match change {
            Change::Settings { set, .. } => set.keys().any(|name| which(name)),
            Change::Index { .. } => false,
        })
    }

    /// Old and new values of the settings in a scope, change by change.
    pub(super) fn of(&self, in_scope: Scope) -> impl Iterator<Item = (&Values, &Values)> {
        self.changes.iter().filter_map(move |change| match change {
            Change::Settings { scope, before, set } if *scope == in_scope => Some((before, set)),
            _ => None,
        })
    }

    /// The indices that were created.
    pub fn indices(&self) -> BTreeSet<&str> {
        self.changes
            .iter()
            .filter_map(|change| match change {
                Change::Index { name } if is_of_a_run(name) => Some(name.as_str()),
                _ => None,
            })
            .collect()
    }

    /// Whether a setting was set to this value here, or taken away where it is none.
    pub(super) fn has_set(&self, scope: Scope, name: &str, value: Option<&str>) -> bool {
        let mut set = self.of(scope).filter_map(|(_, set)| set.get(name));
        set.any(|set| set.as_deref() == value)
    }

    /// Removes the journal, once everything is as it was.
    pub fn finish(self) -> Result<()> {
        let gone = std::fs::remove_file(&self.path).and_then(|()| sync_parent(&self.path));
        gone.map_err(|source| io_error("remove the journal of changes", &self.path, source))
    }

    fn write(&mut self, line: String) -> Result<()> {
        let (mut line, hash) = hashed(line, self.hash);
        line.push('\n');
        if self.bytes + line.len() as u64 > BYTES_MAX {
            let mb = BYTES_MAX >> 20;
            let why = format!("it would have more than {mb} MB; end this run and begin another");
            let source = io::Error::other(why);
            return Err(io_error("write to the journal of changes", &self.path, source));
        }
        let written = self.file.write_all(line.as_bytes()).and_then(|()| self.file.sync_all());
        if let Err(source) = written {
            // Half a line would spoil those after it. Where that fails too, the run ends here.
            let _ = self.file.set_len(self.bytes);
            return Err(io_error("write to the journal of changes", &self.path, source));
        }
        (self.hash, self.bytes) = (hash, self.bytes + line.len() as u64);
        Ok(())
    }
}

/// The text of a journal, whose last line may break off in the middle of a letter.
fn text_of(mut bytes: Vec<u8>) -> io::Result<String> {
    if let Err(error) = std::str::from_utf8(&bytes)
        && error.error_len().is_none()
    {
        bytes.truncate(error.valid_up_to());
    }
    String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

fn io_error(what: &'static str, path: &Path, source: io::Error) -> Error {
    Error::Io { what, path: path.to_owned(), source }
}

/// The entry of a file that was created or removed is durable once its directory is synced.
fn sync_parent(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::super::change::settings;
    use super::*;

    #[test]
    fn what_was_written_is_read_and_half_a_line_is_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("changes.jsonl");
        let mut journal = Journal::create(&path, head()).unwrap();
        assert!(Journal::create(&path, head()).is_err(), "an earlier journal is never overwritten");
        journal.record(Change::Index { name: "narrows-1".to_owned() }).unwrap();
        journal.record(settings(&[("a", None)], &[("a", Some("1"))])).unwrap();
        drop(journal);
        let mut file = File::options().append(true).open(&path).unwrap();
        file.write_all(b"{\"change\":\"settings\",\"bef").unwrap();
        let mut again = Journal::open(&path).unwrap();
        assert_eq!((again.head(), again.changes.len()), (&head(), 2));
        assert_eq!(again.indices(), BTreeSet::from(["narrows-1"]));
        assert_eq!(again.original(Scope::Persistent, "a"), Some(&None));
        again.record(settings(&[], &[("a", None)])).unwrap();
        drop(again);
        let again = Journal::open(&path).unwrap();
        assert_eq!(again.changes.len(), 3);
        again.finish().unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn what_no_run_wrote_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let large = dir.path().join("large");
        File::create(&large).unwrap().set_len(BYTES_MAX + 1).unwrap();
        for path in [large.as_path(), dir.path(), Path::new("/dev/zero")] {
            let said = Journal::open(path).err().unwrap().to_string();
            assert!(said.contains("no run wrote it"), "{said}");
        }
    }

    #[test]
    fn a_year_of_renewals_has_room_and_what_is_written_can_be_read() {
        const RENEWALS: u64 = 365 * 86_400 / 10;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("changes.jsonl");
        let mut journal = Journal::create(&path, head()).unwrap();
        let (name, before) = ("cluster.metadata.narrows_steerer", journal.bytes);
        let lease = format!("20261130-215000-steer-1234567-0123abcd {RENEWALS}");
        let held = [(name, Some(lease.as_str()))];
        let renewal = settings(&held, &held);
        journal.record(renewal.clone()).unwrap();
        let one = journal.bytes - before;
        assert!(one * RENEWALS < BYTES_MAX, "{one}");
        journal.bytes = BYTES_MAX - one + 1;
        let refused = journal.record(renewal).unwrap_err().to_string();
        assert!(refused.contains("end this run"), "{refused}");
        drop(journal);
        assert_eq!(Journal::open(&path).unwrap().changes.len(), 1);
    }

    #[test]
    fn a_line_that_breaks_off_in_the_middle_of_a_letter_is_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let (whole, torn) = (dir.path().join("whole"), dir.path().join("torn"));
        let mut journal = Journal::create(&whole, head()).unwrap();
        for value in ["1", "\u{e4}"] {
            journal.record(settings(&[("a", None)], &[("a", Some(value))])).unwrap();
        }
        let bytes = std::fs::read(&whole).unwrap();
        let letter = bytes.iter().position(|byte| !byte.is_ascii()).unwrap();
        std::fs::write(&torn, &bytes[..=letter]).unwrap();
        let again = Journal::open(&torn).unwrap();
        assert_eq!(again.changes, journal.changes[..1]);
        let lines = std::fs::read_to_string(&torn).unwrap();
        assert!(lines.ends_with("}\n") && lines.lines().count() == 2, "{lines}");
    }

    #[test]
    fn a_journal_whose_first_line_is_torn_says_that_nothing_was_changed() {
        let dir = tempfile::tempdir().unwrap();
        let read = |name: &str, text: &str| {
            let path = dir.path().join(name);
            std::fs::write(&path, text).unwrap();
            Journal::open(&path).err().unwrap().to_string()
        };
        for (name, torn) in [("empty", ""), ("torn", "{\"format\":3,\"clus")] {
            let refused = read(name, torn);
            assert!(refused.contains("had changed nothing"), "{refused}");
        }
        let refused = read("zeros", &"\0".repeat(500));
        assert!(refused.contains("line 1 is not as it was"), "{refused}");
    }

    #[test]
    fn nobody_puts_back_what_a_run_that_lives_has_changed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("changes.jsonl");
        let mut journal = Journal::create(&path, head()).unwrap();
        for change in [settings(&[("a", None)], &[("a", Some("1"))]), settings(&[], &[])] {
            journal.record(change).unwrap();
            let refused = Journal::open(&path).err().unwrap().to_string();
            assert!(refused.contains("still lives; end that"), "{refused}");
            assert!(refused.ends_with("but for what it was told to keep"), "{refused}");
        }
        drop(journal);
        let again = Journal::open(&path).unwrap();
        assert_eq!(again.changes.len(), 2);
        assert!(Journal::open(&path).is_err(), "two do not put back at the same time either");
    }

    /// Nothing is put back that was not recorded: a change is there as it was written, or the journal is refused, or
    /// the end of it is missing, as after a crash.
    #[test]
    fn damage_to_a_journal_changes_no_setting() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("changes.jsonl");
        let changes = [
            settings(&[("a", Some("40mb")), ("b", None)], &[("a", Some("1mb")), ("b", Some("5"))]),
            Change::Index { name: "narrows-1".to_owned() },
            settings(&[("c", Some("2"))], &[("c", Some("3"))]),
        ];
        let mut journal = Journal::create(&path, head()).unwrap();
        let mut ends = vec![std::fs::metadata(&path).unwrap().len() as usize];
        for change in &changes {
            journal.record(change.clone()).unwrap();
            ends.push(std::fs::metadata(&path).unwrap().len() as usize);
        }
        drop(journal);
        let bytes = std::fs::read(&path).unwrap();
        // A process that another test starts has the lock of the try before until it runs its own program.
        let is_held = |error: &dyn std::fmt::Display| error.to_string().contains("still lives");
        let read = |damaged: &[u8]| {
            std::fs::write(&path, damaged).unwrap();
            loop {
                match Journal::open(&path) {
                    Err(error) if is_held(&error) => std::thread::yield_now(),
                    done => break done.map(|journal| journal.changes),
                }
            }
        };
        assert_eq!(read(&bytes).unwrap(), changes);
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut turned = bytes.clone();
                turned[at] ^= 1 << bit;
                assert!(read(&turned).is_err(), "bit {bit} of byte {at}: {:?}", read(&turned));
            }
            // The last byte of a line is its end alone.
            let whole = ends.iter().filter(|end| **end <= at + 1).count();
            match read(&bytes[..at]) {
                Ok(read) => assert_eq!(read, changes[..whole.max(1) - 1], "cut at {at}"),
                Err(_) => assert_eq!(whole, 0, "cut at {at}"),
            }
        }
        let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
        for without in 0..lines.len() - 1 {
            let rest = [&lines[..without], &lines[without + 1..]].concat().concat();
            assert!(read(&rest).is_err(), "without line {without}");
        }
        let exchanged = [lines[0], lines[2], lines[1], lines[3]].concat();
        assert!(read(&exchanged).unwrap_err().to_string().contains("line 2 is not as it was"));
        // Cut off behind its last hash it goes on as if nothing had happened.
        read(&bytes[..bytes.len() - 1]).unwrap();
        Journal::open(&path).unwrap().record(changes[1].clone()).unwrap();
        assert_eq!(Journal::open(&path).unwrap().changes.len(), 4);
    }

    #[test]
    fn a_broken_or_newer_journal_says_so() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("changes.jsonl");
        std::fs::write(&path, "{\"format\":9,\"cluster_uuid\":\"u\",\"hosts\":[]}\n").unwrap();
        let newer = Journal::open(&path).err().unwrap().to_string();
        assert!(newer.contains("newer narrows"), "{newer}");
        std::fs::write(&path, "nonsense\n").unwrap();
        assert!(Journal::open(&path).is_err());
    }

    #[test]
    fn a_journal_that_was_left_long_ago_is_waited_for_no_more() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("changes.jsonl");
        for hosts in [1, 2] {
            let hosts = vec!["http://a:9200".to_owned(); hosts];
            let is_alone = hosts.len() == 1;
            let mut journal = Journal::create(&path, Head::new("u".to_owned(), hosts)).unwrap();
            journal.record(settings(&[("a", None)], &[("a", Some("1"))])).unwrap();
            drop(journal);
            let comes_for = |age: Duration| {
                let file = File::options().append(true).open(&path).unwrap();
                file.set_modified(SystemTime::now() - age).unwrap();
                drop(file);
                Journal::open(&path).unwrap().may_come_for()
            };
            let soon = comes_for(Duration::from_secs(10));
            assert_eq!(soon.is_zero(), is_alone, "one host makes changes in their order");
            assert!(soon <= Duration::from_secs(20), "{soon:?}");
            assert_eq!(comes_for(COMES_LATE_MAX), Duration::ZERO);
            std::fs::remove_file(&path).unwrap();
        }
    }

    #[test]
    fn only_indices_of_our_own_name_are_ever_removed() {
        let dir = tempfile::tempdir().unwrap();
        let mut journal = Journal::create(&dir.path().join("j"), head()).unwrap();
        let names = [
            "orders", "narrows-x", "narrows-x,orders", "narrows-*", "narrows-x%2Corders",
            "narrows-x/../orders", "narrows-?",
        ];
        for name in names {
            journal.record(Change::Index { name: name.to_owned() }).unwrap();
        }
        assert_eq!(journal.indices(), BTreeSet::from(["narrows-x"]));
    }
}
