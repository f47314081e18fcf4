//! A binary of its own: its tests need other people's clients, which are not on every machine.

mod capture;
#[path = "../it/common/mod.rs"]
mod common;
mod peers;
