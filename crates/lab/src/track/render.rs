//! A track's files as Rally and OpenSearch Benchmark read them: parts are collected into the text, the text is rendered
//! by Jinja, and every line of the result knows from where it came.
//!
//! Each line of a file begins with a mark that names it, and marks pass through Jinja as text does. The text without
//! marks is rendered, too: what is read is that one; the marked one only says where something stands.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use jiff::Timestamp;
use minijinja::{Environment, ErrorKind};

use super::filters;
use super::folder::Folder;
use super::params::Params;
use crate::diagnostic::{Diagnostic, Mistakes};
use crate::error::{Error, Result};

/// Parts within parts.
const DEPTH_MAX: usize = 32;
/// Files of a track; more is a pattern that matches too much.
const FILES_MAX: usize = 2000;
/// Steps that Jinja may take for a text: a stranger's loops may be within loops.
const STEPS_MAX: u64 = 5_000_000;
/// Bytes of a rendered text; more is a loop that repeats too often.
const RENDERED_BYTES_MAX: usize = 64 << 20;
/// A mark is a line of a file between these two; neither may stand in JSON.
const MARK: (char, char) = ('\u{1}', '\u{2}');
/// What is written for a name that nothing defines, where such names are looked for; it may not stand in JSON.
const HOLE: &str = "\u{3}";
/// So many of them are looked at: a loop may have any number.
const HOLES_MAX: usize = 100;
/// What the filter `random` picks by: the same at every rendering.
const RAND_SEED: u64 = 0x7472_6163_6b73_2121;
/// What tracks import to have `collect` and `exists_set_param`.
const HELPERS: [&str; 2] = ["rally.helpers", "benchmark.helpers"];
/// `collect` is expanded before anything is rendered, so that parts see what the text above them has set.
const MACROS: &str = "{% macro exists_set_param(setting_name, value, default_value=none, comma=true) -%}
{% if value is defined or default_value is not none %}{% if comma %},{% endif %}
\"{{ setting_name }}\": {{ (value if value is defined else default_value) | tojson }}{% endif %}{%- endmacro %}";

/// Where something stands: a file by its number, and a line from 1; 0 where it is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) file: usize,
    pub(super) line: usize,
}

/// A rendered text, and where each of its lines came from.
pub(super) struct Rendered {
    pub(super) text: String,
    /// By line of the marked text, which has the same values; none where marks got into values.
    marked: Option<(String, Vec<Place>)>,
    file: usize,
}

impl Rendered {
    /// The text whose lines have places: that of [`Rendered::place`].
    pub(super) fn placed_text(&self) -> &str {
        self.marked.as_ref().map_or(&self.text, |(text, _)| text)
    }

    /// Where a line of the placed text came from.
    pub(super) fn place(&self, line: usize) -> Place {
        let known = self.marked.as_ref().and_then(|(_, places)| places.get(line.checked_sub(1)?));
        known.copied().unwrap_or(Place { file: self.file, line: 0 })
    }
}

/// A file as it was read.
struct Source {
    path: PathBuf,
    text: String,
}

/// A rendered text, as far as it may go. What Jinja joins before it writes it is not counted.
#[derive(Default)]
struct Bounded(Vec<u8>);

impl io::Write for Bounded {
    fn write(&mut self, part: &[u8]) -> io::Result<usize> {
        if self.0.len().saturating_add(part.len()) > RENDERED_BYTES_MAX {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.0.extend_from_slice(part);
        Ok(part.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

pub(super) struct Files {
    /// Where the track's own file lies.
    dir: PathBuf,
    folder: Folder,
    sources: Rc<RefCell<Vec<Source>>>,
    params: Params,
    now: Timestamp,
}

impl Files {
    pub(super) fn new(dir: &Path, params: Params) -> Files {
        let now = Timestamp::now();
        let folder = Folder::of(dir);
        Files { dir: dir.to_owned(), folder, sources: Rc::default(), params, now }
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(super) fn params(&self) -> &Params {
        &self.params
    }

    /// Renders a file, with all that it collects and includes.
    pub(super) fn render(&self, path: &Path) -> Result<Rendered> {
        let file = self.sources.borrow().len();
        let marked = self.expanded(path, 0)?;
        let plain = without_marks(&marked).0;
        let plain =
            self.jinja(path, &plain).map_err(|error| self.jinja_error(path, &marked, &error))?;
        let is_json = serde_json::from_str::<serde_json::Value>(&plain).is_ok();
        if let Some(mistake) = (!is_json).then(|| self.undefined(path, &marked)).flatten() {
            return Err(Error::Plan(Mistakes::from(mistake)));
        }
        let marked = self.jinja(path, &marked).ok().map(|text| without_marks(&text));
        let same = |text: &str| -> bool {
            let read = |text: &str| serde_json::from_str::<serde_json::Value>(text);
            matches!((read(text), read(&plain)), (Ok(a), Ok(b)) if a == b)
        };
        // A text that is no JSON has no values to compare, and its places are wanted all the same.
        let marked = marked.filter(|(text, _)| !is_json || same(text));
        Ok(Rendered { text: plain, marked, file })
    }

    pub(super) fn mentions(&self, name: &str) -> bool {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        self.sources.borrow().iter().any(|source| {
            source.text.match_indices(name).any(|(at, _)| {
                !source.text[..at].ends_with(is_word)
                    && !source.text[at + name.len()..].starts_with(is_word)
            })
        })
    }

    /// What is wrong at a place. `word` is underlined where it stands in the line.
    pub(super) fn mistake(
        &self,
        place: Place,
        word: &str,
        message: impl Into<String>,
    ) -> Diagnostic {
        let sources = self.sources.borrow();
        let Some(source) = sources.get(place.file) else {
            return Diagnostic::new("the track", "", 0..0, message.into());
        };
        let line = place.line.max(1);
        let before: usize = source.text.split_inclusive('\n').take(line - 1).map(str::len).sum();
        let text = source.text[before..].lines().next().unwrap_or_default();
        let found = if word.is_empty() { None } else { text.find(word) };
        let blank = text.len() - text.trim_start().len();
        let (from, length) = match found {
            Some(at) => (at, word.len()),
            None => (blank, text.trim().len()),
        };
        let span = before + from..before + from + length;
        Diagnostic::new(&source.path.display().to_string(), &source.text, span, message.into())
    }

    /// The text of one of its files. The error is a sentence.
    pub(super) fn text(&self, path: &Path) -> Result<String, String> {
        self.folder.text(path)
    }

    fn read(&self, path: &Path) -> Result<usize> {
        let refuse = |why: String| Error::Usage { why };
        let mut sources = self.sources.borrow_mut();
        if sources.len() >= FILES_MAX {
            return Err(too_many());
        }
        let text = self.text(path).map_err(refuse)?;
        if text.contains([MARK.0, MARK.1]) {
            return Err(refuse(format!(
                "{} holds control characters; it is no text of a track",
                path.display()
            )));
        }
        sources.push(Source { path: path.to_owned(), text });
        Ok(sources.len() - 1)
    }

    /// The text of a file with marks, and with the parts that it collects in their places.
    fn expanded(&self, path: &Path, depth: usize) -> Result<String> {
        if depth > DEPTH_MAX {
            let why = format!("{} collects itself, or parts lie too deep in parts", path.display());
            return Err(Error::Usage { why });
        }
        let file = self.read(path)?;
        let text = marked(&self.sources.borrow()[file].text, file);
        let (mut whole, mut rest, mut mark) = (String::new(), text.as_str(), "");
        let dir = path.parent().unwrap_or(Path::new("")).to_owned();
        while let Some(found) = collect(rest) {
            let before = &rest[..found.from];
            whole.push_str(before);
            for (number, part) in matching(&dir, &found.pattern)?.into_iter().enumerate() {
                // A line has one place: a part has lines of its own.
                whole.push_str(if number > 0 { ",\n" } else { "\n" });
                whole.push_str(&self.expanded(&part, depth + 1)?);
            }
            // What follows stands where the call does.
            let last = before.rfind(MARK.0).zip(before.rfind(MARK.1));
            mark = last.and_then(|(from, to)| before.get(from..=to)).unwrap_or(mark);
            whole.push('\n');
            whole.push_str(mark);
            rest = &rest[found.to..];
        }
        whole.push_str(rest);
        Ok(whole)
    }

    /// The first name that nothing defines, so that nothing is written where the JSON lacks a value.
    fn undefined(&self, path: &Path, marked: &str) -> Option<Diagnostic> {
        let jinja = self.environment(path, HOLE);
        let template = jinja.template_from_str(marked).ok()?;
        let (context, mut rendered) = (self.context(), Bounded::default());
        template.render_captured_to(&context, &mut rendered).ok()?;
        let (text, places) = without_marks(std::str::from_utf8(&rendered.0).ok()?);
        let unknown = template.undeclared_variables(false);
        let is_undefined = |name: &&str| unknown.contains(*name) && !context.contains_key(*name);
        let sources = self.sources.borrow();
        lacking(&text).find_map(|(line, before)| {
            let place = *places.get(line)?;
            let line = sources.get(place.file)?.text.lines().nth(place.line.checked_sub(1)?)?;
            let written = line.split("{{").skip(1).filter_map(|rest| rest.split(['}', '|']).next());
            let names = written.map(|name| name.trim_matches(['-', ' '])).filter(is_undefined);
            // A loop writes the last one more often than the line names it.
            let name = names.take(before + 1).last()?;
            let message = format!(
                "{name} is not defined, and without a value this is no JSON; give it one with --track-params \
                 {name}:VALUE, or a default"
            );
            Some(self.mistake(place, name, message))
        })
    }

    fn jinja(&self, path: &Path, text: &str) -> Result<String, minijinja::Error> {
        let name = path.display().to_string();
        let jinja = self.environment(path, "");
        let mut rendered = Bounded::default();
        let template = jinja.template_from_named_str(&name, text)?;
        template.render_captured_to(self.context(), &mut rendered)?;
        let no_text = |_| minijinja::Error::from(ErrorKind::WriteFailure);
        String::from_utf8(rendered.0).map_err(no_text)
    }

    /// What renders a file; `hole` is written for a name that nothing defines.
    fn environment<'s>(&self, path: &Path, hole: &'static str) -> Environment<'s> {
        let mut jinja = Environment::new();
        jinja.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        jinja.set_recursion_limit(200);
        jinja.set_fuel(Some(STEPS_MAX));
        // JSON is what is rendered, and it escapes for itself.
        jinja.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
        let dir = path.parent().unwrap_or(Path::new("")).to_owned();
        let folder = self.folder.clone();
        jinja.set_loader(move |name| {
            if HELPERS.contains(&name) {
                return Ok(Some(MACROS.to_owned()));
            }
            let path = dir.join(name);
            if !path.is_file() {
                return Ok(None);
            }
            let refuse = |why: String| minijinja::Error::new(ErrorKind::InvalidOperation, why);
            folder.text(&path).map(Some).map_err(refuse)
        });
        filters::add(&mut jinja);
        // Jinja of Python divides by zero no more than Python does.
        jinja.set_formatter(move |out, state, value| {
            if value.is_undefined() {
                return out.write_str(hole).map_err(minijinja::Error::from);
            }
            let number = f64::try_from(value.clone());
            if value.is_number() && number.is_ok_and(|number| !number.is_finite()) {
                let said = format!("{value} is no number of JSON; was it divided by zero?");
                return Err(minijinja::Error::new(ErrorKind::InvalidOperation, said));
            }
            minijinja::escape_formatter(out, state, value)
        });
        jinja
    }

    fn context(&self) -> BTreeMap<String, serde_json::Value> {
        let mut context = self.params.values().clone();
        let globals = [
            ("build_flavor", "default".into()),
            ("serverless_operator", false.into()),
            // Seconds since 1970, as in Rally.
            ("now", (self.now.as_nanosecond() as f64 / 1e9).into()),
            ("RAND_SEED", RAND_SEED.into()),
        ];
        for (name, value) in globals {
            context.entry(name.to_owned()).or_insert(value);
        }
        context
    }

    /// Jinja counts the lines of the whole text; they are looked up in the files that it was made of.
    fn jinja_error(&self, path: &Path, marked: &str, error: &minijinja::Error) -> Error {
        // Every line begins with its mark, but for those within a tag.
        let mut last = Place::default();
        let place = |line: &str| {
            let own = line.strip_prefix(MARK.0).and_then(|line| line.split_once(MARK.1));
            let own = own.and_then(|(mark, _)| place_of(mark));
            last = own.unwrap_or(Place { line: last.line + 1, ..last });
            last
        };
        let places: Vec<Place> = marked.lines().map(place).collect();
        let said = match error.kind() {
            ErrorKind::OutOfFuel => {
                format!("it takes more than {STEPS_MAX} steps; do its loops repeat too often?")
            }
            ErrorKind::WriteFailure => format!(
                "it makes more than {} MB of text; do its loops repeat too often?",
                RENDERED_BYTES_MAX >> 20
            ),
            kind => error
                .detail()
                .map_or_else(|| kind.to_string(), |detail| format!("{kind}: {detail}")),
        };
        let message = format!("Jinja cannot read this: {said}");
        let own = error.name().is_none_or(|name| name == path.display().to_string());
        let place = error.line().and_then(|line| places.get(line.checked_sub(1)?)).filter(|_| own);
        match place {
            Some(place) => Error::Plan(Mistakes::from(self.mistake(*place, "", message))),
            None => Error::Usage { why: format!("{}: {message}", path.display()) },
        }
    }
}

/// The text with a mark at the beginning of each line that is not within a tag of Jinja.
fn marked(text: &str, file: usize) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    let mut closing: Option<&str> = None;
    for (number, line) in text.split_inclusive('\n').enumerate() {
        if closing.is_none() {
            out.push_str(&format!("{}{file}:{}{}", MARK.0, number + 1, MARK.1));
        }
        out.push_str(line);
        let mut rest = line;
        loop {
            match closing {
                Some(end) => match rest.find(end) {
                    Some(at) => {
                        rest = &rest[at + end.len()..];
                        closing = None;
                    }
                    None => break,
                },
                None => {
                    let tag = |(at, _): (usize, &str)| match rest.as_bytes().get(at + 1)? {
                        b'{' => Some((at, "}}")),
                        b'%' => Some((at, "%}")),
                        b'#' => Some((at, "#}")),
                        _ => None,
                    };
                    let Some((at, end)) = rest.match_indices('{').find_map(tag) else { break };
                    rest = &rest[at + 2..];
                    closing = Some(end);
                }
            }
        }
    }
    out
}

/// What a mark says, without its ends.
fn place_of(mark: &str) -> Option<Place> {
    let (file, line) = mark.split_once(':')?;
    Some(Place { file: file.parse().ok()?, line: line.parse().ok()? })
}

/// The text without its marks, and the place of each of its lines.
fn without_marks(text: &str) -> (String, Vec<Place>) {
    let mut out = String::with_capacity(text.len());
    let (mut places, mut here, mut line) = (Vec::new(), None, 0);
    let mut rest = text;
    let mut add = |part: &str, here: Option<Place>| {
        for piece in part.split_inclusive('\n') {
            // A line's place is that of the first thing on it that is no blank.
            if places.len() <= line && !piece.trim().is_empty() {
                places.resize(line + 1, here.unwrap_or_default());
            }
            out.push_str(piece);
            line += usize::from(piece.ends_with('\n'));
        }
    };
    while let Some(at) = rest.find(MARK.0) {
        add(&rest[..at], here);
        let Some(end) = rest[at..].find(MARK.1) else { break };
        let mark = &rest[at + 1..at + end];
        here = place_of(mark);
        rest = &rest[at + end + 1..];
    }
    add(rest, here);
    if here.is_none() {
        places.clear();
    }
    (out, places)
}

/// The bytes from where a text is no JSON to its end; none where it is JSON.
fn unread(text: &str) -> Option<usize> {
    let error = serde_json::from_str::<serde_json::Value>(text).err()?;
    let lines = text.split_inclusive('\n').take(error.line().saturating_sub(1));
    let read = lines.map(str::len).sum::<usize>() + error.column();
    Some(text.len().saturating_sub(read))
}

/// The holes in a text that is JSON further on, or all of it, with a value there: the line of each, and how many stand
/// before it there.
fn lacking(text: &str) -> impl Iterator<Item = (usize, usize)> {
    let without = |part: &str| part.replace(HOLE, "");
    let before = unread(&without(text));
    text.match_indices(HOLE).take(HOLES_MAX).filter_map(move |(at, hole)| {
        let filled = format!("{}null{}", without(&text[..at]), without(&text[at + hole.len()..]));
        let gets_further = unread(&filled).is_none_or(|after| Some(after) < before);
        let before = &text[..at];
        let in_line = before.rsplit('\n').next().map_or(0, |line| line.matches(HOLE).count());
        gets_further.then(|| (before.matches('\n').count(), in_line))
    })
}

struct Collect {
    from: usize,
    to: usize,
    pattern: String,
}

/// The first `{{ rally.collect(parts="operations/*.json") }}`, under whatever name the helpers were imported.
fn collect(text: &str) -> Option<Collect> {
    let mut searched = 0;
    while let Some(at) = text[searched..].find("{{").map(|at| searched + at) {
        let end = at + text[at..].find("}}")?;
        let inner = text[at + 2..end].trim_matches(['-', ' ', '\t', '\n', '\r']);
        searched = end + 2;
        let call = inner.split_once(".collect(").and_then(|(of, call)| {
            let named =
                !of.is_empty() && of.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
            named.then(|| call.strip_suffix(')')).flatten()
        });
        let Some(call) = call else { continue };
        let value = call.trim().strip_prefix("parts").map_or(call, |rest| rest.trim_start());
        let value = value.trim().trim_start_matches('=').trim();
        let pattern =
            value.strip_prefix(['"', '\'']).and_then(|rest| rest.strip_suffix(['"', '\'']));
        if let Some(pattern) = pattern {
            return Some(Collect { from: at, to: end + 2, pattern: pattern.to_owned() });
        }
    }
    None
}

fn too_many() -> Error {
    let why = format!("the track has over {FILES_MAX} files; does a pattern match too much?");
    Error::Usage { why }
}

/// The files that match a pattern, `*` within names, in order. A pattern of many folders may match any number of them:
/// links lead in circles, and `..` to all of the machine.
fn matching(dir: &Path, pattern: &str) -> Result<Vec<PathBuf>> {
    let mut found = vec![dir.to_owned()];
    let parts: Vec<&str> =
        pattern.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    for part in parts {
        let mut next = Vec::new();
        for folder in found {
            if !part.contains('*') {
                next.push(folder.join(part));
                continue;
            }
            let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
            let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
            let fits =
                names.filter(|name| !name.starts_with('.') && record::names::matches(part, name));
            next.extend(fits.map(|name| folder.join(name)).take(FILES_MAX + 1));
            if next.len() > FILES_MAX {
                return Err(too_many());
            }
        }
        found = next;
    }
    found.retain(|path| path.is_file());
    found.sort();
    Ok(found)
}
