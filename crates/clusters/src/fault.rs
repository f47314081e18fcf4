//! Faults that a node can be given.

use std::fmt;

use world::model::Disk;

/// What is wrong with a node while a fault lasts. On the link only [`FaultKind::Cut`] is possible.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FaultKind {
    /// Everything that the node computes takes `factor` times as long. A process gets that share of the cores that it
    /// would have if all nodes were busy. Where the system allows no control groups, the embedded engine waits
    /// after each computation.
    Slow {
        /// At least 1.
        factor: f64,
    },
    /// Other processes keep the node's cores busy. A process is capped at its fair share of cores, which it shares with
    /// enough processes of `stress-ng` to slow one of its threads by `factor`; without `stress-ng` the node is slowed
    /// by `factor`.
    Load {
        /// How many processes, each of them always ready to run: for the virtual world, which can count them.
        processes: u32,
        /// How much slower a thread of the node becomes, for real machines; at least 1.
        factor: f64,
    },
    /// The node stands still: its connections stay open, and nothing answers. It goes on when this process ends, too.
    Pause,
    /// What other nodes and clients send to the node does not arrive. Connections stay open, and nobody gets an error.
    /// On the link: nothing passes in either direction.
    Cut,
    /// All searches of copies on the node fail at once. Only the embedded engine can do that.
    Fail,
    /// The node is stopped in order, and started again at the end of the fault.
    Stop,
    /// The node is killed as by `kill -9`, and started again at the end of the fault.
    Kill,
    /// The node's disk has no more than this room left. A process needs a disk of its own for that.
    FullDisk {
        /// Bytes that are left free.
        free_bytes: u64,
    },
    /// The node's clock jumps. In the virtual world alone; it jumps back at the end of the fault.
    Clock {
        /// Milliseconds forward, or back where this is negative.
        by_ms: i64,
    },
}

/// What a disk reads and writes in a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskRates {
    /// Bytes that it reads, all requests together.
    pub read_bytes_per_s: u64,
    /// Bytes that it writes, all requests together.
    pub write_bytes_per_s: u64,
}

/// A disk of these rates, and else as usual.
impl From<DiskRates> for Disk {
    fn from(rates: DiskRates) -> Disk {
        let DiskRates { read_bytes_per_s, write_bytes_per_s } = rates;
        Disk { read_bytes_per_s, write_bytes_per_s, ..Disk::default() }
    }
}

/// What is done to a node while it runs: its statistics show it as they would show the real thing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Strain {
    /// Its disk reads and writes so many bytes a second at most; none is the machine's own rate. The embedded engine
    /// emulates that; OpenSearch needs a disk of its own.
    Disk(Option<DiskRates>),
    /// So many processes beside it write to its disk, each 1 MiB after another. Only OpenSearch with a disk of its own
    /// has such neighbours.
    Neighbours(u32),
    /// Garbage collections stop it for this share of the time, 0 to 1; at 0 it has its own alone. Only a JVM can do
    /// that.
    Collections(f64),
}

impl FaultKind {
    /// The name of every kind, as plans have it.
    pub const NAMES: [&str; 9] =
        ["slow", "load", "pause", "cut", "fail", "stop", "kill", "full_disk", "clock"];
}

/// What the node is: "paused", "cut off".
impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FaultKind::Slow { factor } => write!(f, "{factor} times as slow"),
            FaultKind::Load { processes, .. } => write!(f, "loaded by {processes} processes"),
            FaultKind::Pause => f.write_str("paused"),
            FaultKind::Cut => f.write_str("cut off"),
            FaultKind::Fail => f.write_str("failing every search"),
            FaultKind::Stop => f.write_str("stopped"),
            FaultKind::Kill => f.write_str("killed"),
            FaultKind::FullDisk { free_bytes } => {
                write!(f, "left with {} of disk", record::units::show_bytes(*free_bytes))
            }
            FaultKind::Clock { by_ms } => {
                let direction = if *by_ms < 0 { "back" } else { "forward" };
                let seconds = by_ms.unsigned_abs() as f64 / 1e3;
                write!(f, "set {} {direction}", record::units::show_seconds(seconds))
            }
        }
    }
}
