//! Counting distinct values: exactly while they are few, by HyperLogLog beyond.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// Registers are 2^PRECISION: a relative error of 0.8 %.
const PRECISION: u32 = 14;
/// Bits of a hash behind the register's number.
const REST: u32 = 64 - PRECISION;

/// Distinct values, by their 64-bit hashes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Distinct {
    /// Every hash, up to the threshold.
    Exact {
        /// The hashes.
        hashes: BTreeSet<u64>,
        /// How many of them are kept.
        threshold: usize,
    },
    /// HyperLogLog registers.
    Registers(Vec<u8>),
}

impl Distinct {
    /// None yet. Exact up to `threshold`.
    pub fn new(threshold: usize) -> Self {
        Distinct::Exact { hashes: BTreeSet::new(), threshold }
    }

    /// Counts a value by its hash.
    pub fn add(&mut self, hash: u64) {
        match self {
            Distinct::Registers(registers) => note(registers, hash),
            Distinct::Exact { hashes, threshold } => {
                hashes.insert(hash);
                if hashes.len() > *threshold {
                    let mut registers = vec![0; 1 << PRECISION];
                    hashes.iter().for_each(|hash| note(&mut registers, *hash));
                    *self = Distinct::Registers(registers);
                }
            }
        }
    }

    /// Counts what the other one counted.
    pub fn merge(&mut self, other: Distinct) {
        match (&mut *self, other) {
            (_, Distinct::Exact { hashes, .. }) => hashes.into_iter().for_each(|h| self.add(h)),
            (Distinct::Registers(mine), Distinct::Registers(others)) => {
                for (mine, other) in mine.iter_mut().zip(others) {
                    *mine = (*mine).max(other);
                }
            }
            (Distinct::Exact { hashes, .. }, Distinct::Registers(mut registers)) => {
                hashes.iter().for_each(|hash| note(&mut registers, *hash));
                *self = Distinct::Registers(registers);
            }
        }
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        match self {
            Distinct::Exact { hashes, .. } => hashes.len() as u64,
            Distinct::Registers(registers) => estimate(registers).round() as u64,
        }
    }
}

fn note(registers: &mut [u8], hash: u64) {
    let register = &mut registers[(hash >> REST) as usize];
    let zeros = (hash << PRECISION).leading_zeros().min(REST);
    *register = (*register).max(zeros as u8 + 1);
}

/// The improved raw estimator: without tables, and without bias at any count.
/// O. Ertl, "New cardinality estimation algorithms for HyperLogLog sketches" (2017), algorithm 6.
fn estimate(registers: &[u8]) -> f64 {
    let m = registers.len() as f64;
    let mut counts = [0.0; REST as usize + 2];
    for register in registers {
        counts[usize::from(*register).min(REST as usize + 1)] += 1.0;
    }
    let mut z = m * tau(1.0 - counts[REST as usize + 1] / m);
    for count in counts[1..=REST as usize].iter().rev() {
        z = 0.5 * (z + count);
    }
    z += m * sigma(counts[0] / m);
    let alpha = 0.5 / std::f64::consts::LN_2;
    alpha * m * m / z
}

fn sigma(mut x: f64) -> f64 {
    if x == 1.0 {
        return f64::INFINITY;
    }
    let (mut y, mut z) = (1.0, x);
    loop {
        x *= x;
        let before = z;
        z += x * y;
        y += y;
        if z == before {
            return z;
        }
    }
}

fn tau(mut x: f64) -> f64 {
    if x == 0.0 || x == 1.0 {
        return 0.0;
    }
    let (mut y, mut z) = (1.0, 1.0 - x);
    loop {
        x = x.sqrt();
        let before = z;
        y *= 0.5;
        z -= (1.0 - x).powi(2) * y;
        if z == before {
            return z / 3.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(n: u64) -> u64 {
        xxhash_rust::xxh3::xxh3_64(&n.to_le_bytes())
    }

    #[test]
    fn exact_while_few_and_close_beyond() {
        for (values, threshold) in [(3000, 3000), (3001, 3000), (50_000, 100), (1_000_000, 0)] {
            let mut distinct = Distinct::new(threshold);
            for n in 0..values {
                distinct.add(hash(n));
                distinct.add(hash(n / 2));
            }
            let error = (distinct.count() as f64 / values as f64 - 1.0).abs();
            let allowed = if values <= threshold as u64 { 0.0 } else { 0.025 };
            assert!(error <= allowed, "{values}: {}", distinct.count());
        }
    }

    #[test]
    fn merging_is_counting_together() {
        for (a, b) in [(10, 10), (10, 5000), (5000, 10), (5000, 5000)] {
            let counted = |from: u64, to: u64| {
                let mut distinct = Distinct::new(100);
                (from..to).for_each(|n| distinct.add(hash(n)));
                distinct
            };
            let mut merged = counted(0, a);
            merged.merge(counted(a / 2, a / 2 + b));
            assert_eq!(merged.count(), counted(0, (a / 2 + b).max(a)).count(), "{a} {b}");
        }
    }
}
