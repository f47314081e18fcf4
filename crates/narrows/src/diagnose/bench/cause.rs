//! What holds recoveries back, and what clients do beside.

use insight::diagnosis::Class;

/// Something that holds recoveries back, and that has a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    RateLimit,
    Latency,
    Bandwidth,
    /// Bytes that one connection may have under way: a cap for each flow.
    Window,
    /// Few connections that each have such a window.
    Sockets,
    /// Segments that the line loses.
    Loss,
    Slots,
    Block,
    Cpu,
    /// A control group gives a node's process a part of a core.
    Quota,
    /// Collections of garbage stop a node for a part of the time.
    Collections,
    ThreadCpu,
    DiskRead,
    DiskWrite,
    /// Completely Fair Queuing leaves the device idle after each read.
    DiskScheduler,
    /// Of the disk.
    Neighbour,
    /// Other processes on the machine of the target, which have its cores first.
    Crowd,
    /// Operations are replayed one batch after another.
    Replay,
}

impl Cause {
    /// The class that is right, and what is injected, in words.
    fn known(self) -> (Class, &'static str) {
        match self {
            Cause::RateLimit => (Class::RateLimit, "rate limit"),
            Cause::Latency => (Class::Latency, "round trip"),
            Cause::Bandwidth => (Class::Bandwidth, "the link's rate"),
            Cause::Window => (Class::Bandwidth, "a window by connection"),
            Cause::Sockets => (Class::Bandwidth, "few sockets"),
            // No counter of REST tells it from other things that keep a path from carrying more.
            Cause::Loss => (Class::Bandwidth, "loss on the link"),
            Cause::Slots => (Class::AllocationSlots, "allocation slots"),
            Cause::Block => (Class::AllocationBlock, "allocation block"),
            Cause::Cpu => (Class::Cpu, "full cores"),
            Cause::Quota => (Class::CpuQuota, "CPU quota"),
            Cause::Collections => (Class::Gc, "garbage collections"),
            Cause::ThreadCpu => (Class::ThreadCpu, "one slow core"),
            Cause::DiskRead => (Class::Disk, "reading from disk"),
            Cause::DiskWrite => (Class::Disk, "writing to disk"),
            Cause::DiskScheduler => (Class::Disk, "the disk's scheduler"),
            Cause::Neighbour => (Class::NoisyNeighbour, "noisy neighbour"),
            Cause::Crowd => (Class::NoisyNeighbour, "a noisy neighbour of the cores"),
            Cause::Replay => (Class::OperationReplay, "operation replay"),
        }
    }

    /// The class that is right.
    pub(crate) fn class(self) -> Class {
        self.known().0
    }

    /// What is injected, in words.
    pub(crate) fn name(self) -> &'static str {
        self.known().1
    }
}

/// Something that holds recoveries back, and that no class is for: `unknown` is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Oddity {
    /// The source stands still for a part of each second.
    SourcePauses,
    TargetPauses,
}

/// What clients do beside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Load {
    Search,
    Indexing,
}

impl Oddity {
    /// What is injected, in words.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Oddity::SourcePauses => "pauses of the source",
            Oddity::TargetPauses => "pauses of the target",
        }
    }
}

impl Load {
    /// What clients do, in words.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Load::Search => "searches",
            Load::Indexing => "indexing",
        }
    }
}
