//! The indices of a cluster, as its twin has them.

use std::collections::{BTreeMap, BTreeSet};

use record::inventory::{Inventory, InventoryCopy, InventoryNode};
use record::roles::{FROZEN, is_dedicated_to};
use record::units::show_size_setting;
use toml::{Table, Value};

use super::cluster_settings::{CHECK, LIMIT, PRIORITY, accepted};
use super::filters::{OF_AN_INDEX, TIER_PREFERENCE, is_filter, of_index};
use crate::plan::{DELAY, shards_in_words};

/// What the field waits for a node where an index does not say it.
const DELAY_OF_THE_FIELD: &str = "1m";
const EXPANDS: &str = "index.auto_expand_replicas";
/// More copies of a shard than an index of a twin has.
const COPIES_MAX: usize = 11;
/// The store of an index that was mounted from a snapshot, `snapshot` in Elasticsearch and `remote_snapshot` in
/// OpenSearch; and whether one keeps its files in a repository, in OpenSearch.
pub(super) const STORE_TYPE: &str = "index.store.type";
pub(super) const REMOTE_STORE: &str = "index.remote_store.enabled";
const REMOTE_SNAPSHOT: &str = "remote_snapshot";
/// Whether nodes keep a part of such an index alone, in Elasticsearch.
pub(super) const PARTIAL: &str = "index.store.snapshot.partial";
/// Roles of OpenSearch whose nodes have such indices, until 2 and since 3.
const OF_SNAPSHOTS: [&str; 2] = ["search", "warm"];
/// Shards that are lost already and are named, at most.
const NAMED_MAX: usize = 10;
/// Where the first primaries of an index that was shrunk from another had to be.
const INITIAL_RECOVERY: &str = "index.routing.allocation.initial_recovery._id";
/// Which of an index's copies may be moved for balance.
const REBALANCE: &str = "index.routing.rebalance.enable";
/// What limits of allocation are where they limit nothing.
const UNLIMITED: [&str; 2] = ["-1", "all"];

/// Every index with its shards, as far as they have a primary.
pub(super) fn indices(
    seen: &Inventory,
    nodes: &[&InventoryNode],
    left_out: &mut Vec<String>,
) -> Vec<Value> {
    let names: BTreeSet<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
    let mut by_index: BTreeMap<&str, BTreeMap<u32, Vec<&InventoryCopy>>> = BTreeMap::new();
    for copy in &seen.copies {
        by_index.entry(&copy.index).or_default().entry(copy.shard).or_default().push(copy);
    }
    let (mut found, mut red) = (Vec::new(), Vec::new());
    let (mut assumed, mut empty, mut fetched) = (0, 0, 0);
    // Indices of one template have the same settings, and there may be thousands.
    let mut unlike: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (name, shards) in by_index {
        let copies = shards.values().map(Vec::len).max().unwrap_or(1);
        // The field gives it fewer copies where there are fewer nodes: none of them waits for a place.
        let expands = seen.indices.get(name).and_then(|own| own.get(EXPANDS));
        if expands.is_some_and(|range| range.ends_with("-all")) || copies > COPIES_MAX {
            left_out.push(format!("{name}, which has {copies} copies of each shard"));
            continue;
        }
        let one = |copies: &Vec<&InventoryCopy>| {
            let started = |copy: &&&InventoryCopy| {
                matches!(copy.state.as_str(), "STARTED" | "RELOCATING")
                    && copy.node.as_deref().is_some_and(|node| names.contains(node))
            };
            let primary = copies.iter().filter(started).find(|copy| copy.primary)?;
            let replicas = copies.iter().filter(started).filter(|copy| !copy.primary);
            let of = |copy: &&InventoryCopy| copy.node.as_deref().map(Value::from);
            let places: Vec<Value> =
                std::iter::once(primary).chain(replicas).filter_map(of).collect();
            let mut row = Table::new();
            let documents = i64::try_from(primary.documents.unwrap_or(0)).unwrap_or(i64::MAX);
            let segments = primary.segments.unwrap_or(10).clamp(1, 10_000);
            row.insert("bytes".to_owned(), show_size_setting(primary.bytes.unwrap_or(0)).into());
            row.insert("documents".to_owned(), documents.into());
            row.insert("segments".to_owned(), i64::try_from(segments).unwrap_or(1).into());
            row.insert("copies".to_owned(), places.into());
            Some((Value::Table(row), primary.segments.is_none(), primary.bytes.is_none()))
        };
        let mut rows = Vec::new();
        let mut lost = Vec::new();
        for (number, copies) in &shards {
            match one(copies) {
                Some(row) => rows.push(row),
                None => lost.push(*number),
            }
        }
        red.extend(lost.iter().map(|number| format!("{name}[{number}]")));
        assumed += rows.iter().filter(|(_, assumed, _)| *assumed).count();
        empty += rows.iter().filter(|(.., untold)| *untold).count();
        if rows.is_empty() {
            continue;
        }
        fetched += usize::from(seen.indices.get(name).is_some_and(is_fetched));
        let mut index = Table::new();
        index.insert("name".to_owned(), name.into());
        index.insert("replicas".to_owned(), i64::try_from(copies - 1).unwrap_or(0).into());
        let mut tell = |what: String| unlike.entry(what).or_default().push(name);
        if let Some(range) = expands
            && let Some((_, most)) = range.split_once('-')
            && most.parse::<usize>().is_ok_and(|most| most >= nodes.len().saturating_sub(1))
        {
            tell(format!("{EXPANDS} = {range}: replicas stay as many when nodes come or go"));
        }
        let hosts: BTreeSet<&str> =
            shards.values().flatten().filter_map(|copy| copy.node.as_deref()).collect();
        let settings = index_settings(seen, (name, &hosts), nodes, tell);
        index.insert("settings".to_owned(), settings.into());
        let lost: Vec<Value> = lost.into_iter().map(|number| i64::from(number).into()).collect();
        index.insert("lost".to_owned(), lost.into());
        let rows: Vec<Value> = rows.into_iter().map(|(row, ..)| row).collect();
        index.insert("shard".to_owned(), rows.into());
        found.push(index.into());
    }
    left_out.extend(unlike.into_iter().map(|(what, indices)| match indices[..] {
        [first, _, ..] => format!("{what} ({} indices, {first} is the first)", indices.len()),
        _ => format!("{what} ({})", indices.concat()),
    }));
    if !red.is_empty() {
        let shards = shards_in_words(red.len());
        let more = if red.len() > NAMED_MAX { ", ..." } else { "" };
        red.truncate(NAMED_MAX);
        let names = red.join(", ");
        left_out.push(format!("{shards} without a started primary, lost already: {names}{more}"));
    }
    if assumed > 0 {
        let assumed = shards_in_words(assumed);
        left_out.push(format!("the segments of {assumed}: 10 are assumed"));
    }
    if empty > 0 {
        let empty = shards_in_words(empty);
        left_out
            .push(format!("the sizes of {empty}, which are not known: empty copies are assumed"));
    }
    if fetched > 0 {
        let indices = match fetched {
            1 => "1 index".to_owned(),
            more => format!("{more} indices"),
        };
        left_out.push(format!(
            "that new copies of {indices} fetch their files from a repository ({STORE_TYPE}, {REMOTE_STORE}): in the \
             twin they copy them from their primaries"
        ));
    }
    found
}

/// Whether new copies of an index with these settings take their files from a repository.
fn is_fetched(own: &BTreeMap<String, String>) -> bool {
    let is_mounted = own.get(STORE_TYPE).is_some_and(|store| store.ends_with("snapshot"));
    is_mounted || own.get(REMOTE_STORE).is_some_and(|enabled| enabled == "true")
}

/// Whether a node takes copies of an index with these settings, whatever its filters say. Nodes of the frozen tier
/// alone take what was mounted partially (`DedicatedFrozenNodeAllocationDecider` of Elasticsearch), and nodes that hold
/// no data what was mounted (`TargetPoolAllocationDecider` of OpenSearch).
fn takes(own: &BTreeMap<String, String>, node: &InventoryNode) -> bool {
    let is = |name: &str, value: &str| own.get(name).is_some_and(|told| told == value);
    if is(STORE_TYPE, REMOTE_SNAPSHOT) {
        return node.roles.iter().any(|role| OF_SNAPSHOTS.contains(&role.as_str()));
    }
    let is_for_all = node.holds_data != Some(false) && !is_dedicated_to(&[FROZEN], &node.roles);
    is_for_all || is(PARTIAL, "true")
}

/// The settings of an index which has copies on these hosts.
fn index_settings(
    seen: &Inventory,
    (index, hosts): (&str, &BTreeSet<&str>),
    nodes: &[&InventoryNode],
    mut tell: impl FnMut(String),
) -> Table {
    let untold = BTreeMap::new();
    let own = seen.indices.get(index).unwrap_or(&untold);
    let of = |name: &str| own.get(name).map(String::as_str);
    // What is there may stay, whatever a release thinks of it.
    let takes = |node: &InventoryNode| hosts.contains(node.name.as_str()) || takes(own, node);
    let mut settings = of_index(own, nodes, takes, &mut tell);
    let is_of_allocation = |(name, value): &(&String, &String)| {
        (name.starts_with(OF_AN_INDEX) || *name == REBALANCE)
            && !is_filter(name)
            && ![TIER_PREFERENCE, INITIAL_RECOVERY, LIMIT].contains(&name.as_str())
            && !UNLIMITED.contains(&value.as_str())
    };
    let mut tell_unmodelled =
        |name: &str, value: &str| tell(format!("{name} = {value}, which is not modelled"));
    for (name, value) in own.iter().filter(is_of_allocation) {
        tell_unmodelled(name, value);
    }
    // The embedded engine does not wait.
    let without = (seen.cluster.flavour != "narrows").then_some(DELAY_OF_THE_FIELD);
    for (name, without) in [(DELAY, without), (PRIORITY, None), (LIMIT, None)] {
        let own = of(name).and_then(|value| accepted(name, value));
        if let (Some(refused), None) = (of(name), &own) {
            tell_unmodelled(name, refused);
        }
        if let Some(value) = own.or(without.map(str::to_owned)) {
            settings.insert(name.to_owned(), value.into());
        }
    }
    if let Some(checked) = of(CHECK).filter(|checked| without.is_some() && *checked != "false") {
        tell(format!("{CHECK} = {checked}: copies are opened unread"));
    }
    settings
}

#[cfg(test)]
mod tests {
    use super::super::import::{Import, import};
    use super::super::tests::{asked, resolved, seen};
    use super::*;
    use crate::twin::{self, Given};

    #[test]
    fn an_index_with_a_copy_on_every_node_is_left_out_and_told() {
        let mut seen = seen();
        let copies = seen.copies.clone();
        seen.copies.extend(
            copies.into_iter().map(|copy| InventoryCopy { index: ".everywhere".into(), ..copy }),
        );
        let everywhere = BTreeMap::from([(EXPANDS.to_owned(), "0-all".to_owned())]);
        seen.indices.insert(".everywhere".to_owned(), everywhere);
        for seen in [seen.clone(), twin::anonymous(&seen, 7)] {
            let Import { plan, left_out, .. } = import(&seen, &Given::default()).unwrap();
            let says = "which has 2 copies of each shard";
            assert!(left_out.iter().any(|one| one.contains(says)), "{left_out:?}");
            assert!(!twin::text(&plan).contains("everywhere"));
        }
    }

    #[test]
    fn settings_of_indices_are_taken_as_the_field_writes_them() {
        let with = |name: &str, value: &str| {
            let mut seen = seen();
            let index = seen.copies[0].index.clone();
            let own = BTreeMap::from([(name.to_owned(), value.to_owned())]);
            seen.indices.insert(index, own);
            let (plan, left_out) = asked(&seen, &Given::default(), "a");
            let delay = resolved(&plan).twin.unwrap().indices[0].settings[DELAY].clone();
            (delay, left_out.iter().any(|one| one.starts_with(name)))
        };
        assert_eq!(with(DELAY, "5m"), ("5m".to_owned(), false));
        assert_eq!(with(DELAY, "0"), ("0s".to_owned(), false));
        assert_eq!(with(DELAY, "soon"), ("1m".to_owned(), true));
        assert_eq!(with(PRIORITY, "high"), ("1m".to_owned(), true));
        assert_eq!(
            [with(LIMIT, "2").1, with(LIMIT, "-1").1, with(LIMIT, "few").1],
            [false, false, true]
        );
        assert_eq!(with(CHECK, "true"), ("1m".to_owned(), true));
        let told = ["0-1", "0-0", "false"].map(|range| with(EXPANDS, range).1);
        assert_eq!(told, [true, false, false], "of two nodes each may have one of two copies");
    }

    #[test]
    fn what_many_indices_have_that_a_twin_has_not_is_told_once() {
        let mut seen = seen();
        let enable = "index.routing.allocation.enable";
        let own = BTreeMap::from([(enable.to_owned(), "primaries".to_owned())]);
        for index in ["a", "b", "c"] {
            seen.copies.push(InventoryCopy { index: index.into(), ..seen.copies[0].clone() });
            seen.indices.insert(index.to_owned(), own.clone());
        }
        let told = |seen: &Inventory| {
            let left_out = import(seen, &Given::default()).unwrap().left_out;
            left_out.into_iter().filter(|one| one.starts_with(enable)).collect::<Vec<_>>()
        };
        let what = format!("{enable} = primaries, which is not modelled");
        assert_eq!(told(&seen), [format!("{what} (3 indices, a is the first)")]);
        seen.indices.retain(|index, _| index == "b");
        assert_eq!(told(&seen), [format!("{what} (b)")]);
    }

    #[test]
    fn an_index_stays_in_its_tier_hidden_or_not() {
        let mut seen = seen();
        seen.nodes[0].roles = vec!["data_hot".to_owned()];
        seen.nodes[1].roles = vec!["data_warm".to_owned()];
        let own = [
            (TIER_PREFERENCE, "data_cold,data_warm"),
            ("index.routing.allocation.require.rack", "r*"),
            ("index.routing.allocation.enable", "all"),
            (LIMIT, "1"),
            (REBALANCE, "none"),
        ];
        let own = own.map(|(name, value)| (name.to_owned(), value.to_owned()));
        seen.indices.insert(seen.copies[0].index.clone(), BTreeMap::from(own));
        let of = |seen: &Inventory, node: &str| {
            let (plan, left_out) = asked(seen, &Given::default(), node);
            let twin = resolved(&plan).twin.unwrap();
            let include = "index.routing.allocation.include._name";
            assert_eq!(twin.indices[0].settings[include], node);
            assert_eq!(twin.indices[0].settings[LIMIT], "1");
            let placed = twin.placements(&BTreeMap::new()).remove(0).placed;
            assert_eq!(placed.settings[include].as_deref(), Some("leader-2"));
            left_out.iter().filter(|one| one.contains("index.routing.")).count()
        };
        assert_eq!(of(&seen, "b"), 1, "all may be moved");
        of(&twin::anonymous(&seen, 7), &twin::anonymous_name("node", "b", 7));
    }

    #[test]
    fn nodes_of_mounted_indices_take_no_other() {
        let mut seen = seen();
        for (name, role) in [("frozen", "data_frozen"), ("searches", "search")] {
            let (id, name, roles) = (name.to_owned(), name.to_owned(), vec![role.to_owned()]);
            let holds_data = Some(role != "search");
            let like = seen.nodes[0].clone();
            seen.nodes.push(InventoryNode { id, name, holds_data, roles, ..like });
        }
        let mounted = InventoryCopy { index: "mounted".into(), ..seen.copies[0].clone() };
        seen.copies.push(InventoryCopy { node: Some("searches".into()), ..mounted });
        let own = BTreeMap::from([(STORE_TYPE.to_owned(), REMOTE_SNAPSHOT.to_owned())]);
        seen.indices.insert("mounted".to_owned(), own);
        let included = |seen: &Inventory| {
            let (plan, _) = asked(seen, &Given::default(), "a");
            let twin = resolved(&plan).twin.unwrap();
            let include = "index.routing.allocation.include._name";
            twin.indices.iter().map(|index| index.settings[include].clone()).collect::<Vec<_>>()
        };
        assert_eq!(included(&seen), ["a,b", "searches"]);
        seen.copies[1].node = Some("searches".to_owned());
        assert_eq!(included(&seen), ["a,b,searches", "searches"], "what is there may stay");
        let mounted = |partial: &str| BTreeMap::from([(PARTIAL.to_owned(), partial.to_owned())]);
        let frozen = &seen.nodes[3];
        assert!(takes(&mounted("true"), frozen) && !takes(&mounted("false"), frozen));
    }

    #[test]
    fn copies_that_come_from_a_repository_are_told() {
        let told = |name: &str, value: &str| {
            let mut seen = seen();
            let own = BTreeMap::from([(name.to_owned(), value.to_owned())]);
            seen.indices.insert(seen.copies[0].index.clone(), own);
            [seen.clone(), twin::anonymous(&seen, 7)].map(|seen| {
                let left_out = import(&seen, &Given::default()).unwrap().left_out;
                left_out.iter().any(|one| one.starts_with("that new copies of 1 index fetch"))
            })
        };
        assert_eq!(told(STORE_TYPE, "snapshot"), [true; 2]);
        assert_eq!(told(STORE_TYPE, "remote_snapshot"), [true; 2]);
        assert_eq!(told(REMOTE_STORE, "true"), [true; 2]);
        assert_eq!(told(STORE_TYPE, "hybridfs"), [false; 2]);
    }

    /// As where a quota bounds what is there and not what is free.
    #[test]
    fn a_disk_with_more_free_than_there_is_has_all_of_it_free() {
        let mut seen = seen();
        seen.nodes[0].disk_bytes = Some((100, 9_223_372_036_853_727_232));
        let (plan, _) = asked(&seen, &Given::default(), "a");
        assert_eq!(resolved(&plan).twin.unwrap().nodes[0].disk, Some((100, 100)));
    }

    #[test]
    fn a_disk_that_a_cache_fills_is_not_full() {
        let mut seen = seen();
        seen.nodes[0].roles = vec!["data_frozen".to_owned()];
        let (plan, _) = asked(&seen, &Given::default(), "a");
        assert_eq!(resolved(&plan).twin.unwrap().nodes[0].disk, None);
    }

    #[test]
    fn sizes_that_nobody_tells_are_told() {
        let mut seen = seen();
        seen.copies[0].bytes = None;
        let (_, left_out) = asked(&seen, &Given::default(), "a");
        let says = "the sizes of 1 shard,";
        assert!(left_out.iter().any(|one| one.starts_with(says)), "{left_out:?}");
    }
}
