//! Several files in turn, one chunk each: the second version of Elasticsearch's CCR file restore, elastic/elasticsearch
//! pull request 38495 (`CcrRepository`).
//!
//! Requests are numbered. The file whose turn it is waits until all that was requested has come but for the last
//! requests, one fewer than files are open: a late chunk of one file holds up the others. Where fewer files are open
//! than `max_concurrent`, as many more are opened at once, so that nearly twice as many may be open.
//!
//! Its weakness is the tail: once the small files are done, the largest file is left with one request a round trip,
//! which is what pull request 38841 then removed.

use std::collections::{BTreeSet, VecDeque};

use super::chunk::ChunkRequest;
use super::pending::Pending;

#[derive(Debug)]
pub(super) struct FilesInTurn {
    /// Files that were begun and are not all there, each with the number of its last request. Whose turn is next comes
    /// first; whose turn it is, last.
    open: VecDeque<(u32, u64)>,
    next_number: u64,
    /// The lowest number that may be in flight when the file whose turn it is is asked for.
    turn: Option<u64>,
}

impl FilesInTurn {
    /// Takes over what other settings left in flight.
    pub(super) fn new(in_flight: impl Iterator<Item = ChunkRequest>) -> Self {
        let busy: BTreeSet<u32> = in_flight.map(|request| request.file).collect();
        let next_number = busy.len() as u64;
        FilesInTurn { open: busy.into_iter().zip(0..).collect(), next_number, turn: None }
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
            let lowest = match self.turn {
                Some(lowest) => lowest,
                None => self.choose(pending, busy, max_concurrent)?,
            };
            if self.open.iter().any(|(file, number)| *number < lowest && busy.contains(file)) {
                self.turn = Some(lowest);
                return None;
            }
            self.turn = None;
            let (file, number) = self.open.back_mut()?;
            // Its last chunk may have come meanwhile; then it is the next one's turn.
            if let Some(request) = pending.take_of(*file, chunk_bytes) {
                *number = self.next_number;
                self.next_number += 1;
                return Some(request);
            }
        }
    }

    /// Has the next file take its turn.
    fn choose(
        &mut self,
        pending: &Pending,
        busy: &BTreeSet<u32>,
        max_concurrent: usize,
    ) -> Option<u64> {
        self.open.retain(|(file, _)| busy.contains(file) || pending.has(*file));
        if self.open.len() < max_concurrent {
            for _ in 0..max_concurrent {
                let begun: BTreeSet<u32> = self.open.iter().map(|(file, _)| *file).collect();
                let Some(file) = pending.first_file_except(&begun) else { break };
                self.open.push_front((file, 0));
            }
        }
        let next = self.open.pop_front()?;
        self.open.push_back(next);
        Some((self.next_number + 1).saturating_sub(self.open.len() as u64))
    }
}
