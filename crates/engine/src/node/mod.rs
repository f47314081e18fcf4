//! A node: what it is made of, its start and its end. The one place that knows all features.
//!
//! | file | holds |
//! | --- | --- |
//! | `parts` | [`Node`], the parts that it is made of |
//! | `start` | start and stop |
//! | `dispatch` | what a node does with each request of another |
//! | `membership` | joining, and staying a member |
//! | `manager`, `managing` | the cluster manager: the state and its events; publishing, and watching the nodes |
//! | `reconcile` | brings up the copies that belong on this node, and takes down those that do not |
//! | `maintenance` | syncs, refreshes and commits open copies in time |
//! | `stored_indices`, `dangling` | what indices are, beside their copies; those that the cluster state does not know |
//! | `place` | indices that are put in place with all their copies |
//! | `inspect` | what tests and checkers ask of a node |
//! | `disk_usage` | how full the disks are |
//! | `stats`, `cgroup` | a node in numbers |

mod cgroup;
mod dangling;
mod disk_usage;
mod dispatch;
mod inspect;
mod maintenance;
mod manager;
mod managing;
mod membership;
mod parts;
mod place;
mod reconcile;
mod start;
mod stats;
mod stored_indices;

pub use parts::Node;
pub use place::{DiskSize, Placement, ShardContents, place};
pub use start::check_addresses;
