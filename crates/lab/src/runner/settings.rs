//! What a variant sets: settings of the clusters, and in the virtual world what hosts and link are like.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Value, json};

use super::base::Runner;
use super::topology::link_config;
use crate::error::{Error, Result};
use crate::plan::{FOLLOWER, LEADER, OF_FOLLOWER, ParameterScope, SettingChange, Variant, models};

/// How long the follower may take to reach the leader.
const CONNECT_PATIENCE: Duration = Duration::from_secs(30);
/// Settings that some releases do not have, with the fixed value that such a release works with.
const FIXED: [(&str, &str); 1] = [("indices.recovery.chunk_size", "512kb")];
/// A follower connects to so many nodes of a remote cluster (`cluster.remote.*.node_connections`).
const SNIFFED_MAX: u32 = 3;

/// Whether a release without a setting cannot run the variant. What is changed meanwhile it would refuse only then.
fn needs(variant: &Variant, name: &str) -> bool {
    let fixed = FIXED.iter().find(|(setting, _)| *setting == name);
    let is_as_fixed = |value: &String| fixed.is_some_and(|(_, fixed)| value == fixed);
    let is_changed = |change: &SettingChange| change.settings.contains_key(name);
    variant.settings.get(name).is_some_and(|value| !is_as_fixed(value))
        || variant.setting_changes.iter().any(is_changed)
}

impl Runner<'_> {
    /// Gives the clusters the variant's settings, and takes back those of other variants; in the virtual world
    /// sets what hosts and link are like, too.
    pub(crate) async fn set_up(&self, variant: &Variant) -> Result<()> {
        self.set_models(variant)?;
        let mut settings = self.settings_of(variant);
        self.put_settings(LEADER, variant, &mut settings).await?;
        if self.plan.follower.is_none() || self.plan.joined {
            return Ok(());
        }
        let seeds = self.clusters.seeds_through_link(LEADER);
        let remote = format!("cluster.remote.{LEADER}.seeds");
        settings.insert(&remote, json!(seeds.join(",")));
        self.put_settings(FOLLOWER, variant, &mut settings).await?;
        self.wait_for_remote().await
    }

    /// Sets settings of a variant. A setting that this release does not know is left out where only other variants have
    /// it: there is nothing to take back. A variant that has it cannot be run here.
    pub(crate) async fn put_settings(
        &self,
        cluster: &str,
        variant: &Variant,
        settings: &mut BTreeMap<&str, Value>,
    ) -> Result<()> {
        // A cluster refuses a request that sets nothing.
        while !settings.is_empty() {
            let asked = self.persist(cluster, settings).await;
            let Err(Error::Target(clusters::Error::Refused { status: 400, reason, .. })) = &asked
            else {
                return asked;
            };
            let is_unknown = |name: &&str| {
                reason.contains("not recognized") && reason.contains(&format!("[{name}]"))
            };
            let Some(name) = settings.keys().copied().find(is_unknown) else { return asked };
            if needs(variant, name) {
                let (variant, setting) = (variant.name.clone(), name.to_owned());
                return Err(Error::NoSetting { variant, setting });
            }
            settings.remove(name);
        }
        Ok(())
    }

    /// A variant's settings of clusters; null for those that only others have.
    pub(crate) fn settings_of<'v>(&'v self, variant: &'v Variant) -> BTreeMap<&'v str, Value> {
        let all: BTreeSet<&String> =
            self.plan.variants.iter().flat_map(|variant| variant.setting_names()).collect();
        let mut settings: BTreeMap<&str, Value> =
            all.into_iter().map(|name| (name.as_str(), Value::Null)).collect();
        for (name, value) in &variant.settings {
            settings.insert(name, json!(value));
        }
        // Those come with the request to follow.
        settings.retain(|name, _| !name.starts_with(OF_FOLLOWER));
        settings
    }

    /// In the virtual world sets what hosts and link are like before anything is done there: how many files a copy has
    /// is a part of its index, and who writes throughout begins before the variant's settings.
    pub(super) fn set_models_first(&self, variant: &Variant) -> Result<()> {
        self.clusters.virtual_controls().map_or(Ok(()), |_| self.set_models(variant))
    }

    /// Sets what hosts and link are like; on real machines says what of the variant has no effect there.
    pub(crate) fn set_models(&self, variant: &Variant) -> Result<()> {
        let Some(controls) = self.clusters.virtual_controls() else {
            if !variant.own_parameters.is_empty() {
                let (what, target) = (variant.own_parameters.join(", "), self.clusters.name());
                let name = &variant.name;
                let text = format!("{what} of {name} is for --on virtual: {target} keeps its own");
                self.note(Some(variant), &text)?;
            }
            return Ok(());
        };
        controls.set_hosts(LEADER, &models(variant, ParameterScope::Leader).host);
        if self.plan.follower.is_some() {
            controls.set_hosts(FOLLOWER, &models(variant, ParameterScope::Follower).host);
        }
        if let (Some(link), Some(config)) = (self.clusters.link(), self.plan.link) {
            let config =
                models(variant, ParameterScope::Everywhere).link.apply(link_config(config));
            link.configure(config).map_err(clusters::Error::Link)?;
        }
        Ok(())
    }

    /// Waits until the follower is connected to as many of the leader's nodes as it connects to.
    async fn wait_for_remote(&self) -> Result<()> {
        // A cluster that is already there has as many nodes as it has.
        let there = u32::try_from(self.clusters.nodes(LEADER).len()).unwrap_or(u32::MAX);
        let nodes = self.plan.leader.nodes.min(there).min(SNIFFED_MAX);
        let give_up = self.env.now() + CONNECT_PATIENCE;
        loop {
            let info = self.ask(FOLLOWER, "GET", "/_remote/info", None).await?;
            let connected = info[LEADER]["num_nodes_connected"].as_u64().unwrap_or(0);
            if connected >= u64::from(nodes) {
                return Ok(());
            }
            if self.env.now() >= give_up {
                return Err(Error::NotConnected { connected, nodes });
            }
            self.env.sleep(Duration::from_millis(50)).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::ByWorld;

    #[test]
    fn a_release_without_a_setting_runs_no_variant_that_has_it_or_changes_it_meanwhile() {
        let (chunk, _) = FIXED[0];
        let to = |value: &str| BTreeMap::from([(chunk.to_owned(), value.to_owned())]);
        let has = |value: &str| Variant { settings: to(value), ..Variant::default() };
        assert!(needs(&has("4mb"), chunk) && !needs(&has("512kb"), chunk));
        let change = SettingChange {
            at: ByWorld::both(Duration::from_secs(1)),
            settings: to("4mb"),
            host: None,
        };
        let changes = Variant { setting_changes: vec![change], ..has("512kb") };
        assert!(needs(&changes, chunk) && !needs(&changes, "another"));
    }
}
