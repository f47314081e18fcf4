//! Damage at rest: a node is killed, and while it is down something befalls a file of its copies. Afterwards all that
//! was acknowledged is there (the file says nothing that is not known elsewhere, or another copy repaired it). Where no
//! other copy in sync can have it, it may be refused by name instead. Never fewer documents.
//!
//! The virtual disk has values and no bytes: what a checksum would find of a segment file or a log is a mark. An older
//! version of those is not there to be put back. Of the manager's own state, which lies there twice, one file at most
//! is damaged: both are on real files alone (`tests/it/damage.rs`, `tests/it/every_file.rs`).

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use engine::state::ClusterState;
use serde_json::Value;
use world::{Env, VirtualDisk};

use crate::scenario::{Case, Chance, Fault, Scenario, Shape, Side, What};

/// Where a node of these runs keeps its copies.
const INDICES: &str = "/data/indices/";
/// What names damage in the explanation of a shard that has no primary.
const NAMES: [&str; 7] = [
    "is damaged",
    "another shard",
    "is missing",
    "no commit",
    "holds no shard copy",
    "its disk holds no copy",
    "which is not in sync",
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
}

const OF_TEXTS: [Damage; 5] =
    [Damage::Gone, Damage::Empty, Damage::CutInHalf, Damage::Older, Damage::AnotherShards];
const OF_COPIES: [Damage; 4] =
    [Damage::Gone, Damage::AnotherShards, Damage::SegmentFile, Damage::Log];

/// The files with the state of a manager.
const STATES: [&str; 2] = ["/data/state.json", "/data/state.second.json"];
/// Draws that came later have a stream of their own, so that no seed draws something else than before.
const STATES_DRAWN: u64 = 0x57A7E;

/// What a node's disk held early in the run.
#[derive(Clone, Default)]
pub struct Older {
    texts: BTreeMap<String, String>,
    state: Option<Arc<ClusterState>>,
}

fn is_text(path: &str) -> bool {
    path.ends_with(".copy.json") || path.ends_with(".leases.json")
}

pub fn look(disk: &VirtualDisk) -> Older {
    let paths = disk.paths_under(INDICES).into_iter().filter(|path| is_text(path));
    let texts = paths.map(|path| (path.clone(), disk.get::<String>(&path).borrow().clone()));
    let has_state = disk.contains(STATES[0]);
    let state = has_state.then(|| disk.get::<Option<Arc<ClusterState>>>(STATES[0]));
    Older { texts: texts.collect(), state: state.and_then(|state| state.borrow().clone()) }
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

/// Whether a copy in sync that is not the one on this disk may have what a shard has.
fn is_elsewhere(disk: &VirtualDisk, state: &ClusterState, path: &str) -> bool {
    let Some((uuid, number)) = shard_of(path) else { return true };
    let Some((name, _)) = state.indices.iter().find(|(_, meta)| meta.uuid == uuid) else {
        return true;
    };
    let own = format!("{INDICES}{uuid}/{number}.copy.json");
    let metadata = disk.contains(&own).then(|| disk.get::<String>(&own).borrow().clone());
    let metadata: Value = metadata.and_then(|m| serde_json::from_str(&m).ok()).unwrap_or_default();
    let routing = state.shard(name, number);
    routing.is_some_and(|shard| shard.in_sync.iter().any(|id| metadata["allocation_id"] != **id))
}

/// Damages a file of a node that is down. Whether each shard that is concerned has a copy in sync elsewhere; none where
/// nothing was done.
pub async fn befall(
    host: &Env,
    older: &Older,
    state: Option<&ClusterState>,
    drawn: u64,
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
        path if path.ends_with('/') => chance.one_of(&OF_COPIES),
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
        Damage::SegmentFile => {
            let _ = store::damage_largest_file(host, Path::new(path)).await;
        }
        Damage::Log => {
            store::damage_log(host, Path::new(path));
        }
    }
    Some(is_repairable)
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
