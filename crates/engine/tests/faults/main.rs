//! Short runs in virtual time with faults at random: nodes killed, stopped and paused, the link cut, disks full, clocks
//! moved, following paused and ended. At the end everything that was acknowledged is on every copy of leader and
//! follower, once, in its last version. A binary of its own: the runs take every core, and panics within them are
//! results.
//!
//! A seed says everything. One that fails is printed with what is left of it when it is made smaller, and with the
//! command that runs it again:
//!
//! ```text
//! NARROWS_FAULT_CASE=17/1.4/32 cargo test --release -p engine --test faults nothing_is_lost -- --nocapture
//! NARROWS_NIGHT=100@5000000 cargo test --release -p engine --test faults nothing_is_lost -- --nocapture
//! ```

mod at_rest;
mod client;
mod moving;
mod pairs;
mod restarting;
mod run;
mod scenario;
mod shrink;
mod site;

use std::collections::BTreeSet;
use std::fmt;

use pairs::Kind;
use run::{Summary, run};
use scenario::{Case, Scenario, Shape};
use testbed::faults::{self, Ran, again, caught};

/// Runs in an ordinary test.
const RUNS: u64 = 264;

fn quietly(
    scenario: &Scenario,
    planted: impl IntoIterator<Item = &'static str> + 'static,
) -> Result<Summary, String> {
    caught(|| run(scenario, planted))
}

/// What runs came to.
struct Total {
    runs: u64,
    /// Of those that passed.
    sum: Summary,
    /// Pairs of kinds of faults that overlapped in one that passed.
    pairs: BTreeSet<(Kind, Kind)>,
    /// In order.
    failed: Vec<(u64, String)>,
}

impl fmt::Display for Total {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Total { runs, sum, .. } = self;
        write!(
            f,
            "{runs} runs, {:.0} s of virtual time each; {} writes acknowledged, {} rejected, {} without an answer; \
             {} searches; equal after {} ms at most",
            sum.ms as f64 / 1e3 / (*runs).max(1) as f64,
            sum.acknowledged,
            sum.rejected,
            sum.unknown,
            sum.searched,
            sum.mended_ms,
        )
    }
}

/// What a run that passed came to, and the pairs of kinds of faults that overlapped in it.
type Passed = (Summary, BTreeSet<(Kind, Kind)>);

fn search(seeds: std::ops::Range<u64>, planted: Option<&'static str>, enough: usize) -> Total {
    search_cases(seeds, Case::in_turn, planted, enough)
}

fn add((sum, all_pairs): &mut Passed, (one, pairs): Passed) {
    all_pairs.extend(pairs);
    sum.acknowledged += one.acknowledged;
    sum.rejected += one.rejected;
    sum.unknown += one.unknown;
    sum.ms += one.ms;
    sum.unfollowed += one.unfollowed;
    sum.acknowledged_unfollowed += one.acknowledged_unfollowed;
    sum.searched += one.searched;
    sum.moved_primaries += one.moved_primaries;
    sum.moved_replicas += one.moved_replicas;
    sum.mended_ms = sum.mended_ms.max(one.mended_ms);
}

/// Runs seeds on every core until `enough` fail.
fn search_cases(
    seeds: std::ops::Range<u64>,
    case: impl Fn(u64) -> Case + Sync,
    planted: Option<&'static str>,
    enough: usize,
) -> Total {
    let run = |seed| -> Result<Passed, String> {
        let scenario = Scenario::of(&case(seed));
        Ok((quietly(&scenario, planted)?, scenario.overlapping()))
    };
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let Ran { runs, sum: (sum, pairs), failed } = faults::search(seeds, threads, enough, run, add);
    Total { runs, sum, pairs, failed }
}

/// Fails with what failed, if anything did: the first one made smaller, and the command that runs it again.
#[track_caller]
fn fail(failed: &[(u64, String)], case: impl Fn(u64) -> Case) {
    for (seed, why) in failed {
        let line: String = why.split_whitespace().collect::<Vec<_>>().join(" ");
        eprintln!("{}: {}", case(*seed), line.chars().take(400).collect::<String>());
    }
    let Some((seed, why)) = failed.first() else { return };
    let (case, small) = shrink::shrink(&case(*seed), |s| quietly(s, None).err());
    panic!(
        "seed {seed}, the first of {} that failed: {why}\nMade smaller: {small}\n{}\n{}",
        failed.len(),
        Scenario::of(&case),
        again(&case, "-p engine --test faults nothing_is_lost"),
    );
}

#[test]
fn nothing_is_lost() {
    if let Some(case) = faults::case() {
        return replay(&case);
    }
    let seeds = testbed::night::seeds("faults of two clusters", RUNS);
    let began = std::time::Instant::now();
    let total = search(seeds, None, 8);
    let seconds = began.elapsed().as_secs_f64();
    eprintln!("{total}; it took {seconds:.1} s");
    let Total { runs: ran, sum, pairs, failed } = total;
    eprintln!(
        "{} unfollowed, and {} writes to these acknowledged; {} of {} pairs of kinds of faults overlapped",
        sum.unfollowed,
        sum.acknowledged_unfollowed,
        pairs.len(),
        Kind::pairs().len(),
    );
    fail(&failed, Case::in_turn);
    assert!(sum.acknowledged > 20 * ran, "hardly anything was written");
    assert!(sum.searched > 0 || ran < RUNS, "no search was held against the ledger");
    let is_written = sum.acknowledged_unfollowed > 0 || ran < RUNS;
    assert!(is_written, "nothing was written to a follower that follows no more");
    let missing: Vec<_> = Kind::pairs().into_iter().filter(|pair| !pairs.contains(pair)).collect();
    assert!(missing.is_empty() || ran < RUNS, "never at once: {missing:?}");
}

/// Runs with damage at rest in an ordinary test.
const RUNS_AT_REST: u64 = 60;

#[test]
fn damage_at_rest_is_repaired_or_refused_by_name() {
    let seeds = testbed::night::seeds("damage at rest", RUNS_AT_REST);
    let case = |seed| Case { shape: Shape::AtRest, ..Case::from(seed) };
    let (mut damaged, mut refused, ran) = (0, 0, seeds.end - seeds.start);
    for seed in seeds {
        match quietly(&Scenario::of(&case(seed)), None) {
            Ok(summary) => {
                damaged += summary.damaged;
                refused += summary.refused;
            }
            Err(why) => fail(&[(seed, why)], case),
        }
    }
    eprintln!("{ran} runs: {damaged} files damaged; {refused} runs refused a shard by name");
    assert!(2 * damaged > ran, "hardly any file was damaged");
}

/// Runs in which copies are moved, in an ordinary test.
const RUNS_MOVING: u64 = 120;

fn moving(seed: u64) -> Case {
    Case { shape: Shape::Moving, ..Case::from(seed) }
}

#[test]
fn nothing_is_lost_where_copies_move() {
    let seeds = testbed::night::seeds("faults while copies move", RUNS_MOVING);
    let total = search_cases(seeds, moving, None, 4);
    let Total { runs: ran, sum, failed, .. } = &total;
    let (primaries, replicas) = (sum.moved_primaries, sum.moved_replicas);
    eprintln!("{total}; {primaries} moves of primaries and {replicas} of replicas begun");
    fail(failed, moving);
    // Most runs have no replicas that could move.
    let moved = primaries > *ran && replicas > *ran / 5;
    assert!(moved, "hardly anything was moved");
}

/// Bugs of moves are found soon by runs with moves.
#[test]
fn every_planted_bug_of_moves_is_found() {
    let most = if testbed::night::times("planted bugs of moves", 1) > 1 { 1000 } else { 200 };
    for planted in engine::planted::OF_MOVES {
        let found = search_cases(PLANTED_FIRST..PLANTED_FIRST + most, moving, Some(planted), 1);
        eprintln!("{planted}: {} runs", found.runs);
        assert!(!found.failed.is_empty(), "{planted} is not found within {most} runs");
    }
}

/// Runs in which a node is cut off as it starts again with all others, in an ordinary test.
const RUNS_RESTARTING: u64 = 60;

fn restarting(seed: u64) -> Case {
    Case { shape: Shape::Restarting, ..Case::from(seed) }
}

#[test]
fn nothing_is_lost_where_a_node_is_cut_off_as_it_restarts() {
    let seeds = testbed::night::seeds("nodes that are cut off as they restart", RUNS_RESTARTING);
    let total = search_cases(seeds, restarting, None, 4);
    eprintln!("{total}");
    fail(&total.failed, restarting);
    assert!(total.sum.acknowledged > 20 * total.runs, "hardly anything was written");
}

/// A copy that has what its primary had alone before the restart is taken for one of the next primary's.
#[test]
fn runs_with_restarts_find_a_copy_of_an_earlier_term() {
    let (most, planted) = (400, engine::planted::OWN_COPY_TRUSTED);
    let found = search_cases(PLANTED_FIRST..PLANTED_FIRST + most, restarting, Some(planted), 1);
    eprintln!("{planted}: {} runs", found.runs);
    assert!(!found.failed.is_empty(), "{planted} is not found within {most} runs");
}

/// Runs a case again.
fn replay(case: &Case) {
    let scenario = Scenario::of(case);
    eprintln!("{case}: {scenario}");
    match quietly(&scenario, None) {
        Ok(summary) => eprintln!("{summary:?}"),
        Err(why) => panic!("{case}: {why}"),
    }
}

/// Cases that failed once, and why.
#[rustfmt::skip]
const FAILED_ONCE: [(&str, &str); 31] = [
    ("5/none/2", "stats kept the checkpoint of the last write where writes do not wait for the disk"),
    ("18/0/8", "a write was done again and again while the manager was away"),
    ("658/0.1/4", "a primary that could not be opened was placed on the same node again, and not opened"),
    ("1067", "a write that was done was answered with 409"),
    ("14804", "a leader's node that was starting said that there is no such index"),
    ("16707", "a full disk left gaps for good where following ended"),
    ("21938/0.3/8", "a write whose connection broke was sent again, and refused for what it had done itself"),
    ("28289/0.2.3.4/16", "copies stayed different where a primary was lost before following ended"),
    ("29408", "a commit of the virtual world did not keep the log behind it"),
    ("7026117/0/16",
        "a write stopped half way on the primary when the node that had sent it was killed: replicas never got it"),
    ("7035738/3/16", "a write stopped half way before the primary's log was synced, and nobody synced it afterwards"),
    ("5000680", "the checker did not wait for as many round trips as the parameters make of the operations"),
    ("40620", "nobody asked a copy for what it has after a write that it had not answered"),
    ("5048875/2.3/16", "a follower that recovered from remote was sent operations above the global checkpoint"),
    ("7059376/0.2.3.5.9/8",
        "a leader's node counted its sessions from 1 again after a restart, and a recovery read another's files"),
    ("41002622/1.2.3.5/16",
        "a replica kept operations that its reopened primary had lost, where following ended before they were read \
         again"),
    ("pair:1091535391/0/2",
        "the global checkpoint rose beyond a copy that the manager counted as in sync, and its primary did not yet"),
    ("pair:1091037211/0.1/4", "the same, once new indices waited until every node knew of them"),
    ("pair:1400014502",
        "nodes that missed a state while the manager was cut off, and answered soon after, were never told of it"),
    ("1500003784", "a lease was renewed beyond what a read asked for that waited for its leader"),
    ("1500006112/all/32", "the same, where a follower had come back with less than it had read"),
    ("pair:1500015187/all/1",
        "the manager heard that a copy was not open once it was, had it opened again, and was not told that it is"),
    ("pair:1500018551", "the same, on a leader without replicas"),
    ("pair:1600011438", "the same, where a node had joined twice"),
    ("moving:581398022/1.5.9/256",
        "a follower that began while its leader's primary moved had a lease on what the new primary did not have"),
    ("moving:97000152/1.6.9/2",
        "a replica that became the primary of a follower read from where its leader keeps nothing any more: it had \
         not heard of the last global checkpoint"),
    ("at-rest:43000791/0.2/4", "a replica was explained in place of its primary, whose copy was gone"),
    ("wide:4095022529/1/1",
        "a follower behind one that was made anew had not begun: the operator of these runs did not see that"),
    ("moving:1842001153/0.1.3.4.5.7.8.10/32",
        "a follower's primary was handed over without a word of from where the next one would read"),
    ("pair:1844414295/all/4",
        "a write of a primary that had been cut off was acknowledged by the state that took its place: no copy of \
         that state was missing"),
    ("restarting:1222067147/all/4",
        "following ended for good as a primary of the leader that had been cut off answered, when it was asked for a \
         lease, that its term was over"),
];

#[test]
fn what_failed_once_passes() {
    for (case, why) in FAILED_ONCE {
        let scenario = Scenario::of(&case.parse().unwrap());
        if let Err(found) = quietly(&scenario, None) {
            panic!("{case} ({why}): {found}");
        }
    }
}

/// Bugs that seeds seldom find are found by the cases that once did.
#[test]
fn a_planted_bug_fails_the_case_that_found_it() {
    for (planted, case) in [
        // What the other copies know would keep a copy that was left behind from being the primary.
        (
            [engine::planted::FAILED_COPY_UNTRACKED, engine::planted::EXTENTS_UNSAID].as_slice(),
            "pair:3001341",
        ),
        (&[engine::planted::MISSING_COPIES_OF_LATER], "pair:1844414295/all/4"),
        (&[engine::planted::STATE_MISSED], "pair:1400014502"),
        (&[engine::planted::LEASE_LEAVES_READS], "1500003784"),
        (&[engine::planted::STARTED_ONCE], "pair:1500018551"),
    ] {
        let scenario = Scenario::of(&case.parse().unwrap());
        assert!(quietly(&scenario, planted.iter().copied()).is_err(), "{planted:?}");
    }
}

/// One operation a read and one read at a time are a round trip an operation; what a read may bring is bounded by its
/// operations and by its bytes.
#[test]
fn the_checkers_patience_follows_from_the_parameters() {
    let mut scenario = Scenario::of(&Case::from(5_000_680));
    let seconds = |scenario: &Scenario| scenario.reading_takes(10_000).as_secs();
    assert_eq!(seconds(&scenario), 1280, "128 ms for each");
    scenario.parameters["max_read_request_operation_count"] = 50.into();
    assert_eq!(seconds(&scenario), 1280, "200 bytes a read");
    scenario.parameters["max_read_request_size"] = "6000b".into();
    assert_eq!(seconds(&scenario), 128, "ten a read");
    scenario.parameters["max_outstanding_read_requests"] = 4.into();
    assert_eq!(seconds(&scenario), 32, "four reads at a time");
    scenario.parameters = serde_json::json!({});
    scenario.rate_bytes_per_s = 20_000;
    assert_eq!(seconds(&scenario), 300, "the link alone");
}

#[test]
fn a_case_is_read_as_it_is_written() {
    for text in [
        "17", "17/1.4/32", "17/none/all", "17/all/8", "wide:17", "wide:17/1/8", "pair:17/0/all",
        "moving:3/all/4", "restarting:3/1/all",
    ] {
        assert_eq!(text.parse::<Case>().unwrap().to_string(), text);
    }
    assert!("17/x".parse::<Case>().is_err());
}

/// The same case gives the same run.
#[test]
fn a_seed_says_everything() {
    for seed in 0..6 {
        let scenario = Scenario::of(&Case::in_turn(seed));
        assert_eq!(quietly(&scenario, None), quietly(&scenario, None), "seed {seed}");
    }
}

/// Each planted bug is found within so many seeds of a night's run, and those that show soon within fewer of an
/// ordinary one.
const FOUND_WITHIN: u64 = 2000;
const FOUND_SOON: u64 = 100;
/// A range of its own: seeds that were run while a bug was sought prove nothing of the next.
const PLANTED_FIRST: u64 = 900_000_000;
/// Bugs that take longer: a night's run looks for them, too.
const FOUND_LATE: &[&str] = &[
    engine::planted::MISSING_COPY_STAYS_IN_SYNC,
    engine::planted::WRITE_STOPS_HALF_WAY,
    engine::planted::REFUSED_WHAT_MAY_BE_DONE,
    engine::planted::CONFLICT_WITH_ITSELF,
    engine::planted::PROMOTION_LEAVES_COPIES,
    engine::planted::CHECKPOINT_OF_ONE_COPY,
    engine::planted::OWN_COPY_TRUSTED,
    engine::planted::REMOTE_BEYOND_CHECKPOINT,
    engine::planted::CHANGES_BEYOND_CHECKPOINT,
    engine::planted::UNFOLLOW_LEAVES_GAPS,
    engine::planted::LEASES_FORGOTTEN,
    engine::planted::FAILED_SHARD_UNSAID,
    store::planted::COMMIT_CLAIMS_HOLES,
];
/// Bugs that are found later than that, if at all, as another safeguard mends what they do or it takes more than two
/// faults at one moment. A night's run seeks them all the same. A history of its own shows each: a case
/// ([`a_planted_bug_fails_the_case_that_found_it`]), or a test of `tests/it`. `docs/benchmarks/faults.md` says which.
const NOT_FOUND: &[&str] = &[
    engine::planted::STALE_COPY_FORGOTTEN,
    engine::planted::MISSING_COPIES_OF_LATER,
    engine::planted::EXTENTS_UNSAID,
    engine::planted::FAILED_COPY_UNTRACKED,
    engine::planted::STATE_MISSED,
    engine::planted::LEASE_LEAVES_READS,
    engine::planted::STARTED_ONCE,
    engine::planted::GAPS_STAY,
    engine::planted::JOINING_COPY_NOT_COUNTED,
    engine::planted::SESSIONS_BEGIN_AGAIN,
    engine::planted::SEARCHED_BEFORE_STARTED,
    engine::planted::WRITTEN_BEFORE_THE_END,
    engine::planted::CHECKPOINT_NOT_CONFIRMED,
    engine::planted::TERM_LEFT_TO_ANOTHER,
    engine::planted::LEADER_BOUND_BY_CHECKPOINT,
    engine::planted::ACKNOWLEDGED_WITHOUT_SHARD,
    engine::planted::LATE_TRY_UNTRACKS,
    engine::planted::DURABILITY_UNHEARD,
    engine::planted::OLD_LEASES_TAKEN,
    engine::planted::HANDED_OVER_AND_COUNTING,
    store::planted::APPLIED_COUNTS_AS_DURABLE,
];

#[test]
fn every_planted_bug_is_found() {
    let is_night = testbed::night::times("planted bugs", 1) > 1;
    let most = if is_night { FOUND_WITHIN } else { FOUND_SOON };
    let mut missed = Vec::new();
    for planted in engine::planted::ALL.iter().chain(store::planted::ALL) {
        let has_history = NOT_FOUND.contains(planted);
        if !is_night && (has_history || FOUND_LATE.contains(planted)) {
            continue;
        }
        let Total { runs: ran, failed, .. } =
            search(PLANTED_FIRST..PLANTED_FIRST + most, Some(planted), 1);
        match failed.first() {
            Some((seed, why)) => {
                let why: String = why.split_whitespace().collect::<Vec<_>>().join(" ");
                let why: String = why.chars().take(100).collect();
                eprintln!("| {planted} | {ran} | `{}` | {why} |", Case::in_turn(*seed));
            }
            None if has_history => eprintln!("| {planted} | not within {most} | | |"),
            None => missed.push(*planted),
        }
    }
    assert!(missed.is_empty(), "not found within {most} seeds: {missed:?}");
}
