//! Loads for a terminal, in the form of Rally's summary: a line for each figure, a column for each lap.

use std::collections::BTreeMap;

use insight::load::{Change, Metric, changes, figures, headline, pairs, warnings};
use insight::words::three_digits;
use insight::{Summary, VariantLoad};
use record::LoadFigures;
use record::units::show_count;
use serde_json::{Value, json};

use crate::grid::{dash, grid, painted, signed, signed_range};
use crate::style::{self, Paint, Style, paragraph, plain};

/// The laps of one operation. Ends with a line break.
pub fn load(laps: &[LoadFigures], style: Style) -> String {
    let said = headline(laps);
    let mut lines = style::headline(&said.text, &said.details, style);
    lines.push(String::new());
    lines.extend(lap_lines(laps, |_| None, style));
    lines.push(String::new());
    lines.extend(remarks(laps).iter().map(|(paint, text)| paragraph(style, *paint, text, 2)));
    let mut text = lines.join("\n");
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

/// A run that measured loads: every operation under every variant, then each variant beside the first.
pub(crate) fn of_run(summary: &Summary<'_>, style: Style) -> Vec<String> {
    let manifest = summary.manifest;
    let mut lines = Vec::new();
    if manifest.challenge.is_some() {
        lines.push(String::new());
        lines.extend(track_lines(&summary.loads, style));
        for load in &summary.loads {
            let said =
                remarks(&load.laps).into_iter().filter(|(paint, _)| *paint == Some(Paint::Warning));
            let named =
                said.map(|(paint, text)| (paint, format!("{}: {text}", plain(&load.operation))));
            lines.extend(named.map(|(paint, text)| paragraph(style, paint, &text, 2)));
        }
    }
    for load in summary.loads.iter().filter(|_| manifest.challenge.is_none()) {
        let title = format!("{}, {}", load.variant, load.operation);
        lines.extend([String::new(), paragraph(style, Some(Paint::Bold), &plain(&title), 0)]);
        let published = |metric: &Metric| summary.published_load(&load.variant, metric);
        lines.extend(lap_lines(&load.laps, published, style));
        lines.extend(
            remarks(&load.laps).iter().map(|(paint, text)| paragraph(style, *paint, text, 2)),
        );
    }
    for (base, other) in pairs(&summary.loads) {
        let title = format!("{}: {} beside {}", other.operation, other.variant, base.variant);
        lines.extend([String::new(), paragraph(style, Some(Paint::Bold), &plain(&title), 0)]);
        let (base, other) =
            ((base.variant.as_str(), &base.laps[..]), (other.variant.as_str(), &other.laps[..]));
        lines.extend(change_lines(base, other, manifest.seed, style));
    }
    lines.push(String::new());
    lines
}

/// The figures of a track's tasks in one grid, a line for each, as Rally prints them; of several laps those of all.
fn track_lines(loads: &[VariantLoad], style: Style) -> Vec<String> {
    let columns = [("Metric", false), ("Task", false), ("Value", true), ("Unit", false)];
    let rows = loads.iter().flat_map(|load| {
        figures(&load.laps).into_iter().map(|figure| {
            vec![
                figure.metric.name.to_owned(),
                load.operation.clone(),
                figure.total.map_or_else(dash, three_digits),
                figure.metric.unit.to_owned(),
            ]
        })
    });
    painted(grid(columns, rows), style)
}

/// The grid of figures and laps, and beside them what is published.
fn lap_lines(
    laps: &[LoadFigures],
    published: impl Fn(&Metric) -> Option<f64>,
    style: Style,
) -> Vec<String> {
    let ours = figures(laps);
    let compares = ours.iter().any(|figure| published(figure.metric).is_some());
    let names: Vec<String> = (1..=laps.len()).map(|lap| format!("Lap {lap}")).collect();
    let several = laps.len() > 1;
    let mut columns = vec![("Metric", false)];
    columns.extend(names.iter().filter(|_| several).map(|name| (name.as_str(), true)));
    columns.push((if several { "TOTAL" } else { "Value" }, true));
    columns.extend(compares.then_some(("Published", true)));
    columns.push(("Unit", false));
    let show = |value: Option<f64>| value.map_or_else(dash, three_digits);
    let rows = ours.into_iter().map(|figure| {
        let mut row = vec![figure.metric.name.to_owned()];
        row.extend(figure.laps.iter().filter(|_| several).map(|value| show(*value)));
        row.push(show(figure.total));
        row.extend(compares.then(|| show(published(figure.metric))));
        row.push(figure.metric.unit.to_owned());
        row
    });
    painted(grid(columns, rows), style)
}

/// Two variants of one operation side by side. Asterisks mark differences that the laps support.
fn change_lines(
    (base_name, base): (&str, &[LoadFigures]),
    (other_name, other): (&str, &[LoadFigures]),
    seed: u64,
    style: Style,
) -> Vec<String> {
    let (base_name, other_name) = (plain(base_name), plain(other_name));
    let columns = [
        ("Metric", false),
        (base_name.as_str(), true),
        (other_name.as_str(), true),
        ("Change %", true),
        ("", false),
        ("95 % interval", true),
    ];
    let rows = changes(base, other, seed).into_iter().map(|change| {
        let Change { metric, percent, difference } = change;
        let interval = difference.percent_interval.map_or_else(dash, signed_range);
        vec![
            format!("{} ({})", metric.name, metric.unit),
            three_digits(difference.base),
            three_digits(difference.other),
            signed(percent),
            difference.mark().to_owned(),
            interval,
        ]
    });
    painted(grid(columns, rows), style)
}

/// What laps count by name, over all of them.
pub(crate) fn counts(
    laps: &[LoadFigures],
    of: fn(&LoadFigures) -> &BTreeMap<String, u64>,
) -> BTreeMap<&str, u64> {
    let mut all = BTreeMap::<&str, u64>::new();
    for (name, count) in laps.iter().flat_map(of) {
        *all.entry(name.as_str()).or_default() += count;
    }
    all
}

/// Errors by kind, requests by host, and what the driver itself used.
pub(crate) fn remarks(laps: &[LoadFigures]) -> Vec<(Option<Paint>, String)> {
    let mut said = Vec::new();
    let errors = counts(laps, |lap| &lap.errors);
    let hosts = counts(laps, |lap| &lap.hosts);
    let searches = counts(laps, |lap| &lap.searches);
    let list = |of: &BTreeMap<&str, u64>| {
        let parts: Vec<String> = of
            .iter()
            .map(|(name, count)| format!("{} {}", plain(name), show_count(*count)))
            .collect();
        parts.join(", ")
    };
    if !errors.is_empty() {
        let kinds = errors.iter().map(|(kind, count)| {
            let reason = laps.iter().find_map(|lap| lap.reasons.get(*kind));
            let reason = reason.map_or_else(String::new, |text| format!(" ({})", plain(text)));
            format!("{} {}{reason}", plain(kind), show_count(*count))
        });
        let kinds: Vec<String> = kinds.collect();
        said.push((Some(Paint::Warning), format!("Errors: {}.", kinds.join(", "))));
    }
    if hosts.len() > 1 {
        said.push((None, format!("Requests by host: {}.", list(&hosts))));
    }
    let cpu: Vec<f64> =
        laps.iter().filter_map(|lap| Some(lap.driver?.cpu_us_per_request)).collect();
    if searches.len() > 1 {
        said.push((None, format!("Searches of shards by node: {}.", list(&searches))));
    }
    if let Some(us) = insight::stats::median(&cpu) {
        said.push((
            Some(Paint::Dim),
            format!("The driver used {} µs of a core for each request.", three_digits(us)),
        ));
    }
    said.extend(warnings(laps).into_iter().map(|text| (Some(Paint::Warning), text)));
    said
}

/// One object: `operation`, `requests`, `failed`, `headline`, `details` (what that has no room for), the figures of all
/// laps by name (`total`), `laps` as they were measured, and `warnings`.
pub fn load_json(laps: &[LoadFigures]) -> Value {
    let total: serde_json::Map<String, Value> = figures(laps)
        .iter()
        .map(|figure| {
            (format!("{} ({})", figure.metric.name, figure.metric.unit), json!(figure.total))
        })
        .collect();
    let said = headline(laps);
    json!({
        "operation": laps.first().map(|lap| lap.operation.as_str()),
        "requests": laps.iter().map(|lap| lap.requests).sum::<u64>(),
        "failed": laps.iter().map(LoadFigures::failed).sum::<u64>(),
        "headline": said.text,
        "details": said.details,
        "total": total,
        "laps": laps,
        "warnings": warnings(laps),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_written_as_everywhere() {
        let errors = [("404".to_owned(), 82_516)].into();
        let lap = LoadFigures { errors, ..LoadFigures::default() };
        assert_eq!(remarks(std::slice::from_ref(&lap))[0].1, "Errors: 404 82\u{202f}516.");
        let reasons = [("404".to_owned(), "no such index [a]".to_owned())].into();
        let said = remarks(&[LoadFigures { reasons, ..lap }]);
        assert_eq!(said[0].1, "Errors: 404 82\u{202f}516 (no such index [a]).");
    }
}
