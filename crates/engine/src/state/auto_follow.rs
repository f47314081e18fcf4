//! Auto-follow patterns: which indices of a remote cluster are followed without being asked for, once they are made.

use std::collections::BTreeSet;
use std::sync::Arc;

use record::names::matches;
use serde::{Deserialize, Serialize};

use super::manager::Applied;
use super::{Change, ClusterState, StateError, indices};
use crate::settings::{FollowParameters, Update};

/// Stands in the name of a follower for the name of its leader.
const LEADER_INDEX: &str = "{{leader_index}}";

/// A pattern, by the names of the field.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AutoFollow {
    /// Alias of the remote cluster.
    pub remote_cluster: String,
    /// Which indices there are followed, with `*`.
    pub leader_index_patterns: Vec<String>,
    /// And which of those are not.
    pub leader_index_exclusion_patterns: Vec<String>,
    /// Name of a follower, with `{{leader_index}}`; the leader's name where there is none.
    pub follow_index_pattern: Option<String>,
    /// Settings of the followers that are not their leaders'.
    pub settings: Update,
    /// How they keep up.
    pub parameters: FollowParameters,
    /// Not paused.
    pub active: bool,
    /// Uuids of the leaders that are settled: followed once, or there before the pattern was. Whose follower is
    /// deleted gets none again.
    pub settled: BTreeSet<String>,
}

impl AutoFollow {
    /// Whether it is about an index of this name.
    pub fn fits(&self, leader_index: &str) -> bool {
        let any = |patterns: &[String]| patterns.iter().any(|p| matches(p, leader_index));
        any(&self.leader_index_patterns) && !any(&self.leader_index_exclusion_patterns)
    }

    /// Whether an index is to be followed now.
    pub fn wants(&self, leader_index: &str, leader_uuid: &str) -> bool {
        self.active && self.fits(leader_index) && !self.settled.contains(leader_uuid)
    }

    /// Name of the follower of a leader.
    pub fn follower_of(&self, leader_index: &str) -> String {
        let pattern = self.follow_index_pattern.as_deref().unwrap_or(LEADER_INDEX);
        pattern.replace(LEADER_INDEX, leader_index)
    }

    /// Whether it asks for the same, whatever it has got so far.
    pub fn asks_the_same(&self, other: &AutoFollow) -> bool {
        let asks = |one: &AutoFollow| AutoFollow { settled: BTreeSet::new(), ..one.clone() };
        asks(self) == asks(other)
    }
}

/// What is to change about a pattern.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AutoFollowChange {
    /// `PUT _ccr/auto_follow/{name}`: there is one of that name from now on, or another.
    Put(Box<AutoFollow>),
    /// `DELETE _ccr/auto_follow/{name}`. What follows by it goes on.
    Delete,
    /// `POST _ccr/auto_follow/{name}/pause` and `resume`.
    SetActive(bool),
    /// Leaders were followed, and others are gone for good.
    Settle {
        /// Uuids of those that follow.
        followed: BTreeSet<String>,
        /// Uuids of those that are gone.
        gone: BTreeSet<String>,
    },
}

pub(super) fn change(state: &mut ClusterState, name: String, change: AutoFollowChange) -> Applied {
    if let AutoFollowChange::Put(new) = &change {
        indices::check_remote(state, &new.remote_cluster)?;
    }
    let found = state.auto_follow.get_mut(&name).map(Arc::make_mut);
    match (change, found) {
        (AutoFollowChange::Put(mut new), found) => {
            // What was settled under the same cluster stays so.
            if let Some(old) = found.filter(|old| old.remote_cluster == new.remote_cluster) {
                new.settled.append(&mut old.settled);
            }
            state.auto_follow.insert(name.clone(), Arc::new(*new));
        }
        (_, None) => return Err(StateError::NoAutoFollow { name }),
        (AutoFollowChange::Delete, Some(_)) => drop(state.auto_follow.remove(&name)),
        (AutoFollowChange::SetActive(active), Some(found)) => found.active = active,
        (AutoFollowChange::Settle { followed, gone }, Some(found)) => {
            found.settled.extend(followed);
            found.settled.retain(|uuid| !gone.contains(uuid));
        }
    }
    Ok(vec![Change::AutoFollowChanged { name }])
}

#[cfg(test)]
mod tests {
    use super::super::Event;
    use super::super::manager::tests::Lab;
    use super::*;

    fn pattern() -> AutoFollow {
        AutoFollow {
            remote_cluster: "eu".to_owned(),
            leader_index_patterns: vec!["logs-*".to_owned(), "geo".to_owned()],
            leader_index_exclusion_patterns: vec!["*-test".to_owned()],
            follow_index_pattern: Some("{{leader_index}}-copy".to_owned()),
            active: true,
            ..AutoFollow::default()
        }
    }

    #[test]
    fn fits_by_patterns_and_exclusions() {
        let pattern = pattern();
        assert!(pattern.wants("logs-1", "u") && pattern.wants("geo", "u"));
        assert!(!pattern.wants("logs-1-test", "u") && !pattern.wants("geonames", "u"));
        assert_eq!(pattern.follower_of("logs-1"), "logs-1-copy");
        assert_eq!(AutoFollow::default().follower_of("logs-1"), "logs-1");
        let paused = AutoFollow { active: false, ..pattern };
        assert!(!paused.wants("logs-1", "u"));
    }

    fn put(lab: &mut Lab, change: AutoFollowChange) -> Result<(), StateError> {
        let event = Event::ChangeAutoFollow { name: "p".to_owned(), change };
        lab.apply(event).map(|_| ())
    }

    #[test]
    fn is_put_paused_settled_and_deleted() {
        let mut lab = Lab::new(1);
        let new = || AutoFollowChange::Put(Box::new(pattern()));
        assert!(matches!(put(&mut lab, new()), Err(StateError::NoSuchRemote { .. })));
        lab.set("cluster.remote.eu.seeds", "h:1");
        assert!(matches!(
            put(&mut lab, AutoFollowChange::SetActive(false)),
            Err(StateError::NoAutoFollow { .. })
        ));
        put(&mut lab, new()).unwrap();
        put(&mut lab, AutoFollowChange::SetActive(false)).unwrap();
        let uuids = |uuids: &[&str]| uuids.iter().map(|uuid| (*uuid).to_owned()).collect();
        let settle = |followed: &[&str], gone: &[&str]| AutoFollowChange::Settle {
            followed: uuids(followed),
            gone: uuids(gone),
        };
        put(&mut lab, settle(&["a", "b"], &[])).unwrap();
        put(&mut lab, settle(&["c"], &["a"])).unwrap();
        assert!(!lab.state.auto_follow["p"].active);
        // Put again, it asks for other things, and forgets nothing.
        put(&mut lab, new()).unwrap();
        let pattern = &lab.state.auto_follow["p"];
        assert!(pattern.active && pattern.wants("geo", "a") && !pattern.wants("geo", "b"));
        put(&mut lab, AutoFollowChange::Delete).unwrap();
        assert!(lab.state.auto_follow.is_empty());
    }
}
