//! The best hits by score alone, and how many hits there are as far as is asked for.

use std::sync::atomic::Ordering;

use tantivy::query::{ConstScoreQuery, Weight};
use tantivy::{DocId, DocSet, Score, SegmentReader, TERMINATED};

use query::{ShardHit, ShardHits, TrackTotalHits};

use super::{Asked, Execution, Result};

/// The best of a segment, the worst last; short, so that shifting costs less than a heap.
struct Best {
    wanted: usize,
    kept: Vec<(Score, DocId)>,
    /// Once there are as many as are wanted, only better ones are.
    threshold: Score,
}

impl Best {
    fn new(wanted: usize) -> Self {
        Best { wanted, kept: Vec::with_capacity(wanted.min(1024) + 1), threshold: Score::MIN }
    }

    /// Looks at a hit; documents come in their order.
    fn see(&mut self, doc: DocId, score: Score) {
        if score <= self.threshold {
            return;
        }
        let at = self.kept.partition_point(|(other, _)| *other >= score);
        self.kept.insert(at, (score, doc));
        self.kept.truncate(self.wanted);
        if self.kept.len() == self.wanted {
            self.threshold = self.kept.last().map_or(Score::MIN, |(worst, _)| *worst);
        }
    }
}

impl Execution<'_> {
    /// The best: passes over what cannot be among them, and counts apart; in one pass where all hits count anyway.
    pub(super) fn best(&self, asked: &Asked<'_>) -> Result<ShardHits> {
        let (scored, unscored) = (asked.weight(true)?, asked.weight(false)?);
        // Where all score the same the first are the best.
        let is_constant = asked.query.is::<ConstScoreQuery>();
        let (mut total, mut all) = (0, Vec::new());
        for (segment, reader) in (0..).zip(asked.searcher.segment_readers()) {
            let (left, wants_hits) = (self.left_to_count(total), self.wanted() > 0);
            let at_once = wants_hits && !is_constant && left > 0;
            if at_once && u64::from(scored.scorer(reader, 1.0)?.size_hint()) < left {
                let mut best = Best::new(self.wanted());
                self.each_scored(scored.as_ref(), reader, &mut |doc, score| {
                    total += 1;
                    best.see(doc, score);
                })?;
                all.extend(self.hits(segment, best));
                continue;
            }
            total += self.count_in(asked, unscored.as_ref(), reader, left)?;
            if wants_hits {
                all.extend(match is_constant {
                    true => self.first_of(scored.as_ref(), segment, reader, all.len())?,
                    false => self.best_of(scored.as_ref(), segment, reader)?,
                });
            }
        }
        let hits = self.merge(all);
        let max_score = hits.first().and_then(|hit| hit.score);
        let (total, more) = self.counted(total, self.stop.load(Ordering::Relaxed));
        Ok(ShardHits { total, more, max_score, hits, ..ShardHits::default() })
    }

    /// Live documents that match; not all of them where nobody asks for so many.
    pub(super) fn count(&self, asked: &Asked<'_>) -> Result<u64> {
        let (weight, mut total) = (asked.weight(false)?, 0);
        for segment in asked.searcher.segment_readers() {
            total += self.count_in(asked, weight.as_ref(), segment, self.left_to_count(total))?;
        }
        Ok(total)
    }

    /// Hits that are still to be counted, of which there were `total`: one more than is told, as that tells that there are more.
    fn left_to_count(&self, total: u64) -> u64 {
        match self.request.track_total_hits {
            TrackTotalHits::No => 0,
            TrackTotalHits::All => u64::MAX,
            TrackTotalHits::UpTo(limit) => limit.saturating_add(1).saturating_sub(total),
        }
    }

    /// Live documents of a segment that match, counted until there are `limit` or some more.
    fn count_in(
        &self,
        asked: &Asked<'_>,
        weight: &dyn Weight,
        segment: &SegmentReader,
        limit: u64,
    ) -> Result<u64> {
        if limit == 0 {
            return Ok(0);
        }
        Ok(match asked.within(self.here(asked, segment))? {
            Some(mut within) => within.count_up_to(segment, limit),
            None if limit == u64::MAX => u64::from(weight.count(segment)?),
            None => count_up_to(weight, segment, limit)?,
        })
    }

    /// The first of a segment, where `before` hits come before it.
    fn first_of(
        &self,
        weight: &dyn Weight,
        segment: u32,
        reader: &SegmentReader,
        before: usize,
    ) -> Result<Vec<ShardHit>> {
        let (mut hits, wanted) = (Vec::new(), self.wanted().saturating_sub(before));
        let alive = reader.alive_bitset();
        let mut scorer = weight.scorer(reader, 1.0)?;
        let mut doc = scorer.doc();
        while doc != TERMINATED && hits.len() < wanted {
            if alive.is_none_or(|alive| alive.is_alive(doc)) {
                let score = scorer.score();
                let (sort, score) = (self.shown_sort(score), Some(score));
                hits.push(ShardHit { segment, doc, score, sort });
            }
            doc = scorer.advance();
        }
        Ok(hits)
    }

    fn best_of(
        &self,
        weight: &dyn Weight,
        segment: u32,
        reader: &SegmentReader,
    ) -> Result<Vec<ShardHit>> {
        let mut best = Best::new(self.wanted());
        let alive = reader.alive_bitset();
        weight.for_each_pruning(best.threshold, reader, &mut |doc, score| {
            if alive.is_none_or(|alive| alive.is_alive(doc)) {
                best.see(doc, score);
            }
            best.threshold
        })?;
        Ok(self.hits(segment, best))
    }

    fn hits(&self, segment: u32, best: Best) -> Vec<ShardHit> {
        let hit = |(score, doc)| ShardHit {
            segment,
            doc,
            score: Some(score),
            sort: self.shown_sort(score),
        };
        best.kept.into_iter().map(hit).collect()
    }
}

/// Live documents that match, counted until there are `limit`.
fn count_up_to(weight: &dyn Weight, reader: &SegmentReader, limit: u64) -> tantivy::Result<u64> {
    let mut scorer = weight.scorer(reader, 1.0)?;
    let alive = reader.alive_bitset();
    let mut count = 0;
    let mut doc = scorer.doc();
    while doc != TERMINATED && count < limit {
        count += u64::from(alive.is_none_or(|alive| alive.is_alive(doc)));
        doc = scorer.advance();
    }
    Ok(count)
}
