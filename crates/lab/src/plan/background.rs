//! What is written while something else is measured.

/// Indexing beside what is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Background {
    /// Documents a second, over all clients.
    pub documents_per_s: u64,
    /// So many of 1000 writes replace a document that was written before; only where the plan follows.
    pub updates_in_1000: u32,
    /// So many of 1000 delete one.
    pub deletes_in_1000: u32,
    /// What is written in its place in the virtual world: documents that exist only as a number, by the run.
    pub full: Option<Runs>,
}

/// Documents that exist only as a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Runs {
    /// How many a second.
    pub documents_per_s: u64,
    /// Bytes of each one's source; those of the corpus where it does not say.
    pub document_bytes: Option<u64>,
}

impl Background {
    /// Whether anything but new documents is written.
    pub fn changes(&self) -> bool {
        self.updates_in_1000 + self.deletes_in_1000 > 0
    }
}
