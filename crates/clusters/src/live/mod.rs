//! Clusters that we did not start: asking them, and looking at them.
//!
//! | module | holds |
//! | --- | --- |
//! | `address`, `tls` | where they are, whom we trust; who we are: [`crate::Credentials`] |
//! | `client` | [`LiveClient`]: several hosts, patience, errors that say what to do |
//! | `parse` | answers as typed observations; pure |
//! | `pacing` | when what is asked again; pure |
//! | `questions` | what is asked, and what is lost without an answer |
//! | `version` | who answers, and whether narrows was built for it |
//! | `sampler` | [`Sampler`]: one look at a time, as cheap as the moment allows |
//!
//! The one rule: what is here only reads.

mod client;
mod pacing;
mod parse;
mod questions;
mod round_trips;
mod sampler;
mod version;

pub(crate) use version::{ask_version, check_version};

pub use crate::http::{Address, LiveOptions, TlsOptions};
pub use client::LiveClient;
pub use sampler::{Depth, Sampler};
