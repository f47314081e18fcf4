//! What a write asks for, and what became of it.

use serde_json::Value;

/// What a write asks for. `content` is a hash that tells every content from every other.
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
    /// It was done, under this number.
    Acknowledged {
        /// Place in the shard's history.
        seq_no: u64,
        /// The document's version by it.
        version: u64,
    },
    /// It was said not to have been done.
    Rejected,
    /// Nobody knows.
    Unknown,
}

impl Fate {
    /// What an item of a `_bulk` answer says. Refused for good is what was understood and not done; other failures say
    /// nothing of what was done. A delete of what is not there is done, too.
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
