//! A change of settings while a recovery goes on.

use std::collections::BTreeMap;
use std::time::Duration;

use super::by_world::ByWorld;

/// Settings of the clusters that are changed while a recovery goes on. The next variant begins with its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingChange {
    /// When, since the recovery began.
    pub at: ByWorld<Duration>,
    /// Settings by their names.
    pub settings: BTreeMap<String, String>,
}
