//! The embedded engine and OpenSearch, asked the same: the bodies of `search_answers/requests.txt`, each sent to both,
//! which have the same documents in one shard.
//!
//! Hits with their scores, order and values, counts, and aggregations are to be equal; scores and other numbers that are
//! computed to seven digits. Where hits score the same, they may come in any order. A request that both refuse is equal;
//! one that the embedded engine alone refuses, by name, is counted apart. It fails where an answer is another one.
//! Needs Java and mvn, or `NARROWS_OPENSEARCH_HOME`. `NARROWS_BENCH_ONLY` is a part of the names of groups to ask.

mod common;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use bytes::Bytes;
use clusters::{ClusterSpec, Clusters, EmbeddedClusters, OpenSearchClusters, TopologySpec};
use serde_json::{Value, json};
use testbed::bench::Table;
use world::Env;

const CLUSTER: &str = "answers";
const MAPPING: &str = include_str!("search_answers/mapping.json");
const REQUESTS: &str = include_str!("search_answers/requests.txt");
const DOCUMENTS: usize = 120;

const TABLE: Table = Table {
    page: "search_answers",
    name: "measured",
    columns: &["asked for", "asked", "equal", "refused here alone", "another answer"],
};

const TITLES: [&str; 15] = [
    "Quick brown fox",
    "The quick brown fox jumps over the lazy dog",
    "roam",
    "roams roaming roam foam",
    "room for a fox",
    "home from Rome",
    "quick quick dog",
    "lazy Dog and lazy fox",
    "Wi-Fi in 2024, as O'Neil said",
    "naïve 3.14 a.b_c",
    "brown roam",
    "quick fox quick room",
    "raom and quikc are misspelt",
    "form of foam",
    "Fox",
];

/// A document of its number alone. Some lack a field, and some have several values, or null.
fn document(i: usize) -> Value {
    let pick = |of: usize, salt: usize| (i * 7919 + salt * 104_729 + i * i * 31) % of;
    let mut document = json!({
        "title": TITLES[pick(TITLES.len(), 1)],
        "body": format!("{} {}", TITLES[pick(TITLES.len(), 2)], TITLES[pick(TITLES.len(), 3)]),
        "mixed": TITLES[pick(TITLES.len(), 4)],
        "tag": ["red", "blue", "green", "beige", "Red"][pick(5, 5)],
        "code": ["abc", "x", "abcd", "yy"][pick(4, 6)],
        "flag": pick(3, 7) == 0,
        "count": pick(9, 8),
        "small": pick(200, 9) as i64 - 100,
        "big": i as i64 * 10 - 300,
        "price": pick(1000, 10) as f64 / 100.0,
        "rating": pick(70, 11) as f64 / 8.0,
        // Every 73 hours and 11 minutes from 2024 on: all changes of clocks of that year.
        "when": 1_704_067_200_000 + i as i64 * 263_460_000,
        "day": format!("2024-{:02}-{:02}", 1 + pick(12, 12), 1 + pick(28, 13)),
        "address": format!("10.0.0.{}", pick(6, 14)),
        "place": { "lat": pick(40, 15) as f64 - 5.0, "lon": pick(50, 16) as f64 },
        "span": { "gte": pick(8, 17) as f64 / 2.0, "lt": 4.0 + pick(6, 18) as f64 / 2.0 },
        "k_kind": format!("Kind {}", ["One", "Two", "Three"][pick(3, 19)]),
        "n_size": pick(8, 20),
        "n_size_raw": pick(5, 21),
        "a_note": format!("note {}", pick(4, 22)),
        "a_number": pick(6, 23),
        "deep": { "one": { "name": ["inner", "outer"][pick(2, 24)] } },
    });
    let names = ["tag", "count", "flag", "price", "day", "code", "body", "place", "span", "title"];
    let name = names[i % names.len()];
    match i % 4 {
        0 => drop(document.as_object_mut().and_then(|fields| fields.remove(name))),
        1 => document[name] = Value::Null,
        _ => {}
    }
    if i % 11 == 0 {
        document["tag"] = json!(["red", "violet"]);
        document["big"] = json!([i as i64 * 10 - 300, 40]);
    }
    document
}

async fn ask(target: &impl Clusters, method: &str, path: &str, body: String) -> (u16, Value) {
    let answer = target.request(CLUSTER, method, path, Bytes::from(body)).await;
    let answer = answer.unwrap_or_else(|error| panic!("{}: {path}: {error}", target.name()));
    let status = answer.status;
    (status, answer.json().unwrap_or(Value::Null))
}

async fn fill(target: &impl Clusters) {
    let mapping: Value = serde_json::from_str(MAPPING).expect("it is JSON");
    let settings = json!({ "number_of_shards": 1, "number_of_replicas": 0 });
    let index = json!({ "settings": settings, "mappings": mapping }).to_string();
    let mut bulk = String::new();
    for i in 0..DOCUMENTS {
        let _ = writeln!(bulk, "{}\n{}", json!({ "index": { "_id": i.to_string() } }), document(i));
    }
    for (method, path, body) in [
        ("PUT", "/answers", index),
        ("POST", "/answers/_bulk?refresh=true", bulk),
        ("POST", "/answers/_forcemerge?max_num_segments=1", String::new()),
        ("POST", "/answers/_refresh", String::new()),
    ] {
        let (status, answer) = ask(target, method, path, body).await;
        let failed = answer["errors"] == true;
        assert!(status == 200 && !failed, "{}: {method} {path}: {answer}", target.name());
    }
}

/// Numbers to seven digits.
fn rounded(value: &Value) -> Value {
    match value {
        Value::Number(number) if number.is_f64() => {
            json!(format!("{:.6e}", number.as_f64().unwrap_or(f64::NAN)))
        }
        Value::Array(items) => items.iter().map(rounded).collect(),
        Value::Object(members) => {
            Value::Object(members.iter().map(|(name, of)| (name.clone(), rounded(of))).collect())
        }
        other => other.clone(),
    }
}

/// What two answers have in common when they are the same.
fn essence((status, answer): &(u16, Value), sorts: bool) -> Value {
    if *status != 200 {
        return json!({ "status": status });
    }
    let mut hits: Vec<Value> = answer["hits"]["hits"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|hit| rounded(&json!([hit["_score"], hit["_id"], hit["sort"], hit["fields"]])))
        .collect();
    if !sorts {
        let same_score = |a: &Value, b: &Value| a[0] == b[0];
        for tied in hits.chunk_by_mut(same_score) {
            tied.sort_by_key(Value::to_string);
        }
    }
    let found = &answer["hits"];
    let all = rounded(&json!([found["total"], found["max_score"], answer["aggregations"]]));
    json!({ "total": all[0], "max_score": all[1], "hits": hits, "aggregations": all[2] })
}

fn asked() -> Vec<(&'static str, Vec<Value>)> {
    let mut groups: Vec<(&str, Vec<Value>)> = Vec::new();
    for line in REQUESTS.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(name) = line.strip_prefix('[') {
            groups.push((name.trim_end_matches(']'), Vec::new()));
            continue;
        }
        let mut body: Value = serde_json::from_str(line).expect(line);
        if body.get("size").is_none() {
            body["size"] = json!(200);
        }
        groups.last_mut().expect("a group comes first").1.push(body);
    }
    groups
}

async fn compare(embedded: &impl Clusters, opensearch: &impl Clusters) -> usize {
    let only = std::env::var("NARROWS_BENCH_ONLY").unwrap_or_default();
    let (mut all, mut others) = ([0; 4], 0);
    for (name, bodies) in asked().into_iter().filter(|(name, _)| name.contains(&only)) {
        let mut counts = [bodies.len(), 0, 0, 0];
        for body in bodies {
            let sorts = body.get("sort").is_some();
            let ours = ask(embedded, "POST", "/answers/_search", body.to_string()).await;
            let theirs = ask(opensearch, "POST", "/answers/_search", body.to_string()).await;
            let (here, there) = (essence(&ours, sorts), essence(&theirs, sorts));
            let reason = || ours.1["error"]["root_cause"][0]["reason"].clone();
            if here == there {
                counts[1] += 1;
            } else if ours.0 == 400 {
                counts[2] += 1;
                eprintln!("[{name}] refused here alone: {body}\n  {}", reason());
            } else {
                counts[3] += 1;
                eprintln!(
                    "[{name}] {body}\n  embedded   {here}\n  OpenSearch {there} {}",
                    theirs.1["error"]
                );
            }
        }
        others += counts[3];
        (0..4).for_each(|i| all[i] += counts[i]);
        add_row(name, counts);
    }
    add_row("all", all);
    others
}

fn add_row(name: &str, counts: [usize; 4]) {
    let mut cells = vec![name.to_owned()];
    cells.extend(counts.map(|count| count.to_string()));
    TABLE.row(&cells);
}

async fn bench(env: &Env) {
    let nodes = ClusterSpec {
        name: CLUSTER.to_owned(),
        nodes: 1,
        settings: BTreeMap::default(),
        attributes: Vec::new(),
    };
    let topology = TopologySpec { clusters: vec![nodes], link: None, joined: false };
    let mut embedded = EmbeddedClusters::new(env, env!("CARGO_BIN_EXE_narrows").into());
    embedded.start(&topology).await.expect("the embedded engine starts");
    let heap = format!("{}m", common::sized("NARROWS_BENCH_HEAP_MB", 1024));
    let mut opensearch = OpenSearchClusters::new(env).with_heap(&heap);
    if let Some(home) = std::env::var_os("NARROWS_OPENSEARCH_HOME") {
        opensearch = opensearch.with_home(home.as_ref());
    }
    opensearch.start(&topology).await.expect("OpenSearch starts: java and mvn are there");
    fill(&embedded).await;
    fill(&opensearch).await;
    TABLE.begin();
    let others = compare(&embedded, &opensearch).await;
    embedded.stop().await;
    opensearch.stop().await;
    assert_eq!(others, 0, "answers that are not those of OpenSearch");
}

fn main() {
    world::real_world::run(1, async |env| bench(&env).await);
}
