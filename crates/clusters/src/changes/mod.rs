//! What a run changes on a cluster that was not started here, and how it is put back.
//!
//! | file | holds |
//! | --- | --- |
//! | `index_names` | what the indices of a run are called |
//! | `change` | [`Change`]: an index that is made, settings that are set |
//! | `late` | changes that were not answered, and may be made later |
//! | `hashed_line` | a line with a hash of itself and of the line before |
//! | `journal` | [`Journal`]: each change, on disk before it is made |
//! | `settings_back` | how settings that were changed go back; pure |
//! | `settings` | [`BorrowedSettings`]: settings that are changed for a while |
//! | `lease` | [`Lease`]: who changes settings of a cluster, so that nobody else does |
//! | `live_cluster` | [`LiveCluster`]: sends requests and journals what they change; [`restore`] puts everything back |

mod change;
mod hashed_line;
mod index_names;
mod journal;
mod late;
mod lease;
mod live_cluster;
mod settings;
mod settings_back;

pub use change::{Change, Kept, SettingValue};
pub use index_names::index_of_run;
pub use journal::{Head, Journal};
pub use late::late_wait_sentence;
pub use lease::{
    EXPIRES as LEASE_EXPIRES, Lease, Leased, RENEWED as LEASE_RENEWED, check_nobody_steers,
    lease_holder, lease_wait_sentence,
};
pub use live_cluster::{
    ClusterIdentity, LiveCluster, PUT_BACK_PATIENCE, Unsettled, follow_api, restore,
    restore_command,
};
pub use settings::{BorrowedSettings, PutBack};
