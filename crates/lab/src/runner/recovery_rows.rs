//! The rows of an answer of `_recovery`, read leaf by leaf: a tree of each answer would cost more than all that is done
//! with it. A field that is missing, or of another kind than it should be, counts as if it were not there.

use std::hash::{DefaultHasher, Hash, Hasher};

use clusters::live::{Leaf, Leaves, Take};
use record::Limit;
use serde::de::value::{Error, StrDeserializer};
use serde::de::{DeserializeSeed, IntoDeserializer};
use serde::{Deserialize, Deserializer};

/// What stands between an index and its rows.
const SHARDS: &str = "/shards";

/// The recoveries of all shards, in the order of the answer.
#[derive(Debug, Default)]
pub(crate) struct RecoveryRows {
    pub(super) rows: Vec<RecoveryRow>,
    /// The path in the JSON of the row that is being read.
    path: String,
}

/// One recovery, as far as it is of use.
#[derive(Debug, Default)]
pub(super) struct RecoveryRow {
    /// Of its index, shard, start and target, in the order in which the cluster tells them.
    identity: DefaultHasher,
    pub(super) is_primary: bool,
    /// Whether it is from another copy of the same cluster.
    pub(super) is_peer: bool,
    pub(super) stage: Option<String>,
    pub(super) start_epoch_ms: Option<u64>,
    pub(super) stop_epoch_ms: u64,
    pub(super) total_bytes: u64,
    pub(super) reused_bytes: u64,
    pub(super) recovered_bytes: u64,
    pub(super) total_files: u64,
    pub(super) recovered_files: u64,
    pub(super) operations: u64,
    /// The stages whose time it tells, and all of it.
    pub(super) stages_ms: Vec<(&'static str, u64)>,
    pub(super) charged_ns: Vec<(Limit, u64)>,
    /// Only the embedded engine tells what is in flight, and what follows here.
    pub(super) chunk_bytes: Option<u64>,
    pub(super) in_flight_bytes: Option<u64>,
    pub(super) operations_bytes: u64,
    pub(super) refetched_chunks: u64,
    pub(super) failure: Option<String>,
}

impl<'de> Deserialize<'de> for RecoveryRows {
    fn deserialize<D: Deserializer<'de>>(answer: D) -> Result<Self, D::Error> {
        let mut all = RecoveryRows::default();
        Leaves::new(&mut String::new(), &mut all).deserialize(answer)?;
        Ok(all)
    }
}

impl Take for RecoveryRows {
    fn element(&mut self, path: &str) {
        if path.ends_with(SHARDS) {
            path.clone_into(&mut self.path);
            let mut row = RecoveryRow::default();
            path.hash(&mut row.identity);
            self.rows.push(row);
        }
    }

    fn leaf(&mut self, path: &str, leaf: Leaf<'_>) {
        let below = path.strip_prefix(self.path.as_str());
        if let Some((row, field)) = self.rows.last_mut().zip(below) {
            row.take(field, &leaf);
        }
    }
}

impl RecoveryRow {
    /// Which recovery it is: the same number in each answer.
    pub(super) fn identity(&self) -> u64 {
        self.identity.finish()
    }

    fn take(&mut self, field: &str, leaf: &Leaf<'_>) {
        let count = || leaf.count().unwrap_or(0);
        match field {
            "/type" => self.is_peer = matches!(leaf, Leaf::Text("PEER")),
            "/primary" => self.is_primary = leaf.flag() == Some(true),
            "/stage" => self.stage = leaf.text(),
            "/id" => leaf.count().hash(&mut self.identity),
            "/target/name" => leaf.text().hash(&mut self.identity),
            "/start_time_in_millis" => {
                self.start_epoch_ms = leaf.count();
                self.start_epoch_ms.hash(&mut self.identity);
            }
            "/stop_time_in_millis" => self.stop_epoch_ms = count(),
            "/index/size/total_in_bytes" => self.total_bytes = count(),
            "/index/size/reused_in_bytes" => self.reused_bytes = count(),
            "/index/size/recovered_in_bytes" => self.recovered_bytes = count(),
            "/index/files/total" => self.total_files = count(),
            "/index/files/recovered" => self.recovered_files = count(),
            "/translog/recovered" => self.operations = count(),
            "/index/total_time_in_millis" => self.take_stage("INDEX", leaf),
            "/verify_index/total_time_in_millis" => self.take_stage("VERIFY_INDEX", leaf),
            "/translog/total_time_in_millis" => self.take_stage("TRANSLOG", leaf),
            "/total_time_in_millis" => self.take_stage("total", leaf),
            _ => {
                if let Some(field) = field.strip_prefix("/narrows/") {
                    self.take_of_narrows(field, leaf);
                }
            }
        }
    }

    fn take_stage(&mut self, stage: &'static str, leaf: &Leaf<'_>) {
        self.stages_ms.extend(leaf.count().map(|ms| (stage, ms)));
    }

    fn take_of_narrows(&mut self, field: &str, leaf: &Leaf<'_>) {
        match field {
            "chunk_bytes" => self.chunk_bytes = leaf.count(),
            "in_flight_bytes" => self.in_flight_bytes = leaf.count(),
            "operations_bytes" => self.operations_bytes = leaf.count().unwrap_or(0),
            "refetched_chunks" => self.refetched_chunks = leaf.count().unwrap_or(0),
            "failure" => self.failure = leaf.text(),
            _ => {
                // A limit that this build does not know is left out.
                let limit = field.strip_prefix("charged_ns/").and_then(limit_named);
                self.charged_ns.extend(limit.zip(leaf.count()));
            }
        }
    }
}

fn limit_named(name: &str) -> Option<Limit> {
    let name: StrDeserializer<'_, Error> = name.into_deserializer();
    Limit::deserialize(name).ok()
}
