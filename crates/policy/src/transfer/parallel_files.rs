//! Several files at once, one chunk each: the second version of Elasticsearch's CCR file restore (pull request 38495),
//! but for its turns. There a late chunk of one file held up the others, and up to twice as many files were open.
//!
//! Its weakness is the tail: once the small files are done, the largest file is left with one request
//! a round trip, which is what "fetch chunks of one file in parallel" (elastic/elasticsearch pull
//! request 38841) then removed.

use std::collections::BTreeSet;

use super::chunk::ChunkRequest;
use super::pending::Pending;

#[derive(Debug)]
pub(super) struct ParallelFiles {
    /// Files that were begun and have bytes left, in flight or not.
    open: BTreeSet<u32>,
}

impl ParallelFiles {
    pub(super) fn new(in_flight: impl Iterator<Item = ChunkRequest>) -> Self {
        ParallelFiles { open: in_flight.map(|r| r.file).collect() }
    }

    /// The next chunk of an open file that has none in flight, else of a file to open.
    pub(super) fn next(
        &mut self,
        pending: &mut Pending,
        busy: &BTreeSet<u32>,
        chunk_bytes: u64,
        max_concurrent: usize,
    ) -> Option<ChunkRequest> {
        self.open.retain(|file| busy.contains(file) || pending.has(*file));
        if busy.len() >= max_concurrent {
            return None;
        }
        let waiting = self.open.iter().copied().find(|file| !busy.contains(file));
        let file = match waiting {
            Some(file) => file,
            None if self.open.len() < max_concurrent => pending.first_file_except(&self.open)?,
            None => return None,
        };
        self.open.insert(file);
        pending.take_of(file, chunk_bytes)
    }
}
