//! A version of a document, and the memory that it takes.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;

/// Bytes counted for an item besides its key and value, including its slot among the documents.
const ITEM_OVERHEAD_BYTES: usize = 192;

/// What a version does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ItemKind {
    /// Writes the document.
    #[default]
    Mutation,
    /// Deletes it.
    Deletion,
    /// Deletes it because it expired.
    Expiration,
}

/// A version of a document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ItemData {
    /// What it does.
    pub kind: ItemKind,
    /// Key.
    pub key: Bytes,
    /// Value.
    pub value: Bytes,
    /// Its sequence number in the vbucket.
    pub by_seqno: u64,
    /// How often the document was changed.
    pub rev_seqno: u64,
    /// The version that clients compare with.
    pub cas: u64,
    /// The client's own flags.
    pub flags: u32,
    /// When the document expires, or was deleted: seconds since 1970; 0 never.
    pub time_s: u32,
    /// How the value is encoded.
    pub datatype: u8,
}

impl ItemData {
    /// Whether the document is gone with it.
    pub fn is_deleted(&self) -> bool {
        self.kind != ItemKind::Mutation
    }

    /// Bytes of memory that an item of such a key and value takes.
    pub fn memory_bytes(key: usize, value: usize) -> u64 {
        (ITEM_OVERHEAD_BYTES + key + value) as u64
    }

    /// The same without its value.
    pub(super) fn without_value(&self) -> ItemData {
        ItemData { value: Bytes::new(), ..self.clone() }
    }
}

/// Bytes that count as used memory until this is dropped.
#[derive(Debug)]
struct Charge {
    bytes: u64,
    used: Rc<Cell<u64>>,
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.used.set(self.used.get() - self.bytes);
    }
}

/// A version of a document in memory, shared by its holders. Its bytes count as used until the last drops it.
#[derive(Debug)]
pub struct Item {
    /// Shared with the log of a virtual disk.
    data: Arc<ItemData>,
    /// Its place in the table of documents.
    pub(super) place: Cell<u32>,
    _charge: Charge,
}

impl std::ops::Deref for Item {
    type Target = ItemData;

    fn deref(&self) -> &ItemData {
        &self.data
    }
}

impl Item {
    /// An item whose bytes count in `used`.
    pub(super) fn new(data: impl Into<Arc<ItemData>>, used: &Rc<Cell<u64>>) -> Rc<Item> {
        let data: Arc<ItemData> = data.into();
        let bytes = ItemData::memory_bytes(data.key.len(), data.value.len());
        used.set(used.get() + bytes);
        let charge = Charge { bytes, used: used.clone() };
        Rc::new(Item { data, place: Cell::default(), _charge: charge })
    }

    /// What it holds, for the log.
    pub(super) fn data(&self) -> Arc<ItemData> {
        self.data.clone()
    }

    /// Bytes that it takes.
    pub fn bytes(&self) -> u64 {
        self._charge.bytes
    }
}
