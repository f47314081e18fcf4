//! What shards found for the aggregations of a search, as they send it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tantivy::TantivyError;
use tantivy::aggregation::intermediate_agg_result::{
    IntermediateAggregationResult as One, IntermediateAggregationResults as Results,
};

use query::aggregation::{Aggregation, AggregationKind, RangeBucket, Tuples};
use query::date::DateContext;
use query::value::ip;
use query::{DateFormat, Literal, SearchError, SearchErrorKind, Zone};

use super::metrics::Shown;
use super::pages::Named;
use super::rows::{Row, rows, tuples};
use super::top_hits::Best;

/// What one shard found, or all of them.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Found {
    pub(super) results: Results,
    /// By field.
    pub(super) shown: BTreeMap<String, Shown>,
    /// Levels of [`query::histogram::AutoHistogram`]s, by the names of their aggregations.
    pub(super) levels: BTreeMap<String, usize>,
    /// Ranges of dates in milliseconds, by `ranges_key`.
    pub(super) ranges: BTreeMap<String, Vec<RangeBucket>>,
    /// Of `top_hits`, by the path to them.
    pub(super) hits: BTreeMap<String, Best>,
    /// Of the pages of `composite`, by the keys of their buckets.
    pub(super) tuples: Named,
}

impl Found {
    pub(super) fn format(&self, of: &Aggregation) -> Option<DateFormat> {
        match self.shown.get(&of.field) {
            Some(Shown::Date(format)) => Some(format.clone()),
            _ => None,
        }
    }

    /// Makes values of tuples, also those that a request goes on behind, what they are compared as.
    pub(super) fn keep(&self, sources: &[Aggregation], values: &mut [Literal]) {
        for (source, value) in sources.iter().zip(values) {
            let shown = self.shown.get(&source.field);
            // A key is read as it was written.
            let (format, zone) = match &source.kind {
                AggregationKind::Histogram(of) => (of.format.clone(), of.zone.clone()),
                _ => (None, Zone::default()),
            };
            let format = format.or_else(|| self.format(source));
            let is_of_numbers = format.as_ref().is_some_and(DateFormat::is_of_numbers);
            let zone = if is_of_numbers { Zone::default() } else { zone };
            let is_number = match &source.kind {
                AggregationKind::Histogram(_) => true,
                _ => matches!(shown, Some(Shown::Double)),
            };
            let read = match (&*value, &format, shown) {
                (Literal::Text(text), Some(format), _) => {
                    let context = DateContext { format, now_ms: 0, zone: &zone };
                    context.resolve(text, false).ok().map(Literal::Integer)
                }
                (Literal::Text(text), None, Some(Shown::Address)) => ip(text).map(Literal::Address),
                (Literal::Boolean(yes), ..) => Some(Literal::Integer((*yes).into())),
                _ => None,
            };
            *value = read.unwrap_or_else(|| value.clone());
            if is_number && !matches!(value, Literal::Text(_) | Literal::Null) {
                *value = Literal::Float(value.number());
            }
        }
    }

    /// The buckets of tuples, each with a value of each source.
    pub(super) fn tuples<'r>(
        &self,
        asked: &Tuples,
        found: Option<&'r One>,
    ) -> Vec<(Vec<Literal>, Row<'r>)> {
        let mut all = match asked.paged {
            None => tuples(&asked.sources, found),
            Some(_) => {
                let named = |row: Row<'r>| match row.key {
                    Literal::Integer(name) => Some((self.tuples.get(&(name as u64))?.clone(), row)),
                    _ => None,
                };
                rows(found).into_iter().filter_map(named).collect()
            }
        };
        all.iter_mut().for_each(|(values, _)| self.keep(&asked.sources, values));
        all
    }

    pub(super) fn encode(&self) -> tantivy::Result<bytes::Bytes> {
        let encoded = postcard::to_stdvec(self).map(Into::into);
        encoded.map_err(|error| TantivyError::InternalError(error.to_string()))
    }
}

/// Buckets that are shown of these aggregations, and those within them.
pub(super) fn buckets(of: &[Aggregation], results: &Results) -> usize {
    let of = of.iter().filter(|of| !of.kind.is_metric());
    let of = of.flat_map(|of| {
        let found = results.get(&of.name);
        let rows: Vec<Row<'_>> = match &of.kind {
            AggregationKind::Tuples(asked) if asked.paged.is_none() => {
                tuples(&asked.sources, found).into_iter().map(|(_, row)| row).collect()
            }
            _ => rows(found),
        };
        rows.into_iter().map(move |row| (of, row))
    });
    of.map(|(of, row)| 1 + row.subs.map_or(0, |subs| buckets(&of.subs, subs))).sum()
}

/// The field's error for a request that passes `search.max_buckets`.
pub(super) fn too_many(max_buckets: usize) -> SearchError {
    SearchError {
        kind: SearchErrorKind::TooManyBuckets,
        reason: format!(
            "Trying to create too many buckets. Must be less than or equal to: [{max_buckets}]. This limit can be \
             set by changing the [search.max_buckets] cluster level setting."
        ),
        at: None,
    }
}
