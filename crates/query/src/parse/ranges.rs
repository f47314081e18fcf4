//! Aggregations of ranges from JSON: of numbers, of dates, of distances.

use super::limits::{RANGES, few};
use super::places::{point, unit_m};
use super::query::{date_format, time_zone};
use crate::aggregation::{AggregationKind, DateRanges, Distances, RangeBucket};
use crate::error::{Result, ensure};
use crate::json::{Node, Options};

pub(super) fn date_ranges(options: &Options<'_>) -> Result<AggregationKind> {
    Ok(AggregationKind::DateRange(DateRanges {
        ranges: each_range(options.need("ranges")?, Node::literal, |key, from, to| {
            (key, from, to)
        })?,
        format: options.read("format", date_format)?,
        zone: options.read("time_zone", time_zone)?.unwrap_or_default(),
    }))
}

pub(super) fn ranges(node: &Node) -> Result<Vec<RangeBucket>> {
    each_range(node, Node::float, |key, from, to| RangeBucket { key, from, to })
}

/// What `of` makes of the name and the ends of each of some ranges, one at least.
fn each_range<'a, E, T>(
    node: &'a Node<'a>,
    end: impl Fn(&'a Node<'a>, &str) -> Result<E>,
    of: impl Fn(Option<String>, Option<E>, Option<E>) -> T,
) -> Result<Vec<T>> {
    let range = |item: &'a Node<'a>| {
        let options = item.options("ranges", "key from to", 0)?;
        let key = options.read("key", Node::text)?;
        Ok(of(key, options.read("from", &end)?, options.read("to", &end)?))
    };
    let ranges = node.list("ranges")?.iter().map(range).collect::<Result<Vec<_>>>()?;
    few(node.at, ranges.len(), RANGES)?;
    ensure(!ranges.is_empty(), node.at, "[ranges] has at least one")?;
    Ok(ranges)
}

/// Unlike those of numbers, the field shows these ranges as they are asked for.
pub(super) fn distances(options: &Options<'_>) -> Result<AggregationKind> {
    let mut ranges = ranges(options.need("ranges")?)?;
    ranges.iter_mut().for_each(|range| _ = range.from.get_or_insert(0.0));
    let (unit_m, origin) = (unit_m(options)?, point(options.need("origin")?, "origin")?);
    Ok(AggregationKind::Distance(Distances { origin, unit_m, ranges }))
}
