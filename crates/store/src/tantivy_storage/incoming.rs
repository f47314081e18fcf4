//! Receiving real files into `incoming/`.
//!
//! `incoming_journal` has the progress of each file. It is never trusted: a later reception reads those bytes again and
//! compares. So nothing has to be synced before the end; files are synced piece by piece all the same, so that
//! installing need not wait for the disk.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::{Mutex, Notify};
use world::{Env, Work};
use xxhash_rust::xxh3::Xxh3;

use super::incoming_journal::{JOURNAL, Note, begin_journal, put_note, read_journal};
use super::{commits, files, log_opening};
use crate::commit::{Commit, FileMeta, StoredCommit};
use crate::error::io;
use crate::{Chunk, Error, Result};

/// The directory of what is being received.
pub(super) const INCOMING: &str = "incoming";
/// A file's progress is noted each time this much was added.
const NOTE_BYTES: u64 = 8 << 20;
/// Synced beside the chunks each time this much was added.
const SYNC_BYTES: u64 = 8 << 20;
/// Hashed at once at most, so that one file does not hold a core for long.
const HASH_BYTES: u64 = 8 << 20;

/// One file on its way.
struct Receiving {
    handle: Option<Arc<File>>,
    /// Absent while a task computes it further.
    hasher: Option<Xxh3>,
    /// Bytes from the start that are in the hash.
    hashed: u64,
    /// Written but not in the hash yet, by offset.
    pending: BTreeMap<u64, Bytes>,
    noted: u64,
    finished: bool,
    /// Bytes from the start that were there when the last sync began.
    synced: u64,
    syncing: bool,
    /// A sync failed: nobody knows what of the file is durable.
    sync_failure: Option<Error>,
    /// All of it was synced after its last byte.
    durable: bool,
}

pub(crate) struct FileIncoming {
    env: Env,
    copy: PathBuf,
    dir: PathBuf,
    metas: Arc<[FileMeta]>,
    files: Vec<RefCell<Receiving>>,
    /// Held while a chunk is written into a file, and while that is dropped. The kernel lets one writer in at a time,
    /// and the others would spin on a core that the transfer needs.
    turns: Vec<Mutex<()>>,
    /// A file's hash or its sync went on.
    hashed: Notify,
    journal: Arc<File>,
    journal_len: Cell<u64>,
    /// Shared with the work that goes on.
    lock: RefCell<Option<Arc<File>>>,
}

impl FileIncoming {
    pub(crate) async fn begin(env: &Env, copy: &Path, commit: &Commit) -> Result<Self> {
        let dir = copy.join(INCOMING);
        let (lock, older, notes) = {
            let (copy, dir, commit) = (copy.to_owned(), dir.clone(), commit.clone());
            let prepare = move || prepare(&copy, &dir, &commit);
            env.work(Work::DiskRead { bytes: 4096 }, prepare).await?
        };
        let lock = Some(Arc::new(lock));
        let mut received = Vec::new();
        for meta in commit.files.iter() {
            let prefix = notes.get(&meta.name).map_or(0, |note| note.prefix);
            let reused = older.as_ref().filter(|older| older.commit.files.contains(meta));
            let bytes = prefix.max(reused.map_or(0, |_| meta.len));
            let (path, note) = (dir.join(&*meta.name), notes.get(&meta.name).cloned());
            let reuse =
                reused.map(|older| commits::dir(copy, older.commit.generation).join(&*meta.name));
            let meta = meta.clone();
            let keep = move || keep(&path, &meta, note.as_ref(), reuse.as_deref());
            received.push(locked(env, lock.clone(), Work::Hash { bytes }, keep).await?);
        }
        let notes: Vec<Note> =
            commit.files.iter().zip(&received).map(|(meta, file)| file.note(meta)).collect();
        let (journal, journal_len) = {
            let path = dir.join(JOURNAL);
            let begin = move || begin_journal(&path, &notes);
            locked(env, lock.clone(), Work::DiskWrite { bytes: 4096 }, begin).await?
        };
        Ok(FileIncoming {
            env: env.clone(),
            copy: copy.to_owned(),
            dir,
            metas: commit.files.clone(),
            turns: received.iter().map(|_| Mutex::new(())).collect(),
            files: received.into_iter().map(RefCell::new).collect(),
            hashed: Notify::new(),
            journal: Arc::new(journal),
            journal_len: Cell::new(journal_len),
            lock: RefCell::new(lock),
        })
    }

    async fn work<T: Send + 'static>(
        &self,
        work: Work,
        f: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        let lock = self.lock.borrow().clone();
        locked(&self.env, lock, work, f).await
    }

    pub(crate) fn have(&self, file: usize) -> u64 {
        self.files[file].borrow().hashed
    }

    pub(crate) fn is_finished(&self, file: usize) -> bool {
        self.files[file].borrow().finished
    }

    pub(crate) async fn write(&self, file: usize, offset: u64, chunk: Chunk) -> Result<()> {
        let Chunk::Bytes(bytes) = chunk else {
            let file = self.metas[file].name.to_string();
            return Err(Error::Incomplete { file, have: 0, len: chunk.len() });
        };
        let turn = self.turns[file].lock().await;
        // Bytes that are in the hash must not be written again: they could differ.
        let (open, known) = {
            let state = self.files[file].borrow();
            let end = if state.finished { u64::MAX } else { state.hashed };
            (state.handle.clone(), end.saturating_sub(offset).min(bytes.len() as u64))
        };
        let (bytes, offset) = (bytes.slice(known as usize..), offset + known);
        if bytes.is_empty() {
            return Ok(());
        }
        let path = self.dir.join(&*self.metas[file].name);
        let written = bytes.clone();
        let write = move || {
            let handle = match open {
                Some(handle) => handle,
                None => Arc::new(open_for_writing(&path)?),
            };
            handle.write_all_at(&written, offset).map_err(io("write", &path))?;
            Ok(handle)
        };
        let handle = self.work(Work::DiskWrite { bytes: bytes.len() as u64 }, write).await?;
        {
            let mut state = self.files[file].borrow_mut();
            state.handle.get_or_insert(handle);
            let pending = state.pending.entry(offset).or_default();
            if pending.len() < bytes.len() {
                *pending = bytes;
            }
        }
        drop(turn);
        self.hash_on(file).await
    }

    /// Computes the hash as far as chunks join. One task at a time does it; others leave it their chunks.
    async fn hash_on(&self, file: usize) -> Result<()> {
        loop {
            let run = self.files[file].borrow_mut().take_run();
            let Some((mut hasher, chunks)) = run else { return Ok(()) };
            let bytes: u64 = chunks.iter().map(|chunk| chunk.len() as u64).sum();
            let hasher = self
                .env
                .work(Work::Hash { bytes }, move || {
                    for chunk in &chunks {
                        hasher.update(chunk);
                    }
                    hasher
                })
                .await;
            let note = self.files[file].borrow_mut().put_back(hasher, bytes, &self.metas[file]);
            self.hashed.notify_waiters();
            if let Some(note) = note {
                self.note(note).await?;
            }
        }
    }

    async fn note(&self, note: Note) -> Result<()> {
        let mut buffer = Vec::new();
        put_note(&mut buffer, &note);
        let (journal, path) = (self.journal.clone(), self.dir.join(JOURNAL));
        let at = self.journal_len.get();
        self.journal_len.set(at + buffer.len() as u64);
        let work = Work::DiskWrite { bytes: buffer.len() as u64 };
        let write = move || journal.write_all_at(&buffer, at).map_err(io("write", &path));
        self.work(work, write).await
    }

    pub(crate) async fn finish(&self, file: usize) -> Result<()> {
        loop {
            let hashed = self.hashed.notified();
            let busy = self.files[file].borrow().hasher.is_none();
            if self.is_finished(file) {
                return Ok(());
            }
            if !busy {
                break;
            }
            hashed.await;
        }
        let meta = &self.metas[file];
        let found = {
            let state = self.files[file].borrow();
            if state.hashed < meta.len {
                let (file, have) = (meta.name.to_string(), state.hashed);
                return Err(Error::Incomplete { file, have, len: meta.len });
            }
            state.hasher.as_ref().map_or(0, Xxh3::digest)
        };
        if found != meta.xxh3 {
            self.forget(file).await?;
            let (file, expected) = (meta.name.to_string(), meta.xxh3);
            return Err(Error::ReceivedDamaged { file, expected, found });
        }
        self.make_durable(file).await?;
        let note = {
            let mut state = self.files[file].borrow_mut();
            state.finished = true;
            state.note(meta)
        };
        self.note(note).await
    }

    /// Drops what was received of a file, and what is being written into it: bytes of a file that is gone must not
    /// count for the next one.
    async fn forget(&self, file: usize) -> Result<()> {
        let _turn = self.turns[file].lock().await;
        let path = self.dir.join(&*self.metas[file].name);
        self.files[file].replace(Receiving::nothing());
        self.work(Work::DiskWrite { bytes: 0 }, move || files::remove_file(&path)).await
    }

    /// Syncs the whole file, once. A file that fails at it is dropped.
    async fn make_durable(&self, file: usize) -> Result<()> {
        loop {
            let ended = self.hashed.notified();
            if !self.files[file].borrow().syncing {
                break;
            }
            ended.await;
        }
        let (durable, failure, handle) = {
            let mut state = self.files[file].borrow_mut();
            (state.durable, state.sync_failure.take(), state.handle.take())
        };
        let path = self.dir.join(&*self.metas[file].name);
        let sync = move || {
            let handle = match handle {
                Some(handle) => handle,
                None => Arc::new(open_for_writing(&path)?),
            };
            or_remove(handle.sync_all(), &path)
        };
        let synced = match failure {
            Some(error) => Err(error),
            None if durable => Ok(()),
            None => self.work(Work::DiskSync, sync).await,
        };
        match &synced {
            Ok(()) => self.files[file].borrow_mut().durable = true,
            Err(_) => self.forget(file).await?,
        }
        synced
    }

    /// Whether enough of a file has arrived since its last sync.
    pub(crate) fn is_sync_due(&self, file: usize) -> bool {
        let state = self.files[file].borrow();
        !state.syncing && state.handle.is_some() && state.hashed - state.synced >= SYNC_BYTES
    }

    /// Syncs what is there of a file, beside the chunks that go on. A failure is told when the file is finished, and
    /// nothing of the file is kept for a later reception.
    pub(crate) async fn sync_part(&self, file: usize) {
        let handle = {
            let mut state = self.files[file].borrow_mut();
            // Of two syncs at a time the system tells one alone that it failed.
            let idle = state.handle.clone().filter(|_| !state.syncing);
            let Some(handle) = idle else { return };
            (state.syncing, state.synced) = (true, state.hashed);
            handle
        };
        let path = self.dir.join(&*self.metas[file].name);
        let sync = move || or_remove(handle.sync_data(), &path);
        let synced = self.work(Work::DiskSync, sync).await;
        {
            let mut state = self.files[file].borrow_mut();
            state.syncing = false;
            if let Err(error) = synced {
                state.sync_failure.get_or_insert(error);
            }
        }
        self.hashed.notify_waiters();
    }

    pub(crate) async fn install(&self, commit: &Commit) -> Result<()> {
        for file in 0..self.metas.len() {
            // Files that an earlier try finished may not be synced yet.
            self.make_durable(file).await?;
        }
        let (copy, dir, commit) = (self.copy.clone(), self.dir.clone(), commit.clone());
        self.work(Work::DiskSync, move || install(&copy, &dir, commit)).await?;
        self.lock.take();
        Ok(())
    }
}

impl Receiving {
    fn nothing() -> Self {
        Receiving {
            handle: None,
            hasher: Some(Xxh3::new()),
            hashed: 0,
            pending: BTreeMap::new(),
            noted: 0,
            finished: false,
            synced: 0,
            syncing: false,
            sync_failure: None,
            durable: false,
        }
    }

    fn note(&self, meta: &FileMeta) -> Note {
        let prefix_xxh3 = self.hasher.as_ref().map_or(0, Xxh3::digest);
        Note { meta: meta.clone(), prefix: self.hashed, prefix_xxh3 }
    }

    /// The hasher and the chunks that join what it has; none if there are none, or it is taken.
    fn take_run(&mut self) -> Option<(Xxh3, Vec<Bytes>)> {
        self.hasher.as_ref()?;
        let mut chunks = Vec::new();
        let mut at = self.hashed;
        while let Some(first) = self.pending.first_entry()
            && *first.key() <= at
            && at - self.hashed < HASH_BYTES
        {
            let (offset, chunk) = first.remove_entry();
            // A chunk that came twice, cut differently.
            let known = (at - offset) as usize;
            if known < chunk.len() {
                at += (chunk.len() - known) as u64;
                chunks.push(chunk.slice(known..));
            }
        }
        if chunks.is_empty() { None } else { Some((self.hasher.take()?, chunks)) }
    }

    /// Takes the hasher back; says what to note, if it is time.
    fn put_back(&mut self, hasher: Xxh3, bytes: u64, meta: &FileMeta) -> Option<Note> {
        self.hasher = Some(hasher);
        self.hashed += bytes;
        if self.hashed - self.noted < NOTE_BYTES {
            return None;
        }
        self.noted = self.hashed;
        Some(self.note(meta))
    }
}

/// Does work that holds the lock to its end: another reception must not begin before that, also where this one was
/// dropped meanwhile.
async fn locked<T: Send + 'static>(
    env: &Env,
    lock: Option<Arc<File>>,
    work: Work,
    f: impl FnOnce() -> T + Send + 'static,
) -> T {
    let held = move || {
        let done = f();
        drop(lock);
        done
    };
    env.work(work, held).await
}

/// Removes a file that could not be synced, before anybody is told: the bytes that would be read back may never have
/// reached the disk, and the next sync would not say so.
fn or_remove(synced: std::io::Result<()>, path: &Path) -> Result<()> {
    synced.map_err(io("sync", path)).or_else(|error| files::remove_file(path).and(Err(error)))
}

fn open_for_writing(path: &Path) -> Result<File> {
    let open = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
    open.map_err(io("create", path))
}

/// Takes the lock, reads what is there, removes what the commit does not list.
#[allow(clippy::type_complexity, reason = "used once, taken apart at once")]
fn prepare(
    copy: &Path,
    dir: &Path,
    commit: &Commit,
) -> Result<(File, Option<StoredCommit>, BTreeMap<Arc<str>, Note>)> {
    files::make_dir(dir).map_err(io("create directory", dir))?;
    let lock = files::lock_dir(copy)?;
    // A damaged older commit cannot be reused, and must not stop its own replacement.
    let older = commits::newest(copy).unwrap_or(None);
    let notes = read_journal(&dir.join(JOURNAL), commit)?;
    for name in files::names(dir)? {
        if name != JOURNAL && !commit.files.iter().any(|file| *file.name == *name) {
            files::remove_file(&dir.join(&name))?;
        }
    }
    Ok((lock, older, notes))
}

/// Decides what of one file can be kept: what was received of it, or else the same file of an older copy.
fn keep(
    path: &Path,
    meta: &FileMeta,
    note: Option<&Note>,
    reuse: Option<&Path>,
) -> Result<Receiving> {
    // A note may be of a part that was here before the older copy lent its file: that would be written on, in both.
    let is_lent = reuse.is_some_and(|reuse| files::same_file(path, reuse));
    if !is_lent
        && let Some(note) = note
        && let Some(kept) = keep_prefix(path, meta, note)?
    {
        return Ok(kept);
    }
    files::remove_file(path)?;
    let whole = Note { meta: meta.clone(), prefix: meta.len, prefix_xxh3: meta.xxh3 };
    // One that cannot be read must not stop its own replacement.
    if let Some(reuse) = reuse
        && files::len_of(reuse).is_ok_and(|len| len == Some(meta.len))
        && let Ok(Some(kept)) = keep_prefix(reuse, meta, &whole)
    {
        // Finished files are never written, so the older copy's file stays as it is.
        files::link(reuse, path)?;
        return Ok(kept);
    }
    Ok(Receiving::nothing())
}

fn keep_prefix(path: &Path, meta: &FileMeta, note: &Note) -> Result<Option<Receiving>> {
    if files::len_of(path)?.is_none_or(|len| len < note.prefix) || note.prefix > meta.len {
        return Ok(None);
    }
    let mut file = File::open(path).map_err(io("open", path))?;
    let mut hasher = Xxh3::new();
    let read = files::hash_prefix(&mut file, note.prefix, &mut hasher);
    let read = read.map_err(io("read", path))?;
    if read != note.prefix || hasher.digest() != note.prefix_xxh3 {
        return Ok(None);
    }
    let finished = note.prefix == meta.len;
    if finished && hasher.digest() != meta.xxh3 {
        return Ok(None);
    }
    let (hashed, hasher) = (note.prefix, Some(hasher));
    Ok(Some(Receiving { hasher, hashed, noted: hashed, finished, ..Receiving::nothing() }))
}

/// Publishes the received files as the newest commit of the copy.
fn install(copy: &Path, dir: &Path, commit: Commit) -> Result<()> {
    // If even the number of an older commit cannot be read, its file name still has it.
    let older = files::numbered(copy, "commit-", ".json")?.last().copied();
    let generation = commit.generation.max(older.map_or(0, |older| older + 1));
    let to = commits::dir(copy, generation);
    files::fresh_dir(&to)?;
    for file in commit.files.iter() {
        files::link(&dir.join(&*file.name), &to.join(&*file.name))?;
    }
    let newest_log = files::numbered(copy, "oplog-", ".log")?.last().copied();
    let log_generation = newest_log.map_or(1, |newest| newest + 1);
    let stored = StoredCommit::received(Commit { generation, ..commit }, log_generation);
    let publish = || commits::publish(copy, &stored);
    let begin_log = || log_opening::begin(copy, &stored);
    match older {
        // Until the commit is published, the directory holds the former copy, with its log.
        Some(_) => publish().and_then(|()| begin_log())?,
        // A commit whose log has not begun would be one whose log is gone.
        None => begin_log().and_then(|()| publish())?,
    }
    files::remove_dir(dir)
}

#[cfg(test)]
mod tests;
