//! How a copy on this node follows, in the numbers of `_ccr/stats`.

use policy::following::ReadException;

use super::follower::Follower;
use super::tasks::FollowTasks;
use crate::core::Core;
use crate::shard::LocalShard;
use crate::transport::FollowStats;

/// Of a copy on this node; none if it does not follow.
pub(crate) fn stats_of(
    core: &Core,
    tasks: &FollowTasks,
    shard: &LocalShard,
) -> Option<FollowStats> {
    let follower = tasks.get(shard.key())?;
    follower.note_checkpoint();
    let Follower { policy, metadata, fatal, last_write_failure, .. } = &*follower;
    let (policy, versions) = (policy.borrow(), metadata.versions());
    let counts = policy.counts();
    let millis = |time: std::time::Duration| time.as_millis() as u64;
    let exception = |e: &ReadException| (e.from, e.retries, e.exception.clone());
    let (ops, bytes) = policy.buffered();
    Some(FollowStats {
        leader_global_checkpoint: policy.leader_global_checkpoint(),
        leader_max_seq_no: policy.leader_max_seq_no(),
        follower_global_checkpoint: policy.follower_global_checkpoint(),
        follower_max_seq_no: policy.follower_max_seq_no(),
        last_requested_seq_no: policy.last_requested_seq_no(),
        outstanding_read_requests: policy.outstanding_reads() as u64,
        outstanding_write_requests: policy.outstanding_writes() as u64,
        write_buffer_operation_count: ops,
        write_buffer_size_in_bytes: bytes,
        follower_mapping_version: versions.mappings,
        follower_aliases_version: versions.aliases,
        follower_settings_version: versions.settings,
        total_read_time_millis: millis(counts.total_read_time),
        total_read_remote_exec_time_millis: millis(counts.total_read_remote_exec_time),
        successful_read_requests: counts.successful_read_requests,
        failed_read_requests: counts.failed_read_requests,
        operations_read: counts.operations_read,
        bytes_read: counts.bytes_read,
        total_write_time_millis: millis(counts.total_write_time),
        successful_write_requests: counts.successful_write_requests,
        failed_write_requests: counts.failed_write_requests,
        operations_written: counts.operations_written,
        read_exceptions: policy.exceptions().map(exception).collect(),
        time_since_last_read_millis: counts.last_read_at.map(|at| millis(core.env.now() - at)),
        fatal_exception: fatal.borrow().clone(),
        last_write_exception: last_write_failure.borrow().clone(),
    })
}
