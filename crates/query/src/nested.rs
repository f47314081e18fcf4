//! Data within data of its own kind, as another node sends it: so deep, and no deeper. What reads, walks or drops it
//! calls itself for each level, and the form in which it travels has no bound of its own.

use std::cell::Cell;

use serde::de::Error;
use serde::{Deserialize, Deserializer};

/// More levels than a body can ask for: 20 of aggregations, 20 of queries, and those of a text (see `parse`).
const MAX_DEPTH: usize = 128;

thread_local! {
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// Reads what may hold its own kind: `#[serde(deserialize_with = "nested::deserialize")]`.
pub(crate) fn deserialize<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    from: D,
) -> Result<T, D::Error> {
    let depth = DEPTH.get();
    if depth == MAX_DEPTH {
        return Err(D::Error::custom(format!("it is nested deeper than {MAX_DEPTH}")));
    }
    DEPTH.set(depth + 1);
    let read = T::deserialize(from);
    DEPTH.set(depth);
    read
}
