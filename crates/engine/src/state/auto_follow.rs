//! Auto-follow patterns: which indices of a remote cluster are followed without being asked for, once they are made.

use std::collections::BTreeSet;

use record::names::matches;
use serde::{Deserialize, Serialize};

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
    /// Uuids of the leaders that the pattern must not follow (again): each was followed once, or is older than the
    /// pattern. So a leader whose follower was deleted is not followed again.
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
    pub(crate) fn asks_the_same(&self, other: &AutoFollow) -> bool {
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
    /// Leaders were followed, and others are gone for good. Nothing to a pattern of that name for another cluster.
    Settle {
        /// Alias of their cluster.
        remote_cluster: String,
        /// Uuids of those that follow.
        followed: BTreeSet<String>,
        /// Uuids of those that are gone.
        gone: BTreeSet<String>,
    },
}
