//! Why a search failed.

use query::{SearchError, SearchErrorKind};

/// Why a search failed: it does not fit the shard, or the index failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failed {
    #[error(transparent)]
    Search(#[from] SearchError),
    #[error(transparent)]
    Index(#[from] tantivy::TantivyError),
}

impl Failed {
    /// Whether what is asked does not fit the field, which a lenient query passes over.
    pub(super) fn is_unfit(&self) -> bool {
        matches!(self, Failed::Search(error) if error.kind == SearchErrorKind::QueryShard)
    }
}

/// What everything that searches returns.
pub(super) type Result<T> = std::result::Result<T, Failed>;
