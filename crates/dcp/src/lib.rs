//! Couchbase's change protocol.
pub mod codec;
pub mod policy;
