//! The documents of a vbucket by key: the newest version of each, its value in memory or not.

use std::rc::Rc;

use bytes::Bytes;
use rustc_hash::FxHashMap;

use super::item::Item;

/// The newest version of a document.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    pub item: Rc<Item>,
    /// Whether the item's value is in memory; else it is on disk.
    pub resident: bool,
    /// The version of the document that is on disk; 0 for none.
    pub on_disk: u64,
}

impl Slot {
    /// Whether it has a value in memory that can be read from disk.
    fn is_ejectable(&self) -> bool {
        self.resident && self.on_disk == self.item.by_seqno && !self.item.value.is_empty()
    }
}

/// What is in a table, and what a slot adds to that.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    /// Without deletions.
    pub documents: u64,
    /// Versions whose value is in memory, including deletions.
    pub resident: u64,
    /// Documents whose value can be ejected: without any, no search begins.
    ejectable: u64,
}

impl Counts {
    fn of(slot: &Slot) -> Counts {
        Counts {
            documents: u64::from(!slot.item.is_deleted()),
            resident: u64::from(slot.resident),
            ejectable: u64::from(slot.is_ejectable()),
        }
    }
}

/// Documents by key. The search for values to eject walks them in their order of arrival, so that it does not depend on
/// hashes.
#[derive(Debug, Default)]
pub(super) struct Table {
    places: FxHashMap<Bytes, u32>,
    slots: Vec<Option<Slot>>,
    free: Vec<u32>,
    pub counts: Counts,
    /// Where the search for values to eject stopped.
    hand: usize,
}

impl Table {
    pub fn get(&self, key: &[u8]) -> Option<&Slot> {
        self.places.get(key).and_then(|place| self.slots[*place as usize].as_ref())
    }

    /// Changes the slot at a place, if there is one, and updates the counts.
    fn change<T>(&mut self, place: u32, change: impl FnOnce(&mut Slot) -> T) -> Option<T> {
        let slot = self.slots.get_mut(place as usize)?.as_mut()?;
        let before = Counts::of(slot);
        let changed = change(slot);
        let after = Counts::of(slot);
        self.count(before, after);
        Some(changed)
    }

    fn count(&mut self, before: Counts, after: Counts) {
        let all = &mut self.counts;
        all.documents = all.documents + after.documents - before.documents;
        all.resident = all.resident + after.resident - before.resident;
        all.ejectable = all.ejectable + after.ejectable - before.ejectable;
    }

    /// Stores the newest version of a document; the version on disk stays what it is. Answers which version this
    /// replaces; 0 for none.
    pub fn put(&mut self, item: Rc<Item>) -> u64 {
        let free = self.free.last().copied().unwrap_or(self.slots.len() as u32);
        let place = *self.places.entry(item.key.clone()).or_insert(free);
        item.place.set(place);
        let replaced = self.change(place, |slot| {
            let replaced = slot.item.by_seqno;
            *slot = Slot { item: item.clone(), resident: true, on_disk: slot.on_disk };
            replaced
        });
        if let Some(replaced) = replaced {
            return replaced;
        }
        let slot = Slot { item, resident: true, on_disk: 0 };
        self.count(Counts::default(), Counts::of(&slot));
        match self.free.pop() {
            Some(place) => self.slots[place as usize] = Some(slot),
            None => self.slots.push(Some(slot)),
        }
        0
    }

    /// Stores a version that was found in the log at start; the item has no value in memory.
    pub fn restore(&mut self, item: Rc<Item>, on_disk: u64) {
        self.put(item.clone());
        self.change(item.place.get(), |slot| {
            slot.on_disk = on_disk;
            // A deletion has no value.
            slot.resident = slot.item.is_deleted();
        });
    }

    /// A version that was put here is on disk; answers which one was before. It is found by its place: a key would be
    /// looked up again for every version that is written.
    pub fn persisted(&mut self, item: &Item) -> Option<u64> {
        let before = self.change(item.place.get(), |slot| {
            debug_assert_eq!(slot.item.key, item.key, "nothing is removed while it is written");
            std::mem::replace(&mut slot.on_disk, item.by_seqno)
        })?;
        (before != 0).then_some(before)
    }

    /// A value was read from disk; it is kept if no newer version arrived meanwhile.
    pub fn fetched(&mut self, item: Rc<Item>) {
        let Some(place) = self.places.get(&item.key).copied() else { return };
        self.change(place, |slot| {
            if !slot.resident && slot.item.by_seqno == item.by_seqno {
                slot.item = item;
                slot.resident = true;
            }
        });
    }

    pub fn remove(&mut self, key: &[u8]) {
        let Some(place) = self.places.remove(key) else { return };
        if let Some(slot) = self.slots[place as usize].take() {
            self.count(Counts::of(&slot), Counts::default());
            self.free.push(place);
        }
    }

    /// Ejects values that are on disk, until `want` bytes are freed or none is left; `bare` makes an item without its
    /// value.
    pub fn eject(&mut self, want: u64, bare: impl Fn(&Item) -> Rc<Item>) -> u64 {
        let mut freed = 0;
        while freed < want && self.counts.ejectable > 0 {
            self.hand = (self.hand + 1) % self.slots.len();
            let Some(slot) = &mut self.slots[self.hand] else { continue };
            if slot.is_ejectable() {
                freed += slot.item.value.len() as u64;
                slot.item = bare(&slot.item);
                slot.resident = false;
                self.counts.resident -= 1;
                self.counts.ejectable -= 1;
            }
        }
        freed
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use record::random::split_mix;

    use super::*;
    use crate::bucket::item::{ItemData, ItemKind};

    fn item(key: usize, by_seqno: u64, kind: ItemKind) -> Rc<Item> {
        let deleted = kind != ItemKind::Mutation;
        let value = if deleted { Bytes::new() } else { Bytes::from_static(b"value") };
        let key = Bytes::from(format!("key{key}"));
        let data = ItemData { kind, key, value, by_seqno, ..ItemData::default() };
        Item::new(data, &Rc::<Cell<u64>>::default())
    }

    /// Whatever is done, the counts are those of all slots, and what is ejected is what can be.
    #[test]
    fn the_counts_are_those_of_the_slots() {
        let (mut table, mut state) = (Table::default(), 7);
        let mut newest: [Option<Rc<Item>>; 6] = Default::default();
        let seqno_of = |item: &Option<Rc<Item>>| item.as_ref().map_or(0, |item| item.by_seqno);
        for seqno in 1..3000 {
            let mut below = |count: u64| split_mix(&mut state) % count;
            let key = below(6) as usize;
            let name = format!("key{key}");
            let kind = if below(4) == 0 { ItemKind::Deletion } else { ItemKind::Mutation };
            match below(7) {
                0..3 => {
                    let item = item(key, seqno, kind);
                    assert_eq!(table.put(item.clone()), seqno_of(&newest[key]));
                    newest[key] = Some(item);
                }
                3 => {
                    if let Some(item) = &newest[key] {
                        table.persisted(item);
                    }
                }
                4 => table.fetched(item(key, seqno_of(&newest[key]), ItemKind::Mutation)),
                5 if below(4) == 0 => {
                    table.remove(name.as_bytes());
                    newest[key] = None;
                }
                5 if below(4) == 0 => {
                    table.remove(name.as_bytes());
                    let item = item(key, seqno, kind);
                    table.restore(item.clone(), seqno);
                    newest[key] = Some(item);
                }
                _ => {
                    let before = table.counts.ejectable;
                    let bare =
                        |item: &Item| Item::new(item.without_value(), &Rc::<Cell<u64>>::default());
                    let freed = table.eject(8, bare);
                    assert_eq!(freed, before.min(2) * 5, "{seqno}");
                }
            }
            let sum =
                |of: fn(&Slot) -> bool| table.slots.iter().flatten().filter(|s| of(s)).count();
            let Counts { documents, resident, ejectable } = table.counts;
            let counted = [documents, resident, ejectable];
            let expected =
                [sum(|s| !s.item.is_deleted()), sum(|s| s.resident), sum(Slot::is_ejectable)];
            assert_eq!(counted, expected.map(|count| count as u64), "after {seqno}");
        }
    }
}
