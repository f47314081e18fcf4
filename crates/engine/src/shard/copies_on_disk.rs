//! The copies that are on a node's disk: which are found there, and what is removed of them.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use world::Work;

use super::disk::{INDEX, NodeDisk};
use crate::error::Error;
use crate::planted;
use crate::state::FoundCopy;

/// What is on the disk of a node that starts.
#[derive(Default)]
pub(crate) struct FoundOnDisk {
    /// The copies whose metadata is there.
    pub(crate) copies: Vec<FoundCopy>,
    /// Directories of copies without metadata, by UUID of the index and shard: copies that were never complete, or are
    /// half deleted.
    pub(crate) unsigned: Vec<(String, u32)>,
    /// In words, what of them cannot be read.
    pub(crate) unreadable: Vec<String>,
}

impl NodeDisk {
    /// The copies that are here, and what may be of others.
    pub(crate) async fn found_copies(&self, node: &str) -> Result<FoundOnDisk, Error> {
        let paths = self.paths(node).await?;
        let signed = copies_of(&paths, ".copy.json");
        let mut unsigned = copies_of(&paths, "");
        unsigned.retain(|copy| signed.binary_search(copy).is_err());
        let mut found = FoundOnDisk { unsigned, ..FoundOnDisk::default() };
        for (index_uuid, shard) in signed {
            match self.read_metadata(&index_uuid, shard).await {
                Ok(Some(metadata)) => {
                    let dir = self.copy_dir(&index_uuid, shard);
                    let extent = store::extent(&self.env, &dir).await;
                    if let Err(error) = &extent {
                        let words = "so that the manager is not told how far this copy goes";
                        found.unreadable.push(format!("{error} ({words})"));
                    }
                    // What is another shard's is refused by name when the copy is opened.
                    let is_said = !self.env.is_planted(planted::EXTENTS_UNSAID);
                    let extent = extent
                        .ok()
                        .filter(|extent| is_said && metadata.is_of(&extent.history_uuid));
                    let certain = extent.as_ref().filter(|extent| !extent.is_loss_accepted);
                    found.copies.push(FoundCopy {
                        index_uuid,
                        shard,
                        allocation_id: metadata.allocation_id,
                        next_seq_no: certain.map(|extent| extent.next_seq_no),
                        global_checkpoint: extent.and_then(|extent| extent.global_checkpoint),
                    });
                }
                unread => found.unreadable.push(format!(
                    "{} cannot be read ({}), so that nobody knows which copy lies beside it; it is kept and not used",
                    self.metadata_path(&index_uuid, shard).display(),
                    unread.map_or_else(|error| error.to_string(), |_| "it is damaged".to_owned())
                )),
            }
        }
        Ok(found)
    }

    /// Whether there is metadata of copies here.
    pub(crate) async fn holds_copies(&self, node: &str) -> Result<bool, Error> {
        Ok(!copies_of(&self.paths(node).await?, ".copy.json").is_empty())
    }

    /// What lies beside the copies, and their directories. Fails where these cannot be listed: a node that took them
    /// for none would give the ids of its copies once more.
    async fn paths(&self, node: &str) -> Result<Vec<PathBuf>, Error> {
        let indices = self.root.join("indices");
        if let Some(disk) = self.env.virtual_disk() {
            let under = disk.paths_under(&format!("{}/", indices.to_string_lossy()));
            return Ok(under.into_iter().map(PathBuf::from).collect());
        }
        let work = Work::DiskRead { bytes: 4096 };
        let listed = self.env.work(work, move || list_two_levels(&indices)).await;
        listed.map_err(|(path, source)| {
            let node = node.to_owned();
            Error::Data { node, what: "list the copies in", path, source }
        })
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
            let Some(mut metadata) = turns[0].take() else { return Ok(paths) };
            let mut leases = turns[1].take();
            // Also where it fails: what was to be written before must not appear beside what is left.
            *metadata = turns[0].number;
            leases.iter_mut().for_each(|made| **made = turns[1].number);
            for path in &paths {
                remove_file(path)?;
            }
            // Whoever works there would go on in what comes to this place next.
            let _lock = store::until_free(&dir).map_err(|e| io::Error::other(e.to_string()))?;
            missing_is_fine(fs::remove_dir_all(&dir)).map(|()| paths)
        };
        let paths = self.env.work(work, remove).await?;
        self.turns.forget(&paths);
        Ok(())
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
        let (turn, written) = (self.turns.next(&path), [path.clone()]);
        let remove = move || {
            // Otherwise a copy has come here since.
            let Some(mut made) = turn.take() else { return };
            let is_own = |entry: fs::DirEntry| entry.path().with_extension("json") == path;
            let is_empty = match fs::read_dir(&dir) {
                Ok(mut left) => left.all(|entry| entry.is_ok_and(is_own)),
                // One that cannot be read may hold copies.
                Err(error) => error.kind() == ErrorKind::NotFound,
            };
            if is_empty {
                // What was to be written before would make the directory again.
                *made = turn.number;
                // What stays of it is litter, and no copy.
                let _ = remove_file(&path).and_then(|()| fs::remove_dir(&dir));
            }
        };
        self.env.work(work, remove).await;
        self.turns.forget(&written);
    }

    /// Removes what a kill left of indices after their last copy here was gone. For a node that has opened none yet.
    pub(crate) async fn remove_empty_indices(&self, node: &str) -> Result<(), Error> {
        let paths = self.paths(node).await?;
        let is_left = |path: &&PathBuf| path.with_extension("json").ends_with(INDEX);
        let (left, others): (Vec<&PathBuf>, Vec<&PathBuf>) = paths.iter().partition(is_left);
        let dirs = |paths: Vec<&PathBuf>| -> BTreeSet<PathBuf> {
            paths.iter().filter_map(|path| path.parent()).map(Path::to_owned).collect()
        };
        for dir in dirs(left).difference(&dirs(others)) {
            if let Some(index_uuid) = dir.file_name().and_then(|name| name.to_str()) {
                self.remove_empty_index(index_uuid).await;
            }
        }
        Ok(())
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

/// What is in the directories in a directory; or the one that cannot be listed, and why.
fn list_two_levels(dir: &Path) -> Result<Vec<PathBuf>, (PathBuf, io::Error)> {
    let mut paths = Vec::new();
    for dir in list(dir)? {
        paths.extend(list(&dir)?);
    }
    Ok(paths)
}

fn list(dir: &Path) -> Result<Vec<PathBuf>, (PathBuf, io::Error)> {
    let listed: io::Result<Vec<PathBuf>> =
        fs::read_dir(dir).and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect());
    match listed {
        // Gone meanwhile, or a file that somebody left here.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(Vec::new())
        }
        listed => listed.map_err(|error| (dir.to_owned(), error)),
    }
}

/// Removes a small file, and what a kill or a full disk left of one that was to replace it.
fn remove_file(path: &Path) -> io::Result<()> {
    missing_is_fine(fs::remove_file(path))?;
    missing_is_fine(fs::remove_file(path.with_extension("new")))
}

fn missing_is_fine(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;
    use std::sync::Arc;
    use std::time::Duration;

    use policy::retention::Leases;
    use world::Env;

    use super::super::disk::CopyMetadata;
    use super::*;
    use crate::state::{IndexMeta, StoredIndex};

    testbed::both_worlds!(
        removes_one_copy_alone,
        what_an_index_was_goes_at_the_next_start_where_its_copies_are_gone;
        real:
        a_directory_that_cannot_be_listed_is_not_taken_for_an_empty_one,
        a_copy_is_removed_behind_whoever_still_works_in_it,
        what_was_written_of_an_index_that_is_gone_takes_neither_memory_nor_room,
        what_an_index_was_is_not_written_once_it_is_gone,
        what_an_index_is_is_written_again_though_it_reads_the_same,
    );

    async fn removes_one_copy_alone(env: Env) {
        let temporary = (!env.is_virtual()).then(|| tempfile::tempdir().unwrap());
        let root = temporary.as_ref().map_or(PathBuf::from("/data"), |dir| dir.path().to_owned());
        let disk = NodeDisk::open(&env, "n1", &root).await.unwrap();
        let mapping = query::Mapping::parse(&serde_json::json!({})).unwrap();
        for shard in [1, 10, 19] {
            disk.write_metadata("uuid", shard, &CopyMetadata::default()).await.unwrap();
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
        let found = disk.found_copies("n1").await.unwrap();
        let left: Vec<u32> = found.copies.iter().map(|copy| copy.shard).collect();
        assert_eq!(left, [10, 19]);
        assert!(found.unsigned.is_empty(), "{:?}", found.unsigned);
        assert!(store::committed(&env, &disk.copy_dir("uuid", 1)).await.unwrap().is_none());
        for shard in left {
            let dir = disk.copy_dir("uuid", shard);
            assert!(store::committed(&env, &dir).await.unwrap().is_some(), "shard {shard}");
        }
    }

    async fn what_an_index_was_goes_at_the_next_start_where_its_copies_are_gone(env: Env) {
        let temporary = (!env.is_virtual()).then(|| tempfile::tempdir().unwrap());
        let root = temporary.as_ref().map_or(PathBuf::from("/data"), |dir| dir.path().to_owned());
        let disk = NodeDisk::open(&env, "n1", &root).await.unwrap();
        let index = write_index(&disk).await;
        disk.write_metadata("uuid", 0, &CopyMetadata::default()).await.unwrap();
        disk.remove_empty_indices("n1").await.unwrap();
        assert!(disk.paths("n1").await.unwrap().contains(&index), "it has a copy here");
        disk.remove_copy("uuid", 0).await.unwrap();
        disk.remove_empty_indices("n1").await.unwrap();
        assert_eq!(disk.paths("n1").await.unwrap(), Vec::<PathBuf>::new());
    }

    async fn a_directory_that_cannot_be_listed_is_not_taken_for_an_empty_one(env: Env) {
        let root = tempfile::tempdir().unwrap();
        let disk = NodeDisk::open(&env, "n1", root.path()).await.unwrap();
        let indices = root.path().join("indices");
        fs::write(indices.join("file"), "of somebody else").unwrap();
        assert!(!disk.holds_copies("n1").await.unwrap());
        // Whoever follows it comes to no end.
        std::os::unix::fs::symlink("loop", indices.join("loop")).unwrap();
        let failed = disk.found_copies("n1").await.err().unwrap().to_string();
        assert!(failed.starts_with("node n1 cannot list") && failed.contains("loop: "), "{failed}");
        disk.holds_copies("n1").await.unwrap_err();
    }

    /// A task that was ended may have work on another thread, which knows nothing of that.
    async fn a_copy_is_removed_behind_whoever_still_works_in_it(env: Env) {
        let root = tempfile::tempdir().unwrap();
        let disk = NodeDisk::open(&env, "n1", root.path()).await.unwrap();
        let dir = disk.copy_dir("uuid", 0);
        fs::create_dir_all(&dir).unwrap();
        let lock = store::until_free(&dir).unwrap().unwrap();
        disk.remove_copy("uuid", 0).await.unwrap_err();
        assert!(dir.exists(), "somebody works there");
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
    }

    async fn write_index(disk: &NodeDisk) -> PathBuf {
        let meta = IndexMeta { uuid: "uuid".to_owned(), ..IndexMeta::default() };
        let stored = StoredIndex { index: "a".to_owned(), meta };
        disk.write_index(&Arc::new(stored)).await.unwrap();
        disk.index_path("uuid")
    }

    /// A full disk, or a kill, leaves files that were to replace others.
    async fn what_was_written_of_an_index_that_is_gone_takes_neither_memory_nor_room(env: Env) {
        let root = tempfile::tempdir().unwrap();
        let disk = NodeDisk::open(&env, "n1", root.path()).await.unwrap();
        let index = write_index(&disk).await;
        for path in [index.clone(), disk.metadata_path("uuid", 0), disk.leases_path("uuid", 0)] {
            fs::write(path.with_extension("new"), "half").unwrap();
        }
        disk.remove_empty_index("uuid").await;
        assert!(index.exists(), "a copy is not removed yet");
        disk.remove_copy("uuid", 0).await.unwrap();
        disk.remove_empty_index("uuid").await;
        assert!(!index.parent().unwrap().exists());
        assert!(disk.turns.files.borrow().is_empty());
    }

    /// It may be written on another thread, which comes last.
    async fn what_an_index_was_is_not_written_once_it_is_gone(env: Env) {
        let root = tempfile::tempdir().unwrap();
        let disk = NodeDisk::open(&env, "n1", root.path()).await.unwrap();
        let index = write_index(&disk).await;
        let late = disk.turns.next(&index);
        disk.remove_empty_index("uuid").await;
        assert!(late.take().is_none(), "it would make the directory again");
        assert!(!index.parent().unwrap().exists());
        write_index(&disk).await;
        assert!(index.exists(), "it has a copy here again");
    }

    /// Its name may be durable or not: nobody knows who wrote it, and what came of the sync.
    async fn what_an_index_is_is_written_again_though_it_reads_the_same(env: Env) {
        let root = tempfile::tempdir().unwrap();
        let disk = NodeDisk::open(&env, "n1", root.path()).await.unwrap();
        let index = write_index(&disk).await;
        let inode = || fs::metadata(&index).unwrap().ino();
        let before = inode();
        // So that no other file gets its number.
        fs::hard_link(&index, index.with_file_name("kept")).unwrap();
        write_index(&disk).await;
        assert_ne!(inode(), before);
    }
}
