//! Small indexes of unit tests, in memory.

use tantivy::{Index, IndexWriter, Searcher, TantivyDocument};

use super::queue::Queued;

/// What is seen of these documents. They are queued as a copy queues its own: for documents of another type all that
/// the library writes them with is compiled once more.
pub(super) fn searcher(index: &Index, documents: Vec<TantivyDocument>) -> Searcher {
    let mut writer: IndexWriter<Queued> = index.writer_with_num_threads(1, 15_000_000).unwrap();
    for document in documents {
        writer.add_document(Queued { document, room: None }).unwrap();
    }
    writer.commit().unwrap();
    index.reader().unwrap().searcher()
}
