//! What an index is.

use std::time::Duration;

use policy::routing::shard_among;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Aliases, FollowOrigin, json_text};
use crate::settings::{IndexSettings, SettingsMap};

/// An index, without the places of its shards.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct IndexMeta {
    /// Unique over all clusters and all time.
    pub uuid: String,
    /// Number of shards, at least 1.
    pub shards: u32,
    /// Its routing shards, a multiple of the shards (`index.number_of_routing_shards`). None of an index that was made
    /// by a build that had no such: it has as many as shards.
    #[serde(default)]
    pub routing_shards: Option<u32>,
    /// Copies of each shard besides the primary.
    pub replicas: u32,
    /// The mappings: an object, usually with `properties`.
    #[serde(with = "json_text")]
    pub mappings: Value,
    /// Counts the changes of the mappings, from 1.
    pub mapping_version: u64,
    /// The settings that were given, and the numbers of shards and replicas.
    pub settings: SettingsMap,
    /// Counts the changes of the settings, from 1.
    pub settings_version: u64,
    /// Its further names.
    #[serde(default)]
    pub aliases: Aliases,
    /// Counts the changes of the aliases, from 1.
    #[serde(default = "first")]
    pub aliases_version: u64,
    /// When it was created.
    pub created_ms: u64,
    /// Its leader, if it is a follower.
    pub leader: Option<FollowOrigin>,
    /// Whether it was a follower.
    #[serde(default)]
    pub has_followed: bool,
    /// Whether its documents are neither read nor written until it is opened. Its copies are kept all the same.
    #[serde(default)]
    pub closed: bool,
}

impl IndexMeta {
    /// Whether the global checkpoint that one of its copies was told says what every copy in sync has. Not so of a
    /// follower: its primary that comes back takes all that it has for known everywhere, and what its other copies lack
    /// of that comes from the leader again.
    pub fn knows_its_checkpoints(&self) -> bool {
        self.leader.is_none() && !self.has_followed
    }

    /// The shard of a document: by its `_routing` where it has one, else by its `_id`.
    pub fn shard_of(&self, routing: &str) -> u32 {
        shard_among(routing, self.shards, self.routing_shards.unwrap_or(self.shards))
    }

    /// Whether each of its documents has to name its `_routing`.
    pub fn requires_routing(&self) -> bool {
        query::mapping::requires_routing(&self.mappings)
    }

    /// The typed settings.
    pub fn typed_settings(&self) -> IndexSettings {
        IndexSettings::resolve(&self.settings)
    }

    /// `index.unassigned.node_left.delayed_timeout` alone, for who asks it of many indices.
    pub fn delayed_timeout(&self) -> Duration {
        IndexSettings::delayed_timeout_of(&self.settings)
    }

    /// `index.priority` alone, for who asks it of many indices.
    pub fn priority(&self) -> u32 {
        IndexSettings::priority_of(&self.settings)
    }

    /// `index.max_result_window` alone, as every search asks for it.
    pub fn max_result_window(&self) -> u32 {
        IndexSettings::max_result_window_of(&self.settings)
    }

    /// `index.requests.cache.enable` alone, as every search asks for it.
    pub fn requests_cache_enable(&self) -> bool {
        IndexSettings::requests_cache_enable_of(&self.settings)
    }
}

/// A state that was stored before there were aliases has their first version.
fn first() -> u64 {
    1
}

#[cfg(test)]
mod tests {
    use policy::routing::{routing_shards, shard_of};

    use super::*;

    /// Its documents are where they were written.
    #[test]
    fn an_index_of_an_earlier_build_keeps_the_shards_of_its_documents() {
        let meta = IndexMeta { shards: 5, routing_shards: Some(640), ..IndexMeta::default() };
        let mut stored = serde_json::to_value(&meta).unwrap();
        assert_eq!((routing_shards(5), meta.shard_of("hello")), (640, shard_of("hello", 5)));
        stored.as_object_mut().unwrap().remove("routing_shards").unwrap();
        let earlier: IndexMeta = serde_json::from_value(stored).unwrap();
        assert_eq!((earlier.shard_of("hello"), meta.shard_of("hello")), (1, 4));
    }
}
