//! Bodies for `_bulk` requests.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;

use super::conflicts::{Conflicts, Id, Ids};
use super::file::FileDocuments;
use super::generated::DocumentWriter;
use super::mapped::Mapped;
use super::source::Source;
use crate::error::{Error, Result};

/// The action: index under an automatic id. The index stands in the request's path.
const ACTION: &[u8] = b"{\"index\":{}}\n";

/// How documents of a source are written.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Written {
    /// As new ones, whose ids are generated.
    #[default]
    New,
    /// Under ids of their own, and some under those of documents before them.
    Again(Conflicts),
    /// As the file says, which has an action before each document.
    AsSaid,
}

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
    /// The file, and how many documents it is to have, until that is known to be so.
    said: Option<(PathBuf, u64)>,
}

enum Documents {
    Generated(DocumentWriter),
    /// With the seed.
    Mapped(Arc<Mapped>, u64),
    File(FileDocuments),
    /// With actions of their own.
    Actions(FileDocuments),
}

impl Documents {
    /// Opens those of `source` that follow the first `skipped`.
    fn open(source: &Source, seed: u64, written: &Written, skipped: u64) -> Result<Self> {
        let mut documents = match (source, written) {
            (Source::Generated(corpus), _) => {
                return Ok(Documents::Generated(DocumentWriter::new(*corpus, seed)));
            }
            (Source::Mapped(mapped), _) => return Ok(Documents::Mapped(mapped.clone(), seed)),
            (Source::File(path), Written::AsSaid) => Documents::Actions(FileDocuments::open(path)?),
            (Source::File(path), _) => Documents::File(FileDocuments::open(path)?),
        };
        let mut document = Vec::new();
        for n in 0..skipped {
            document.clear();
            if !documents.read(n, &mut document)? {
                break;
            }
        }
        Ok(documents)
    }

    /// Appends document `n`, which is the next, without a newline; false at the end.
    fn read(&mut self, n: u64, out: &mut Vec<u8>) -> Result<bool> {
        match self {
            Documents::Generated(writer) => {
                writer.write(n, out);
                Ok(true)
            }
            Documents::Mapped(mapped, seed) => {
                mapped.write(*seed, n, out);
                Ok(true)
            }
            Documents::File(file) => file.read(out),
            Documents::Actions(file) => file.read_with_action(out),
        }
    }
}

impl DocumentReader {
    /// The documents `range` of `source`; `seed` matters to generated corpora only. Errors: the file cannot be opened,
    /// or is damaged before the range.
    pub(crate) fn new(source: &Source, seed: u64, range: Range<u64>) -> Result<Self> {
        DocumentReader::written(source, seed, range, &Written::New)
    }

    fn written(source: &Source, seed: u64, range: Range<u64>, written: &Written) -> Result<Self> {
        let documents = Documents::open(source, seed, written, range.start)?;
        Ok(DocumentReader { documents, left: range, said: None })
    }

    /// Appends the next document, without a newline, and answers with its number; none at the end. After an error there
    /// is nothing more.
    pub(crate) fn next(&mut self, out: &mut Vec<u8>) -> Result<Option<u64>> {
        let Some(n) = self.left.next() else {
            // Only who reads the last of them sees whether one follows.
            let last = self.said.take().filter(|(_, said)| *said == self.left.end);
            return match last {
                Some((path, said)) if self.documents.read(said, &mut Vec::new())? => {
                    Err(Error::CorpusCount { path, said, found: "more".to_owned() })
                }
                _ => Ok(None),
            };
        };
        let read = self.documents.read(n, out);
        if matches!(read, Ok(true)) {
            return Ok(Some(n));
        }
        self.left = 0..0;
        match (read?, self.said.take()) {
            (false, Some((path, said))) => {
                Err(Error::CorpusCount { path, said, found: n.to_string() })
            }
            _ => Ok(None),
        }
    }
}

/// Bodies of a range of documents, one after another. A generated range always holds all its
/// documents; a file may end before. After an error there is nothing more.
pub struct BulkBodies {
    reader: DocumentReader,
    actions: Actions,
    bulk_documents: u64,
    /// Size of the largest body so far: what the next one will probably need.
    capacity: usize,
}

/// The lines before documents.
enum Actions {
    New,
    /// With the id of the next, and whether documents that are written again are changed by an update.
    Again(Ids, Conflicts),
    /// The documents have them.
    AsSaid,
}

impl BulkBodies {
    /// Bodies of the documents `range` of `source`, `bulk_documents` each (at least one), fewer in
    /// the last. `seed` matters to generated corpora only. Errors: the file cannot be opened, or is
    /// damaged before the range.
    pub fn new(source: &Source, seed: u64, range: Range<u64>, bulk_documents: u64) -> Result<Self> {
        BulkBodies::written(source, seed, range, bulk_documents, &Written::New)
    }

    /// As [`BulkBodies::new`], of documents that are written as `written` says.
    pub fn written(
        source: &Source,
        seed: u64,
        range: Range<u64>,
        bulk_documents: u64,
        written: &Written,
    ) -> Result<Self> {
        let reader = DocumentReader::written(source, seed, range.clone(), written)?;
        let actions = match written {
            Written::New => Actions::New,
            Written::Again(conflicts) => {
                Actions::Again(Ids::new(*conflicts, seed, range), *conflicts)
            }
            Written::AsSaid => Actions::AsSaid,
        };
        Ok(BulkBodies { reader, actions, bulk_documents: bulk_documents.max(1), capacity: 0 })
    }

    /// As far as it is read, the file at `path` is to have `said` documents: what comes after the last of them, or an
    /// end before, is an error.
    pub(crate) fn of_exactly(mut self, path: PathBuf, said: u64) -> Self {
        self.reader.said = Some((path, said));
        self
    }

    /// The next body, which a client sends; none at the end.
    pub(crate) fn next_of(&mut self, client: usize) -> Option<Result<BulkBody>> {
        self.body(client).transpose()
    }

    fn body(&mut self, client: usize) -> Result<Option<BulkBody>> {
        let mut out = Vec::with_capacity(self.capacity);
        let mut first = None;
        let mut documents = 0;
        while documents < self.bulk_documents {
            let action_at = out.len();
            let ending = self.actions.before(client, self.reader.left.start, &mut out);
            let Some(n) = self.reader.next(&mut out)? else {
                out.truncate(action_at);
                break;
            };
            first.get_or_insert(n);
            out.extend_from_slice(ending);
            documents += 1;
        }
        self.capacity = self.capacity.max(out.len() + out.len() / 64);
        Ok(first.map(|first| BulkBody { first, documents, body: Bytes::from(out) }))
    }
}

impl Actions {
    /// Appends what stands before document `n`; answers with what stands behind it.
    fn before(&mut self, client: usize, n: u64, out: &mut Vec<u8>) -> &'static [u8] {
        match self {
            Actions::New => out.extend_from_slice(ACTION),
            Actions::AsSaid => {}
            Actions::Again(ids, conflicts) => {
                let Id { number, again } = ids.next(client, n);
                let is_update = again && conflicts.updates;
                let (action, doc) = if is_update { ("update", "{\"doc\":") } else { ("index", "") };
                let line = format!("{{\"{action}\":{{\"_id\":\"{number:010}\"}}}}\n{doc}");
                out.extend_from_slice(line.as_bytes());
                if is_update {
                    return b"}\n";
                }
            }
        }
        b"\n"
    }
}

impl Iterator for BulkBodies {
    type Item = Result<BulkBody>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_of(0)
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
        let of = |said: u64, bulk: u64| {
            let bodies = BulkBodies::new(&source, 42, 0..said, bulk).unwrap();
            let read: Result<Vec<BulkBody>> = bodies.of_exactly(path.clone(), said).collect();
            read.map(|bodies| bodies.len()).map_err(|error| error.to_string())
        };
        for bulk in [1, 2, 5] {
            assert_eq!(of(3, bulk).unwrap() as u64, 3_u64.div_ceil(bulk));
            assert!(
                of(10, bulk).unwrap_err().contains("document-count is 10, and the file has 3;")
            );
            assert!(
                of(2, bulk).unwrap_err().contains("document-count is 2, and the file has more;")
            );
        }

        std::fs::write(&path, "{\"a\":0}\nhello\n{\"a\":2}\n").unwrap();
        let mut damaged = BulkBodies::new(&source, 42, 0..3, 1).unwrap();
        assert!(damaged.next().unwrap().is_ok());
        assert!(damaged.next().unwrap().is_err());
        assert!(damaged.next().is_none());
    }

    #[test]
    fn documents_are_written_again_under_ids_of_their_own() {
        let conflicts = Conflicts { random: false, probability: 0.5, updates: true, recency: 0.0 };
        let source = Source::Generated(Corpus::HttpLogs);
        let again = Written::Again(conflicts);
        let mut bodies = BulkBodies::written(&source, 42, 0..400, 100, &again).unwrap();
        let (mut ids, mut updates, mut documents) = (Vec::new(), 0, 0);
        while let Some(body) = bodies.next_of(documents % 2) {
            let body = body.unwrap();
            let text = std::str::from_utf8(&body.body).unwrap();
            let lines: Vec<Value> =
                text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            for pair in lines.chunks(2) {
                match (&pair[0]["index"]["_id"], &pair[0]["update"]["_id"]) {
                    (Value::String(id), Value::Null) => {
                        assert!(!ids.contains(id) && pair[1]["status"].is_u64(), "{pair:?}");
                        ids.push(id.clone());
                    }
                    (Value::Null, Value::String(id)) => {
                        assert!(ids.contains(id) && pair[1]["doc"]["status"].is_u64(), "{pair:?}");
                        updates += 1;
                    }
                    _ => panic!("{pair:?}"),
                }
                documents += 1;
            }
        }
        assert_eq!((documents, ids.len() + updates), (400, 400));
        assert!(ids[0] == "0000000000" && (150..250).contains(&updates), "{updates} updates");
    }

    #[test]
    fn a_file_may_bring_its_actions() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("docs.json");
        let lines = [
            r#"{"index":{"_index":"a","_id":"1"}}"#,
            r#"{"x":1}"#,
            r#"{"delete":{"_index":"a","_id":"1"}}"#,
            r#"{"create": {"_id":"2"}}"#,
            r#"{"x":2}"#,
        ];
        let text = lines.map(|line| format!("{line}\n")).concat();
        std::fs::write(&path, &text).unwrap();
        let source = Source::File(path.clone());
        let read = |range: Range<u64>| {
            let mut bodies = BulkBodies::written(&source, 42, range, 10, &Written::AsSaid).unwrap();
            let body = bodies.next().unwrap();
            body.map(|body| (body.documents, String::from_utf8(body.body.to_vec()).unwrap()))
        };
        assert_eq!(read(0..9).unwrap(), (3, text.clone()));
        let last = text.split_inclusive('\n').skip(3).collect();
        assert_eq!(read(2..3).unwrap(), (1, last));

        std::fs::write(&path, "{\"x\":1}\n{\"x\":2}\n").unwrap();
        let said = read(0..9).unwrap_err().to_string();
        assert!(said.contains("docs.json line 1") && said.contains("no action"), "{said}");
        std::fs::write(&path, "{\"index\":{}}\n").unwrap();
        let said = read(0..9).unwrap_err().to_string();
        assert!(said.contains("line 1") && said.contains("no document"), "{said}");
    }
}
