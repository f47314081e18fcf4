//! The figures of one lap that runs are compared by.

use record::{FollowFigures, LoadFigures, Row};

use crate::difference::Better;
use crate::load::{METRICS, Metric};

/// One lap's value of a figure.
pub(crate) struct Value {
    pub(crate) variant: String,
    pub(crate) operation: Option<String>,
    pub(crate) name: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) better: Better,
    pub(crate) value: f64,
}

/// Every figure of a lap that runs are compared by.
pub(crate) fn values(row: &Row) -> Vec<Value> {
    let mut found = Vec::new();
    let mut add = |operation: Option<&str>, name, unit, better, value: Option<f64>| {
        if let Some(value) = value.filter(|value| value.is_finite()) {
            let (variant, operation) = (row.variant.clone(), operation.map(str::to_owned));
            found.push(Value { variant, operation, name, unit, better, value });
        }
    };
    for load in &row.loads {
        for metric in METRICS.iter().filter(|metric| is_between_runs(metric, load)) {
            let (name, unit) = (metric.name, metric.unit);
            add(Some(&load.operation), name, unit, metric.better, metric.of(load));
        }
    }
    if let Some(following) = &row.following {
        for (name, unit, value) in of_following(following) {
            add(None, name, unit, Better::Less, value);
        }
    }
    if row.loads.is_empty() && row.following.is_none() && row.took_time() {
        add(None, "time", "s", Better::Less, Some(row.seconds));
        add(None, "rate", "MB/s", Better::More, Some(row.bytes_per_s / 1e6));
    }
    found
}

/// In a closed loop the latency is the service time, which need not be shown twice. The longest of many times is
/// chance; the only one, as that of a force-merge, is what there is to compare.
fn is_between_runs(metric: &Metric, load: &LoadFigures) -> bool {
    match metric.between_runs {
        true if metric.name.ends_with("service time") => load.rate_per_s.is_some(),
        false if metric.name == "100th percentile latency" => load.requests == 1,
        between_runs => between_runs,
    }
}

fn of_following(figures: &FollowFigures) -> [(&'static str, &'static str, Option<f64>); 3] {
    let longest = figures.catch_ups.iter().map(|wait| wait.seconds).reduce(f64::max);
    [
        ("longest lag", "s", Some(figures.lag_s_max)),
        ("longest catch-up", "s", longest),
        ("rules broken", "", (figures.copies > 0).then_some(figures.violations as f64)),
    ]
}
