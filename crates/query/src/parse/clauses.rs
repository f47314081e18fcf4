//! How many clauses a body may have. Those of the texts in it count, and each counts once for each field that it names:
//! it is kept, sent and resolved as many times.

use super::limits::{MAX_CLAUSES, MAX_NAME_BYTES};
use crate::error::{SearchError, illegal};

/// The clauses of a body so far.
#[derive(Default)]
pub(super) struct Clauses(usize);

impl Clauses {
    /// Counts more of them.
    pub(super) fn add(&mut self, more: usize) -> Result<(), SearchError> {
        self.0 = self.0.saturating_add(more);
        if self.0 <= MAX_CLAUSES {
            return Ok(());
        }
        Err(illegal(format!(
            "the query has more than {MAX_CLAUSES} clauses (indices.query.bool.max_clause_count), counted once for \
             each field that a text asks; send terms in place of many clauses"
        )))
    }

    /// Counts one more of each of some fields; of one where none is named.
    pub(super) fn of_fields(&mut self, fields: &[(String, f32)]) -> Result<(), SearchError> {
        if fields.iter().any(|(name, _)| name.len() > MAX_NAME_BYTES) {
            let reason = format!(
                "the name of a field has at most {MAX_NAME_BYTES} bytes in a query of several"
            );
            return Err(illegal(reason));
        }
        self.add(fields.len().max(1))
    }
}
