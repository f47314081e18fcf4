//! The peak-sensitive average of a node's latency. See `two_choices.rs` for its source.

use std::time::Duration;

use world::Time;

const DECAY: Duration = Duration::from_secs(10);
/// The cost of a node that has requests in flight and never answered.
const UNKNOWN_NS: f64 = 1e15;

/// The latency of one node.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PeakEwma {
    at: Time,
    /// None until it answered.
    pub(super) cost_ns: Option<f64>,
}

impl PeakEwma {
    /// Takes in how long an answer, or a failure, took.
    pub(super) fn observe(&mut self, now: Time, took: Duration) {
        let sample = took.as_nanos() as f64;
        let kept = (-(now - self.at).as_secs_f64() / DECAY.as_secs_f64()).exp();
        self.cost_ns = Some(match self.cost_ns {
            Some(cost) if sample <= cost => cost * kept + sample * (1.0 - kept),
            _ => sample,
        });
        self.at = now;
    }

    pub(super) fn load(&self, now: Time, outstanding: u64) -> f64 {
        let kept = (-(now - self.at).as_secs_f64() / DECAY.as_secs_f64()).exp();
        match self.cost_ns {
            // Nothing is heard from it: what is known fades.
            Some(cost) => cost * kept * (outstanding + 1) as f64,
            None if outstanding == 0 => 0.0,
            None => UNKNOWN_NS + outstanding as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::moment::at;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn jumps_to_a_peak_and_comes_down_slowly() {
        let mut ewma = PeakEwma::default();
        ewma.observe(at(0), 10 * MS);
        ewma.observe(at(100), 500 * MS);
        assert_eq!(ewma.cost_ns, Some(5e8));
        ewma.observe(at(1100), 10 * MS);
        let cost = ewma.cost_ns.unwrap();
        assert!(cost > 4e8 && cost < 5e8, "one second of ten: {cost}");
        assert!(ewma.load(at(1100), 1) > ewma.load(at(1100), 0));
    }
}
