//! A plan from what a live cluster consists of.

use std::collections::{BTreeMap, BTreeSet};

use record::inventory::{Inventory, InventoryCopy};
use record::observation::Scope;
use record::units::show_size_setting;
use toml::{Table, Value};

use super::TwinPlan;
use super::given::{self, Given, Known, put};
use crate::error::Error;

const DELAY: &str = "index.unassigned.node_left.delayed_timeout";
/// What the field waits for a node where an index does not say it.
const DELAY_OF_THE_FIELD: &str = "1m";
const PRIORITY: &str = "index.priority";
const AWARENESS: &str = "cluster.routing.allocation.awareness.attributes";
/// Attributes that name a node's zone, where awareness does not say which one does.
const ZONES: [&str; 4] = ["zone", "rack", "rack_id", "aws_availability_zone"];
/// Settings that decide how long recoveries take.
const RELEVANT: [&str; 2] = ["indices.recovery.", "cluster.routing.allocation."];

/// A plan of a cluster, nothing asked yet.
#[derive(Clone, Debug, PartialEq)]
pub struct Import {
    /// The plan.
    pub plan: TwinPlan,
    /// What of the cluster is not in it, a sentence each.
    pub left_out: Vec<String>,
}

/// A plan of what a cluster consists of.
///
/// # Errors
/// If there is nothing to make a twin of.
pub fn import(seen: &Inventory, given: &Given) -> Result<Import, Error> {
    let mut left_out: Vec<String> = seen.gaps.iter().map(|gap| gap.lost.clone()).collect();
    let holders: BTreeSet<&str> = seen.copies.iter().filter_map(|c| c.node.as_deref()).collect();
    let nodes: Vec<_> = seen
        .nodes
        .iter()
        .filter(|node| node.holds_data.unwrap_or(true) || holders.contains(node.name.as_str()))
        .collect();
    let names: BTreeSet<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
    let indices = indices(seen, &names, &mut left_out);
    if nodes.len() < 2 || indices.is_empty() {
        let why = format!(
            "{} has {} nodes that hold data and {} indices; a twin needs two nodes and an index",
            seen.cluster.name,
            nodes.len(),
            indices.len()
        );
        return Err(Error::Usage { why });
    }
    let zone = zone_attribute(seen);
    let node = |node: &&record::inventory::InventoryNode| {
        let mut row = Table::new();
        row.insert("name".to_owned(), node.name.as_str().into());
        if let Some(zone) = zone.as_ref().and_then(|zone| node.attributes.get(zone)) {
            row.insert("zone".to_owned(), zone.as_str().into());
        }
        Value::Table(row)
    };
    let mut twin = Table::new();
    twin.insert("node".to_owned(), nodes.iter().map(node).collect::<Vec<_>>().into());
    twin.insert("index".to_owned(), indices.into());
    twin.insert("uncertain".to_owned(), Value::Array(Vec::new()));
    let mut plan = head(seen, nodes.len());
    plan.insert("settings".to_owned(), settings(seen, &mut left_out).into());
    plan.insert("twin".to_owned(), twin.into());
    machines(&mut plan, seen, &mut left_out);
    given::say(&mut plan, given);
    given::assume(&mut plan);
    Ok(Import { plan, left_out })
}

fn head(seen: &Inventory, nodes: usize) -> TwinPlan {
    let cluster = &seen.cluster;
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let name: String = cluster.name.chars().map(plain).collect();
    let about = format!("A twin of {}, {} {}.", cluster.name, cluster.flavour, cluster.version);
    let mut plan = Table::new();
    plan.insert("name".to_owned(), format!("twin-{}", name.trim_matches('-')).into());
    plan.insert("about".to_owned(), about.into());
    plan.insert("steps".to_owned(), vec![Value::from("start"), "what_if".into()].into());
    if let Some(bed) = crate::plan::target_bed(&cluster.flavour) {
        plan.insert("test_bed".to_owned(), bed.into());
    }
    let nodes = i64::try_from(nodes + 1).unwrap_or(i64::MAX);
    plan.insert("leader".to_owned(), Table::from_iter([("nodes".to_owned(), nodes.into())]).into());
    plan
}

/// The attribute that says where a node is.
fn zone_attribute(seen: &Inventory) -> Option<String> {
    let set = seen.settings.as_ref().and_then(|settings| settings.get(AWARENESS));
    let first = set.and_then(|setting| {
        let names = setting.value.trim_matches(['[', ']', '"']);
        names.split(',').map(str::trim).find(|name| !name.is_empty()).map(str::to_owned)
    });
    let has = |name: &str| seen.nodes.iter().any(|node| node.attributes.contains_key(name));
    first.or_else(|| ZONES.into_iter().find(|name| has(name)).map(str::to_owned))
}

/// Every index with its shards, as far as they have a primary.
fn indices(seen: &Inventory, nodes: &BTreeSet<&str>, left_out: &mut Vec<String>) -> Vec<Value> {
    let mut by_index: BTreeMap<&str, BTreeMap<u32, Vec<&InventoryCopy>>> = BTreeMap::new();
    for copy in &seen.copies {
        by_index.entry(&copy.index).or_default().entry(copy.shard).or_default().push(copy);
    }
    let (mut found, mut red, mut assumed) = (Vec::new(), 0, 0);
    for (name, shards) in by_index {
        let copies = shards.values().map(Vec::len).max().unwrap_or(1);
        let one = |copies: &Vec<&InventoryCopy>| {
            let started = |copy: &&&InventoryCopy| {
                matches!(copy.state.as_str(), "STARTED" | "RELOCATING")
                    && copy.node.as_deref().is_some_and(|node| nodes.contains(node))
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
            Some((Value::Table(row), primary.segments.is_none()))
        };
        let rows: Vec<_> = shards.values().filter_map(one).collect();
        red += shards.len() - rows.len();
        assumed += rows.iter().filter(|(_, assumed)| *assumed).count();
        if rows.is_empty() {
            continue;
        }
        let mut index = Table::new();
        index.insert("name".to_owned(), name.into());
        index.insert("replicas".to_owned(), i64::try_from(copies - 1).unwrap_or(0).into());
        index.insert("settings".to_owned(), index_settings(seen, name).into());
        let rows: Vec<Value> = rows.into_iter().map(|(row, _)| row).collect();
        index.insert("shard".to_owned(), rows.into());
        found.push(index.into());
    }
    if red > 0 {
        left_out.push(format!("{red} shards without a started primary"));
    }
    if assumed > 0 {
        left_out.push(format!("the segments of {assumed} shards: 10 are assumed"));
    }
    found
}

fn index_settings(seen: &Inventory, index: &str) -> Table {
    let own = seen.indices.get(index);
    let of = |name: &str| own.and_then(|own| own.get(name)).map(String::as_str);
    let mut settings = Table::new();
    // The embedded engine does not wait.
    let without = (seen.cluster.flavour != "narrows").then_some(DELAY_OF_THE_FIELD);
    if let Some(delay) = of(DELAY).or(without) {
        settings.insert(DELAY.to_owned(), delay.into());
    }
    if let Some(priority) = of(PRIORITY) {
        settings.insert(PRIORITY.to_owned(), priority.into());
    }
    settings
}

/// The cluster's settings, as far as virtual nodes have them. Those that somebody set and they have not are told.
fn settings(seen: &Inventory, left_out: &mut Vec<String>) -> Table {
    let Some(all) = &seen.settings else { return Table::new() };
    let relevant = |name: &str| RELEVANT.iter().any(|start| name.starts_with(start));
    let mut settings = Table::new();
    for (name, setting) in all.iter().filter(|(name, _)| relevant(name)) {
        if setting.value.is_empty() {
            continue;
        }
        if engine::settings::check(name, &setting.value).is_ok() {
            settings.insert(name.clone(), setting.value.as_str().into());
        } else if setting.scope != Scope::Default {
            left_out.push(format!("{name} = {}, which is not modelled", setting.value));
        }
    }
    settings
}

/// What was seen of the machines.
fn machines(plan: &mut TwinPlan, seen: &Inventory, left_out: &mut Vec<String>) {
    let mut cores: Vec<u64> = seen.nodes.iter().filter_map(|node| node.cores).collect();
    cores.sort_unstable();
    if let Some(median) = cores.get(cores.len() / 2) {
        let median = i64::try_from(*median).unwrap_or(1);
        put(plan, "cores.count", median.clamp(1, 4096), Known::Seen);
        if cores.first() != cores.last() {
            left_out.push(format!("how cores differ from node to node: each has {median}"));
        }
    }
    let mut trips: Vec<f64> =
        seen.round_trips_ms.iter().copied().filter(|ms| *ms > 0.0).collect();
    trips.sort_by(f64::total_cmp);
    if let Some(ms) = trips.get(trips.len() / 2) {
        put(plan, "card.delay", format!("{}ns", (ms * 1e6 / 4.0) as u64), Known::Seen);
    }
}
