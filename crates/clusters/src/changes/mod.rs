//! What a run changes on a cluster that was not started here, and how it is put back.
//!
//! | file | holds |
//! | --- | --- |
//! | `journal` | [`Journal`]: each change, on disk before it is made |
//! | `settings` | [`BorrowedSettings`]: settings that are changed for a while |
//! | `live_cluster` | [`LiveCluster`]: sends requests and journals what they change; [`restore`] puts everything back |

mod journal;
mod live_cluster;
mod settings;

pub use journal::{Change, Head, Journal, SettingValue, SettingsBack};
pub use live_cluster::{ClusterIdentity, LiveCluster, follow_api, restore};
pub use settings::BorrowedSettings;
