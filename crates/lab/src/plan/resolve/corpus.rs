//! `[corpus]`.

use std::ops::RangeInclusive;
use std::path::Path;

use crate::corpus::{FileDocuments, Source};
use crate::error::Error;
use crate::plan::corpus::CorpusUse;
use crate::plan::file::Plan;

const DOCUMENTS: RangeInclusive<i64> = 1..=1_000_000_000_000;
const BULK_DOCUMENTS: RangeInclusive<i64> = 1..=100_000;
const CLIENTS: RangeInclusive<i64> = 1..=1024;

impl Plan {
    /// What is indexed; a plan has that, or a bucket.
    pub(super) fn corpus(&self, scale: f64) -> Result<Option<CorpusUse>, Error> {
        let document = &self.document;
        let corpus = match (&document.corpus, &document.bucket) {
            (None, Some(bucket)) if !document.index.is_empty() => {
                let message = "a plan has a [bucket], or a [corpus] and [[index]], not both";
                return Err(self.error(bucket.span(), message));
            }
            (None, Some(_)) => return Ok(None),
            (Some(corpus), None) if !document.index.is_empty() => corpus,
            _ => {
                let message = "a plan has a [corpus] and at least one [[index]], or a [bucket]";
                return Err(self.error(document.steps.span(), message));
            }
        };
        let named = |name: &str| {
            let source = Source::named(name, self.dir.as_deref())?;
            if let Source::File(path) = &source {
                check_file(path)?;
            }
            Ok::<_, String>(source)
        };
        let documents = self.scaled("documents", &corpus.documents, DOCUMENTS, scale)?;
        let bulk = &corpus.bulk_documents;
        Ok(Some(CorpusUse {
            source: self.unit(&corpus.name, named)?,
            documents,
            bulk_documents: self.number("bulk_documents", bulk, BULK_DOCUMENTS)?,
            clients: self.number("clients", &corpus.clients, CLIENTS)?,
        }))
    }
}

/// Whether documents can be read from a file: that is to be known before clusters are started for them.
fn check_file(path: &Path) -> Result<(), String> {
    let first = FileDocuments::open(path).and_then(|mut file| file.read(&mut Vec::new()));
    match first {
        Ok(true) => Ok(()),
        Ok(false) => Err(format!("{} holds no document", path.display())),
        Err(error) => Err(error.to_string()),
    }
}
