//! A copy in the virtual world: sizes and hashes, no bytes.
//!
//! | file | holds |
//! | --- | --- |
//! | `mod.rs` | what the virtual disk keeps of a copy |
//! | `storage.rs` | [`SyntheticStorage`]: the same methods as on real files; closures do nothing, time passes |
//! | `index.rs` | documents in segments: searchable, deleted, merged |
//! | `space.rs` | how much the disk still takes |
//! | `pin.rs`, `incoming.rs` | both sides of a recovery |
//!
//! What stands in [`Disk`] is durable, but for the log's operations that are marked as not synced; an open
//! drops those. Everything else of a copy is gone when its host is killed. Documents are not parsed.

mod incoming;
mod index;
mod pin;
pub(crate) mod space;
mod storage;

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::path::Path;
use std::rc::{Rc, Weak};
use std::sync::Arc;

use world::{Env, VirtualDisk};

use crate::commit::{Commit, Extent, FileMeta, StoredCommit};
use crate::error::{Error, Result};
use crate::operation::Operation;
use crate::virtual_files::{Damaged, META, SegmentList, meta};

pub(crate) use incoming::SyntheticIncoming;
pub(crate) use pin::SyntheticPin;
pub use space::set_disk_free_bytes;
pub(crate) use storage::SyntheticStorage;

/// What is received of one file, durably.
#[derive(Clone, Debug)]
struct Noted {
    meta: FileMeta,
    prefix: u64,
    segments: Option<SegmentList>,
}

/// What the virtual disk keeps of one copy.
#[derive(Default)]
struct Disk {
    stored: Option<StoredCommit>,
    /// What the committed files hold. Their names, lengths and hashes are in `stored`.
    segments: SegmentList,
    damaged: Rc<Damaged>,
    log: BTreeMap<u64, Operation>,
    log_bytes: u64,
    /// Whether an open finds that records of the log have changed since they were synced, as checksums would say.
    log_damaged: bool,
    /// Whether the next open takes the log as it is, as an operator's word in the log's checkpoint says.
    is_loss_accepted: bool,
    /// What every copy in sync had, as far as this one was told.
    global_checkpoint: Option<u64>,
    /// Sequence numbers in `log` that were not synced, in the order of their appends, which are counted.
    unsynced: VecDeque<(u64, u64)>,
    appends: u64,
    incoming: BTreeMap<Arc<str>, Noted>,
    /// Whoever has the copy open.
    holder: Weak<()>,
}

/// The path of a copy on the virtual disk. It ends with a slash, so that no other path begins with it.
fn disk_path(dir: &Path) -> String {
    format!("{}/", dir.display())
}

fn open_disk(disk: &VirtualDisk, dir: &Path) -> Rc<RefCell<Disk>> {
    disk.get::<Disk>(&disk_path(dir))
}

/// What a virtual disk keeps of a copy; none where it has nothing of it.
fn known(disk: &VirtualDisk, dir: &Path) -> Option<Rc<RefCell<Disk>>> {
    disk.contains(&disk_path(dir)).then(|| open_disk(disk, dir))
}

/// The same of this host's disk; none in the real world.
fn known_here(env: &Env, dir: &Path) -> Option<Rc<RefCell<Disk>>> {
    known(&env.virtual_disk()?, dir)
}

impl Disk {
    /// Locks the copy for one handle.
    fn hold(&mut self, dir: &Path) -> Result<Rc<()>> {
        if self.holder.strong_count() > 0 {
            return Err(Error::InUse { dir: dir.to_owned() });
        }
        let token = Rc::new(());
        self.holder = Rc::downgrade(&token);
        Ok(token)
    }

    fn log_insert(&mut self, op: Operation) {
        let seq_no = op.seq_no;
        self.log_bytes += op.encoded_bytes();
        if let Some(old) = self.log.insert(seq_no, op) {
            self.log_bytes -= old.encoded_bytes();
        }
        self.appends += 1;
        self.unsynced.push_back((self.appends, seq_no));
    }

    fn log_remove_where(&mut self, drop: impl Fn(&Operation) -> bool) {
        self.log.retain(|_, op| {
            let goes = drop(op);
            self.log_bytes -= if goes { op.encoded_bytes() } else { 0 };
            !goes
        });
        self.unsynced.retain(|(_, seq_no)| self.log.contains_key(seq_no));
    }

    /// Operations of the log within these places, ascending, and their bytes: at most so many and about so many bytes,
    /// but one if there is one. A synthetic batch counts for each of its documents, and is cut to fit.
    fn ops_within(
        &self,
        mut wanted: Range<u64>,
        max_ops: u64,
        max_bytes: u64,
    ) -> (Vec<Operation>, u64) {
        let (mut ops, mut bytes, mut left) = (Vec::new(), 0, max_ops.max(1));
        let before = self.log.range(..wanted.start).next_back();
        let first = before.map_or(wanted.start, |(seq_no, _)| *seq_no);
        for op in self.log.range(first..wanted.end.max(first)).map(|(_, op)| op) {
            let Some(op) = op.within(&wanted) else { continue };
            let room = max_bytes.saturating_sub(bytes);
            let by_bytes = room.saturating_mul(op.count()) / op.encoded_bytes().max(1);
            let fit = left.min(by_bytes.max(u64::from(ops.is_empty())));
            let Some(part) = op.within(&(op.seq_no..op.seq_no.saturating_add(fit))) else { break };
            (bytes, left) = (bytes + part.encoded_bytes(), left - part.count());
            wanted.start = part.places().end;
            let is_whole = part.count() == op.count();
            ops.push(part);
            if !is_whole {
                break;
            }
        }
        (ops, bytes)
    }

    /// A sync that began after so many appends has ended.
    fn synced(&mut self, appends: u64) {
        while self.unsynced.front().is_some_and(|(append, _)| *append <= appends) {
            self.unsynced.pop_front();
        }
    }

    /// What a kill leaves.
    fn lose_unsynced(&mut self) {
        for (_, seq_no) in std::mem::take(&mut self.unsynced) {
            if let Some(op) = self.log.remove(&seq_no) {
                self.log_bytes -= op.encoded_bytes();
            }
        }
    }
}

pub(crate) fn create(disk: &VirtualDisk, dir: &Path, history_uuid: &str) -> Result<()> {
    let disk = open_disk(disk, dir);
    let mut disk = disk.borrow_mut();
    if disk.stored.is_some() {
        return Err(Error::AlreadyThere { dir: dir.to_owned() });
    }
    let commit = Commit {
        generation: 1,
        files: [meta(1, &[])].into(),
        history_uuid: history_uuid.to_owned(),
        ..Commit::default()
    };
    disk.stored = Some(StoredCommit::new(commit, 1));
    Ok(())
}

pub(crate) fn committed(disk: &VirtualDisk, dir: &Path) -> Option<Commit> {
    known(disk, dir)?.borrow().stored.as_ref().map(|stored| stored.commit.clone())
}

pub(crate) fn extent(disk: &VirtualDisk, dir: &Path) -> Extent {
    let Some(disk) = known(disk, dir) else { return Extent::default() };
    let disk = disk.borrow();
    let mut extent = disk.stored.as_ref().map(Extent::of_commit).unwrap_or_default();
    let logged = disk.log.values().map(Operation::last_seq_no).max();
    extent.next_seq_no = extent.next_seq_no.max(logged.map_or(0, |max| max + 1));
    extent.global_checkpoint = extent.global_checkpoint.max(disk.global_checkpoint);
    extent.is_loss_accepted = disk.is_loss_accepted;
    extent
}

pub(crate) fn holds_operations(disk: &VirtualDisk, dir: &Path) -> bool {
    known(disk, dir).is_some_and(|disk| {
        let disk = disk.borrow();
        disk.stored.is_some() || !disk.log.is_empty()
    })
}

pub(crate) fn holds_anything(disk: &VirtualDisk, dir: &Path) -> bool {
    disk.contains(&disk_path(dir))
}

/// Damages the operation log of a copy on a virtual disk that nobody has open: the next open says so. False where there
/// is none, and in the real world, where it does nothing. For faults in experiments.
pub fn damage_log(env: &Env, dir: &Path) -> bool {
    let Some(disk) = known_here(env, dir) else { return false };
    disk.borrow_mut().log_damaged = true;
    true
}

/// Accepts that a copy on a virtual disk, which nobody has open, lost operations, as an operator does on real files.
/// False where there is none, and in the real world, where it does nothing. For faults in experiments.
pub fn accept_data_loss(env: &Env, dir: &Path) -> bool {
    let Some(disk) = known_here(env, dir) else { return false };
    disk.borrow_mut().is_loss_accepted = true;
    true
}

/// Puts back the operation log of a copy on a virtual disk that nobody has open, as it was before an operation. Where
/// the commit has that operation, the next open says so, as the log's checkpoint does on real files. False where the
/// copy has nothing from there on, and in the real world, where it does nothing. For faults in experiments.
pub fn put_log_back(env: &Env, dir: &Path, before: u64) -> bool {
    let Some(disk) = known_here(env, dir) else { return false };
    let mut disk = disk.borrow_mut();
    let committed = disk.stored.as_ref().and_then(|stored| stored.commit.max_seq_no);
    if committed.is_some_and(|max| max >= before) {
        disk.log_damaged = true;
        return true;
    }
    let ops = disk.log.len();
    disk.log_remove_where(|op| op.last_seq_no() >= before);
    disk.global_checkpoint = disk.global_checkpoint.min(before.checked_sub(1));
    disk.log.len() < ops
}

/// Puts the list of segments of an earlier commit in the place of the newest one, on a virtual disk of a copy that
/// nobody has open. Of all files of a commit it is the one whose name was there before with another content. False
/// where there is no commit or its list is damaged already, and in the real world, where it does nothing. For faults in
/// experiments.
pub fn put_segments_back(env: &Env, dir: &Path) -> bool {
    let Some(disk) = known_here(env, dir) else { return false };
    let disk = disk.borrow();
    let files = disk.stored.as_ref().map(|stored| stored.commit.files.clone()).unwrap_or_default();
    let list = files.iter().find(|file| *file.name == *META);
    let is_sound = list.is_some_and(|list| disk.damaged.xxh3(list) == list.xxh3);
    if is_sound {
        disk.damaged.toggle(META);
    }
    is_sound
}

pub(crate) fn damage(disk: &VirtualDisk, dir: &Path, name: &str) {
    open_disk(disk, dir).borrow().damaged.toggle(name);
}
