//! Settings that others change, or that the cluster does not take.

use std::time::Duration;

use record::observation::Scope;

use super::sim::{CHUNKS, LIMIT, MB, Sim, steering};
use crate::steering::Decision;

#[test]
fn a_setting_that_somebody_else_changes_meanwhile_ends_it() {
    let (mut sim, mut steering) = (Sim::new("10mb", "2"), steering());
    let did = sim.steer(&mut steering, 8);
    assert!(matches!(did.last(), Some(Decision::Set(_))), "{did:#?}");
    sim.set(LIMIT, "15mb", Scope::Persistent);
    let did = sim.steer(&mut steering, 5);
    let Some(Decision::Stop(why)) = did.last() else { panic!("{did:#?}") };
    assert_eq!(why, &format!("somebody else changes {LIMIT}: it is 15mb and was 20mb"));
    assert_eq!(sim.value(LIMIT), "15mb", "and it is left");
}

#[test]
fn a_setting_that_somebody_else_changes_once_nothing_recovers_ends_it() {
    let (mut sim, mut steering) = (Sim::new("10mb", "2"), steering());
    sim.steer(&mut steering, 60);
    assert!(!steering.in_force().is_empty(), "a raise was kept");
    (sim.active, sim.rests) = (0, true);
    let did = sim.steer(&mut steering, 10);
    assert!(!did.iter().any(|one| matches!(one, Decision::Stop(_) | Decision::Set(_))), "{did:#?}");
    sim.set(LIMIT, "15mb", Scope::Persistent);
    let did = sim.steer(&mut steering, 5);
    let Some(Decision::Stop(why)) = did.last() else { panic!("{did:#?}") };
    assert!(why.contains(LIMIT) && why.contains("it is 15mb"), "{why}");
}

#[test]
fn a_setting_that_somebody_else_changed_first_is_left_alone_and_others_are_not() {
    let (mut sim, mut steering) = (Sim::new("10mb", "2"), steering());
    sim.per_chunk = 2.0 * MB;
    sim.steer(&mut steering, 2);
    sim.set(LIMIT, "100mb", Scope::Transient);
    let did = sim.steer(&mut steering, 100);
    assert!(did.iter().any(|one| matches!(one, Decision::Leave(why) if why.contains(LIMIT))));
    assert_eq!((sim.value(LIMIT), sim.value(CHUNKS)), ("100mb", "8"), "{did:#?}");
}

#[test]
fn the_same_value_written_otherwise_is_nobodys_change() {
    let (mut sim, mut steering) = (Sim::new("10mb", "2"), steering());
    sim.steer(&mut steering, 2);
    sim.set(LIMIT, "10240kb", Scope::Persistent);
    let did = sim.steer(&mut steering, 20);
    assert!(matches!(did.first(), Some(Decision::Set(_))), "{did:#?}");
    assert!(!did.iter().any(|one| matches!(one, Decision::Leave(_) | Decision::Stop(_))));
}

#[test]
fn a_dry_run_proposes_the_same_again_and_changes_nothing() {
    let (mut sim, mut steering) = (Sim::new("10mb", "2"), steering());
    let mut proposed = 0;
    for _ in 0..30 {
        sim.moved += sim.rate();
        sim.now = sim.now + Duration::from_secs(1);
        if let Decision::Set(proposal) = steering.next(&sim.look()) {
            assert_eq!((proposal.from.as_str(), proposal.to.as_str()), ("10mb", "20mb"));
            assert_eq!(proposal.expected, Some(2.0));
            proposed += 1;
            steering.withdraw();
        }
    }
    assert!(proposed > 20, "{proposed}");
    assert!(steering.in_force().is_empty());
}

#[test]
fn a_setting_that_the_cluster_refuses_is_left() {
    let (mut sim, mut steering) = (Sim::new("10mb", "2"), steering());
    let mut proposed = 0;
    for _ in 0..60 {
        sim.moved += sim.rate();
        sim.now = sim.now + Duration::from_secs(1);
        if let Decision::Set(proposal) = steering.next(&sim.look()) {
            steering.leave(&proposal.setting);
            proposed += 1;
        }
    }
    assert_eq!(proposed, 1);
}
