//! What a bucket is like.

use std::time::Duration;

use super::checkpoint::CheckpointLimits;
use crate::policy::{MemorySettings, memory_of_today};
use crate::{Error, Result};

/// Vbuckets that a bucket can have.
pub const MAX_VBUCKETS: u16 = 1024;

/// What a bucket is like.
#[derive(Clone, Debug, PartialEq)]
pub struct BucketSettings {
    /// Its name.
    pub name: String,
    /// How many vbuckets.
    pub vbuckets: u16,
    /// Its memory.
    pub memory: MemorySettings,
    /// When checkpoints are closed.
    pub checkpoints: CheckpointLimits,
    /// `dcp_takeover_max_time`: a takeover that has not drained by then has clients wait, with TMPFAIL.
    pub takeover_max_time: Duration,
}

impl BucketSettings {
    /// As servers have it today, but for the number of vbuckets and the quota.
    pub fn new(name: &str, vbuckets: u16, quota_bytes: u64) -> BucketSettings {
        BucketSettings {
            name: name.to_owned(),
            vbuckets,
            memory: memory_of_today(quota_bytes),
            checkpoints: CheckpointLimits::default(),
            takeover_max_time: Duration::from_secs(60),
        }
    }

    pub(super) fn check(&self) -> Result<()> {
        let valid = |c: char| c.is_ascii_alphanumeric() || "_-.%".contains(c);
        if self.name.is_empty() || self.name.len() > 100 || !self.name.chars().all(valid) {
            return Err(Error::Settings(format!(
                "\"{}\" is no name of a bucket: 1 to 100 letters, digits and _ - . %",
                self.name
            )));
        }
        if !(1..=MAX_VBUCKETS).contains(&self.vbuckets) {
            let text = format!("{} vbuckets: give 1 to {MAX_VBUCKETS}", self.vbuckets);
            return Err(Error::Settings(text));
        }
        Ok(())
    }
}
