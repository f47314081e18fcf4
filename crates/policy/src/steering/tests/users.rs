//! When users suffer, settings give way.

use std::time::Duration;

use world::Time;

use super::sim::{LIMIT, MB, Sim, steering};
use crate::steering::{Bounds, Decision, Marks, Steering};

#[test]
fn users_that_suffer_are_given_way_within_two_looks() {
    let (mut sim, mut steering) = (Sim::new("10mb", "2"), steering());
    // From 30 MB/s on searches wait.
    sim.search_ms = Some(Box::new(|rate| if rate > 30.0 * MB { 80.0 } else { 10.0 }));
    let mut bad_looks = 0;
    let mut worst = 0;
    for _ in 0..1200 {
        let is_bad = sim.rate() > 30.0 * MB;
        bad_looks = if is_bad { bad_looks + 1 } else { 0 };
        worst = worst.max(bad_looks);
        sim.steer(&mut steering, 1);
    }
    assert!(worst <= 2, "users suffered for {worst} looks");
    let gave_way = sim.did.iter().filter(|one| matches!(one, Decision::GiveWay(..))).count();
    assert!((1..=6).contains(&gave_way), "{:#?}", sim.did);
    assert!(sim.rate() >= 20.0 * MB, "what did not hurt is kept: {}", sim.value(LIMIT));
}

/// As of hundreds of nodes, of which one refuses something at any time.
#[test]
fn a_cluster_that_refuses_requests_anyway_is_steered_and_given_way_where_it_refuses_more() {
    let (mut sim, mut steering) = (Sim::new("10mb", "2"), steering());
    sim.refused = |rate| if rate > 30.0 * MB { 20 } else { 3 };
    let (mut bad_looks, mut worst) = (0, 0);
    for _ in 0..600 {
        bad_looks = if sim.rate() > 30.0 * MB { bad_looks + 1 } else { 0 };
        worst = worst.max(bad_looks);
        sim.steer(&mut steering, 1);
    }
    let baseline = steering.baseline().unwrap();
    assert!(baseline.starts_with("3.00 requests a second are refused"), "{baseline}");
    assert!(sim.did.iter().any(|one| matches!(one, Decision::GiveWay(..))), "{:#?}", sim.did);
    assert!(worst <= 2, "users suffered for {worst} looks");
    assert!(sim.rate() >= 20.0 * MB, "what did not hurt is kept: {}", sim.value(LIMIT));
}

#[test]
fn a_cluster_that_does_not_answer_is_given_way() {
    let (mut sim, mut steering) = (Sim::new("10mb", "2"), steering());
    assert!(matches!(steering.unseen(sim.now), Decision::Wait(_)), "nothing is to be taken back");
    let did = sim.steer(&mut steering, 60);
    let raised = did.iter().filter(|one| matches!(one, Decision::Set(_))).count();
    assert!(raised > 1, "{did:#?}");
    let on_trial = steering.on_trial();
    let Decision::GiveWay(back, why) = steering.unseen(sim.now) else { panic!("{did:#?}") };
    assert!(on_trial.is_none_or(|on_trial| on_trial == back), "what is on trial goes first");
    assert_eq!((back.setting.as_str(), why.as_str()), (LIMIT, "the cluster does not answer"));
    let mut last = back;
    while let Decision::GiveWay(back, _) = steering.unseen(sim.now) {
        assert_eq!(back.from, last.to, "one after the other");
        last = back;
    }
    assert!(last.is_as_found && last.to == "10mb", "{last:?}");
    assert!(steering.in_force().is_empty() && steering.on_trial().is_none());
}

#[test]
fn users_who_suffer_anyway_are_no_reason_to_change_what_was_found() {
    let marks = Marks { p99_ms: Some(50.0), ..Marks::default() };
    let mut steering = Steering::new(Time(0), Bounds::default(), marks);
    let mut look = Sim::new("10mb", "2").look();
    look.foreground.probes_ms = vec![90.0];
    for s in 1..60 {
        (look.at, look.moved_bytes) = (Time(s * 1_000_000_000), s * (10 << 20));
        match steering.next(&look) {
            Decision::Wait(why) => {
                assert!(why.starts_with("users suffer, and every"), "{s}: {why}")
            }
            decision => assert_eq!((s, decision), (1, Decision::Look)),
        }
    }
}

#[test]
fn what_it_waits_for_is_said_once_it_is_known_what_users_bear() {
    for probe_ms in [1.0, 90.0] {
        let marks = Marks { p99_ms: Some(50.0), ..Marks::default() };
        let mut steering = Steering::new(Time(0), Bounds::default(), marks);
        let mut sim = Sim::new("10mb", "2");
        sim.active = 0;
        for s in 1..10 {
            sim.now = sim.now + Duration::from_secs(1);
            let mut look = sim.look();
            // One slow query at first is not suffering.
            look.foreground.probes_ms = vec![if s == 1 { probe_ms } else { 1.0 }];
            let waits = matches!(steering.next(&look), Decision::Wait(_));
            assert_eq!(waits, steering.baseline().is_some(), "after {s} looks");
        }
        assert!(steering.baseline().is_some());
    }
}
