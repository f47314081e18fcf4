//! Points in time: what opens, ends and lists them, by the names of Rally and of OpenSearch Benchmark alike. Paths are
//! those of OpenSearch; a run puts those of Elasticsearch in their place where it is one that is asked.

use std::collections::BTreeSet;

use serde_json::Value;

use super::context::Context;
use super::reader::Object;
use super::{Action, PointInTime, Request, Step};
use crate::load::Check;

/// Names the operation that has opened a point in time.
pub(super) const FROM: &str = "with-point-in-time-from";
const PATH: &str = "/_search/point_in_time";
/// How long one is kept for its first search, as in Rally.
const KEEP_ALIVE: &str = "1m";

/// What an operation of one of these types sends.
pub(super) fn request(context: &Context<'_>, kind: &str, object: &Object<'_>) -> Request {
    let reader = context.reader;
    let needed = |member: &str, what: &str| {
        let found = reader.text(object, member);
        if found.is_none() {
            reader.wrong(object.node, kind, format!("{kind} needs \"{member}\": {what}"));
        }
        found.unwrap_or_default()
    };
    let query = || context.query(object, &[]);
    let (method, path, point_in_time) = match kind {
        "open-point-in-time" | "create-point-in-time" => {
            context.only(object, kind, &["index", "keep-alive"]);
            let name = needed("name", "that by which searches name it");
            let index = context.index(object, || context.all_indices());
            let kept = reader.text(object, "keep-alive").unwrap_or_else(|| KEEP_ALIVE.to_owned());
            let query = context.query(object, &[("keep_alive", kept)]);
            ("POST", format!("/{index}{PATH}{query}"), Some(PointInTime::Opens(name)))
        }
        "list-all-point-in-time" => {
            context.only(object, kind, &[]);
            ("GET", format!("{PATH}/_all{}", query()), None)
        }
        // OpenSearch Benchmark's ends all where it names none.
        "delete-point-in-time" if object.get(FROM).is_none() => {
            context.only(object, kind, &[]);
            ("DELETE", format!("{PATH}/_all{}", query()), None)
        }
        _ => {
            context.only(object, kind, &[FROM]);
            let name = needed(FROM, "the name of the operation that has opened it");
            ("DELETE", format!("{PATH}{}", query()), Some(PointInTime::Closes(name)))
        }
    };
    Request { point_in_time, is_counted: true, ..Request::new(method, path, None) }
}

/// A search at a point in time, where an operation is named that has opened it, or one of so many pages.
pub(super) fn search(path: String, body: Value, opened_by: Option<String>, pages: u32) -> Action {
    let search = Request {
        check: Check::Search,
        point_in_time: opened_by.map(PointInTime::Searches),
        pages,
        is_counted: true,
        ..Request::new("GET", path, Some(body))
    };
    Action::Do(vec![Step::Request(search)])
}

/// Whether an action is about a point in time that another operation opens or uses.
pub(super) fn is_shared(action: &Action) -> bool {
    let Action::Do(steps) = action else { return false };
    steps.iter().flat_map(Step::requests).any(|request| request.point_in_time.is_some())
}

/// The name by which a step means a point in time that none before it has opened, if one does.
pub(super) fn unopened(steps: &[Step]) -> Option<&str> {
    let mut open = BTreeSet::new();
    let mut requests = steps.iter().flat_map(Step::requests);
    requests.find_map(|request| match request.point_in_time.as_ref()? {
        PointInTime::Opens(name) => {
            open.insert(name.as_str());
            None
        }
        PointInTime::Searches(name) => (!open.contains(name.as_str())).then_some(name.as_str()),
        PointInTime::Closes(name) => (!open.remove(name.as_str())).then_some(name.as_str()),
    })
}
