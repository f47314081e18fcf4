//! Finds the best documents of each bucket of a shard. The library's collectors know neither scores nor documents, so
//! that each bucket is a search of its own: for what the whole search asks, of what the bucket holds.

use std::collections::BTreeMap;

use tantivy::Searcher;
use tantivy::aggregation::intermediate_agg_result::IntermediateAggregationResults as Results;

use query::aggregation::{Aggregation, AggregationKind, Filters, RangeBucket};
use query::{
    BoolQuery, DateFormat, FieldQuery, FieldType, Literal, Query, QueryKind, RangeEnd, RangeQuery,
    SearchRequest, ShardHits, TopHits, TrackTotalHits, illegal, mapping,
};

use super::failed::Result;
use super::rows::{ranges_key, rows};
use super::top_hits::{Best, BestHit, step_of};
use super::{Execution, fetch};

impl Execution<'_> {
    /// The best of all buckets that the shard found, by the path to them; `ranges` are those of dates, as the shard
    /// read them.
    pub(super) fn best_by_bucket(
        &self,
        searcher: &Searcher,
        results: &Results,
        ranges: &BTreeMap<String, Vec<RangeBucket>>,
    ) -> Result<BTreeMap<String, Best>> {
        let mut found = BTreeMap::new();
        let search = BestSearch { execution: self, searcher, ranges };
        search.below(&self.request.aggregations, Some(results), ("", &[]), &mut found)?;
        Ok(found)
    }
}

struct BestSearch<'a> {
    /// The whole search.
    execution: &'a Execution<'a>,
    searcher: &'a Searcher,
    ranges: &'a BTreeMap<String, Vec<RangeBucket>>,
}

impl BestSearch<'_> {
    fn below(
        &self,
        of: &[Aggregation],
        results: Option<&Results>,
        (path, within): (&str, &[Query]),
        found: &mut BTreeMap<String, Best>,
    ) -> Result<()> {
        for of in of.iter().filter(|of| of.has_top_hits()) {
            if let AggregationKind::TopHits(asked) = &of.kind {
                found.insert(format!("{path}{}", of.name), self.best(asked, within)?);
                continue;
            }
            for row in rows(results.and_then(|results| results.get(&of.name))) {
                let mut within = within.to_vec();
                within.push(self.bucket(of, &row.key)?);
                let path = format!("{path}{}", step_of(of, &row.key));
                self.below(&of.subs, row.subs, (&path, &within), found)?;
            }
        }
        Ok(())
    }

    fn best(&self, asked: &TopHits, within: &[Query]) -> Result<Best> {
        let whole = self.execution.request;
        let request = SearchRequest {
            query: whole.query.filtered(within.to_vec()),
            size: asked.from + asked.size,
            sort: asked.sort.clone(),
            source: asked.source.clone(),
            column_fields: asked.column_fields.clone(),
            min_score: whole.min_score,
            track_total_hits: TrackTotalHits::All,
            ..SearchRequest::default()
        };
        let found = Execution { request: &request, ..*self.execution }.run(self.searcher)?;
        let ShardHits { total, hits, .. } = found;
        let places: Vec<(u32, u32)> = hits.iter().map(|hit| (hit.segment, hit.doc)).collect();
        let documents = fetch(self.searcher, &places, asked.source.enabled)?;
        let hits = hits.into_iter().zip(documents).map(|(mut found, mut document)| {
            let source = document.source.take();
            document.source = source.and_then(|source| asked.source.apply(&source));
            // As in the field: not where they are sorted by anything else, even if scores are a part of that.
            found.score = found.score.filter(|_| asked.sort.is_empty());
            BestHit { index: String::new(), found, document }
        });
        Ok(Best { total, hits: hits.collect() })
    }

    /// What the documents of a bucket match.
    fn bucket(&self, of: &Aggregation, key: &Literal) -> Result<Query> {
        let kind = self.execution.mapping.field(&of.field).map(|field| field.kind);
        let is_date = kind == Some(FieldType::Date);
        let (number, place) = (key.number(), key.number() as usize);
        let within = |ranges: Option<&[RangeBucket]>| {
            let range = ranges.and_then(|ranges| ranges.get(place));
            between(range.map_or((None, None), |range| (range.from, range.to)), (is_date, false))
        };
        let asked = match &of.kind {
            AggregationKind::Filters(filters) => return Ok(of_filters(filters, place)),
            // All documents of a shard are of its index.
            _ if of.field == mapping::INDEX => return Ok(Query::of(QueryKind::MatchAll)),
            AggregationKind::Terms { .. } => match (kind, key) {
                (Some(FieldType::Date), _) => between((Some(number), Some(number)), (true, true)),
                (Some(FieldType::Boolean), _) => FieldQuery::Term(Literal::Boolean(number == 1.0)),
                (_, Literal::Address(_)) => FieldQuery::Term(Literal::Text(key.text())),
                (_, key) => FieldQuery::Term(key.clone()),
            },
            AggregationKind::Histogram(histogram) => {
                between((Some(number), Some(histogram.end(number))), (is_date, false))
            }
            AggregationKind::Range(ranges) => within(Some(ranges)),
            AggregationKind::DateRange(_) => {
                within(self.ranges.get(&ranges_key(of)).map(Vec::as_slice))
            }
            _ => return Err(illegal("[top_hits] is not supported within these buckets").into()),
        };
        Ok(Query::of(QueryKind::Field(of.field.clone(), asked)))
    }
}

/// The documents of one of the buckets of `filters`, behind the last of which is the one of those that match none.
fn of_filters(filters: &Filters, place: usize) -> Query {
    if let Some((_, query)) = filters.filters.get(place) {
        return query.clone();
    }
    let must_not = filters.filters.iter().map(|(_, query)| query.clone()).collect();
    let none = BoolQuery { must_not, ..BoolQuery::default() };
    Query::of(QueryKind::Bool(Box::new(none)))
}

/// A range of numbers, or of milliseconds, with its last value or without it.
fn between((from, to): (Option<f64>, Option<f64>), (of_dates, up_to): (bool, bool)) -> FieldQuery {
    let value = |number: f64| match of_dates {
        true => Literal::Integer(number as i64),
        false => Literal::Float(number),
    };
    FieldQuery::Range(RangeQuery {
        lower: from.map(|from| RangeEnd { value: value(from), included: true }),
        upper: to.map(|to| RangeEnd { value: value(to), included: up_to }),
        format: of_dates.then(DateFormat::millis),
        ..RangeQuery::default()
    })
}
