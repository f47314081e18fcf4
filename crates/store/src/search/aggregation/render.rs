//! From the merged result of all shards to the JSON of the field.

use std::cmp::Ordering;
use std::net::Ipv6Addr;

use serde_json::{Map, Value, json};

use super::{
    Aggregation, AggregationKind, Bucket, BucketOrder, Buckets, DateHistogram, Digest, Histogram,
    Key, Metric, MetricKind, OrderBy, Partial, Ranges, Stats, Terms, ValueKind,
};
use crate::search::DateFormat;
use crate::search::error::{SearchError, SearchErrorKind};

/// The `aggregations` of an answer. `partials` are those of all shards, merged; none where no shard answered.
///
/// Errors: [`SearchErrorKind::TooManyBuckets`] if there are more than `max_buckets`.
pub fn render(
    aggregations: &[Aggregation],
    partials: Vec<Partial>,
    max_buckets: usize,
) -> Result<Value, SearchError> {
    let mut renderer = Renderer { left: max_buckets, max_buckets };
    Ok(Value::Object(renderer.all(aggregations, partials)?))
}

struct Renderer {
    left: usize,
    max_buckets: usize,
}

/// What a shard would have found without documents.
fn nothing(aggregation: &Aggregation) -> Partial {
    match &aggregation.kind {
        AggregationKind::Metric(Metric { kind, .. }) => match kind {
            MetricKind::Cardinality { threshold } => {
                Partial::Distinct(super::Distinct::new(*threshold))
            }
            MetricKind::Percentiles { .. } => Partial::Digest(Digest::default()),
            _ => Partial::Stats(Stats::default(), ValueKind::Number),
        },
        _ => Partial::Buckets(Buckets { error: Some(0), ..Buckets::default() }),
    }
}

pub(crate) fn too_many(max_buckets: usize) -> SearchError {
    SearchError {
        kind: SearchErrorKind::TooManyBuckets,
        reason: format!(
            "Trying to create too many buckets. Must be less than or equal to: [{max_buckets}]. This limit can be \
             set by changing the [search.max_buckets] cluster level setting."
        ),
        at: None,
    }
}

/// A bucket that is about to be shown.
type Shown = (Key, Bucket);

impl Renderer {
    fn all(
        &mut self,
        aggregations: &[Aggregation],
        partials: Vec<Partial>,
    ) -> Result<Map<String, Value>, SearchError> {
        let mut found = partials.into_iter();
        let mut object = Map::new();
        for aggregation in aggregations {
            let partial = found.next().unwrap_or_else(|| nothing(aggregation));
            let mut value = self.one(aggregation, partial)?;
            if let Some(meta) = &aggregation.meta {
                value["meta"] = serde_json::from_str(meta).unwrap_or_default();
            }
            object.insert(aggregation.name.clone(), value);
        }
        Ok(object)
    }

    fn one(&mut self, aggregation: &Aggregation, partial: Partial) -> Result<Value, SearchError> {
        let subs = &aggregation.subs;
        Ok(match (&aggregation.kind, partial) {
            (AggregationKind::Metric(metric), Partial::Stats(stats, kind)) => {
                stats_json(&metric.kind, &stats, &kind)
            }
            (AggregationKind::Metric(_), Partial::Distinct(distinct)) => {
                json!({ "value": distinct.count() })
            }
            (AggregationKind::Metric(Metric { kind, .. }), Partial::Digest(digest)) => {
                percentiles_json(kind, digest)
            }
            (AggregationKind::Terms(terms), Partial::Buckets(buckets)) => {
                self.terms(terms, subs, buckets)?
            }
            (AggregationKind::Histogram(histogram), Partial::Buckets(buckets)) => {
                self.histogram(histogram, subs, buckets)?
            }
            (AggregationKind::DateHistogram(histogram), Partial::Buckets(buckets)) => {
                self.date_histogram(histogram, subs, buckets)?
            }
            (AggregationKind::Range(ranges), Partial::Buckets(buckets)) => {
                self.ranges(ranges, subs, buckets)?
            }
            (_, other) => {
                debug_assert!(false, "{other:?} is not of {}", aggregation.name);
                Value::Null
            }
        })
    }

    fn take(&mut self, buckets: usize) -> Result<(), SearchError> {
        self.left = self.left.checked_sub(buckets).ok_or_else(|| too_many(self.max_buckets))?;
        Ok(())
    }

    /// Writes buckets. `label` gives the name that a keyed answer has them under, and their own members.
    fn buckets(
        &mut self,
        shown: Vec<Shown>,
        subs: &[Aggregation],
        keyed: bool,
        label: impl Fn(&Key) -> (String, Map<String, Value>),
    ) -> Result<Value, SearchError> {
        self.take(shown.len())?;
        let mut named = Vec::with_capacity(shown.len());
        for (key, bucket) in shown {
            let (name, mut object) = label(&key);
            object.insert("doc_count".to_owned(), json!(bucket.doc_count));
            object.extend(self.all(subs, bucket.subs)?);
            named.push((name, Value::Object(object)));
        }
        Ok(if keyed {
            Value::Object(named.into_iter().collect())
        } else {
            named.into_iter().map(|(_, object)| object).collect()
        })
    }

    fn terms(
        &mut self,
        terms: &Terms,
        subs: &[Aggregation],
        found: Buckets,
    ) -> Result<Value, SearchError> {
        let mut other = found.other_doc_count;
        let (mut shown, hidden): (Vec<Shown>, Vec<Shown>) =
            found.buckets.into_iter().partition(|(_, b)| b.doc_count >= terms.min_doc_count);
        sort(&mut shown, &terms.order, subs);
        other += hidden.iter().map(|(_, bucket)| bucket.doc_count).sum::<u64>();
        other += shown.iter().skip(terms.size).map(|(_, bucket)| bucket.doc_count).sum::<u64>();
        shown.truncate(terms.size);
        let buckets = self.buckets(shown, subs, false, |key| plain(key, &found.values))?;
        Ok(json!({
            "doc_count_error_upper_bound": match found.error {
                None => -1,
                Some(_) if found.shards <= 1 => 0,
                Some(error) => error as i64,
            },
            "sum_other_doc_count": other,
            "buckets": buckets,
        }))
    }

    fn histogram(
        &mut self,
        histogram: &Histogram,
        subs: &[Aggregation],
        found: Buckets,
    ) -> Result<Value, SearchError> {
        let mut shown: Vec<Shown> = found.buckets.into_iter().collect();
        if histogram.min_doc_count == 0 {
            let number = |key: &Key| match key {
                Key::Double(number) => *number,
                _ => 0.0,
            };
            let bounds = histogram
                .extended_bounds
                .map(|(min, max)| (histogram.number(min), histogram.number(max)));
            let inside = shown.first().zip(shown.last()).map(|(a, b)| (number(&a.0), number(&b.0)));
            if let Some((first, last)) = hull(inside, bounds) {
                if last - first >= self.left as f64 {
                    return Err(too_many(self.max_buckets));
                }
                let count = (last - first) as u64;
                let keys = (0..=count).map(|step| Key::Double(first + step as f64));
                shown = fill(shown, keys, subs);
            }
        }
        shown.retain(|(_, bucket)| bucket.doc_count >= histogram.min_doc_count);
        sort(&mut shown, std::slice::from_ref(&histogram.order), subs);
        let buckets = self.buckets(shown, subs, histogram.keyed, |key| {
            let Key::Double(number) = key else { return plain(key, &found.values) };
            plain(&Key::Double(histogram.key(*number)), &found.values)
        })?;
        Ok(json!({ "buckets": buckets }))
    }

    fn date_histogram(
        &mut self,
        histogram: &DateHistogram,
        subs: &[Aggregation],
        found: Buckets,
    ) -> Result<Value, SearchError> {
        let mut shown: Vec<Shown> = found.buckets.into_iter().collect();
        if histogram.min_doc_count == 0 {
            let start = |key: &Key| match key {
                Key::Long(start) => *start,
                _ => 0,
            };
            let bounds = histogram
                .extended_bounds
                .map(|(min, max)| (histogram.floor(min), histogram.floor(max)));
            let inside = shown.first().zip(shown.last()).map(|(a, b)| (start(&a.0), start(&b.0)));
            if let Some((first, last)) = hull(inside, bounds) {
                let mut keys = Vec::new();
                let mut at = first;
                while at <= last {
                    if keys.len() >= self.left {
                        return Err(too_many(self.max_buckets));
                    }
                    keys.push(Key::Long(at));
                    at = histogram.next(at).max(at + 1);
                }
                shown = fill(shown, keys.into_iter(), subs);
            }
        }
        shown.retain(|(_, bucket)| bucket.doc_count >= histogram.min_doc_count);
        sort(&mut shown, std::slice::from_ref(&histogram.order), subs);
        let own = match found.values {
            ValueKind::Date(format) => format,
            _ => DateFormat::default(),
        };
        let format = histogram.format.clone().unwrap_or(own);
        let zone_ms = histogram.zone_ms;
        let buckets = self.buckets(shown, subs, histogram.keyed, |key| {
            let Key::Long(start) = key else { return plain(key, &ValueKind::Number) };
            let text = format.show_in_zone(*start, zone_ms);
            let mut object = Map::new();
            object.insert("key_as_string".to_owned(), json!(text));
            object.insert("key".to_owned(), json!(start));
            (text, object)
        })?;
        Ok(json!({ "buckets": buckets }))
    }

    fn ranges(
        &mut self,
        ranges: &Ranges,
        subs: &[Aggregation],
        mut found: Buckets,
    ) -> Result<Value, SearchError> {
        let shown = (0..ranges.ranges.len() as i64).map(Key::Long).map(|key| {
            let bucket = found.buckets.remove(&key).unwrap_or_else(|| empty(subs));
            (key, bucket)
        });
        let shown = shown.collect();
        let format = match &found.values {
            ValueKind::Date(format) => Some(format.clone()),
            _ => None,
        };
        let buckets = self.buckets(shown, subs, ranges.keyed, |key| {
            let Key::Long(at) = key else { return plain(key, &ValueKind::Number) };
            let range = &ranges.ranges[*at as usize];
            let show = |end: f64| match &format {
                Some(format) => format.show(end as i64),
                None => show_double(end),
            };
            let end = |end: Option<f64>| end.map_or_else(|| "*".to_owned(), show);
            let made = || format!("{}-{}", end(range.from), end(range.to));
            let name = range.key.clone().unwrap_or_else(made);
            let mut object = Map::new();
            if !ranges.keyed {
                object.insert("key".to_owned(), json!(name));
            }
            for (side, value) in [("from", range.from), ("to", range.to)] {
                if let Some(value) = value {
                    object.insert(side.to_owned(), json!(value));
                    if format.is_some() {
                        object.insert(format!("{side}_as_string"), json!(show(value)));
                    }
                }
            }
            (name, object)
        })?;
        Ok(json!({ "buckets": buckets }))
    }
}

/// From the first to the last of both.
fn hull<T: Copy + PartialOrd>(inside: Option<(T, T)>, bounds: Option<(T, T)>) -> Option<(T, T)> {
    let Some((first, last)) = inside else { return bounds };
    let Some((min, max)) = bounds else { return inside };
    Some((if min < first { min } else { first }, if max > last { max } else { last }))
}

fn empty(subs: &[Aggregation]) -> Bucket {
    Bucket { doc_count: 0, subs: subs.iter().map(nothing).collect() }
}

/// Puts an empty bucket wherever `keys` has one that `shown` has not. Both ascend, and `keys` has all of `shown`.
fn fill(shown: Vec<Shown>, keys: impl Iterator<Item = Key>, subs: &[Aggregation]) -> Vec<Shown> {
    let mut there = shown.into_iter().peekable();
    let mut filled = Vec::new();
    for key in keys {
        // A key that rounding put between two of the grid stays where it is.
        while let Some(own) = there.next_if(|(own, _)| *own <= key) {
            filled.push(own);
        }
        if filled.last().is_none_or(|(last, _)| *last != key) {
            filled.push((key, empty(subs)));
        }
    }
    filled.extend(there);
    filled
}

/// Sorts buckets that come by their keys; the sort is stable, so that ties stay so.
fn sort(shown: &mut [Shown], order: &[BucketOrder], subs: &[Aggregation]) {
    let mut keys: Vec<(usize, Vec<f64>)> = Vec::new();
    let by_metric = order.iter().any(|order| matches!(order.by, OrderBy::Metric(..)));
    if by_metric {
        let value = |bucket: &Bucket, order: &BucketOrder| match &order.by {
            OrderBy::Metric(name, part) => metric_value(bucket, subs, name, part.as_deref()),
            _ => 0.0,
        };
        let values = |bucket: &Bucket| order.iter().map(|order| value(bucket, order)).collect();
        keys = shown.iter().map(|(_, bucket)| values(bucket)).enumerate().collect();
    }
    let compare = |a: usize, b: usize, shown: &[Shown], keys: &[(usize, Vec<f64>)]| {
        order
            .iter()
            .enumerate()
            .map(|(at, order)| {
                let ordering = match &order.by {
                    OrderBy::Count => shown[a].1.doc_count.cmp(&shown[b].1.doc_count),
                    OrderBy::Key => shown[a].0.cmp(&shown[b].0),
                    OrderBy::Metric(..) => {
                        return order_metric(keys[a].1[at], keys[b].1[at], order.descending);
                    }
                };
                if order.descending { ordering.reverse() } else { ordering }
            })
            .find(|ordering| ordering.is_ne())
            .unwrap_or(Ordering::Equal)
    };
    let mut places: Vec<usize> = (0..shown.len()).collect();
    places.sort_by(|a, b| compare(*a, *b, shown, &keys));
    let mut sorted: Vec<Option<Shown>> = shown
        .iter_mut()
        .map(|slot| {
            let taken = (Key::Long(0), Bucket { doc_count: 0, subs: Vec::new() });
            Some(std::mem::replace(slot, taken))
        })
        .collect();
    for (slot, place) in shown.iter_mut().zip(places) {
        if let Some(bucket) = sorted[place].take() {
            *slot = bucket;
        }
    }
}

/// Buckets without a value come last, whichever way.
pub(crate) fn order_metric(a: f64, b: f64, descending: bool) -> Ordering {
    match (a.is_nan(), b.is_nan()) {
        (true, true) => Ordering::Equal,
        (true, false) => Ordering::Greater,
        (false, true) => Ordering::Less,
        _ if descending => b.total_cmp(&a),
        _ => a.total_cmp(&b),
    }
}

fn metric_value(bucket: &Bucket, subs: &[Aggregation], name: &str, part: Option<&str>) -> f64 {
    let at = subs.iter().position(|sub| sub.name == name);
    let Some((sub, partial)) = at.and_then(|at| Some((&subs[at], bucket.subs.get(at)?))) else {
        return f64::NAN;
    };
    let AggregationKind::Metric(metric) = &sub.kind else { return f64::NAN };
    partial.number(&metric.kind, part)
}

impl Partial {
    /// The one number of a metric that buckets can be sorted by; NaN for none.
    pub(crate) fn number(&self, kind: &MetricKind, part: Option<&str>) -> f64 {
        match self {
            Partial::Stats(stats, _) => stats_number(kind, stats, part),
            Partial::Distinct(distinct) => distinct.count() as f64,
            Partial::Digest(digest) => {
                let percent = part.and_then(|part| part.parse::<f64>().ok()).unwrap_or(50.0);
                digest.clone().quantile(percent / 100.0).unwrap_or(f64::NAN)
            }
            Partial::Buckets(_) => f64::NAN,
        }
    }
}

pub(crate) fn stats_number(kind: &MetricKind, stats: &Stats, part: Option<&str>) -> f64 {
    let of_nothing = |value: f64| if stats.count == 0 { f64::NAN } else { value };
    match (kind, part) {
        (MetricKind::Min, _) | (MetricKind::Stats, Some("min")) => of_nothing(stats.min),
        (MetricKind::Max, _) | (MetricKind::Stats, Some("max")) => of_nothing(stats.max),
        (MetricKind::Sum, _) | (MetricKind::Stats, Some("sum")) => stats.sum(),
        (MetricKind::ValueCount, _) | (MetricKind::Stats, Some("count")) => stats.count as f64,
        _ => stats.avg().unwrap_or(f64::NAN),
    }
}

/// `12.0` for 12, as Java writes a double.
fn show_double(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1e7 {
        format!("{value:.1}")
    } else {
        value.to_string()
    }
}

/// The key of a bucket, and what is shown of it.
fn plain(key: &Key, values: &ValueKind) -> (String, Map<String, Value>) {
    let (shown, text) = match (key, values) {
        (Key::Long(ms), ValueKind::Date(format)) => (json!(ms), Some(format.show(*ms))),
        (Key::Long(yes), ValueKind::Boolean) => (json!(yes), Some((*yes == 1).to_string())),
        (Key::Long(number), _) => (json!(number), None),
        (Key::Double(number), _) => (json!(number), None),
        (Key::Ip(address), _) => (json!(show_ip(address)), None),
        (Key::Text(text), _) => (json!(text), None),
    };
    let name = match (&text, key) {
        (Some(text), _) | (None, Key::Text(text)) => text.clone(),
        (None, Key::Double(number)) => show_double(*number),
        (None, Key::Ip(address)) => show_ip(address),
        (None, Key::Long(number)) => number.to_string(),
    };
    let mut object = Map::new();
    object.insert("key".to_owned(), shown);
    if let Some(text) = text {
        object.insert("key_as_string".to_owned(), json!(text));
    }
    (name, object)
}

/// An address as it was written: IPv4 where it is one.
pub(crate) fn show_ip(address: &Ipv6Addr) -> String {
    match address.to_ipv4_mapped() {
        Some(v4) => v4.to_string(),
        None => address.to_string(),
    }
}

fn stats_json(kind: &MetricKind, stats: &Stats, values: &ValueKind) -> Value {
    let of_nothing = |value: f64| if stats.count == 0 { Value::Null } else { json!(value) };
    let whole = match kind {
        MetricKind::Stats => json!({
            "count": stats.count,
            "min": of_nothing(stats.min),
            "max": of_nothing(stats.max),
            "avg": stats.avg(),
            "sum": stats.sum(),
        }),
        MetricKind::ValueCount => json!({ "value": stats.count }),
        MetricKind::Sum => json!({ "value": stats.sum() }),
        _ => {
            let number = stats_number(kind, stats, None);
            json!({ "value": if number.is_nan() { Value::Null } else { json!(number) } })
        }
    };
    let ValueKind::Date(format) = values else { return whole };
    if *kind == MetricKind::ValueCount {
        return whole;
    }
    let Value::Object(members) = whole else { return whole };
    let mut shown = Map::new();
    for (name, value) in members {
        let text = value.as_f64().filter(|_| name != "count").map(|ms| format.show(ms as i64));
        shown.insert(name.clone(), value);
        if let Some(text) = text {
            shown.insert(format!("{name}_as_string"), json!(text));
        }
    }
    Value::Object(shown)
}

fn percentiles_json(kind: &MetricKind, mut digest: Digest) -> Value {
    let MetricKind::Percentiles { percents, keyed } = kind else { return Value::Null };
    let mut of = |percent: f64| digest.quantile(percent / 100.0);
    if *keyed {
        let values = percents.iter().map(|percent| (show_double(*percent), json!(of(*percent))));
        return json!({ "values": values.collect::<Map<String, Value>>() });
    }
    let values: Vec<Value> =
        percents.iter().map(|percent| json!({ "key": percent, "value": of(*percent) })).collect();
    json!({ "values": values })
}
