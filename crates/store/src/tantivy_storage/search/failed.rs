//! Why a search failed.

use query::SearchError;

/// Why a search failed: it does not fit the shard, or the index failed.
pub(crate) enum Failed {
    Search(SearchError),
    Index(tantivy::TantivyError),
}

/// What everything that searches returns.
pub(super) type Result<T> = std::result::Result<T, Failed>;

impl From<SearchError> for Failed {
    fn from(error: SearchError) -> Self {
        Failed::Search(error)
    }
}

impl From<tantivy::TantivyError> for Failed {
    fn from(error: tantivy::TantivyError) -> Self {
        Failed::Index(error)
    }
}
