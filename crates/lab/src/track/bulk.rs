//! Corpora: which files hold documents, which are missing, and what generates those.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use super::TrackOptions;
use super::context::{Context, NOT_RENAMED, Why};
use super::corpora::{Corpus, DocumentSet};
use super::reader::Object;
use super::templates::Template;
use crate::corpus::{Conflicts, Corpus as Generated, FileDocuments, Mapped, Source, Written};
use crate::load::{BulkPart, Content};

/// Members of a bulk operation that change nothing here: how Rally reads files, and when it gives up.
const HARMLESS: [&str; 3] = ["batch-size", "ignore-response-error-level", "timeout"];
/// Members that say what is sent, beside those of every operation.
const OWN: [&str; 11] = [
    "bulk-size", "ingest-percentage", "corpora", "indices", "pipeline", "refresh", "type",
    "conflicts", "conflict-probability", "on-conflict", "recency",
];
/// Members of tasks that tracks also write into their bulk operations, where Rally does not read them.
const OF_TASKS: [&str; 2] = ["clients", "warmup-time-period"];
/// Members that would send other documents, with what is not done.
const REFUSED: [(&str, &str); 3] = [
    ("looped", "a corpus is sent once, and not again from its start; write false"),
    ("data-streams", "documents are not sent to data streams"),
    ("runtime-fields", "runtime fields are not sent"),
];
/// Documents of a set in test mode, as Rally takes them.
const TEST_DOCUMENTS: u64 = 1000;
const BULK_DOCUMENTS_MAX: u64 = 1_000_000;

/// What a bulk operation sends, and how many documents a request has.
pub(super) fn content(context: &Context<'_>, object: &Object<'_>) -> Result<(Content, u64), Why> {
    let reader = context.reader;
    let refused = REFUSED.map(|(name, _)| name);
    let own = [&OWN[..], &HARMLESS, &OF_TASKS, &refused].concat();
    context.only(object, "a bulk operation", &own);
    for name in OF_TASKS.iter().filter(|name| object.get(name).is_some()) {
        context.change(format!(
            "\"{name}\" within a bulk operation changes nothing, as in Rally: it belongs into the task."
        ));
    }
    context.no_type(object)?;
    for (name, why) in REFUSED {
        // As without it.
        let is_off = || name == "looped" && reader.bool(object, name) == Some(false);
        if object.get(name).is_some() && !is_off() {
            return Err((name.to_owned(), why.to_owned()));
        }
    }
    let size = reader.whole(object, "bulk-size", 1, BULK_DOCUMENTS_MAX);
    if size.is_none() && object.get("bulk-size").is_none() {
        let said = "a bulk operation says how many documents a request has: \"bulk-size\": 500";
        reader.wrong(object.node, "", said);
    }
    let percentage = reader.number(object, "ingest-percentage", 0.0).unwrap_or(100.0);
    if percentage <= 0.0 || percentage > 100.0 {
        let said =
            format!("ingest-percentage is a number above 0 and up to 100, found {percentage}");
        reader.wrong(object.at("ingest-percentage"), "ingest-percentage", said);
    }
    let share = percentage / 100.0;
    let corpora = reader.texts(object, "corpora");
    let indices = reader.texts(object, "indices");
    let unknown = |name: &&String| context.corpora.iter().all(|corpus| corpus.name != **name);
    if let Some(name) = corpora.iter().find(unknown) {
        let known = context.corpora.iter().map(|corpus| corpus.name.as_str());
        let near = record::names::did_you_mean(name, known);
        return Err(("corpora".to_owned(), format!("the track has no corpus \"{name}\"{near}")));
    }
    // As a request says that it wants none, whatever its index says.
    let has_pipeline = || reader.text(object, "pipeline").is_none_or(|name| name != "_none");
    if context.options.embedded && object.get("pipeline").is_some() && has_pipeline() {
        let why = "the embedded engine has no pipelines: it indexes documents as they are sent";
        return Err(("pipeline".to_owned(), why.to_owned()));
    }
    let own = ["pipeline", "refresh"].map(|name| Some((name, reader.text(object, name)?)));
    let query = context.query(object, &own.into_iter().flatten().collect::<Vec<_>>());
    let conflicts = conflicts(context, object);
    let wanted = |corpus: &&Corpus| corpora.is_empty() || corpora.contains(&corpus.name);
    let mut parts = Vec::new();
    for corpus in context.corpora.iter().filter(wanted) {
        for set in &corpus.sets {
            let index = target(context, set)?;
            if !indices.is_empty() && !indices.contains(&index) {
                continue;
            }
            let (source, documents) = documents(context, corpus, (set, &index))?;
            if share < 1.0 && documents == u64::MAX {
                let why = format!("{} has no document-count: what is a share of it?", set.file);
                return Err(("ingest-percentage".to_owned(), why));
            }
            let written = written(set, conflicts, documents)?;
            parts.push(BulkPart {
                index,
                source,
                documents: 0..((documents as f64 * share).ceil() as u64),
                bulk_documents: size.unwrap_or(1),
                query: query.trim_start_matches('?').to_owned(),
                written,
                // In test mode a shorter file may be read. A file with actions may delete, which no count says.
                said: Some(set.documents)
                    .filter(|said| *said > 0 && !context.options.test_mode && !set.has_actions),
            });
        }
    }
    match parts.is_empty() {
        true => Err(("operation-type".to_owned(), "it has no documents to send".to_owned())),
        false => Ok((Content::Corpora(parts), size.unwrap_or(1))),
    }
}

/// How the documents of a set are written; no conflicts where their ids are not known.
fn written(
    set: &DocumentSet,
    conflicts: Option<Conflicts>,
    documents: u64,
) -> Result<Written, Why> {
    let refuse = |why: &str| Err(("conflicts".to_owned(), format!("{} has {why}", set.file)));
    match conflicts {
        Some(_) if set.has_actions => {
            refuse("actions with ids of its own, so that no document can be given another's")
        }
        Some(_) if documents == u64::MAX => refuse("no document-count: how many ids are there?"),
        Some(conflicts) => Ok(Written::Again(conflicts)),
        None if set.has_actions => Ok(Written::AsSaid),
        None => Ok(Written::New),
    }
}

/// Which documents are written again, where the operation asks for it. Names and bounds are Rally's.
fn conflicts(context: &Context<'_>, object: &Object<'_>) -> Option<Conflicts> {
    let reader = context.reader;
    let one_of = |member: &str, known: [&str; 2]| {
        let found = reader.text(object, member)?;
        if !known.contains(&found.as_str()) {
            let near = record::names::did_you_mean(&found, known);
            let said = format!("{member} is {} or {}, found \"{found}\"{near}", known[0], known[1]);
            reader.wrong(object.at(member), member, said);
        }
        Some(found)
    };
    let at_most = |member: &str, most: f64, otherwise: f64| {
        let found = reader.number(object, member, 0.0).unwrap_or(otherwise);
        if found > most {
            let said = format!("{member} is a number from 0 to {most}, found {found}");
            reader.wrong(object.at(member), member, said);
        }
        found.min(most)
    };
    let order = one_of("conflicts", ["sequential", "random"]);
    let on_conflict = one_of("on-conflict", ["index", "update"]);
    let probability = at_most("conflict-probability", 100.0, 25.0) / 100.0;
    let recency = at_most("recency", 1.0, 0.0);
    order.map(|order| Conflicts {
        random: order == "random",
        probability,
        updates: on_conflict.is_some_and(|action| action == "update"),
        recency,
    })
}

fn target(context: &Context<'_>, set: &DocumentSet) -> Result<String, Why> {
    match (&set.target, context.indices.as_slice()) {
        _ if set.has_actions => Ok(String::new()),
        (Some(index), _) => Ok(index.clone()),
        (None, [only]) => Ok(only.name.clone()),
        (None, several) => {
            let (file, count) = (&set.file, several.len());
            let lacks = || format!("{file} has no target-index, and the track has {count} indices");
            let why = set.refused.as_ref().map_or_else(lacks, |why| format!("{file}: {why}"));
            Err(("corpora".to_owned(), why))
        }
    }
}

/// Where the documents of a set come from, and how many are sent.
fn documents(
    context: &Context<'_>,
    corpus: &Corpus,
    (set, index): (&DocumentSet, &str),
) -> Result<(Source, u64), Why> {
    let (options, scale, file) = (context.options, context.options.scale, &set.file);
    let refuse = |why: String| ("corpora".to_owned(), why);
    if let Some(why) = &set.refused {
        return Err(refuse(format!("{file}: {why}")));
    }
    if set.has_actions && options.live {
        return Err(refuse(format!("{file} brings its own actions: {NOT_RENAMED}")));
    }
    let all = if set.documents == 0 { u64::MAX } else { set.documents };
    let scaled = if scale == 1.0 { all } else { ((all as f64 * scale).ceil() as u64).max(1) };
    let wanted = if options.test_mode { scaled.min(TEST_DOCUMENTS) } else { scaled };
    let folders = folders(context.reader.files.dir(), &corpus.name, options);
    if let Some(path) = find(&folders, file, options.test_mode) {
        if set.documents == 0 && scale != 1.0 && !options.test_mode {
            return Err(refuse(format!("{file} has no document-count, so --scale is of no use")));
        }
        if scale > 1.0 {
            return Err(refuse(format!(
                "{file} is sent once, so --scale is at most 1 for it; found {scale}"
            )));
        }
        let first = FileDocuments::open(&path).and_then(|mut file| file.read(&mut Vec::new()));
        first.map_err(|error| refuse(error.to_string()))?;
        return Ok((Source::File(path), wanted));
    }
    Ok((made_up(context, corpus, (set, index), wanted)?, wanted))
}

/// Documents in place of a set whose file is not there: of a generator that is like its corpus, or by the mapping.
fn made_up(
    context: &Context<'_>,
    corpus: &Corpus,
    (set, index): (&DocumentSet, &str),
    wanted: u64,
) -> Result<Source, Why> {
    let refuse = |why: String| ("corpora".to_owned(), why);
    let (file, corpus) = (&set.file, &corpus.name);
    if !context.options.generate {
        return Err(refuse(format!(
            "{file} is not there; give its folder with --corpora DIR, or have documents of its kind generated with --generate"
        )));
    }
    if set.has_actions {
        return Err(refuse(format!(
            "{file} is not there, and documents with actions of their own are not generated; give its folder with --corpora \
             DIR"
        )));
    }
    if wanted == u64::MAX {
        return Err(refuse(format!(
            "{file} is not there, and how many documents are to be generated is not known: write its document-count \
             into the track, or give its folder with --corpora DIR"
        )));
    }
    if let Some(generated) = generator(corpus, context) {
        context.change(format!(
            "The documents of the corpus {corpus} are generated: its files are not there. They have the fields and the sizes \
             of the original, not its values."
        ));
        return Ok(Source::Generated(generated));
    }
    let (mapped, left_out) = Mapped::of(&mapping(context, index));
    if mapped.is_empty() {
        let names = Generated::ALL.map(Generated::name).join(", ");
        return Err(refuse(format!(
            "{file} is not there, no generator is like the corpus {corpus} (there are {names}), and the track maps no field \
             of {index}"
        )));
    }
    let without = match left_out.as_slice() {
        [] => String::new(),
        some => format!(", without {}", some.join(", ")),
    };
    context.change(format!(
        "The documents of the corpus {corpus} are made of the mapping of {index}{without}: its files are not there. The \
         figures say nothing of the original."
    ));
    Ok(Source::Mapped(Arc::new(mapped)))
}

/// The mapping of an index as the track has it: its own, or that of a template for it.
fn mapping(context: &Context<'_>, index: &str) -> Value {
    let own = context.indices.iter().find(|known| known.name == index);
    let fits = |template: &&Template| {
        template.pattern.as_ref().is_some_and(|pattern| record::names::matches(pattern, index))
    };
    let bodies = own.map(|index| &index.body).into_iter();
    let mut bodies =
        bodies.chain(context.templates.iter().filter(fits).map(|template| &template.body));
    let found = bodies.find_map(|body| {
        ["/mappings", "/template/mappings"].iter().find_map(|path| body.pointer(path))
    });
    found.cloned().unwrap_or_default()
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
        let data = dir.join("data");
        found.extend([dir.to_owned(), dir.join(corpus), data.clone(), data.join(corpus)]);
    }
    if let Some(home) = std::env::var_os("HOME").map(PathBuf::from) {
        let kept = [".rally", ".osb", ".benchmark"];
        found.extend(kept.map(|of| home.join(of).join("benchmarks/data").join(corpus)));
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
