//! What changed from one diagnosis to another.

use insight::diagnosis::{Changes, Pair, changes};
use record::observation::Observation;

use super::{LIMIT, looks_at, looks_at_rest};
use crate::common::{MAX_BYTES, MB, node, rtt, series, settings, waiting};

fn throttled(limit: &str, rate: u64) -> Vec<(f64, Observation)> {
    looks_at(rate, |look, s| {
        look.settings = settings(&[(MAX_BYTES, limit)]);
        look.recoveries[0].target_throttle_ms = Some(s * 900);
    })
}

fn between(then: &[(f64, Observation)], now: &[(f64, Observation)]) -> Changes {
    changes(&series(then), &series(now))
}

#[test]
fn a_limit_that_was_raised_is_gone_and_what_holds_now_is_new() {
    let then = throttled("40mb", LIMIT);
    let mut now = looks_at(12 * MB, |look, _| {
        look.settings = settings(&[(MAX_BYTES, "320mb")]);
        look.round_trips = rtt(85.0);
    });
    now.iter_mut().for_each(|(t_ms, look)| look.nodes.push(node("c", *t_ms as u64 / 1000)));
    let changed = between(&then, &now);
    assert!(matches!(&changed.gone[..], [one] if one.starts_with("rate limit: ")), "{changed:?}");
    assert!(matches!(&changed.came[..], [one] if one.starts_with("latency: ")), "{changed:?}");
    let limit = Pair { was: Some("40mb".to_owned()), is: Some("320mb".to_owned()) };
    assert_eq!(changed.settings.get(MAX_BYTES), Some(&limit));
    assert_eq!((changed.nodes_came, changed.nodes_gone), (vec!["c".to_owned()], vec![]));
    assert!(changed.bytes_per_s.was > changed.bytes_per_s.is, "{:?}", changed.bytes_per_s);
}

#[test]
fn what_holds_as_before_is_said_as_it_was_and_as_it_is() {
    let (then, now) = (throttled("40mb", LIMIT), throttled("20mb", LIMIT / 2));
    let changed = between(&then, &now);
    assert_eq!((changed.gone.len(), changed.came.len()), (0, 0), "{changed:?}");
    let [Pair { was, is }] = &changed.stayed[..] else { panic!("{changed:?}") };
    assert!(was.contains("= 40mb") && is.contains("= 20mb"), "{changed:?}");
    // The last look of a large cluster need not have asked for nodes.
    let mut now = then.clone();
    now.last_mut().unwrap().1.nodes.clear();
    assert!(between(&then, &now).nodes_gone.is_empty());
    let unchanged = between(&then, &then);
    assert_eq!(unchanged.stayed.len(), 1);
    assert!(unchanged.settings.is_empty() && unchanged.nodes_gone.is_empty());
}

/// The trap: slots of several nodes are taken, and now this one and now that one is named.
#[test]
fn copies_that_wait_for_a_slot_at_another_node_wait_as_before() {
    let at = |node: &str| {
        looks_at_rest(|look, _| {
            look.waiting = [waiting("throttled", &[(node, "throttling", "THROTTLE")])].into();
        })
    };
    let changed = between(&at("a"), &at("b"));
    assert_eq!((changed.gone.len(), changed.came.len()), (0, 0), "{changed:?}");
    let [Pair { is, .. }] = &changed.stayed[..] else { panic!("{changed:?}") };
    assert!(is.starts_with("allocation slots: "), "{changed:?}");
}

#[test]
fn a_rate_is_that_of_all_looks_where_whole_chunks_come_between_two() {
    // One chunk and two by turns, and one at a time at the end: a chunk and a half a second.
    let came = [2, 3, 5, 6, 8, 9, 11, 12, 15, 16, 17];
    let looks = looks_at(MB, |look, s| {
        look.recoveries[0].recovered_bytes = Some(came[s as usize] * MB);
    });
    let then = between(&looks, &looks).bytes_per_s.was.unwrap();
    assert_eq!(then, 1.5 * MB as f64);
}
