//! What an index is made with.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::alias::Aliases;
use super::json_text;
use crate::ids::Index;
use crate::settings::Update;

/// What an index is made with.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Made {
    /// Settings by full name.
    pub settings: Update,
    /// Mappings: an object, or null for none.
    #[serde(with = "json_text")]
    pub mappings: Value,
    /// Its further names.
    pub aliases: Aliases,
}

/// What a rollover makes.
#[expect(missing_docs, reason = "the fields that a name says enough about have no description")]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RollOver {
    pub alias: String,
    /// The index that takes its writes now.
    pub from: Index,
    /// The one that is made, and takes them from then on.
    pub to: String,
    pub made: Made,
}
