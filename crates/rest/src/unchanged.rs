//! `if_seq_no` and `if_primary_term`: a write that is refused where another came in between.

use std::sync::Arc;

use bytes::Bytes;
use store::WriteRequest;

use super::error::bad_request;
use super::parameters::Query;
use engine::transport::Result;

/// Of which operation, and read in which term, a document must be that is written (`if_seq_no`, `if_primary_term`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unchanged {
    pub(super) seq_no: u64,
    pub(super) primary_term: u64,
}

impl Unchanged {
    /// Reads it from a request; none where it has none.
    pub(super) fn read(query: &Query) -> Result<Option<Unchanged>> {
        Unchanged::of(query.number("if_seq_no")?, query.number("if_primary_term")?)
    }

    /// One of both alone is refused.
    pub(super) fn of(seq_no: Option<u64>, primary_term: Option<u64>) -> Result<Option<Unchanged>> {
        match (seq_no, primary_term) {
            (Some(seq_no), Some(primary_term)) => Ok(Some(Unchanged { seq_no, primary_term })),
            (None, None) => Ok(None),
            _ => Err(bad_request("if_seq_no and if_primary_term go together; send both or none")),
        }
    }

    /// The write of a document that is as it was, or its deletion.
    pub(super) fn write(
        self,
        id: Arc<str>,
        source: Option<Bytes>,
        routing: Option<Arc<str>>,
    ) -> WriteRequest {
        let Unchanged { seq_no, primary_term } = self;
        WriteRequest::IfUnchanged { id, seq_no, primary_term, source, routing }
    }
}
