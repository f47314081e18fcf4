//! The embedded engine: a small replicated store after Elasticsearch's model, in either world.
//!
//! | module | holds |
//! | --- | --- |
//! | [`settings`] | every setting by its field name |
//! | [`state`] | the cluster state, its manager, allocation; pure |
//! | [`transport`] | what nodes say to each other |
//! | [`Node`] | a node: start, membership, copies |
//! | [`replication`] | writes |
//! | `search` | searches: query, then fetch; which copy answers |
//! | [`recovery`] | copies that come from elsewhere |
//! | [`following`] | what a follower does |
//! | `remote` | remote clusters, and what is known of them |
//! | [`rest`] | the REST face |
//!
//! The one rule: a node knows the world through [`world::Env`] alone, and decides
//! nothing itself that a policy can decide.

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
pub use node::{Node, check_addresses};
pub use shard::LocalShard;
pub use store::Segments;
