//! What the tests of copies share: both worlds, small documents, a generator of numbers.
#![allow(dead_code, reason = "the tools of rest use a part of it")]

use query::Mapping;

use std::path::{Path, PathBuf};

use bytes::Bytes;
use serde_json::{Value, json};
use store::{
    Chunk, Commit, Incoming, Options, Result, Shard, Snapshot, WriteOutcome, WriteRequest,
};
use world::Env;

/// Runs the same body on real files and in the virtual world.
#[macro_export]
macro_rules! in_both_worlds {
    ($($name:ident),+ $(,)?) => {
        mod on_real_files {
            $(#[test] fn $name() { $crate::common::on_real_files(super::$name) })+
        }
        mod in_the_virtual_world {
            $(#[test] fn $name() { world::virtual_world::run(7, |env| super::$name(env, "/data".into())) })+
        }
    };
}

/// Runs a test on real files, in a directory that goes with it.
pub fn on_real_files(test: impl AsyncFnOnce(Env, PathBuf)) {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().to_owned();
    world::real_world::run(7, |env| test(env, dir));
}

/// Numbers from a seed.
pub struct Numbers(pub u64);

impl Numbers {
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            items.swap(at, self.below(at as u64 + 1) as usize);
        }
    }

    /// Text that does not compress.
    pub fn noise(&mut self, bytes: usize) -> String {
        const LETTERS: &[u8; 64] =
            b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
        (0..bytes).map(|_| char::from(LETTERS[self.below(64) as usize])).collect()
    }
}

pub fn mapping() -> Mapping {
    Mapping::parse(&json!({"properties": {
        "location": {"type": "geo_point"}, "n": {"type": "long"}, "text": {"type": "text"}
    }}))
    .unwrap()
}

pub async fn create(env: &Env, dir: &Path) -> Shard {
    Shard::create(env, dir, &mapping(), Options::default()).await.unwrap()
}

pub async fn open(env: &Env, dir: &Path) -> Result<Shard> {
    Shard::open(env, dir, &mapping(), Options::default()).await
}

pub fn source(n: u64) -> Bytes {
    Bytes::from(format!("{{\"location\":[{}.5,{}.25],\"n\":{n}}}", n % 180, n % 90))
}

pub fn document(id: &str, source: &Value) -> WriteRequest {
    WriteRequest::index(id.into(), Bytes::from(source.to_string()))
}

pub fn put(id: &str, n: u64) -> WriteRequest {
    WriteRequest::index(id.into(), source(n))
}

pub fn append(id: &str, n: u64) -> WriteRequest {
    WriteRequest::append(id.into(), source(n))
}

pub fn delete(id: &str) -> WriteRequest {
    WriteRequest::Delete { id: id.into(), routing: None }
}

/// Outcomes of writes that must all be accepted.
pub async fn write(shard: &Shard, requests: Vec<WriteRequest>) -> Vec<WriteOutcome> {
    let results = shard.index(requests).await.unwrap();
    results.into_iter().map(|result| result.unwrap().1).collect()
}

/// A shard with 500 documents, some updated, some deleted, in several segments.
pub async fn sample(env: &Env, dir: &Path) -> Shard {
    let shard = create(env, dir).await;
    for first in (0..500).step_by(100) {
        write(&shard, (first..first + 100).map(|n| append(&format!("id{n}"), n)).collect()).await;
        shard.refresh().await.unwrap();
    }
    write(&shard, (0..50).map(|n| put(&format!("id{}", n * 3), n + 1000)).collect()).await;
    write(&shard, (0..20).map(|n| delete(&format!("id{}", n * 7))).collect()).await;
    shard.flush().await.unwrap();
    shard
}

/// Copies every file that is not there yet, in chunks in a shuffled order.
pub async fn copy_files(
    snapshot: &Snapshot,
    incoming: &Incoming,
    chunk: u64,
    seed: u64,
) -> Result<u64> {
    let mut numbers = Numbers(seed);
    let mut copied = 0;
    for (file, have) in incoming.have() {
        if incoming.is_finished(file) {
            continue;
        }
        let len = snapshot.commit().files[file].len;
        let mut offsets: Vec<u64> = (have..len).step_by(chunk as usize).collect();
        numbers.shuffle(&mut offsets);
        for offset in offsets {
            let piece: Chunk = snapshot.read_chunk(file, offset, chunk).await?;
            copied += piece.len();
            incoming.write_chunk(file, offset, piece).await?;
        }
        incoming.finish_file(file).await?;
    }
    Ok(copied)
}

/// A whole recovery into `dir`.
pub async fn recover(env: &Env, from: &Shard, dir: &Path, chunk: u64) -> (Shard, Commit) {
    let snapshot = from.snapshot("recovery/1").await.unwrap();
    let commit = snapshot.commit().clone();
    let incoming = Incoming::begin(env, dir, commit.clone()).await.unwrap();
    copy_files(&snapshot, &incoming, chunk, 3).await.unwrap();
    (incoming.install(&mapping(), Options::default()).await.unwrap(), commit)
}
