//! What is still to be requested: the unrequested rest of each file, and ranges that came back.

use std::collections::{BTreeMap, BTreeSet};

use super::chunk::{ChunkRequest, FileSpan};

/// The bytes of a set of files that are neither verified nor in flight.
#[derive(Debug)]
pub(super) struct Pending {
    /// Next unrequested offset and length of each file.
    rests: Vec<(u64, u64)>,
    /// The files in the order in which they are taken.
    order: Vec<u32>,
    /// The place in that order of the first file with an unrequested rest, or the number of files.
    cursor: usize,
    /// Ranges that failed, by file and offset. They are never merged, so each fits a request.
    returned: BTreeMap<(u32, u64), u32>,
}

impl Pending {
    pub(super) fn new(files: &[FileSpan]) -> Self {
        let rests = files.iter().map(|f| (f.have.min(f.len), f.len)).collect();
        let order = (0..files.len() as u32).collect();
        let mut pending = Pending { rests, order, cursor: 0, returned: BTreeMap::new() };
        pending.skip_exhausted();
        pending
    }

    /// Takes files by their lengths from now on, the smallest first.
    pub(super) fn smallest_first(&mut self) {
        let rests = &self.rests;
        self.order.sort_by_key(|file| rests[*file as usize].1);
        self.cursor = 0;
        self.skip_exhausted();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.returned.is_empty() && self.cursor == self.order.len()
    }

    /// Failed ranges, in order.
    pub(super) fn returned(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        self.returned.keys().copied()
    }

    /// What [`Pending::take`] would give.
    pub(super) fn peek(&self, chunk_bytes: u64) -> Option<ChunkRequest> {
        match self.returned.first_key_value() {
            Some((&(file, offset), &len)) => {
                Some(ChunkRequest { file, offset, len: cut(len.into(), chunk_bytes) })
            }
            None => self.peek_rest(*self.order.get(self.cursor)? as usize, chunk_bytes),
        }
    }

    /// The next chunk in the order of the files. What failed goes first: others may wait for it.
    pub(super) fn take(&mut self, chunk_bytes: u64) -> Option<ChunkRequest> {
        let request = self.peek(chunk_bytes)?;
        self.remove(request);
        Some(request)
    }

    /// The next chunk of one file.
    pub(super) fn take_of(&mut self, file: u32, chunk_bytes: u64) -> Option<ChunkRequest> {
        let failed = self.returned.range((file, 0)..=(file, u64::MAX)).next();
        let request = match failed {
            Some((&(file, offset), &len)) => {
                ChunkRequest { file, offset, len: cut(len.into(), chunk_bytes) }
            }
            None => self.peek_rest(file as usize, chunk_bytes)?,
        };
        self.remove(request);
        Some(request)
    }

    /// A failed range exactly as it was requested before.
    pub(super) fn take_returned(&mut self) -> Option<ChunkRequest> {
        let ((file, offset), len) = self.returned.pop_first()?;
        Some(ChunkRequest { file, offset, len })
    }

    /// The first file with something to request that is not in `except`.
    pub(super) fn first_file_except(&self, except: &BTreeSet<u32>) -> Option<u32> {
        let failed = self.returned.keys().map(|(file, _)| *file).find(|f| !except.contains(f));
        failed.or_else(|| {
            let mut rest = self.order[self.cursor..].iter().copied();
            rest.find(|f| self.has_rest(*f) && !except.contains(f))
        })
    }

    /// Whether something of this file is still to be requested.
    pub(super) fn has(&self, file: u32) -> bool {
        self.has_rest(file) || self.returned.range((file, 0)..=(file, u64::MAX)).next().is_some()
    }

    fn has_rest(&self, file: u32) -> bool {
        self.rests.get(file as usize).is_some_and(|(next, len)| next < len)
    }

    /// A request failed: its range is to be requested again.
    pub(super) fn put_back(&mut self, request: ChunkRequest) {
        self.returned.insert((request.file, request.offset), request.len);
    }

    fn peek_rest(&self, index: usize, chunk_bytes: u64) -> Option<ChunkRequest> {
        let &(next, len) = self.rests.get(index)?;
        let request =
            ChunkRequest { file: index as u32, offset: next, len: cut(len - next, chunk_bytes) };
        (next < len).then_some(request)
    }

    fn remove(&mut self, request: ChunkRequest) {
        let ChunkRequest { file, offset, len } = request;
        match self.returned.remove(&(file, offset)) {
            Some(whole) if whole > len => {
                self.returned.insert((file, offset + u64::from(len)), whole - len);
            }
            Some(_) => {}
            None => self.rests[file as usize].0 += u64::from(len),
        }
        self.skip_exhausted();
    }

    fn skip_exhausted(&mut self) {
        while self.order.get(self.cursor).is_some_and(|file| !self.has_rest(*file)) {
            self.cursor += 1;
        }
    }
}

/// Never zero, or a chunk size of zero would never end.
fn cut(rest: u64, chunk_bytes: u64) -> u32 {
    rest.min(chunk_bytes.max(1)).min(u32::MAX.into()) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spans(lens: &[(u64, u64)]) -> Vec<FileSpan> {
        lens.iter().map(|&(len, have)| FileSpan { len, have }).collect()
    }

    #[test]
    fn cuts_files_in_order_and_skips_what_is_there() {
        let mut pending = Pending::new(&spans(&[(0, 0), (25, 10), (5, 5), (3, 0)]));
        let taken: Vec<_> =
            std::iter::from_fn(|| pending.take(10)).map(|r| (r.file, r.offset, r.len)).collect();
        assert_eq!(taken, [(1, 10, 10), (1, 20, 5), (3, 0, 3)]);
        assert!(pending.is_empty());
    }

    #[test]
    fn what_failed_comes_first_and_is_cut_to_the_present_size() {
        let mut pending = Pending::new(&spans(&[(100, 0)]));
        let first = pending.take(40).unwrap();
        pending.put_back(first);
        let taken: Vec<_> =
            std::iter::from_fn(|| pending.take(30)).map(|r| (r.offset, r.len)).collect();
        assert_eq!(taken, [(0, 30), (30, 10), (40, 30), (70, 30)]);
    }

    #[test]
    fn the_smallest_files_are_taken_first() {
        let mut pending = Pending::new(&spans(&[(20, 0), (3, 0), (0, 0), (12, 5), (3, 0)]));
        pending.smallest_first();
        assert_eq!(pending.first_file_except(&BTreeSet::from([1, 4])), Some(3));
        let taken: Vec<_> =
            std::iter::from_fn(|| pending.take(10)).map(|r| (r.file, r.offset, r.len)).collect();
        assert_eq!(taken, [(1, 0, 3), (4, 0, 3), (3, 5, 7), (0, 0, 10), (0, 10, 10)]);
        assert!(pending.is_empty());
    }

    #[test]
    fn a_file_can_be_taken_out_of_order() {
        let mut pending = Pending::new(&spans(&[(10, 0), (10, 0)]));
        assert_eq!(pending.take_of(1, 10).unwrap().file, 1);
        assert!(!pending.has(1) && pending.has(0));
        assert_eq!(pending.first_file_except(&BTreeSet::from([0])), None);
        assert_eq!(pending.take(10).unwrap().file, 0);
        assert!(pending.is_empty());
    }
}
