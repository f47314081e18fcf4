//! How long a trial is measured, what it tells, and when it is made again.

use std::time::Duration;

use super::sim::{CHUNKS, LIMIT, MB, Sim, steering, tried};
use crate::steering::{Decision, Holds, Steering, Verdict};

#[test]
fn what_is_on_trial_is_told() {
    let (mut sim, mut steering) = (Sim::new("10mb", "2"), steering());
    assert_eq!(steering.on_trial(), None);
    let did = sim.steer(&mut steering, 8);
    let Some(Decision::Set(proposal)) = did.last() else { panic!("{did:#?}") };
    let back = steering.on_trial().unwrap();
    assert_eq!((&back.from, &back.to, back.is_as_found), (&proposal.to, &proposal.from, true));
}

#[test]
fn what_only_later_recoveries_obey_is_set_where_others_begin_and_measured_once_they_have() {
    let (mut sim, mut steering) = (Sim::new("500mb", "2"), steering());
    sim.per_chunk = 5.0 * MB;
    sim.later_only = true;
    // One recovery without an end would never obey.
    assert_eq!(sim.steer(&mut steering, 60), []);
    assert!(sim.waits(&mut steering).contains("none was seen to begin"));
    sim.takes = Some(Duration::from_secs(25));
    let did = sim.steer(&mut steering, 300);
    assert_eq!(sim.value(CHUNKS), "8", "{did:#?}");
    let kept = did.iter().filter_map(|one| match one {
        Decision::Keep(outcome) => outcome.got(),
        _ => None,
    });
    assert!(kept.clone().count() == 2 && kept.clone().all(|got| (1.9..2.1).contains(&got)));
}

/// Nobody obeys what is on trial, and nobody will.
#[test]
fn what_only_later_recoveries_obey_is_taken_back_once_nothing_recovers_and_none_waits() {
    for (waiting, is_taken_back) in [(0, true), (3, false)] {
        let (mut sim, mut steering) = (Sim::new("500mb", "2"), steering());
        (sim.per_chunk, sim.later_only) = (5.0 * MB, true);
        sim.takes = Some(Duration::from_secs(25));
        assert!(matches!(&sim.steer(&mut steering, 30)[..], [Decision::Set(_)]), "{:#?}", sim.did);
        (sim.active, sim.waiting) = (0, waiting);
        assert_eq!(sim.steer(&mut steering, 60), [], "the next one may begin in a moment");
        let did = sim.steer(&mut steering, 10);
        let says = |one: &Decision| matches!(one, Decision::TakeBack(one, _) if one.says.contains("began"));
        assert_eq!(
            (did.len(), did.iter().all(says)),
            (usize::from(is_taken_back), true),
            "{did:#?}"
        );
    }
}

#[test]
fn nothing_is_begun_while_nothing_recovers() {
    let (mut sim, mut steering) = (Sim::new("10mb", "2"), steering());
    sim.active = 0;
    assert_eq!(sim.steer(&mut steering, 60), []);
    assert_eq!(sim.waits(&mut steering), "nothing recovers");
    // A recovery that ends in the middle of a trial does not tell.
    sim.active = 1;
    let did = sim.steer(&mut steering, 8);
    assert!(matches!(did.last(), Some(Decision::Set(_))), "{did:#?}");
    sim.active = 0;
    let did = sim.steer(&mut steering, 90);
    assert!(matches!(&did[..], [Decision::TakeBack(one, _)] if one.after_per_s.is_none()));
    assert_eq!(sim.value(LIMIT), "10mb");
    // Nor does it say that more brings nothing: the same is tried again, later.
    sim.active = 1;
    assert_eq!(sim.steer(&mut steering, 20), []);
    assert!(sim.waits(&mut steering).contains("did not tell"));
    let did = sim.steer(&mut steering, 400);
    let kept = did.iter().filter(|one| matches!(one, Decision::Keep(_))).count();
    assert!(kept > 0 && sim.value(LIMIT) != "10mb", "{did:#?}");
}

/// Nobody knows that the change does no harm where nothing is measured with it.
#[test]
fn a_trial_that_never_tells_is_made_ever_more_rarely() {
    let (mut sim, mut steering) = (Sim::new("10mb", "2"), steering());
    let mut trials = 0;
    for _ in 0..72 {
        sim.active = 1;
        trials += sim.steer(&mut steering, 8).len();
        sim.active = 0;
        sim.steer(&mut steering, 92);
        assert_eq!(sim.value(LIMIT), "10mb");
    }
    assert!((3..8).contains(&trials), "{trials} trials in two hours");
}

/// Steers until the limit has a value.
fn until(sim: &mut Sim, steering: &mut Steering, limit: &str) {
    for _ in 0..60 {
        if sim.value(LIMIT) == limit {
            return;
        }
        sim.steer(steering, 1);
    }
    panic!("the limit is not {limit}: {:#?}", sim.did);
}

#[test]
fn a_raise_in_a_bad_moment_is_tried_again_once_the_rate_without_it_is_worse() {
    let (mut sim, mut steering) = (Sim::new("10mb", "2"), steering());
    until(&mut sim, &mut steering, "20mb");
    // A disk that is slow for a while, and slower yet.
    sim.knee = 9.0 * MB;
    until(&mut sim, &mut steering, "10mb");
    sim.knee = 6.0 * MB;
    sim.steer(&mut steering, 10);
    sim.knee = 1e9;
    sim.steer(&mut steering, 30);
    assert_ne!(sim.value(LIMIT), "10mb", "{:#?}", sim.did);
}

#[test]
fn a_raise_in_a_bad_moment_that_is_over_is_not_tried_again_at_once() {
    let (mut sim, mut steering) = (Sim::new("10mb", "2"), steering());
    until(&mut sim, &mut steering, "20mb");
    sim.knee = 9.0 * MB;
    until(&mut sim, &mut steering, "10mb");
    sim.knee = 1e9;
    sim.steer(&mut steering, 60);
    assert_eq!(sim.value(LIMIT), "10mb", "{:#?}", sim.did);
}

#[test]
fn a_raise_that_noise_hides_is_tried_again_after_as_long_a_measurement_and_then_rarely() {
    let (mut sim, mut steering) = (Sim::new("10mb", "2"), steering());
    let mut at = Vec::new();
    for second in 0..800 {
        // Every other second next to nothing goes; otherwise as much with the raise as without it.
        sim.knee = match (second % 2, sim.value(LIMIT)) {
            (0, _) => 2.0 * MB,
            (_, "10mb") => 1e9,
            _ => 9.9 * MB,
        };
        let did = sim.steer(&mut steering, 1);
        at.extend(did.iter().filter(|one| matches!(one, Decision::Set(_))).map(|_| second));
        for one in &did {
            let Decision::TakeBack(outcome, _) = one else { continue };
            assert!(outcome.says.contains("varies too much to tell"), "{outcome:?}");
        }
    }
    assert_eq!(at.len(), 3, "{:#?}", sim.did);
    let pauses = [at[1] - at[0], at[2] - at[1]];
    assert!((40..60).contains(&pauses[0]) && pauses[1] >= 600, "{at:?}");
}

#[test]
fn a_rate_that_still_rises_is_not_what_a_raise_brings() {
    let (mut sim, mut steering) = (Sim::new("10mb", "2"), steering());
    until(&mut sim, &mut steering, "20mb");
    // Connections that lost segments are slower at first, and faster in the end.
    for second in 0..20u32 {
        sim.knee = (5.0 + f64::from(second)) * MB;
        sim.steer(&mut steering, 1);
    }
    assert!(matches!(sim.did[1], Decision::Keep(_)), "{:#?}", sim.did);
}

#[test]
fn what_noise_hides_of_a_small_step_a_large_one_shows() {
    let (mut sim, mut steering) = (Sim::new("500mb", "2"), steering());
    sim.says = Some(vec![Verdict { holds: Holds::Path, ..Verdict::unseen() }]);
    for second in 0..90 {
        sim.knee = match (sim.value(CHUNKS), second % 2) {
            ("8", _) => 20.0 * MB,
            (_, 0) => 2.0 * MB,
            ("2", _) => 10.0 * MB,
            _ => 10.9 * MB,
        };
        sim.steer(&mut steering, 1);
    }
    assert_eq!((tried(&sim.did, CHUNKS), sim.value(CHUNKS)), (vec!["4", "8"], "8"));
}

#[test]
fn a_rate_that_leaps_is_not_measured_for_long() {
    let (mut sim, mut steering) = (Sim::new("10mb", "2"), steering());
    let did = sim.steer(&mut steering, 16);
    assert_eq!(tried(&did, LIMIT), ["20mb", "40mb", "80mb"]);
}

#[test]
fn a_rate_that_rises_by_less_than_a_leap_is_measured_for_as_long_as_one_that_does_not() {
    let (mut sim, mut steering) = (Sim::new("10mb", "2"), steering());
    sim.knee = 13.0 * MB;
    let did = sim.steer(&mut steering, 11);
    assert!(matches!(&did[..], [Decision::Set(_)]), "{did:#?}");
    let did = sim.steer(&mut steering, 1);
    assert!(matches!(&did[..], [Decision::Keep(_)]), "{did:#?}");
}

#[test]
fn a_leap_of_what_is_expected_is_one_even_where_the_setting_was_raised_by_more() {
    let (mut sim, mut steering) = (Sim::new("10mb", "2"), steering());
    (sim.gain, sim.then) = (Some(1.5), Some(Holds::InFlight));
    sim.knee = 15.0 * MB;
    let did = sim.steer(&mut steering, 10);
    assert!(matches!(did.last(), Some(Decision::Keep(_))), "{did:#?}");
}
