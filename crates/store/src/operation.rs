//! One operation on a shard: what the log holds, and what replicas and followers are sent.
//!
//! In the virtual world one operation may stand for a batch of new documents, so that billions of them cost no
//! more than the requests that brought them.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::digest::short_document_hash;

/// One operation, with the place in the shard's history that its primary gave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Place in the shard's history, from 0, without gaps.
    pub seq_no: u64,
    /// Version of the document: from 1, or as clients count.
    pub version: u64,
    /// `_id` of the document; empty for [`OpKind::NoOp`].
    pub id: Arc<str>,
    /// What is done.
    pub kind: OpKind,
}

/// What an operation does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpKind {
    /// Creates or replaces a document.
    Index {
        /// `_source`, a JSON object.
        source: Bytes,
        /// Whether the id was generated, so that no earlier document can have it.
        auto_id: bool,
        /// `_routing`; none where the document goes by its id.
        routing: Option<Arc<str>>,
    },
    /// Deletes a document.
    Delete,
    /// Does nothing, but takes a place in the history.
    NoOp,
    /// Creates documents that exist only as a number. Each takes a place in the history. In the virtual world alone.
    SyntheticBatch(SyntheticBatch),
}

/// A batch of documents that exist only as a number, or a part of it. The operation's id is that of the whole
/// batch, and its place that of the part's first document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyntheticBatch {
    /// Documents of the whole batch.
    documents: u64,
    /// Bytes of their sources.
    source_bytes: u64,
    /// Which of them these are, by their numbers in the batch.
    part: Range<u64>,
}

/// Why a batch is refused.
pub(crate) const RUNS_ARE_VIRTUAL: &str =
    "documents that exist only as a number are of the virtual world; send documents";

pub(crate) const GENERATED_ID_BYTES: u64 = 20;

impl SyntheticBatch {
    /// A whole batch, of one document at least.
    pub fn new(documents: u64, source_bytes: u64) -> Self {
        let documents = documents.max(1);
        SyntheticBatch { documents, source_bytes, part: 0..documents }
    }

    /// How many of `whole` go to a shard: an equal part to each of `shards`.
    pub fn share(whole: u64, shard: u32, shards: u32) -> u64 {
        let below = |n: u32| (u128::from(whole) * u128::from(n) / u128::from(shards.max(1))) as u64;
        below(shard + 1) - below(shard)
    }

    /// The id of a shard's part of the batch that is called `id` as a whole.
    pub fn id_of_shard(id: &str, shard: u32) -> String {
        format!("{id}/{shard}")
    }

    /// How many documents this part has.
    pub fn documents(&self) -> u64 {
        self.part.end.saturating_sub(self.part.start)
    }

    /// Bytes of their sources: those of the parts of a batch add up to those of the batch.
    pub fn source_bytes(&self) -> u64 {
        let before = |end: u64| {
            let share = u128::from(self.source_bytes) * u128::from(end);
            (share / u128::from(self.documents.max(1))) as u64
        };
        before(self.part.end) - before(self.part.start)
    }

    /// The sum of numbers that stand for the hashes of the documents, as a copy's [`Digest`](crate::Digest) has it. The
    /// sums of the parts add up to that of the batch.
    pub fn hash(&self, id: &str) -> u64 {
        // The n-th document counts for a + n * b, of which the sum is known without going through all of them.
        let (a, b) = (short_document_hash(id, b"a"), short_document_hash(id, b"b"));
        let below = |n: u64| (u128::from(n) * u128::from(n.saturating_sub(1)) / 2) as u64;
        let numbers = below(self.part.end).wrapping_sub(below(self.part.start));
        a.wrapping_mul(self.documents()).wrapping_add(b.wrapping_mul(numbers))
    }
}

impl policy::following::Operation for Operation {
    fn seq_nos(&self) -> Range<u64> {
        self.places()
    }

    fn encoded_bytes(&self) -> u64 {
        self.encoded_bytes()
    }
}

const INDEX: u8 = 1;
const INDEX_AUTO_ID: u8 = 2;
const DELETE: u8 = 3;
const NO_OP: u8 = 4;
const RUN: u8 = 5;
/// As the first two, of a document with a `_routing`: its length and itself stand before the source.
const ROUTED: u8 = 6;
const ROUTED_AUTO_ID: u8 = 7;
/// Numbers of a synthetic batch: its documents, their bytes, the first of the part and the one after its last.
const RUN_NUMBERS: usize = 4;
/// kind, seq_no, version, length of the id.
const FIXED_BYTES: usize = 1 + 8 + 8 + 4;

impl Operation {
    /// An operation that only fills a gap in the history.
    pub fn no_op(seq_no: u64) -> Self {
        Operation { seq_no, version: 1, id: Arc::from(""), kind: OpKind::NoOp }
    }

    /// The places that it takes in the history: one, or one for each document of a batch.
    pub fn places(&self) -> Range<u64> {
        let count =
            if let OpKind::SyntheticBatch(batch) = &self.kind { batch.documents() } else { 1 };
        self.seq_no..self.seq_no.saturating_add(count)
    }

    /// Whether it stands for a batch of documents.
    pub fn is_synthetic_batch(&self) -> bool {
        matches!(self.kind, OpKind::SyntheticBatch(_))
    }

    /// The last of its places.
    pub fn last_seq_no(&self) -> u64 {
        self.places().end.saturating_sub(1).max(self.seq_no)
    }

    /// How many places it takes.
    pub fn count(&self) -> u64 {
        let places = self.places();
        places.end - places.start
    }

    /// The part of it with these sequence numbers; none if it has none of them.
    pub fn within(&self, places: &Range<u64>) -> Option<Operation> {
        let own = self.places();
        let (start, end) = (own.start.max(places.start), own.end.min(places.end));
        if start >= end {
            return None;
        }
        let mut op = self.clone();
        if let OpKind::SyntheticBatch(batch) = &mut op.kind {
            let first = batch.part.start;
            batch.part = first + (start - own.start)..first + (end - own.start);
            op.seq_no = start;
        }
        Some(op)
    }

    /// `_routing` of the document; none where it goes by its id.
    pub fn routing(&self) -> Option<&Arc<str>> {
        match &self.kind {
            OpKind::Index { routing, .. } => routing.as_ref(),
            OpKind::Delete | OpKind::NoOp | OpKind::SyntheticBatch(_) => None,
        }
    }

    /// Bytes of the document's source; 0 where there is none.
    pub fn source_bytes(&self) -> u64 {
        match &self.kind {
            OpKind::SyntheticBatch(batch) => batch.source_bytes(),
            OpKind::Index { source, .. } => source.len() as u64,
            OpKind::Delete | OpKind::NoOp => 0,
        }
    }

    /// Bytes that the operation takes in the log and, about, in a message.
    pub fn encoded_bytes(&self) -> u64 {
        let (id_bytes, count) = match &self.kind {
            OpKind::SyntheticBatch(batch) => (GENERATED_ID_BYTES as usize, batch.documents()),
            _ => (self.id.len() + self.routing().map_or(0, |routing| 4 + routing.len()), 1),
        };
        crate::frame::framed_bytes(FIXED_BYTES + id_bytes) as u64 * count + self.source_bytes()
    }

    /// Appends the log's encoding: kind, seq_no, version, id length, id, routing length and routing where there is one,
    /// source; little endian.
    pub(crate) fn encode(&self, buffer: &mut Vec<u8>) {
        let numbers;
        let (kind, source): (u8, &[u8]) = match &self.kind {
            OpKind::SyntheticBatch(SyntheticBatch { documents, source_bytes, part }) => {
                let all = [*documents, *source_bytes, part.start, part.end];
                numbers = all.map(u64::to_le_bytes).concat();
                (RUN, &numbers)
            }
            OpKind::Index { source, auto_id, routing } => {
                let kind = match (routing, auto_id) {
                    (None, false) => INDEX,
                    (None, true) => INDEX_AUTO_ID,
                    (Some(_), false) => ROUTED,
                    (Some(_), true) => ROUTED_AUTO_ID,
                };
                (kind, source)
            }
            OpKind::Delete => (DELETE, &[]),
            OpKind::NoOp => (NO_OP, &[]),
        };
        buffer.push(kind);
        buffer.extend_from_slice(&self.seq_no.to_le_bytes());
        buffer.extend_from_slice(&self.version.to_le_bytes());
        buffer.extend_from_slice(&(self.id.len() as u32).to_le_bytes());
        buffer.extend_from_slice(self.id.as_bytes());
        if let Some(routing) = self.routing() {
            buffer.extend_from_slice(&(routing.len() as u32).to_le_bytes());
            buffer.extend_from_slice(routing.as_bytes());
        }
        buffer.extend_from_slice(source);
    }

    /// Reads the log's encoding; none if `payload` is no operation.
    pub(crate) fn decode(payload: &[u8]) -> Option<Self> {
        let head = payload.get(..FIXED_BYTES)?;
        let number = |at: usize| u64::from_le_bytes(head[at..at + 8].try_into().expect("8 bytes"));
        let id_len = u32::from_le_bytes(head[17..21].try_into().expect("4 bytes")) as usize;
        let id = payload.get(FIXED_BYTES..FIXED_BYTES + id_len)?;
        let id = Arc::from(std::str::from_utf8(id).ok()?);
        let rest = &payload[FIXED_BYTES + id_len..];
        let index = |source, auto_id, routing| OpKind::Index {
            source: Bytes::copy_from_slice(source),
            auto_id,
            routing,
        };
        let kind = match head[0] {
            INDEX => index(rest, false, None),
            INDEX_AUTO_ID => index(rest, true, None),
            ROUTED | ROUTED_AUTO_ID => {
                let (routing_len, rest) = rest.split_first_chunk::<4>()?;
                let (routing, source) =
                    rest.split_at_checked(u32::from_le_bytes(*routing_len) as usize)?;
                let routing: Arc<str> = Arc::from(std::str::from_utf8(routing).ok()?);
                index(source, head[0] == ROUTED_AUTO_ID, Some(routing))
            }
            DELETE => OpKind::Delete,
            NO_OP => OpKind::NoOp,
            RUN => {
                let (numbers, rest) = rest.as_chunks::<8>();
                let [documents, source_bytes, start, end] =
                    <[[u8; 8]; RUN_NUMBERS]>::try_from(numbers).ok()?.map(u64::from_le_bytes);
                if !rest.is_empty() || start >= end || end > documents {
                    return None;
                }
                OpKind::SyntheticBatch(SyntheticBatch { documents, source_bytes, part: start..end })
            }
            _ => return None,
        };
        Some(Operation { seq_no: number(1), version: number(9), id, kind })
    }

    /// Whether `payload` could be an operation, judged by its first bytes.
    pub(crate) fn plausible(payload: &[u8]) -> bool {
        payload.len() >= FIXED_BYTES
            && (INDEX..=ROUTED_AUTO_ID).contains(&payload[0])
            && payload[7] == 0
            && payload[8] == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_encoding_gives_back_what_was_put_in() {
        let source = Bytes::from_static(b"{\"location\":[-0.14,51.52]}");
        let kinds = [
            OpKind::Index { source: source.clone(), auto_id: false, routing: None },
            OpKind::Index { source: source.clone(), auto_id: true, routing: None },
            OpKind::Index { source: source.clone(), auto_id: false, routing: Some("über".into()) },
            OpKind::Index { source, auto_id: true, routing: Some("r".into()) },
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
        }
    }

    fn batch(seq_no: u64, documents: u64, source_bytes: u64) -> Operation {
        let kind = OpKind::SyntheticBatch(SyntheticBatch::new(documents, source_bytes));
        Operation { seq_no, version: 1, id: Arc::from("run-1"), kind }
    }

    #[test]
    fn the_parts_of_a_run_add_up_to_it() {
        let whole = batch(100, 1000, 12_345);
        assert_eq!((whole.places(), whole.last_seq_no()), (100..1100, 1099));
        let hash = |op: &Operation| match &op.kind {
            OpKind::SyntheticBatch(batch) => batch.hash(&op.id),
            _ => unreachable!("it is a batch"),
        };
        let cuts = [0, 101, 102, 640, 1099, 2000];
        let parts: Vec<Operation> =
            cuts.windows(2).filter_map(|pair| whole.within(&(pair[0]..pair[1]))).collect();
        assert_eq!(parts.len(), 5);
        assert_eq!(parts.iter().map(Operation::count).sum::<u64>(), 1000);
        assert_eq!(parts.iter().map(Operation::source_bytes).sum::<u64>(), 12_345);
        let bytes: u64 = parts.iter().map(Operation::encoded_bytes).sum();
        assert_eq!(bytes, whole.encoded_bytes());
        let sum = parts.iter().map(hash).fold(0, u64::wrapping_add);
        assert_eq!(sum, hash(&whole));
        // A part of a part is a part of the whole.
        assert_eq!(parts[2].within(&(200..300)), whole.within(&(200..300)));
        assert_eq!(parts[1].within(&(500..600)), None);
        // Two that are equally long are not the same.
        let (one, other) = (whole.within(&(200..300)), whole.within(&(300..400)));
        assert_ne!(hash(&one.unwrap()), hash(&other.unwrap()));
        let mut buffer = Vec::new();
        parts[2].encode(&mut buffer);
        assert_eq!(Operation::decode(&buffer).as_ref(), Some(&parts[2]));
        assert_eq!(Operation::decode(&buffer[..buffer.len() - 1]), None);
    }

    #[test]
    fn a_routing_costs_nothing_where_there_is_none_and_is_never_longer_than_its_record() {
        let op = |routing: Option<&str>| {
            let (source, routing) = (Bytes::from_static(b"{}"), routing.map(Arc::from));
            let kind = OpKind::Index { source, auto_id: false, routing };
            Operation { seq_no: 1, version: 1, id: Arc::from("a"), kind }
        };
        let encoded = |op: &Operation| {
            let mut buffer = Vec::new();
            op.encode(&mut buffer);
            buffer
        };
        let (plain, routed) = (op(None), op(Some("xyz")));
        let older =
            [&[INDEX][..], &1u64.to_le_bytes(), &1u64.to_le_bytes(), &1u32.to_le_bytes(), b"a{}"];
        assert_eq!(encoded(&plain), older.concat(), "as builds before there was any");
        assert_eq!(routed.encoded_bytes(), plain.encoded_bytes() + 4 + 3);
        let mut bytes = encoded(&routed);
        let length = FIXED_BYTES + 1;
        bytes[length] = 200;
        assert_eq!(Operation::decode(&bytes), None);
        assert_eq!(Operation::decode(&bytes[..length + 3]), None);
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
