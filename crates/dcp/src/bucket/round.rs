//! What the flusher writes at once.

use std::rc::Rc;

use super::item::Item;
use super::record::DiskRecord;

/// What one round writes of a vbucket.
#[derive(Debug)]
pub(super) struct Portion {
    pub vb: u16,
    pub items: Vec<Rc<Item>>,
    /// Its persisted sequence number afterwards.
    pub end: u64,
    /// Whether this round completes a consistent snapshot of the vbucket at `end`.
    pub completes_snapshot: bool,
}

/// What one round writes.
#[derive(Debug)]
pub(super) struct Round {
    /// States of vbuckets, before the items: the bounds of a snapshot reach the disk before a version from its middle
    /// does.
    pub states: Vec<DiskRecord>,
    pub portions: Vec<Portion>,
}

impl Round {
    pub fn is_empty(&self) -> bool {
        self.states.is_empty() && self.portions.is_empty()
    }

    /// The records, states first.
    pub fn records(&self) -> Vec<DiskRecord> {
        let mut records = self.states.clone();
        for Portion { vb, items, end, completes_snapshot } in &self.portions {
            records.extend(items.iter().map(|item| DiskRecord::Item {
                vb: *vb,
                item: item.data(),
                completes_snapshot: *completes_snapshot && item.by_seqno == *end,
            }));
        }
        records
    }
}
