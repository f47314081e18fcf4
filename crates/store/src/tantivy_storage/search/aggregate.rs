//! Collects aggregations on one shard: the index library's collectors do (`translator.rs`), and `counted.rs` histograms
//! with nothing within; `cargo bench -p store --bench aggregations` measures that beside the library.

use std::sync::Arc;

use tantivy::aggregation::agg_req::Aggregations;
use tantivy::aggregation::intermediate_agg_result::PruneMode;
use tantivy::aggregation::{
    AggContextParams, AggregationLimitsGuard, AggregationSegmentCollector,
    DistributedAggregationCollector, ValueSourceRegistry,
};
use tantivy::collector::{Collector as _, SegmentCollector as _};
use tantivy::{DocId, SegmentReader, TantivyError};

use query::aggregation::{Aggregation, AggregationKind};

use super::computed::Reading;
use super::counted::Counted;
use super::failed::{Failed, Result};
use super::findings::Findings;
use super::found::{Found, buckets, too_many};
use super::matching::Matching;
use super::resolve::Resolver;
use super::translator::{Translator, prune};

/// Documents are handed to the library so many at once.
const COLLECTED: usize = 4096;
/// Bytes of buckets that a shard may gather before the best of them are chosen.
const MAX_MEMORY: u64 = 128 << 20;

/// The aggregations of a search while it looks at a shard.
pub(super) struct Collectors<'a> {
    of: &'a [Aggregation],
    max_buckets: usize,
    library: DistributedAggregationCollector,
    /// In the segment at hand.
    segment: Option<AggregationSegmentCollector>,
    /// Documents that are still to be collected.
    docs: Vec<DocId>,
    counted: Vec<Counted<'a>>,
    /// As asked of the library, with as few buckets as a shard sends.
    pruned: Aggregations,
    found: Found,
}

impl<'a> Collectors<'a> {
    /// Collectors for aggregations and all within them.
    pub(super) fn new(
        of: &'a [Aggregation],
        resolver: &Resolver<'_>,
        matching: Matching<'_>,
    ) -> Result<Self> {
        let (searcher, max_buckets) = (resolver.searcher, resolver.limits.max_buckets);
        let mut translator = Translator::new(resolver, matching);
        let (mut asked, mut counted) = (Aggregations::default(), Vec::new());
        for of in of.iter().filter(|of| of.is_collected()) {
            let has_nothing_within = !of.subs.iter().any(Aggregation::is_collected);
            match &of.kind {
                AggregationKind::Histogram(histogram) if has_nothing_within => {
                    let column = translator.computed(of, Reading::Start(histogram.clone()))?;
                    counted.push(Counted::new(&of.name, column, max_buckets));
                }
                _ => translator.ask(of, &mut asked)?,
            }
        }
        let mut registry = ValueSourceRegistry::default();
        for (name, source) in translator.sources {
            registry.register(&name, source);
        }
        let mut pruned = asked.clone();
        prune(of, &mut pruned, true, &translator.found.shown);
        // Of a single segment the buckets are those of the shard, so that only these are made.
        if let [_] = searcher.segment_readers() {
            prune(of, &mut asked, false, &translator.found.shown);
        }
        let limits = AggregationLimitsGuard::new(Some(MAX_MEMORY), None);
        let context = AggContextParams { limits, ..AggContextParams::default() }
            .with_value_sources(Arc::new(registry));
        let library = DistributedAggregationCollector::from_aggs(asked, context);
        let found = translator.found;
        let (segment, docs) = (None, Vec::new());
        Ok(Collectors { of, max_buckets, library, segment, docs, counted, pruned, found })
    }

    /// Turns to the next segment.
    pub(super) fn enter(
        &mut self,
        ord: u32,
        segment: &SegmentReader,
        findings: &Findings,
    ) -> Result<()> {
        self.leave()?;
        self.counted.iter_mut().try_for_each(|counted| counted.enter(segment, findings))?;
        if !self.pruned.is_empty() {
            self.segment = Some(self.library.for_segment(ord, segment)?);
        }
        Ok(())
    }

    /// Counts documents of the segment, in their order.
    pub(super) fn collect(&mut self, docs: &[DocId]) {
        self.docs.extend_from_slice(docs);
        if self.docs.len() >= COLLECTED {
            self.flush();
        }
    }

    fn flush(&mut self) {
        self.counted.iter_mut().for_each(|counted| counted.collect(&self.docs));
        if let Some(segment) = self.segment.as_mut().filter(|_| !self.docs.is_empty()) {
            segment.collect_block(&self.docs);
        }
        self.docs.clear();
    }

    fn leave(&mut self) -> Result<()> {
        self.flush();
        let Some(segment) = self.segment.take() else { return Ok(()) };
        let found = segment.harvest().and_then(|found| self.found.results.merge_fruits(found));
        found.map_err(|error| match error {
            // All that a request can do wrong was refused before: it gathers too much.
            TantivyError::AggregationError(_) => Failed::from(too_many(self.max_buckets)),
            other => Failed::from(other),
        })
    }

    /// What was found, of the whole shard. Fails if there are more buckets than a search may have.
    pub(super) fn finish(mut self) -> Result<Found> {
        self.leave()?;
        self.found.results.prune_intermediate_results(&self.pruned, PruneMode::Intermediate)?;
        for counted in self.counted {
            let (name, buckets) = counted.buckets();
            self.found.results.push(name, buckets)?;
        }
        if buckets(self.of, &self.found.results) > self.max_buckets {
            return Err(too_many(self.max_buckets).into());
        }
        Ok(self.found)
    }
}
