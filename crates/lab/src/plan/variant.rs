//! A variant of a plan: one combination of settings.

use std::collections::BTreeMap;

use super::fault::Fault;
use super::load::LoadUse;
use super::parameter::Parameter;
use super::published::Published;
use super::setting_change::SettingChange;

/// What the settings of a plan begin with that are parameters of a follower: `follow.max_read_request_size`.
pub(crate) const OF_FOLLOWER: &str = "follow.";
/// And those of a snapshot's repository: `repository.max_restore_bytes_per_sec`.
pub(crate) const OF_REPOSITORY: &str = "repository.";
/// And those of a bucket and its streams: `dcp.consumer`.
pub(crate) const OF_BUCKET: &str = "dcp.";

/// One combination of settings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Variant {
    /// Name, unique in the plan.
    pub name: String,
    /// Settings by their names: the plan's, overridden by the variant's own.
    pub settings: BTreeMap<String, String>,
    /// Parameters of the virtual world: the plan's, then its clusters', then the variant's. The last one counts.
    pub parameters: Vec<Parameter>,
    /// Names of the parameters that are this variant's own.
    pub own_parameters: Vec<String>,
    /// The published row to compare with.
    pub published: Option<Published>,
    /// The variant that this one is compared with; the plan's first where none is named. `beside` in a plan's file.
    pub baseline: Option<String>,
    /// Replicas of every index, in place of what the index says.
    pub replicas: Option<u32>,
    /// The load that is sent, where the plan sends one.
    pub load: Option<LoadUse>,
    /// Faults of nodes or the link while the load is sent.
    pub faults: Vec<Fault>,
    /// Settings and hosts that are changed while a recovery goes on.
    pub setting_changes: Vec<SettingChange>,
}

impl Variant {
    /// The names of its settings, and of those that are changed meanwhile.
    pub(crate) fn setting_names(&self) -> impl Iterator<Item = &String> {
        let changed = self.setting_changes.iter().flat_map(|change| change.settings.keys());
        self.settings.keys().chain(changed)
    }

    /// The parameters that a follower is given when it begins to follow, by the names that the field has for them.
    pub(crate) fn follow_parameters(&self) -> impl Iterator<Item = (&str, &str)> {
        let settings = self.settings.iter();
        settings.filter_map(|(name, value)| Some((name.strip_prefix(OF_FOLLOWER)?, value.as_str())))
    }
}
