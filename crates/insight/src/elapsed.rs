//! Where the time of a recovery went on a target that does not account for it, seen from outside: from narrows' own
//! link, which knows when it was full and when anything was on it, from the nodes' counters, and from the stages.
//!
//! Every moment between two samples is charged once, in this order: the link was full; the most throttled node paused;
//! bytes only travelled; cores were busy; copies waited for a slot while others recovered. What is left belongs to the
//! nodes' agreement before the first file and after the last one, and is unexplained while files moved. Judges of live
//! clusters cannot be asked: they look at one recovery and its two ends, and samples sum up all of them.

use std::collections::BTreeMap;

use record::{Limit, LimitShare, LinkSample, NodeSample, RecoverySample};

use crate::diagnosis::CPU_BUSY;
use crate::trace::Trace;

/// What a recovery does at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    /// Until the first byte of a file has come.
    Start,
    /// Until the last one has.
    Files,
    /// Operations are replayed.
    Operations,
    /// Until every copy is complete.
    Finish,
}

/// An account of the elapsed time, in seconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Elapsed {
    /// All of it.
    pub total_s: f64,
    /// By stage.
    pub stages: BTreeMap<Stage, f64>,
    /// By limit.
    pub limits: BTreeMap<Limit, f64>,
    /// By limit, while files moved.
    pub while_files: BTreeMap<Limit, f64>,
    /// While files moved, and charged to nothing.
    pub unexplained_s: f64,
    /// With a connection whose window was full.
    pub window_full_s: f64,
    /// Mean use of all cores of the busiest machine, by whatever runs there; none where no node says it.
    pub machine_cpu: Option<f64>,
    /// Mean cores that all nodes together used.
    pub nodes_cores: f64,
    /// Whether there is a link that says when it carried anything.
    pub sees_link: bool,
}

impl Elapsed {
    /// Whether the time that a limit took is seen from outside.
    pub(crate) fn tells(&self, limit: Limit) -> bool {
        match limit {
            Limit::LinkRate | Limit::Latency => self.sees_link,
            Limit::Cpu => self.machine_cpu.is_some(),
            Limit::Throttle | Limit::Slots | Limit::Coordination => true,
            _ => false,
        }
    }

    /// Accounts for the `seconds` of a recovery. None without samples, or where a link does not say when it was busy.
    pub(crate) fn of(trace: &Trace<'_>, seconds: f64) -> Option<Elapsed> {
        if trace.recovery.is_empty() || trace.link.iter().any(|(_, link)| link.carrying_s.is_none())
        {
            return None;
        }
        let mut elapsed = Elapsed { sees_link: !trace.link.is_empty(), ..Elapsed::default() };
        let (mut cpu_s, mut cpu_known_s, mut cores_s) = (0.0, 0.0, 0.0);
        for interval in intervals(trace) {
            let left_s = seconds - elapsed.total_s;
            let dt_s = interval.seconds.min(left_s);
            if dt_s <= 0.0 {
                break;
            }
            if let Some(cpu) = interval.machine_cpu {
                cpu_s += cpu * dt_s;
                cpu_known_s += dt_s;
            }
            cores_s += interval.cores * dt_s;
            elapsed.add(&interval, dt_s);
        }
        elapsed.machine_cpu = (cpu_known_s > 0.0).then(|| cpu_s / cpu_known_s);
        elapsed.nodes_cores = cores_s / elapsed.total_s;
        (elapsed.total_s > 0.0).then_some(elapsed)
    }

    fn add(&mut self, interval: &Interval, dt_s: f64) {
        self.total_s += dt_s;
        *self.stages.entry(interval.stage).or_default() += dt_s;
        self.window_full_s += interval.window_full * dt_s;
        let mut charges = Charges { rest: 1.0, charged: Vec::new() };
        charges.take(Limit::LinkRate, interval.link_full);
        charges.take(Limit::Throttle, interval.paused);
        charges.take(Limit::Latency, interval.carrying - interval.link_full);
        charges.take(Limit::Cpu, interval.cores_charged() * charges.rest);
        if interval.waits_for_slot {
            charges.take(Limit::Slots, charges.rest);
        }
        if interval.stage != Stage::Files {
            charges.take(Limit::Coordination, charges.rest);
        }
        self.unexplained_s += charges.rest * dt_s;
        for (limit, share) in charges.charged.into_iter().filter(|(_, share)| *share > 0.0) {
            *self.limits.entry(limit).or_default() += share * dt_s;
            if interval.stage == Stage::Files {
                *self.while_files.entry(limit).or_default() += share * dt_s;
            }
        }
    }

    /// Has the unexplained time charged to a limit that explains it.
    pub(crate) fn explain(&mut self, limit: Limit) {
        let seconds = std::mem::take(&mut self.unexplained_s);
        if seconds <= 0.0 {
            return;
        }
        *self.limits.entry(limit).or_default() += seconds;
        *self.while_files.entry(limit).or_default() += seconds;
    }

    /// Takes back what a limit was charged with while files moved.
    pub(crate) fn excuse(&mut self, limit: Limit) {
        let Some(seconds) = self.while_files.remove(&limit) else { return };
        *self.limits.entry(limit).or_default() -= seconds;
        self.unexplained_s += seconds;
    }

    /// The time of a stage.
    pub(crate) fn stage_s(&self, stage: Stage) -> f64 {
        self.stages.get(&stage).copied().unwrap_or(0.0)
    }

    /// The limits as shares of the elapsed time, largest first. With what is unexplained they sum to 1.
    pub(crate) fn shares(&self) -> Vec<LimitShare> {
        let share = |(limit, seconds): (&Limit, &f64)| LimitShare {
            limit: *limit,
            share: seconds / self.total_s,
        };
        let mut shares: Vec<LimitShare> = self.limits.iter().map(share).collect();
        shares.sort_by(|a, b| b.share.total_cmp(&a.share).then(a.limit.cmp(&b.limit)));
        shares
    }

    /// The share of the time that nothing explains.
    pub(crate) fn unexplained(&self) -> f64 {
        self.unexplained_s / self.total_s
    }
}

/// An interval as it is charged: each limit takes a share of it, as far as something is left.
struct Charges {
    rest: f64,
    charged: Vec<(Limit, f64)>,
}

impl Charges {
    fn take(&mut self, limit: Limit, share: f64) {
        let share = share.clamp(0.0, self.rest);
        self.rest -= share;
        self.charged.push((limit, share));
    }
}

/// The time between two samples. Shares are of that time, 0 to 1.
struct Interval {
    seconds: f64,
    stage: Stage,
    link_full: f64,
    carrying: f64,
    window_full: f64,
    /// Pauses of the most throttled node.
    paused: f64,
    /// Cores that all nodes used.
    cores: f64,
    machine_cpu: Option<f64>,
    waits_for_slot: bool,
}

impl Interval {
    /// The share of the remaining time in which cores were busy. A step that nothing runs beside needs one core. Where
    /// copies wait for a slot others could run beside, unless all cores are busy.
    fn cores_charged(&self) -> f64 {
        match self.machine_cpu {
            // Whatever computes waits for a core.
            Some(busy) if busy >= CPU_BUSY.value => 1.0,
            _ if self.waits_for_slot => 0.0,
            _ => self.cores.min(1.0),
        }
    }
}

/// The times between samples in which something recovered: between two parts of a turn nothing does.
fn intervals<'a>(trace: &'a Trace<'_>) -> impl Iterator<Item = Interval> + 'a {
    let first_ms = trace.span_ms().map(|(begins, _)| begins);
    let begin =
        first_ms.filter(|begins| *begins < trace.recovery[0].0).map(|begins| (begins, None));
    let samples = trace.recovery.iter().map(|(t_ms, sample)| (*t_ms, Some(*sample)));
    let points: Vec<(f64, Option<&RecoverySample>)> = begin.into_iter().chain(samples).collect();
    let pairs: Vec<_> = points.windows(2).map(|pair| (pair[0], pair[1])).collect();
    pairs.into_iter().filter_map(move |((from_ms, before), (to_ms, after))| {
        let after = after.expect("only the begin has no sample");
        let is_over = before.is_some_and(is_complete);
        let span = (from_ms, to_ms);
        (!is_over).then(|| Interval {
            seconds: (to_ms - from_ms) / 1e3,
            stage: stage(before, after),
            link_full: link_full(trace, to_ms),
            carrying: grown_s(trace, span, |link| link.carrying_s),
            window_full: grown_s(trace, span, |link| link.window_full_s),
            paused: paused(trace, span),
            cores: trace
                .nodes
                .values()
                .filter_map(|node| after_ms(node, to_ms))
                .map(|n| n.cpu_cores)
                .sum(),
            machine_cpu: machine_cpu(trace, to_ms),
            waits_for_slot: waits_for_slot(before, after),
        })
    })
}

fn is_complete(sample: &RecoverySample) -> bool {
    sample.waiting.unwrap_or(0) == 0
        && !sample.stages.is_empty()
        && sample.stages.keys().all(|stage| stage == "DONE")
}

fn active(sample: &RecoverySample) -> u32 {
    sample.stages.iter().filter(|(stage, _)| *stage != "DONE").map(|(_, count)| count).sum()
}

fn waits_for_slot(before: Option<&RecoverySample>, after: &RecoverySample) -> bool {
    let waits = |sample: &RecoverySample| sample.waiting.unwrap_or(0) > 0;
    before.is_some_and(|before| waits(before) && active(before) > 0)
        || (waits(after) && active(after) > 0)
}

fn stage(before: Option<&RecoverySample>, after: &RecoverySample) -> Stage {
    let had = before.map_or(0, |sample| sample.recovered_bytes);
    let all = after.recovered_bytes >= after.total_bytes && after.waiting.unwrap_or(0) == 0;
    let replays = |sample: &RecoverySample| sample.stages.contains_key("TRANSLOG");
    if after.recovered_bytes > had {
        Stage::Files
    } else if after.recovered_bytes == 0 {
        Stage::Start
    } else if !all {
        Stage::Files
    } else if replays(after) || before.is_some_and(replays) {
        Stage::Operations
    } else {
        Stage::Finish
    }
}

/// The first sample at that time or later.
fn after_ms<'a, T>(samples: &[(f64, &'a T)], at_ms: f64) -> Option<&'a T> {
    samples.iter().find(|(t_ms, _)| *t_ms >= at_ms).map(|(_, sample)| *sample)
}

fn link_full(trace: &Trace<'_>, to_ms: f64) -> f64 {
    after_ms(&trace.link, to_ms).map_or(0.0, |link| link.busy_share)
}

/// How much a counter of the link grew, a second.
fn grown_s(trace: &Trace<'_>, span: (f64, f64), seconds: fn(&LinkSample) -> Option<f64>) -> f64 {
    let at = |ms: f64| trace.link.iter().find(|(t_ms, _)| *t_ms >= ms);
    let (Some((from_ms, from)), Some((to_ms, to))) = (at(span.0), at(span.1)) else { return 0.0 };
    let (Some(from), Some(to)) = (seconds(from), seconds(to)) else { return 0.0 };
    let wall_s = (to_ms - from_ms) / 1e3;
    if wall_s > 0.0 { ((to - from) / wall_s).clamp(0.0, 1.0) } else { 0.0 }
}

/// The pauses of the most throttled node. Chunks that wait side by side pause at once, so that a sum may be more than
/// the time.
fn paused(trace: &Trace<'_>, (from_ms, to_ms): (f64, f64)) -> f64 {
    let of_node = |node: &Vec<(f64, &NodeSample)>| {
        let (from, to) = (after_ms(node, from_ms)?, after_ms(node, to_ms)?);
        Some(to.throttle_ms.saturating_sub(from.throttle_ms) as f64)
    };
    let most = trace.nodes.values().filter_map(of_node).fold(0.0, f64::max);
    (most / (to_ms - from_ms)).min(1.0)
}

fn machine_cpu(trace: &Trace<'_>, to_ms: f64) -> Option<f64> {
    let of_node = |node: &Vec<(f64, &NodeSample)>| after_ms(node, to_ms)?.machine_cpu;
    trace.nodes.values().filter_map(of_node).max_by(f64::total_cmp)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::timed;

    /// A recovery of 8 MB over a link, sampled every second: a second until the first byte, two of files, one of
    /// operations, one to finish.
    fn samples() -> Vec<RecoverySample> {
        let sample = |recovered_bytes, stage: &str| RecoverySample {
            recovered_bytes,
            total_bytes: 8_000_000,
            stages: BTreeMap::from([(stage.to_owned(), 1)]),
            waiting: Some(0),
            ..RecoverySample::default()
        };
        vec![
            sample(0, "INDEX"),
            sample(4_000_000, "INDEX"),
            sample(8_000_000, "INDEX"),
            sample(8_000_000, "TRANSLOG"),
            sample(8_000_000, "DONE"),
        ]
    }

    fn link(carrying_s: f64, busy_share: f64) -> LinkSample {
        LinkSample {
            carrying_s: Some(carrying_s),
            window_full_s: Some(0.0),
            busy_share,
            ..LinkSample::default()
        }
    }

    fn account(samples: &[RecoverySample], links: &[LinkSample], nodes: &[NodeSample]) -> Elapsed {
        let mut trace = Trace::default();
        trace.recovery = timed(samples, 1e3);
        trace.link = timed(links, 1e3);
        trace.nodes.insert(("leader", "leader-0"), timed(nodes, 1e3));
        Elapsed::of(&trace, 100.0).unwrap()
    }

    #[test]
    fn every_moment_is_charged_once() {
        let links =
            [link(0.0, 0.0), link(0.9, 0.5), link(1.9, 1.0), link(2.4, 0.0), link(2.4, 0.0)];
        let node =
            |throttle_ms, cpu_cores| NodeSample { throttle_ms, cpu_cores, ..NodeSample::default() };
        let nodes = [node(0, 0.0), node(300, 0.0), node(300, 2.0), node(300, 0.2), node(300, 0.25)];
        let account = account(&samples(), &links, &nodes);
        assert_eq!(account.total_s, 4.0);
        let of = |limit| account.limits.get(&limit).copied().unwrap_or(0.0);
        let near = |limit, expected: f64| {
            assert!((of(limit) - expected).abs() < 1e-9, "{limit:?}: {account:?}");
        };
        // The link was full for 0.5 and 1 s; pauses took 0.3 s; 0.2 s and 0.5 s bytes only travelled, where cores ...
        near(Limit::LinkRate, 1.5);
        near(Limit::Throttle, 0.3);
        near(Limit::Latency, 0.2 + 0.5);
        // ... and what is left of an interval is a core's as far as one was busy, and otherwise coordination.
        near(Limit::Cpu, 0.5 * 0.2 + 0.25);
        near(Limit::Coordination, 0.5 * 0.8 + 0.75);
        assert_eq!(account.unexplained(), 0.0);
        assert_eq!(account.stages, BTreeMap::from([(Stage::Files, 2.0), (Stage::Operations, 2.0)]));
        let shares: f64 = account.shares().iter().map(|share| share.share).sum();
        assert!((shares - 1.0).abs() < 1e-9);
    }

    #[test]
    fn what_nothing_explains_while_files_move_stays_so() {
        let links = vec![link(0.0, 0.0); 5];
        let mut account = account(&samples(), &links, &[]);
        assert_eq!(account.unexplained(), 0.5);
        account.explain(Limit::Throttle);
        assert_eq!((account.unexplained(), account.while_files[&Limit::Throttle]), (0.0, 2.0));
    }

    #[test]
    fn copies_wait_for_a_slot_only_beside_others_and_with_cores_to_spare() {
        let mut waiting = samples();
        waiting.iter_mut().take(3).for_each(|sample| sample.waiting = Some(1));
        let links = vec![link(0.0, 0.0); 5];
        let idle =
            vec![NodeSample { machine_cpu: Some(0.5), cpu_cores: 1.0, ..NodeSample::default() }; 5];
        let busy = vec![NodeSample { machine_cpu: Some(0.95), ..NodeSample::default() }; 5];
        assert_eq!(account(&waiting, &links, &idle).limits[&Limit::Slots], 3.0);
        assert_eq!(account(&waiting, &links, &busy).limits[&Limit::Cpu], 4.0);
        assert_eq!(account(&waiting, &links, &busy).machine_cpu, Some(0.95));
    }

    #[test]
    fn between_two_parts_of_a_turn_nothing_recovers() {
        let mut parts = samples();
        let mut again = samples();
        again.iter_mut().for_each(|sample| {
            sample.recovered_bytes += 8_000_000;
            sample.total_bytes += 8_000_000;
        });
        parts.extend(again);
        // Nine intervals between ten samples; the one after the first part's end does not count.
        assert_eq!(account(&parts, &[], &[]).total_s, 8.0);
    }

    #[test]
    fn a_link_that_does_not_tell_gives_no_account() {
        let (samples, link) = (samples(), LinkSample::default());
        let mut trace = Trace::default();
        trace.recovery = samples.iter().map(|sample| (0.0, sample)).collect();
        trace.link = vec![(0.0, &link)];
        assert_eq!(Elapsed::of(&trace, 1.0), None);
    }
}
