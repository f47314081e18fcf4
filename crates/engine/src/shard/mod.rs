//! A copy of a shard on this node: its role, the progress of its recovery, its retention leases, and the metadata
//! beside its files.

mod copies_on_disk;
mod disk;
mod hand_off;
mod in_state;
mod local;
mod other_copies;
mod progress;
mod role;
mod stats_json;
mod turns;

pub(crate) use copies_on_disk::FoundOnDisk;
pub(crate) use disk::{CopyMetadata, NodeDisk, StoredState};
pub(crate) use hand_off::Blocked;
pub use local::LocalShard;
pub(crate) use local::{ShardKey, store_durability};
pub(crate) use other_copies::{FollowedCopies, Tracked};
pub(crate) use progress::FileProgress;
pub use progress::{Progress, Stage};
pub use stats_json::stats_json;
