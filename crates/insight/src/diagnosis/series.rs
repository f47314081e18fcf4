//! Observations in the order of time, and what changed between them.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use record::observation::{AnswerTime, Node, Observation, Recovery, Remote, Scope, Setting};

use super::threshold::SHORT_S;
use crate::stats::mean;

pub(crate) const MS_PER_S: f64 = 1e3;
pub(crate) const NS_PER_MS: f64 = 1e6;

/// Looks at one cluster, with milliseconds since the first.
#[derive(Clone, Debug)]
pub struct Series<'a> {
    looks: Vec<(f64, &'a Observation)>,
    /// Asked for by many judges, and made once.
    transfers: OnceCell<Vec<Transfer<'a>>>,
    nodes: OnceCell<BTreeMap<&'a str, NodeSpan<'a>>>,
}

impl<'a> Series<'a> {
    /// Takes looks in the order of time; one that is no later than the one before is left out.
    pub fn new(looks: impl IntoIterator<Item = (f64, &'a Observation)>) -> Self {
        let mut kept: Vec<(f64, &'a Observation)> = Vec::new();
        for (t_ms, look) in looks {
            if t_ms.is_finite() && kept.last().is_none_or(|(last, _)| t_ms > *last) {
                kept.push((t_ms, look));
            }
        }
        Series::of(kept)
    }

    fn of(looks: Vec<(f64, &'a Observation)>) -> Self {
        Series { looks, transfers: OnceCell::new(), nodes: OnceCell::new() }
    }

    /// The looks.
    pub fn looks(&self) -> &[(f64, &'a Observation)] {
        &self.looks
    }

    /// The last look.
    pub fn last(&self) -> Option<&'a Observation> {
        self.looks.last().map(|(_, look)| *look)
    }

    /// The nodes of the last look that asked for them, and when that was.
    pub fn last_nodes(&self) -> Option<(f64, &'a [Node])> {
        let mut looks = self.looks.iter().rev();
        looks.find(|(_, look)| !look.nodes.is_empty()).map(|(t_ms, look)| (*t_ms, &look.nodes[..]))
    }

    /// From the first look to the last.
    pub fn span_ms(&self) -> f64 {
        match (self.looks.first(), self.looks.last()) {
            (Some((first, _)), Some((last, _))) => last - first,
            _ => 0.0,
        }
    }

    /// A setting as the last look that asked found it.
    pub fn setting(&self, name: &str) -> Option<&'a Setting> {
        let asked = self.looks.iter().rev().find_map(|(_, look)| look.settings.as_ref())?;
        asked.get(name)
    }

    /// How a setting changed while it was watched; none where it did not.
    pub(crate) fn changed(&self, name: &str) -> Option<Changed<'a>> {
        let value = |settings: &'a BTreeMap<String, Setting>| {
            settings.get(name).map(|setting| setting.value.as_str())
        };
        let asked = self.looks.iter().rev();
        let mut told =
            asked.filter_map(|(t_ms, look)| Some((*t_ms, value(look.settings.as_ref()?)?)));
        let (mut since_ms, now) = told.next()?;
        for (t_ms, value) in told {
            if value != now {
                let last_ms = self.looks.last()?.0;
                let (ago_ms_min, ago_ms_max) = (last_ms - since_ms, last_ms - t_ms);
                return Some(Changed { was: value, since_ms, ago_ms_min, ago_ms_max });
            }
            since_ms = t_ms;
        }
        None
    }

    /// A setting as it is, or its default where the cluster does not say.
    pub(crate) fn setting_or_default(&self, name: &str, default: &str) -> Setting {
        let assumed = || Setting { value: default.to_owned(), scope: Scope::Default };
        self.setting(name).cloned().unwrap_or_else(assumed)
    }

    /// Whether the cluster also reports settings that nobody set: then one that it does not report does not exist.
    pub(crate) fn tells_defaults(&self) -> bool {
        let mut asked = self.looks.iter().rev().filter_map(|(_, look)| look.settings.as_ref());
        asked.next().is_some_and(|all| all.values().any(|one| one.scope == Scope::Default))
    }

    /// What the cluster calls itself.
    pub fn flavour(&self) -> &'a str {
        self.last().map_or("", |look| look.cluster.flavour.as_str())
    }

    /// Every recovery that was seen for long enough to be judged: in two looks, or in one look if it had gone on for a
    /// while by then. A node without CPU answers late, so that a recovery may be in one look alone.
    pub(crate) fn transfers(&self) -> &[Transfer<'a>] {
        self.transfers.get_or_init(|| self.find_transfers())
    }

    fn find_transfers(&self) -> Vec<Transfer<'a>> {
        let mut seen: BTreeMap<_, Vec<(f64, &'a Recovery)>> = BTreeMap::new();
        for (t_ms, look) in &self.looks {
            for recovery in &look.recoveries {
                seen.entry(recovery.key()).or_default().push((*t_ms, recovery));
            }
        }
        let is_old = |recovery: &Recovery| {
            recovery.total_ms.is_some_and(|ms| ms as f64 >= SHORT_S.value * 1e3)
        };
        let told = |steps: Vec<(f64, &'a Recovery)>| {
            let is_told = steps.len() >= 2 || (self.looks.len() >= 2 && is_old(steps[0].1));
            is_told.then_some(Transfer { steps })
        };
        seen.into_values().filter_map(told).collect()
    }

    /// Shortest round trip between two nodes; none if nobody measured it. The one from the source counts where there is
    /// one: its requests take the path that its chunks take, and the path back may be another.
    pub(crate) fn rtt_ms(&self, source: &str, target: &str) -> Option<f64> {
        let shortest = |from: &str, to: &str| {
            let all = self.looks.iter().flat_map(|(_, look)| &look.round_trips);
            let between = all.filter(|trip| trip.from == from && trip.to == to);
            between.map(|trip| trip.rtt_ms).reduce(f64::min)
        };
        shortest(source, target).or_else(|| shortest(target, source))
    }

    /// Shortest round trip to a remote cluster, from any node.
    pub(crate) fn remote_rtt_ms(&self, alias: &str) -> Option<f64> {
        let all = self.looks.iter().flat_map(|(_, look)| &look.round_trips);
        all.filter(|trip| trip.to == alias).map(|trip| trip.rtt_ms).reduce(f64::min)
    }

    /// By how much a node answered for itself later than when it was asked again, look by look, in milliseconds.
    pub(crate) fn late_ms(&self, node: &str) -> Vec<f64> {
        self.answers(node).map(|answer| answer.ms - answer.again_ms).collect()
    }

    /// How long a node takes to answer for itself, in milliseconds, on average; none where it was not asked directly.
    pub(crate) fn answers_in_ms(&self, node: &str) -> Option<f64> {
        let all: Vec<f64> =
            self.answers(node).flat_map(|answer| [answer.ms, answer.again_ms]).collect();
        mean(&all)
    }

    fn answers(&self, node: &str) -> impl Iterator<Item = &'a AnswerTime> {
        let all = self.looks.iter().flat_map(|(_, look)| &look.answers);
        all.filter(move |answer| answer.node == node)
    }

    /// The last looks alone.
    pub fn tail(&self, looks: usize) -> Series<'a> {
        Series::of(self.looks[self.looks.len().saturating_sub(looks)..].to_vec())
    }

    /// The first looks alone.
    pub fn head(&self, looks: usize) -> Series<'a> {
        Series::of(self.looks[..looks.min(self.looks.len())].to_vec())
    }

    /// What a node did, since it last started; none if it was not seen twice since then.
    pub(crate) fn node(&self, name: &str) -> Option<&NodeSpan<'a>> {
        self.all_nodes().get(name).filter(|span| span.is_told())
    }

    /// What every node did that was seen twice since it last started, by name.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = &NodeSpan<'a>> {
        self.all_nodes().values().filter(|span| span.is_told())
    }

    fn all_nodes(&self) -> &BTreeMap<&'a str, NodeSpan<'a>> {
        self.nodes.get_or_init(|| {
            let mut all: BTreeMap<&'a str, NodeSpan<'a>> = BTreeMap::new();
            for (t_ms, look) in &self.looks {
                for node in &look.nodes {
                    all.entry(&node.name).or_default().push(*t_ms, node);
                }
            }
            all
        })
    }

    /// Other clusters that this one knows, as the last look that asked found them.
    pub(crate) fn remotes(&self) -> &'a [Remote] {
        let all = self.looks.iter().rev().map(|(_, look)| &look.remotes[..]);
        all.into_iter().find(|remotes| !remotes.is_empty()).unwrap_or_default()
    }
}

/// A setting that changed while it was watched. It is asked for from time to time, so that the moment is known only
/// to lie between two looks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Changed<'a> {
    /// Its value before.
    pub was: &'a str,
    /// The first look that found the new one, in milliseconds of the series.
    pub since_ms: f64,
    /// How long ago that was; it changed this long ago or longer.
    pub ago_ms_min: f64,
    /// How long ago it still had its old value.
    pub ago_ms_max: f64,
}

/// What came between one look and the next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Step {
    /// The later look, in milliseconds of the series.
    pub t_ms: f64,
    pub bytes: u64,
    pub wall_ms: f64,
    /// Recoveries that moved bytes or might have.
    pub shards: usize,
}

impl Step {
    pub fn bytes_per_s(&self) -> f64 {
        self.bytes as f64 / (self.wall_ms / MS_PER_S)
    }
}

/// What a recovery did while it copied files.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Copied {
    pub bytes: u64,
    pub wall_ms: f64,
    /// Summed over chunks in flight, at the source and at the target.
    pub paused_ms: u64,
}

/// One recovery over several looks; where there is but one, from its beginning to that look.
#[derive(Clone, Debug)]
pub(crate) struct Transfer<'a> {
    steps: Vec<(f64, &'a Recovery)>,
}

impl<'a> Transfer<'a> {
    /// One that was seen once.
    pub fn since_its_beginning(t_ms: f64, recovery: &'a Recovery) -> Self {
        Transfer { steps: vec![(t_ms, recovery)] }
    }

    /// The look that counters are compared with; none if it was seen once: its counters began at zero with it.
    fn first(&self) -> Option<&'a Recovery> {
        (self.steps.len() >= 2).then(|| self.steps[0].1)
    }

    pub fn last(&self) -> &'a Recovery {
        self.steps[self.steps.len() - 1].1
    }

    /// `logs[3] to es-2`.
    pub fn name(&self) -> String {
        let last = self.last();
        match &last.target {
            Some(target) => format!("{} to {target}", last.shard_name()),
            None => last.shard_name(),
        }
    }

    /// How long it was watched, by the recovery's own clock, which stops when the recovery ends.
    pub fn wall_ms(&self) -> f64 {
        let watched = self.steps[self.steps.len() - 1].0 - self.steps[0].0;
        match self.rise(|recovery| recovery.total_ms) {
            Some(ms) if ms > 0 => ms as f64,
            _ => watched,
        }
    }

    /// By how much a counter of its own rose while it was watched.
    pub fn rise(&self, counter: impl Fn(&Recovery) -> Option<u64>) -> Option<u64> {
        let before = match self.first() {
            Some(first) => counter(first)?,
            None => 0,
        };
        counter(self.last())?.checked_sub(before)
    }

    /// Bytes that came while it was watched.
    pub fn bytes(&self) -> Option<u64> {
        self.rise(|recovery| recovery.recovered_bytes)
    }

    /// Share of this recovery's time in which another one went on as well.
    pub fn overlap(&self, other: &Transfer<'_>) -> f64 {
        let span = |one: &Transfer<'_>| {
            let from_ms = match one.first() {
                Some(_) => one.steps[0].0,
                None => one.steps[0].0 - one.wall_ms(),
            };
            (from_ms, from_ms + one.wall_ms())
        };
        let ((from, to), (other_from, other_to)) = (span(self), span(other));
        if to <= from {
            return 1.0;
        }
        ((to.min(other_to) - from.max(other_from)) / (to - from)).clamp(0.0, 1.0)
    }

    /// Bytes a second.
    pub fn bytes_per_s(&self) -> Option<f64> {
        let wall_s = self.wall_ms() / 1e3;
        (wall_s > 0.0).then_some(self.bytes()? as f64 / wall_s)
    }

    /// Operations a second since it replays them: what it took to copy files before is no part of that.
    pub fn ops_per_s(&self) -> Option<f64> {
        let begins = self.steps.iter().position(|(_, one)| one.stage == "TRANSLOG").unwrap_or(0);
        let from = begins.min(self.steps.len().saturating_sub(2));
        let replay = Transfer { steps: self.steps[from..].to_vec() };
        let ops = replay.rise(|recovery| recovery.recovered_ops)?;
        let wall_s = replay.wall_ms() / 1e3;
        (wall_s > 0.0).then_some(ops as f64 / wall_s)
    }

    /// Time that source and target paused, summed. The first limiter that binds hides the other, so one alone
    /// says nothing.
    pub fn paused_ms(&self) -> Option<u64> {
        self.rise(|recovery| match (recovery.source_throttle_ms, recovery.target_throttle_ms) {
            (None, None) => None,
            (source, target) => Some(source.unwrap_or(0) + target.unwrap_or(0)),
        })
    }

    /// Share of the looks in a stage.
    pub fn share_in(&self, stage: &str) -> f64 {
        let active: Vec<&Recovery> =
            self.steps.iter().map(|(_, r)| *r).filter(|r| !r.ended).collect();
        let within = active.iter().filter(|recovery| recovery.stage == stage).count();
        if active.is_empty() { 0.0 } else { within as f64 / active.len() as f64 }
    }

    /// What came while files were copied, and how long chunks paused for it; none where pauses are not told.
    pub fn copied(&self) -> Option<Copied> {
        let is_copying = |pair: &&[(f64, &'a Recovery)]| {
            pair.iter().all(|(_, one)| one.stage == "INDEX" && !one.ended)
        };
        let mut part = Transfer { steps: Vec::with_capacity(2) };
        self.steps.windows(2).filter(is_copying).try_fold(Copied::default(), |sum, pair| {
            part.steps.clear();
            part.steps.extend_from_slice(pair);
            Some(Copied {
                bytes: sum.bytes + part.bytes()?,
                wall_ms: sum.wall_ms + part.wall_ms(),
                paused_ms: sum.paused_ms + part.paused_ms()?,
            })
        })
    }

    /// What came between successive looks, while files are copied.
    pub fn steps(&self) -> Vec<Step> {
        self.steps_with(&[])
    }

    /// The same of this recovery together with others, as far as they go on at the same time.
    pub fn steps_with(&self, others: &[&Transfer<'_>]) -> Vec<Step> {
        let step = |pair: &[(f64, &'a Recovery)]| {
            let ((then_ms, then), (t_ms, now)) = (pair[0], pair[1]);
            let own = self.came(then_ms, t_ms)?;
            let is_copying = now.stage == "INDEX" && !now.ended;
            let theirs: Vec<u64> =
                others.iter().filter_map(|other| other.came(then_ms, t_ms)).collect();
            // Its own clock is read together with its bytes; a look may have waited for other answers before.
            let wall_ms = match now.total_ms.zip(then.total_ms) {
                Some((now, then)) if now > then => (now - then) as f64,
                _ => t_ms - then_ms,
            };
            let bytes = own + theirs.iter().sum::<u64>();
            is_copying.then_some(Step { t_ms, bytes, wall_ms, shards: 1 + theirs.len() })
        };
        self.steps.windows(2).filter_map(step).collect()
    }

    /// Bytes that came between two looks; all of them where it began in between.
    fn came(&self, from_ms: f64, to_ms: f64) -> Option<u64> {
        let at = |ms: f64| self.steps.iter().find(|(t_ms, _)| *t_ms == ms).map(|(_, one)| *one);
        let to = at(to_ms)?;
        let is_younger = || to.total_ms.is_some_and(|ms| ms as f64 <= to_ms - from_ms);
        let before = match at(from_ms) {
            Some(from) => from.recovered_bytes?,
            None => is_younger().then_some(0)?,
        };
        to.recovered_bytes?.checked_sub(before)
    }
}

/// One node over several looks, since its last start. Not every look asks for every counter, so each counter is
/// compared over the looks that have it.
#[derive(Clone, Debug, Default)]
pub(crate) struct NodeSpan<'a> {
    steps: Vec<(f64, &'a Node)>,
}

/// By how much a counter rose, and in what time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rise {
    pub count: u64,
    pub wall_ms: f64,
}

impl Rise {
    /// A counter of milliseconds as a share of the time.
    pub fn share(self) -> f64 {
        self.count as f64 / self.wall_ms
    }

    /// A second.
    pub fn per_s(self) -> f64 {
        self.share() * 1e3
    }
}

impl<'a> NodeSpan<'a> {
    fn push(&mut self, t_ms: f64, node: &'a Node) {
        let steps = &mut self.steps;
        // Names need not be unique: the first of a name counts.
        if steps.last().is_some_and(|(last_ms, _)| *last_ms == t_ms) {
            return;
        }
        // A node that started again counts from zero. Not every look asks for both of these.
        let fell = |counter: fn(&Node) -> Option<u64>| {
            let before = steps.iter().rev().find_map(|(_, before)| counter(before));
            counter(node).zip(before).is_some_and(|(now, then)| now < then)
        };
        if fell(|node| node.uptime_ms) || fell(|node| node.process_cpu_ms) {
            steps.clear();
        }
        steps.push((t_ms, node));
    }

    fn is_told(&self) -> bool {
        self.steps.len() >= 2
    }

    pub fn last(&self) -> &'a Node {
        self.steps[self.steps.len() - 1].1
    }

    /// The first and the last value that looks have.
    pub fn ends<T>(&self, told: impl Fn(&'a Node) -> Option<T>) -> Option<(T, T)> {
        let first = self.steps.iter().find_map(|(_, node)| told(node))?;
        Some((first, self.latest(told)?))
    }

    /// The last value that a look has.
    pub fn latest<T>(&self, told: impl Fn(&'a Node) -> Option<T>) -> Option<T> {
        self.steps.iter().rev().find_map(|(_, node)| told(node))
    }

    /// The rise of a counter from the first look that has it to the last; none if fewer than two have it, or it fell.
    pub fn over(&self, counter: impl Fn(&Node) -> Option<u64>) -> Option<Rise> {
        let mut told = self.steps.iter().filter(|(_, node)| counter(node).is_some());
        rise(told.next()?, told.next_back()?, counter)
    }

    /// The same over the last two looks that have it.
    pub fn lately(&self, counter: impl Fn(&Node) -> Option<u64>) -> Option<Rise> {
        let mut told = self.steps.iter().rev().filter(|(_, node)| counter(node).is_some());
        let last = told.next()?;
        rise(told.next()?, last, counter)
    }

    /// By how much a counter rose.
    pub fn rise(&self, counter: impl Fn(&Node) -> Option<u64>) -> Option<u64> {
        Some(self.over(counter)?.count)
    }

    /// A counter of milliseconds as a share of the time.
    pub fn share(&self, counter: impl Fn(&Node) -> Option<u64>) -> Option<f64> {
        Some(self.over(counter)?.share())
    }

    /// A counter a second.
    pub fn per_s(&self, counter: impl Fn(&Node) -> Option<u64>) -> Option<f64> {
        Some(self.over(counter)?.per_s())
    }

    /// The mean of a gauge over the looks that have it.
    pub fn mean(&self, gauge: impl Fn(&Node) -> Option<u64>) -> Option<f64> {
        let told = self.steps.iter().filter_map(|(_, node)| gauge(node));
        let (sum, count) = told.fold((0, 0), |(sum, count), one| (sum + one, count + 1));
        (count > 0).then(|| sum as f64 / f64::from(count))
    }
}

impl NodeSpan<'_> {
    /// CPU of the node as a share of its cores, and the field that says so: of its machine or of its process,
    /// whichever is more. A process is measured against the cores that it may use.
    pub fn cpu(&self) -> Option<(f64, &'static str)> {
        let os = self
            .mean(|node| node.os_cpu_percent)
            .map(|percent| (percent / 100.0, "os.cpu.percent"));
        let own = self.process_cpu().map(|share| (share, "process.cpu.total_in_millis"));
        match (os, own) {
            (Some(os), Some(own)) => Some(if own.0 > os.0 { own } else { os }),
            (os, own) => os.or(own),
        }
    }

    /// CPU of the process as a share of the cores that it may use.
    pub fn process_cpu(&self) -> Option<f64> {
        let used_cores = self.share(|node| node.process_cpu_ms)?;
        Some(used_cores / self.last().cores?.max(1) as f64)
    }

    /// Time that the node's control group kept it from running, over wall time. It is summed over cores, so that it
    /// may exceed 1.
    pub fn cgroup_throttled(&self) -> Option<f64> {
        Some(self.share(|node| node.cgroup_throttled_ns)? / 1e6)
    }

    /// Bytes a second of a counter in KiB.
    pub fn bytes_per_s(&self, kib: impl Fn(&Node) -> Option<u64>) -> Option<f64> {
        Some(self.per_s(kib)? * 1024.0)
    }
}

/// What a counter did between two looks, by the node's own clock where it has one.
fn rise(
    (then_ms, then): &(f64, &Node),
    (now_ms, now): &(f64, &Node),
    counter: impl Fn(&Node) -> Option<u64>,
) -> Option<Rise> {
    let count = counter(now)?.checked_sub(counter(then)?)?;
    let wall_ms = match now.timestamp_ms.zip(then.timestamp_ms) {
        Some((now, then)) if now > then => (now - then) as f64,
        _ => now_ms - then_ms,
    };
    Some(Rise { count, wall_ms })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks every second of a node whose disks are asked for every fifth time.
    #[test]
    fn a_counter_that_is_asked_for_rarely_is_taken_over_the_looks_that_told_it() {
        let look = |s: u64| Observation {
            nodes: vec![Node {
                name: "a".into(),
                transport_rx_bytes: Some(s * 1000),
                io_time_ms: (s.is_multiple_of(5)).then_some(s * 500),
                ..Node::default()
            }],
            ..Observation::default()
        };
        let looks: Vec<Observation> = (0..=13).map(look).collect();
        let series = Series::new((0..=13).map(|s| (f64::from(s) * 1e3, &looks[s as usize])));
        let node = series.node("a").unwrap();
        let disk = node.over(|node| node.io_time_ms).unwrap();
        assert_eq!((disk.wall_ms, disk.share()), (10_000.0, 0.5));
        assert_eq!(node.lately(|node| node.io_time_ms).unwrap().wall_ms, 5000.0);
        assert_eq!(node.lately(|node| node.transport_rx_bytes).unwrap().per_s(), 1000.0);
        assert_eq!(node.latest(|node| node.io_time_ms), Some(5000));
        assert_eq!(node.over(|node| node.gc_ms), None);
    }
}
