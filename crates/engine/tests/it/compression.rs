//! Compression that is on while it makes the link carry more.

use crate::common::pair::{Pair, pair_of};
use crate::common::{eventually, raw};
use bytes::Bytes;
use serde_json::{Value, json};
use world::Env;

testbed::both_worlds!(auto_compresses_what_the_link_holds_back,);

const DOCUMENTS: u64 = 4000;
const BULK: u64 = 250;
/// How often documents come until the link is what holds them back, on a machine that does much else.
const TRIES: usize = 5;
/// Bounds what is asked for before anything has come: all else is asked for when the link is known.
const MEMORY_MAX: &str = "8mb";

/// Documents of about 12 kB, in words that come again and again.
fn bulk(from: u64, to: u64) -> Bytes {
    let mut body = String::new();
    for n in from..to {
        let words = (n..n + 1500).map(|at| format!("word{} ", at * at % 997)).collect::<String>();
        let source = json!({ "n": n, "words": words });
        body.push_str(&format!("{{\"index\":{{\"_id\":\"{n}\"}}}}\n{source}\n"));
    }
    body.into()
}

impl Pair {
    /// Bytes that have come to the follower's node, and the paths that it has compressed.
    async fn carried(&self) -> (u64, Value) {
        let stats = self.follower.get("/_nodes/stats").await;
        let node = stats["nodes"].as_object().unwrap().values().next().unwrap();
        let transport = &node["transport"];
        (transport["rx_size_in_bytes"].as_u64().unwrap(), transport["compressed_paths"].clone())
    }

    async fn begin_with_auto(&self, env: &Env) {
        self.set(json!({
            "transport.compress": "auto", "narrows.following.memory_max": MEMORY_MAX,
        }))
        .await;
        self.follow("b").await;
        self.complete(env, "b").await;
    }

    /// Has documents come as operations, all at once; answers the bytes of those, what the link carried for them, and
    /// whether the path was seen to be compressed meanwhile.
    async fn catch_up(&self, env: &Env) -> (u64, u64, bool) {
        self.follower.post("/b/_ccr/pause_follow").await;
        for from in (0..DOCUMENTS).step_by(BULK as usize) {
            let body = bulk(from, from + BULK);
            let (status, answer) = raw(self.leader.any(), "POST", "/a/_bulk", body).await;
            assert_eq!((status, &answer["errors"]), (200, &json!(false)));
        }
        let (before, _) = self.carried().await;
        self.follower.post("/b/_ccr/resume_follow").await;
        let mut was_compressed = false;
        let mut read = 0;
        eventually(env, "the follower has caught up", async || {
            let stats = self.follower.get("/b/_ccr/stats").await;
            let shards = stats["indices"][0]["shards"].as_array().cloned().unwrap_or_default();
            let sum = |name: &str| shards.iter().filter_map(|s| s[name].as_u64()).sum::<u64>();
            read = sum("bytes_read");
            was_compressed |= self.carried().await.1 == json!(["leader"]);
            sum("operations_written") == DOCUMENTS
        })
        .await;
        (read, self.carried().await.0 - before, was_compressed)
    }

    /// Follows anew; answers the bytes of the files, and what the link carried for them.
    async fn copy_anew(&self, env: &Env) -> (u64, u64) {
        self.follower.delete("/b").await;
        let (before, _) = self.carried().await;
        self.follow("b").await;
        self.complete(env, "b").await;
        let rows = self.recoveries("b").await;
        let size = |row: &Value| row["index"]["size"]["recovered_in_bytes"].as_u64().unwrap();
        (rows.iter().map(size).sum(), self.carried().await.0 - before)
    }
}

async fn auto_compresses_what_the_link_holds_back(env: Env) {
    let pair = pair_of(&env, (1, 1), (20, 4_000_000), (0, 100)).await;
    pair.begin_with_auto(&env).await;
    for tries in 1.. {
        let (read, carried, was_seen) = pair.catch_up(&env).await;
        // Elsewhere the one who looks may be late, and cores may hold documents back more than the link.
        assert!(was_seen || !env.is_virtual());
        // The files of a copy go the same way: what was found out is known at once.
        let (files, of_files) = pair.copy_anew(&env).await;
        if carried * 10 < read * 9 && of_files * 10 < files * 9 {
            break;
        }
        assert!(
            tries < TRIES && !env.is_virtual(),
            "{carried} bytes came for {read} of operations, {of_files} for {files} of files"
        );
    }
}

/// In the virtual world alone: how fast bytes come there does not depend on who else uses the machine.
#[test]
fn auto_leaves_bytes_alone_that_come_anyway() {
    world::virtual_world::run(3, |env| async move {
        let pair = pair_of(&env, (1, 1), (0, 2_000_000_000), (0, 100)).await;
        pair.begin_with_auto(&env).await;
        let (read, carried, _) = pair.catch_up(&env).await;
        assert!(carried > read * 9 / 10, "{carried} bytes came for {read}");
        pair.stop().await;
    });
}
