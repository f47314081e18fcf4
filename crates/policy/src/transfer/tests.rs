//! Whole transfers over the closed-form link: what the adaptive scheduler promises, beside every fixed
//! setting that people use.

use std::time::Duration;

use world::Time;

use super::chunk_scheduler::SchedulerConfig;
use super::link_sim::{Flow, Link, Trace, run};
use crate::rate_limiter::RateLimiter;

const MIB: u64 = 1 << 20;
const ADAPTIVE: SchedulerConfig = SchedulerConfig::Adaptive { memory_max_bytes: 64 * MIB };
const SHARED_BY_FIVE: SchedulerConfig =
    SchedulerConfig::Adaptive { memory_max_bytes: 64 * MIB / 5 };
const FIXED: [(u64, usize); 6] =
    [(64 << 10, 1), (MIB, 1), (5 * MIB, 1), (MIB, 5), (5 * MIB, 8), (MIB, 10)];
const PATHS: [(u64, f64); 6] =
    [(10, 12.5e6), (10, 125e6), (100, 12.5e6), (100, 125e6), (300, 12.5e6), (300, 125e6)];
const END: Time = Time(u64::MAX);

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn fixed((chunk_bytes, max_concurrent): (u64, usize)) -> SchedulerConfig {
    SchedulerConfig::FileWindow { chunk_bytes, max_concurrent }
}

fn seconds(trace: &Trace) -> f64 {
    trace.finished_at.expect("every byte arrives").0 as f64 / 1e9
}

fn one(link: Link, config: SchedulerConfig, lens: &[u64]) -> Trace {
    run(link, vec![Flow::new(config, lens)], END).pop().expect("one flow")
}

/// Seconds of the best fixed setting.
fn best_fixed(link: impl Fn() -> Link, lens: &[u64]) -> f64 {
    FIXED.iter().map(|f| seconds(&one(link(), fixed(*f), lens))).fold(f64::INFINITY, f64::min)
}

#[test]
fn fills_nine_tenths_of_every_path_start_up_included() {
    for (rtt_ms, rate) in PATHS {
        let product = rate * rtt_ms as f64 / 1e3;
        for products in [20.0, 35.0, 50.0, 200.0] {
            let bytes = (product * products) as u64;
            let trace = one(Link::new(rate, ms(rtt_ms)), ADAPTIVE, &[bytes]);
            let share = bytes as f64 / seconds(&trace) / rate;
            assert!(share >= 0.9, "{rtt_ms} ms, {rate} B/s, {products} products: {share:.3}");
        }
    }
}

#[test]
fn needs_no_wake_to_fill_nine_tenths() {
    for (rtt_ms, rate) in PATHS {
        let bytes = (rate * rtt_ms as f64 / 1e3 * 20.0) as u64;
        let link = Link { wakes: false, ..Link::new(rate, ms(rtt_ms)) };
        let share = bytes as f64 / seconds(&one(link, ADAPTIVE, &[bytes])) / rate;
        assert!(share >= 0.9, "{rtt_ms} ms, {rate} B/s: {share:.3}");
    }
}

#[test]
fn no_fixed_setting_is_faster_at_any_size() {
    for (rtt_ms, rate) in PATHS {
        for server_time in [Duration::ZERO, ms(2)] {
            let product = rate * rtt_ms as f64 / 1e3;
            let small = [1e3, 64e3, 1e6, 5e6];
            let sizes =
                small.into_iter().chain([0.5, 1.0, 2.0, 5.0, 20.0, 50.0].map(|n| n * product));
            for size in sizes {
                let link = || Link { server_time, ..Link::new(rate, ms(rtt_ms)) };
                for lens in [vec![size as u64], vec![size as u64 / 7 + 1; 7]] {
                    let ours = seconds(&one(link(), ADAPTIVE, &lens));
                    let best = best_fixed(link, &lens);
                    assert!(
                        ours <= best * 1.01,
                        "{rtt_ms} ms, {rate} B/s, {lens:?}: {ours:.4} s, fixed {best:.4} s"
                    );
                }
            }
        }
    }
}

#[test]
fn small_files_do_not_wait_for_one_another() {
    let lens: Vec<u64> = (0..3000u64).map(|i| 1 + i * 7919 % 20_000).collect();
    let bytes: u64 = lens.iter().sum();
    for (rtt_ms, rate) in PATHS {
        let link = || Link::new(rate, ms(rtt_ms));
        let ours = seconds(&one(link(), ADAPTIVE, &lens));
        let ideal = rtt_ms as f64 / 1e3 + bytes as f64 / rate;
        assert!(ours < ideal * 1.05, "{rtt_ms} ms, {rate} B/s: {ours:.3} s, ideal {ideal:.3} s");
        assert!(ours <= best_fixed(link, &lens));
    }
}

#[test]
fn stops_at_the_knee() {
    for (rtt_ms, rate) in PATHS {
        let product = rate * rtt_ms as f64 / 1e3;
        let bytes = (product * 100.0).max(rate * 15.0) as u64;
        let trace = one(Link::new(rate, ms(rtt_ms)), ADAPTIVE, &[bytes]);
        let end_s = seconds(&trace);
        let most = trace.in_flight_max_between(6.0, end_s) as f64 / product;
        assert!(most < 2.15, "{rtt_ms} ms, {rate} B/s: {most:.2} products in flight");
    }
}

#[test]
fn bears_a_path_that_varies() {
    for (rtt_ms, rate) in PATHS {
        let product = rate * rtt_ms as f64 / 1e3;
        let bytes = (product * 50.0).max(rate * 20.0) as u64;
        let link = Link { jitter: ms(rtt_ms) / 10, ..Link::new(rate, ms(rtt_ms)) };
        let trace = one(link, ADAPTIVE, &[bytes]);
        let share = bytes as f64 / seconds(&trace) / rate;
        let most = trace.in_flight_max_between(8.0, seconds(&trace)) as f64 / product;
        assert!(share > 0.92, "{rtt_ms} ms, {rate} B/s: {share:.3}");
        assert!(most < 2.2, "{rtt_ms} ms, {rate} B/s: {most:.2} products in flight");
    }
}

#[test]
fn the_opening_is_over_after_about_a_round_trip() {
    let (rtt_ms, rate) = (10, 12.5e6);
    let trace = one(Link::new(rate, ms(rtt_ms)), ADAPTIVE, &[200 * MIB]);
    let opened = trace.in_flight_max_between(0.0, 0.5);
    assert!(opened < 7 * MIB, "{opened} bytes were sent before anything was known");
    assert!(trace.in_flight_max_between(1.0, 2.0) < 270_000);
}

fn jain(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    sum * sum / (shares.len() as f64 * shares.iter().map(|s| s * s).sum::<f64>())
}

/// Five shards that begin `gap_s` apart, looked at for the half minute until `end_s`.
fn five_shards_share((rtt_ms, rate): (u64, f64), pinged: bool, gap_s: f64, end_s: f64) {
    let flow = |n: u64| Flow {
        starts_at: Time((n as f64 * gap_s * 1e9) as u64),
        pinged,
        ..Flow::new(SHARED_BY_FIVE, &[1 << 40])
    };
    let until = Time((end_s * 1e9) as u64);
    let traces = run(Link::new(rate, ms(rtt_ms)), (0..5).map(flow).collect(), until);
    let share = |t: &Trace| t.bytes_between(end_s - 30.0, end_s) as f64 / rate / 30.0;
    let shares: Vec<f64> = traces.iter().map(share).collect();
    let filled: f64 = shares.iter().sum();
    let flying: u64 = traces.iter().map(|t| t.in_flight_max_between(end_s - 20.0, end_s)).sum();
    let product = rate * rtt_ms as f64 / 1e3;
    let case = format!(
        "{rtt_ms} ms, {rate} B/s, {gap_s} s apart, pinged {pinged}: shares {shares:.3?}, in flight {:.2}",
        flying as f64 / product
    );
    assert!(filled > 0.95, "not full: {case}");
    assert!(jain(&shares) > 0.85 && shares.iter().all(|s| *s > 0.05), "not fair: {case}");
    // On the shortest path, five times the smallest slack is more than the path carries.
    assert!((flying as f64) < 2.0 * product + 5.0 * 250_000.0, "beyond the knee: {case}");
}

#[test]
fn shards_share_a_link_and_fill_it() {
    for path in PATHS {
        for gap_s in [0.0, 0.35, 2.0] {
            five_shards_share(path, true, gap_s, 60.0);
            // Without a ping, the last ones to begin have to find out what the path alone takes.
            five_shards_share(path, false, gap_s, 120.0);
        }
    }
}

#[test]
fn a_throttle_has_a_knee_too() {
    for rtt_ms in [10, 100, 300] {
        let limit = 40 * MIB;
        let throttle = RateLimiter::new(Some(limit));
        let link = Link { throttle, ..Link::new(125e6, ms(rtt_ms)) };
        let bytes = limit * 60;
        let trace = one(link, ADAPTIVE, &[bytes]);
        let share = bytes as f64 / seconds(&trace) / limit as f64;
        let product = limit as f64 * rtt_ms as f64 / 1e3;
        let most = trace.in_flight_max_between(20.0, 55.0) as f64;
        assert!(share > 0.97, "{rtt_ms} ms: {share:.3} of the limit");
        assert!(most < 2.2 * product, "{rtt_ms} ms: {:.2} products in flight", most / product);
    }
}

#[test]
fn gives_way_while_users_suffer_and_comes_back_slowly() {
    let pressure = Some((Time(10_000_000_000), Time(20_000_000_000)));
    let flow = Flow { pressure, ..Flow::new(ADAPTIVE, &[1 << 40]) };
    let rate = 125e6;
    let trace = run(Link::new(rate, ms(100)), vec![flow], Time(40_000_000_000)).pop().unwrap();
    let share = |from, to| trace.bytes_between(from, to) as f64 / rate / (to - from);
    assert!(share(5.0, 10.0) > 0.97);
    assert!(share(12.0, 20.0) < 0.05);
    let chunks =
        |(t, n): &(Time, usize)| (12_000_000_000..20_000_000_000).contains(&t.0).then_some(*n);
    assert_eq!(trace.in_flight_chunks.iter().filter_map(chunks).max(), Some(1), "the floor");
    assert!((0.1..0.7).contains(&share(20.0, 22.0)));
    assert!(share(26.0, 40.0) > 0.97);
}

/// Share of the rate in each of the given spans of a flow on a path that changes at 10 s.
fn changing(rates: [f64; 2], rtts_ms: [u64; 2], spans: &[(f64, f64)]) -> Vec<f64> {
    let mut link = Link::new(rates[0], ms(rtts_ms[0]));
    link.rate_bytes_per_s.push((12.0, rates[1]));
    link.rtt.push((12.0, ms(rtts_ms[1])));
    let config = SchedulerConfig::Adaptive { memory_max_bytes: 512 * MIB };
    let flow = Flow::new(config, &[1 << 40]);
    let trace = run(link, vec![flow], Time(40_000_000_000)).pop().unwrap();
    let share =
        |&(from, to): &(f64, f64)| trace.bytes_between(from, to) as f64 / rates[1] / (to - from);
    let shares = spans.iter().map(share).collect();
    let product = rates[1] * rtts_ms[1] as f64 / 1e3;
    let most = trace.in_flight_max_between(32.0, 40.0) as f64;
    // Below about 100 kB, the smallest chunks are what counts.
    let bound = (2.0 * product).max(product + 3.0 * 65_536.0);
    assert!(most < bound, "{rates:?}, {rtts_ms:?}: {:.2} products in flight", most / product);
    shares
}

#[test]
fn follows_a_path_that_changes() {
    for (rtt_ms, rate) in PATHS {
        let rtt_s = rtt_ms as f64 / 1e3;
        let soon = (12.0 + 12.0 * rtt_s, 40.0);
        for factor in [0.5, 2.0, 4.0] {
            let shares = changing([rate, rate * factor], [rtt_ms; 2], &[soon]);
            assert!(shares[0] > 0.95, "{rtt_ms} ms, {rate} B/s x {factor}: {shares:.3?}");
        }
        for rtt in [rtt_ms / 2, rtt_ms * 2, rtt_ms * 3] {
            let shares = changing([rate; 2], [rtt_ms, rtt], &[(12.0, 22.0), (22.0, 40.0)]);
            // Up to ten seconds until the base is measured anew, and several round trips of 0.9 s.
            assert!(shares[0] > 0.3, "{rtt_ms} to {rtt} ms, {rate} B/s: {shares:.3?}");
            assert!(shares[1] > 0.94, "{rtt_ms} to {rtt} ms, {rate} B/s: {shares:.3?}");
        }
    }
}

#[test]
fn loopback_reaches_full_speed() {
    for rate in [1e9, 2e9] {
        for server_time in [Duration::ZERO, Duration::from_micros(300)] {
            let link = Link { server_time, ..Link::new(rate, Duration::from_micros(50)) };
            let bytes = 4 << 30;
            let trace = one(link, ADAPTIVE, &[bytes]);
            let share = bytes as f64 / seconds(&trace) / rate;
            assert!(share > 0.98, "{rate} B/s: {share:.3}");
            assert!(trace.chunk_bytes >= MIB);
            assert!(trace.in_flight_max_between(0.1, 2.0) <= 16 * MIB);
        }
    }
}
