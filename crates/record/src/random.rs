//! Random numbers by a formula, for worlds and policies whose every number comes from a seed: SplitMix64, and the gamma
//! distribution by its mean and spread.

/// A factor with mean 1 whose standard deviation is `spread`: gamma-distributed, 1 always where the spread is zero,
/// exponential where it is 1. `random` is uniform over all of `u64`.
///
/// Source: G. Marsaglia, W. W. Tsang, "A Simple Method for Generating Gamma Variables", ACM TOMS 26 (3), 2000.
pub fn gamma_factor(spread: f64, mut random: impl FnMut() -> u64) -> f64 {
    if spread <= 0.0 {
        return 1.0;
    }
    let shape = 1.0 / (spread * spread);
    let mut uniform = || (random() >> 11) as f64 / (1u64 << 53) as f64 + f64::EPSILON / 2.0;
    // Below 1 the method needs a shape more, and a power that takes it away again.
    let boost = if shape < 1.0 { uniform().powf(1.0 / shape) } else { 1.0 };
    let d = if shape < 1.0 { shape + 1.0 } else { shape } - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        // Box and Muller.
        let (radius, angle) = ((-2.0 * uniform().ln()).sqrt(), std::f64::consts::TAU * uniform());
        let normal = radius * angle.cos();
        let v = (1.0 + c * normal).powi(3);
        if v > 0.0 && uniform().ln() < 0.5 * normal * normal + d * (1.0 - v + v.ln()) {
            return boost * d * v / shape;
        }
    }
}

/// The next number of a sequence that begins with any state: SplitMix64 (G. Steele, D. Lea, C. Flood, "Fast splittable
/// pseudorandom number generators", 2014).
pub fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_and_spread_are_as_asked() {
        let seed = 7;
        println!("seed {seed}");
        let mut state = seed;
        for spread in [0.2, 0.7, 1.0, 1.6] {
            let n = 100_000;
            let all: Vec<f64> =
                (0..n).map(|_| gamma_factor(spread, || split_mix(&mut state))).collect();
            let mean = all.iter().sum::<f64>() / f64::from(n);
            let variance = all.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / f64::from(n);
            assert!((mean - 1.0).abs() < 0.03, "spread {spread}: mean {mean}");
            assert!((variance.sqrt() / spread - 1.0).abs() < 0.04, "spread {spread}: {variance}");
        }
        assert_eq!(gamma_factor(0.0, || 1), 1.0);
    }
}
