//! Couchbase's change protocol: codec, producer, consumer, vbuckets.
//!
//! | module | is |
//! | --- | --- |
//! | [`codec`] | packets and typed messages, pure |
//! | [`policy`] | failover tables, flow control, liveness, takeover, memory: pure state machines |
//! | [`bucket`] | vbuckets, in memory and on disk |

pub mod bucket;
pub mod codec;
mod error;
pub mod policy;

pub use error::{Error, Result};
