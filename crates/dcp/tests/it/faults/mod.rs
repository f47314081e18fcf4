//! Short runs in virtual time with faults at random: servers killed, links cut, managers that give up, failovers to
//! replicas that are behind, while clients write, replicas follow and vbuckets move; some disks are slow. At the end
//! nothing is lost or reordered, and both servers hold the same.
//!
//! A seed says everything. One that fails is printed with the command that runs it again, as the first of a few:
//!
//! ```text
//! NARROWS_NIGHT=1@17 cargo test --release -p dcp --test it faults::nothing_is_lost -- --nocapture
//! ```

mod clients;
mod episode;
mod ledger;
mod run;

use run::{Summary, run};

/// Runs in an ordinary test.
const RUNS: u64 = 8;
/// Each planted bug is found within so many seeds.
const FOUND_WITHIN: u64 = 200;

/// One run; panics within it are its failure.
fn quietly(seed: u64, planted: Option<&'static str>) -> Result<Summary, String> {
    let ran = std::panic::catch_unwind(|| run(seed, planted));
    ran.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or(panic.downcast_ref::<&str>().copied());
        Err(format!("panicked: {}", text.unwrap_or("without words")))
    })
}

#[test]
fn nothing_is_lost() {
    let seeds = testbed::night::seeds("faults of DCP servers", RUNS);
    let runs = seeds.end - seeds.start;
    let (mut sum, mut failed) = (Summary::default(), Vec::new());
    for seed in seeds {
        match quietly(seed, None) {
            Ok(one) => sum.add(&one),
            Err(why) => {
                eprintln!("seed {seed}: {why}");
                failed.push(seed);
            }
        }
    }
    eprintln!("{runs} runs: {sum:?}");
    assert!(
        failed.is_empty(),
        "seeds {failed:?} fail; run one again:\n  {}=1@{} cargo test --release -p dcp --test it \
         faults::nothing_is_lost -- --nocapture",
        testbed::night::NIGHT,
        failed[0]
    );
    assert!(sum.acknowledged > 20 * runs && sum.persisted > runs, "hardly anything was written");
    assert!(sum.moved > 0 && sum.broken_moves > 0, "hardly anything moved");
    assert!(sum.failovers > 0 && sum.rollbacks > 0, "nobody had to go back");
}

#[test]
fn a_seed_says_everything() {
    for seed in 0..3 {
        assert_eq!(quietly(seed, None), quietly(seed, None), "seed {seed}");
    }
}

fn is_found(planted: &'static str) {
    let found =
        (0..FOUND_WITHIN).find_map(|seed| Some((seed, quietly(seed, Some(planted)).err()?)));
    let (seed, why) = found.unwrap_or_else(|| panic!("[{planted}]: {FOUND_WITHIN} seeds pass"));
    eprintln!("[{planted}] after {} runs: {why}", seed + 1);
}

#[test]
fn a_log_that_is_not_synced_is_found() {
    is_found(dcp::planted::LOG_NOT_SYNCED);
}

#[test]
fn a_version_that_is_lost_in_a_takeover_is_found() {
    is_found(dcp::planted::PENDING_VERSION_LOST);
}

#[test]
fn documents_that_outlive_a_rollback_are_found() {
    is_found(dcp::planted::ROLLED_BACK_DOCUMENTS_STAY);
}
