//! The same track on indices of other names: on a cluster that is already there, a run touches only what it has made
//! itself.

use serde_json::{Value, json};

use super::{Action, PointInTime, Request, Step, Track};
use crate::load::{Content, Operation};

/// Paths that ask all indices of a cluster unless they name some.
pub(super) const OF_ALL: [&str; 6] =
    ["_search", "_refresh", "_forcemerge", "_stats", "_count", "_flush"];

impl Track {
    /// Gives every index a name that begins with `prefix`, everywhere.
    pub(crate) fn rename(&mut self, prefix: &str) {
        self.indices.iter_mut().for_each(|name| *name = expression(name, prefix));
        for task in self.elements.iter_mut().flat_map(|element| &mut element.tasks) {
            match &mut task.action {
                Action::Send(Operation { content, .. }) => rename_content(content, prefix),
                Action::Do(steps) => {
                    let requests = steps.iter_mut().flat_map(Step::requests_mut);
                    requests.for_each(|request| rename_request(request, prefix));
                }
            }
        }
    }
}

fn rename_content(content: &mut Content, prefix: &str) {
    match content {
        Content::Pattern { path: named, .. } | Content::Scroll { path: named, .. } => {
            *named = path(named, prefix);
        }
        Content::Corpora(parts) => {
            parts.iter_mut().for_each(|part| part.index = expression(&part.index, prefix));
        }
    }
}

fn rename_request(request: &mut Request, prefix: &str) {
    // A point in time says itself of which indices it is.
    if !matches!(request.point_in_time, Some(PointInTime::Searches(_))) {
        request.path = path(&request.path, prefix);
    }
    lasting_settings(request);
}

/// Makes transient settings persistent: the journal puts persistent ones back.
fn lasting_settings(request: &mut Request) {
    if request.path.split('?').next() != Some("/_cluster/settings") {
        return;
    }
    let Some(Value::Object(body)) = &mut request.body else { return };
    if let Some(Value::Object(transient)) = body.remove("transient") {
        let persistent = body.entry("persistent").or_insert_with(|| json!({}));
        if let Value::Object(persistent) = persistent {
            persistent.extend(transient);
        }
    }
}

/// A path with its indices renamed. One that asks all indices asks those of the track.
fn path(path: &str, prefix: &str) -> String {
    let (bare, query) =
        path.split_once('?').map_or((path, None), |(bare, query)| (bare, Some(query)));
    let mut parts: Vec<String> = bare.split('/').map(str::to_owned).collect();
    let first = parts.get(1).cloned().unwrap_or_default();
    let of_no_index = |below: &String| ["scroll", "point_in_time"].contains(&below.as_str());
    if OF_ALL.contains(&first.as_str()) && !parts.get(2).is_some_and(of_no_index) {
        parts.insert(1, format!("{prefix}*"));
    } else if first == "_cluster" && parts.get(2).map(String::as_str) == Some("health") {
        let index =
            parts.get(3).map_or_else(|| format!("{prefix}*"), |index| expression(index, prefix));
        parts.truncate(3);
        parts.push(index);
    } else if !first.is_empty() && (!first.starts_with('_') || first == "_all") {
        parts[1] = expression(&first, prefix);
    }
    let renamed = parts.join("/");
    query.map_or_else(|| renamed.clone(), |query| format!("{renamed}?{query}"))
}

/// `logs-*,-logs-1` with the prefix before each name.
fn expression(names: &str, prefix: &str) -> String {
    let one = |name: &str| match name.strip_prefix('-') {
        Some(left_out) => format!("-{prefix}{left_out}"),
        None if name == "_all" || name == "*" => format!("{prefix}*"),
        None => format!("{prefix}{name}"),
    };
    names.split(',').map(one).collect::<Vec<String>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_indices_of_the_track_are_asked() {
        for (was, is) in [
            ("/logs-1/_search?a=b", "/n-logs-1/_search?a=b"),
            ("/logs-*,-logs-2/_search", "/n-logs-*,-n-logs-2/_search"),
            ("/_all/_stats", "/n-*/_stats"),
            ("/_search?size=0", "/n-*/_search?size=0"),
            ("/_search/scroll", "/_search/scroll"),
            ("/_search/point_in_time/_all", "/_search/point_in_time/_all"),
            ("/_all/_search/point_in_time?a=b", "/n-*/_search/point_in_time?a=b"),
            ("/_cluster/health/pmc?x=y", "/_cluster/health/n-pmc?x=y"),
            ("/_cluster/health", "/_cluster/health/n-*"),
            ("/_cluster/settings", "/_cluster/settings"),
            ("/_nodes/stats", "/_nodes/stats"),
            ("/pmc", "/n-pmc"),
        ] {
            assert_eq!(path(was, "n-"), is, "{was}");
        }
    }

    #[test]
    fn a_search_at_a_point_in_time_names_no_index() {
        let point_in_time = Some(PointInTime::Searches("p".to_owned()));
        let search = Request::new("GET", "/_search".to_owned(), None);
        let mut request = Request { point_in_time, ..search };
        rename_request(&mut request, "n-");
        assert_eq!(request.path, "/_search");
    }

    #[test]
    fn transient_settings_become_lasting_ones() {
        let body = json!({ "transient": { "a": 1 }, "persistent": { "b": 2 } });
        let mut request = Request::new("PUT", "/_cluster/settings".to_owned(), Some(body));
        rename_request(&mut request, "n-");
        assert_eq!(request.body, Some(json!({ "persistent": { "a": 1, "b": 2 } })));
    }
}
