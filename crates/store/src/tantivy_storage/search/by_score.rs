//! The best hits by score alone, and how many hits there are as far as is asked for.
//!
//! So `match_all` is 52 times as fast as if every hit were looked at, `match` 7 and `term` 4.5 times (2026-12-01,
//! docs/benchmarks/search_side_by_side.md).

use tantivy::collector::{Collector, TopDocs};
use tantivy::query::{AllQuery, ConstScoreQuery, Weight};
use tantivy::{COLLECT_BLOCK_BUFFER_LEN, DocId, DocSet, SegmentReader, TERMINATED};

use query::{DEFAULT_TRACK_TOTAL_HITS, Literal, ShardHit, ShardHits, TrackTotalHits};

use super::failed::Result;
use super::{Execution, ViewSearch};

impl Execution<'_> {
    /// The best: passes over what cannot be among them, and counts apart. None where the hits are so few that all of
    /// them have to be looked at anyway, to be counted: `phrase` and `bool` are 1.6 times as fast for that.
    pub(super) fn best(&self, search: &ViewSearch<'_>) -> Result<Option<ShardHits>> {
        let scored = search.weight(true)?;
        // Where all score the same the first are the best.
        let is_constant = search.query.is::<AllQuery>() || search.query.is::<ConstScoreQuery>();
        if self.wanted() > 0 && !is_constant {
            let mut most = 0;
            for segment in search.searcher.segment_readers() {
                most += u64::from(scored.scorer(segment, 1.0)?.size_hint());
            }
            if most < self.left_to_count(0) {
                return Ok(None);
            }
        }
        let total = self.count(search)?;
        let top = TopDocs::with_limit(self.wanted().max(1)).order_by_score();
        let (mut all, mut best) = (Vec::new(), Vec::new());
        for (segment, reader) in (0..).zip(search.searcher.segment_readers()) {
            match is_constant {
                _ if self.wanted() == 0 => {}
                true => all.extend(self.first_of(scored.as_ref(), segment, reader, all.len())?),
                false => best.push(top.collect_segment(scored.as_ref(), segment, reader)?),
            }
        }
        let best = top.merge_fruits(best)?.into_iter();
        all.extend(best.map(|(score, of)| self.scored(of.segment_ord, of.doc_id, score)));
        let hits = self.merge(all);
        let max_score = hits.first().and_then(|hit| hit.score);
        let (total, more) = self.counted(total, self.is_over());
        Ok(Some(ShardHits { total, more, max_score, hits, ..ShardHits::default() }))
    }

    /// Live documents that match; not all of them where nobody asks for so many.
    pub(super) fn count(&self, search: &ViewSearch<'_>) -> Result<u64> {
        let (weight, mut total) = (search.weight(false)?, 0);
        for segment in search.searcher.segment_readers() {
            total += count_in(search, weight.as_ref(), segment, self.left_to_count(total))?;
        }
        Ok(total)
    }

    /// How many hits are still to be counted after `total`: one more than `track_total_hits`, which shows that there
    /// are more.
    fn left_to_count(&self, total: u64) -> u64 {
        let left = |limit: u64| limit.saturating_add(1).saturating_sub(total);
        match self.request.track_total_hits {
            TrackTotalHits::No => 0,
            TrackTotalHits::All => u64::MAX,
            TrackTotalHits::UpTo(limit) => left(limit),
            TrackTotalHits::Unset => left(DEFAULT_TRACK_TOTAL_HITS),
        }
    }

    /// A hit that is known by its score alone.
    fn scored(&self, segment: u32, doc: DocId, score: f32) -> ShardHit {
        let sort = match self.request.sort.is_empty() {
            true => Vec::new(),
            false => vec![Some(Literal::Float(score.into()))],
        };
        ShardHit { segment, doc, score: Some(score), sort, ..ShardHit::default() }
    }

    /// The first of a segment, where `before` hits come before it: `term` is 4 times as fast as by the library's best.
    fn first_of(
        &self,
        weight: &dyn Weight,
        segment: u32,
        reader: &SegmentReader,
        before: usize,
    ) -> Result<Vec<ShardHit>> {
        let (mut hits, wanted) = (Vec::new(), self.wanted().saturating_sub(before));
        let mut scorer = weight.scorer(reader, 1.0)?;
        let mut doc = scorer.doc();
        while doc != TERMINATED && hits.len() < wanted {
            if !reader.is_deleted(doc) {
                hits.push(self.scored(segment, doc, scorer.score()));
            }
            doc = scorer.advance();
        }
        Ok(hits)
    }
}

/// Live documents of a segment that match, counted until there are `limit` or some more: `match` is 1.6 times as fast
/// for that.
fn count_in(
    search: &ViewSearch<'_>,
    weight: &dyn Weight,
    segment: &SegmentReader,
    limit: u64,
) -> tantivy::Result<u64> {
    if limit == u64::MAX || search.query.is::<AllQuery>() {
        return weight.count(segment).map(u64::from);
    }
    let (mut scorer, mut count) = (weight.scorer(segment, 1.0)?, 0);
    let mut docs = [0; COLLECT_BLOCK_BUFFER_LEN];
    while count < limit {
        let found = scorer.fill_buffer(&mut docs);
        count += docs[..found].iter().filter(|doc| !segment.is_deleted(**doc)).count() as u64;
        if found < docs.len() {
            break;
        }
    }
    Ok(count)
}
