//! A run as a table: one entry a variant, over its laps.

use std::collections::BTreeMap;

use record::{FollowFigures, Limit, LimitShare, Line, Manifest, Row, RunDir, VariantInfo};

use crate::bounds::Bounds;
use crate::diagnosis::{self, Diagnosis, diagnose};
use crate::headline::Headline;
use crate::trace::{Trace, Traces, traces};
use crate::variant::{Finished, Progress, Variant, VariantFollow, VariantLoad};
use crate::{accounted, follow, gaps, load, outside, recoveries, stats, threads, words};

/// What runs of `narrows steer` are called.
const STEER: &str = "steer";

/// What a run amounts to.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary<'a> {
    /// The manifest of the run.
    pub manifest: &'a Manifest,
    /// Every variant, in the order of the plan.
    pub variants: Vec<Variant>,
    /// The variant that gains are measured against: the first that finished.
    pub baseline: Option<String>,
    /// The finding in at most 14 words, as far as names let it be.
    pub headline: String,
    /// What the headline has no room for, a sentence each.
    pub details: Vec<String>,
    /// Why times beside published ones may not be compared, where they may not.
    pub comparison: Option<String>,
    /// What is missing or wrong, a sentence each; empty for a complete and verified run.
    pub gaps: Vec<String>,
    /// The loads that were sent, by variant and operation in the order of the plan; those that went on at the same time
    /// in the order in which they ended.
    pub loads: Vec<VariantLoad>,
    /// What following was like, by variant in the order of the plan; empty where nobody follows.
    pub following: Vec<VariantFollow>,
    /// What a live cluster showed, where the run watched one instead of measuring.
    pub watched: Option<Diagnosis>,
}

impl Summary<'_> {
    /// The published figure of a variant's load.
    pub fn published_load(&self, variant: &str, metric: &load::Metric) -> Option<f64> {
        let info = self.manifest.variants.iter().find(|info| info.name == variant)?;
        info.published.as_ref()?.load.get(metric.name).copied()
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
        let following = following(run, &traces, &variants);
        let watched = (!looks.looks().is_empty()).then(|| {
            let mut diagnosis = diagnose(&looks);
            let failure =
                run.manifest.failure.as_ref().map(|why| format!("The run failed: {why}."));
            diagnosis.gaps.splice(0..0, run.damage.iter().cloned().chain(failure));
            diagnosis
        });
        let Headline { text, mut details } = match &watched {
            Some(_) if run.manifest.plan == STEER => of_steered(&run.lines),
            Some(diagnosis) => of_watched(diagnosis),
            None if !loads.is_empty() => match &run.manifest.challenge {
                Some(challenge) => load::headline_of_track(challenge, &loads),
                None => load::headline_of_variants(&loads),
            },
            None if !following.is_empty() => follow::headline(&following),
            None => threads::headline(&variants)
                .or_else(|| recoveries::of_twin(run, &variants))
                .unwrap_or_else(|| recoveries::headline(&run.manifest, &variants)),
        };
        details.extend(one_draw(&run.manifest).filter(|_| !loads.is_empty()));
        Summary {
            manifest: &run.manifest,
            headline: text,
            details,
            comparison: recoveries::comparison(&variants),
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

    /// Whether it is the record of `narrows steer`.
    pub fn is_steered(&self) -> bool {
        self.watched.is_some() && self.manifest.plan == STEER
    }

    /// Variants that finished, with their figures.
    pub fn finished(&self) -> impl Iterator<Item = (&Variant, &Finished)> {
        self.variants.iter().filter_map(|variant| Some((variant, variant.finished()?)))
    }

    /// How far the time of a variant is off the published one: 0.1 is 10 % longer. None where other amounts of data
    /// moved: what is published without its bytes is repeated at its size in virtual time alone.
    pub fn off_published(&self, variant: &Variant) -> Option<f64> {
        let (theirs, ours) = (variant.published_s.filter(|s| *s > 0.0)?, variant.finished()?);
        let is_as_much = match variant.published_bytes {
            Some(bytes) => recoveries::is_as_much(bytes, ours.bytes),
            None => self.manifest.target == "virtual" && self.manifest.scale == 1.0,
        };
        is_as_much.then(|| ours.seconds / theirs - 1.0)
    }

    /// The finished variants that took most and least time; the same one if only one finished.
    pub fn slowest_and_fastest(&self) -> Option<(&Variant, &Variant)> {
        recoveries::slowest_and_fastest(&self.variants)
    }
}

/// That loads in virtual time which stand beside published ones are one draw of what these may come to.
fn one_draw(manifest: &Manifest) -> Option<String> {
    let has_published = |info: &VariantInfo| {
        info.published.as_ref().is_some_and(|published| !published.load.is_empty())
    };
    let is_drawn = manifest.target == "virtual" && manifest.variants.iter().any(has_published);
    is_drawn.then(|| {
        format!(
            "Seed {} is one draw, and figures differ from draw to draw: narrows published tells their range over many.",
            manifest.seed
        )
    })
}

/// What was done to a cluster that was steered, by the steps that its notes tell.
fn of_steered(lines: &[Line]) -> Headline {
    let count = |step: &str| {
        let is_it =
            |line: &&Line| matches!(line, Line::Note { text, .. } if text.starts_with(step));
        lines.iter().filter(is_it).count()
    };
    Headline::from(match (count("set "), count("keep ")) {
        (0, _) => "nothing to change".to_owned(),
        (1, kept) => format!("1 change, {kept} kept"),
        (made, kept) => format!("{made} changes, {kept} kept"),
    })
}

/// What a watched cluster showed: the sentence of its diagnosis where that is short, otherwise the name of what was
/// found, and where.
fn of_watched(diagnosis: &Diagnosis) -> Headline {
    let short = match diagnosis.leading() {
        Some((first, others)) if first.place.is_empty() => {
            format!("{}{others}", first.class.label())
        }
        Some((first, others)) => format!("{} ({}){others}", first.class.label(), first.place),
        None => "healthy: what goes on needs no help".to_owned(),
    };
    Headline::of(diagnosis.headline.clone(), [short])
}

fn loads(run: &RunDir, variants: &[Variant]) -> Vec<VariantLoad> {
    let mut loads: Vec<VariantLoad> = Vec::new();
    let baseline = |name: &str| {
        let info = run.manifest.variants.iter().find(|info| info.name == name);
        info.and_then(|info| info.baseline.clone())
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
                        baseline: baseline(&variant.name),
                        laps: vec![figures.clone()],
                    }),
                }
            }
        }
    }
    loads
}

fn following(run: &RunDir, traces: &Traces<'_>, variants: &[Variant]) -> Vec<VariantFollow> {
    let one = |variant: &Variant| {
        let rows = run.rows.iter().filter(|row| row.variant == variant.name);
        let laps: Vec<FollowFigures> = rows.filter_map(|row| row.following.clone()).collect();
        let shown = variant.finished().map(|figures| (variant.name.as_str(), figures.shown_lap));
        let met = shown.and_then(|shown| traces.get(&shown)?.met());
        (!laps.is_empty()).then(|| VariantFollow { variant: variant.name.clone(), laps, met })
    };
    variants.iter().filter_map(one).collect()
}

/// Variants of the plan, then those that only rows know.
fn names(run: &RunDir) -> Vec<&str> {
    let planned = run.manifest.variants.iter().map(|variant| variant.name.as_str());
    words::each_once(planned.chain(run.rows.iter().map(|row| row.variant.as_str())))
}

fn variant(run: &RunDir, traces: &Traces<'_>, name: &str) -> Variant {
    let info = run.manifest.variants.iter().find(|variant| variant.name == name);
    let settings = info.map(|info| info.settings.clone()).unwrap_or_default();
    let ended = |row: &&Row| row.variant == name && row.took_time() && row.stopped_at.is_none();
    let rows: Vec<&Row> = run.rows.iter().filter(ended).collect();
    let published_s = rows.iter().find_map(|row| row.published_s);
    let progress = match rows.as_slice() {
        [] => unfinished(traces, name),
        rows => Progress::Finished(Box::new(finished(run, traces, &settings, rows))),
    };
    Variant {
        name: name.to_owned(),
        settings,
        published_s: published_s.or_else(|| info.and_then(|info| info.published_s)),
        published_bytes: rows.iter().find_map(|row| row.published_bytes),
        published_gain: None,
        never_green: run.never_green(name).next().is_some(),
        progress,
    }
}

/// How far the last lap with samples came.
fn unfinished(traces: &Traces<'_>, name: &str) -> Progress {
    let last = traces.iter().rfind(|((variant, _), _)| *variant == name);
    let Some((_, trace)) = last else { return Progress::NotRun };
    let sample = trace.recovery.last().map(|(_, sample)| *sample);
    Progress::Partial {
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
    let mut limits = mean_limits(rows);
    let trace = traces.get(&(shown.variant.as_str(), shown.lap));
    let bounds = Bounds::read(&run.manifest, shown, settings, trace as Option<&Trace<'_>>);
    let verdict = match &shown.stream {
        Some(stream) => threads::verdict(stream, shown.bytes, shown.seconds),
        None if limits.is_empty() || outside::copied_nothing(&run.manifest, shown) => {
            let seen = outside::seen(&run.manifest, &bounds, trace, shown);
            limits = seen.limits;
            seen.verdict
        }
        None => accounted::verdict(&limits, &bounds, bytes_per_s, link_share),
    };
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
        verdict,
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
    let of_base = (variants[baseline].never_green, base.bytes);
    for (index, variant) in variants.iter_mut().enumerate() {
        variant.published_gain = match (published_base, variant.published_s) {
            (Some(base), Some(own)) if own > 0.0 => Some(base / own),
            _ => None,
        };
        if let Progress::Finished(finished) = &mut variant.progress
            && recoveries::times_compare(of_base, (variant.never_green, finished.bytes))
        {
            finished.gain = Some(base.seconds / finished.seconds);
            if index != baseline {
                finished.gain_interval =
                    stats::ratio_interval(&base.laps_s, &finished.laps_s, seed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use record::Status;

    use super::*;

    #[test]
    fn a_watch_that_failed_says_why() {
        let (status, failure) = (Status::Failed, Some("somebody else set it".to_owned()));
        let manifest = Manifest { status, failure, ..Manifest::unknown("r", record::FORMAT) };
        let look = Line::Observation { t_ms: 0.0, observation: Box::default() };
        let (rows, damage) = (Vec::new(), Vec::new());
        let run = RunDir { manifest, lines: vec![look], rows, damage };
        assert!(
            Summary::of(&run).gaps.contains(&"The run failed: somebody else set it.".to_owned())
        );
    }

    #[test]
    fn a_steer_is_summed_up_by_what_it_set_and_kept() {
        let note = |text: &str| Line::Note { t_ms: 0.0, variant: None, text: text.to_owned() };
        let told = ["set a 1 -> 2: ..", "keep a 1 -> 2: ..", "wait: ..", "set a 2 -> 4: .."];
        assert_eq!(of_steered(&told.map(note)).text, "2 changes, 1 kept");
        assert_eq!(of_steered(&[note("wait: nothing recovers")]).text, "nothing to change");
    }
}
