//! Parsing and indexing, on real copies.
//!
//! What a document costs is a fixed part and a part for its bytes: both are fitted to three corpora, whose
//! documents have 40 to 500 bytes.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use query::Mapping;
use serde_json::{Value, json};
use store::{Options, Shard, WriteRequest};
use world::Env;

use super::clock::process_time;
use super::measurement::{Measurement, failed, named};
use crate::corpus::Corpus;
use crate::error::Result;

/// Corpora, and documents of each in a lap.
const CORPORA: [(Corpus, u64); 3] =
    [(Corpus::Geopoint, 200_000), (Corpus::HttpLogs, 100_000), (Corpus::Nginx, 40_000)];
/// Debug builds are tested, not measured.
const SHRINK: u64 = if cfg!(debug_assertions) { 40 } else { 1 };
const BATCH: usize = 5000;
const SEED: u64 = 42;
/// Chunks of segment files that are handed on, at most.
const CHUNKS: usize = 16;
const CHUNK_BYTES: u64 = 1 << 20;
/// A field at the end of a document that makes it be refused, after all of it was read.
const REFUSED: &str = "narrows_refused";

/// Measures parsing and indexing; answers chunks of the segment files of web logs besides.
pub(super) async fn measure(
    env: &Env,
    dir: &Path,
    laps: u32,
) -> Result<(Vec<Measurement>, Vec<Bytes>)> {
    let mut parse = named(
        "cores.parse_bytes_per_s",
        "access logs of 500 bytes a document, read against their mapping",
    );
    let mut document = named(
        "cores.index_document",
        "fitted to geopoint, http_logs and nginx documents, less parsing: log, index, refresh, merges",
    );
    let mut bytes = named("cores.index_bytes_per_s", "the same fit");
    let mut chunks = Vec::new();
    for lap in 0..laps {
        let parse_s = parse_seconds_a_byte(env, &dir.join(format!("parse-{lap}"))).await?;
        parse.laps.push(1.0 / parse_s);
        let mut points = Vec::new();
        for (corpus, count) in CORPORA {
            let copy = dir.join(format!("{}-{lap}", corpus.name()));
            let shard = create(env, &copy, &corpus.mapping()).await?;
            let sources = documents(corpus, count / SHRINK);
            let total: usize = sources.iter().map(Bytes::len).sum();
            let core_time = index(&shard, sources).await?;
            let seconds = core_time.as_secs_f64() - parse_s * total as f64;
            points.push((count as f64 / SHRINK as f64, total as f64, seconds));
            if corpus == Corpus::HttpLogs && chunks.is_empty() {
                chunks = segment_chunks(&shard).await?;
            }
            shard.close().await.map_err(|error| failed("close a copy", error))?;
            // Only this measurement's own files; those of a copy that is closing yet go with the directory.
            let _ = std::fs::remove_dir_all(&copy);
        }
        let (a_document, a_byte) = fit(&points);
        document.laps.push(a_document);
        bytes.laps.push(1.0 / a_byte);
    }
    Ok((vec![parse, document, bytes], chunks))
}

async fn create(env: &Env, dir: &Path, mapping: &Value) -> Result<Shard> {
    let mapping = Mapping::parse(mapping).map_err(|error| failed("read a mapping", error))?;
    let made = Shard::create(env, dir, &mapping, Options::default()).await;
    made.map_err(|error| failed("make a copy", error))
}

fn documents(corpus: Corpus, count: u64) -> Vec<Bytes> {
    let mut lines = Vec::new();
    corpus.documents(SEED, 0, count, &mut lines);
    let lines = Bytes::from(lines);
    let each = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    each.map(|line| lines.slice_ref(line)).collect()
}

fn requests(sources: &[Bytes], first: usize) -> Vec<WriteRequest> {
    let request = |(n, source): (usize, &Bytes)| {
        // As long as generated ids are.
        let id = Arc::from(format!("k3Xw9aQz{:012x}", first + n));
        WriteRequest::append(id, source.clone())
    };
    sources.iter().enumerate().map(request).collect()
}

/// Core time of indexing documents until a search finds them.
async fn index(shard: &Shard, sources: Vec<Bytes>) -> Result<Duration> {
    let what = |error| failed("index documents", error);
    let mut used = Duration::ZERO;
    for (batch, sources) in sources.chunks(BATCH).enumerate() {
        let requests = requests(sources, batch * BATCH);
        let began = process_time();
        let results = shard.index(requests).await.map_err(what)?;
        used += process_time() - began;
        if let Some(rejection) = results.into_iter().find_map(Result::err) {
            return Err(failed("index documents", rejection));
        }
    }
    let began = process_time();
    shard.sync().await.map_err(what)?;
    shard.refresh().await.map_err(what)?;
    Ok(used + (process_time() - began))
}

/// Core time of reading a byte of a document against its mapping: of whole documents that are refused at
/// their end, less that of documents with nothing before that end.
async fn parse_seconds_a_byte(env: &Env, dir: &Path) -> Result<f64> {
    let mut mapping = Corpus::Nginx.mapping();
    mapping["properties"][REFUSED] = json!({"type": "long"});
    let shard = create(env, dir, &mapping).await?;
    let (_, count) = CORPORA[2];
    let whole = documents(Corpus::Nginx, count / SHRINK);
    let ending = format!("\"{REFUSED}\":\"no\"}}");
    let refused_at_end = |source: &Bytes| {
        let kept = &source[..source.len() - 1];
        Bytes::from([kept, b",", ending.as_bytes()].concat())
    };
    let long: Vec<Bytes> = whole.iter().map(refused_at_end).collect();
    let short = vec![Bytes::from(format!("{{{ending}")); long.len()];
    let bytes = |sources: &[Bytes]| sources.iter().map(Bytes::len).sum::<usize>();
    let more_bytes = bytes(&long) - bytes(&short);
    let more = refuse(&shard, &long).await?.saturating_sub(refuse(&shard, &short).await?);
    shard.close().await.map_err(|error| failed("close a copy", error))?;
    Ok(more.as_secs_f64().max(1e-9) / more_bytes as f64)
}

async fn refuse(shard: &Shard, sources: &[Bytes]) -> Result<Duration> {
    let mut used = Duration::ZERO;
    for sources in sources.chunks(BATCH) {
        let requests = requests(sources, 0);
        let began = process_time();
        let results = shard.index(requests).await;
        used += process_time() - began;
        let results = results.map_err(|error| failed("read documents", error))?;
        if results.iter().any(Result::is_ok) {
            let why = "a document was indexed that does not fit its mapping";
            return Err(failed("read documents", why));
        }
    }
    Ok(used)
}

/// The cost of a document and of a byte that fit (documents, bytes, seconds) best: least squares of the
/// relative errors. Neither is below a thousandth of what the points allow at most.
fn fit(points: &[(f64, f64, f64)]) -> (f64, f64) {
    let most = |quantity: fn(&(f64, f64, f64)) -> f64| {
        points.iter().map(|point| point.2.max(1e-9) / quantity(point)).fold(f64::MAX, f64::min)
    };
    let (most_a_document, most_a_byte) = (most(|p| p.0), most(|p| p.1));
    let (mut dd, mut db, mut bb, mut d, mut b) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for (documents, bytes, seconds) in points {
        let (x, y) = (documents / seconds.max(1e-9), bytes / seconds.max(1e-9));
        (dd, db, bb) = (dd + x * x, db + x * y, bb + y * y);
        (d, b) = (d + x, b + y);
    }
    let determinant = dd * bb - db * db;
    let (a_document, a_byte) = if determinant.abs() > 1e-12 * dd * bb {
        ((d * bb - b * db) / determinant, (b * dd - d * db) / determinant)
    } else {
        (0.0, b / bb)
    };
    let within = |value: f64, most: f64| value.clamp(most * 1e-3, most);
    (within(a_document, most_a_document), within(a_byte, most_a_byte))
}

/// Chunks of the committed files, largest files first, as a recovery reads them.
async fn segment_chunks(shard: &Shard) -> Result<Vec<Bytes>> {
    let what = |error| failed("read segment files", error);
    shard.flush().await.map_err(what)?;
    let snapshot = shard.snapshot("calibration").await.map_err(what)?;
    let mut files: Vec<(usize, u64)> =
        snapshot.commit().files.iter().map(|file| file.len).enumerate().collect();
    files.sort_by_key(|(_, len)| std::cmp::Reverse(*len));
    let mut chunks = Vec::new();
    for (file, len) in files {
        for offset in (0..len).step_by(CHUNK_BYTES as usize) {
            if chunks.len() == CHUNKS {
                return Ok(chunks);
            }
            let chunk = snapshot.read_chunk(file, offset, CHUNK_BYTES).await.map_err(what)?;
            chunks.extend(chunk.bytes().cloned());
        }
    }
    Ok(chunks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fit_finds_what_made_the_points() {
        let point =
            |documents: f64, bytes: f64| (documents, bytes, documents * 2e-6 + bytes * 1e-8);
        let (a_document, a_byte) = fit(&[point(1e5, 4e6), point(5e4, 7e6), point(2e4, 1e7)]);
        assert!((a_document / 2e-6 - 1.0).abs() < 1e-6, "{a_document}");
        assert!((a_byte / 1e-8 - 1.0).abs() < 1e-6, "{a_byte}");
        // Noise that would make one of them negative does not.
        let (a_document, a_byte) = fit(&[(1e5, 4e6, 0.04), (5e4, 7e6, 0.08), (2e4, 1e7, 0.14)]);
        assert!(a_document > 0.0 && a_byte > 0.0);
    }
}
