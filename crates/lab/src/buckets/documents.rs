//! The documents of a bucket: the same for each number, in either world.

use std::fmt::Write;

use bytes::Bytes;
use dcp::bucket::vbucket_of;
use record::random::split_mix;
use world::Env;

use crate::plan::BucketUse;

/// Values are cut out of so many bytes, so that they take little memory where nobody copies them.
const SLAB_BYTES: usize = 1 << 20;
/// A number, as cbc-pillowfight writes its keys.
const KEY_BYTES: usize = 20;
/// Keys that are made once and shared; any further one is made when it is asked for.
const SHARED_KEYS: u64 = 1 << 20;

/// Documents by their number.
#[derive(Clone)]
pub(crate) struct Documents {
    /// The first keys, one after the other.
    keys: Bytes,
    slab: Bytes,
    item_bytes: usize,
    vbuckets: u16,
}

impl Documents {
    /// The documents of a bucket, by a seed.
    pub fn new(seed: u64, bucket: &BucketUse) -> Documents {
        let BucketUse { vbuckets, items, item_bytes, .. } = *bucket;
        let shared = items.min(SHARED_KEYS);
        let mut keys = String::with_capacity(shared as usize * KEY_BYTES);
        for number in 0..shared {
            // A string takes all that is written.
            let _ = write!(keys, "{number:0KEY_BYTES$}");
        }
        let item_bytes = usize::try_from(item_bytes).unwrap_or(usize::MAX).min(1 << 24);
        let mut state = seed;
        let words = (SLAB_BYTES + item_bytes).div_ceil(8);
        let slab: Vec<u8> = (0..words).flat_map(|_| split_mix(&mut state).to_le_bytes()).collect();
        Documents { keys: keys.into(), slab: slab.into(), item_bytes, vbuckets }
    }

    /// The key of a document, and its vbucket.
    pub fn key(&self, number: u64) -> (Bytes, u16) {
        let key = if number < SHARED_KEYS {
            let from = number as usize * KEY_BYTES;
            self.keys.slice(from..from + KEY_BYTES)
        } else {
            format!("{number:0KEY_BYTES$}").into()
        };
        let vb = vbucket_of(&key, self.vbuckets);
        (key, vb)
    }

    /// Its value.
    pub fn value(&self, number: u64) -> Bytes {
        let mut state = number;
        let from = split_mix(&mut state) as usize % SLAB_BYTES;
        self.slab.slice(from..from + self.item_bytes)
    }
}

/// Lets others on the thread have their turn.
pub(crate) async fn others_turn(env: &Env) {
    env.sleep(std::time::Duration::from_micros(1)).await;
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_key_is_its_number_in_twenty_digits() {
        let bucket = BucketUse {
            vbuckets: 4,
            items: 12,
            item_bytes: 8,
            quota_bytes: 1 << 20,
            at_least: Duration::ZERO,
            full: None,
        };
        let documents = Documents::new(7, &bucket);
        for (number, expected) in [
            (0, "00000000000000000000"),
            (11, "00000000000000000011"),
            (SHARED_KEYS, "00000000000001048576"),
        ] {
            let (key, vb) = documents.key(number);
            assert_eq!((&key[..], vb), (expected.as_bytes(), vbucket_of(expected.as_bytes(), 4)));
            assert_eq!(documents.value(number).len(), 8);
        }
    }
}
