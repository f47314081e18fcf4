//! A run of recoveries: its headline, its slowest and its fastest variant.

use record::{Manifest, RunDir, Status, TwinQuestion, units};

use crate::headline::{Headline, WORTH_TELLING};
use crate::variant::{Finished, Variant};
use crate::words;

pub(crate) fn slowest_and_fastest(variants: &[Variant]) -> Option<(&Variant, &Variant)> {
    let by_time = |variant: &&Variant| variant.finished().map(|finished| finished.seconds);
    let finished = || variants.iter().filter(|variant| variant.finished().is_some());
    let order = |a: &&Variant, b: &&Variant| by_time(a).partial_cmp(&by_time(b)).expect("finite");
    // Of two variants with equal times the first of the plan counts, as slowest and as fastest.
    let slowest = finished().rev().max_by(order)?;
    Some((slowest, finished().min_by(order)?))
}

pub(crate) fn headline(manifest: &Manifest, variants: &[Variant]) -> Headline {
    let ends = slowest_and_fastest(variants);
    let ends = ends.and_then(|(slow, fast)| Some((slow, slow.finished()?, fast, fast.finished()?)));
    let Some((slow, slow_figures, fast, fast_figures)) = ends else {
        return nothing_finished(manifest, variants);
    };
    let (slow_held, fast_held) = (held(slow_figures), held(fast_figures));
    if slow.name == fast.name {
        let said = Headline::from(format!(
            "{} took {}, {}",
            fast.name,
            units::show_seconds(fast_figures.seconds),
            words::rate(fast_figures.bytes_per_s)
        ));
        return held_by(said, fast_held);
    }
    let factor = slow_figures.seconds / fast_figures.seconds;
    if factor < WORTH_TELLING || overlap(slow_figures, fast_figures) {
        let count = variants.iter().filter(|variant| variant.finished().is_some()).count();
        let said = Headline::from(format!(
            "No clear winner among {count} variants: {} to {}",
            units::show_seconds(fast_figures.seconds),
            units::show_seconds(slow_figures.seconds),
        ));
        return match fast_held {
            Some(by) => said.with(
                &format!("; {by} held the fastest"),
                format!("The fastest, {}, was held by {by}.", fast.name),
            ),
            None => said,
        };
    }
    let (name, times) = (&fast.name, words::times(factor));
    let said = Headline::of(
        format!("{name} is {times} faster than {}", slow.name),
        [format!("{name} is {times} faster than the slowest"), format!("{name} is the fastest")],
    );
    match (slow_held, fast_held) {
        (Some(slow), Some(fast)) if slow == fast => {
            said.with(&format!("; {slow} held both"), format!("Both were held by {slow}."))
        }
        (Some(slow), Some(fast)) => said.with(
            &format!("; {slow} held the slow one, {fast} the fast one"),
            format!("The slow one was held by {slow}, the fast one by {fast}."),
        ),
        _ => said,
    }
}

/// What a twin answered: when what was asked would be done, first as it is.
pub(crate) fn of_twin(run: &RunDir, variants: &[Variant]) -> Option<Headline> {
    let (asked, until) = (&run.manifest.question.as_ref()?.asked, run.until()?);
    // The first lap goes by what is known or assumed, as the answer does; in the others it is drawn.
    let seconds = |variant: &Variant| {
        let rows = run.rows.iter().filter(|row| row.variant == variant.name);
        rows.min_by_key(|row| row.lap).map(|row| row.seconds)
    };
    let mut done = variants.iter().filter_map(|variant| Some((variant, seconds(variant)?)));
    let (first, first_s) = done.next()?;
    let short = format!("{asked}: {until} after {}", units::show_seconds(first_s));
    // As an option has it: a word.
    let with = |variant: &Variant| format!("with {}", variant.name.replace(" = ", "="));
    if let Some((fastest, fastest_s)) = done.min_by(|a, b| a.1.total_cmp(&b.1)) {
        let fastest_s = units::show_seconds(fastest_s);
        let whole = format!("{short}; {} {fastest_s}", with(fastest));
        return Some(Headline::of(whole, [format!("{short}, or {fastest_s}"), short]));
    }
    let said = match first.name.as_str() {
        TwinQuestion::AS_IT_IS => Headline::from(short),
        _ => Headline::of(format!("{short} {}", with(first)), [short]),
    };
    Some(held_by(said, first.finished().and_then(held)))
}

fn held_by(said: Headline, limit: Option<&str>) -> Headline {
    match limit {
        Some(by) => said.with(&format!("; {by} held it"), format!("It was held by {by}.")),
        None => said,
    }
}

fn held(figures: &Finished) -> Option<&'static str> {
    figures.verdict.limit.map(words::holder)
}

fn overlap(slow: &Finished, fast: &Finished) -> bool {
    match (slow.seconds_interval, fast.seconds_interval) {
        (Some(slow), Some(fast)) => slow.low <= fast.high,
        _ => false,
    }
}

fn nothing_finished(manifest: &Manifest, variants: &[Variant]) -> Headline {
    let began = variants.iter().filter(|variant| variant.began()).count();
    let why = match manifest.status {
        Status::Running => "the run is still going on",
        Status::Complete if began == 0 => "the plan measures none, or the record has lost it",
        Status::Complete => "the record has lost what was measured",
        Status::Interrupted => "the run was interrupted",
        Status::Failed => "the run failed",
        Status::BrokenOff => "the run broke off",
        Status::Unknown => "how the run ended is not known",
    };
    let did = if began == 0 { "began" } else { "finished" };
    Headline::from(format!("No variant {did}: {why}"))
}

/// Whether a published row moved as much as ours, so that times compare.
pub(crate) fn is_as_much(theirs: u64, ours: u64) -> bool {
    (0.99..1.01).contains(&(theirs as f64 / ours.max(1) as f64))
}

/// Published rows mostly moved other amounts of data, so only gains compare; and those of less data are smaller.
pub(crate) fn comparison(variants: &[Variant]) -> Option<String> {
    let (theirs, ours) = variants.iter().find_map(|variant| {
        let both = (variant.published_bytes?, variant.finished()?.bytes);
        (!is_as_much(both.0, both.1)).then_some(both)
    })?;
    let gains = || {
        let both =
            variants.iter().filter_map(|one| Some((one.published_gain?, one.finished()?.gain?)));
        both.filter(|(theirs, _)| *theirs > 1.0)
    };
    let are_below = gains().next().is_some() && gains().all(|(theirs, ours)| ours < theirs);
    let why = match ours < theirs && are_below {
        true => {
            " With less data gains are smaller: to begin and to end a copy takes more of its time."
        }
        false => "",
    };
    Some(format!(
        "Published rows moved {}, these {}: compare gains, not times.{why}",
        units::show_bytes(theirs),
        units::show_bytes(ours)
    ))
}
