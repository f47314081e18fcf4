//! Every file of a node's copies, damaged in every way while the node is down. Afterwards all documents are there
//! (the file says nothing that is not known elsewhere, or another copy repaired it), or the copy is refused by name.
//! Never fewer.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use engine::transport::{LeaderShard, LeaseRequest, Request, Response, ShardAction, ShardAnswer};
use serde_json::Value;
use world::{Env, real_world};

use crate::common::Cluster;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Damage {
    Gone,
    /// So many bytes are left.
    CutTo(usize),
    OneBitTurned,
    /// What it was before the last writes.
    Older,
    /// The same file of the other shard.
    AnotherShards,
}

/// What befalls a file beside that it is cut.
const NOT_CUT: [Damage; 4] =
    [Damage::Gone, Damage::OneBitTurned, Damage::Older, Damage::AnotherShards];

const BLOCK_BYTES: usize = 4 << 10;
/// A node is started for each cut.
const BLOCKS_MAX: usize = 100;

/// Lengths to which a file is cut: nothing, a byte, half of it, all but a byte, and each block of a disk; of a file
/// with more than [`BLOCKS_MAX`] blocks no more than so many, spread evenly.
fn cuts(len: usize) -> BTreeSet<usize> {
    let blocks_between = len.div_ceil(BLOCK_BYTES * BLOCKS_MAX).max(1);
    let blocks = (0..len).step_by(BLOCK_BYTES * blocks_between);
    let some = [0, 1, len / 2, len.saturating_sub(1)];
    some.into_iter().filter(|cut| *cut < len).chain(blocks).collect()
}

pub type Files = BTreeMap<PathBuf, Vec<u8>>;

/// What lies in a directory, by path within it.
pub fn read_all(root: &Path) -> Files {
    let mut files = Files::new();
    let mut dirs = vec![root.to_owned()];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
            let path = entry.path();
            match entry.file_type().unwrap().is_dir() {
                true => dirs.push(path),
                false => {
                    let bytes = fs::read(&path).unwrap();
                    files.insert(path.strip_prefix(root).unwrap().to_owned(), bytes);
                }
            }
        }
    }
    files
}

pub fn write_all(root: &Path, files: &Files) {
    for (path, bytes) in files {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}

/// Nodes that were stopped.
struct Stopped {
    nodes: usize,
    older: Files,
    files: Files,
    digests: Vec<(u64, u64, String)>,
}

/// A follower's lease on each shard, so that it is on the disk.
async fn lease(c: &Cluster) {
    let state = c.any().state();
    for shard in 0..2 {
        let node = state.shard("a", shard).unwrap().primary().node.clone().unwrap();
        let ask = async |request| c.ask_node(&node, request).await.unwrap();
        let history = Request::Shard("a".to_owned(), shard, ShardAction::History);
        let Response::Shard(ShardAnswer::History(history_uuid)) = ask(history).await else {
            panic!("it has a history")
        };
        let (index, index_uuid) = ("a".to_owned(), state.indices["a"].uuid.clone());
        let leader = LeaderShard { index, index_uuid, shard, history_uuid };
        let id = "follower".to_owned();
        let lease = LeaseRequest { leader, id, from: Some(0), at_least: false };
        ask(Request::Lease(Box::new(lease))).await;
    }
}

/// In memory, where the system has such a place: many nodes start here, and none has to outlive the power.
fn directory() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// Nodes whose logs are kept by a lease, or trimmed with each flush.
async fn prepare(env: &Env, nodes: usize, is_leased: bool) -> Stopped {
    let dir = directory();
    let root = dir.path().to_owned();
    let mut c = Cluster::start_in(env, "c", nodes, |_| {}, Some(dir)).await;
    c.create("a", 2, nodes as u32 - 1).await;
    assert_eq!(c.index("a", 0, 100).await, 100);
    if is_leased {
        lease(&c).await;
    }
    c.post("/a/_flush").await;
    assert_eq!(c.index("a", 100, 150).await, 50);
    c.stop_all().await;
    let older = read_all(&root);
    c.start_all().await;
    c.green("a").await;
    c.post("/a/_flush").await;
    if is_leased {
        lease(&c).await;
    }
    assert_eq!(c.index("a", 150, 250).await, 100);
    let digests = c.digests("a").await;
    c.stop_all().await;
    Stopped { nodes, older, files: read_all(&root), digests }
}

/// The name in which the other shard has the like of a file.
fn of_the_other_shard(files: &Files, path: &Path) -> Option<PathBuf> {
    let text = path.to_str()?;
    let (index, rest) =
        text.split_at(text.find("/0").filter(|at| text[..*at].contains("indices"))? + 1);
    let other = format!("{index}1{}", &rest[1..]);
    if files.contains_key(Path::new(&other)) {
        return Some(other.into());
    }
    // Names of segment files are drawn.
    let (dir, extension) = (Path::new(&other).parent()?, path.extension()?);
    let mut like = files.keys().filter(|p| p.starts_with(dir) && p.extension() == Some(extension));
    like.next().cloned()
}

/// The files as they are with this damage; none where it leaves them as they are.
fn damaged(stopped: &Stopped, path: &Path, damage: Damage) -> Option<Files> {
    let mut files = stopped.files.clone();
    let bytes = files[path].clone();
    match damage {
        Damage::Gone => {
            files.remove(path);
        }
        Damage::CutTo(len) => {
            files.insert(path.to_owned(), bytes[..len].to_vec());
        }
        Damage::OneBitTurned => {
            let mut turned = bytes.clone();
            *turned.get_mut(bytes.len() / 2)? ^= 4;
            files.insert(path.to_owned(), turned);
        }
        Damage::Older => {
            files.insert(path.to_owned(), stopped.older.get(path)?.clone());
        }
        Damage::AnotherShards => {
            let other = of_the_other_shard(&files, path)?;
            let others = files.insert(other, bytes)?;
            files.insert(path.to_owned(), others);
        }
    }
    (files != stopped.files).then_some(files)
}

/// What became of it, in a word or two.
async fn outcome(env: &Env, stopped: &Stopped, files: &Files) -> Result<String, String> {
    let dir = directory();
    write_all(dir.path(), files);
    let c = Cluster::start_in(env, "c", stopped.nodes, |_| {}, Some(dir)).await;
    let result = judged(env, stopped, &c).await;
    c.stop().await;
    result
}

async fn judged(env: &Env, stopped: &Stopped, c: &Cluster) -> Result<String, String> {
    let mut said = String::new();
    // Some minutes, on a machine that is busy.
    for _ in 0..15_000 {
        let health = c.get("/_cluster/health").await;
        if health["status"] == "green" {
            let found = c.digests("a").await;
            return match found == stopped.digests {
                true => Ok("whole".to_owned()),
                false => Err(format!("green with {found:?} in place of {:?}", stopped.digests)),
            };
        }
        let (_, explained) = c.ask("GET", "/_cluster/allocation/explain", Value::Null).await;
        said = format!("{explained}");
        let names = [
            "is damaged", "another shard", "is missing", " and has ", "no commit",
            "holds no shard copy", "its disk holds no copy", "which is not in sync",
        ];
        // With another copy it is red for a moment only, until that one is the primary.
        let is_refused = stopped.nodes == 1 && health["status"] == "red";
        if is_refused && names.iter().any(|name| said.contains(name)) {
            return Ok(format!("refused: {said}"));
        }
        env.sleep(Duration::from_millis(20)).await;
    }
    Err(format!("neither whole nor refused by name: {said}"))
}

/// Every case of one node's first shard, and of what lies beside it; without leases those of its log and commit alone.
fn every_case(nodes: usize, is_leased: bool) {
    let stopped =
        real_world::run(7, move |env| async move { prepare(&env, nodes, is_leased).await });
    let is_taken = |path: &&PathBuf| {
        let text = path.to_str().unwrap();
        if !is_leased && !text.contains("oplog") && !text.ends_with(".json") {
            return false;
        }
        let is_another_shards = text.contains("/1/") || text.contains("/1.");
        text.starts_with("c-0") && !is_another_shards && !text.ends_with("node.lock")
    };
    let cases: Vec<(&PathBuf, Damage)> = stopped
        .files
        .iter()
        .filter(|(path, _)| is_taken(path))
        .flat_map(|(path, bytes)| {
            let cuts = cuts(bytes.len()).into_iter().map(Damage::CutTo);
            NOT_CUT.into_iter().chain(cuts).map(move |damage| (path, damage))
        })
        .collect();
    let (next, results) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some((path, damage)) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let Some(files) = damaged(&stopped, path, *damage) else { continue };
                    let found =
                        real_world::run(7, async |env| outcome(&env, &stopped, &files).await);
                    results.lock().unwrap().push((path, *damage, found));
                }
            });
        }
    });
    let mut results = results.into_inner().unwrap();
    results.sort();
    let mut failed = Vec::new();
    for (path, damage, found) in &results {
        let path = path.display();
        match found {
            Ok(_) => {}
            Err(why) => failed.push(format!("{path} {damage:?}: {why}")),
        }
    }
    assert!(
        failed.is_empty(),
        "{} of {} cases:\n{}",
        failed.len(),
        results.len(),
        failed.join("\n")
    );
    let least = if is_leased { 50 } else { 20 };
    assert!(results.len() > least, "{} cases", results.len());
}

#[test]
fn with_another_copy_all_documents_are_there() {
    every_case(2, true);
}

#[test]
fn without_another_copy_all_documents_are_there_or_it_is_refused_by_name() {
    every_case(1, true);
}

/// A log file that is gone may be one that was trimmed.
#[test]
fn nor_is_anything_lost_where_logs_are_trimmed() {
    every_case(2, false);
    every_case(1, false);
}
