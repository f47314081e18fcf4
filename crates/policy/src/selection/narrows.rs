//! The copy that is expected to answer first: ours.
//!
//! A node with k search threads, on which a search takes s once it runs, and that has n searches, answers the next one
//! after about `s` while a thread is free and `s x (n + 1) / k` once none is. The rank is that time, with two weights.
//! Company costs: `s x (1 + n / k)` up to k, since threads share cores and caches. And waiting counts threefold,
//! `3 x s x (n + 1) / k` beyond k: a thread that is free elsewhere, slower or not, serves everybody sooner, whereas
//! who is sent to the back of the fastest queue delays those behind. Each part is known as well as it can be:
//!
//! - **n** is what this coordinator has in flight there, which is exact and now, and what others have (the node says
//!   all that it has; ours are taken off). Herds of coordinators follow the same old news, so news of others fade into
//!   their long-run mean in the time that a search takes.
//! - **s** is an average over some thirty answers of what each of them took, not of the averages that nodes say. What
//!   differs from the other nodes by no more than chance would counts as no difference (the shrinkage of C. Stein,
//!   1956): or else the luckiest node would be flooded. What made a node look slow is forgotten with time, not with
//!   decisions, so that a shunned node comes back at any rate of requests; a node that is silent while it has
//!   our requests is as slow as its silence is long. All that ran through the same silence tells of one event, and
//!   counts once: a node that stood still is what it was before.
//! - **A new node** has a window that grows with its answers, so that it is not flooded; and until it has warmed up it
//!   counts as no slower than the others, or its cold caches would keep it out.
//! - **A node that fails** is not fast. After a failure it gets one request at a time, after a pause that doubles
//!   (as circuit breakers do it), and its rank grows with the share of its failures.
//!
//! Sources: the expected delay of heterogeneous servers is the rule of "shortest expected delay" (S. Banawan, J.
//! Zahorjan 1989; P. Sparaggis, D. Towsley 1993); the reported queue is C3's (NSDI 2015); silence and slow start are
//! what proxies do (Envoy, slow start mode).

use world::Time;

use super::NodeTable;
use super::node_stats::Node;

/// The weights of company and of waiting. Of 0.25 to 2 and 2 to 4, these did best over the cases of the simulator.
const COMPANY: f64 = 1.0;
const WAITING: f64 = 3.0;
/// The guess for a node that has not told how many search threads it has.
const THREADS_UNKNOWN: f64 = 8.0;
const SERVICE_UNKNOWN_NS: f64 = 1e6;

/// A copy on the scale: those that wait for their turn come last, then the expected time counts.
fn rank(node: Option<&Node>, now: Time, typical_ns: f64) -> (u8, f64) {
    let Some(node) = node else { return (0, typical_ns) };
    let (observed, outstanding) = (&node.observed, node.outstanding);
    let set_back = match () {
        () if observed.pauses(now, outstanding) => 2,
        () if outstanding >= observed.window() => 1,
        () => 0,
    };
    let threads = if observed.threads > 0.0 { observed.threads } else { THREADS_UNKNOWN };
    let there = outstanding as f64 + observed.others(now);
    let service_ns = observed.expected_service_ns(now, outstanding, typical_ns);
    let answers = (1.0 - observed.failing).max(0.05);
    let stretch = match there < threads {
        true => 1.0 + COMPANY * there / threads,
        false => WAITING * (there + 1.0) / threads,
    };
    (set_back, service_ns * stretch / (answers * answers))
}

/// The median of what searches take on the nodes that are known, in nanoseconds.
fn typical_ns(copies: &[&str], nodes: &NodeTable) -> f64 {
    let observed = copies.iter().filter_map(|name| nodes.get(name)).map(|node| &node.observed);
    let mut times: Vec<f64> =
        observed.filter(|node| node.answers > 0).map(|node| node.service_ns).collect();
    times.sort_by(f64::total_cmp);
    // Of two, the lower: a slow node beside a good one is the one that is not typical.
    let middle = times.len().saturating_sub(1) / 2;
    times.get(middle).copied().unwrap_or(SERVICE_UNKNOWN_NS)
}

/// The copies by when they are expected to answer.
pub(super) fn order(
    now: Time,
    copies: &[&str],
    mut shuffled: Vec<usize>,
    nodes: &NodeTable,
) -> Vec<usize> {
    let typical = typical_ns(copies, nodes);
    let ranks: Vec<(u8, f64)> =
        copies.iter().map(|name| rank(nodes.get(name), now, typical)).collect();
    shuffled.sort_by(|a, b| {
        let (a, b) = (ranks[*a], ranks[*b]);
        a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
    });
    shuffled
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::NodeFeedback;
    use super::super::observed_node::ANSWERS_KNOWN;
    use super::*;
    use crate::moment::at;

    fn feedback(in_flight: u64, took_ms: u64) -> NodeFeedback {
        NodeFeedback {
            queue: 0,
            service_time: Duration::from_millis(took_ms),
            in_flight,
            threads: 4,
            took: Duration::from_millis(took_ms),
        }
    }

    /// A table in which each node has answered often, in the time given.
    fn table(rows: &[(&str, u64)]) -> NodeTable {
        let mut nodes = NodeTable::default();
        for (name, took_ms) in rows {
            for n in 0..100 {
                nodes.sent(at(n * 10), name);
                let took = Duration::from_millis(*took_ms);
                nodes.answered(at(n * 10 + 9), name, took, feedback(0, *took_ms));
            }
        }
        nodes
    }

    fn first(nodes: &NodeTable, now: Time, copies: &[&str], random: u64) -> usize {
        order(now, copies, super::super::random::order(copies.len(), random), nodes)[0]
    }

    /// How often each copy is first over many shuffles.
    fn shares(nodes: &NodeTable, now: Time, copies: &[&str]) -> Vec<u32> {
        let mut counts = vec![0; copies.len()];
        (0..120).for_each(|random| counts[first(nodes, now, copies, random)] += 1);
        counts
    }

    #[test]
    fn fast_nodes_are_used_until_waiting_there_costs_more() {
        let mut nodes = table(&[("fast", 10), ("slow", 30)]);
        let now = at(1000);
        // 10 x (1 + n/4) is below 30 while a thread is free; 3 x 10 x 5/4 is above it.
        for sent in 0..8 {
            let expected = if sent < 4 { 0 } else { 1 };
            assert_eq!(first(&nodes, now, &["fast", "slow"], 0), expected, "{sent} in flight");
            nodes.sent(now, "fast");
        }
        // With queues on both it is the time alone: 30 / 4 for each on the slow one, 10 / 4 on the fast.
        for _ in 0..6 {
            nodes.sent(now, "slow");
        }
        assert_eq!(first(&nodes, now, &["fast", "slow"], 0), 0);
    }

    #[test]
    fn equal_nodes_share_and_luck_is_no_difference() {
        let nodes = table(&[("a", 10), ("b", 10), ("c", 10)]);
        let all = shares(&nodes, at(1000), &["a", "b", "c"]);
        assert!(all.iter().all(|count| (25..=55).contains(count)), "{all:?}");
        // Times that vary as much as they last: ten lucky answers of one node change nothing.
        let mut nodes = NodeTable::default();
        for name in ["a", "b"] {
            for n in 0..100 {
                nodes.sent(at(n), name);
                let took_ms = if n % 10 == 0 { 100 } else { 10 };
                nodes.answered(at(n), name, Duration::from_millis(1), feedback(0, took_ms));
            }
        }
        for n in 0..9 {
            nodes.sent(at(100 + n), "a");
            nodes.answered(at(100 + n), "a", Duration::from_millis(1), feedback(0, 10));
        }
        let both = shares(&nodes, at(120), &["a", "b"]);
        assert!(both.iter().all(|count| (40..=80).contains(count)), "{both:?}");
    }

    #[test]
    fn what_others_have_there_counts() {
        let mut nodes = table(&[("a", 10), ("b", 10)]);
        for n in 0..20 {
            nodes.sent(at(1000 + n), "a");
            nodes.answered(at(1000 + n), "a", Duration::from_millis(10), feedback(12, 10));
        }
        assert_eq!(shares(&nodes, at(1020), &["a", "b"]), [0, 120]);
    }

    #[test]
    fn a_new_node_is_not_flooded_and_warms_up() {
        let mut nodes = table(&[("old", 10)]);
        let mut now = at(1000);
        for _ in 0..4 {
            nodes.sent(now, "old");
        }
        let copies = ["old", "new"];
        assert_eq!(first(&nodes, now, &copies, 0), 1);
        nodes.sent(now, "new");
        // It has its one; the next goes there once it answered.
        assert_eq!(first(&nodes, now, &copies, 0), 0);
        // Its caches are cold: it takes ten times as long. It is asked all the same, by more and more at once.
        for answers in 1..ANSWERS_KNOWN {
            now = now + Duration::from_millis(100);
            nodes.answered(now, "new", Duration::from_millis(100), feedback(0, 100));
            assert_eq!(first(&nodes, now, &copies, 0), 1, "after {answers}");
            nodes.sent(now, "new");
        }
        assert_eq!(nodes.get("new").unwrap().observed.window(), 16);
    }

    #[test]
    fn failing_fast_is_not_fast() {
        let mut nodes = table(&[("good", 50), ("bad", 10)]);
        assert_eq!(first(&nodes, at(1000), &["good", "bad"], 0), 1);
        nodes.sent(at(1000), "bad");
        nodes.failed(at(1001), "bad", Duration::from_millis(1));
        assert_eq!(first(&nodes, at(1002), &["good", "bad"], 0), 0);
        // After the pause one request tries it; meanwhile no other does.
        assert_eq!(first(&nodes, at(1102), &["good", "bad"], 0), 1);
        nodes.sent(at(1102), "bad");
        assert_eq!(first(&nodes, at(1103), &["good", "bad"], 0), 0);
        nodes.failed(at(1104), "bad", Duration::from_millis(1));
        assert_eq!(first(&nodes, at(1250), &["good", "bad"], 0), 0, "the pause doubled");
        assert_eq!(first(&nodes, at(1305), &["good", "bad"], 0), 1);
        // And where nothing else is there it is asked all the same.
        nodes.sent(at(1305), "bad");
        nodes.failed(at(1306), "bad", Duration::from_millis(1));
        assert_eq!(first(&nodes, at(1307), &["bad"], 0), 0);
    }

    #[test]
    fn a_node_that_stood_still_is_what_it_was_before() {
        let mut nodes = table(&[("good", 10), ("stood", 10)]);
        (0..8).for_each(|_| nodes.sent(at(1000), "stood"));
        // Meanwhile it is as slow as its silence is long.
        nodes.sent(at(5_000), "good");
        assert_eq!(first(&nodes, at(5_000), &["good", "stood"], 0), 0);
        nodes.answered(at(5_010), "good", Duration::from_millis(10), feedback(0, 10));
        // Eight answers tell of the same ten seconds.
        for _ in 0..8 {
            nodes.answered(at(11_000), "stood", Duration::from_secs(10), feedback(0, 10_000));
        }
        let both = shares(&nodes, at(11_010), &["good", "stood"]);
        assert!(both.iter().all(|count| (40..=80).contains(count)), "{both:?}");
        // One after another that takes as long is another matter.
        for n in 0..8 {
            nodes.sent(at(12_000 + n * 10_000), "stood");
            let ended = at(22_000 + n * 10_000);
            nodes.answered(ended, "stood", Duration::from_secs(10), feedback(0, 10_000));
        }
        assert_eq!(shares(&nodes, at(92_010), &["good", "stood"]), [120, 0]);
    }

    #[test]
    fn a_slow_node_comes_back_with_time_and_a_silent_one_is_left() {
        let mut nodes = table(&[("good", 10), ("bad", 400)]);
        nodes.sent(at(1000), "good");
        assert_eq!(first(&nodes, at(1000), &["good", "bad"], 0), 0);
        assert_eq!(first(&nodes, at(40_000), &["bad", "good"], 0), 0, "what was known is old");
        // The good one stops answering.
        nodes.sent(at(40_000), "bad");
        nodes.answered(at(40_010), "bad", Duration::from_millis(10), feedback(0, 10));
        nodes.sent(at(41_000), "good");
        assert_eq!(first(&nodes, at(48_000), &["good", "bad"], 0), 1);
    }
}
