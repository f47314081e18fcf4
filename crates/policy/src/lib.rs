//! Pure policies: `now` and an event in, a decision out. No clock, no I/O, no randomness of their own.
//!
//! | file | decides |
//! | --- | --- |
//! | [`transfer::chunk_scheduler`] | which chunk of which file is fetched next, and how many at once |
//! | [`transfer::opening`] | which chunks are asked for together with the session, before files are known |
//! | [`rate_limiter`] | how long a recovery waits for its node's `max_bytes_per_sec` |
//! | [`transfer::accounting`] | which limit each moment of a transfer is charged to |
//! | [`following`] | what a follower reads and writes next |
//! | [`retention`] | which operations a leader keeps for whom, and until when |
//! | [`transfer::compression`] | whether what is fetched is worth compressing |
//! | [`backoff`] | how long a failed request waits before it is tried again |
//! | [`selection`] | which copy of a shard answers a search |
//! | [`routing`] | which shard a document belongs to |
//! | [`foreground`] | whether the users of a node suffer, so that recoveries give way |
//!
//! The rule: whatever a policy needs to know is told to it, so that the same calls always give the
//! same answers, in the real world, in the virtual one and in a test.

pub mod backoff;
pub mod following;
pub mod foreground;
pub mod rate_limiter;
pub mod retention;
pub mod routing;
pub mod selection;
pub mod transfer;
