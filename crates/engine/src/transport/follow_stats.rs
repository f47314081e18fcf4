//! How a shard follows, in the numbers of `_ccr/stats`.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::failure::Failure;

/// How a shard follows, under the names of the field.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are those of the field's stats")]
pub struct FollowStats {
    pub leader_global_checkpoint: Option<u64>,
    pub leader_max_seq_no: Option<u64>,
    pub follower_global_checkpoint: Option<u64>,
    pub follower_max_seq_no: Option<u64>,
    pub last_requested_seq_no: Option<u64>,
    pub outstanding_read_requests: u64,
    pub outstanding_write_requests: u64,
    pub write_buffer_operation_count: u64,
    pub write_buffer_size_in_bytes: u64,
    pub follower_mapping_version: u64,
    /// Version of the leader's aliases that the follower has.
    pub follower_aliases_version: u64,
    pub follower_settings_version: u64,
    pub total_read_time_millis: u64,
    pub total_read_remote_exec_time_millis: u64,
    pub successful_read_requests: u64,
    pub failed_read_requests: u64,
    pub operations_read: u64,
    pub bytes_read: u64,
    pub total_write_time_millis: u64,
    pub successful_write_requests: u64,
    pub failed_write_requests: u64,
    pub operations_written: u64,
    /// First operation, retries, what went wrong.
    pub read_exceptions: Vec<(u64, u32, String)>,
    pub time_since_last_read_millis: Option<u64>,
    pub fatal_exception: Option<Failure>,
    /// The error of the last write that failed: not in the field.
    pub last_write_exception: Option<String>,
}

impl FollowStats {
    /// Operations that the leader is known to have and the follower has not.
    pub fn lag(&self) -> u64 {
        let next = |seq_no: Option<u64>| seq_no.map_or(0, |seq_no| seq_no + 1);
        next(self.leader_global_checkpoint).saturating_sub(next(self.follower_global_checkpoint))
    }

    /// The object of `_ccr/stats`, but for what names the shard.
    pub fn to_json(&self) -> Value {
        // The field's number for "no operation yet".
        let number = |seq_no: Option<u64>| seq_no.map_or(-1, |seq_no| seq_no as i64);
        let cause = |kind: &str, reason: &str| json!({ "type": kind, "reason": reason });
        let exceptions: Vec<Value> = self
            .read_exceptions
            .iter()
            .map(|(from, retries, why)| {
                let exception = cause("exception", why);
                json!({ "from_seq_no": from, "retries": retries, "exception": exception })
            })
            .collect();
        let mut object = json!({
            "leader_global_checkpoint": number(self.leader_global_checkpoint),
            "leader_max_seq_no": number(self.leader_max_seq_no),
            "follower_global_checkpoint": number(self.follower_global_checkpoint),
            "follower_max_seq_no": number(self.follower_max_seq_no),
            "last_requested_seq_no": number(self.last_requested_seq_no),
            "outstanding_read_requests": self.outstanding_read_requests,
            "outstanding_write_requests": self.outstanding_write_requests,
            "write_buffer_operation_count": self.write_buffer_operation_count,
            "write_buffer_size_in_bytes": self.write_buffer_size_in_bytes,
            "follower_mapping_version": self.follower_mapping_version,
            "follower_settings_version": self.follower_settings_version,
            "follower_aliases_version": self.follower_aliases_version,
            "total_read_time_millis": self.total_read_time_millis,
            "total_read_remote_exec_time_millis": self.total_read_remote_exec_time_millis,
            "successful_read_requests": self.successful_read_requests,
            "failed_read_requests": self.failed_read_requests,
            "operations_read": self.operations_read,
            "bytes_read": self.bytes_read,
            "total_write_time_millis": self.total_write_time_millis,
            "successful_write_requests": self.successful_write_requests,
            "failed_write_requests": self.failed_write_requests,
            "operations_written": self.operations_written,
            "read_exceptions": exceptions,
            "time_since_last_read_millis":
                self.time_since_last_read_millis.map_or(-1, |ms| ms as i64),
        });
        if let Some(fatal) = &self.fatal_exception {
            object["fatal_exception"] = cause(&fatal.kind, &fatal.reason);
        }
        if let Some(why) = &self.last_write_exception {
            object["narrows"] = json!({ "last_write_exception": why });
        }
        object
    }
}
