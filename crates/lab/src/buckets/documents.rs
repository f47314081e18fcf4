//! The documents of a bucket: the same for each number, in either world.

use bytes::Bytes;
use dcp::bucket::vbucket_of;
use record::random::split_mix;
use world::Env;

/// Values are cut out of so many bytes, so that they take little memory where nobody copies them.
const SLAB_BYTES: usize = 1 << 20;

/// Documents by their number.
#[derive(Clone)]
pub(crate) struct Documents {
    slab: Bytes,
    item_bytes: usize,
    vbuckets: u16,
}

impl Documents {
    /// Documents of a seed, with values of so many bytes.
    pub fn new(seed: u64, item_bytes: u64, vbuckets: u16) -> Documents {
        let item_bytes = usize::try_from(item_bytes).unwrap_or(usize::MAX).min(1 << 24);
        let mut state = seed;
        let words = (SLAB_BYTES + item_bytes).div_ceil(8);
        let slab: Vec<u8> = (0..words).flat_map(|_| split_mix(&mut state).to_le_bytes()).collect();
        Documents { slab: slab.into(), item_bytes, vbuckets }
    }

    /// The key of a document, as cbc-pillowfight writes them, and its vbucket.
    pub fn key(&self, number: u64) -> (Bytes, u16) {
        let key = Bytes::from(format!("{number:020}"));
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
