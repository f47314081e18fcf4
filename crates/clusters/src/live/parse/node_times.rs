//! What `_nodes/stats` tells of searches and indexed operations.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{count_at, entries, sum};

/// Counters of one node since its start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NodeTimes {
    pub(crate) searches: Option<u64>,
    pub(crate) search_ms: Option<u64>,
    pub(crate) indexed: Option<u64>,
    pub(crate) indexing_ms: Option<u64>,
    /// Searches and writes that were refused.
    pub(crate) rejected: Option<u64>,
}

/// Every node of an answer, by id.
pub(crate) fn node_times(answer: &Value) -> BTreeMap<String, NodeTimes> {
    let of = |(id, node): (&String, &Value)| {
        let at = |pointer: &str| count_at(node, pointer);
        let rejected = sum(["/thread_pool/search/rejected", "/thread_pool/write/rejected"].map(at));
        let times = NodeTimes {
            searches: at("/indices/search/query_total"),
            search_ms: at("/indices/search/query_time_in_millis"),
            indexed: at("/indices/indexing/index_total"),
            indexing_ms: at("/indices/indexing/index_time_in_millis"),
            rejected,
        };
        (id.clone(), times)
    };
    entries(answer.get("nodes")).map(of).collect()
}
