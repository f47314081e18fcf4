//! What a seed draws: its kind and severity, and random numbers.

use record::random::split_mix;
use serde::{Deserialize, Serialize};

/// Severities, from 1.
pub(super) const SEVERITIES: u64 = 3;
/// One seed in so many draws a bucket as well, and as many a follower, and searches.
const EVERY: u64 = 5;

/// What a case that is drawn from a seed is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Subject {
    Recovery,
    /// DCP connections of a bucket.
    Bucket,
    /// An index that follows another cluster's.
    Follower,
    /// An index with copies on several nodes.
    Searches,
}

/// A seed's turn. Neighbours, an even seed and the odd one after it, have the same, so that both halves of the seeds go
/// through a deck of kinds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn(u64);

impl Turn {
    pub(super) fn of(seed: u64) -> Turn {
        Turn(seed / 2)
    }

    /// The turn among those seeds that draw a case of `subject`; none of most seeds, but for recoveries.
    pub(super) fn among(subject: Subject, seed: u64) -> Option<Turn> {
        let Turn(turn) = Turn::of(seed);
        let own = match subject {
            Subject::Recovery => return Some(Turn(turn)),
            Subject::Searches => 0,
            Subject::Follower => 2,
            Subject::Bucket => 4,
        };
        (turn % EVERY == own).then_some(Turn(turn / EVERY))
    }

    pub(super) fn kind<K: Copy>(self, deck: &[K]) -> K {
        deck[(self.0 % deck.len() as u64) as usize]
    }

    /// Whether it is the second time that the deck is gone through, the fourth, and so on.
    pub(super) fn is_second<K>(self, deck: &[K]) -> bool {
        (self.0 / deck.len() as u64) % 2 == 1
    }

    /// 1 to 3: one for all kinds of a deck, and the next for them all again.
    pub(super) fn severity<K>(self, deck: &[K]) -> usize {
        1 + ((self.0 / deck.len() as u64) % SEVERITIES) as usize
    }

    /// 1 to 3: the next for each kind. Each turn of the deck begins one further, so that a kind meets all of them in
    /// three turns.
    pub(super) fn severity_in_turn<K>(self, deck: &[K]) -> usize {
        let count = deck.len() as u64;
        1 + ((self.0 % count + self.0 / count) % SEVERITIES) as usize
    }
}

/// Random numbers of one case.
pub(super) struct Draw(u64);

impl Draw {
    pub(super) fn of(seed: u64) -> Draw {
        Draw(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// Those of a case in whose place so many draws of its seed were no cases.
    pub(super) fn again(seed: u64, refused: u8) -> Draw {
        // No bench is given seeds as large as that.
        Draw::of(seed ^ (u64::from(refused) << 56))
    }

    pub(super) fn share(&mut self) -> f64 {
        (split_mix(&mut self.0) >> 11) as f64 / (1u64 << 53) as f64
    }

    pub(super) fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[(split_mix(&mut self.0) % all.len() as u64) as usize]
    }

    /// Between two bounds, as likely in each part that is twice the one before.
    pub(super) fn between(&mut self, low: f64, high: f64) -> f64 {
        low * (high / low).powf(self.share())
    }
}
