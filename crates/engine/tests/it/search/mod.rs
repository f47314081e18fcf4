//! Searches over a cluster, in both worlds where documents are not needed, on real nodes where they are.

mod answering;
mod answers;
mod buckets;
mod found;
mod highlights;
mod points_in_time;
mod queries;
mod scrolls;

use bytes::Bytes;
use serde_json::{Value, json};
use world::Env;

use crate::common::{Cluster, raw};

const ALL: &str = "/a/_search?size=0&track_total_hits=true";

const WORDS: [&str; 4] = ["red", "green", "blue", "red"];

/// A cluster of so many nodes, with such an index.
async fn started(env: &Env, nodes: usize, (shards, replicas): (u32, u32), count: u64) -> Cluster {
    let c = Cluster::start(env, "c", nodes).await;
    filled(&c, shards, replicas, count).await;
    c
}

/// An index with `count` documents, searchable.
async fn filled(c: &Cluster, shards: u32, replicas: u32, count: u64) {
    let properties = json!({
        "n": {"type": "long"}, "word": {"type": "keyword"}, "text": {"type": "text"}, "at": {"type": "date"},
        "place": {"type": "geo_point"}, "o": {"properties": {"x": {"type": "double"}, "y": {"type": "double"}}},
    });
    c.map("a", (shards, replicas), json!({"properties": properties})).await;
    let mut lines = String::new();
    for n in 0..count {
        let document = json!({
            "n": n, "word": WORDS[n as usize % 4], "text": format!("the {} number {n}", WORDS[n as usize % 4]),
            "at": 1_577_836_800_000u64 + n * 86_400_000, "place": [n as f64 / 10.0, 0.0],
            "o": {"x": n as f64 / 2.0, "y": 1},
        });
        lines += &format!("{{\"index\":{{\"_id\":\"{n}\"}}}}\n{document}\n");
    }
    let (status, answer) = raw(c.any(), "POST", "/a/_bulk?refresh", Bytes::from(lines)).await;
    assert_eq!((status, &answer["errors"]), (200, &json!(false)));
}

fn ids(found: &Value) -> Vec<u64> {
    let hits = found["hits"]["hits"].as_array().unwrap();
    hits.iter().map(|hit| hit["_id"].as_str().unwrap().parse().unwrap()).collect()
}
