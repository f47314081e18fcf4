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
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use world::{Env, Work};

use super::turns::Turns;
use crate::error::Error;
use crate::state::{ClusterState, StoredIndex};
use policy::retention::{Lease, Leases};
use store::sealed::{seal, unseal};

pub(super) const INDEX: &str = "index.json";

/// The metadata that is written beside a copy's files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CopyMetadata {
    pub(crate) allocation_id: String,
    /// Term of the primary that the copy was last in sync with.
    pub(crate) primary_term: u64,
    /// The history that its files belong to; earlier builds did not say.
    #[serde(default)]
    pub(crate) history_uuid: Option<String>,
    /// The history that the copy is about to begin, where a loss of operations was accepted.
    #[serde(default)]
    pub(crate) begins: Option<String>,
}

impl CopyMetadata {
    /// Whether it is written of files with this history, and not of another shard's.
    pub(crate) fn is_of(&self, history_uuid: &str) -> bool {
        self.history_uuid.as_deref().is_none_or(|own| own == history_uuid)
            || self.begins.as_deref() == Some(history_uuid)
    }
}

/// What was found of a cluster state.
#[derive(Default)]
pub(crate) struct StoredState {
    /// The newest that is whole.
    pub(crate) state: Option<Arc<ClusterState>>,
    pub(crate) damage: Vec<String>,
}

/// How often a directory is tried that is in use: a node that was stopped may still be writing.
const LOCK_TRIES: u32 = 20;
const LOCK_AGAIN: Duration = Duration::from_millis(50);

pub(crate) struct NodeDisk {
    pub(super) env: Env,
    pub(super) root: PathBuf,
    /// Shared with what is being written: another node must not use the directory before that has ended.
    lock: RefCell<Option<Arc<File>>>,
    pub(super) turns: Turns,
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

    pub(super) fn metadata_path(&self, index_uuid: &str, shard: u32) -> PathBuf {
        self.root.join("indices").join(index_uuid).join(format!("{shard}.copy.json"))
    }

    pub(super) fn leases_path(&self, index_uuid: &str, shard: u32) -> PathBuf {
        self.root.join("indices").join(index_uuid).join(format!("{shard}.leases.json"))
    }

    pub(super) fn index_path(&self, index_uuid: &str) -> PathBuf {
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
            for path in &paths {
                let place = disk.get::<Option<Arc<ClusterState>>>(&path.to_string_lossy());
                place.replace(Some(state.clone()));
            }
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
            let stored = |path: &PathBuf| {
                let name = path.to_string_lossy();
                let is_there = disk.contains(&name);
                let place = is_there.then(|| disk.get::<Option<Arc<ClusterState>>>(&name))?;
                place.borrow().clone()
            };
            let states = [&first, &second].into_iter().filter_map(stored);
            let state = states.max_by_key(|state| state.version);
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
        if found.state.is_none() && !found.damage.is_empty() && self.holds_copies(name).await? {
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

    /// Replaces files, or fails once the directory was released: it may be another node's by now.
    async fn replace(&self, paths: Vec<PathBuf>, text: String) -> io::Result<()> {
        let Some(lock) = self.lock.borrow().clone() else {
            return Err(io::Error::other("the node is stopping, and writes no more"));
        };
        let turn = self.turns.next(&paths[0]);
        let write = move || {
            let written = turn
                .take()
                .map_or(Ok(()), |mut made| replace(&paths, &text).map(|()| *made = turn.number));
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
            .work(work, move || {
                match check_ordinary(&path).and_then(|()| fs::read_to_string(&path)) {
                    Ok(text) => match unseal(&text) {
                        Ok(text) => Ok(Some(text.to_owned())),
                        Err(reason) => Err(io::Error::new(io::ErrorKind::InvalidData, reason)),
                    },
                    Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
                    Err(error) => Err(error),
                }
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
        let text = serde_json::to_string(leases.by_id()).expect("plain data");
        self.write(self.leases_path(index_uuid, shard), text).await
    }

    /// The leases of a copy; none where they are missing or damaged: followers renew theirs, or recover again.
    pub(crate) async fn read_leases(&self, index_uuid: &str, shard: u32) -> io::Result<Leases> {
        let by_id: Option<BTreeMap<String, Lease>> =
            self.read_json(self.leases_path(index_uuid, shard)).await?;
        Ok(by_id.unwrap_or_default().into())
    }

    /// A copy's metadata; none where it is missing or damaged.
    pub(crate) async fn read_metadata(
        &self,
        index_uuid: &str,
        shard: u32,
    ) -> io::Result<Option<CopyMetadata>> {
        self.read_json(self.metadata_path(index_uuid, shard)).await
    }

    /// What a small file holds; none where it is missing or damaged. Fails where it may be whole and cannot be read
    /// now, for want of handles for example.
    async fn read_json<T: DeserializeOwned>(&self, path: PathBuf) -> io::Result<Option<T>> {
        match self.read(path).await {
            Ok(text) => Ok(text.and_then(|text| serde_json::from_str(&text).ok())),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => Ok(None),
            Err(error) => Err(error),
        }
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
        // Also where it reads the same: a kill, or a sync that failed, may have left it in memory alone.
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
}

fn lock(dir: &Path) -> io::Result<Option<File>> {
    let indices = dir.join("indices");
    store::make_dir(&indices)?;
    // A kill may have come before the names in it were durable, and what is written below them relies on that.
    File::open(&indices)?.sync_all()?;
    let path = dir.join("node.lock");
    check_ordinary(&path)?;
    store::lock_file(&path)
}

/// Refuses a file that is there and is no ordinary one: a pipe may never answer, and a device have no end.
fn check_ordinary(path: &Path) -> io::Result<()> {
    if fs::metadata(path).is_ok_and(|file| !file.is_file()) {
        let text = format!("{} is no ordinary file", path.display());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    Ok(())
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
    store::make_dir(dir)?;
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

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::state::IndexMeta;

    testbed::real_world!(
        leases_of_an_earlier_build_are_read,
        what_cannot_be_read_now_is_not_taken_for_missing,
        a_change_whose_caller_is_gone_undoes_no_later_one,
        a_state_that_nobody_could_read_again_is_not_stored,
    );

    async fn leases_of_an_earlier_build_are_read(env: Env) {
        let dir = tempfile::tempdir().unwrap();
        let disk = NodeDisk::open(&env, "n1", dir.path()).await.unwrap();
        let text = r#"{"f":{"retaining_seq_no":7,"timestamp_ms":1,"source":"ccr"}}"#;
        disk.write(disk.leases_path("uuid", 0), text.to_owned()).await.unwrap();
        let leases = disk.read_leases("uuid", 0).await.unwrap();
        assert_eq!(leases.retained_from("f"), Some(7));
    }

    async fn what_cannot_be_read_now_is_not_taken_for_missing(env: Env) {
        let dir = tempfile::tempdir().unwrap();
        let disk = NodeDisk::open(&env, "n1", dir.path()).await.unwrap();
        let paths = [disk.leases_path("uuid", 0), disk.metadata_path("uuid", 0)];
        for is_damaged in [false, true] {
            for path in paths.iter().filter(|_| is_damaged) {
                disk.write(path.clone(), "{".to_owned()).await.unwrap();
            }
            assert_eq!(disk.read_leases("uuid", 0).await.unwrap(), Leases::default());
            assert_eq!(disk.read_metadata("uuid", 0).await.unwrap(), None);
        }
        for path in &paths {
            fs::remove_file(path).unwrap();
            fs::create_dir(path).unwrap();
        }
        disk.read_leases("uuid", 0).await.unwrap_err();
        disk.read_metadata("uuid", 0).await.unwrap_err();
    }

    /// A handler is dropped when the node goes that asked, and a task with its copy.
    async fn a_change_whose_caller_is_gone_undoes_no_later_one(env: Env) {
        let dir = tempfile::tempdir().unwrap();
        let disk = NodeDisk::open(&env, "n1", dir.path()).await.unwrap();
        let writes = || Arc::strong_count(disk.lock.borrow().as_ref().unwrap()) > 1;
        let lease = |from| {
            let mut leases = Leases::default();
            leases.renew("follower", from, 0, "ccr");
            leases
        };
        let metadata = CopyMetadata::default();
        for round in 0..50 {
            // Each is dropped while its thread goes on, unless that was faster.
            for from in 0..16 {
                let leases = lease(16 * round + from);
                tokio::select! {
                    biased;
                    _ = disk.write_leases("uuid", 0, &leases) => {}
                    _ = disk.write_metadata("uuid", 1, &metadata) => {}
                    () = std::future::ready(()) => {}
                }
            }
            let last = lease(10_000 + round);
            disk.write_leases("uuid", 0, &last).await.unwrap();
            disk.remove_copy("uuid", 1).await.unwrap();
            while writes() {
                env.sleep(Duration::from_millis(1)).await;
            }
            assert_eq!(disk.read_leases("uuid", 0).await.unwrap(), last, "round {round}");
            assert_eq!(disk.read_metadata("uuid", 1).await.unwrap(), None, "round {round}");
        }
    }

    #[test]
    fn what_is_no_ordinary_file_is_refused_by_name() {
        use std::os::unix::fs::symlink;

        world::real_world::run(7, |env| async move {
            for (name, device) in [("state.json", "/dev/null"), ("state.second.json", "/dev/zero")]
            {
                let dir = tempfile::tempdir().unwrap();
                let disk = NodeDisk::open(&env, "n1", dir.path()).await.unwrap();
                symlink(device, dir.path().join(name)).unwrap();
                let refused = disk.read_state("n1").await.err().unwrap().to_string();
                assert!(refused.contains(&format!("{name} is no ordinary file")), "{refused}");
            }
            let dir = tempfile::tempdir().unwrap();
            symlink("/dev/null", dir.path().join("node.lock")).unwrap();
            let refused = NodeDisk::open(&env, "n1", dir.path()).await.err().unwrap().to_string();
            assert!(refused.contains("node.lock is no ordinary file"), "{refused}");
        });
    }

    async fn a_state_that_nobody_could_read_again_is_not_stored(env: Env) {
        let dir = tempfile::tempdir().unwrap();
        let disk = NodeDisk::open(&env, "n1", dir.path()).await.unwrap();
        let mut state = ClusterState::new("c", [], || 7);
        disk.write_state(&Arc::new(state.clone())).await.unwrap();
        let deep = (0..130).fold(Value::Null, |inner, _| Value::Array(vec![inner]));
        let meta = IndexMeta { mappings: deep, ..IndexMeta::default() };
        state.indices.insert("a".to_owned(), meta.into());
        state.version += 1;
        let error = disk.write_state(&Arc::new(state)).await.unwrap_err();
        assert!(error.to_string().contains("recursion limit"), "{error}");
        let found = disk.read_state("n1").await.unwrap();
        assert_eq!(found.state.unwrap().version, 0);
    }
}
