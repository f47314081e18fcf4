//! `transport.compress`: lz4 or zstd of a chunk's bytes.

use bytes::Bytes;
use store::Chunk;
use world::{Codec, Env, Work};

use super::{Failure, Result};

/// The codec of a request's `compress` field; none is plain.
pub(crate) fn codec(number: u8) -> Option<Codec> {
    match number {
        1 => Some(Codec::Lz4),
        2 => Some(Codec::Zstd),
        _ => None,
    }
}

/// Compresses a chunk where that is asked for and makes it smaller; answers its length on the wire and its
/// plain length if it was compressed. The first byte of compressed bytes names the codec.
pub async fn maybe_compress(env: &Env, chunk: Chunk, number: u8) -> (Chunk, u64, Option<u64>) {
    let len = chunk.len();
    let Some(codec) = codec(number) else { return (chunk, len, None) };
    let work = Work::Compress { bytes: len, codec };
    let Chunk::Bytes(plain) = chunk else {
        // The virtual world's files hold no bytes: text-like segment files compress to about 0.6.
        env.work(work, || ()).await;
        let wire = len * 6 / 10;
        return (chunk, wire, Some(len));
    };
    let source = plain.clone();
    let packed = env.work(work, move || pack(&source, codec, number)).await;
    match packed {
        Some(packed) if packed.len() < plain.len() => {
            let wire = packed.len() as u64;
            (Chunk::Bytes(packed), wire, Some(len))
        }
        _ => (Chunk::Bytes(plain), len, None),
    }
}

fn pack(plain: &[u8], codec: Codec, number: u8) -> Option<Bytes> {
    let mut packed = vec![number];
    match codec {
        Codec::Lz4 => packed.extend_from_slice(&lz4_flex::block::compress(plain)),
        Codec::Zstd => packed.extend_from_slice(&zstd::bulk::compress(plain, 1).ok()?),
    }
    Some(Bytes::from(packed))
}

/// The plain bytes of a chunk that was compressed, `plain_len` at most. The first byte names the codec; a chunk of the
/// virtual world has no bytes, so that `asked` names it.
pub async fn decompress(env: &Env, chunk: Chunk, plain_len: u64, asked: u8) -> Result<Chunk> {
    let Chunk::Bytes(packed) = chunk else {
        if let Some(codec) = codec(asked) {
            env.work(Work::Decompress { bytes: plain_len, codec }, || ()).await;
        }
        return Ok(chunk);
    };
    let number = packed.first().copied().unwrap_or(0);
    let bad = || Failure::new(500, "transport_exception", "a compressed chunk cannot be read");
    let codec = codec(number).ok_or_else(bad)?;
    let len = usize::try_from(plain_len).ok().filter(|len| *len <= 1 << 30).ok_or_else(bad)?;
    let work = Work::Decompress { bytes: plain_len, codec };
    let plain = env.work(work, move || match codec {
        Codec::Lz4 => lz4_flex::block::decompress(&packed[1..], len).ok(),
        Codec::Zstd => zstd::bulk::decompress(&packed[1..], len).ok(),
    });
    plain.await.map(|bytes| Chunk::Bytes(Bytes::from(bytes))).ok_or_else(bad)
}
