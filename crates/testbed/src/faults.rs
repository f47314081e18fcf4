//! Runs with faults at random, each of which a seed or a case says: a panic within one is its failure, and one that
//! failed is run again in place of all others.

use std::cell::Cell;
use std::fmt::Display;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, Once, PoisonError};

/// The variable that names a case to run again.
const CASE: &str = "NARROWS_FAULT_CASE";
/// How often a long night says how far it is.
const PROGRESS_EVERY: u64 = 10_000;

thread_local! {
    static IS_QUIET: Cell<bool> = const { Cell::new(false) };
}

/// What runs came to.
pub struct Ran<T> {
    /// How many there were.
    pub runs: u64,
    /// Of those that passed.
    pub sum: T,
    /// Seeds that failed, in order, and why.
    pub failed: Vec<(u64, String)>,
}

/// The case to run again, where there is one.
///
/// # Panics
/// If the variable names none.
pub fn case<T: FromStr<Err: Display>>() -> Option<T> {
    let text = std::env::var(CASE).ok()?;
    Some(text.parse().unwrap_or_else(|why| panic!("{CASE}={text}: {why}")))
}

/// How to run a case again in a test: `-p dcp --test it faults::nothing_is_lost`.
pub fn again(case: impl Display, test: &str) -> String {
    format!("Run it again:\n  {CASE}={case} cargo test --release {test} -- --nocapture")
}

/// A run, whose panics are its failure. They are printed where a case is run again.
pub fn caught<T>(run: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !IS_QUIET.get() {
                before(info);
            } else if std::env::var_os(CASE).is_some() {
                eprintln!("{info}");
            }
        }));
    });
    IS_QUIET.set(true);
    let ran = catch_unwind(AssertUnwindSafe(run));
    IS_QUIET.set(false);
    ran.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or(panic.downcast_ref::<&str>().copied());
        Err(format!("it panicked: {}", text.unwrap_or_default()))
    })
}

/// Runs seeds on so many threads until `enough` fail; `add` counts what passes.
pub fn search<T: Default + Send, R>(
    seeds: Range<u64>,
    threads: usize,
    enough: usize,
    run: impl Fn(u64) -> Result<R, String> + Sync,
    add: impl Fn(&mut T, R) + Sync,
) -> Ran<T> {
    let next = AtomicU64::new(seeds.start);
    let all = Mutex::new(Ran { runs: 0, sum: T::default(), failed: Vec::new() });
    let locked = || all.lock().unwrap_or_else(PoisonError::into_inner);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end || locked().failed.len() >= enough {
                        return;
                    }
                    let result = run(seed);
                    let mut all = locked();
                    all.runs += 1;
                    match result {
                        Ok(passed) => add(&mut all.sum, passed),
                        Err(why) => all.failed.push((seed, why)),
                    }
                    if all.runs.is_multiple_of(PROGRESS_EVERY) {
                        let (runs, failed, first) = (all.runs, all.failed.len(), seeds.start);
                        let to_go = seeds.end - first - runs;
                        eprintln!(
                            "{runs} runs from seed {first} on, {failed} failed, {to_go} to go"
                        );
                    }
                }
            });
        }
    });
    let mut ran = all.into_inner().unwrap_or_else(PoisonError::into_inner);
    ran.failed.sort();
    ran
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_or_panics_is_told_by_its_seed() {
        let run = |seed: u64| {
            caught(|| match seed {
                13 => panic!("at {seed}"),
                17 => Err("lost".to_owned()),
                _ => Ok(seed),
            })
        };
        let Ran { runs, sum, failed } =
            search(10..20, 3, usize::MAX, run, |sum: &mut u64, one| *sum += one);
        assert_eq!((runs, sum), (10, (10..20).sum::<u64>() - 13 - 17));
        assert_eq!(failed, [(13, "it panicked: at 13".to_owned()), (17, "lost".to_owned())]);
        let Ran { runs, failed, .. } = search(10..20, 1, 1, run, |_: &mut u64, _| ());
        assert_eq!((runs, failed.len()), (4, 1), "one is enough");
    }
}
