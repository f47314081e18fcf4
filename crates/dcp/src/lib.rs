//! Couchbase's change protocol.
pub mod codec;
