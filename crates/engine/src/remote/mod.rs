//! Remote clusters: how they are reached, and what a node knows of their indices.
//!
//! | file | holds |
//! | --- | --- |
//! | `service` | what a node keeps of remote clusters |
//! | `sniffed` | where the nodes of one are |
//! | `addresses` | the addresses at which they are asked |
//! | `asking` | questions to a remote cluster, and which of its nodes answer |
//! | `patience` | how long they are waited for |
//! | `refresh` | the tasks that connect, and ask what has changed |
//! | `sockets` | the sockets to a proxy |
//! | `first_of` | the first success of several calls |
//! | `describe` | on a leader: its indices, as it describes them |
//! | `forwarding` | on a leader: requests that a node passes on |
//! | `claims` | what another cluster claims, checked |
//! | `wrong_seed` | what answers where a seed is to be |
//!
//! A node asks each remote cluster for its indices when it connects, and again from time to time. So a follow begins
//! without asking first, which saves a round trip. With its indices a cluster says where its nodes are, so that one
//! seed leads to all of them (`sniff` in the field). With mode `proxy` there is one address, and the node that answers
//! there passes on what is for others.

mod addresses;
mod asking;
pub(crate) mod claims;
mod describe;
mod first_of;
mod forwarding;
mod patience;
mod refresh;
mod service;
mod sniffed;
mod sockets;
mod wrong_seed;

pub(crate) use self::addresses::addresses;
pub use self::asking::{Listing, NODE_CONNECTIONS, connected_nodes, list};
pub(crate) use self::asking::{ask_index, take_mappings};
pub(crate) use self::describe::{describe, describe_all};
pub(crate) use self::first_of::first_of;
pub use self::service::RemoteClusterService;
pub use self::sockets::connected_sockets;
pub use self::wrong_seed::why_no_seed;
