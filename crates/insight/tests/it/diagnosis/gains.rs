//! What lifting a limit is promised to bring, where another one is near.

use insight::diagnosis::{Class, Finding, Next};
use record::observation::{AnswerTime, Observation, WaitingCopy};

use super::{judge, looks_at, only};
use crate::common::{CHUNK_SIZE, CHUNKS, MAX_BYTES, MB, node, rtt, settings, waiting};

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
    let finding = only(&looks_at(RATE, |look, s| {
        look.cluster.flavour = flavour.into();
        look.settings = settings(&[(MAX_BYTES, "80mb"), (CHUNK_SIZE, "4mb"), (CHUNKS, "8")]);
        look.recoveries[0].source_throttle_ms = Some(s * paused_ms * 20);
        look.round_trips = rtt(rtt_ms);
        change(s, look);
    }));
    assert_eq!(finding.class, Class::RateLimit);
    finding
}

#[track_caller]
fn promises(finding: &Finding, factor: f64, class: Option<Class>, next: &str) {
    let gain = finding.gain.as_ref().unwrap();
    assert!((gain.factor / factor - 1.0).abs() < 0.01, "{gain:?} {factor}");
    assert!(finding.next.sentence.as_ref().unwrap().contains(next), "{:?}", finding.next);
    assert_eq!(finding.next.class, class, "{:?}", finding.next);
}

/// That a limit of a class is named as the next, which holds at so many times the rate of today.
#[track_caller]
fn names(finding: &Finding, class: Class, factor: f64) {
    let Next { class: named, factor: at, .. } = &finding.next;
    assert_eq!(*named, Some(class), "{finding:?}");
    assert!((at.unwrap() / factor - 1.0).abs() < 0.01, "{:?} {factor}", finding.next);
}

/// Chunks that pause nearly all of their time, and nodes that idle: eight times the limit.
#[test]
fn where_nothing_else_is_near_a_limit_is_worth_its_whole_raise() {
    let finding = throttled(395, 5.0, |_, _| ());
    promises(&finding, 8.0, Some(Class::Latency), "latency at");
    assert!(!finding.next.sentence.unwrap().contains("for all that"), "there is no other");
    assert!(!finding.gain.unwrap().formula.contains("first"));
}

/// The trap: busy nodes lengthen what was the shortest of a few tries, so that latency would hold at another rate with
/// each look.
#[test]
fn a_rate_that_round_trips_do_not_tell_is_not_named() {
    for (rtts_ms, cpu_percent, next) in [
        ([5.0, 6.0], 10, "latency at"),
        ([5.0, 20.0], 10, "at a rate that is not told"),
        ([5.0, 6.0], 75, "at a rate that is not told"),
        ([105.0, 106.0], 75, "latency at"),
    ] {
        let finding = throttled(395, 5.0, |s, look| {
            look.round_trips = rtt(rtts_ms[(s % 2) as usize]);
            look.nodes[0].os_cpu_percent = Some(cpu_percent);
        });
        assert_eq!(finding.next.class, Some(Class::Latency), "{:?}", finding.next);
        let said = finding.next.sentence.unwrap();
        assert!(said.contains(next), "{rtts_ms:?}, {cpu_percent} %: {said}");
    }
}

/// The trap: the rest of the time is so short that a look more or less makes twice as much of it, and four times.
#[test]
fn pauses_that_take_nearly_all_of_the_time_promise_no_more_than_ten_times_the_limit() {
    let promised = |paused_ms: u64| {
        let finding = only(&looks_at(1 << 20, |look, s| {
            look.cluster.flavour = "narrows".into();
            // Too little room for all chunks on the way, so that their time says nothing of the path.
            look.settings = settings(&[
                (MAX_BYTES, "1mb"),
                (CHUNK_SIZE, "64kb"),
                (CHUNKS, "8"),
                ("narrows.recovery.read_ahead", "256kb"),
            ]);
            look.recoveries[0].source_throttle_ms = Some(s * paused_ms * 8);
            look.round_trips = rtt(0.4);
        }));
        assert_eq!(finding.class, Class::RateLimit);
        assert_eq!(finding.lift.unwrap().to.as_deref(), Some("40mb"));
        let gain = finding.gain.unwrap();
        assert!((gain.factor - 10.0).abs() < 0.01, "{gain:?}");
        gain.formula
    };
    assert!(promised(900).contains("chunks pause 90 % of their time; if"), "{}", promised(900));
    let most = promised(976);
    assert!(most.contains("chunks pause 98 % of their time, of which 90 % count;"), "{most}");
}

/// The trap: a node that stands still for a part of the time keeps chunks as a slow path would.
#[test]
fn while_a_node_stands_still_the_time_of_chunks_lowers_no_promise() {
    let answers = |late_ms: f64| {
        throttled(200, 5.0, move |_, look| {
            let answer = AnswerTime { node: "a".into(), ms: late_ms + 2.0, again_ms: 2.0 };
            look.answers = vec![answer];
        })
    };
    let runs = answers(0.0);
    let gain = runs.gain.unwrap();
    assert!((gain.factor - 2.0).abs() < 0.02 && gain.formula.contains("8 chunks"), "{gain:?}");
    assert_eq!(runs.doubt, None);
    let still = answers(400.0);
    promises(&still, 8.0, None, "not known while a stands still");
    assert!(still.doubt.unwrap().starts_with("a stands still for a part of the time"));
    let late = "a: 11 of 11 answers came 100 ms or more late, up to 400 ms";
    assert!(still.evidence.iter().any(|line| line.value == late), "{:#?}", still.evidence);
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
    let near = busy(667, 80 << 10);
    promises(
        &near,
        1.5,
        Some(Class::Disk),
        "the disk of b (target), busy 67 % of the time already",
    );
    // Half of what it moves is somebody else's, who goes on: of 0.6 the recovery has 0.3, and 0.7 is there for it.
    promises(&busy(600, 160 << 10), 0.7 / 0.3, Some(Class::Disk), "the disk of b");
    // What is busy mostly for somebody else may have more room for the recovery than what is left.
    promises(&busy(950, 400 << 10), 8.0, Some(Class::Latency), "latency");
    // What is hardly used says nothing of where it ends.
    promises(&busy(90, 80 << 10), 8.0, Some(Class::Latency), "latency");
}

/// While it sends or waits for the kernel to write, such a disk idles: it is busy for nine tenths of the time at most.
#[test]
fn a_disk_that_chunks_meet_one_after_another_is_promised_to_be_busy_for_less_than_all_of_the_time()
{
    let busy = |flavour: &str, io_ms: u64| {
        throttled_on(flavour, 30, 5.0, move |s, look| {
            let far = &mut look.nodes[1];
            (far.io_time_ms, far.write_kib) = (Some(s * io_ms), Some(s * (80 << 10)));
            far.read_kib = Some(0);
        })
    };
    for flavour in ["opensearch", "elasticsearch"] {
        let between = "the disk of b (target), busy 60 % of the time already, which carries 1.33 to 1.67 times";
        promises(&busy(flavour, 600), 0.9 / 0.6, Some(Class::Disk), between);
    }
}

/// Twice 700 000 bytes are no round value: 1536 KiB are advised, and not 2 MiB, which are three times as much. Where a
/// lump made more of the rate, it is the limit that the next one is compared with.
#[test]
fn what_is_promised_of_a_limit_is_what_the_value_that_is_advised_brings() {
    let limit_bytes_per_s = 700_000;
    let finding = only(&looks_at(limit_bytes_per_s * 11 / 10, |look, s| {
        look.settings = settings(&[(MAX_BYTES, "700000b")]);
        look.recoveries[0].source_throttle_ms = Some(s * 980);
        look.round_trips = rtt(0.4);
    }));
    assert_eq!(finding.class, Class::RateLimit);
    assert_eq!(finding.lift.unwrap().to.as_deref(), Some("1536kb"));
    let factor = finding.gain.unwrap().factor;
    assert!((factor - f64::from(1536 << 10) / 700_000.0).abs() < 1e-9, "{factor}");
}

#[test]
fn cores_that_are_half_used_carry_twice_as_much() {
    let finding = throttled(395, 5.0, |s, look| {
        let near = &mut look.nodes[0];
        (near.process_cpu_ms, near.cores, near.os_cpu_percent) = (Some(s * 500), Some(1), Some(50));
    });
    promises(&finding, 2.0, Some(Class::Cpu), "the cores of a (source), busy 50 %");
}

/// Disks and cores of both nodes take 0.3 of each chunk's turn of 50 ms (15 ms), the round trip 2 ms, the path 33 ms.
#[test]
fn a_path_that_chunks_take_two_thirds_of_their_turn_for_carries_half_as_much_again() {
    let unpaused_ms = 15 + 2 + 33;
    let finding = throttled(400 - unpaused_ms, 2.0, |_, _| ());
    promises(&finding, 50.0 / 33.0, Some(Class::Bandwidth), "the path at about 127 MB/s");
    // Pauses that take more than all of their time tell nothing.
    promises(&throttled(410, 2.0, |_, _| ()), 8.0, Some(Class::Latency), "latency");
    // Where they take longer than their turn, they do not go there one after another.
    let finding = throttled(300, 2.0, |_, _| ());
    let each = "each of which takes 100 ms without its pauses";
    promises(&finding, 4.0, Some(Class::Bandwidth), each);
    // The embedded engine's source keeps no room for all of them, so that some are not on their way.
    let finding = throttled(400 - unpaused_ms, 2.0, |_, look| {
        let all = look.settings.as_mut().unwrap();
        all.extend(settings(&[("narrows.recovery.read_ahead", "24mb")]).unwrap());
    });
    promises(&finding, 8.0, Some(Class::Latency), "latency");
}

/// The field's source sends chunks one after another and pauses before each: 20 times 49 ms are nearly all of a second,
/// and 20 times 30 ms leave 0.4 of it.
#[test]
fn where_chunks_pause_one_after_another_only_the_rest_of_the_time_tells_what_comes_next() {
    for flavour in ["opensearch", "elasticsearch"] {
        let finding = throttled_on(flavour, 49, 5.0, |_, _| ());
        promises(&finding, 2.0, Some(Class::Latency), "latency at");
        assert!(finding.lift.unwrap().action.contains("step by step"));
        let finding = throttled_on(flavour, 30, 5.0, |_, _| ());
        promises(
            &finding,
            2.5,
            None,
            "what chunks sent one after another carry: they are on their way 40 % of the time",
        );
    }
}

#[test]
fn more_slots_bring_no_more_than_the_limiter_of_the_node_lets_through() {
    let slots = |limit: &str, copies: u32| {
        let looks = looks_at(10_000_000, |look, s| {
            look.nodes = vec![node("a", s), node("b", s)];
            look.settings = settings(&[(MAX_BYTES, limit)]);
            let copy = |shard| WaitingCopy { shard, ..waiting("throttled", &[]) };
            look.waiting = (0..copies).map(copy).collect();
            look.round_trips = rtt(100.0);
        });
        let found = judge(&looks).findings;
        found.into_iter().find(|finding| finding.class == Class::AllocationSlots).unwrap()
    };
    for (copies, factor) in [(1, 1.5), (2, 2.0), (700, 2.0)] {
        let next = "the limiter of a node, its disks and its link";
        promises(&slots("40mb", copies), factor, None, next);
    }
    promises(
        &slots("15000000b", 2),
        1.5,
        Some(Class::RateLimit),
        "the limiter at 15.0 MB/s a node",
    );
}

/// The trap: other nodes have room, and the one that would send to them all is full.
#[test]
fn more_slots_promise_nothing_where_the_node_of_the_primaries_is_full() {
    let slots = |primary: &str| {
        let found = judge(&looks_at(40 << 20, |look, s| {
            look.recoveries[0].source_throttle_ms = Some(s * 900);
            look.nodes[0].throttle_ms = Some(s * 900);
            let says = [(primary, "same_shard", "NO"), ("c", "throttling", "THROTTLE")];
            look.waiting = [waiting("throttled", &says)].into();
        }));
        found.findings.into_iter().find(|one| one.class == Class::AllocationSlots).unwrap()
    };
    let full = slots("a");
    assert!(full.sentence.contains("what rate limit lets through"), "{}", full.sentence);
    assert_eq!(full.gain, None);
    assert!(slots("d").gain.is_some(), "another node sends them");
}

#[test]
fn more_slots_are_doubted_where_those_that_are_taken_may_fill_a_link() {
    let doubt = |rate: u64| {
        let found = judge(&looks_at(rate, |look, _| {
            look.settings = settings(&[(MAX_BYTES, "-1")]);
            look.round_trips = rtt(0.2);
            look.waiting = [waiting("throttled", &[("b", "throttling", "THROTTLE")])].into();
        }));
        let slots = found.findings.into_iter().find(|one| one.class == Class::AllocationSlots);
        slots.unwrap().doubt
    };
    let fast = doubt(60 * MB);
    assert!(fast.is_some_and(|said| said.contains("move 60.0 MB/s one way already")));
    assert_eq!(doubt(20 * MB), None);
}

/// Of the 100 ms that a chunk takes without its pauses, the round trip takes 80, or 57 beside 35 of cores and disks.
#[test]
fn chunks_are_of_latency_where_they_mostly_travel_and_of_no_class_where_nothing_takes_most() {
    let each = "each of which takes 100 ms without its pauses";
    promises(&throttled(300, 80.0, |_, _| ()), 4.0, Some(Class::Latency), each);
    let finding = throttled(300, 57.0, |s, look| {
        look.nodes[0].process_cpu_ms = Some(s * 500);
    });
    promises(&finding, 4.0, None, each);
}

/// 12 MB/s over a path of 20 ms, where 5 chunks of 512 KiB would let 131 MB/s through.
fn full_path(limit: &str, io_ms: u64) -> Finding {
    only(&looks_at(12 * MB, |look, s| {
        look.settings = settings(&[(MAX_BYTES, limit), (CHUNKS, "5")]);
        look.round_trips = rtt(20.0);
        let far = &mut look.nodes[1];
        (far.io_time_ms, far.read_kib) = (Some(s * io_ms), Some(0));
        far.write_kib = Some(s * 12 * MB / 1024);
    }))
}

#[test]
fn what_promises_nothing_names_the_nearest_limit_behind_it_all_the_same() {
    let limit_bytes_per_s = f64::from(40 << 20);
    let path = full_path("-1", 50);
    assert_eq!(path.class, Class::Bandwidth);
    names(&path, Class::Latency, 5.0 * f64::from(512 << 10) / 0.02 / 12e6);
    names(&full_path("40mb", 50), Class::RateLimit, limit_bytes_per_s / 12e6);
    names(&full_path("40mb", 500), Class::Disk, 1.8);
}

#[test]
fn the_disk_that_is_lifted_is_not_its_own_next_limit() {
    let disk = full_path("40mb", 900);
    assert_eq!((disk.class, disk.place.as_str()), (Class::Disk, "b"));
    names(&disk, Class::RateLimit, f64::from(40 << 20) / 12e6);
    assert!(disk.next.sentence.unwrap().contains("max_bytes_per_sec"));
    let alone = full_path("-1", 900);
    assert_eq!((alone.class, alone.next), (Class::Disk, Next::default()));
}

#[test]
fn for_programs_the_next_limit_stays_a_sentence_and_its_class_stands_beside_it() {
    let printed = serde_json::to_value(full_path("40mb", 500)).unwrap();
    let next = "the disk of b (target), busy 50 % of the time already, which carries 1.60 to 2.00 times as much";
    assert_eq!(printed["next"], next);
    assert_eq!(printed["next_class"], "disk");
    assert!(printed["next_factor"].is_number(), "{printed}");
    let none = serde_json::to_value(full_path("-1", 900)).unwrap();
    for key in ["next", "next_class", "next_factor"] {
        assert_eq!(none.get(key), Some(&serde_json::Value::Null), "{none}");
    }
}
