//! What happened to which document since the last refresh: the index cannot say that yet.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;

/// The newest operation on one document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) seq_no: u64,
    pub(crate) version: u64,
    /// `_source`; none if the document was deleted.
    pub(crate) source: Option<Bytes>,
    /// `_routing`; none where the document goes by its id.
    pub(crate) routing: Option<Arc<str>>,
}

/// A rough guess of what an entry costs beside its id and source.
const ENTRY_BYTES: u64 = 120;

/// Newest operations by `_id`. Never iterated but to drop entries, so its order cannot show.
#[derive(Debug, Default)]
pub(crate) struct VersionMap {
    entries: HashMap<Arc<str>, Entry>,
    bytes: u64,
}

fn cost(id: &str, entry: &Entry) -> u64 {
    let routing = entry.routing.as_ref().map_or(0, |routing| routing.len());
    ENTRY_BYTES + (id.len() + routing) as u64 + entry.source.as_ref().map_or(0, |s| s.len() as u64)
}

impl VersionMap {
    pub(crate) fn get(&self, id: &str) -> Option<&Entry> {
        self.entries.get(id)
    }

    pub(crate) fn insert(&mut self, id: Arc<str>, entry: Entry) {
        self.bytes += cost(&id, &entry);
        if let Some(old) = self.entries.insert(id.clone(), entry) {
            self.bytes -= cost(&id, &old);
        }
    }

    /// About the memory that it takes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// After a refresh the index knows every document. Tombstones stay while an older operation on the
    /// same document may still arrive, that is, while they lie above the local checkpoint.
    pub(crate) fn refreshed(&mut self, local_checkpoint: Option<u64>) {
        let needed =
            |entry: &Entry| entry.source.is_none() && Some(entry.seq_no) > local_checkpoint;
        self.entries.retain(|_, entry| needed(entry));
        self.entries.shrink_to(1024);
        self.bytes = self.entries.iter().map(|(id, entry)| cost(id, entry)).sum();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_only_tombstones_that_older_operations_may_meet() {
        let mut map = VersionMap::default();
        let entry = |seq_no, version, source| Entry { seq_no, version, source, routing: None };
        let live = |seq_no| entry(seq_no, 1, Some(Bytes::from_static(b"{}")));
        let dead = |seq_no| entry(seq_no, 2, None);
        map.insert(Arc::from("a"), live(1));
        map.insert(Arc::from("a"), live(6));
        map.insert(Arc::from("b"), dead(3));
        map.insert(Arc::from("c"), dead(7));
        map.refreshed(Some(5));
        assert_eq!((map.get("a"), map.get("b")), (None, None));
        assert_eq!(map.get("c"), Some(&dead(7)));
        assert_eq!(map.bytes(), cost("c", &dead(7)));
        map.refreshed(Some(7));
        assert_eq!(map.bytes(), 0);
    }
}
