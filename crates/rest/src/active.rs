//! `wait_for_active_shards`: how many copies of each shard must be started.

use std::time::Duration;

use super::error::bad_request;
use super::parameters::Query;
use engine::Node;
use engine::state::{ClusterState, IndexShardRoutingTable};
use engine::transport::Result;

/// The parameter.
pub(super) const ACTIVE: &[&str] = &["wait_for_active_shards"];

/// How many copies of a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Active {
    /// Every copy that there should be.
    All,
    /// So many.
    Count(usize),
}

impl Active {
    /// Reads the parameter.
    pub(super) fn read(query: &Query, default: usize) -> Result<Active> {
        match query.get(ACTIVE[0]) {
            None => Ok(Active::Count(default)),
            Some("all") => Ok(Active::All),
            Some(text) => text.parse().map(Active::Count).map_err(|_| {
                bad_request(format!("cannot parse [{}] [{text}]; write all or a number", ACTIVE[0]))
            }),
        }
    }

    /// Refuses more copies than an index has.
    pub(super) fn check(self, index: &str, replicas: u32) -> Result<()> {
        let copies = replicas as usize + 1;
        match self {
            Active::Count(count) if count > copies => Err(bad_request(format!(
                "invalid wait_for_active_shards [{count}] for [{index}]: cannot be greater than the \
                 number of its shard copies [{copies}]"
            ))),
            _ => Ok(()),
        }
    }

    fn enough(self, shard: &IndexShardRoutingTable) -> bool {
        let started = shard.copies.iter().filter(|copy| copy.is_started()).count();
        match self {
            Active::All => started == shard.copies.len(),
            Active::Count(count) => started >= count,
        }
    }

    /// Whether an index has enough; one that is not there has not.
    pub(super) fn holds(self, state: &ClusterState, index: &str) -> bool {
        state.routing.get(index).is_some_and(|shards| shards.iter().all(|shard| self.enough(shard)))
    }

    /// Waits until an index has enough; `false` if that takes longer than `limit`.
    pub(super) async fn wait(self, node: &Node, index: &str, limit: Duration) -> bool {
        self == Active::Count(0)
            || node.core().wait_for_state(limit, |state| self.holds(state, index)).await
    }

    /// As [`Active::wait`], and until every node knows of it: for an index that has just been created.
    pub(super) async fn wait_everywhere(self, node: &Node, index: &str, limit: Duration) -> bool {
        self == Active::Count(0)
            || node.core().wait_for_published(limit, |state| self.holds(state, index)).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_all_or_a_number() {
        let read = |text: &str| Active::read(&Query::parse(text).unwrap(), 1);
        assert_eq!(read(""), Ok(Active::Count(1)));
        assert_eq!(read("wait_for_active_shards=all"), Ok(Active::All));
        assert_eq!(read("wait_for_active_shards=2"), Ok(Active::Count(2)));
        assert!(read("wait_for_active_shards=-1").is_err());
        assert!(Active::Count(2).check("a", 1).is_ok());
        assert!(Active::Count(3).check("a", 1).unwrap_err().reason.contains("copies [2]"));
    }
}
