//! What shards found for the aggregations of a search, merged.

use std::collections::BTreeMap;

use query::aggregation::{Aggregation, AggregationKind};
use tantivy::aggregation::intermediate_agg_result::IntermediateAggregationResults as Results;

use super::found::Found;
use super::rows::rows;
use super::top_hits::step_of;

/// The answers of shards to the aggregations of a search, merged.
#[derive(Clone, Debug, Default)]
pub struct Aggregated {
    pub(super) found: Found,
    /// With one alone nothing is missing.
    pub(super) shards: u32,
    /// By their paths the `terms` of which a shard sent as many buckets as it may, and so may have others: how many
    /// documents these have at most.
    pub(super) unsent: BTreeMap<String, u64>,
    /// `rest_total_hits_as_int`: whether `top_hits` write their totals as bare numbers.
    pub totals_as_int: bool,
}

impl Aggregated {
    /// Adds what another shard, of an index, answered. Fails if that cannot be read.
    pub fn add(&mut self, of: &[Aggregation], index: &str, answer: &[u8]) -> Result<(), String> {
        if answer.is_empty() {
            return Ok(());
        }
        let found: Found =
            crate::received::from_bytes(answer).map_err(|error| error.to_string())?;
        self.shards += 1;
        self.add_unsent(of, &found.results, "");
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

    /// Adds how many documents a bucket may have that a shard did not send: as many as the last that it sent.
    fn add_unsent(&mut self, of: &[Aggregation], results: &Results, path: &str) {
        for of in of.iter().filter(|of| has_terms(of)) {
            let found = rows(results.get(&of.name));
            if let AggregationKind::Terms { shard_size, .. } = &of.kind {
                let mut counts: Vec<u64> = found.iter().map(|row| row.doc_count).collect();
                counts.sort_unstable();
                if let Some(last) = counts.iter().nth_back(shard_size.saturating_sub(1)) {
                    *self.unsent.entry(format!("{path}{}", of.name)).or_default() += last;
                }
            }
            if of.subs.iter().any(has_terms) {
                for row in &found {
                    let within = format!("{path}{}", step_of(of, &row.key));
                    row.subs.iter().for_each(|subs| self.add_unsent(&of.subs, subs, &within));
                }
            }
        }
    }
}

/// Whether `terms` are there, or within. Those within tuples are not looked for: there stand their next sources, too.
fn has_terms(of: &Aggregation) -> bool {
    match &of.kind {
        AggregationKind::Terms { .. } => true,
        AggregationKind::Tuples(_) => false,
        _ => of.subs.iter().any(has_terms),
    }
}
