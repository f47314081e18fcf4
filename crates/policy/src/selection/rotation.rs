//! One copy after another: `RotationShardShuffler` of Elasticsearch, which chooses where adaptive selection is off.
//!
//! Every shard has a turn of its own, which begins anywhere: with one turn for all shards, an index of as many shards
//! as copies would be asked at the same copies for ever. Where two of a node's shards begin decides what a search
//! meets: with one replica each either the same half of the searches asks the node for both and the other half for
//! none, or every search asks it for one. That stays so for as long as the coordinator lives.

use std::collections::BTreeMap;

use super::random::mix;
use crate::routing;

/// The turn of every shard that was searched.
#[derive(Clone, Debug, Default)]
pub(super) struct Turns {
    /// Decides where each shard begins.
    seed: u64,
    of: BTreeMap<String, BTreeMap<u32, u64>>,
}

impl Turns {
    pub(super) fn new(seed: u64) -> Self {
        Turns { seed, of: BTreeMap::new() }
    }

    /// The next turn of a shard; the first is any, by the seed.
    pub(super) fn next(&mut self, index: &str, shard: u32) -> u64 {
        if !self.of.contains_key(index) {
            self.of.insert(index.to_owned(), BTreeMap::new());
        }
        let shards = self.of.get_mut(index).expect("it was put there just now");
        let turn = shards.entry(shard).or_insert_with(|| {
            let index = u64::from(routing::hash(index).cast_unsigned());
            mix(&mut (self.seed ^ (index << 32) ^ u64::from(shard)))
        });
        *turn = turn.wrapping_add(1);
        *turn
    }

    /// Forgets indices that are gone, once there are more of them than of those that are `present`.
    pub(super) fn retain(&mut self, present: usize, is_present: impl Fn(&str) -> bool) {
        if self.of.len() > 2 * present + 16 {
            self.of.retain(|index, _| is_present(index));
        }
    }
}

/// The places of `copies` copies, beginning one further at each turn.
pub(super) fn order(copies: usize, turn: u64) -> Vec<usize> {
    if copies == 0 {
        return Vec::new();
    }
    let first = (turn % copies as u64) as usize;
    (0..copies).map(|step| (first + step) % copies).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_copy_has_its_turn() {
        let firsts: Vec<usize> = (0..6).map(|turn| order(3, turn)[0]).collect();
        assert_eq!(firsts, [0, 1, 2, 0, 1, 2]);
        assert_eq!(order(3, 1), [1, 2, 0]);
    }

    #[test]
    fn five_shards_of_five_copies_each_use_all_of_them() {
        let mut turns = Turns::default();
        for shard in 0..5 {
            let firsts: BTreeSet<usize> =
                (0..5).map(|_| order(5, turns.next("a", shard))[0]).collect();
            assert_eq!(firsts.len(), 5);
        }
    }

    #[test]
    fn shards_begin_anywhere_by_the_seed() {
        let firsts = |seed: u64| -> Vec<usize> {
            let mut turns = Turns::new(seed);
            (0..20).map(|shard| order(5, turns.next("a", shard))[0]).collect()
        };
        assert_eq!(firsts(7), firsts(7));
        assert_ne!(firsts(7), firsts(8));
        assert_eq!(BTreeSet::from_iter(firsts(7)).len(), 5, "{:?}", firsts(7));
    }

    #[test]
    fn indices_that_are_gone_are_forgotten_in_time() {
        let mut turns = Turns::default();
        for n in 0..100 {
            turns.next(&format!("i{n}"), 0);
            turns.retain(1, |index| index == "i0");
        }
        assert!(turns.of.len() <= 19 && turns.of.contains_key("i0"), "{}", turns.of.len());
    }
}
