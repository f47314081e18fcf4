//! Drawing from a weighted table in constant time.

use super::random::Random;

/// Walker's alias method in Vose's form: a draw costs one random number and one look-up, whatever
/// the weights. Source: M. D. Vose, "A linear algorithm for generating random numbers with a given
/// distribution", IEEE Transactions on Software Engineering 17(9), 1991.
pub(super) struct Weighted {
    /// For each column the threshold, as a share of 2^32, below which the column itself is meant,
    /// and the choice that is meant above.
    columns: Vec<(u32, u32)>,
}

impl Weighted {
    /// A table of `weights`, which are positive. Only additions, multiplications and divisions, so
    /// that every machine builds the same table.
    pub(super) fn new(weights: &[f64]) -> Self {
        let count = weights.len();
        let total: f64 = weights.iter().sum();
        let mut share: Vec<f64> = weights.iter().map(|w| w * count as f64 / total).collect();
        let (mut small, mut large): (Vec<usize>, Vec<usize>) =
            (0..count).partition(|&i| share[i] < 1.0);
        let mut columns: Vec<(u32, u32)> = (0..count as u32).map(|i| (u32::MAX, i)).collect();
        while let (Some(&poor), Some(&rich)) = (small.last(), large.last()) {
            small.pop();
            columns[poor] = ((share[poor] * 4_294_967_296.0) as u32, rich as u32);
            share[rich] -= 1.0 - share[poor];
            if share[rich] < 1.0 {
                large.pop();
                small.push(rich);
            }
        }
        Weighted { columns }
    }

    /// Zipf's law over `count` ranks: rank r, from 0, is drawn in proportion to `1 / (r + shift)`.
    /// `shift` of 1 is the plain law; more flattens the head (Zipf-Mandelbrot).
    pub(super) fn zipf(count: usize, shift: f64) -> Self {
        let weights: Vec<f64> = (0..count).map(|rank| 1.0 / (rank as f64 + shift)).collect();
        Weighted::new(&weights)
    }

    /// The index of a choice.
    pub(super) fn draw(&self, random: &mut Random) -> usize {
        let bits = random.bits();
        let column = (((bits >> 32) * self.columns.len() as u64) >> 32) as usize;
        let (threshold, other) = self.columns[column];
        if (bits as u32) < threshold { column } else { other as usize }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_in_proportion() {
        let table = Weighted::new(&[6.0, 1.0, 3.0]);
        let mut seen = [0u32; 3];
        let mut random = Random::new(1, 0, 0);
        for _ in 0..100_000 {
            seen[table.draw(&mut random)] += 1;
        }
        for (count, expected) in seen.iter().zip([60_000.0, 10_000.0, 30_000.0]) {
            assert!((f64::from(*count) - expected).abs() < 1_000.0, "{seen:?}");
        }
    }

    #[test]
    fn zipf_halves_from_rank_one_to_two() {
        let table = Weighted::zipf(1000, 1.0);
        let mut seen = vec![0u32; 1000];
        let mut random = Random::new(2, 0, 0);
        for _ in 0..400_000 {
            seen[table.draw(&mut random)] += 1;
        }
        let ratio = f64::from(seen[0]) / f64::from(seen[1]);
        assert!((1.9..2.1).contains(&ratio), "{ratio}");
        assert!(seen[999] > 10, "the tail is drawn too: {}", seen[999]);
    }
}
