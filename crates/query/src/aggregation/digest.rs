//! Percentiles by a merging t-digest: T. Dunning, O. Ertl, "Computing extremely accurate quantiles using
//! t-digests" (2019), with the scale function k1.
//!
//! Values that are few each are a centroid of their own, so that percentiles of few values are exact:
//! interpolated between the values, each of which stands for the middle of its share (as in
//! `AVLTreeDigest.quantile`, which Elasticsearch and OpenSearch used for years).

use serde::{Deserialize, Serialize};

/// Elasticsearch's default `tdigest.compression` is 100; twice of it costs little here.
const COMPRESSION: f64 = 200.0;
/// Values that are gathered before they are merged; as many stay exact.
const BUFFER: usize = 2048;

/// A sketch of a distribution.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Digest {
    /// Mean and weight, sorted by mean.
    centroids: Vec<(f64, f64)>,
    buffer: Vec<(f64, f64)>,
    weight: f64,
    min: f64,
    max: f64,
}

impl Digest {
    /// Adds a value. What is not finite is passed over.
    pub fn add(&mut self, value: f64) {
        if value.is_finite() {
            self.push(value, 1.0);
        }
    }

    fn push(&mut self, mean: f64, weight: f64) {
        if self.weight == 0.0 {
            (self.min, self.max) = (mean, mean);
        }
        self.min = self.min.min(mean);
        self.max = self.max.max(mean);
        self.weight += weight;
        self.buffer.push((mean, weight));
        if self.buffer.len() >= BUFFER {
            self.compress();
        }
    }

    /// Adds what the other one has.
    pub fn merge(&mut self, other: &Digest) {
        let empty = self.weight == 0.0;
        for (mean, weight) in other.centroids.iter().chain(&other.buffer) {
            self.push(*mean, *weight);
        }
        if other.weight > 0.0 {
            self.min = if empty { other.min } else { self.min.min(other.min) };
            self.max = if empty { other.max } else { self.max.max(other.max) };
        }
    }

    fn gather(&mut self) {
        self.centroids.append(&mut self.buffer);
        self.centroids.sort_by(|a, b| a.0.total_cmp(&b.0));
    }

    fn compress(&mut self) {
        self.gather();
        let total = self.weight;
        let k =
            |q: f64| COMPRESSION / std::f64::consts::TAU * (2.0 * q - 1.0).clamp(-1.0, 1.0).asin();
        let mut merged: Vec<(f64, f64)> = Vec::with_capacity(COMPRESSION as usize * 2);
        let (mut before, mut lower) = (0.0, k(0.0));
        for (mean, weight) in self.centroids.drain(..) {
            match merged.last_mut() {
                Some(last) if k((before + last.1 + weight) / total) - lower <= 1.0 => {
                    last.1 += weight;
                    last.0 += (mean - last.0) * weight / last.1;
                }
                last => {
                    if let Some(last) = last {
                        before += last.1;
                        lower = k(before / total);
                    }
                    merged.push((mean, weight));
                }
            }
        }
        self.centroids = merged;
    }

    /// The value below which the share `q` (0 to 1) lies. None of nothing.
    pub fn quantile(&mut self, q: f64) -> Option<f64> {
        self.gather();
        let (first, last) = (self.centroids.first()?, self.centroids.last()?);
        let index = q.clamp(0.0, 1.0) * self.weight;
        if index <= first.1 / 2.0 {
            // Between the smallest value and the first centroid's middle.
            let share = if first.1 > 1.0 { index / (first.1 / 2.0) } else { 1.0 };
            return Some(self.min + (first.0 - self.min) * share);
        }
        let mut middle = first.1 / 2.0;
        for pair in self.centroids.windows(2) {
            let step = (pair[0].1 + pair[1].1) / 2.0;
            if index <= middle + step {
                return Some(pair[0].0 + (pair[1].0 - pair[0].0) * (index - middle) / step);
            }
            middle += step;
        }
        let rest = self.weight - middle;
        let share = if last.1 > 1.0 { (index - middle) / rest } else { 0.0 };
        Some(last.0 + (self.max - last.0) * share.clamp(0.0, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_values_are_exact() {
        let mut digest = Digest::default();
        assert_eq!(digest.quantile(0.5), None);
        for value in [4.0, 1.0, 3.0, 2.0] {
            digest.add(value);
        }
        for (q, value) in
            [(0.0, 1.0), (0.125, 1.0), (0.25, 1.5), (0.5, 2.5), (0.875, 4.0), (1.0, 4.0)]
        {
            assert_eq!(digest.quantile(q), Some(value), "{q}");
        }
    }

    #[test]
    fn many_values_are_close() {
        let mut parts: Vec<Digest> = vec![Digest::default(); 5];
        let n = 200_000u64;
        for i in 0..n {
            let value = (i * 7919 % n) as f64;
            parts[(i % 5) as usize].add(value * value);
        }
        let mut whole = Digest::default();
        parts.iter().for_each(|part| whole.merge(part));
        for q in [0.001f64, 0.01, 0.25, 0.5, 0.9, 0.99, 0.999] {
            let found = whole.quantile(q).unwrap().sqrt() / n as f64;
            assert!((found - q).abs() < 0.015 * (q * (1.0 - q)).sqrt(), "{q} {found}");
        }
        assert_eq!(whole.quantile(1.0), Some(((n - 1) * (n - 1)) as f64));
        assert!(whole.centroids.len() < 3 * BUFFER);
    }
}
