//! Which copy of a shard answers a search.
//!
//! | file | holds |
//! | --- | --- |
//! | `mod.rs` | [`Selector`]: what is told to it, and what it decides |
//! | `node_stats.rs` | what a coordinator knows of each node, whatever the policy |
//! | `rotation.rs` | one copy after another |
//! | `random.rs` | any copy |
//! | `least_outstanding.rs` | the copy whose node has the fewest of our requests |
//! | `ars.rs` | adaptive replica selection, in the forms that it has had |
//!
//! Further policies (C3, two choices, Prequal, ours) each are a file, a variant of [`Policy`] and an arm in
//! [`Selector::order`]; what they must know comes through [`Selector::sent`], [`Selector::answered`] and
//! [`Selector::failed`].

mod ars;
mod least_outstanding;
mod node_stats;
mod random;
mod rotation;

use std::time::Duration;

pub use ars::ArsForm;
pub use node_stats::{NodeFeedback, NodeStats, NodeTable};

/// How the copy is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// One after another, for each coordinator.
    Rotation,
    /// Any.
    Random,
    /// The node with the fewest requests of this coordinator in flight.
    LeastOutstanding,
    /// Adaptive replica selection.
    Ars(ArsForm),
}

/// Chooses copies for one coordinator. A machine without clock: it is told what happened.
#[derive(Clone, Debug, Default)]
pub struct Selector {
    turn: u64,
    nodes: NodeTable,
}

/// A row of what is known of a node.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Name.
    pub node: String,
    /// What is known.
    pub stats: NodeStats,
    /// The rank that [`ArsForm`] gives it, in milliseconds; the lowest wins.
    pub rank_ms: f64,
}

impl Selector {
    /// Orders the copies of a shard, given by their nodes: the first is asked, the next if that fails. `random` is
    /// uniform over all of `u64`. Answers with places in `copies`.
    pub fn order(&mut self, policy: Policy, copies: &[&str], random: u64) -> Vec<usize> {
        self.turn = self.turn.wrapping_add(1);
        match policy {
            Policy::Rotation => rotation::order(copies.len(), self.turn),
            Policy::Random => random::order(copies.len(), random),
            Policy::LeastOutstanding => least_outstanding::order(
                copies,
                rotation::order(copies.len(), self.turn),
                &self.nodes,
            ),
            Policy::Ars(form) => {
                let rotated = rotation::order(copies.len(), self.turn);
                ars::order(form, copies, rotated, &mut self.nodes)
            }
        }
    }

    /// A request is sent to a node.
    pub fn sent(&mut self, node: &str) {
        self.nodes.sent(node);
    }

    /// A node answered.
    pub fn answered(&mut self, node: &str, response_time: Duration, feedback: NodeFeedback) {
        self.nodes.done(node);
        self.nodes.note(node, response_time, feedback);
    }

    /// A request ended without an answer: it failed, or nobody waits for it any more.
    pub fn failed(&mut self, node: &str) {
        self.nodes.done(node);
    }

    /// Requests of this coordinator in flight to a node.
    pub fn outstanding(&self, node: &str) -> u64 {
        self.nodes.outstanding(node)
    }

    /// What is known of each node that answered once, by name.
    pub fn rows(&self, form: ArsForm) -> Vec<Row> {
        let clients = self.nodes.known();
        let rows = self.nodes.iter().filter_map(|(node, outstanding, stats)| {
            let stats = stats?;
            let rank_ms = form.rank_ms(&stats, outstanding, clients);
            Some(Row { node: node.to_owned(), stats, rank_ms })
        });
        rows.collect()
    }

    /// Forgets nodes that left, but for those with requests in flight.
    pub fn retain(&mut self, present: impl Fn(&str) -> bool) {
        self.nodes.retain(present);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feedback(queue: u64, service_ms: u64) -> NodeFeedback {
        NodeFeedback { queue, service_time: Duration::from_millis(service_ms) }
    }

    #[test]
    fn counters_return_to_zero() {
        let mut selector = Selector::default();
        for _ in 0..3 {
            selector.sent("a");
        }
        assert_eq!(selector.outstanding("a"), 3);
        selector.failed("a");
        selector.answered("a", Duration::from_millis(5), feedback(0, 5));
        assert_eq!(selector.outstanding("a"), 1);
        selector.retain(|_| false);
        assert_eq!(selector.outstanding("a"), 1, "a request in flight is not forgotten");
        selector.failed("a");
        selector.retain(|_| false);
        assert!(selector.rows(ArsForm::Corrected).is_empty());
    }

    #[test]
    fn every_policy_names_every_copy_once() {
        let mut selector = Selector::default();
        selector.answered("b", Duration::from_millis(5), feedback(1, 5));
        let ars = [ArsForm::Inverted, ArsForm::Corrected, ArsForm::QueueOnly].map(Policy::Ars);
        for policy in
            [Policy::Rotation, Policy::Random, Policy::LeastOutstanding].into_iter().chain(ars)
        {
            for random in [0, 1, u64::MAX, 12_345_678_901_234_567_890] {
                let mut order = selector.order(policy, &["a", "b", "c"], random);
                order.sort_unstable();
                assert_eq!(order, [0, 1, 2], "{policy:?}");
                assert_eq!(selector.order(policy, &[], random), Vec::<usize>::new());
            }
        }
    }

    #[test]
    fn an_idle_fast_node_wins_over_a_slow_one() {
        for form in [ArsForm::Corrected, ArsForm::QueueOnly] {
            let mut selector = Selector::default();
            for _ in 0..20 {
                selector.answered("slow", Duration::from_millis(80), feedback(4, 20));
                selector.answered("fast", Duration::from_millis(6), feedback(0, 5));
            }
            let first = selector.order(Policy::Ars(form), &["slow", "fast"], 0)[0];
            assert_eq!(first, 1, "{form:?}");
            // With many requests in flight to it, the fast one is no longer the better.
            for _ in 0..12 {
                selector.sent("fast");
            }
            let first = selector.order(Policy::Ars(form), &["slow", "fast"], 0)[0];
            assert_eq!(first, 0, "{form:?}");
        }
    }
}
