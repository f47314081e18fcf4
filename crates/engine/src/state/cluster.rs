//! The state of a cluster: one value, which the manager changes and every node reads.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{IndexMeta, ShardCopy, ShardRouting};
use crate::routing::IdSource;
use crate::settings::{Settings, SettingsMap};

/// The version of the serialized form that this build writes.
pub const FORMAT: u32 = 1;

/// A node and where it is reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// Name, unique in the cluster.
    pub name: String,
    /// Where other nodes reach it, `host:port`.
    pub transport_address: String,
    /// Where REST is served, `host:port`.
    pub http_address: String,
}

/// The copies that the disks of the present nodes hold: node, then uuid of the index, then shard, to
/// the allocation id. Assigned copies are among them.
pub(super) type Disks = BTreeMap<String, BTreeMap<String, BTreeMap<u32, String>>>;

/// The state of a cluster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClusterState {
    /// [`FORMAT`] when written by this build.
    pub format: u32,
    /// Name of the cluster.
    pub cluster_name: String,
    /// Drawn once.
    pub cluster_uuid: String,
    /// Counts the events that changed something.
    pub version: u64,
    /// The nodes that belong to the cluster, by name. No others may join.
    pub members: BTreeMap<String, Node>,
    /// Names of the members that are there now.
    pub present: BTreeSet<String>,
    /// Indices by name.
    pub indices: BTreeMap<String, IndexMeta>,
    /// Shards of each index, by number.
    pub routing: BTreeMap<String, Vec<ShardRouting>>,
    /// Settings kept over restarts.
    pub persistent: SettingsMap,
    /// Settings kept while the cluster runs.
    pub transient: SettingsMap,
    pub(super) disks: Disks,
    pub(super) ids: IdSource,
}

impl ClusterState {
    /// A cluster of these members, none of them present yet. `random_u64` makes its ids unique.
    pub fn new(
        cluster_name: &str,
        members: impl IntoIterator<Item = Node>,
        random_u64: impl FnMut() -> u64,
    ) -> Self {
        let mut ids = IdSource::new(random_u64);
        ClusterState {
            format: FORMAT,
            cluster_name: cluster_name.to_owned(),
            cluster_uuid: ids.next_id(),
            version: 0,
            members: members.into_iter().map(|node| (node.name.clone(), node)).collect(),
            present: BTreeSet::new(),
            indices: BTreeMap::new(),
            routing: BTreeMap::new(),
            persistent: SettingsMap::new(),
            transient: SettingsMap::new(),
            disks: Disks::new(),
            ids,
        }
    }

    /// The typed settings: transient, else persistent, else default. A node puts its own
    /// configuration below with [`Settings::resolve`].
    pub fn settings(&self) -> Settings {
        Settings::resolve(&[&self.transient, &self.persistent])
    }

    /// The members that are there now.
    pub fn present_nodes(&self) -> impl Iterator<Item = &Node> {
        self.present.iter().filter_map(|name| self.members.get(name))
    }

    /// A shard of an index; none if there is no such index or shard.
    pub fn shard(&self, index: &str, shard: u32) -> Option<&ShardRouting> {
        self.routing.get(index)?.get(shard as usize)
    }

    /// The copies that belong on a node now: index, shard, copy. A node brings up those that it lacks
    /// and shuts down the others.
    pub fn copies_on<'a>(
        &'a self,
        node: &'a str,
    ) -> impl Iterator<Item = (&'a str, u32, &'a ShardCopy)> {
        self.shards().filter_map(move |(index, number, shard)| {
            shard.on_node(node).map(|copy| (index, number, copy))
        })
    }

    /// Every shard: index, number, shard.
    pub fn shards(&self) -> impl Iterator<Item = (&str, u32, &ShardRouting)> {
        self.routing.iter().flat_map(|(index, shards)| {
            (0..).zip(shards).map(move |(number, shard)| (index.as_str(), number, shard))
        })
    }

    /// Whether a node may delete what its disk holds of a shard: its index is gone, or every copy of
    /// the shard is started and none belongs on this node.
    pub fn is_obsolete(&self, node: &str, index_uuid: &str, shard: u32) -> bool {
        let Some((index, _)) = self.indices.iter().find(|(_, meta)| meta.uuid == index_uuid) else {
            return true;
        };
        self.shard(index, shard).is_some_and(|shard| {
            shard.copies.iter().all(|copy| copy.is_started() && !copy.is_on(node))
        })
    }

    pub(super) fn on_disk(&self, node: &str, index: &str, shard: u32) -> Option<&str> {
        let uuid = &self.indices.get(index)?.uuid;
        self.disks.get(node)?.get(uuid)?.get(&shard).map(String::as_str)
    }
}
