//! Aliases: further names of indices, and which of the indices takes the writes to one.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::ids::Index;

/// What an alias is to one of its indices.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Alias {
    /// Whether this index takes the writes. Where nobody said, the only index of an alias does.
    pub is_write_index: Option<bool>,
    /// The query, as JSON, that searches by the alias go through; none where they find all.
    #[serde(default)]
    pub filter: Option<String>,
}

impl Alias {
    /// That of an index that never takes the writes.
    pub(crate) fn read_only() -> Self {
        Alias { is_write_index: Some(false), filter: None }
    }

    /// The same of an index that never takes the writes.
    pub(crate) fn for_reading(&self) -> Self {
        Alias { filter: self.filter.clone(), ..Alias::read_only() }
    }
}

/// The aliases of an index, by name.
pub type Aliases = BTreeMap<String, Alias>;

/// One line of `POST _aliases`.
#[expect(missing_docs, reason = "the fields that a name says enough about have no description")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AliasAction {
    /// Adds an alias to an index, or says anew what it is.
    Add {
        index: Index,
        alias: String,
        /// What it is to that index.
        properties: Alias,
    },
    /// Takes an alias from an index; nothing where the index has not got it.
    Remove { index: Index, alias: String },
    /// Deletes an index: another may take over its name as an alias in the same step.
    RemoveIndex { index: Index },
}
