//! Several files in turn, one chunk each: the second version of Elasticsearch's CCR file restore, elastic/elasticsearch
//! pull request 38495 (`CcrRepository`).
//!
//! Requests are numbered. The file whose turn it is waits until all that was requested has come but for the last
//! requests, one fewer than files are open: a late chunk of one file holds up the others. Where fewer files are open
//! than `max_concurrent`, as many more are opened at once, so that nearly twice as many may be open.
//!
//! Its weakness is the tail: once the small files are done, the largest file is left with one request a round trip,
//! which is what pull request 38841 then removed.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::chunk::ChunkRequest;
use super::pending::Pending;

#[derive(Debug)]
pub(super) struct FilesInTurn {
    /// Files that were begun and are not all there; whose turn is next comes first.
    open: VecDeque<u32>,
    /// The number of the last request of each file.
    numbers: BTreeMap<u32, u64>,
    next_number: u64,
    /// The file whose turn it is, and the lowest number that may be in flight when it is asked for.
    turn: Option<(u32, u64)>,
}

impl FilesInTurn {
    /// Takes over what other settings left in flight.
    pub(super) fn new(in_flight: impl Iterator<Item = ChunkRequest>) -> Self {
        let busy: BTreeSet<u32> = in_flight.map(|request| request.file).collect();
        FilesInTurn {
            open: busy.iter().copied().collect(),
            next_number: busy.len() as u64,
            numbers: busy.into_iter().zip(0..).collect(),
            turn: None,
        }
    }

    /// The next chunk; `busy` are the files that have one in flight.
    pub(super) fn next(
        &mut self,
        pending: &mut Pending,
        busy: &BTreeSet<u32>,
        chunk_bytes: u64,
        max_concurrent: usize,
    ) -> Option<ChunkRequest> {
        // More may be open where fewer are allowed than before.
        if busy.len() > 2 * (max_concurrent - 1) {
            return None;
        }
        loop {
            let (file, lowest) = match self.turn {
                Some(turn) => turn,
                None => self.choose(pending, busy, max_concurrent)?,
            };
            let mut in_flight = busy.iter().filter_map(|file| self.numbers.get(file));
            if in_flight.any(|number| *number < lowest) {
                self.turn = Some((file, lowest));
                return None;
            }
            self.turn = None;
            // Its last chunk may have come meanwhile; then it is the next one's turn.
            if let Some(request) = pending.take_of(file, chunk_bytes) {
                self.numbers.insert(file, self.next_number);
                self.next_number += 1;
                return Some(request);
            }
        }
    }

    fn choose(
        &mut self,
        pending: &Pending,
        busy: &BTreeSet<u32>,
        max_concurrent: usize,
    ) -> Option<(u32, u64)> {
        self.open.retain(|file| busy.contains(file) || pending.has(*file));
        if self.open.len() < max_concurrent {
            for _ in 0..max_concurrent {
                let begun: BTreeSet<u32> = self.open.iter().copied().collect();
                let Some(file) = pending.first_file_except(&begun) else { break };
                self.open.push_front(file);
            }
        }
        let file = self.open.pop_front()?;
        self.open.push_back(file);
        Some((file, (self.next_number + 1).saturating_sub(self.open.len() as u64)))
    }
}
