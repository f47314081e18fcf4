//! How a figure differs between two sets of laps, and whether the laps support that it does.

use crate::ranks::rank_sum_p;
use crate::stats::{self, Interval, median};

/// Below this probability the laps support that there is a difference.
pub const SUPPORTED_P: f64 = 0.05;

/// Which of two values is the better one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// The larger.
    More,
    /// The smaller.
    Less,
}

/// From one set of laps to another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// Median over the laps of the one.
    pub base: f64,
    /// Median over the laps of the other.
    pub other: f64,
    /// From the one to the other, in per cent of the one; none where the one is nothing and the other is not.
    pub percent: Option<f64>,
    /// The same, as a bootstrap interval over laps; none with too few of them.
    pub percent_interval: Option<Interval>,
    /// The probability that laps of the same origin differ as much: see [`rank_sum_p`].
    pub p: Option<f64>,
}

impl Difference {
    /// The difference; none where one side has no lap.
    pub fn between(base: &[f64], other: &[f64], seed: u64) -> Option<Difference> {
        let (from, to) = (median(base)?, median(other)?);
        let percent = |ratio: f64| (ratio - 1.0) * 100.0;
        let interval = stats::ratio_interval(other, base, seed);
        Some(Difference {
            base: from,
            other: to,
            percent: match from {
                from if from > 0.0 => Some(percent(to / from)),
                _ if to == from => Some(0.0),
                _ => None,
            },
            percent_interval: interval
                .map(|ratio| Interval { low: percent(ratio.low), high: percent(ratio.high) }),
            p: rank_sum_p(base, other),
        })
    }

    /// Whether the laps support that there is a difference at all.
    pub fn is_supported(&self) -> bool {
        self.p.is_some_and(|p| p < SUPPORTED_P)
    }

    /// `*` below 5 %, `**` below 1 %, `***` below 0.1 %: where the laps support that there is a difference. Three laps
    /// of each never do.
    pub fn mark(&self) -> &'static str {
        match self.p {
            Some(p) if p < 0.001 => "***",
            Some(p) if p < 0.01 => "**",
            Some(p) if p < SUPPORTED_P => "*",
            _ => "",
        }
    }
}

/// Whether so many laps of each could support a difference, were they as far apart as can be.
pub fn can_support(base: usize, other: usize) -> bool {
    let low: Vec<f64> = (0..base).map(|lap| lap as f64).collect();
    let high: Vec<f64> = (base..base + other).map(|lap| lap as f64).collect();
    rank_sum_p(&low, &high).is_some_and(|p| p < SUPPORTED_P)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_laps_of_each_are_the_fewest_that_support_anything() {
        assert!(!can_support(1, 1) && !can_support(3, 3) && can_support(4, 4));
        assert!(can_support(3, 5) && !can_support(1, 19) && !can_support(0, 9));
    }

    #[test]
    fn laps_apart_differ_and_laps_alike_do_not() {
        let (slow, fast) = ([10.0, 10.1, 10.2, 10.3], [20.0, 20.2, 20.4, 20.6]);
        let apart = Difference::between(&slow, &fast, 1).unwrap();
        assert_eq!((apart.is_supported(), apart.mark()), (true, "*"));
        assert!((apart.percent.unwrap() - 100.0).abs() < 1e-9, "{apart:?}");
        let alike = Difference::between(&slow, &[10.05, 10.15, 10.2, 10.25], 1).unwrap();
        assert!(!alike.is_supported(), "{alike:?}");
    }

    #[test]
    fn from_nothing_there_is_no_percentage() {
        let from_nothing = Difference::between(&[0.0; 4], &[2.0; 4], 1).unwrap();
        assert_eq!((from_nothing.percent, from_nothing.is_supported()), (None, true));
        assert_eq!(Difference::between(&[0.0], &[0.0], 1).unwrap().percent, Some(0.0));
        assert_eq!(Difference::between(&[], &[1.0], 1), None);
    }
}
