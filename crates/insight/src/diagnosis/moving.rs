//! Copies that move from one node to another: why, and how many go at once; and what keeps them where they are.

use std::collections::BTreeMap;

use record::names::{listed, matches};
use record::observation::{Move, Node, Scope};

use super::finding::LINES_SHOWN;
use super::knobs::SLOTS;
use super::series::Series;
use super::unanswered::{SHARDS, lacks};
use super::waiting::taken_back;
use super::watermarks::{HIGH, disk_bytes, past};
use crate::words;

const FILTERS: &str = "routing.allocation.";
const EXCLUDED: (&str, &str) = ("cluster.routing.allocation.exclude._name", "");
const REBALANCE: (&str, &str) = ("cluster.routing.rebalance.enable", "all");
const AT_ONCE_REBALANCE: (&str, &str) =
    ("cluster.routing.allocation.cluster_concurrent_rebalance", "2");

/// Copies that move, a sentence for each node that some leave for the same reason.
pub(crate) fn moves(series: &Series<'_>) -> Vec<String> {
    let Some(last) = series.last() else { return Vec::new() };
    let mut groups: BTreeMap<(&str, String), Vec<&Move>> = BTreeMap::new();
    for one in last.moves.iter() {
        groups.entry((&one.from, why(series, one))).or_default().push(one);
    }
    groups.into_iter().map(|((from, why), moves)| sentence(from, &why, &moves)).collect()
}

/// Settings that leave nodes empty, or as uneven as they are: forgotten, they show in no health.
pub(crate) fn settings_against_moves(series: &Series<'_>) -> Vec<String> {
    rebalancing_off(series).into_iter().chain(excluded(series)).collect()
}

fn rebalancing_off(series: &Series<'_>) -> Option<String> {
    let (name, default) = REBALANCE;
    let found = series.setting(name)?;
    // The embedded engine moves copies for balance only where somebody asks for it.
    let is_its_own = series.flavour() == "narrows" && found.scope == Scope::Default;
    if is_its_own || found.value.eq_ignore_ascii_case(default) {
        return None;
    }
    let copies = match found.value.to_ascii_lowercase().as_str() {
        "primaries" => "no replica moves",
        "replicas" => "no primary moves",
        _ => "no copy moves",
    };
    let put = taken_back(name, found.scope, default);
    Some(format!(
        "{name} = {}: {copies} for the balance of the nodes, so that a new node gets few; {put}",
        found.value
    ))
}

/// Nodes that the cluster's filter keeps copies from, and from which none moves now.
fn excluded(series: &Series<'_>) -> Option<String> {
    let (name, default) = EXCLUDED;
    let found = series.setting(name).filter(|found| found.value != default)?;
    let is_excluded =
        |node: &&Node| found.value.split(',').any(|one| matches(one.trim(), &node.name));
    let nodes = series.last_nodes()?.1.iter().filter(is_excluded);
    let nodes: Vec<&str> = nodes.map(|node| node.name.as_str()).collect();
    let moves = &series.last().filter(|look| !lacks(look, SHARDS))?.moves;
    if nodes.is_empty() || moves.iter().any(|one| nodes.contains(&one.from.as_str())) {
        return None;
    }
    let shown = listed(&nodes[..nodes.len().min(LINES_SHOWN)]);
    let more = match nodes.len().saturating_sub(LINES_SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let put = taken_back(name, found.scope, default);
    Some(format!(
        "{name} = {} keeps copies from {shown}{more}, and none moves away now: any that is left there (GET \
         _cat/shards) has no other node, or waits for a slot, and POST _cluster/allocation/explain with its \
         current_node says which; {put}",
        found.value
    ))
}

fn sentence(from: &str, why: &str, moves: &[&Move]) -> String {
    let name = |one: &&Move| format!("{}[{}] to {}", one.index, one.shard, one.to);
    let shown: Vec<String> = moves.iter().take(LINES_SHOWN).map(name).collect();
    let copies = words::counted(moves.len(), "copy moves", "copies move");
    let more = match moves.len() - shown.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{copies} from {from} ({}{more}): {why}", shown.join(", "))
}

/// Why a copy moves, as far as settings and disks tell, and what bounds how many do.
fn why(series: &Series<'_>, one: &Move) -> String {
    let value = |(name, default): (&str, &str)| series.setting_or_default(name, default).value;
    let slots = format!("as many at once as {} = {} allows", SLOTS.0, value(SLOTS));
    if let Some((name, wanted)) = filter(series, one) {
        return format!("{name} = {wanted} wants it away, {slots}");
    }
    let node = series.node(&one.from);
    if let Some((total, free)) = node.and_then(|node| node.latest(disk_bytes))
        && let Some(past) = past(series, HIGH, (total, free))
    {
        let used = words::percent(1.0 - free / total);
        return format!("the disk of {} is {used} full, past {past}, {slots}", one.from);
    }
    format!(
        "for the balance of the nodes, or by a command: no API tells which; for balance {} = {} bounds how many go at \
         once",
        AT_ONCE_REBALANCE.0,
        value(AT_ONCE_REBALANCE)
    )
}

/// The filter of the cluster or of the index that a node does not pass, with its value. Those by address and by
/// attributes of nodes are not judged: a node's own are not asked for.
fn filter(series: &Series<'_>, one: &Move) -> Option<(String, String)> {
    let refuses = |name: &str, wanted: &str| {
        let fits = |pattern: &str| matches(pattern.trim(), &one.from);
        let kind = name.split_once(FILTERS)?.1.split_once('.')?;
        let is_refused = match kind {
            _ if wanted.is_empty() => false,
            ("exclude", "_name") => wanted.split(',').any(fits),
            ("include", "_name") => !wanted.split(',').any(fits),
            ("require", "_name") => !wanted.split(',').all(fits),
            _ => false,
        };
        is_refused.then(|| (name.to_owned(), wanted.to_owned()))
    };
    let of_cluster = ["exclude", "include", "require"].into_iter().find_map(|kind| {
        let name = format!("cluster.{FILTERS}{kind}._name");
        refuses(&name, &series.setting(&name)?.value)
    });
    of_cluster.or_else(|| one.filters.iter().find_map(|(name, wanted)| refuses(name, wanted)))
}
