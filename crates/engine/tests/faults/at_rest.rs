//! Damage at rest: a node is killed, and while it is down something befalls a file of its copies. Afterwards all that
//! was acknowledged is there (the file says nothing that is not known elsewhere, or another copy repaired it). Where no
//! other copy in sync can have it, it may be refused by name instead. Never fewer documents.
//!
//! The virtual disk has values and no bytes: what a checksum would find of a segment file or a log is a mark. So is an
//! older list of segments, the one file of a commit whose name was there before with another content. Of the manager's
//! own state, which lies there twice, one file at most is damaged: both are on real files alone (`tests/it/damage.rs`,
//! `tests/it/every_file.rs`).

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use engine::state::{ClusterState, IndexShardRoutingTable};
use query::Mapping;
use serde_json::Value;
use store::{Options, Shard, WriteRequest};
use world::{Env, VirtualDisk, virtual_world};

use crate::scenario::{Case, Chance, Fault, Scenario, Shape, Side, What};

/// Where a node of these runs keeps its copies.
const INDICES: &str = "/data/indices/";
/// What names damage in the explanation of a shard that has no primary.
const NAMES: [&str; 7] = [
    "is damaged", "another shard", "is missing", "no commit", "holds no shard copy",
    "its disk holds no copy", "which is not in sync",
];

/// What befalls a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    Gone,
    Empty,
    CutInHalf,
    Older,
    AnotherShards,
    /// One bit of a copy's largest committed file is turned.
    SegmentFile,
    /// A record of a copy's log is not what it was.
    Log,
    /// The list of segments of a copy's commit is that of an earlier one.
    OlderSegments,
    /// The log of a copy is what it was before this operation.
    OlderLog(u64),
}

const OF_TEXTS: [Damage; 5] =
    [Damage::Gone, Damage::Empty, Damage::CutInHalf, Damage::Older, Damage::AnotherShards];
const OF_COPIES: [Damage; 4] =
    [Damage::Gone, Damage::AnotherShards, Damage::SegmentFile, Damage::Log];

/// The files with the state of a manager.
const STATES: [&str; 2] = ["/data/state.json", "/data/state.second.json"];
/// Draws that came later have a stream of their own, so that no seed draws something else than before.
const STATES_DRAWN: u64 = 0x57A7E;
const OLDER_DRAWN: u64 = 0x1DE2;

/// What a node's disk held early in the run.
#[derive(Clone, Default)]
pub struct Older {
    texts: BTreeMap<String, String>,
    copies: BTreeMap<String, Reach>,
    state: Option<Arc<ClusterState>>,
}

/// How far a copy went.
#[derive(Clone, Copy)]
struct Reach {
    /// Of its commit.
    generation: u64,
    /// One more than the last operation of its commit.
    committed: u64,
    /// One more than the last operation that it has.
    next_seq_no: u64,
}

impl Reach {
    async fn of(host: &Env, path: &str) -> Option<Reach> {
        let dir = dir_of(path);
        let commit = store::committed(host, dir).await.ok()??;
        let next_seq_no = store::extent(host, dir).await.ok()?.next_seq_no;
        let committed = commit.max_seq_no.map_or(0, |max| max + 1);
        Some(Reach { generation: commit.generation, committed, next_seq_no })
    }
}

/// The directory of a copy, whose path on the disk ends with a slash.
fn dir_of(path: &str) -> &Path {
    Path::new(path.trim_end_matches('/'))
}

fn is_text(path: &str) -> bool {
    path.ends_with(".copy.json") || path.ends_with(".leases.json")
}

/// Looks at the disk of a host of the virtual world.
pub async fn look(host: &Env) -> Older {
    let Some(disk) = host.virtual_disk() else { return Older::default() };
    let mut older = Older::default();
    for path in disk.paths_under(INDICES) {
        if is_text(&path) {
            let text = disk.get::<String>(&path).borrow().clone();
            older.texts.insert(path, text);
        } else if path.ends_with('/')
            && let Some(reach) = Reach::of(host, &path).await
        {
            older.copies.insert(path, reach);
        }
    }
    if disk.contains(STATES[0]) {
        older.state = disk.get::<Option<Arc<ClusterState>>>(STATES[0]).borrow().clone();
    }
    older
}

/// Takes one of the files with a manager's state away, or puts an older one in its place: the other one has all of it.
fn befall_state(disk: &VirtualDisk, older: &Older, mut chance: Chance) {
    let path = chance.one_of(&STATES);
    if !disk.contains(path) || chance.percent(50) {
        return;
    }
    match &older.state {
        Some(state) if chance.percent(50) => {
            disk.get::<Option<Arc<ClusterState>>>(path).replace(Some(state.clone()));
        }
        _ => disk.remove_under(path),
    }
}

/// The uuid of the index and the number of the shard that a path is about.
fn shard_of(path: &str) -> Option<(&str, u32)> {
    let (uuid, rest) = path.strip_prefix(INDICES)?.split_once('/')?;
    let number = rest.split(['.', '/']).next()?.parse().ok()?;
    Some((uuid, number))
}

/// The shard that a path is about, and the metadata of the copy of it on this disk; none where the state has none.
fn shard_and_own<'a>(
    disk: &VirtualDisk,
    state: &'a ClusterState,
    path: &str,
) -> Option<(&'a IndexShardRoutingTable, Value)> {
    let (uuid, number) = shard_of(path)?;
    let (name, _) = state.indices.iter().find(|(_, meta)| meta.uuid == uuid)?;
    let own = format!("{INDICES}{uuid}/{number}.copy.json");
    let metadata = disk.contains(&own).then(|| disk.get::<String>(&own).borrow().clone());
    let metadata: Value = metadata.and_then(|m| serde_json::from_str(&m).ok()).unwrap_or_default();
    Some((state.shard(name, number)?, metadata))
}

/// Whether a copy in sync that is not the one on this disk may have what a shard has.
fn is_elsewhere(disk: &VirtualDisk, state: &ClusterState, path: &str) -> bool {
    let Some((shard, metadata)) = shard_and_own(disk, state, path) else { return true };
    shard.in_sync.iter().any(|id| metadata["allocation_id"] != **id)
}

/// Whether another copy in sync is in use, which takes the place of the one on this disk.
fn is_in_use_elsewhere(disk: &VirtualDisk, state: &ClusterState, path: &str) -> bool {
    let Some((shard, metadata)) = shard_and_own(disk, state, path) else { return false };
    let Some(own) = metadata["allocation_id"].as_str() else { return false };
    shard.copies.iter().any(|copy| {
        copy.is_started()
            && copy.allocation_id != own
            && shard.in_sync.contains(&copy.allocation_id)
    })
}

/// Which older file takes the place of one of a copy, where one does. A log that reaches as far as the commit can be
/// told by the word of another copy alone: `has_witness` says that there is one.
fn to_put_back(before: Reach, now: Reach, has_witness: bool, mut chance: Chance) -> Option<Damage> {
    if chance.percent(50) {
        return None;
    }
    let mut kinds = Vec::new();
    if before.generation < now.generation {
        kinds.push(Damage::OlderSegments);
    }
    let is_behind_commit = before.next_seq_no < now.committed;
    if is_behind_commit || (has_witness && before.next_seq_no < now.next_seq_no) {
        kinds.push(Damage::OlderLog(before.next_seq_no));
    }
    (!kinds.is_empty()).then(|| chance.one_of(&kinds))
}

/// Damages a file of a node that is down; `is_alone` says that nothing else befalls its cluster, and that it is not the
/// manager. Whether each shard that is concerned has a copy in sync elsewhere; none where nothing was done.
pub async fn befall(
    host: &Env,
    older: &Older,
    state: Option<&ClusterState>,
    drawn: u64,
    is_alone: bool,
) -> Option<bool> {
    let disk = host.virtual_disk()?;
    befall_state(&disk, older, Chance::new(drawn ^ STATES_DRAWN));
    let mut chance = Chance::new(drawn);
    let is_file =
        |path: &String| is_text(path) || path.ends_with('/') || path.ends_with("index.json");
    let paths: Vec<String> = disk.paths_under(INDICES).into_iter().filter(is_file).collect();
    if paths.is_empty() {
        return None;
    }
    let path = &paths[chance.between(0, paths.len() as u64 - 1) as usize];
    let damage = match path {
        path if is_text(path) => chance.one_of(&OF_TEXTS),
        path if path.ends_with('/') => {
            let damage = chance.one_of(&OF_COPIES);
            let has_witness =
                is_alone && state.is_some_and(|state| is_in_use_elsewhere(&disk, state, path));
            let chance = Chance::new(drawn ^ OLDER_DRAWN);
            let older = match (older.copies.get(path), Reach::of(host, path).await) {
                (Some(before), Some(now)) => to_put_back(*before, now, has_witness, chance),
                _ => None,
            };
            older.unwrap_or(damage)
        }
        _ => Damage::Gone,
    };
    let other = |path: &str| {
        let (uuid, number) = shard_of(path)?;
        let prefix = format!("{INDICES}{uuid}/");
        let like = path.strip_prefix(&format!("{prefix}{number}"))?;
        Some(format!("{prefix}{}{like}", 1 - number.min(1))).filter(|other| disk.contains(other))
    };
    let mut concerned = vec![path.clone()];
    if damage == Damage::AnotherShards {
        concerned.push(other(path)?);
    }
    let is_repairable =
        state.is_some_and(|state| concerned.iter().all(|path| is_elsewhere(&disk, state, path)));
    let text = |change: &dyn Fn(&str) -> String| {
        let place = disk.get::<String>(path);
        let changed = change(&place.borrow());
        place.replace(changed);
    };
    match damage {
        Damage::Gone => disk.remove_under(path),
        Damage::Empty => text(&|_| String::new()),
        Damage::CutInHalf => text(&|text| text[..text.len() / 2].to_owned()),
        Damage::Older => {
            let before = older.texts.get(path)?;
            text(&|_| before.clone());
        }
        Damage::AnotherShards => disk.exchange(&concerned[0], &concerned[1]),
        of_copy => {
            if !befall_copy(host, path, of_copy).await {
                return None;
            }
        }
    }
    Some(is_repairable)
}

/// Damages what a copy consists of; whether that was done. Nothing is where it was only being received.
async fn befall_copy(host: &Env, path: &str, damage: Damage) -> bool {
    let dir = dir_of(path);
    match damage {
        Damage::SegmentFile => store::damage_largest_file(host, dir).await.is_ok(),
        Damage::Log => store::damage_log(host, dir),
        Damage::OlderSegments => store::put_segments_back(host, dir),
        Damage::OlderLog(before) => store::put_log_back(host, dir, before),
        _ => false,
    }
}

/// Whether an explanation of an unassigned shard says that its data is damaged or gone.
pub fn names_damage(explained: &Value) -> bool {
    let said = explained.to_string();
    NAMES.iter().any(|name| said.contains(name))
}

impl Scenario {
    /// A run with damage: of one node, once or twice, and often another fault beside it.
    pub fn at_rest(case: &Case) -> Scenario {
        let mut scenario =
            Scenario::of(&Case { shape: Shape::Small, faults: None, ..case.clone() });
        let mut chance = Chance::new(case.seed ^ 0xDA3A6E);
        let load_ms = scenario.load_ms;
        let side = if chance.percent(60) { Side::Leader } else { Side::Follower };
        let nodes = if side == Side::Leader { scenario.leaders } else { scenario.followers };
        let node = chance.between(0, nodes as u64 - 1) as usize;
        let is_beside = |fault: &Fault| {
            matches!(fault.what, What::Kill(..) | What::Cut | What::Flush(_) | What::PauseFollowing)
        };
        scenario.faults.retain(is_beside);
        scenario.faults.truncate(2);
        for _ in 0..chance.between(1, 2) {
            let (at_ms, lasts_ms) =
                (chance.between(load_ms / 4, load_ms), chance.magnitude(10, 5_000));
            let what = What::Damage(side, node, chance.next());
            scenario.faults.push(Fault { at_ms, lasts_ms, what });
        }
        scenario
    }
}

/// A kind of damage that changes nothing would be counted all the same.
#[test]
fn what_befalls_a_copy_is_met_when_it_is_opened() {
    let kinds = [
        (Damage::SegmentFile, None),
        (Damage::Log, None),
        (Damage::OlderSegments, None),
        // The commit has more than that.
        (Damage::OlderLog(5), None),
        (Damage::OlderLog(15), Some(15)),
    ];
    for (damage, documents) in kinds {
        virtual_world::run(7, move |env| async move {
            // Made without what finds it below.
            let (host, dir) = (env.host("n"), format!("{INDICES}uuid/0"));
            let (path, dir, options) = (format!("{dir}/"), Path::new(&dir), Options::default);
            let mapping = Mapping::default();
            let shard = Shard::create(&host, dir, &mapping, options()).await.unwrap();
            for first in [0, 10] {
                let write = |n: u64| WriteRequest::index(n.to_string().into(), "{}".into());
                shard.flush().await.unwrap();
                shard.index((first..first + 10).map(write).collect()).await.unwrap();
            }
            shard.close().await.unwrap();
            assert!(befall_copy(&host, &path, damage).await, "{damage:?}");
            match (Shard::open(&host, dir, &mapping, options()).await, documents) {
                (Ok(shard), Some(left)) => {
                    assert_eq!(shard.digest().await.unwrap().documents, left)
                }
                (Err(error), None) => {
                    assert!(error.to_string().contains("is damaged"), "{damage:?}: {error}");
                }
                (opened, _) => panic!("{damage:?}: {:?}", opened.err()),
            }
        });
    }
}
