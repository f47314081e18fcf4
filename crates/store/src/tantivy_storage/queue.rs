//! What waits to be indexed, bounded by its bytes.
//!
//! The index library bounds its queue only by the number of groups of documents: ten thousand groups of long ones are
//! gigabytes. So a group takes room here before it is queued, and gives it back when the library reads its first
//! document.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use tantivy::TantivyDocument;
use tantivy::schema::Document;

use crate::lock::lock;

/// As much as documents may take that are indexed and not written out yet, or thereabouts.
const MAX_BYTES: usize = 64 << 20;
/// Longer than any document takes. Whoever has waited so long goes on: the library says what is wrong.
const PATIENCE: Duration = Duration::from_secs(60);

/// How much waits, in bytes.
#[derive(Debug, Default)]
pub(super) struct Queue {
    taken_bytes: Mutex<usize>,
    freed: Condvar,
}

impl Queue {
    /// Whether a few more may have to wait.
    pub(super) fn is_filling(&self) -> bool {
        *lock(&self.taken_bytes) > MAX_BYTES / 2
    }

    /// Waits until there is room for so many bytes, which any number of them has where nothing waits.
    pub(super) fn take(self: &Arc<Self>, bytes: usize) -> Room {
        let is_full = |taken: &mut usize| *taken > 0 && *taken + bytes > MAX_BYTES;
        let waited = self.freed.wait_timeout_while(lock(&self.taken_bytes), PATIENCE, is_full);
        let (mut taken, _) = waited.unwrap_or_else(PoisonError::into_inner);
        *taken += bytes;
        Room { queue: self.clone(), bytes }
    }
}

/// Room in a queue, given back when it is dropped.
#[derive(Debug)]
pub(super) struct Room {
    queue: Arc<Queue>,
    bytes: usize,
}

impl Drop for Room {
    fn drop(&mut self) {
        *lock(&self.queue.taken_bytes) -= self.bytes;
        self.queue.freed.notify_one();
    }
}

/// A document on its way to the library; the first of a group holds the room of all of them.
#[derive(Debug)]
pub(super) struct Queued {
    pub(super) document: TantivyDocument,
    pub(super) room: Option<Room>,
}

impl Document for Queued {
    type Value<'a> = <TantivyDocument as Document>::Value<'a>;
    type FieldsValuesIter<'a> = <TantivyDocument as Document>::FieldsValuesIter<'a>;

    fn iter_fields_and_values(&self) -> Self::FieldsValuesIter<'_> {
        self.document.iter_fields_and_values()
    }

    fn into_tantivy_document(self) -> TantivyDocument {
        self.document
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_finds_no_room_waits_until_there_is() {
        let queue = Arc::new(Queue::default());
        let whole = queue.take(2 * MAX_BYTES);
        let (told, is_there) = std::sync::mpsc::channel();
        let waiting = std::thread::spawn({
            let queue = queue.clone();
            move || {
                let room = queue.take(1);
                told.send(()).unwrap();
                room
            }
        });
        assert!(is_there.recv_timeout(Duration::from_millis(50)).is_err(), "it is full");
        drop(whole);
        is_there.recv().unwrap();
        let (one, half) = (waiting.join().unwrap(), queue.take(MAX_BYTES / 2));
        assert_eq!(*lock(&queue.taken_bytes), 1 + MAX_BYTES / 2);
        drop((one, half));
        assert_eq!(*lock(&queue.taken_bytes), 0);
    }

    #[test]
    fn a_document_that_the_library_takes_gives_its_room_back() {
        let queue = Arc::new(Queue::default());
        let room = Some(queue.take(100));
        let queued = Queued { document: TantivyDocument::new(), room };
        let _document = queued.into_tantivy_document();
        assert_eq!(*lock(&queue.taken_bytes), 0);
    }
}
