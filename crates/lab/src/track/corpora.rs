//! The corpora that a track declares.

use std::path::{Component, Path};

use super::reader::{Object, Reader};

pub(super) struct Corpus {
    pub(super) name: String,
    pub(super) sets: Vec<DocumentSet>,
}

/// A file of documents, as the track declares it.
pub(super) struct DocumentSet {
    pub(super) file: String,
    pub(super) documents: u64,
    pub(super) target: Option<String>,
    /// Whether an action stands before each document, with the index that it goes to.
    pub(super) has_actions: bool,
    /// Why it cannot be sent, if it cannot.
    pub(super) refused: Option<String>,
}

/// Reads a corpus of a track, which may declare data streams in place of indices.
pub(super) fn corpus(reader: &Reader<'_>, object: &Object<'_>, has_streams: bool) -> Corpus {
    let known = [
        "name", "meta", "base-url", "source-format", "target-index", "target-type",
        "target-data-stream", "includes-action-and-meta-data", "documents", "document-count",
        "source-file", "compressed-bytes", "uncompressed-bytes", "document-file-parts",
        "source-url",
    ];
    reader.only(object, "a corpus", &known);
    let name = name_below(reader, object, "name").unwrap_or_default();
    let declared =
        |of: &Object<'_>, member: &str| of.get(member).is_some() || object.get(member).is_some();
    let truth = |of: &Object<'_>, member: &str| {
        let own = reader.bool(of, member).or_else(|| reader.bool(object, member));
        own.unwrap_or(false)
    };
    let set = |node| {
        let set = reader.object(node, "documents");
        reader.only(&set, "a set of documents", &known);
        let file = name_below(reader, &set, "source-file");
        if file.is_none() {
            reader.wrong(node, "", "a set of documents has a source-file");
        }
        let own = |member: &str| reader.text(&set, member).or_else(|| reader.text(object, member));
        // What a parameter that is not given stands for names none.
        let target = own("target-index").filter(|name| !name.is_empty());
        let has_actions = truth(&set, "includes-action-and-meta-data");
        let to_streams = declared(&set, "target-data-stream")
            || (has_streams && target.is_none() && !has_actions);
        let refused = match own("source-format") {
            Some(format) if format != "bulk" => {
                Some(format!("it is {format}, and files of JSON are read here"))
            }
            _ => to_streams.then(|| "documents are not sent to data streams".to_owned()),
        };
        DocumentSet {
            file: file.unwrap_or_default(),
            documents: reader.whole(&set, "document-count", 1, u64::MAX / 2).unwrap_or(0),
            target,
            has_actions,
            refused,
        }
    };
    let sets = object.get("documents").map_or(&[][..], |node| reader.list(node, "documents"));
    Corpus { name, sets: sets.iter().map(set).collect() }
}

/// A name of what is looked for in folders of documents. One that leads out of them is a mistake: a track is not to say
/// which files of this machine are sent.
fn name_below(reader: &Reader<'_>, object: &Object<'_>, member: &str) -> Option<String> {
    let name = reader.text(object, member)?;
    let is_below = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    if !Path::new(&name).components().all(is_below) {
        let said = format!(
            "{member} \"{name}\" leads out of the folders of documents; write a name in them, and say with --corpora DIR \
             which other folder is one"
        );
        reader.wrong(object.at(member), &name, said);
    }
    Some(name)
}
