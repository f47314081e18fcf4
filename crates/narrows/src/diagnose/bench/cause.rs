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
    Slots,
    Block,
    Cpu,
    ThreadCpu,
    DiskRead,
    DiskWrite,
    /// Completely Fair Queuing leaves the device idle after each read.
    DiskScheduler,
    Neighbour,
}

impl Cause {
    /// The class that is right.
    pub(crate) fn class(self) -> Class {
        match self {
            Cause::RateLimit => Class::RateLimit,
            Cause::Latency => Class::Latency,
            Cause::Bandwidth | Cause::Window => Class::Bandwidth,
            Cause::Slots => Class::AllocationSlots,
            Cause::Block => Class::AllocationBlock,
            Cause::Cpu => Class::Cpu,
            Cause::ThreadCpu => Class::ThreadCpu,
            Cause::DiskRead | Cause::DiskWrite | Cause::DiskScheduler => Class::Disk,
            Cause::Neighbour => Class::NoisyNeighbour,
        }
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
