//! The buckets and numbers in what shards found: as rows, in an order, and what single numbers say of all.

use std::cmp::Ordering;

use tantivy::aggregation::intermediate_agg_result::{
    IntermediateAggregationResult as One, IntermediateAggregationResults as Results,
    IntermediateBucketResult, IntermediateKey, IntermediateMetricResult,
};
use tantivy::aggregation::metric::{ExtendedStats, Stats};

use query::aggregation::{Aggregation, AggregationKind, BucketOrder, OrderBy, Statistic};
use query::{Literal, SearchError, illegal};

/// A bucket. Dates are milliseconds since 1970, booleans 0 and 1.
#[derive(Clone)]
pub(super) struct Row<'a> {
    pub(super) key: Literal,
    pub(super) doc_count: u64,
    pub(super) subs: Option<&'a Results>,
}

/// What a shard names the ranges of an aggregation by, as it read them.
pub(super) fn ranges_key(of: &Aggregation) -> String {
    format!("{} {:?}", of.field, of.kind)
}

/// A key as all indices name it: they may map a field differently, and a whole number is the same however it is kept.
pub(super) fn same_key(key: &Literal) -> Literal {
    match key {
        Literal::Float(number) if number.fract() == 0.0 && number.abs() < 9e15 => {
            Literal::Integer(*number as i64)
        }
        key => key.clone(),
    }
}

/// The buckets of an aggregation, in no order.
pub(super) fn rows(found: Option<&One>) -> Vec<Row<'_>> {
    match found {
        Some(One::Bucket(IntermediateBucketResult::Terms { buckets })) => {
            let row = buckets.entries().iter().map(|(key, bucket)| {
                let key = match key {
                    IntermediateKey::IpAddr(address) => Literal::Address(*address),
                    IntermediateKey::Bool(yes) => Literal::Integer((*yes).into()),
                    IntermediateKey::Str(text) => Literal::Text(text.clone()),
                    IntermediateKey::F64(number) => Literal::Float(*number),
                    IntermediateKey::I64(number) => Literal::Integer(*number),
                    IntermediateKey::U64(number) => Literal::Integer(*number as i64),
                };
                Row { key, doc_count: bucket.doc_count, subs: Some(&bucket.sub_aggregation) }
            });
            row.collect()
        }
        Some(One::Bucket(IntermediateBucketResult::Histogram { buckets, .. })) => {
            let row = buckets.iter().map(|bucket| Row {
                key: Literal::Float(bucket.key),
                doc_count: bucket.doc_count,
                subs: None,
            });
            row.collect()
        }
        _ => Vec::new(),
    }
}

/// The buckets of an aggregation whose keys are numbers, in their order.
pub(super) fn numbered(found: Option<&One>) -> Vec<Row<'_>> {
    let mut rows = rows(found);
    rows.iter_mut().for_each(|row| row.key = Literal::Float(row.key.number()));
    rows.sort_by(|a, b| a.key.order(&b.key));
    rows
}

/// The buckets of an aggregation whose keys are places, so many.
pub(super) fn placed<'a>(found: Option<&'a One>, places: usize) -> Vec<Row<'a>> {
    let mut there = numbered(found).into_iter().peekable();
    let row = |place: usize| {
        let key = Literal::Float(place as f64);
        let row = there.next_if(|row| row.key == key);
        row.unwrap_or(Row { key, doc_count: 0, subs: None })
    };
    (0..places).map(row).collect()
}

/// The buckets of tuples, each with a value of each source.
pub(super) fn tuples<'a>(
    sources: &[Aggregation],
    found: Option<&'a One>,
) -> Vec<(Vec<Literal>, Row<'a>)> {
    let Some((_, within)) = sources.split_first() else { return Vec::new() };
    let of = |row: Row<'a>| match within.first() {
        None => vec![(vec![row.key.clone()], row)],
        Some(next) => {
            let mut rest = tuples(within, row.subs.and_then(|subs| subs.get(&next.name)));
            rest.iter_mut().for_each(|(values, _)| values.insert(0, row.key.clone()));
            rest
        }
    };
    rows(found).into_iter().flat_map(of).collect()
}

/// What is within several buckets that are one.
pub(super) fn merged<'r>(
    subs: impl Iterator<Item = &'r Results>,
) -> Result<Option<Results>, SearchError> {
    let mut subs = subs.cloned();
    let mut whole = subs.next();
    if let Some(whole) = &mut whole {
        let merged = subs.try_for_each(|more| whole.merge_fruits(more));
        merged.map_err(|error| illegal(error.to_string()))?;
    }
    Ok(whole)
}

/// The order of tuples: by each source in its own.
pub(super) fn compare_tuples(sources: &[Aggregation], a: &[Literal], b: &[Literal]) -> Ordering {
    let pairs = sources.iter().zip(a.iter().zip(b));
    let by =
        pairs.map(|(source, (a, b))| if is_descending(source) { b.order(a) } else { a.order(b) });
    by.fold(Ordering::Equal, Ordering::then)
}

/// Whether a source of tuples begins with its greatest key.
pub(super) fn is_descending(source: &Aggregation) -> bool {
    matches!(source.order.first(), Some(BucketOrder { by: OrderBy::Key, descending: true }))
}

/// What is known of numbers, and what more of them is asked for.
pub(super) fn stats(found: Option<&One>) -> (Stats, Option<Box<ExtendedStats>>) {
    match found {
        Some(One::Metric(IntermediateMetricResult::Stats(found))) => (found.finalize(), None),
        Some(One::Metric(IntermediateMetricResult::ExtendedStats(found))) => {
            let extended = found.finalize();
            let ExtendedStats { count, sum, min, max, avg, .. } = *extended;
            (Stats { count, sum, min, max, avg }, Some(extended))
        }
        _ => (Stats { count: 0, sum: 0.0, min: None, max: None, avg: None }, None),
    }
}

/// The library's name of a single statistic.
pub(super) fn statistic_name(statistic: Statistic) -> &'static str {
    match statistic {
        Statistic::Min => "min",
        Statistic::Max => "max",
        Statistic::Sum => "sum",
        Statistic::ValueCount => "count",
        _ => "avg",
    }
}

/// The library's name of the number that a path names of a statistic; of its only one where it names none.
pub(super) fn part_name(statistic: Statistic, part: Option<&str>) -> &str {
    part.filter(|part| *part != "value").unwrap_or(statistic_name(statistic))
}

pub(super) fn numbered_statistic(stats: &Stats, name: &str) -> Option<f64> {
    match name {
        "min" => stats.min,
        "max" => stats.max,
        "sum" => Some(stats.sum),
        "count" => Some(stats.count as f64),
        _ => stats.avg,
    }
}

/// The value below which the share `q` (0 to 1) lies, interpolated between the values, each of which stands for the
/// middle of its share: as `AVLTreeDigest.quantile` of Elasticsearch and OpenSearch does for values that are few.
pub(super) fn quantile(rows: &[Row<'_>], q: f64) -> Option<f64> {
    let count: u64 = rows.iter().map(|row| row.doc_count).sum();
    let value = |rank: u64| {
        let mut below = 0;
        let row = rows.iter().find(|row| {
            below += row.doc_count;
            rank < below
        });
        row.map(|row| row.key.number())
    };
    let rank = (q * count as f64 - 0.5).clamp(0.0, count.checked_sub(1)? as f64);
    let (low, share) = (value(rank as u64)?, rank.fract());
    let high = value(rank.ceil() as u64).unwrap_or(low);
    // Equal values of a document differ in their last bits, which are not shown; those of zeros are all that they have.
    let shown: f64 = format!("{:.14e}", low + (high - low) * share).parse().ok()?;
    Some(if shown.is_subnormal() { 0.0 } else { shown })
}

/// Hashes that are kept to count distinct values.
pub(super) fn distinct_kept(threshold: usize) -> usize {
    (threshold + 1).max(1 << 14)
}

/// How many distinct hashes there are: exactly while all are kept, and beyond by how near the least of them lie to each
/// other (K. Beyer and others, "On synopses for distinct-value estimation under multiset operations", 2007).
pub(super) fn distinct(found: Option<&One>, threshold: usize) -> u64 {
    let kept = distinct_kept(threshold);
    let hash = |row: Row<'_>| match row.key {
        Literal::Integer(hash) => hash as u64,
        _ => 0,
    };
    let mut hashes: Vec<u64> = rows(found).into_iter().map(hash).collect();
    if hashes.len() < kept {
        return hashes.len() as u64;
    }
    let (_, greatest, _) = hashes.select_nth_unstable(kept - 1);
    ((kept - 1) as f64 / (*greatest as f64 / 2f64.powi(64))).round() as u64
}

/// Sorts buckets as an order says, ties by their keys. Buckets without a value come last, in either direction, but by
/// the least or the greatest one.
pub(super) fn sort(rows: &mut Vec<Row<'_>>, of: &Aggregation) {
    let value = |row: &Row<'_>, order: &BucketOrder| match &order.by {
        OrderBy::Metric(name, part) => {
            let (subs, part) = (&of.subs, part.as_deref());
            let number = metric(row, subs, name, part).or_else(|| of_nothing(subs, name, part));
            number.map(Literal::Float)
        }
        OrderBy::Count => Some(Literal::Integer(row.doc_count as i64)),
        OrderBy::Key => Some(row.key.clone()),
    };
    let values = |row: &Row<'_>| of.order.iter().map(|order| value(row, order)).collect();
    let mut all: Vec<(Vec<_>, Row<'_>)> = rows.drain(..).map(|row| (values(&row), row)).collect();
    all.sort_by(|(a_values, a), (b_values, b)| {
        let pairs = of.order.iter().zip(a_values.iter().zip(b_values));
        let by = pairs.map(|(order, (a, b))| Literal::order_of(a, b, order.descending));
        by.fold(Ordering::Equal, Ordering::then).then_with(|| a.key.order(&b.key))
    });
    rows.extend(all.into_iter().map(|(_, row)| row));
}

/// What a bucket without a value is sorted by: as in the field the least of no values is above all numbers, and the
/// greatest below.
fn of_nothing(subs: &[Aggregation], name: &str, part: Option<&str>) -> Option<f64> {
    let sub = subs.iter().find(|sub| sub.name == name)?;
    let AggregationKind::Stats(statistic) = sub.kind else { return None };
    match part_name(statistic, part) {
        "min" => Some(f64::INFINITY),
        "max" => Some(f64::NEG_INFINITY),
        _ => None,
    }
}

/// The number of a metric that a bucket is sorted by, or that pipelines read; none where no value was seen.
pub(super) fn metric(
    row: &Row<'_>,
    subs: &[Aggregation],
    name: &str,
    part: Option<&str>,
) -> Option<f64> {
    let sub = subs.iter().find(|sub| sub.name == name)?;
    let found = row.subs.and_then(|results| results.get(name));
    match &sub.kind {
        AggregationKind::Stats(statistic) => {
            numbered_statistic(&stats(found).0, part_name(*statistic, part))
        }
        AggregationKind::Cardinality { threshold } => Some(distinct(found, *threshold) as f64),
        AggregationKind::Percentiles(_) => {
            quantile(&numbered(found), part?.parse::<f64>().ok()? / 100.0)
        }
        _ => None,
    }
}
