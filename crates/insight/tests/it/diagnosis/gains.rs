//! What lifting a limit is promised to bring, where another one is near.

use insight::diagnosis::{Class, Finding};
use record::observation::{Observation, WaitingCopy};

use super::{judge, looks_at, only};
use crate::common::{node, rtt, settings};

/// 20 chunks of 4 MiB a second, eight in flight: each takes 400 ms.
const RATE: u64 = 80 << 20;

/// A recovery of our engine at its limit of 80mb, near or far, each of whose chunks pauses for so long in all.
fn throttled(paused_ms: u64, rtt_ms: f64, change: impl Fn(u64, &mut Observation)) -> Finding {
    throttled_on("narrows", paused_ms, rtt_ms, change)
}

fn throttled_on(
    flavour: &str,
    paused_ms: u64,
    rtt_ms: f64,
    change: impl Fn(u64, &mut Observation),
) -> Finding {
    let looks = looks_at(RATE, |look, s| {
        look.cluster.flavour = flavour.into();
        look.settings = settings(&[
            ("indices.recovery.max_bytes_per_sec", "80mb"),
            ("indices.recovery.chunk_size", "4mb"),
            ("indices.recovery.max_concurrent_file_chunks", "8"),
        ]);
        look.recoveries[0].source_throttle_ms = Some(s * paused_ms * 20);
        look.round_trips = rtt(rtt_ms);
        change(s, look);
    });
    let finding = only(&looks);
    assert_eq!(finding.class, Class::RateLimit);
    finding
}

#[track_caller]
fn promises(finding: &Finding, factor: f64, next: &str) {
    let gain = finding.gain.as_ref().unwrap();
    assert!((gain.factor / factor - 1.0).abs() < 0.01, "{gain:?} {factor}");
    assert!(finding.next.as_ref().unwrap().contains(next), "{:?}", finding.next);
}

/// Chunks that pause nearly all of their time, and nodes that idle: eight times the limit.
#[test]
fn where_nothing_else_is_near_a_limit_is_worth_its_whole_raise() {
    let finding = throttled(395, 5.0, |_, _| ());
    promises(&finding, 8.0, "latency at");
    assert!(!finding.gain.unwrap().formula.contains("first"));
}

#[test]
fn a_disk_that_is_busy_for_two_thirds_of_the_time_carries_half_as_much_again() {
    let busy = |io_ms: u64, device_kib: u64| {
        throttled(395, 5.0, move |s, look| {
            let far = &mut look.nodes[1];
            (far.io_time_ms, far.write_kib) = (Some(s * io_ms), Some(s * device_kib));
            far.read_kib = Some(0);
        })
    };
    promises(&busy(667, 80 << 10), 1.5, "the disk of b (target), busy 67 % of the time already");
    // Half of what it moves is somebody else's, who goes on: of 0.6 the recovery has 0.3, and 0.7 is there for it.
    promises(&busy(600, 160 << 10), 0.7 / 0.3, "the disk of b");
    // What is busy mostly for somebody else may have more room for the recovery than what is left.
    promises(&busy(950, 400 << 10), 8.0, "latency");
    // What is hardly used says nothing of where it ends.
    promises(&busy(90, 80 << 10), 8.0, "latency");
}

#[test]
fn cores_that_are_half_used_carry_twice_as_much() {
    let finding = throttled(395, 5.0, |s, look| {
        let near = &mut look.nodes[0];
        (near.process_cpu_ms, near.cores, near.os_cpu_percent) = (Some(s * 500), Some(1), Some(50));
    });
    promises(&finding, 2.0, "the cores of a (source), busy 50 %");
}

/// Disks and cores of both nodes take 0.3 of each chunk's turn of 50 ms (15 ms), the round trip 2 ms, the path 33 ms.
#[test]
fn a_path_that_chunks_take_two_thirds_of_their_turn_for_carries_half_as_much_again() {
    let unpaused_ms = 15 + 2 + 33;
    let finding = throttled(400 - unpaused_ms, 2.0, |_, _| ());
    promises(&finding, 50.0 / 33.0, "the path at about 127 MB/s");
    // Pauses that take more than all of their time tell nothing.
    promises(&throttled(410, 2.0, |_, _| ()), 8.0, "latency");
    // Where they take longer than their turn, they do not go there one after another.
    let finding = throttled(300, 2.0, |_, _| ());
    promises(&finding, 4.0, "each of which takes 100 ms without its pauses");
    // The embedded engine's source keeps no room for all of them, so that some are not on their way.
    let finding = throttled(400 - unpaused_ms, 2.0, |_, look| {
        let all = look.settings.as_mut().unwrap();
        all.extend(settings(&[("narrows.recovery.read_ahead", "24mb")]).unwrap());
    });
    promises(&finding, 8.0, "latency");
}

/// The field's source sends chunks one after another and pauses before each: 20 times 49 ms are nearly all of a second,
/// and 20 times 30 ms leave 0.4 of it.
#[test]
fn where_chunks_pause_one_after_another_only_the_rest_of_the_time_tells_what_comes_next() {
    for flavour in ["opensearch", "elasticsearch"] {
        let finding = throttled_on(flavour, 49, 5.0, |_, _| ());
        promises(&finding, 2.0, "latency at");
        assert!(finding.lift.unwrap().action.contains("step by step"));
        let finding = throttled_on(flavour, 30, 5.0, |_, _| ());
        promises(
            &finding,
            2.5,
            "what chunks sent one after another carry: they are on their way 40 % of the time",
        );
    }
}

#[test]
fn more_slots_bring_no_more_than_the_limiter_of_the_node_lets_through() {
    let waiting = WaitingCopy {
        index: "i".into(),
        state: "UNASSIGNED".into(),
        can_allocate: Some("throttled".into()),
        ..WaitingCopy::default()
    };
    let slots = |limit: &str| {
        let looks = looks_at(10_000_000, |look, s| {
            look.nodes = vec![node("a", s), node("b", s)];
            look.settings = settings(&[("indices.recovery.max_bytes_per_sec", limit)]);
            look.waiting = [waiting.clone()].into();
            look.round_trips = rtt(100.0);
        });
        let found = judge(&looks).findings;
        found.into_iter().find(|finding| finding.class == Class::AllocationSlots).unwrap()
    };
    promises(&slots("40mb"), 2.0, "the limiter of a node, its disks and its link");
    promises(&slots("15000000b"), 1.5, "the limiter at 15.0 MB/s a node");
}
