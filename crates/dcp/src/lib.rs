#![doc = include_str!("../README.md")]

pub mod auth;
pub mod bucket;
pub mod client;
pub mod codec;
pub mod consumer;
pub mod drain;
mod error;
pub mod idle;
pub mod look;
pub mod planted;
pub mod policy;
mod producer;
pub mod rebalance;
pub mod server;
pub mod wire;

pub use error::{Error, Result};
