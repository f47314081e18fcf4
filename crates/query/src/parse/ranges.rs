//! Aggregations of ranges from JSON: of numbers, of dates, of distances.

use super::limits::{RANGES, few};
use super::options::Options;
use super::places::{point, unit_m};
use super::query::{date_format, time_zone};
use crate::aggregation::{AggregationKind, DateRanges, Distances, RangeBucket};
use crate::error::{Result, ensure};
use crate::json::Node;

pub(super) fn date_ranges(options: &Options<'_>) -> Result<AggregationKind> {
    Ok(AggregationKind::DateRange(DateRanges {
        ranges: ranges(options, Node::literal)?,
        format: options.read("format", date_format)?,
        zone: options.read("time_zone", time_zone)?.unwrap_or_default(),
    }))
}

/// The ranges that are asked for, one at least; `end` reads where one begins and ends.
pub(super) fn ranges<'a, End>(
    options: &Options<'a>,
    end: fn(&'a Node<'a>, &str) -> Result<End>,
) -> Result<Vec<RangeBucket<End>>> {
    let node = options.need("ranges")?;
    let range = |item: &'a Node<'a>| {
        let options = item.options("ranges", "key from to", 0)?;
        let (from, to) = (options.read("from", end)?, options.read("to", end)?);
        Ok(RangeBucket { key: options.read("key", Node::text)?, from, to })
    };
    let ranges = node.items().iter().map(range).collect::<Result<Vec<_>>>()?;
    few(node.at, ranges.len(), RANGES)?;
    ensure(!ranges.is_empty(), node.at, "[ranges] has at least one")?;
    Ok(ranges)
}

/// Unlike those of numbers, the field shows these ranges as they are asked for.
pub(super) fn distances(options: &Options<'_>) -> Result<AggregationKind> {
    let mut ranges = ranges(options, Node::float)?;
    ranges.iter_mut().for_each(|range| _ = range.from.get_or_insert(0.0));
    let (unit_m, origin) = (unit_m(options)?, point(options.need("origin")?, "origin")?);
    Ok(AggregationKind::Distance(Distances { origin, unit_m, ranges }))
}
