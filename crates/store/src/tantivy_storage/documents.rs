//! Parsing documents and handing them to the index library.

use std::sync::Arc;
use std::vec::Drain;

use bytes::Bytes;
use tantivy::indexer::UserOperation;
use tantivy::{TantivyDocument, Term};

use query::mapping::document::Extent;
use query::{DateFormat, Refusal};

use super::queue::{Queue, Queued};
use super::schema::DocumentSink;
use super::shared::{Handles, Shared};
use crate::contents::Parsed;
use crate::plan::Change;
use crate::{Error, OpKind, Operation, Result};

/// The library queues groups of documents, up to 10 000 of them. Small groups bound that queue's memory,
/// larger ones cost less.
const GROUP_OPS: usize = 16;
const GROUP_BYTES: usize = 4 << 10;

/// A document as it was read takes room for its source and twice as much for its fields.
const READ_FACTOR: usize = 3;

/// Room for the fields that every document has, beside its id and source.
const FIXED_BYTES: usize = 96;

/// Changes that go to the library together.
#[derive(Default)]
struct Group {
    ops: Vec<UserOperation<Queued>>,
    /// Bytes of the sources, and of the fields that every document has.
    bytes: usize,
}

impl Group {
    fn is_full(&self) -> bool {
        self.ops.len() >= GROUP_OPS || self.bytes >= GROUP_BYTES
    }

    /// Takes all there is, once there is room for it.
    fn take(&mut self, queue: &Arc<Queue>) -> Drain<'_, UserOperation<Queued>> {
        let bytes = READ_FACTOR * std::mem::take(&mut self.bytes);
        let first = self.ops.iter_mut().find_map(|op| match op {
            UserOperation::Add(document) => Some(document),
            UserOperation::Delete(_) => None,
        });
        if let Some(first) = first {
            first.room = Some(queue.take(bytes));
        }
        self.ops.drain(..)
    }
}

/// A copy that an earlier build made takes no date that it would keep as another.
fn out_of_range(ms: i64) -> Refusal {
    let date = DateFormat::default().show(ms);
    let reason = format!(
        "failed to parse: the date [{date}] is out of the range that this index keeps, 1677-09-21 to 2262-04-11, since \
         an earlier build of narrows made it; an index that is made now keeps every date: reindex into one"
    );
    Refusal { status: 400, kind: "mapper_parsing_exception".to_owned(), reason }
}

impl Handles {
    fn read(
        &self,
        source: &[u8],
        is_new: bool,
    ) -> std::result::Result<(TantivyDocument, Extent), Refusal> {
        let document = TantivyDocument::with_capacity(source.len() * 2 + FIXED_BYTES);
        let mut sink = DocumentSink { fields: &self.fields, document, out_of_range: None };
        let extent =
            self.mapping.read(source, is_new, &mut |field, value| sink.put(field, value))?;
        match sink.out_of_range.filter(|_| is_new) {
            Some(ms) => Err(out_of_range(ms)),
            None => Ok((sink.document, extent)),
        }
    }

    /// Adds what every document has to its mapped fields.
    fn complete(
        &self,
        mut document: TantivyDocument,
        op: &Operation,
        source: &Bytes,
    ) -> TantivyDocument {
        document.add_text(self.fields.id, &op.id);
        document.add_bytes(self.fields.source, source);
        document.add_u64(self.fields.seq_no, op.seq_no);
        document.add_u64(self.fields.version, op.version);
        if let Some(routing) = op.routing() {
            document.add_text(self.fields.routing, routing);
        }
        document
    }
}

impl Shared {
    /// Reads the documents of new writes, each for itself.
    pub(super) fn parse(&self, sources: &[Option<Bytes>]) -> Parsed {
        let mut parsed = Parsed::default();
        parsed.documents.reserve_exact(sources.len());
        let handles = self.handles();
        let mut growing: Vec<(usize, &[u8])> = Vec::new();
        for (at, source) in sources.iter().enumerate() {
            let document = source.as_ref().and_then(|source| match handles.read(source, true) {
                Ok((document, extent)) => {
                    growing.extend((extent == Extent::NewFields).then_some((at, source.as_ref())));
                    Some(document)
                }
                Err(refusal) => {
                    parsed.rejected.insert(at, refusal);
                    None
                }
            });
            parsed.documents.push(document);
        }
        parsed.note_new_fields(&handles.mapping, growing.into_iter());
        parsed
    }

    /// Reads the documents of accepted operations; one that cannot be read is an error.
    pub(super) fn parse_changes(&self, ops: &[Operation], changes: &[Change]) -> Result<Parsed> {
        let mut parsed = Parsed::default();
        let handles = self.handles();
        parsed.documents.resize_with(ops.len(), || None);
        for change in changes {
            let op = &ops[change.at];
            if let OpKind::Index { source, .. } = &op.kind {
                let document = handles.read(source, false);
                let (document, _) = document.map_err(|refusal| Error::Document {
                    id: op.id.to_string(),
                    reason: refusal.reason,
                })?;
                parsed.documents[change.at] = Some(document);
            }
        }
        Ok(parsed)
    }

    /// Applies changes to the index, in their order.
    pub(super) fn index(
        &self,
        ops: &[Operation],
        changes: &[Change],
        mut parsed: Parsed,
    ) -> Result<()> {
        let handles = self.handles();
        let mut group = Group::default();
        let indexed = handles.write(|writer| {
            for change in changes {
                let op = &ops[change.at];
                if change.replaces {
                    let id = Term::from_field_text(handles.fields.id, &op.id);
                    group.ops.push(UserOperation::Delete(id));
                }
                if let OpKind::Index { source, .. } = &op.kind {
                    let document = parsed.documents[change.at].take().unwrap_or_default();
                    let document = handles.complete(document, op, source);
                    group.ops.push(UserOperation::Add(Queued { document, room: None }));
                    group.bytes += source.len() + FIXED_BYTES;
                }
                if group.is_full() {
                    writer.run(group.take(&handles.queue))?;
                }
            }
            if !group.ops.is_empty() {
                writer.run(group.take(&handles.queue))?;
            }
            Ok(())
        });
        indexed.map_err(|e| self.index_error("index documents", e))
    }
}
