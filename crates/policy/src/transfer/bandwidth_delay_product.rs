//! What follows from a rate and a base round trip: how large chunks are and how many bytes wait.

/// What a request costs besides its bytes: bounds the requests in flight when files are tiny.
pub(crate) const REQUEST_COST_BYTES: u64 = 1 << 10;

const CHUNK_MIN_BYTES: u64 = 64 << 10;
const CHUNK_MAX_BYTES: u64 = 4 << 20;
const CHUNK_STEP_BYTES: u64 = 16 << 10;
/// A chunk is the geometric mean of this and the bandwidth-delay product: pieces of a window are small,
/// but requests do not multiply with the rate.
const CHUNK_MEAN_BYTES: f64 = 16_384.0;
/// A chunk lasts at least this long on the link: on a fast, short path the costs of a request
/// would count otherwise.
const CHUNK_MIN_S: f64 = 0.001_25;

/// The part of the slack that makes transfers equal; see `BandwidthDelayProduct::slack_bytes`.
const SLACK_MEAN_BYTES: f64 = 4_096.0;
const SLACK_ROUND_TRIP_MIN_S: f64 = 0.002;

/// The point from which more bytes in flight only wait longer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BandwidthDelayProduct {
    pub(crate) rate_bytes_per_s: f64,
    pub(crate) base_s: f64,
}

impl BandwidthDelayProduct {
    /// The bandwidth-delay product.
    pub(crate) fn product_bytes(self) -> f64 {
        self.rate_bytes_per_s * self.base_s
    }

    pub(crate) fn chunk_bytes(self) -> u64 {
        let mean = (self.product_bytes() * CHUNK_MEAN_BYTES).sqrt();
        let bytes = mean.max(self.rate_bytes_per_s * CHUNK_MIN_S) as u64;
        (bytes / CHUNK_STEP_BYTES * CHUNK_STEP_BYTES).clamp(CHUNK_MIN_BYTES, CHUNK_MAX_BYTES)
    }

    /// Chunks over many connections: half of what each has under way.
    pub(crate) fn spread_chunk_bytes(self, connections: u32) -> u64 {
        let bytes = (self.product_bytes() / f64::from(2 * connections.max(1))) as u64;
        (bytes / CHUNK_STEP_BYTES * CHUNK_STEP_BYTES).clamp(CHUNK_MIN_BYTES, CHUNK_MAX_BYTES)
    }

    /// A chunk for each connection that waits behind what it has under way, or a window could not grow.
    pub(crate) fn spread_slack_bytes(self, connections: u32) -> f64 {
        let chunk_bytes = self.spread_chunk_bytes(connections) + REQUEST_COST_BYTES;
        (u64::from(connections) * chunk_bytes) as f64
    }

    /// Two chunks, so that one is under way while the other is taken care of, and a part that grows with
    /// the root of the rate. With windows `w = r T + s(r)` and shares `r = R w / W` of a link's rate
    /// `R`, all `s(r) / r` are equal in equilibrium: a root has it only where all rates are equal.
    pub(crate) fn slack_bytes(self) -> f64 {
        let product = self.rate_bytes_per_s * self.base_s.max(SLACK_ROUND_TRIP_MIN_S);
        2.0 * (self.chunk_bytes() + REQUEST_COST_BYTES) as f64 + (product * SLACK_MEAN_BYTES).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_a_small_part_of_what_a_long_path_carries() {
        for base_s in [0.01, 0.1, 0.3] {
            for rate_bytes_per_s in [12.5e6, 125e6] {
                let product = BandwidthDelayProduct { rate_bytes_per_s, base_s };
                let chunk = product.chunk_bytes();
                assert!((CHUNK_MIN_BYTES..=CHUNK_MAX_BYTES).contains(&chunk));
                let part = chunk as f64 / product.product_bytes();
                assert!(part < 0.2 || chunk == CHUNK_MIN_BYTES, "{product:?}: {part:.2}");
            }
        }
    }

    #[test]
    fn chunks_are_large_on_a_fast_short_path() {
        let product = BandwidthDelayProduct { rate_bytes_per_s: 1e9, base_s: 50e-6 };
        assert!(product.chunk_bytes() >= 1 << 20);
    }

    #[test]
    fn of_two_transfers_the_slower_has_the_larger_slack_for_its_rate() {
        for base_s in [0.000_05, 0.01, 0.3] {
            let slack_s = |rate_bytes_per_s| {
                BandwidthDelayProduct { rate_bytes_per_s, base_s }.slack_bytes() / rate_bytes_per_s
            };
            let rates = [1e6, 3e6, 1e7, 3e7, 1e8, 1e9];
            rates.windows(2).for_each(|w| assert!(slack_s(w[0]) > slack_s(w[1]), "{base_s} {w:?}"));
        }
    }
}
