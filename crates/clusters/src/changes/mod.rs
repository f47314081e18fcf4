//! What a run changes on a cluster that was not started here, and how it is put back.
//!
//! | file | holds |
//! | --- | --- |
//! | `index_names` | what the indices of a run are called |
//! | `journal` | [`Journal`]: each change, on disk before it is made |
//! | `settings` | [`BorrowedSettings`]: settings that are changed for a while |
//! | `lease` | [`Lease`]: who steers a cluster, so that nobody else does |
//! | `live_cluster` | [`LiveCluster`]: sends requests and journals what they change; [`restore`] puts everything back |

mod index_names;
mod journal;
mod lease;
mod live_cluster;
mod settings;

pub use index_names::index_of_run;
pub use journal::{Change, Head, Journal, Kept, SettingValue, SettingsBack};
pub use lease::{EXPIRES as LEASE_EXPIRES, Lease, Leased, RENEWED as LEASE_RENEWED};
pub use live_cluster::{
    ClusterIdentity, LiveCluster, PUT_BACK_PATIENCE, follow_api, restore, restore_command,
};
pub use settings::{BorrowedSettings, PutBack};
