//! What befalls a node while a load is measured.

use std::time::Duration;

/// A fault of one node. Whatever the end of the run, it is undone.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// The node.
    pub node: String,
    /// What befalls it.
    pub kind: FaultKind,
    /// When, since the load began, warm-up included.
    pub at: Duration,
    /// How long; until the load has ended without it.
    pub lasts: Option<Duration>,
}

/// What can befall a node.
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
    /// It is cut off: what others send it does not arrive, connections stay, and nobody is told.
    Cut,
    /// All its searches fail at once.
    Fail,
    /// It ends in order, and starts again when the fault is over.
    Stop,
    /// It ends as by `kill -9`, and starts again when the fault is over.
    Kill,
}

impl FaultKind {
    /// The name of every kind.
    pub const NAMES: [&str; 7] = ["slow", "load", "pause", "cut", "fail", "stop", "kill"];
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
        }
    }
}
