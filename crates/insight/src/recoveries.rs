//! A run of recoveries: its headline, its slowest and its fastest variant.

use record::{Manifest, Row, RunDir, Status, TwinQuestion, units};

use crate::headline::{Headline, WORTH_TELLING, named};
use crate::variant::{Finished, Variant};
use crate::words;

pub(crate) fn slowest_and_fastest(variants: &[Variant]) -> Option<(&Variant, &Variant)> {
    let by_time = |variant: &&Variant| variant.finished().map(|finished| finished.seconds);
    // What is never green has a time only beside its like, and none where nothing is placed.
    let rank = |variant: &Variant| {
        let bytes = variant.finished()?.bytes;
        Some((variant.never_green, variant.never_green && bytes == 0))
    };
    let best = variants.iter().filter_map(rank).min()?;
    let finished = || variants.iter().filter(move |variant| rank(variant) == Some(best));
    let order = |a: &&Variant, b: &&Variant| by_time(a).partial_cmp(&by_time(b)).expect("finite");
    // Of two variants with equal times the first of the plan counts, as slowest and as fastest.
    let slowest = finished().rev().max_by(order)?;
    Some((slowest, finished().min_by(order)?))
}

/// Whether the times of two variants may be compared, by whether each is never green and by its bytes: the time until
/// some copies are placed is none in which all are green, nor is it one where no copy was placed.
pub(crate) fn times_compare(one: (bool, u64), other: (bool, u64)) -> bool {
    let is_placed = |(never_green, bytes): (bool, u64)| !never_green || bytes > 0;
    one.0 == other.0 && is_placed(one) && is_placed(other)
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
            named(&fast.name),
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
                format!("The fastest, {}, was held by {by}.", named(&fast.name)),
            ),
            None => said,
        };
    }
    let (name, times) = (named(&fast.name), words::times(factor));
    let said = Headline::of(
        format!("{name} is {times} as fast as {}", named(&slow.name)),
        [format!("{name} is {times} as fast as the slowest"), format!("{name} is the fastest")],
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
    let shown = |variant: &Variant| {
        let rows = run.rows.iter().filter(|row| row.variant == variant.name);
        rows.min_by_key(|row| row.lap)
    };
    let when = |variant: &Variant, row: &Row| {
        let after = format!("{until} after {}", units::show_seconds(row.seconds));
        match variant.never_green {
            false => after,
            // Nothing came: when nothing was waited for any more tells nothing.
            true if row.bytes == 0 => "never green".to_owned(),
            true => format!("{after}, but never green"),
        }
    };
    let mut done = variants.iter().filter_map(|variant| Some((variant, shown(variant)?)));
    let (first, first_row) = done.next()?;
    let short = format!("{asked}: {}", when(first, first_row));
    // As an option has it: a word.
    let with = |variant: &Variant| format!("with {}", variant.name.replace(" = ", "="));
    let later = |a: &(&Variant, &Row), b: &(&Variant, &Row)| {
        a.0.never_green.cmp(&b.0.never_green).then(a.1.seconds.total_cmp(&b.1.seconds))
    };
    let mut said = match (done.min_by(later), first.name.as_str()) {
        (Some((fastest, row)), _) => {
            let fastest_when = match first.never_green || fastest.never_green {
                true => when(fastest, row),
                false => units::show_seconds(row.seconds),
            };
            let whole = format!("{short}; {} {fastest_when}", with(fastest));
            Headline::of(whole, [format!("{short}, or {fastest_when}"), short])
        }
        (None, TwinQuestion::AS_IT_IS) => {
            held_by(Headline::from(short), first.finished().and_then(held))
        }
        (None, _) => {
            let said = Headline::of(format!("{short} {}", with(first)), [short]);
            held_by(said, first.finished().and_then(held))
        }
    };
    said.details.extend(run.never_green(&first.name).map(|why| format!("{why}.")));
    Some(said)
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
