//! The tests of this crate that need no binary of narrows.

mod borrowed_settings;
mod common;
mod live_client;
mod placed;
mod virtual_clusters;
