//! Checkpoints: the recent history of a vbucket in memory, and the cursors that read it.
//!
//! The open checkpoint holds each document once: a newer version removes the older one and goes to the end. So a cursor
//! takes the rest of a checkpoint at once, as one snapshot; a part of it would not be consistent.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use super::item::Item;

/// Bytes counted for an item's place in a checkpoint.
const PLACE_BYTES: u64 = 48;

/// When a checkpoint is closed and another begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckpointLimits {
    /// `chk_max_items`, as servers had it until checkpoints were bounded by bytes.
    pub max_items: usize,
    /// `checkpoint_max_size`.
    pub max_bytes: u64,
}

impl Default for CheckpointLimits {
    fn default() -> Self {
        CheckpointLimits { max_items: 10_000, max_bytes: 16 << 20 }
    }
}

#[derive(Debug)]
struct Place {
    seqno: u64,
    /// None if a newer version of the document follows.
    item: Option<Rc<Item>>,
}

#[derive(Debug)]
struct Checkpoint {
    places: VecDeque<Place>,
    /// The snapshot that the producer declared; none in an active vbucket.
    bounds: Option<Bounds>,
    items: usize,
    bytes: u64,
}

/// A snapshot as its producer declared it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// First sequence number.
    pub start: u64,
    /// Last one.
    pub end: u64,
    /// Whether it came from the producer's disk.
    pub disk: bool,
}

impl Checkpoint {
    fn new(bounds: Option<Bounds>) -> Checkpoint {
        Checkpoint { places: VecDeque::new(), bounds, items: 0, bytes: 0 }
    }

    fn last(&self) -> Option<u64> {
        self.places.back().map(|place| place.seqno)
    }

    /// Places count, too: a few documents that are written again and again leave many.
    fn is_full(&self, limits: CheckpointLimits) -> bool {
        self.places.len() >= limits.max_items || self.bytes >= limits.max_bytes
    }

    /// Forgets a version of a document, if it is here; answers what that frees. A number may be another document's:
    /// with a bug planted, versions that were rolled back stay in the table and their numbers are used again.
    fn forget(&mut self, seqno: u64, key: &[u8]) -> u64 {
        let Ok(at) = self.places.binary_search_by_key(&seqno, |place| place.seqno) else {
            return 0;
        };
        let of_key = self.places[at].item.take_if(|item| item.key == key);
        let freed = of_key.map_or(0, |item| item.bytes());
        if freed > 0 {
            self.items -= 1;
            self.bytes -= freed;
        }
        freed
    }
}

/// Names a cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CursorId(u64);

/// The cursor of the flusher, which always exists.
pub(super) const PERSISTENCE: CursorId = CursorId(0);

/// What a cursor takes: the rest of a checkpoint.
#[derive(Debug)]
pub struct Taken {
    /// Items, ascending.
    pub items: Vec<Rc<Item>>,
    /// First sequence number of the snapshot.
    pub start: u64,
    /// Last one.
    pub end: u64,
    /// Whether these are the checkpoint's first items.
    pub begins: bool,
    /// The snapshot as its producer declared it; none in an active vbucket.
    pub bounds: Option<Bounds>,
}

/// What a cursor finds.
#[derive(Debug)]
pub enum Take {
    /// Items.
    Some(Taken),
    /// Nothing new.
    Nothing,
    /// The cursor was dropped to free memory: the rest has to come from disk.
    Dropped,
}

/// The checkpoints of a vbucket.
#[derive(Debug)]
pub(super) struct Checkpoints {
    checkpoints: VecDeque<Checkpoint>,
    /// The last sequence number that each cursor has read.
    cursors: BTreeMap<CursorId, u64>,
    next_cursor: u64,
    /// Items up to this sequence number are no longer in memory.
    floor: u64,
    limits: CheckpointLimits,
    bytes: u64,
}

impl Checkpoints {
    /// Empty checkpoints of a vbucket whose history up to `seqno` is on disk.
    pub(super) fn new(seqno: u64, limits: CheckpointLimits) -> Checkpoints {
        Checkpoints {
            checkpoints: VecDeque::from([Checkpoint::new(None)]),
            cursors: BTreeMap::from([(PERSISTENCE, seqno)]),
            next_cursor: 1,
            floor: seqno,
            limits,
            bytes: 0,
        }
    }

    /// Bytes of items and of their places.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Items in all checkpoints.
    pub(super) fn items(&self) -> usize {
        self.checkpoints.iter().map(|checkpoint| checkpoint.items).sum()
    }

    /// Checkpoints, including the open one.
    pub(super) fn len(&self) -> usize {
        self.checkpoints.len()
    }

    fn open(&mut self) -> &mut Checkpoint {
        self.checkpoints.back_mut().expect("one is always open")
    }

    /// Appends a version. `replaced` is the version of its document before, wherever that is; 0 for none.
    pub(super) fn push(&mut self, item: Rc<Item>, replaced: u64) {
        let limits = self.limits;
        let open = self.open();
        if open.is_full(limits) && open.bounds.is_none() {
            self.begin(None);
        }
        let open = self.open();
        let (seqno, bytes) = (item.by_seqno, item.bytes());
        let freed = match replaced {
            0 => 0,
            replaced => open.forget(replaced, &item.key),
        };
        open.places.push_back(Place { seqno, item: Some(item) });
        open.items += 1;
        open.bytes += bytes;
        self.bytes = self.bytes + bytes + PLACE_BYTES - freed;
    }

    /// Begins another checkpoint; with bounds for a producer's snapshot.
    pub(super) fn begin(&mut self, bounds: Option<Bounds>) {
        let open = self.open();
        if open.places.is_empty() {
            open.bounds = bounds;
            return;
        }
        self.checkpoints.push_back(Checkpoint::new(bounds));
    }

    /// A producer's next snapshot from memory. It extends the open checkpoint if that one came from memory, too, and no
    /// cursor has read its end yet; else it begins another.
    pub(super) fn begin_or_extend(&mut self, bounds: Bounds) {
        let limits = self.limits;
        let newest_read = self.cursors.values().copied().max().unwrap_or(0);
        let open = self.open();
        let full = open.is_full(limits);
        match &mut open.bounds {
            Some(before) if !before.disk && !full && newest_read < before.start => {
                before.end = before.end.max(bounds.end);
            }
            _ => self.begin(Some(bounds)),
        }
    }

    /// Registers a cursor that has read all up to `seqno`. Also returns up to where items are no longer in memory and
    /// have to come from disk.
    pub(super) fn register(&mut self, seqno: u64) -> (CursorId, u64) {
        let id = CursorId(self.next_cursor);
        self.next_cursor += 1;
        self.cursors.insert(id, seqno.max(self.floor));
        (id, self.floor)
    }

    /// Forgets a cursor.
    pub(super) fn remove(&mut self, id: CursorId) {
        if id != PERSISTENCE {
            self.cursors.remove(&id);
        }
    }

    /// A cursor has got all up to `seqno` from disk.
    pub(super) fn advance(&mut self, id: CursorId, seqno: u64) {
        if let Some(at) = self.cursors.get_mut(&id) {
            *at = (*at).max(seqno);
        }
    }

    /// Whether a cursor has something to read.
    pub(super) fn has_more(&self, id: CursorId) -> bool {
        let newest = self.checkpoints.iter().rev().find_map(Checkpoint::last);
        self.cursors.get(&id).is_none_or(|at| newest.is_some_and(|newest| newest > *at))
    }

    /// The rest of the next checkpoint for a cursor.
    pub(super) fn take(&mut self, id: CursorId) -> Take {
        let Some(at) = self.cursors.get_mut(&id) else { return Take::Dropped };
        let next = self.checkpoints.iter().find(|c| c.last().is_some_and(|last| last > *at));
        let Some(checkpoint) = next else { return Take::Nothing };
        let from = checkpoint.places.partition_point(|place| place.seqno <= *at);
        let items: Vec<Rc<Item>> =
            checkpoint.places.range(from..).filter_map(|place| place.item.clone()).collect();
        let end = checkpoint.last().unwrap_or(*at);
        let start = match checkpoint.bounds {
            Some(bounds) if from == 0 => bounds.start.min(*at + 1),
            // Not the first item: whoever has that and stands at the start of a snapshot counts as whole there, and
            // lacks what was replaced before it.
            _ => *at + 1,
        };
        let begins = from == 0;
        *at = end;
        let bounds = checkpoint.bounds;
        let end = bounds.map_or(end, |bounds| bounds.end.max(end));
        Take::Some(Taken { items, start, end, begins, bounds })
    }

    /// Expels items that every cursor has read, until `want` bytes are freed; answers how many were.
    pub(super) fn expel(&mut self, want: u64) -> u64 {
        let read = self.cursors.values().copied().min().unwrap_or(0);
        let (mut freed, mut left) = (0, self.checkpoints.len());
        while freed < want
            && let Some(first) = self.checkpoints.front_mut()
        {
            match first.places.front() {
                Some(place) if place.seqno <= read => {
                    let place = first.places.pop_front().expect("it was looked at");
                    let bytes = place.item.as_ref().map_or(0, |item| item.bytes());
                    first.items -= usize::from(place.item.is_some());
                    first.bytes -= bytes;
                    self.floor = place.seqno;
                    self.bytes -= bytes + PLACE_BYTES;
                    freed += bytes + PLACE_BYTES;
                }
                Some(_) => break,
                None if left > 1 => {
                    self.checkpoints.pop_front();
                    left -= 1;
                }
                None => break,
            }
        }
        freed
    }

    /// Removes whole checkpoints that every cursor has read, until `want` bytes are freed; answers how many were. An
    /// open one that every cursor has read is closed first, and its snapshot continues in the next.
    pub(super) fn remove_read(&mut self, want: u64) -> u64 {
        let read = self.cursors.values().copied().min().unwrap_or(0);
        let open = self.checkpoints.back();
        if let Some(open) = open.filter(|open| open.last().is_some_and(|last| last <= read)) {
            let bounds = open.bounds;
            self.begin(bounds);
        }
        let mut freed = 0;
        while freed < want
            && self.checkpoints.len() > 1
            && let Some(first) = self.checkpoints.front()
            && first.last().is_none_or(|last| last <= read)
            && let Some(first) = self.checkpoints.pop_front()
        {
            self.floor = first.last().unwrap_or(self.floor);
            let bytes = first.bytes + first.places.len() as u64 * PLACE_BYTES;
            self.bytes -= bytes;
            freed += bytes;
        }
        freed
    }

    /// Drops the cursor that has read least, if that frees something; never the flusher's.
    pub(super) fn drop_slowest(&mut self) -> Option<CursorId> {
        let others = self.cursors.iter().filter(|(id, _)| **id != PERSISTENCE);
        let (id, at) = others.min_by_key(|(_, at)| **at).map(|(id, at)| (*id, *at))?;
        let oldest = self.checkpoints.iter().find_map(|c| c.places.front()).map(|p| p.seqno)?;
        let next = self.cursors.iter().filter(|(other, _)| **other != id).map(|(_, at)| *at).min();
        if at >= next? || next? < oldest {
            return None;
        }
        self.cursors.remove(&id);
        Some(id)
    }

    /// Cursors of streams.
    pub(super) fn cursors(&self) -> usize {
        self.cursors.len() - 1
    }

    /// Starts again after a rollback: only the flusher's cursor stays.
    pub(super) fn reset(&mut self, seqno: u64) {
        let next_cursor = self.next_cursor;
        *self = Checkpoints::new(seqno, self.limits);
        self.next_cursor = next_cursor;
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use bytes::Bytes;

    use super::super::item::ItemData;
    use super::*;

    fn item(used: &Rc<Cell<u64>>, key: u64, seqno: u64) -> Rc<Item> {
        let data = ItemData {
            key: Bytes::from(format!("key{key}")),
            value: Bytes::from(vec![0; 100]),
            by_seqno: seqno,
            ..ItemData::default()
        };
        Item::new(data, used)
    }

    fn limits(max_items: usize) -> CheckpointLimits {
        CheckpointLimits { max_items, max_bytes: u64::MAX }
    }

    fn seqnos(take: Take) -> (Vec<u64>, u64, u64) {
        let Take::Some(taken) = take else { panic!("{take:?}") };
        (taken.items.iter().map(|item| item.by_seqno).collect(), taken.start, taken.end)
    }

    #[test]
    fn a_document_is_once_in_the_open_checkpoint() {
        let used = Rc::default();
        let mut all = Checkpoints::new(0, limits(100));
        let (early, _) = all.register(0);
        for (seqno, key, replaced) in [(1, 1, 0), (2, 2, 0), (3, 1, 1), (4, 3, 0), (5, 2, 2)] {
            all.push(item(&used, key, seqno), replaced);
        }
        assert_eq!(seqnos(all.take(early)), (vec![3, 4, 5], 1, 5));
        assert!(matches!(all.take(early), Take::Nothing));
        all.push(item(&used, 1, 6), 3);
        assert_eq!(seqnos(all.take(early)), (vec![6], 6, 6));
        assert_eq!(seqnos(all.take(PERSISTENCE)), (vec![4, 5, 6], 1, 6));
        assert_eq!(all.items(), 3);
    }

    #[test]
    fn a_number_that_another_document_has_by_now_frees_nothing() {
        let used = Rc::default();
        let mut all = Checkpoints::new(0, limits(100));
        all.push(item(&used, 1, 1), 0);
        all.push(item(&used, 2, 2), 1);
        assert_eq!(seqnos(all.take(PERSISTENCE)), (vec![1, 2], 1, 2));
    }

    #[test]
    fn a_document_that_is_written_again_and_again_fills_a_checkpoint() {
        let used = Rc::default();
        let mut all = Checkpoints::new(0, limits(4));
        (1..=10).for_each(|seqno| all.push(item(&used, 1, seqno), seqno - 1));
        assert_eq!((all.len(), all.items()), (3, 3));
        let mut next = || seqnos(all.take(PERSISTENCE));
        assert_eq!([next(), next(), next()], [(vec![4], 1, 4), (vec![8], 5, 8), (vec![10], 9, 10)]);
    }

    #[test]
    fn cursors_read_checkpoint_by_checkpoint_and_expelling_waits_for_them() {
        let used: Rc<Cell<u64>> = Rc::default();
        let mut all = Checkpoints::new(0, limits(4));
        let (slow, from_disk) = all.register(0);
        assert_eq!(from_disk, 0);
        for seqno in 1..=10 {
            all.push(item(&used, seqno, seqno), 0);
        }
        assert_eq!(all.len(), 3);
        assert_eq!(seqnos(all.take(PERSISTENCE)).0, [1, 2, 3, 4]);
        assert_eq!(seqnos(all.take(PERSISTENCE)).0, [5, 6, 7, 8]);
        assert_eq!(all.expel(u64::MAX), 0);
        assert_eq!(seqnos(all.take(slow)).0, [1, 2, 3, 4]);
        let before = (all.bytes(), used.get());
        let freed = all.expel(u64::MAX);
        assert_eq!(all.bytes(), before.0 - freed);
        assert_eq!(used.get(), before.1 - (freed - 4 * PLACE_BYTES));
        assert_eq!((all.floor, all.items()), (4, 6));
        // A new cursor reads from the disk up to the floor.
        assert_eq!(all.register(0).1, 4);
        assert_eq!(seqnos(all.take(slow)).0, [5, 6, 7, 8]);
    }

    #[test]
    fn whole_checkpoints_go_once_everybody_has_read_them() {
        let used: Rc<Cell<u64>> = Rc::default();
        let mut all = Checkpoints::new(0, limits(4));
        let (slow, _) = all.register(0);
        for seqno in 1..=10 {
            all.push(item(&used, seqno, seqno), 0);
        }
        while let Take::Some(_) = all.take(PERSISTENCE) {}
        assert_eq!(all.remove_read(u64::MAX), 0, "nothing of it was read by the other");
        assert_eq!(seqnos(all.take(slow)).0, [1, 2, 3, 4]);
        assert!(all.remove_read(1) > 0);
        assert_eq!((all.floor, all.items(), all.len()), (4, 6, 2));
        while let Take::Some(_) = all.take(slow) {}
        all.remove_read(u64::MAX);
        assert_eq!((all.floor, all.items(), all.bytes(), used.get()), (10, 0, 0, 0));
        all.push(item(&used, 1, 11), 1);
        assert_eq!(seqnos(all.take(slow)).0, [11]);
    }

    #[test]
    fn a_snapshot_goes_on_in_the_next_checkpoint() {
        let used: Rc<Cell<u64>> = Rc::default();
        let mut all = Checkpoints::new(0, limits(100));
        let bounds = Bounds { start: 1, end: 50, disk: true };
        all.begin(Some(bounds));
        (1..=10).for_each(|seqno| all.push(item(&used, seqno, seqno), 0));
        let Take::Some(taken) = all.take(PERSISTENCE) else { panic!("ten items") };
        assert_eq!((taken.items.len(), taken.end), (10, 50));
        assert!(all.remove_read(u64::MAX) > 0);
        assert_eq!(all.bytes(), 0);
        (11..=20).for_each(|seqno| all.push(item(&used, seqno, seqno), 0));
        let Take::Some(taken) = all.take(PERSISTENCE) else { panic!("ten more") };
        assert_eq!((taken.items.len(), taken.end, taken.bounds), (10, 50, Some(bounds)));
    }

    #[test]
    fn the_slowest_cursor_is_dropped_and_told() {
        let used = Rc::default();
        let mut all = Checkpoints::new(0, limits(4));
        let (slow, _) = all.register(0);
        for seqno in 1..=8 {
            all.push(item(&used, seqno, seqno), 0);
        }
        // The flusher has read nothing either: dropping would free nothing.
        assert_eq!(all.drop_slowest(), None);
        all.take(PERSISTENCE);
        assert_eq!(all.drop_slowest(), Some(slow));
        assert!(matches!(all.take(slow), Take::Dropped));
        assert!(all.has_more(slow));
        all.expel(u64::MAX);
        assert_eq!(all.floor, 4);
        assert_eq!(all.drop_slowest(), None);
    }

    #[test]
    fn a_version_newer_than_an_expelled_one_is_kept() {
        let used: Rc<Cell<u64>> = Rc::default();
        let mut all = Checkpoints::new(0, limits(100));
        all.push(item(&used, 1, 1), 0);
        all.take(PERSISTENCE);
        all.expel(u64::MAX);
        assert_eq!((all.bytes(), used.get()), (0, 0));
        all.push(item(&used, 1, 2), 1);
        assert_eq!(seqnos(all.take(PERSISTENCE)).0, [2]);
    }
}
