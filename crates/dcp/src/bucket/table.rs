//! The documents of a vbucket by key: the newest version of each, its value in memory or not.

use std::rc::Rc;

use bytes::Bytes;
use rustc_hash::FxHashMap;

use super::item::Item;

/// The newest version of a document.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    pub item: Rc<Item>,
    /// Whether the item has its value; else it is on disk.
    pub resident: bool,
    /// The version of the document that is on disk; 0 for none.
    pub on_disk: u64,
}

impl Slot {
    /// Whether the newest version is on disk.
    pub fn is_clean(&self) -> bool {
        self.on_disk == self.item.by_seqno
    }
}

/// Documents by key. They are also walked in the order in which they came, so that nothing depends on hashes.
#[derive(Debug, Default)]
pub(super) struct Table {
    places: FxHashMap<Bytes, u32>,
    slots: Vec<Option<Slot>>,
    free: Vec<u32>,
    documents: u64,
    resident: u64,
    hand: usize,
}

impl Table {
    pub fn get(&self, key: &[u8]) -> Option<&Slot> {
        self.places.get(key).and_then(|place| self.slots[*place as usize].as_ref())
    }

    fn get_mut(&mut self, key: &[u8]) -> Option<&mut Slot> {
        self.places.get(key).and_then(|place| self.slots[*place as usize].as_mut())
    }

    /// The newest version of a document; which one is on disk is not changed by it.
    pub fn put(&mut self, item: Rc<Item>) {
        self.documents += u64::from(!item.is_deleted());
        self.resident += 1;
        let slot = Slot { item, resident: true, on_disk: 0 };
        if let Some(before) = self.get_mut(&slot.item.key) {
            let (deleted, resident) = (before.item.is_deleted(), before.resident);
            *before = Slot { on_disk: before.on_disk, ..slot };
            self.documents -= u64::from(!deleted);
            self.resident -= u64::from(resident);
            return;
        }
        let place = self.free.pop().unwrap_or(self.slots.len() as u32);
        self.places.insert(slot.item.key.clone(), place);
        match self.slots.get_mut(place as usize) {
            Some(free) => *free = Some(slot),
            None => self.slots.push(Some(slot)),
        }
    }

    /// As it is read from disk at the start: the item has no value there.
    pub fn restore(&mut self, item: Rc<Item>, on_disk: u64) {
        let (key, deleted) = (item.key.clone(), item.is_deleted());
        self.put(item);
        if let Some(slot) = self.get_mut(&key) {
            slot.on_disk = on_disk;
            // A deletion has no value that could be elsewhere.
            slot.resident = deleted;
            self.resident -= u64::from(!deleted);
        }
    }

    /// A version is on disk; answers the one that was before.
    pub fn persisted(&mut self, key: &[u8], seqno: u64) -> Option<u64> {
        let slot = self.get_mut(key)?;
        let before = std::mem::replace(&mut slot.on_disk, seqno);
        (before != 0).then_some(before)
    }

    /// A value was read from disk; it stays, if no newer version came meanwhile.
    pub fn fetched(&mut self, item: Rc<Item>) {
        let key = item.key.clone();
        if let Some(slot) = self.get_mut(&key)
            && !slot.resident
            && slot.item.by_seqno == item.by_seqno
        {
            slot.item = item;
            slot.resident = true;
            self.resident += 1;
        }
    }

    pub fn remove(&mut self, key: &[u8]) {
        let Some(place) = self.places.remove(key) else { return };
        if let Some(slot) = self.slots[place as usize].take() {
            self.documents -= u64::from(!slot.item.is_deleted());
            self.resident -= u64::from(slot.resident);
            self.free.push(place);
        }
    }

    /// Takes values out of memory that are on disk, until `want` bytes are freed or all were looked at; `bare` makes an
    /// item without its value.
    pub fn eject(&mut self, want: u64, bare: impl Fn(&Item) -> Rc<Item>) -> u64 {
        let mut freed = 0;
        for _ in 0..self.slots.len() {
            if freed >= want {
                break;
            }
            self.hand = (self.hand + 1) % self.slots.len();
            let Some(slot) = &mut self.slots[self.hand] else { continue };
            if slot.resident && slot.is_clean() && !slot.item.value.is_empty() {
                freed += slot.item.value.len() as u64;
                slot.item = bare(&slot.item);
                slot.resident = false;
                self.resident -= 1;
            }
        }
        freed
    }

    /// Documents that are there, without deletions.
    pub fn documents(&self) -> u64 {
        self.documents
    }

    /// Versions whose value is in memory, deletions too.
    pub fn resident(&self) -> u64 {
        self.resident
    }
}
