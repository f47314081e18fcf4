//! How much one answer may hold, whichever nodes have it.

use std::cell::Cell;

use query::FetchedHit;

use crate::transport::{Failure, Result};

/// Bytes of documents, and of fragments of their texts, of one answer.
pub const ANSWER_BYTES_MAX: usize = 100 << 20;

/// What an answer has taken of them.
#[derive(Debug, Default)]
pub struct AnswerBudget(Cell<usize>);

impl AnswerBudget {
    /// Takes hits. Fails with 429, as the field's circuit breakers do, where they do not fit: the caller drops them.
    pub(crate) fn take(&self, hits: Vec<FetchedHit>) -> Result<Vec<FetchedHit>> {
        self.add(hits.iter().map(FetchedHit::bytes).sum())?;
        Ok(hits)
    }

    /// Takes bytes that are written. Fails as [`AnswerBudget::take`].
    pub fn add(&self, bytes: usize) -> Result<()> {
        self.0.set(self.0.get().saturating_add(bytes));
        if self.0.get() <= ANSWER_BYTES_MAX {
            return Ok(());
        }
        let reason = format!(
            "the documents of one answer have more than [{ANSWER_BYTES_MAX}] bytes; ask for fewer at once, or for less of \
             each with [_source]"
        );
        Err(Failure::new(429, "circuit_breaking_exception", reason))
    }
}
