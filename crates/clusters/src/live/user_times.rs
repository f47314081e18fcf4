//! What the users of a cluster feel, as `_nodes/stats` tells it: how long searches and indexed operations took from one
//! question to the next, and what was refused.

use std::collections::BTreeMap;

use serde_json::Value;

use super::LiveClient;
use super::parse::{NodeTimes, node_times};
use crate::Result;

const PATH: &str = "/_nodes/stats/thread_pool,indices/search,indexing?timeout=3s&filter_path=nodes.*.name,\
    nodes.*.indices.search.query_total,nodes.*.indices.search.query_time_in_millis,\
    nodes.*.indices.indexing.index_total,nodes.*.indices.indexing.index_time_in_millis,\
    nodes.*.thread_pool.search.rejected,nodes.*.thread_pool.write.rejected";
/// The least number of operations whose mean says something.
const COUNTED_MIN: u64 = 5;

/// What users felt since the question before. What is not told is none.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct UserTimes {
    /// Mean time of a search, on the node where it is longest, in milliseconds.
    pub search_ms: Option<f64>,
    /// The same of an operation that is indexed.
    pub indexing_ms: Option<f64>,
    /// Searches and writes that thread pools refused.
    pub rejected: u64,
}

/// Asks again and again.
#[derive(Debug, Default)]
pub struct UserClock {
    before: BTreeMap<String, NodeTimes>,
}

impl UserClock {
    /// Asks once. The first answer has nothing to be compared with.
    pub async fn ask(&mut self, client: &LiveClient) -> Result<UserTimes> {
        let answer = client.get(PATH).await?;
        Ok(self.take(&answer))
    }

    fn take(&mut self, answer: &Value) -> UserTimes {
        let now = node_times(answer);
        let mut times = UserTimes::default();
        for (node, now) in &now {
            let Some(before) = self.before.get(node) else { continue };
            let mean = |count: fn(&NodeTimes) -> Option<u64>, ms: fn(&NodeTimes) -> Option<u64>| {
                let counted = count(now)?.checked_sub(count(before)?)?;
                let took = ms(now)?.checked_sub(ms(before)?)?;
                (counted >= COUNTED_MIN).then(|| took as f64 / counted as f64)
            };
            let longer = |one: Option<f64>, other: Option<f64>| match (one, other) {
                (Some(one), Some(other)) => Some(one.max(other)),
                (one, other) => one.or(other),
            };
            let search = mean(|node| node.searches, |node| node.search_ms);
            let indexing = mean(|node| node.indexed, |node| node.indexing_ms);
            times.search_ms = longer(times.search_ms, search);
            times.indexing_ms = longer(times.indexing_ms, indexing);
            let rejected = now.rejected.zip(before.rejected);
            let rejected = rejected.map_or(0, |(now, before)| now.saturating_sub(before));
            times.rejected = times.rejected.saturating_add(rejected);
        }
        self.before = now;
        times
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_slowest_node_counts_and_few_searches_do_not() {
        let answer = |a: (u64, u64), b: (u64, u64), rejected: u64| {
            let node = |(count, ms): (u64, u64)| {
                json!({ "name": "x", "indices": { "search": {
                    "query_total": count, "query_time_in_millis": ms } },
                    "thread_pool": { "search": { "rejected": rejected } } })
            };
            json!({ "nodes": { "a": node(a), "b": node(b) } })
        };
        let mut clock = UserClock::default();
        assert_eq!(clock.take(&answer((100, 1000), (100, 1000), 1)), UserTimes::default());
        let times = clock.take(&answer((110, 1100), (110, 1400), 3));
        assert_eq!((times.search_ms, times.rejected), (Some(40.0), 4));
        assert_eq!(clock.take(&answer((112, 9100), (112, 9400), 3)).search_ms, None);
        // A node that started again counts from zero.
        assert_eq!(clock.take(&answer((50, 10), (50, 10), 0)), UserTimes::default());
        let many = clock.take(&answer((50, 10), (50, 10), u64::MAX));
        assert_eq!(many.rejected, u64::MAX, "no sum is too large");
    }
}
