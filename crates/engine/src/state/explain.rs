//! Why copies are on no node, in words.

use serde::Serialize;

use super::deciders::{DELAY_IS_OVER, DELAYED, Deciders, Slot};
use super::delayed::delayed_until_ms;
use super::filters::Filters;
use super::recovery_counts::{IndexLayout, RecoveryCounts};
use super::{ClusterState, CopyState, Reason, ShardCopy, UnassignedReason, Verdict, rebalancing};

/// What is said of one node.
#[expect(missing_docs, reason = "the fields that a name says enough about have no description")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NodeExplanation {
    pub node_name: String,
    /// `yes`, `throttled` or `no`.
    pub node_decision: &'static str,
    /// Who says so, and why; none with `yes`.
    pub reason: Option<Reason>,
}

/// A wait for a node that left, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Delay {
    /// `index.unassigned.node_left.delayed_timeout`.
    pub configured_ms: u64,
    /// What is left of it.
    pub left_ms: u64,
}

/// Why one copy is on no node.
#[expect(missing_docs, reason = "the fields that a name says enough about have no description")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Explanation {
    pub index: String,
    pub shard: u32,
    pub primary: bool,
    /// How it came to be on no node.
    pub unassigned_reason: UnassignedReason,
    /// Since when.
    pub unassigned_at_ms: u64,
    pub failed_allocation_attempts: u32,
    pub last_failure: Option<String>,
    /// `throttled` if it only has to wait, `allocation_delayed` if it waits for its node to come back, else `no`; `yes`
    /// only before copies were placed.
    pub can_allocate: &'static str,
    /// How long it waits for its node, where it does.
    pub delay: Option<Delay>,
    /// The decider and the sentence that count.
    pub reason: Option<Reason>,
    /// Each present node; empty if no node was asked.
    pub nodes: Vec<NodeExplanation>,
}

/// An explanation for each copy that is on no node, in the order of index and shard.
pub fn explain(state: &ClusterState, now_ms: u64) -> Vec<Explanation> {
    let settings = state.settings();
    let counts = RecoveryCounts::of(state, &settings);
    let filters = Filters::of(state, &settings);
    let (counts, settings, filters) = (&counts, &settings, &filters);
    let deciders = Deciders { state, counts, settings, filters, now_ms, with_words: true };
    let mut explanations = Vec::new();
    for (index, shards) in &state.routing {
        let layout = || IndexLayout::of(counts, settings, shards);
        let layout = IndexLayout::is_asked_for(settings).then(layout);
        let copies = (0..).zip(shards.iter()).flat_map(|(number, shard)| {
            shard.copies.iter().map(move |copy| Slot { index, number, shard, copy })
        });
        for slot in copies {
            let CopyState::Unassigned { reason, at_ms } = slot.copy.state else { continue };
            let (verdict, nodes) = judge(deciders, slot, deciders.best_node(slot, layout.as_ref()));
            let (mut can_allocate, why) = split(verdict);
            let waits = why.as_ref().is_some_and(|why| why.decider == DELAYED);
            let delay = waits.then(|| delay(state, slot, now_ms)).flatten();
            if delay.is_some() {
                can_allocate = "allocation_delayed";
            }
            explanations.push(Explanation {
                index: index.to_owned(),
                shard: slot.number,
                primary: slot.copy.primary,
                unassigned_reason: reason,
                unassigned_at_ms: at_ms,
                failed_allocation_attempts: slot.copy.failures,
                last_failure: slot.copy.last_failure.clone(),
                can_allocate,
                delay,
                reason: why,
                nodes,
            });
        }
    }
    explanations
}

fn delay(state: &ClusterState, slot: Slot<'_>, now_ms: u64) -> Option<Delay> {
    let place = (slot.index, slot.number);
    let until_ms = delayed_until_ms(state, place, slot.shard, slot.copy)?;
    let configured = state.indices.get(slot.index)?.delayed_timeout();
    let configured_ms = u64::try_from(configured.as_millis()).unwrap_or(u64::MAX);
    Some(Delay { configured_ms, left_ms: until_ms.saturating_sub(now_ms) })
}

/// What is said of a copy that is on a node.
#[expect(missing_docs, reason = "the fields that a name says enough about have no description")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedExplanation {
    /// What keeps it from staying; none where it may stay.
    pub against_staying: Option<Reason>,
    /// Why no copy is moved for the balance of the nodes now; none where that is not so.
    pub against_rebalancing: Option<Reason>,
    /// `yes`, `throttled` or `no`: whether it may go to another node now.
    pub can_move: &'static str,
    /// Who says so of all nodes, and why; none with `yes`.
    pub reason: Option<Reason>,
    pub nodes: Vec<NodeExplanation>,
}

/// Explains a started copy.
pub fn explain_placed(
    state: &ClusterState,
    (index, number): (&str, u32),
    copy: &ShardCopy,
) -> Option<PlacedExplanation> {
    let (shard, node) = (state.shard(index, number)?, copy.node.as_deref()?);
    let settings = state.settings();
    let counts = RecoveryCounts::of(state, &settings);
    let filters = Filters::of(state, &settings);
    let (settings, counts, filters) = (&settings, &counts, &filters);
    let deciders =
        Deciders { state, counts, settings, filters, now_ms: DELAY_IS_OVER, with_words: true };
    let slot = Slot { index, number, shard, copy };
    let against_staying = filters.against(state, (index, number), copy, node);
    let best = deciders.best_node_to_move_to(slot, counts.in_order(false, 0));
    let (verdict, nodes) = judge(deciders, slot, best);
    let (can_move, reason) = split(verdict);
    let nodes = nodes.into_iter().filter(|other| other.node_name != node).collect();
    let against_staying = against_staying
        .map(|against| Reason { decider: against.decider(), words: against.words() });
    let against_rebalancing = rebalancing::against(state, settings);
    Some(PlacedExplanation { against_staying, against_rebalancing, can_move, reason, nodes })
}

/// The verdict over all nodes, and that of each.
fn judge(
    deciders: Deciders<'_>,
    slot: Slot<'_>,
    best: Option<(&str, Verdict)>,
) -> (Verdict, Vec<NodeExplanation>) {
    let verdict = deciders.copy_verdict(slot);
    if verdict != Verdict::Yes {
        return (verdict, Vec::new());
    }
    let nodes: Vec<NodeExplanation> = deciders
        .state
        .present
        .iter()
        .map(|node| {
            let (node_decision, reason) = split(deciders.node_verdict(slot, node));
            NodeExplanation { node_name: node.clone(), node_decision, reason }
        })
        .collect();
    let verdict = match best {
        Some((node, Verdict::Throttle(reason))) => {
            let words = format!("it waits for [{node}]: {}", reason.words);
            Verdict::Throttle(Reason { words, ..reason })
        }
        Some((_, verdict)) => verdict,
        None => Verdict::No(nowhere(&nodes)),
    };
    (verdict, nodes)
}

/// One sentence over all nodes, none of which may hold the copy.
fn nowhere(nodes: &[NodeExplanation]) -> Reason {
    let reasons = nodes.iter().filter_map(|node| Some((&node.node_name, node.reason.as_ref()?)));
    let decider = reasons.clone().map(|(_, reason)| reason.decider).next();
    let all: Vec<String> =
        reasons.map(|(name, reason)| format!("[{name}]: {}", reason.words)).collect();
    match decider {
        None => Reason { decider: "no_nodes", words: "no member is present".to_owned() },
        Some(decider) => {
            Reason { decider, words: format!("no node may hold it: {}", all.join("; ")) }
        }
    }
}

fn split(verdict: Verdict) -> (&'static str, Option<Reason>) {
    match verdict {
        Verdict::Yes => ("yes", None),
        Verdict::Throttle(reason) => ("throttled", Some(reason)),
        Verdict::No(reason) => ("no", Some(reason)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::manager::lab::Lab;
    use super::*;

    fn only(lab: &Lab) -> (&'static str, &'static str, String) {
        let explanations = explain(&lab.state, lab.now_ms);
        let [e] = &explanations[..] else { panic!("{explanations:?}") };
        let reason = e.reason.clone().unwrap();
        (e.can_allocate, reason.decider, reason.words)
    }

    #[test]
    fn names_the_decider() {
        let mut lab = Lab::new(1);
        lab.create("a", 1, 1);
        let words = "the primary is not started, so there is nothing to recover from".to_owned();
        assert_eq!(only(&lab), ("no", "replica_after_primary_active", words));

        lab.start_all();
        let id = lab.shard("a", 0).primary().allocation_id.clone();
        let words = format!("no node may hold it: [n1]: the node already holds copy [{id}]");
        assert_eq!(only(&lab), ("no", "same_shard", words));

        lab.set("cluster.routing.allocation.enable", "primaries");
        let words = "cluster.routing.allocation.enable is [primaries] and this is a replica";
        assert_eq!(only(&lab), ("no", "enable", words.to_owned()));

        lab.leave("n1");
        let explanations = explain(&lab.state, lab.now_ms);
        let primary = explanations.iter().find(|e| e.primary).unwrap();
        assert_eq!(primary.reason.as_ref().unwrap().words, "no member is present");
        assert_eq!(primary.unassigned_reason, UnassignedReason::NodeLeft);
        assert_eq!(primary.unassigned_at_ms, lab.now_ms);
    }

    #[test]
    fn says_what_is_waited_for() {
        let mut lab = Lab::new(1);
        lab.create("a", 5, 0);
        let words = "it waits for [n1]: 4 primaries are coming up on the node, \
                     cluster.routing.allocation.node_initial_primaries_recoveries is [4]";
        assert_eq!(only(&lab), ("throttled", "throttling", words.to_owned()));
    }

    #[test]
    fn says_what_the_disks_lack() {
        let mut lab = Lab::started(2, (1, 0));
        let (index, shard) = ("a", 0);
        let node = lab.shard(index, shard).primary().node.clone().unwrap();
        lab.leave(&node);
        let (decision, decider, words) = only(&lab);
        assert_eq!((decision, decider), ("no", "in_sync_store"));
        assert!(words.ends_with("its disk holds no copy"), "{words}");
    }
}
