//! Documents that are as large on disk as they are.

use serde_json::{Value, json};

use super::cluster::Cluster;
use super::until;

/// Bulk requests of documents of 10 000 bytes that do not compress; the same in every run.
pub fn bulks(documents: u32) -> Vec<String> {
    let mut state = 88_172_645_463_325_252_u64;
    let mut letter = || {
        // xorshift64
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        match b'!' + (state % 90) as u8 {
            b'"' | b'\\' => 'x',
            other => char::from(other),
        }
    };
    let mut bodies = Vec::new();
    for _ in 0..documents / 100 {
        let mut lines = String::new();
        for _ in 0..100 {
            let text: String = (0..10_000).map(|_| letter()).collect();
            lines.push_str(&format!("{{\"index\":{{}}}}\n{{\"t\":\"{text}\"}}\n"));
        }
        bodies.push(lines);
    }
    bodies
}

/// The body that makes an index for [`bulks`].
pub fn index(shards: u32) -> Value {
    let settings = json!({"number_of_shards": shards, "number_of_replicas": 0});
    let field = json!({"type": "keyword", "index": false, "doc_values": false});
    json!({"settings": settings, "mappings": {"properties": {"t": field}}})
}

/// Writes so many documents into the index `logs`.
pub fn fill(cluster: &Cluster, shards: u32, documents: u32) {
    cluster.ask("PUT", "/logs", &index(shards).to_string());
    for lines in bulks(documents) {
        assert_eq!(cluster.ask("POST", "/logs/_bulk", &lines)["errors"], false);
    }
    cluster.ask("POST", "/logs/_flush", "");
}

/// Writes so many documents into the index `logs`, and has a replica of it begin to recover.
pub fn recover(cluster: &Cluster, documents: u32) {
    fill(cluster, 1, documents);
    cluster.ask("PUT", "/logs/_settings", &json!({ "number_of_replicas": 1 }).to_string());
    let active = || cluster.ask("GET", "/logs/_recovery?active_only=true", "");
    until("a recovery begins", || {
        active().pointer("/logs/shards/0/index/size/total_in_bytes").is_some_and(|b| *b != 0)
    });
}
