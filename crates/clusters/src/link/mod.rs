//! The link between clusters, or between the sites of one cluster: an emulator on a thread of its own.

mod sites;
mod thread;

pub(crate) use sites::SiteLink;

pub use thread::{LinkThread, measure_ceiling};
