#![doc = include_str!("../README.md")]

pub mod core;
pub mod error;
pub mod following;
mod ids;
mod node;
pub mod planted;
pub mod recovery;
pub mod remote;
pub mod replication;
pub mod search;
pub mod settings;
pub mod shard;
pub mod state;
pub mod transport;

pub use crate::core::{Core, NodeConfig};
pub use error::Error;
pub use node::{DiskSize, Node, Placement, ShardContents, check_addresses, place};
pub use shard::LocalShard;
pub use store::Segments;
