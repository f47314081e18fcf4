//! What searches look for: documents that are made of a mapping hold it now and then, so that searches find some.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::{Action, Track};
use crate::corpus::Source;
use crate::load::Content;

/// Queries that name a field and a value of it.
const QUERIES: [&str; 5] = ["term", "terms", "match", "match_phrase", "prefix"];

impl Track {
    /// Has documents that are made of mappings hold what the track's searches look for.
    pub(super) fn make_what_is_asked(&mut self) {
        let mut asked = BTreeSet::new();
        for task in self.elements.iter().flat_map(|element| &element.tasks) {
            let Action::Send(operation) = &task.action else { continue };
            let bodies = match &operation.content {
                Content::Pattern { bodies, .. } => bodies.as_slice(),
                Content::Scroll { body, .. } => std::slice::from_ref(body),
                Content::Bulk { .. } | Content::Corpora(_) => &[],
            };
            for body in bodies.iter().filter_map(|body| serde_json::from_str::<Value>(body).ok()) {
                values(&body, &mut asked);
            }
        }
        for task in self.elements.iter_mut().flat_map(|element| &mut element.tasks) {
            let Action::Send(operation) = &mut task.action else { continue };
            let Content::Corpora(parts) = &mut operation.content else { continue };
            for part in parts {
                let Source::Mapped(mapped) = &mut part.source else { continue };
                for (path, text) in &asked {
                    Arc::make_mut(mapped).ask(path, text);
                }
            }
        }
    }
}

/// Adds the paths and the texts that a body looks for.
fn values(body: &Value, found: &mut BTreeSet<(String, String)>) {
    let below = match body {
        Value::Object(members) => {
            let queries = members.iter().filter(|(name, _)| QUERIES.contains(&name.as_str()));
            queries.filter_map(|(_, query)| query.as_object()).for_each(|of| fields(of, found));
            members.values().collect::<Vec<_>>()
        }
        Value::Array(items) => items.iter().collect(),
        _ => Vec::new(),
    };
    below.into_iter().for_each(|value| values(value, found));
}

fn fields(query: &Map<String, Value>, found: &mut BTreeSet<(String, String)>) {
    for (path, given) in query {
        let long = ["value", "query"].into_iter().find_map(|name| given.get(name));
        let texts: Vec<&str> = match long.unwrap_or(given) {
            Value::Array(items) => items.iter().filter_map(Value::as_str).collect(),
            one => Vec::from_iter(one.as_str()),
        };
        found.extend(texts.into_iter().map(|text| (path.clone(), text.to_owned())));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_and_texts_are_found_wherever_a_body_looks_for_them() {
        let body = json!({
            "query": {"bool": {
                "must": [{"term": {"a.raw": "x"}}, {"match": {"b": {"query": "y z"}}}],
                "filter": {"terms": {"c": ["u", "v"], "boost": 2}},
            }},
            "aggs": {"n": {"terms": {"field": "k", "size": 3}}, "m": {"filter": {"prefix": {"a": {"value": "w"}}}}},
        });
        let mut found = BTreeSet::new();
        values(&body, &mut found);
        let found: Vec<_> =
            found.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        let expected =
            [("a", "w"), ("a.raw", "x"), ("b", "y z"), ("c", "u"), ("c", "v"), ("field", "k")];
        assert_eq!(found, expected);
    }
}
