mod sites;
mod thread;

pub(crate) use sites::SiteLink;

pub use thread::{LinkThread, measure_ceiling, standalone_link};
