//! Keeping a bucket within its memory.

use super::Bucket;
use super::item::Item;
use super::vbucket::Vbucket;

/// After a search that found no values to eject, the next one waits until this part of the quota more is in use, or for
/// a flush.
const EJECT_STEPS_IN_QUOTA: u64 = 1000;

impl Bucket {
    /// Frees memory if a threshold is passed.
    pub(super) fn free_memory_if_over(&self) {
        let memory = &self.0.settings.memory;
        if memory.to_eject(self.used_bytes()).is_some()
            || memory.to_recover(self.checkpoint_bytes()).is_some()
        {
            self.free_memory();
        }
    }

    /// Frees memory: expels what all cursors have read, drops cursors that keep much in memory, ejects values.
    pub(crate) fn free_memory(&self) {
        let memory = self.0.settings.memory;
        let looks = memory.item_expel || self.remover_is_due();
        if looks && let Some(want) = memory.to_recover(self.checkpoint_bytes()) {
            let freed = self.expel_read(want);
            if freed < want {
                self.drop_cursors(want - freed);
            }
        }
        if let Some(want) = memory.to_eject(self.used_bytes()) {
            let before = self.used_bytes();
            let ejects = before >= self.0.eject_from_bytes.get();
            if ejects {
                self.eject(want);
            }
            let left = want.saturating_sub(before.saturating_sub(self.used_bytes()));
            if left > 0 && looks {
                // The memory of an ejected value is free once no checkpoint holds it any more.
                self.expel_read(left);
            }
            // The search goes through every document. If it found too little, it is not repeated for each message.
            if ejects && memory.to_eject(self.used_bytes()).is_some() {
                let more = memory.quota_bytes / EJECT_STEPS_IN_QUOTA;
                self.0.eject_from_bytes.set(self.used_bytes() + more.max(1));
            }
        }
    }

    /// Whether it is time to remove checkpoints; if so, sets the next time.
    fn remover_is_due(&self) -> bool {
        let now = self.0.env.now();
        let due = now >= self.0.remover_due.get();
        if due {
            self.0.remover_due.set(now + self.0.settings.memory.chk_remover_stime);
        }
        due
    }

    /// All vbuckets, beginning with another one each time.
    fn vbuckets_in_rotation(&self) -> Vec<u16> {
        let mut all = self.vbuckets();
        if !all.is_empty() {
            let at = self.0.next_to_free.get() % all.len();
            all.rotate_left(at);
            self.0.next_to_free.set(at + 1);
        }
        all
    }

    /// Has `free` free bytes in one vbucket after another, until `want` are freed; answers how many were.
    fn free_in_each(&self, want: u64, mut free: impl FnMut(&mut Vbucket, u64) -> u64) -> u64 {
        let mut freed = 0;
        for vb in self.vbuckets_in_rotation() {
            if freed >= want {
                break;
            }
            freed += self.with(vb, |vbucket| free(vbucket, want - freed)).unwrap_or(0);
        }
        freed
    }

    fn expel_read(&self, want: u64) -> u64 {
        self.free_in_each(want, |vbucket, want| self.expel_read_in(vbucket, want))
    }

    fn expel_read_in(&self, vbucket: &mut Vbucket, want: u64) -> u64 {
        if self.0.settings.memory.item_expel {
            let freed = vbucket.checkpoints.expel(want);
            self.count(|stats| stats.expelled_bytes += freed);
            freed
        } else {
            let freed = vbucket.checkpoints.remove_read(want);
            self.count(|stats| stats.removed_bytes += freed);
            freed
        }
    }

    fn drop_cursors(&self, want: u64) {
        self.free_in_each(want, |vbucket, want| {
            if vbucket.checkpoints.drop_slowest().is_none() {
                return 0;
            }
            self.count(|stats| stats.cursors_dropped += 1);
            vbucket.wake();
            self.expel_read_in(vbucket, want)
        });
    }

    fn eject(&self, want: u64) {
        let bare = |item: &Item| Item::new(item.without_value(), &self.0.used);
        let freed = self.free_in_each(want, |vbucket, want| vbucket.table.eject(want, bare));
        self.count(|stats| stats.ejected_bytes += freed);
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::super::{BucketSettings, Condition};
    use super::*;
    use crate::codec::Write;

    #[test]
    fn a_key_does_not_hold_its_value_in_memory() {
        let dir = tempfile::tempdir().unwrap();
        world::real_world::run(7, async |env| {
            let settings = BucketSettings::new("example", 1, 64 << 20);
            let bucket = Bucket::open(&env, settings, dir.path()).await.unwrap();
            let (key, value) = (Bytes::from_static(b"key"), Bytes::from_static(b"value"));
            let write = Write { flags: 0, expiry: 0, key, value };
            bucket.write(0, write, 0, 0, Condition::Always).unwrap();
            let alone = bucket.with(0, |v| v.table.get(b"key").unwrap().item.value.is_unique());
            assert_eq!(alone, Some(true), "else nothing is free once it is ejected");
            bucket.close().await.unwrap();
        });
    }
}
