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
    /// Whether the disk has all of the vbucket then as it was at `end`.
    pub is_whole: bool,
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
        for Portion { vb, items, end, is_whole } in &self.portions {
            records.extend(items.iter().map(|item| DiskRecord::Item {
                vb: *vb,
                item: item.data(),
                is_whole: *is_whole && item.by_seqno == *end,
            }));
        }
        records
    }
}
