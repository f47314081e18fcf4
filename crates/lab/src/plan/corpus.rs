//! What a plan indexes, and in which requests.

use crate::corpus::Source;

/// Mean size assumed for a document of a corpus file, which is not known before the file is read.
const FILE_DOCUMENT_BYTES: f64 = 1e3;

/// What is indexed and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CorpusUse {
    /// Generated or a file.
    pub source: Source,
    /// Documents, scaled, at least one. A file may hold fewer.
    pub documents: u64,
    /// Documents in a bulk request.
    pub bulk_documents: u64,
    /// Clients that index at the same time.
    pub clients: u32,
}

impl CorpusUse {
    /// Mean bytes of a document's source.
    pub fn document_bytes(&self) -> f64 {
        match &self.source {
            Source::Generated(corpus) => corpus.mean_bytes(),
            Source::Mapped(_) | Source::File(_) => FILE_DOCUMENT_BYTES,
        }
    }
}
