//! Where the versions of a vbucket lie in the log, by sequence number.
//!
//! A version that was superseded stays until its file is compacted, so that a backfill has a consistent view at its
//! end: it reads the versions that were not superseded up to there.
//!
//! Not every sequence number has such a view. A version that was replaced before the flusher took it never reaches the
//! disk, and a part of a snapshot lacks what the rest of the snapshot replaces. So a rollback leads only to versions up
//! to which the disk is known to be whole.

use store::Location;

/// A version on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub seqno: u64,
    /// The version that superseded it; 0 for none.
    pub superseded_by: u64,
    /// Whether this version completes a consistent snapshot: the view up to it is the vbucket as it was then.
    pub completes_snapshot: bool,
    pub location: Location,
}

/// How many of the first entries have about so many bytes together, more than none: at least one, where there is any.
pub(super) fn fitting(entries: &[Entry], bytes_about: u64) -> usize {
    let mut bytes = 0;
    let fits = entries.iter().take_while(|entry| {
        let before = bytes;
        bytes += u64::from(entry.location.bytes);
        before < bytes_about
    });
    fits.count()
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
        match self.entries.last() {
            Some(last) if last.seqno >= seqno => {
                self.entries.binary_search_by_key(&seqno, |entry| entry.seqno)
            }
            // Most versions are the next one.
            _ => Err(self.entries.len()),
        }
    }

    /// A version is on disk, or has moved.
    pub fn put(&mut self, seqno: u64, location: Location) {
        let entry = Entry { seqno, superseded_by: 0, completes_snapshot: false, location };
        match self.position(seqno) {
            Ok(at) => self.entries[at].location = location,
            Err(at) => self.entries.insert(at, entry),
        }
    }

    pub fn get(&self, seqno: u64) -> Option<Entry> {
        self.position(seqno).ok().map(|at| self.entries[at])
    }

    /// This version completes a consistent snapshot.
    pub(crate) fn mark_complete(&mut self, seqno: u64) {
        if let Ok(at) = self.position(seqno) {
            self.entries[at].completes_snapshot = true;
        }
    }

    /// The last version up to `seqno` that completes a snapshot; 0 for none.
    pub(crate) fn last_complete(&self, seqno: u64) -> u64 {
        let end = self.entries.partition_point(|entry| entry.seqno <= seqno);
        let last = self.entries[..end].iter().rev().find(|entry| entry.completes_snapshot);
        last.map_or(0, |entry| entry.seqno)
    }

    /// The first version from `seqno` on that completes a snapshot whose view is still there; none if none has come.
    pub(crate) fn first_complete(&self, seqno: u64) -> Option<u64> {
        let from = seqno.max(self.rollback_floor_seqno);
        let begin = self.entries.partition_point(|entry| entry.seqno < from);
        let first = self.entries[begin..].iter().find(|entry| entry.completes_snapshot);
        first.map(|entry| entry.seqno)
    }

    /// A newer version of the document is on disk. Returns where the superseded version lies, so that its space can be
    /// freed.
    pub(crate) fn supersede(&mut self, seqno: u64, by: u64) -> Option<Location> {
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

    /// Where a rollback to `seqno` leads: to the last whole view up to there, or to 0.
    pub(crate) fn rollback_point(&self, seqno: u64) -> u64 {
        let point = self.last_complete(seqno);
        if point >= self.rollback_floor_seqno { point } else { 0 }
    }

    /// The versions after `seqno`, and those before it that a rollback makes the newest of their document again.
    pub fn beyond(&self, seqno: u64) -> (Vec<Entry>, Vec<Entry>) {
        let at = self.entries.partition_point(|entry| entry.seqno <= seqno);
        let (kept, gone) = self.entries.split_at(at);
        let back = kept.iter().filter(|entry| entry.superseded_by > seqno);
        (gone.to_vec(), back.copied().collect())
    }

    /// Forgets the versions after `seqno`.
    pub fn truncate(&mut self, seqno: u64) {
        let at = self.entries.partition_point(|entry| entry.seqno <= seqno);
        self.entries.truncate(at);
        for entry in self.entries.iter_mut().filter(|entry| entry.superseded_by > seqno) {
            entry.superseded_by = 0;
        }
        if seqno == 0 {
            self.rollback_floor_seqno = 0;
        }
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
    pub(crate) fn raise_rollback_floor(&mut self, seqno: u64) {
        self.rollback_floor_seqno = self.rollback_floor_seqno.max(seqno);
    }

    /// The least sequence number that a rollback can reach.
    pub(crate) fn rollback_floor_seqno(&self) -> u64 {
        self.rollback_floor_seqno
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use store::RecordLog;

    use super::super::record::DiskRecord;
    use super::*;

    #[test]
    fn those_fit_that_begin_before_the_bound() {
        world::virtual_world::run(7, async |env| {
            let opened = RecordLog::<DiskRecord>::open(&env, Path::new("/data"), |_, _| {}).await;
            let (log, _) = opened.unwrap();
            let locations = log.append(vec![DiskRecord::Closed; 5]).await.unwrap();
            let each = u64::from(locations[0].bytes);
            let entry = |location| Entry {
                seqno: 1,
                superseded_by: 0,
                completes_snapshot: false,
                location,
            };
            let entries: Vec<Entry> = locations.into_iter().map(entry).collect();
            for (bytes, fits) in [(1, 1), (each, 1), (each + 1, 2), (u64::MAX, 5)] {
                assert_eq!(fitting(&entries, bytes), fits, "{bytes}");
            }
            assert_eq!(fitting(&[], 1), 0);
        });
    }
}
