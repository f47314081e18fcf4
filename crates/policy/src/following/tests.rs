//! Against a leader that answers as it likes, and against a link in closed form.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use record::random::split_mix;
use world::Time;

use super::*;

/// What an operation takes in a request beside its source.
const FIXED_BYTES: u64 = 49;

/// One operation, of so many bytes in a request.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Op {
    seq_no: u64,
    bytes: u64,
}

impl Operation for Op {
    fn seq_nos(&self) -> Range<u64> {
        self.seq_no..self.seq_no + 1
    }

    fn encoded_bytes(&self) -> u64 {
        self.bytes
    }
}

fn op(seq_no: u64, source_bytes: u64) -> Op {
    Op { seq_no, bytes: FIXED_BYTES + source_bytes }
}

fn ops(range: std::ops::Range<u64>) -> Vec<Op> {
    range.map(|seq_no| op(seq_no, 40)).collect()
}

fn field(limits: Limits) -> ShardFollower<Op> {
    ShardFollower::new(Time(0), ReadWriteBudget::Field(limits), None, None)
}

fn answer(ops: Vec<Op>, leader_has: u64) -> Answer<Op> {
    let last = leader_has.checked_sub(1);
    Answer {
        ops,
        global_checkpoint: last,
        max_seq_no: last,
        served: Duration::ZERO,
        waited: Duration::ZERO,
        pressure: false,
    }
}

fn reads(follower: &mut ShardFollower<Op>, now: Time) -> Vec<ReadAsk> {
    let orders = std::iter::from_fn(|| follower.next(now));
    let read = |order| if let Order::Read(ask) = order { Some(ask) } else { None };
    orders.filter_map(read).collect()
}

#[test]
fn one_read_waits_at_a_leader_without_news() {
    let mut follower = field(Limits::default());
    let asked = reads(&mut follower, Time(0));
    let max_bytes = 32 << 20;
    assert_eq!(asked, [ReadAsk { from: 0, until: 0, max_ops: 5120, max_bytes }]);
    follower.read_done(Time(5), asked[0], answer(Vec::new(), 0));
    assert_eq!(reads(&mut follower, Time(5)), asked, "and again");
    assert_eq!(follower.counts().successful_read_requests, 1);
}

/// Its copies made durable what it asked for, and the leader has not answered.
#[test]
fn the_leader_must_keep_what_a_read_asks_for() {
    let mut follower = field(Limits::default());
    let asked = reads(&mut follower, Time(0));
    assert_eq!(follower.needed_from(), 0);
    follower.note_follower(Some(21), Some(21));
    follower.read_failed(Time(5), asked[0], "late".to_owned(), 1);
    assert_eq!(follower.needed_from(), 0, "it is tried again");
    follower.read_done(Time(9), asked[0], answer(Vec::new(), 22));
    assert_eq!(follower.needed_from(), 22);
}

/// Also one that began when nothing came any more: after a restart most indices of a follower are such.
#[test]
fn a_read_waits_the_longer_the_longer_nothing_has_come() {
    let at = |seconds: u64| Time(seconds * 1_000_000_000);
    let waits =
        |follower: &ShardFollower<Op>, seconds| follower.poll_timeout(at(seconds)).as_secs();
    let budget = ReadWriteBudget::Field(Limits::default());
    let mut follower = ShardFollower::new(at(100), budget, None, None);
    assert_eq!([100, 130, 300, 5000].map(|now| waits(&follower, now)), [60, 60, 200, 600]);
    let asked = reads(&mut follower, at(5000));
    follower.read_done(at(5000), asked[0], answer(ops(0..1), 1));
    assert_eq!([5000, 5090].map(|now| waits(&follower, now)), [60, 90]);

    let given = Limits { may_rest: false, ..Limits::default() };
    assert_eq!(waits(&field(given), 5000), 60, "as it was given");
}

#[test]
fn ranges_are_asked_for_up_to_the_leaders_checkpoint_and_the_limit() {
    let limits = Limits {
        max_read_request_operation_count: 10,
        max_outstanding_read_requests: 3,
        ..Limits::default()
    };
    let mut follower = field(limits);
    let first = reads(&mut follower, Time(0));
    follower.read_done(Time(1), first[0], answer(ops(0..10), 45));
    let spans = |asked: &[ReadAsk]| asked.iter().map(|a| (a.from, a.until)).collect::<Vec<_>>();
    let asked = reads(&mut follower, Time(1));
    assert_eq!(spans(&asked), [(10, 20), (20, 30), (30, 40)]);
    // A part of the second: the rest is asked for before anything new.
    follower.read_done(Time(2), asked[1], answer(ops(20..26), 45));
    assert_eq!(spans(&reads(&mut follower, Time(2))), [(26, 30)]);
    assert_eq!(follower.last_requested_seq_no(), Some(39));
    follower.read_done(Time(3), asked[0], answer(ops(10..20), 45));
    assert_eq!(spans(&reads(&mut follower, Time(3))), [(40, 45)]);
}

#[test]
fn a_full_buffer_stops_reads_and_room_starts_them() {
    let limits = Limits {
        max_read_request_operation_count: 10,
        max_write_buffer_count: 10,
        max_outstanding_write_requests: 1,
        max_write_request_operation_count: 5,
        ..Limits::default()
    };
    let mut follower = field(limits);
    let first = reads(&mut follower, Time(0));
    follower.read_done(Time(1), first[0], answer(ops(0..20), 100));
    let Some(Order::Write(number, written)) = follower.next(Time(1)) else { panic!("no write") };
    assert_eq!(written.len(), 5);
    assert_eq!(follower.next(Time(1)), None, "15 wait, 10 may");
    follower.written(Time(2), number, Some(4), Some(4));
    let Some(Order::Write(..)) = follower.next(Time(2)) else { panic!("no second write") };
    assert_eq!(follower.buffered().0, 10);
    assert_eq!(follower.next(Time(2)), None);
    follower.written(Time(3), number + 1, Some(9), Some(9));
    let orders = [follower.next(Time(3)), follower.next(Time(3))];
    assert!(matches!(orders, [Some(Order::Write(..)), Some(Order::Read(_))]), "{orders:?}");
}

#[test]
fn what_failed_is_tried_again_after_a_wait() {
    let mut follower = field(Limits::default());
    let asked = reads(&mut follower, Time(0));
    follower.read_failed(Time(0), asked[0], "gone".to_owned(), 1);
    assert_eq!(follower.next(Time(1)), None);
    let at = follower.wake_at().unwrap();
    assert_eq!(at, Time(0) + Duration::from_millis(50));
    assert_eq!(follower.next(at), Some(Order::Read(asked[0])));
    let exception = follower.exceptions().next().unwrap().clone();
    assert_eq!((exception.from, exception.retries, exception.exception.as_str()), (0, 1, "gone"));
    follower.read_done(at, asked[0], answer(ops(0..3), 3));
    assert_eq!(follower.exceptions().count(), 0);
    let Some(Order::Write(number, batch)) = follower.next(at) else { panic!("no write") };
    follower.write_failed(at, number, 0);
    assert_eq!(follower.next(at), Some(Order::Write(number, batch)), "the same, at once");
    assert_eq!(follower.counts().failed_write_requests, 1);
}

/// Whatever the order, the parts and the failures: every operation is written, once, and the buffer keeps its bound.
#[test]
fn every_operation_is_written_once() {
    for seed in 0..300 {
        let mut state = seed;
        let mut below = |n: u64| split_mix(&mut state) % n.max(1);
        let total = 200 + below(400);
        let budget = if seed % 2 == 0 {
            ReadWriteBudget::Field(Limits {
                max_read_request_operation_count: 1 + below(40),
                max_outstanding_read_requests: 1 + below(6),
                max_write_buffer_count: 1 + below(80),
                max_outstanding_write_requests: 1 + below(4),
                max_write_request_operation_count: 1 + below(40),
                ..Limits::default()
            })
        } else {
            ReadWriteBudget::adaptive(16_000)
        };
        let mut follower = ShardFollower::new(Time(0), budget, None, None);
        let (mut asked, mut writing) = (Vec::new(), BTreeMap::new());
        let (mut written, mut leader, mut now) = (BTreeSet::new(), 0, 0);
        for step in 0.. {
            assert!(step < 200_000, "seed {seed}: it does not end, {} written", written.len());
            now += 1_000_000 * (1 + below(20));
            leader = total.min(leader + below(30));
            while let Some(order) = follower.next(Time(now)) {
                match order {
                    Order::Read(ask) => asked.push(ask),
                    Order::Write(number, ops) => drop(writing.insert(number, ops)),
                }
            }
            if written.len() as u64 == total {
                break;
            }
            if !asked.is_empty() && below(3) > 0 {
                let ask = asked.swap_remove(below(asked.len() as u64) as usize);
                if below(5) == 0 {
                    follower.read_failed(Time(now), ask, "no".to_owned(), below(99));
                    continue;
                }
                let to = leader.min(ask.from + ask.max_ops).max(ask.from);
                let some = ask.from + below(to - ask.from + 1);
                let to = if some == ask.from { to.min(ask.from + 1) } else { some };
                follower.read_done(Time(now), ask, answer(ops(ask.from..to), leader));
            } else if let Some(number) = writing.keys().next().copied() {
                let batch: Arc<Vec<Op>> = writing.remove(&number).unwrap();
                if below(5) == 0 {
                    follower.write_failed(Time(now), number, below(99));
                    continue;
                }
                for op in batch.iter() {
                    assert!(written.insert(op.seq_no), "seed {seed}: {} came twice", op.seq_no);
                }
                follower.written(Time(now), number, None, None);
            }
        }
        assert_eq!(written.last(), Some(&(total - 1)), "seed {seed}");
    }
}

/// A leader behind a link: answers queue for its rate; the follower writes at a rate, too.
struct World {
    rate_bytes_per_s: f64,
    write_bytes_per_s: f64,
    op_source_bytes: u64,
    /// Operations that the leader has at a moment.
    leader: fn(f64) -> u64,
    /// While it is cut nothing is answered.
    cut_s: (f64, f64),
}

struct Seen {
    written: Vec<(f64, u64)>,
    memory_max_bytes: u64,
    lag_at_end: u64,
}

impl Seen {
    fn bytes_between(&self, from_s: f64, to_s: f64, op_bytes: u64) -> f64 {
        let inside = self.written.iter().filter(|(at, _)| (from_s..to_s).contains(at));
        (inside.map(|(_, ops)| ops).sum::<u64>() * op_bytes) as f64
    }
}

enum Happens {
    Arrives(ReadAsk),
    Answers(ReadAsk, Answer<Op>),
    Written(u64, u64, u64),
    Wake,
}

fn run(world: &World, budget: ReadWriteBudget, seconds: f64) -> Seen {
    let mut follower = ShardFollower::new(Time(0), budget, None, None);
    let mut events: BTreeMap<(u64, u64), Happens> = BTreeMap::from([((0, 0), Happens::Wake)]);
    let (mut number, mut link_free, mut disk_free) = (0, 0f64, 0f64);
    let mut seen = Seen { written: Vec::new(), memory_max_bytes: 0, lag_at_end: 0 };
    let mut wakes = BTreeSet::new();
    let half_s = RTT.as_secs_f64() / 2.0;
    let ns = |seconds: f64| (seconds * 1e9) as u64;
    while let Some(((at, _), event)) = events.pop_first() {
        let (now, now_s) = (Time(at), at as f64 / 1e9);
        if now_s > seconds {
            break;
        }
        let mut push = |at_s: f64, event: Happens| {
            number += 1;
            events.insert((ns(at_s).max(at), number), event);
        };
        match event {
            Happens::Wake => {}
            Happens::Arrives(ask) if (world.cut_s.0..world.cut_s.1).contains(&now_s) => {
                push(world.cut_s.1, Happens::Arrives(ask));
            }
            Happens::Arrives(ask) => {
                let has = (world.leader)(now_s);
                if has <= ask.from {
                    // It waits at the leader.
                    push(now_s + 0.001, Happens::Arrives(ask));
                } else {
                    let op_bytes = op(0, world.op_source_bytes).encoded_bytes();
                    let fit = (ask.max_bytes / op_bytes).clamp(1, ask.max_ops);
                    let to = has.min(ask.from + fit);
                    let some = (ask.from..to).map(|n| op(n, world.op_source_bytes)).collect();
                    let bytes = (to - ask.from) * op_bytes;
                    link_free = link_free.max(now_s) + bytes as f64 / world.rate_bytes_per_s;
                    push(link_free + half_s, Happens::Answers(ask, answer(some, has)));
                }
            }
            Happens::Answers(ask, answer) => {
                follower.read_done(now, ask, answer);
            }
            Happens::Written(write, ops, last) => {
                seen.written.push((now_s, ops));
                follower.written(now, write, Some(last), Some(last));
            }
        }
        while let Some(order) = follower.next(now) {
            number += 1;
            match order {
                Order::Read(ask) => {
                    events.insert((ns(now_s + half_s), number), Happens::Arrives(ask));
                }
                Order::Write(write, ops) => {
                    let bytes: u64 = ops.iter().map(Op::encoded_bytes).sum();
                    disk_free = disk_free.max(now_s) + bytes as f64 / world.write_bytes_per_s;
                    let last = ops.last().unwrap().seq_no;
                    let done = Happens::Written(write, ops.len() as u64, last);
                    events.insert((ns(disk_free), number), done);
                }
            }
        }
        if let Some(at) = follower.wake_at()
            && wakes.insert(at.0.max(now.0 + 100_000))
        {
            number += 1;
            events.insert((at.0.max(now.0 + 100_000), number), Happens::Wake);
        }
        seen.memory_max_bytes = seen.memory_max_bytes.max(follower.memory_bytes());
        seen.lag_at_end = (world.leader)(now_s)
            - follower.follower_global_checkpoint().map_or(0, |seq_no| seq_no + 1);
    }
    seen
}

const GBIT: f64 = 125e6;
const RTT: Duration = Duration::from_millis(100);
/// Large documents over a path that nothing cuts.
const WORLD: World = World {
    rate_bytes_per_s: GBIT,
    write_bytes_per_s: 10.0 * GBIT,
    op_source_bytes: 38_000,
    leader: |_| 100_000_000,
    cut_s: (0.0, 0.0),
};

/// More than any link carries: at least 90 % of it is filled, for documents of a point and of an article.
#[test]
fn the_adaptive_pace_fills_the_link_whatever_the_documents_size() {
    for (source_bytes, rate) in [(40, GBIT / 10.0), (200, GBIT / 4.0), (38_000, GBIT)] {
        let world = World { rate_bytes_per_s: rate, op_source_bytes: source_bytes, ..WORLD };
        let seen = run(&world, ReadWriteBudget::adaptive(128 << 20), 6.0);
        let op_bytes = op(0, source_bytes).encoded_bytes();
        let rate_seen = seen.bytes_between(2.0, 6.0, op_bytes) / 4.0;
        assert!(
            rate_seen > 0.9 * rate,
            "{source_bytes}: {:.1} of {:.1} MB/s",
            rate_seen / 1e6,
            rate / 1e6
        );
    }
}

/// A follower that writes at half of what the link carries reads no more than it has memory for.
#[test]
fn a_slow_follower_stays_within_its_memory() {
    let world = World {
        rate_bytes_per_s: GBIT / 4.0,
        write_bytes_per_s: GBIT / 8.0,
        op_source_bytes: 1000,
        ..WORLD
    };
    let memory = 16 << 20;
    let seen = run(&world, ReadWriteBudget::adaptive(memory), 6.0);
    // The last read may bring twice what it was thought to.
    assert!(seen.memory_max_bytes <= memory + (4 << 20), "{}", seen.memory_max_bytes);
    let op_bytes = op(0, 1000).encoded_bytes();
    let rate_seen = seen.bytes_between(2.0, 6.0, op_bytes) / 4.0;
    assert!(rate_seen > 0.9 * world.write_bytes_per_s, "{rate_seen}");
}

/// Writes at a fifth of the link: the lag is a round trip of them, not a setting; and a cut is caught up after at the
/// link's rate.
#[test]
fn the_lag_is_that_of_the_path() {
    let world = World {
        rate_bytes_per_s: GBIT / 10.0,
        write_bytes_per_s: GBIT,
        op_source_bytes: 200,
        leader: |at_s| (at_s * 10_000.0) as u64,
        cut_s: (5.0, 15.0),
    };
    let seen = run(&world, ReadWriteBudget::adaptive(64 << 20), 4.9);
    assert!(seen.lag_at_end < 3_000, "{} operations at 10 000 a second", seen.lag_at_end);
    let seen = run(&world, ReadWriteBudget::adaptive(64 << 20), 22.0);
    assert!(seen.lag_at_end < 3_000, "{} operations after the cut", seen.lag_at_end);
    let op_bytes = op(0, 200).encoded_bytes();
    let back = seen.bytes_between(15.0, 17.0, op_bytes) / 2.0;
    assert!(back > 0.8 * world.rate_bytes_per_s, "{:.1} MB/s after the cut", back / 1e6);
}

/// What the field's defaults do with large documents over a long path: 12 reads of 32 MB are more than any link holds.
#[test]
fn the_fields_defaults_keep_up_with_large_documents_at_the_price_of_memory() {
    let seen = run(&WORLD, ReadWriteBudget::Field(Limits::default()), 6.0);
    let op_bytes = op(0, 38_000).encoded_bytes();
    let rate_seen = seen.bytes_between(3.0, 6.0, op_bytes) / 3.0;
    assert!(rate_seen > 0.8 * GBIT, "{:.1} MB/s", rate_seen / 1e6);
}
