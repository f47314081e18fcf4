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
//! | `c3.rs` | C3: its rank, and its control of rates |
//! | `two_choices.rs` | the better of two by peak-sensitive latency |
//! | `prequal.rs`, `served.rs` | Prequal: probes, the rule of hot and cold; and what a node answers to probes |
//! | `narrows.rs` | ours: the copy that is expected to answer first |
//!
//! A policy is a file, a variant of [`Policy`] and an arm in [`Selector::choose`]. Every policy learns from every
//! answer, whichever is in use, so that a policy that is switched to while searches run knows the nodes already.

mod ars;
mod c3;
mod feedback;
mod least_outstanding;
mod narrows;
mod node_stats;
mod observed_node;
mod peak_ewma;
mod prequal;
mod random;
mod rate_control;
mod rotation;
mod served;
#[cfg(test)]
mod simulator;
#[cfg(test)]
mod simulator_tests;
mod two_choices;

use std::time::Duration;

use world::Time;

pub use ars::ArsForm;
pub use feedback::NodeFeedback;
pub use node_stats::{NodeStats, NodeTable};
pub use served::{ProbeAnswer, ServedLatency};

/// How the copy is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// One after another, for each shard of each coordinator.
    Rotation,
    /// A random one.
    Random,
    /// The node with the fewest requests of this coordinator in flight.
    LeastOutstanding,
    /// Adaptive replica selection.
    Ars(ArsForm),
    /// C3, which may let a request wait.
    C3,
    /// Power of two choices with peak EWMA.
    TwoChoices,
    /// Prequal, which probes.
    Prequal,
    /// Ours.
    Narrows,
}

/// A shard that is to be asked.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// Its index.
    pub index: &'a str,
    /// Its number.
    pub shard: u32,
    /// The nodes that have a copy.
    pub copies: &'a [&'a str],
    /// Uniform over all of `u64`.
    pub random: u64,
}

/// What is to be done with a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Ask these places in [`Question::copies`]: the first, the next if that fails.
    Ask(Vec<usize>),
    /// Choose again at this time: until then every node has been sent all that it takes.
    WaitUntil(Time),
}

/// Chooses copies for one coordinator, which reports every request and answer to it.
#[derive(Clone, Debug, Default)]
pub struct Selector {
    turns: rotation::Turns,
    nodes: NodeTable,
    probes: prequal::Pool,
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
    /// A selector that knows nothing; `seed` decides at which of its copies each shard's rotation begins.
    pub fn new(seed: u64) -> Self {
        Selector { turns: rotation::Turns::new(seed), ..Selector::default() }
    }

    /// Orders the copies of a shard, or lets it wait.
    pub fn choose(&mut self, policy: Policy, now: Time, question: Question<'_>) -> Choice {
        let Question { index, shard, copies, random } = question;
        let turn = self.turns.next(index, shard);
        let rotated = || rotation::order(copies.len(), turn);
        Choice::Ask(match policy {
            Policy::Rotation => rotated(),
            Policy::Random => random::order(copies.len(), random),
            Policy::LeastOutstanding => least_outstanding::order(copies, rotated(), &self.nodes),
            Policy::Ars(form) => ars::order(form, copies, rotated(), &mut self.nodes),
            Policy::C3 => match c3::order(now, copies, rotated(), &mut self.nodes) {
                Ok(order) => order,
                Err(ready) => return Choice::WaitUntil(ready),
            },
            Policy::TwoChoices => two_choices::order(now, copies, random, &self.nodes),
            Policy::Prequal => self.probes.order(now, copies, random),
            Policy::Narrows => {
                narrows::order(now, copies, random::order(copies.len(), random), &self.nodes)
            }
        })
    }

    /// Places in `nodes` that are to be probed beside a request.
    pub fn probes(
        &self,
        policy: Policy,
        nodes: &[&str],
        random: impl FnOnce() -> u64,
    ) -> Vec<usize> {
        match policy {
            Policy::Prequal => prequal::Pool::targets(nodes, random()),
            _ => Vec::new(),
        }
    }

    /// A probe was answered; `servers` nodes may be probed.
    pub fn probed(&mut self, now: Time, node: &str, answer: ProbeAnswer, servers: usize) {
        self.probes.answered(now, node, answer, servers);
    }

    /// A request is sent to a node.
    pub fn sent(&mut self, now: Time, node: &str) {
        self.nodes.sent(now, node);
    }

    /// A node answered.
    pub fn answered(
        &mut self,
        now: Time,
        node: &str,
        response_time: Duration,
        feedback: NodeFeedback,
    ) {
        self.nodes.answered(now, node, response_time, feedback);
    }

    /// A node failed a request, some time after it was sent: it refused, broke, or was silent for too long.
    pub fn failed(&mut self, now: Time, node: &str, after: Duration) {
        self.nodes.failed(now, node, after);
        self.probes.forget(node);
    }

    /// A request ended for reasons that are not the node's: it was wrong, or nobody waits for it any more.
    pub fn abandoned(&mut self, node: &str) {
        self.nodes.abandoned(node);
    }

    /// Requests of this coordinator in flight to a node.
    pub fn outstanding(&self, node: &str) -> u64 {
        self.nodes.outstanding(node)
    }

    /// What is known of each node that answered once, by name.
    pub fn rows(&self, form: ArsForm) -> Vec<Row> {
        let clients = self.nodes.answered_count();
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

    /// Forgets indices that are gone; `count` are there.
    pub fn retain_indices(&mut self, count: usize, present: impl Fn(&str) -> bool) {
        self.turns.retain(count, present);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every policy.
    pub(super) const POLICIES: [Policy; 11] = [
        Policy::Rotation,
        Policy::Random,
        Policy::LeastOutstanding,
        Policy::Ars(ArsForm::FourthPower),
        Policy::Ars(ArsForm::Inverted),
        Policy::Ars(ArsForm::Corrected),
        Policy::Ars(ArsForm::QueueOnly),
        Policy::C3,
        Policy::TwoChoices,
        Policy::Prequal,
        Policy::Narrows,
    ];
    const NOW: Time = Time(1_000_000_000);

    fn feedback(queue: u64, service_ms: u64) -> NodeFeedback {
        let service_time = Duration::from_millis(service_ms);
        NodeFeedback { queue, service_time, in_flight: queue, threads: 1, took: service_time }
    }

    fn ask(selector: &mut Selector, policy: Policy, copies: &[&str], random: u64) -> Vec<usize> {
        match selector.choose(policy, NOW, Question { index: "a", shard: 0, copies, random }) {
            Choice::Ask(order) => order,
            Choice::WaitUntil(_) => panic!("{policy:?} waits"),
        }
    }

    #[test]
    fn counters_return_to_zero() {
        let mut selector = Selector::default();
        for _ in 0..4 {
            selector.sent(NOW, "a");
        }
        assert_eq!(selector.outstanding("a"), 4);
        selector.failed(NOW, "a", Duration::from_millis(1));
        selector.abandoned("a");
        selector.answered(NOW, "a", Duration::from_millis(5), feedback(0, 5));
        assert_eq!(selector.outstanding("a"), 1);
        selector.retain(|_| false);
        assert_eq!(selector.outstanding("a"), 1, "a request in flight is not forgotten");
        selector.abandoned("a");
        selector.retain(|_| false);
        assert!(selector.rows(ArsForm::Corrected).is_empty());
    }

    #[test]
    fn every_policy_names_every_copy_once() {
        let mut selector = Selector::default();
        selector.sent(NOW, "b");
        selector.answered(NOW, "b", Duration::from_millis(5), feedback(1, 5));
        let answer = ProbeAnswer { in_flight: 1, latency: None };
        for policy in POLICIES {
            for random in [0, 1, u64::MAX, 12_345_678_901_234_567_890] {
                selector.probed(NOW, "b", answer, 3);
                selector.probed(NOW, "c", answer, 3);
                let mut order = ask(&mut selector, policy, &["a", "b", "c"], random);
                order.sort_unstable();
                assert_eq!(order, [0, 1, 2], "{policy:?}");
                assert_eq!(ask(&mut selector, policy, &[], random), Vec::<usize>::new());
            }
        }
    }

    #[test]
    fn an_idle_fast_node_wins_over_a_slow_one() {
        let ars = [ArsForm::Corrected, ArsForm::QueueOnly].map(Policy::Ars);
        let others = [Policy::C3, Policy::TwoChoices, Policy::Narrows];
        for policy in ars.into_iter().chain(others) {
            let mut selector = Selector::default();
            for _ in 0..30 {
                for (node, response_ms, feedback) in
                    [("slow", 80, feedback(4, 20)), ("fast", 6, feedback(0, 5))]
                {
                    selector.answered(NOW, node, Duration::from_millis(response_ms), feedback);
                }
            }
            assert_eq!(ask(&mut selector, policy, &["slow", "fast"], 0)[0], 1, "{policy:?}");
            // With many requests in flight to it, the fast one is no longer the better.
            for _ in 0..40 {
                selector.sent(NOW, "fast");
            }
            assert_eq!(ask(&mut selector, policy, &["slow", "fast"], 0)[0], 0, "{policy:?}");
        }
    }

    #[test]
    fn prequal_alone_probes() {
        let selector = Selector::default();
        for policy in POLICIES {
            let probes = selector.probes(policy, &["a", "b", "c", "d"], || 5);
            assert_eq!(probes.len(), if policy == Policy::Prequal { 3 } else { 0 });
        }
    }
}
