//! What a twin answers: how long until green, by what it is held, and what it costs those who search and index.

use std::collections::BTreeMap;

use record::units::{parse_rate, parse_size};
use record::{Limit, Line, NodeSample, RecoverySample, RunDir};
use serde::Serialize;

/// The stages of a sample that are no stage of a recovery.
const UNASSIGNED: &str = "UNASSIGNED";
const DELAYED: &str = "DELAYED";
const WAITING: &str = "WAITING";
const DONE: &str = "DONE";
/// What the time may differ by because of all that is not modelled, as a share. Fitted to the 24 cases of seed 1 in
/// `docs/benchmarks/what_if.md`, of which nine in ten were off by less than 22 %; cases of another seed judge it there.
pub const NOT_MODELLED: f64 = 0.2;
/// The time may differ by so many seconds in any case. Whoever looks at a cluster once a second, as `watch` does, sees
/// what happened half a second late in the mean, and a copy may wait for as long without a reason that a twin knows.
pub const NOT_MODELLED_S: f64 = 0.5;
/// What notes about full disks name.
const WATERMARK: &str = "cluster.routing.allocation.disk.watermark.";
/// What notes say of copies whose nodes restarted.
const CAME_BACK: &str = " came back ";
/// A curve has so many points at most.
const POINTS_MAX: usize = 60;
/// What a node uses at most is looked for over times in which it moves so many chunks. A chunk counts when the whole of
/// it is sent or has come, so that between two samples a large one seems to go far faster than the bytes do.
const CHUNKS_OF_A_WINDOW: u64 = 64;

/// An answer for one variant.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answer {
    /// The variant.
    pub variant: String,
    /// Its settings, as far as they differ from those of the first variant.
    pub changed: BTreeMap<String, String>,
    /// Seconds until green with every value as it is known or assumed.
    pub green_s: f64,
    /// The least and the most over all draws of what is not known, lowered and raised by [`NOT_MODELLED`] or
    /// [`NOT_MODELLED_S`], whichever is more; never less than nodes are away in any draw or copies are delayed, and
    /// never below 0.
    pub between_s: (f64, f64),
    /// Seconds for which nodes are away that restart, one after another: they are asked for, and pass in any case. The
    /// least over all draws.
    pub away_s: f64,
    /// How many draws there were, the first included.
    pub draws: usize,
    /// How many times faster it is than the first variant in the same draw.
    pub gain: f64,
    /// Bytes that were copied.
    pub bytes: u64,
    /// What went on, one thing after another.
    pub phases: Vec<Phase>,
    /// What was outstanding.
    pub curve: Vec<Point>,
    /// What the nodes spent on it.
    pub foreground: Foreground,
    /// The disks that are above a watermark in the end, a sentence each.
    pub full_disks: Vec<String>,
    /// How the copies of nodes that restarted came back, in a sentence: by operations or by files.
    pub came_back: Vec<String>,
}

/// A time in which one thing held it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Phase {
    /// When it begins, in seconds since the variant did.
    pub from_s: f64,
    /// When it ends.
    pub to_s: f64,
    /// What went on.
    pub what: Held,
    /// Copies that are not started at its beginning.
    pub copies: u32,
    /// Of the time that copies were being made in it, the share of each limit, largest first.
    pub limits: Vec<(Limit, f64)>,
}

/// What goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Held {
    /// The cluster has not noticed yet, or is all green between two nodes that restart.
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

/// What is outstanding at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Point {
    /// Seconds since it began.
    pub t_s: f64,
    /// Copies that are not started.
    pub copies: u32,
    /// Bytes that are to be copied.
    pub bytes: u64,
}

/// What recovery takes of the nodes. Each share is the most that any node used at any time; none where the record does
/// not say what a node has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Foreground {
    /// Share of a network card, in the busier direction.
    pub link_peak: Option<f64>,
    /// Share of a disk's rate: what is received is written, what is sent was read.
    pub disk_peak: Option<f64>,
    /// Share of a node's cores.
    pub cores_peak: Option<f64>,
    /// Nodes that sent or received more than a hundredth of what all copied.
    pub nodes: usize,
}

impl Held {
    /// Its name in tables.
    pub fn label(self) -> &'static str {
        match self {
            Held::NotNoticed => "no copy is known to be missing",
            Held::Away => "the node is away",
            Held::Delayed => "delayed allocation: copies wait for their node",
            Held::Allocating => "waits for the allocator",
            Held::Copying => "copies are made",
        }
    }
}

/// The answers of a run, in the order of its variants. Variants of which no lap has ended have none.
pub fn answers(run: &RunDir) -> Vec<Answer> {
    let Some(first) = run.manifest.variants.first() else { return Vec::new() };
    let seconds = |name: &str| -> BTreeMap<u32, f64> {
        let rows = run.rows.iter().filter(|row| row.variant == name);
        rows.map(|row| (row.lap, row.seconds)).collect()
    };
    let base = seconds(&first.name);
    let answer = |variant: &record::VariantInfo| {
        let laps = seconds(&variant.name);
        let (shown, green_s) = laps.iter().next().map(|(lap, seconds)| (*lap, *seconds))?;
        let min = laps.values().copied().fold(f64::INFINITY, f64::min);
        let max = laps.values().copied().fold(0.0, f64::max);
        let row = run.rows.iter().find(|row| row.variant == variant.name && row.lap == shown)?;
        let samples = samples(run, &variant.name, shown);
        let seconds_away = |lap: u32| -> f64 {
            // A sum of nothing is -0.
            away(run, &variant.name, lap)
                .iter()
                .fold(0.0, |sum, (from_s, to_s)| sum + to_s - from_s)
        };
        let away_s = laps.keys().map(|lap| seconds_away(*lap)).fold(f64::INFINITY, f64::min);
        // Where nodes restart, copies wait for them while they are away.
        let certain_s = match away_s > 0.0 {
            true => away_s,
            false => delayed_until(&samples),
        };
        let away = away(run, &variant.name, shown);
        let differs = |(name, value): &(&String, &String)| first.settings.get(*name) != Some(value);
        Some(Answer {
            variant: variant.name.clone(),
            changed: variant
                .settings
                .iter()
                .filter(differs)
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
            green_s,
            between_s: between(min, max, certain_s),
            away_s,
            draws: laps.len(),
            gain: base.get(&shown).map_or(1.0, |base| base / green_s),
            bytes: row.bytes,
            phases: phases(&samples, &away, green_s),
            curve: curve(&samples, green_s),
            foreground: foreground(run, variant, shown),
            full_disks: notes(run, &variant.name, WATERMARK),
            came_back: notes(run, &variant.name, CAME_BACK),
        })
    };
    run.manifest.variants.iter().filter_map(answer).collect()
}

/// The interval over draws that took from `min` to `max` seconds, where nodes are away or copies are delayed for some
/// of them: that much is certain, whatever is not modelled.
fn between(min: f64, max: f64, certain_s: f64) -> (f64, f64) {
    let certain = certain_s.min(min);
    let not_modelled = |seconds: f64| (seconds * NOT_MODELLED).max(NOT_MODELLED_S);
    ((min - not_modelled(min)).max(certain), max + not_modelled(max))
}

/// When copies still waited for their node, at the last look that saw some: not one of them is made before. The delay
/// is a setting, and the same in every draw.
fn delayed_until(samples: &[(f64, &RecoverySample)]) -> f64 {
    let last = samples.iter().rfind(|(_, sample)| count(sample, DELAYED) > 0);
    last.map_or(0.0, |(t_s, _)| *t_s)
}

/// From when to when nodes of a variant's lap were away that came back, in seconds since the lap began.
fn away(run: &RunDir, name: &str, of_lap: u32) -> Vec<(f64, f64)> {
    let began_ms = began_ms(run, name, of_lap);
    let mut spans: Vec<(f64, f64)> = Vec::new();
    for line in &run.lines {
        let Line::Phase { t_ms, variant: Some(variant), lap, phase } = line else { continue };
        if phase.name != record::Phase::AWAY || variant != name || *lap != of_lap {
            continue;
        }
        let t_s = (t_ms - began_ms) / 1e3;
        if phase.begins {
            spans.push((t_s, t_s));
        } else if let Some((_, to_s)) = spans.last_mut() {
            *to_s = t_s;
        }
    }
    spans
}

/// The samples of a variant's lap, with seconds since the lap began.
fn samples<'a>(run: &'a RunDir, name: &str, of_lap: u32) -> Vec<(f64, &'a RecoverySample)> {
    let began_ms = began_ms(run, name, of_lap);
    let one = |line: &'a Line| match line {
        Line::Recovery { t_ms, variant, lap, sample } if variant == name && *lap == of_lap => {
            Some(((t_ms - began_ms) / 1e3, sample))
        }
        _ => None,
    };
    run.lines.iter().filter_map(one).collect()
}

/// The notes on a variant with these words.
fn notes(run: &RunDir, name: &str, words: &str) -> Vec<String> {
    let one = |line: &Line| match line {
        Line::Note { variant: Some(variant), text, .. } if variant == name => {
            text.contains(words).then(|| text.clone())
        }
        _ => None,
    };
    run.lines.iter().filter_map(one).collect()
}

fn began_ms(run: &RunDir, name: &str, of_lap: u32) -> f64 {
    let of = |line: &Line| match line {
        Line::Phase { t_ms, variant, lap, phase }
            if phase.begins
                && phase.name == "recover"
                && variant.as_deref() == Some(name)
                && *lap == of_lap =>
        {
            Some(*t_ms)
        }
        _ => None,
    };
    run.lines.iter().find_map(of).unwrap_or(0.0)
}

fn count(sample: &RecoverySample, stage: &str) -> u32 {
    sample.stages.get(stage).copied().unwrap_or(0)
}

/// Recoveries that go on.
fn active(sample: &RecoverySample) -> u32 {
    let none = [UNASSIGNED, DELAYED, WAITING, DONE];
    let stages = sample.stages.iter().filter(|(stage, _)| !none.contains(&stage.as_str()));
    stages.map(|(_, count)| count).sum()
}

fn outstanding(sample: &RecoverySample) -> u32 {
    count(sample, UNASSIGNED) + count(sample, WAITING) + active(sample)
}

fn held(sample: &RecoverySample, is_away: bool) -> Held {
    let homeless = count(sample, UNASSIGNED) + count(sample, WAITING);
    match (active(sample), homeless, count(sample, DELAYED)) {
        (0, 0, _) if !is_away => Held::NotNoticed,
        (0, 0, _) | (0, _, 0) if is_away => Held::Away,
        (0, _, 0) => Held::Allocating,
        (0, _, _) => Held::Delayed,
        _ => Held::Copying,
    }
}

/// What went on, from one change to the next, where nodes were `away` from time to time. What went on between two
/// samples is what the earlier one shows.
fn phases(samples: &[(f64, &RecoverySample)], away: &[(f64, f64)], green_s: f64) -> Vec<Phase> {
    let mut phases: Vec<Phase> = Vec::new();
    let mut charged = BTreeMap::new();
    let start = std::iter::once((0.0, None));
    let all: Vec<(f64, Option<&RecoverySample>)> =
        start.chain(samples.iter().map(|(t, sample)| (*t, Some(*sample)))).collect();
    for (at, (from_s, sample)) in all.iter().enumerate() {
        let to_s = all.get(at + 1).map_or(green_s, |(t, _)| t.min(green_s));
        // A node goes away just after a sample or before the first one: the middle says whether it was away.
        let middle_s = f64::midpoint(*from_s, to_s);
        let is_away = away.iter().any(|(from_s, to_s)| (*from_s..*to_s).contains(&middle_s));
        let before_all = RecoverySample::default();
        let what = held(sample.unwrap_or(&before_all), is_away);
        let now = all.get(at + 1).and_then(|(_, next)| *next).map(|next| &next.charged_s);
        let more: BTreeMap<Limit, f64> = now
            .into_iter()
            .flatten()
            .map(|(limit, s)| (*limit, s - charged.get(limit).copied().unwrap_or(0.0)))
            .filter(|(_, s)| *s > 0.0)
            .collect();
        if let Some(now) = now {
            charged = now.clone();
        }
        if to_s <= *from_s {
            continue;
        }
        let is_same = phases.last().is_some_and(|last| last.what == what);
        if !is_same {
            let copies = sample.map_or(0, outstanding);
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
        let sum: f64 = phase.limits.iter().map(|(_, seconds)| seconds).sum();
        phase.limits.iter_mut().for_each(|(_, seconds)| *seconds /= sum);
        phase.limits.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    }
    phases
}

/// What is outstanding at each sample. One that was taken a while after the end shows the end.
fn curve(samples: &[(f64, &RecoverySample)], green_s: f64) -> Vec<Point> {
    // Where copies wait to be moved, what is to be moved is an estimate, and in the end it is known: of those that
    // still seem to wait then, nothing is moved any more.
    let end = samples.last().map(|(_, sample)| *sample);
    let is_over = end.is_some_and(|end| active(end) + count(end, UNASSIGNED) == 0);
    let known = end.map_or(0, |end| if is_over { end.recovered_bytes } else { end.total_bytes });
    let total = |sample: &RecoverySample| match sample.stages.contains_key(WAITING) {
        true => sample.total_bytes.min(known),
        false => sample.total_bytes,
    };
    let point = |(t_s, sample): &(f64, &RecoverySample)| Point {
        t_s: t_s.min(green_s),
        copies: if is_over && *t_s >= green_s { 0 } else { outstanding(sample) },
        bytes: total(sample).saturating_sub(sample.recovered_bytes),
    };
    let each = samples.len().div_ceil(POINTS_MAX).max(1);
    let last = samples.len().saturating_sub(1);
    let kept = samples.iter().enumerate().filter(|(at, _)| at % each == 0 || *at == last);
    kept.map(|(_, sample)| point(sample)).collect()
}

/// A model parameter of a variant as a number.
fn model(variant: &record::VariantInfo, name: &str) -> Option<f64> {
    let row = variant.models.iter().find(|row| row.name == name)?;
    let rate = || parse_rate(&row.value).or_else(|_| parse_size(&row.value)).ok();
    row.value.parse::<f64>().ok().or_else(|| rate().map(|rate| rate as f64))
}

fn foreground(run: &RunDir, variant: &record::VariantInfo, of_lap: u32) -> Foreground {
    // The first node manages the twin's cluster and holds nothing: it stands for none of the nodes that were seen.
    let manager = run.manifest.nodes.first().map(|node| &node.name);
    let mut by_node: BTreeMap<&str, Vec<(f64, &NodeSample)>> = BTreeMap::new();
    for line in &run.lines {
        if let Line::Node { t_ms, variant: Some(name), lap, sample } = line
            && *name == variant.name
            && *lap == of_lap
            && Some(&sample.node) != manager
        {
            by_node.entry(&sample.node).or_default().push((t_ms / 1e3, sample));
        }
    }
    let chunks = samples(run, &variant.name, of_lap);
    let chunk_bytes = chunks.iter().filter_map(|(_, sample)| sample.chunk_bytes).max().unwrap_or(0);
    let window_bytes = chunk_bytes.saturating_mul(CHUNKS_OF_A_WINDOW);
    let by_node: Vec<Vec<Used>> = by_node.values().map(|samples| used(samples)).collect();
    let moved = |used: &[Used]| used.last().map_or(0, |last| last.rx_bytes.max(last.tx_bytes));
    // What one node sends another one receives: it is copied once.
    let all: u64 = by_node.iter().filter_map(|used| Some(used.last()?.rx_bytes)).sum();
    let taking_part: Vec<&Vec<Used>> =
        by_node.iter().filter(|used| moved(used) * 100 > all).collect();
    let peaks = taking_part.iter().map(|used| peak(used, window_bytes));
    let (rx, tx, cores) = peaks.fold((0.0f64, 0.0f64, 0.0f64), |most, peak| {
        (most.0.max(peak.0), most.1.max(peak.1), most.2.max(peak.2))
    });
    let share = |of: f64, name: &str| model(variant, name).map(|whole| (of / whole).min(1.0));
    let disk = [share(rx, "disk.write_bytes_per_s"), share(tx, "disk.read_bytes_per_s")];
    Foreground {
        link_peak: share(rx.max(tx), "card.bytes_per_s"),
        disk_peak: disk.into_iter().flatten().reduce(f64::max),
        cores_peak: share(cores, "cores.count"),
        nodes: taking_part.len(),
    }
}

/// What a node had used by the time of a sample, since its first one.
#[derive(Clone, Copy, Debug, Default)]
struct Used {
    t_s: f64,
    rx_bytes: u64,
    tx_bytes: u64,
    cores_s: f64,
}

impl Used {
    fn bytes(&self) -> u64 {
        self.rx_bytes + self.tx_bytes
    }
}

fn used<'s>(samples: &[(f64, &'s NodeSample)]) -> Vec<Used> {
    let (mut sum, mut before) = (Used::default(), None::<&'s NodeSample>);
    let so_far = |(t_s, sample): &(f64, &'s NodeSample)| {
        if let Some(before) = before.replace(*sample) {
            // A node that restarted counts from its own start.
            let more = |before: u64, now: u64| now.checked_sub(before).unwrap_or(now);
            sum.rx_bytes += more(before.transport_rx_bytes, sample.transport_rx_bytes);
            sum.tx_bytes += more(before.transport_tx_bytes, sample.transport_tx_bytes);
            sum.cores_s += sample.cpu_cores.max(0.0) * (t_s - sum.t_s);
        }
        sum.t_s = *t_s;
        sum
    };
    samples.iter().map(so_far).collect()
}

/// The most that a node received, sent, and used of its cores in a second: of each sample the shortest time before it
/// in which so many bytes were moved counts, or all that the node moved where that is less.
fn peak(used: &[Used], bytes: u64) -> (f64, f64, f64) {
    let needed = used.last().map_or(0, Used::bytes).min(bytes).max(1);
    let (mut peak, mut from) = ((0.0f64, 0.0f64, 0.0f64), 0);
    for to in used {
        let moved_since = |from: &Used| to.bytes().saturating_sub(from.bytes());
        while used.get(from + 1).is_some_and(|next| moved_since(next) >= needed) {
            from += 1;
        }
        let from = &used[from];
        let seconds = to.t_s - from.t_s;
        if moved_since(from) < needed || seconds <= 0.0 {
            continue;
        }
        let of_bytes = |before: u64, now: u64| (now - before) as f64 / seconds;
        peak.0 = peak.0.max(of_bytes(from.rx_bytes, to.rx_bytes));
        peak.1 = peak.1.max(of_bytes(from.tx_bytes, to.tx_bytes));
        peak.2 = peak.2.max((to.cores_s - from.cores_s) / seconds);
    }
    peak
}

#[cfg(test)]
mod tests;
