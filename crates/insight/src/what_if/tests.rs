//! What is read of the run of a twin.

use record::Limit;
use record::stage::{DELAYED, DONE, UNASSIGNED, WAITING};

use super::phases::PhaseKind;
use super::*;

fn sample(stages: &[(&str, u32)], recovered: u64, throttle_s: f64) -> RecoverySample {
    RecoverySample {
        recovered_bytes: recovered,
        total_bytes: 100,
        stages: stages.iter().map(|(stage, count)| ((*stage).to_owned(), *count)).collect(),
        charged_s: BTreeMap::from([(Limit::Throttle, throttle_s)]),
        ..RecoverySample::default()
    }
}

#[test]
fn phases_follow_one_another_until_green() {
    let all = [
        sample(&[(UNASSIGNED, 2), (DELAYED, 2)], 0, 0.0),
        sample(&[(UNASSIGNED, 1), ("INDEX", 1)], 10, 1.0),
        sample(&[("INDEX", 1), (DONE, 1)], 60, 5.0),
        sample(&[(DONE, 2)], 100, 9.0),
    ];
    let times = [1.0, 61.0, 65.0, 70.0];
    let samples: Vec<(f64, &RecoverySample)> = times.into_iter().zip(&all).collect();
    let phases = phases(&samples, &[], 70.0);
    let seen: Vec<_> =
        phases.iter().map(|phase| (phase.what, phase.from_s, phase.to_s, phase.copies)).collect();
    let expected = [
        (PhaseKind::NotNoticed, 0.0, 1.0, 0),
        (PhaseKind::Delayed, 1.0, 61.0, 2),
        (PhaseKind::Copying, 61.0, 70.0, 2),
    ];
    assert_eq!(seen, expected);
    assert_eq!(phases[2].limits, [(Limit::Throttle, 1.0)]);
    assert_eq!(delayed_until(&samples), 1.0, "nothing of it was made before");
    assert_eq!(delayed_until(&samples[1..]), 0.0);
    let curve = curve(&samples, 70.0, false);
    assert_eq!((curve[1].copies, curve[1].bytes), (2, 90));
    assert_eq!((curve[3].copies, curve[3].bytes), (0, 0));
}

/// A chunk counts as latency until it has come, and as the throttle then: what a phase is held by is what is known in
/// the end, as in the accounting of the run.
#[test]
fn what_held_a_chunk_is_what_is_known_once_it_has_come() {
    let seen = |latency_s: f64, throttle_s: f64| RecoverySample {
        charged_s: BTreeMap::from([(Limit::Latency, latency_s), (Limit::Throttle, throttle_s)]),
        ..sample(&[("INDEX", 1)], 0, 0.0)
    };
    let all = [seen(0.0, 0.0), seen(1.0, 0.0), seen(0.5, 1.5), seen(1.5, 1.5), seen(0.2, 3.8)];
    let times = [0.0, 1.0, 2.0, 3.0, 4.0];
    let samples: Vec<(f64, &RecoverySample)> = times.into_iter().zip(&all).collect();
    let phases = phases(&samples, &[], 4.0);
    let [(first, most), (second, least)] = phases[0].limits[..] else { panic!("{phases:?}") };
    assert_eq!((phases.len(), first, second), (1, Limit::Throttle, Limit::Latency));
    assert!((most - 0.95).abs() < 1e-9 && (least - 0.05).abs() < 1e-9, "{phases:?}");
}

#[test]
fn what_was_estimated_to_be_moved_is_no_more_than_what_was_moved() {
    let estimated = |recovered| RecoverySample {
        total_bytes: 150,
        ..sample(&[("INDEX", 1), (WAITING, 0)], recovered, 1.0)
    };
    let all = [estimated(0), estimated(70), sample(&[(DONE, 1)], 100, 2.0)];
    let samples: Vec<(f64, &RecoverySample)> = [1.0, 2.0, 3.0].into_iter().zip(&all).collect();
    let left: Vec<u64> = curve(&samples, 3.0, false).iter().map(|point| point.bytes).collect();
    assert_eq!(left, [100, 30, 0]);
    // Two copies fewer were moved than were estimated, and it is looked again a second after the last one came.
    let end = RecoverySample { total_bytes: 150, ..sample(&[(DONE, 1), (WAITING, 2)], 100, 2.0) };
    let samples = [(1.0, &all[0]), (4.0, &end)];
    let expected = Point { t_s: 3.0, copies: 0, bytes: 0 };
    assert_eq!(curve(&samples, 3.0, false)[1], expected);
    let begins = sample(&[("INDEX", 1), (WAITING, 2)], 0, 1.0);
    let samples = [(1.0, &begins), (3.0, &all[2])];
    assert_eq!(curve(&samples, 3.0, false)[0].copies, 1);
    assert_eq!(phases(&samples, &[], 3.0)[1].copies, 1);
    // The node is empty while copies are moved for balance that nobody counted: what is left begins with all of it.
    let balancing = sample(&[("INDEX", 2), (DONE, 3)], 180, 2.0);
    let samples = [(1.0, &all[0]), (2.0, &balancing), (4.0, &balancing)];
    let left: Vec<u64> = curve(&samples, 3.0, false).iter().map(|point| point.bytes).collect();
    assert_eq!(left, [180, 0, 0]);
}

#[test]
fn copies_that_nobody_misses_yet_are_outstanding_all_the_same() {
    let unnoticed = RecoverySample { waiting: Some(2), ..sample(&[(UNASSIGNED, 0)], 0, 0.0) };
    let end = RecoverySample { waiting: Some(0), ..sample(&[(DONE, 2)], 100, 2.0) };
    let curve = curve(&[(0.1, &unnoticed), (9.0, &end)], 9.5, false);
    assert_eq!(curve.iter().map(|point| point.copies).collect::<Vec<_>>(), [2, 0]);
}

#[test]
fn of_nodes_that_restart_the_copies_of_the_next_are_not_outstanding_yet() {
    let first = sample(&[("INDEX", 1)], 40, 1.0);
    let second =
        RecoverySample { total_bytes: 300, ..sample(&[("INDEX", 1), (DONE, 1)], 250, 2.0) };
    let left: Vec<u64> = curve(&[(1.0, &first), (9.0, &second)], 9.5, true)
        .iter()
        .map(|point| point.bytes)
        .collect();
    assert_eq!(left, [60, 50]);
}

/// No replica: the primary of a node has no place meanwhile, and is opened when it is back. Its copy of another
/// shard is made elsewhere, and then all is green without it.
#[test]
fn what_nothing_but_a_restart_holds_is_held_by_the_node_that_is_away() {
    let seen = |all: &[RecoverySample], times: &[f64], away: &[(f64, f64)]| -> Vec<_> {
        let samples: Vec<(f64, &RecoverySample)> = times.iter().copied().zip(all).collect();
        let phases = phases(&samples, away, 31.0);
        phases.iter().map(|phase| (phase.what, phase.from_s, phase.to_s)).collect()
    };
    let alone = [sample(&[(UNASSIGNED, 1)], 0, 0.0), sample(&[], 0, 0.0)];
    let away = [(0.0, 30.0)];
    let expected = [(PhaseKind::Away, 0.0, 30.5), (PhaseKind::NotNoticed, 30.5, 31.0)];
    assert_eq!(seen(&alone, &[2.0, 30.5], &away), expected);
    let expected = [(PhaseKind::NotNoticed, 0.0, 2.0), (PhaseKind::Allocating, 2.0, 30.5)];
    assert_eq!(seen(&alone, &[2.0, 30.5], &[])[..2], expected, "nobody is away");
    let made = [sample(&[("INDEX", 1)], 50, 1.0), sample(&[(DONE, 1)], 100, 2.0)];
    let expected =
        [(PhaseKind::Away, 0.0, 2.0), (PhaseKind::Copying, 2.0, 9.0), (PhaseKind::Away, 9.0, 31.0)];
    assert_eq!(seen(&made, &[2.0, 9.0], &away), expected);
    let waits = [sample(&[(UNASSIGNED, 1), (DELAYED, 1)], 0, 0.0)];
    let expected = [(PhaseKind::Away, 0.0, 2.0), (PhaseKind::Delayed, 2.0, 31.0)];
    assert_eq!(seen(&waits, &[2.0], &away), expected);
}

#[test]
fn what_takes_no_time_is_no_times_as_fast() {
    let mut manifest = record::Manifest::unknown("twin", record::FORMAT);
    manifest.variants = vec![record::VariantInfo { name: "a".into(), ..Default::default() }];
    let rows = vec![record::Row::measured("a", 1, 0.0, 0)];
    let run = RunDir { manifest, lines: Vec::new(), rows, damage: Vec::new() };
    assert_eq!(answers(&run)[0].gain, 1.0);
}

#[test]
fn what_is_green_is_not_compared_with_what_never_is() {
    let mut manifest = record::Manifest::unknown("twin", record::FORMAT);
    let named = |name: &str| record::VariantInfo { name: name.into(), ..Default::default() };
    manifest.variants = ["a", "b"].map(named).to_vec();
    let rows = vec![record::Row::measured("a", 1, 0.001, 0), record::Row::measured("b", 1, 8.0, 9)];
    let text = format!("1 copy finds no place, and {}", record::TwinQuestion::STAYS);
    let stays =
        |name: &str| Line::Note { t_ms: 1.0, variant: Some(name.to_owned()), text: text.clone() };
    let mut run = RunDir { manifest, lines: vec![stays("a")], rows, damage: Vec::new() };
    let found = answers(&run);
    assert_eq!((found[0].never_green.len(), found[1].gain), (1, 1.0));
    run.lines.push(stays("b"));
    assert_eq!(answers(&run)[1].gain, 1.0, "where nothing is placed there is no time");
    (run.rows[0].seconds, run.rows[0].bytes) = (4.0, 9);
    assert_eq!(answers(&run)[1].gain, 0.5, "both leave some without a place");
}

#[test]
fn an_interval_does_not_go_below_the_time_for_which_nodes_are_away() {
    assert_eq!(between(90.5, 100.0, 90.0), (90.0, 120.0));
    assert_eq!(between(200.0, 200.0, 90.0), (160.0, 240.0));
    assert_eq!(between(90.0, 90.0, 90.001).0, 90.0, "no more than what came out");
}

#[test]
fn an_interval_of_a_short_time_is_no_narrower_than_half_a_second_each_way() {
    assert_eq!(between(1.0, 2.0, 0.0), (0.5, 2.5));
    assert_eq!(between(0.25, 0.25, 0.0), (0.0, 0.75), "nothing is done before it begins");
    assert_eq!(between(2.0, 10.0, 1.75), (1.75, 12.0), "each end by itself");
}

#[test]
fn nodes_are_away_from_the_beginning_of_that_phase_to_its_end() {
    let line = |t_ms: f64, lap: u32, name: &str, begins: bool| {
        let phase = record::Phase { name: name.to_owned(), begins };
        Line::Phase { t_ms, variant: Some("a".to_owned()), lap, phase }
    };
    let lines = vec![
        line(1000.0, 1, "recover", true),
        line(1500.0, 1, record::Phase::AWAY, true),
        line(31_500.0, 1, record::Phase::AWAY, false),
        line(40_000.0, 1, record::Phase::AWAY, true),
        line(70_000.0, 1, record::Phase::AWAY, false),
        line(99_000.0, 2, record::Phase::AWAY, true),
    ];
    let manifest = record::Manifest::unknown("twin", record::FORMAT);
    let run = RunDir { manifest, lines, rows: Vec::new(), damage: Vec::new() };
    assert_eq!(away(&run, "a", 1), [(0.5, 30.5), (39.0, 69.0)]);
    assert!(away(&run, "b", 1).is_empty());
}
