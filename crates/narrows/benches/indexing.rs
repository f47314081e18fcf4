//! Documents a second through `_bulk`, server and driver on one machine, against the store alone.
//!
//! `cargo bench -p narrows --bench indexing`; NARROWS_DOCUMENTS sets the size.

mod common;

use std::sync::Arc;
use std::time::Instant;

use clusters::Clusters;
use lab::corpus::Corpus;
use query::Mapping;
use store::{Options, Shard, WriteRequest};
use testbed::bench::Table;
use world::Env;

const BULK: u64 = 5000;
const CLIENTS: u32 = 4;

const TABLE: Table = Table { page: "indexing", name: "measured", columns: &["", "documents/s"] };

fn main() {
    let documents = common::sized("NARROWS_DOCUMENTS", 2_000_000);
    world::real_world::run(1, async |env| {
        let alone = store_alone(&env, documents / 4).await;
        let mut target = common::start(&env, &[("c", 1)], None).await;
        common::create(&target, "c", Corpus::Geopoint, 2).await;
        common::index(&target, "c", Corpus::Geopoint, documents / 10, CLIENTS, BULK).await;
        let took = common::index(&target, "c", Corpus::Geopoint, documents, CLIENTS, BULK).await;
        target.stop().await;
        let through = documents as f64 / took.as_secs_f64();
        TABLE.begin();
        TABLE.row(&["the store alone, one shard, no HTTP", &format!("{alone:.0}")]);
        TABLE.row(&["through `_bulk`", &format!("{through:.0}")]);
        TABLE.row(&["ratio", &format!("{:.2}", through / alone)]);
    });
}

/// The same documents straight into a shard: one writer, a sync for each bulk.
async fn store_alone(env: &Env, documents: u64) -> f64 {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let mapping = Mapping::parse(&Corpus::Geopoint.mapping()).expect("the corpus has a mapping");
    let shard = Shard::create(env, &dir.path().join("shard"), &mapping, Options::default()).await;
    let shard = shard.expect("a shard");
    let began = Instant::now();
    let mut text = Vec::new();
    for first in (0..documents).step_by(BULK as usize) {
        text.clear();
        Corpus::Geopoint.documents(42, first, BULK.min(documents - first), &mut text);
        let bytes = bytes::Bytes::copy_from_slice(&text);
        let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let requests = lines.enumerate().map(|(n, line)| {
            WriteRequest::append(
                Arc::from(format!("{:020}", first + n as u64)),
                bytes.slice_ref(&bytes[offset(&text, line)..offset(&text, line) + line.len()]),
            )
        });
        shard.index(requests.collect()).await.expect("it is indexed");
        shard.sync().await.expect("it is synced");
    }
    let rate = documents as f64 / began.elapsed().as_secs_f64();
    shard.close().await.expect("it closes");
    rate
}

fn offset(text: &[u8], line: &[u8]) -> usize {
    line.as_ptr() as usize - text.as_ptr() as usize
}
