//! How long a failed request waits before it is tried again.

use std::time::Duration;

/// One step of the follower's random backoff.
const STEP: Duration = Duration::from_millis(50);
/// Retries after which the range no longer doubles.
const DOUBLINGS_MAX: u32 = 23;

/// The waits of one kind of request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Backoff {
    /// Elasticsearch's follower (`ShardFollowNodeTask`): 50 ms times a random number from 0 to
    /// `2^(retry - 1)`, at most `max_retry_delay`.
    Follower {
        /// The follow parameter of that name.
        max_retry_delay: Duration,
    },
    /// Peer recovery: always the same, `indices.recovery.retry_delay_network` or
    /// `indices.recovery.retry_delay_state_sync`.
    Fixed {
        /// That setting's value.
        delay: Duration,
    },
}

impl Backoff {
    /// The follower with its default `max_retry_delay` of 500 ms.
    pub const FOLLOWER: Backoff = Backoff::Follower { max_retry_delay: Duration::from_millis(500) };

    /// The wait before the `retry`-th try after the first (from 1), given a random number that is
    /// uniform over all of `u64`.
    pub fn delay(self, retry: u32, random: u64) -> Duration {
        match self {
            Backoff::Follower { max_retry_delay } => {
                let highest = 1u64 << retry.saturating_sub(1).min(DOUBLINGS_MAX);
                let steps = (random % (highest + 1)) as u32;
                (STEP * steps).min(max_retry_delay)
            }
            Backoff::Fixed { delay } => delay,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn millis(retry: u32) -> BTreeSet<u128> {
        (0..1000).map(|random| Backoff::FOLLOWER.delay(retry, random).as_millis()).collect()
    }

    #[test]
    fn the_range_doubles_up_to_the_cap() {
        assert_eq!(millis(1), BTreeSet::from([0, 50]));
        assert_eq!(millis(2), BTreeSet::from([0, 50, 100]));
        assert_eq!(millis(3), BTreeSet::from([0, 50, 100, 150, 200]));
        assert_eq!(millis(9).last(), Some(&500));
    }

    #[test]
    fn any_number_of_retries_and_any_random_number_will_do() {
        let long = Backoff::Follower { max_retry_delay: Duration::from_secs(300) };
        for retry in [0, 1, 24, 25, 64, u32::MAX] {
            for random in [0, 1, u64::MAX - 1, u64::MAX] {
                assert!(long.delay(retry, random) <= Duration::from_secs(300));
            }
        }
    }

    #[test]
    fn a_fixed_delay_stays() {
        let network = Backoff::Fixed { delay: Duration::from_secs(5) };
        assert_eq!([network.delay(1, 7), network.delay(100, 8)], [Duration::from_secs(5); 2]);
    }
}
