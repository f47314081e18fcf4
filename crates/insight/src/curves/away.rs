//! When a node was away, which its curves leave out.

use record::NodeSample;

/// A node was away where each of the others left more samples than so many between two of its own.
const MISSED: usize = 3;

/// From when to when a node left no sample while others did, in seconds since the variant began: it was down, or out of
/// reach.
#[derive(Default)]
pub(super) struct Away(Vec<(f64, f64)>);

impl Away {
    /// `all_ms` are the times of the samples of all nodes, in order.
    pub(super) fn of(
        samples: &[(f64, &NodeSample)],
        all_ms: &[f64],
        others: usize,
        begins_ms: f64,
    ) -> Away {
        let until = |ms: f64| all_ms.partition_point(|t_ms| *t_ms <= ms);
        let since = |t_ms: f64| (t_ms - begins_ms) / 1000.0;
        let gap = |pair: &[(f64, &NodeSample)]| {
            let (from_ms, to_ms) = (pair[0].0, pair[1].0);
            let missed = until(to_ms) - until(from_ms) > MISSED * others + 1;
            missed.then(|| (since(from_ms), since(to_ms)))
        };
        Away(samples.windows(2).filter_map(gap).collect())
    }

    /// The middle of each such time.
    pub(super) fn middles_s(&self) -> impl Iterator<Item = f64> {
        self.0.iter().map(|(from_s, to_s)| (from_s + to_s) / 2.0)
    }

    /// Whether it was away at any time between these.
    pub(super) fn is_between(&self, from_s: f64, to_s: f64) -> bool {
        self.middles_s().any(|at_s| from_s < at_s && at_s < to_s)
    }
}
