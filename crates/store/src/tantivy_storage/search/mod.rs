//! Executes a search on a shard copy.
//!
//! | file | holds |
//! | --- | --- |
//! | `mod.rs` | what a search does: resolve, collect, merge the segments; and fetching |
//! | `resolve.rs`, `value.rs`, `indexed_field.rs` | queries, in the types of their fields |
//! | `resolve_words.rs`, `resolve_values.rs` | those about the words of a field, and about its values |
//! | `pattern.rs`, `wildcard.rs`, `fuzzy.rs` | words by a pattern, near another, or by their beginnings |
//! | `functions.rs` | scores that functions change |
//! | `first.rs` | the first documents that match, in place of all |
//! | `statistics.rs` | what BM25 needs to know of a field |
//! | `column.rs` | the values of a field in a segment |
//! | `bounds.rs` | the least and greatest values of blocks of them |
//! | `findings.rs`, `by_segment.rs` | what is known of segments for later searches |
//! | `between.rs` | the documents with a value between two, block by block |
//! | `by_score.rs` | the best by score alone, and how many there are |
//! | `top.rs` | the best hits of a segment |
//! | `aggregate.rs`, `translator.rs` | aggregations while they are collected, and as the library is asked for them |
//! | `computed.rs` | the columns that are computed for them |
//! | `counted.rs`, `pages.rs` | plain histograms, and the page that a `composite` shows |
//! | `matching.rs` | the documents that match, before they are collected |
//! | `found.rs`, `aggregated.rs` | what shards find for them, and that merged |
//! | `aggregation_writer.rs`, `rows.rs` | how it is written |
//! | `metrics.rs`, `pipelines.rs` | numbers, and what is computed of the buckets that are written |
//! | `by_bucket.rs`, `top_hits.rs` | the best documents of each bucket: found, merged and written |
//! | `shown.rs` | what hits show of their columns |
//! | `highlight/` | what they show of their texts |
//! | `failed.rs` | why a search failed |

mod aggregate;
mod aggregated;
mod aggregation_writer;
mod between;
mod bounds;
mod by_bucket;
mod by_score;
mod by_segment;
mod column;
mod computed;
mod counted;
mod failed;
mod findings;
mod first;
mod found;
mod functions;
mod fuzzy;
mod highlight;
mod indexed_field;
mod matching;
mod metrics;
mod pages;
mod pattern;
mod pipelines;
mod resolve;
mod resolve_values;
mod resolve_words;
mod rows;
mod shown;
mod statistics;
mod top;
mod top_hits;
mod translator;
mod value;
mod wildcard;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use tantivy::query::{EnableScoring, Query as Library, Weight};
use tantivy::{Searcher, SegmentReader};

use query::{
    FetchedHit, Mapping, SearchLimits, SearchRequest, ShardHit, ShardHits, SortKey, Stopped,
    compare_hits, keep_first_of_group,
};

use self::aggregate::Collectors;
pub use self::aggregated::Aggregated;
use self::bounds::{BLOCK, Bounds};
pub(crate) use self::failed::Failed;
use self::failed::Result;
pub(crate) use self::findings::Findings;
pub(crate) use self::highlight::highlight;
use self::matching::Matching;
use self::resolve::Resolver;
use self::shown::show_columns;
use self::top::Top;
use self::value::check_collapsible;
use crate::tantivy_storage::schema::{ID, ROUTING, SEQ_NO, SOURCE, VERSION};
use crate::tantivy_storage::stored::{STORE_CACHE_BLOCKS, Stored, StoredFields};

/// How a search is executed.
pub(crate) struct Execution<'a> {
    pub(crate) request: &'a SearchRequest,
    pub(crate) mapping: &'a Mapping,
    pub(crate) findings: &'a Arc<Findings>,
    pub(crate) limits: &'a SearchLimits,
}

/// Blocks that are looked at first where only the best hits in some order are wanted, and how many times more in each
/// round after it.
const FIRST_ROUND_BLOCKS: usize = 1;
const ROUNDS_GROW: usize = 8;

/// A query on one view of a shard.
struct ViewSearch<'a> {
    searcher: &'a Searcher,
    query: &'a dyn Library,
}

impl ViewSearch<'_> {
    fn weight(&self, needs_scores: bool) -> tantivy::Result<Box<dyn Weight>> {
        self.query.weight(match needs_scores {
            true => EnableScoring::enabled_from_searcher(self.searcher),
            false => EnableScoring::disabled_from_searcher(self.searcher),
        })
    }
}

impl Execution<'_> {
    /// Searches a view.
    pub(crate) fn run(&self, searcher: &Searcher) -> Result<ShardHits> {
        let Some(filter) = &self.request.post_filter else {
            let mut hits = self.find(searcher)?;
            show_columns(self.request, self.mapping, searcher, &mut hits.hits)?;
            return Ok(hits);
        };
        // The hits of some, and the aggregations of all.
        let whole = self.request;
        let request = SearchRequest {
            query: whole.query.filtered(vec![filter.clone()]),
            post_filter: None,
            aggregations: Vec::new(),
            ..whole.clone()
        };
        let mut hits = Execution { request: &request, ..*self }.run(searcher)?;
        if !whole.aggregations.is_empty() {
            let request = SearchRequest {
                query: whole.query.clone(),
                aggregations: whole.aggregations.clone(),
                min_score: whole.min_score,
                size: 0,
                ..SearchRequest::default()
            };
            hits.aggregations =
                Execution { request: &request, ..*self }.find(searcher)?.aggregations;
        }
        Ok(hits)
    }

    fn find(&self, searcher: &Searcher) -> Result<ShardHits> {
        let Execution { request, mapping, findings, limits } = *self;
        let resolver = Resolver::new((searcher, mapping), findings, limits);
        let query = resolver.resolve(&request.query)?;
        highlight::check(&resolver, &request.highlight)?;
        let plain = request.aggregations.is_empty()
            && request.min_score.is_none()
            && request.collapse.is_none()
            && request.search_after.is_none()
            && request.is_by_score();
        let search = ViewSearch { searcher, query: query.as_ref() };
        let best = if plain { self.best(&search)? } else { None };
        let mut hits = best.map_or_else(|| self.every(&search, &resolver), Ok)?;
        hits.stopped = match self.is_over() {
            true => Stopped::OutOfTime,
            false if resolver.leaves_some.get() => Stopped::EnoughFound,
            false => Stopped::No,
        };
        match resolver.failed.get() {
            Some(error) => Err(error.clone().into()),
            None => Ok(hits),
        }
    }

    /// Whether time has run out.
    fn is_over(&self) -> bool {
        self.limits.stop.load(Ordering::Relaxed)
    }

    /// Hits that the shard sends: all that may be among those wanted. Where none is to be shown, none is passed over.
    fn wanted(&self) -> usize {
        match self.request.size {
            0 => 0,
            size => self.request.from.saturating_add(size),
        }
    }

    fn counted(&self, total: u64, stopped_early: bool) -> (u64, bool) {
        let (total, more) = self.request.track_total_hits.of(total);
        (total, more || stopped_early)
    }

    /// Looks at every document that matches, or at those that may be among the best in the order that is asked for.
    fn every(&self, search: &ViewSearch<'_>, resolver: &Resolver<'_>) -> Result<ShardHits> {
        let (request, searcher, now_ms) = (self.request, search.searcher, self.limits.now_ms);
        let needs_scores = request.needs_scores();
        let weight = search.weight(needs_scores)?;
        let by_score = [SortKey::of("_score", None)];
        let keys = if request.sort.is_empty() { &by_score[..] } else { &request.sort };
        let wants_hits = self.wanted() > 0;
        // The hits are counted apart then, so that those that cannot be among the best need not be looked at.
        let sorts_only = wants_hits && !needs_scores && request.aggregations.is_empty();
        let counted = if sorts_only { Some(self.count(search)?) } else { None };
        if let Some(path) = &request.collapse {
            check_collapsible(path, self.mapping.field(path).map(|field| field.kind))?;
        }
        let group = request.collapse.as_deref().map(|field| SortKey::of(field, None));
        let stop = &self.limits.stop;
        let matching = Matching { weight: weight.as_ref(), min_score: request.min_score, stop };
        let mut collectors = Collectors::new(&request.aggregations, resolver, matching)?;
        let order = (request, keys, group.as_ref());
        if searcher.segment_readers().is_empty() {
            Top::new(order, (self.mapping, now_ms), (None, self.findings.as_ref()), 0)?;
        }
        let (mut total, mut max_score, mut base, mut all) = (0, None::<f32>, 0, Vec::new());
        for (segment, reader) in (0..).zip(searcher.segment_readers()) {
            // Where no hits are shown nothing is read of the segment to sort them by.
            let of = (wants_hits.then_some(reader), self.findings.as_ref());
            let mut top = Top::new(order, (self.mapping, now_ms), of, base)?;
            if self.is_over() {
                break;
            }
            collectors.enter(segment, reader, self.findings)?;
            base += u64::from(reader.max_doc());
            if let Some(bounds) = top.bounds().filter(|_| sorts_only) {
                self.most_promising(weight.as_ref(), reader, &bounds, &mut top)?;
            } else if needs_scores {
                matching.each_scored(reader, &mut |doc, score| {
                    total += 1;
                    max_score = Some(max_score.map_or(score, |best| best.max(score)));
                    if wants_hits {
                        top.collect(doc, score);
                    }
                    collectors.collect(&[doc]);
                })?;
            } else {
                matching.each_batch(reader, &mut |docs| {
                    total += docs.len() as u64;
                    if wants_hits {
                        top.collect_block(docs);
                    }
                    collectors.collect(docs);
                })?;
            }
            all.extend(top.hits(segment)?);
        }
        let hits = self.merge(all);
        let stopped = self.is_over();
        let (total, more) = self.counted(counted.unwrap_or(total), stopped);
        let max_score = max_score.filter(|_| request.size > 0 && request.shows_scores());
        let mut aggregations = Bytes::new();
        if !request.aggregations.is_empty() {
            let mut found = collectors.finish()?;
            found.hits = self.best_by_bucket(searcher, &found.results, &found.ranges)?;
            aggregations = found.encode()?;
        }
        Ok(ShardHits { total, more, max_score, hits, aggregations, stopped: Stopped::No })
    }

    /// Looks at the blocks of a segment that may hold the best hits first, in rounds of ever more blocks, until no
    /// block may hold another one: `range, sorted` is 6 times as fast as if every hit were looked at (2026-12-01,
    /// docs/benchmarks/search_side_by_side.md).
    fn most_promising(
        &self,
        weight: &dyn Weight,
        segment: &SegmentReader,
        bounds: &Bounds,
        top: &mut Top<'_>,
    ) -> tantivy::Result<()> {
        let mut docs = Vec::with_capacity(BLOCK as usize);
        let mut blocks: Vec<u32> = (0..bounds.blocks()).collect();
        blocks.sort_by_cached_key(|block| top.promise(bounds, *block));
        let (mut left, mut round) = (&mut blocks[..], FIRST_ROUND_BLOCKS);
        while left.iter().any(|block| top.may_hold(bounds, *block)) && !self.is_over() {
            let (now, later) = left.split_at_mut(round.min(left.len()));
            (left, round) = (later, round * ROUNDS_GROW);
            now.sort_unstable();
            let mut scorer = weight.scorer(segment, 1.0)?;
            for block in now {
                if !top.may_hold(bounds, *block) {
                    continue;
                }
                let within = bounds.docs(*block);
                let mut doc = scorer.doc();
                if doc < within.start {
                    doc = scorer.seek(within.start);
                }
                docs.clear();
                while doc < within.end {
                    if !segment.is_deleted(doc) {
                        docs.push(doc);
                    }
                    doc = scorer.advance();
                }
                top.collect_block(&docs);
            }
        }
        Ok(())
    }

    /// The best of all segments.
    fn merge(&self, mut all: Vec<ShardHit>) -> Vec<ShardHit> {
        // The sort is stable: of equal hits the one that lies first in the index is first.
        all.sort_by(|a, b| compare_hits(&self.request.sort, a, b));
        if self.request.collapse.is_some() {
            keep_first_of_group(&mut all, |hit| hit.group.clone());
        }
        all.truncate(self.wanted());
        all
    }
}

/// Reads the documents of hits.
pub(crate) fn fetch(
    searcher: &Searcher,
    hits: &[(u32, u32)],
    wants_source: bool,
) -> tantivy::Result<Vec<FetchedHit>> {
    let schema = searcher.schema();
    let fields = StoredFields {
        id: schema.get_field(ID)?,
        source: schema.get_field(SOURCE)?,
        routing: schema.get_field(ROUTING).ok(),
    };
    let mut opened = BTreeMap::new();
    let mut found = Vec::with_capacity(hits.len());
    for (segment, doc) in hits {
        let gone =
            || tantivy::TantivyError::InternalError("a hit that the view does not hold".to_owned());
        let reader = searcher.segment_readers().get(*segment as usize).ok_or_else(gone)?;
        if *doc >= reader.max_doc() {
            return Err(gone());
        }
        if !opened.contains_key(segment) {
            let columns = reader.fast_fields();
            let store = reader.get_store_reader(STORE_CACHE_BLOCKS)?;
            opened.insert(*segment, (store, columns.u64(VERSION)?, columns.u64(SEQ_NO)?));
        }
        let (store, versions, seq_nos) = &opened[segment];
        let stored = Stored::read(store, *doc, fields, wants_source)?;
        found.push(FetchedHit {
            id: stored.id.ok_or_else(gone)?,
            version: versions.first(*doc).unwrap_or(0),
            seq_no: seq_nos.first(*doc).unwrap_or(0),
            source: stored.source,
            routing: stored.routing,
            highlight: BTreeMap::new(),
        });
    }
    Ok(found)
}
