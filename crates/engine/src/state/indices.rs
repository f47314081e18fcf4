//! Indices: made, changed and deleted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use policy::routing;
use query::mapping::DEPTH_MAX;
use serde_json::Value;

use super::applied::{Applied, NewIndex, bad_name, check_remote, find, find_meant};
use super::recovery_counts::RecoveryCounts;
use super::tombstones::Tombstone;
use super::{
    Aliases, Change, ClusterState, FollowOrigin, Index, IndexMeta, IndexShardRoutingTable, Made,
    ShardCopy, StateError, UnassignedReason, check_aliases, mapping,
};
use crate::settings::{self, SettingError, SettingScope, SettingsMap, Update, When, check_update};

pub(super) const SHARDS: &str = "index.number_of_shards";
pub(super) const REPLICAS: &str = "index.number_of_replicas";
const ROUTING_SHARDS: &str = "index.number_of_routing_shards";

pub(super) fn create_index(state: &mut ClusterState, now_ms: u64, new: NewIndex) -> Applied {
    make_index(state, now_ms, new, true)
}

/// Whether the cluster may have so many shards more, with so many copies of each (`cluster.max_shards_per_node`).
fn check_room(state: &ClusterState, shards: u32, copies: u32) -> Result<(), StateError> {
    let of = |shards: u32, copies: u32| u64::from(shards) * u64::from(copies);
    let added = of(shards, copies);
    // As in the field, those of closed indices do not count.
    let open = state.indices.values().filter(|meta| !meta.closed);
    let now = open.map(|meta| of(meta.shards, meta.replicas + 1)).sum::<u64>();
    let settings = state.settings();
    let counts = |node: &&String| !settings.uncounted_nodes().contains(node);
    let nodes = state.present.iter().filter(counts).count() as u64;
    let most = u64::from(settings.max_shards_per_node()) * nodes;
    // As in the field: without nodes nothing is counted.
    match !state.present.is_empty() && now + added > most {
        true => Err(StateError::TooManyShards { added, now, most }),
        false => Ok(()),
    }
}

/// As [`create_index`]; where it is not bounded, however many shards there are.
pub(super) fn make_index(
    state: &mut ClusterState,
    now_ms: u64,
    new: NewIndex,
    is_bounded: bool,
) -> Applied {
    let NewIndex { index, leader, made } = new;
    let Made { settings: update, mappings, aliases } = made;
    check_new(state, &index, &aliases)?;
    let mappings = mapping::merge(&Value::Null, &mappings)?;
    let mut given = SettingsMap::new();
    settings::apply(&mut given, &check_update(SettingScope::Index, When::Start, &update)?);
    let typed = settings::IndexSettings::resolve(&given);
    let (shards, replicas) = (typed.number_of_shards(), typed.number_of_replicas());
    let routing_shards = match given.contains_key(ROUTING_SHARDS) {
        true => typed.number_of_routing_shards(),
        false => routing::routing_shards(shards),
    };
    check_routing_shards(routing_shards, shards)?;
    given.insert(SHARDS.to_owned(), shards.to_string());
    given.insert(REPLICAS.to_owned(), replicas.to_string());
    check_fields(&mappings, leader.is_none().then(|| typed.total_fields_limit()))?;
    if is_bounded {
        check_room(state, shards, replicas + 1)?;
    }
    let uuid = state.ids.next_id();
    let copies = (0..shards).map(|_| new_shard(state, replicas, now_ms)).collect();
    let meta = IndexMeta {
        uuid,
        shards,
        routing_shards: Some(routing_shards),
        replicas,
        mappings,
        mapping_version: 1,
        settings: given,
        settings_version: 1,
        aliases,
        aliases_version: 1,
        created_ms: now_ms,
        leader,
        has_followed: false,
        closed: false,
    };
    state.routing.insert(index.clone(), Arc::new(copies));
    state.indices.insert(index.clone(), Arc::new(meta));
    Ok(vec![Change::Index { index }])
}

fn check_routing_shards(routing_shards: u32, shards: u32) -> Result<(), StateError> {
    if routing::is_multiple(routing_shards, shards) {
        return Ok(());
    }
    let why = format!("it must be a multiple of index.number_of_shards, which is {shards}");
    let (name, value) = (ROUTING_SHARDS.to_owned(), routing_shards.to_string());
    Err(SettingError::Value { name, value, why }.into())
}

pub(super) fn check_new(
    state: &ClusterState,
    index: &str,
    aliases: &Aliases,
) -> Result<(), StateError> {
    check_index_name(index)?;
    let index = index.to_owned();
    if state.indices.contains_key(&index) {
        return Err(StateError::IndexExists { index });
    }
    if state.aliased(&index).next().is_some() {
        return Err(StateError::IndexName { index, why: "an alias has this name" });
    }
    let changed = BTreeMap::from([(index, aliases.clone())]);
    check_aliases::check(state, &changed, &BTreeSet::new())
}

fn new_shard(state: &mut ClusterState, replicas: u32, now_ms: u64) -> IndexShardRoutingTable {
    let reason = UnassignedReason::IndexCreated;
    let mut copy = |n: u32| ShardCopy::new(state.ids.next_id(), n == 0, reason, now_ms);
    let copies = (0..=replicas).map(&mut copy).collect();
    IndexShardRoutingTable { primary_term: 1, in_sync: Default::default(), copies }
}

/// The rules of Elasticsearch for names of indices; and no control characters, which it takes.
pub fn check_index_name(index: &str) -> Result<(), StateError> {
    let lower = "it must be lower case";
    let why = bad_name(index).or((index.to_lowercase() != index).then_some(lower));
    why.map_or(Ok(()), |why| Err(StateError::IndexName { index: index.to_owned(), why }))
}

/// A follower: as many shards as its leader, documents in the same of them, and of its aliases those that can be here,
/// for reading alone.
pub(super) fn create_follower(
    state: &mut ClusterState,
    now_ms: u64,
    mut new: NewIndex,
    leader: FollowOrigin,
    (shards, routing_shards): (u32, Option<u32>),
) -> Applied {
    check_remote(state, &leader.remote_cluster)?;
    check_routing_shards(routing_shards.unwrap_or(shards), shards)?;
    if let Some(Some(value)) = new.made.settings.remove(ROUTING_SHARDS) {
        let why = "a follower has the routing shards of its leader; leave it out".to_owned();
        return Err(SettingError::Value { name: ROUTING_SHARDS.to_owned(), value, why }.into());
    }
    let shards = shards.to_string();
    if let Some(Some(given)) = new.made.settings.insert(SHARDS.to_owned(), Some(shards.clone()))
        && given != shards
    {
        let why = format!("a follower has as many shards as its leader, which has {shards}");
        return Err(SettingError::Value { name: SHARDS.to_owned(), value: given, why }.into());
    }
    let can_be_here = |alias: &String| *alias != new.index && !state.indices.contains_key(alias);
    new.made.aliases.retain(|alias, _| can_be_here(alias));
    new.made.aliases.values_mut().for_each(|alias| *alias = alias.for_reading());
    new.leader = Some(leader);
    let index = new.index.clone();
    let changes = create_index(state, now_ms, new)?;
    find(state, &index)?.routing_shards = routing_shards;
    Ok(changes)
}

pub(super) fn delete_index(state: &mut ClusterState, now_ms: u64, index: Index) -> Applied {
    find_meant(state, &index)?;
    remove_index(state, now_ms, index.name)
}

/// Deletes the index that has this name.
pub(super) fn remove_index(state: &mut ClusterState, now_ms: u64, index: String) -> Applied {
    let uuid = find(state, &index)?.uuid.clone();
    state.indices.remove(&index);
    state.routing.remove(&index);
    state.disks.remove_index(&uuid);
    state.extents.remove_index(&uuid);
    state.tombstones.add(Tombstone { index, uuid, deleted_ms: now_ms });
    Ok(vec![Change::Other])
}

/// Closes an index, or opens it; where it is so already, nothing changes.
pub(super) fn set_closed(state: &mut ClusterState, index: Index, closed: bool) -> Applied {
    let meta = find_meant(state, &index)?;
    if meta.closed == closed {
        return Ok(Vec::new());
    }
    let (shards, copies) = (meta.shards, meta.replicas + 1);
    if !closed {
        check_room(state, shards, copies)?;
    }
    find(state, &index.name)?.closed = closed;
    Ok(vec![Change::Other])
}

pub(super) fn put_mapping(state: &mut ClusterState, index: Index, mappings: &Value) -> Applied {
    let meta = find_meant(state, &index)?;
    let merged = mapping::merge(&meta.mappings, mappings)?;
    if merged == meta.mappings {
        return Ok(Vec::new());
    }
    let limit = meta.leader.is_none().then(|| meta.typed_settings().total_fields_limit());
    check_fields(&merged, limit)?;
    meta.mappings = merged;
    meta.mapping_version += 1;
    Ok(vec![Change::Other])
}

/// Objects and lists within each other in mappings: more than [`DEPTH_MAX`] fields need, and few enough that the state
/// around them can be read again, of which JSON's reader takes 127.
const NESTING_MAX: usize = 64;

fn nesting(json: &Value) -> usize {
    match json {
        Value::Array(items) => 1 + items.iter().map(nesting).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(nesting).max().unwrap_or(0),
        _ => 0,
    }
}

/// Whether an index can have these fields. A follower has as many as its leader and so no `limit`; but the depth of a
/// hostile leader's would make the state unreadable here.
fn check_fields(mappings: &Value, limit: Option<u32>) -> Result<(), StateError> {
    let mapping = query::Mapping::stored(mappings);
    let mapping = mapping.map_err(|error| StateError::Mapping(error.to_string()))?;
    if mapping.depth() > DEPTH_MAX {
        let why = format!("Limit of mapping depth [{DEPTH_MAX}] has been exceeded");
        return Err(StateError::Mapping(why));
    }
    if nesting(mappings) > NESTING_MAX {
        let why = format!(
            "objects and lists are nested deeper than {NESTING_MAX}, counting [_meta] and [meta]"
        );
        return Err(StateError::Mapping(why));
    }
    match limit.filter(|limit| mapping.total_fields() > *limit as usize) {
        Some(limit) => Err(StateError::TooManyFields { limit }),
        None => Ok(()),
    }
}

pub(super) fn put_index_settings(
    state: &mut ClusterState,
    now_ms: u64,
    index: Index,
    update: &Update,
) -> Applied {
    let meta = find_meant(state, &index)?;
    let index = index.name;
    let update = check_update(SettingScope::Index, When::Running, update)?;
    let before = meta.settings.clone();
    let mut after = before.clone();
    settings::apply(&mut after, &update);
    let replicas = settings::IndexSettings::resolve(&after).number_of_replicas();
    let (shards, more) = (meta.shards, replicas.saturating_sub(meta.replicas));
    if more > 0 && !meta.closed {
        check_room(state, shards, more)?;
    }
    let meta = find(state, &index)?;
    meta.settings = after;
    // Taken back with `index.*` or by null, it still stands in the map.
    meta.settings.insert(REPLICAS.to_owned(), replicas.to_string());
    let changed = |name: &&String| before.get(*name) != meta.settings.get(*name);
    let names: Vec<String> =
        before.keys().chain(meta.settings.keys()).filter(changed).cloned().collect();
    if names.is_empty() {
        return Ok(Vec::new());
    }
    meta.settings_version += 1;
    meta.replicas = replicas;
    if names.iter().all(|name| name != REPLICAS) {
        return Ok(vec![Change::Index { index }]);
    }
    let mut counts = RecoveryCounts::of(state, &state.settings());
    let mut changes = vec![Change::Index { index: index.clone() }];
    for number in 0..shards {
        add_replicas(state, now_ms, &index, number, replicas);
        remove_replicas(state, &index, number, replicas, &mut counts, &mut changes);
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
    counts: &mut RecoveryCounts,
    changes: &mut Vec<Change>,
) {
    while state.routing[index][number as usize].copies.len() > replicas as usize + 1 {
        let shard = state.shard_mut(index, number).expect("the index has it");
        let use_of = |copy: &ShardCopy| {
            let load = copy.node.as_ref().map_or(0, |node| counts.get(node).copies);
            (copy.is_assigned(), copy.is_started(), std::cmp::Reverse(load))
        };
        let removable = shard.copies.iter().enumerate().filter(|(_, copy)| !copy.primary);
        let least = removable.min_by_key(|(_, copy)| use_of(copy)).map(|(at, _)| at);
        let least = least.expect("there are more copies than the primary");
        let target = shard.copies[least].target.take().map(|target| *target);
        let copy = shard.copies.remove(least);
        // Of a copy that is being moved, what is counted is its target.
        let counted = target.as_ref().unwrap_or(&copy);
        if let Some(node) = &counted.node {
            counts.remove(node, counted.recovery());
        }
        changes.push(Change::copy((index, number)));
    }
}

#[cfg(test)]
mod tests {
    use super::super::Event;
    use super::super::manager::lab::{Lab, creation, update};
    use super::*;

    #[test]
    fn the_cluster_has_so_many_shards_and_no_more() {
        let mut lab = Lab::new(2);
        lab.set("cluster.max_shards_per_node", "5");
        lab.create("a", 3, 1);
        let new = |index: &str, shards: &str| creation(index, update(&[(SHARDS, shards)]));
        let refused = lab.apply(new("b", "3")).unwrap_err();
        assert_eq!(refused.rest(), (400, "validation_exception"));
        let said = refused.to_string();
        assert!(said.contains("would add [6] total shards") && said.contains("[6]/[10]"), "{said}");
        lab.set("narrows.allocation.uncounted", "n2");
        let said = lab.apply(new("b", "2")).unwrap_err().to_string();
        assert!(said.contains("[6]/[5]"), "as the manager of a twin, which holds nothing: {said}");
        lab.set("narrows.allocation.uncounted", "");
        lab.apply(new("b", "2")).unwrap();
        let replicas = |count: &str| Event::PutIndexSettings {
            index: lab.state.meant("b"),
            settings: update(&[(REPLICAS, count)]),
        };
        let (more, fewer) = (replicas("2"), replicas("0"));
        assert!(lab.apply(more).unwrap_err().to_string().contains("would add [2]"));
        lab.apply(fewer).unwrap();
        let set = |closed| Event::SetClosed { index: lab.state.meant("a"), closed };
        let (close, open) = (set(true), set(false));
        lab.apply(close).unwrap();
        lab.apply(new("d", "4")).unwrap();
        assert!(lab.apply(open.clone()).unwrap_err().to_string().contains("would add [6]"));
        lab.apply(Event::DeleteIndex { index: lab.state.meant("d") }).unwrap();
        lab.apply(open).unwrap();
        assert!(!lab.state.indices["a"].closed);
        // A twin of a cluster has what that has.
        let nodes = vec![vec!["n1".to_owned()]; 20];
        lab.place("c", 0, nodes).unwrap();
        lab.apply(Event::DeleteIndex { index: lab.state.meant("b") }).unwrap();
    }
}
