//! Why a copy may go to a node, must wait, or must not go there.
//!
//! The deciders of Elasticsearch that matter here, under their names: `max_retry`, `enable`,
//! `replica_after_primary_active`, `same_shard`, `filter`, `awareness`, `shards_limit`, `disk_threshold`, `throttling`;
//! and `in_sync_store` and `delayed_allocation`, which there are part of the allocators of primaries and of replicas.

use serde::Serialize;

use policy::routing::hash;

use super::counted::NodeRecoveryCounts;
use super::delayed::delayed_until_ms;
use super::filters::{Against, Filters};
use super::recovery_counts::{IndexLayout, RecoveryCounts};
use super::{ClusterState, IndexShardRoutingTable, MAX_RETRIES, ShardCopy};
use crate::settings::{AllocationEnable, AllocationWeights, Settings};

/// For a copy that is moved, or placed by a command: it waits for no node to come back.
pub(super) const DELAY_IS_OVER: u64 = u64::MAX;

const PRIMARIES: &str = "cluster.routing.allocation.node_initial_primaries_recoveries";
const RECOVERIES: &str = "cluster.routing.allocation.node_concurrent_recoveries";
const INCOMING: &str = "cluster.routing.allocation.node_concurrent_incoming_recoveries";
const OUTGOING: &str = "cluster.routing.allocation.node_concurrent_outgoing_recoveries";

/// Who says so, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Reason {
    /// Name of the decider.
    pub decider: &'static str,
    /// A sentence for people.
    pub words: String,
}

/// What a decider says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing is against it.
    Yes,
    /// Not now.
    Throttle(Reason),
    /// Not until something changes.
    No(Reason),
}

/// A copy in its place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot<'a> {
    pub index: &'a str,
    pub number: u32,
    pub shard: &'a IndexShardRoutingTable,
    pub copy: &'a ShardCopy,
}

impl Slot<'_> {
    /// Whether the copy would recover from the primary: a replica, or a copy that is moved.
    fn is_peers(&self) -> bool {
        !self.copy.primary || self.copy.is_started()
    }
}

/// The decider of copies that wait for their node to come back.
pub(super) const DELAYED: &str = "delayed_allocation";

/// The deciders, with what they look at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deciders<'a> {
    pub state: &'a ClusterState,
    pub counts: &'a RecoveryCounts,
    pub settings: &'a Settings,
    pub filters: &'a Filters,
    /// Now, in milliseconds since the epoch of the manager's choice; [`DELAY_IS_OVER`] where no delay counts.
    pub now_ms: u64,
    /// Whether reasons are put into words. Placing does not read them, and there may be very many.
    pub with_words: bool,
}

impl<'a> Deciders<'a> {
    /// Of a copy that is moved: no delay counts, and nobody reads reasons.
    pub(crate) fn of_moves(
        state: &'a ClusterState,
        counts: &'a RecoveryCounts,
        settings: &'a Settings,
        filters: &'a Filters,
    ) -> Self {
        Deciders { state, counts, settings, filters, now_ms: DELAY_IS_OVER, with_words: false }
    }

    fn no(&self, decider: &'static str, words: impl FnOnce() -> String) -> Verdict {
        Verdict::No(Reason { decider, words: self.say(words) })
    }

    fn throttle(&self, words: impl FnOnce() -> String) -> Verdict {
        Verdict::Throttle(Reason { decider: "throttling", words: self.say(words) })
    }

    fn say(&self, words: impl FnOnce() -> String) -> String {
        if self.with_words { words() } else { String::new() }
    }

    /// Whether the copy may go anywhere at all.
    pub(crate) fn copy_verdict(&self, slot: Slot<'_>) -> Verdict {
        let copy = slot.copy;
        if copy.is_started() && copy.failed_relocations >= MAX_RETRIES {
            return self.no("max_retry", || {
                let last = copy.last_failure.as_deref().unwrap_or("an unknown cause");
                format!(
                    "its move failed {} times in a row, last with \"{last}\"; \
                     once the cause is gone, POST _cluster/reroute?retry_failed",
                    copy.failed_relocations
                )
            });
        }
        if copy.failures >= MAX_RETRIES {
            return self.no("max_retry", || {
                let last = copy.last_failure.as_deref().unwrap_or("an unknown cause");
                let again = match copy.waits_for_room() {
                    true => "it is tried again every cluster.info.update.interval, or at once with",
                    false => "once the cause is gone,",
                };
                format!(
                    "it failed {} times in a row, last with \"{last}\"; \
                     {again} POST _cluster/reroute?retry_failed",
                    copy.failures
                )
            });
        }
        let enable = self.settings.allocation_enable();
        let allowed = match enable {
            AllocationEnable::All => true,
            AllocationEnable::Primaries => copy.primary,
            AllocationEnable::NewPrimaries => copy.primary && !slot.shard.was_started(),
            AllocationEnable::None => false,
        };
        if !allowed {
            return self.no("enable", || {
                let kind = match (copy.primary, slot.shard.was_started()) {
                    (false, _) => "a replica",
                    (true, _) if copy.is_started() => "a primary",
                    (true, true) => "a primary that was started before",
                    (true, false) => "a new primary",
                };
                let word = enable.word();
                format!("cluster.routing.allocation.enable is [{word}] and this is {kind}")
            });
        }
        if !copy.primary && slot.shard.started_primary().is_none() {
            return self.no("replica_after_primary_active", || {
                "the primary is not started, so there is nothing to recover from".to_owned()
            });
        }
        let delayed = delayed_until_ms(self.state, (slot.index, slot.number), slot.shard, copy)
            .filter(|until| *until > self.now_ms);
        if let Some(until_ms) = delayed {
            return self.no(DELAYED, || {
                let left_s = (until_ms - self.now_ms).div_ceil(1000);
                format!(
                    "its node left, and is waited for another {left_s} s \
                     (index.unassigned.node_left.delayed_timeout)"
                )
            });
        }
        Verdict::Yes
    }

    /// Whether the copy may go to this node, provided that it may go anywhere.
    pub(crate) fn node_verdict(&self, slot: Slot<'_>, node: &str) -> Verdict {
        self.verdict_with(slot, node, || self.state.on_disk(node, slot.index, slot.number))
    }

    /// The same where it is known, or can be found, which copy the node's disk holds.
    fn verdict_with<'d>(
        &self,
        slot: Slot<'_>,
        node: &str,
        on_disk: impl FnOnce() -> Option<&'d str>,
    ) -> Verdict {
        if let Some(other) = slot.shard.on_node(node) {
            let id = &other.allocation_id;
            return self.no("same_shard", || format!("the node already holds copy [{id}]"));
        }
        if let Some(against) = self.against(slot, node) {
            return self.no(against.decider(), || against.words());
        }
        let on_node = self.counts.get(node);
        match slot.is_peers() {
            true => self.peer_to(slot, on_node),
            false => self.primary_on(slot, node, on_node, on_disk),
        }
    }

    fn may_hold(&self, slot: Slot<'_>, node: &str) -> bool {
        slot.shard.on_node(node).is_none() && self.against(slot, node).is_none()
    }

    fn against(&self, slot: Slot<'_>, node: &str) -> Option<Against> {
        self.filters.against(self.state, (slot.index, slot.number), slot.copy, node)
    }

    /// The node that a started copy goes to which cannot stay: the first of these that can have it now, else the first
    /// that it has to wait for; none if no node may hold it.
    pub(crate) fn best_node_to_move_to<'n>(
        &self,
        slot: Slot<'_>,
        nodes: impl Iterator<Item = &'n str>,
    ) -> Option<(&'n str, Verdict)> {
        let mut waits = None;
        for node in nodes.filter(|node| self.may_hold(slot, node)) {
            let verdict = self.node_verdict(slot, node);
            if verdict == Verdict::Yes {
                return Some((node, verdict));
            }
            waits = waits.or(Some((node, verdict)));
        }
        waits
    }

    fn primary_on<'d>(
        &self,
        slot: Slot<'_>,
        node: &str,
        on_node: NodeRecoveryCounts,
        on_disk: impl FnOnce() -> Option<&'d str>,
    ) -> Verdict {
        if slot.shard.was_started() {
            match on_disk() {
                Some(id) if slot.shard.in_sync.contains(id) => {
                    let place = (slot.index, slot.number);
                    if let Some(words) = self.state.falls_short(place, (node, id)) {
                        return self.no("in_sync_store", || words);
                    }
                }
                Some(id) => {
                    return self.no("in_sync_store", || {
                        format!("its disk holds copy [{id}], which is not in sync")
                    });
                }
                None => {
                    return self.no("in_sync_store", || "its disk holds no copy".to_owned());
                }
            }
        }
        let limit = self.counts.limits().initial_primaries;
        let busy = on_node.initial_primaries;
        if busy < limit {
            return Verdict::Yes;
        }
        self.throttle(|| {
            format!("{busy} primaries are coming up on the node, {PRIMARIES} is [{limit}]")
        })
    }

    fn peer_to(&self, slot: Slot<'_>, on_node: NodeRecoveryCounts) -> Verdict {
        let limits = self.counts.limits();
        let (busy, limit) = (on_node.incoming, limits.incoming);
        if busy >= limit {
            return self.throttle(|| {
                let own = self.settings.node_concurrent_incoming_recoveries();
                let name = own.map_or(RECOVERIES, |_| INCOMING);
                format!("the node receives {busy} recoveries, {name} is [{limit}]")
            });
        }
        if self.source_is_busy(slot) {
            return self.throttle(|| {
                let source = slot.shard.primary().node.as_deref().unwrap_or_default();
                let (busy, limit) = (self.counts.get(source).outgoing, limits.outgoing);
                let own = self.settings.node_concurrent_outgoing_recoveries();
                let name = own.map_or(RECOVERIES, |_| OUTGOING);
                format!(
                    "[{source}] has the primary and sends {busy} recoveries, {name} is [{limit}]"
                )
            });
        }
        Verdict::Yes
    }

    /// Whether the copy would recover from a primary whose node sends as many recoveries as it may.
    pub(crate) fn source_is_busy(&self, slot: Slot<'_>) -> bool {
        let source = slot.shard.primary().node.as_deref().filter(|_| slot.is_peers());
        source.is_some_and(|node| self.counts.get(node).outgoing >= self.counts.limits().outgoing)
    }

    /// The node from which equals are gone through, by its place among all. Primaries go by name. Replicas begin
    /// elsewhere for each index: by name alone, all shards of one node would have their replicas on one other, and when
    /// a node fails, that one would have to send all that is to be recovered.
    fn first_node(&self, slot: Slot<'_>) -> usize {
        if slot.copy.primary {
            return 0;
        }
        let number = hash(slot.index).unsigned_abs() as usize;
        self.counts.place_of(number, self.settings.uncounted_nodes())
    }

    /// The node where the copy belongs, with `Yes` or `Throttle`; none if no node may hold it.
    ///
    /// Nodes that keep files of the shard come first, as recovery reuses them; then those with the fewest copies; then
    /// those that need not wait; then by name (see [`Deciders::first_node`]). A throttled node is waited for, or the
    /// others would fill up; the caller counts the copy on it, so that the next copies go elsewhere. Only a primary
    /// from disk takes the next node that can have it at once. With a layout, a replica takes equals in the order of
    /// [`HighestPrimaries::ring`](super::recovery_counts::HighestPrimaries::ring), and the lightest nodes where
    /// `narrows.allocation.weights` says what weighs.
    ///
    /// Looks at the nodes that hold files of the shard and at the head of the nodes' order, not at all nodes.
    pub(crate) fn best_node(
        &self,
        slot: Slot<'_>,
        layout: Option<&IndexLayout>,
    ) -> Option<(&'a str, Verdict)> {
        let from_disk = slot.copy.primary && slot.shard.was_started();
        let holders = self.state.holders(slot.index, slot.number).into_iter().flatten();
        let candidates = holders.filter_map(|(node, found)| {
            let node = self.state.present.get(node)?.as_str();
            let verdict = self.verdict_with(slot, node, || Some(found));
            let throttled = match verdict {
                Verdict::Yes => false,
                Verdict::Throttle(_) => true,
                Verdict::No(_) => return None,
            };
            // The copy that was primary last; after it failed, rather another.
            let second_choice = match from_disk {
                true => (*found == slot.copy.allocation_id) == (slot.copy.failures > 0),
                // A replica that was being made there is no match for one that lacks nothing.
                false => self.settings.returns_to_files() && !slot.shard.in_sync.contains(found),
            };
            let first = (from_disk && throttled, second_choice);
            Some(((first, self.counts.get(node).copies, throttled), node, verdict))
        });
        // The first of equals is the first by name: holders are sorted.
        let with_files = candidates.min_by_key(|(rank, _, _)| *rank);
        if from_disk || with_files.is_some() {
            return with_files.map(|(_, node, verdict)| (node, verdict));
        }
        let layout = layout.filter(|_| !slot.copy.primary);
        if let Some(layout) = layout
            && self.settings.allocation_weights() != AllocationWeights::Copies
        {
            let may_hold = |node: &str| self.may_hold(slot, node);
            let node = self.counts.name(self.counts.lightest(layout, slot.number, may_hold)?);
            return Some((node, self.node_verdict(slot, node)));
        }
        let first = self
            .counts
            .in_order(slot.copy.primary, self.first_node(slot))
            .find(|node| self.may_hold(slot, node))?;
        let next_in_ring = |layout: &IndexLayout| {
            let equals = layout.highest.ring(self.counts.equals(first), slot.number);
            let names = equals.into_iter().map(|number| self.counts.name(number));
            { names }.find(|node| self.may_hold(slot, node))
        };
        let node = layout.and_then(next_in_ring).unwrap_or(first);
        Some((node, self.node_verdict(slot, node)))
    }
}
