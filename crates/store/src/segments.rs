//! How many segments a synthesized copy has, and their relative sizes.

/// Segments, each `ratio` times as large as the one before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Segments {
    /// How many; at least one, and no more than [`Segments::MAX`] are made.
    pub count: u32,
    /// From just above 0, where one holds nearly all, to 1, where all are equal.
    pub ratio: f64,
}

impl Segments {
    /// More would be files of a few bytes.
    pub const MAX: u32 = 1024;

    /// So many, each half as large as the one before: what a tiered merge policy tends to leave.
    pub fn halving(count: u32) -> Self {
        Segments { count, ratio: 0.5 }
    }

    /// For each segment, its share of what those before it left. The last takes all.
    pub(crate) fn shares_of_the_rest(self) -> impl Iterator<Item = f64> {
        let ratio = self.ratio.clamp(f64::EPSILON, 1.0);
        let count = self.count.clamp(1, Self::MAX);
        (0..count).map(move |number| {
            // 1 of 1 + r + r^2 + ... + r^(left - 1).
            let left = f64::from(count - number);
            if ratio < 1.0 { (1.0 - ratio) / (1.0 - ratio.powf(left)) } else { 1.0 / left }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sizes that a whole of 1 is cut into.
    fn sizes(segments: Segments) -> Vec<f64> {
        let mut rest = 1.0;
        let cut = |share: f64| {
            let size = rest * share;
            rest -= size;
            size
        };
        segments.shares_of_the_rest().map(cut).collect()
    }

    #[test]
    fn the_whole_is_cut_as_the_ratio_says() {
        let close = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-9);
        assert!(close(&sizes(Segments { count: 4, ratio: 1.0 }), &[0.25; 4]));
        let halves = sizes(Segments::halving(3));
        assert!(close(&halves, &[4.0 / 7.0, 2.0 / 7.0, 1.0 / 7.0]), "{halves:?}");
        for ratio in [0.0, 0.3, 0.999_999, 1.0, f64::INFINITY] {
            let sizes = sizes(Segments { count: 100, ratio });
            assert!((sizes.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{ratio}: {sizes:?}");
        }
    }
}
