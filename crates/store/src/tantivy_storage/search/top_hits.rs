//! `top_hits`: the best documents of a bucket, merged and written.

use serde::{Deserialize, Serialize};
use serde_json::json;

use query::aggregation::{Aggregation, AggregationKind};
use query::{FetchedHit, Literal, ShardHit, ShownHit, Text, TopHits, compare_hits};

use super::rows::same_key;

/// The best documents of a bucket.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Best {
    /// Documents of the bucket.
    pub(super) total: u64,
    /// Of each shard the best.
    pub(super) hits: Vec<BestHit>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct BestHit {
    /// Its index, which who merges knows.
    pub(super) index: String,
    pub(super) found: ShardHit,
    pub(super) document: FetchedHit,
}

/// The step of a path through a bucket, by its key as a shard has it or as it is shown.
pub(super) fn step_of(of: &Aggregation, key: &Literal) -> String {
    let key = match (&of.kind, key) {
        // Cells are gathered from the greatest on.
        (AggregationKind::Grid(grid), Literal::Integer(from_last)) => grid.key(!from_last),
        _ => same_key(key).text(),
    };
    format!("{}\0{key}\0", of.name)
}

impl Best {
    /// Adds what a shard of an index found.
    pub(super) fn add(&mut self, index: &str, of_shard: Best) {
        self.total += of_shard.total;
        let hits = of_shard.hits.into_iter();
        self.hits.extend(hits.map(|hit| BestHit { index: index.to_owned(), ..hit }));
    }

    /// Writes the best of all shards. Ties are in the order of the shards.
    pub(super) fn write(&self, to: &mut Text<'_>, asked: &TopHits, total_as_int: bool) {
        let mut hits: Vec<&BestHit> = self.hits.iter().collect();
        hits.sort_by(|a, b| compare_hits(&asked.sort, &a.found, &b.found));
        let max_score = hits.first().and_then(|hit| hit.found.score).map(f64::from);
        to.name("hits");
        to.open(b'{');
        match total_as_int {
            true => to.member("total", &self.total),
            false => to.member("total", &json!({ "value": self.total, "relation": "eq" })),
        }
        to.member("max_score", &max_score);
        to.name("hits");
        to.open(b'[');
        for BestHit { index, found, document } in hits.into_iter().skip(asked.from).take(asked.size)
        {
            let (version, primary_term, sort) = (false, None, !asked.sort.is_empty());
            ShownHit { index, found, document, version, primary_term, sort }.write(to);
        }
        to.close(b']');
        to.close(b'}');
    }
}
