//! A field of a query that a copy indexes.

use query::mapping;
use tantivy::schema::Field;

/// A mapped field that this copy indexes.
pub(super) struct IndexedField<'a> {
    pub(super) field: Field,
    pub(super) path: &'a str,
    pub(super) mapped: &'a mapping::Field,
}

impl IndexedField<'_> {
    pub(super) fn is_text(&self) -> bool {
        self.mapped.kind.is_of_texts()
    }
}
