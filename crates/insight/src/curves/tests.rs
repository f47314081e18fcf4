//! Rates, thinning, and what is read of samples.

use super::*;
use crate::trace::timed;

#[test]
fn thinning_keeps_peaks_and_the_bound() {
    // A tenth of a second without a byte, and twice as many in the next one.
    let sent = |i: u64| if i == 7000 { i - 1 } else { i } * 700;
    let counted: Vec<(f64, u64)> = (0..=144_000).map(|i| (i as f64 * 0.1, sent(i))).collect();
    let points = thin_rates(&rates(&counted, 14_400.0), LINK_POINTS);
    assert!(points.len() <= LINK_POINTS, "{}", points.len());
    let count = |rate: f64| points.iter().filter(|p| (p.value - rate).abs() < 1e-3).count();
    assert_eq!((count(0.0), count(14_000.0)), (1, 1));
    assert_eq!(count(7000.0), points.len() - 2);
    assert!(points.is_sorted_by(|a, b| a.t_s < b.t_s));
    assert!(points.last().unwrap().t_s > 14_300.0);
}

#[test]
fn a_counter_that_begins_anew_leaves_a_gap_and_no_negative_rate() {
    let points = thin_rates(&rates(&[(0.0, 0), (1.0, 500), (2.0, 100), (3.0, 400)], 9.0), 10);
    let seen: Vec<(f64, f64)> = points.iter().map(|point| (point.t_s, point.value)).collect();
    assert_eq!(seen, [(0.0, 500.0), (1.0, 500.0), (3.0, 300.0)]);
}

#[test]
fn a_node_is_weighed_by_time_not_by_samples() {
    let curve = cores(&[(1.0, 1.0), (1.1, 4.0), (2.0, 0.0)], &Away::default()).unwrap();
    assert!((curve.mean_cores - 0.7).abs() < 1e-9, "{}", curve.mean_cores);
    assert!(cores(&[], &Away::default()).is_none());
}

/// A first sample has none before it, and one that follows within a few milliseconds has next to nothing.
#[test]
fn cores_are_not_known_before_samples_span_some_time() {
    let used = |samples: &[(f64, f64)]| cores(samples, &Away::default());
    assert!(used(&[(0.0, 0.0), (0.0004, 0.0)]).is_none());
    let later = used(&[(1.0, 0.0), (1.0, 0.0), (1.004, 0.0), (2.0, 0.5)]).unwrap();
    assert!((later.mean_cores - 0.498).abs() < 1e-9, "{}", later.mean_cores);
    assert_eq!(later.cores.iter().map(|point| point.t_s).collect::<Vec<_>>(), [1.0, 2.0]);
    let idle = used(&[(0.0, 0.0), (1.0, 0.0)]).unwrap();
    assert!(idle.mean_cores == 0.0 && idle.cores.len() == 2, "nothing used is known: {idle:?}");
    // What a node tells besides stays.
    let sample = |n: u64| NodeSample { transport_rx_bytes: n * 1000, ..NodeSample::default() };
    let node = of_node(&[0, 1, 2].map(sample), 2.0);
    assert!(node.cores.is_empty() && !node.received.is_empty(), "{node:?}");
}

/// The curves of a node that left these samples, so many milliseconds apart.
fn of_node(samples: &[NodeSample], every_ms: f64) -> NodeCurve {
    let edge = RecoverySample::default();
    let mut trace = Trace::default();
    trace.recovery = vec![(0.0, &edge), ((samples.len() - 1) as f64 * every_ms, &edge)];
    trace.nodes = [(("leader", "leader-0"), timed(samples, every_ms))].into();
    of_trace("a", 1, &trace, None).unwrap().nodes.remove(0)
}

#[test]
fn a_node_that_was_down_for_a_while_is_drawn_in_two_parts() {
    let sample = |n: u64| NodeSample {
        cpu_cores: 0.5,
        transport_rx_bytes: n * 1000,
        heap_used_bytes: Some(n),
        ..NodeSample::default()
    };
    let held: Vec<NodeSample> = (0..40).map(sample).collect();
    let timed = |is_there: fn(usize) -> bool| {
        let there = held.iter().enumerate().filter(|(n, _)| is_there(*n));
        there.map(|(n, sample)| (n as f64 * 1000.0, sample)).collect::<Vec<_>>()
    };
    let edge = RecoverySample::default();
    let mut trace = Trace::default();
    trace.recovery = vec![(0.0, &edge), (39_000.0, &edge)];
    trace.nodes = [
        (("leader", "goes"), timed(|n| !(10..30).contains(&n))),
        (("leader", "stays"), timed(|_| true)),
    ]
    .into();
    let nodes = of_trace("a", 1, &trace, None).unwrap().nodes;
    let parts = |points: &[Point]| -> Vec<(f64, f64)> {
        let parts = points.split(|point| point.value.is_nan());
        parts.map(|part| (part[0].t_s, part[part.len() - 1].t_s)).collect()
    };
    // What is counted is known from the second sample on.
    assert_eq!(parts(&nodes[0].received), [(0.0, 9.0), (31.0, 39.0)]);
    assert_eq!(parts(&nodes[0].cores), [(0.0, 9.0), (31.0, 39.0)]);
    assert_eq!(parts(&nodes[0].heap), [(1.0, 9.0), (30.0, 39.0)]);
    assert!((nodes[0].mean_cores - 0.5 * 18.0 / 39.0).abs() < 1e-9, "{}", nodes[0].mean_cores);
    assert_eq!(parts(&nodes[1].received), [(0.0, 39.0)]);
}

#[test]
fn disks_are_drawn_as_they_are_told_with_their_peaks_within_the_bound() {
    // 10 kB/s for most of the time, once 500 kB/s, and busy for two fifths of it.
    let sample = |n: u64| NodeSample {
        disk_read_bytes: Some(n * 1000 + if n > 2000 { 49_000 } else { 0 }),
        disk_busy_ms: Some(n * 40),
        ..NodeSample::default()
    };
    let node = of_node(&(0..4000).map(sample).collect::<Vec<_>>(), 100.0);
    assert!(node.disk_read.len() <= NODE_POINTS, "{}", node.disk_read.len());
    let peak = node.disk_read.iter().map(|point| point.value).fold(0.0, f64::max);
    assert!((peak - 500_000.0).abs() < 1.0, "{peak}");
    let busy = |point: &Point| (point.value - 0.4).abs() < 1e-6;
    assert!(!node.disk_busy.is_empty() && node.disk_busy.iter().all(busy));
    // What it does not tell is not drawn.
    assert_eq!((node.disk_written.len(), node.collecting.len()), (0, 0));
}

/// A JVM whose counters move once a second, and stand still from the 20th second on, asked four times a second.
#[test]
fn a_node_that_looks_at_its_disk_once_a_second_has_no_peaks_of_the_samples() {
    let sample = |n: u64| NodeSample {
        heap_used_bytes: Some(1),
        gc_ms: Some((n / 4).min(20) * 100),
        disk_written_bytes: Some((n / 4).min(20) * 1000),
        ..NodeSample::default()
    };
    let node = of_node(&(0..=120).map(sample).collect::<Vec<_>>(), 250.0);
    let values = |points: &[Point]| {
        let mut values: Vec<f64> = points.iter().map(|point| point.value).collect();
        values.dedup();
        values
    };
    assert_eq!(values(&node.disk_written), [1000.0, 0.0]);
    assert_eq!(values(&node.collecting), [0.1, 0.0]);
}

#[test]
fn the_latency_of_indexing_is_that_of_the_requests_between_two_samples() {
    let told = [(0, 0.0), (10, 500.0), (10, 500.0), (12, 700.0)];
    let [a, b, c, d] = told.map(|(requests, ms)| (Some(requests), Some(ms)));
    let told = [a, b, c, d, (None, None)];
    let recovery = told.map(|(indexing_requests, indexing_ms)| RecoverySample {
        indexing_requests,
        indexing_ms,
        ..Default::default()
    });
    let following = told.map(|(indexing_requests, indexing_ms)| FollowSample {
        indexing_requests,
        indexing_ms,
        ..Default::default()
    });
    let (mut beside, mut followed) = (Trace::default(), Trace::default());
    beside.recovery = timed(&recovery, 1e3);
    followed.following = timed(&following, 1e3);
    let expected = [(1.0, 50.0), (3.0, 100.0)].map(|(t_s, value)| Point { t_s, value });
    for trace in [beside, followed] {
        let points = index_latency(&trace, |t_ms| Some(t_ms / 1e3));
        assert_eq!(points, expected, "none where no request was answered");
    }
}

#[test]
fn recovered_bytes_start_at_nothing_and_end_with_the_row() {
    let sample = |bytes| RecoverySample { recovered_bytes: bytes, ..Default::default() };
    let held: Vec<RecoverySample> = (1..=5000).map(|i| sample(i * 10)).collect();
    let samples: Vec<(f64, &RecoverySample)> =
        held.iter().enumerate().map(|(i, sample)| ((i + 1) as f64 * 100.0, sample)).collect();
    let points = recovered(&samples, 0.0, |t_ms| Some(t_ms / 1000.0), Some((500.05, 50_001)));
    assert!(points.len() <= POINTS, "{}", points.len());
    assert_eq!(points[0], Point { t_s: 0.0, value: 0.0 });
    assert_eq!(*points.last().unwrap(), Point { t_s: 500.05, value: 50_001.0 });
    assert!(points.windows(2).all(|pair| pair[0].value <= pair[1].value));
}

#[test]
fn a_recovery_that_begins_anew_keeps_how_far_it_had_come() {
    let sample = |bytes| RecoverySample { recovered_bytes: bytes, ..Default::default() };
    let held: Vec<RecoverySample> = (1..=4995).map(|i| sample(i % 1666 * 10)).collect();
    let samples: Vec<(f64, &RecoverySample)> =
        held.iter().enumerate().map(|(i, sample)| (i as f64 + 1.0, sample)).collect();
    let points = recovered(&samples, 0.0, |t_ms| Some(t_ms / 1000.0), None);
    assert!(points.len() <= POINTS, "{}", points.len());
    assert_eq!(points.iter().filter(|point| point.value == 16_650.0).count(), 2);
}

#[test]
fn a_thinned_lag_keeps_its_peak() {
    let of = |n: u64| FollowSample {
        lag_operations: if n == 4321 { 99 } else { 1 },
        ..Default::default()
    };
    let samples: Vec<FollowSample> = (0..5000).map(of).collect();
    let points =
        followed(&timed(&samples, 1.0), |t_ms| Some(t_ms / 1e3), |s| Some(s.lag_operations));
    assert!(points.len() <= POINTS && points.iter().any(|point| point.value == 99.0));
}

/// Documents a second between two samples, and when it ended.
fn steady_rates(counted: &[(f64, u64)]) -> Vec<(f64, f64)> {
    let even = steady(counted);
    let rate =
        |pair: &[(f64, u64)]| (pair[1].0, (pair[1].1 - pair[0].1) as f64 / (pair[1].0 - pair[0].0));
    even.windows(2).map(rate).collect()
}

#[test]
fn requests_that_are_further_apart_than_samples_read_as_what_is_written() {
    // 3.4 million documents every 20 seconds, looked at twice a second.
    let counted: Vec<(f64, u64)> =
        (0..=400).map(|i| (i as f64 / 2.0, i / 40 * 3_400_000)).collect();
    let rates = steady_rates(&counted);
    assert_eq!(rates.len(), 400);
    assert!(rates.iter().all(|(_, rate)| (rate - 170_000.0).abs() < 5.0), "{rates:?}");
    // The next request may be under way.
    assert_eq!(steady_rates(&counted[..390]).last().unwrap().0, 180.0);
}

#[test]
fn writers_that_stand_still_are_not_smoothed_away_and_peaks_are_as_high_as_they_were() {
    // A thousand every half second; none from second 50 to second 60, nor after second 100.
    let written = |i: u64| match i {
        0..=100 => i,
        101..=119 => 100,
        _ => (i - 19).min(181),
    };
    let counted: Vec<(f64, u64)> = (0..=220).map(|i| (i as f64 / 2.0, written(i) * 1000)).collect();
    let rates = steady_rates(&counted);
    let of = |from_s: f64, to_s: f64, wanted: f64| {
        let within = rates.iter().filter(|(ends_s, _)| *ends_s > from_s && *ends_s <= to_s);
        let found: Vec<&(f64, f64)> = within.collect();
        assert!(!found.is_empty(), "from {from_s} s to {to_s} s");
        assert!(found.iter().all(|(_, rate)| (rate - wanted).abs() < 5.0), "{found:?}");
    };
    of(0.0, 50.0, 2000.0);
    of(50.0, 59.5, 0.0);
    of(59.5, 100.0, 2000.0);
    of(100.0, 110.0, 0.0);
}

#[test]
fn files_that_a_follower_copied_are_drawn_where_there_were_any() {
    let of = |follower_operations: u64| FollowSample {
        follower_operations,
        recovered_bytes: Some(follower_operations * 10),
        ..Default::default()
    };
    let samples = [0, 0, 700, 700, 1100, 1200].map(of);
    let timed = timed(&samples, 1e3);
    let within = |t_ms: f64| Some(t_ms / 1e3);
    let copied = recovered_to_follow(&timed, within);
    assert_eq!(copied.last(), Some(&Point { t_s: 5.0, value: 12_000.0 }));
    assert!(recovered_to_follow(&timed[..2], within).is_empty(), "no files were copied");
}

#[test]
fn nodes_are_summed_over_each_round_and_one_that_is_down_is_in_none() {
    let point = |t_s, value| Point { t_s, value };
    let samples = [
        ("a", point(1.0, 0.5)),
        ("b", point(1.1, 1.5)),
        ("a", point(2.0, 1.0)),
        ("a", point(3.0, 2.0)),
        ("b", point(3.1, 2.0)),
    ];
    assert_eq!(rounds(&samples), [point(1.1, 2.0), point(2.0, 1.0), point(3.1, 4.0)]);
}

#[test]
fn the_end_of_each_wait_for_a_follower_is_kept_as_far_as_it_is_within_the_variant() {
    let of = |caught_up| FollowSample { caught_up, ..Default::default() };
    let (behind, level) = (of(false), of(true));
    let samples = [(0.0, &behind), (500.0, &level), (900.0, &behind), (2000.0, &level)];
    let within = |t_ms: f64| (t_ms < 1000.0).then_some(t_ms / 1e3);
    assert_eq!(caught_up(&samples, within), [0.5]);
}
