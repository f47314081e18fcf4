//! What a record lacks, so that a reader does not take silence for a result.

use record::{Line, RunDir, Status, units};

use crate::trace::Traces;
use crate::variant::{Finished, Progress, Variant};
use crate::words;

/// A sentence for everything that is missing or wrong.
pub(crate) fn gaps(run: &RunDir, traces: &Traces<'_>, variants: &[Variant]) -> Vec<String> {
    let mut gaps = run.damage.clone();
    gaps.extend(status(run, variants));
    if run.rows.iter().any(|row| !row.loads.is_empty()) {
        // A load copies nothing: there is nothing to verify, and no recovery to draw.
        let lacks =
            |variant: &Variant| stopped(run, variant).or_else(|| unfinished(variant, false));
        gaps.extend(variants.iter().filter_map(lacks));
        return gaps;
    }
    let follows = run.rows.iter().any(|row| row.following.is_some())
        || traces.values().any(|trace| !trace.following.is_empty());
    gaps.extend(measured_only(variants));
    for variant in variants {
        gaps.extend(unfinished(variant, !follows));
        gaps.extend(unverified(variant, follows).filter(|_| !is_twin(run)));
    }
    if follows {
        // A follower has a curve of its lag, and none of a recovery.
        return gaps;
    }
    if run.rows.iter().all(|row| row.stream.is_none()) {
        gaps.extend(unsampled(traces, variants));
    }
    gaps
}

/// The copies of a twin are sizes: there is nothing to verify.
fn is_twin(run: &RunDir) -> bool {
    run.lines.iter().any(|line| matches!(line, Line::Phase { phase, .. } if phase.name == "place"))
}

fn status(run: &RunDir, variants: &[Variant]) -> Option<String> {
    let is_done =
        |variant: &&Variant| variant.finished().is_some() && stopped(run, variant).is_none();
    let done = variants.iter().filter(is_done).count();
    let all = words::counted(variants.len(), "variant", "variants");
    let count = format!("{done} of {all} finished");
    match run.manifest.status {
        Status::Complete if done == variants.len() => None,
        Status::Complete if variants.iter().any(Variant::began) => {
            Some(format!("The run went to its end, but the record has lost rows: {count}."))
        }
        Status::Complete => Some(format!("The run went to its end, but {count}.")),
        Status::Unknown => Some(format!("How the run ended is not known: {count}.")),
        Status::Running => Some(format!("The run is still going on: {count}.")),
        Status::BrokenOff => Some(format!("The run broke off: {count}.")),
        Status::Interrupted => Some(format!("The run was interrupted: {count}.")),
        Status::Failed => {
            let failure = run.manifest.failure.as_ref().map(|why| format!(" Why: {why}."));
            let note = || {
                run.lines.iter().rev().find_map(|line| match line {
                    Line::Note { text, .. } => Some(format!(" Last note: {text}")),
                    _ => None,
                })
            };
            Some(format!("The run failed: {count}.{}", failure.or_else(note).unwrap_or_default()))
        }
    }
}

/// Where a variant, a challenge of a track, stopped before its end, be it in a later lap than the first.
fn stopped(run: &RunDir, variant: &Variant) -> Option<String> {
    let mut rows = run.rows.iter().filter(|row| row.variant == variant.name);
    let (lap, at) = rows.find_map(|row| Some((row.lap, row.stopped_at.as_ref()?)))?;
    let of_lap = if lap > 1 { format!("in lap {lap} ") } else { String::new() };
    Some(format!("{}: {of_lap}stopped at {at}, before its end.", variant.name))
}

/// How far a variant came that did not end. What copies nothing (`copies` is false) is not counted in bytes.
fn unfinished(variant: &Variant, copies: bool) -> Option<String> {
    let name = &variant.name;
    match &variant.progress {
        Progress::Finished(_) => None,
        Progress::NotRun => Some(format!("{name}: not run.")),
        Progress::Partial { seconds, .. } if !copies && *seconds > 0.0 => Some(format!(
            "{name}: stopped after {}, before its end.",
            units::show_seconds(*seconds)
        )),
        Progress::Partial { .. } if !copies => Some(format!("{name}: stopped before its end.")),
        Progress::Partial { seconds, recovered_bytes, total_bytes: 0 } => Some(format!(
            "{name}: stopped after {} with {} recovered.",
            units::show_seconds(*seconds),
            units::show_bytes(*recovered_bytes)
        )),
        Progress::Partial { seconds, recovered_bytes, total_bytes } => Some(format!(
            "{name}: stopped after {} at {} of {}.",
            units::show_seconds(*seconds),
            words::done(*recovered_bytes as f64 / *total_bytes as f64),
            units::show_bytes(*total_bytes)
        )),
    }
}

fn unverified(variant: &Variant, follows: bool) -> Option<String> {
    let is_wrong = |figures: &&Finished| !figures.verified && !figures.measuring_device();
    variant.finished().filter(is_wrong).map(|_| match follows {
        true => format!("{}: NOT VERIFIED, a rule that it is held to was broken.", variant.name),
        false => {
            format!("{}: NOT VERIFIED, the two sides do not hold the same documents.", variant.name)
        }
    })
}

/// One sentence for all variants of which nothing was kept, so that there is nothing to verify.
fn measured_only(variants: &[Variant]) -> Option<String> {
    let is_it = |variant: &&Variant| variant.finished().is_some_and(Finished::measuring_device);
    let names: Vec<&str> =
        variants.iter().filter(is_it).map(|variant| variant.name.as_str()).collect();
    (!names.is_empty()).then(|| {
        format!(
            "Not verified, because what took them in only counts, and keeps nothing: {}.",
            names.join("; ")
        )
    })
}

/// One sentence for all variants that finished without leaving samples for the charts.
fn unsampled(traces: &Traces<'_>, variants: &[Variant]) -> Option<String> {
    let is_unsampled = |variant: &&Variant| {
        let Some(figures) = variant.finished() else { return false };
        let trace = traces.get(&(variant.name.as_str(), figures.shown_lap));
        trace.is_none_or(|trace| trace.recovery.is_empty())
    };
    let names = variants.iter().filter(is_unsampled).map(|variant| variant.name.as_str());
    let names: Vec<&str> = names.collect();
    let all = names.len() == variants.len();
    match names.as_slice() {
        [] => None,
        _ if all => Some("No samples were recorded, so there are no curves.".to_owned()),
        names => Some(format!("No samples for {}, so no curves of it.", names.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn what_copies_nothing_and_did_not_end_is_not_counted_in_bytes() {
        let variant = Variant {
            name: "field".to_owned(),
            settings: BTreeMap::new(),
            published_s: None,
            published_bytes: None,
            published_gain: None,
            never_green: false,
            progress: Progress::Partial { seconds: 0.0, recovered_bytes: 0, total_bytes: 0 },
        };
        assert_eq!(unfinished(&variant, false).unwrap(), "field: stopped before its end.");
        assert_eq!(
            unfinished(&variant, true).unwrap(),
            "field: stopped after 0 ms with 0 B recovered."
        );
    }
}
