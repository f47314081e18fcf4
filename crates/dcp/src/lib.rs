//! Couchbase's change protocol: codec, producer, consumer, vbuckets.
//!
//! | module | is |
//! | --- | --- |
//! | [`codec`] | packets and typed messages, pure |
//! | [`policy`] | failover tables, flow control, liveness, takeover, memory: pure state machines |
//! | [`auth`] | SASL: PLAIN and SCRAM, both sides, pure |
//! | [`bucket`] | vbuckets, in memory and on disk |
//! | [`wire`] | connections that carry packets, in both worlds |
//! | [`server`] | the binary protocol over buckets; [`consumer`] and its producer are the two sides of DCP |
//! | [`client`] | reaching a server: HELLO, authentication, the bucket |
//! | [`drain`] | reading a bucket's changes as fast as they come, or as is allowed |
//! | [`planted`] | faults that tests plant, to see whether checkers find them |
//! | [`rebalance`] | moving vbuckets through proxies, as a cluster manager does |

pub mod auth;
pub mod bucket;
pub mod client;
pub mod codec;
pub mod consumer;
pub mod drain;
mod error;
pub mod planted;
pub mod policy;
mod producer;
pub mod rebalance;
pub mod server;
pub mod wire;

pub use error::{Error, Result};
