//! Inputs that nobody would write: good ones, changed at random from a seed, for whatever reads foreign bytes.
//!
//! A parser must not panic, and what it does must follow from the length of its input: allocations are counted, which
//! is the same on every machine, and the time of the thread bounds work that allocates nothing.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use rustix::time::{ClockId, clock_gettime};

use crate::night;

/// What an input of so many bytes may cost.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// Allocations whatever the input.
    pub allocations: u64,
    /// Allocations for each of its bytes.
    pub allocations_per_byte: u64,
    /// Bytes in use at a time, whatever the input.
    pub bytes: u64,
    /// Bytes in use at a time for each of its bytes.
    pub bytes_per_byte: u64,
}

impl Default for Budget {
    fn default() -> Self {
        Budget { allocations: 5_000, allocations_per_byte: 50, bytes: 1 << 20, bytes_per_byte: 500 }
    }
}

/// A thread that is busy with one input for so long will not end soon: a thousand times what any takes.
const TIME_MAX: Duration = Duration::from_secs(5);
/// The variable that has each search go on for so many seconds, and through its ordinary inputs at least.
pub const FUZZ_SECONDS: &str = "NARROWS_FUZZ_SECONDS";
/// Inputs do not grow beyond this.
const LENGTH_MAX: usize = 16 << 10;

/// Feeds `parse` with `ordinary` inputs made of `samples`, or more in a night ([`crate::night`]), or for as long as
/// [`FUZZ_SECONDS`] says.
///
/// # Panics
/// If one of them makes it panic, or costs more than the budget. The message has the seed and the input.
pub fn search(
    target: &str,
    samples: &[&[u8]],
    ordinary: u64,
    budget: Budget,
    parse: impl FnMut(&[u8]),
) {
    let seeds = night::seeds(&format!("fuzz {target}"), ordinary);
    let Ok(seconds) = std::env::var(FUZZ_SECONDS) else {
        return search_seeds(target, samples, seeds, budget, parse);
    };
    let seconds =
        seconds.parse().unwrap_or_else(|_| panic!("{FUZZ_SECONDS}={seconds} is no number"));
    let ends = Instant::now() + Duration::from_secs(seconds);
    let mut tried = 0;
    search_seeds(target, samples, going_on(seeds, ends).inspect(|_| tried += 1), budget, parse);
    eprintln!("fuzz {target}: {tried} inputs in {seconds} s");
}

/// Seeds from the first of these on: all of these, and more until it ends.
fn going_on(seeds: Range<u64>, ends: Instant) -> impl Iterator<Item = u64> {
    (seeds.start..).take_while(move |seed| seeds.contains(seed) || Instant::now() < ends)
}

fn search_seeds(
    target: &str,
    samples: &[&[u8]],
    seeds: impl Iterator<Item = u64>,
    budget: Budget,
    mut parse: impl FnMut(&[u8]),
) {
    assert!(!samples.is_empty(), "{target} has no samples");
    // A sample pays for what is made once and kept.
    samples.iter().for_each(|sample| parse(sample));
    let mut words: Vec<&[u8]> = samples.iter().flat_map(|sample| words_of(sample)).collect();
    words.sort_unstable();
    words.dedup();
    for seed in seeds {
        let input = input(seed, samples, &words);
        let began = thread_time();
        let mut panicked = false;
        let cost = allocation_counter::measure(|| {
            panicked = catch_unwind(AssertUnwindSafe(|| parse(&input))).is_err();
        });
        let took = thread_time() - began;
        let length = input.len() as u64;
        let finding = if panicked {
            "it panics".to_owned()
        } else if cost.count_total > budget.allocations + budget.allocations_per_byte * length {
            format!("it allocates {} times", cost.count_total)
        } else if cost.bytes_max > budget.bytes + budget.bytes_per_byte * length {
            format!("it holds {} bytes at a time", cost.bytes_max)
        } else if took > TIME_MAX {
            format!("it takes {took:?}")
        } else {
            continue;
        };
        panic!(
            "fuzz {target}, seed {seed}: {finding} for {length} bytes: {}\nRun it again: {}=1@{seed} ...",
            input.escape_ascii(),
            night::NIGHT,
        );
    }
}

fn thread_time() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or(0))
}

/// Random numbers from a seed.
struct Chance(SplitMix64);

impl Chance {
    /// Below `end`, which is above 0.
    fn below(&mut self, end: usize) -> usize {
        (self.0.next_u64() % end as u64) as usize
    }

    fn range(&mut self, len: usize) -> Range<usize> {
        let (a, b) = (self.below(len + 1), self.below(len + 1));
        // Mostly short ones.
        let end = a.max(b).min(a.min(b) + 1 + self.below(40));
        a.min(b)..end.min(len)
    }
}

/// What parsers stumble over.
const STRANGE: [&[u8]; 28] = [
    b"\0", b"\xff", b"\xc3", b"\xed\xa0\x80", b"\"", b"\\", b"\\ud800", b"{", b"}", b"[", b"]",
    b"[[[[[[[[[[[[[[[[", b"{\"a\":{\"a\":{\"a\":{\"a\":", b"-", b"-1", b"0", b"1e400",
    b"18446744073709551616", b"9223372036854775807", b"NaN", b"**.**.**.**.", b"*?*?*?*?", b"\n",
    b"\r", b"\x1b[2J", b"\xe2\x80\xae", b"null", b"now-1000000000000y/d",
];

fn words_of(sample: &[u8]) -> impl Iterator<Item = &[u8]> {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    sample.chunk_by(move |a, b| is_word(a) == is_word(b))
}

fn input(seed: u64, samples: &[&[u8]], words: &[&[u8]]) -> Vec<u8> {
    let mut chance = Chance(SplitMix64::seed_from_u64(seed));
    let mut input = samples[chance.below(samples.len())].to_vec();
    for _ in 0..=chance.below(6) {
        change(&mut chance, &mut input, samples, words);
        input.truncate(LENGTH_MAX);
    }
    input
}

fn change(chance: &mut Chance, input: &mut Vec<u8>, samples: &[&[u8]], words: &[&[u8]]) {
    let range = chance.range(input.len());
    match chance.below(9) {
        0 if !input.is_empty() => {
            let at = chance.below(input.len());
            input[at] ^= 1 << chance.below(8);
        }
        1 => drop(input.drain(range)),
        2 => {
            let times = 1 << chance.below(7);
            let piece = input[range.clone()].repeat(times);
            input.splice(range.start..range.start, piece);
        }
        3 => {
            let other = samples[chance.below(samples.len())];
            let piece = other[chance.range(other.len())].to_vec();
            input.splice(range, piece);
        }
        4 => input.truncate(range.start),
        5 => {
            let piece = STRANGE[chance.below(STRANGE.len())].repeat(1 << chance.below(5));
            input.splice(range, piece);
        }
        6 if input.len() >= 4 => {
            // A length that lies.
            let at = chance.below(input.len() - 3);
            let number =
                [0, 1, u32::MAX, u32::MAX / 2, chance.0.next_u64() as u32][chance.below(5)];
            input[at..at + 4].copy_from_slice(&number.to_be_bytes());
        }
        _ => {
            let word = words[chance.below(words.len())];
            input.splice(range, word.iter().copied());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLES: [&[u8]; 2] = [b"{\"a\": [1, 2]}", b"{\"bcd\": \"text\"}"];

    fn finding(parse: fn(&[u8])) -> String {
        // Always the same seeds: what is tried here is the search.
        let searching = || search_seeds("a parser", &SAMPLES, 0..10_000, Budget::default(), parse);
        let panic = catch_unwind(searching).expect_err("nothing was found");
        panic.downcast_ref::<String>().expect("a message").clone()
    }

    #[test]
    fn a_time_that_is_over_leaves_out_no_ordinary_input() {
        assert!(going_on(3..7, Instant::now()).eq(3..7));
    }

    #[test]
    fn a_panic_is_found() {
        let found = finding(|input| assert!(!input.starts_with(b"{\"a\": [2"), "not this one"));
        assert!(found.contains("it panics"), "{found}");
    }

    #[test]
    fn work_that_grows_with_the_square_is_found() {
        let found = finding(|input| {
            let braces = input.iter().filter(|byte| **byte == b'[').count();
            (0..braces * braces).for_each(|_| drop(std::hint::black_box(vec![1; 8])));
        });
        assert!(found.contains("it allocates"), "{found}");
    }

    #[test]
    fn a_length_that_is_believed_is_found() {
        let found = finding(|input| {
            let Some(head) = input.first_chunk::<4>() else { return };
            let believed = u32::from_be_bytes(*head).min(1 << 28);
            if believed > 1 << 27 {
                drop(std::hint::black_box(Vec::<u8>::with_capacity(believed as usize)));
            }
        });
        assert!(found.contains("bytes at a time"), "{found}");
    }
}
