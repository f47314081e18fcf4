//! A copy of a shard on this node: its role, how its recovery goes, its retention leases, and what is written beside its
//! files.

mod disk;
mod local;
mod progress;

pub(crate) use disk::{CopyNote, NodeDisk};
pub use local::LocalShard;
pub(crate) use local::{ShardKey, store_durability};
pub(crate) use progress::{Ends, FileProgress};
pub use progress::{Progress, Stage};
