//! A closed-form link for the tests: requests travel, the source works and is throttled, answers queue
//! first in, first out for the link's rate, and travel back. Everything in virtual time.

use std::collections::BTreeMap;
use std::time::Duration;

use world::Time;

use super::chunk::{ChunkRequest, Delivery, FileSpan};
use super::chunk_scheduler::{ChunkScheduler, SchedulerConfig};
use crate::rate_limiter::RateLimiter;

/// A value that changes at moments: `(from, value)`, in order, the first from zero.
pub(super) type Steps<T> = Vec<(f64, T)>;

fn value_at<T: Copy>(steps: &Steps<T>, now: Time) -> T {
    let reached = steps.iter().rev().find(|(from_s, _)| now.0 as f64 >= from_s * 1e9);
    reached.expect("the first step begins at zero").1
}

pub(super) struct Link {
    pub(super) rate_bytes_per_s: Steps<f64>,
    pub(super) rtt: Steps<Duration>,
    /// Time that the source takes over a chunk, any number at once.
    pub(super) server_time: Duration,
    /// Up to this much more, different for each chunk, so that chunks overtake one another.
    pub(super) jitter: Duration,
    pub(super) throttle: RateLimiter,
    /// Whether schedulers are asked again at the time they wish.
    pub(super) wakes: bool,
}

impl Link {
    pub(super) fn new(rate_bytes_per_s: f64, rtt: Duration) -> Self {
        Link {
            rate_bytes_per_s: vec![(0.0, rate_bytes_per_s)],
            rtt: vec![(0.0, rtt)],
            server_time: Duration::ZERO,
            jitter: Duration::ZERO,
            throttle: RateLimiter::new(None),
            wakes: true,
        }
    }
}

pub(super) struct Flow {
    pub(super) config: SchedulerConfig,
    pub(super) files: Vec<FileSpan>,
    pub(super) starts_at: Time,
    /// From when until when users suffer.
    pub(super) pressure: Option<(Time, Time)>,
    /// Whether the round trip is known from a ping when the flow begins.
    pub(super) pinged: bool,
}

impl Flow {
    pub(super) fn new(config: SchedulerConfig, lens: &[u64]) -> Self {
        let files = lens.iter().map(|&len| FileSpan { len, have: 0 }).collect();
        Flow { config, files, starts_at: Time(0), pressure: None, pinged: false }
    }
}

/// What one flow did. The traces hold a value after each event of the flow.
#[derive(Default)]
pub(super) struct Trace {
    /// None if it did not finish.
    pub(super) finished_at: Option<Time>,
    pub(super) in_flight_bytes: Vec<(Time, u64)>,
    pub(super) in_flight_chunks: Vec<(Time, usize)>,
    pub(super) arrived: Vec<(Time, u64)>,
    pub(super) chunk_bytes: u64,
}

impl Trace {
    pub(super) fn bytes_between(&self, from_s: f64, to_s: f64) -> u64 {
        let inside = |t: Time| (from_s * 1e9..to_s * 1e9).contains(&(t.0 as f64));
        self.arrived.iter().filter(|(t, _)| inside(*t)).map(|(_, bytes)| bytes).sum()
    }

    pub(super) fn in_flight_max_between(&self, from_s: f64, to_s: f64) -> u64 {
        let inside = |t: Time| (from_s * 1e9..to_s * 1e9).contains(&(t.0 as f64));
        self.in_flight_bytes.iter().filter(|(t, _)| inside(*t)).map(|(_, b)| *b).max().unwrap_or(0)
    }
}

enum Event {
    Wake { flow: usize },
    Asked { flow: usize, request: ChunkRequest, requested_at: Time },
    Served { flow: usize, request: ChunkRequest, requested_at: Time, throttled: Duration },
    Arrived { flow: usize, request: ChunkRequest, requested_at: Time, throttled: Duration },
}

struct Sim {
    link: Link,
    flows: Vec<(Flow, ChunkScheduler, Trace)>,
    events: BTreeMap<(Time, u64), Event>,
    number: u64,
    link_free_at: Time,
}

/// Runs every flow to its end, or to `until`.
pub(super) fn run(link: Link, flows: Vec<Flow>, until: Time) -> Vec<Trace> {
    let flows = flows
        .into_iter()
        .map(|f| {
            let mut scheduler = ChunkScheduler::new(f.config, &f.files, f.starts_at);
            if f.pinged {
                scheduler.round_trip(f.starts_at, value_at(&link.rtt, f.starts_at));
            }
            (f, scheduler, Trace::default())
        })
        .collect();
    let events = BTreeMap::new();
    let mut sim = Sim { link, flows, events, number: 0, link_free_at: Time(0) };
    for flow in 0..sim.flows.len() {
        let at = sim.flows[flow].0.starts_at;
        sim.push(at, Event::Wake { flow });
    }
    while let Some(((now, _), event)) = sim.events.pop_first() {
        if now > until {
            break;
        }
        sim.step(now, event);
    }
    sim.flows.into_iter().map(|(_, _, trace)| trace).collect()
}

impl Sim {
    fn push(&mut self, at: Time, event: Event) {
        self.number += 1;
        self.events.insert((at, self.number), event);
    }

    fn half_trip(&self, now: Time) -> Duration {
        value_at(&self.link.rtt, now) / 2
    }

    fn step(&mut self, now: Time, event: Event) {
        match event {
            Event::Wake { flow } => self.pump(now, flow),
            Event::Asked { flow, request, requested_at } => {
                let throttled = self.link.throttle.pause(now, request.len.into());
                let part = (self.number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as f64;
                let jitter = self.link.jitter.mul_f64(part / f64::from(1 << 24));
                let at = now + throttled + self.link.server_time + jitter;
                self.push(at, Event::Served { flow, request, requested_at, throttled });
            }
            Event::Served { flow, request, requested_at, throttled } => {
                let begin = self.link_free_at.max(now);
                let rate = value_at(&self.link.rate_bytes_per_s, begin);
                let sent = begin + Duration::from_secs_f64(f64::from(request.len) / rate);
                self.link_free_at = sent;
                let at = sent + self.half_trip(begin);
                self.push(at, Event::Arrived { flow, request, requested_at, throttled });
            }
            Event::Arrived { flow, request, requested_at, throttled } => {
                self.arrive(now, flow, request, requested_at, throttled);
                self.pump(now, flow);
            }
        }
    }

    fn arrive(
        &mut self,
        now: Time,
        flow: usize,
        request: ChunkRequest,
        at: Time,
        throttled: Duration,
    ) {
        let (flow, scheduler, trace) = &mut self.flows[flow];
        let delivery = Delivery {
            requested_at: at,
            throttled,
            foreground_pressure: flow.pressure.is_some_and(|(from, to)| from <= now && now < to),
        };
        scheduler.delivered(now, request, delivery);
        trace.arrived.push((now, request.len.into()));
        if scheduler.is_complete() {
            trace.finished_at = Some(now);
        }
    }

    fn pump(&mut self, now: Time, flow: usize) {
        let half = self.half_trip(now);
        while let Some(request) = self.flows[flow].1.next(now) {
            self.push(now + half, Event::Asked { flow, request, requested_at: now });
        }
        let (_, scheduler, trace) = &mut self.flows[flow];
        trace.in_flight_bytes.push((now, scheduler.in_flight_bytes()));
        trace.in_flight_chunks.push((now, scheduler.in_flight()));
        trace.chunk_bytes = scheduler.chunk_bytes();
        if let Some(at) = scheduler.wake_at().filter(|_| self.link.wakes) {
            assert!(at > now, "it would be woken at {at:?} for ever");
            self.push(at, Event::Wake { flow });
        }
    }
}
