//! Of two copies taken at random, the one with the smaller product of peak-sensitive latency and requests in flight.
//!
//! Sources: M. Mitzenmacher, "The Power of Two Choices in Randomized Load Balancing" (1996); the peak EWMA of Finagle
//! (`PeakEwma.scala`) and linkerd: the average jumps to a sample above it and decays over 10 s. A failure counts as an
//! answer, as it does there: a node that fails fast looks fast.

use world::Time;

use super::{NodeTable, random};

/// Two at random, the better first; the others behind them for the case that both fail.
pub(super) fn order(now: Time, copies: &[&str], random: u64, nodes: &NodeTable) -> Vec<usize> {
    let mut places = random::order(copies.len(), random);
    let load = |place: usize| match nodes.get(copies[place]) {
        Some(node) => node.peak.load(now, node.outstanding),
        None => 0.0,
    };
    if let [first, second, ..] = places.as_slice()
        && load(*second) < load(*first)
    {
        places.swap(0, 1);
    }
    places
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::moment::at;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn takes_the_better_of_two_and_every_copy_at_times() {
        let mut nodes = NodeTable::default();
        for (name, took) in [("a", 50 * MS), ("b", 10 * MS), ("c", 30 * MS)] {
            nodes.node(name).peak.observe(at(1), took);
        }
        let mut firsts = [0; 3];
        for random in 0..600 {
            firsts[order(at(2), &["a", "b", "c"], random, &nodes)[0]] += 1;
        }
        // The worst never beats another; the best always does where it is drawn, in two of three.
        assert_eq!(firsts[0], 0);
        assert!((360..440).contains(&firsts[1]), "{firsts:?}");
    }

    #[test]
    fn who_never_answered_is_tried_with_one_request() {
        let mut nodes = NodeTable::default();
        nodes.node("old").peak.observe(at(1), 10 * MS);
        let first = |nodes: &NodeTable| order(at(2), &["old", "new"], 0, nodes)[0];
        assert_eq!(first(&nodes), 1);
        nodes.sent(at(2), "new");
        assert_eq!(first(&nodes), 0);
    }
}
