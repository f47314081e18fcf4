//! Aggregations from JSON.

use record::names::did_you_mean;

use super::query::{date_format, time_zone};
use crate::aggregation::{
    Aggregation, AggregationKind, BucketOrder, DateHistogram, Histogram, Interval, Metric,
    MetricKind, OrderBy, RangeBucket, Ranges, Terms,
};
use crate::date::{self, CalendarUnit, DateContext};
use crate::error::{SearchError, illegal, parsing};
use crate::json::{Member, Node, Value};
use crate::{DateFormat, Literal};

type Result<T> = std::result::Result<T, SearchError>;

/// Aggregations within each other, at most.
const MAX_DEPTH: usize = 20;

const KINDS: [&str; 12] = [
    "avg",
    "cardinality",
    "date_histogram",
    "histogram",
    "max",
    "min",
    "percentiles",
    "range",
    "stats",
    "sum",
    "terms",
    "value_count",
];

/// Reads `aggs`.
pub(super) fn all(node: &Node) -> Result<Vec<Aggregation>> {
    level(node, 0)
}

fn level(node: &Node, depth: usize) -> Result<Vec<Aggregation>> {
    if depth == MAX_DEPTH {
        return Err(illegal(format!("aggregations are nested deeper than {MAX_DEPTH}")));
    }
    let members = node.object("aggs")?;
    members.iter().map(|member| aggregation(member, depth)).collect()
}

fn aggregation(member: &Member, depth: usize) -> Result<Aggregation> {
    let name = member.name.clone();
    if name.is_empty() || name.contains(['[', ']', '>']) {
        let reason = format!("invalid aggregation name [{name}]: names cannot have [, ] or >");
        return Err(parsing(member.at, reason));
    }
    let (mut kind, mut subs, mut meta, mut subs_at) = (None, Vec::new(), None, None);
    for part in member.node.object(&name)? {
        match part.name.as_str() {
            "aggs" | "aggregations" => {
                subs = level(&part.node, depth + 1)?;
                subs_at = Some(part.at);
            }
            "meta" => meta = Some(plain(&part.node).to_string()),
            _ if kind.is_some() => {
                let reason = format!("found two aggregation type definitions in [{name}]");
                return Err(parsing(part.at, reason));
            }
            _ => kind = Some(of_kind(part)?),
        }
    }
    let kind = kind.ok_or_else(|| {
        parsing(member.node.at, format!("Missing definition for aggregation [{name}]"))
    })?;
    if let (AggregationKind::Metric(_), Some(at), false) = (&kind, subs_at, subs.is_empty()) {
        let reason =
            format!("aggregator [{name}] is a metric, which cannot accept sub-aggregations");
        return Err(parsing(at, reason));
    }
    check_order(&kind, &subs, member)?;
    Ok(Aggregation { name, kind, subs, meta })
}

fn plain(node: &Node) -> serde_json::Value {
    match &node.value {
        Value::Null => serde_json::Value::Null,
        Value::Bool(yes) => (*yes).into(),
        Value::Number(number) => number.clone().into(),
        Value::Text(text) => text.as_str().into(),
        Value::List(items) => items.iter().map(plain).collect(),
        Value::Object(members) => {
            members.iter().map(|member| (member.name.clone(), plain(&member.node))).collect()
        }
    }
}

/// An order by a metric needs that metric among the sub-aggregations.
fn check_order(kind: &AggregationKind, subs: &[Aggregation], member: &Member) -> Result<()> {
    let orders = match kind {
        AggregationKind::Terms(terms) => terms.order.as_slice(),
        AggregationKind::Histogram(histogram) => std::slice::from_ref(&histogram.order),
        AggregationKind::DateHistogram(histogram) => std::slice::from_ref(&histogram.order),
        _ => &[],
    };
    for order in orders {
        let OrderBy::Metric(name, part) = &order.by else { continue };
        let sub = subs.iter().find(|sub| sub.name == *name).map(|sub| &sub.kind);
        let fits = match (sub, part.as_deref()) {
            (Some(AggregationKind::Metric(metric)), part) => match (&metric.kind, part) {
                (MetricKind::Stats, part) => {
                    matches!(part, Some("min" | "max" | "avg" | "sum" | "count"))
                }
                (MetricKind::Percentiles { .. }, part) => part.is_some_and(|part| {
                    part.parse::<f64>().is_ok_and(|p| (0.0..=100.0).contains(&p))
                }),
                (_, part) => matches!(part, None | Some("value")),
            },
            _ => false,
        };
        if !fits {
            let reason = format!(
                "Invalid aggregation order path [{name}{}]: [{}] needs a sub-aggregation of this name with one number",
                part.as_ref().map(|part| format!(".{part}")).unwrap_or_default(),
                member.name
            );
            return Err(parsing(member.at, reason));
        }
    }
    Ok(())
}

fn of_kind(member: &Member) -> Result<AggregationKind> {
    let node = &member.node;
    let metric = |kind| Ok(AggregationKind::Metric(metric(&member.name, node, kind)?));
    match member.name.as_str() {
        "terms" => terms(node),
        "histogram" => histogram(node),
        "date_histogram" => date_histogram(node),
        "range" => range(node),
        "min" => metric(MetricKind::Min),
        "max" => metric(MetricKind::Max),
        "avg" => metric(MetricKind::Avg),
        "sum" => metric(MetricKind::Sum),
        "stats" => metric(MetricKind::Stats),
        "value_count" => metric(MetricKind::ValueCount),
        "cardinality" => metric(MetricKind::Cardinality { threshold: 3000 }),
        "percentiles" => {
            let percents = vec![1.0, 5.0, 25.0, 50.0, 75.0, 95.0, 99.0];
            metric(MetricKind::Percentiles { percents, keyed: true })
        }
        name => {
            let near = did_you_mean(name, KINDS);
            Err(parsing(member.at, format!("Unknown aggregation type [{name}]{near}")))
        }
    }
}

/// A member that the aggregation does not have.
fn unknown(aggregation: &str, member: &Member, known: &[&str]) -> SearchError {
    let name = &member.name;
    let near = did_you_mean(name, known.iter().copied());
    parsing(member.at, format!("[{aggregation}] unknown field [{name}]{near}"))
}

fn need_field(aggregation: &str, node: &Node, field: Option<String>) -> Result<String> {
    field.ok_or_else(|| {
        let reason = format!("[{aggregation}] requires [field]; scripts are not supported here");
        parsing(node.at, reason)
    })
}

fn literal(node: &Node, what: &str) -> Result<Literal> {
    Ok(match &node.value {
        Value::Text(text) => Literal::Text(text.clone()),
        Value::Bool(yes) => Literal::Boolean(*yes),
        _ => match node.integer(what) {
            Ok(whole) => Literal::Integer(whole),
            Err(_) => Literal::Float(node.float(what)?),
        },
    })
}

fn metric(name: &str, node: &Node, mut kind: MetricKind) -> Result<Metric> {
    let (mut field, mut missing) = (None, None);
    for member in node.object(name)? {
        let value = &member.node;
        match (member.name.as_str(), &mut kind) {
            ("field", _) => field = Some(value.text("field")?),
            ("missing", _) => missing = Some(literal(value, "missing")?),
            // How numbers are shown; only dates have formats here, and those of their mapping.
            ("precision_threshold", MetricKind::Cardinality { threshold }) => {
                *threshold = (value.count("precision_threshold")? as usize).min(40_000);
            }
            ("percents", MetricKind::Percentiles { percents, .. }) => {
                let read = value.list("percents")?.iter().map(|item| item.float("percents"));
                *percents = read.collect::<Result<_>>()?;
                if percents.is_empty() || percents.iter().any(|p| !(0.0..=100.0).contains(p)) {
                    return Err(parsing(
                        value.at,
                        "[percents] must be numbers from 0 to 100, at least one",
                    ));
                }
            }
            ("keyed", MetricKind::Percentiles { keyed, .. }) => *keyed = value.bool("keyed")?,
            // How the sketch works inside; ours has no such choice.
            ("tdigest", MetricKind::Percentiles { .. }) => {}
            _ => return Err(unknown(name, member, &["field", "missing", "percents", "keyed"])),
        }
    }
    Ok(Metric { field: need_field(name, node, field)?, kind, missing })
}

/// Buckets that are asked of a shard at most, so that one request cannot take all of its memory.
const MAX_TERMS_SIZE: u64 = 1 << 31;

fn terms(node: &Node) -> Result<AggregationKind> {
    const KNOWN: &[&str] = &["field", "size", "shard_size", "min_doc_count", "order", "missing"];
    let (mut field, mut missing, mut shard_size) = (None, None, None);
    let (mut size, mut min_doc_count) = (10, 1);
    let mut order = Vec::new();
    for member in node.object("terms")? {
        let value = &member.node;
        let positive = |name: &str| match value.count(name)? {
            0 => Err(parsing(value.at, format!("[{name}] must be greater than 0 in [terms]"))),
            count => Ok(count.min(MAX_TERMS_SIZE) as usize),
        };
        match member.name.as_str() {
            "field" => field = Some(value.text("field")?),
            "size" => size = positive("size")?,
            "shard_size" => shard_size = Some(positive("shard_size")?),
            "min_doc_count" => min_doc_count = value.count("min_doc_count")?,
            "order" => order = orders(value)?,
            "missing" => missing = Some(literal(value, "missing")?),
            // How terms are gathered; nothing changes in what is found.
            "execution_hint" | "collect_mode" => {}
            "show_term_doc_count_error" if !value.bool("show_term_doc_count_error")? => {}
            _ => return Err(unknown("terms", member, KNOWN)),
        }
    }
    if min_doc_count == 0 {
        return Err(parsing(
            node.at,
            "[terms] with min_doc_count 0 is not supported by this engine",
        ));
    }
    if order.is_empty() {
        order.push(BucketOrder { by: OrderBy::Count, descending: true });
    }
    // As `BucketUtils.suggestShardSideQueueSize`.
    let shard_size = shard_size.unwrap_or(size + size / 2 + 10).max(size);
    let field = need_field("terms", node, field)?;
    Ok(AggregationKind::Terms(Terms { field, size, shard_size, min_doc_count, order, missing }))
}

fn orders(node: &Node) -> Result<Vec<BucketOrder>> {
    let mut orders = Vec::new();
    for item in node.items() {
        for member in item.object("order")? {
            let descending = match member.node.text("order")?.to_ascii_lowercase().as_str() {
                "asc" => false,
                "desc" => true,
                other => {
                    let reason = format!("Unknown order direction [{other}]");
                    return Err(parsing(member.node.at, reason));
                }
            };
            let by = match member.name.as_str() {
                "_count" => OrderBy::Count,
                "_key" | "_term" | "_time" => OrderBy::Key,
                path => match path.split_once('.') {
                    // `a.50.5` names the percentile 50.5 of a.
                    Some((name, part)) => OrderBy::Metric(name.to_owned(), Some(part.to_owned())),
                    None => OrderBy::Metric(path.to_owned(), None),
                },
            };
            orders.push(BucketOrder { by, descending });
        }
    }
    Ok(orders)
}

fn one_order(node: &Node) -> Result<BucketOrder> {
    match orders(node)?.as_slice() {
        [order] => Ok(order.clone()),
        _ => Err(parsing(node.at, "[order] of a histogram is one key")),
    }
}

const BY_KEY: BucketOrder = BucketOrder { by: OrderBy::Key, descending: false };

/// The two ends of `extended_bounds`.
fn bounds(node: &Node) -> Result<(&Node, &Node)> {
    let (mut min, mut max) = (None, None);
    for member in node.object("extended_bounds")? {
        match member.name.as_str() {
            "min" => min = Some(&member.node),
            "max" => max = Some(&member.node),
            _ => return Err(unknown("extended_bounds", member, &["min", "max"])),
        }
    }
    min.zip(max).ok_or_else(|| parsing(node.at, "[extended_bounds] needs min and max"))
}

fn in_order<T: PartialOrd + std::fmt::Display>(node: &Node, (min, max): (T, T)) -> Result<(T, T)> {
    if min > max {
        let reason = format!(
            "[extended_bounds.min][{min}] cannot be greater than [extended_bounds.max][{max}]"
        );
        return Err(parsing(node.at, reason));
    }
    Ok((min, max))
}

fn histogram(node: &Node) -> Result<AggregationKind> {
    const KNOWN: &[&str] = &[
        "field",
        "interval",
        "offset",
        "min_doc_count",
        "order",
        "extended_bounds",
        "keyed",
        "missing",
    ];
    let (mut field, mut interval, mut missing, mut extended_bounds) = (None, None, None, None);
    let (mut offset, mut min_doc_count, mut keyed, mut order) = (0.0, 0, false, BY_KEY);
    for member in node.object("histogram")? {
        let value = &member.node;
        match member.name.as_str() {
            "field" => field = Some(value.text("field")?),
            "interval" => {
                let given = value.float("interval")?;
                if given <= 0.0 || given < f64::MIN_POSITIVE {
                    return Err(parsing(
                        value.at,
                        "[interval] must be >0 for histogram aggregation",
                    ));
                }
                interval = Some(given);
            }
            "offset" => offset = value.float("offset")?,
            "min_doc_count" => min_doc_count = value.count("min_doc_count")?,
            "order" => order = one_order(value)?,
            "keyed" => keyed = value.bool("keyed")?,
            "missing" => missing = Some(value.float("missing")?),
            "extended_bounds" => {
                let (min, max) = bounds(value)?;
                extended_bounds = Some(in_order(value, (min.float("min")?, max.float("max")?))?);
            }
            _ => return Err(unknown("histogram", member, KNOWN)),
        }
    }
    let interval = interval.ok_or_else(|| parsing(node.at, "[histogram] requires [interval]"))?;
    let offset = offset.rem_euclid(interval);
    Ok(AggregationKind::Histogram(Histogram {
        field: need_field("histogram", node, field)?,
        interval,
        offset,
        min_doc_count,
        order,
        extended_bounds,
        keyed,
        missing,
    }))
}

fn interval(name: &str, node: &Node) -> Result<Interval> {
    let text = node.text(name)?;
    let calendar = || CalendarUnit::of_interval(&text).map(Interval::Calendar);
    let fixed = || date::fixed_interval_ms(&text).map(Interval::Fixed);
    let found = match name {
        "calendar_interval" => calendar(),
        "fixed_interval" => fixed(),
        _ => calendar().or_else(fixed),
    };
    found.ok_or_else(|| {
        let accepted = match name {
            "calendar_interval" => {
                "one unit of the calendar: minute, hour, day, week, month, quarter or year"
            }
            _ => "like 90m or 30d; months and years are calendar_interval",
        };
        parsing(node.at, format!("[{name}] cannot be [{text}]: write {accepted}"))
    })
}

fn date_histogram(node: &Node) -> Result<AggregationKind> {
    const KNOWN: &[&str] = &[
        "field",
        "calendar_interval",
        "fixed_interval",
        "offset",
        "time_zone",
        "format",
        "min_doc_count",
        "order",
        "extended_bounds",
        "keyed",
        "missing",
    ];
    let (mut field, mut width, mut format, mut missing, mut given_bounds) =
        (None, None, None, None, None);
    let (mut offset_ms, mut zone_ms, mut min_doc_count, mut keyed, mut order) =
        (0, 0, 0, false, BY_KEY);
    for member in node.object("date_histogram")? {
        let value = &member.node;
        match member.name.as_str() {
            "field" => field = Some(value.text("field")?),
            name @ ("calendar_interval" | "fixed_interval" | "interval") => {
                if width.is_some() {
                    return Err(parsing(member.at, "[date_histogram] has more than one interval"));
                }
                width = Some(interval(name, value)?);
            }
            "offset" => offset_ms = offset(value)?,
            "time_zone" => zone_ms = time_zone(value)?,
            "format" => format = Some(date_format(value)?),
            "min_doc_count" => min_doc_count = value.count("min_doc_count")?,
            "order" => order = one_order(value)?,
            "keyed" => keyed = value.bool("keyed")?,
            "missing" => missing = Some(literal(value, "missing")?),
            "extended_bounds" => given_bounds = Some(value),
            _ => return Err(unknown("date_histogram", member, KNOWN)),
        }
    }
    let interval = width.ok_or_else(|| {
        parsing(node.at, "[date_histogram] requires [calendar_interval] or [fixed_interval]")
    })?;
    let extended_bounds = match given_bounds {
        None => None,
        Some(value) => {
            let (min, max) = bounds(value)?;
            let known = format.clone().unwrap_or_default();
            let end = |node| moment(node, &known, zone_ms);
            Some(in_order(value, (end(min)?, end(max)?))?)
        }
    };
    Ok(AggregationKind::DateHistogram(DateHistogram {
        field: need_field("date_histogram", node, field)?,
        interval,
        offset_ms,
        zone_ms,
        format,
        min_doc_count,
        order,
        extended_bounds,
        keyed,
        missing,
    }))
}

fn moment(node: &Node, format: &DateFormat, zone_ms: i64) -> Result<i64> {
    if let Value::Number(_) = node.value {
        return node.integer("extended_bounds");
    }
    // Bounds are read here and once, where no clock is; `now` would differ by shard.
    let text = node.text("extended_bounds")?;
    if text.starts_with("now") {
        return Err(parsing(
            node.at,
            "[extended_bounds] by now is not supported by this engine; send dates",
        ));
    }
    let context = DateContext { format, now_ms: 0, zone_ms };
    context.resolve(&text, false).map_err(|reason| parsing(node.at, reason))
}

/// `+6h`, `-1d`, or milliseconds.
fn offset(node: &Node) -> Result<i64> {
    if let Value::Number(_) = node.value {
        return node.integer("offset").map(|ms| ms.clamp(-1 << 50, 1 << 50));
    }
    let text = node.text("offset")?;
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(&text)),
    };
    let ms = if rest == "0" { Some(0) } else { date::fixed_interval_ms(rest) };
    let ms = ms.filter(|ms| *ms < 1 << 50);
    ms.map(|ms| sign * ms).ok_or_else(|| node.wrong("offset", "a time like +6h or -1d"))
}

fn range(node: &Node) -> Result<AggregationKind> {
    let (mut field, mut ranges, mut keyed) = (None, Vec::new(), false);
    for member in node.object("range")? {
        let value = &member.node;
        match member.name.as_str() {
            "field" => field = Some(value.text("field")?),
            "keyed" => keyed = value.bool("keyed")?,
            "ranges" => {
                ranges =
                    value.list("ranges")?.iter().map(range_bucket).collect::<Result<Vec<_>>>()?;
            }
            _ => return Err(unknown("range", member, &["field", "ranges", "keyed"])),
        }
    }
    if ranges.is_empty() {
        return Err(parsing(node.at, "[range] requires [ranges], at least one"));
    }
    let lowest = |range: &RangeBucket| range.from.unwrap_or(f64::NEG_INFINITY);
    let highest = |range: &RangeBucket| range.to.unwrap_or(f64::INFINITY);
    ranges.sort_by(|a: &RangeBucket, b: &RangeBucket| {
        lowest(a).total_cmp(&lowest(b)).then(highest(a).total_cmp(&highest(b)))
    });
    Ok(AggregationKind::Range(Ranges { field: need_field("range", node, field)?, ranges, keyed }))
}

fn range_bucket(node: &Node) -> Result<RangeBucket> {
    let mut bucket = RangeBucket { key: None, from: None, to: None };
    for member in node.object("ranges")? {
        let value = &member.node;
        let end = |name: &str| match value.value {
            Value::Null => Ok(None),
            _ => value.float(name).map(Some),
        };
        match member.name.as_str() {
            "key" => bucket.key = Some(value.text("key")?),
            "from" => bucket.from = end("from")?,
            "to" => bucket.to = end("to")?,
            _ => return Err(unknown("ranges", member, &["key", "from", "to"])),
        }
    }
    Ok(bucket)
}
