//! `[[change]]`, of the plan and of variants.

use engine::settings::{SettingScope, find};

use super::together::{Together, every};
use crate::error::Result;
use crate::plan::by_world::ByWorld;
use crate::plan::document::{CHANGE, ChangeTable};
use crate::plan::file::Plan;
use crate::plan::parameter::ParameterScope;
use crate::plan::setting_change::{HostChange, SettingChange};
use crate::plan::variant::{OF_BUCKET, OF_FOLLOWER, OF_REPOSITORY};

/// What settings begin with that are none of a cluster.
const OF_OTHERS: [&str; 3] = [OF_FOLLOWER, OF_REPOSITORY, OF_BUCKET];

impl Plan {
    /// The changes of the plan, then those of a variant.
    pub(super) fn setting_changes(
        &self,
        own: &[ChangeTable],
        check_setting: &dyn Fn(&str, &str) -> Result<(), String>,
    ) -> Result<Vec<SettingChange>> {
        let check = |name: &str, value: &str| {
            check_setting(name, value).and_then(|()| check_is_dynamic(name))
        };
        let all = self.document.change.iter().chain(own);
        every(all.map(|table| self.setting_change(table, &check)))
    }

    fn setting_change(
        &self,
        table: &ChangeTable,
        check_setting: &dyn Fn(&str, &str) -> Result<(), String>,
    ) -> Result<SettingChange> {
        let at = self.time(&CHANGE, "at", &table.at);
        let full = table.full.as_ref().map(|full| self.time(&CHANGE, "full", full));
        let is_nothing =
            table.settings.is_empty() && table.parameters.is_empty() && table.node.is_none();
        let settings = match is_nothing {
            true => Err(self.error(
                table.at.span(),
                "say which: settings = { \"indices.recovery.max_bytes_per_sec\" = \"500mb\" }",
            )),
            false => self.settings(&table.settings, check_setting),
        };
        let (at, full, settings, host) =
            (at, full.transpose(), settings, self.host_change(table)).together()?;
        Ok(SettingChange { at: ByWorld { real: at, full: full.unwrap_or(at) }, settings, host })
    }

    /// What a change says of a host: a node, and parameters of it.
    fn host_change(&self, table: &ChangeTable) -> Result<Option<HostChange>> {
        let parameters = &table.parameters;
        let node = match &table.node {
            None if parameters.is_empty() => return Ok(None),
            None => Err(self.error(
                table.at.span(),
                "say whose host it is: node = \"leader-1\", or a cluster for all of its nodes",
            )),
            Some(node) if parameters.is_empty() => Err(self.error(
                node.span(),
                "settings are those of whole clusters; say what its host is like: virtual = { \"disk.scheduler\" = { \
                 value = \"noop\", source = \"...\" } }",
            )),
            Some(node) => self.node_called(node, &self.fault_nodes()),
        };
        let parameters = self.parameters(ParameterScope::Leader, parameters);
        let (node, parameters) = (node, parameters).together()?;
        Ok(Some(HostChange { node, parameters }))
    }
}

/// Whether a cluster that is in use takes the setting. What is not known here the cluster itself refuses.
fn check_is_dynamic(name: &str) -> Result<(), String> {
    let is_of_others = OF_OTHERS.iter().any(|prefix| name.starts_with(prefix));
    let is_fixed = find(name)
        .is_some_and(|setting| !setting.dynamic || setting.scope != SettingScope::Cluster);
    match is_of_others || is_fixed {
        true => Err(format!(
            "{name} is no setting that a cluster in use takes; put it into the settings of the variant, which are there \
             from the beginning"
        )),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_cluster_in_use_takes_can_be_changed() {
        for name in ["indices.recovery.max_bytes_per_sec", "known.to.another.release"] {
            assert_eq!(check_is_dynamic(name), Ok(()));
        }
        let refused =
            ["index.number_of_replicas", "follow.max_read_request_size", "dcp.item_expel"];
        for name in refused {
            let said = check_is_dynamic(name).unwrap_err();
            assert!(said.starts_with(name) && said.contains("settings of the variant"), "{said}");
        }
    }
}
