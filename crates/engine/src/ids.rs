//! Ids: of documents that bring none, and of indices.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

const NODE_BYTES: usize = 9;
const COUNTER_BYTES: usize = 6;

/// Makes ids that no other source makes: 20 characters of URL-safe base64, from nine random bytes
/// drawn once and a counter of six.
///
/// The same length as Elasticsearch's generated ids. Those hold a clock and a network address; these
/// hold neither, so that the same seed gives the same ids.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdSource {
    node: [u8; NODE_BYTES],
    counter: u64,
}

impl IdSource {
    /// A source with its own random part; `random_u64` is asked twice.
    pub fn new(mut random_u64: impl FnMut() -> u64) -> Self {
        let mut node = [0; NODE_BYTES];
        node[..8].copy_from_slice(&random_u64().to_be_bytes());
        node[8] = random_u64() as u8;
        IdSource { node, counter: 0 }
    }

    /// Where a node's session and context numbers begin. After a restart they begin elsewhere, so that a number from
    /// before finds nothing, and never what belongs to somebody else.
    pub fn first_number(&self) -> u64 {
        u64::from_be_bytes(self.node[..8].try_into().expect("8 bytes"))
    }

    /// The next id.
    pub fn next_id(&mut self) -> String {
        let mut bytes = [0; NODE_BYTES + COUNTER_BYTES];
        bytes[..NODE_BYTES].copy_from_slice(&self.node);
        bytes[NODE_BYTES..].copy_from_slice(&self.counter.to_be_bytes()[8 - COUNTER_BYTES..]);
        self.counter += 1;
        URL_SAFE_NO_PAD.encode(bytes)
    }
}

/// An index by its name and its UUID, as the field's `Index`. Whoever changes an index names it so: an index of that
/// name that was made later is not meant, however late a change comes or how often it is sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Index {
    /// Its name.
    pub name: String,
    /// Unique over all clusters and all time.
    pub uuid: String,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use policy::routing::shard_of;

    use super::*;

    #[test]
    fn spreads_ids_evenly() {
        let mut source = IdSource::new(|| 42);
        let mut shards = [0u32; 7];
        for _ in 0..70_000 {
            shards[shard_of(&source.next_id(), 7) as usize] += 1;
        }
        assert!(shards.iter().all(|&n| (9_500..10_500).contains(&n)), "{shards:?}");
    }

    #[test]
    fn ids_are_twenty_characters_and_never_repeat() {
        let mut draws = 0u64;
        let mut source = IdSource::new(|| {
            draws += 0x0123_4567_89ab_cdef;
            draws
        });
        let ids: Vec<String> = (0..1000).map(|_| source.next_id()).collect();
        assert_eq!(ids[0], "ASNFZ4mrze_eAAAAAAAA");
        assert_eq!(ids[1], "ASNFZ4mrze_eAAAAAAAB");
        assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), 1000);
        assert!(ids.iter().all(|id| id.len() == 20));
    }
}
