//! Operations on their way to a follower, compressed where that is asked for.

use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use store::{Chunk, Operation};
use world::Env;

use super::compress::{decompress, maybe_compress};
use super::{Failure, Result};

/// Operations, plain or packed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Operations {
    /// As they are.
    Plain(#[serde(with = "store::sent")] Arc<Vec<Operation>>),
    /// Compressed; the first byte names the codec.
    Packed {
        /// What the codec made of them.
        bytes: Bytes,
        /// Length before.
        plain_bytes: u64,
    },
}

/// More than one operation takes: a body of 100 MB.
const OPERATION_BYTES_MAX: u64 = 128 << 20;

/// What is packed.
#[derive(Serialize, Deserialize)]
struct Unpacked(#[serde(with = "store::sent")] Arc<Vec<Operation>>);

impl Operations {
    /// Packs operations with the codec of a request's `compress` field, unless that makes them larger.
    pub async fn pack(env: &Env, ops: Vec<Operation>, compress: u8) -> Operations {
        if compress == 0 || ops.is_empty() {
            return Operations::Plain(Arc::new(ops));
        }
        let ops = Unpacked(Arc::new(ops));
        let plain = postcard::to_stdvec(&ops).expect("operations are plain data");
        match maybe_compress(env, Chunk::Bytes(Bytes::from(plain)), compress).await {
            (Chunk::Bytes(bytes), _, Some(plain_bytes)) => {
                Operations::Packed { bytes, plain_bytes }
            }
            _ => Operations::Plain(ops.0),
        }
    }

    /// The operations, where they claim to be no more than `asked_bytes` and one of any size.
    pub async fn unpack(self, env: &Env, asked_bytes: u64) -> Result<Vec<Operation>> {
        match self {
            Operations::Plain(ops) => Ok(Arc::unwrap_or_clone(ops)),
            Operations::Packed { plain_bytes, .. }
                if plain_bytes > asked_bytes.saturating_add(OPERATION_BYTES_MAX) =>
            {
                let reason = format!(
                    "packed operations claim to be {plain_bytes} bytes; {asked_bytes} were asked for"
                );
                Err(Failure::new(500, "transport_exception", reason))
            }
            Operations::Packed { bytes, plain_bytes } => {
                let plain = decompress(env, Chunk::Bytes(bytes), plain_bytes, 0).await?;
                let plain = plain.bytes().cloned().unwrap_or_default();
                let Unpacked(ops) = postcard::from_bytes(&plain).map_err(|error| {
                    let reason = format!("packed operations cannot be read: {error}");
                    Failure::new(500, "transport_exception", reason)
                })?;
                Ok(Arc::unwrap_or_clone(ops))
            }
        }
    }

    /// Bytes on the wire, about.
    pub fn wire_bytes(&self) -> u64 {
        match self {
            Operations::Plain(ops) => ops_bytes(ops),
            Operations::Packed { bytes, .. } => bytes.len() as u64,
        }
    }
}

/// Bytes of operations in a message.
pub(super) fn ops_bytes(ops: &[Operation]) -> u64 {
    ops.iter().map(Operation::encoded_bytes).sum()
}
