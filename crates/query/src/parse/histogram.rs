//! Histograms from JSON.

use super::options::Options;
use super::query::{date_format, time_zone};
use crate::aggregation::AggregationKind;
use crate::date::{self, CalendarUnit};
use crate::error::{Result, ensure, parsing};
use crate::histogram::{AutoHistogram, Histogram, Interval, MAX_BUCKETS};
use crate::json::{Node, Value};
use crate::value::Literal;

/// Milliseconds beyond which nothing lies that a date could be.
const MAX_MS: i64 = 1 << 50;

pub(super) fn histogram(options: &Options<'_>, of_dates: bool) -> Result<AggregationKind> {
    let format = options.read("format", date_format)?;
    let zone = options.read("time_zone", time_zone)?.unwrap_or_default();
    let (interval, mut offset) = match of_dates {
        true => (date_interval(options)?, options.read("offset", date_offset)?),
        false => {
            let node = options.need("interval")?;
            let width = node.float("interval")?;
            let reason = "[interval] must be >0 for histogram aggregation";
            ensure(width >= f64::MIN_POSITIVE, node.at, reason)?;
            (Interval::Fixed(width), options.read("offset", Node::float)?)
        }
    };
    // Buckets are those of an offset below their width. Bounds of dates are moved by all of it: `Histogram::bounds`.
    if let Interval::Fixed(width) = interval
        && !of_dates
    {
        offset = offset.map(|offset| offset.rem_euclid(width));
    }
    let mut extended_bounds = [None, None];
    if let Some(node) = options.get("extended_bounds") {
        let given = node.options("extended_bounds", "min max", 0)?;
        let end = |node: &Node, name: &str| match of_dates {
            true => date_bound(node),
            false => node.float(name).map(Literal::Float),
        };
        extended_bounds = [given.read("min", end)?, given.read("max", end)?];
    }
    let offset = offset.unwrap_or(0.0);
    let histogram = Histogram { interval, offset, zone, of_dates, format, extended_bounds };
    Ok(AggregationKind::Histogram(histogram))
}

pub(super) fn auto_histogram(options: &Options<'_>) -> Result<AggregationKind> {
    let least = |node: &Node, name: &str| {
        let unit = node.text(name)?;
        AutoHistogram::level_of_unit(&unit)
            .ok_or_else(|| node.wrong(name, "year, month, day, hour, minute or second"))
    };
    let buckets = |node: &Node, name: &str| {
        let count = node.count(name)?;
        let reason = format_args!("[{name}] must be greater than 0 in [auto_date_histogram]");
        ensure(count > 0, node.at, reason)?;
        let reason = format_args!("[{name}] must be less than {MAX_BUCKETS}");
        ensure(count <= MAX_BUCKETS as u64, node.at, reason)?;
        Ok(count as usize)
    };
    Ok(AggregationKind::AutoHistogram(AutoHistogram {
        buckets: options.read("buckets", buckets)?.unwrap_or(10),
        least: options.read("minimum_interval", least)?.unwrap_or(0),
        zone: options.read("time_zone", time_zone)?.unwrap_or_default(),
        format: options.read("format", date_format)?,
    }))
}

fn date_interval(options: &Options<'_>) -> Result<Interval> {
    let names = ["calendar_interval", "fixed_interval", "interval"];
    let mut given = names.into_iter().filter_map(|name| Some((name, options.get(name)?)));
    let (name, node) =
        given.next().ok_or_else(|| options.missing("calendar_interval] or [fixed_interval"))?;
    let second = given.next().map(|(_, second)| second.at);
    let reason = "[date_histogram] has more than one interval";
    ensure(second.is_none(), second.unwrap_or_default(), reason)?;
    let text = node.text(name)?;
    let calendar = || CalendarUnit::of_interval(&text).map(Interval::Calendar);
    let fixed = || date::fixed_interval_ms(&text).map(|ms| Interval::Fixed(ms as f64));
    let (found, accepted) = match name {
        "calendar_interval" => (
            calendar(),
            "one unit of the calendar: minute, hour, day, week, month, quarter or year",
        ),
        "fixed_interval" => (fixed(), "like 90m or 30d; months and years are calendar_interval"),
        _ => (calendar().or_else(fixed), "like 90m or month"),
    };
    found.ok_or_else(|| parsing(node.at, format!("[{name}] cannot be [{text}]: write {accepted}")))
}

/// `+6h`, `-1d`, or milliseconds.
fn date_offset(node: &Node, name: &str) -> Result<f64> {
    if let Value::Number(_) = node.value {
        return node.integer(name).map(|ms| ms.clamp(-MAX_MS, MAX_MS) as f64);
    }
    let text = node.text(name)?;
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, text.strip_prefix('+').unwrap_or(&text)),
    };
    let ms = if rest == "0" { Some(0) } else { date::fixed_interval_ms(rest) };
    let ms = ms.filter(|ms| *ms < MAX_MS);
    ms.map(|ms| sign * ms as f64).ok_or_else(|| node.wrong(name, "a time like +6h or -1d"))
}

/// An end of the `extended_bounds` of dates. A text is read where the format of the field is known.
fn date_bound(node: &Node) -> Result<Literal> {
    if let Value::Number(_) = node.value {
        let ms = node.integer("extended_bounds")?;
        return Ok(Literal::Integer(ms.clamp(-MAX_MS, MAX_MS)));
    }
    let text = node.text("extended_bounds")?;
    let reason = "[extended_bounds] by now is not supported by this engine; send dates";
    ensure(!text.starts_with("now"), node.at, reason)?;
    Ok(Literal::Text(text))
}
