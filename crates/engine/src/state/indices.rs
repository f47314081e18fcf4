//! Indices: made, changed and deleted.

use std::sync::Arc;

use serde_json::Value;

use super::loads::Loads;
use super::manager::Applied;
use super::{
    Change, ClusterState, FollowOrigin, IndexMeta, ShardCopy, ShardRouting, StateError,
    UnassignedReason, mapping,
};
use crate::settings::{self, Scope, SettingError, SettingsMap, Update, When, check_update};

pub(super) const SHARDS: &str = "index.number_of_shards";
pub(super) const REPLICAS: &str = "index.number_of_replicas";

pub(super) fn create_index(
    state: &mut ClusterState,
    now_ms: u64,
    index: String,
    leader: Option<FollowOrigin>,
    update: &Update,
    mappings: &Value,
) -> Applied {
    check_name(&index)?;
    if state.indices.contains_key(&index) {
        return Err(StateError::IndexExists { index });
    }
    let mappings = mapping::merge(&Value::Null, mappings)?;
    let mut given = SettingsMap::new();
    settings::apply(&mut given, &check_update(Scope::Index, When::Start, update)?);
    let typed = settings::IndexSettings::resolve(&given);
    let (shards, replicas) = (typed.number_of_shards(), typed.number_of_replicas());
    given.insert(SHARDS.to_owned(), shards.to_string());
    given.insert(REPLICAS.to_owned(), replicas.to_string());
    let uuid = state.ids.next_id();
    let routing = (0..shards).map(|_| new_shard(state, replicas, now_ms)).collect();
    let meta = IndexMeta {
        uuid,
        shards,
        replicas,
        mappings,
        mapping_version: 1,
        settings: given,
        settings_version: 1,
        created_ms: now_ms,
        leader,
    };
    state.routing.insert(index.clone(), Arc::new(routing));
    state.indices.insert(index.clone(), Arc::new(meta));
    Ok(vec![Change::IndexCreated { index }])
}

fn new_shard(state: &mut ClusterState, replicas: u32, now_ms: u64) -> ShardRouting {
    let reason = UnassignedReason::IndexCreated;
    let mut copy = |n: u32| ShardCopy::new(state.ids.next_id(), n == 0, reason, now_ms);
    let copies = (0..=replicas).map(&mut copy).collect();
    ShardRouting { primary_term: 1, in_sync: Default::default(), copies }
}

/// The rules of Elasticsearch for names of indices.
fn check_name(index: &str) -> Result<(), StateError> {
    let why = if index.is_empty() || index == "." || index == ".." {
        "it must not be empty, . or .."
    } else if index.starts_with(['_', '-', '+']) {
        "it must not start with _, - or +"
    } else if index.contains(|c: char| c.is_whitespace() || "\\/*?\"<>|,#:".contains(c)) {
        "it must not contain spaces or \\ / * ? \" < > | , # :"
    } else if index.to_lowercase() != index {
        "it must be lower case"
    } else if index.len() > 255 {
        "it must not be longer than 255 bytes"
    } else {
        return Ok(());
    };
    Err(StateError::IndexName { index: index.to_owned(), why })
}

pub(super) fn create_follower(
    state: &mut ClusterState,
    now_ms: u64,
    index: String,
    leader: FollowOrigin,
    shards: u32,
    mut update: Update,
    mappings: &Value,
) -> Applied {
    let settings = state.settings();
    if !settings.remotes().contains_key(&leader.remote_cluster) {
        let known = settings.remotes().keys().map(String::as_str);
        let hint = record::names::did_you_mean(&leader.remote_cluster, known);
        return Err(StateError::NoSuchRemote { alias: leader.remote_cluster, hint });
    }
    let shards = shards.to_string();
    if let Some(Some(given)) = update.insert(SHARDS.to_owned(), Some(shards.clone()))
        && given != shards
    {
        let why = format!("a follower has as many shards as its leader, which has {shards}");
        return Err(SettingError::Value { name: SHARDS.to_owned(), value: given, why }.into());
    }
    create_index(state, now_ms, index, Some(leader), &update, mappings)
}

pub(super) fn find<'a>(
    state: &'a mut ClusterState,
    index: &str,
) -> Result<&'a mut IndexMeta, StateError> {
    if !state.indices.contains_key(index) {
        let hint = record::names::did_you_mean(index, state.indices.keys().map(String::as_str));
        return Err(StateError::NoSuchIndex { index: index.to_owned(), hint });
    }
    Ok(Arc::make_mut(state.indices.get_mut(index).expect("it is contained")))
}

pub(super) fn delete_index(state: &mut ClusterState, index: String) -> Applied {
    let uuid = find(state, &index)?.uuid.clone();
    state.indices.remove(&index);
    state.routing.remove(&index);
    state.disks.remove_index(&uuid);
    Ok(vec![Change::IndexDeleted { index, uuid }])
}

pub(super) fn put_mapping(state: &mut ClusterState, index: String, mappings: &Value) -> Applied {
    let meta = find(state, &index)?;
    let merged = mapping::merge(&meta.mappings, mappings)?;
    if merged == meta.mappings {
        return Ok(Vec::new());
    }
    meta.mappings = merged;
    meta.mapping_version += 1;
    Ok(vec![Change::MappingsChanged { index }])
}

pub(super) fn put_index_settings(
    state: &mut ClusterState,
    now_ms: u64,
    index: String,
    update: &Update,
) -> Applied {
    let meta = find(state, &index)?;
    let update = check_update(Scope::Index, When::Running, update)?;
    let before = meta.settings.clone();
    settings::apply(&mut meta.settings, &update);
    // Taken back with `index.*` or by null, these two still stand in the map.
    meta.settings.insert(SHARDS.to_owned(), meta.shards.to_string());
    let replicas = meta.typed_settings().number_of_replicas();
    meta.settings.insert(REPLICAS.to_owned(), replicas.to_string());
    let changed = |name: &&String| before.get(*name) != meta.settings.get(*name);
    let mut names: Vec<String> =
        before.keys().chain(meta.settings.keys()).filter(changed).cloned().collect();
    names.sort();
    names.dedup();
    if names.is_empty() {
        return Ok(Vec::new());
    }
    meta.settings_version += 1;
    meta.replicas = replicas;
    if names.iter().all(|name| name != REPLICAS) {
        return Ok(vec![Change::IndexSettingsChanged { index, names }]);
    }
    let shards = meta.shards;
    let mut loads = Loads::of(state, &state.settings());
    let mut changes = vec![Change::IndexSettingsChanged { index: index.clone(), names }];
    for number in 0..shards {
        add_replicas(state, now_ms, &index, number, replicas);
        remove_replicas(state, &index, number, replicas, &mut loads, &mut changes);
    }
    Ok(changes)
}

fn add_replicas(state: &mut ClusterState, now_ms: u64, index: &str, number: u32, replicas: u32) {
    let has = state.routing[index][number as usize].copies.len();
    for _ in has..replicas as usize + 1 {
        let reason = UnassignedReason::ReplicaAdded;
        let copy = ShardCopy::new(state.ids.next_id(), false, reason, now_ms);
        state.shard_mut(index, number).expect("the index has it").copies.push(copy);
    }
}

/// Removes the replicas that are least of use: those on no node, then those that still recover, then
/// those on the fullest node. What they leave in the in-sync set goes when it is bounded.
fn remove_replicas(
    state: &mut ClusterState,
    index: &str,
    number: u32,
    replicas: u32,
    loads: &mut Loads,
    changes: &mut Vec<Change>,
) {
    while state.routing[index][number as usize].copies.len() > replicas as usize + 1 {
        let shard = state.shard_mut(index, number).expect("the index has it");
        let use_of = |copy: &ShardCopy| {
            let load = copy.node.as_ref().map_or(0, |node| loads.get(node).copies);
            (copy.is_assigned(), copy.is_started(), std::cmp::Reverse(load))
        };
        let removable = shard.copies.iter().enumerate().filter(|(_, copy)| !copy.primary);
        let least = removable.min_by_key(|(_, copy)| use_of(copy)).map(|(at, _)| at);
        let copy = shard.copies.remove(least.expect("there are more copies than the primary"));
        if let Some(node) = &copy.node {
            loads.remove(node, copy.recovery());
        }
        let allocation_id = copy.allocation_id;
        changes.push(Change::Removed { index: index.to_owned(), shard: number, allocation_id });
    }
}
