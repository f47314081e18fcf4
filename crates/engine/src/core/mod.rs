//! What every feature of a node may hold: its world, its configuration, its connections, the cluster state as it was
//! published, and the copies that are open.
//!
//! | file | holds |
//! | --- | --- |
//! | `config`, `basic_auth`, `release` | what a node is started with; what its clients must show, and which release they are told |
//! | `activity`, `changed_copies` | which copies are in use; which of them a new state may ask something of |
//! | `throttles`, `compression` | rate limits of recoveries; which paths are compressed |
//! | `published` | the cluster state and the settings as this node knows them |
//! | `shared` | [`Core`], which holds these, and what is called of the parts above |
//! | `state` | how a new state is taken over, and waited for |
//! | `task_manager` | the requests of clients that the node works on, and the last results that nobody waited for |
//! | `calls` | requests to other nodes, to the manager, and to itself |
//! | `proxied` | requests to a remote cluster that is reached through one address |
//! | `copies` | the shard copies that are open on this node, their use and their failure |
//! | `recovery_speed` | how fast recoveries may go, and whether users of this node suffer |
//!
//! The one rule: nothing here knows a feature. What must be called upwards is a function in [`Upward`], handed over
//! when the node starts.

mod activity;
mod basic_auth;
mod calls;
mod changed_copies;
mod compression;
mod config;
mod copies;
mod proxied;
mod published;
mod recovery_speed;
mod release;
mod shared;
mod state;
mod task_manager;
mod throttles;
mod warning;

pub(crate) use activity::QUIET_AFTER;
pub use basic_auth::BasicAuth;
pub(crate) use calls::MANAGER_TIMEOUT;
pub(crate) use changed_copies::{ChangedCopies, all_of};
pub use config::NodeConfig;
pub(crate) use proxied::{address_via, node_address};
pub use release::PresentedAs;
pub use shared::Core;
pub(crate) use shared::{Submit, Upward};
pub use task_manager::{Alone, NewTask, RunningTask, TaskManager};
pub(crate) use throttles::Throttle;
pub(crate) use warning::warn;
pub use warning::{beginning_of_warnings, print_warning, print_warnings_with};
