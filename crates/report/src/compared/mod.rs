//! Runs beside each other: for a terminal, as Markdown, as one object for scripts, and as a page.

mod page;
mod text;

use insight::compare::{Compared, Runs, Worse};
use insight::difference::Difference;
use insight::words::{counted, three_digits};
use serde_json::{Value, json};

use crate::grid::{dash, signed, signed_range};

pub use page::html;
pub use text::{markdown, table};

/// One object: `headline`, `details` (what that has no room for), `runs` (their labels and what they are), `figures`
/// (each with the laps of every run and its differences from the first run), `remarks`, and `worse` where somebody
/// asked what may not be.
pub fn json(runs: &Runs<'_>, worse: Option<&[Worse]>) -> Value {
    let contender = |contender: &insight::compare::Contender<'_>| {
        let manifest = &contender.run.manifest;
        json!({
            "label": contender.label,
            "run": manifest.run,
            "plan": manifest.plan,
            "target": manifest.target,
            "status": manifest.status,
            "started": manifest.started,
            "headline": contender.summary.headline,
            "details": contender.summary.details,
        })
    };
    let said = runs.headline();
    let mut object = json!({
        "headline": said.text,
        "details": said.details,
        "runs": runs.contenders.iter().map(contender).collect::<Vec<Value>>(),
        "figures": runs.figures.iter().map(|one| figure(runs, one)).collect::<Vec<Value>>(),
        "remarks": runs.remarks,
    });
    if let Some(worse) = worse {
        object["worse"] =
            worse.iter().map(|one| json!({ "run": one.label, "what": one.text })).collect();
    }
    object
}

fn figure(runs: &Runs<'_>, figure: &Compared) -> Value {
    let others = runs.contenders[1..].iter().zip(&figure.differences);
    let differences = others.filter_map(|(other, difference)| {
        let difference = difference.as_ref()?;
        Some(json!({
            "run": other.label,
            "change_percent": difference.percent,
            "interval_percent": difference.percent_interval.map(|i| [i.low, i.high]),
            "p": difference.p,
            "supported": difference.is_supported(),
            "worse": figure.worse_percent(difference) > 0.0,
        }))
    });
    let medians = (0..figure.laps.len()).map(|at| figure.median_of(at));
    json!({
        "variant": figure.variant,
        "operation": figure.operation,
        "figure": figure.name,
        "unit": figure.unit,
        "medians": medians.collect::<Vec<Option<f64>>>(),
        "laps": figure.laps,
        "differences": differences.collect::<Vec<Value>>(),
    })
}

/// The columns of one run beside the first: figure, both medians, change, its interval, and the probability of chance.
struct Line<'a> {
    figure: &'a Compared,
    difference: Option<Difference>,
    base: String,
    other: String,
}

impl Line<'_> {
    /// `+12.3`, or what is said in place of a percentage: equal medians differ by nothing, not by what rounds to it.
    fn change(&self) -> String {
        match self.difference {
            Some(one) if one.base == one.other => "same".to_owned(),
            Some(Difference { percent: Some(percent), .. }) => signed(percent),
            Some(_) => "from nothing".to_owned(),
            None => dash(),
        }
    }

    fn interval(&self) -> String {
        let interval = self.difference.and_then(|difference| difference.percent_interval);
        interval.map_or_else(dash, signed_range)
    }

    fn p(&self) -> String {
        match self.difference.and_then(|difference| difference.p) {
            None => dash(),
            Some(p) if p < 0.001 => "< 0.001".to_owned(),
            Some(p) => format!("{p:.3}"),
        }
    }

    fn mark(&self) -> &'static str {
        self.difference.map_or("", |difference| difference.mark())
    }

    /// Whether it is better, where the laps support that it differs.
    fn is_better(&self) -> Option<bool> {
        let difference = self.difference.filter(Difference::is_supported)?;
        Some(self.figure.worse_percent(&difference) < 0.0)
    }

    /// `time (s)`.
    fn name(&self) -> String {
        match self.figure.unit {
            "" => self.figure.name.to_owned(),
            unit => format!("{} ({unit})", self.figure.name),
        }
    }
}

/// The lines of the run with number `at`, at least 1, beside the first.
fn lines<'a>(runs: &'a Runs<'_>, at: usize) -> Vec<Line<'a>> {
    let show = |value: Option<f64>| value.map_or_else(dash, three_digits);
    let known = |figure: &&Compared| !figure.laps[0].is_empty() || !figure.laps[at].is_empty();
    let line = |figure: &'a Compared| Line {
        figure,
        difference: figure.differences[at - 1],
        base: show(figure.median_of(0)),
        other: show(figure.median_of(at)),
    };
    runs.figures.iter().filter(known).map(line).collect()
}

/// Whether a line has an interval or a probability: a single lap of each has neither.
fn tell_of_chance(lines: &[Line<'_>]) -> bool {
    let tells = |one: Difference| one.p.is_some() || one.percent_interval.is_some();
    lines.iter().any(|line| line.difference.is_some_and(tells))
}

/// `20261121-043000-remote-recovery: remote-recovery on embedded, 5 laps`.
fn what_it_is(runs: &Runs<'_>, at: usize) -> String {
    let manifest = &runs.contenders[at].run.manifest;
    let laps = runs.figures.iter().map(|figure| figure.laps[at].len()).max().unwrap_or(0);
    let laps = counted(laps, "lap", "laps");
    format!("{}: {} on {}, {laps}", manifest.run, manifest.plan, manifest.target)
}
