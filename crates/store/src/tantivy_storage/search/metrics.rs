//! The numbers of metrics, written.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tantivy::aggregation::intermediate_agg_result::IntermediateAggregationResult as One;
use tantivy::aggregation::metric::{IntermediateExtendedStats, Stats};

use query::aggregation::Statistic;
use query::{DateFormat, Text};

use super::computed::Side;
use super::rows::{numbered, numbered_statistic, quantile, statistic_name, stats};
use super::value::show_double;

/// How the values of a field are shown, where not as they are.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Shown {
    /// As numbers with a fraction.
    Double,
    /// As dates, too.
    Date(DateFormat),
    /// As true and false, too.
    Boolean,
    /// As an address.
    Address,
}

impl Shown {
    /// A value as text, where it is shown as one, too.
    pub(super) fn text(&self, value: f64) -> Option<String> {
        match self {
            Shown::Date(format) => Some(format.show(value as i64)),
            Shown::Boolean => Some((value != 0.0).to_string()),
            Shown::Double | Shown::Address => None,
        }
    }
}

/// Writes statistics of a field.
pub(super) fn write_statistics(
    to: &mut Text<'_>,
    (statistic, shown): (Statistic, Option<&Shown>),
    found: Option<&One>,
) {
    let (stats, extended) = stats(found);
    let is_extended = matches!(statistic, Statistic::Extended { .. });
    let of_none = || is_extended.then(|| IntermediateExtendedStats::default().finalize());
    let extended = extended.or_else(of_none);
    let text = |value: f64| shown?.text(value);
    let mut number = |name: &str, value: Option<f64>| {
        to.member(name, &value);
        // Of no values the field has no sum as a text, but where it is asked for alone.
        let is_shown = stats.count > 0 || name == "value";
        if let Some(text) = value.filter(|_| is_shown).and_then(text) {
            to.member(&format!("{name}_as_string"), &text);
        }
    };
    match statistic {
        Statistic::Stats | Statistic::Extended { .. } => {
            for name in ["min", "max", "avg", "sum"] {
                number(name, numbered_statistic(&stats, name));
            }
            to.member("count", &stats.count);
        }
        Statistic::ValueCount => to.member("value", &stats.count),
        _ => number("value", numbered_statistic(&stats, statistic_name(statistic))),
    }
    // The library says nothing of how far a single value is spread: not at all, and as a sample that is no number.
    let spread = |name: &str, found: &Value, alone: Option<f64>| match stats.count {
        1 if name.ends_with("_sampling") => json!("NaN"),
        1 => json!(alone),
        _ => found.clone(),
    };
    let json = extended.map(|of| serde_json::to_value(of).unwrap_or_default());
    for (name, found) in json.iter().filter_map(Value::as_object).flatten() {
        match name.as_str() {
            "min" | "max" | "avg" | "sum" | "count" => {}
            "sum_of_squares" => to.member(name, found),
            "std_deviation_bounds" => {
                to.name(name);
                to.open(b'{');
                for end in BOUNDS {
                    to.member(end, &spread(end, &found[end], stats.avg));
                }
                to.close(b'}');
            }
            _ => to.member(name, &spread(name, found, Some(0.0))),
        }
    }
}

/// The ends of `std_deviation_bounds`.
const BOUNDS: [&str; 6] =
    ["upper", "lower", "upper_population", "lower_population", "upper_sampling", "lower_sampling"];

/// Writes percentiles: as an object by their names if `keyed`.
pub(super) fn write_percentiles(
    to: &mut Text<'_>,
    (percents, keyed, shown): (&[f64], bool, Option<&Shown>),
    found: Option<&One>,
) {
    let rows = numbered(found);
    to.name("values");
    to.open(if keyed { b'{' } else { b'[' });
    for percent in percents {
        let value = quantile(&rows, percent / 100.0);
        let name = if keyed { show_double(*percent) } else { "value".to_owned() };
        if !keyed {
            to.open(b'{');
            to.member("key", percent);
        }
        to.member(&name, &value);
        if let Some(text) = value.and_then(|value| shown?.text(value)) {
            to.member(&format!("{name}_as_string"), &text);
        }
        if !keyed {
            to.close(b'}');
        }
    }
    to.close(if keyed { b'}' } else { b']' });
}

/// Writes the middle of points, where there are some.
pub(super) fn write_centroid(to: &mut Text<'_>, side: impl Fn(Side) -> Stats) {
    let (lat, lon) = (side(Side::Latitude), side(Side::Longitude));
    if let Some((lat, lon)) = lat.avg.zip(lon.avg) {
        to.member("location", &json!({ "lat": lat, "lon": lon }));
    }
    to.member("count", &lat.count);
}

/// Writes the least box around points, where there are some. It crosses the date line if it `wraps` and is narrower so.
pub(super) fn write_bounds(to: &mut Text<'_>, wraps: bool, side: impl Fn(Side) -> Stats) {
    let [lats, west, east] = [Side::Latitude, Side::West, Side::East].map(|of| {
        let Stats { min, max, .. } = side(of);
        min.zip(max)
    });
    let lons = match (west, east) {
        (Some(west), Some(east)) if wraps && east.1 - west.0 > 360.0 - east.0 + west.1 => {
            Some((east.0, west.1))
        }
        (Some(west), Some(east)) => Some((west.0, east.1)),
        _ => west.or(east),
    };
    let (Some((bottom, top)), Some((left, right))) = (lats, lons) else { return };
    to.name("bounds");
    to.open(b'{');
    to.member("top_left", &json!({ "lat": top, "lon": left }));
    to.member("bottom_right", &json!({ "lat": bottom, "lon": right }));
    to.close(b'}');
}
