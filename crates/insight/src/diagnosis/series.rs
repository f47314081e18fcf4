//! Observations in the order of time, and what changed between them.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

use record::observation::{AnswerTime, Node, Observation, Recovery, Remote, Scope, Setting};

use super::node_span::NodeSpan;
use super::threshold::{NEAR_MS, SHORT_S};
use crate::stats::mean;

pub(crate) const MS_PER_S: f64 = 1e3;
pub(crate) const NS_PER_MS: f64 = 1e6;

/// Looks at one cluster, with milliseconds since the first.
#[derive(Clone, Debug)]
pub struct Series<'a> {
    looks: Vec<(f64, &'a Observation)>,
    /// Asked for by many judges, and made once.
    transfers: OnceCell<Vec<Transfer<'a>>>,
    /// By name.
    nodes: OnceCell<Vec<NodeSpan<'a>>>,
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

    /// Settings as the last look that asked found them.
    pub(crate) fn settings(&self) -> Option<&'a BTreeMap<String, Setting>> {
        self.looks.iter().rev().find_map(|(_, look)| look.settings.as_ref())
    }

    /// A setting as the last look that asked found it.
    pub fn setting(&self, name: &str) -> Option<&'a Setting> {
        self.settings()?.get(name)
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

    /// The value of a setting, or its default where the cluster does not say.
    pub(crate) fn value_or_default(&self, name: &str, default: &'static str) -> &'a str {
        self.setting(name).map_or(default, |setting| setting.value.as_str())
    }

    /// A setting as it is, or its default where the cluster does not say.
    pub(crate) fn setting_or_default(&self, name: &str, default: &str) -> Setting {
        let assumed = || Setting { value: default.to_owned(), scope: Scope::Default };
        self.setting(name).cloned().unwrap_or_else(assumed)
    }

    /// Whether the cluster also reports settings that nobody set: then one that it does not report does not exist.
    pub(crate) fn tells_defaults(&self) -> bool {
        self.settings().is_some_and(|all| all.values().any(|one| one.scope == Scope::Default))
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

    /// That of a recovery of the last look.
    pub(crate) fn transfer(&self, recovery: &Recovery) -> Option<&Transfer<'a>> {
        let all = self.transfers();
        // They stand in the order of their keys.
        let at = all.binary_search_by(|one| one.last().key().cmp(&recovery.key()));
        at.ok().map(|at| &all[at])
    }

    fn find_transfers(&self) -> Vec<Transfer<'a>> {
        let seen = self.in_order(|look| &look.recoveries[..], Recovery::key);
        let transfer = |steps: &[(f64, &'a Recovery)]| {
            let is_told = steps.len() >= 2 || (self.looks.len() >= 2 && is_long(steps[0].1));
            is_told.then(|| Transfer { steps: steps.to_vec() })
        };
        seen.chunk_by(|a, b| a.1.key() == b.1.key()).filter_map(transfer).collect()
    }

    /// All that looks tell of a kind of thing, in the order of its keys, and of one key in the order of time. One look
    /// has nearly the order of the next, which a sort makes use of.
    fn in_order<T: 'a, K: Ord>(
        &self,
        told: fn(&'a Observation) -> &'a [T],
        key: fn(&'a T) -> K,
    ) -> Vec<(f64, &'a T)> {
        let of_look =
            |&(t_ms, look): &(f64, &'a Observation)| told(look).iter().map(move |one| (t_ms, one));
        let mut all: Vec<(f64, &'a T)> = self.looks.iter().flat_map(of_look).collect();
        all.sort_by_key(|one| key(one.1));
        all
    }

    /// Shortest and longest round trip between two nodes; none if nobody measured it. Those from the source count where
    /// there are any: its requests take the path that its chunks take, and the path back may be another.
    pub(crate) fn rtts_ms(&self, source: &str, target: &str) -> Option<(f64, f64)> {
        self.trips_ms(source, target).or_else(|| self.trips_ms(target, source))
    }

    fn trips_ms(&self, from: &str, to: &str) -> Option<(f64, f64)> {
        let all = self.looks.iter().flat_map(|(_, look)| &look.round_trips);
        let between = all.filter(|trip| trip.from == from && trip.to == to);
        let both = between.map(|trip| (trip.rtt_ms, trip.rtt_ms));
        both.reduce(|(shortest, longest), (ms, _)| (shortest.min(ms), longest.max(ms)))
    }

    /// What a round trip between two nodes hardly exceeds, where nobody measured it: those from a third node to both.
    /// Each counts for what can be measured at least.
    pub(crate) fn rtt_at_most_ms(&self, source: &str, target: &str) -> Option<f64> {
        let shortest = |to: &str| {
            let mut from_each: BTreeMap<&str, f64> = BTreeMap::new();
            let all = self.looks.iter().flat_map(|(_, look)| &look.round_trips);
            for trip in all.filter(|trip| trip.to == to) {
                let known = from_each.entry(&trip.from).or_insert(f64::INFINITY);
                *known = known.min(trip.rtt_ms.max(NEAR_MS.value));
            }
            from_each
        };
        let (to_source, to_target) = (shortest(source), shortest(target));
        let both = to_source.iter().filter_map(|(from, ms)| Some(ms + to_target.get(from)?));
        both.reduce(f64::min)
    }

    /// Shortest and longest round trip to a remote cluster, from the node that is nearest to it.
    pub(crate) fn remote_rtts_ms(&self, alias: &str) -> Option<(f64, f64)> {
        let all = self.looks.iter().flat_map(|(_, look)| &look.round_trips);
        let there = all.filter(|trip| trip.to == alias);
        let nearest = there.min_by(|a, b| a.rtt_ms.total_cmp(&b.rtt_ms))?;
        self.trips_ms(&nearest.from, alias)
    }

    /// The shortest of them.
    pub(crate) fn remote_rtt_ms(&self, alias: &str) -> Option<f64> {
        self.remote_rtts_ms(alias).map(|(shortest, _)| shortest)
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

    /// How much later than its fastest answer those of a node came, in milliseconds, on average; none where it was not
    /// asked directly.
    pub(crate) fn slower_by_ms(&self, node: &str) -> Option<f64> {
        let fastest =
            self.answers(node).map(|answer| answer.ms.min(answer.again_ms)).reduce(f64::min)?;
        Some(self.answers_in_ms(node)? - fastest)
    }

    /// The nodes that were asked for themselves.
    pub(crate) fn answering(&self) -> BTreeSet<&'a str> {
        let all = self.looks.iter().flat_map(|(_, look)| &look.answers);
        all.map(|answer| answer.node.as_str()).collect()
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
        let all = self.all_nodes();
        let at = all.binary_search_by(|span| span.last().name.as_str().cmp(name)).ok()?;
        Some(&all[at]).filter(|span| span.is_told())
    }

    /// What every node did that was seen twice since it last started, by name.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = &NodeSpan<'a>> {
        self.all_nodes().iter().filter(|span| span.is_told())
    }

    fn all_nodes(&self) -> &[NodeSpan<'a>] {
        self.nodes.get_or_init(|| {
            let all = self.in_order(|look| &look.nodes[..], |node| node.name.as_str());
            all.chunk_by(|a, b| a.1.name == b.1.name).map(NodeSpan::of).collect()
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

/// Whether a recovery goes on, or went, for long enough to be worth a finding.
pub(crate) fn is_long(recovery: &Recovery) -> bool {
    recovery.total_ms.is_some_and(|ms| ms as f64 >= SHORT_S.value * MS_PER_S)
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

    /// Whether nothing came of it for as long as is worth a finding, and it is not over.
    pub fn stands_still(&self) -> bool {
        let is_long = self.wall_ms() >= SHORT_S.value * MS_PER_S;
        is_long && self.bytes() == Some(0) && !self.last().ended
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

    /// Bytes a second of another one during this one's time: what it moved before or after counts nothing.
    pub fn meanwhile(&self, other: &Transfer<'_>) -> Option<f64> {
        Some(other.bytes_per_s()? * self.overlap(other))
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
        let active = || self.steps.iter().filter(|(_, recovery)| !recovery.ended);
        let within = active().filter(|(_, recovery)| recovery.stage == stage).count();
        match active().count() {
            0 => 0.0,
            count => within as f64 / count as f64,
        }
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
            let own = now.recovered_bytes?.checked_sub(then.recovered_bytes?)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recoveries_and_nodes_stand_by_name_and_their_looks_by_time() {
        let recovery = |index: &str, bytes| Recovery {
            index: index.into(),
            stage: "INDEX".into(),
            recovered_bytes: Some(bytes),
            ..Recovery::default()
        };
        let node = |name: &str, searches| Node {
            name: name.into(),
            searches: Some(searches),
            ..Node::default()
        };
        let look = |s: u64, indices: [&str; 2]| Observation {
            recoveries: indices.map(|index| recovery(index, s * 10)).into(),
            // Of two nodes of one name the first counts.
            nodes: vec![node("b", s), node("a", s), node("b", 99)],
            ..Observation::default()
        };
        let looks = [look(1, ["y", "x"]), look(2, ["x", "y"]), look(3, ["y", "z"])];
        let series = Series::new([1e3, 2e3, 3e3].into_iter().zip(&looks));
        let bytes = |one: &Transfer<'_>| (one.last().index.clone(), one.bytes());
        let found: Vec<_> = series.transfers().iter().map(bytes).collect();
        assert_eq!(found, [("x".to_owned(), Some(10)), ("y".to_owned(), Some(20))]);
        let ends =
            series.nodes().map(|span| (span.last().name.as_str(), span.ends(|n| n.searches)));
        assert_eq!(ends.collect::<Vec<_>>(), [("a", Some((1, 3))), ("b", Some((1, 3)))]);
        assert!(series.node("c").is_none());
        assert_eq!(series.value_or_default("cluster.name", "none"), "none");
    }
}
