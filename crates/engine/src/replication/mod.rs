//! Writes: from any node to the primary, from the primary to its replicas.
//!
//! A write is acknowledged when it is durable on the primary and on every copy that counts as in sync. A copy that
//! cannot be reached is first taken out of the in-sync set by the manager; if the manager refuses, the write is not
//! acknowledged.
//!
//! | file | holds |
//! | --- | --- |
//! | `coordinator` | the node that is asked |
//! | `primary`, `replica` | a write on either |
//! | `in_sync` | operations on their way to the replicas, the in-sync set, the global checkpoint |
//! | `dynamic_mapping` | fields that documents bring |
//! | `followed` | a follower's primary, and the end of following |
//! | `promotion` | a replica that becomes the primary |
//! | `hand_off` | a primary that is moved |
//! | `leases`, `peer_leases` | retention leases of followers, and of copies that have left |
//! | `apply` | what all of them need of a copy's store |

mod apply;
mod coordinator;
mod dynamic_mapping;
mod followed;
mod hand_off;
mod in_sync;
mod leases;
mod peer_leases;
mod primary;
mod promotion;
mod replica;

pub use apply::RETRY_AFTER;
pub(crate) use apply::{fill_gaps, follow_mapping, follow_mapping_to, mapping_version};
pub use coordinator::{WRITE_TIMEOUT, write_documents, write_synthetic_batch};
pub(crate) use followed::{apply_followed, confirm_checkpoint, end_following, follows};
pub(crate) use hand_off::{hand_off, next_primary, take_over};
pub(crate) use in_sync::{advance_global_checkpoint, spread_durability};
pub(crate) use leases::{
    add_lease, expire_leases, remove_lease, set_leases, take_leases, take_newer_leases,
};
pub use leases::{lease_id, lease_of};
pub(crate) use primary::{end_writes, write};
pub(crate) use promotion::promoted;
pub(crate) use replica::replicate;
