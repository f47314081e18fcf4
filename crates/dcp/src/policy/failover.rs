//! The failover table of a vbucket, and whether a consumer can continue from its position.
//!
//! The rules and their order are those of the protocol's documentation (`rebalance.md` and `rollback` in
//! `kv_engine/docs/dcp`): the first that applies decides.

use std::collections::VecDeque;

use crate::codec::FailoverEntry;

/// The most entries of a table; the oldest are dropped.
const MAX_ENTRIES: usize = 25;

/// The histories of a vbucket, newest first. A history begins after a sequence number, when the vbucket becomes
/// active or its node restarts after a crash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailoverTable {
    entries: VecDeque<FailoverEntry>,
}

/// The position of a consumer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamStart {
    /// The last sequence number that it has.
    pub start: u64,
    /// The newest history that it has.
    pub uuid: u64,
    /// First sequence number of the snapshot that `start` is in.
    pub snap_start: u64,
    /// Last sequence number of that snapshot.
    pub snap_end: u64,
}

/// Whether a stream can begin at a consumer's position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartDecision {
    /// It can.
    Go,
    /// The consumer has to roll back to this sequence number first.
    Rollback(u64),
}

impl FailoverTable {
    /// The table of a vbucket that never had another history.
    pub fn new(uuid: u64) -> FailoverTable {
        FailoverTable { entries: VecDeque::from([FailoverEntry { uuid, seqno: 0 }]) }
    }

    /// A table that came from a producer or from disk, newest first; none if it is empty, its sequence numbers
    /// rise towards the older, or it is longer than tables are.
    pub fn adopt(entries: Vec<FailoverEntry>) -> Option<FailoverTable> {
        let falls = entries.is_sorted_by(|newer, older| newer.seqno >= older.seqno);
        let valid = !entries.is_empty() && entries.len() <= MAX_ENTRIES && falls;
        valid.then(|| FailoverTable { entries: entries.into() })
    }

    /// The newest history.
    pub fn uuid(&self) -> u64 {
        self.entries[0].uuid
    }

    /// The entries, newest first.
    pub fn entries(&self) -> Vec<FailoverEntry> {
        self.entries.iter().copied().collect()
    }

    /// A new history begins after `high`. Of histories that began after it, only what is before it is shared: whoever
    /// has one of them can roll back to `high`. (`kv_engine` forgets them, so that it rolls back to 0.)
    pub fn begin(&mut self, uuid: u64, high: u64) {
        self.entries.iter_mut().for_each(|entry| entry.seqno = entry.seqno.min(high));
        self.entries.push_front(FailoverEntry { uuid, seqno: high });
        self.entries.truncate(MAX_ENTRIES);
    }

    /// Forgets histories that began after `seqno`; the oldest stays.
    pub fn roll_back(&mut self, seqno: u64) {
        while self.entries.len() > 1 && self.entries[0].seqno > seqno {
            self.entries.pop_front();
        }
    }

    /// Whether a consumer can continue; `high` is the vbucket's highest sequence number. The rule about deletions that
    /// were purged has no place here: none ever is.
    pub fn decide(&self, at: StreamStart, high: u64) -> StartDecision {
        if at.start == 0 {
            return StartDecision::Go;
        }
        let Some(known) = self.entries.iter().position(|entry| entry.uuid == at.uuid) else {
            return StartDecision::Rollback(0);
        };
        let upper = known.checked_sub(1).map_or(high, |newer| self.entries[newer].seqno);
        let (mut snap_start, mut snap_end) = (at.snap_start, at.snap_end);
        if at.start == snap_start {
            snap_end = at.start;
        }
        if snap_end <= upper {
            return StartDecision::Go;
        }
        if at.start == snap_end {
            snap_start = at.start;
        }
        StartDecision::Rollback(upper.min(snap_start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> FailoverTable {
        let mut table = FailoverTable::new(10);
        table.begin(20, 100);
        table.begin(30, 200);
        table
    }

    fn at(start: u64, uuid: u64, snap_start: u64, snap_end: u64) -> StreamStart {
        StreamStart { start, uuid, snap_start, snap_end }
    }

    #[test]
    fn the_first_rule_that_applies_decides() {
        use StartDecision::{Go, Rollback};
        let table = table();
        let decide = |at| table.decide(at, 300);
        // From nothing all is well, even with a history that nobody knows.
        assert_eq!(decide(at(0, 99, 0, 0)), Go);
        assert_eq!(decide(at(50, 10, 50, 50)), Go);
        // A history that is not known, or was forgotten.
        assert_eq!(decide(at(250, 99, 250, 250)), Rollback(0));
        // The newest history ends at the high sequence number.
        assert_eq!(decide(at(250, 30, 200, 280)), Go);
        assert_eq!(decide(at(300, 30, 300, 300)), Go);
        assert_eq!(decide(at(301, 30, 301, 301)), Rollback(300));
        // An older one ends where the next began.
        assert_eq!(decide(at(150, 20, 120, 200)), Go);
        assert_eq!(decide(at(150, 20, 120, 201)), Rollback(120));
        assert_eq!(decide(at(150, 10, 90, 201)), Rollback(90));
        assert_eq!(decide(at(150, 10, 120, 201)), Rollback(100));
    }

    #[test]
    fn whole_snapshots_count_as_their_end_and_empty_ones_as_their_start() {
        use StartDecision::{Go, Rollback};
        let table = table();
        // Nothing of the snapshot has come: where it would end does not matter.
        assert_eq!(table.decide(at(150, 20, 150, 900), 300), Go);
        // All of it has come: where it began does not matter.
        assert_eq!(table.decide(at(250, 20, 120, 250), 300), Rollback(200));
    }

    #[test]
    fn a_history_that_begins_earlier_keeps_the_names_of_the_others() {
        use StartDecision::{Go, Rollback};
        let mut table = table();
        table.begin(40, 150);
        let entries = table.entries().into_iter().map(|entry| (entry.uuid, entry.seqno));
        let entries: Vec<_> = entries.collect();
        assert_eq!(entries, [(40, 150), (30, 150), (20, 100), (10, 0)]);
        assert_eq!(FailoverTable::adopt(table.entries()), Some(table.clone()));
        for uuid in [20, 30] {
            assert_eq!(table.decide(at(220, uuid, 220, 220), 160), Rollback(150));
            assert_eq!(table.decide(at(160, uuid, 120, 170), 160), Rollback(120));
            assert_eq!(table.decide(at(140, uuid, 140, 140), 160), Go);
        }
        assert_eq!(table.decide(at(160, 40, 160, 160), 160), Go);
    }

    #[test]
    fn keeps_the_newest_and_forgets_what_was_rolled_back() {
        let mut table = FailoverTable::new(1);
        for n in 2..=40 {
            table.begin(n, n * 10);
        }
        let entries = table.entries();
        assert_eq!((entries.len(), entries[0].uuid, entries[24].uuid), (25, 40, 16));
        table.roll_back(305);
        assert_eq!(table.entries()[0], FailoverEntry { uuid: 30, seqno: 300 });
        table.roll_back(0);
        assert_eq!(table.entries().len(), 1);
        table.begin(77, 0);
        assert_eq!(table.uuid(), 77);
    }

    #[test]
    fn a_table_from_elsewhere_is_checked() {
        assert_eq!(FailoverTable::adopt(table().entries()), Some(table()));
        assert_eq!(FailoverTable::adopt(Vec::new()), None);
        let entry = |uuid, seqno| FailoverEntry { uuid, seqno };
        assert_eq!(FailoverTable::adopt(vec![entry(1, 5), entry(2, 6)]), None);
        assert_eq!(FailoverTable::adopt(vec![entry(1, 0); 26]), None);
    }

    /// Where the table sends a consumer back to, both have the same: the consumer's history and the producer's
    /// agree up to there. Checked against all histories of a small world.
    #[test]
    fn after_a_rollback_both_sides_agree() {
        let table = table();
        // Up to which number a consumer whose newest history is `uuid` shares the producer's.
        let shared = |uuid: u64| match uuid {
            30 => 300,
            20 => 200,
            10 => 100,
            _ => 0,
        };
        for uuid in [10, 20, 30, 99] {
            for start in (0..400).step_by(10) {
                for back in (0..=start).step_by(30) {
                    for ahead in (0..100).step_by(30) {
                        let (snap_start, snap_end) = (start - back, start + ahead);
                        let from = at(start, uuid, snap_start, snap_end);
                        match table.decide(from, 300) {
                            StartDecision::Go => assert!(start <= shared(uuid), "{from:?}"),
                            StartDecision::Rollback(to) => {
                                assert!(to <= shared(uuid) && to <= start, "{from:?} to {to}");
                                let next = at(to, uuid, to, to);
                                let next = table.decide(next, 300);
                                assert_eq!(next, StartDecision::Go, "{from:?} to {to}");
                            }
                        }
                    }
                }
            }
        }
    }
}
