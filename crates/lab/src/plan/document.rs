//! A plan's file as plain data: strings and numbers with their places, no meaning yet.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::{Spanned, Value};

/// Settings or columns: names and values with their places.
pub(super) type Values = BTreeMap<Spanned<String>, Spanned<Value>>;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Document {
    pub(super) name: Spanned<String>,
    pub(super) about: String,
    pub(super) source: Option<String>,
    pub(super) steps: Spanned<Vec<Spanned<String>>>,
    pub(super) laps: Spanned<i64>,
    pub(super) sample: Spanned<String>,
    pub(super) seed: Spanned<i64>,
    pub(super) leader: ClusterTable,
    pub(super) follower: FollowerTable,
    pub(super) link: LinkTable,
    pub(super) corpus: CorpusTable,
    pub(super) index: IndexTable,
    #[serde(default)]
    pub(super) settings: Values,
    pub(super) variant: Spanned<Vec<VariantTable>>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ClusterTable {
    pub(super) nodes: Spanned<i64>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FollowerTable {
    pub(super) nodes: Spanned<i64>,
    pub(super) joins: Option<Spanned<String>>,
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
    pub(super) name: String,
    pub(super) shards: Spanned<i64>,
    pub(super) replicas: Spanned<i64>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct VariantTable {
    pub(super) name: Spanned<String>,
    #[serde(default)]
    pub(super) settings: Values,
    pub(super) published: Option<PublishedTable>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PublishedTable {
    pub(super) file: Spanned<String>,
    #[serde(rename = "match")]
    pub(super) columns: Spanned<Values>,
}
