//! What a coordinator knows of each node: the averages of Elasticsearch's `ResponseCollectorService`, the requests in
//! flight (`OperationRouting.nodeSearchCounts`), and what C3, two choices and our own policy remember besides.

use std::collections::BTreeMap;
use std::time::Duration;

use world::Time;

use super::feedback::NodeFeedback;
use super::observed_node::ObservedNode;
use super::peak_ewma::PeakEwma;
use super::rate_control::RateControl;

/// Weight of a new sample in the moving averages (`ResponseCollectorService.ALPHA`).
pub(super) const ALPHA: f64 = 0.3;

/// What is known of a node that answered once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NodeStats {
    /// Moving average of its queue length.
    pub queue: f64,
    /// Moving average of the time from question to answer, in nanoseconds.
    pub response_ns: f64,
    /// The service time that it said last, in nanoseconds.
    pub service_ns: f64,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Node {
    pub(super) outstanding: u64,
    pub(super) stats: Option<NodeStats>,
    pub(super) c3: RateControl,
    pub(super) peak: PeakEwma,
    pub(super) observed: ObservedNode,
}

/// What is known of all nodes, by name.
#[derive(Clone, Debug, Default)]
pub struct NodeTable(BTreeMap<String, Node>);

impl NodeTable {
    pub(super) fn node(&mut self, name: &str) -> &mut Node {
        if !self.0.contains_key(name) {
            self.0.insert(name.to_owned(), Node::default());
        }
        self.0.get_mut(name).expect("it was put there just now")
    }

    pub(super) fn get(&self, name: &str) -> Option<&Node> {
        self.0.get(name)
    }

    pub(super) fn sent(&mut self, now: Time, name: &str) {
        let node = self.node(name);
        node.c3.sent(now);
        node.observed.sent(now, node.outstanding);
        node.outstanding += 1;
    }

    /// Takes in an answer; the first one seeds the averages.
    pub(super) fn answered(
        &mut self,
        now: Time,
        name: &str,
        response_time: Duration,
        feedback: NodeFeedback,
    ) {
        let queue = feedback.queue as f64;
        let response_ns = response_time.as_nanos() as f64;
        let service_ns = feedback.service_time.as_nanos() as f64;
        let node = self.node(name);
        node.outstanding = node.outstanding.saturating_sub(1);
        node.stats = Some(match node.stats {
            None => NodeStats { queue, response_ns, service_ns },
            Some(old) => NodeStats {
                queue: old.queue + ALPHA * (queue - old.queue),
                response_ns: old.response_ns + ALPHA * (response_ns - old.response_ns),
                service_ns,
            },
        });
        node.c3.received(now);
        node.peak.observe(now, response_time);
        node.observed.answered(now, &feedback, node.outstanding);
    }

    /// Takes in that a node failed after some time. Elasticsearch learns nothing from that.
    pub(super) fn failed(&mut self, now: Time, name: &str, after: Duration) {
        let node = self.node(name);
        node.outstanding = node.outstanding.saturating_sub(1);
        node.peak.observe(now, after);
        node.observed.failed(now);
    }

    /// A request ended for reasons that are not the node's.
    pub(super) fn abandoned(&mut self, name: &str) {
        let node = self.node(name);
        node.outstanding = node.outstanding.saturating_sub(1);
    }

    pub(super) fn set(&mut self, name: &str, stats: NodeStats) {
        self.node(name).stats = Some(stats);
    }

    pub(super) fn stats(&self, name: &str) -> Option<NodeStats> {
        self.0.get(name)?.stats
    }

    /// Requests in flight to a node.
    pub fn outstanding(&self, name: &str) -> u64 {
        self.0.get(name).map_or(0, |node| node.outstanding)
    }

    /// Nodes that answered once: the `clientNum` of the rank.
    pub(super) fn answered_count(&self) -> usize {
        self.0.values().filter(|node| node.stats.is_some()).count()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, u64, Option<NodeStats>)> {
        self.0.iter().map(|(name, node)| (name.as_str(), node.outstanding, node.stats))
    }

    pub(super) fn retain(&mut self, present: impl Fn(&str) -> bool) {
        self.0.retain(|name, node| present(name) || node.outstanding > 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn averages_move_and_the_first_sample_seeds_them() {
        let mut nodes = NodeTable::default();
        let of = |queue, ms| NodeFeedback {
            queue,
            service_time: Duration::from_millis(ms),
            ..NodeFeedback::default()
        };
        nodes.answered(Time(0), "a", Duration::from_millis(10), of(10, 4));
        let stats = nodes.stats("a").unwrap();
        assert_eq!((stats.queue, stats.response_ns, stats.service_ns), (10.0, 1e7, 4e6));
        nodes.answered(Time(0), "a", Duration::from_millis(20), of(0, 8));
        let stats = nodes.stats("a").unwrap();
        assert_eq!((stats.queue, stats.response_ns, stats.service_ns), (7.0, 1.3e7, 8e6));
    }
}
