//! What the operations of a track are read with.

use std::cell::RefCell;
use std::fmt::Write as _;
use std::time::Duration;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use query::json::Node;
use serde_json::Value;

use super::corpora::Corpus;
use super::needless;
use super::python::Python;
use super::reader::{Object, Reader, Refusal};
use super::templates::Template;
use super::{Request, TrackOptions};
use crate::load::Check;

/// What is not sent as it is in a query string.
const SENT: AsciiSet =
    NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b'*').remove(b',');

/// Why nothing is made on a cluster that was there already but indices under names of the run.
pub(super) const NOT_RENAMED: &str = "the cluster was there already, and what it makes has names that are not changed into those of the run";

/// Whether it is run on Elasticsearch Serverless, which no cluster here is.
pub(super) const ON_SERVERLESS: &str = "run-on-serverless";

/// Whether it is part of the report: in Rally, and in OpenSearch Benchmark.
pub(super) const REPORTED: [&str; 2] = ["include-in-reporting", "include-in-results_publishing"];

/// Members of every operation.
const COMMON: [&str; 17] = [
    "name", "operation-type", "tags", "meta", REPORTED[0], REPORTED[1], "request-timeout",
    "request-params", "detailed-results", "assertions", "opaque-id", "retry-until-success",
    "retries", "retry-wait-period", "retry-on-timeout", "retry-on-error", ON_SERVERLESS,
];

/// Why something is refused: the word that it stands under, and a sentence.
pub(super) type Why = (String, String);

pub(super) struct Index {
    pub(super) name: String,
    pub(super) body: Value,
    /// Why it cannot be made here, if it cannot.
    pub(super) refused: Option<Refusal>,
    /// What else cannot be made of it.
    pub(super) also: Vec<Refusal>,
}

pub(super) struct Context<'a> {
    pub(super) reader: &'a Reader<'a>,
    pub(super) indices: Vec<Index>,
    pub(super) corpora: Vec<Corpus>,
    pub(super) templates: Vec<Template>,
    pub(super) options: &'a TrackOptions,
    /// The track's own Python, where it has any.
    pub(super) python: Option<Python>,
    /// What is not as in the track.
    pub(super) changes: RefCell<Vec<String>>,
    /// Why the operation that is read is not run, where it has members that are not known.
    pub(super) unknown: RefCell<Option<Refusal>>,
}

impl Context<'_> {
    /// Says once what is not as in the track.
    pub(super) fn change(&self, sentence: String) {
        let mut changes = self.changes.borrow_mut();
        if !changes.contains(&sentence) {
            changes.push(sentence);
        }
    }

    /// Takes settings that are not needed out of a body for the embedded engine, and says so.
    pub(super) fn leave_out(&self, what: &str, body: &mut Value) {
        if self.options.embedded {
            needless::take_out(what, body).into_iter().for_each(|said| self.change(said));
        }
    }

    /// Refuses at a node an index with this body that the embedded engine would refuse.
    pub(super) fn check_new_index(&self, node: &Node<'_>, body: &Value) -> Result<(), Refusal> {
        if !self.options.embedded {
            return Ok(());
        }
        rest::check_new_index(body).map_err(|why| {
            let why = format!("the embedded engine does not make this index: {why}");
            self.reader.refusal(node, "", why)
        })
    }

    /// Why the first index cannot be made here, of those that an expression names, that cannot.
    pub(super) fn refused_index(&self, names: &str) -> Option<&Refusal> {
        names
            .split(',')
            .find_map(|name| self.indices.iter().find(|index| index.name == name)?.refused.as_ref())
    }

    pub(super) fn is_of_index(&self, refusal: &Refusal) -> bool {
        self.indices.iter().any(|index| index.refused.as_ref() == Some(refusal))
    }

    /// The indices of the track as a path has them.
    pub(super) fn all_indices(&self) -> String {
        let made = self.indices.iter().filter(|index| index.refused.is_none());
        let names: Vec<&str> = made.map(|index| index.name.as_str()).collect();
        if names.is_empty() || !self.templates.is_empty() {
            "_all".to_owned()
        } else {
            names.join(",")
        }
    }

    /// Refuses an operation that has a member which is neither its own nor one of every operation.
    pub(super) fn only(&self, object: &Object<'_>, what: &str, own: &[&str]) {
        let mut first = self.unknown.borrow_mut();
        let known = [&COMMON[..], own].concat();
        *first = first.take().or_else(|| self.reader.unknown(object, what, &known));
    }

    /// Refuses to send to a type of documents, or to search in one.
    pub(super) fn no_type(&self, object: &Object<'_>) -> Result<(), Why> {
        match self.reader.text(object, "type").as_deref() {
            None | Some("" | "_doc") => Ok(()),
            Some(_) => {
                let why =
                    "documents have no types since Elasticsearch 7 and in OpenSearch: leave it out";
                Err(("type".to_owned(), why.to_owned()))
            }
        }
    }

    /// The index that an operation names; `otherwise` where it names none.
    pub(super) fn index(&self, object: &Object<'_>, otherwise: impl FnOnce() -> String) -> String {
        let named = self.reader.texts(object, "index");
        if named.is_empty() { otherwise() } else { named.join(",") }
    }

    /// The parameters of a request, as they follow its path.
    pub(super) fn query(&self, object: &Object<'_>, own: &[(&str, String)]) -> String {
        let mut pairs: Vec<(String, String)> =
            own.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        if let Some(params) = object.get("request-params") {
            for member in self.reader.object(params, "request-params").members {
                let text = match member.node.plain() {
                    Value::String(text) => text,
                    other => other.to_string(),
                };
                pairs.retain(|(name, _)| *name != member.name);
                pairs.push((member.name.to_string(), text));
            }
        }
        let mut out = String::new();
        for (name, value) in pairs {
            let sign = if out.is_empty() { '?' } else { '&' };
            let [name, value] = [&name, &value].map(|text| utf8_percent_encode(text, &SENT));
            let _ = write!(out, "{sign}{name}={value}");
        }
        out
    }

    pub(super) fn is_reported(&self, object: &Object<'_>) -> Option<bool> {
        REPORTED.iter().find_map(|name| self.reader.bool(object, name))
    }

    pub(super) fn seconds(&self, object: &Object<'_>, name: &str, otherwise: Duration) -> Duration {
        let found = self.reader.number(object, name, 0.0);
        found.map_or(otherwise, |seconds| Duration::from_secs_f64(seconds.min(1e6)))
    }
}

impl Request {
    /// A request without anything special.
    pub(crate) fn new(method: &'static str, path: String, body: Option<Value>) -> Request {
        Request {
            method,
            path,
            body,
            check: Check::Status,
            may_be_missing: false,
            condition: None,
            tries: 1,
            pause: Duration::ZERO,
            timeout: None,
            is_counted: false,
            point_in_time: None,
            pages: 1,
            polled: None,
        }
    }
}
