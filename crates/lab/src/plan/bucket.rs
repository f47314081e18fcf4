//! The bucket whose documents a plan streams from one server to another.

use std::time::Duration;

/// A bucket, with as many documents as the place has room for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketUse {
    /// How many vbuckets.
    pub vbuckets: u16,
    /// Documents, scaled, at least one.
    pub items: u64,
    /// Bytes of a document's value.
    pub item_bytes: u64,
    /// The memory of a server's bucket.
    pub quota_bytes: u64,
    /// On real threads a variant has further laps until they took so long together, scaled.
    pub at_least: Duration,
    /// Documents (scaled) and memory of the published run; none where they are the plan's own.
    pub full: Option<(u64, u64)>,
}

impl BucketUse {
    #[must_use]
    pub(crate) fn at_full_size(&self) -> BucketUse {
        match self.full {
            Some((items, quota_bytes)) => BucketUse { items, quota_bytes, ..self.clone() },
            None => self.clone(),
        }
    }
}
