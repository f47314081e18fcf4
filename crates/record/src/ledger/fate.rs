//! What a write asks for, and what became of it.

use serde_json::Value;

/// What a write asks for. `content` is a hash of the document; every write has another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Creates or replaces.
    Index {
        /// What it puts there.
        content: u64,
    },
    /// Creates, unless there is one.
    Create {
        /// What it puts there.
        content: u64,
    },
    /// Deletes.
    Delete,
}

/// What became of a write, as far as its driver knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The store did it.
    Acknowledged {
        /// Its sequence number.
        seq_no: u64,
        /// The document's version after it.
        version: u64,
    },
    /// The store answered that it did not do it.
    Rejected,
    /// There was no answer, or none that says whether it was done.
    Unknown,
}

impl Fate {
    /// Reads an item of a `_bulk` answer. A status of 4xx means that the write was not done; other failures leave that
    /// open. A delete of a document that does not exist (404) counts as done.
    pub fn of_bulk_item(item: &Value) -> Fate {
        let item =
            item.as_object().and_then(|object| object.values().next()).unwrap_or(&Value::Null);
        let number = |name: &str| item[name].as_u64();
        match number("status") {
            Some(200..300 | 404) if item.get("error").is_none() => {
                match (number("_seq_no"), number("_version")) {
                    (Some(seq_no), Some(version)) => Fate::Acknowledged { seq_no, version },
                    _ => Fate::Unknown,
                }
            }
            Some(400..500) => Fate::Rejected,
            _ => Fate::Unknown,
        }
    }
}
