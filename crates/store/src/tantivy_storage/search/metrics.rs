//! The numbers of metrics, written.

use serde::{Deserialize, Serialize};
use tantivy::aggregation::intermediate_agg_result::IntermediateAggregationResult as One;

use query::aggregation::Statistic;
use query::{DateFormat, Text};

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
    let text = |value: f64| shown?.text(value);
    let mut number = |name: &str, value: Option<f64>| {
        to.member(name, &value);
        if let Some(text) = value.and_then(text) {
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
    if let Some(extended) = extended {
        let json = serde_json::to_value(extended).unwrap_or_default();
        let plain = ["min", "max", "avg", "sum", "count"];
        for (name, value) in json.as_object().into_iter().flatten() {
            if !plain.contains(&name.as_str()) {
                to.member(name, value);
            }
        }
    }
}

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
