//! How fast one copy answers searches, on one thread.
//!
//! `cargo bench -p store --bench search_speed -- [documents] [part of a name]`

use query::{Mapping, SearchLimits, parse_search};

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use serde_json::json;
use store::{Options, Shard, WriteRequest};
use world::real_world;

const BATCH: u64 = 5000;
const LAPS: u32 = 50;

/// A document like a short article: words with the frequencies of a language, a journal, a date; and when it came.
fn article(n: u64) -> Bytes {
    let mut state = n.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut draw = |bound: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % bound
    };
    // The product of two even draws prefers small numbers, as the ranks of words do.
    let words: Vec<String> =
        (0..60).map(|_| format!("w{}", draw(200) * draw(200) / 20 + draw(3))).collect();
    let at = 1_300_000_000_000 + draw(200_000_000) * 1000;
    let document = json!({
        "body": words.join(" "), "journal": format!("j{}", draw(300)), "timestamp": at, "pages": draw(40),
        "logged": 1_300_000_000_000 + n * 31,
        "place": [draw(36_000) as f64 / 100.0 - 180.0, draw(17_000) as f64 / 100.0 - 85.0],
    });
    Bytes::from(document.to_string())
}

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|word| !word.starts_with("--"));
    let documents: u64 = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(500_000);
    let only = arguments.next().unwrap_or_default();
    let scratch = tempfile::tempdir().expect("a temporary directory");
    let dir = scratch.path().join("copy");
    real_world::run(1, move |env| async move {
        let mapping = json!({"properties": {
            "body": {"type": "text"}, "journal": {"type": "keyword"}, "timestamp": {"type": "date"},
            "pages": {"type": "long"}, "logged": {"type": "date"}, "place": {"type": "geo_point"},
        }});
        let mapping = Mapping::parse(&mapping).expect("a sound mapping");
        let shard = Shard::create(&env, &dir, &mapping, Options::default()).await.expect("created");
        for first in (0..documents).step_by(BATCH as usize) {
            let requests = (first..documents.min(first + BATCH))
                .map(|n| WriteRequest::append(Arc::from(format!("{n:012}")), article(n)));
            shard.index(requests.collect()).await.expect("indexed");
        }
        shard.refresh().await.expect("refreshed");
        let stats = shard.stats();
        println!(
            "{documents} documents, {} segments, {} MB",
            stats.segments,
            stats.store_bytes >> 20
        );
        for (name, body) in [
            ("match_all", json!({})),
            ("term", json!({"query": {"term": {"body": "w40"}}})),
            ("match of two", json!({"query": {"match": {"body": "w40 w700"}}})),
            (
                "match of two, counted",
                json!({"query": {"match": {"body": "w40 w700"}}, "track_total_hits": true}),
            ),
            ("phrase", json!({"query": {"match_phrase": {"body": "w1 w2"}}})),
            (
                "range, sorted",
                json!({"query": {"range": {"pages": {"gte": 10, "lt": 20}}}, "sort": [{"timestamp": "desc"}]}),
            ),
            (
                "range, the newest",
                json!({"query": {"range": {"pages": {"gte": 10}}}, "sort": [{"logged": "desc"}]}),
            ),
            (
                "hourly since",
                json!({"size": 0, "query": {"range": {"logged": {"gte": 1_300_005_000_000u64}}},
                       "aggs": {"h": {"date_histogram": {"field": "logged", "fixed_interval": "1h"}}}}),
            ),
            ("term, filtered", json!({"query": {"bool": {"filter": [{"term": {"pages": 3}}]}}})),
            (
                "term and stats",
                json!({"size": 0, "query": {"term": {"pages": 3}}, "aggs": {"s": {"stats": {"field": "pages"}}}}),
            ),
            (
                "geo_distance",
                json!({"query": {"geo_distance": {"distance": "200km", "place": [2.3, 48.8]}}}),
            ),
            (
                "monthly",
                json!({"size": 0, "aggs": {"m": {"date_histogram": {"field": "timestamp", "calendar_interval": "month"}}}}),
            ),
            (
                "terms with stats",
                json!({"size": 0, "aggs": {"j": {"terms": {"field": "journal"}, "aggs": {"p": {"stats": {"field": "pages"}}}}}}),
            ),
        ] {
            if !name.contains(&only) {
                continue;
            }
            let request =
                Arc::new(parse_search(body.to_string().as_bytes()).expect("a sound search"));
            let limits = SearchLimits::default();
            let mut laps = Vec::new();
            let mut total = 0;
            for _ in 0..LAPS {
                let began = Instant::now();
                let (hits, view) = shard.search(&request, &limits).await.expect("searched");
                let places = hits.hits.iter().map(|hit| (hit.segment, hit.doc)).collect();
                shard.fetch(&view, places, &Arc::default(), &limits).await.expect("fetched");
                laps.push(began.elapsed());
                total = hits.total;
            }
            laps.sort();
            let us = |at: usize| laps[at].as_secs_f64() * 1e6;
            let (median, most) = (us(laps.len() / 2), us(laps.len() - 1));
            println!("{name:>24}: {median:9.0} µs median, {most:9.0} µs at most, {total} hits");
        }
    });
}
