//! What a live cluster consists of: nodes, copies, settings, and what was seen of its links and its load.
//!
//! The one rule is that of [`crate::observation`]: what was not asked, or not answered, is none and never zero.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::observation::{Gap, Identity, Setting};

/// A cluster with everything in it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Inventory {
    /// Who answered.
    pub cluster: Identity,
    /// Nodes, by name.
    pub nodes: Vec<InventoryNode>,
    /// Whether names are hashed, so that nothing else that names a node is to be told.
    pub names_are_hashed: bool,
    /// Every copy of every shard, by index, shard, and the primary first.
    pub copies: Vec<InventoryCopy>,
    /// Cluster settings by their flat names, defaults included; none where they were not told.
    pub settings: Option<BTreeMap<String, Setting>>,
    /// Whether nodes encrypt what they send each other; none where that is not told.
    pub encrypts: Option<bool>,
    /// Settings of each index by their flat names.
    pub indices: BTreeMap<String, BTreeMap<String, String>>,
    /// Round trips from a node that was asked to others, in milliseconds; 0 is too short to be measured.
    pub round_trips_ms: Vec<f64>,
    /// Documents that were indexed in a second, by index, each counted once; none where the cluster does not tell it.
    pub documents_per_s: Option<BTreeMap<String, f64>>,
    /// The highest rates that were seen of links and disks, which can do at least as much; one of each at most.
    pub seen_rates: Vec<SeenRate>,
    /// What could not be asked, and what is lost without it.
    pub gaps: Vec<Gap>,
}

/// A rate that was seen: what it is of can do at least as much.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenRate {
    /// What has it.
    pub of: RateOf,
    /// The rate.
    pub bytes_per_s: u64,
    /// Where it was seen, without names: `a recovery of 4.20 GB in 12.3 s`.
    pub seen_in: String,
}

/// What has a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RateOf {
    /// A node's network card.
    Link,
    /// A node's disk, reading.
    DiskRead,
    /// A node's disk, writing.
    DiskWrite,
}

/// A node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct InventoryNode {
    /// Id within the cluster.
    pub id: String,
    /// Name.
    pub name: String,
    /// Whether it holds shards; none where it does not tell its roles.
    pub holds_data: Option<bool>,
    /// Whether it manages the cluster; false where that is not known.
    pub manages: bool,
    /// Its roles, data tiers among them; empty where it does not tell them.
    pub roles: Vec<String>,
    /// Its host and its IP address, by which filters may name it; empty where it does not tell them.
    pub addresses: Vec<String>,
    /// Attributes, as shard allocation awareness goes by.
    pub attributes: BTreeMap<String, String>,
    /// Cores that it may use.
    pub cores: Option<u64>,
    /// Bytes of its disks, and those of them that can still be written.
    pub disk_bytes: Option<(u64, u64)>,
}

/// A copy of a shard.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct InventoryCopy {
    /// Index.
    pub index: String,
    /// Shard number.
    pub shard: u32,
    /// Whether it is the primary.
    pub primary: bool,
    /// `STARTED`, `RELOCATING`, `INITIALIZING` or `UNASSIGNED`.
    pub state: String,
    /// The name of its node.
    pub node: Option<String>,
    /// Documents.
    pub documents: Option<u64>,
    /// Bytes of its files: of a primary those that are committed, as far as segments were told.
    pub bytes: Option<u64>,
    /// Segments.
    pub segments: Option<u64>,
    /// Operations that the primary's retention lease for it keeps, up to the primary's last.
    pub lease_lag: Option<u64>,
}
