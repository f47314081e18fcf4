//! The embedded engine and OpenSearch on one machine: the same documents, searches and driver, one node each, lap by
//! lap in turn while the other one stands idle.
//!
//! Both index `http_logs`, and the papers of `pmc`, into one shard each without replicas and are made one segment; then
//! each operation is sent, warm, to the one and to the other, and the two answers to the same searches are compared:
//! hits, counts and aggregations. Caches of answers are off but where the operation says otherwise; of filters each
//! keeps what it keeps. The operations on `pmc` are those of the Rally track. Needs Java and mvn, or
//! `NARROWS_OPENSEARCH_HOME`. `NARROWS_BENCH_DOCUMENTS` (500 000), `NARROWS_BENCH_PAPERS` (4 000),
//! `NARROWS_BENCH_SECONDS` (3 a lap and operation, as much again to warm up), `NARROWS_BENCH_LAPS` (3),
//! `NARROWS_BENCH_CLIENTS` (8) and `NARROWS_BENCH_HEAP_MB` (2048) change its size; `NARROWS_BENCH_ONLY` is a part of
//! the names of operations to measure.

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use clusters::Clusters;
use clusters::wire::WireHost;
use insight::stats::median;
use lab::corpus::{Corpus, Source};
use lab::load::{Content, Draw, Extent, Live, Load, Operation};
use record::LoadFigures;
use serde_json::{Value, json};
use testbed::bench::Table;
use world::Env;

use crate::common::ask;

const CLUSTER: &str = "bench";
/// Answers to so many requests of each operation are compared.
const COMPARED: usize = 20;
/// The first request of the log, and the requests a second, as the corpus has them.
const FIRST_EPOCH_S: i64 = 893_971_817;
const REQUESTS_PER_S: i64 = 32;

/// Ten papers from this one on are there, as there are a thousand papers at least.
const LAST_PAPER: i64 = 990;

/// A search that is measured.
struct Search {
    name: &'static str,
    corpus: Corpus,
    /// Behind the path.
    parameters: &'static str,
    body: &'static str,
    /// Whether hits have scores: those of equal score may come in any order.
    scored: bool,
}

const fn of_logs(name: &'static str, scored: bool, body: &'static str) -> Search {
    Search { name, corpus: Corpus::HttpLogs, parameters: "", body, scored }
}

const fn of_papers(name: &'static str, parameters: &'static str, body: &'static str) -> Search {
    Search { name, corpus: Corpus::Pmc, parameters, body, scored: true }
}

const MONTHLY: &str = r#"{"size":0,"aggs":{"articles_over_time":
    {"date_histogram":{"field":"timestamp","calendar_interval":"month"}}}}"#;

const SEARCHES: [Search; 15] = [
    of_logs("match_all", false, r#"{"query":{"match_all":{}}}"#),
    of_logs("term", false, r#"{"query":{"term":{"status":{{status}}}}}"#),
    of_logs("match", true, r#"{"query":{"match":{"request":"{{word}} {{other}}"}}}"#),
    of_logs("phrase", true, r#"{"query":{"match_phrase":{"request":"images {{word}}"}}}"#),
    of_logs(
        "range, sorted",
        false,
        r#"{"query":{"range":{"size":{"gte":{{size}}}}},"sort":[{"@timestamp":"desc"}]}"#,
    ),
    of_logs(
        "bool",
        true,
        r#"{"query":{"bool":{"must":[{"match":{"request":"{{word}}"}}],"filter":[{"term":{"status":{{status}}}},
           {"range":{"@timestamp":{"gte":{{from}},"format":"epoch_second"}}}]}}}"#,
    ),
    of_logs(
        "hourly",
        false,
        r#"{"size":0,"query":{"range":{"@timestamp":{"gte":{{from}},"format":"epoch_second"}}},
           "aggs":{"by":{"date_histogram":{"field":"@timestamp","fixed_interval":"1h"}}}}"#,
    ),
    of_logs(
        "statuses",
        false,
        r#"{"size":0,"query":{"range":{"size":{"gte":{{size}}}}},
           "aggs":{"by":{"terms":{"field":"status"},"aggs":{"bytes":{"avg":{"field":"size"}}}}}}"#,
    ),
    of_logs(
        "filter and stats",
        false,
        r#"{"size":0,"query":{"term":{"status":{{status}}}},"aggs":{"by":{"stats":{"field":"size"}}}}"#,
    ),
    of_papers("pmc: default", "", r#"{"query":{"match_all":{}}}"#),
    // Not always the same ten papers.
    of_papers("pmc: any ten papers", "", r#"{"from":{{paper}},"query":{"match_all":{}}}"#),
    of_papers("pmc: term", "", r#"{"query":{"term":{"body":"physician"}}}"#),
    of_papers("pmc: phrase", "", r#"{"query":{"match_phrase":{"body":"newspaper coverage"}}}"#),
    of_papers("pmc: articles_monthly_agg_uncached", "?request_cache=false", MONTHLY),
    of_papers("pmc: articles_monthly_agg_cached", "?request_cache=true", MONTHLY),
];

fn operation(search: &Search, documents: u64) -> Operation {
    let words = |list: &[&str]| Draw::Choice(list.iter().map(|word| (*word).to_owned()).collect());
    let last = FIRST_EPOCH_S + documents as i64 / REQUESTS_PER_S;
    let all = BTreeMap::from([
        ("status", words(&["200", "304", "404", "206"])),
        ("word", words(&["team", "flag", "logo", "player", "ticket", "menu"])),
        ("other", words(&["english", "french", "gif", "html"])),
        ("size", Draw::Integer { from: 100, to: 5_000 }),
        ("from", Draw::Integer { from: FIRST_EPOCH_S, to: last }),
        ("paper", Draw::Integer { from: 0, to: LAST_PAPER }),
    ]);
    let body = search.body;
    let named = all.into_iter().filter(|(key, _)| body.contains(&format!("{{{{{key}}}}}")));
    let mut operation = Operation::search(search.name, search.corpus.name(), vec![body.to_owned()]);
    if let Content::Pattern { parameters, path, .. } = &mut operation.content {
        *parameters = named.map(|(key, draw)| (key.to_owned(), draw)).collect();
        path.push_str(search.parameters);
    }
    operation
}

/// Makes the index anew, which is called as its corpus.
async fn create(target: &impl Clusters, corpus: Corpus) {
    let index = corpus.name();
    let gone = target.request(CLUSTER, "DELETE", &format!("/{index}"), Bytes::new()).await;
    drop(gone);
    let mut settings = json!({ "number_of_shards": 1, "number_of_replicas": 0 });
    if corpus == Corpus::HttpLogs {
        settings["requests.cache.enable"] = json!(false);
    }
    let body = json!({ "settings": settings, "mappings": corpus.mapping() });
    ask(target, CLUSTER, "PUT", &format!("/{index}"), body).await;
    let health = format!("/_cluster/health/{index}?wait_for_status=green");
    ask(target, CLUSTER, "GET", &health, Value::Null).await;
}

async fn run(target: &impl Clusters, operation: &Operation, load: Load) -> LoadFigures {
    let host = target.nodes(CLUSTER).swap_remove(0).http;
    let load = Load { hosts: vec![host.clone()], ..load };
    let (hosts, live) = ([WireHost::plain(&host)], Arc::new(Live::default()));
    let running = lab::load::start(&load, operation, &hosts, 1, &live).expect("it is a load");
    let figures = running.figures().await.expect("it ends");
    assert!(figures.errors.is_empty(), "{}: {:?}", target.name(), figures.errors);
    figures
}

/// Documents a second, and the 99th percentile of a bulk request in milliseconds.
async fn index(target: &impl Clusters, corpus: Corpus, documents: u64, clients: u32) -> (f64, f64) {
    create(target, corpus).await;
    let source = Source::Generated(corpus);
    // Bulk requests of some megabytes at most.
    let bulk_documents = if corpus == Corpus::Pmc { 50 } else { 1000 };
    let operation = Operation::bulk(corpus.name(), source, 0..documents, bulk_documents);
    let all = Extent::Requests(documents.div_ceil(bulk_documents));
    let figures = run(target, &operation, Load::closed(Vec::new(), clients, all, 42)).await;
    (figures.documents as f64 / figures.seconds, figures.latency.map_or(0.0, |l| l.p99_ms))
}

/// One segment, searchable.
async fn settle(target: &impl Clusters, corpus: Corpus, documents: u64) {
    let index = corpus.name();
    let merge = format!("/{index}/_forcemerge?max_num_segments=1");
    ask(target, CLUSTER, "POST", &merge, Value::Null).await;
    ask(target, CLUSTER, "POST", &format!("/{index}/_refresh"), Value::Null).await;
    let count = ask(target, CLUSTER, "GET", &format!("/{index}/_count"), Value::Null).await;
    assert_eq!(count["count"], documents, "{}", target.name());
}

/// What two answers to the same search must have in common: counts, scores, aggregations; and where the order is
/// given, the hits.
fn essence(answer: &Value, scored: bool) -> Value {
    let hits = answer["hits"]["hits"].as_array().into_iter().flatten();
    let hits: Vec<Value> = hits
        .map(|hit| match scored {
            true => json!((hit["_score"].as_f64().unwrap_or(0.0) * 1e4).round()),
            false => {
                hit["sort"].get(0).filter(|sort| sort.as_u64() > Some(1 << 32)).cloned().into()
            }
        })
        .collect();
    json!({ "total": answer["hits"]["total"], "hits": hits, "aggregations": answer["aggregations"] })
}

/// How many of the answers are the same on both.
async fn same(
    embedded: &impl Clusters,
    opensearch: &impl Clusters,
    operation: &Operation,
    scored: bool,
) -> usize {
    let mut requests = operation.requests(7, 0, 1).expect("it is a search");
    let mut same = 0;
    for _ in 0..COMPARED {
        let request = requests.next(0).expect("there is no end").expect("it is a search");
        let mut body: Value = serde_json::from_slice(&request.body).expect("it is JSON");
        body["track_total_hits"] = json!(true);
        let ours =
            essence(&ask(embedded, CLUSTER, "POST", &request.path, body.clone()).await, scored);
        let theirs =
            essence(&ask(opensearch, CLUSTER, "POST", &request.path, body.clone()).await, scored);
        if ours == theirs {
            same += 1;
        } else {
            eprintln!("{}: {body}\n  embedded   {ours}\n  opensearch {theirs}", operation.name);
        }
    }
    same
}

const TABLE: Table = Table {
    page: "search_side_by_side",
    name: "measured",
    columns: &[
        "operation", "embedded /s", "OpenSearch /s", "times", "embedded p99 ms",
        "OpenSearch p99 ms", "part", "2x and half", "same answers",
    ],
};

#[derive(Default)]
struct Laps {
    per_s: Vec<f64>,
    p99_ms: Vec<f64>,
}

impl Laps {
    fn add(&mut self, (per_s, p99_ms): (f64, f64)) {
        self.per_s.push(per_s);
        self.p99_ms.push(p99_ms);
    }

    fn medians(&self) -> (f64, f64) {
        let of = |values| median(values).expect("there is a lap");
        (of(&self.per_s), of(&self.p99_ms))
    }
}

fn add_row(name: &str, embedded: &Laps, opensearch: &Laps, same: &str) {
    let ((per_s, p99), (its_per_s, its_p99)) = (embedded.medians(), opensearch.medians());
    let (times, part) = (per_s / its_per_s, p99 / its_p99);
    let reached = if times >= 2.0 && part <= 0.5 { "yes" } else { "no" };
    TABLE.row(&[
        name.to_owned(),
        format!("{per_s:.0}"),
        format!("{its_per_s:.0}"),
        format!("{times:.2}"),
        format!("{p99:.2}"),
        format!("{its_p99:.2}"),
        format!("{part:.2}"),
        reached.to_owned(),
        same.to_owned(),
    ]);
}

async fn bench(env: &Env) {
    let (mut embedded, mut opensearch) = common::start_both(env, CLUSTER, 2048).await;
    TABLE.begin();
    let documents = common::sized("NARROWS_BENCH_DOCUMENTS", 500_000);
    let papers = common::sized("NARROWS_BENCH_PAPERS", 4_000);
    for (corpus, count) in [(Corpus::HttpLogs, documents), (Corpus::Pmc, papers)] {
        fill(&embedded, &opensearch, corpus, count).await;
    }
    let only = std::env::var("NARROWS_BENCH_ONLY").unwrap_or_default();
    for search in SEARCHES.iter().filter(|search| search.name.contains(&only)) {
        measure(&embedded, &opensearch, search, documents).await;
    }
    embedded.stop().await;
    opensearch.stop().await;
}

fn laps() -> u64 {
    common::sized("NARROWS_BENCH_LAPS", 3)
}

fn clients() -> u32 {
    common::sized("NARROWS_BENCH_CLIENTS", 8) as u32
}

async fn fill(
    embedded: &impl Clusters,
    opensearch: &impl Clusters,
    corpus: Corpus,
    documents: u64,
) {
    let (mut ours, mut theirs) = (Laps::default(), Laps::default());
    // The first time is for the compiler of the JVM.
    for lap in 0..=laps() {
        let (embedded_figures, opensearch_figures) = (
            index(embedded, corpus, documents, clients()).await,
            index(opensearch, corpus, documents, clients()).await,
        );
        if lap > 0 {
            ours.add(embedded_figures);
            theirs.add(opensearch_figures);
        }
    }
    add_row(&format!("indexing {}, documents", corpus.name()), &ours, &theirs, "-");
    settle(embedded, corpus, documents).await;
    settle(opensearch, corpus, documents).await;
}

async fn measure(
    embedded: &impl Clusters,
    opensearch: &impl Clusters,
    search: &Search,
    documents: u64,
) {
    let seconds = Duration::from_secs(common::sized("NARROWS_BENCH_SECONDS", 3));
    let operation = operation(search, documents);
    let same = same(embedded, opensearch, &operation, search.scored).await;
    let (mut ours, mut theirs) = (Laps::default(), Laps::default());
    for _ in 0..laps() {
        let load = Load {
            warm_up: Extent::Time(seconds),
            ..Load::closed(Vec::new(), clients(), Extent::Time(seconds), 42)
        };
        for (lap, figures) in [
            (&mut ours, run(embedded, &operation, load.clone()).await),
            (&mut theirs, run(opensearch, &operation, load).await),
        ] {
            let p99_ms = figures.latency.map_or(0.0, |latency| latency.p99_ms);
            lap.add((figures.throughput.mean_per_s, p99_ms));
        }
    }
    add_row(search.name, &ours, &theirs, &format!("{same} of {COMPARED}"));
}

fn main() {
    world::real_world::run(1, async |env| bench(&env).await);
}
