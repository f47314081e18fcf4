//! The tests of this crate that need no binary of narrows.

mod borrowed_settings;
mod common;
mod gaps;
mod late;
mod live_client;
mod looks;
mod manager;
mod patience;
mod placed;
mod put_back;
mod transcripts;
mod virtual_clusters;
