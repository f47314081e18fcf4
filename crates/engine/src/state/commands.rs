//! What an operator does with copies by hand: the commands of `_cluster/reroute`.
//!
//! As in Elasticsearch, a command may go beyond what throttles and `cluster.routing.allocation.enable` allow
//! (`RoutingAllocation.ignoreDisable`), and against no other decider.

use super::applied::{Applied, find};
use super::deciders::{DELAY_IS_OVER, Deciders, Slot, Verdict};
use super::event::{RerouteAction, RerouteCommand};
use super::filters::Filters;
use super::recovery_counts::RecoveryCounts;
use super::{
    Change, ClusterState, IndexShardRoutingTable, StateError, UnassignedReason, allocation, moving,
    relocation,
};
use crate::settings::Settings;

/// Carries out commands: all of them, or nothing.
pub(super) fn run(state: &mut ClusterState, now_ms: u64, commands: &[RerouteCommand]) -> Applied {
    let mut tried = state.clone();
    let mut changes = Vec::new();
    for command in commands {
        carry_out(&mut tried, now_ms, command, &mut changes)?;
    }
    *state = tried;
    Ok(changes)
}

fn carry_out(
    state: &mut ClusterState,
    now_ms: u64,
    command: &RerouteCommand,
    changes: &mut Vec<Change>,
) -> Result<(), StateError> {
    let RerouteCommand { action, index, shard: number, node } = command;
    let shards = find(state, index)?.shards;
    if *number >= shards {
        return Err(StateError::NoSuchShard { index: index.clone(), shard: *number, shards });
    }
    let refuse = |why: String| StateError::Reroute {
        command: action.name(),
        index: index.clone(),
        shard: *number,
        why,
    };
    let is_there = |state: &ClusterState, node: &str| match state.present.contains(node) {
        true => Ok(()),
        false => {
            let hint = record::names::did_you_mean(node, state.present.iter().map(String::as_str));
            Err(refuse(format!("no node [{node}] is there{hint}")))
        }
    };
    is_there(state, node)?;
    let place = (index.as_str(), *number);
    let done = match action {
        RerouteAction::Move { to_node } => {
            is_there(state, to_node)?;
            move_copy(state, place, (node, to_node), changes)
        }
        RerouteAction::Cancel { allow_primary } => {
            cancel(state, now_ms, place, (node, *allow_primary), changes)
        }
        RerouteAction::AllocateReplica => allocate_replica(state, place, node, changes),
    };
    done.map_err(refuse)
}

fn shard_of<'a>(
    state: &'a ClusterState,
    (index, number): (&str, u32),
) -> &'a IndexShardRoutingTable {
    state.shard(index, number).expect("the number was checked")
}

fn move_copy(
    state: &mut ClusterState,
    place: (&str, u32),
    (node, to_node): (&str, &str),
    changes: &mut Vec<Change>,
) -> Result<(), String> {
    let shard = shard_of(state, place);
    let at = shard.copies.iter().position(|copy| copy.is_on(node));
    let at = at.ok_or_else(|| format!("no copy of it is on [{node}]"))?;
    let copy = &shard.copies[at];
    if !copy.is_started() {
        return Err(format!("the copy on [{node}] is still recovering"));
    }
    if let Some(to) = copy.relocating_node() {
        return Err(format!("the copy on [{node}] is being moved to [{to}]; cancel that first"));
    }
    may_go(state, place, at, to_node)?;
    let settings = state.settings();
    let (mut counts, mut filters) =
        (RecoveryCounts::of(state, &settings), Filters::of(state, &settings));
    moving::begin(state, (place.0, place.1, at), to_node, (&mut counts, &mut filters), changes);
    Ok(())
}

/// Whether nothing stands against a copy on a node that a command is held to.
fn may_go(
    state: &ClusterState,
    (index, number): (&str, u32),
    at: usize,
    node: &str,
) -> Result<(), String> {
    let enabled = ("cluster.routing.allocation.enable".to_owned(), "all".to_owned());
    let settings = Settings::resolve(&[&[enabled].into(), &state.transient, &state.persistent]);
    let (counts, filters) = (RecoveryCounts::of(state, &settings), Filters::of(state, &settings));
    let (settings, counts, filters) = (&settings, &counts, &filters);
    let deciders =
        Deciders { state, counts, settings, filters, now_ms: DELAY_IS_OVER, with_words: true };
    let shard = shard_of(state, (index, number));
    let slot = Slot { index, number, shard, copy: &shard.copies[at] };
    for verdict in [deciders.copy_verdict(slot), deciders.node_verdict(slot, node)] {
        if let Verdict::No(reason) = verdict {
            return Err(format!("[{}] is against it: {}", reason.decider, reason.words));
        }
    }
    Ok(())
}

fn cancel(
    state: &mut ClusterState,
    now_ms: u64,
    place: (&str, u32),
    (node, allow_primary): (&str, bool),
    changes: &mut Vec<Change>,
) -> Result<(), String> {
    let copy = shard_of(state, place).on_node(node);
    let copy = copy.ok_or_else(|| format!("no copy of it is on [{node}]"))?;
    if copy.acts_as_primary() && !allow_primary {
        let doing = if copy.is_started() { "started" } else { "recovering" };
        return Err(format!(
            "the primary is {doing} on [{node}], and would be lost there; allow_primary does it all the same"
        ));
    }
    let shard = state.shard_mut(place.0, place.1).expect("the number was checked");
    let reason = UnassignedReason::RerouteCancelled;
    changes.extend(relocation::leave_node(shard, place, node, reason, now_ms));
    Ok(())
}

fn allocate_replica(
    state: &mut ClusterState,
    place: (&str, u32),
    node: &str,
    changes: &mut Vec<Change>,
) -> Result<(), String> {
    let shard = shard_of(state, place);
    let at = shard.copies.iter().position(|copy| !copy.primary && !copy.is_assigned());
    let at = at.ok_or("every replica of it is on a node already; move one instead")?;
    may_go(state, place, at, node)?;
    changes.push(allocation::place_replica(state, place, at, node));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::manager::lab::Lab;
    use super::super::{Event, RerouteAction, RerouteCommand};

    #[test]
    fn what_cannot_be_done_is_refused_and_nothing_of_it_is_done() {
        let mut lab = Lab::new(3);
        lab.set("cluster.routing.allocation.exclude._name", "n3");
        lab.create("a", 1, 1);
        lab.start_all();
        lab.set("cluster.routing.allocation.exclude._name", "");
        let shard = lab.shard("a", 0);
        let primary = shard.primary().node.clone().unwrap();
        let replica = shard.replicas().next().unwrap().node.clone().unwrap();
        let to = |node: &str| RerouteAction::Move { to_node: node.to_owned() };
        let cancel = |allow_primary| RerouteAction::Cancel { allow_primary };
        for (action, node, said) in [
            (to("n9"), &*primary, "no node [n9]"),
            (to("n3"), "n3", "no copy of it is on [n3]"),
            (to(&replica), &primary, "[same_shard]"),
            (cancel(false), &primary, "allow_primary"),
            (cancel(false), "n3", "no copy of it is on [n3]"),
            (RerouteAction::AllocateReplica, "n3", "every replica"),
        ] {
            let refused = lab.reroute(action, ("a", 0), node).unwrap_err().to_string();
            assert!(refused.contains(said), "{refused}");
        }
        lab.set("cluster.routing.allocation.exclude._name", "n3");
        let refused = lab.reroute(to("n3"), ("a", 0), &primary).unwrap_err().to_string();
        assert!(refused.contains("[filter]"), "{refused}");
        lab.set("cluster.routing.allocation.exclude._name", "");
        let command = |action, shard, node: &str| RerouteCommand {
            action,
            index: "a".to_owned(),
            shard,
            node: node.to_owned(),
        };
        let commands = vec![command(to("n3"), 0, &primary), command(to("n3"), 1, &primary)];
        let refused = lab.apply(Event::Reroute { commands }).unwrap_err();
        assert_eq!(refused.rest().0, 404);
        assert!(!lab.shard("a", 0).primary().is_relocating());
    }

    #[test]
    fn a_replica_is_placed_and_cancelled_by_hand() {
        let mut lab = Lab::new(3);
        lab.set("cluster.routing.allocation.node_concurrent_recoveries", "0");
        lab.create("a", 1, 1);
        lab.start_all();
        assert!(!lab.shard("a", 0).replicas().next().unwrap().is_assigned());
        lab.set("cluster.routing.allocation.enable", "none");
        lab.reroute(RerouteAction::AllocateReplica, ("a", 0), "n3").unwrap();
        assert!(lab.shard("a", 0).on_node("n3").is_some(), "neither of both counts");
        lab.reroute(RerouteAction::Cancel { allow_primary: false }, ("a", 0), "n3").unwrap();
        assert!(lab.shard("a", 0).on_node("n3").is_none());
    }

    #[test]
    fn a_cancelled_primary_is_replaced() {
        let mut lab = Lab::started(3, (1, 1));
        let primary = lab.shard("a", 0).primary().node.clone().unwrap();
        lab.reroute(RerouteAction::Cancel { allow_primary: true }, ("a", 0), &primary).unwrap();
        let shard = lab.shard("a", 0);
        assert!(shard.started_primary().is_some_and(|now| !now.is_on(&primary)));
        assert_eq!(shard.primary_term, 2);
    }
}
