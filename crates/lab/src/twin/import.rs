//! A plan from what a live cluster consists of.

use std::collections::{BTreeMap, BTreeSet};

use record::inventory::{Inventory, InventoryNode};
use record::observation::Identity;
use record::roles::{FROZEN, is_dedicated_to};
use record::units::{counted, show_size_setting};
use toml::{Table, Value};

use super::TwinPlan;
use super::cluster_settings::{cluster_settings, zone_attribute};
use super::given::{self, Given, SEEN, put};
use super::indices::indices;
use super::left_out::of_copies;
use super::node_order::{as_the_allocator_has_them, bucket};
use super::voters::voters;
use super::writes;
use crate::error::{Error, Result};
use crate::plan::TwinNode;

/// Names the node from which copies may have to wait, as it applies each state after all others.
pub(super) const HEARS_LAST: &str = "narrows.recovery.hears_last._name";

/// A plan of a cluster, nothing asked yet.
#[derive(Clone, Debug, PartialEq)]
pub struct Import {
    /// The plan.
    pub plan: TwinPlan,
    /// What of the cluster is not in it, a sentence each.
    pub left_out: Vec<String>,
    /// The nodes that elect the manager; empty where that is not known, or one manages it without being elected.
    pub voters: Vec<TwinNode>,
}

/// A plan of what a cluster consists of. Fails if there is nothing to make a twin of.
pub fn import(seen: &Inventory, given: &Given) -> Result<Import> {
    let mut left_out: Vec<String> = seen.gaps.iter().map(|gap| gap.lost.clone()).collect();
    let holders: BTreeSet<&str> = seen.copies.iter().filter_map(|c| c.node.as_deref()).collect();
    let mut nodes: Vec<_> = seen
        .nodes
        .iter()
        .filter(|node| node.holds_data.unwrap_or(true) || holders.contains(node.name.as_str()))
        .collect();
    let indices = indices(seen, &nodes, &mut left_out);
    if nodes.is_empty() || indices.is_empty() {
        return Err(Error::usage(format!(
            "{} has {} and {}; a twin needs one of each: ask again once there is an index",
            seen.cluster.name,
            counted(nodes.len(), "node that holds data", "nodes that hold data"),
            counted(indices.len(), "index", "indices")
        )));
    }
    let is_field = seen.cluster.flavour != "narrows";
    // The id of a node of ours is its name, and stays where names are hashed.
    nodes = match is_field {
        true => as_the_allocator_has_them(nodes, |node, count| bucket(&node.id, count)),
        false => as_the_allocator_has_them(nodes, |node, _| node.id.as_str()),
    };
    of_copies(seen, &nodes, &holders, &mut left_out);
    let zone = zone_attribute(seen);
    let telling = telling_attributes(&nodes);
    let node = |node: &&InventoryNode| {
        let mut row = Table::new();
        row.insert("name".to_owned(), node.name.as_str().into());
        if let Some(zone) = zone.as_ref().and_then(|zone| node.attributes.get(zone)) {
            row.insert("zone".to_owned(), zone.as_str().into());
        }
        if !seen.names_are_hashed {
            also_called(&mut row, node, &telling);
        }
        // What fills it is a cache, for which no copy leaves it.
        let disk = node.disk_bytes.filter(|_| !is_dedicated_to(&[FROZEN], &node.roles));
        if let Some((total, free)) = disk {
            row.insert("disk".to_owned(), show_size_setting(total).into());
            row.insert("disk_free".to_owned(), show_size_setting(free.min(total)).into());
        }
        Value::Table(row)
    };
    let mut twin = Table::new();
    twin.insert("node".to_owned(), nodes.iter().map(node).collect::<Vec<_>>().into());
    twin.insert("index".to_owned(), indices.into());
    twin.insert("uncertain".to_owned(), Value::Array(Vec::new()));
    let mut plan = head(seen, nodes.len());
    plan.insert("settings".to_owned(), cluster_settings(seen, &nodes, &mut left_out).into());
    plan.insert("twin".to_owned(), twin.into());
    machines(&mut plan, &nodes, &seen.round_trips_ms, &mut left_out);
    if let Some(documents_per_s) = &seen.documents_per_s {
        writes::see(&mut plan, documents_per_s, &mut left_out);
    }
    if is_field {
        given::assume_tls(&mut plan, seen.encrypts);
    }
    given::say(&mut plan, given);
    given::assume(&mut plan, is_field);
    given::raise(&mut plan, &seen.seen_rates);
    if lets_copies_wait(&seen.cluster) {
        given::assume_unmarked(&mut plan);
        if let Some(manager) = nodes.iter().find(|node| node.manages)
            && let Some(Value::Table(settings)) = plan.get_mut("settings")
        {
            settings.insert(HEARS_LAST.to_owned(), manager.name.as_str().into());
            given::assume_unlisted(&mut plan);
        }
    }
    let voters = if is_field { voters(seen, zone.as_deref()) } else { Vec::new() };
    Ok(Import { plan, left_out, voters })
}

/// The attributes by which some of these nodes are told from others.
fn telling_attributes<'n>(nodes: &[&'n InventoryNode]) -> BTreeSet<&'n str> {
    let all = nodes.iter().flat_map(|node| node.attributes.keys());
    let mut names: BTreeSet<&str> = all.map(String::as_str).collect();
    names.retain(|name| {
        let first = nodes.first().and_then(|node| node.attributes.get(*name));
        nodes.iter().any(|node| node.attributes.get(*name) != first)
    });
    names
}

/// What a node may be called by besides its name.
fn also_called(row: &mut Table, node: &InventoryNode, telling: &BTreeSet<&str>) {
    if node.id != node.name {
        row.insert("id".to_owned(), node.id.as_str().into());
    }
    let own = node.attributes.iter().filter(|(name, _)| telling.contains(name.as_str()));
    let own: Table = own.map(|(name, value)| (name.clone(), value.as_str().into())).collect();
    if !own.is_empty() {
        row.insert("attributes".to_owned(), own.into());
    }
}

/// Whether copies wait whose source has not heard of them, as in OpenSearch since 2: a replica for a second, by
/// `RecoverySourceHandler.waitForAssignmentPropagate`. What others do about it was not measured.
fn lets_copies_wait(cluster: &Identity) -> bool {
    cluster.flavour == "opensearch" && !cluster.version.starts_with("1.")
}

fn head(seen: &Inventory, nodes: usize) -> TwinPlan {
    let cluster = &seen.cluster;
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let name: String = cluster.name.chars().map(plain).collect();
    let mut about = format!("A twin of {}, {} {}", cluster.name, cluster.flavour, cluster.version);
    let written: f64 = seen.documents_per_s.iter().flat_map(BTreeMap::values).sum();
    if written >= 1.0 {
        about.push_str(&format!(", to which {written:.0} documents a second were written"));
    }
    about.push('.');
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

/// What was seen of the machines that the twin has.
fn machines(
    plan: &mut TwinPlan,
    nodes: &[&InventoryNode],
    round_trips_ms: &[f64],
    left_out: &mut Vec<String>,
) {
    let mut cores: Vec<u64> = nodes.iter().filter_map(|node| node.cores).collect();
    cores.sort_unstable();
    if let Some(median) = cores.get(cores.len() / 2) {
        let median = i64::try_from(*median).unwrap_or(1);
        put(plan, "cores.count", median.clamp(1, 4096), SEEN);
        if cores.first() != cores.last() {
            left_out.push(format!("how cores differ from node to node: each has {median}"));
        }
    }
    let mut trips = round_trips_ms.to_vec();
    trips.sort_by(f64::total_cmp);
    // One of 0 is too short to be measured: where most are, the assumption covers them.
    if let Some(ms) = trips.get(trips.len() / 2).filter(|ms| **ms > 0.0) {
        put(plan, "card.delay", format!("{}ns", (ms * 1e6 / 4.0) as u64), SEEN);
    }
}
