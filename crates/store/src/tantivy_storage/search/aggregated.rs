//! What shards found for the aggregations of a search, merged.

use query::aggregation::Aggregation;
use query::{SearchError, Text};

use super::aggregation_writer::Writer;
use super::found::Found;

/// The answers of shards to the aggregations of a search, merged.
#[derive(Clone, Debug, Default)]
pub struct Aggregated {
    found: Found,
    /// With one alone nothing is missing.
    shards: u32,
    /// `rest_total_hits_as_int`: whether `top_hits` write their totals as bare numbers.
    pub totals_as_int: bool,
}

impl Aggregated {
    /// Adds what another shard, of an index, answered. Fails if that cannot be read.
    pub fn add(&mut self, index: &str, answer: &[u8]) -> Result<(), String> {
        if answer.is_empty() {
            return Ok(());
        }
        let found: Found =
            crate::received::from_bytes(answer).map_err(|error| error.to_string())?;
        self.shards += 1;
        self.found.shown.extend(found.shown);
        self.found.ranges.extend(found.ranges);
        self.found.tuples.extend(found.tuples);
        for (path, best) in found.hits {
            self.found.hits.entry(path).or_default().add(index, best);
        }
        for (name, level) in found.levels {
            let widest = self.found.levels.entry(name).or_default();
            *widest = level.max(*widest);
        }
        self.found.results.merge_fruits(found.results).map_err(|error| error.to_string())
    }

    /// Writes the `aggregations` of an answer behind `text`, as a JSON object.
    ///
    /// Errors: [`query::SearchErrorKind::TooManyBuckets`] if there are more than `max_buckets`, and
    /// [`query::SearchErrorKind::IllegalArgument`] for wrong bounds of a field that no shard has, which would have
    /// refused them; what is written by then is no JSON.
    pub fn write(
        &self,
        of: &[Aggregation],
        max_buckets: usize,
        text: &mut Vec<u8>,
    ) -> Result<(), SearchError> {
        let Aggregated { found, shards, totals_as_int } = self;
        Writer::new(found, *shards, *totals_as_int, max_buckets, Text(text)).write(of)
    }
}
