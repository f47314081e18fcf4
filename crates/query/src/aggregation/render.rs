//! From the merged result of all shards to the JSON of the field, as text: buckets are many, and values in between would
//! cost more than finding them.

use std::cmp::Ordering;
use std::net::Ipv6Addr;

use super::text::Text;
use super::{
    Aggregation, AggregationKind, Bucket, BucketOrder, Buckets, DateHistogram, Digest, Histogram,
    Key, Metric, MetricKind, OrderBy, Partial, Ranges, Stats, Terms, ValueKind,
};
use crate::DateFormat;
use crate::error::{SearchError, SearchErrorKind};

/// Writes the `aggregations` of an answer behind `text`, as a JSON object. `partials` are those of all shards, merged; none
/// where no shard answered.
///
/// Errors: [`SearchErrorKind::TooManyBuckets`] if there are more than `max_buckets`; what is written by then is no JSON.
pub fn render(
    aggregations: &[Aggregation],
    partials: Vec<Partial>,
    max_buckets: usize,
    text: &mut Vec<u8>,
) -> Result<(), SearchError> {
    let mut renderer = Renderer { left: max_buckets, max_buckets, to: Text(text) };
    renderer.to.open(b'{');
    renderer.all(aggregations, partials)?;
    renderer.to.close(b'}');
    Ok(())
}

struct Renderer<'a> {
    left: usize,
    max_buckets: usize,
    to: Text<'a>,
}

/// What a shard would have found without documents.
pub fn nothing(aggregation: &Aggregation) -> Partial {
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

/// The field's error for a request that passes `search.max_buckets`.
pub fn too_many(max_buckets: usize) -> SearchError {
    SearchError {
        kind: SearchErrorKind::TooManyBuckets,
        reason: format!(
            "Trying to create too many buckets. Must be less than or equal to: [{max_buckets}]. This limit can be \
             set by changing the [search.max_buckets] cluster level setting."
        ),
        at: None,
    }
}

/// A bucket with its key.
pub type Shown = (Key, Bucket);

impl Renderer<'_> {
    /// Writes members of an object: one for each aggregation.
    fn all(
        &mut self,
        aggregations: &[Aggregation],
        partials: Vec<Partial>,
    ) -> Result<(), SearchError> {
        let mut found = partials.into_iter();
        for aggregation in aggregations {
            let partial = found.next().unwrap_or_else(|| nothing(aggregation));
            self.to.name(&aggregation.name);
            self.to.open(b'{');
            if let Some(meta) = &aggregation.meta {
                self.to.name("meta");
                self.to.json(meta);
            }
            self.one(aggregation, partial)?;
            self.to.close(b'}');
        }
        Ok(())
    }

    /// Writes the members of an aggregation.
    fn one(&mut self, aggregation: &Aggregation, partial: Partial) -> Result<(), SearchError> {
        let subs = &aggregation.subs;
        match (&aggregation.kind, partial) {
            (AggregationKind::Metric(metric), Partial::Stats(stats, kind)) => {
                write_stats(&mut self.to, &metric.kind, &stats, &kind);
            }
            (AggregationKind::Metric(_), Partial::Distinct(distinct)) => {
                self.to.member("value", &distinct.count());
            }
            (AggregationKind::Metric(Metric { kind, .. }), Partial::Digest(digest)) => {
                write_percentiles(&mut self.to, kind, digest);
            }
            (AggregationKind::Terms(terms), Partial::Buckets(buckets)) => {
                self.terms(terms, subs, buckets)?;
            }
            (AggregationKind::Histogram(histogram), Partial::Buckets(buckets)) => {
                self.histogram(histogram, subs, buckets)?;
            }
            (AggregationKind::DateHistogram(histogram), Partial::Buckets(buckets)) => {
                self.date_histogram(histogram, subs, buckets)?;
            }
            (AggregationKind::Range(ranges), Partial::Buckets(buckets)) => {
                self.ranges(ranges, subs, buckets)?;
            }
            (_, other) => debug_assert!(false, "{other:?} is not of {}", aggregation.name),
        }
        Ok(())
    }

    fn take(&mut self, buckets: usize) -> Result<(), SearchError> {
        self.left = self.left.checked_sub(buckets).ok_or_else(|| too_many(self.max_buckets))?;
        Ok(())
    }

    /// Writes `buckets`. `name` is what a keyed answer has a bucket under, `own` writes its own members.
    fn buckets(
        &mut self,
        shown: Vec<Shown>,
        subs: &[Aggregation],
        keyed: bool,
        (name, own): (impl Fn(&Key) -> String, impl Fn(&mut Text<'_>, &Key)),
    ) -> Result<(), SearchError> {
        self.take(shown.len())?;
        self.to.name("buckets");
        self.to.open(if keyed { b'{' } else { b'[' });
        for (key, bucket) in shown {
            if keyed {
                self.to.name(&name(&key));
            }
            self.to.open(b'{');
            own(&mut self.to, &key);
            self.to.member("doc_count", &bucket.doc_count);
            self.all(subs, bucket.subs)?;
            self.to.close(b'}');
        }
        self.to.close(if keyed { b'}' } else { b']' });
        Ok(())
    }

    fn terms(
        &mut self,
        terms: &Terms,
        subs: &[Aggregation],
        found: Buckets,
    ) -> Result<(), SearchError> {
        let mut other = found.other_doc_count;
        let (mut shown, hidden): (Vec<Shown>, Vec<Shown>) =
            found.buckets.into_iter().partition(|(_, b)| b.doc_count >= terms.min_doc_count);
        sort(&mut shown, &terms.order, subs);
        other += hidden.iter().map(|(_, bucket)| bucket.doc_count).sum::<u64>();
        other += shown.iter().skip(terms.size).map(|(_, bucket)| bucket.doc_count).sum::<u64>();
        shown.truncate(terms.size);
        let error = match found.error {
            None => -1,
            Some(_) if found.shards <= 1 => 0,
            Some(error) => error as i64,
        };
        self.to.member("doc_count_error_upper_bound", &error);
        self.to.member("sum_other_doc_count", &other);
        let values = &found.values;
        let look = (
            |key: &Key| plain_name(key, values),
            |to: &mut Text<'_>, key: &Key| {
                write_plain(to, key, values);
            },
        );
        self.buckets(shown, subs, false, look)
    }

    fn histogram(
        &mut self,
        histogram: &Histogram,
        subs: &[Aggregation],
        found: Buckets,
    ) -> Result<(), SearchError> {
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
        let key = |key: &Key| match key {
            Key::Double(number) => Key::Double(histogram.key(*number)),
            other => other.clone(),
        };
        let values = &found.values;
        let look = (
            |at: &Key| plain_name(&key(at), values),
            |to: &mut Text<'_>, at: &Key| {
                write_plain(to, &key(at), values);
            },
        );
        self.buckets(shown, subs, histogram.keyed, look)
    }

    fn date_histogram(
        &mut self,
        histogram: &DateHistogram,
        subs: &[Aggregation],
        found: Buckets,
    ) -> Result<(), SearchError> {
        let start = |key: &Key| match key {
            Key::Long(start) => *start,
            _ => 0,
        };
        let mut shown: Vec<Shown> = found.buckets.into_iter().collect();
        if histogram.min_doc_count == 0 {
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
        let format = histogram.format.as_ref().unwrap_or(&own);
        let text = |key: &Key| format.show_in_zone(start(key), histogram.zone_ms);
        let look = (text, |to: &mut Text<'_>, key: &Key| {
            to.member("key_as_string", &text(key));
            to.member("key", &start(key));
        });
        self.buckets(shown, subs, histogram.keyed, look)
    }

    fn ranges(
        &mut self,
        ranges: &Ranges,
        subs: &[Aggregation],
        mut found: Buckets,
    ) -> Result<(), SearchError> {
        let shown = (0..ranges.ranges.len() as i64).map(Key::Long).map(|key| {
            let bucket = found.buckets.remove(&key).unwrap_or_else(|| empty(subs));
            (key, bucket)
        });
        let shown = shown.collect();
        let format = match &found.values {
            ValueKind::Date(format) => Some(format),
            _ => None,
        };
        let range = |key: &Key| match key {
            Key::Long(at) => &ranges.ranges[*at as usize],
            _ => &ranges.ranges[0],
        };
        let show = |end: f64| match format {
            Some(format) => format.show(end as i64),
            None => show_double(end),
        };
        let name = |key: &Key| {
            let range = range(key);
            let end = |end: Option<f64>| end.map_or_else(|| "*".to_owned(), show);
            let made = || format!("{}-{}", end(range.from), end(range.to));
            range.key.clone().unwrap_or_else(made)
        };
        let own = |to: &mut Text<'_>, key: &Key| {
            if !ranges.keyed {
                to.member("key", &name(key));
            }
            let range = range(key);
            let ends = [("from", "from_as_string", range.from), ("to", "to_as_string", range.to)];
            for (side, as_string, end) in ends {
                let Some(end) = end else { continue };
                to.member(side, &end);
                if format.is_some() {
                    to.member(as_string, &show(end));
                }
            }
        };
        self.buckets(shown, subs, ranges.keyed, (name, own))
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

/// Sorts buckets as an order says, ties by their keys.
pub fn sort(shown: &mut Vec<Shown>, order: &[BucketOrder], subs: &[Aggregation]) {
    let metrics = |bucket: &Bucket| -> Vec<f64> {
        let of = order.iter().filter_map(|order| match &order.by {
            OrderBy::Metric(name, part) => Some(metric_value(bucket, subs, name, part.as_deref())),
            OrderBy::Count | OrderBy::Key => None,
        });
        of.collect()
    };
    let mut all: Vec<(Vec<f64>, Shown)> =
        shown.drain(..).map(|one| (metrics(&one.1), one)).collect();
    all.sort_by(|(a_metrics, a), (b_metrics, b)| {
        let mut metrics = a_metrics.iter().zip(b_metrics);
        let by = order.iter().map(|order| match order.by {
            OrderBy::Metric(..) => {
                metrics.next().map_or(Ordering::Equal, |(a, b)| by_metric(*a, *b, order.descending))
            }
            OrderBy::Count if order.descending => b.1.doc_count.cmp(&a.1.doc_count),
            OrderBy::Count => a.1.doc_count.cmp(&b.1.doc_count),
            OrderBy::Key if order.descending => b.0.cmp(&a.0),
            OrderBy::Key => a.0.cmp(&b.0),
        });
        by.reduce(Ordering::then).unwrap_or(Ordering::Equal).then_with(|| a.0.cmp(&b.0))
    });
    shown.extend(all.into_iter().map(|(_, one)| one));
}

/// Buckets without a value come last, in either direction.
fn by_metric(a: f64, b: f64, descending: bool) -> Ordering {
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
    fn number(&self, kind: &MetricKind, part: Option<&str>) -> f64 {
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

/// A metric's number, or the named `part` of its statistics; NaN where no value was seen.
fn stats_number(kind: &MetricKind, stats: &Stats, part: Option<&str>) -> f64 {
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

/// `key_as_string` of a key; none where there is none.
fn as_string(key: &Key, values: &ValueKind) -> Option<String> {
    match (key, values) {
        (Key::Long(ms), ValueKind::Date(format)) => Some(format.show(*ms)),
        (Key::Long(yes), ValueKind::Boolean) => Some((*yes == 1).to_string()),
        _ => None,
    }
}

/// The name of a bucket in a keyed answer.
fn plain_name(key: &Key, values: &ValueKind) -> String {
    as_string(key, values).unwrap_or_else(|| match key {
        Key::Text(text) => text.clone(),
        Key::Double(number) => show_double(*number),
        Key::Ip(address) => show_ip(address),
        Key::Long(number) => number.to_string(),
    })
}

/// Writes the key of a bucket, and what is shown of it.
fn write_plain(to: &mut Text<'_>, key: &Key, values: &ValueKind) {
    match key {
        Key::Long(number) => to.member("key", number),
        Key::Double(number) => to.member("key", number),
        Key::Ip(address) => to.member("key", &show_ip(address)),
        Key::Text(text) => to.member("key", text),
    }
    if let Some(text) = as_string(key, values) {
        to.member("key_as_string", &text);
    }
}

/// An address as it was written: IPv4 where it is one.
pub fn show_ip(address: &Ipv6Addr) -> String {
    match address.to_ipv4_mapped() {
        Some(v4) => v4.to_string(),
        None => address.to_string(),
    }
}

fn write_stats(to: &mut Text<'_>, kind: &MetricKind, stats: &Stats, values: &ValueKind) {
    let of_nothing = |value: f64| (stats.count > 0).then_some(value);
    let format = match values {
        ValueKind::Date(format) => Some(format),
        _ => None,
    };
    let mut number = |name: &str, value: Option<f64>| {
        to.member(name, &value);
        if let Some((format, ms)) = format.zip(value) {
            to.member(&format!("{name}_as_string"), &format.show(ms as i64));
        }
    };
    match kind {
        MetricKind::Stats => {
            number("min", of_nothing(stats.min));
            number("max", of_nothing(stats.max));
            number("avg", stats.avg());
            number("sum", Some(stats.sum()));
            to.member("count", &stats.count);
        }
        MetricKind::ValueCount => to.member("value", &stats.count),
        MetricKind::Sum => number("value", Some(stats.sum())),
        _ => {
            let value = stats_number(kind, stats, None);
            number("value", (!value.is_nan()).then_some(value));
        }
    }
}

fn write_percentiles(to: &mut Text<'_>, kind: &MetricKind, mut digest: Digest) {
    let MetricKind::Percentiles { percents, keyed } = kind else { return };
    to.name("values");
    to.open(if *keyed { b'{' } else { b'[' });
    for percent in percents {
        let value = digest.quantile(percent / 100.0);
        if *keyed {
            to.member(&show_double(*percent), &value);
        } else {
            to.open(b'{');
            to.member("key", percent);
            to.member("value", &value);
            to.close(b'}');
        }
    }
    to.close(if *keyed { b'}' } else { b']' });
}
