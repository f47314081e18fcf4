//! What happened to which document since the last refresh: the index cannot say that yet.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use world::Time;

/// The newest operation on one document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) seq_no: u64,
    pub(crate) version: u64,
    /// `_source`; none if the document was deleted.
    pub(crate) source: Option<Bytes>,
    /// `_routing`; none where the document goes by its id.
    pub(crate) routing: Option<Arc<str>>,
    /// When this copy applied it.
    pub(crate) at: Time,
}

/// How long a write finds the version of a document that was deleted: the field's default of `index.gc_deletes`.
pub(crate) const DELETED_KEPT: Duration = Duration::from_secs(60);

/// About the memory of versions that are kept beyond a refresh. Past it the older half goes.
const DELETED_BYTES_MAX: u64 = 8 << 20;

/// A rough guess of what an entry costs beside its id and source.
const ENTRY_BYTES: u64 = 120;

/// Newest operations by `_id`. Never iterated but to drop entries, so its order cannot show.
#[derive(Debug, Default)]
pub(crate) struct VersionMap {
    entries: HashMap<Arc<str>, Entry>,
    bytes: u64,
    /// Deletions that the index knows, and not their versions.
    deleted: HashMap<Arc<str>, Entry>,
}

fn is_young(entry: &Entry, now: Time) -> bool {
    now - entry.at < DELETED_KEPT
}

fn cost(id: &str, entry: &Entry) -> u64 {
    let routing = entry.routing.as_ref().map_or(0, |routing| routing.len());
    ENTRY_BYTES + (id.len() + routing) as u64 + entry.source.as_ref().map_or(0, |s| s.len() as u64)
}

impl VersionMap {
    pub(crate) fn get(&self, id: &str) -> Option<&Entry> {
        self.entries.get(id).or_else(|| self.deleted.get(id))
    }

    pub(crate) fn insert(&mut self, id: Arc<str>, entry: Entry) {
        self.bytes += cost(&id, &entry);
        self.deleted.remove(&id);
        if let Some(old) = self.entries.insert(id.clone(), entry) {
            self.bytes -= cost(&id, &old);
        }
    }

    /// About the memory that it takes until a refresh.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// After a refresh the index knows every document. Tombstones stay while an older operation on the
    /// same document may still arrive, that is, while they lie above the local checkpoint; others for
    /// [`DELETED_KEPT`].
    pub(crate) fn refreshed(&mut self, local_checkpoint: Option<u64>, now: Time) {
        self.forget_deletions(now);
        let deleted = &mut self.deleted;
        self.entries.retain(|id, entry| {
            let is_tombstone = entry.source.is_none();
            let is_needed = is_tombstone && Some(entry.seq_no) > local_checkpoint;
            if is_tombstone && !is_needed && is_young(entry, now) {
                deleted.insert(id.clone(), entry.clone());
            }
            is_needed
        });
        self.entries.shrink_to(1024);
        self.bytes = self.entries.iter().map(|(id, entry)| cost(id, entry)).sum();
        let bytes: u64 = deleted.iter().map(|(id, entry)| cost(id, entry)).sum();
        if bytes > DELETED_BYTES_MAX {
            let mut seq_nos: Vec<u64> = deleted.values().map(|entry| entry.seq_no).collect();
            let middle = seq_nos.len() / 2;
            let (_, middle, _) = seq_nos.select_nth_unstable(middle);
            deleted.retain(|_, entry| entry.seq_no >= *middle);
        }
        deleted.shrink_to(1024);
    }

    /// Drops the deletions that no write finds any more; whether others are left.
    pub(crate) fn forget_deletions(&mut self, now: Time) -> bool {
        self.deleted.retain(|_, entry| is_young(entry, now));
        if self.deleted.is_empty() {
            self.deleted.shrink_to_fit();
        }
        !self.deleted.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(seq_no: u64, version: u64, source: Option<Bytes>) -> Entry {
        Entry { seq_no, version, source, routing: None, at: Time(0) }
    }

    fn live(seq_no: u64) -> Entry {
        entry(seq_no, 1, Some(Bytes::from_static(b"{}")))
    }

    fn dead(seq_no: u64) -> Entry {
        entry(seq_no, 2, None)
    }

    #[test]
    fn keeps_only_tombstones_that_older_operations_may_meet() {
        let mut map = VersionMap::default();
        map.insert(Arc::from("a"), live(1));
        map.insert(Arc::from("a"), live(6));
        map.insert(Arc::from("b"), dead(3));
        map.insert(Arc::from("c"), dead(7));
        let later = Time(0) + DELETED_KEPT;
        map.refreshed(Some(5), later);
        assert_eq!((map.get("a"), map.get("b")), (None, None));
        assert_eq!(map.get("c"), Some(&dead(7)));
        assert_eq!(map.bytes(), cost("c", &dead(7)));
        map.refreshed(Some(7), later);
        assert_eq!((map.bytes(), map.get("c")), (0, None));
    }

    #[test]
    fn deletions_are_forgotten_where_nothing_is_refreshed() {
        let mut map = VersionMap::default();
        map.insert(Arc::from("a"), dead(1));
        map.refreshed(Some(1), Time(0));
        assert!(map.forget_deletions(Time(0) + DELETED_KEPT / 2));
        assert_eq!(map.get("a"), Some(&dead(1)));
        assert!(!map.forget_deletions(Time(0) + DELETED_KEPT));
        assert_eq!((map.get("a"), map.deleted.capacity()), (None, 0));
    }

    #[test]
    fn of_too_many_deletions_the_newest_are_known() {
        let mut map = VersionMap::default();
        let count = DELETED_BYTES_MAX / ENTRY_BYTES;
        (0..count).for_each(|n| map.insert(Arc::from(n.to_string()), dead(n)));
        map.refreshed(Some(count), Time(0));
        assert_eq!(map.get("0"), None);
        assert!(map.get(&(count - 1).to_string()).is_some());
    }
}
