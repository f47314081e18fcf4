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
pub(crate) const OPERATION_BYTES_MAX: u64 = 128 << 20;
/// Operations that travel in one message, so that with one operation of any size they fit into a frame (256 MiB).
pub(crate) const OPERATIONS_AT_ONCE_BYTES: u64 = 64 << 20;

/// Bytes of operations to put into a message where so many are asked for; a message of the virtual world has no bound.
pub(crate) fn bytes_at_once(env: &Env, asked: u64) -> u64 {
    if env.is_virtual() { asked } else { asked.min(OPERATIONS_AT_ONCE_BYTES) }
}

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

    /// The operations, where they claim to be no more than were asked for: so many, of so many bytes and one of any
    /// size.
    pub async fn unpack(
        self,
        env: &Env,
        (asked_ops, asked_bytes): (u64, u64),
    ) -> Result<Vec<Operation>> {
        let refused = |reason: String| Err(Failure::new(500, "transport_exception", reason));
        match self {
            Operations::Plain(ops) => Ok(Arc::unwrap_or_clone(ops)),
            Operations::Packed { plain_bytes, .. }
                if plain_bytes > asked_bytes.saturating_add(OPERATION_BYTES_MAX) =>
            {
                refused(format!(
                    "packed operations claim to be {plain_bytes} bytes; {asked_bytes} were asked for"
                ))
            }
            Operations::Packed { bytes, plain_bytes } => {
                let plain = decompress(env, Chunk::Bytes(bytes), plain_bytes, 0).await?;
                let plain = plain.bytes().cloned().unwrap_or_default();
                // Four bytes may say one, which takes a hundred once it is read.
                let count =
                    postcard::take_from_bytes(&plain).map_or(0, |(count, _): (u64, _)| count);
                if count > asked_ops.max(1) {
                    return refused(format!(
                        "packed operations claim to be {count}; {asked_ops} were asked for"
                    ));
                }
                match store::received::from_bytes(&plain) {
                    Ok(Unpacked(ops)) => Ok(Arc::unwrap_or_clone(ops)),
                    Err(error) => refused(format!("packed operations cannot be read: {error}")),
                }
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

#[cfg(test)]
mod tests {
    use super::*;

    async fn asked(env: Env) -> [u64; 2] {
        [1, u64::MAX].map(|bytes| bytes_at_once(&env, bytes))
    }

    #[test]
    fn what_is_asked_for_at_once_fits_into_a_frame() {
        assert_eq!(world::virtual_world::run(7, asked), [1, u64::MAX]);
        let [few, all] = world::real_world::run(7, asked);
        assert_eq!(few, 1);
        assert!(all + OPERATION_BYTES_MAX < world::MAX_HEAD_BYTES as u64);
    }
}
