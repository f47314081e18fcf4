//! The load of a variant.

use crate::load::{Extent, Load, Operation};

/// A load as a variant sends it.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadUse {
    /// What is sent, one operation after another; at least one.
    pub operations: Vec<Operation>,
    /// What is sent in its place in virtual time.
    pub full: FullLoad,
    /// How each operation is sent; a run gives it hosts, its seed, and gaps for each lap.
    pub load: Load,
    /// The nodes that are asked, in turn; all of the leader's where none is named.
    pub nodes: Vec<String>,
    /// Threads of the driver, in the real world.
    pub threads: u32,
}

/// A load in virtual time, on indices that have sizes and no words.
#[derive(Clone, Debug, PartialEq)]
pub struct FullLoad {
    /// Repetitions, where they differ from the plan's.
    pub laps: Option<u32>,
    /// The operations, as searches that cost and count.
    pub operations: Vec<Operation>,
    /// What each operation sends before it is measured, where indices are loaded by their sizes.
    pub warm_up: Extent,
    /// What is measured of each operation there.
    pub measured: Extent,
}
