//! Random numbers of a document or a request: a function of seed, stream and number, of nothing else.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// One short stream of numbers. Every document draws from its own, so document N is the same
/// whichever chunk it is generated in and however many clients generate.
#[derive(Debug)]
pub(crate) struct Random(Xoshiro256PlusPlus);

impl Random {
    /// The stream `n` of the family `family` (one for each corpus and purpose) under `seed`.
    pub(crate) fn new(seed: u64, family: u64, n: u64) -> Self {
        // Odd constants unlike SplitMix64's own increment, with which the state is then filled:
        // neighbouring documents must not share state words.
        let key = seed
            .wrapping_mul(0xd134_2543_de82_ef95)
            .wrapping_add(family.wrapping_mul(0xa076_1d64_78bd_642f))
            .wrapping_add(n.wrapping_mul(0xe703_7ed1_a0b4_28db));
        Random(Xoshiro256PlusPlus::seed_from_u64(key))
    }

    pub(crate) fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below `bound`, by multiplication; the bias is below `bound / 2^32`.
    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        (((self.bits() >> 32) * u64::from(bound)) >> 32) as u32
    }

    /// A number in [0, 1), with 53 bits.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    pub(crate) fn in_1000(&mut self, parts: u32) -> bool {
        self.below(1000) < parts
    }

    pub(crate) fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len() as u32) as usize]
    }
}
