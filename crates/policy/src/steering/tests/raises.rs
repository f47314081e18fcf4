//! Which setting is raised, by how much and how far.

use std::collections::BTreeMap;
use std::time::Duration;

use record::observation::{Scope, Setting};

use super::sim::{CHUNKS, LIMIT, MB, SLOTS, Sim, steering, tried, within};
use crate::steering::bounds::amount;
use crate::steering::{Decision, Holds, Role, Verdict};

#[test]
fn a_limit_is_raised_step_by_step_up_to_the_knee_and_no_further() {
    let (mut sim, mut steering) = (Sim::new("10mb", "2"), steering());
    sim.knee = 35.0 * MB;
    let did = sim.steer(&mut steering, 120);
    // At 40 the disk holds, and a trial of 80 shows it.
    assert_eq!((tried(&did, LIMIT), sim.value(LIMIT)), (vec!["20mb", "40mb", "80mb"], "40mb"));
    let [.., Decision::Keep(last), Decision::Set(_), Decision::TakeBack(next, _)] = &did[..] else {
        panic!("{did:#?}")
    };
    assert!((1.7..1.8).contains(&last.got().unwrap()), "{last:?}");
    assert_eq!((next.says.as_str(), next.proposal.expected), ("it brings nothing", None));
    assert!(sim.waits(&mut steering).starts_with("disk holds, "));
}

#[test]
fn a_limit_whose_raise_brought_much_is_raised_on_whatever_is_named_meanwhile() {
    let elsewhere = || Some(vec![Verdict { holds: Holds::Elsewhere, ..Verdict::unseen() }]);
    let (mut sim, mut steering) = (Sim::new("10mb", "2"), steering());
    sim.says = elsewhere();
    assert_eq!(sim.steer(&mut steering, 30), [], "nothing brought anything yet");
    sim.says = None;
    sim.steer(&mut steering, 3);
    sim.says = elsewhere();
    sim.steer(&mut steering, 40);
    assert_eq!(tried(&sim.did, LIMIT), ["20mb", "40mb", "80mb"], "{:#?}", sim.did);
    assert_eq!(sim.value(LIMIT), "80mb");
}

#[test]
fn what_brings_nothing_is_taken_back_and_not_tried_again() {
    let (mut sim, mut steering) = (Sim::new("10mb", "2"), steering());
    // The verdict blames chunks, and they are not it.
    sim.per_chunk = 5.0 * MB;
    sim.knee = 10.0 * MB;
    let did = sim.steer(&mut steering, 200);
    assert!(matches!(&did[0], Decision::Set(one) if one.setting == LIMIT), "{did:#?}");
    assert!(matches!(&did[1], Decision::TakeBack(one, back) if one.says.contains("nothing")
        && back.is_as_found && back.to == "10mb"));
    assert_eq!((did.len(), sim.value(LIMIT)), (2, "10mb"), "{did:#?}");
    assert!(sim.waits(&mut steering).contains("brings nothing"));
}

#[test]
fn never_above_what_the_user_says() {
    let (mut sim, mut steering) = (Sim::new("10mb", "2"), within(LIMIT, "25mb"));
    let did = sim.steer(&mut steering, 300);
    assert_eq!(sim.value(LIMIT), "25mb", "{did:#?}");
    let values = did.iter().filter_map(|one| match one {
        Decision::Set(one) => amount(Role::Rate, &one.to),
        _ => None,
    });
    assert!(values.max() <= Some(25 << 20));
    assert!(sim.waits(&mut steering).contains("as far as --max lets it rise"));
    // A bound below what was found lowers nothing.
    let (mut sim, mut steering) = (Sim::new("40mb", "2"), within(LIMIT, "20mb"));
    assert_eq!(sim.steer(&mut steering, 60), []);
    assert!(sim.waits(&mut steering).contains("= 40mb is above 20mb already, as far as --max"));
}

#[test]
fn one_limit_after_the_other_is_lifted() {
    let (mut sim, mut steering) = (Sim::new("10mb", "2"), steering());
    sim.per_chunk = 12.0 * MB;
    sim.steer(&mut steering, 300);
    assert_eq!((sim.value(LIMIT), sim.value(CHUNKS)), ("80mb", "8"));
    assert!(sim.rate() >= 79.0 * MB);
}

#[test]
fn what_is_in_force_is_told_with_what_was_found() {
    let (mut sim, mut steering) = (Sim::new("10mb", "2"), within(LIMIT, "40mb"));
    sim.steer(&mut steering, 100);
    assert_eq!(steering.in_force(), BTreeMap::from([(LIMIT, ("10mb", "40mb"))]));
}

#[test]
fn steps_are_larger_where_much_is_promised_and_cores_have_room_beside_users() {
    for (cpu, to) in [(Some(0.2), "40mb"), (Some(0.3), "20mb"), (None, "20mb")] {
        let (mut sim, mut steering) = (Sim::new("10mb", "2"), steering());
        sim.search_ms = Some(Box::new(|_| 10.0));
        (sim.cpu, sim.gain) = (cpu, Some(8.0));
        let did = sim.steer(&mut steering, 8);
        assert_eq!(tried(&did, LIMIT), [to], "{cpu:?}");
    }
}

#[test]
fn a_limit_is_raised_far_where_what_is_in_flight_holds_next_anyway() {
    let next = [(Holds::InFlight, "40mb"), (Holds::Neighbour, "20mb"), (Holds::Elsewhere, "20mb")];
    for (then, to) in next.map(|(then, to)| (Some(then), to)) {
        let (mut sim, mut steering) = (Sim::new("10mb", "2"), steering());
        (sim.gain, sim.then) = (Some(1.5), then);
        let did = sim.steer(&mut steering, 8);
        assert_eq!(tried(&did, LIMIT), [to], "{then:?}");
    }
}

/// Neither brings much alone.
#[test]
fn of_two_limits_at_nearly_the_same_rate_both_are_lifted() {
    let (mut sim, mut steering) = (Sim::new("20mb", "2"), steering());
    sim.per_chunk = 9.8 * MB;
    (sim.gain, sim.then) = (Some(1.02), Some(Holds::Rate));
    sim.steer(&mut steering, 100);
    assert_eq!((sim.value(CHUNKS), sim.value(LIMIT)), ("8", "80mb"), "{:#?}", sim.did);
}

/// The little that is promised is enough, as more in flight may bring more then; but a step has to bring it.
#[test]
fn where_a_neighbour_holds_next_a_small_step_is_kept_if_it_brings_what_little_is_promised() {
    for (brings, is_kept) in [(1.02, true), (1.0, false)] {
        let (mut sim, mut steering) = (Sim::new("20mb", "2"), steering());
        sim.knee = 20.0 * MB * brings;
        (sim.gain, sim.then) = (Some(1.02), Some(Holds::Neighbour));
        let did = sim.steer(&mut steering, 40);
        let ends = match &did[..] {
            [Decision::Set(_), Decision::Keep(_)] => true,
            [Decision::Set(_), Decision::TakeBack(..)] => false,
            other => panic!("{other:#?}"),
        };
        assert_eq!((tried(&did, LIMIT), ends), (vec!["40mb"], is_kept), "{brings}: {did:#?}");
        assert_eq!(sim.value(LIMIT), if is_kept { "40mb" } else { "20mb" });
    }
}

#[test]
fn what_is_in_flight_is_tried_where_a_path_or_a_neighbour_holds_unless_it_stands_in_line_there() {
    let path = |passes_in_ms, values| (Holds::Path, passes_in_ms, values);
    let neighbour = |passes_in_ms, values| (Holds::Neighbour, passes_in_ms, values);
    for (holds, passes_in_ms, values) in [
        path(100, vec!["4", "8"]),
        path(600, vec![]),
        // Nobody who is seen is hurt by a large step.
        neighbour(100, vec!["8"]),
        neighbour(600, vec![]),
    ] {
        let (mut sim, mut steering) = (Sim::new("500mb", "2"), steering());
        (sim.per_chunk, sim.passes_in) = (5.0 * MB, Duration::from_millis(passes_in_ms));
        sim.says = Some(vec![Verdict { holds, ..Verdict::unseen() }]);
        let did = sim.steer(&mut steering, 60);
        assert_eq!(tried(&did, CHUNKS), values, "{holds:?}, {passes_in_ms} ms");
        assert!(tried(&did, LIMIT).is_empty(), "{did:#?}");
    }
}

#[test]
fn where_nothing_visible_holds_what_is_in_flight_is_tried() {
    let (mut sim, mut steering) = (Sim::new("500mb", "2"), steering());
    (sim.per_chunk, sim.says) = (5.0 * MB, Some(Vec::new()));
    let did = sim.steer(&mut steering, 60);
    assert_eq!((sim.value(CHUNKS), sim.value(LIMIT)), ("8", "500mb"), "{did:#?}");
    let tells = |one: &Decision| matches!(one, Decision::Set(one) if one.expected.is_some());
    assert!(!did.iter().any(tells), "nobody promised anything: {did:#?}");
    assert!(sim.waits(&mut steering).contains("nothing visible holds"));
}

#[test]
fn where_a_large_step_brings_less_a_small_one_is_tried() {
    let (mut sim, mut steering) = (Sim::new("500mb", "2"), steering());
    (sim.per_chunk, sim.says) = (5.0 * MB, Some(Vec::new()));
    for _ in 0..100 {
        sim.knee = if sim.value(CHUNKS) == "8" { 8.0 * MB } else { 1e9 };
        sim.steer(&mut steering, 1);
    }
    assert_eq!((tried(&sim.did, CHUNKS), sim.value(CHUNKS)), (vec!["8", "4", "8"], "4"));
}

#[test]
fn once_slots_are_at_their_most_what_each_recovery_has_in_flight_is_raised() {
    let (mut sim, mut steering) = (Sim::new("500mb", "2"), steering());
    let setting = Setting { value: "1".to_owned(), scope: Scope::Persistent };
    sim.settings.insert(SLOTS, (Role::Slots, setting));
    sim.per_chunk = MB;
    let (setting, gain) = (Some(SLOTS.to_owned()), Some(2.0));
    sim.says = Some(vec![Verdict { holds: Holds::Slots, setting, gain, ..Verdict::unseen() }]);
    let did = sim.steer(&mut steering, 60);
    assert_eq!((tried(&did, SLOTS), tried(&did, CHUNKS)), (vec!["2", "4"], vec!["8"]), "{did:#?}");
}

#[test]
fn slots_are_raised_far_where_enough_copies_wait_to_fill_them_and_no_ceiling_is_near() {
    let (far, near) = (vec!["8"], vec!["4", "8"]);
    let cases = [
        (100, 1, 2.0, &far),
        (7, 1, 2.0, &near),
        (100, 12, 2.0, &far),
        // Slots are of each node: 100 copies fill 8 of no more than 12 nodes.
        (100, 13, 2.0, &near),
        (100, 1, 1.5, &near),
    ];
    for (waiting, targets, gain, values) in cases {
        let (mut sim, mut steering) = (Sim::new("500mb", "2"), steering());
        let found = Setting { value: "2".to_owned(), scope: Scope::Default };
        sim.settings.insert(SLOTS, (Role::Slots, found));
        (sim.per_chunk, sim.waiting, sim.targets) = (MB, waiting, targets);
        let (setting, gain) = (Some(SLOTS.to_owned()), Some(gain));
        sim.says = Some(vec![Verdict { holds: Holds::Slots, setting, gain, ..Verdict::unseen() }]);
        let did = sim.steer(&mut steering, 60);
        assert_eq!(&tried(&did, SLOTS), values, "{waiting} for {targets}, {gain:?}: {did:#?}");
        let Decision::Set(first) = &did[0] else { panic!("{did:#?}") };
        let expected = if values.len() == 1 { Some(4.0) } else { gain };
        assert_eq!(first.expected, expected, "{first:?}");
    }
}
