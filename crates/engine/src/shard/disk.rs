//! A node's data directory.
//!
//! | path | holds |
//! | --- | --- |
//! | `node.lock` | held while a node uses the directory |
//! | `state.json`, `state.second.json` | the cluster state, on the manager, twice |
//! | `indices/<uuid>/index.json` | what the index is |
//! | `indices/<uuid>/<shard>/` | a shard copy |
//! | `indices/<uuid>/<shard>.copy.json` | its allocation id and history |
//! | `indices/<uuid>/<shard>.leases.json` | its retention leases |
//!
//! Each of these ends with its checksum. In the virtual world the same paths name values on the host's virtual disk.

use std::cell::RefCell;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use world::{Env, Work};

use super::turns::Turns;
use crate::error::Error;
use crate::state::{ClusterState, FoundCopy, StoredIndex};
use policy::retention::Leases;
use store::sealed::{seal, unseal};

const INDEX: &str = "index.json";

/// The metadata that is written beside a copy's files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CopyMetadata {
    pub(crate) allocation_id: String,
    /// Term of the primary that the copy was last in sync with.
    pub(crate) primary_term: u64,
    /// The history that its files belong to; earlier builds did not say.
    #[serde(default)]
    pub(crate) history_uuid: Option<String>,
}

impl CopyMetadata {
    /// Whether it is written of files with this history, and not of another shard's.
    pub(crate) fn is_of(&self, history_uuid: &str) -> bool {
        self.history_uuid.as_deref().is_none_or(|own| own == history_uuid)
    }
}

/// What was found of a cluster state.
#[derive(Default)]
pub(crate) struct StoredState {
    /// The newest that is whole.
    pub(crate) state: Option<Arc<ClusterState>>,
    /// What is wrong with the files.
    pub(crate) damage: Vec<String>,
}

/// What is on the disk of a node that starts.
#[derive(Default)]
pub(crate) struct FoundOnDisk {
    /// The copies whose metadata is there.
    pub(crate) copies: Vec<FoundCopy>,
    /// Directories of copies without metadata, by UUID of the index and shard: copies that were never complete, or are
    /// half deleted.
    pub(crate) unsigned: Vec<(String, u32)>,
    /// In words, which metadata cannot be read.
    pub(crate) unreadable: Vec<String>,
}

/// How often a directory is tried that is in use: a node that was stopped may still be writing.
const LOCK_TRIES: u32 = 20;
const LOCK_AGAIN: Duration = Duration::from_millis(50);

/// A node's data directory.
pub(crate) struct NodeDisk {
    env: Env,
    root: PathBuf,
    /// Shared with what is being written: another node must not use the directory before that has ended.
    lock: RefCell<Option<Arc<File>>>,
    turns: Turns,
}

impl NodeDisk {
    pub(crate) async fn open(env: &Env, node: &str, root: &Path) -> Result<NodeDisk, Error> {
        let root = root.to_owned();
        if env.is_virtual() {
            let (env, lock, turns) = (env.clone(), RefCell::default(), Turns::default());
            return Ok(NodeDisk { env, root, lock, turns });
        }
        let mut tries = 0;
        let locked = loop {
            let dir = root.clone();
            match env.work(Work::DiskSync, move || lock(&dir)).await {
                Ok(None) if tries < LOCK_TRIES => tries += 1,
                locked => break locked,
            }
            env.sleep(LOCK_AGAIN).await;
        };
        match locked {
            Ok(Some(file)) => {
                let (env, lock) = (env.clone(), RefCell::new(Some(Arc::new(file))));
                Ok(NodeDisk { env, root, lock, turns: Turns::default() })
            }
            Ok(None) => Err(Error::InUse { path: root }),
            Err(source) => Err(Error::Data {
                node: node.to_owned(),
                what: "use the data directory",
                path: root,
                source,
            }),
        }
    }

    /// Lets another node use the directory.
    pub(crate) fn release(&self) {
        let lock = self.lock.borrow_mut().take();
        drop(lock);
    }

    pub(crate) fn copy_dir(&self, index_uuid: &str, shard: u32) -> PathBuf {
        self.root.join("indices").join(index_uuid).join(shard.to_string())
    }

    fn metadata_path(&self, index_uuid: &str, shard: u32) -> PathBuf {
        self.root.join("indices").join(index_uuid).join(format!("{shard}.copy.json"))
    }

    fn leases_path(&self, index_uuid: &str, shard: u32) -> PathBuf {
        self.root.join("indices").join(index_uuid).join(format!("{shard}.leases.json"))
    }

    fn index_path(&self, index_uuid: &str) -> PathBuf {
        self.root.join("indices").join(index_uuid).join(INDEX)
    }

    /// Both hold the same: to fall back on an older state would be to believe copies in sync that are not.
    fn state_paths(&self) -> [PathBuf; 2] {
        [self.root.join("state.json"), self.root.join("state.second.json")]
    }

    /// Stores the cluster state; one that could not be read back is refused, and the stored one stays. The virtual
    /// disk holds the state itself, as it has no use for its text.
    pub(crate) async fn write_state(&self, state: &Arc<ClusterState>) -> io::Result<()> {
        let paths = self.state_paths();
        if let Some(disk) = self.env.virtual_disk() {
            self.env.work(Work::DiskWrite { bytes: state.wire_bytes() }, || ()).await;
            self.env.work(Work::DiskSync, || ()).await;
            let place = disk.get::<Option<Arc<ClusterState>>>(&paths[0].to_string_lossy());
            place.replace(Some(state.clone()));
            return Ok(());
        }
        let text = serde_json::to_string(&**state).expect("a state is plain data");
        let bytes = text.len() as u64;
        let text = self.env.work(Work::Hash { bytes }, move || readable(text)).await?;
        self.replace(paths.to_vec(), seal(&text)).await
    }

    /// The stored cluster state of node `name`; none if there is none yet. Fails where there was one and none can be
    /// read, and copies are here that would have no place without it.
    pub(crate) async fn read_state(&self, name: &str) -> Result<StoredState, Error> {
        let [first, second] = self.state_paths();
        if let Some(disk) = self.env.virtual_disk() {
            let place = disk.get::<Option<Arc<ClusterState>>>(&first.to_string_lossy());
            let state = place.borrow().clone();
            return Ok(StoredState { state, ..StoredState::default() });
        }
        let mut found = StoredState::default();
        for path in [&first, &second] {
            let text = match self.read(path.clone()).await {
                Ok(text) => text,
                Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                    found.damage.push(format!("{} is damaged: {error}", path.display()));
                    continue;
                }
                Err(source) => {
                    let (node, path) = (name.to_owned(), path.clone());
                    return Err(Error::Data { node, what: "read", path, source });
                }
            };
            match text.map(|text| serde_json::from_str::<ClusterState>(&text)).transpose() {
                Ok(None) => {}
                Ok(Some(state)) => {
                    let newest = found.state.as_ref().map(|newest| newest.version);
                    if newest.is_none_or(|newest| newest < state.version) {
                        found.state = Some(Arc::new(state));
                    }
                }
                Err(error) => found.damage.push(format!("{} is damaged: {error}", path.display())),
            }
        }
        if found.state.is_none() && !found.damage.is_empty() && self.holds_copies().await {
            let reason = format!(
                "{}; put a copy of it back, or move it away: then all indices here are dangling, and can be imported",
                found.damage.join("; ")
            );
            return Err(Error::State { path: first, reason });
        }
        Ok(found)
    }

    /// Writes a small file so that it is there whole, or not at all.
    async fn write(&self, path: PathBuf, text: String) -> io::Result<()> {
        if let Some(disk) = self.env.virtual_disk() {
            self.env.work(Work::DiskSync, || ()).await;
            *disk.get::<String>(&path.to_string_lossy()).borrow_mut() = text;
            return Ok(());
        }
        let text = seal(&text);
        self.replace(vec![path], text).await
    }

    /// Nothing once the directory was let go of: it may be another node's.
    async fn replace(&self, paths: Vec<PathBuf>, text: String) -> io::Result<()> {
        let Some(lock) = self.lock.borrow().clone() else {
            return Err(io::Error::other("the node is stopping, and writes no more"));
        };
        let turn = self.turns.next(&paths[0]);
        let write = move || {
            let written = turn.take().map_or(Ok(()), |_one| replace(&paths, &text));
            drop(lock);
            written
        };
        self.env.work(Work::DiskSync, write).await
    }

    async fn read(&self, path: PathBuf) -> io::Result<Option<String>> {
        if let Some(disk) = self.env.virtual_disk() {
            let name = path.to_string_lossy();
            let text: Option<Rc<RefCell<String>>> = disk.contains(&name).then(|| disk.get(&name));
            return Ok(text.map(|text| text.borrow().clone()));
        }
        let work = Work::DiskRead { bytes: 4096 };
        self.env
            .work(work, move || match fs::read_to_string(&path) {
                Ok(text) => match unseal(&text) {
                    Ok(text) => Ok(Some(text.to_owned())),
                    Err(reason) => Err(io::Error::new(io::ErrorKind::InvalidData, reason)),
                },
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
                Err(error) => Err(error),
            })
            .await
    }

    pub(crate) async fn write_metadata(
        &self,
        index_uuid: &str,
        shard: u32,
        metadata: &CopyMetadata,
    ) -> io::Result<()> {
        let text = serde_json::to_string(metadata).expect("plain data");
        self.write(self.metadata_path(index_uuid, shard), text).await
    }

    pub(crate) async fn write_leases(
        &self,
        index_uuid: &str,
        shard: u32,
        leases: &Leases,
    ) -> io::Result<()> {
        let text = serde_json::to_string(leases).expect("plain data");
        self.write(self.leases_path(index_uuid, shard), text).await
    }

    /// The leases of a copy; none where they cannot be read: followers renew theirs, or recover again.
    pub(crate) async fn read_leases(&self, index_uuid: &str, shard: u32) -> Leases {
        let read = self.read(self.leases_path(index_uuid, shard)).await;
        let text = read.ok().flatten().unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }

    pub(crate) async fn read_metadata(&self, index_uuid: &str, shard: u32) -> Option<CopyMetadata> {
        let text = self.read(self.metadata_path(index_uuid, shard)).await.ok()??;
        serde_json::from_str(&text).ok()
    }

    /// Writes what an index is beside its copies here, so that it is known should the cluster state be lost. In the
    /// virtual world this costs nothing, and nobody waits for it.
    pub(crate) async fn write_index(&self, stored: &Arc<StoredIndex>) -> io::Result<()> {
        let path = self.index_path(&stored.meta.uuid);
        if let Some(disk) = self.env.virtual_disk() {
            let place = disk.get::<Option<Arc<StoredIndex>>>(&path.to_string_lossy());
            place.replace(Some(stored.clone()));
            return Ok(());
        }
        let text = serde_json::to_string(&**stored).expect("plain data");
        if self.read(path.clone()).await.is_ok_and(|before| before.as_ref() == Some(&text)) {
            return Ok(());
        }
        self.write(path, text).await
    }

    /// What an index is whose copies are here; none where that cannot be read.
    pub(crate) async fn read_index(&self, index_uuid: &str) -> Option<StoredIndex> {
        let path = self.index_path(index_uuid);
        if let Some(disk) = self.env.virtual_disk() {
            let name = path.to_string_lossy();
            let place = disk.contains(&name).then(|| disk.get::<Option<Arc<StoredIndex>>>(&name));
            return place?.borrow().clone().map(Arc::unwrap_or_clone);
        }
        let text = self.read(path).await.ok()??;
        serde_json::from_str(&text).ok()
    }

    /// Removes what is left of an index, once its last copy here is gone.
    pub(crate) async fn remove_empty_index(&self, index_uuid: &str) {
        let path = self.index_path(index_uuid);
        let Some(dir) = path.parent().map(Path::to_owned) else { return };
        if let Some(disk) = self.env.virtual_disk() {
            let name = path.to_string_lossy();
            if disk.paths_under(&format!("{}/", dir.to_string_lossy())).iter().all(|p| *p == name) {
                disk.remove_under(&name);
            }
            return;
        }
        let work = Work::DiskWrite { bytes: 0 };
        self.env
            .work(work, move || {
                let mut left = fs::read_dir(&dir).into_iter().flatten().flatten();
                if left.all(|entry| entry.file_name() == INDEX) {
                    // What stays of it is litter, and no copy.
                    let removed = missing_is_fine(fs::remove_file(&path));
                    let _ = removed.and_then(|()| fs::remove_dir(&dir));
                }
            })
            .await;
    }

    /// Removes a copy: its metadata first, so that no half of it is ever taken for a copy.
    pub(crate) async fn remove_copy(&self, index_uuid: &str, shard: u32) -> io::Result<()> {
        let (metadata, dir) =
            (self.metadata_path(index_uuid, shard), self.copy_dir(index_uuid, shard));
        let leases = self.leases_path(index_uuid, shard);
        if let Some(disk) = self.env.virtual_disk() {
            disk.remove_under(&metadata.to_string_lossy());
            disk.remove_under(&leases.to_string_lossy());
            // With the slash, since "1" is also how "10" begins.
            disk.remove_under(&format!("{}/", dir.to_string_lossy()));
            return Ok(());
        }
        let work = Work::DiskWrite { bytes: 0 };
        let paths = [metadata, leases];
        let turns = paths.each_ref().map(|path| self.turns.next(path));
        let remove = move || {
            // Otherwise another copy has come here since.
            let Some(_metadata) = turns[0].take() else { return Ok(paths) };
            let _leases = turns[1].take();
            for path in &paths {
                missing_is_fine(fs::remove_file(path))?;
            }
            // What is written there now would appear again behind what is removed.
            let _lock = store::until_free(&dir);
            missing_is_fine(fs::remove_dir_all(&dir)).map(|()| paths)
        };
        let paths = self.env.work(work, remove).await?;
        self.turns.forget(&paths);
        Ok(())
    }

    /// The copies that are here, and what may be of others.
    pub(crate) async fn found_copies(&self) -> FoundOnDisk {
        let paths = self.paths().await;
        let signed = copies_of(&paths, ".copy.json");
        let mut unsigned = copies_of(&paths, "");
        unsigned.retain(|copy| signed.binary_search(copy).is_err());
        let mut found = FoundOnDisk { unsigned, ..FoundOnDisk::default() };
        for (index_uuid, shard) in signed {
            match self.read_metadata(&index_uuid, shard).await {
                Some(CopyMetadata { allocation_id, .. }) => {
                    found.copies.push(FoundCopy { index_uuid, shard, allocation_id });
                }
                None => found.unreadable.push(format!(
                    "{} cannot be read, so that nobody knows which copy lies beside it; it is kept and not used",
                    self.metadata_path(&index_uuid, shard).display()
                )),
            }
        }
        found
    }

    /// Whether there is metadata of copies here.
    pub(crate) async fn holds_copies(&self) -> bool {
        !copies_of(&self.paths().await, ".copy.json").is_empty()
    }

    /// What lies beside the copies, and their directories.
    async fn paths(&self) -> Vec<PathBuf> {
        let indices = self.root.join("indices");
        match self.env.virtual_disk() {
            Some(disk) => {
                let under = disk.paths_under(&format!("{}/", indices.to_string_lossy()));
                under.into_iter().map(PathBuf::from).collect()
            }
            None => {
                let work = Work::DiskRead { bytes: 4096 };
                self.env.work(work, move || list_two_levels(&indices)).await
            }
        }
    }
}

/// The copies of which there is a path that ends so: UUID of the index and number of the shard, sorted.
fn copies_of(paths: &[PathBuf], suffix: &str) -> Vec<(String, u32)> {
    let copy = |path: &PathBuf| {
        let number = path.file_name()?.to_str()?.strip_suffix(suffix)?;
        let shard: u32 = number.parse().ok()?;
        let uuid = path.parent()?.file_name()?.to_str()?;
        // A name such as [007] is not one of ours.
        (shard.to_string() == number).then(|| (uuid.to_owned(), shard))
    };
    let mut copies: Vec<(String, u32)> = paths.iter().filter_map(copy).collect();
    copies.sort();
    copies
}

fn list_two_levels(dir: &Path) -> Vec<PathBuf> {
    let list = |dir: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(dir).into_iter().flatten();
        entries.filter_map(|entry| Some(entry.ok()?.path())).collect()
    };
    list(dir).iter().flat_map(|dir| list(dir)).collect()
}

fn lock(dir: &Path) -> io::Result<Option<File>> {
    fs::create_dir_all(dir.join("indices"))?;
    let file = File::create(dir.join("node.lock"))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(fs::TryLockError::WouldBlock) => Ok(None),
        Err(fs::TryLockError::Error(error)) => Err(error),
    }
}

/// A state's text, if a node that starts can read it.
fn readable(text: String) -> io::Result<String> {
    match serde_json::from_str::<ClusterState>(&text) {
        Ok(_) => Ok(text),
        Err(error) => Err(io::Error::other(format!("it could not be read again: {error}"))),
    }
}

/// Replaces files of one directory by others with this text; a kill leaves each as it was, or whole.
fn replace(paths: &[PathBuf], text: &str) -> io::Result<()> {
    let dir = paths[0].parent().expect("a file has a directory");
    fs::create_dir_all(dir)?;
    // What can fail for want of handles fails before anything is replaced.
    let names = File::open(dir)?;
    for path in paths {
        let mut file = File::create(path.with_extension("new"))?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
    }
    for path in paths {
        fs::rename(path.with_extension("new"), path)?;
    }
    names.sync_all()
}

fn missing_is_fine(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::settings::SettingsMap;
    use crate::state::{Aliases, IndexMeta};

    async fn removes_one_copy_alone(env: Env) {
        let temporary = (!env.is_virtual()).then(|| tempfile::tempdir().unwrap());
        let root = temporary.as_ref().map_or(PathBuf::from("/data"), |dir| dir.path().to_owned());
        let disk = NodeDisk::open(&env, "n1", &root).await.unwrap();
        let mapping = query::Mapping::parse(&serde_json::json!({})).unwrap();
        for shard in [1, 10, 19] {
            let metadata = CopyMetadata {
                allocation_id: format!("copy{shard}"),
                primary_term: 1,
                history_uuid: None,
            };
            disk.write_metadata("uuid", shard, &metadata).await.unwrap();
            disk.write_leases("uuid", shard, &Leases::default()).await.unwrap();
            let dir = disk.copy_dir("uuid", shard);
            let options = store::Options::default();
            store::Shard::create(&env, &dir, &mapping, options)
                .await
                .unwrap()
                .close()
                .await
                .unwrap();
        }
        disk.remove_copy("uuid", 1).await.unwrap();
        let found = disk.found_copies().await;
        let left: Vec<u32> = found.copies.iter().map(|copy| copy.shard).collect();
        assert_eq!(left, [10, 19]);
        assert!(found.unsigned.is_empty(), "{:?}", found.unsigned);
        assert!(store::committed(&env, &disk.copy_dir("uuid", 1)).await.unwrap().is_none());
        for shard in left {
            let dir = disk.copy_dir("uuid", shard);
            assert!(store::committed(&env, &dir).await.unwrap().is_some(), "shard {shard}");
        }
    }

    /// A task that was ended may have work on another thread, which knows nothing of that.
    #[test]
    fn a_copy_is_removed_behind_whoever_still_works_in_it() {
        world::real_world::run(7, |env| async move {
            let root = tempfile::tempdir().unwrap();
            let disk = NodeDisk::open(&env, "n1", root.path()).await.unwrap();
            let dir = disk.copy_dir("uuid", 0);
            fs::create_dir_all(&dir).unwrap();
            let lock = store::until_free(&dir).unwrap();
            let late = std::thread::spawn({
                let dir = dir.clone();
                move || {
                    std::thread::sleep(Duration::from_millis(200));
                    fs::create_dir_all(&dir).unwrap();
                    fs::write(dir.join("late"), "").unwrap();
                    drop(lock);
                }
            });
            disk.remove_copy("uuid", 0).await.unwrap();
            late.join().unwrap();
            assert!(!dir.exists());
        });
    }

    /// A handler is dropped when the node goes that asked, and a task with its copy.
    #[test]
    fn a_change_whose_caller_is_gone_undoes_no_later_one() {
        world::real_world::run(7, |env| async move {
            let dir = tempfile::tempdir().unwrap();
            let disk = NodeDisk::open(&env, "n1", dir.path()).await.unwrap();
            let writes = || Arc::strong_count(disk.lock.borrow().as_ref().unwrap()) > 1;
            let lease = |from| {
                let mut leases = Leases::default();
                leases.renew("follower", from, 0, "ccr");
                leases
            };
            let metadata = CopyMetadata {
                allocation_id: "copy".to_owned(),
                primary_term: 1,
                history_uuid: None,
            };
            for round in 0..50 {
                // Each is dropped while its thread goes on.
                for from in 0..16 {
                    let leases = lease(16 * round + from);
                    tokio::select! {
                        biased;
                        _ = disk.write_leases("uuid", 0, &leases) => panic!("it is not awaited"),
                        _ = disk.write_metadata("uuid", 1, &metadata) => panic!("nor is it"),
                        () = std::future::ready(()) => {}
                    }
                }
                let last = lease(10_000 + round);
                disk.write_leases("uuid", 0, &last).await.unwrap();
                disk.remove_copy("uuid", 1).await.unwrap();
                while writes() {
                    env.sleep(Duration::from_millis(1)).await;
                }
                assert_eq!(disk.read_leases("uuid", 0).await, last, "round {round}");
                assert_eq!(disk.read_metadata("uuid", 1).await, None, "round {round}");
            }
        });
    }

    #[test]
    fn a_state_that_nobody_could_read_again_is_not_stored() {
        world::real_world::run(7, |env| async move {
            let dir = tempfile::tempdir().unwrap();
            let disk = NodeDisk::open(&env, "n1", dir.path()).await.unwrap();
            let mut state = ClusterState::new("c", [], || 7);
            disk.write_state(&Arc::new(state.clone())).await.unwrap();
            let deep = (0..130).fold(Value::Null, |inner, _| Value::Array(vec![inner]));
            let meta = IndexMeta {
                uuid: "uuid".to_owned(),
                shards: 1,
                replicas: 0,
                mappings: deep,
                mapping_version: 1,
                settings: SettingsMap::default(),
                settings_version: 1,
                aliases: Aliases::default(),
                aliases_version: 1,
                created_ms: 0,
                leader: None,
            };
            state.indices.insert("a".to_owned(), meta.into());
            state.version += 1;
            let error = disk.write_state(&Arc::new(state)).await.unwrap_err();
            assert!(error.to_string().contains("recursion limit"), "{error}");
            let found = disk.read_state("n1").await.unwrap();
            assert_eq!(found.state.unwrap().version, 0);
        });
    }

    #[test]
    fn removes_one_copy_alone_in_both_worlds() {
        world::real_world::run(7, removes_one_copy_alone);
        world::virtual_world::run(7, removes_one_copy_alone);
    }
}
