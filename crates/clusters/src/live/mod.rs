//! Clusters that were not started here: asking and observing them.
//!
//! | module | holds |
//! | --- | --- |
//! | `transcript` | what was asked and answered, written down and played again |
//! | `sent_changes` | which changes were sent to a host and not answered |
//! | `answer` | what a host answered, and whether it is the cluster that did; pure |
//! | `client` | [`LiveClient`]: several hosts, retries, errors that say what to do |
//! | `parse` | answers as typed observations, and the [`Leaves`] of any answer; pure |
//! | `pacing` | how often each question is asked; pure |
//! | `questions` | paths and filters, what is unknown without their answers, and what has to be allowed for them |
//! | `version` | flavour and version of a cluster, and whether narrows was built for it |
//! | `round_trips` | round-trip times between nodes, which no API reports |
//! | `inventory` | what a cluster consists of |
//! | `user_times` | [`UserClock`]: how long searches and indexed operations take |
//! | `sampler` | [`Sampler`]: one observation after another, each as cheap as the moment allows |
//!
//! The one rule: what is here only reads.

mod answer;
mod client;
mod inventory;
mod pacing;
mod parse;
mod questions;
mod round_trips;
mod sampler;
mod sent_changes;
mod transcript;
mod user_times;
mod version;

pub(crate) use version::{ask_version, check_version};

pub use crate::http::{Address, LiveOptions, TlsOptions};
pub use client::{LiveClient, LookUnderWay};
pub use inventory::inventory;
pub use parse::{Leaf, Leaves, Take};
pub use sampler::{Depth, Sampler};
pub use transcript::{Header, Replay, Transcript, is_transcript};
pub use user_times::{UserClock, UserTimes};
