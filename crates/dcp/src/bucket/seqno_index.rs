//! Where a vbucket's history lies in the log, by sequence number.
//!
//! A version that was replaced by a newer one stays until its file is cleaned up, so that a backfill has a consistent
//! view at its end: it reads what was not replaced up to there.

use store::Location;

/// A version on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub seqno: u64,
    /// The version that replaced it; 0 for none.
    pub replaced_by: u64,
    pub location: Location,
}

/// Versions on disk, ascending.
#[derive(Debug, Default)]
pub(super) struct DiskIndex {
    entries: Vec<Entry>,
    /// Something was cleaned up that was replaced by this version or an earlier one: no rollback leads before it.
    cleaned_to: u64,
}

impl DiskIndex {
    fn position(&self, seqno: u64) -> Result<usize, usize> {
        self.entries.binary_search_by_key(&seqno, |entry| entry.seqno)
    }

    /// A version is on disk; one that is there already has moved. Answers where it was before.
    pub fn put(&mut self, seqno: u64, location: Location) -> Option<Location> {
        let entry = Entry { seqno, replaced_by: 0, location };
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

    /// A newer version of a document is on disk. Answers the older's place, which is not needed for good any more.
    pub fn replace(&mut self, seqno: u64, by: u64) -> Option<Location> {
        let at = self.position(seqno).ok()?;
        let entry = &mut self.entries[at];
        let first = entry.replaced_by == 0;
        entry.replaced_by = by;
        first.then_some(entry.location)
    }

    /// At most `max` versions after `from`, up to `to`, that are part of the view at `to`.
    pub fn view(&self, from: u64, to: u64, max: usize) -> Vec<Entry> {
        let begin = self.entries.partition_point(|entry| entry.seqno <= from);
        let in_view = |e: &&Entry| e.replaced_by == 0 || e.replaced_by > to;
        let entries = self.entries[begin..].iter().take_while(|entry| entry.seqno <= to);
        entries.filter(in_view).take(max).copied().collect()
    }

    /// How many versions a view has, about: all between, replaced or not.
    pub fn count(&self, from: u64, to: u64) -> usize {
        let begin = self.entries.partition_point(|entry| entry.seqno <= from);
        let end = self.entries.partition_point(|entry| entry.seqno <= to);
        end.saturating_sub(begin)
    }

    /// Whether the vbucket can go back to `seqno`.
    pub fn can_roll_back(&self, seqno: u64) -> bool {
        seqno >= self.cleaned_to
    }

    /// Forgets what came after `seqno`; answers what is gone, and what has become the newest version again.
    pub fn truncate(&mut self, seqno: u64) -> (Vec<Entry>, Vec<Entry>) {
        let at = self.entries.partition_point(|entry| entry.seqno <= seqno);
        let gone = self.entries.split_off(at);
        let mut back = Vec::new();
        for entry in &mut self.entries {
            if entry.replaced_by > seqno {
                entry.replaced_by = 0;
                back.push(*entry);
            }
        }
        if seqno == 0 {
            self.cleaned_to = 0;
        }
        (gone, back)
    }

    /// Forgets what was replaced and lies in `generation`, and answers what is still needed there.
    pub fn clean(&mut self, generation: u32) -> Vec<Entry> {
        let mut cleaned_to = self.cleaned_to;
        let mut needed = Vec::new();
        self.entries.retain(|entry| {
            if entry.location.generation != generation {
                return true;
            }
            if entry.replaced_by != 0 {
                cleaned_to = cleaned_to.max(entry.replaced_by);
                return false;
            }
            needed.push(*entry);
            true
        });
        self.cleaned_to = cleaned_to;
        needed
    }

    /// Cleaning up happened before the log was opened: up to which version.
    pub fn set_cleaned_to(&mut self, seqno: u64) {
        self.cleaned_to = self.cleaned_to.max(seqno);
    }

    /// Up to which version something was cleaned up.
    pub fn cleaned_to(&self) -> u64 {
        self.cleaned_to
    }
}
