//! What went on until green, one thing after another.

use std::collections::BTreeMap;

use record::stage::{DELAYED, DONE, UNASSIGNED, WAITING};
use record::{Limit, RecoverySample};
use serde::Serialize;

use crate::trace::active;

/// A time in which one thing held it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Phase {
    /// When it begins, in seconds since the variant did.
    pub from_s: f64,
    /// When it ends.
    pub to_s: f64,
    /// What went on.
    pub what: PhaseKind,
    /// Copies that are not started at its beginning.
    pub copies: u32,
    /// Of the time that copies were being made in it, the share of each limit, largest first: as the accounting of
    /// the run has it, whose shares are those of all phases together.
    pub limits: Vec<(Limit, f64)>,
}

/// What goes on in a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PhaseKind {
    /// The cluster has not noticed yet or was not looked at, or is all green between two nodes that restart.
    NotNoticed,
    /// A node that restarts is away. No copy is being made, and none waits for its delay.
    Away,
    /// Copies wait for their node to come back, and none is being made.
    Delayed,
    /// Copies have no place, and none is being made.
    Allocating,
    /// Copies are being made.
    Copying,
}

impl PhaseKind {
    /// Its name in tables.
    pub fn label(self) -> &'static str {
        match self {
            PhaseKind::NotNoticed => "nothing is to be copied yet",
            PhaseKind::Away => "the node is away",
            PhaseKind::Delayed => "delayed allocation: copies wait for their node",
            PhaseKind::Allocating => "waits for the allocator",
            PhaseKind::Copying => "copies are made",
        }
    }
}

pub(super) fn count(sample: &RecoverySample, stage: &str) -> u32 {
    sample.stages.get(stage).copied().unwrap_or(0)
}

/// Recoveries that have begun by the last of these samples: as many as there are.
pub(super) fn begun_in_all(samples: &[(f64, &RecoverySample)]) -> u32 {
    samples.last().map_or(0, |(_, end)| begun(end))
}

fn begun(sample: &RecoverySample) -> u32 {
    active(sample) + count(sample, DONE)
}

/// Copies that are not started. How many wait to be moved was estimated: no more do than begin in the end.
pub(super) fn outstanding(sample: &RecoverySample, in_all: u32) -> u32 {
    let waiting = count(sample, WAITING).min(in_all.saturating_sub(begun(sample)));
    count(sample, UNASSIGNED) + waiting + active(sample)
}

fn kind(sample: &RecoverySample, is_away: bool) -> PhaseKind {
    let homeless = count(sample, UNASSIGNED) + count(sample, WAITING);
    match (active(sample), homeless, count(sample, DELAYED)) {
        (0, 0, _) if !is_away => PhaseKind::NotNoticed,
        (0, 0, _) | (0, _, 0) if is_away => PhaseKind::Away,
        (0, _, 0) => PhaseKind::Allocating,
        (0, _, _) => PhaseKind::Delayed,
        _ => PhaseKind::Copying,
    }
}

/// What went on, from one change to the next, where nodes were `away` from time to time. What went on between two
/// samples is what the earlier one shows.
pub(super) fn phases(
    samples: &[(f64, &RecoverySample)],
    away: &[(f64, f64)],
    green_s: f64,
) -> Vec<Phase> {
    let mut phases: Vec<Phase> = Vec::new();
    let in_all = begun_in_all(samples);
    let nothing = BTreeMap::new();
    let mut charged = &nothing;
    let start = std::iter::once((0.0, None));
    let all: Vec<(f64, Option<&RecoverySample>)> =
        start.chain(samples.iter().map(|(t, sample)| (*t, Some(*sample)))).collect();
    for (at, (from_s, sample)) in all.iter().enumerate() {
        let to_s = all.get(at + 1).map_or(green_s, |(t, _)| t.min(green_s));
        // A node goes away just after a sample or before the first one: the middle says whether it was away.
        let middle_s = f64::midpoint(*from_s, to_s);
        let is_away = away.iter().any(|(from_s, to_s)| (*from_s..*to_s).contains(&middle_s));
        let before_all = RecoverySample::default();
        let what = kind(sample.unwrap_or(&before_all), is_away);
        let now = all.get(at + 1).and_then(|(_, next)| *next).map(|next| &next.charged_s);
        let now = now.unwrap_or(charged);
        let of = |charged: &BTreeMap<Limit, f64>, limit: Limit| {
            charged.get(&limit).copied().unwrap_or(0.0)
        };
        // A chunk in flight counts as latency until it is known what held it: what one look says of it the next one
        // takes back, so that differences may be negative.
        let more = Limit::ALL.map(|limit| (limit, of(now, limit) - of(charged, limit)));
        charged = now;
        if to_s <= *from_s {
            continue;
        }
        let is_same = phases.last().is_some_and(|last| last.what == what);
        if !is_same {
            let copies = sample.map_or(0, |sample| outstanding(sample, in_all));
            let limits = Vec::new();
            phases.push(Phase { from_s: *from_s, to_s, what, copies, limits });
        }
        let last = phases.last_mut().expect("one was pushed");
        last.to_s = to_s;
        for (limit, seconds) in more {
            match last.limits.iter_mut().find(|(known, _)| *known == limit) {
                Some((_, sum)) => *sum += seconds,
                None => last.limits.push((limit, seconds)),
            }
        }
    }
    for phase in &mut phases {
        phase.limits.retain(|(_, seconds)| *seconds > 0.0);
        let sum: f64 = phase.limits.iter().map(|(_, seconds)| seconds).sum();
        phase.limits.iter_mut().for_each(|(_, seconds)| *seconds /= sum);
        phase.limits.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    }
    phases
}
