//! Executes a search on a shard copy.
//!
//! | file | holds |
//! | --- | --- |
//! | `mod.rs` | the way of a search: resolve, collect, merge the segments; and fetching |
//! | `resolve.rs`, `value.rs` | queries, in the types of their fields |
//! | `excluded.rs` | clauses that exclude |
//! | `statistics.rs` | what BM25 needs to know of a field |
//! | `values.rs` | the columns of a segment |
//! | `singles.rs` | columns of which many values are read at once |
//! | `top.rs` | the best hits of a segment |
//! | `aggregate.rs`, `gathered.rs` | aggregations, and the buckets that they meet |

mod aggregate;
mod excluded;
mod gathered;
mod resolve;
mod singles;
mod statistics;
mod top;
mod value;
mod values;

use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use tantivy::query::{ConstScoreQuery, EnableScoring, Query as Library, Weight};
use tantivy::schema::document::Value as _;
use tantivy::{DocId, DocSet, Score, Searcher, SegmentReader, TERMINATED, TantivyDocument};

use self::aggregate::Collector;
use self::resolve::{Failed, Resolver};
pub(crate) use self::statistics::CountsCache;
use self::top::{Order, Top};
use super::error::SearchError;
use super::request::{SearchRequest, SortKey, SortMissing, SortMode, SortTarget, TrackTotalHits};
use super::result::{FetchedHit, ShardHit, ShardHits, compare_hits};
use crate::mapping::Mapping;
use crate::tantivy_arm::{SEQ_NO, STORE_CACHE_BLOCKS, VERSION};

/// What a search saw: hits are fetched from the same view, whatever was written meanwhile. It holds the files of its
/// segments.
#[derive(Clone)]
pub struct SearchView(pub(crate) Option<Searcher>);

/// How a search is executed.
pub(crate) struct Execution<'a> {
    pub(crate) request: &'a SearchRequest,
    pub(crate) mapping: &'a Mapping,
    pub(crate) counts: &'a CountsCache,
    pub(crate) now_ms: i64,
    pub(crate) max_buckets: usize,
    /// Set from outside when time has run out.
    pub(crate) stop: &'a AtomicBool,
}

/// Why a search failed: it does not fit, or the index failed.
pub(crate) enum SearchFailed {
    Search(SearchError),
    Index(tantivy::TantivyError),
}

impl From<Failed> for SearchFailed {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::Search(error) => SearchFailed::Search(error),
            Failed::Index(error) => SearchFailed::Index(error),
        }
    }
}

impl From<tantivy::TantivyError> for SearchFailed {
    fn from(error: tantivy::TantivyError) -> Self {
        SearchFailed::Index(error)
    }
}

type Result<T> = std::result::Result<T, SearchFailed>;

/// The order where the request has none.
fn by_score() -> [SortKey; 1] {
    [SortKey {
        target: SortTarget::Score,
        descending: true,
        missing: SortMissing::Last,
        mode: SortMode::Max,
        may_be_unmapped: false,
    }]
}

impl Execution<'_> {
    /// Searches a view.
    pub(crate) fn run(&self, searcher: &Searcher) -> Result<ShardHits> {
        let resolver =
            Resolver { searcher, mapping: self.mapping, counts: self.counts, now_ms: self.now_ms };
        let query = resolver.resolve(&self.request.query)?;
        let request = self.request;
        let plain = request.aggregations.is_empty()
            && request.min_score.is_none()
            && request.search_after.is_none()
            && request.is_by_score();
        if plain && request.query.is_match_all() {
            return Ok(self.first_of_all(searcher));
        }
        let mut hits = match plain {
            true => self.best(searcher, query.as_ref())?,
            false => self.every(searcher, query.as_ref())?,
        };
        hits.timed_out = self.stop.load(Ordering::Relaxed);
        Ok(hits)
    }

    /// Hits that the shard sends: all that may be among those wanted.
    fn wanted(&self) -> usize {
        self.request.from.saturating_add(self.request.size)
    }

    fn counted(&self, total: u64, stopped_early: bool) -> (u64, bool) {
        let (total, more) = self.request.track_total_hits.of(total);
        (total, more || stopped_early)
    }

    fn shown_sort(&self, score: f32) -> Vec<super::SortValue> {
        match self.request.sort.is_empty() {
            true => Vec::new(),
            false => vec![super::SortValue::Double(score.into())],
        }
    }

    /// Of `match_all` the first documents are the best: all score the same.
    fn first_of_all(&self, searcher: &Searcher) -> ShardHits {
        let score = self.request.query.boost;
        let mut hits = Vec::new();
        for (segment, reader) in (0..).zip(searcher.segment_readers()) {
            let left = self.wanted() - hits.len();
            hits.extend(reader.doc_ids_alive().take(left).map(|doc| ShardHit {
                segment,
                doc,
                score: Some(score),
                sort: self.shown_sort(score),
            }));
        }
        let (total, more) = self.counted(searcher.num_docs(), false);
        let max_score = hits.first().and_then(|hit| hit.score);
        ShardHits { total, more, max_score, hits, ..ShardHits::default() }
    }

    /// The best by score alone: counts as far as is asked for, then passes over what cannot be among the best.
    fn best(&self, searcher: &Searcher, query: &dyn Library) -> Result<ShardHits> {
        let (total, more) = self.count(searcher, query)?;
        let mut all = Vec::new();
        if self.wanted() > 0 {
            let weight = query.weight(EnableScoring::enabled_from_searcher(searcher))?;
            // Where all score the same the first are the best.
            let is_constant = query.is::<ConstScoreQuery>();
            for (segment, reader) in (0..).zip(searcher.segment_readers()) {
                all.extend(match is_constant {
                    true => self.first_of(weight.as_ref(), segment, reader, all.len())?,
                    false => self.best_of(weight.as_ref(), segment, reader)?,
                });
            }
        }
        let hits = self.merge(all);
        let max_score = hits.first().and_then(|hit| hit.score);
        Ok(ShardHits { total, more, max_score, hits, ..ShardHits::default() })
    }

    fn count(&self, searcher: &Searcher, query: &dyn Library) -> Result<(u64, bool)> {
        let weight = query.weight(EnableScoring::disabled_from_searcher(searcher))?;
        let mut total = 0;
        for reader in searcher.segment_readers() {
            match self.request.track_total_hits {
                TrackTotalHits::No => return Ok((0, true)),
                TrackTotalHits::All => total += u64::from(weight.count(reader)?),
                TrackTotalHits::UpTo(limit) => {
                    total += count_up_to(weight.as_ref(), reader, limit.saturating_add(1) - total)?;
                    if total > limit {
                        return Ok((limit, true));
                    }
                }
            }
        }
        Ok((total, false))
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
        let wanted = self.wanted();
        // Sorted, the worst last; short, so that shifting costs less than a heap.
        let mut kept: Vec<(Score, DocId)> = Vec::with_capacity(wanted.min(1024) + 1);
        let alive = reader.alive_bitset();
        let mut threshold = Score::MIN;
        weight.for_each_pruning(threshold, reader, &mut |doc, score| {
            if alive.is_none_or(|alive| alive.is_alive(doc)) && score > threshold {
                let at = kept.partition_point(|(other, _)| *other >= score);
                kept.insert(at, (score, doc));
                kept.truncate(wanted);
                if kept.len() == wanted {
                    threshold = kept.last().map_or(Score::MIN, |(worst, _)| *worst);
                }
            }
            threshold
        })?;
        let hit = |(score, doc)| ShardHit {
            segment,
            doc,
            score: Some(score),
            sort: self.shown_sort(score),
        };
        Ok(kept.into_iter().map(hit).collect())
    }

    /// Looks at every document that matches.
    fn every(&self, searcher: &Searcher, query: &dyn Library) -> Result<ShardHits> {
        let request = self.request;
        let needs_scores = request.needs_scores();
        let scoring = match needs_scores {
            true => EnableScoring::enabled_from_searcher(searcher),
            false => EnableScoring::disabled_from_searcher(searcher),
        };
        let weight = query.weight(scoring)?;
        let by_score = by_score();
        let order = Order {
            keys: if request.sort.is_empty() { &by_score } else { &request.sort },
            after: request.search_after.as_deref(),
            shows_values: !request.sort.is_empty(),
            shows_scores: request.is_by_score() || request.track_scores || sorts_by_score(request),
            now_ms: self.now_ms,
        };
        let mut collectors = Collector::all(&request.aggregations, self.mapping, self.now_ms)?;
        let (mut total, mut max_score, mut base, mut all) = (0, None::<f32>, 0, Vec::new());
        for (segment, reader) in (0..).zip(searcher.segment_readers()) {
            if self.stop.load(Ordering::Relaxed) {
                break;
            }
            collectors.iter_mut().try_for_each(|collector| collector.enter(reader))?;
            let mut top = Top::new(self.wanted(), &order, self.mapping, reader, base)?;
            base += u64::from(reader.max_doc());
            let wants_hits = self.wanted() > 0;
            if needs_scores {
                self.each_scored(weight.as_ref(), reader, &mut |doc, score| {
                    if request.min_score.is_some_and(|least| score < least) {
                        return;
                    }
                    total += 1;
                    max_score = Some(max_score.map_or(score, |best| best.max(score)));
                    if wants_hits {
                        top.collect(doc, score);
                    }
                    collectors.iter_mut().for_each(|collector| collector.collect(&[doc]));
                })?;
            } else {
                self.each_block(weight.as_ref(), reader, &mut |docs| {
                    total += docs.len() as u64;
                    if wants_hits {
                        top.collect_block(docs);
                    }
                    collectors.iter_mut().for_each(|collector| collector.collect(docs));
                })?;
            }
            all.extend(top.hits(segment));
        }
        let hits = self.merge(all);
        let (total, more) = self.counted(total, self.stop.load(Ordering::Relaxed));
        let max_score = max_score.filter(|_| order.shows_scores);
        let mut aggregations = Vec::with_capacity(collectors.len());
        for collector in &mut collectors {
            aggregations.push(collector.finish(self.max_buckets)?);
        }
        Ok(ShardHits { total, more, max_score, hits, aggregations, timed_out: false })
    }

    /// Calls with every live document that matches and its score, until time runs out.
    fn each_scored(
        &self,
        weight: &dyn Weight,
        reader: &SegmentReader,
        see: &mut dyn FnMut(DocId, Score),
    ) -> tantivy::Result<()> {
        let alive = reader.alive_bitset();
        weight.for_each(reader, &mut |doc, score| {
            let lives = alive.is_none_or(|alive| alive.is_alive(doc));
            if lives && !self.stop.load(Ordering::Relaxed) {
                see(doc, score);
            }
        })
    }

    /// Calls with all live documents that match, some at once and in their order, until time runs out.
    fn each_block(
        &self,
        weight: &dyn Weight,
        reader: &SegmentReader,
        see: &mut dyn FnMut(&[DocId]),
    ) -> tantivy::Result<()> {
        let alive = reader.alive_bitset();
        let mut living = Vec::new();
        weight.for_each_no_score(reader, &mut |docs| {
            // The library does not let itself be stopped, but it can be left idle.
            if self.stop.load(Ordering::Relaxed) {
                return;
            }
            match alive {
                None => see(docs),
                Some(alive) => {
                    living.clear();
                    living.extend(docs.iter().filter(|doc| alive.is_alive(**doc)));
                    see(&living);
                }
            }
        })
    }

    /// The best of all segments.
    fn merge(&self, mut all: Vec<ShardHit>) -> Vec<ShardHit> {
        // The sort is stable: of equal hits the one that lies first in the index is first.
        all.sort_by(|a, b| compare_hits(&self.request.sort, a, b));
        all.truncate(self.wanted());
        all
    }
}

fn sorts_by_score(request: &SearchRequest) -> bool {
    request.sort.iter().any(|key| key.target == SortTarget::Score)
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

/// Reads the documents of hits.
pub(crate) fn fetch(
    searcher: &Searcher,
    hits: &[(u32, u32)],
    wants_source: bool,
) -> tantivy::Result<Vec<FetchedHit>> {
    let schema = searcher.schema();
    let id = schema.get_field(crate::tantivy_arm::ID)?;
    let source = schema.get_field(crate::tantivy_arm::SOURCE)?;
    let mut opened = std::collections::BTreeMap::new();
    let mut found = Vec::with_capacity(hits.len());
    for (segment, doc) in hits {
        let gone =
            || tantivy::TantivyError::InternalError("a hit that the view does not hold".to_owned());
        let reader = searcher.segment_readers().get(*segment as usize).ok_or_else(gone)?;
        if *doc >= reader.max_doc() {
            return Err(gone());
        }
        let (store, versions, seq_nos) = match opened.entry(*segment) {
            std::collections::btree_map::Entry::Occupied(open) => open.into_mut(),
            std::collections::btree_map::Entry::Vacant(place) => {
                let columns = reader.fast_fields();
                let store = reader.get_store_reader(STORE_CACHE_BLOCKS)?;
                place.insert((store, columns.u64(VERSION)?, columns.u64(SEQ_NO)?))
            }
        };
        let document: TantivyDocument = store.get(*doc)?;
        let text = document.get_first(id).and_then(|value| value.as_str().map(str::to_owned));
        let bytes = document.get_first(source).filter(|_| wants_source);
        found.push(FetchedHit {
            id: text.ok_or_else(gone)?,
            version: versions.first(*doc).unwrap_or(0),
            seq_no: seq_nos.first(*doc).unwrap_or(0),
            source: bytes.and_then(|value| value.as_bytes().map(Bytes::copy_from_slice)),
        });
    }
    Ok(found)
}
