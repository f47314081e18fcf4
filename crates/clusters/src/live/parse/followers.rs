//! `_ccr/stats` of Elasticsearch and `_plugins/_replication/follower_stats` of OpenSearch.

use record::observation::Follower;
use serde_json::Value;

use super::{count, elements, entries, text_at};

fn signed(value: Option<&Value>) -> Option<i64> {
    value?.as_i64()
}

/// Every following shard of `_ccr/stats`.
pub(crate) fn ccr(answer: &Value) -> Vec<Follower> {
    let indices = elements(answer.pointer("/follow_stats/indices"));
    let mut all: Vec<Follower> =
        indices.flat_map(|index| elements(index.get("shards"))).filter_map(shard).collect();
    all.sort_by(|a, b| (&a.index, a.shard).cmp(&(&b.index, b.shard)));
    all
}

fn shard(value: &Value) -> Option<Follower> {
    let at = |key: &str| count(value.get(key));
    Some(Follower {
        index: text_at(value, "/follower_index")?,
        shard: at("shard_id").and_then(|shard| u32::try_from(shard).ok()),
        remote: text_at(value, "/remote_cluster"),
        status: None,
        leader_checkpoint: signed(value.get("leader_global_checkpoint")),
        follower_checkpoint: signed(value.get("follower_global_checkpoint")),
        outstanding_reads: at("outstanding_read_requests"),
        outstanding_writes: at("outstanding_write_requests"),
        write_buffer_ops: at("write_buffer_operation_count"),
        write_buffer_bytes: at("write_buffer_size_in_bytes"),
        read_ms: at("total_read_time_millis"),
        read_remote_ms: at("total_read_remote_exec_time_millis"),
        write_ms: at("total_write_time_millis"),
        ops_read: at("operations_read"),
        bytes_read: at("bytes_read"),
        ops_written: at("operations_written"),
        reads: at("successful_read_requests"),
        failed_reads: at("failed_read_requests"),
        fatal: text_at(value, "/fatal_exception/reason"),
    })
}

/// Every following index of the replication plugin.
pub(crate) fn replication(answer: &Value) -> Vec<Follower> {
    let index = |(name, value): (&String, &Value)| {
        let at = |key: &str| count(value.get(key));
        Follower {
            index: name.clone(),
            leader_checkpoint: signed(value.get("leader_checkpoint")),
            follower_checkpoint: signed(value.get("follower_checkpoint")),
            write_ms: at("total_write_time_millis"),
            ops_read: at("operations_read"),
            ops_written: at("operations_written"),
            failed_reads: at("failed_read_requests"),
            ..Follower::default()
        }
    };
    entries(answer.get("index_stats")).map(index).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn reads_both_flavours() {
        let answer = serde_json::from_str(include_str!("samples/ccr_stats.json")).unwrap();
        let found = ccr(&answer);
        assert_eq!(
            (found[0].shard_name().as_str(), found[0].lag_ops()),
            ("follower[0]", Some(256))
        );
        assert_eq!((found[0].read_ms, found[0].read_remote_ms), (Some(32768), Some(16384)));
        let plugin =
            json!({"index_stats": {"f": {"leader_checkpoint": 9, "follower_checkpoint": 4}}});
        assert_eq!(replication(&plugin)[0].lag_ops(), Some(5));
    }
}
