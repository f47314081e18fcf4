//! A plan's file as plain data: strings and numbers with their places, no meaning yet. `keys/check.rs` has taken
//! unknown keys out before.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use toml::{Spanned, Value};

/// Settings or columns: names and values with their places.
pub(super) type Values = BTreeMap<Spanned<String>, Spanned<Value>>;

/// Parameters of the virtual world by name.
pub(super) type Parameters = BTreeMap<Spanned<String>, ParameterTable>;

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Document {
    pub(super) name: Spanned<String>,
    pub(super) about: String,
    pub(super) source: Option<String>,
    /// Names, or tables of one name each: `resolve/steps.rs` checks them.
    pub(super) steps: Spanned<Vec<Spanned<Value>>>,
    pub(super) laps: Option<Spanned<i64>>,
    pub(super) sample: Option<Spanned<String>>,
    pub(super) seed: Option<Spanned<i64>>,
    pub(super) leader: ClusterTable,
    pub(super) follower: Option<FollowerTable>,
    pub(super) link: Option<LinkTable>,
    /// What is indexed; a plan has this and indices, or a bucket.
    pub(super) corpus: Option<CorpusTable>,
    #[serde(default)]
    pub(super) index: Vec<IndexTable>,
    /// What is streamed, in place of a corpus and indices.
    pub(super) bucket: Option<Spanned<BucketTable>>,
    /// A cluster that was seen, in place of a corpus and indices.
    pub(super) twin: Option<Spanned<TwinTable>>,
    #[serde(default)]
    pub(super) operation: Vec<OperationTable>,
    pub(super) load: Option<Spanned<LoadTable>>,
    #[serde(default)]
    pub(super) fault: Vec<FaultTable>,
    #[serde(default)]
    pub(super) change: Vec<ChangeTable>,
    pub(super) test_bed: Option<Spanned<String>>,
    #[serde(default, rename = "virtual")]
    pub(super) parameters: Parameters,
    #[serde(default)]
    pub(super) node_settings: Values,
    #[serde(default)]
    pub(super) settings: Values,
    #[serde(default)]
    pub(super) fitted: Vec<FittedTable>,
    pub(super) variant: Spanned<Vec<VariantTable>>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct ClusterTable {
    pub(super) nodes: Spanned<i64>,
    #[serde(default, rename = "virtual")]
    pub(super) parameters: Parameters,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct FollowerTable {
    pub(super) nodes: Spanned<i64>,
    /// The cluster that its nodes join; without it they are a cluster of their own.
    pub(super) joins: Option<Spanned<String>>,
    #[serde(default, rename = "virtual")]
    pub(super) parameters: Parameters,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct LinkTable {
    pub(super) rtt: Spanned<String>,
    pub(super) rate: Spanned<String>,
    pub(super) window: Option<Spanned<String>>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct CorpusTable {
    pub(super) name: Spanned<String>,
    pub(super) documents: Spanned<i64>,
    pub(super) bulk_documents: Spanned<i64>,
    pub(super) clients: Spanned<i64>,
}

/// Documents in vbuckets that are streamed from one server to another.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct BucketTable {
    pub(super) vbuckets: Spanned<i64>,
    pub(super) items: Spanned<i64>,
    pub(super) item_size: Spanned<String>,
    pub(super) quota: Spanned<String>,
    pub(super) at_least: Option<Spanned<String>>,
    pub(super) full: Option<FullBucketTable>,
}

/// The size in the published run.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct FullBucketTable {
    pub(super) items: Spanned<i64>,
    pub(super) quota: Spanned<String>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct IndexTable {
    pub(super) name: Spanned<String>,
    pub(super) shards: Spanned<i64>,
    pub(super) replicas: Spanned<i64>,
    pub(super) share: Option<Spanned<f64>>,
    pub(super) full: Option<FullTable>,
    pub(super) rollover: Option<Spanned<RolloverTable>>,
    #[serde(default)]
    pub(super) settings: Values,
    /// In place of the corpus's mapping.
    pub(super) mappings: Option<Spanned<toml::Table>>,
}

/// A cluster that was seen, and what is asked of it.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct TwinTable {
    pub(super) node: Vec<TwinNodeTable>,
    pub(super) index: Vec<TwinIndexTable>,
    pub(super) lose: Option<Spanned<Vec<Spanned<String>>>>,
    pub(super) restart: Option<Spanned<Vec<Spanned<String>>>>,
    pub(super) down: Option<Spanned<String>>,
    pub(super) before_restart: Option<Spanned<String>>,
    pub(super) drain: Option<Spanned<Vec<Spanned<String>>>>,
    #[serde(default)]
    pub(super) add: Vec<TwinNodeTable>,
    #[serde(default)]
    pub(super) replicas: Values,
    #[serde(default)]
    pub(super) uncertain: Vec<UncertainTable>,
}

/// A node of a twin that holds data.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct TwinNodeTable {
    pub(super) name: Spanned<String>,
    pub(super) id: Option<String>,
    pub(super) zone: Option<String>,
    #[serde(default)]
    pub(super) attributes: Values,
    pub(super) disk: Option<Spanned<String>>,
    pub(super) disk_free: Option<Spanned<String>>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct TwinIndexTable {
    pub(super) name: Spanned<String>,
    pub(super) replicas: Spanned<i64>,
    #[serde(default)]
    pub(super) settings: Values,
    pub(super) documents_per_s: Option<Spanned<f64>>,
    /// Numbers of the shards that have no primary, and so no row below.
    #[serde(default)]
    pub(super) lost: BTreeSet<u32>,
    pub(super) shard: Vec<TwinShardTable>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct TwinShardTable {
    pub(super) bytes: Spanned<String>,
    pub(super) documents: Spanned<i64>,
    pub(super) segments: Spanned<i64>,
    /// Names of nodes, that of the primary first.
    pub(super) copies: Spanned<Vec<Spanned<String>>>,
}

/// Bounds of a parameter that is not known.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct UncertainTable {
    pub(super) parameter: Spanned<String>,
    pub(super) least: Spanned<String>,
    pub(super) most: Spanned<String>,
}

/// When an index is rolled over; `full` has what is so in virtual time.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct RolloverTable {
    pub(super) max_docs: Option<Spanned<i64>>,
    pub(super) max_size: Option<Spanned<String>>,
    pub(super) max_age: Option<Spanned<String>>,
    pub(super) poll_interval: Option<Spanned<String>>,
    pub(super) full: Option<Box<Spanned<RolloverTable>>>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct FullTable {
    pub(super) documents: Spanned<i64>,
    pub(super) bytes: Spanned<String>,
    pub(super) segments: Spanned<i64>,
    pub(super) segment_ratio: Option<Spanned<f64>>,
    /// The rows that segments were fitted to.
    #[serde(default)]
    pub(super) calibrated_on: Vec<String>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct ParameterTable {
    pub(super) value: Spanned<Value>,
    pub(super) source: Spanned<String>,
    /// The rows that it was fitted to, each as `plan / variant`.
    #[serde(default)]
    pub(super) calibrated_on: Vec<String>,
}

/// A setting whose value was fitted.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct FittedTable {
    pub(super) setting: Spanned<String>,
    pub(super) calibrated_on: Vec<String>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct VariantTable {
    pub(super) name: Spanned<String>,
    /// Makes this table stand for several variants: one for each value of a setting.
    pub(super) each: Option<EachTable>,
    #[serde(default)]
    pub(super) settings: Values,
    #[serde(default, rename = "virtual")]
    pub(super) parameters: Parameters,
    pub(super) published: Option<PublishedTable>,
    /// The variant that it is compared with; without it the plan's first.
    pub(super) beside: Option<Spanned<String>>,
    /// Replicas of every index, in place of what the index says.
    pub(super) replicas: Option<Spanned<i64>>,
    pub(super) load: Option<Spanned<LoadTable>>,
    #[serde(default)]
    pub(super) fault: Vec<FaultTable>,
    #[serde(default)]
    pub(super) change: Vec<ChangeTable>,
}

/// A setting and its values.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct EachTable {
    pub(super) setting: Spanned<String>,
    pub(super) values: Vec<Spanned<Value>>,
}

/// What is sent: a search of an index, or anything else at a path.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct OperationTable {
    pub(super) name: Spanned<String>,
    /// Without it all indices of the plan.
    pub(super) index: Option<String>,
    pub(super) method: Option<String>,
    /// The path of the request, in which `{index}` stands for the index.
    pub(super) path: Option<String>,
    pub(super) body: Option<String>,
    #[serde(default)]
    pub(super) bodies: Vec<String>,
    #[serde(default)]
    pub(super) parameters: Values,
    pub(super) cost: Option<CostTable>,
}

/// What a search of a shard costs, in addition to what every search costs, where indices are loaded by their sizes.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct CostTable {
    pub(super) documents: Option<Spanned<i64>>,
    pub(super) bytes: Option<Spanned<String>>,
}

/// How operations are sent. A variant's own values go before the plan's.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct LoadTable {
    pub(super) operations: Option<Vec<Spanned<String>>>,
    pub(super) clients: Option<Spanned<i64>>,
    pub(super) rate: Option<Spanned<f64>>,
    pub(super) arrival: Option<Spanned<String>>,
    pub(super) warm_up: Option<Spanned<Value>>,
    pub(super) measured: Option<Spanned<Value>>,
    pub(super) timeout: Option<Spanned<String>>,
    pub(super) window: Option<Spanned<String>>,
    pub(super) nodes: Option<Vec<Spanned<String>>>,
    pub(super) threads: Option<Spanned<i64>>,
    pub(super) full: Option<FullLoadTable>,
}

/// How much is sent in the published run.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct FullLoadTable {
    pub(super) laps: Option<Spanned<i64>>,
    pub(super) warm_up: Option<Spanned<Value>>,
    pub(super) measured: Spanned<Value>,
}

/// A fault while the load is sent.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct FaultTable {
    /// A node, or a cluster for all of its nodes.
    pub(super) node: Option<Spanned<String>>,
    pub(super) kind: Spanned<String>,
    pub(super) factor: Option<Spanned<f64>>,
    pub(super) processes: Option<Spanned<i64>>,
    pub(super) free: Option<Spanned<String>>,
    pub(super) by: Option<Spanned<String>>,
    pub(super) at: Option<Spanned<String>>,
    pub(super) lasts: Option<Spanned<String>>,
}

/// Settings that are changed while a recovery goes on, or the host of a node.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct ChangeTable {
    pub(super) at: Spanned<String>,
    pub(super) full: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) settings: Values,
    /// Whose host `parameters` are of.
    pub(super) node: Option<Spanned<String>>,
    #[serde(default, rename = "virtual")]
    pub(super) parameters: Parameters,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct PublishedTable {
    pub(super) file: Spanned<String>,
    #[serde(rename = "match")]
    pub(super) columns: Spanned<Values>,
    pub(super) figure: Option<Spanned<String>>,
}
