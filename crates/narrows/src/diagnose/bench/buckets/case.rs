//! A case of a bucket: what is injected how strongly into which surroundings, all of it drawn from one number. Pure.

use std::time::Duration;

use insight::diagnosis::Class;

use super::super::conditions::LEFT;
use super::super::draw::{Draw, Subject, Turn};
use super::super::one_cause::{CaseOf, Known, OneCause};

/// More than anything here fills.
const AMPLE_BYTES: u64 = 1 << 30;
/// This part of its data a producer keeps in memory that reads it from disk: keys stay there.
const KEPT: u64 = 2;
/// A consumer that is short of memory has room for so long, and then for what its disk takes.
const ROOM_S: f64 = 1.0;
/// There is something to send for so long.
const GOES_ON_S: f64 = 9.0;

/// What a case is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Everything is sent, and nothing is written.
    Idle,
    /// What is written is sent at once.
    KeepsUp,
    SlowConsumer,
    /// The producer reads from a slow disk.
    SlowDisk,
    /// The consumer's bucket has no room for what its disk has still to take.
    LittleMemory,
}

/// Every kind. Two in five are healthy.
const DECK: [Kind; 5] =
    [Kind::SlowConsumer, Kind::Idle, Kind::SlowDisk, Kind::KeepsUp, Kind::LittleMemory];

/// Something that an operator can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Consumer,
    Disks,
    Memory,
}

/// Everything that a run is made of.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Conditions {
    pub(crate) vbuckets: u16,
    pub(crate) value_bytes: usize,
    /// Values that are there at first.
    pub(crate) bytes: u64,
    /// What is written meanwhile, a second.
    pub(crate) writes_bytes_per_s: Option<f64>,
    /// Memory of the producer's bucket.
    pub(crate) quota_bytes: u64,
    /// What the producer's disk reads; none for as much as it may.
    pub(crate) reads_bytes_per_s: Option<f64>,
    pub(crate) to: Consumer,
    /// What all of it lets through, about.
    pace: f64,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Consumer {
    Client {
        window_bytes: u32,
        /// None for as much as comes.
        takes_bytes_per_s: Option<f64>,
        /// Whether it waits for what is written.
        follows: bool,
    },
    /// Another node of the bucket.
    Node {
        quota_bytes: u64,
        /// What its disk writes; none for as much as it may.
        writes_bytes_per_s: Option<f64>,
        /// The path to it.
        path_bytes_per_s: u64,
        rtt: Duration,
    },
}

pub(crate) type Case = CaseOf<Kind, Conditions>;

impl Case {
    /// The case of a bucket of a seed; none of most seeds.
    pub(crate) fn of(seed: u64) -> Option<Case> {
        let turn = Turn::among(Subject::Bucket, seed)?;
        let (kind, severity) = (turn.kind(&DECK), turn.severity(&DECK));
        let mut draw = Draw::of(!seed);
        let pace = draw.between(3e6, 10e6);
        let surroundings = surroundings(kind, pace, &mut draw);
        Some(Case { seed, kind, severity, surroundings })
    }
}

impl OneCause for Case {
    type Conditions = Conditions;
    type Action = Action;
    const ACTIONS: &'static [Action] = &[Action::Consumer, Action::Disks, Action::Memory];

    fn known(&self) -> Known<Action> {
        use Action::{Consumer, Disks, Memory};
        match self.kind {
            Kind::Idle => ("healthy: a bucket's idle connection", None, &[]),
            Kind::KeepsUp => ("healthy: a bucket's consumer that keeps up", None, &[]),
            Kind::SlowConsumer => {
                ("a bucket's slow consumer", Some(Class::DcpConsumer), &[Consumer])
            }
            // A producer with all in memory reads no disk.
            Kind::SlowDisk => {
                ("a slow disk of a bucket's producer", Some(Class::DcpProducer), &[Disks, Memory])
            }
            // What a fast disk has taken needs no memory.
            Kind::LittleMemory => (
                "too little memory of a bucket's consumer",
                Some(Class::DcpMemory),
                &[Memory, Disks],
            ),
        }
    }

    /// `rate` is in bytes a second.
    fn injected(&self, rate: f64) -> Conditions {
        let left = rate * LEFT[self.severity.clamp(1, LEFT.len()) - 1];
        let mut conditions = self.surroundings.clone();
        match (self.kind, &mut conditions.to) {
            (Kind::SlowConsumer, Consumer::Client { takes_bytes_per_s, .. }) => {
                *takes_bytes_per_s = Some(left);
            }
            (Kind::SlowDisk, _) => conditions.reads_bytes_per_s = Some(left),
            (Kind::LittleMemory, Consumer::Node { quota_bytes, writes_bytes_per_s, .. }) => {
                *quota_bytes = (self.surroundings.pace * ROOM_S) as u64;
                *writes_bytes_per_s = Some(left);
            }
            _ => {}
        }
        conditions
    }

    fn act(&self, conditions: &mut Conditions, action: Action) {
        match (action, &mut conditions.to) {
            (Action::Consumer, Consumer::Client { takes_bytes_per_s, .. }) => {
                // As fast as before: what takes all at once is through at once.
                *takes_bytes_per_s = Some(self.surroundings.pace);
            }
            (Action::Consumer, Consumer::Node { .. }) => {}
            (Action::Disks, to) => {
                conditions.reads_bytes_per_s = None;
                if let Consumer::Node { writes_bytes_per_s, .. } = to {
                    *writes_bytes_per_s = None;
                }
            }
            (Action::Memory, to) => {
                conditions.quota_bytes = AMPLE_BYTES;
                if let Consumer::Node { quota_bytes, .. } = to {
                    *quota_bytes = AMPLE_BYTES;
                }
            }
        }
    }
}

fn surroundings(kind: Kind, pace: f64, draw: &mut Draw) -> Conditions {
    let (vbuckets, value_bytes) = (draw.one_of(&[4, 8, 16]), draw.one_of(&[500, 1000, 4000]));
    let window_bytes = draw.one_of(&[100_000, 400_000, 1_000_000]);
    let client =
        |takes_bytes_per_s, follows| Consumer::Client { window_bytes, takes_bytes_per_s, follows };
    let mut conditions = Conditions {
        vbuckets,
        value_bytes,
        bytes: (pace * GOES_ON_S) as u64,
        writes_bytes_per_s: None,
        quota_bytes: AMPLE_BYTES,
        reads_bytes_per_s: None,
        to: client(Some(pace), false),
        pace,
    };
    match kind {
        Kind::SlowConsumer => {}
        Kind::SlowDisk => conditions.quota_bytes = conditions.bytes / KEPT,
        Kind::LittleMemory => {
            conditions.to = Consumer::Node {
                quota_bytes: AMPLE_BYTES,
                writes_bytes_per_s: None,
                path_bytes_per_s: pace as u64,
                rtt: Duration::from_secs_f64(draw.between(0.2, 20.0) / 1e3),
            };
        }
        Kind::Idle | Kind::KeepsUp => {
            conditions.bytes = draw.between(1e5, 2e6) as u64;
            conditions.to = client(None, true);
            if kind == Kind::KeepsUp {
                conditions.writes_bytes_per_s = Some(draw.between(1e5, 2e6));
            }
        }
    }
    conditions
}

#[cfg(test)]
mod tests {
    use super::super::super::one_cause::counted;
    use super::*;

    #[test]
    fn one_seed_in_five_and_its_neighbour_draw_a_bucket_of_every_kind_and_severity() {
        let all: Vec<Case> = (0..300).filter_map(Case::of).collect();
        assert_eq!(counted(&all, &DECK), (60, 24));
    }

    #[test]
    fn what_is_injected_costs_what_its_severity_says_and_its_action_takes_it_back() {
        for case in (0..90).filter_map(Case::of) {
            let mut conditions = case.injected(case.surroundings.pace);
            assert_eq!(conditions == case.surroundings, case.lifted_by().is_empty(), "{case:?}");
            if let [usual, ..] = case.lifted_by() {
                case.act(&mut conditions, *usual);
                let to_disk = case.kind == Kind::LittleMemory;
                assert_eq!(conditions == case.surroundings, !to_disk, "{case:?}");
            }
        }
    }
}
