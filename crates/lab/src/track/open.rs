//! The track's own file: its indices, its corpora, and the challenge that is run.

use std::cell::RefCell;
use std::path::Path;

use query::json::{Node, document};
use serde_json::{Value, json};

use super::context::{Context, Index};
use super::corpora::{Corpus, corpus};
use super::needless;
use super::python::Python;
use super::reader::{Object, Reader, Refusal};
use super::render::{Files, Rendered};
use super::tasks::{self, Schedule};
use super::templates::{KINDS, Template, below};
use super::{Track, TrackOptions};
use crate::choices::unknown;
use crate::diagnostic::Mistakes;
use crate::error::{Error, Result};

/// Members of a track's own file.
const KNOWN: [&str; 22] = [
    "version", "description", "short-description", "meta", "default", "indices", "data-streams",
    "templates", "composable-templates", "component-templates", "corpora", "operations",
    "challenges", "challenge", "schedule", "test_procedures", "test_procedure", "test-procedures",
    "test-procedure", "dependencies", "data-url", "parameters",
];
/// The latest version of the form of tracks, in Rally as in OpenSearch Benchmark.
const VERSION_MAX: u64 = 2;
/// Members under which challenges stand: of Rally, and of OpenSearch Benchmark.
const CHALLENGES: [&str; 6] = [
    "challenges", "challenge", "test_procedures", "test_procedure", "test-procedures",
    "test-procedure",
];

/// Reads the track in a file, with the challenge that the options name.
///
/// # Errors
/// Everything that is wrong in its files, each with its place; and what cannot be run here, unless the options leave it
/// out.
pub fn open(path: &Path, options: &TrackOptions) -> Result<Track> {
    if !path.is_file() {
        return Err(Error::usage(format!(
            "there is no file {}; give the track.json or workload.json of a track",
            path.display()
        )));
    }
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let files = Files::new(dir, options.params.clone());
    let rendered = files.render(path)?;
    let root = parsed(&files, &rendered)?;
    let reader = Reader::new(&files, &rendered);
    let top = reader.object(&root, "a track");
    reader.only(&top, "a track", &KNOWN);
    reader.whole(&top, "version", 1, VERSION_MAX);
    let mut changes = Vec::new();
    let indices = indices((&files, &reader, options), &top, &mut changes)?;
    let corpora = top.get("corpora").map_or(&[][..], |node| reader.list(node, "corpora"));
    let declared: Vec<Object<'_>> =
        corpora.iter().map(|node| reader.object(node, "a corpus")).collect();
    let has_streams = top.get("data-streams").is_some();
    let corpora: Vec<Corpus> =
        declared.iter().map(|object| corpus(&reader, object, has_streams)).collect();
    let names = corpora.iter().map(|corpus| corpus.name.as_str());
    reader.distinct("corpora", names.zip(declared.iter().copied()));
    let context = Context {
        reader: &reader,
        indices,
        corpora,
        templates: templates((&files, &reader, options), &top, &mut changes)?,
        options,
        python: Python::of(&files),
        changes: RefCell::default(),
        unknown: RefCell::default(),
    };
    changes.into_iter().for_each(|said| context.change(said));
    for sentence in context.python.iter().flat_map(Python::left_out) {
        context.change(sentence);
    }
    let operations = top.get("operations").map_or(&[][..], |node| reader.list(node, "operations"));
    let operations: Vec<(String, Object<'_>)> = operations
        .iter()
        .map(|node| {
            let object = reader.object(node, "an operation");
            // As in Rally: without a name it goes by its type.
            let name = reader.text(&object, "name");
            let name = name.or_else(|| reader.text(&object, "operation-type"));
            (name.unwrap_or_default(), object)
        })
        .collect();
    let named = operations.iter().map(|(name, object)| (name.as_str(), *object));
    reader.distinct("operations", named);
    let challenge = challenge(&reader, &top, options)?;
    let schedule = tasks::schedule(&context, &operations, challenge.schedule);
    check_params(&files, options)?;
    let refused = refusals(&files, &context, &schedule, options);
    match (reader.mistakes(), refused) {
        (Some(wrong), Some(refused)) => return Err(wrong.and(refused).into()),
        (Some(wrong), None) | (None, Some(wrong)) => return Err(wrong.into()),
        (None, None) => {}
    }
    if schedule.elements.is_empty() {
        return Err(Error::Usage { why: nothing_chosen(&challenge.name, &schedule, options) });
    }
    for filter in options.include.iter().chain(&options.exclude) {
        if !schedule.fitting.contains(filter) {
            let near =
                record::names::did_you_mean(filter, schedule.names.iter().map(String::as_str));
            let end = if near.is_empty() { "." } else { "" };
            context.change(format!(
                "Tasks that are \"{filter}\" are to be included or excluded, and no task is{near}{end}"
            ));
        }
    }
    if options.test_mode {
        context.change(
            "Test mode: every task once for each client, those that go by the time for ten seconds at most, with a \
             thousand documents of each file; the figures say nothing."
                .to_owned(),
        );
    }
    let names = context.indices.iter().map(|index| index.name.clone()).collect();
    let mut track = Track {
        name: name_of(dir),
        about: reader.text(&top, "description").unwrap_or_default(),
        challenge: challenge.name,
        indices: names,
        elements: schedule.elements,
        changes: context.changes.take(),
        params: options.params.clone(),
        text: rendered.text.clone(),
    };
    track.make_what_is_asked();
    Ok(track)
}

/// The name of a track is that of its folder.
fn name_of(dir: &Path) -> String {
    let whole = dir.canonicalize();
    let name = whole.as_deref().unwrap_or(dir).file_name();
    let name = name.and_then(|name| name.to_str()).unwrap_or("track");
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    name.chars().map(plain).collect()
}

/// The text as values with places.
fn parsed<'r>(files: &Files, rendered: &'r Rendered) -> Result<Node<'r>> {
    let text = rendered.placed_text();
    let value = document(text.as_bytes(), None).map_err(|error| {
        let said = error.to_string();
        let what = said.split(" at line ").next().unwrap_or(&said).to_owned();
        let place = rendered.place(error.line());
        let given = files.params().texts();
        let given = given.iter().map(|(name, value)| format!("{name} = {value}"));
        let given = given.collect::<Vec<_>>().join(", ");
        let with = if given.is_empty() { given } else { format!(" (with {given})") };
        let message = format!("once rendered, this is no JSON: {what}{with}");
        Error::Plan(Mistakes::from(files.mistake(place, "", message)))
    })?;
    Ok(Node { at: Default::default(), value })
}

/// What is read of the files of a track, and for what.
type Source<'s> = (&'s Files, &'s Reader<'s>, &'s TrackOptions);

/// The indices that a track declares. One that the embedded engine does not take is refused where it is to be made.
fn indices(
    (files, reader, options): Source<'_>,
    top: &Object<'_>,
    changes: &mut Vec<String>,
) -> Result<Vec<Index>> {
    let declared = top.get("indices").map_or(&[][..], |node| reader.list(node, "indices"));
    let mut found = Vec::new();
    // What several indices share is told once.
    let mut checked: Vec<(String, Vec<Refusal>)> = Vec::new();
    for node in declared {
        let object = reader.object(node, "an index");
        reader.only(&object, "an index", &["name", "body", "types", "auto-managed", "#COMMENT"]);
        let name = reader.text(&object, "name").unwrap_or_default();
        let (body, refused) = match reader.text(&object, "body") {
            None => (json!({}), Vec::new()),
            Some(file) => {
                let Some((rendered, mut body)) = body_of(files, reader, node, &file)? else {
                    continue;
                };
                if options.embedded {
                    changes.extend(needless::take_out(&file, &mut body));
                }
                let known = checked.iter().find(|(known, _)| *known == file);
                let refused = match known {
                    Some((_, refused)) => refused.clone(),
                    None if options.embedded => {
                        let refused = refusals_of(&rendered, &body);
                        checked.push((file, refused.clone()));
                        refused
                    }
                    None => Vec::new(),
                };
                (body, refused)
            }
        };
        let mut refused = refused.into_iter();
        found.push(Index { name, body, refused: refused.next(), also: refused.collect() });
    }
    Ok(found)
}

/// A body that stands in a file of its own; none, and a mistake, where there is no such file.
fn body_of(
    files: &Files,
    reader: &Reader<'_>,
    node: &Node<'_>,
    file: &str,
) -> Result<Option<(Rendered, Value)>> {
    let path = files.dir().join(file);
    if !path.is_file() {
        reader.wrong(node, file, format!("there is no file {}", path.display()));
        return Ok(None);
    }
    let rendered = files.render(&path)?;
    let body = parsed(files, &rendered)?.plain();
    Ok(Some((rendered, body)))
}

/// What the embedded engine refuses of an index: a body is checked up to its first mistake, so again with a plain field
/// in place of the one that has it.
fn refusals_of(rendered: &Rendered, body: &Value) -> Vec<Refusal> {
    let plain = json!({ "type": "keyword" });
    let (mut body, mut found) = (body.clone(), Vec::new());
    while let Err(why) = rest::check_new_index(&body) {
        let refusal = refused_at(rendered, &why);
        let field = refusal.word.split('.').next().unwrap_or_default().to_owned();
        found.push(refusal);
        let fields = body.pointer_mut("/mappings/properties").and_then(Value::as_object_mut);
        match fields.and_then(|fields| fields.get_mut(&field)) {
            Some(known) if *known != plain => known.clone_from(&plain),
            _ => break,
        }
    }
    found
}

/// What the embedded engine refuses of a body, at the word that the reason quotes first, where it stands in the file.
fn refused_at(rendered: &Rendered, why: &str) -> Refusal {
    let mut quoted = why.split(['[', ']', '"', '\'']).skip(1).step_by(2);
    // The path of a mapping is empty where the whole of it is meant.
    let word = quoted.find(|word| !word.is_empty()).unwrap_or_default().to_owned();
    let quoted = format!("\"{word}\"");
    let mut lines = rendered.placed_text().lines();
    let line = lines.position(|line| !word.is_empty() && line.contains(&quoted));
    let place = rendered.place(line.map_or(1, |line| line + 1));
    Refusal { place, word, why: format!("the embedded engine does not take it: {why}") }
}

/// The templates that a track declares. One that the embedded engine does not take is refused where it is to be made.
fn templates(
    (files, reader, options): Source<'_>,
    top: &Object<'_>,
    changes: &mut Vec<String>,
) -> Result<Vec<Template>> {
    let known = [
        "name", "index-pattern", "delete-matching-indices", "template", "template-path", "#COMMENT",
    ];
    let mut found = Vec::new();
    for kind in &KINDS {
        let nodes = top.get(kind.member).map_or(&[][..], |node| reader.list(node, kind.member));
        for node in nodes {
            let object = reader.object(node, "a template");
            reader.only(&object, "a template", &known);
            let (Some(name), Some(file)) =
                (reader.text(&object, "name"), reader.text(&object, "template"))
            else {
                reader.wrong(node, "", "a template has a name, and its file under \"template\"");
                continue;
            };
            let mut template = Template {
                kind,
                name,
                pattern: reader.text(&object, "index-pattern"),
                deletes_indices: reader.bool(&object, "delete-matching-indices").unwrap_or(true),
                body: Value::Null,
                refused: None,
            };
            if let Some((rendered, whole)) = body_of(files, reader, node, &file)? {
                let path = reader.text(&object, "template-path");
                let body = path.as_ref().map_or(Some(whole.clone()), |path| below(whole, path));
                template.body = body.unwrap_or_else(|| {
                    let path = path.unwrap_or_default();
                    reader.wrong(node, &path, format!("{file} has nothing under {path}"));
                    Value::Null
                });
                if options.embedded {
                    changes.extend(needless::take_out(&file, &mut template.body));
                    let refused = rest::check_template(kind.of, &template.body).err();
                    template.refused = refused.map(|why| refused_at(&rendered, &why));
                }
            }
            found.push(template);
        }
    }
    Ok(found)
}

/// A challenge as the track's file has it.
struct Challenge<'n> {
    name: String,
    schedule: &'n Node<'n>,
}

fn challenge<'n>(
    reader: &Reader<'_>,
    top: &Object<'n>,
    options: &TrackOptions,
) -> Result<Challenge<'n>> {
    let ways = std::iter::once("schedule").chain(CHALLENGES);
    let given: Vec<(&str, &'n Node<'n>)> =
        ways.filter_map(|name| Some((name, top.get(name)?))).collect();
    if let [(first, _), (second, node), ..] = given.as_slice() {
        let said = format!("a track has \"{first}\" or \"{second}\", not both");
        reader.wrong(node, second, said);
    }
    if let Some(schedule) = top.get("schedule") {
        // As Rally calls it.
        let name = "default".to_owned();
        return match &options.challenge {
            Some(wanted) if *wanted != name && given.len() == 1 => Err(Error::usage(format!(
                "the track has no challenge \"{wanted}\"; it has one schedule, which is called {name}"
            ))),
            _ => Ok(Challenge { name, schedule }),
        };
    }
    let nodes: Vec<&'n Node<'n>> = CHALLENGES.iter().filter_map(|name| top.get(name)).collect();
    let mut all = Vec::new();
    let mut objects = Vec::new();
    for node in nodes.iter().flat_map(|node| node.items()) {
        let object = reader.object(node, "a challenge");
        let known = [
            "name", "description", "user-info", "default", "schedule", "meta", "selected",
            "parameters", "auto-generated",
        ];
        reader.only(&object, "a challenge", &known);
        let name = reader.text(&object, "name").unwrap_or_else(|| "default".to_owned());
        let default = reader.bool(&object, "default").unwrap_or(false);
        if let Some(schedule) = object.get("schedule") {
            all.push((Challenge { name, schedule }, default));
            objects.push(object);
        }
    }
    check_challenges(reader, &all, &objects);
    if all.is_empty() {
        // What is no object, or misspelt, is the reason.
        let none = || {
            let said = "the track has no challenges, and no schedule of its own";
            Mistakes::from(reader.files.mistake(reader.place(top.node), "", said))
        };
        return Err(reader.mistakes().unwrap_or_else(none).into());
    }
    let names: Vec<String> = all.iter().map(|(challenge, _)| challenge.name.clone()).collect();
    let at = match &options.challenge {
        Some(wanted) => names.iter().position(|name| name == wanted).ok_or_else(|| {
            let known: Vec<&str> = names.iter().map(String::as_str).collect();
            Error::usage(unknown("the track has no challenge", wanted, "Challenges", &known))
        })?,
        None if all.len() == 1 => 0,
        None => all.iter().position(|(_, default)| *default).ok_or_else(|| {
            Error::usage(format!(
                "the track has no default challenge; name one with --challenge: {}",
                names.join(", ")
            ))
        })?,
    };
    Ok(all.swap_remove(at).0)
}

/// Tells challenges of one name, and a second default challenge, as Rally does.
fn check_challenges(reader: &Reader<'_>, all: &[(Challenge<'_>, bool)], objects: &[Object<'_>]) {
    let called = all.iter().map(|(challenge, _)| challenge.name.as_str());
    reader.distinct("challenges", called.zip(objects.iter().copied()));
    let mut defaults = all.iter().zip(objects).filter(|((_, default), _)| *default);
    if let (Some(((first, _), _)), Some(((second, _), object))) = (defaults.next(), defaults.next())
    {
        let said = format!(
            "\"{}\" is a default challenge, and so is \"{}\"; a track has one",
            second.name, first.name
        );
        reader.wrong(object.at("default"), "default", said);
    }
}

/// A parameter that no file of the track mentions is a mistake, as in Rally.
fn check_params(files: &Files, options: &TrackOptions) -> Result<()> {
    let unused = options.params.values().keys().find(|name| !files.mentions(name));
    unused.map_or(Ok(()), |name| {
        let why = format!("--track-params: the track has no parameter \"{name}\"; its README lists those that it has");
        Err(Error::Usage { why })
    })
}

/// Operations that cannot be run here: as mistakes, or as sentences in the record where they are to be left out.
fn refusals(
    files: &Files,
    context: &Context<'_>,
    schedule: &Schedule,
    options: &TrackOptions,
) -> Option<Mistakes> {
    if options.skip_refused {
        // What many share is told once.
        let mut told: Vec<(&str, Vec<&str>)> = Vec::new();
        for (name, Refusal { why, .. }) in &schedule.refused {
            match told.iter_mut().find(|(known, _)| *known == why.as_str()) {
                Some((_, names)) if names.contains(&name.as_str()) => {}
                Some((_, names)) => names.push(name.as_str()),
                None => told.push((why.as_str(), vec![name.as_str()])),
            }
        }
        for (why, names) in told {
            let are = if names.len() == 1 { "is" } else { "are" };
            let end = if why.ends_with('?') { "" } else { "." };
            let names = record::names::listed(&names);
            context.change(format!("{names} {are} left out: {why}{end}"));
        }
        return None;
    }
    // An index is told once, and not for each operation on it; the others that are refused are told with it.
    let (of_indices, mut refused): (Vec<_>, Vec<_>) =
        schedule.refused.iter().cloned().partition(|(_, refusal)| context.is_of_index(refusal));
    if !of_indices.is_empty() {
        for index in &context.indices {
            for refusal in index.refused.iter().chain(&index.also) {
                if refused.iter().all(|(_, known)| known != refusal) {
                    refused.push((format!("index {}", index.name), refusal.clone()));
                }
            }
        }
    }
    let several = refused.len() > 1;
    let mistake = |(name, refusal): &(String, Refusal)| {
        let rest = if several { "all of these" } else { "it" };
        // Some end with the question what was meant.
        let sign = if refusal.why.ends_with('?') { "" } else { ";" };
        let message =
            format!("{name}: {}{sign} --skip-refused runs the rest without {rest}", refusal.why);
        files.mistake(refusal.place, &refusal.word, message)
    };
    Mistakes::of(refused.iter().map(mistake))
}

fn nothing_chosen(challenge: &str, schedule: &Schedule, options: &TrackOptions) -> String {
    if !schedule.refused.is_empty() {
        return format!("nothing of the challenge {challenge} can be run here");
    }
    if schedule.names.is_empty() {
        return format!("the schedule of the challenge {challenge} has no tasks");
    }
    let wanted =
        options.include.iter().chain(&options.exclude).cloned().collect::<Vec<_>>().join(",");
    // A task that there is was left out again.
    let unknown = options.include.iter().find(|name| !schedule.names.contains(name));
    let near = unknown.map_or_else(String::new, |name| {
        record::names::did_you_mean(name, schedule.names.iter().map(String::as_str))
    });
    let mut names = schedule.names.clone();
    names.dedup();
    format!(
        "\"{wanted}\" leaves no task of the challenge {challenge}{near}; tasks: {}",
        names.join(", ")
    )
}
