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
        let cause = |kind: &str, reason: &str| json!({ "type": kind, "reason": reason });
        let exceptions: Vec<Value> = self
            .read_exceptions
            .iter()
            .map(|(from, retries, why)| {
                let exception = cause("exception", why);
                json!({ "from_seq_no": from, "retries": retries, "exception": exception })
            })
            .collect();
        let Value::Object(mut object) = json!(self) else { unreachable!("a struct is an object") };
        object.retain(|name, _| name != "fatal_exception" && name != "last_write_exception");
        // The field's number for what there was none of yet.
        object.values_mut().filter(|value| value.is_null()).for_each(|none| *none = json!(-1));
        object.insert("read_exceptions".to_owned(), exceptions.into());
        if let Some(fatal) = &self.fatal_exception {
            object.insert("fatal_exception".to_owned(), cause(&fatal.kind, &fatal.reason));
        }
        if let Some(why) = &self.last_write_exception {
            object.insert("narrows".to_owned(), json!({ "last_write_exception": why }));
        }
        Value::Object(object)
    }
}
