//! Copies in numbers, as `_stats` and `_nodes/stats` show them.

use serde_json::{Map, Value, json};
use store::{ShardStats, Timed};

/// The sums over copies, by the names of the field's metrics. What this engine does not count is left out, as of
/// merges all but how many go on: the index library does them by itself.
pub fn stats_json<'a>(copies: impl IntoIterator<Item = &'a ShardStats>) -> Map<String, Value> {
    let copies: Vec<&ShardStats> = copies.into_iter().collect();
    let sum = |of: fn(&ShardStats) -> u64| copies.iter().map(|copy| of(copy)).sum::<u64>();
    let timed = |of: fn(&ShardStats) -> Timed| {
        let mut all = Timed::default();
        copies.iter().for_each(|copy| all += of(copy));
        (all.count, all.time.as_millis() as u64)
    };
    let indexing = timed(|copy| copy.work.indexing);
    let deletes = timed(|copy| copy.work.deletes);
    let found = timed(|copy| copy.work.found);
    let missing = timed(|copy| copy.work.missing);
    let queries = timed(|copy| copy.work.queries);
    let fetches = timed(|copy| copy.work.fetches);
    let refreshes = timed(|copy| copy.work.refreshes);
    let flushes = timed(|copy| copy.work.flushes);
    let json = json!({
        "docs": { "count": sum(|s| s.documents), "deleted": sum(|s| s.deleted) },
        "store": { "size_in_bytes": sum(|s| s.store_bytes) },
        "indexing": {
            "index_total": indexing.0,
            "index_time_in_millis": indexing.1,
            "delete_total": deletes.0,
            "delete_time_in_millis": deletes.1,
        },
        "get": {
            "total": found.0 + missing.0,
            "time_in_millis": found.1 + missing.1,
            "exists_total": found.0,
            "exists_time_in_millis": found.1,
            "missing_total": missing.0,
            "missing_time_in_millis": missing.1,
        },
        "search": {
            "query_total": queries.0,
            "query_time_in_millis": queries.1,
            "fetch_total": fetches.0,
            "fetch_time_in_millis": fetches.1,
        },
        "refresh": { "total": refreshes.0, "total_time_in_millis": refreshes.1 },
        "flush": { "total": flushes.0, "total_time_in_millis": flushes.1 },
        "merges": { "current": sum(|s| s.merging) },
        "segments": { "count": sum(|s| s.segments) },
        "translog": {
            "operations": sum(|s| s.log_ops),
            "size_in_bytes": sum(|s| s.log_bytes),
            "uncommitted_operations": sum(|s| s.uncommitted_ops),
            "uncommitted_size_in_bytes": sum(|s| s.uncommitted_bytes),
        },
        "request_cache": {
            "hit_count": sum(|s| s.request_cache_hits),
            "miss_count": sum(|s| s.request_cache_misses),
        },
    });
    match json {
        Value::Object(metrics) => metrics,
        _ => Map::new(),
    }
}
