//! The rules of this workspace that a machine can check. Nothing here is built or run but the tests themselves:
//!
//! ```text
//! cargo test --release -p house                          # all rules, in seconds
//! cargo test --release -p house circles -- --nocapture   # and every circle between files, crate by crate
//! ```

mod files;
mod graph;
mod imports;
mod layers;
mod source;
mod tidy;
