//! What a track may send to a cluster that was there already: what reads, and what changes indices that its path names.
//! Those get names of the run. What a body names is not changed, and everything else there is somebody else's.

use std::collections::BTreeSet;

use serde_json::Value;

use super::rename::OF_ALL;
use super::{Action, PointInTime, Request, Step, Track};
use crate::load::{Content, Operation};

/// APIs whose bodies name the indices that they are about.
const NAMED_IN_BODIES: [&str; 6] =
    ["_aliases", "_bulk", "_mget", "_msearch", "_mtermvectors", "_reindex"];
/// APIs that change nothing but the index before them in the path, or only read it.
const OF_AN_INDEX: [&str; 21] = [
    "_analyze", "_cache", "_close", "_count", "_create", "_delete_by_query", "_doc", "_explain",
    "_field_caps", "_flush", "_forcemerge", "_mapping", "_open", "_refresh", "_search",
    "_settings", "_termvectors", "_terms_enum", "_update", "_update_by_query", "_validate",
];
/// Those of them that write a document, and make the index where it is not there.
const WRITING: [&str; 3] = ["_create", "_doc", "_update"];

/// Refuses an action that would do more there. The error is a sentence.
pub(super) fn check(action: &Action) -> Result<(), String> {
    match action {
        Action::Send(Operation { content, .. }) => match content {
            Content::Pattern { method, path, bodies, .. } => {
                let body = bodies.first().and_then(|body| serde_json::from_str(body).ok());
                check_request(method, path, body.as_ref())
            }
            Content::Scroll { path, .. } => check_request("POST", path, None),
            // Documents are sent to it, and may make it.
            Content::Corpora(parts) => parts
                .iter()
                .try_for_each(|part| check_request("PUT", &format!("/{}", part.index), None)),
        },
        Action::Do(steps) => {
            // What is ended was opened by the run itself.
            let is_end = |one: &&Request| matches!(one.point_in_time, Some(PointInTime::Closes(_)));
            let mut requests = steps.iter().flat_map(Step::requests).filter(|one| !is_end(one));
            requests.try_for_each(|one| check_request(one.method, &one.path, one.body.as_ref()))
        }
    }
}

/// Refuses a request that would do more there than read, or change the indices that its path names. The error is a
/// sentence.
pub(crate) fn check_request(method: &str, path: &str, body: Option<&Value>) -> Result<(), String> {
    let refuse = |why: &str| {
        let there = "is not sent to a cluster that was there already";
        Err(format!("{method} {path} {there}: {why}"))
    };
    let parts = parts(path);
    let is_odd = |part: &&str| part.contains('%') || part.trim_matches('.').is_empty();
    if parts.iter().any(is_odd) || parts.first().is_some_and(|names| names.starts_with('-')) {
        return refuse(
            "a path with %, with an empty part or dots alone between slashes, or with a - at its beginning may be read as \
             that of other indices",
        );
    }
    if let Some(api) = parts.iter().find(|part| NAMED_IN_BODIES.contains(part)) {
        return refuse(&format!(
            "the body of {api} names indices, and names there are not changed into those of the run"
        ));
    }
    if matches!(method, "GET" | "HEAD") {
        let reads_ours = match parts.as_slice() {
            ["_all" | "_cluster" | "_nodes" | "_tasks", ..]
            | ["_cat", "health" | "indices" | "nodes" | "shards", ..] => true,
            [name, ..] => !name.starts_with('_') || OF_ALL.contains(name),
            [] => true,
        };
        return if reads_ours { Ok(()) } else { refuse("it may read what is not the run's own") };
    }
    let is_ours = match parts.as_slice() {
        [] => false,
        ["_all"] => true,
        [api] if api.starts_with('_') => method == "POST" && OF_ALL.contains(api),
        ["_all", api, ..] => OF_AN_INDEX.contains(api),
        [name, ..] if name.starts_with('_') => false,
        [_, api, ..] => !api.starts_with('_') || OF_AN_INDEX.contains(api),
        [_] => true,
    };
    if !is_ours {
        return refuse("it may change what is not the run's own");
    }
    let has_aliases =
        |body: &Value| body["aliases"].as_object().is_some_and(|aliases| !aliases.is_empty());
    if parts.len() == 1 && body.is_some_and(has_aliases) {
        return refuse(
            "its body gives the index aliases, which have names that are not changed into those of the run",
        );
    }
    Ok(())
}

/// The parts of a path, without its parameters.
fn parts(path: &str) -> Vec<&str> {
    let bare = path.split('?').next().unwrap_or_default();
    bare.strip_suffix('/').unwrap_or(bare).split('/').skip(1).collect()
}

/// The index that a request makes where it is not there.
fn made_by<'a>(method: &str, path: &'a str) -> Option<&'a str> {
    // Older clusters have the name of a type in the place of `_doc`.
    let writes = |below: &&str| WRITING.contains(below) || !below.starts_with('_');
    let name = match parts(path).as_slice() {
        [name] if method == "PUT" => *name,
        [name, below, ..] if matches!(method, "PUT" | "POST") && writes(below) => *name,
        _ => return None,
    };
    (!name.starts_with('_') && !name.contains(['*', ','])).then_some(name)
}

impl Track {
    /// Indices that it declares, and those that its requests make: they need not be the same.
    pub(crate) fn makes(&self) -> BTreeSet<&str> {
        let mut found: BTreeSet<&str> = self.indices.iter().map(String::as_str).collect();
        for task in self.elements.iter().flat_map(|element| &element.tasks) {
            match &task.action {
                Action::Send(Operation { content, .. }) => match content {
                    Content::Pattern { method, path, .. } => found.extend(made_by(method, path)),
                    Content::Corpora(parts) => {
                        found.extend(parts.iter().map(|part| part.index.as_str()));
                    }
                    Content::Scroll { .. } => {}
                },
                Action::Do(steps) => {
                    let requests = steps.iter().flat_map(Step::requests);
                    found.extend(requests.filter_map(|one| made_by(one.method, &one.path)));
                }
            }
        }
        // Where each document's action names its index, none is known.
        found.remove("");
        found
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_reads_or_names_its_index_in_the_path_is_sent() {
        for (method, path) in [
            ("GET", "/"),
            ("GET", "/_cluster/settings"),
            ("GET", "/_cat/indices/?format=json"),
            ("GET", "/_nodes/stats"),
            ("GET", "/_search/point_in_time/_all"),
            ("POST", "/logs/_search/point_in_time?keep_alive=1m"),
            ("GET", "/_all/_stats"),
            ("GET", "/_search?size=0"),
            ("HEAD", "/logs"),
            ("GET", "/logs-*/_terms_enum"),
            ("POST", "/logs-*,-logs-1/_search?index=a%2Cb"),
            ("POST", "/_refresh"),
            ("PUT", "/logs"),
            ("DELETE", "/_all"),
            ("PUT", "/logs/_doc/1"),
            ("PUT", "/logs/type/1"),
            ("POST", "/_all/_forcemerge?max_num_segments=1"),
            ("POST", "/logs/_cache/clear"),
        ] {
            assert_eq!(check_request(method, path, None), Ok(()), "{method} {path}");
        }
    }

    #[test]
    fn what_may_change_or_ask_something_else_is_not() {
        for (method, path, why) in [
            ("PUT", "/_cluster/settings", "not the run's own"),
            ("PUT", "/_ingest/pipeline/x", "not the run's own"),
            ("PUT", "/_index_template/x", "not the run's own"),
            ("POST", "/", "not the run's own"),
            ("POST", "/_cluster/reroute", "not the run's own"),
            ("DELETE", "/_search/scroll/_all", "not the run's own"),
            ("DELETE", "/_search/point_in_time/_all", "not the run's own"),
            ("PUT", "/logs/_alias/all", "not the run's own"),
            ("POST", "/logs/_clone/other", "not the run's own"),
            ("POST", "/_all/_rollover", "not the run's own"),
            ("POST", "/_aliases", "the body of _aliases"),
            ("POST", "/_bulk", "the body of _bulk"),
            ("POST", "/logs/_bulk?refresh=true", "the body of _bulk"),
            ("GET", "/logs/_msearch", "the body of _msearch"),
            ("POST", "/_reindex", "the body of _reindex"),
            ("GET", "/_rank_eval", "not the run's own"),
            ("GET", "/_field_caps?fields=*", "not the run's own"),
            ("GET", "/_validate/query", "not the run's own"),
            ("GET", "/_cat/count", "not the run's own"),
            ("GET", "/_sql?q=a", "not the run's own"),
            ("GET", "/_all,other/_search", "not the run's own"),
            ("GET", "/_all,-x/_stats", "not the run's own"),
            ("POST", "/_all,other/_search", "not the run's own"),
            ("DELETE", "/logs%2C*", "other indices"),
            ("GET", "/logs%2C*/_search", "other indices"),
            ("PUT", "//_cluster/settings", "other indices"),
            ("PUT", "/logs/../_cluster/settings", "other indices"),
            ("DELETE", "/-logs", "other indices"),
        ] {
            let said = check_request(method, path, None).unwrap_err();
            assert!(said.contains(why) && said.contains(path), "{said}");
        }
        let body = |aliases: Value| json!({ "settings": {}, "aliases": aliases });
        let make = |aliases: Value| check_request("PUT", "/logs", Some(&body(aliases)));
        assert!(make(json!({ "all-logs": {} })).unwrap_err().contains("aliases"));
        assert_eq!(make(json!({})), Ok(()));
    }

    #[test]
    fn indices_are_made_by_their_first_document_too() {
        for (method, path, name) in [
            ("PUT", "/a?wait_for_active_shards=1", Some("a")),
            ("POST", "/a/_doc", Some("a")),
            ("PUT", "/a/type/1", Some("a")),
            ("POST", "/a/_search", None),
            ("POST", "/a-*/type/_search", None),
            ("POST", "/a,b/type/_search", None),
            ("DELETE", "/a", None),
            ("GET", "/a/_doc/1", None),
            ("PUT", "/_cluster/settings", None),
        ] {
            assert_eq!(made_by(method, path), name, "{method} {path}");
        }
    }
}
