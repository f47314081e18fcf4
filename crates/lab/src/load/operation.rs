//! What is sent: a method, a path and a body with parameters drawn from a seed, or bulk requests of a corpus. Pure.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::rc::Rc;

use bytes::Bytes;

use super::check::Check;
use crate::choices::near_or_stop;
use crate::corpus::{BulkBodies, Random, Source, Written};
use crate::error::{Error, Result};

/// The family of random numbers that parameters are drawn from.
const PARAMETERS: u64 = 0x7061_7261;

/// One request. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// `GET`, `POST`, ...
    pub method: Rc<str>,
    /// The path with its parameters.
    pub path: Rc<str>,
    /// The body; empty for none.
    pub body: Bytes,
    /// When its answer is a good one.
    pub check: Check,
    /// Documents that it indexes.
    pub documents: u64,
    /// Pages of hits that are fetched through a scroll, this one included; 1 for no scroll.
    pub pages: u32,
}

/// A source of requests.
pub trait Requests {
    /// The next one, which a client sends; none at the end.
    fn next(&mut self, client: usize) -> Option<Result<Request>>;
}

/// A parameter's values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Draw {
    /// A whole number, both ends included.
    Integer {
        /// The least.
        from: i64,
        /// The most.
        to: i64,
    },
    /// One of these texts; at least one.
    Choice(Vec<String>),
}

impl Draw {
    fn draw(&self, random: &mut Random, out: &mut String) {
        match self {
            Draw::Integer { from, to } => {
                let span = to.abs_diff(*from);
                let offset = match span.checked_add(1) {
                    Some(count) => ((u128::from(random.bits()) * u128::from(count)) >> 64) as u64,
                    None => random.bits(),
                };
                out.push_str(&from.wrapping_add_unsigned(offset).to_string());
            }
            Draw::Choice(texts) => out.push_str(random.pick::<String>(texts)),
        }
    }
}

/// What a load sends, again and again.
#[derive(Clone, Debug, PartialEq)]
pub struct Operation {
    /// Its name in tables.
    pub name: String,
    /// What is sent.
    pub content: Content,
}

/// What an operation consists of.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// Requests from a pattern. `{{name}}` in path and body stands for a parameter, drawn for each request anew.
    Pattern {
        /// `GET`, `POST`, ...
        method: String,
        /// Path with its parameters.
        path: String,
        /// Bodies, which requests take in turn; none for no body.
        bodies: Vec<String>,
        /// Parameters by name.
        parameters: BTreeMap<String, Draw>,
        /// When an answer is a good one.
        check: Check,
    },
    /// Documents of several sources, one after another, in bulk requests. It ends with the documents.
    Corpora(Vec<BulkPart>),
    /// A search whose hits are fetched page by page through a scroll; all pages are one request of the report.
    Scroll {
        /// Path with its parameters, among them how long the scroll is kept.
        path: String,
        /// The search.
        body: String,
        /// The most pages that are fetched.
        pages: u32,
    },
}

/// Documents of one source, as bulk requests send them.
#[derive(Clone, Debug, PartialEq)]
pub struct BulkPart {
    /// The index; empty where each document's action names its own.
    pub index: String,
    /// Where documents come from.
    pub source: Source,
    /// Which of them.
    pub documents: Range<u64>,
    /// Documents in a request.
    pub bulk_documents: u64,
    /// Parameters of each request, `pipeline=a`; may be empty.
    pub query: String,
    /// How documents are written.
    pub written: Written,
    /// How many documents a file is to have: another number is an error as soon as it is seen.
    pub said: Option<u64>,
}

impl BulkPart {
    /// The part of its documents that the driver with number `first` of `step` sends.
    fn requests(&self, seed: u64, first: u64, step: u64) -> Result<Bulk> {
        let Range { start, end } = self.documents;
        let all = end.saturating_sub(start);
        let part = |n: u64| start + (u128::from(all) * u128::from(n) / u128::from(step)) as u64;
        let range = part(first)..part(first + 1);
        let more = if self.query.is_empty() { String::new() } else { format!("&{}", self.query) };
        let below = if self.index.is_empty() { "" } else { "/" };
        let path = format!("{below}{}/_bulk?filter_path=errors,took{more}", self.index);
        let (source, documents) = (&self.source, self.bulk_documents);
        let bodies = BulkBodies::written(source, seed, range, documents, &self.written)?;
        let bodies = match (source, self.said) {
            (Source::File(path), Some(said)) => bodies.of_exactly(path.clone(), said),
            _ => bodies,
        };
        Ok(Bulk { method: "POST".into(), path: path.into(), bodies })
    }
}

impl Content {
    /// Requests without parameters. What looks like one, as in the template of a search, stands for itself.
    pub(crate) fn fixed(method: &str, path: String, bodies: Vec<String>, check: Check) -> Content {
        let mut parameters = BTreeMap::new();
        for mut rest in bodies.iter().chain([&path]).map(String::as_str) {
            while let Some((_, name, after)) = next_parameter(rest) {
                let itself = Draw::Choice(vec![format!("{{{{{name}}}}}")]);
                parameters.insert(name.to_owned(), itself);
                rest = after;
            }
        }
        Content::Pattern { method: method.to_owned(), path, bodies, parameters, check }
    }
}

impl Operation {
    /// Searches of an index with these bodies, in turn.
    pub fn search(name: &str, index: &str, bodies: Vec<String>) -> Operation {
        let content = Content::fixed("POST", format!("/{index}/_search"), bodies, Check::Search);
        Operation { name: name.to_owned(), content }
    }

    /// Bulk requests with new documents of a source, which it ends with.
    pub fn bulk(
        index: &str,
        source: Source,
        documents: Range<u64>,
        bulk_documents: u64,
    ) -> Operation {
        let part = BulkPart {
            index: index.to_owned(),
            source,
            documents,
            bulk_documents,
            query: String::new(),
            written: Written::New,
            said: None,
        };
        Operation { name: "bulk".to_owned(), content: Content::Corpora(vec![part]) }
    }

    /// A request without a body.
    pub fn get(name: &str, path: &str) -> Operation {
        let content = Content::fixed("GET", path.to_owned(), Vec::new(), Check::of(path));
        Operation { name: name.to_owned(), content }
    }

    /// Whether it changes nothing: by its method, or because its path is that of a search.
    pub fn is_read_only(&self) -> bool {
        let (method, path) = match &self.content {
            Content::Pattern { method, path, .. } => (method, path),
            Content::Scroll { .. } => return true,
            Content::Corpora(_) => return false,
        };
        let endpoint = path.split('?').next().unwrap_or(path).rsplit('/').next().unwrap_or("");
        match method.as_str() {
            "GET" | "HEAD" => true,
            "POST" => ["_search", "_msearch", "_count", "_mget", "_validate", "_field_caps"]
                .contains(&endpoint),
            _ => false,
        }
    }

    /// Asks other indices, by the names in their paths.
    pub(crate) fn rename_index(&mut self, renamed: &BTreeMap<String, String>) {
        match &mut self.content {
            Content::Corpora(parts) => {
                for part in parts {
                    if let Some(name) = renamed.get(&part.index) {
                        part.index.clone_from(name);
                    }
                }
            }
            Content::Pattern { path, .. } | Content::Scroll { path, .. } => {
                let mut parts: Vec<&str> = path.split('/').collect();
                if let Some(name) = parts.get(1).and_then(|part| renamed.get(*part)) {
                    parts[1] = name;
                    *path = parts.join("/");
                }
            }
        }
    }

    /// Its requests: every `step`-th from number `first`, so that several drivers share them without sending one twice.
    /// Fails if a pattern names a parameter that is not there, or a corpus cannot be opened.
    pub fn requests(&self, seed: u64, first: u64, step: u64) -> Result<Box<dyn Requests>> {
        let step = step.max(1);
        match &self.content {
            Content::Pattern { method, path, bodies, parameters, check } => {
                let names: Vec<&str> = parameters.keys().map(String::as_str).collect();
                let read = |text: &str| Template::read(text, &names);
                let bodies = bodies.iter().map(|body| read(body)).collect::<Result<_, _>>()?;
                Ok(Box::new(Drawn {
                    method: method.as_str().into(),
                    path: read(path)?,
                    bodies,
                    draws: parameters.values().cloned().collect(),
                    check: *check,
                    seed,
                    next: first,
                    step,
                    text: String::new(),
                }))
            }
            Content::Corpora(parts) => {
                // Each is opened now: a file that is missing or damaged at its beginning is found before anything is
                // sent.
                let parts = parts.iter().map(|part| part.requests(seed, first, step));
                Ok(Box::new(OneAfterAnother(parts.collect::<Result<_, _>>()?)))
            }
            Content::Scroll { path, body, pages } => Ok(Box::new(Scrolls(Request {
                method: "POST".into(),
                path: path.as_str().into(),
                body: Bytes::copy_from_slice(body.as_bytes()),
                check: Check::Search,
                documents: 0,
                pages: *pages,
            }))),
        }
    }
}

struct Bulk {
    method: Rc<str>,
    path: Rc<str>,
    bodies: BulkBodies,
}

impl Requests for Bulk {
    fn next(&mut self, client: usize) -> Option<Result<Request>> {
        Some(self.bodies.next_of(client)?.map(|body| Request {
            method: self.method.clone(),
            path: self.path.clone(),
            body: body.body,
            check: Check::Bulk,
            documents: body.documents,
            pages: 1,
        }))
    }
}

struct OneAfterAnother(VecDeque<Bulk>);

impl Requests for OneAfterAnother {
    fn next(&mut self, client: usize) -> Option<Result<Request>> {
        loop {
            match self.0.front_mut()?.next(client) {
                Some(request) => return Some(request),
                None => drop(self.0.pop_front()),
            }
        }
    }
}

/// The same search again and again.
struct Scrolls(Request);

impl Requests for Scrolls {
    fn next(&mut self, _: usize) -> Option<Result<Request>> {
        Some(Ok(self.0.clone()))
    }
}

struct Drawn {
    method: Rc<str>,
    path: Template,
    bodies: Vec<Template>,
    draws: Vec<Draw>,
    check: Check,
    seed: u64,
    next: u64,
    step: u64,
    /// Room to write in.
    text: String,
}

impl Requests for Drawn {
    fn next(&mut self, _: usize) -> Option<Result<Request>> {
        let n = self.next;
        self.next += self.step;
        let mut random = Random::new(self.seed, PARAMETERS, n);
        let path = match &self.path {
            Template::Fixed { text, .. } => text.clone(),
            Template::Pieces(pieces) => {
                write(pieces, &self.draws, &mut random, &mut self.text);
                self.text.as_str().into()
            }
        };
        let turn = (n % self.bodies.len().max(1) as u64) as usize;
        let body = match self.bodies.get(turn) {
            None => Bytes::new(),
            Some(Template::Fixed { bytes, .. }) => bytes.clone(),
            Some(Template::Pieces(pieces)) => {
                write(pieces, &self.draws, &mut random, &mut self.text);
                Bytes::copy_from_slice(self.text.as_bytes())
            }
        };
        let (method, check) = (self.method.clone(), self.check);
        Some(Ok(Request { method, path, body, check, documents: 0, pages: 1 }))
    }
}

/// A text with parameters.
enum Template {
    /// Without any.
    Fixed {
        text: Rc<str>,
        bytes: Bytes,
    },
    Pieces(Vec<Piece>),
}

enum Piece {
    Text(String),
    /// A parameter by its number.
    Parameter(usize),
}

/// What stands before the next `{{name}}`, the name, and what follows. JSON has no two braces in a row before a name.
fn next_parameter(text: &str) -> Option<(&str, &str, &str)> {
    let mut opened = text.match_indices("{{").map(|(at, _)| at);
    opened.find_map(|at| {
        let inner = &text[at + 2..];
        let length = inner.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))?;
        let after = inner[length..].strip_prefix("}}").filter(|_| length > 0)?;
        Some((&text[..at], &inner[..length], after))
    })
}

impl Template {
    fn read(text: &str, names: &[&str]) -> Result<Template> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some((before, name, after)) = next_parameter(rest) {
            let number = names.iter().position(|known| *known == name).ok_or_else(|| {
                let end = near_or_stop(name, names);
                Error::usage(format!(
                    "the operation has no parameter \"{name}\"{end} Give it its values: --parameter {name}=1..100, or \
                     in a plan parameters = {{ {name} = [\"a\", \"b\"] }}"
                ))
            })?;
            pieces.push(Piece::Text(before.to_owned()));
            pieces.push(Piece::Parameter(number));
            rest = after;
        }
        if pieces.is_empty() {
            let bytes = Bytes::copy_from_slice(text.as_bytes());
            return Ok(Template::Fixed { text: text.into(), bytes });
        }
        pieces.push(Piece::Text(rest.to_owned()));
        Ok(Template::Pieces(pieces))
    }
}

fn write(pieces: &[Piece], draws: &[Draw], random: &mut Random, out: &mut String) {
    out.clear();
    for piece in pieces {
        match piece {
            Piece::Text(text) => out.push_str(text),
            Piece::Parameter(number) => draws[*number].draw(random, out),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::Corpus;

    fn pattern(path: &str, bodies: &[&str], parameters: &[(&str, Draw)]) -> Operation {
        let content = Content::Pattern {
            method: "POST".to_owned(),
            path: path.to_owned(),
            bodies: bodies.iter().map(|body| (*body).to_owned()).collect(),
            parameters: parameters.iter().map(|(n, d)| ((*n).to_owned(), d.clone())).collect(),
            check: Check::Search,
        };
        Operation { name: "test".to_owned(), content }
    }

    fn take(requests: &mut Box<dyn Requests>, count: usize) -> Vec<Request> {
        (0..count).map(|_| requests.next(0).unwrap().unwrap()).collect()
    }

    #[test]
    fn bodies_come_in_turn_and_drivers_share_them() {
        let operation = pattern("/a/_search", &["{\"a\":{}}", "{\"b\":{}}", ""], &[]);
        let mut whole = operation.requests(1, 0, 1).unwrap();
        let bodies: Vec<Bytes> = take(&mut whole, 4).into_iter().map(|r| r.body).collect();
        assert_eq!(bodies, ["{\"a\":{}}", "{\"b\":{}}", "", "{\"a\":{}}"]);
        let mut second = operation.requests(1, 1, 2).unwrap();
        assert_eq!(take(&mut second, 2)[1].body, "{\"a\":{}}", "numbers 1 and 3");
    }

    #[test]
    fn parameters_are_a_function_of_seed_and_number() {
        let year = Draw::Integer { from: -3, to: 3 };
        let word = Draw::Choice(vec!["x".to_owned(), "y".to_owned()]);
        let operation = pattern(
            "/a/_search?routing={{year}}",
            &["{\"q\":{\"{{word}}\":{{year}}}}"],
            &[("word", word), ("year", year)],
        );
        let all = take(&mut operation.requests(9, 0, 1).unwrap(), 1000);
        let odd = take(&mut operation.requests(9, 1, 2).unwrap(), 500);
        assert!(odd.iter().eq(all.iter().skip(1).step_by(2)));
        let mut seen: Vec<&str> =
            all.iter().map(|request| request.path.rsplit('=').next().unwrap()).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen, ["-1", "-2", "-3", "0", "1", "2", "3"]);
        let json: serde_json::Value = serde_json::from_slice(&all[0].body).unwrap();
        assert!(json["q"]["x"].is_i64() || json["q"]["y"].is_i64(), "{json}");
        let other = take(&mut operation.requests(10, 0, 1).unwrap(), 1000);
        assert_ne!(all, other);
    }

    #[test]
    fn a_fixed_request_is_sent_as_it_is_whatever_looks_like_a_parameter_in_it() {
        let body = r#"{"source":{"query":{"match":{"a":"{{q}}"}}},"params":{"q":"{{{x}}}"}}"#;
        let path = "/_search/template?routing={{q}}".to_owned();
        let content = Content::fixed("POST", path.clone(), vec![body.to_owned()], Check::Search);
        let operation = Operation { name: "test".to_owned(), content };
        let sent = take(&mut operation.requests(1, 0, 1).unwrap(), 1).remove(0);
        assert_eq!((&*sent.path, &sent.body[..]), (path.as_str(), body.as_bytes()));
    }

    #[test]
    fn the_widest_range_is_drawn_from() {
        let mut random = Random::new(1, 2, 3);
        let mut text = String::new();
        for _ in 0..100 {
            Draw::Integer { from: i64::MIN, to: i64::MAX }.draw(&mut random, &mut text);
            text.clear();
            Draw::Integer { from: 7, to: 7 }.draw(&mut random, &mut text);
            assert_eq!(text, "7");
            text.clear();
        }
    }

    #[test]
    fn bulk_requests_of_two_drivers_hold_every_document_once() {
        let operation = Operation::bulk("a", Source::Generated(Corpus::Geopoint), 10..31, 4);
        let mut lines = Vec::new();
        for first in 0..2 {
            let mut requests = operation.requests(3, first, 2).unwrap();
            while let Some(request) = requests.next(0) {
                let request = request.unwrap();
                assert_eq!(
                    (&*request.path, request.check),
                    ("/a/_bulk?filter_path=errors,took", Check::Bulk)
                );
                assert!(request.documents <= 4);
                lines.extend(request.body.split(|byte| *byte == b'\n').map(<[u8]>::to_vec));
            }
        }
        assert_eq!(lines.iter().filter(|line| line.starts_with(b"{\"index\"")).count(), 21);
        assert!(!operation.is_read_only());
    }

    #[test]
    fn reading_is_told_from_writing() {
        let read = |method: &str, path: &str| {
            let mut operation = pattern(path, &[], &[]);
            let Content::Pattern { method: own, .. } = &mut operation.content else { panic!() };
            *own = method.to_owned();
            operation.is_read_only()
        };
        assert!(
            read("GET", "/_cat/nodes") && read("POST", "/a/_search?size=1") && read("HEAD", "/")
        );
        assert!(!read("POST", "/a/_doc") && !read("PUT", "/a") && !read("DELETE", "/a/_search"));
        assert!(!read("POST", "/a/_delete_by_query?q=_search"));
    }
}
