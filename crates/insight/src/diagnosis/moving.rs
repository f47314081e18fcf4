//! Copies that move from one node to another: why, and how many go at once.

use std::collections::BTreeMap;

use record::names::matches;
use record::observation::Move;

use super::finding::LINES_SHOWN;
use super::series::Series;
use super::watermarks::{HIGH, disk_bytes, past};
use crate::words;

const FILTERS: &str = "routing.allocation.";
const AT_ONCE_REBALANCE: (&str, &str) =
    ("cluster.routing.allocation.cluster_concurrent_rebalance", "2");
const AT_ONCE_NODE: (&str, &str) = ("cluster.routing.allocation.node_concurrent_recoveries", "2");

/// Copies that move, a sentence for each node that some leave for the same reason.
pub(crate) fn moves(series: &Series<'_>) -> Vec<String> {
    let Some(last) = series.last() else { return Vec::new() };
    let mut groups: BTreeMap<(&str, String), Vec<&Move>> = BTreeMap::new();
    for one in last.moves.iter() {
        groups.entry((&one.from, why(series, one))).or_default().push(one);
    }
    groups.into_iter().map(|((from, why), moves)| sentence(from, &why, &moves)).collect()
}

fn sentence(from: &str, why: &str, moves: &[&Move]) -> String {
    let name = |one: &&Move| format!("{}[{}] to {}", one.index, one.shard, one.to);
    let shown: Vec<String> = moves.iter().take(LINES_SHOWN).map(name).collect();
    let (count, verb) = match moves.len() {
        1 => ("1 copy".to_owned(), "moves"),
        count => (format!("{count} copies"), "move"),
    };
    let more = match moves.len() - shown.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{count} {verb} from {from} ({}{more}): {why}", shown.join(", "))
}

/// Why a copy moves, as far as settings and disks tell, and what bounds how many do.
fn why(series: &Series<'_>, one: &Move) -> String {
    let value = |(name, default): (&str, &str)| series.setting_or_default(name, default).value;
    let slots = format!("as many at once as {} = {} allows", AT_ONCE_NODE.0, value(AT_ONCE_NODE));
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
