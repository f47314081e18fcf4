//! DCP connections, from constructed statistics.

use insight::diagnosis::{By, Class, Diagnosis};
use record::bucket::{BucketNode, DcpConnection};
use record::observation::Observation;

use super::{against, judge, only};
use crate::common::looks;

const WINDOW: u64 = 10 << 20;
const NAME: &str = "replication:ns_1@a->ns_1@b:travel";

/// A producer that sent 1000 items of 1 kB a second and has 100 000 and more left, and waited for so much of each
/// second for its window and for its own data.
fn producer(s: u64, window_ms: u64, data_ms: u64) -> DcpConnection {
    DcpConnection {
        name: NAME.to_owned(),
        kind: "producer".to_owned(),
        items_sent: Some(s * 1000),
        items_remaining: Some(200_000 - s * 1000),
        bytes_sent: Some(s * 1_000_000 + WINDOW),
        acked_bytes: Some(s * 1_000_000),
        unacked_bytes: Some(if window_ms > 0 { WINDOW } else { 0 }),
        max_buffer_bytes: Some(WINDOW),
        flow_control: Some(true),
        paused: Some(true),
        paused_for: None,
        paused_ms: [
            ("BufferLogFull".to_owned(), 5000 + s * window_ms),
            ("ReadyListEmpty".to_owned(), 700 + s * data_ms),
        ]
        .into(),
        streams: 4,
        ..DcpConnection::default()
    }
}

fn node(s: u64, name: &str, used: u64, one: DcpConnection) -> BucketNode {
    BucketNode {
        node: name.to_owned(),
        answered_ms: s as f64 * 1000.0 + 7.0,
        mem_used_bytes: Some(used),
        quota_bytes: Some(100),
        cursors_dropped: Some(s),
        connections: vec![one],
        ..BucketNode::default()
    }
}

fn look(buckets: Vec<BucketNode>) -> Observation {
    Observation { buckets, ..Observation::default() }
}

fn of_producer(at: impl Fn(u64) -> DcpConnection) -> Vec<(f64, Observation)> {
    looks(|s| look(vec![node(s, "a:11210", 50, at(s))]))
}

/// The producer's window is full, and its consumer is on a node that was looked at, too.
fn with_consumer(used: u64, backoffs: impl Fn(u64) -> u64) -> Vec<(f64, Observation)> {
    looks(|s| {
        let consumer = DcpConnection {
            name: NAME.to_owned(),
            kind: "consumer".to_owned(),
            acked_bytes: Some(s * 1_000_000),
            backoffs: Some(backoffs(s)),
            ..DcpConnection::default()
        };
        let there = node(s, "b:11210", used, consumer);
        look(vec![node(s, "a:11210", 50, producer(s, 800, 100)), there])
    })
}

fn well(diagnosis: &Diagnosis) -> &str {
    assert!(diagnosis.findings.is_empty(), "{diagnosis:#?}");
    assert!(diagnosis.headline.starts_with("healthy"), "{}", diagnosis.headline);
    let [sentence] = &diagnosis.healthy[..] else { panic!("{diagnosis:#?}") };
    sentence
}

#[test]
fn a_full_window_is_the_consumers() {
    let finding = only(&of_producer(|s| producer(s, 800, 100)));
    assert_eq!((finding.class, finding.place.as_str()), (Class::DcpConsumer, NAME));
    let gain = finding.gain.as_ref().unwrap();
    assert!((gain.factor - 5.0).abs() < 0.01, "{gain:?}");
    // 10 MiB are on the way at 1 MB/s.
    assert!(finding.doubt.as_ref().unwrap().contains("10.5 s"), "{:?}", finding.doubt);
    assert_eq!(against(&finding, Class::DcpMemory).0, By::Untold);
    assert_eq!(against(&finding, Class::DcpProducer).0, By::Figure);
    let left = finding.evidence.iter().find(|line| line.field == "items_remaining").unwrap();
    // 190 000 items at 1000 a second, give or take a tenth.
    assert!(left.value.ends_with("sent in 2:53 to 3:31"), "{}", left.value);
}

#[test]
fn a_window_that_is_full_now_and_then_is_not() {
    let finding = only(&of_producer(|s| producer(s, 300, 100)));
    assert_eq!(finding.class, Class::Unknown);
    assert!(against(&finding, Class::DcpConsumer).1.contains("30 %"), "{finding:#?}");
    // Pauses told to a second alone are no proof: no look found the window full.
    let finding =
        only(&of_producer(|s| DcpConnection { unacked_bytes: Some(0), ..producer(s, 600, 100) }));
    assert_eq!(finding.class, Class::Unknown);
    assert!(against(&finding, Class::DcpConsumer).1.contains("of the looks"), "{finding:#?}");
}

#[test]
fn a_consumer_that_is_short_of_memory_is_told_from_a_slow_one() {
    let short = only(&with_consumer(94, |s| s * 9));
    assert_eq!((short.class, short.place.as_str()), (Class::DcpMemory, "b:11210"));
    assert!(short.evidence.iter().any(|line| line.value == "94 % on b:11210"), "{short:#?}");
    assert_eq!(against(&short, Class::DcpConsumer).0, By::Weaker);
    let slow = only(&with_consumer(50, |s| s * 9));
    assert_eq!(slow.class, Class::DcpConsumer);
    let (by, why) = against(&slow, Class::DcpMemory);
    assert!(by == By::Figure && why.contains("50 %"), "{why}");
    let mut silent = with_consumer(94, |_| 0);
    silent.iter_mut().for_each(|(_, look)| look.buckets[1].connections[0].backoffs = None);
    assert_eq!(against(&only(&silent), Class::DcpMemory).0, By::Untold);
    // Full as buckets are, and nothing was left for later.
    assert_eq!(only(&with_consumer(94, |_| 9)).class, Class::DcpConsumer);
}

#[test]
fn a_producer_that_waits_for_memory_says_so() {
    let finding = only(&of_producer(|s| {
        let mut one = producer(s, 0, 100);
        one.paused_ms.insert("OutOfMemory".to_owned(), s * 700);
        one
    }));
    assert_eq!((finding.class, finding.place.as_str()), (Class::DcpMemory, "a:11210"));
}

#[test]
fn a_producer_that_reads_from_disk_and_has_nothing_ready() {
    let with = |full, window_ms, data_ms| {
        only(&of_producer(|s| DcpConnection {
            backfilling: 2,
            backfill_full: Some(full),
            ..producer(s, window_ms, data_ms)
        }))
    };
    let finding = with(false, 0, 900);
    assert_eq!((finding.class, finding.place.as_str()), (Class::DcpProducer, "a:11210"));
    assert!(finding.evidence.iter().any(|line| line.value == "+10"), "cursors: {finding:#?}");
    assert_eq!(against(&finding, Class::DcpConsumer).0, By::Figure);
    // Parts come from disk, and each fills the window until the consumer has it: the disk holds all the same.
    let finding = with(false, 610, 370);
    assert_eq!(finding.class, Class::DcpProducer);
    assert!(against(&finding, Class::DcpConsumer).1.contains("open for 37 %"), "{finding:#?}");
    assert_eq!(with(true, 610, 370).class, Class::DcpConsumer);
    assert_eq!(only(&of_producer(|s| producer(s, 610, 370))).class, Class::DcpConsumer);
    // Neither for most of the time: nobody holds for sure.
    assert_eq!(with(false, 300, 300).class, Class::Unknown);
    // What was read waits to be sent, or nothing reads at all: that is not the disk.
    assert_eq!(with(true, 0, 900).class, Class::Unknown);
    assert_eq!(only(&of_producer(|s| producer(s, 0, 900))).class, Class::Unknown);
}

#[test]
fn what_is_idle_or_keeps_up_is_well() {
    let left = |s, items_sent, items_remaining| DcpConnection {
        items_sent: Some(items_sent),
        items_remaining: Some(items_remaining),
        bytes_sent: Some(items_sent * 1000),
        ..producer(s, 900, 900)
    };
    assert!(well(&judge(&of_producer(|s| left(s, 5, 0)))).contains("nothing is written"));
    assert!(well(&judge(&of_producer(|s| left(s, s * 1000, 0)))).contains("up to date at 1.00"));
    // It lags by what was written in the last moment, now and then, or all the time.
    let now_and_then = |s: u64| left(s, s * 1000, 900 * u64::from(s == 3 || s == 10));
    assert!(well(&judge(&of_producer(now_and_then))).contains("up to date"));
    let behind = judge(&of_producer(|s| left(s, s * 1000, 900)));
    assert!(well(&behind).contains("900 ms behind"), "{behind:#?}");
    // Fast, and nothing that is told holds it.
    let fast = judge(&of_producer(|s| DcpConnection {
        bytes_sent: Some(s * 90_000_000),
        ..producer(s, 100, 100)
    }));
    assert!(well(&fast).contains("90.0 MB/s"), "{fast:#?}");
    let none = judge(&looks(|_| look(vec![BucketNode::default()])));
    assert!(none.findings.is_empty() && none.headline.contains("no DCP connection"));
}

#[test]
fn what_is_not_told_is_unknown() {
    let silent = |s| DcpConnection { paused_ms: [].into(), paused: None, ..producer(s, 0, 0) };
    let finding = only(&of_producer(silent));
    assert_eq!(finding.class, Class::Unknown);
    assert!(finding.sentence.contains("not told"), "{}", finding.sentence);
    assert_eq!(against(&finding, Class::DcpProducer).0, By::Untold);
    // What is left is that of the looks that tell it.
    let late = |s| DcpConnection {
        items_remaining: producer(s, 800, 100).items_remaining.filter(|_| s > 0),
        ..producer(s, 800, 100)
    };
    let left = only(&of_producer(late)).evidence.remove(1).value;
    assert!(left.starts_with("199000 items were left at first and 190000 at last: sent"), "{left}");
    // Servers that tell no pauses tell the window all the same.
    let full = |s| DcpConnection { unacked_bytes: Some(WINDOW), ..silent(s) };
    assert_eq!(only(&of_producer(full)).class, Class::DcpConsumer);
    // Without flow control nothing is acknowledged.
    let free = |s| DcpConnection { flow_control: Some(false), ..producer(s, 900, 0) };
    assert_eq!(only(&of_producer(free)).class, Class::Unknown);
    let untold = |s| DcpConnection { items_remaining: None, ..producer(s, 900, 0) };
    assert!(well(&judge(&of_producer(untold))).contains("does not tell"));
}

#[test]
fn a_connection_that_was_opened_again_counts_from_there() {
    // Before, it waited for its window all the time.
    let again = |s: u64| match s {
        0..=5 => DcpConnection { items_sent: Some(900_000), ..producer(s, 1000, 0) },
        _ => DcpConnection { backfilling: 4, ..producer(s, 0, 900) },
    };
    assert_eq!(only(&of_producer(again)).class, Class::DcpProducer);
}

/// The trap: nothing is left to send, and the rebalance waits for the disk of the node that has it all.
#[test]
fn a_node_with_much_to_write_is_told_where_nothing_is_left_to_send() {
    let with = |waiting: fn(u64) -> u64| {
        judge(&looks(|s| {
            let sent = DcpConnection { items_remaining: Some(0), ..producer(s, 0, 1000) };
            let disk_queue_items = Some(waiting(s));
            look(vec![BucketNode { disk_queue_items, ..node(s, "b:11210", 50, sent) }])
        }))
    };
    let long = with(|s| 5_000_000 - s * 1000);
    assert!(long.findings.is_empty(), "{long:#?}");
    let [said] = &long.notes[..] else { panic!("{long:#?}") };
    let (now, then) = ("4\u{202f}990\u{202f}000", "5\u{202f}000\u{202f}000");
    assert!(said.starts_with(&format!("{now} items wait for the disk of b:11210")), "{said}");
    assert!(said.contains(&format!("{then} at first")), "{said}");
    assert_eq!(long.headline, "healthy: 1 DCP connection, and nothing holds it");
    assert!(with(|_| 20_000).notes.is_empty());
}
