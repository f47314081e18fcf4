//! What can hold a transfer, a copy or a follower back.

use serde::Serialize;

/// A cause. Its row in [`super::RULES`] says how it is recognised and what lifts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// The limiter of a node.
    RateLimit,
    /// Chunks that travel while nothing else could.
    Latency,
    /// The path between the nodes is full.
    Bandwidth,
    /// Operations are replayed one batch after another.
    OperationReplay,
    /// Every recovery slot is taken.
    AllocationSlots,
    /// No node may hold the copy.
    AllocationBlock,
    /// A disk is busy with the transfer.
    Disk,
    /// All cores of a node are busy.
    Cpu,
    /// One thread is busy, where several could be.
    ThreadCpu,
    /// The node is kept from running by its control group.
    CpuQuota,
    /// Garbage collections stop the node.
    Gc,
    /// A bound on memory refuses work.
    Memory,
    /// Merges hold indexing back.
    MergeThrottle,
    /// Something else uses what the transfer needs.
    NoisyNeighbour,
    /// The follower reads too slowly from its leader.
    FollowerReader,
    /// The follower writes more slowly than it reads.
    FollowerWriter,
    /// The follower stopped for good.
    FollowerStopped,
    /// Fewer sockets to a proxy than there should be.
    Proxy,
    /// Searches go to a node that answers late.
    ReplicaRouting,
    /// Nothing that can be seen is near a limit.
    Unknown,
}

impl Class {
    /// The name for people.
    pub fn label(self) -> &'static str {
        match self {
            Class::RateLimit => "rate limit",
            Class::Latency => "latency",
            Class::Bandwidth => "bandwidth",
            Class::OperationReplay => "operation replay",
            Class::AllocationSlots => "allocation slots",
            Class::AllocationBlock => "allocation block",
            Class::Disk => "disk",
            Class::Cpu => "CPU",
            Class::ThreadCpu => "thread CPU",
            Class::CpuQuota => "CPU quota",
            Class::Gc => "garbage collection",
            Class::Memory => "memory",
            Class::MergeThrottle => "merge throttle",
            Class::NoisyNeighbour => "noisy neighbour",
            Class::FollowerReader => "follower reader",
            Class::FollowerWriter => "follower writer",
            Class::FollowerStopped => "follower stopped",
            Class::Proxy => "proxy",
            Class::ReplicaRouting => "replica routing",
            Class::Unknown => "unknown",
        }
    }
}
