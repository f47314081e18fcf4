//! What a twin answers: how long until green, by what it is held, and what it costs those who search and index.

mod curve;
mod phases;
mod recovery_use;

use std::collections::BTreeMap;

use record::stage::DELAYED;
use record::{Line, RecoverySample, RunDir};
use serde::Serialize;

pub use self::curve::Point;
pub use self::phases::{Phase, PhaseKind};
pub use self::recovery_use::RecoveryUse;

use self::curve::curve;
use self::phases::{count, phases};
use self::recovery_use::recovery_use;
use crate::recoveries::times_compare;

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
    /// Seconds for which copies of lost nodes wait for them, which pass in any case; 0 where nodes restart. The same in
    /// every draw, as a setting says it.
    pub delayed_s: f64,
    /// How many draws there were, the first included.
    pub draws: usize,
    /// How many times as fast as the first variant it is in the same draw; 1 where only one of both is ever green, or
    /// one that never is copies nothing.
    pub gain: f64,
    /// Bytes that were copied.
    pub bytes: u64,
    /// What went on, one thing after another.
    pub phases: Vec<Phase>,
    /// What was outstanding.
    pub curve: Vec<Point>,
    /// What the nodes spent on it, and those who search and index do not have meanwhile: `foreground` in JSON.
    #[serde(rename = "foreground")]
    pub recovery_use: RecoveryUse,
    /// Which copies find no place and why, in a sentence; all seconds go until the others are placed.
    pub never_green: Vec<String>,
    /// The disks that are above a watermark in the end, a sentence each.
    pub full_disks: Vec<String>,
    /// How the copies of nodes that restarted came back, in a sentence: by operations or by files.
    pub came_back: Vec<String>,
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
        let mut samples = samples(run, &variant.name, shown);
        // The end is seen once: a cluster that is never green is looked at for a while longer.
        let before_end = samples.iter().take_while(|(t_s, _)| *t_s < green_s).count();
        samples.truncate(before_end + 1);
        let seconds_away = |lap: u32| -> f64 {
            // A sum of nothing is -0.
            let spans = away(run, &variant.name, lap);
            spans.iter().fold(0.0, |sum, (from_s, to_s)| sum + to_s - from_s)
        };
        let away_s = laps.keys().map(|lap| seconds_away(*lap)).fold(f64::INFINITY, f64::min);
        // Where nodes restart, copies wait for them while they are away.
        let delayed_s = if away_s > 0.0 { 0.0 } else { delayed_until(&samples) };
        let away = away(run, &variant.name, shown);
        let chunks = samples.iter().filter_map(|(_, sample)| sample.chunk_bytes);
        let chunk_bytes = chunks.max().unwrap_or(0);
        let differs = |(name, value): &(&String, &String)| first.settings.get(*name) != Some(value);
        let changed = variant.settings.iter().filter(differs);
        let of_lap = |name: &str| {
            let row = run.rows.iter().find(|row| row.variant == name && row.lap == shown);
            (run.never_green(name).next().is_some(), row.map_or(0, |row| row.bytes))
        };
        let compares = times_compare(of_lap(&first.name), of_lap(&variant.name));
        let base = base.get(&shown).filter(|_| compares);
        let gain = base.map(|base| base / green_s).filter(|gain| gain.is_finite());
        Some(Answer {
            variant: variant.name.clone(),
            changed: changed.map(|(name, value)| (name.clone(), value.clone())).collect(),
            green_s,
            between_s: between(min, max, away_s.max(delayed_s)),
            away_s,
            delayed_s,
            draws: laps.len(),
            gain: gain.unwrap_or(1.0),
            bytes: row.bytes,
            phases: phases(&samples, &away, green_s),
            curve: curve(&samples, green_s, !away.is_empty()),
            recovery_use: recovery_use(run, variant, shown, chunk_bytes),
            never_green: run.never_green(&variant.name).map(str::to_owned).collect(),
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

#[cfg(test)]
mod tests;
