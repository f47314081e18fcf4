//! Executes a search on a shard copy.
//!
//! | file | holds |
//! | --- | --- |
//! | `mod.rs` | what a search does: resolve, collect, merge the segments; and fetching |
//! | `resolve.rs`, `value.rs` | queries, in the types of their fields |
//! | `excluded.rs` | clauses that exclude |
//! | `statistics.rs` | what BM25 needs to know of a field |
//! | `column.rs` | the values of a field in a segment |
//! | `bounds.rs`, `by_segment.rs` | the least and greatest values of blocks of them; what is known of a segment |
//! | `matches.rs` | the documents that match, block by block |
//! | `by_score.rs` | the best by score alone, and how many there are |
//! | `top.rs` | the best hits of a segment |
//! | `aggregate.rs`, `computed.rs` | aggregations, and the columns that are computed for them |
//! | `aggregated.rs`, `text.rs` | their answers, merged and written |
//! | `failed.rs` | why a search failed |

mod aggregate;
mod aggregated;
mod bounds;
mod by_score;
mod by_segment;
mod column;
mod computed;
mod excluded;
mod failed;
mod matches;
mod resolve;
mod statistics;
mod text;
mod top;
mod value;

use std::sync::atomic::{AtomicBool, Ordering};

use tantivy::query::{AllQuery, EnableScoring, Query as Library, Weight};
use tantivy::{DocId, Score, Searcher, SegmentReader};

use query::{
    FetchedHit, Literal, Mapping, SearchRequest, ShardHit, ShardHits, SortKey, SortTarget,
    SortValue, compare_hits,
};

use self::aggregate::Collectors;
pub use self::aggregated::Aggregated;
pub(crate) use self::bounds::Findings;
use self::bounds::{BLOCK, Bounds, SegmentContext, docs_of};
pub(crate) use self::failed::Failed;
use self::failed::Result;
use self::matches::{Batch, Interval, Matches, Within};
use self::resolve::Resolver;
use self::top::{Order, Top};
use crate::tantivy_storage::schema::{ID, SEQ_NO, SOURCE, VERSION};
use crate::tantivy_storage::stored::{STORE_CACHE_BLOCKS, Stored};

/// How a search is executed.
pub(crate) struct Execution<'a> {
    pub(crate) request: &'a SearchRequest,
    pub(crate) mapping: &'a Mapping,
    pub(crate) findings: &'a Findings,
    pub(crate) now_ms: i64,
    pub(crate) max_buckets: usize,
    /// Set from outside when time has run out.
    pub(crate) stop: &'a AtomicBool,
}

/// Blocks that are looked at first where only the best hits in some order are wanted, and how many times more in each
/// round after it.
const FIRST_ROUND_BLOCKS: usize = 1;
const ROUNDS_GROW: usize = 8;

/// A query on one view of a shard.
struct ViewSearch<'a> {
    searcher: &'a Searcher,
    query: &'a dyn Library,
    /// The same, where it is no more than this.
    interval: Option<Interval>,
}

impl ViewSearch<'_> {
    fn within(&self, context: SegmentContext<'_>) -> tantivy::Result<Option<Within>> {
        self.interval.as_ref().map_or(Ok(None), |interval| interval.within(context))
    }

    fn weight(&self, needs_scores: bool) -> tantivy::Result<Box<dyn Weight>> {
        self.query.weight(match needs_scores {
            true => EnableScoring::enabled_from_searcher(self.searcher),
            false => EnableScoring::disabled_from_searcher(self.searcher),
        })
    }
}

impl Execution<'_> {
    fn context<'a>(
        &'a self,
        search: &ViewSearch<'a>,
        segment: &'a SegmentReader,
    ) -> SegmentContext<'a> {
        SegmentContext { searcher: search.searcher, segment, findings: self.findings }
    }

    /// Searches a view.
    pub(crate) fn run(&self, searcher: &Searcher) -> Result<ShardHits> {
        let Execution { request, mapping, findings, now_ms, .. } = *self;
        let resolver = Resolver { searcher, mapping, findings, now_ms };
        let query = resolver.resolve(&request.query)?;
        let interval = resolver.interval(&request.query)?;
        let plain = request.aggregations.is_empty()
            && request.min_score.is_none()
            && request.search_after.is_none()
            && request.is_by_score();
        let search = ViewSearch { searcher, query: query.as_ref(), interval };
        let best = if plain { self.best(&search)? } else { None };
        let mut hits = best.map_or_else(|| self.every(&search), Ok)?;
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

    fn shown_sort(&self, score: f32) -> Vec<SortValue> {
        match self.request.sort.is_empty() {
            true => Vec::new(),
            false => vec![Some(Literal::Float(score.into()))],
        }
    }

    /// Looks at every document that matches, or at those that may be among the best in the order that is asked for.
    fn every(&self, search: &ViewSearch<'_>) -> Result<ShardHits> {
        let (request, searcher) = (self.request, search.searcher);
        let needs_scores = request.needs_scores();
        let weight = search.weight(needs_scores)?;
        let by_score = [SortKey::of("_score", None)];
        let order = Order {
            keys: if request.sort.is_empty() { &by_score } else { &request.sort },
            after: request.search_after.as_deref(),
            shows_values: !request.sort.is_empty(),
            shows_scores: request.is_by_score() || request.track_scores || sorts_by_score(request),
            now_ms: self.now_ms,
        };
        let wants_hits = self.wanted() > 0;
        // The hits are counted apart then, so that those that cannot be among the best need not be looked at.
        let sorts_only = wants_hits && !needs_scores && request.aggregations.is_empty();
        let counted = if sorts_only { Some(self.count(search)?) } else { None };
        let mut collectors = Collectors::new(
            &request.aggregations,
            (self.mapping, self.now_ms),
            self.max_buckets,
            searcher,
        )?;
        let (mut total, mut max_score, mut base, mut all) = (0, None::<f32>, 0, Vec::new());
        for (segment, reader) in (0..).zip(searcher.segment_readers()) {
            if self.stop.load(Ordering::Relaxed) {
                break;
            }
            let context = self.context(search, reader);
            collectors.enter(segment, context)?;
            let mut top = Top::new(self.wanted(), &order, self.mapping, context, base)?;
            base += u64::from(reader.max_doc());
            if let Some(bounds) = top.bounds().filter(|_| sorts_only) {
                self.most_promising(search, weight.as_ref(), context, &bounds, &mut top)?;
            } else if needs_scores {
                self.each_scored(weight.as_ref(), reader, &mut |doc, score| {
                    if request.min_score.is_some_and(|least| score < least) {
                        return;
                    }
                    total += 1;
                    max_score = Some(max_score.map_or(score, |best| best.max(score)));
                    if wants_hits {
                        top.collect(doc, score);
                    }
                    collectors.collect(&Batch::Docs(&[doc]));
                })?;
            } else {
                let mut list = Vec::new();
                self.each_batch(search, weight.as_ref(), context, &mut |batch| {
                    total += batch.len();
                    if wants_hits {
                        batch.list(&mut list, |_| true);
                        top.collect_block(&list);
                    }
                    collectors.collect(&batch);
                })?;
            }
            all.extend(top.hits(segment));
        }
        let hits = self.merge(all);
        let stopped = self.stop.load(Ordering::Relaxed);
        let (total, more) = self.counted(counted.unwrap_or(total), stopped);
        let max_score = max_score.filter(|_| order.shows_scores);
        let aggregations = collectors.finish()?;
        Ok(ShardHits { total, more, max_score, hits, aggregations, timed_out: false })
    }

    /// Looks at the blocks of a segment that may hold the best hits first, in rounds of ever more blocks, until no
    /// block may hold another one.
    fn most_promising(
        &self,
        search: &ViewSearch<'_>,
        weight: &dyn Weight,
        context: SegmentContext<'_>,
        bounds: &Bounds,
        top: &mut Top<'_>,
    ) -> tantivy::Result<()> {
        let alive = context.segment.alive_bitset();
        let mut left: Vec<u32> = (0..bounds.blocks()).collect();
        let (mut round, mut docs) = (FIRST_ROUND_BLOCKS, Vec::with_capacity(BLOCK as usize));
        loop {
            left.retain(|block| top.may_hold(bounds, *block));
            if left.is_empty() || self.stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            let rest = match round < left.len() {
                true => {
                    left.select_nth_unstable_by_key(round, |block| top.promise(bounds, *block));
                    left.split_off(round)
                }
                false => Vec::new(),
            };
            left.sort_unstable();
            let mut matches = Matches::open(search.within(context)?, weight, context.segment)?;
            for block in left {
                if top.may_hold(bounds, block) {
                    matches.of_block(bounds, block, &mut docs);
                    docs.retain(|doc| alive.is_none_or(|alive| alive.is_alive(*doc)));
                    top.collect_block(&docs);
                }
            }
            left = rest;
            round *= ROUNDS_GROW;
        }
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
    fn each_batch(
        &self,
        search: &ViewSearch<'_>,
        weight: &dyn Weight,
        context: SegmentContext<'_>,
        see: &mut dyn FnMut(Batch<'_>),
    ) -> tantivy::Result<()> {
        let (alive, max_doc) = (context.segment.alive_bitset(), context.segment.max_doc());
        let mut living = Vec::new();
        let mut see = |batch: Batch<'_>| {
            if self.stop.load(Ordering::Relaxed) {
                return false;
            }
            match alive {
                None => see(batch),
                Some(alive) => {
                    batch.list(&mut living, |doc| alive.is_alive(doc));
                    see(Batch::Docs(&living));
                }
            }
            true
        };
        if search.query.is::<AllQuery>() {
            let mut blocks = 0..max_doc.div_ceil(BLOCK);
            blocks.all(|block| see(Batch::Block(block, docs_of(block, max_doc))));
        } else if let Some(within) = search.within(context)? {
            within.each(&mut see);
        } else {
            // The library does not let itself be stopped, but it can be left idle.
            weight.for_each_no_score(context.segment, &mut |docs| _ = see(Batch::Docs(docs)))?;
        }
        Ok(())
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

/// Reads the documents of hits.
pub(crate) fn fetch(
    searcher: &Searcher,
    hits: &[(u32, u32)],
    wants_source: bool,
) -> tantivy::Result<Vec<FetchedHit>> {
    let schema = searcher.schema();
    let id = schema.get_field(ID)?;
    let source = schema.get_field(SOURCE)?;
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
        let stored = Stored::read(store, *doc, (id, source), wants_source)?;
        found.push(FetchedHit {
            id: stored.id.ok_or_else(gone)?,
            version: versions.first(*doc).unwrap_or(0),
            seq_no: seq_nos.first(*doc).unwrap_or(0),
            source: stored.source,
        });
    }
    Ok(found)
}
