//! Where the versions of a vbucket lie in the log, by sequence number.
//!
//! A version that was superseded stays until its file is compacted, so that a backfill has a consistent view at its
//! end: it reads the versions that were not superseded up to there.

use store::Location;

/// A version on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub seqno: u64,
    /// The version that superseded it; 0 for none.
    pub superseded_by: u64,
    pub location: Location,
}

/// Versions on disk, ascending.
#[derive(Debug, Default)]
pub(super) struct SeqnoIndex {
    entries: Vec<Entry>,
    /// The least sequence number that a rollback can reach: a version was removed that this one superseded.
    rollback_floor_seqno: u64,
}

impl SeqnoIndex {
    fn position(&self, seqno: u64) -> Result<usize, usize> {
        self.entries.binary_search_by_key(&seqno, |entry| entry.seqno)
    }

    /// A version is on disk, or has moved; returns where it was before.
    pub fn put(&mut self, seqno: u64, location: Location) -> Option<Location> {
        let entry = Entry { seqno, superseded_by: 0, location };
        match self.position(seqno) {
            Ok(at) => Some(std::mem::replace(&mut self.entries[at].location, location)),
            Err(at) => {
                self.entries.insert(at, entry);
                None
            }
        }
    }

    pub fn get(&self, seqno: u64) -> Option<Entry> {
        self.position(seqno).ok().map(|at| self.entries[at])
    }

    /// A newer version of the document is on disk. Returns where the superseded version lies, so that its space can be
    /// freed.
    pub fn supersede(&mut self, seqno: u64, by: u64) -> Option<Location> {
        let at = self.position(seqno).ok()?;
        let entry = &mut self.entries[at];
        let first = entry.superseded_by == 0;
        entry.superseded_by = by;
        first.then_some(entry.location)
    }

    /// At most `max` versions after `from` and up to `to` that are part of the view at `to`.
    pub fn view(&self, from: u64, to: u64, max: usize) -> Vec<Entry> {
        let begin = self.entries.partition_point(|entry| entry.seqno <= from);
        let in_view = |e: &&Entry| e.superseded_by == 0 || e.superseded_by > to;
        let entries = self.entries[begin..].iter().take_while(|entry| entry.seqno <= to);
        entries.filter(in_view).take(max).copied().collect()
    }

    /// Whether the vbucket can be rolled back to `seqno`.
    pub fn can_roll_back(&self, seqno: u64) -> bool {
        seqno >= self.rollback_floor_seqno
    }

    /// Forgets the versions after `seqno`; returns them, and those that have become the newest of their document again.
    pub fn truncate(&mut self, seqno: u64) -> (Vec<Entry>, Vec<Entry>) {
        let at = self.entries.partition_point(|entry| entry.seqno <= seqno);
        let gone = self.entries.split_off(at);
        let mut back = Vec::new();
        for entry in &mut self.entries {
            if entry.superseded_by > seqno {
                entry.superseded_by = 0;
                back.push(*entry);
            }
        }
        if seqno == 0 {
            self.rollback_floor_seqno = 0;
        }
        (gone, back)
    }

    /// Forgets the superseded versions in the file `generation`, and returns the others in it.
    pub fn compact(&mut self, generation: u32) -> Vec<Entry> {
        let mut floor = self.rollback_floor_seqno;
        let mut needed = Vec::new();
        self.entries.retain(|entry| {
            if entry.location.generation != generation {
                return true;
            }
            if entry.superseded_by != 0 {
                floor = floor.max(entry.superseded_by);
                return false;
            }
            needed.push(*entry);
            true
        });
        self.rollback_floor_seqno = floor;
        needed
    }

    /// The log says that no rollback leads before `seqno`.
    pub fn raise_rollback_floor(&mut self, seqno: u64) {
        self.rollback_floor_seqno = self.rollback_floor_seqno.max(seqno);
    }

    /// The least sequence number that a rollback can reach.
    pub fn rollback_floor_seqno(&self) -> u64 {
        self.rollback_floor_seqno
    }
}
