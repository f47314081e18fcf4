//! Aggregations from JSON.

use record::names::did_you_mean;

use super::histogram::{auto_histogram, histogram};
use super::limits::{AGGREGATIONS, FILTERS, MAX_AGGREGATION_DEPTH, MAX_PARTS, PERCENTS, few};
use super::options::Options;
use super::pipeline::over_path;
use super::places::grid;
use super::query::query;
use super::ranges::{date_ranges, distances, ranges};
use super::terms::{size, terms};
use super::{hits, pipeline};
use crate::aggregation::{
    Aggregation, AggregationKind, BucketOrder, Filters, FiltersShape, OrderBy, RangeBucket,
    Statistic, Tuples,
};
use crate::error::{Result, ensure, illegal, parsing};
use crate::grid::tile_of_key;
use crate::json::{Member, Node, Value};
use crate::pipeline::PipelineKind::{
    AvgBucket, CumulativeSum, MaxBucket, MinBucket, StatsBucket, SumBucket,
};
use crate::query::{BoolQuery, Query, QueryKind};
use crate::refused;
use crate::value::Literal;

/// Reads the options of an aggregation.
type Read = fn(&Options<'_>) -> Result<AggregationKind>;

const OF_HISTOGRAM: &str =
    "field missing interval offset min_doc_count order extended_bounds keyed";

/// What pipelines over the buckets of another aggregation may have.
const OVER_BUCKETS: &str = "buckets_path gap_policy";

const OF_GRID: &str = "field precision bounds size shard_size";

/// The aggregations that there are, the parameters of each, and what reads them.
const KINDS: [(&str, &str, Read); 34] = [
    ("auto_date_histogram", "field buckets format time_zone minimum_interval", auto_histogram),
    ("avg", "field missing", |_| statistic(Statistic::Avg)),
    ("avg_bucket", OVER_BUCKETS, |options| over_path(options, AvgBucket)),
    ("bucket_sort", "sort from size gap_policy", pipeline::bucket_sort),
    ("cardinality", "field missing precision_threshold", |options| {
        let threshold = options.read("precision_threshold", Node::count)?.unwrap_or(3000);
        Ok(AggregationKind::Cardinality { threshold: threshold.min(40_000) as usize })
    }),
    ("composite", "sources size after", composite),
    ("cumulative_sum", "buckets_path", |options| over_path(options, CumulativeSum)),
    (
        "date_histogram",
        "field missing calendar_interval fixed_interval interval offset time_zone format min_doc_count order \
         extended_bounds keyed",
        |options| histogram(options, true),
    ),
    ("date_range", "field missing ranges format time_zone keyed", date_ranges),
    ("derivative", "buckets_path gap_policy unit", pipeline::derivative),
    ("extended_stats", "field missing sigma", |options| {
        let sigma = options.read("sigma", Node::float)?.unwrap_or(2.0);
        let reason = "[sigma] must be greater than or equal to 0";
        ensure(sigma >= 0.0, options.node.at, reason)?;
        statistic(Statistic::Extended { sigma })
    }),
    // What stands under it is a query.
    ("filter", "", |options| Ok(one_filter("filter", query(options.node)?))),
    ("filters", "filters other_bucket other_bucket_key", filters),
    ("geo_bounds", "field wrap_longitude", |options| {
        let wraps = options.read("wrap_longitude", Node::bool)?.unwrap_or(true);
        Ok(AggregationKind::GeoBounds { wraps })
    }),
    ("geo_centroid", "field", |_| Ok(AggregationKind::GeoCentroid)),
    ("geo_distance", "field origin ranges unit distance_type=arc keyed", distances),
    ("geohash_grid", OF_GRID, |options| grid(options, false)),
    ("geotile_grid", OF_GRID, |options| grid(options, true)),
    ("histogram", OF_HISTOGRAM, |options| histogram(options, false)),
    ("max", "field missing", |_| statistic(Statistic::Max)),
    ("max_bucket", OVER_BUCKETS, |options| over_path(options, MaxBucket)),
    ("min", "field missing", |_| statistic(Statistic::Min)),
    ("min_bucket", OVER_BUCKETS, |options| over_path(options, MinBucket)),
    ("missing", "field", |options| {
        let exists = Query::of(QueryKind::Exists(options.need("field")?.text("field")?));
        let none = BoolQuery { must_not: vec![exists], ..BoolQuery::default() };
        Ok(one_filter("missing", Query::of(QueryKind::Bool(Box::new(none)))))
    }),
    (
        "multi_terms",
        "terms size shard_size min_doc_count shard_min_doc_count=0 order collect_mode=depth_first|breadth_first \
         show_term_doc_count_error=false",
        multi_terms,
    ),
    // How percentiles and terms are gathered (`tdigest`, `execution_hint`, `collect_mode`) changes nothing in what is
    // found.
    ("percentiles", "field missing percents keyed tdigest", |options| {
        let default = || vec![1.0, 5.0, 25.0, 50.0, 75.0, 95.0, 99.0];
        if let Some(node) = options.get("tdigest") {
            let digest = node.options("tdigest", "compression", 0)?;
            let compression = digest.read("compression", Node::float)?.unwrap_or(100.0);
            let reason = format_args!(
                "[compression] must be greater than or equal to 0. Found [{compression}]"
            );
            ensure(compression >= 0.0, node.at, reason)?;
        }
        let percents = options.read("percents", percents)?;
        Ok(AggregationKind::Percentiles(percents.unwrap_or_else(default)))
    }),
    ("range", "field missing ranges keyed", |options| {
        let mut ranges = ranges(options, Node::float)?;
        ranges.sort_by(RangeBucket::order);
        Ok(AggregationKind::Range(ranges))
    }),
    ("stats", "field missing", |_| statistic(Statistic::Stats)),
    ("stats_bucket", OVER_BUCKETS, |options| over_path(options, StatsBucket)),
    ("sum", "field missing", |_| statistic(Statistic::Sum)),
    ("sum_bucket", OVER_BUCKETS, |options| over_path(options, SumBucket)),
    (
        "terms",
        "field missing size shard_size include exclude min_doc_count shard_min_doc_count=0 order \
         execution_hint=global_ordinals|map collect_mode=depth_first|breadth_first show_term_doc_count_error=false",
        terms,
    ),
    (
        "top_hits",
        "from size sort _source docvalue_fields stored_fields explain=false seq_no_primary_term=false version=false",
        hits::top_hits,
    ),
    ("value_count", "field missing", |_| statistic(Statistic::ValueCount)),
];

fn statistic(statistic: Statistic) -> Result<AggregationKind> {
    Ok(AggregationKind::Stats(statistic))
}

fn one_filter(kind: &str, query: Query) -> AggregationKind {
    let filters = vec![(kind.to_owned(), query)];
    AggregationKind::Filters(Filters { filters, other: None, shape: FiltersShape::One })
}

/// The aggregations that there are.
pub fn aggregations() -> impl Iterator<Item = &'static str> {
    KINDS.iter().map(|(name, _, _)| *name)
}

/// Reads `aggs`.
pub(super) fn all(node: &Node) -> Result<Vec<Aggregation>> {
    let all = level(node, 0, None)?;
    few(node.at, count(&all), AGGREGATIONS)?;
    Ok(all)
}

/// How many aggregations there are, with those within them.
fn count(all: &[Aggregation]) -> usize {
    all.iter().map(|of| 1 + count(&of.subs)).sum()
}

/// Those of one level: within `parent`, if that is not the search itself.
fn level(node: &Node, depth: usize, parent: Option<&Aggregation>) -> Result<Vec<Aggregation>> {
    if depth == MAX_AGGREGATION_DEPTH {
        let reason = format!("aggregations are nested deeper than {MAX_AGGREGATION_DEPTH}");
        return Err(illegal(reason));
    }
    let members = node.object("aggs")?;
    let all = members.iter().map(|member| aggregation(member, depth));
    pipeline::in_order(all.collect::<Result<_>>()?, members, parent)
}

fn aggregation(member: &Member, depth: usize) -> Result<Aggregation> {
    let name = member.name.to_string();
    let is_name = !name.is_empty() && !name.contains(['[', ']', '>']);
    let reason = format_args!("invalid aggregation name [{name}]: names cannot have [, ] or >");
    ensure(is_name, member.at, reason)?;
    let (mut kind, mut subs, mut meta) = (None, None, None);
    for part in member.node.object(&name)? {
        let (before, twice) = match part.name.as_ref() {
            "aggs" | "aggregations" => {
                (subs.replace(part), "Found two sub aggregation definitions under")
            }
            "meta" => (meta.replace(part).and(None), ""),
            _ => (kind.replace(part), "found two aggregation type definitions in"),
        };
        ensure(before.is_none(), part.at, format_args!("{twice} [{name}]"))?;
    }
    let kind = kind.ok_or_else(|| {
        parsing(member.node.at, format!("Missing definition for aggregation [{name}]"))
    })?;
    let mut aggregation = of_kind(kind)?;
    let may_be_within = !matches!(aggregation.kind, AggregationKind::AutoHistogram(_));
    let reason = "[auto_date_histogram] within another aggregation is not supported by this engine; send \
                  [date_histogram], or a search for each part";
    ensure(depth == 0 || may_be_within, kind.at, reason)?;
    if let Some(part) = subs {
        aggregation.subs = level(&part.node, depth + 1, Some(&aggregation))?;
        let may_have = !aggregation.kind.is_metric() || aggregation.subs.is_empty();
        let what = format_args!("aggregator [{name}] is a metric");
        ensure(may_have, part.at, format_args!("{what}, which cannot accept sub-aggregations"))?;
    }
    check_order(&aggregation, member)?;
    let (subs, of) = (&aggregation.subs, &kind.name);
    let has_no_pages = kind.name == "filter" || !subs.iter().any(Aggregation::has_pages);
    let reason = "[composite] aggregation cannot be used with a parent aggregation of type";
    ensure(has_no_pages, kind.at, format_args!("{reason}: [{of}]"))?;
    let has_no_hits = are_queries(&aggregation) || !subs.iter().any(Aggregation::has_top_hits);
    let reason = "or within [missing] values, is not supported by this engine; send a search for each bucket";
    ensure(has_no_hits, kind.at, format_args!("[top_hits] within [{of}], {reason}"))?;
    let meta = meta.map(|part| part.node.value.plain().to_string());
    Ok(Aggregation { name, meta, ..aggregation })
}

/// Whether the documents of each bucket can be asked for by a query: `top_hits` does.
fn are_queries(of: &Aggregation) -> bool {
    use AggregationKind::*;
    let is_one =
        matches!(of.kind, Terms { .. } | Histogram(_) | Range(_) | DateRange(_) | Filters(_));
    is_one && of.missing.is_none()
}

/// An order by a metric needs that metric among the sub-aggregations.
fn check_order(aggregation: &Aggregation, member: &Member) -> Result<()> {
    for order in &aggregation.order {
        let OrderBy::Metric(name, part) = &order.by else { continue };
        let sub = aggregation.subs.iter().find(|sub| sub.name == *name && !sub.is_pipeline());
        let has_it = sub.is_some_and(|sub| sub.kind.has_number(part.as_deref()));
        let path = part.as_ref().map_or_else(|| name.clone(), |part| format!("{name}.{part}"));
        let of = &member.name;
        let reason = format_args!(
            "Invalid aggregation order path [{path}]: [{of}] needs a sub-aggregation of this name with one number"
        );
        ensure(has_it, member.at, reason)?;
    }
    Ok(())
}

fn of_kind(member: &Member) -> Result<Aggregation> {
    let (kind, node) = (member.name.as_ref(), &member.node);
    let Some((_, known, read)) = KINDS.iter().find(|(name, _, _)| *name == kind) else {
        let unknown =
            format!("Unknown aggregation type [{kind}]{}", did_you_mean(kind, aggregations()));
        let what = format!("the aggregation [{kind}]");
        return Err(parsing(member.at, refused::said(refused::AGGREGATIONS, &what, kind, unknown)));
    };
    let others = if known.is_empty() { usize::MAX } else { 0 };
    let options = node.options(kind, known, others)?;
    let is_histogram = kind.ends_with("histogram");
    let mut order = options.read("order", orders)?.unwrap_or_default();
    let reason = format_args!("[{kind}] is sorted by one [order] alone");
    ensure(!is_histogram || order.len() < 2, node.at, reason)?;
    if order.is_empty() {
        let by = if is_histogram { OrderBy::Key } else { OrderBy::Count };
        order.push(BucketOrder { by, descending: !is_histogram });
    }
    let min_doc_count = options.read("min_doc_count", Node::count)?;
    let reason = "with min_doc_count 0 is not supported by this engine; send 1, which leaves out what no document of \
                  the search has";
    let has_buckets = min_doc_count != Some(0) || !kind.ends_with("terms");
    ensure(has_buckets, node.at, format_args!("[{kind}] {reason}"))?;
    let mut kind_of = read(&options)?;
    // As in the field shards send no more buckets than are shown where these are the first by their keys.
    if let AggregationKind::Terms { size, shard_size, .. } = &mut kind_of
        && order[0].by == OrderBy::Key
        && options.get("shard_size").is_none()
    {
        *shard_size = *size;
    }
    let by_name =
        matches!(&kind_of, AggregationKind::Filters(of) if of.shape == FiltersShape::ByName);
    // What is made of queries has read its fields by itself, and pipelines read other aggregations.
    let names_no_field = matches!(
        kind_of,
        AggregationKind::Filters(_)
            | AggregationKind::Tuples(_)
            | AggregationKind::Pipeline(_)
            | AggregationKind::TopHits(_)
    );
    Ok(Aggregation {
        field: if names_no_field { String::new() } else { options.need("field")?.text("field")? },
        missing: options.read("missing", Node::literal)?,
        min_doc_count: min_doc_count.unwrap_or(u64::from(!is_histogram)),
        order,
        keyed: match kind_of {
            AggregationKind::Filters(_) => by_name,
            _ => options.read("keyed", Node::bool)?.unwrap_or(kind == "percentiles"),
        },
        ..Aggregation::of(kind_of)
    })
}

fn filters(options: &Options<'_>) -> Result<AggregationKind> {
    let node = options.need("filters")?;
    let filter = |name: &str, of: &Node| Ok((name.to_owned(), query(of)?));
    let (shape, filters): (_, Result<Vec<(String, Query)>>) = match &node.value {
        Value::Object(members) => {
            let named = members.iter().map(|of| filter(&of.name, &of.node));
            (FiltersShape::ByName, named.collect())
        }
        _ => (FiltersShape::List, node.list("filters")?.iter().map(|of| filter("", of)).collect()),
    };
    let mut filters = filters?;
    // As in the field: named buckets are in the order of their names.
    filters.sort_by(|a, b| a.0.cmp(&b.0));
    few(node.at, filters.len(), FILTERS)?;
    ensure(!filters.is_empty(), node.at, "[filters] cannot be empty")?;
    let key = options.read("other_bucket_key", Node::text)?;
    let has_other = options.read("other_bucket", Node::bool)?.unwrap_or(key.is_some());
    let other = has_other.then(|| key.unwrap_or_else(|| "_other_".to_owned()));
    Ok(AggregationKind::Filters(Filters { filters, other, shape }))
}

/// All buckets of a field, as one of the sources of tuples.
fn source(mut of: Aggregation) -> Aggregation {
    if let AggregationKind::Terms { size, shard_size, .. } = &mut of.kind {
        (*size, *shard_size) = (usize::MAX, usize::MAX);
    }
    of
}

fn multi_terms(options: &Options<'_>) -> Result<AggregationKind> {
    let node = options.need("terms")?;
    let mut sources = Vec::new();
    let fields = node.list("terms")?;
    few(node.at, fields.len(), (MAX_PARTS, "fields of one [multi_terms]"))?;
    for (at, node) in fields.iter().enumerate() {
        let of = of_kind(&Member { at: node.at, name: "terms".into(), node: node.clone() })?;
        node.options("multi_terms", "field missing", 0)?;
        sources.push(Aggregation { name: at.to_string(), ..source(of) });
    }
    ensure(sources.len() > 1, node.at, "[terms] of [multi_terms] has at least two fields")?;
    let shown = size(options, "size")?.unwrap_or(10);
    // Every shard sends all of its buckets: none is missing.
    size(options, "shard_size")?;
    Ok(AggregationKind::Tuples(Tuples { sources, size: shown, paged: None }))
}

/// The sources of `composite`, and what each may have.
const SOURCES: [(&str, &str); 4] = [
    ("terms", "field order missing_bucket"),
    ("geotile_grid", "field order missing_bucket precision bounds"),
    ("histogram", "field order missing_bucket interval"),
    (
        "date_histogram",
        "field order missing_bucket calendar_interval fixed_interval interval time_zone format offset",
    ),
];

fn composite(options: &Options<'_>) -> Result<AggregationKind> {
    let node = options.need("sources")?;
    let mut sources: Vec<Aggregation> = Vec::new();
    few(node.at, node.items().len(), (MAX_PARTS, "sources of one [composite]"))?;
    for node in node.items() {
        let [Member { name, node, .. }] = node.object("sources")? else {
            return Err(node.wrong("sources", "objects with one name each"));
        };
        let [kind] = node.object(name)? else {
            return Err(node.wrong(name, "an object with one kind of source"));
        };
        let of = &kind.name;
        let (known, may_have) =
            *SOURCES.iter().find(|(known, _)| known == of).ok_or_else(|| {
                let reason =
                    "a source of [composite] is [terms], [histogram], [date_histogram] or [geotile_grid]";
                parsing(kind.at, format!("{reason}, [{of}] is not supported by this engine"))
            })?;
        let own = kind.node.options(known, may_have, 0)?;
        let has_null = own.read("missing_bucket", Node::bool)?.unwrap_or(false);
        let descending = own.one_of("order", &["asc", "desc"])? == "desc";
        // The order is one of keys: it is no object here, as it is elsewhere.
        let Value::Object(members) = &kind.node.value else { continue };
        let rest =
            members.iter().filter(|of| !matches!(of.name.as_ref(), "order" | "missing_bucket"));
        let node = Node { at: kind.node.at, value: Value::Object(rest.cloned().collect()) };
        let of = of_kind(&Member { at: kind.at, name: kind.name.clone(), node })?;
        let order = vec![BucketOrder { by: OrderBy::Key, descending }];
        let is_new = sources.iter().all(|source| source.name != *name);
        let reason = format_args!("Composite source names must be unique: [{name}]");
        ensure(is_new, kind.at, reason)?;
        let missing = has_null.then_some(Literal::Null);
        sources.push(Aggregation { name: name.to_string(), order, missing, ..source(of) });
    }
    ensure(!sources.is_empty(), node.at, "Composite [sources] cannot be null or empty")?;
    let after = options.read("after", |node, _| {
        let names: Vec<&str> = sources.iter().map(|of| of.name.as_str()).collect();
        let values = node.options_among("after", &names, 0)?;
        let value = |of: &Aggregation| {
            let is_null =
                |(name, node): (&str, &Node)| name == of.name && node.value == Value::Null;
            match &of.missing {
                Some(null) if values.iter().any(is_null) => Ok(null.clone()),
                _ => after(of, values.need(&of.name)?),
            }
        };
        sources.iter().map(value).collect()
    })?;
    let size = size(options, "size")?.unwrap_or(10);
    Ok(AggregationKind::Tuples(Tuples { sources, size, paged: Some(after) }))
}

/// The value of a source behind which the page begins.
fn after(of: &Aggregation, node: &Node) -> Result<Literal> {
    let value = node.literal(&of.name)?;
    let AggregationKind::Grid(_) = of.kind else { return Ok(value) };
    let key = value.text();
    let cell = tile_of_key(&key).ok_or_else(|| {
        let reason = "Must be three integers in a form \"zoom/x/y\".";
        parsing(node.at, format!("Invalid geotile_grid hash string of {key}. {reason}"))
    })?;
    Ok(Literal::Integer(cell))
}

fn orders(node: &Node, _: &str) -> Result<Vec<BucketOrder>> {
    const KEYS: (usize, &str) = (MAX_PARTS, "keys of one [order]");
    few(node.at, node.items().len(), KEYS)?;
    let mut orders = Vec::new();
    for item in node.items() {
        for Member { name, node, .. } in item.object("order")? {
            let by = match name.as_ref() {
                "_count" => OrderBy::Count,
                "_key" | "_term" | "_time" => OrderBy::Key,
                path => match path.split_once('.') {
                    // `a.50.5` names the percentile 50.5 of a.
                    Some((name, part)) => OrderBy::Metric(name.to_owned(), Some(part.to_owned())),
                    None => OrderBy::Metric(path.to_owned(), None),
                },
            };
            orders.push(BucketOrder { by, descending: super::sort::is_descending(node)? });
        }
        few(node.at, orders.len(), KEYS)?;
    }
    Ok(orders)
}

fn percents(node: &Node, name: &str) -> Result<Vec<f64>> {
    let read = node.items().iter().map(|item| item.float(name));
    let mut percents = read.collect::<Result<Vec<f64>>>()?;
    // As in the field they are shown from the least on.
    percents.sort_by(f64::total_cmp);
    few(node.at, percents.len(), PERCENTS)?;
    let are_percents = !percents.is_empty() && percents.iter().all(|p| (0.0..=100.0).contains(p));
    ensure(are_percents, node.at, "[percents] must be numbers from 0 to 100, at least one")?;
    Ok(percents)
}
