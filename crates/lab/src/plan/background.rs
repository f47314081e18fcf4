//! What is indexed in the background, while something else is measured.

/// Indexing in the background.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Background {
    /// Documents a second, over all clients.
    pub documents_per_s: u64,
    /// How many of 1000 writes replace a document that was written before; only in plans that follow.
    pub updates_in_1000: u32,
    /// How many of 1000 writes delete a document.
    pub deletes_in_1000: u32,
    /// What is written in its place in the virtual world: runs of documents that exist only as a number.
    pub full: Option<Runs>,
}

/// Documents that exist only as a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Runs {
    /// How many a second.
    pub documents_per_s: u64,
    /// Bytes of a document's source; without it those of the corpus.
    pub document_bytes: Option<u64>,
}

impl Background {
    /// Whether anything but new documents is written.
    pub fn changes(&self) -> bool {
        self.updates_in_1000 + self.deletes_in_1000 > 0
    }
}
