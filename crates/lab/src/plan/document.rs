//! A plan's file as plain data: strings and numbers with their places, no meaning yet.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::{Spanned, Value};

/// Settings or columns: names and values with their places.
pub(super) type Values = BTreeMap<Spanned<String>, Spanned<Value>>;

/// Parameters of the virtual world by name.
pub(super) type Parameters = BTreeMap<Spanned<String>, ParameterTable>;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Document {
    pub(super) name: Spanned<String>,
    pub(super) about: String,
    pub(super) source: Option<String>,
    /// Names, or tables of one name each: checked where they are resolved.
    pub(super) steps: Spanned<Vec<Spanned<Value>>>,
    pub(super) laps: Spanned<i64>,
    pub(super) sample: Spanned<String>,
    pub(super) seed: Spanned<i64>,
    pub(super) leader: ClusterTable,
    pub(super) follower: Option<FollowerTable>,
    pub(super) link: Option<LinkTable>,
    pub(super) corpus: CorpusTable,
    pub(super) index: Spanned<Vec<IndexTable>>,
    pub(super) test_bed: Option<Spanned<String>>,
    #[serde(default, rename = "virtual")]
    pub(super) parameters: Parameters,
    #[serde(default)]
    pub(super) node_settings: Values,
    #[serde(default)]
    pub(super) settings: Values,
    pub(super) variant: Spanned<Vec<VariantTable>>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ClusterTable {
    pub(super) nodes: Spanned<i64>,
    #[serde(default, rename = "virtual")]
    pub(super) parameters: Parameters,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FollowerTable {
    pub(super) nodes: Spanned<i64>,
    /// The cluster that its nodes are a part of; a cluster of their own without it.
    pub(super) joins: Option<Spanned<String>>,
    #[serde(default, rename = "virtual")]
    pub(super) parameters: Parameters,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LinkTable {
    pub(super) rtt: Spanned<String>,
    pub(super) rate: Spanned<String>,
    pub(super) window: Option<Spanned<String>>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CorpusTable {
    pub(super) name: Spanned<String>,
    pub(super) documents: Spanned<i64>,
    pub(super) bulk_documents: Spanned<i64>,
    pub(super) clients: Spanned<i64>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct IndexTable {
    pub(super) name: Spanned<String>,
    pub(super) shards: Spanned<i64>,
    pub(super) replicas: Spanned<i64>,
    pub(super) share: Option<Spanned<f64>>,
    pub(super) full: Option<FullTable>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FullTable {
    pub(super) documents: Spanned<i64>,
    pub(super) bytes: Spanned<String>,
    pub(super) segments: Spanned<i64>,
    pub(super) segment_ratio: Option<Spanned<f64>>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ParameterTable {
    pub(super) value: Spanned<Value>,
    pub(super) source: Spanned<String>,
    pub(super) calibrated_on: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct VariantTable {
    pub(super) name: Spanned<String>,
    #[serde(default)]
    pub(super) settings: Values,
    #[serde(default, rename = "virtual")]
    pub(super) parameters: Parameters,
    pub(super) published: Option<PublishedTable>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PublishedTable {
    pub(super) file: Spanned<String>,
    #[serde(rename = "match")]
    pub(super) columns: Spanned<Values>,
    pub(super) figure: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) calibrated: bool,
}
