//! The APIs that work, and what searches, mappings and documents are made of, sent to a node of ours and to one of
//! OpenSearch 2.19.1, which begin empty and are asked the same in the same order: `tests/side_by_side/requests.txt`.
//!
//! Status and shape of the answers are to be equal, and their hits, counts, buckets and other values, but for what
//! `tests/side_by_side/differences.txt` says with its reason. The page of the surface (docs/rest.md), which is written
//! from the table of routes, says what has to be among the requests.

use std::collections::{BTreeMap, BTreeSet};

use clusters::{Clusters, OpenSearchClusters, TopologySpec};
use serde_json::{Value, json};
use testbed::CannotRun;

use crate::common::cluster::{Cluster, http};
use crate::compared::{Depth, differences, fits};
use crate::opensearch::not_fetched;

const REQUESTS: &str = include_str!("../side_by_side/requests.txt");
const DOCUMENTS: &str = include_str!("../side_by_side/documents.ndjson");
const KNOWN: &str = include_str!("../side_by_side/differences.txt");
const SURFACE: &str = include_str!("../../../../docs/rest.md");

/// As `narrows cluster` calls its own, so that nodes have the same names.
const CLUSTER: &str = "narrows";
/// Requests that OpenSearch has no route for.
const HERE_ALONE: &str = "here alone";
/// Values that answers give, and that later requests send as `$` with the name.
const HANDED_ON: [&str; 3] = ["_scroll_id", "pit_id", "id"];
/// Characters of answers that are shown where their statuses differ.
const SHOWN_MAX: usize = 240;

/// Lines that say something.
fn lines(text: &'static str) -> impl Iterator<Item = &'static str> {
    text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'))
}

struct Request {
    group: &'static str,
    line: &'static str,
    method: &'static str,
    path: &'static str,
    body: String,
}

impl Request {
    fn all() -> Vec<Request> {
        let mut group = "";
        let mut all = Vec::new();
        for line in lines(REQUESTS) {
            match line.strip_prefix('[') {
                Some(name) => group = name.trim_end_matches(']'),
                None => all.push(Request::read(group, line)),
            }
        }
        all
    }

    fn read(group: &'static str, line: &'static str) -> Request {
        let (method, rest) = line.split_once(' ').expect(line);
        let (path, body) = rest.split_once(' ').unwrap_or((rest, ""));
        let mut request = Request { group, line, method, path, body: body.to_owned() };
        let takes_lines = ["_bulk", "_msearch"].iter().any(|name| request.route().ends_with(name));
        if body == "@documents" {
            DOCUMENTS.clone_into(&mut request.body);
        } else if let Ok(Value::Array(values)) = serde_json::from_str(body)
            && takes_lines
        {
            request.body = values.iter().map(|value| format!("{value}\n")).collect();
        }
        request
    }

    /// Its path without parameters.
    fn route(&self) -> &'static str {
        self.path.split('?').next().unwrap_or_default()
    }

    /// The names of its parameters.
    fn parameters(&self) -> impl Iterator<Item = &'static str> + use<> {
        let (_, parameters) = self.path.split_once('?').unwrap_or_default();
        parameters.split('&').map(|one| one.split('=').next().unwrap_or_default())
    }

    /// An answer as a value. A table is the names of its columns, or its words where it shows no names.
    fn value(&self, answer: &str) -> Value {
        if let Ok(value) = serde_json::from_str(answer) {
            return value;
        }
        let rows: Vec<Vec<&str>> =
            answer.lines().map(|line| line.split_whitespace().collect()).collect();
        let has_names = self.path.split(['?', '&']).skip(1).any(|parameter| parameter == "v");
        match rows.first().filter(|_| has_names) {
            Some(names) => names.iter().map(|name| ((*name).to_owned(), Value::Null)).collect(),
            None => json!(rows),
        }
    }

    fn differences(&self, here: &(u16, String), there: &(u16, String)) -> Vec<String> {
        match (here.0, there.0) {
            (..500, 400..) if self.group == HERE_ALONE => Vec::new(),
            // What is refused here is a failure of the server there, now and then.
            (400, there) if there == 400 || there >= 500 => Vec::new(),
            (a, b) if a != b || self.group == HERE_ALONE => vec![format!("status {a}, there {b}")],
            _ => {
                let is_shape = self.group.ends_with(": shape");
                let depth = if is_shape { Depth::Shape } else { Depth::Values };
                differences(&self.value(&here.1), &self.value(&there.1), depth)
            }
        }
    }
}

/// A node, and what it said last of [`HANDED_ON`].
struct Asked {
    url: String,
    said: BTreeMap<&'static str, String>,
}

impl Asked {
    fn new(url: &str) -> Asked {
        Asked { url: url.to_owned(), said: BTreeMap::new() }
    }

    fn ask(&mut self, request: &Request) -> (u16, String) {
        let (mut path, mut body) = (request.path.to_owned(), request.body.clone());
        for (name, value) in &self.said {
            for text in [&mut path, &mut body] {
                *text = text.replace(&format!("${name}"), value);
            }
        }
        let (status, text) = http(&self.url, request.method, &path, &body);
        let answer: Value = serde_json::from_str(&text).unwrap_or_default();
        for name in HANDED_ON {
            if let Some(value) = answer[name].as_str() {
                self.said.insert(name, value.to_owned());
            }
        }
        (status, text)
    }
}

/// A line of the known differences.
struct Known {
    line: &'static str,
    request: &'static str,
    differs: &'static str,
    is_seen: bool,
}

impl Known {
    fn all() -> Vec<Known> {
        let read = |line: &'static str| {
            let parts: Vec<&'static str> = line.splitn(3, " | ").collect();
            let [request, differs, _why] = parts[..] else {
                panic!("a request, what differs, and why, apart by \" | \": {line}");
            };
            Known { line, request, differs, is_seen: false }
        };
        lines(KNOWN).map(read).collect()
    }
}

/// Asks both; what is wrong with the answers, or with the list of known differences.
fn ask_both(ours: &str, theirs: &str) -> Vec<String> {
    let (mut ours, mut theirs) = (Asked::new(ours), Asked::new(theirs));
    let mut known = Known::all();
    let mut wrong = Vec::new();
    for request in Request::all() {
        let (here, there) = (ours.ask(&request), theirs.ask(&request));
        for differs in request.differences(&here, &there) {
            let mut is_known = false;
            for one in &mut known {
                if fits(one.request, request.line) && fits(one.differs, &differs) {
                    (one.is_seen, is_known) = (true, true);
                }
            }
            if is_known {
                continue;
            }
            wrong.push(format!("{}\n    {differs}", request.line));
            if differs.starts_with("status ") {
                let shown = |text: &str| text.chars().take(SHOWN_MAX).collect::<String>();
                let both = (shown(&here.1), shown(&there.1));
                wrong.push(format!("    here:  {}\n    there: {}", both.0, both.1));
            }
        }
    }
    for one in known.iter().filter(|one| !one.is_seen) {
        wrong.push(format!("{}\n    differs no more: take the line out", one.line));
    }
    wrong
}

pub fn answers_are_those_of_opensearch() -> Result<(), CannotRun> {
    world::real_world::run(1, async |env| {
        let mut opensearch = OpenSearchClusters::new(&env);
        let topology = TopologySpec::alone(CLUSTER, 1);
        opensearch.start(&topology).await.map_err(not_fetched)?;
        let theirs = format!("http://{}", opensearch.nodes(CLUSTER)[0].http);
        let ours = Cluster::start_as("opensearch-2", 1);
        let wrong = ask_both(ours.url(), &theirs);
        opensearch.stop().await;
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        Ok(())
    })
}

/// A part of the page of the surface.
fn section(name: &str) -> &'static str {
    let (_, section) = SURFACE.split_once(&format!("\n## {name}\n")).expect(name);
    section.split("\n## ").next().unwrap_or_default()
}

/// A row of the APIs that work.
struct Api {
    names: Vec<&'static str>,
    /// Each method with each path.
    routes: Vec<(&'static str, &'static str)>,
    parameters: Vec<&'static str>,
}

impl Api {
    fn all() -> Vec<Api> {
        let rows = section("APIs that work").lines();
        rows.filter_map(Api::read).filter(|api| !api.routes.is_empty()).collect()
    }

    /// Reads ``| name | GET POST `/{index}/_search` `/_search` | parameters | refused |``.
    fn read(row: &'static str) -> Option<Api> {
        let mut cells = row.trim_start_matches("| ").split(" | ");
        let names = cells.next()?.split(", ").collect();
        let mut parts = cells.next()?.split('`');
        let methods: Vec<&'static str> = parts.next()?.split_whitespace().collect();
        let paths = parts.filter(|part| part.starts_with('/'));
        let routes = paths.flat_map(|path| methods.iter().map(move |method| (*method, path)));
        let routes = routes.collect();
        Some(Api { names, routes, parameters: cells.next()?.split_whitespace().collect() })
    }

    /// Whether the page says of a parameter that it is ignored: `| names | why |`, or `| names of these APIs | why |`.
    fn ignores(&self, parameter: &str) -> bool {
        let rows = section("Parameters that are ignored, harmless").lines();
        rows.filter_map(|row| row.strip_prefix("| ")?.split(" | ").next()).any(|cell| {
            let (parameters, of) = cell.split_once(" of ").unwrap_or((cell, ""));
            let is_of = of.is_empty() || of.split(", ").any(|name| self.names.contains(&name));
            is_of && parameters.split(' ').any(|name| name == parameter)
        })
    }
}

fn serves(route: &str, path: &str) -> bool {
    let is_one =
        |(part, word): (&str, &str)| part == word || part.starts_with('{') && !word.is_empty();
    let (parts, words) = (route.split('/'), path.split('/'));
    parts.clone().count() == words.clone().count() && parts.zip(words).all(is_one)
}

/// The page's routes with their parameters, but for those that are ignored; and its queries, aggregations, types,
/// parameters and options, which are looked for in bodies.
pub fn all_that_works_is_asked_for() {
    let apis = Api::all();
    let routes: BTreeSet<(&'static str, &'static str)> =
        apis.iter().flat_map(|api| api.routes.iter().copied()).collect();
    assert!(routes.len() > 150, "the page of the surface is read in another way: {routes:?}");
    let mut left = routes.clone();
    let mut asked: BTreeSet<((&str, &str), &str)> = BTreeSet::new();
    for request in Request::all() {
        let fitting = routes
            .iter()
            .filter(|(method, path)| *method == request.method && serves(path, request.route()));
        // The one that names most of the path.
        if let Some(route) = fitting.min_by_key(|(_, path)| path.matches('{').count()) {
            left.remove(route);
            asked.extend(request.parameters().map(|name| (*route, name)));
        }
    }
    assert!(left.is_empty(), "tests/side_by_side/requests.txt has no request for {left:?}");
    let mut missing = Vec::new();
    for api in &apis {
        for &name in api.parameters.iter().filter(|name| !api.ignores(name)) {
            if !api.routes.iter().any(|route| asked.contains(&(*route, name))) {
                missing.push(format!("{name} of {}", api.names.join(", ")));
            }
        }
    }
    assert!(missing.is_empty(), "tests/side_by_side/requests.txt has no request with {missing:#?}");
    for name in [
        "Queries", "Aggregations", "Types of fields", "Parameters of fields",
        "Options of highlight",
    ] {
        let words = section(name).lines().skip_while(|line| *line != "| --- |").nth(1).expect(name);
        let words = words.split(' ').filter(|word| *word != "|");
        let missing: Vec<&str> =
            words.filter(|word| !REQUESTS.contains(&format!("\"{word}\""))).collect();
        assert!(missing.is_empty(), "{name}: tests/side_by_side/requests.txt has no {missing:?}");
    }
}
