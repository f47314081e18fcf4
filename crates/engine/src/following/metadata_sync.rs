//! What a follower takes over from its leader's index beside operations: mappings, settings and aliases.
//!
//! A follower takes over every mapping, before it applies operations that may need it. Of the settings it takes over
//! those that are about the index and not about the cluster, as OpenSearch's plugin does, and with those that cannot
//! change later it is made; settings that were given with `_ccr/follow` stay. Aliases are taken over as in the field:
//! for reading alone.

use super::service::{FollowService, REMOTE_TIMEOUT};
use super::source::{Needed, Source};
use std::cell::Cell;
use std::collections::BTreeSet;
use std::rc::Rc;

use policy::failures::{Action, Component, action};

use crate::remote;
use crate::settings::{self, SettingsMap, Update};
use crate::shard::LocalShard;
use crate::state::{Alias, AliasAction, Aliases, Event, Index};
use crate::transport::{Failure, RemoteIndex, Request, Response, Result, Versions, unexpected};

/// Settings that are about the cluster, and stay as the follower has them.
const CLUSTER_SETTINGS: [&str; 5] = [
    "index.auto_expand_replicas",
    "index.number_of_replicas",
    "index.number_of_routing_shards",
    "index.number_of_shards",
    "index.soft_deletes.retention_lease.period",
];

/// On which nodes copies may be: the nodes of two clusters have nothing to do with each other.
const ROUTING_PREFIX: &str = "index.routing.";

pub(crate) fn covers(have: &Versions, versions: &Versions) -> bool {
    have.mappings >= versions.mappings
        && have.settings >= versions.settings
        && have.aliases >= versions.aliases
}

/// What a follower has taken over so far.
#[derive(Default)]
pub(crate) struct MetadataSync {
    have: Cell<Versions>,
    /// Held by the read that asks the leader; the others wait for it.
    asking: tokio::sync::Mutex<()>,
}

impl MetadataSync {
    /// Versions of the leader's mappings, settings and aliases that the follower has.
    pub(crate) fn versions(&self) -> Versions {
        self.have.get()
    }

    fn has(&self, versions: Versions) -> bool {
        covers(&self.have.get(), &versions)
    }

    /// Returns once the follower has what the leader has at these versions.
    pub(crate) async fn catch_up(
        &self,
        service: &Rc<FollowService>,
        follower: &LocalShard,
        source: &Source,
        needed: impl Fn() -> Needed,
        versions: Versions,
    ) -> Result<()> {
        if self.has(versions) {
            return Ok(());
        }
        let _one = self.asking.lock().await;
        if self.has(versions) {
            return Ok(());
        }
        // The node that said these versions: any other may not have heard of them yet, nor of the index.
        let leader = &source.shard;
        let request = Request::RemoteIndex(leader.index.clone());
        let answer = source.ask(service, needed, request, REMOTE_TIMEOUT).await?;
        let Response::RemoteIndex(asked) = answer else { return Err(unexpected()) };
        if asked.uuid != leader.index_uuid {
            return Err(Failure::another_index(&leader.index, &leader.index_uuid, &asked.uuid));
        }
        take_over(service, follower, &asked).await.map_err(of_manager)?;
        let have = Versions {
            mappings: asked.mapping_version,
            settings: asked.settings_version,
            aliases: asked.aliases_version,
        };
        if !covers(&have, &versions) {
            // The primary is elsewhere by now.
            let why = "asked a node of the leader that has not heard of a change yet; try again";
            return Err(Failure::unavailable(&leader.index, leader.shard, why));
        }
        self.have.set(have);
        Ok(())
    }
}

async fn take_over(
    service: &Rc<FollowService>,
    follower: &LocalShard,
    leader: &RemoteIndex,
) -> Result<()> {
    let index = follower.index_id();
    remote::take_mappings(&service.core, index.clone(), leader).await?;
    let state = service.core.state();
    // Another index may have its name by now.
    let meta = state.indices.get(&index.name).filter(|meta| meta.uuid == index.uuid);
    let Some(meta) = meta else { return Ok(()) };
    let Some(origin) = &meta.leader else { return Ok(()) };
    let settings = changes(&meta.settings, &leader.settings, &origin.following.own_settings);
    if !settings.is_empty() {
        let index = index.clone();
        service.core.submit(Event::PutIndexSettings { index, settings }).await?;
    }
    change_aliases(service, alias_changes(&index, &meta.aliases, &leader.aliases)).await
}

/// An alias may be refused because an index here has its name: following goes on without that one.
async fn change_aliases(service: &Rc<FollowService>, actions: Vec<AliasAction>) -> Result<()> {
    if actions.is_empty() {
        return Ok(());
    }
    let submit = |actions| service.core.submit(Event::ChangeAliases { actions });
    let all = submit(actions.clone()).await;
    if !all.as_ref().is_err_and(is_refused) {
        return all;
    }
    for one in actions {
        submit(vec![one]).await.or_else(|failure| match is_refused(&failure) {
            true => Ok(()),
            false => Err(failure),
        })?;
    }
    Ok(())
}

/// Whether the manager refused a change for good.
fn is_refused(failure: &Failure) -> bool {
    action(Component::ManagerEvent, failure.error_kind()) == Action::GiveUp
}

/// Where the manager is not there, or cannot store a change, the read is tried again, whatever is wrong with it.
fn of_manager(failure: Failure) -> Failure {
    if is_refused(&failure) { failure } else { Failure { status: 503, ..failure } }
}

/// The changes that give a follower its leader's aliases, for reading alone.
fn alias_changes(index: &Index, have: &Aliases, leader: &Aliases) -> Vec<AliasAction> {
    let gone = have.keys().filter(|alias| !leader.contains_key(*alias));
    let remove =
        |alias: &String| AliasAction::Remove { index: index.clone(), alias: alias.clone() };
    let new = leader.iter().filter(|(alias, of)| have.get(*alias) != Some(&of.for_reading()));
    let add = |(alias, of): (&String, &Alias)| AliasAction::Add {
        index: index.clone(),
        alias: alias.clone(),
        properties: of.for_reading(),
    };
    gone.map(remove).chain(new.map(add)).collect()
}

/// Settings of a leader that its follower is made with, because they cannot change later.
pub(super) fn fixed_settings(leader: &SettingsMap) -> Update {
    let is_of_cluster = |name: &String| CLUSTER_SETTINGS.contains(&name.as_str());
    let fixed = leader.iter().filter(|(name, _)| is_fixed(name) && !is_of_cluster(name));
    fixed.map(|(name, value)| (name.clone(), Some(value.clone()))).collect()
}

fn is_fixed(name: &str) -> bool {
    settings::find(name).is_some_and(|setting| !setting.dynamic)
}

/// The changes that give a follower its leader's settings, as far as it takes them over while it follows.
fn changes(have: &SettingsMap, leader: &SettingsMap, own: &BTreeSet<String>) -> Update {
    let is_own = |name: &String| {
        let is_of_cluster = CLUSTER_SETTINGS.contains(&name.as_str());
        is_of_cluster || is_fixed(name) || name.starts_with(ROUTING_PREFIX) || own.contains(name)
    };
    let is_taken_over = |name: &&String| !is_own(name);
    let names: BTreeSet<&String> = have.keys().chain(leader.keys()).filter(is_taken_over).collect();
    let differs = |name: &&String| have.get(*name) != leader.get(*name);
    names.into_iter().filter(differs).map(|n| (n.clone(), leader.get(n).cloned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_over_what_is_not_the_followers_own() {
        let map = |pairs: &[(&str, &str)]| -> SettingsMap {
            pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
        };
        let have = map(&[
            ("index.number_of_replicas", "0"),
            ("index.refresh_interval", "5s"),
            ("index.max_result_window", "20"),
            ("index.translog.durability", "async"),
        ]);
        let leader = map(&[
            ("index.auto_expand_replicas", "0-all"),
            ("index.number_of_replicas", "2"),
            ("index.refresh_interval", "30s"),
            ("index.translog.sync_interval", "1s"),
            ("index.number_of_shards", "2"),
            ("index.number_of_routing_shards", "6"),
            ("index.codec", "best_compression"),
            ("index.routing.allocation.require._name", "of-the-leader"),
        ]);
        let own = BTreeSet::from(["index.translog.durability".to_owned()]);
        let expected = Update::from([
            ("index.refresh_interval".to_owned(), Some("30s".to_owned())),
            ("index.max_result_window".to_owned(), None),
            ("index.translog.sync_interval".to_owned(), Some("1s".to_owned())),
        ]);
        assert_eq!(changes(&have, &leader, &own), expected);
        let made_with = Some("best_compression".to_owned());
        let expected = Update::from([("index.codec".to_owned(), made_with)]);
        assert_eq!(fixed_settings(&leader), expected, "it cannot change later");
    }
}
