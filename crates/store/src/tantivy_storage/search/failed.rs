//! Why a search failed.

use query::SearchError;

/// Why a search failed: it does not fit the shard, or the index failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failed {
    #[error(transparent)]
    Search(#[from] SearchError),
    #[error(transparent)]
    Index(#[from] tantivy::TantivyError),
}

/// What everything that searches returns.
pub(super) type Result<T> = std::result::Result<T, Failed>;
