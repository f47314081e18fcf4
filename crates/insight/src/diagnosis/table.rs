//! The table of causes: one line for each, with its class and the file in `causes/` that recognises it.
//!
//! `narrows explain --rules` prints the causes in this order. Where two causes explain the same recovery equally well,
//! the upper one counts; of a replay, of a follower and of a DCP connection, the first that answers does.

/// Hands every line of the table to a macro: [`super::Class`] and the list in `causes/mod.rs` are made from them.
macro_rules! table {
    ($each:ident) => {
        $each! {
            RateLimit: rate_limit,
            Latency: latency,
            Bandwidth: bandwidth,
            MergeThrottle: merge_throttle,
            OperationReplay: operation_replay,
            AllocationSlots: allocation_slots,
            AllocationBlock: allocation_block,
            CpuQuota: cpu_quota,
            Gc: gc,
            Cpu: cpu,
            ThreadCpu: thread_cpu,
            Disk: disk,
            Memory: memory,
            NoisyNeighbour: noisy_neighbour,
            FollowerStopped: follower_stopped,
            FollowerWriter: follower_writer,
            FollowerReader: follower_reader,
            Proxy: proxy,
            ReplicaRouting: replica_routing,
            DcpMemory: dcp_memory,
            DcpConsumer: dcp_consumer,
            DcpProducer: dcp_producer,
            Unknown: unknown,
        }
    };
}

pub(crate) use table;
