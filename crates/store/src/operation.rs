//! One operation on a shard: what the log holds, and what replicas and followers are sent.

use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// One operation, with the place in the shard's history that its primary gave it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operation {
    /// Place in the shard's history, from 0, without gaps.
    pub seq_no: u64,
    /// Version of the document, from 1.
    pub version: u64,
    /// `_id` of the document; empty for [`OpKind::NoOp`].
    pub id: Arc<str>,
    /// What is done.
    pub kind: OpKind,
}

/// What an operation does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OpKind {
    /// Creates or replaces a document.
    Index {
        /// `_source`, a JSON object.
        source: Bytes,
        /// Whether the id was generated, so that no earlier document can have it.
        auto_id: bool,
    },
    /// Deletes a document.
    Delete,
    /// Does nothing, but takes a place in the history.
    NoOp,
}

const INDEX: u8 = 1;
const INDEX_AUTO_ID: u8 = 2;
const DELETE: u8 = 3;
const NO_OP: u8 = 4;
/// kind, seq_no, version, length of the id.
const FIXED_BYTES: usize = 1 + 8 + 8 + 4;

impl Operation {
    /// An operation that only fills a gap in the history.
    pub fn no_op(seq_no: u64) -> Self {
        Operation { seq_no, version: 1, id: Arc::from(""), kind: OpKind::NoOp }
    }

    /// Bytes of the document's source; 0 where there is none.
    pub fn source_bytes(&self) -> u64 {
        match &self.kind {
            OpKind::Index { source, .. } => source.len() as u64,
            OpKind::Delete | OpKind::NoOp => 0,
        }
    }

    /// Bytes that the operation takes in the log and, about, in a message.
    pub fn encoded_bytes(&self) -> u64 {
        crate::frame::framed_bytes(FIXED_BYTES + self.id.len()) as u64 + self.source_bytes()
    }

    /// Appends the log's encoding: kind, seq_no, version, id length, id, source; little endian.
    pub(crate) fn encode(&self, buffer: &mut Vec<u8>) {
        let (kind, source): (u8, &[u8]) = match &self.kind {
            OpKind::Index { source, auto_id: false } => (INDEX, source),
            OpKind::Index { source, auto_id: true } => (INDEX_AUTO_ID, source),
            OpKind::Delete => (DELETE, &[]),
            OpKind::NoOp => (NO_OP, &[]),
        };
        buffer.push(kind);
        buffer.extend_from_slice(&self.seq_no.to_le_bytes());
        buffer.extend_from_slice(&self.version.to_le_bytes());
        buffer.extend_from_slice(&(self.id.len() as u32).to_le_bytes());
        buffer.extend_from_slice(self.id.as_bytes());
        buffer.extend_from_slice(source);
    }

    /// Reads the log's encoding; none if `payload` is no operation.
    pub(crate) fn decode(payload: &[u8]) -> Option<Self> {
        let head = payload.get(..FIXED_BYTES)?;
        let number = |at: usize| u64::from_le_bytes(head[at..at + 8].try_into().expect("8 bytes"));
        let id_len = u32::from_le_bytes(head[17..21].try_into().expect("4 bytes")) as usize;
        let id = payload.get(FIXED_BYTES..FIXED_BYTES + id_len)?;
        let id = Arc::from(std::str::from_utf8(id).ok()?);
        let source = || Bytes::copy_from_slice(&payload[FIXED_BYTES + id_len..]);
        let kind = match head[0] {
            INDEX => OpKind::Index { source: source(), auto_id: false },
            INDEX_AUTO_ID => OpKind::Index { source: source(), auto_id: true },
            DELETE => OpKind::Delete,
            NO_OP => OpKind::NoOp,
            _ => return None,
        };
        Some(Operation { seq_no: number(1), version: number(9), id, kind })
    }

    /// Whether `payload` could be an operation, judged by its first bytes.
    pub(crate) fn plausible(payload: &[u8]) -> bool {
        payload.len() >= FIXED_BYTES
            && (INDEX..=NO_OP).contains(&payload[0])
            && payload[7] == 0
            && payload[8] == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_encodings_give_back_what_was_put_in() {
        let source = Bytes::from_static(b"{\"location\":[-0.14,51.52]}");
        let kinds = [
            OpKind::Index { source: source.clone(), auto_id: false },
            OpKind::Index { source, auto_id: true },
            OpKind::Delete,
            OpKind::NoOp,
        ];
        for kind in kinds {
            let op = Operation { seq_no: 7, version: 3, id: Arc::from("dröhn"), kind };
            let mut buffer = Vec::new();
            op.encode(&mut buffer);
            assert!(Operation::plausible(&buffer));
            assert_eq!(Operation::decode(&buffer).as_ref(), Some(&op));
            assert_eq!(crate::frame::framed_bytes(buffer.len()) as u64, op.encoded_bytes());
            let wire = postcard::to_stdvec(&op).unwrap();
            assert_eq!(postcard::from_bytes::<Operation>(&wire).unwrap(), op);
        }
    }

    #[test]
    fn what_is_no_operation_is_refused() {
        assert_eq!(Operation::decode(&[9; 40]), None);
        assert_eq!(Operation::decode(&[1; 5]), None);
        let mut buffer = Vec::new();
        Operation::no_op(1).encode(&mut buffer);
        buffer[17] = 200;
        assert_eq!(Operation::decode(&buffer), None);
    }
}
