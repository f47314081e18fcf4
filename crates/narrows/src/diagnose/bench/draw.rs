//! Random numbers that a case is drawn from.

use record::random::split_mix;

/// Random numbers of one case.
pub(super) struct Draw(u64);

impl Draw {
    pub(super) fn of(seed: u64) -> Draw {
        Draw(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15))
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
