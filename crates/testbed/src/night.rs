//! How much a test does that could go on for ever: a few seeds in an ordinary run, a night's worth where that is asked
//! for.

use std::ops::Range;
use std::time::{SystemTime, UNIX_EPOCH};

/// The variable that asks for more: `FACTOR` or `FACTOR@FIRST`.
pub const NIGHT: &str = "NARROWS_NIGHT";

/// What the variable says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Night {
    factor: u64,
    first_seed: u64,
}

impl Night {
    fn of_environment() -> Night {
        let Ok(text) = std::env::var(NIGHT) else { return Night { factor: 1, first_seed: 0 } };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        Night::parse(&text, now * 1000).unwrap_or_else(|| {
            panic!("{NIGHT}={text} is neither a factor, as 100, nor a factor and the first seed, as 100@5000000")
        })
    }

    /// Without a first seed the night takes seeds that no night before had.
    fn parse(text: &str, fresh_seed: u64) -> Option<Night> {
        let (factor, first) = text.split_once('@').map_or((text, None), |(n, s)| (n, Some(s)));
        let first_seed = match first {
            Some(first) => first.parse().ok()?,
            None => fresh_seed,
        };
        let factor = factor.parse().ok().filter(|factor| *factor > 0)?;
        Some(Night { factor, first_seed })
    }
}

/// The seeds of a random test that runs so many in an ordinary run, from 0. Says which they are.
pub fn seeds(test: &str, ordinary: u64) -> Range<u64> {
    let Night { factor, first_seed } = Night::of_environment();
    let seeds = first_seed..first_seed + ordinary * factor;
    eprintln!("{test}: seeds {seeds:?} ({NIGHT}={factor}@{first_seed})");
    seeds
}

/// How often a test repeats what it does so often in an ordinary run. Says so.
pub fn times(test: &str, ordinary: u64) -> u64 {
    let factor = Night::of_environment().factor;
    let times = ordinary * factor;
    eprintln!("{test}: {times} times ({NIGHT}={factor})");
    times
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_night_is_a_factor_and_its_first_seed() {
        let night = |factor, first_seed| Some(Night { factor, first_seed });
        assert_eq!(Night::parse("100", 7000), night(100, 7000));
        assert_eq!(Night::parse("1@17", 7000), night(1, 17));
        for wrong in ["", "0", "x", "5@", "5@x", "-1", "@5"] {
            assert_eq!(Night::parse(wrong, 0), None, "{wrong}");
        }
    }
}
