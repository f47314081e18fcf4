//! Prequal: probes beside the requests, and the rule of hot and cold.
//!
//! Source: B. Wydrowski, R. Kleinberg, S. M. Rumble, A. Archer, "Load is not what you should balance: Introducing
//! Prequal", NSDI 2024, sections 4 and 5, with its parameters. Each request sends 3 probes to nodes at random; answers
//! live in a pool of 16 for a second at most. A probe is hot if its requests in flight (RIF) exceed the 2^-0.25
//! quantile of what probes said lately; the cold probe of least latency is taken, or the one of least RIF if all are
//! hot.
//!
//! It was made for hundreds of servers, and a shard here has two to five copies, so that two things differ. A probe
//! counts only for shards that have a copy on its node, and a newer probe of a node takes an older one's place. How
//! often a probe may be used, `(1 + delta) / ((1 - m/n) x 3 - 1)`, has no value where the pool m is as large as the
//! servers n; then it may be used until it is too old.

use std::collections::VecDeque;
use std::time::Duration;

use world::Time;

use super::random;
use super::served::ProbeAnswer;

/// Probes that a request sends.
pub const PROBES: usize = 3;
const POOL_MAX: usize = 16;
const AGE_MAX: Duration = Duration::from_secs(1);
/// Probes that each request takes out of the pool.
const REMOVED: f64 = 1.0;
/// The paper's delta.
const DELTA: f64 = 1.0;
/// Requests in flight that the quantile is taken of.
const SEEN_MAX: usize = 64;
/// With fewer eligible probes a random copy is as good.
const ELIGIBLE_MIN: usize = 2;

#[derive(Clone, Debug)]
struct Probe {
    node: String,
    at: Time,
    in_flight: u64,
    latency_ns: u64,
    uses_left: u32,
}

/// The probes of one coordinator.
#[derive(Clone, Debug, Default)]
pub(super) struct Pool {
    /// Oldest first.
    probes: VecDeque<Probe>,
    seen: VecDeque<u64>,
    /// Whether the next probe to go is the worst, not the oldest.
    worst_next: bool,
}

impl Pool {
    /// The nodes to be probed beside a request.
    pub(super) fn targets(nodes: &[&str], random: u64) -> Vec<usize> {
        let mut places = random::order(nodes.len(), random);
        places.truncate(PROBES);
        places
    }

    /// A probe was answered. `servers` is how many nodes may be probed.
    pub(super) fn answered(&mut self, now: Time, node: &str, answer: ProbeAnswer, servers: usize) {
        if self.seen.len() == SEEN_MAX {
            self.seen.pop_front();
        }
        self.seen.push_back(answer.in_flight);
        self.probes.retain(|probe| probe.node != node);
        if self.probes.len() == POOL_MAX {
            self.probes.pop_front();
        }
        self.probes.push_back(Probe {
            node: node.to_owned(),
            at: now,
            in_flight: answer.in_flight,
            latency_ns: answer.latency.map_or(0, |latency| latency.as_nanos() as u64),
            uses_left: uses(servers),
        });
    }

    /// Forgets the probes of a node that did not answer or failed: what they say is no longer true.
    pub(super) fn forget(&mut self, node: &str) {
        self.probes.retain(|probe| probe.node != node);
    }

    fn hot_above(&self) -> u64 {
        let mut seen: Vec<u64> = self.seen.iter().copied().collect();
        seen.sort_unstable();
        let quantile = 0.5f64.powf(0.25);
        let place = (quantile * seen.len() as f64).ceil() as usize;
        seen.get(place.saturating_sub(1)).copied().unwrap_or(u64::MAX)
    }

    /// Orders the copies: the one that the rule takes, then the others at random.
    pub(super) fn order(&mut self, now: Time, copies: &[&str], random: u64) -> Vec<usize> {
        self.probes.retain(|probe| now - probe.at <= AGE_MAX && probe.uses_left > 0);
        let mut places = random::order(copies.len(), random);
        let threshold = self.hot_above();
        let key = |probe: &Probe| match probe.in_flight > threshold {
            true => (1, probe.in_flight, probe.latency_ns),
            false => (0, probe.latency_ns, probe.in_flight),
        };
        let eligible = |probe: &Probe| copies.contains(&probe.node.as_str());
        let mut all: Vec<usize> =
            (0..self.probes.len()).filter(|at| eligible(&self.probes[*at])).collect();
        all.sort_by_key(|at| key(&self.probes[*at]));
        if !all.is_empty() && all.len() >= ELIGIBLE_MIN.min(copies.len()) {
            let probe = &mut self.probes[all[0]];
            // The request that goes there now counts, until a newer probe does.
            probe.in_flight += 1;
            probe.uses_left -= 1;
            let best = copies.iter().position(|name| *name == probe.node);
            if let Some(at) = places.iter().position(|place| Some(*place) == best) {
                places[..=at].rotate_right(1);
            }
        }
        self.remove_one(threshold);
        places
    }

    /// Each request takes a probe out of a full pool, the oldest and the worst in turn, so that neither age nor badness
    /// gathers there.
    fn remove_one(&mut self, threshold: u64) {
        if self.probes.len() < POOL_MAX {
            return;
        }
        self.worst_next = !self.worst_next;
        let worst = |probe: &Probe| match probe.in_flight > threshold {
            true => (1, probe.in_flight),
            false => (0, probe.latency_ns),
        };
        let at = match self.worst_next {
            true => (0..self.probes.len()).max_by_key(|at| worst(&self.probes[*at])),
            false => Some(0),
        };
        if let Some(at) = at {
            self.probes.remove(at);
        }
    }
}

/// How often a probe may be used.
fn uses(servers: usize) -> u32 {
    let fresh = (1.0 - POOL_MAX as f64 / servers.max(1) as f64) * PROBES as f64 - REMOVED;
    if fresh <= 0.0 { u32::MAX } else { ((1.0 + DELTA) / fresh).ceil().max(1.0) as u32 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::moment::at;

    const COPIES: [&str; 4] = ["a", "b", "c", "d"];

    fn pool(rows: &[(&str, u64, u64)]) -> Pool {
        let mut pool = Pool::default();
        for (node, in_flight, ms) in rows {
            let latency = Some(Duration::from_millis(*ms));
            pool.answered(at(0), node, ProbeAnswer { in_flight: *in_flight, latency }, 4);
        }
        pool
    }

    #[test]
    fn the_fastest_of_the_cold_and_the_least_loaded_of_the_hot() {
        // Of four, the quantile lies at the fourth: only above 9 is hot, so d with 2 ms is taken though it has more.
        let mut cold = pool(&[("a", 3, 30), ("b", 1, 20), ("c", 9, 40), ("d", 5, 2)]);
        assert_eq!(cold.order(at(1), &COPIES, 0)[0], 3);
        let mut hot = pool(&[("a", 3, 30), ("b", 1, 20), ("c", 2, 10), ("d", 5, 2)]);
        hot.seen.clear();
        hot.seen.push_back(0);
        assert_eq!(hot.order(at(1), &COPIES, 0)[0], 1);
        // What it is sent counts: b has as many as c then, and c the less latency.
        assert_eq!(hot.order(at(1), &COPIES, 0)[0], 2);
    }

    #[test]
    fn probes_age_and_are_eligible_for_their_copies_alone() {
        let mut pool = pool(&[("a", 9, 90), ("b", 1, 1), ("x", 0, 0)]);
        assert_eq!(pool.order(at(999), &["a", "b"], 0)[0], 1);
        let firsts: std::collections::BTreeSet<usize> =
            (0..8).map(|random| pool.order(at(1001), &["a", "b"], random)[0]).collect();
        assert_eq!(firsts.len(), 2, "nothing is known: any");
    }

    #[test]
    fn reuse_is_as_the_formula_says_where_it_says_anything() {
        assert_eq!(uses(5), u32::MAX);
        assert_eq!(uses(100), 2, "2 / (0.84 x 3 - 1) = 1.3");
        assert_eq!(uses(40), 3, "2 / (0.6 x 3 - 1) = 2.5");
    }

    #[test]
    fn a_full_pool_loses_the_worst_and_the_oldest_in_turn() {
        let mut pool = Pool::default();
        let names: Vec<String> = (0..POOL_MAX).map(|n| format!("n{n:02}")).collect();
        let fill = |pool: &mut Pool| {
            for (n, name) in (0..).zip(&names) {
                let latency = Some(Duration::from_millis(if n == 7 { 900 } else { n }));
                pool.answered(at(n), name, ProbeAnswer { in_flight: 1, latency }, 100);
            }
        };
        let has = |pool: &Pool, name: &str| pool.probes.iter().any(|probe| probe.node == name);
        fill(&mut pool);
        pool.order(at(20), &["other"], 0);
        assert!(!has(&pool, "n07") && has(&pool, "n00"));
        fill(&mut pool);
        pool.order(at(20), &["other"], 0);
        assert!(has(&pool, "n07") && !has(&pool, "n00"));
    }
}
