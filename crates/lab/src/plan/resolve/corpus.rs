//! `[corpus]`.

use std::path::Path;

use toml::Spanned;

use super::together::Together;
use crate::corpus::{FileDocuments, Source, check_file};
use crate::error::Result;
use crate::plan::corpus::CorpusUse;
use crate::plan::document::CORPUS;
use crate::plan::file::Plan;

impl Plan {
    /// What is indexed; a plan has that, or a bucket.
    pub(super) fn corpus(&self, scale: f64) -> Result<Option<CorpusUse>> {
        let document = &self.document;
        let corpus = match (&document.corpus, &document.bucket) {
            (None, Some(bucket)) if !document.index.is_empty() => {
                let message = "a plan has a [bucket], or a [corpus] and [[index]], not both";
                return Err(self.error(bucket.span(), message));
            }
            (None, Some(_)) => return Ok(None),
            (None, None) if document.twin.is_some() && document.index.is_empty() => {
                return Ok(None);
            }
            (Some(corpus), None) if !document.index.is_empty() => corpus,
            _ => {
                let message = "a plan has a [corpus] and at least one [[index]], or a [bucket]";
                return Err(self.error(document.steps.span(), message));
            }
        };
        let documents = self.scaled(&CORPUS, "documents", &corpus.documents, scale);
        let source = self.unit(&corpus.name, |name| Source::named(name, self.dir.as_deref()));
        let source = source.and_then(|source| {
            if let Source::File(path) = &source {
                let checked =
                    check_file(path, "the folder of the plan", GENERATED).map(|()| source.clone());
                let source = checked.map_err(|why| self.error(corpus.name.span(), why))?;
                self.check_count(path, &corpus.documents, documents.as_ref().ok(), scale)?;
                return Ok(source);
            }
            Ok(source)
        });
        let found = (
            source,
            documents,
            self.number(&CORPUS, "bulk_documents", &corpus.bulk_documents),
            self.number(&CORPUS, "clients", &corpus.clients),
        );
        let (source, documents, bulk_documents, clients) = found.together()?;
        Ok(Some(CorpusUse { source, documents, bulk_documents, clients }))
    }

    /// Whether a file has as many documents as are asked for.
    fn check_count(
        &self,
        path: &Path,
        written: &Spanned<i64>,
        wanted: Option<&u64>,
        scale: f64,
    ) -> Result<()> {
        let Some(wanted) = wanted else { return Ok(()) };
        let wrong = |said: String| self.error(written.span(), said);
        let found =
            FileDocuments::count(path, *wanted).map_err(|error| wrong(error.to_string()))?;
        if found >= *wanted {
            return Ok(());
        }
        // At most as many as there are, whatever rounding does.
        let fit = (found as f64 / scale).floor().max(1.0) as u64;
        let scaled = if scale == 1.0 { String::new() } else { format!(" at --scale {scale}") };
        let s = if found == 1 { "" } else { "s" };
        let message = format!(
            "{} has {found} document{s}, and {wanted} are asked for{scaled}; write documents = {fit}",
            path.display()
        );
        Err(wrong(message))
    }
}

/// What to write where there are no documents.
const GENERATED: &str = "name = \"geopoint\" for documents that are generated";
