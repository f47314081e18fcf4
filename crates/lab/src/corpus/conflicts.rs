//! Documents that are written again under ids of documents before them, as the `conflicts` of Rally's bulk operations.
//! Pure.

use std::ops::Range;

use super::random::Random;

/// The families of random numbers that conflicts, and the order of ids, are drawn from.
const CONFLICT: u64 = 0x636f_6e66;
const ORDER: u64 = 0x6f72_6465;
/// How fast older documents become rare at a recency of 1, as in Rally.
const RECENCY_RATE: f64 = 30.0;
/// Rounds of the network that shuffles ids: four make a pseudorandom permutation (Luby and Rackoff, 1988).
const ROUNDS: u64 = 4;

/// Which documents of a bulk operation are written under ids of documents before them, and how.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Conflicts {
    /// New ids in a random order, not ascending.
    pub random: bool,
    /// The share of documents that are written again: 0 to 1.
    pub probability: f64,
    /// Whether these change what is there with an update, and do not replace it.
    pub updates: bool,
    /// 0 where any document is written again as likely as another; the nearer to 1, the more recent ones.
    pub recency: f64,
}

/// An id, and whether it is that of a document before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Id {
    pub(super) number: u64,
    pub(super) again: bool,
}

/// Ids one after another. A client writes only those again that it has written itself: another's may still be under
/// way.
pub(super) struct Ids {
    of: Conflicts,
    seed: u64,
    range: Range<u64>,
    order: Shuffled,
    /// New ids so far.
    given: u64,
    /// Ids that each client has written, in runs.
    written: Vec<Vec<Run>>,
}

/// New ids that a client has written one after another.
struct Run {
    /// How many the client had written before.
    before: u64,
    /// The place of the first among all new ids.
    first: u64,
    count: u64,
}

impl Ids {
    pub(super) fn new(of: Conflicts, seed: u64, range: Range<u64>) -> Self {
        let count = range.end.saturating_sub(range.start);
        let order = Shuffled::new(seed, count);
        Ids { of, seed, range, order, given: 0, written: Vec::new() }
    }

    /// The id of document `n`, which a client writes.
    pub(super) fn next(&mut self, client: usize, n: u64) -> Id {
        let mut random = Random::new(self.seed, CONFLICT, n);
        if self.written.len() <= client {
            self.written.resize_with(client + 1, Vec::new);
        }
        let runs = &mut self.written[client];
        let count = runs.last().map_or(0, |run| run.before + run.count);
        let again = count > 0 && random.unit() < self.of.probability;
        let place = if again {
            let wanted = self.of.place(count, &mut random);
            let run = &runs[runs.partition_point(|run| run.before <= wanted) - 1];
            run.first + (wanted - run.before)
        } else {
            match runs.last_mut().filter(|run| run.first + run.count == self.given) {
                Some(run) => run.count += 1,
                None => runs.push(Run { before: count, first: self.given, count: 1 }),
            }
            self.given += 1;
            self.given - 1
        };
        let number = if self.of.random { self.order.at(place) } else { place };
        Id { number: self.range.start + number, again }
    }
}

impl Conflicts {
    /// Which of `count` documents is written again.
    fn place(self, count: u64, random: &mut Random) -> u64 {
        if self.recency == 0.0 {
            return (random.unit() * count as f64) as u64;
        }
        // The inverse of the exponential distribution's function.
        let age = -(1.0 - random.unit()).ln() / (RECENCY_RATE * self.recency);
        ((count - 1) as f64 * (1.0 - age.min(1.0))).round() as u64
    }
}

/// The numbers below a bound in an order that a seed decides, of which none is kept: a Feistel network over the next
/// power of four, gone through again until it ends below the bound.
struct Shuffled {
    seed: u64,
    bound: u64,
    half_bits: u32,
}

impl Shuffled {
    fn new(seed: u64, bound: u64) -> Self {
        let bits = u64::BITS - bound.saturating_sub(1).leading_zeros();
        Shuffled { seed, bound, half_bits: bits.div_ceil(2).max(1) }
    }

    /// The number at a place below the bound.
    fn at(&self, place: u64) -> u64 {
        let mask = (1 << self.half_bits) - 1;
        let mut at = place;
        loop {
            let (mut left, mut right) = (at >> self.half_bits, at & mask);
            for round in 0..ROUNDS {
                let mixed = Random::new(self.seed, ORDER + round, right).bits() & mask;
                (left, right) = (right, left ^ mixed);
            }
            at = left << self.half_bits | right;
            if at < self.bound {
                return at;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn conflicts(probability: f64) -> Conflicts {
        Conflicts { random: false, probability, updates: false, recency: 0.0 }
    }

    #[test]
    fn every_number_comes_once_in_another_order() {
        for bound in [1, 2, 5, 1000, 4096, 4097] {
            let order = Shuffled::new(7, bound);
            let all: Vec<u64> = (0..bound).map(|place| order.at(place)).collect();
            assert_eq!(all.iter().copied().collect::<BTreeSet<_>>(), (0..bound).collect());
            assert!(bound < 1000 || !all.is_sorted(), "{bound}");
        }
    }

    #[test]
    fn without_conflicts_ids_are_new_and_ascending() {
        let mut ids = Ids::new(conflicts(0.0), 1, 10..20);
        let all: Vec<u64> = (10..20).map(|n| ids.next(n as usize % 3, n).number).collect();
        assert_eq!(all, (10..20).collect::<Vec<u64>>());
    }

    #[test]
    fn a_client_writes_again_only_what_it_has_written() {
        let of = Conflicts { random: true, recency: 0.2, ..conflicts(0.25) };
        let mut ids = Ids::new(of, 3, 0..10_000);
        let mut written = [BTreeSet::new(), BTreeSet::new()];
        let mut again = 0;
        for n in 0..10_000 {
            let client = (n / 50 % 2) as usize;
            let id = ids.next(client, n);
            assert_eq!(written[client].contains(&id.number), id.again, "{n}");
            assert!(!written[1 - client].contains(&id.number), "{n}");
            written[client].insert(id.number);
            again += u64::from(id.again);
        }
        assert!((2_300..2_700).contains(&again), "{again} of 10000");
    }

    #[test]
    fn recency_prefers_the_last() {
        let mean = |recency: f64| {
            let of = Conflicts { recency, ..conflicts(1.0) };
            let places = (0..2_000).map(|n| of.place(1_000, &mut Random::new(1, 2, n)));
            places.map(|place| place as f64).sum::<f64>() / 2_000.0
        };
        assert!((450.0..550.0).contains(&mean(0.0)), "{}", mean(0.0));
        // The mean age is 1 of 30 parts.
        assert!((955.0..975.0).contains(&mean(1.0)), "{}", mean(1.0));
    }
}
