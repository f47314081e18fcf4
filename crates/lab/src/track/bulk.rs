//! Corpora: which files hold documents, which are missing, and what generates those.

use std::path::{Path, PathBuf};

use super::TrackOptions;
use super::context::{Context, Why};
use super::corpora::{Corpus, DocumentSet};
use super::reader::Object;
use crate::corpus::{Corpus as Generated, Source};
use crate::load::{BulkPart, Content};

/// Members of a bulk operation that change nothing here: how Rally reads files, and how much it says.
const HARMLESS: [&str; 4] =
    ["batch-size", "detailed-results", "ignore-response-error-level", "timeout"];
const KNOWN: [&str; 17] = [
    "name",
    "operation-type",
    "tags",
    "meta",
    "include-in-reporting",
    "request-timeout",
    "request-params",
    "opaque-id",
    "assertions",
    "bulk-size",
    "ingest-percentage",
    "corpora",
    "indices",
    "pipeline",
    "refresh",
    "retry-until-success",
    "type",
];
/// Members that would send other documents, with what is not done.
const REFUSED: [(&str, &str); 5] = [
    ("conflicts", "documents that are written again under their ids are not sent yet"),
    ("recency", "documents that are written again under their ids are not sent yet"),
    ("looped", "a corpus is sent once"),
    ("data-streams", "documents are not sent to data streams"),
    ("runtime-fields", "runtime fields are not sent"),
];
/// Documents of a set in test mode, as Rally takes them.
const TEST_DOCUMENTS: u64 = 1000;
/// The most documents in a request.
const BULK_DOCUMENTS_MAX: u64 = 1_000_000;

/// What a bulk operation sends, and how many documents a request has.
pub(super) fn content(context: &Context<'_>, object: &Object<'_>) -> Result<(Content, u64), Why> {
    let reader = context.reader;
    let refused = REFUSED.iter().map(|(name, _)| *name);
    let conflict = ["on-conflict", "conflict-probability"];
    let known: Vec<&str> =
        KNOWN.into_iter().chain(HARMLESS).chain(refused).chain(conflict).collect();
    reader.only(object, "a bulk operation", &known);
    for (name, why) in REFUSED {
        if object.get(name).is_some() {
            return Err((name.to_owned(), why.to_owned()));
        }
    }
    let size = reader.whole(object, "bulk-size", 1, BULK_DOCUMENTS_MAX);
    if size.is_none() && object.get("bulk-size").is_none() {
        reader.wrong(
            object.node,
            "",
            "a bulk operation says how many documents a request has: \"bulk-size\": 500",
        );
    }
    let share = reader.number(object, "ingest-percentage", 0.0).unwrap_or(100.0).min(100.0) / 100.0;
    let corpora = reader.texts(object, "corpora");
    let indices = reader.texts(object, "indices");
    let unknown = |name: &&String| context.corpora.iter().all(|corpus| corpus.name != **name);
    if let Some(name) = corpora.iter().find(unknown) {
        let known = context.corpora.iter().map(|corpus| corpus.name.as_str());
        let near = record::names::did_you_mean(name, known);
        return Err(("corpora".to_owned(), format!("the track has no corpus \"{name}\"{near}")));
    }
    let mut query: Vec<String> = Vec::new();
    for name in ["pipeline", "refresh"] {
        query.extend(reader.text(object, name).map(|value| format!("{name}={value}")));
    }
    let wanted = |corpus: &&Corpus| corpora.is_empty() || corpora.contains(&corpus.name);
    let mut parts = Vec::new();
    for corpus in context.corpora.iter().filter(wanted) {
        for set in &corpus.sets {
            let index = target(context, set)?;
            if !indices.is_empty() && !indices.contains(&index) {
                continue;
            }
            let (source, documents) = documents(context, corpus, set)?;
            parts.push(BulkPart {
                index,
                source,
                documents: 0..((documents as f64 * share).ceil() as u64),
                bulk_documents: size.unwrap_or(1),
                query: query.join("&"),
            });
        }
    }
    match parts.is_empty() {
        true => Err(("operation-type".to_owned(), "it has no documents to send".to_owned())),
        false => Ok((Content::Corpora(parts), size.unwrap_or(1))),
    }
}

fn target(context: &Context<'_>, set: &DocumentSet) -> Result<String, Why> {
    match (&set.target, context.indices.as_slice()) {
        (Some(index), _) => Ok(index.clone()),
        (None, [only]) => Ok(only.name.clone()),
        (None, several) => Err((
            "corpora".to_owned(),
            format!(
                "{} has no target-index, and the track has {} indices",
                set.file,
                several.len()
            ),
        )),
    }
}

/// Where the documents of a set come from, and how many are sent.
fn documents(
    context: &Context<'_>,
    corpus: &Corpus,
    set: &DocumentSet,
) -> Result<(Source, u64), Why> {
    let options = context.options;
    let refuse = |why: String| ("corpora".to_owned(), why);
    if let Some(why) = &set.refused {
        return Err(refuse(format!("{}: {why}", set.file)));
    }
    let all = if set.documents == 0 { u64::MAX } else { set.documents };
    let scaled = if options.scale == 1.0 {
        all
    } else {
        ((all as f64 * options.scale).ceil() as u64).max(1)
    };
    let wanted = if options.test_mode { scaled.min(TEST_DOCUMENTS) } else { scaled };
    let folders = folders(context.reader.files.dir(), &corpus.name, options);
    if let Some(path) = find(&folders, &set.file, options.test_mode) {
        if set.documents == 0 && options.scale != 1.0 && !options.test_mode {
            return Err(refuse(format!(
                "{} has no document-count, so --scale is of no use",
                set.file
            )));
        }
        return Ok((Source::File(path), wanted));
    }
    if !options.generate {
        return Err(refuse(format!(
            "{} is not there; give its folder with --corpora DIR, or have documents of its kind generated with --generate",
            set.file
        )));
    }
    let Some(generated) = generator(&corpus.name, context) else {
        let names = Generated::ALL.map(Generated::name);
        return Err(refuse(format!(
            "{} is not there, and no generator is like the corpus {}; there are {}",
            set.file,
            corpus.name,
            names.join(", ")
        )));
    };
    if wanted == u64::MAX {
        return Err(refuse(format!(
            "{} has no document-count: how many are to be generated?",
            set.file
        )));
    }
    context.change(format!(
        "The documents of the corpus {} are generated: its files are not there. They have the fields and the sizes of the \
         original, not its values.",
        corpus.name
    ));
    Ok((Source::Generated(generated), wanted))
}

/// Our generator of a corpus: by its own name, or by that of the track.
fn generator(corpus: &str, context: &Context<'_>) -> Option<Generated> {
    let folder = context.reader.files.dir().file_name().and_then(|name| name.to_str());
    Generated::named(corpus).or_else(|| Generated::named(folder?))
}

/// Where files of a corpus may lie: as asked for, beside the track, and where Rally and OpenSearch Benchmark keep them.
fn folders(track: &Path, corpus: &str, options: &TrackOptions) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for dir in options.corpora.iter().map(PathBuf::as_path).chain([track]) {
        found.extend([
            dir.to_owned(),
            dir.join(corpus),
            dir.join("data"),
            dir.join("data").join(corpus),
        ]);
    }
    if let Some(home) = std::env::var_os("HOME").map(PathBuf::from) {
        for kept in [".rally/benchmarks/data", ".osb/benchmarks/data", ".benchmark/benchmarks/data"]
        {
            found.push(home.join(kept).join(corpus));
        }
    }
    found
}

/// The file of a set: unpacked where it is there, otherwise as it is; in test mode the short one first.
fn find(folders: &[PathBuf], file: &str, test_mode: bool) -> Option<PathBuf> {
    let packed = [".bz2", ".gz", ".zst"];
    let plain = packed.iter().find_map(|ending| file.strip_suffix(ending)).unwrap_or(file);
    let mut names = vec![plain.to_owned(), file.to_owned()];
    names.extend(packed.iter().map(|ending| format!("{plain}{ending}")));
    if test_mode && let Some((stem, rest)) = file.split_once('.') {
        let short = format!("{stem}-1k.{rest}");
        let plain = packed
            .iter()
            .find_map(|ending| short.strip_suffix(ending))
            .unwrap_or(&short)
            .to_owned();
        names.splice(0..0, [plain, short]);
    }
    let paths = folders.iter().flat_map(|dir| names.iter().map(move |name| dir.join(name)));
    let mut paths = paths.filter(|path| path.is_file());
    paths.next()
}
