//! Checksums, copies of memory, compression.

use std::hint::black_box;
use std::time::Duration;

use bytes::Bytes;
use engine::transport::{decompress, maybe_compress};
use store::Chunk;
use world::Env;

use super::clock::process_time;
use super::measurement::{Measurement, failed, named};
use crate::error::Result;

/// More than caches hold, so that memory counts as it does in a transfer.
const MEMORY_BYTES: usize = 64 << 20;
/// A piece of it, the size of a chunk.
const PIECE_BYTES: usize = 1 << 20;
/// A lap goes on for at least so much core time.
const LAP: Duration = Duration::from_millis(200);
/// Numbers of the codecs in a request for a chunk.
const LZ4: u8 = 1;
const ZSTD: u8 = 2;

/// Measures all of them; `chunks` are of real segment files.
pub(super) async fn measure(env: &Env, chunks: &[Bytes], laps: u32) -> Result<Vec<Measurement>> {
    let memory: Vec<u8> = chunks.iter().flatten().copied().cycle().take(MEMORY_BYTES).collect();
    let mut hash = named(
        "cores.hash_bytes_per_s",
        "CRC-32C twice and XXH3 once over 1 MiB pieces, as a recovery does for each byte",
    );
    let mut copy = named("cores.copy_bytes_per_s", "copies of 1 MiB pieces");
    let mut lz4 = named("cores.lz4_bytes_per_s", "1 MiB chunks of segment files of web logs");
    let mut zstd = named("cores.zstd_bytes_per_s", "the same chunks, level 1");
    let mut speedup = named("cores.decompress_speedup", "lz4: decompressing over compressing");
    let mut target = vec![0; PIECE_BYTES];
    for _ in 0..laps {
        hash.laps.push(rate(&memory, 3, |piece| {
            black_box(crc32c::crc32c(black_box(piece)));
            black_box(crc32c::crc32c(black_box(piece)));
            black_box(xxhash_rust::xxh3::xxh3_64(piece));
        }));
        copy.laps.push(rate(&memory, 1, |piece| {
            black_box(&mut target)[..piece.len()].copy_from_slice(black_box(piece));
        }));
        let (packing, unpacking) = codec_rates(env, chunks, LZ4).await?;
        lz4.laps.push(packing);
        speedup.laps.push(unpacking / packing);
        zstd.laps.push(codec_rates(env, chunks, ZSTD).await?.0);
    }
    Ok(vec![hash, copy, lz4, zstd, speedup])
}

/// Bytes that one pass over the memory handles a second, where `each` passes so many times.
fn rate(memory: &[u8], passes: u32, mut each: impl FnMut(&[u8])) -> f64 {
    let (began, mut bytes) = (process_time(), 0);
    while process_time() - began < LAP {
        memory.chunks(PIECE_BYTES).for_each(&mut each);
        bytes += memory.len();
    }
    bytes as f64 * f64::from(passes) / (process_time() - began).as_secs_f64()
}

/// Plain bytes a second, compressing and decompressing as a source and a target of a recovery do.
async fn codec_rates(env: &Env, chunks: &[Bytes], codec: u8) -> Result<(f64, f64)> {
    let (mut packing, mut unpacking) = (Duration::ZERO, Duration::ZERO);
    let (mut packed_bytes, mut unpacked_bytes) = (0, 0);
    while packing < LAP {
        for chunk in chunks {
            let began = process_time();
            let (packed, _, plain_len) =
                maybe_compress(env, Chunk::Bytes(chunk.clone()), codec).await;
            packing += process_time() - began;
            packed_bytes += chunk.len();
            // One that did not become smaller travels as it is.
            let Some(plain_len) = plain_len else { continue };
            let began = process_time();
            let plain = decompress(env, packed, plain_len, codec).await;
            unpacking += process_time() - began;
            unpacked_bytes += chunk.len();
            let plain = plain.map_err(|error| failed("decompress a chunk", error))?;
            if plain.bytes() != Some(chunk) {
                return Err(failed("decompress a chunk", "it came out different"));
            }
        }
    }
    if unpacked_bytes == 0 {
        return Err(failed("compress segment files", "none of them became smaller"));
    }
    let rate = |bytes: usize, time: Duration| bytes as f64 / time.as_secs_f64();
    Ok((rate(packed_bytes, packing), rate(unpacked_bytes, unpacking)))
}
