//! How fast a copy indexes small documents, and what its files take.
//!
//! `cargo bench -p store --bench index_speed -- [documents] [directory]`

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use query::Mapping;
use serde_json::json;
use store::{Options, Shard, WriteRequest};
use world::real_world;

const BATCH: u64 = 5000;

/// A document of one point, 30 to 42 bytes, spread over a city.
fn point(n: u64) -> Bytes {
    let spread = |n: u64| (n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as f64 / (1 << 24) as f64;
    let (lon, lat) = (-0.5 + spread(n), 51.3 + spread(n + (1 << 40)) * 0.4);
    Bytes::from(format!("{{\"location\":[{lon:.7},{lat:.7}]}}"))
}

/// 20 characters: a node's part and a counter, as generated ids have.
fn id(n: u64) -> Arc<str> {
    Arc::from(format!("k3Xw9aQz{n:012x}"))
}

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|word| !word.starts_with("--"));
    let documents: u64 = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(1_000_000);
    let scratch = tempfile::tempdir().expect("a temporary directory");
    let dir = arguments.next().map_or(scratch.path().join("copy"), Into::into);
    real_world::run(1, |env| async move {
        let mapping = json!({"properties": {"location": {"type": "geo_point"}}});
        let mapping = Mapping::parse(&mapping).expect("a sound mapping");
        let shard = Shard::create(&env, &dir, &mapping, Options::default()).await.expect("created");
        let (began, cpu) = (Instant::now(), env.cpu_time());
        let said = |what: &str| {
            let (seconds, cores) = (began.elapsed().as_secs_f64(), env.cpu_time() - cpu);
            let of = |s: f64| documents as f64 / s / 1000.0;
            println!(
                "{what:>8}: {seconds:6.2} s, {:5.0} k documents/s, {:5.0} k a core second",
                of(seconds),
                of(cores.as_secs_f64())
            );
        };
        for first in (0..documents).step_by(BATCH as usize) {
            let requests = (first..documents.min(first + BATCH))
                .map(|n| WriteRequest::append(id(n), point(n)));
            let results = shard.index(requests.collect()).await.expect("indexed");
            assert!(results.iter().all(Result::is_ok));
        }
        said("indexed");
        shard.sync().await.expect("synced");
        said("synced");
        let commit = shard.flush().await.expect("flushed");
        said("flushed");
        let digest = shard.digest().await.expect("read");
        said("digested");
        assert_eq!((digest.documents, shard.stats().documents), (documents, documents));
        shard.force_merge(1).await.expect("merged");
        said("merged");
        let merged = shard.flush().await.expect("flushed");
        assert_eq!(shard.digest().await.expect("read"), digest);
        println!("{:?}", shard.stats());
        for file in merged.files.iter() {
            let each = file.len as f64 / documents as f64;
            println!("{:>60} {:>12} bytes, {each:6.2} a document", file.name, file.len);
        }
        println!("first commit: {} files, {} bytes", commit.files.len(), commit.bytes());
        shard.close().await.expect("closed");
        let began = Instant::now();
        let shard = Shard::open(&env, &dir, &mapping, Options::default()).await.expect("opened");
        println!("opened in {:.3} s: {:?}", began.elapsed().as_secs_f64(), shard.opened());
    });
}
