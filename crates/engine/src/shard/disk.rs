//! A node's data directory.
//!
//! | path | holds |
//! | --- | --- |
//! | `node.lock` | held while a node uses the directory |
//! | `state.json` | the cluster state, on the manager |
//! | `indices/<uuid>/<shard>/` | a shard copy |
//! | `indices/<uuid>/<shard>.copy.json` | its allocation id and history |
//! | `indices/<uuid>/<shard>.leases.json` | its retention leases |
//!
//! In the virtual world the same paths name values on the host's virtual disk.

use std::cell::RefCell;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use world::{Env, Work};

use crate::error::Error;
use crate::state::{ClusterState, FoundCopy};
use policy::retention::Leases;

/// What is written beside a copy's files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CopyNote {
    pub(crate) allocation_id: String,
    /// Term of the primary that the copy was last in sync with.
    pub(crate) primary_term: u64,
}

/// A node's data directory.
pub(crate) struct NodeDisk {
    env: Env,
    root: PathBuf,
    lock: RefCell<Option<File>>,
}

impl NodeDisk {
    pub(crate) async fn open(env: &Env, node: &str, root: &Path) -> Result<NodeDisk, Error> {
        let root = root.to_owned();
        if env.is_virtual() {
            return Ok(NodeDisk { env: env.clone(), root, lock: RefCell::default() });
        }
        let dir = root.clone();
        let locked = env.work(Work::DiskSync, move || lock(&dir)).await;
        match locked {
            Ok(Some(file)) => {
                Ok(NodeDisk { env: env.clone(), root, lock: RefCell::new(Some(file)) })
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

    fn note_path(&self, index_uuid: &str, shard: u32) -> PathBuf {
        self.root.join("indices").join(index_uuid).join(format!("{shard}.copy.json"))
    }

    fn leases_path(&self, index_uuid: &str, shard: u32) -> PathBuf {
        self.root.join("indices").join(index_uuid).join(format!("{shard}.leases.json"))
    }

    fn state_path(&self) -> PathBuf {
        self.root.join("state.json")
    }

    /// Stores the cluster state. The virtual disk holds the state itself, as it has no use for its text.
    pub(crate) async fn write_state(&self, state: &Arc<ClusterState>) -> io::Result<()> {
        let path = self.state_path();
        if let Some(disk) = self.env.virtual_disk() {
            self.env.work(Work::DiskWrite { bytes: state.wire_bytes() }, || ()).await;
            self.env.work(Work::DiskSync, || ()).await;
            let place = disk.get::<Option<Arc<ClusterState>>>(&path.to_string_lossy());
            place.replace(Some(state.clone()));
            return Ok(());
        }
        let text = serde_json::to_string(&**state).expect("a state is plain data");
        self.write(path, text).await
    }

    /// The stored cluster state of node `name`; none if there is none yet.
    pub(crate) async fn read_state(&self, name: &str) -> Result<Option<Arc<ClusterState>>, Error> {
        let path = self.state_path();
        if let Some(disk) = self.env.virtual_disk() {
            let place = disk.get::<Option<Arc<ClusterState>>>(&path.to_string_lossy());
            return Ok(place.borrow().clone());
        }
        let read = self.read(path.clone()).await;
        let text = read.map_err(|source| {
            let (node, path) = (name.to_owned(), path.clone());
            Error::Data { node, what: "read", path, source }
        })?;
        let unreadable =
            |error: serde_json::Error| Error::State { path, reason: error.to_string() };
        text.map(|text| serde_json::from_str(&text)).transpose().map_err(unreadable)
    }

    /// Writes a small file so that it is there whole, or not at all.
    async fn write(&self, path: PathBuf, text: String) -> io::Result<()> {
        if let Some(disk) = self.env.virtual_disk() {
            self.env.work(Work::DiskSync, || ()).await;
            *disk.get::<String>(&path.to_string_lossy()).borrow_mut() = text;
            return Ok(());
        }
        self.env.work(Work::DiskSync, move || replace(&path, &text)).await
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
                Ok(text) => Ok(Some(text)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
                Err(error) => Err(error),
            })
            .await
    }

    pub(crate) async fn write_note(
        &self,
        index_uuid: &str,
        shard: u32,
        note: &CopyNote,
    ) -> io::Result<()> {
        let text = serde_json::to_string(note).expect("plain data");
        self.write(self.note_path(index_uuid, shard), text).await
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

    pub(crate) async fn read_note(&self, index_uuid: &str, shard: u32) -> Option<CopyNote> {
        let text = self.read(self.note_path(index_uuid, shard)).await.ok()??;
        serde_json::from_str(&text).ok()
    }

    /// Removes a copy: first the note, so that no half of it is ever taken for a whole.
    pub(crate) async fn remove_copy(&self, index_uuid: &str, shard: u32) -> io::Result<()> {
        let (note, dir) = (self.note_path(index_uuid, shard), self.copy_dir(index_uuid, shard));
        let leases = self.leases_path(index_uuid, shard);
        if let Some(disk) = self.env.virtual_disk() {
            disk.remove_under(&note.to_string_lossy());
            disk.remove_under(&leases.to_string_lossy());
            // With the slash: shard 1 is not the beginning of shard 10.
            disk.remove_under(&format!("{}/", dir.to_string_lossy()));
            return Ok(());
        }
        let work = Work::DiskWrite { bytes: 0 };
        self.env
            .work(work, move || {
                missing_is_fine(fs::remove_file(&note))?;
                missing_is_fine(fs::remove_file(&leases))?;
                missing_is_fine(fs::remove_dir_all(&dir))?;
                // The index's own directory goes with its last shard.
                let _ = dir.parent().map(fs::remove_dir);
                Ok(())
            })
            .await
    }

    /// The copies whose notes are there.
    pub(crate) async fn found_copies(&self) -> Vec<FoundCopy> {
        let mut found = Vec::new();
        for (index_uuid, shard) in self.notes().await {
            if let Some(note) = self.read_note(&index_uuid, shard).await {
                found.push(FoundCopy { index_uuid, shard, allocation_id: note.allocation_id });
            }
        }
        found
    }

    async fn notes(&self) -> Vec<(String, u32)> {
        let indices = self.root.join("indices");
        let paths: Vec<PathBuf> = match self.env.virtual_disk() {
            Some(disk) => {
                let under = disk.paths_under(&format!("{}/", indices.to_string_lossy()));
                under.into_iter().map(PathBuf::from).collect()
            }
            None => {
                let work = Work::DiskRead { bytes: 4096 };
                self.env.work(work, move || list_two_levels(&indices)).await
            }
        };
        let mut notes: Vec<(String, u32)> = paths.iter().filter_map(|p| note_of(p)).collect();
        notes.sort();
        notes
    }
}

fn note_of(path: &Path) -> Option<(String, u32)> {
    let shard = path.file_name()?.to_str()?.strip_suffix(".copy.json")?.parse().ok()?;
    let uuid = path.parent()?.file_name()?.to_str()?;
    Some((uuid.to_owned(), shard))
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

fn replace(path: &Path, text: &str) -> io::Result<()> {
    let dir = path.parent().expect("a file has a directory");
    fs::create_dir_all(dir)?;
    let fresh = path.with_extension("new");
    let mut file = File::create(&fresh)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&fresh, path)?;
    File::open(dir)?.sync_all()
}

fn missing_is_fine(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    async fn removes_one_copy_alone(env: Env) {
        let temporary = (!env.is_virtual()).then(|| tempfile::tempdir().unwrap());
        let root = temporary.as_ref().map_or(PathBuf::from("/data"), |dir| dir.path().to_owned());
        let disk = NodeDisk::open(&env, "n1", &root).await.unwrap();
        let mapping = query::Mapping::parse(&serde_json::json!({})).unwrap();
        for shard in [1, 10, 19] {
            let note = CopyNote { allocation_id: format!("copy{shard}"), primary_term: 1 };
            disk.write_note("uuid", shard, &note).await.unwrap();
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
        let left: Vec<u32> = disk.found_copies().await.iter().map(|copy| copy.shard).collect();
        assert_eq!(left, [10, 19]);
        assert!(store::committed(&env, &disk.copy_dir("uuid", 1)).await.unwrap().is_none());
        for shard in left {
            let dir = disk.copy_dir("uuid", shard);
            assert!(store::committed(&env, &dir).await.unwrap().is_some(), "shard {shard}");
        }
    }

    #[test]
    fn removes_one_copy_alone_in_both_worlds() {
        world::real_world::run(7, removes_one_copy_alone);
        world::virtual_world::run(7, removes_one_copy_alone);
    }
}
