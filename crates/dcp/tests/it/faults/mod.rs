//! Short runs in virtual time with faults at random: servers killed, links cut, managers that give up, failovers to
//! replicas that are behind, while clients write, replicas follow and vbuckets move; some disks are slow. At the end
//! nothing is lost or reordered, and both servers hold the same.
//!
//! A seed says everything. One that fails is printed with the command that runs it again:
//!
//! ```text
//! NARROWS_FAULT_CASE=17 cargo test --release -p dcp --test it faults::nothing_is_lost -- --nocapture
//! ```

mod clients;
mod episode;
mod ledger;
mod run;

use std::ops::Range;

use run::{Summary, run};
use testbed::faults::{self, Ran, again, caught};

/// Runs in an ordinary test.
const RUNS: u64 = 8;
/// Each planted bug is found within so many seeds.
const FOUND_WITHIN: u64 = 200;

/// One run; panics within it are its failure.
fn quietly(seed: u64, planted: Option<&'static str>) -> Result<Summary, String> {
    caught(|| run(seed, planted))
}

/// Runs seeds until `enough` fail; one after another, as other tests of this binary are beside them.
fn search(seeds: Range<u64>, planted: Option<&'static str>, enough: usize) -> Ran<Summary> {
    faults::search(seeds, 1, enough, |seed| quietly(seed, planted), Summary::add)
}

#[test]
fn nothing_is_lost() {
    if let Some(seed) = faults::case() {
        return eprintln!("{:?}", quietly(seed, None).unwrap());
    }
    let seeds = testbed::night::seeds("faults of DCP servers", RUNS);
    let Ran { runs, sum, failed } = search(seeds, None, usize::MAX);
    eprintln!("{runs} runs: {sum:?}");
    if let Some((seed, _)) = failed.first() {
        panic!("{failed:#?}\n{}", again(seed, "-p dcp --test it faults::nothing_is_lost"));
    }
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
    let Ran { runs, failed, .. } = search(0..FOUND_WITHIN, Some(planted), 1);
    let Some((_, why)) = failed.first() else { panic!("[{planted}]: {runs} seeds pass") };
    eprintln!("[{planted}] after {runs} runs: {why}");
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
