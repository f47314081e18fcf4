//! Tracks of Rally and workloads of OpenSearch Benchmark, read into plain data as their own files have them.
//!
//! | file | holds |
//! | --- | --- |
//! | `params` | `--track-params` |
//! | `filters` | filters of Jinja that are as Python's |
//! | `folder` | which files it may have read |
//! | `render` | collecting parts, Jinja, and from which line of which file each value came |
//! | `reader` | values with their places, and what is wrong with them |
//! | `corpora`, `context` | which corpora the track declares; what its operations are read with |
//! | `operations`, `composite` | what an operation sends: requests of a load, or steps; steps in streams |
//! | `points_in_time` | what opens and ends points in time, and searches them |
//! | `embedded` | what the embedded engine cannot do of an operation, found before anything starts |
//! | `needless` | settings without which indices are made on it |
//! | `python` | what the track's own Python registers, which is not run |
//! | `templates`, `template_steps` | the templates of indices that it declares; what makes and deletes them |
//! | `bulk` | which files hold the documents of a corpus, and what generates those that are missing |
//! | `tasks` | schedules: clients, rates, warm-up, tasks that go on at the same time |
//! | `open` | the track's own file, its indices and the challenge that is run |
//! | `live` | what is sent to a cluster that was there already, and which indices are made there |
//! | `asked` | what its searches look for, which documents that are made of a mapping hold |
//! | `rename`, `counts` | the same track on indices of other names; with searches that count, for virtual time |
//!
//! What is not understood is told before anything starts. An operation that cannot be sent here is *refused*: the rest
//! of the challenge can be run without it, when that is asked for.

mod asked;
mod bulk;
mod composite;
mod context;
mod corpora;
mod counts;
mod embedded;
mod filters;
mod folder;
mod live;
mod needless;
mod open;
mod operations;
mod params;
mod points_in_time;
mod python;
mod reader;
mod rename;
mod render;
mod tasks;
mod template_steps;
mod templates;

use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use crate::corpus::Written;
use crate::load::{Check, Content, Load, Operation};

pub(crate) use counts::{count_all, to_whom};
pub(crate) use live::check_request;
pub use open::open;
pub use params::Params;

/// Where templates of indices are put: the older ones, those of today, and what these are made of.
const TEMPLATES: [&str; 3] = ["/_template/", "/_index_template/", "/_component_template/"];

/// What a cluster's health may be, the worst first.
const STATUSES: [&str; 3] = ["red", "yellow", "green"];

/// What of a track is run, and how.
#[derive(Clone, Debug, Default)]
pub struct TrackOptions {
    /// Parameters of the track.
    pub params: Params,
    /// The challenge; the track's default where none is named.
    pub challenge: Option<String>,
    /// Only the tasks of these names, `type:` or `tag:`.
    pub include: Vec<String>,
    /// Not the tasks of these names, types or tags.
    pub exclude: Vec<String>,
    /// Run everything once, with a thousand documents, to see whether it works.
    pub test_mode: bool,
    /// Leave operations out that cannot be run here, instead of refusing the track.
    pub skip_refused: bool,
    /// Generate the documents of a corpus whose files are not there.
    pub generate: bool,
    /// Where files of documents lie, besides the track's folder.
    pub corpora: Option<PathBuf>,
    /// The share of each corpus that is indexed: 1 for all of it.
    pub scale: f64,
    /// Whether the embedded engine runs it, whose search and mappings are known.
    pub embedded: bool,
    /// Whether it does so in virtual time, where documents have sizes and no words.
    pub is_virtual: bool,
    /// Whether the cluster was there already: nothing is made there but indices under names of the run.
    pub live: bool,
}

/// A track, with one of its challenges.
#[derive(Clone, Debug, PartialEq)]
pub struct Track {
    /// Its name: that of its folder.
    pub name: String,
    /// What it says of itself.
    pub about: String,
    /// The challenge.
    pub challenge: String,
    /// The parameters that it was rendered with.
    pub params: Params,
    /// The track as it was rendered.
    pub text: String,
    /// Names of its indices.
    pub indices: Vec<String>,
    /// What is run, one after another.
    pub elements: Vec<Element>,
    /// What is not as in the track, a sentence each.
    pub changes: Vec<String>,
}

/// Tasks that go on at the same time; mostly one.
#[derive(Clone, Debug, PartialEq)]
pub struct Element {
    /// The tasks.
    pub tasks: Vec<Task>,
    /// When the others are ended.
    pub completed_by: CompletedBy,
    /// How many of the tasks begin at once. Each of the others follows the one that stands so many places before it.
    pub at_once: usize,
}

/// When tasks that go on at the same time are over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CompletedBy {
    /// When all have ended by themselves.
    All,
    /// When the first has.
    Any,
    /// When this one has.
    Task(String),
}

/// An operation and its schedule.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    /// Its name, as reports show it.
    pub name: String,
    /// The type of its operation: `bulk`, `search`.
    pub operation_type: String,
    /// What it does.
    pub action: Action,
    /// How it is sent; a run gives it hosts and a seed.
    pub load: Load,
    /// The most requests of each client that go on at a time, where streams are bounded.
    pub connections: Option<usize>,
    /// Whether it is part of the report.
    pub reported: bool,
}

/// What a task does.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Sends requests as a load.
    Send(Operation),
    /// Goes through steps; each time through them is a request of the report.
    Do(Vec<Step>),
}

/// One step of an operation that is more than a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// A request.
    Request(Request),
    /// Nothing, for a while.
    Sleep(Duration),
    /// Sequences that go on at the same time.
    Streams(Vec<Vec<Step>>),
}

impl Step {
    /// Its requests in their order, those of streams too.
    pub fn requests(&self) -> Vec<&Request> {
        match self {
            Step::Request(request) => vec![request],
            Step::Sleep(_) => Vec::new(),
            Step::Streams(streams) => streams.iter().flatten().flat_map(Step::requests).collect(),
        }
    }

    fn requests_mut(&mut self) -> Vec<&mut Request> {
        match self {
            Step::Request(request) => vec![request],
            Step::Sleep(_) => Vec::new(),
            Step::Streams(streams) => {
                streams.iter_mut().flatten().flat_map(Step::requests_mut).collect()
            }
        }
    }
}

/// A request that is sent as a step.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// `GET`, ...
    pub method: &'static str,
    /// Its path, with parameters.
    pub path: String,
    /// Its body, if it has one; a text is sent as it is.
    pub body: Option<Value>,
    /// When its answer is a good one.
    pub check: Check,
    /// Whether an answer of 404 is a good one: what is to be deleted may not be there.
    pub may_be_missing: bool,
    /// What the answer has to say.
    pub condition: Option<Box<Condition>>,
    /// How often it is sent at most, until it is answered well.
    pub tries: u32,
    /// The pause before it is sent again.
    pub pause: Duration,
    /// How long its answer may take; none for as long as those of its task.
    pub timeout: Option<Duration>,
    /// Whether it counts as an error where it is not answered well, as in a load: it only reads, and so does all of its
    /// composite. Otherwise the run ends, as what comes after it counts on it.
    pub is_counted: bool,
    /// What it has to do with a point in time, by the name of the operation that opens it.
    pub point_in_time: Option<PointInTime>,
    /// The most pages of a search, each of which goes on from the last hit of the one before.
    pub pages: u32,
    /// The pause between questions whether a merge whose answer did not come in time still goes on; none where such an
    /// answer is an error.
    pub polled: Option<Duration>,
}

/// What a request of a composite does with a point in time. One that is left open is ended with its composite.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PointInTime {
    /// Opens one under this name.
    Opens(String),
    /// Searches it.
    Searches(String),
    /// Ends it.
    Closes(String),
}

/// What an answer has to say.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// This, under a path of names.
    Is {
        /// The names.
        path: Vec<String>,
        /// The value.
        value: Value,
    },
    /// At least this health, without copies on their way where that is asked for.
    Health {
        /// `green`, `yellow`, `red`.
        status: String,
        /// Whether no copy may be on its way to another node.
        none_relocating: bool,
    },
}

impl Track {
    /// The templates that it makes, by their paths, those first that are made of others.
    pub(crate) fn templates(&self) -> Vec<&str> {
        let tasks = self.elements.iter().flat_map(|element| &element.tasks);
        let steps = tasks.filter_map(|task| match &task.action {
            Action::Do(steps) => Some(steps),
            Action::Send(_) => None,
        });
        let paths = steps.flatten().filter_map(|step| match step {
            Step::Request(request) if request.method == "PUT" => request.path.split('?').next(),
            _ => None,
        });
        let mut paths: Vec<&str> =
            paths.filter(|path| TEMPLATES.iter().any(|of| path.starts_with(of))).collect();
        // Component templates come last, which cannot be deleted before those that are made of them.
        paths.sort_unstable_by(|a, b| b.cmp(a));
        paths.dedup();
        paths
    }

    /// Whether there may be indices of it that it does not declare, or aliases in place of those that it does: made by
    /// requests, by templates, or by documents that say where they go.
    pub(crate) fn makes_other_indices(&self) -> bool {
        let mut tasks = self.elements.iter().flat_map(|element| &element.tasks);
        !self.templates().is_empty()
            || self.makes().into_iter().any(|made| self.indices.iter().all(|own| own != made))
            || tasks.any(|task| match &task.action {
                Action::Send(Operation { content: Content::Corpora(parts), .. }) => {
                    parts.iter().any(|part| part.written == Written::AsSaid)
                }
                _ => false,
            })
    }
}

impl Condition {
    /// What an answer has under a path of names.
    fn found<'a>(path: &[String], answer: &'a Value) -> Option<&'a Value> {
        path.iter().try_fold(answer, |at, name| match at {
            Value::Array(items) => items.get(name.parse::<usize>().ok()?),
            other => other.get(name),
        })
    }

    /// The path of what an answer does not have at all, if that is so.
    pub fn missing(&self, answer: &Value) -> Option<String> {
        match self {
            Condition::Is { path, .. } if Self::found(path, answer).is_none() => {
                Some(path.join("."))
            }
            _ => None,
        }
    }

    /// Whether an answer says it.
    pub fn holds(&self, answer: &Value) -> bool {
        match self {
            Condition::Is { path, value } => Self::found(path, answer) == Some(value),
            Condition::Health { status, none_relocating } => {
                let rank = |status: &str| STATUSES.iter().position(|s| *s == status);
                let found = answer["status"].as_str().and_then(rank);
                let relocating = answer["relocating_shards"].as_u64().unwrap_or(0);
                // What was waited for beside these two may not have come either.
                answer["timed_out"] != true
                    && found >= rank(status)
                    && found.is_some()
                    && (!none_relocating || relocating == 0)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn conditions_are_read_from_the_answer() {
        let is = Condition::Is {
            path: ["_all", "total", "merges", "current"].map(str::to_owned).to_vec(),
            value: json!(0),
        };
        assert!(is.holds(&json!({ "_all": { "total": { "merges": { "current": 0 } } } })));
        assert!(!is.holds(&json!({ "_all": { "total": { "merges": { "current": 1 } } } })));
        assert!(!is.holds(&json!({})), "what is not there is not 0");
        assert_eq!(is.missing(&json!({})).as_deref(), Some("_all.total.merges.current"));
        let health =
            |none_relocating| Condition::Health { status: "yellow".to_owned(), none_relocating };
        let answer =
            |status: &str, moving: u64| json!({ "status": status, "relocating_shards": moving });
        assert!(
            health(true).holds(&answer("green", 0)) && health(true).holds(&answer("yellow", 0))
        );
        assert!(!health(true).holds(&answer("red", 0)) && !health(true).holds(&answer("green", 1)));
        assert!(health(false).holds(&answer("green", 1)) && !health(false).holds(&json!({})));
        let late = |timed_out: bool| json!({ "status": "green", "timed_out": timed_out });
        assert!(health(false).holds(&late(false)) && !health(false).holds(&late(true)));
    }
}
