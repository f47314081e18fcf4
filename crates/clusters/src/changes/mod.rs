mod journal;
mod live_cluster;
mod settings;

pub use journal::{Change, Head, Journal, SettingValue, SettingsBack};
pub use live_cluster::{ClusterIdentity, LiveCluster, check_follows, restore};
pub use settings::Borrowed;
