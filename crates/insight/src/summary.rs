//! A run as a table: one entry a variant, over its laps.

use std::collections::BTreeMap;

use record::{FollowFigures, Limit, LimitShare, LoadFigures, Manifest, Row, RunDir, StreamFigures};

use crate::bounds::Bounds;
use crate::diagnosis::{self, Diagnosis, diagnose};
use crate::follow::VariantFollow;
use crate::stats::{self, Interval};
use crate::trace::{Trace, Traces, traces};
use crate::verdict::{Verdict, verdict};
use crate::{finding, follow, gaps, load, threads};

/// What a run amounts to.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary<'a> {
    /// The manifest of the run.
    pub manifest: &'a Manifest,
    /// Every variant, in the order of the plan.
    pub variants: Vec<Variant>,
    /// The variant that gains are measured against: the first that finished.
    pub baseline: Option<String>,
    /// The finding in one sentence.
    pub headline: String,
    /// Why times beside published ones may not be compared, where they may not.
    pub comparison: Option<String>,
    /// What is missing or wrong, a sentence each; empty for a complete and verified run.
    pub gaps: Vec<String>,
    /// The loads that were sent, by variant and operation in the order of the plan.
    pub loads: Vec<VariantLoad>,
    /// What following was like, by variant in the order of the plan; empty where nobody follows.
    pub following: Vec<VariantFollow>,
    /// What a live cluster showed, where the run watched one instead of measuring.
    pub watched: Option<Diagnosis>,
}

/// An operation under one variant.
#[derive(Clone, Debug, PartialEq)]
pub struct VariantLoad {
    /// Name of the variant.
    pub variant: String,
    /// Name of the operation.
    pub operation: String,
    /// The variant that it is compared with, where the plan says it.
    pub beside: Option<String>,
    /// Each lap, in order.
    pub laps: Vec<LoadFigures>,
}

/// One combination of settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Variant {
    /// Its name.
    pub name: String,
    /// Its settings, as resolved.
    pub settings: BTreeMap<String, String>,
    /// Seconds that the source documents publish.
    pub published_s: Option<f64>,
    /// Bytes that the published figure moved.
    pub published_bytes: Option<u64>,
    /// Published seconds of the baseline over published seconds of this variant.
    pub published_gain: Option<f64>,
    /// How far it came.
    pub outcome: Outcome,
}

/// How far a variant came.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// At least one lap finished.
    Finished(Box<Finished>),
    /// It began, but no lap finished.
    Partial {
        /// Time since its start, as far as samples go.
        seconds: f64,
        /// Bytes recovered at the last sample.
        recovered_bytes: u64,
        /// Bytes to recover, as known at the last sample.
        total_bytes: u64,
    },
    /// It never began.
    NotRun,
}

/// The figures of a variant; with several laps, medians over them.
#[derive(Clone, Debug, PartialEq)]
pub struct Finished {
    /// Seconds of each lap, in order.
    pub laps_s: Vec<f64>,
    /// The lap whose time is nearest the median: charts show it.
    pub shown_lap: u32,
    /// Seconds.
    pub seconds: f64,
    /// Interval of the seconds, from three laps on.
    pub seconds_interval: Option<Interval>,
    /// Bytes transferred.
    pub bytes: u64,
    /// Bytes a second.
    pub bytes_per_s: f64,
    /// Bytes a second of each node that received; none where that was not told apart.
    pub node_bytes_per_s: Option<f64>,
    /// Share of the link's rate, 0 to 1; none without a link.
    pub link_share: Option<f64>,
    /// Seconds of the baseline over seconds of this variant.
    pub gain: Option<f64>,
    /// Interval of the gain, from three laps of both on.
    pub gain_interval: Option<Interval>,
    /// Mean share of each limit, largest first.
    pub limits: Vec<LimitShare>,
    /// Whether both sides held the same documents in every lap.
    pub verified: bool,
    /// Live documents on the recovered side.
    pub documents: u64,
    /// Chunks that arrived damaged and were fetched again, over all laps.
    pub refetched_chunks: u64,
    /// Threads of its path and its consumer's memory, where documents were streamed; of the lap that is shown.
    pub stream: Option<StreamFigures>,
    /// What held it, and why.
    pub verdict: Verdict,
}

impl Finished {
    /// Whether nothing was kept of what came: its consumer measures alone.
    pub fn measuring_device(&self) -> bool {
        self.stream.as_ref().is_some_and(|stream| stream.measuring_device)
    }
}

impl Variant {
    /// The figures, if it finished.
    pub fn finished(&self) -> Option<&Finished> {
        match &self.outcome {
            Outcome::Finished(finished) => Some(finished),
            _ => None,
        }
    }
}

impl Summary<'_> {
    /// Every load that is compared, after the one that it is compared with: what the plan says, or where it says
    /// nothing the first variant that has the operation.
    pub fn load_pairs(&self) -> Vec<(&VariantLoad, &VariantLoad)> {
        load::pairs(&self.loads)
    }
}

impl<'a> Summary<'a> {
    /// Summarises a run, whatever state it was left in.
    pub fn of(run: &'a RunDir) -> Self {
        let traces = traces(run);
        let mut variants: Vec<Variant> =
            names(run).into_iter().map(|name| variant(run, &traces, name)).collect();
        let baseline = variants.iter().position(|variant| variant.finished().is_some());
        if let Some(baseline) = baseline {
            add_gains(&mut variants, baseline, run.manifest.seed);
        }
        let looks = diagnosis::recorded(run);
        let loads = loads(run, &variants);
        let following = following(run, &variants);
        let watched = (!looks.looks().is_empty()).then(|| diagnose(&looks));
        Summary {
            manifest: &run.manifest,
            headline: match &watched {
                Some(diagnosis) => diagnosis.headline.clone(),
                None if !loads.is_empty() => load::headline_of_variants(&loads),
                None if !following.is_empty() => follow::headline(&following),
                None => threads::headline(&variants)
                    .unwrap_or_else(|| finding::headline(&run.manifest, &variants)),
            },
            comparison: finding::comparison(&variants),
            gaps: match &watched {
                Some(diagnosis) => diagnosis.gaps.clone(),
                None => gaps::gaps(run, &traces, &variants),
            },
            loads,
            following,
            watched,
            baseline: baseline.map(|index| variants[index].name.clone()),
            variants,
        }
    }

    /// Variants that finished, with their figures.
    pub fn finished(&self) -> impl Iterator<Item = (&Variant, &Finished)> {
        self.variants.iter().filter_map(|variant| Some((variant, variant.finished()?)))
    }

    /// The finished variants that took most and least time; the same one if only one finished.
    pub fn slowest_and_fastest(&self) -> Option<(&Variant, &Variant)> {
        finding::slowest_and_fastest(&self.variants)
    }
}

fn loads(run: &RunDir, variants: &[Variant]) -> Vec<VariantLoad> {
    let mut loads: Vec<VariantLoad> = Vec::new();
    let beside = |name: &str| {
        let info = run.manifest.variants.iter().find(|info| info.name == name);
        info.and_then(|info| info.beside.clone())
    };
    for variant in variants {
        for row in run.rows.iter().filter(|row| row.variant == variant.name) {
            for figures in &row.loads {
                let same = |load: &&mut VariantLoad| {
                    load.variant == variant.name && load.operation == figures.operation
                };
                match loads.iter_mut().find(same) {
                    Some(load) => load.laps.push(figures.clone()),
                    None => loads.push(VariantLoad {
                        variant: variant.name.clone(),
                        operation: figures.operation.clone(),
                        beside: beside(&variant.name),
                        laps: vec![figures.clone()],
                    }),
                }
            }
        }
    }
    loads
}

fn following(run: &RunDir, variants: &[Variant]) -> Vec<VariantFollow> {
    let one = |variant: &Variant| {
        let rows = run.rows.iter().filter(|row| row.variant == variant.name);
        let laps: Vec<FollowFigures> = rows.filter_map(|row| row.following.clone()).collect();
        (!laps.is_empty()).then(|| VariantFollow { variant: variant.name.clone(), laps })
    };
    variants.iter().filter_map(one).collect()
}

/// Variants of the plan, then those that only rows know.
fn names(run: &RunDir) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    let planned = run.manifest.variants.iter().map(|variant| variant.name.as_str());
    for name in planned.chain(run.rows.iter().map(|row| row.variant.as_str())) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// Whether a row took any time at all; others would divide by nothing.
pub(crate) fn has_time(row: &Row) -> bool {
    row.seconds.is_finite() && row.seconds > 0.0
}

fn variant(run: &RunDir, traces: &Traces<'_>, name: &str) -> Variant {
    let info = run.manifest.variants.iter().find(|variant| variant.name == name);
    let settings = info.map(|info| info.settings.clone()).unwrap_or_default();
    let rows: Vec<&Row> =
        run.rows.iter().filter(|row| row.variant == name && has_time(row)).collect();
    let published_s = rows.iter().find_map(|row| row.published_s);
    let outcome = match rows.as_slice() {
        [] => unfinished(traces, name),
        rows => Outcome::Finished(Box::new(finished(run, traces, &settings, rows))),
    };
    Variant {
        name: name.to_owned(),
        settings,
        published_s: published_s.or_else(|| info.and_then(|info| info.published_s)),
        published_bytes: rows.iter().find_map(|row| row.published_bytes),
        published_gain: None,
        outcome,
    }
}

/// How far the last lap came that has samples.
fn unfinished(traces: &Traces<'_>, name: &str) -> Outcome {
    let last = traces.iter().rfind(|((variant, _), _)| *variant == name);
    let Some((_, trace)) = last else { return Outcome::NotRun };
    let sample = trace.recovery.last().map(|(_, sample)| *sample);
    Outcome::Partial {
        seconds: trace.span_ms().map_or(0.0, |(first, last)| (last - first) / 1000.0),
        recovered_bytes: sample.map_or(0, |sample| sample.recovered_bytes),
        total_bytes: sample.map_or(0, |sample| sample.total_bytes),
    }
}

fn finished(
    run: &RunDir,
    traces: &Traces<'_>,
    settings: &BTreeMap<String, String>,
    rows: &[&Row],
) -> Finished {
    let over = |value: fn(&Row) -> f64| -> f64 {
        let values: Vec<f64> = rows.iter().map(|row| value(row)).collect();
        stats::median(&values).expect("a finished variant has a row")
    };
    let laps_s: Vec<f64> = rows.iter().map(|row| row.seconds).collect();
    let seconds = over(|row| row.seconds);
    let distance = |row: &Row| (row.seconds - seconds).abs();
    let shown = rows
        .iter()
        .min_by(|a, b| distance(a).total_cmp(&distance(b)))
        .expect("a finished variant has a row");
    let shares: Vec<f64> = rows.iter().filter_map(|row| row.link_share).collect();
    let node_rates: Vec<f64> = rows.iter().filter_map(|row| row.node_bytes_per_s).collect();
    let (bytes_per_s, link_share) = (over(|row| row.bytes_per_s), stats::median(&shares));
    let limits = mean_limits(rows);
    let trace = traces.get(&(shown.variant.as_str(), shown.lap));
    let bounds = Bounds::read(&run.manifest, shown, settings, trace as Option<&Trace<'_>>);
    Finished {
        shown_lap: shown.lap,
        seconds,
        seconds_interval: stats::median_interval(&laps_s, run.manifest.seed),
        bytes: over(|row| row.bytes as f64) as u64,
        bytes_per_s,
        node_bytes_per_s: stats::median(&node_rates),
        link_share,
        gain: None,
        gain_interval: None,
        verdict: match &shown.stream {
            Some(stream) => threads::verdict(stream, shown.bytes, shown.seconds),
            None => verdict(&limits, &bounds, trace, bytes_per_s, link_share),
        },
        stream: shown.stream.clone(),
        limits,
        verified: rows.iter().all(|row| row.verified),
        documents: shown.documents,
        refetched_chunks: rows.iter().map(|row| row.refetched_chunks).sum(),
        laps_s,
    }
}

/// The mean of shares over laps still sums to one.
fn mean_limits(rows: &[&Row]) -> Vec<LimitShare> {
    let mut sums: BTreeMap<Limit, f64> = BTreeMap::new();
    for share in rows.iter().flat_map(|row| &row.limits) {
        *sums.entry(share.limit).or_default() += share.share;
    }
    let mut limits: Vec<LimitShare> = sums
        .into_iter()
        .map(|(limit, sum)| LimitShare { limit, share: sum / rows.len() as f64 })
        .filter(|share| share.share.is_finite())
        .collect();
    limits.sort_by(|a, b| b.share.total_cmp(&a.share));
    limits
}

fn add_gains(variants: &mut [Variant], baseline: usize, seed: u64) {
    let published_base = variants[baseline].published_s;
    let base = variants[baseline].finished().expect("the baseline finished").clone();
    for (index, variant) in variants.iter_mut().enumerate() {
        variant.published_gain = match (published_base, variant.published_s) {
            (Some(base), Some(own)) if own > 0.0 => Some(base / own),
            _ => None,
        };
        if let Outcome::Finished(finished) = &mut variant.outcome {
            finished.gain = Some(base.seconds / finished.seconds);
            if index != baseline {
                finished.gain_interval =
                    stats::ratio_interval(&base.laps_s, &finished.laps_s, seed);
            }
        }
    }
}
