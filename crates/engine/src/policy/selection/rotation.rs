//! One copy after another: `RotationShardShuffler` of Elasticsearch, which adaptive selection being off leaves.
//!
//! Every shard has a turn of its own, which begins anywhere: with one turn for all shards, an index of as many shards
//! as copies would be asked at the same copies for ever.

use std::collections::BTreeMap;

/// The turn of every shard that was searched.
#[derive(Clone, Debug, Default)]
pub(super) struct Turns(BTreeMap<String, BTreeMap<u32, u64>>);

impl Turns {
    /// The next turn of a shard; the first is any, by `random`.
    pub(super) fn next(&mut self, index: &str, shard: u32, random: u64) -> u64 {
        if !self.0.contains_key(index) {
            self.0.insert(index.to_owned(), BTreeMap::new());
        }
        let shards = self.0.get_mut(index).expect("it was put there just now");
        let turn = shards.entry(shard).or_insert(random);
        *turn = turn.wrapping_add(1);
        *turn
    }

    /// Forgets indices that are gone, once there are more of them than of those that are `present`.
    pub(super) fn retain(&mut self, present: usize, is_present: impl Fn(&str) -> bool) {
        if self.0.len() > 2 * present + 16 {
            self.0.retain(|index, _| is_present(index));
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
                (0..5).map(|_| order(5, turns.next("a", shard, 7))[0]).collect();
            assert_eq!(firsts.len(), 5);
        }
        assert_ne!(turns.next("a", 5, 1), turns.next("a", 6, 2), "shards begin anywhere");
    }

    #[test]
    fn indices_that_are_gone_are_forgotten_in_time() {
        let mut turns = Turns::default();
        for n in 0..100 {
            turns.next(&format!("i{n}"), 0, 0);
            turns.retain(1, |index| index == "i0");
        }
        assert!(turns.0.len() <= 19 && turns.0.contains_key("i0"), "{}", turns.0.len());
    }
}
