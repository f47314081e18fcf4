//! Bodies for `_bulk` requests.

use std::ops::Range;

use bytes::Bytes;

use super::file::FileDocuments;
use super::generated::DocumentWriter;
use super::source::Source;
use crate::error::Error;

/// The action: index under an automatic id. The index stands in the request's path.
const ACTION: &[u8] = b"{\"index\":{}}\n";

/// The body of one `POST /{index}/_bulk`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BulkBody {
    /// Number of the first document in it, from 0.
    pub first: u64,
    /// Documents in it.
    pub documents: u64,
    /// Newline-delimited JSON: for each document the action line and its source.
    pub body: Bytes,
}

/// Documents of a source one after another.
pub(crate) struct DocumentReader {
    documents: Documents,
    left: Range<u64>,
}

enum Documents {
    Generated(DocumentWriter),
    File(FileDocuments),
}

impl DocumentReader {
    /// The documents `range` of `source`; `seed` matters to generated corpora only. Errors: the file cannot be opened,
    /// or is damaged before the range.
    pub(crate) fn new(source: &Source, seed: u64, range: Range<u64>) -> Result<Self, Error> {
        let documents = match source {
            Source::Generated(corpus) => Documents::Generated(DocumentWriter::new(*corpus, seed)),
            Source::File(path) => {
                let mut file = FileDocuments::open(path)?;
                let mut skipped = Vec::new();
                for _ in 0..range.start {
                    skipped.clear();
                    if !file.read(&mut skipped)? {
                        break;
                    }
                }
                Documents::File(file)
            }
        };
        Ok(DocumentReader { documents, left: range })
    }

    /// Appends the next document, without a newline, and answers with its number; none at the end. After an error there
    /// is nothing more.
    pub(crate) fn next(&mut self, out: &mut Vec<u8>) -> Result<Option<u64>, Error> {
        let Some(n) = self.left.next() else { return Ok(None) };
        let read = match &mut self.documents {
            Documents::Generated(writer) => {
                writer.write(n, out);
                Ok(true)
            }
            Documents::File(file) => file.read(out),
        };
        if !matches!(read, Ok(true)) {
            self.left = 0..0;
        }
        read.map(|is_there| is_there.then_some(n))
    }
}

/// Bodies of a range of documents, one after another. A generated range always holds all its
/// documents; a file may end before. After an error there is nothing more.
pub struct BulkBodies {
    reader: DocumentReader,
    bulk_documents: u64,
    /// Size of the largest body so far: what the next one will probably need.
    capacity: usize,
}

impl BulkBodies {
    /// Bodies of the documents `range` of `source`, `bulk_documents` each (at least one), fewer in
    /// the last. `seed` matters to generated corpora only. Errors: the file cannot be opened, or is
    /// damaged before the range.
    pub fn new(
        source: &Source,
        seed: u64,
        range: Range<u64>,
        bulk_documents: u64,
    ) -> Result<Self, Error> {
        let reader = DocumentReader::new(source, seed, range)?;
        Ok(BulkBodies { reader, bulk_documents: bulk_documents.max(1), capacity: 0 })
    }

    fn body(&mut self) -> Result<Option<BulkBody>, Error> {
        let mut out = Vec::with_capacity(self.capacity);
        let mut first = None;
        let mut documents = 0;
        while documents < self.bulk_documents {
            let action_at = out.len();
            out.extend_from_slice(ACTION);
            let Some(n) = self.reader.next(&mut out)? else {
                out.truncate(action_at);
                break;
            };
            first.get_or_insert(n);
            out.push(b'\n');
            documents += 1;
        }
        self.capacity = self.capacity.max(out.len() + out.len() / 64);
        Ok(first.map(|first| BulkBody { first, documents, body: Bytes::from(out) }))
    }
}

impl Iterator for BulkBodies {
    type Item = Result<BulkBody, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.body().transpose()
    }
}

/// Splits `documents` into one range for each of `clients`, as equal as possible, in order;
/// together they hold every document once.
pub fn portions(documents: u64, clients: u32) -> Vec<Range<u64>> {
    let bound = |client: u32| {
        (u128::from(documents) * u128::from(client) / u128::from(clients.max(1))) as u64
    };
    (0..clients).map(|client| bound(client)..bound(client + 1)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::corpus::Corpus;

    fn bodies(source: &Source, range: Range<u64>, bulk: u64) -> Vec<BulkBody> {
        BulkBodies::new(source, 42, range, bulk).unwrap().map(Result::unwrap).collect()
    }

    fn sources(bodies: &[BulkBody]) -> Vec<u8> {
        let mut out = Vec::new();
        for body in bodies {
            for (i, line) in body.body.split_inclusive(|byte| *byte == b'\n').enumerate() {
                if i % 2 == 1 {
                    out.extend_from_slice(line);
                }
            }
        }
        out
    }

    #[test]
    fn bodies_are_pairs_of_json_lines() {
        for corpus in Corpus::ALL {
            let bodies = bodies(&Source::Generated(corpus), 3..27, 10);
            let counts: Vec<(u64, u64)> = bodies.iter().map(|b| (b.first, b.documents)).collect();
            assert_eq!(counts, [(3, 10), (13, 10), (23, 4)]);
            for body in &bodies {
                let text = std::str::from_utf8(&body.body).unwrap();
                assert!(text.ends_with('\n'));
                let lines: Vec<Value> =
                    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
                assert_eq!(lines.len() as u64, body.documents * 2);
                for pair in lines.chunks(2) {
                    assert_eq!(pair[0], serde_json::json!({"index": {}}));
                    assert!(pair[1].is_object());
                }
            }
        }
    }

    #[test]
    fn clients_generate_what_one_client_would() {
        let source = Source::Generated(Corpus::Geopoint);
        let mut whole = Vec::new();
        Corpus::Geopoint.documents(42, 0, 1_003, &mut whole);
        for clients in [1, 3, 8] {
            let all: Vec<BulkBody> = portions(1_003, clients)
                .into_iter()
                .flat_map(|range| bodies(&source, range, 100))
                .collect();
            assert!(sources(&all) == whole, "{clients} clients");
        }
    }

    #[test]
    fn portions_cover_all_and_differ_by_one() {
        for (documents, clients) in [(10, 3), (2, 5), (0, 4), (u64::MAX, 7)] {
            let portions = portions(documents, clients);
            assert_eq!(portions.len(), clients as usize);
            assert_eq!((portions[0].start, portions[clients as usize - 1].end), (0, documents));
            assert!(portions.windows(2).all(|pair| pair[0].end == pair[1].start));
            let sizes = portions.iter().map(|range| range.end - range.start);
            assert!(sizes.clone().max().unwrap() - sizes.min().unwrap() <= 1);
        }
    }

    #[test]
    fn a_file_may_be_shorter_and_stops_at_damage() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("docs.json");
        std::fs::write(&path, "{\"a\":0}\n{\"a\":1}\n{\"a\":2}\n").unwrap();
        let source = Source::File(path.clone());
        let found = bodies(&source, 1..10, 5);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].body, "{\"index\":{}}\n{\"a\":1}\n{\"index\":{}}\n{\"a\":2}\n");
        assert!(bodies(&source, 3..10, 5).is_empty());

        std::fs::write(&path, "{\"a\":0}\nhello\n{\"a\":2}\n").unwrap();
        let mut damaged = BulkBodies::new(&source, 42, 0..3, 1).unwrap();
        assert!(damaged.next().unwrap().is_ok());
        assert!(damaged.next().unwrap().is_err());
        assert!(damaged.next().is_none());
    }
}
