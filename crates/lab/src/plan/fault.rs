//! What befalls a node or the link while something is measured.

use std::time::Duration;

/// What [`Fault::node`] says of a fault that befalls no node.
pub(crate) const LINK: &str = "the link";

/// A fault of one node, of all nodes of a cluster, or of the link. Whatever the end of the run, it is undone.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// The node, or the cluster for all of its nodes at once.
    pub node: String,
    /// What befalls it.
    pub kind: FaultKind,
    /// When, since the load began, warm-up included; of a step it is when its turn comes.
    pub at: Duration,
    /// How long; until the load has ended without it.
    pub lasts: Option<Duration>,
}

/// What can befall a node or the link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FaultKind {
    /// All that it computes takes so many times as long.
    Slow {
        /// At least 1.
        factor: f64,
    },
    /// Processes of others keep its cores busy.
    Load {
        /// So many, each of them always ready to run: what the virtual world knows.
        processes: u32,
        /// What that is like where there are no such processes: all takes so many times as long; at least 1.
        factor: f64,
    },
    /// It stands still: its connections stay, and nothing answers.
    Pause,
    /// It is cut off: what others send it does not arrive, connections stay, and nobody is told. Of the link: nothing
    /// passes it.
    Cut,
    /// All its searches fail at once.
    Fail,
    /// It ends in order, and starts again when the fault is over.
    Stop,
    /// It ends as by `kill -9`, and starts again when the fault is over.
    Kill,
    /// Its disk takes no more than so many bytes. In the virtual world.
    FullDisk {
        /// Room that is left.
        free_bytes: u64,
    },
    /// Its clock jumps. In the virtual world; the jump stays unless the fault lasts for a time.
    Clock {
        /// Forward, or back where it is negative.
        by_ms: i64,
    },
}

impl FaultKind {
    /// The name of every kind.
    pub const NAMES: [&str; 9] =
        ["slow", "load", "pause", "cut", "fail", "stop", "kill", "full_disk", "clock"];
}

impl std::fmt::Display for FaultKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
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
                let way = if *by_ms < 0 { "back" } else { "forward" };
                let seconds = by_ms.unsigned_abs() as f64 / 1e3;
                write!(f, "set {} {way}", record::units::show_seconds(seconds))
            }
        }
    }
}
