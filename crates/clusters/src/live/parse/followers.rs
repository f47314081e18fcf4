//! `_ccr/stats` of Elasticsearch and `_plugins/_replication/follower_stats` of OpenSearch.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use record::observation::{AutoFollowError, FollowLimits, Follower};
use record::units::parse_size;
use serde_json::Value;

use super::{at, count, elements, entries, index_settings, text_at};

/// Errors of auto-follow that are kept: a manager tells its last 256, mostly of one reason.
const ERRORS_MAX: usize = 5;

fn signed(value: Option<&Value>) -> Option<i64> {
    value?.as_i64()
}

/// Every following shard of `_ccr/stats`.
pub(crate) fn ccr(answer: &Value) -> Vec<Follower> {
    let indices = elements(at(answer, "/follow_stats/indices"));
    let mut all: Vec<Follower> =
        indices.flat_map(|index| elements(index.get("shards"))).filter_map(shard).collect();
    all.sort_by(|a, b| (&a.index, a.shard).cmp(&(&b.index, b.shard)));
    all
}

/// The last indices that auto-follow could not begin to follow, out of `_ccr/stats`.
pub(crate) fn auto_follow_errors(answer: &Value) -> Vec<AutoFollowError> {
    let one = |error: &Value| {
        Some(AutoFollowError {
            leader: text_at(error, "/leader_index")?,
            at_ms: count(error.get("timestamp")),
            reason: text_at(error, "/auto_follow_exception/reason")?,
        })
    };
    let all = elements(at(answer, "/auto_follow_stats/recent_auto_follow_errors"));
    let mut all: Vec<AutoFollowError> = all.filter_map(one).collect();
    all.sort_by_key(|error| Reverse(error.at_ms));
    all.truncate(ERRORS_MAX);
    all
}

fn shard(value: &Value) -> Option<Follower> {
    let at = |key: &str| count(value.get(key));
    Some(Follower {
        index: text_at(value, "/follower_index")?,
        shard: at("shard_id").and_then(|shard| u32::try_from(shard).ok()),
        remote: text_at(value, "/remote_cluster"),
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
        since_read_ms: at("time_since_last_read_millis"),
        failed_reads: at("failed_read_requests"),
        failed_writes: at("failed_write_requests"),
        fatal: text_at(value, "/fatal_exception/reason"),
        reason: elements(value.get("read_exceptions"))
            .next()
            .and_then(|read| text_at(read, "/exception/reason")),
        ..Follower::default()
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
            failed_writes: at("failed_write_requests"),
            throttled_reads: at("throttled_read_requests"),
            throttled_writes: at("throttled_write_requests"),
            ..Follower::default()
        }
    };
    entries(answer.get("index_stats")).map(index).collect()
}

/// How many followers of the plugin were paused or have failed. Statistics are those of running tasks: such followers
/// are not among them.
pub(crate) fn replication_stopped(answer: &Value) -> u64 {
    let at = |key: &str| count(answer.get(key)).unwrap_or(0);
    at("num_paused_indices").saturating_add(at("num_failed_indices"))
}

/// What `_plugins/_replication/{index}/_status` says of a follower that does not run; none of one that does.
pub(crate) fn replication_status(index: &str, answer: &Value) -> Option<Follower> {
    let follower = Follower {
        index: index.to_owned(),
        remote: text_at(answer, "/leader_alias"),
        status: text_at(answer, "/status"),
        reason: text_at(answer, "/reason"),
        ..Follower::default()
    };
    follower.is_stopped().then_some(follower)
}

/// The followers of the plugin by the setting that makes an index one, out of `/_settings?flat_settings=true`.
pub(crate) fn replicated(answer: &Value) -> Vec<String> {
    let all = index_settings(answer).into_iter();
    all.filter(|(_, own)| own.contains_key(LEADER_INDEX)).map(|(name, _)| name).collect()
}

/// The setting of an index that follows another through OpenSearch's plugin.
const LEADER_INDEX: &str = "index.plugins.replication.follower.leader_index";

/// Every follower that is paused, out of `_ccr/info`.
pub(crate) fn ccr_paused(answer: &Value) -> Vec<Follower> {
    let paused = |info: &Value| {
        (info["status"] == "paused").then(|| Follower {
            index: text_at(info, "/follower_index").unwrap_or_default(),
            remote: text_at(info, "/remote_cluster"),
            status: Some("PAUSED".to_owned()),
            ..Follower::default()
        })
    };
    let all = elements(answer.get("follower_indices")).filter_map(paused);
    all.filter(|follower| !follower.index.is_empty()).collect()
}

/// What bounds the reads and writes of each follower that is not paused, by its index, out of `_ccr/info`.
pub(crate) fn ccr_limits(answer: &Value) -> BTreeMap<String, FollowLimits> {
    let limits = |info: &Value| {
        let parameters = info.get("parameters")?;
        let bytes = |key: &str| parse_size(parameters.get(key)?.as_str()?).ok();
        let limits = FollowLimits {
            reads: count(parameters.get("max_outstanding_read_requests")),
            read_ops: count(parameters.get("max_read_request_operation_count")),
            read_bytes: bytes("max_read_request_size"),
            write_buffer_bytes: bytes("max_write_buffer_size"),
        };
        Some((text_at(info, "/follower_index")?, limits))
    };
    elements(answer.get("follower_indices")).filter_map(limits).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// `ccr_stats.json` was made by hand after Elasticsearch's documentation of `_ccr/stats`: no Elasticsearch was run.
    #[test]
    fn reads_both_flavours() {
        let answer = serde_json::from_str(include_str!("samples/ccr_stats.json")).unwrap();
        let found = ccr(&answer);
        assert_eq!(
            (found[0].shard_name().as_str(), found[0].lag_ops()),
            ("follower[0]", Some(256))
        );
        assert_eq!((found[0].read_ms, found[0].read_remote_ms), (Some(32768), Some(16384)));
        assert_eq!(found[0].since_read_ms, Some(8));
        let plugin =
            json!({"index_stats": {"f": {"leader_checkpoint": 9, "follower_checkpoint": 4}}});
        assert_eq!(replication(&plugin)[0].lag_ops(), Some(5));
    }

    /// Made by hand after the documentation of `_ccr/stats`.
    #[test]
    fn the_last_errors_of_auto_follow_are_kept() {
        let error = |n: u64| {
            let why = json!({ "type": "exception", "reason": "soft deletes are not enabled" });
            json!({ "leader_index": format!("daily:logs-{n}"), "timestamp": n, "auto_follow_exception": why })
        };
        let errors: Vec<Value> = (0..9).map(error).collect();
        let answer = json!({ "auto_follow_stats": { "recent_auto_follow_errors": errors } });
        let found = auto_follow_errors(&answer);
        assert_eq!((found.len(), found[0].at_ms), (ERRORS_MAX, Some(8)));
        assert_eq!(found[0].leader, "daily:logs-8");
        assert_eq!(found[0].reason, "soft deletes are not enabled");
    }

    /// Made by hand after the documentation of `_ccr/stats`: reads that fail are tried again, and say why.
    #[test]
    fn reads_that_fail_say_why() {
        let failing = json!({ "from_seq_no": 7, "retries": 8, "exception": {
            "type": "no_such_remote_cluster_exception", "reason": "unable to connect to remote cluster [eu]",
        }});
        let shard = json!({ "follower_index": "f", "shard_id": 0, "read_exceptions": [failing] });
        let answer =
            json!({ "follow_stats": { "indices": [{ "index": "f", "shards": [shard] }] } });
        let found = ccr(&answer);
        let [one] = &found[..] else { panic!("{found:?}") };
        assert_eq!(one.reason.as_deref(), Some("unable to connect to remote cluster [eu]"));
        assert!(!one.is_stopped());
    }

    /// Made by hand after the documentation of `follower_stats` and the plugin's source (`FollowerStats.kt`,
    /// `FollowerStatsResponse.kt`): no such plugin was run.
    #[test]
    fn reads_the_statistics_of_the_plugin() {
        let answer = serde_json::from_str(include_str!("samples/follower_stats.json")).unwrap();
        let found = replication(&answer);
        assert_eq!((found.len(), found[0].index.as_str()), (1, "metrics"));
        assert_eq!((found[0].lag_ops(), found[0].shard), (Some(13_103), None));
        assert_eq!((found[0].throttled_reads, found[0].throttled_writes), (Some(0), Some(7)));
        assert_eq!(replication_stopped(&answer), 2);
        let many = json!({ "num_paused_indices": u64::MAX, "num_failed_indices": 1 });
        assert_eq!(replication_stopped(&many), u64::MAX);
    }

    #[test]
    fn followers_that_do_not_run_are_found_by_their_settings_and_say_why() {
        let settings = json!({
            "logs": { "settings": { LEADER_INDEX: "logs" } },
            "own": { "settings": { "index.number_of_shards": "1" } },
        });
        assert_eq!(replicated(&settings), ["logs"]);
        let status = |status: &str| {
            let answer =
                json!({ "status": status, "reason": "User initiated", "leader_alias": "eu" });
            replication_status("logs", &answer)
        };
        let paused = status("PAUSED").unwrap();
        assert_eq!(
            (paused.remote.as_deref(), paused.reason.as_deref()),
            (Some("eu"), Some("User initiated"))
        );
        assert_eq!(status("SYNCING"), None);
        let parameters =
            json!({ "max_outstanding_read_requests": 12, "max_read_request_size": "64kb" });
        let info = json!({ "follower_indices": [
            { "follower_index": "a", "remote_cluster": "eu", "status": "paused" },
            { "follower_index": "b", "remote_cluster": "eu", "status": "active", "parameters": parameters },
        ]});
        let (reads, read_bytes) = (Some(12), Some(64 << 10));
        let limits = FollowLimits { reads, read_bytes, ..FollowLimits::default() };
        assert_eq!(ccr_limits(&info), BTreeMap::from([("b".to_owned(), limits)]));
        let paused = ccr_paused(&info);
        assert_eq!((paused.len(), paused[0].index.as_str()), (1, "a"));
    }
}
