//! A cluster that is a formula, for probes.

use insight::diagnosis::probe::{Prober, Step, apply, plan};
use insight::diagnosis::{Diagnosis, Series, diagnose};
use record::observation::{AnswerTime, Observation, WaitingCopy};
use record::units::parse_size;

use crate::common::{CHUNKS, MAX_BYTES, MB, case, rtt, series, settings, waiting};

const SLOTS: &str = "cluster.routing.allocation.node_concurrent_recoveries";
pub const LOOK_MS: f64 = 500.0;

/// What the settings are while looks are taken.
#[derive(Clone, Debug)]
pub struct Now {
    pub limit: f64,
    pub chunks: f64,
    pub slots: f64,
}

/// A cluster with one recovery after another, each of `bytes`.
pub struct Model {
    flavour: &'static str,
    /// The setting of the limiter.
    limit: &'static str,
    pub bytes: f64,
    /// Bytes a second.
    rate: Box<dyn FnMut(&Now) -> f64>,
    /// CPU in percent, of the rate.
    pub cpu: fn(f64) -> u64,
    /// The source's disk, where it is busy all the time: what it reads beside each byte of the recovery.
    pub reads_beside: Option<f64>,
    pub queue: bool,
    /// Whether chunks pause for nearly all of the time.
    pub pauses: bool,
    /// Whether the source answers late every third time.
    pub late: bool,
    now: Now,
    /// What the running recovery began with.
    began_with: Now,
    done: f64,
    number: u64,
    began_ms: f64,
    pub looks: Vec<(f64, Observation)>,
}

impl Model {
    pub fn new(flavour: &'static str, rate: impl FnMut(&Now) -> f64 + 'static) -> Model {
        Model::limited(flavour, "40mb", rate)
    }

    pub fn limited(
        flavour: &'static str,
        limit: &'static str,
        rate: impl FnMut(&Now) -> f64 + 'static,
    ) -> Model {
        let now = Now { limit: parse_size(limit).unwrap() as f64, chunks: 2.0, slots: 2.0 };
        Model {
            flavour,
            limit,
            bytes: 1e12,
            rate: Box::new(rate),
            cpu: |_| 10,
            reads_beside: None,
            queue: false,
            pauses: false,
            late: false,
            began_with: now.clone(),
            now,
            done: 0.0,
            number: 0,
            began_ms: 0.0,
            looks: Vec::new(),
        }
    }

    pub fn look(&mut self) {
        let t_ms = self.looks.len() as f64 * LOOK_MS;
        let mut with = self.now.clone();
        if self.flavour != "narrows" {
            // As the field's engines do: these are read when a recovery begins.
            with.chunks = self.began_with.chunks;
        }
        let rate = (self.rate)(&with);
        self.done += rate * LOOK_MS / 1e3;
        let s = (t_ms / 1e3) as u64;
        let mut look = case(s, MB);
        look.cluster.flavour = self.flavour.to_owned();
        look.settings = settings(&[(MAX_BYTES, self.limit), (CHUNKS, "2"), (SLOTS, "2")]);
        for node in &mut look.nodes {
            node.os_cpu_percent = Some((self.cpu)(rate));
            node.timestamp_ms = Some(t_ms as u64);
            node.process_cpu_ms = None;
        }
        if let Some(beside) = self.reads_beside {
            let source = &mut look.nodes[0];
            source.io_time_ms = Some(t_ms as u64);
            let kib = self.done * (1.0 + beside) / 1024.0;
            (source.read_kib, source.write_kib) = (Some(kib as u64), Some(0));
        }
        if self.late {
            let ms = if self.looks.len().is_multiple_of(3) { 500.0 } else { 1.0 };
            look.answers = vec![AnswerTime { node: "a".into(), ms, again_ms: 1.0 }];
            look.round_trips = rtt(40.0);
        }
        let recovery = &mut look.recoveries[0];
        recovery.start_ms = Some(self.number);
        recovery.total_ms = Some((t_ms - self.began_ms + LOOK_MS) as u64);
        recovery.recovered_bytes = Some(self.done as u64);
        recovery.total_bytes = Some(self.bytes as u64);
        if self.pauses {
            recovery.source_throttle_ms = Some((t_ms * 0.9) as u64);
        }
        if self.queue {
            look.waiting = [for_a_slot()].into();
        }
        if self.done >= self.bytes {
            (recovery.ended, recovery.stage) = (true, "DONE".to_owned());
            (self.done, self.began_ms) = (0.0, t_ms + LOOK_MS);
            self.number += 1;
            self.began_with = self.now.clone();
        }
        self.looks.push((t_ms, look));
    }

    pub fn series(&self) -> Series<'_> {
        series(&self.looks)
    }

    fn set(&mut self, setting: &str, value: &str) {
        match setting {
            MAX_BYTES => self.now.limit = parse_size(value).unwrap() as f64,
            CHUNKS => self.now.chunks = value.parse().unwrap(),
            SLOTS => self.now.slots = value.parse().unwrap(),
            other => panic!("nobody may change {other}"),
        }
    }

    /// Looks, probes, and checks on the way that every change is put back.
    pub fn explain(&mut self) -> Diagnosis {
        (0..=12).for_each(|_| self.look());
        let mut diagnosis = diagnose(&self.series());
        let mut prober = Prober::new(plan(&self.series(), &diagnosis), 0.0);
        let mut before: Option<Now> = None;
        for _ in 0..1000 {
            self.look();
            let now_ms = self.looks[self.looks.len() - 1].0;
            match prober.next(now_ms, &self.series()) {
                Step::Look => {}
                Step::Done => {
                    assert!(before.is_none(), "the end comes after everything is put back");
                    let series = self.series();
                    apply(&mut diagnosis, prober.into_results(), &series);
                    return diagnosis;
                }
                Step::Set(probe) => {
                    assert!(before.is_none(), "one change at a time");
                    assert_eq!(probe.found.value, [self.limit, "2", "2"][index(&probe.setting)]);
                    before = Some(self.now.clone());
                    self.set(&probe.setting, &probe.to);
                }
                Step::PutBack => self.now = before.take().expect("something was changed"),
            }
        }
        panic!("it never ends: {prober:?}");
    }
}

fn index(setting: &str) -> usize {
    [MAX_BYTES, CHUNKS, SLOTS].iter().position(|name| *name == setting).unwrap()
}

fn for_a_slot() -> WaitingCopy {
    let mut copy = waiting("throttled", &[("b", "throttling", "THROTTLE")]);
    copy.decisions[0].explanation = SLOTS.into();
    copy
}
