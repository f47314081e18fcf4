//! The field's parameters of a follower.

use std::time::Duration;

/// How much at once, under the names of the field. Defaults as in Elasticsearch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Operations that a read asks for.
    pub max_read_request_operation_count: u64,
    /// Bytes that a read asks for.
    pub max_read_request_size: u64,
    /// Reads at once.
    pub max_outstanding_read_requests: u64,
    /// Operations that a write holds.
    pub max_write_request_operation_count: u64,
    /// Bytes that a write holds.
    pub max_write_request_size: u64,
    /// Writes at once.
    pub max_outstanding_write_requests: u64,
    /// Operations in the buffer past which nothing is read.
    pub max_write_buffer_count: u64,
    /// Bytes in the buffer past which nothing is read.
    pub max_write_buffer_size: u64,
    /// The longest wait before a failed request is tried again.
    pub max_retry_delay: Duration,
    /// How long a read waits at the leader for what is new.
    pub read_poll_timeout: Duration,
    /// Whether an idle index is polled less often than `read_poll_timeout` says: true where nobody set it.
    pub may_rest: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            max_read_request_operation_count: 5120,
            max_read_request_size: 32 << 20,
            max_outstanding_read_requests: 12,
            max_write_request_operation_count: 5120,
            max_write_request_size: i64::MAX as u64,
            max_outstanding_write_requests: 9,
            max_write_buffer_count: i32::MAX as u64,
            max_write_buffer_size: 512 << 20,
            max_retry_delay: Duration::from_millis(500),
            read_poll_timeout: Duration::from_secs(60),
            may_rest: true,
        }
    }
}
