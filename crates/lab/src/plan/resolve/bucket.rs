//! `[bucket]`.

use std::time::Duration;

use toml::Spanned;

use super::together::Together;
use crate::error::Result;
use crate::plan::bucket::BucketUse;
use crate::plan::document::BUCKET;
use crate::plan::file::Plan;

/// Of more documents and bytes it could not be counted what comes, and comes again after a rollback.
const SCALED_ITEMS_MAX: u64 = 1 << 53;
const SCALED_BYTES_MAX: f64 = (1u64 << 60) as f64;

impl Plan {
    pub(super) fn bucket(&self, scale: f64) -> Result<Option<BucketUse>> {
        let Some(bucket) = &self.document.bucket else { return Ok(None) };
        let bucket = bucket.get_ref();
        let items = |items: &Spanned<i64>| self.scaled(&BUCKET, "items", items, scale);
        let quota = |quota: &Spanned<String>| self.size(&BUCKET, "quota", quota);
        let full = bucket.full.as_ref();
        let full = full.map(|full| (items(&full.items), quota(&full.quota)).together());
        let at_least = bucket.at_least.as_ref();
        let at_least = at_least.map(|time| self.time(&BUCKET, "at_least", time));
        let found = (
            self.number(&BUCKET, "vbuckets", &bucket.vbuckets),
            items(&bucket.items),
            self.size(&BUCKET, "item_size", &bucket.item_size),
            quota(&bucket.quota),
            at_least.transpose(),
            full.transpose(),
        );
        let (vbuckets, items, item_bytes, quota_bytes, at_least, full) = found.together()?;
        let most = full.map_or(items, |(full, _)| items.max(full));
        if most > SCALED_ITEMS_MAX || most as f64 * item_bytes as f64 > SCALED_BYTES_MAX {
            let message =
                format!("at --scale {scale} no bucket could hold this; give a smaller --scale");
            return Err(self.error(bucket.items.span(), message));
        }
        let at_least = at_least.map_or(Duration::ZERO, |time| time.mul_f64(scale));
        Ok(Some(BucketUse { vbuckets, items, item_bytes, quota_bytes, at_least, full }))
    }
}
