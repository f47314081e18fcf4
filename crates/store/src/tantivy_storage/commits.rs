//! Commits on disk: `commit-<n>.json` beside `commit-<n>/` with hard links of the files that it lists.
//!
//! The JSON file appears last and atomically; a directory without one is litter of a kill.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use serde_json::Value;
use tantivy::directory::{META_LOCK, MmapDirectory};
use tantivy::index::IndexSettings;
use tantivy::schema::Schema;
use tantivy::{Directory, Index};

use query::Mapping;

use super::{files, log_opening, schema};
use crate::commit::{Commit, FORMAT, FileMeta, StoredCommit};
use crate::error::io;
use crate::sealed::{seal, unseal};
use crate::virtual_files::META;
use crate::{Error, Result};

/// Stands where a file's hash is not known yet. A file that really has this hash is hashed once more.
pub(super) const NOT_HASHED: u64 = 0;

/// The files that the library may delete, as it wants them listed.
const MANAGED: &str = ".managed.json";
const INDEX: &str = "index";

/// The directory of commits that are held for recoveries.
pub(super) const SNAPSHOTS: &str = "snapshots";

/// Where the files of a commit are.
pub(super) fn dir(copy: &Path, generation: u64) -> PathBuf {
    copy.join(format!("commit-{generation}"))
}

fn json(copy: &Path, generation: u64) -> PathBuf {
    copy.join(format!("commit-{generation}.json"))
}

fn index_error(what: &'static str, copy: &Path, error: impl std::fmt::Display) -> Error {
    Error::Index { what, path: copy.to_owned(), reason: error.to_string() }
}

/// The newest commit of a copy; none if there is no copy.
pub(super) fn newest(copy: &Path) -> Result<Option<StoredCommit>> {
    match files::numbered(copy, "commit-", ".json")?.last() {
        None => Ok(None),
        Some(generation) => read(&json(copy, *generation)).map(Some),
    }
}

fn read(path: &Path) -> Result<StoredCommit> {
    let bytes = fs::read(path).map_err(io("read", path))?;
    let refused = |reason: String| Error::CommitDamaged { path: path.to_owned(), reason };
    let damaged = |error: serde_json::Error| refused(error.to_string());
    let text = std::str::from_utf8(&bytes).map_err(|error| refused(error.to_string()))?;
    let value: Value = serde_json::from_str(unseal(text).map_err(refused)?).map_err(damaged)?;
    let found = value["format"].as_u64().unwrap_or(0) as u32;
    if found > FORMAT {
        return Err(Error::Newer { path: path.to_owned(), found, known: FORMAT });
    }
    serde_json::from_value(value).map_err(damaged)
}

/// Creates an empty copy: an index without documents, and its first commit.
pub(super) fn create(copy: &Path, mapping: &Mapping, history_uuid: &str) -> Result<()> {
    files::make_dir(copy).map_err(io("create directory", copy))?;
    let _lock = files::lock_dir(copy)?;
    if newest(copy)?.is_some() {
        return Err(Error::AlreadyThere { dir: copy.to_owned() });
    }
    let work_dir = work_dir(copy);
    files::fresh_dir(&work_dir)?;
    let refused = || crate::error::index("create the index", copy);
    let directory = MmapDirectory::open(&work_dir).map_err(|e| refused()(e.into()))?;
    let settings =
        IndexSettings { docstore_compress_dedicated_thread: false, ..IndexSettings::default() };
    let index = Index::create(directory, schema::schema(mapping), settings);
    let index = index.map_err(refused())?;
    link_index(copy, &index, 1)?;
    let mut commit =
        Commit { generation: 1, history_uuid: history_uuid.to_owned(), ..Commit::default() };
    let mut listed = list(copy, 1, &Commit::default())?;
    for file in &mut listed {
        file.xxh3 = files::hash_file(&dir(copy, 1).join(&*file.name))?;
    }
    commit.files = listed.into();
    // The log of an earlier copy in this directory is of another history.
    let log_generation =
        files::numbered(copy, "oplog-", ".log")?.last().map_or(1, |newest| newest + 1);
    let stored = StoredCommit::new(commit, log_generation);
    log_opening::begin(copy, &stored)?;
    publish(copy, &stored)
}

/// First step of an open: takes the lock, reads the newest commit, removes files that belong to no commit. The copy
/// begins this history, if it has another one: durably, before its log is opened, so that the word which accepts a loss
/// stays in the log's checkpoint until then.
pub(super) fn prepare(copy: &Path, history_uuid: Option<&str>) -> Result<(File, StoredCommit)> {
    let no_commit = || Error::NoCommit { dir: copy.to_owned() };
    // The lock is a file: none is left where there is no copy.
    newest(copy)?.ok_or_else(no_commit)?;
    let lock = files::lock_dir(copy)?;
    let mut stored = newest(copy)?.ok_or_else(no_commit)?;
    // A kill may have come before its name was durable, which those before it must not go without.
    files::sync_dir(copy)?;
    sweep(copy, stored.commit.generation)?;
    files::remove_dir(&copy.join(SNAPSHOTS))?;
    if history_uuid.is_some_and(|history| stored.begin_history(history)) {
        publish(copy, &stored)?;
    }
    Ok((lock, stored))
}

/// Removes every commit but one.
fn sweep(copy: &Path, keep: u64) -> Result<()> {
    for generation in files::numbered(copy, "commit-", ".json")? {
        if generation != keep {
            files::remove_file(&json(copy, generation))?;
        }
    }
    for generation in files::numbered(copy, "commit-", "")? {
        if generation != keep {
            files::remove_dir(&dir(copy, generation))?;
        }
    }
    Ok(())
}

/// Removes what is left of commits that were begun and never published.
fn sweep_begun(copy: &Path) -> Result<()> {
    for generation in files::numbered(copy, "commit-", "")? {
        if !json(copy, generation).exists() {
            files::remove_dir(&dir(copy, generation))?;
        }
    }
    // What a full disk left of one that was being published: the next one has another number.
    for generation in files::numbered(copy, "commit-", ".tmp")? {
        files::remove_file(&json(copy, generation).with_extension("tmp"))?;
    }
    Ok(())
}

/// Fills `index/` from a commit. The library gets its own copies of what it overwrites.
pub(super) fn rebuild(copy: &Path, stored: &StoredCommit) -> Result<()> {
    let work_dir = work_dir(copy);
    files::fresh_dir(&work_dir)?;
    let commit_dir = dir(copy, stored.commit.generation);
    for file in stored.commit.files.iter().filter(|file| *file.name != *META) {
        files::link(&commit_dir.join(&*file.name), &work_dir.join(&*file.name))?;
    }
    let (from, to) = (commit_dir.join(META), work_dir.join(META));
    fs::copy(&from, &to).map_err(io("copy", &from))?;
    let names: Vec<&str> = stored.commit.files.iter().map(|file| &*file.name).collect();
    let managed = serde_json::to_vec(&names).expect("names are plain data");
    // The directory is scratch: it is rebuilt at the next open.
    let path = work_dir.join(MANAGED);
    fs::write(&path, &managed).map_err(io("write", &path))
}

/// Where the library works. Scratch: rebuilt from a commit at each open.
pub(super) fn work_dir(copy: &Path) -> PathBuf {
    copy.join(INDEX)
}

/// Adds to the schema in `index/` what only the mapping has, and `_routing` where an earlier build made it. Nobody
/// may have the index there open.
pub(super) fn extend_schema(copy: &Path, mapping: &Mapping) -> Result<()> {
    let path = work_dir(copy).join(META);
    let damaged = |error: serde_json::Error| index_error("read the schema", copy, error);
    let bytes = fs::read(&path).map_err(io("read", &path))?;
    let mut meta: Value = serde_json::from_slice(&bytes).map_err(damaged)?;
    let before: Schema = serde_json::from_value(meta["schema"].take()).map_err(damaged)?;
    if let Some(field) = schema::conflict(&before, mapping) {
        let why = format!("its files have the field [{field}] as another type than the mapping");
        return Err(index_error("read the schema", copy, why));
    }
    let missing = schema::missing(&before, mapping);
    if missing.is_empty() && schema::has_routing(&before) {
        return Ok(());
    }
    let is_empty = meta["segments"].as_array().is_some_and(Vec::is_empty);
    let norms = if is_empty { schema::Norms::Kept } else { schema::Norms::Left };
    let extended = schema::extended(&before, &missing, norms);
    meta["schema"] = serde_json::to_value(extended).map_err(damaged)?;
    let bytes = serde_json::to_vec(&meta).map_err(damaged)?;
    // Whoever asks for a merge may be reading it.
    files::write_atomically(&path, &bytes)
}

/// Links the files of the refreshed index as commit `generation`, which nothing points to yet.
pub(super) fn link_index(copy: &Path, index: &Index, generation: u64) -> Result<()> {
    let failed = || crate::error::index("commit the index", copy);
    let to = dir(copy, generation);
    sweep_begun(copy)?;
    files::fresh_dir(&to)?;
    let meta = {
        // A merge that ends takes the list of files to keep under this lock, too: it keeps those of `meta`, or `meta`
        // is what it left.
        let lock = index.directory().acquire_lock(&META_LOCK);
        let _lock = lock.map_err(|error| failed()(error.into()))?;
        index.load_metas().map_err(failed())?
    };
    let work_dir = work_dir(copy);
    for file in meta.list_segment_files() {
        let from = work_dir.join(&file);
        // The list names files that a segment may have; temporary ones are gone by now.
        let temporary = file.extension().is_some_and(|extension| extension == "temp");
        if !temporary && from.exists() {
            files::link(&from, &to.join(&file))?;
        }
    }
    let bytes = serde_json::to_vec(&meta).map_err(|e| index_error("commit the index", copy, e))?;
    files::write_durably(&to.join(META), &bytes)
}

/// The files of commit `generation` by name. Hashes are known for those that the commit before has, too: the
/// library never writes a file twice.
pub(super) fn list(copy: &Path, generation: u64, before: &Commit) -> Result<Vec<FileMeta>> {
    let known: BTreeMap<&str, &FileMeta> =
        before.files.iter().map(|file| (&*file.name, file)).collect();
    let (now_dir, before_dir) = (dir(copy, generation), dir(copy, before.generation));
    let mut listed = Vec::new();
    for name in files::names(&now_dir)? {
        let path = now_dir.join(&name);
        let len = fs::metadata(&path).map_err(io("look at", &path))?.len();
        let same = known
            .get(name.as_str())
            .filter(|old| old.len == len && files::same_file(&path, &before_dir.join(&name)));
        let xxh3 = same.map_or(NOT_HASHED, |old| old.xxh3);
        listed.push(FileMeta { name: name.into(), len, xxh3 });
    }
    Ok(listed)
}

/// Makes a commit the newest, durably, and drops the ones before. Where it fails, the commit may be the newest all the
/// same.
pub(super) fn publish(copy: &Path, stored: &StoredCommit) -> Result<()> {
    let generation = stored.commit.generation;
    files::sync_dir(&dir(copy, generation))?;
    let text = serde_json::to_string_pretty(stored).expect("a commit is plain data");
    files::write_atomically(&json(copy, generation), seal(&text).as_bytes())?;
    // The commit is there. What stays of those before goes with the next one, or at the next open.
    let _ = sweep(copy, generation);
    Ok(())
}
