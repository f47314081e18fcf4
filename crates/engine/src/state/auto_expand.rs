//! `index.auto_expand_replicas`: an index has as many replicas as there are nodes for, within its bounds.

use std::collections::BTreeSet;

use super::filters::Filters;
use super::indices::{REPLICAS, put_index_settings};
use super::{Change, ClusterState, IndexShardRoutingTable};
use crate::settings::Update;

const AUTO_EXPAND: &str = "index.auto_expand_replicas";
/// Of `all` and of more: as many as `index.number_of_replicas` may say.
const REPLICAS_MAX: u32 = 10;

/// Gives indices the replicas that the nodes of now have room for, where these changes may have changed that.
pub(super) fn expand(state: &mut ClusterState, now_ms: u64, changes: &[Change]) -> Vec<Change> {
    let names = concerned(state, changes);
    if names.is_empty() {
        return Vec::new();
    }
    let filters = Filters::of(state, &state.settings());
    let mut expanded = Vec::new();
    for name in names {
        let Some(replicas) = wanted(state, &filters, &name) else { continue };
        let Some(index) = state.index(&name) else { continue };
        let update = Update::from([(REPLICAS.to_owned(), Some(replicas.to_string()))]);
        // Where the cluster may not have so many shards, the index keeps those that it has.
        expanded.extend(put_index_settings(state, now_ms, index, &update).unwrap_or_default());
    }
    expanded
}

/// The indices with this setting that changes are about.
fn concerned(state: &ClusterState, changes: &[Change]) -> BTreeSet<String> {
    let expands = |name: &&String| {
        let meta = state.indices.get(*name);
        meta.is_some_and(|meta| meta.settings.contains_key(AUTO_EXPAND))
    };
    if changes.contains(&Change::Cluster) {
        return state.indices.keys().filter(expands).cloned().collect();
    }
    let named = changes.iter().filter_map(|change| match change {
        Change::Index { index } | Change::Started { index, .. } => Some(index),
        _ => None,
    });
    named.filter(expands).cloned().collect()
}

/// How many replicas an index is to have; none where it has them, or keeps those that it has.
fn wanted(state: &ClusterState, filters: &Filters, name: &str) -> Option<u32> {
    let meta = state.indices.get(name)?;
    let (least, most) = meta.settings.get(AUTO_EXPAND)?.split_once('-')?;
    let most = most.parse().unwrap_or(REPLICAS_MAX).min(REPLICAS_MAX);
    let least = least.parse::<u32>().ok()?;
    let may_hold = |node: &&String| filters.filter_against(state, name, node).is_none();
    let nodes = state.present.iter().filter(may_hold).count() as u32;
    // Where nobody is there, as when the manager has just begun, nothing is known. As in the field nothing changes
    // either while there are fewer nodes than the least asks for.
    let replicas = nodes.checked_sub(1).filter(|room| *room >= least)?.min(most);
    // A copy that would be taken away may be the one to go on with, while a primary is missing.
    let is_safe =
        |shard: &IndexShardRoutingTable| shard.started_primary().is_some() || !shard.was_started();
    let may_shrink = state.routing.get(name)?.iter().all(is_safe);
    (replicas > meta.replicas || replicas < meta.replicas && may_shrink).then_some(replicas)
}

#[cfg(test)]
mod tests {
    use super::super::Event;
    use super::super::manager::lab::{Lab, creation, update};
    use super::*;

    /// Indices `a0`, `a1`, ... of these settings, all copies started.
    fn started(nodes: u32, expands: &[&str]) -> Lab {
        let mut lab = Lab::new(nodes);
        for (number, value) in expands.iter().enumerate() {
            let settings = update(&[(AUTO_EXPAND, *value)]);
            lab.apply(creation(&format!("a{number}"), settings)).unwrap();
        }
        lab.start_all();
        lab
    }

    /// Replicas of each, once all copies are started.
    fn replicas(lab: &mut Lab) -> Vec<u32> {
        lab.start_all();
        lab.state.indices.values().map(|meta| meta.replicas).collect()
    }

    #[test]
    fn replicas_follow_the_nodes() {
        let mut lab = started(3, &["0-1", "0-all", "1-20", "false", "3-9"]);
        assert_eq!(replicas(&mut lab), [1, 2, 2, 1, 1]);
        lab.leave("n3");
        assert_eq!(replicas(&mut lab), [1, 1, 1, 1, 1]);
        lab.leave("n2");
        assert_eq!(replicas(&mut lab), [0, 0, 1, 1, 1]);
        assert!(lab.state.shards().all(|(_, _, shard)| shard.started_primary().is_some()));
        lab.join("n2");
        assert_eq!(replicas(&mut lab), [1, 1, 1, 1, 1]);
        lab.set("cluster.routing.allocation.exclude._name", "n2");
        assert_eq!(replicas(&mut lab), [0, 0, 1, 1, 1]);
        lab.set("cluster.routing.allocation.exclude._name", "");
        lab.replicas("a1", 5);
        assert_eq!(replicas(&mut lab), [1, 1, 1, 1, 1], "the nodes say how many");
        lab.set_index("a1", AUTO_EXPAND, "false");
        lab.leave("n2");
        assert_eq!(replicas(&mut lab), [0, 1, 1, 1, 1]);
    }

    #[test]
    fn no_copy_is_taken_away_while_the_primary_is_missing() {
        let mut lab = started(2, &["0-1"]);
        lab.apply(Event::ManagerRestarted).unwrap();
        assert_eq!(lab.state.indices["a0"].replicas, 1, "nobody is there");
        lab.join("n2");
        assert_eq!(lab.state.indices["a0"].replicas, 1, "its copy is not open yet");
        assert_eq!(replicas(&mut lab), [0]);
        lab.join("n1");
        assert_eq!(replicas(&mut lab), [1]);
    }
}
