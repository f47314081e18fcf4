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

pub mod config;
pub mod error;
pub mod following;
mod ids;
mod node;
pub mod planted;
pub mod recovery;
mod remote;
pub mod replication;
pub mod rest;
mod search;
pub mod settings;
pub mod state;
pub mod transport;

pub use config::NodeConfig;
pub use error::Error;
pub use node::{LocalShard, Node};
pub use store::Segments;
