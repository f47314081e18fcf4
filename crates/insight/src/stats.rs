//! Medians over laps, and how far they can be trusted.

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// Laps from which on an interval is worth showing.
pub const MIN_LAPS: usize = 3;
const RESAMPLES: usize = 2000;
/// Quantiles at 97.5 % of Student's t with 1, 2, ... 30 degrees of freedom: NIST/SEMATECH e-Handbook of Statistical
/// Methods, 1.3.6.7.2.
#[rustfmt::skip]
const STUDENT: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
    2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];
/// The same quantile of the normal distribution, which Student's t comes close to with more.
const NORMAL: f64 = 1.96;

/// An interval of the bootstrap, in the unit of its values.
///
/// The percentile method at 95 %. An interval over few laps is no wider than the laps themselves:
/// the range of n laps covers the true median in `1 - 2^(1-n)` of cases, 75 % for three.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// The middle value, or the mean of the two in the middle; none of nothing.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => None,
        n if n % 2 == 1 => Some(sorted[n / 2]),
        n => Some((sorted[n / 2 - 1] + sorted[n / 2]) / 2.0),
    }
}

/// Bootstrap interval of the median; none below [`MIN_LAPS`] values.
pub fn median_interval(values: &[f64], seed: u64) -> Option<Interval> {
    interval(seed, values.len(), |random| resampled_median(values, random))
}

/// Bootstrap interval of `median(base) / median(other)`, both sides resampled; none if either side
/// has fewer than [`MIN_LAPS`] values.
pub fn ratio_interval(base: &[f64], other: &[f64], seed: u64) -> Option<Interval> {
    interval(seed, base.len().min(other.len()), |random| {
        resampled_median(base, random) / resampled_median(other, random)
    })
}

/// An amount, and what it is of: bytes, and the seconds in which they came.
pub type Part = (f64, f64);

/// The mean of parts, of which each counts by what it is of; none of nothing.
pub fn mean_of(parts: &[Part]) -> Option<f64> {
    let sum = |sum: Part, part: &Part| (sum.0 + part.0, sum.1 + part.1);
    let (amount, of) = parts.iter().fold((0.0, 0.0), sum);
    (!parts.is_empty()).then(|| amount / of)
}

/// Bootstrap interval of `mean_of(base) / mean_of(other)`, both sides resampled; none if either side has fewer than
/// [`MIN_LAPS`] values. For samples that come in lumps, of which the median says little.
///
/// Few values hold too little of what varies: the interval is as much wider, as a factor, as Student's t is wider than
/// the normal distribution and as resampling n of n values underestimates their variance (T. Hesterberg, What Teachers
/// Should Know About the Bootstrap, 2015: the expanded percentile interval).
pub fn mean_ratio_interval(base: &[Part], other: &[Part], seed: u64) -> Option<Interval> {
    let fewest = base.len().min(other.len());
    let found = interval(seed, fewest, |random| {
        let resampled = |parts: &[Part], random: &mut SplitMix64| {
            mean_of(&resampled(parts, random)).expect("as many values as there are laps")
        };
        resampled(base, random) / resampled(other, random)
    })?;
    let mid = mean_of(base)? / mean_of(other)?;
    let count = fewest as f64;
    let wider = standard_errors(fewest) / NORMAL * (count / (count - 1.0)).sqrt();
    let widened = |end: f64| if mid > 0.0 { mid * (end / mid).powf(wider) } else { end };
    Some(Interval { low: widened(found.low), high: widened(found.high) })
}

/// Standard errors to either side of the mean of so many values that hold it in 95 % of cases: Student's t with one
/// degree of freedom less.
pub(crate) fn standard_errors(values: usize) -> f64 {
    match values.checked_sub(2) {
        Some(place) => STUDENT.get(place).copied().unwrap_or(NORMAL),
        None => f64::INFINITY,
    }
}

/// The mean; none of nothing.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

fn interval(
    seed: u64,
    laps: usize,
    mut draw: impl FnMut(&mut SplitMix64) -> f64,
) -> Option<Interval> {
    if laps < MIN_LAPS {
        return None;
    }
    let mut random = SplitMix64::seed_from_u64(seed);
    let mut drawn: Vec<f64> = (0..RESAMPLES).map(|_| draw(&mut random)).collect();
    drawn.sort_by(f64::total_cmp);
    let at = |share: f64| drawn[(share * (RESAMPLES - 1) as f64).round() as usize];
    let interval = Interval { low: at(0.025), high: at(0.975) };
    (interval.low.is_finite() && interval.high.is_finite()).then_some(interval)
}

fn resampled_median(values: &[f64], random: &mut SplitMix64) -> f64 {
    median(&resampled(values, random)).expect("as many values as there are laps")
}

fn resampled<T: Copy>(values: &[T], random: &mut SplitMix64) -> Vec<T> {
    let count = values.len() as u64;
    values.iter().map(|_| values[(random.next_u64() % count) as usize]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
    }

    #[test]
    fn an_interval_holds_the_median_and_stays_within_the_laps() {
        let laps = [10.0, 11.0, 12.0, 13.0, 40.0];
        let interval = median_interval(&laps, 7).unwrap();
        assert!(interval.low >= 10.0 && interval.low <= 12.0, "{interval:?}");
        assert!(interval.high >= 12.0 && interval.high <= 40.0, "{interval:?}");
        assert_eq!(median_interval(&laps, 7), Some(interval), "the same seed, the same interval");
        assert_eq!(median_interval(&laps[..2], 7), None);
    }

    #[test]
    fn a_ratio_of_equal_laps_includes_one_and_of_distant_laps_does_not() {
        let slow = [100.0, 104.0, 98.0, 101.0];
        let fast = [10.0, 10.4, 9.8, 10.1];
        let far = ratio_interval(&slow, &fast, 1).unwrap();
        assert!(far.low > 9.0 && far.high < 11.0, "{far:?}");
        let by_mean = mean_ratio_interval(&slow.map(each), &fast.map(each), 1).unwrap();
        assert!(by_mean.low > 9.0 && by_mean.high < 11.0, "{by_mean:?}");
        let same = ratio_interval(&slow, &slow, 1).unwrap();
        assert!(same.low < 1.0 && same.high > 1.0, "{same:?}");
    }

    /// A value that counts as much as every other one.
    fn each(value: f64) -> Part {
        (value, 1.0)
    }

    /// Chunks of a megabyte, seen from look to look: one that came just before a look seems to be a fast one.
    #[test]
    fn a_mean_counts_parts_by_what_they_are_of() {
        assert_eq!(mean_of(&[(1e6, 0.25), (1e6, 1.75)]), Some(1e6));
        assert_eq!(mean_of(&[]), None);
    }

    /// The range of three values holds the mean in three of four cases.
    #[test]
    fn few_values_have_an_interval_wider_than_their_range() {
        let (base, other) = ([9.0, 10.0, 11.0].map(each), [10.0, 10.0, 10.0].map(each));
        let few = mean_ratio_interval(&base, &other, 1).unwrap();
        assert!(few.low < 0.85 && few.high > 1.15, "{few:?}");
        let many = |values: [Part; 3]| values.repeat(20);
        let many = mean_ratio_interval(&many(base), &many(other), 1).unwrap();
        assert!(many.low > 0.95 && many.high < 1.05, "{many:?}");
        assert_eq!([2, 3, 31, 32].map(standard_errors), [12.706, 4.303, 2.042, 1.96]);
    }

    /// Chunks that arrive now and then: most steps see none.
    #[test]
    fn lumps_have_a_mean_that_their_median_hides() {
        let lumps: Vec<f64> = (0..60).map(|n| if n % 3 == 0 { 3.0 } else { 0.0 }).collect();
        let half: Vec<f64> = lumps.iter().map(|lump| lump / 2.0).collect();
        assert_eq!((median(&lumps), mean(&lumps)), (Some(0.0), Some(1.0)));
        let parts = [half, lumps].map(|lumps| lumps.into_iter().map(each).collect::<Vec<_>>());
        let ratio = mean_ratio_interval(&parts[0], &parts[1], 1).unwrap();
        assert!(ratio.low > 0.2 && ratio.low < 0.5 && ratio.high > 0.5, "{ratio:?}");
    }

    #[test]
    fn a_division_by_zero_is_no_interval() {
        assert_eq!(ratio_interval(&[0.0, 0.0, 0.0], &[0.0, 0.0, 0.0], 1), None);
    }
}
