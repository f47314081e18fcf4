//! What searches look for: documents that are made of a mapping hold it now and then, so that searches find some.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::{Action, Step, Track};
use crate::corpus::{Sought, Source};
use crate::load::{Content, Operation};

/// Queries that name a field and a value of it.
const QUERIES: [&str; 5] = ["term", "terms", "match", "match_phrase", "prefix"];

impl Track {
    /// Has documents that are made of mappings hold what the track's searches look for.
    pub(super) fn make_what_is_asked(&mut self) {
        let mut asked = BTreeSet::new();
        for task in self.elements.iter().flat_map(|element| &element.tasks) {
            let parsed = |body: &String| serde_json::from_str::<Value>(body).ok();
            let bodies: Vec<Value> = match &task.action {
                Action::Send(Operation { content, .. }) => match content {
                    Content::Pattern { bodies, .. } => bodies.iter().filter_map(parsed).collect(),
                    Content::Scroll { body, .. } => parsed(body).into_iter().collect(),
                    Content::Corpora(_) => continue,
                },
                Action::Do(steps) => {
                    let requests = steps.iter().flat_map(Step::requests);
                    let searches = requests.filter(|one| one.check.is_of_searches());
                    searches.filter_map(|one| one.body.clone()).collect()
                }
            };
            bodies.iter().for_each(|body| values(body, &mut asked));
        }
        for task in self.elements.iter_mut().flat_map(|element| &mut element.tasks) {
            let Action::Send(operation) = &mut task.action else { continue };
            let Content::Corpora(parts) = &mut operation.content else { continue };
            for part in parts {
                let Source::Mapped(mapped) = &mut part.source else { continue };
                for (path, sought) in &asked {
                    Arc::make_mut(mapped).ask(path, sought);
                }
            }
        }
    }
}

/// Adds the paths of fields and what a body looks for in them.
fn values(body: &Value, found: &mut BTreeSet<(String, Sought)>) {
    let below = match body {
        Value::Object(members) => {
            for (name, query) in members {
                match query.as_object() {
                    Some(of) if name == "range" => ranges(of, found),
                    Some(of) if QUERIES.contains(&name.as_str()) => fields(name, of, found),
                    _ => {}
                }
            }
            members.values().collect::<Vec<_>>()
        }
        Value::Array(items) => items.iter().collect(),
        _ => Vec::new(),
    };
    below.into_iter().for_each(|value| values(value, found));
}

fn fields(name: &str, query: &Map<String, Value>, found: &mut BTreeSet<(String, Sought)>) {
    for (path, given) in query {
        let long = ["value", "query"].into_iter().find_map(|name| given.get(name));
        let given = match long.unwrap_or(given) {
            Value::Array(items) => items.as_slice(),
            // An option, as of the aggregation of that name; the query has arrays.
            _ if name == "terms" => continue,
            one => std::slice::from_ref(one),
        };
        found.extend(given.iter().filter_map(|value| Some((path.clone(), Sought::value(value)?))));
    }
}

/// Those of the query `range`; the aggregation of that name has no objects for members.
fn ranges(query: &Map<String, Value>, found: &mut BTreeSet<(String, Sought)>) {
    let ranges = query.iter().filter(|(_, range)| range.is_object());
    found.extend(ranges.map(|(path, range)| (path.clone(), Sought::range(range))));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_and_values_are_found_wherever_a_body_looks_for_them() {
        let body = json!({
            "query": {"bool": {
                "must": [{"term": {"a.raw": "x"}}, {"match": {"b": {"query": "y z"}}}],
                "filter": [{"terms": {"c": ["u", 7]}}, {"range": {"d": {"gte": 1, "lt": 5}}}],
            }},
            "aggs": {
                "m": {"filter": {"prefix": {"a": {"value": "w"}}}},
                "n": {"terms": {"field": "k", "size": 3}},
                "r": {"range": {"field": "d", "ranges": [{"from": 1}]}},
            },
        });
        let mut found = BTreeSet::new();
        values(&body, &mut found);
        let value = |of: Value| Sought::value(&of).unwrap();
        let expected = [
            ("a", value(json!("w"))),
            ("a.raw", value(json!("x"))),
            ("b", value(json!("y z"))),
            ("c", value(json!("u"))),
            ("c", value(json!(7))),
            ("d", Sought::range(&json!({"gte": 1, "lt": 5}))),
        ];
        let expected = expected.map(|(path, sought)| (path.to_owned(), sought));
        assert_eq!(found, BTreeSet::from(expected));
    }
}
