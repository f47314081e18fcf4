//! A window of unacknowledged chunks that crosses files: elastic/elasticsearch pull request 38841
//! (`MultiFileTransfer`, `MultiChunkTransfer`).
//!
//! Requests are numbered. One may start while its number is less than `max_concurrent` above the last number up to
//! which everything is acknowledged. So one late chunk shuts the window although the others have arrived, which bounds
//! what the target holds out of order. In Elasticsearch the source also reads ahead the chunk after the window; the
//! wire never carries it early.

use std::collections::{BTreeMap, BTreeSet};

use super::chunk::ChunkRequest;
use super::pending::Pending;

#[derive(Debug)]
pub(super) struct FileWindow {
    next_number: u64,
    numbers: BTreeMap<(u32, u64), u64>,
    unacknowledged: BTreeSet<u64>,
}

impl FileWindow {
    /// Takes over what other settings left in flight or failed.
    pub(super) fn new(in_flight: impl Iterator<Item = ChunkRequest>, pending: &Pending) -> Self {
        let mut window = FileWindow {
            next_number: 0,
            numbers: BTreeMap::new(),
            unacknowledged: BTreeSet::new(),
        };
        let keys: BTreeSet<(u32, u64)> =
            in_flight.map(|r| (r.file, r.offset)).chain(pending.returned()).collect();
        keys.into_iter().for_each(|key| window.number(key));
        window
    }

    /// A failed chunk keeps its number and place in the window, so it may always start.
    pub(super) fn next(
        &mut self,
        pending: &mut Pending,
        chunk_bytes: u64,
        max_concurrent: usize,
    ) -> Option<ChunkRequest> {
        if let Some(again) = pending.take_returned() {
            return Some(again);
        }
        let oldest = self.unacknowledged.first();
        if oldest.is_some_and(|oldest| self.next_number - oldest >= max_concurrent as u64) {
            return None;
        }
        let request = pending.take(chunk_bytes)?;
        self.number((request.file, request.offset));
        Some(request)
    }

    pub(super) fn delivered(&mut self, request: ChunkRequest) {
        if let Some(number) = self.numbers.remove(&(request.file, request.offset)) {
            self.unacknowledged.remove(&number);
        }
    }

    fn number(&mut self, key: (u32, u64)) {
        self.numbers.insert(key, self.next_number);
        self.unacknowledged.insert(self.next_number);
        self.next_number += 1;
    }
}
