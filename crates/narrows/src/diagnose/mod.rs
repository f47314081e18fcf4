//! Injected causes, and the verdicts on them.
//!
//! | file | holds |
//! | --- | --- |
//! | `bed` | two nodes on two sites of one cluster, indices to recover, recoveries that go on |
//! | `bench` | cases drawn from seeds, and scores of the verdicts on them |
//!
//! A verdict is right if its first finding is of a class that the injection is one of; of a healthy recovery, if
//! nothing is found.

mod bed;
pub(crate) mod bench;

use std::time::Duration;

use insight::diagnosis::Class;

pub(crate) use bed::Bed;

/// Round trip of the case that has one.
const RTT: Duration = Duration::from_millis(100);
/// So much of one core a starved node has at most.
const QUOTA_SHARE_MAX: f64 = 0.1;
/// And less where it needs less: a recovery is to take so long at least, well above what counts as short.
const STARVED_RECOVERY: Duration = Duration::from_millis(4500);
const LIMIT: &str = "indices.recovery.max_bytes_per_sec";

/// One injected cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Case {
    /// Its name on the command line.
    pub(crate) name: &'static str,
    /// What is injected, in words.
    pub(crate) injected: &'static str,
    /// The classes that are right; empty where nothing is to be found.
    pub(crate) expected: &'static [Class],
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Throttle,
    Link,
    Cpu,
    Slots,
    Block,
    Healthy,
}

#[rustfmt::skip]
pub(crate) const CASES: [Case; 6] = [
    Case { name: "throttle", kind: Kind::Throttle, expected: &[Class::RateLimit],
           injected: "indices.recovery.max_bytes_per_sec = 4mb" },
    Case { name: "link", kind: Kind::Link, expected: &[Class::Latency],
           injected: "a round trip of 100 ms between the nodes, settings as they come" },
    Case { name: "cpu", kind: Kind::Cpu, expected: &[Class::CpuQuota],
           injected: "the target's control group has a tenth of a core or less, no limit on the rate" },
    Case { name: "slots", kind: Kind::Slots, expected: &[Class::AllocationSlots],
           injected: "12 shards, node_concurrent_recoveries = 1, a round trip of 100 ms" },
    Case { name: "block", kind: Kind::Block, expected: &[Class::AllocationBlock],
           injected: "a replica that no node may hold" },
    Case { name: "healthy", kind: Kind::Healthy, expected: &[],
           injected: "nothing: near nodes, no limit on the rate" },
];

impl Case {
    /// Why it cannot be injected on this machine.
    pub(crate) fn obstacle(&self) -> Option<&'static str> {
        let obstacle = "no control group with a quota can be made here (root on Linux can)";
        (self.kind == Kind::Cpu && machine::CONTROL_GROUPS.look().is_err()).then_some(obstacle)
    }

    /// Whether something goes on that a probe could change.
    pub(crate) fn can_be_probed(&self) -> bool {
        !matches!(self.kind, Kind::Block | Kind::Healthy)
    }
}
