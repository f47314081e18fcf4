//! The chunks of a transfer: what is asked for, and what is known once it has come.

use std::time::Duration;

use world::Time;

/// One file to fetch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileSpan {
    /// Length in bytes.
    pub len: u64,
    /// Verified prefix in bytes that is resumed from.
    pub have: u64,
}

/// A range of a file to ask the source for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ChunkRequest {
    /// Index into the files given to a scheduler.
    pub file: u32,
    /// First byte.
    pub offset: u64,
    /// Bytes, never zero.
    pub len: u32,
}

/// What is known of a chunk once it is verified and written.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Delivery {
    /// When the request left.
    pub requested_at: Time,
    /// Time that a rate limiter held the chunk back, at the source and at the target together.
    pub throttled: Duration,
    /// Whether the users of either node suffer, as a
    /// [`ForegroundDetector`](crate::foreground::ForegroundDetector) finds.
    pub foreground_pressure: bool,
}
