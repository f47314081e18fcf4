//! Copies that are moved so that no node holds more than its share, where that is asked for.
//!
//! `policy::balancing` says between which nodes; here is which copy goes, and when. Unlike the field this is off by
//! itself: a cluster of an experiment stays as the experiment laid it out.

use std::collections::BTreeMap;

use policy::balancing::{Balance, Load};

use super::deciders::{Deciders, Slot, Verdict};
use super::filters::Filters;
use super::recovery_counts::RecoveryCounts;
use super::{Change, ClusterState, Reason, ShardCopy, moving};
use crate::settings::{AllowRebalance, RebalanceEnable, Settings};

/// Begins to move what is to be moved now.
pub(super) fn rebalance(
    state: &mut ClusterState,
    (settings, filters): (&Settings, &mut Filters),
    changes: &mut Vec<Change>,
) {
    let enable = settings.rebalance_enable();
    if enable == RebalanceEnable::None || against(state, settings).is_some() {
        return;
    }
    let limit = most_under_way(settings);
    let mut under_way = moves_under_way(state);
    let mut counts = RecoveryCounts::of(state, settings);
    let balance = settings.balance();
    let indices = by_need(Deciders::of_moves(state, &counts, settings, filters), balance);
    for index in indices {
        while under_way < limit {
            let deciders = Deciders::of_moves(state, &counts, settings, filters);
            let Some((number, at, node)) = next_move(deciders, &index, (balance, enable)) else {
                break;
            };
            let node = node.to_owned();
            moving::begin(state, (&index, number, at), &node, (&mut counts, filters), changes);
            under_way += 1;
        }
    }
}

/// Why no copy is moved for the balance now, whichever it is.
pub(super) fn against(state: &ClusterState, settings: &Settings) -> Option<Reason> {
    let enable = settings.rebalance_enable();
    if enable == RebalanceEnable::None {
        let words = format!("cluster.routing.rebalance.enable is [{}]", enable.word());
        return Some(Reason { decider: "enable", words });
    }
    let allow = settings.allow_rebalance();
    if !is_allowed(state, allow) {
        let words = format!("cluster.routing.allocation.allow_rebalance is [{}]", allow.word());
        return Some(Reason { decider: "cluster_rebalance", words });
    }
    let (limit, moves) = (most_under_way(settings), moves_under_way(state));
    (moves >= limit).then(|| {
        let words = format!(
            "{moves} copies are on their way, cluster.routing.allocation.cluster_concurrent_rebalance is [{limit}]"
        );
        Reason { decider: "concurrent_rebalance", words }
    })
}

fn most_under_way(settings: &Settings) -> usize {
    settings.cluster_concurrent_rebalance().map_or(usize::MAX, |limit| limit as usize)
}

fn moves_under_way(state: &ClusterState) -> usize {
    let copies = state.shards().flat_map(|(_, _, shard)| &shard.copies);
    copies.filter(|copy| copy.is_relocating()).count()
}

fn is_allowed(state: &ClusterState, allow: AllowRebalance) -> bool {
    let copies = || state.shards().flat_map(|(_, _, shard)| &shard.copies);
    match allow {
        AllowRebalance::Always => true,
        AllowRebalance::PrimariesActive => {
            copies().filter(|copy| copy.primary).all(ShardCopy::is_started)
        }
        AllowRebalance::AllActive => copies().all(ShardCopy::is_started),
    }
}

/// The indices whose copies are spread most unevenly first; equals by name.
///
/// Of an index looks at the nodes that hold copies of it, and at the emptiest and the fullest of the others.
fn by_need(deciders: Deciders<'_>, balance: Balance) -> Vec<String> {
    let Deciders { state, counts, .. } = deciders;
    let mut nodes: Vec<(u32, &str)> =
        counted_nodes(deciders).map(|node| (counts.get(node).copies, node)).collect();
    nodes.sort_unstable();
    let mean = |sum: f64| sum / nodes.len().max(1) as f64;
    let copies = mean(nodes.iter().map(|(copies, _)| f64::from(*copies)).sum());
    let spread = |index: &String| {
        let of_index = copies_of(state, index);
        let average = Load { copies, of_index: mean(of_index.values().sum()) };
        let is_other = |one: &&(u32, &str)| !of_index.contains_key(one.1);
        let others = [nodes.iter().find(is_other), nodes.iter().rfind(is_other)];
        let others = others.into_iter().flatten().map(|(copies, _)| (*copies, 0.0));
        let held = of_index.iter().map(|(node, of_index)| (counts.get(node).copies, *of_index));
        let loads = others.chain(held);
        let weights: Vec<f64> = loads
            .map(|(copies, of_index)| Load { copies: f64::from(copies), of_index })
            .map(|load| balance.weight(load, average))
            .collect();
        let of = |pick: fn(f64, f64) -> f64| weights.iter().copied().reduce(pick).unwrap_or(0.0);
        of(f64::max) - of(f64::min)
    };
    let mut indices: Vec<(f64, String)> =
        state.indices.keys().map(|index| (spread(index), index.clone())).collect();
    indices.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    indices.into_iter().map(|(_, index)| index).collect()
}

/// The present nodes but for those that are uncounted: in the field a node without data is none of the allocator's.
fn counted_nodes(deciders: Deciders<'_>) -> impl Iterator<Item = &str> {
    let uncounted = deciders.settings.uncounted_nodes();
    let counted = deciders.state.present.iter().filter(move |node| !uncounted.contains(node));
    counted.map(String::as_str)
}

/// Copies of an index on the nodes that hold some. One that is moved counts where it goes.
fn copies_of<'a>(state: &'a ClusterState, index: &str) -> BTreeMap<&'a str, f64> {
    let mut of_index: BTreeMap<&str, f64> = BTreeMap::new();
    for shard in state.routing.get(index).into_iter().flat_map(|shards| shards.iter()) {
        for copy in shard.assigned().filter(|copy| !copy.is_relocating()) {
            *of_index.entry(copy.node.as_deref().unwrap_or_default()).or_default() += 1.0;
        }
    }
    of_index
}

/// The weights of the counted nodes for an index.
struct Weights<'a> {
    nodes: Vec<&'a str>,
    weights: Vec<f64>,
    of_index: BTreeMap<&'a str, f64>,
}

impl<'a> Weights<'a> {
    fn of(deciders: Deciders<'a>, index: &str, balance: Balance) -> Weights<'a> {
        let Deciders { state, counts, .. } = deciders;
        let of_index = copies_of(state, index);
        let nodes: Vec<&str> = counted_nodes(deciders).collect();
        let load = |node: &&str| Load {
            copies: f64::from(counts.get(node).copies),
            of_index: of_index.get(node).copied().unwrap_or(0.0),
        };
        let loads: Vec<Load> = nodes.iter().map(load).collect();
        let mean =
            |of: fn(&Load) -> f64| loads.iter().map(of).sum::<f64>() / loads.len().max(1) as f64;
        let average = Load { copies: mean(|l| l.copies), of_index: mean(|l| l.of_index) };
        let weights = loads.iter().map(|load| balance.weight(*load, average)).collect();
        Weights { nodes, weights, of_index }
    }
}

/// The next copy of an index that goes from a heavy node to a light one: shard, place among its copies, and node.
fn next_move<'a>(
    deciders: Deciders<'a>,
    index: &str,
    (balance, enable): (Balance, RebalanceEnable),
) -> Option<(u32, usize, &'a str)> {
    let Weights { nodes, weights, of_index } = Weights::of(deciders, index, balance);
    // As in the field: else all pairs of nodes of two tiers would be tried, for each index.
    let is_relevant = |(node, _): &(&str, f64)| {
        let filter_against = || deciders.filters.filter_against(deciders.state, index, node);
        of_index.contains_key(node) || filter_against().is_none()
    };
    let (nodes, weights): (Vec<&str>, Vec<f64>) =
        nodes.into_iter().zip(weights).filter(is_relevant).unzip();
    let may_move = |copy: &ShardCopy| match enable {
        RebalanceEnable::All => true,
        RebalanceEnable::Primaries => copy.primary,
        RebalanceEnable::Replicas => !copy.primary,
        RebalanceEnable::None => false,
    };
    let shards = deciders.state.routing.get(index)?;
    let mut numbered: Vec<_> = (0..).zip(shards.iter()).collect();
    if deciders.settings.allocates_in_field_order() {
        numbered.reverse();
    }
    for (heavy, light) in balance.pairs(&weights) {
        let (from, to) = (nodes[heavy], nodes[light]);
        if !of_index.contains_key(from) {
            continue;
        }
        for &(number, shard) in &numbered {
            let is_there = |copy: &ShardCopy| copy.is_on(from) && copy.is_started();
            let Some(at) = shard.copies.iter().position(is_there) else { continue };
            let copy = &shard.copies[at];
            let slot = Slot { index, number, shard, copy };
            // `RebalanceOnlyWhenActiveAllocationDecider`: one copy of a shard at a time, once all are there.
            let is_whole =
                shard.copies.iter().all(|copy| copy.is_started() && !copy.is_relocating());
            if is_whole
                && may_move(copy)
                && deciders.copy_verdict(slot) == Verdict::Yes
                && deciders.node_verdict(slot, to) == Verdict::Yes
            {
                return Some((number, at, to));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::manager::lab::Lab;

    const ENABLE: &str = "cluster.routing.rebalance.enable";

    /// Everything on two of four nodes.
    fn lopsided() -> Lab {
        let mut lab = Lab::new(4);
        lab.leave("n3");
        lab.leave("n4");
        for index in ["a", "b"] {
            lab.create(index, 4, 1);
        }
        lab.start_all();
        lab.join("n3");
        lab.join("n4");
        lab
    }

    fn on(lab: &Lab) -> Vec<usize> {
        ["n1", "n2", "n3", "n4"].map(|node| lab.on(node)).to_vec()
    }

    #[test]
    fn nothing_is_moved_unless_it_is_asked_for() {
        let mut lab = lopsided();
        assert!(lab.initializing().is_empty());
        lab.set(ENABLE, "none");
        assert_eq!(on(&lab), [8, 8, 0, 0]);
    }

    #[test]
    fn nodes_come_to_hold_as_many_as_each_other_a_few_at_a_time_and_then_rest() {
        let mut lab = lopsided();
        lab.set(ENABLE, "all");
        let moving = lab.initializing();
        assert_eq!(moving.len(), 2, "as many as may be on their way");
        assert_ne!((&moving[0].0, moving[0].1), (&moving[1].0, moving[1].1), "of two shards");
        lab.start_all();
        assert_eq!(on(&lab), [4, 4, 4, 4]);
        for index in ["a", "b"] {
            let of_index = |node: &str| lab.state.copies_on(node).filter(|c| c.0 == index).count();
            assert_eq!(["n1", "n2", "n3", "n4"].map(of_index), [2, 2, 2, 2], "{index}");
        }
        let before = lab.state.version;
        assert!(lab.set("cluster.routing.allocation.balance.shard", "0.5").len() == 1);
        assert_eq!(lab.state.version, before + 1);
        assert!(lab.initializing().is_empty(), "what is even stays");
    }

    /// As the manager of a twin, beside which an index would seem as uneven as what its fullest node holds.
    #[test]
    fn a_node_that_is_not_counted_does_not_change_which_index_gives_first() {
        let first = |others: u32| {
            let mut lab = Lab::new(3 + others);
            let manager = if others > 0 { "n1" } else { "" };
            lab.set("cluster.routing.allocation.exclude._name", manager);
            lab.set("narrows.allocation.uncounted", manager);
            lab.set("cluster.routing.allocation.cluster_concurrent_rebalance", "1");
            let on = |numbers: &[u32]| -> Vec<Vec<String>> {
                numbers.iter().map(|number| vec![format!("n{}", number + others)]).collect()
            };
            lab.place("spread", 0, on(&[1, 1, 1, 2, 2, 2, 3, 3])).unwrap();
            lab.place("heaped", 0, on(&[1, 1])).unwrap();
            lab.set(ENABLE, "all");
            let moved = lab.state.shards().find(|(_, _, shard)| shard.primary().is_relocating());
            moved.map(|(index, ..)| index.to_owned())
        };
        assert_eq!(first(0).as_deref(), Some("heaped"));
        assert_eq!(first(1), first(0));
    }

    #[test]
    fn in_the_field_s_order_the_highest_shard_goes_first() {
        let first = |in_field_order: &str| {
            let mut lab = lopsided();
            lab.set("narrows.allocation.field_order", in_field_order);
            lab.set(ENABLE, "all");
            lab.initializing().iter().map(|(_, number, _)| *number).collect::<Vec<_>>()
        };
        assert_eq!((first("false"), first("true")), (vec![0, 1], vec![2, 3]));
    }

    #[test]
    fn without_a_limit_as_many_are_on_their_way_as_nodes_may_send_and_receive() {
        let mut lab = lopsided();
        lab.set("cluster.routing.allocation.cluster_concurrent_rebalance", "-1");
        lab.set(ENABLE, "all");
        assert_eq!(lab.initializing().len(), 4, "two to each that was empty");
    }

    #[test]
    fn not_before_every_copy_is_started_unless_that_is_allowed() {
        let mut lab = lopsided();
        lab.set("cluster.routing.allocation.enable", "primaries");
        lab.replicas("a", 3);
        lab.set(ENABLE, "all");
        assert!(lab.state.shards().all(|(_, _, shard)| !shard.primary().is_relocating()));
        lab.set("cluster.routing.allocation.allow_rebalance", "indices_primaries_active");
        assert!(lab.state.shards().any(|(_, _, shard)| shard.primary().is_relocating()));
    }

    #[test]
    fn primaries_or_replicas_alone_and_none_where_none_may_go() {
        let mut lab = lopsided();
        lab.set("cluster.routing.allocation.exclude._name", "n4");
        lab.set(ENABLE, "replicas");
        let moved = |lab: &Lab, primary: bool| {
            let copies = lab.state.shards().flat_map(|(_, _, shard)| shard.copies.clone());
            copies.filter(|copy| copy.is_relocating() && copy.primary == primary).count()
        };
        assert_eq!((moved(&lab, true), moved(&lab, false)), (0, 2));
        lab.start_all();
        assert_eq!(on(&lab)[3], 0);
        assert!(on(&lab)[2] >= 4, "{:?}", on(&lab));
    }
}
