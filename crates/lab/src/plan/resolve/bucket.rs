//! `[bucket]`.

use std::ops::RangeInclusive;
use std::time::Duration;

use toml::Spanned;

use super::together::Together;
use crate::error::Result;
use crate::plan::bucket::BucketUse;
use crate::plan::file::Plan;

const VBUCKETS: RangeInclusive<i64> = 1..=dcp::bucket::MAX_VBUCKETS as i64;
const ITEMS: RangeInclusive<i64> = 1..=1_000_000_000_000;
const ITEM_SIZES: RangeInclusive<u64> = 1..=dcp::bucket::MAX_VALUE_BYTES as u64;
const QUOTAS: RangeInclusive<u64> = 1 << 20..=1 << 40;
/// Of more documents and bytes it could not be counted what comes, and comes again after a rollback.
const SCALED_ITEMS_MAX: u64 = 1 << 53;
const SCALED_BYTES_MAX: f64 = (1u64 << 60) as f64;
const AT_LEAST: RangeInclusive<Duration> = Duration::ZERO..=Duration::from_secs(100 * 86_400);

impl Plan {
    pub(super) fn bucket(&self, scale: f64) -> Result<Option<BucketUse>> {
        let Some(bucket) = &self.document.bucket else { return Ok(None) };
        let bucket = bucket.get_ref();
        let items = |items: &Spanned<i64>| self.scaled("items", items, ITEMS, scale);
        let quota = |quota: &Spanned<String>| self.size("quota", quota, &QUOTAS);
        let full = bucket.full.as_ref();
        let full = full.map(|full| (items(&full.items), quota(&full.quota)).together());
        let at_least = bucket.at_least.as_ref();
        let at_least = at_least.map(|time| self.time("at_least", time, &AT_LEAST));
        let found = (
            self.number("vbuckets", &bucket.vbuckets, VBUCKETS),
            items(&bucket.items),
            self.size("item_size", &bucket.item_size, &ITEM_SIZES),
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
