//! What a look has no answer to.

use record::observation::Observation;

/// The question for active recoveries, as gaps name it.
pub(super) const RECOVERY: &str = "/_recovery";
/// The question for the health, as gaps name it.
pub(super) const HEALTH: &str = "/_cluster/health";
/// The question for copies, as gaps name it.
pub(super) const SHARDS: &str = "/_cat/shards";
/// The question for statistics of nodes, as gaps name it.
pub(super) const NODES: &str = "/_nodes/stats";
/// The questions for followers, as gaps name them.
pub(super) const FOLLOWERS: [&str; 2] = ["/_ccr/stats", "/_plugins/_replication"];

/// Whether a look tells which recoveries go on; where it does not, none is not zero.
pub fn tells_of_recoveries(look: &Observation) -> bool {
    !lacks(look, RECOVERY)
}

/// Whether a look has no answer to a question.
pub(super) fn lacks(look: &Observation, path: &str) -> bool {
    look.gaps.iter().any(|gap| gap.path == path)
}
