//! The aggregations of a copy beside those of the index library: the same documents, one segment each, lap by lap in
//! turn.
//!
//! `cargo bench -p store --bench aggregations -- [documents]`

use std::ops::Bound;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ::query::{Mapping, SearchLimits, parse_search};
use ::store::{Options, Shard, WriteRequest};
use bytes::Bytes;
use serde_json::{Value, json};
use tantivy::aggregation::agg_req::Aggregations;
use tantivy::aggregation::{
    AggContextParams, AggregationLimitsGuard, DistributedAggregationCollector,
};
use tantivy::collector::Count;
use tantivy::query::{AllQuery, Query, RangeQuery};
use tantivy::schema::{DateOptions, DateTimePrecision, NumericOptions, Schema};
use tantivy::{DateTime, Index, Searcher, TantivyDocument, Term};
use world::real_world;

const LAPS: usize = 51;
/// The first request of the log, and the requests a second, as in `http_logs`.
const FIRST_MS: i64 = 893_971_817_000;
const REQUESTS_PER_S: u64 = 32;
const STATUSES: [i64; 10] = [200, 200, 200, 200, 200, 200, 304, 304, 404, 206];

/// Status, size and time of a request.
fn request(n: u64) -> (i64, i64, i64) {
    let mut state = n.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut draw = |bound: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % bound
    };
    let status = STATUSES[draw(10) as usize];
    let size = (draw(200) * draw(200)) as i64;
    (status, size, FIRST_MS + (n / REQUESTS_PER_S * 1000) as i64)
}

fn library(documents: u64) -> (Searcher, Vec<Box<dyn Query>>) {
    let mut schema = Schema::builder();
    let number = NumericOptions::default().set_fast().set_indexed();
    let status = schema.add_i64_field("status", number.clone());
    let size = schema.add_i64_field("size", number);
    let date = DateOptions::default().set_fast().set_indexed();
    let at = schema.add_date_field("at", date.set_precision(DateTimePrecision::Milliseconds));
    let index = Index::create_in_ram(schema.build());
    let mut writer = index.writer_with_num_threads(1, 200_000_000).expect("a writer");
    for n in 0..documents {
        let (the_status, the_size, ms) = request(n);
        let mut document = TantivyDocument::new();
        document.add_i64(status, the_status);
        document.add_i64(size, the_size);
        document.add_date(at, DateTime::from_timestamp_millis(ms));
        writer.add_document(document).expect("indexed");
    }
    writer.commit().expect("committed");
    let segments = index.searchable_segment_ids().expect("segments");
    writer.merge(&segments).wait().expect("merged");
    let from = Term::from_field_date(at, DateTime::from_timestamp_millis(FIRST_MS + 5_000_000));
    let found = Term::from_field_i64(status, 200);
    let queries: Vec<Box<dyn Query>> = vec![
        Box::new(RangeQuery::new(Bound::Included(from), Bound::Unbounded)),
        Box::new(AllQuery),
        Box::new(RangeQuery::new(
            Bound::Included(Term::from_field_i64(size, 1000)),
            Bound::Unbounded,
        )),
        Box::new(RangeQuery::new(Bound::Included(found.clone()), Bound::Included(found))),
    ];
    (index.reader().expect("a reader").searcher(), queries)
}

async fn copy(env: &world::Env, dir: &std::path::Path, documents: u64) -> Shard {
    let mapping = json!({"properties": {
        "status": {"type": "long"}, "size": {"type": "long"}, "at": {"type": "date"},
    }});
    let mapping = Mapping::parse(&mapping).expect("a sound mapping");
    let shard = Shard::create(env, dir, &mapping, Options::default()).await.expect("created");
    for first in (0..documents).step_by(5000) {
        let requests = (first..documents.min(first + 5000)).map(|n| {
            let (status, size, at) = request(n);
            let source = Bytes::from(json!({"status": status, "size": size, "at": at}).to_string());
            let id = Arc::from(format!("{n:012}"));
            WriteRequest::append(id, source)
        });
        shard.index(requests.collect()).await.expect("indexed");
    }
    shard.refresh().await.expect("refreshed");
    shard.force_merge(1).await.expect("merged");
    shard
}

fn by_library(searcher: &Searcher, query: &dyn Query, aggs: &Value) -> Duration {
    let aggs: Aggregations = serde_json::from_value(aggs.clone()).expect("the library has it");
    let began = Instant::now();
    let tokenizers = searcher.index().tokenizers().clone();
    let context = AggContextParams::new(AggregationLimitsGuard::default(), tokenizers);
    let collector = DistributedAggregationCollector::from_aggs(aggs, context);
    std::hint::black_box(searcher.search(query, &(Count, collector)).expect("searched"));
    began.elapsed()
}

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|word| !word.starts_with("--"));
    let documents: u64 = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(500_000);
    let scratch = tempfile::tempdir().expect("a temporary directory");
    let dir = scratch.path().join("copy");
    let (searcher, queries) = library(documents);
    let hourly = json!({"by": {"date_histogram": {"field": "at", "fixed_interval": "1h"}}});
    let searches = [
        ("hourly", json!({"range": {"at": {"gte": FIRST_MS + 5_000_000}}}), hourly.clone()),
        ("hourly of all", json!({"match_all": {}}), hourly),
        (
            "statuses",
            json!({"range": {"size": {"gte": 1000}}}),
            json!({"by": {"terms": {"field": "status"}, "aggs": {"bytes": {"avg": {"field": "size"}}}}}),
        ),
        (
            "filter and stats",
            json!({"term": {"status": 200}}),
            json!({"by": {"stats": {"field": "size"}}}),
        ),
    ];
    real_world::run(1, move |env| async move {
        let shard = copy(&env, &dir, documents).await;
        for ((name, query, aggs), theirs) in searches.iter().zip(&queries) {
            let body = json!({"size": 0, "query": query, "aggs": aggs}).to_string();
            let request = Arc::new(parse_search(body.as_bytes()).expect("a sound search"));
            let limits = SearchLimits::default();
            let (mut copy, mut library) = (Vec::new(), Vec::new());
            for _ in 0..LAPS {
                let began = Instant::now();
                shard.search(&request, &limits).await.expect("searched");
                copy.push(began.elapsed());
                library.push(by_library(&searcher, theirs.as_ref(), aggs));
            }
            let us = |laps: &mut Vec<Duration>, share: usize| {
                laps.sort();
                laps[laps.len() * share / 100].as_secs_f64() * 1e6
            };
            let [ours, theirs] = [us(&mut copy, 10), us(&mut library, 10)];
            let [median, their_median] = [us(&mut copy, 50), us(&mut library, 50)];
            println!(
                "{name:>18}: {ours:7.0} µs, library {theirs:7.0} µs, {:.2} times as fast (medians {median:.0} and {their_median:.0})",
                theirs / ours
            );
        }
    });
}
