//! A change of settings, or of a simulated host, while a recovery goes on.

use std::collections::BTreeMap;
use std::time::Duration;

use super::by_world::ByWorld;
use super::parameter::Parameter;

/// What is changed while a recovery goes on. The next variant begins with its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingChange {
    /// When, since the recovery began.
    pub at: ByWorld<Duration>,
    /// Settings of the clusters by their names.
    pub settings: BTreeMap<String, String>,
    /// What a host is like, in virtual time alone.
    pub host: Option<HostChange>,
}

/// What the host of a node is like from then on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostChange {
    /// The node, or a cluster for all of its nodes.
    pub node: String,
    /// Parameters of the virtual world.
    pub parameters: Vec<Parameter>,
}

impl SettingChange {
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        let parameters = self.host.iter().flat_map(|host| &host.parameters);
        let parameters = parameters.map(|parameter| parameter.name.as_str());
        self.settings.keys().map(String::as_str).chain(parameters)
    }
}
