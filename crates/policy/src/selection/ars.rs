//! Adaptive replica selection, as Elasticsearch and OpenSearch have had it.
//!
//! Sources: `ResponseCollectorService.ComputedNodeStats.innerRank` and
//! `IndexShardRoutingTable.rankShardsAndUpdateStats` of Elasticsearch 6.1, 7.13 and 9.5; the idea is C3's
//! (L. Suresh et al., NSDI 2015). With R and S in milliseconds and q = 1 + os x n + floor(Q):
//!
//! | form | rank | from |
//! | --- | --- | --- |
//! | [`ArsForm::FourthPower`] | R - 1/S + q^4 / S | before it was merged, the first tables of its benchmarks (2017) |
//! | [`ArsForm::Inverted`] | R - 1/S + q^3 / S | Elasticsearch 6.1 to 7.12, OpenSearch still |
//! | [`ArsForm::Corrected`] | R - S + q^3 x S | Elasticsearch 7.13 |
//! | [`ArsForm::QueueOnly`] | q^3 x S | Elasticsearch 9.5 |
//!
//! C3's mu is a rate; the first form put a time in its place, so that a slow node ranks better the longer its queue.
//!
//! Queues of losers follow `IndexShardRoutingTable.adjustStats`: `(minStats.queueSize + stats.queueSize) / 2`, of
//! integers.
//!
//! Before 7.13 a coordinator counts one request in flight to a node that it has none at
//! (`nodeSearchCounts.getOrDefault(nodeId, 1L)`, and 0 since then): an idle node ranks as one with a single request.

use super::NodeTable;
use super::node_stats::{ALPHA, NodeStats};

/// Which of its historical forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArsForm {
    /// As [`ArsForm::Inverted`], with the fourth power of the queue.
    FourthPower,
    /// With the service time inverted by mistake.
    Inverted,
    /// Corrected.
    Corrected,
    /// Without the response time.
    QueueOnly,
}

const NS_IN_MS: f64 = 1e6;

impl ArsForm {
    /// The requests in flight to a node as copies are ranked by them.
    fn counted(self, outstanding: u64) -> u64 {
        match self {
            ArsForm::FourthPower | ArsForm::Inverted => outstanding.max(1),
            ArsForm::Corrected | ArsForm::QueueOnly => outstanding,
        }
    }

    /// The rank of a node in milliseconds, with `outstanding` requests of this coordinator in flight to it and
    /// `clients` nodes that are known. The lowest wins.
    pub fn rank_ms(self, stats: &NodeStats, outstanding: u64, clients: usize) -> f64 {
        let (r, s) = (stats.response_ns / NS_IN_MS, stats.service_ns / NS_IN_MS);
        let q = 1.0 + (outstanding * clients as u64) as f64 + stats.queue.floor();
        let cube = q * q * q;
        match self {
            ArsForm::FourthPower => r - 1.0 / s + cube * q / s,
            ArsForm::Inverted => r - 1.0 / s + cube / s,
            ArsForm::Corrected => r - s + cube * s,
            ArsForm::QueueOnly => cube * s,
        }
    }

    /// What a loser becomes: each average is fed the mean of its own and the winner's, so that a node that is
    /// shunned is tried again after some decisions. Queues are whole numbers there, and so is their mean: the averages
    /// are cut off before it, and the half after it.
    fn adjusted(self, loser: &NodeStats, winner: &NodeStats) -> NodeStats {
        let step = |own: f64, other: f64| own + ALPHA * ((own + other) / 2.0 - own);
        let mean_queue = ((loser.queue.floor() + winner.queue.floor()) / 2.0).floor();
        NodeStats {
            queue: loser.queue + ALPHA * (mean_queue - loser.queue),
            response_ns: step(loser.response_ns, winner.response_ns),
            service_ns: match self {
                // No average then: the mean itself took its place.
                ArsForm::FourthPower | ArsForm::Inverted => {
                    (loser.service_ns + winner.service_ns) / 2.0
                }
                _ => step(loser.service_ns, winner.service_ns),
            },
        }
    }
}

/// Sorts the rotated copies by rank, those of unknown nodes first; and feeds the losers.
pub(super) fn order(
    form: ArsForm,
    copies: &[&str],
    mut rotated: Vec<usize>,
    nodes: &mut NodeTable,
) -> Vec<usize> {
    let clients = nodes.answered_count();
    let ranks: Vec<Option<f64>> = copies
        .iter()
        .map(|node| {
            let stats = nodes.stats(node)?;
            let outstanding = form.counted(nodes.outstanding(node));
            let rank = form.rank_ms(&stats, outstanding, clients);
            // A service time of nothing makes no number of the first form.
            Some(if rank.is_nan() { 0.0 } else { rank })
        })
        .collect();
    rotated.sort_by(|a, b| match (ranks[*a], ranks[*b]) {
        (Some(a), Some(b)) => a.total_cmp(&b),
        (a, b) => a.is_some().cmp(&b.is_some()),
    });
    let Some(winner) =
        rotated.first().and_then(|place| Some((copies[*place], nodes.stats(copies[*place])?)))
    else {
        return rotated;
    };
    for place in &rotated[1..] {
        let name = copies[*place];
        if let Some(loser) = nodes.stats(name).filter(|_| name != winner.0) {
            nodes.set(name, form.adjusted(&loser, &winner.1));
        }
    }
    rotated
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stats(queue: f64, response_ms: f64, service_ms: f64) -> NodeStats {
        NodeStats { queue, response_ns: response_ms * NS_IN_MS, service_ns: service_ms * NS_IN_MS }
    }

    #[test]
    fn ranks_are_those_of_the_formulas() {
        // q = 1 + 2 x 3 + floor(4.7) = 11, q^3 = 1331, q^4 = 14641.
        let node = stats(4.7, 30.0, 5.0);
        for (form, rank_ms) in [
            (ArsForm::FourthPower, 30.0 - 0.2 + 14641.0 / 5.0),
            (ArsForm::Inverted, 30.0 - 0.2 + 1331.0 / 5.0),
            (ArsForm::Corrected, 30.0 - 5.0 + 1331.0 * 5.0),
            (ArsForm::QueueOnly, 1331.0 * 5.0),
        ] {
            assert!((form.rank_ms(&node, 2, 3) - rank_ms).abs() < 1e-9, "{form:?}");
        }
    }

    #[test]
    fn the_first_form_prefers_the_slower_of_two_queues() {
        let (fast, slow) = (stats(3.0, 10.0, 2.0), stats(3.0, 10.0, 20.0));
        let rank = |form: ArsForm, node: &NodeStats| form.rank_ms(node, 0, 2);
        assert!(rank(ArsForm::Inverted, &slow) < rank(ArsForm::Inverted, &fast), "the known fault");
        assert!(rank(ArsForm::Corrected, &fast) < rank(ArsForm::Corrected, &slow));
    }

    #[test]
    fn the_fourth_power_shuns_a_queue_that_the_cube_still_takes() {
        // Responses after 10 and 12 ms; q of 4 and 3: 64/6 against 27/3 by cubes, 256/6 against 81/3 by fourth powers.
        let (longer, shorter) = (stats(3.0, 10.0, 6.0), stats(2.0, 12.0, 3.0));
        let prefers_longer =
            |form: ArsForm| form.rank_ms(&longer, 0, 2) < form.rank_ms(&shorter, 0, 2);
        assert!(prefers_longer(ArsForm::Inverted));
        assert!(!prefers_longer(ArsForm::FourthPower));
    }

    /// A request in flight to the faster of two nodes makes no difference before 7.13, where one is counted at the
    /// other, which has none.
    #[test]
    fn an_idle_node_counted_as_one_with_a_request() {
        let first = |form: ArsForm, requests: u64| {
            let mut nodes = NodeTable::default();
            nodes.set("faster", stats(0.0, 10.0, 5.0));
            nodes.set("idle", stats(0.0, 11.0, 5.0));
            (0..requests).for_each(|_| nodes.sent(world::Time(0), "faster"));
            order(form, &["faster", "idle"], vec![0, 1], &mut nodes)[0]
        };
        for form in [ArsForm::FourthPower, ArsForm::Inverted] {
            assert_eq!([0, 1, 2].map(|requests| first(form, requests)), [0, 0, 1], "{form:?}");
        }
        for form in [ArsForm::Corrected, ArsForm::QueueOnly] {
            assert_eq!([1, 2].map(|requests| first(form, requests)), [1, 1], "{form:?}");
        }
    }

    #[test]
    fn unknown_nodes_come_first_in_their_turn() {
        let mut nodes = NodeTable::default();
        nodes.set("b", stats(0.0, 1.0, 1.0));
        assert_eq!(
            order(ArsForm::Corrected, &["a", "b", "c"], vec![1, 2, 0], &mut nodes),
            [2, 0, 1]
        );
        assert_eq!(
            nodes.stats("b"),
            Some(stats(0.0, 1.0, 1.0)),
            "a winner without stats teaches nobody"
        );
    }

    #[test]
    fn losers_close_15_percent_of_the_gap() {
        for (form, service) in [
            (ArsForm::FourthPower, 0.5),
            (ArsForm::Inverted, 0.5),
            (ArsForm::Corrected, 0.85),
            (ArsForm::QueueOnly, 0.85),
        ] {
            let mut nodes = NodeTable::default();
            let (best, worst) = (stats(0.0, 10.0, 10.0), stats(20.0, 110.0, 110.0));
            nodes.set("a", best);
            nodes.set("b", worst);
            // The first form would choose b; it is b's service time that misleads it, so that a wins by rotation only
            // in the others.
            let ranked = order(form, &["a", "b"], vec![0, 1], &mut nodes);
            let (winner, loser) = (ranked[0], ranked[1]);
            let name = ["a", "b"][loser];
            let (own, other) = if loser == 1 { (worst, best) } else { (best, worst) };
            let now = nodes.stats(name).unwrap();
            let share = |now: f64, own: f64, other: f64| (now - other) / (own - other);
            assert!((share(now.queue, own.queue, other.queue) - 0.85).abs() < 1e-9, "{form:?}");
            assert!(
                (share(now.response_ns, own.response_ns, other.response_ns) - 0.85).abs() < 1e-9
            );
            assert!(
                (share(now.service_ns, own.service_ns, other.service_ns) - service).abs() < 1e-9
            );
            assert_eq!(
                nodes.stats(["a", "b"][winner]),
                Some(if winner == 0 { best } else { worst })
            );
        }
    }

    #[test]
    fn the_queue_of_a_loser_is_fed_a_whole_number() {
        let fed = |own: f64, other: f64| {
            let (loser, winner) = (stats(own, 1.0, 1.0), stats(other, 1.0, 1.0));
            let queue = ArsForm::Inverted.adjusted(&loser, &winner).queue;
            own + (queue - own) / ALPHA
        };
        // (1 + 2) / 2 and (0 + 0) / 2 of integers.
        for (own, other, whole) in [(2.9, 1.9, 1.0), (0.9, 0.9, 0.0), (20.0, 0.0, 10.0)] {
            assert!((fed(own, other) - whole).abs() < 1e-9, "{own} {other}: {}", fed(own, other));
        }
    }

    #[test]
    fn a_shunned_node_is_tried_again_after_some_decisions() {
        let mut nodes = NodeTable::default();
        nodes.set("good", stats(0.0, 10.0, 10.0));
        nodes.set("bad", stats(3.0, 400.0, 100.0));
        let mut decisions = 0;
        // In each decision the winner's averages are as they always were, and it has a request in flight.
        nodes.sent(world::Time(0), "good");
        while order(ArsForm::Corrected, &["good", "bad"], vec![0, 1], &mut nodes)[0] == 0 {
            decisions += 1;
            assert!(decisions < 100);
        }
        assert!(decisions > 0, "not at once");
    }
}
