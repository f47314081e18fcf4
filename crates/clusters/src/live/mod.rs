//! Clusters that we did not start: asking them, and looking at them.
//!
//! | module | holds |
//! | --- | --- |
//! | `address`, `credentials`, `tls` | where they are, who we are, whom we trust |
//! | `client` | [`LiveClient`]: several hosts, patience, errors that say what to do |
//! | `parse` | answers as typed observations; pure |
//! | `sampler` | [`Sampler`]: one look at a time, as cheap as the moment allows |
//!
//! The one rule: what is here only reads.

mod address;
mod client;
mod credentials;
mod parse;
mod round_trips;
mod sampler;
mod tls;

pub use address::Address;
pub use client::{LiveClient, LiveOptions};
pub use credentials::{Credentials, VARIABLES};
pub use sampler::{Depth, Sampler};
pub use tls::TlsOptions;
