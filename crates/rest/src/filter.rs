//! `filter_path`: which parts of an answer are sent.
//!
//! As in the field: paths joined by commas, `*` for any part of a name, `**` for any depth, a `-` before a
//! path that is left out. Arrays are passed through to their elements.

use serde_json::{Map, Value};

use super::names::matches;

/// The paths of one request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Filter {
    include: Vec<Vec<String>>,
    exclude: Vec<Vec<String>>,
}

impl Filter {
    /// Reads the parameter.
    pub(super) fn parse(text: &str) -> Filter {
        let mut filter = Filter::default();
        for path in text.split(',').map(str::trim).filter(|path| !path.is_empty()) {
            let parts = |path: &str| path.split('.').map(str::to_owned).collect();
            match path.strip_prefix('-') {
                Some(path) => filter.exclude.push(parts(path)),
                None => filter.include.push(parts(path)),
            }
        }
        filter
    }

    /// Whether some of what stands under a name at the top may be sent.
    pub(super) fn may_want(&self, name: &str) -> bool {
        let first = |path: &Vec<String>| path[0] == "**" || matches(&path[0], name);
        let wanted = self.include.is_empty() || self.include.iter().any(first);
        wanted && !self.exclude.iter().any(|path| path.len() == 1 && first(path))
    }

    /// What is left of an answer.
    pub(super) fn apply(&self, mut value: Value) -> Value {
        if !self.include.is_empty() {
            let paths: Vec<&[String]> = self.include.iter().map(Vec::as_slice).collect();
            value = keep(value, &paths).unwrap_or_else(|| Value::Object(Map::new()));
        }
        if !self.exclude.is_empty() {
            let paths: Vec<&[String]> = self.exclude.iter().map(Vec::as_slice).collect();
            value = leave_out(value, &paths);
        }
        value
    }
}

/// What the paths still ask for below a name. An empty path asks for everything there.
fn below<'a>(paths: &[&'a [String]], name: &str) -> Vec<&'a [String]> {
    let mut rest = Vec::new();
    for path in paths {
        let Some((first, after)) = path.split_first() else { continue };
        if first == "**" {
            rest.push(*path);
            rest.extend(below(&[after], name));
        } else if matches(first, name) {
            rest.push(after);
        }
    }
    rest
}

fn is_all(path: &&[String]) -> bool {
    path.is_empty() || (path.len() == 1 && path[0] == "**")
}

fn keep(value: Value, paths: &[&[String]]) -> Option<Value> {
    if paths.iter().any(is_all) {
        return Some(value);
    }
    match value {
        Value::Object(object) => {
            let kept: Map<String, Value> = object
                .into_iter()
                .filter_map(|(name, value)| {
                    let paths = below(paths, &name);
                    Some((name, keep(value, &paths)?))
                })
                .collect();
            (!kept.is_empty()).then_some(Value::Object(kept))
        }
        Value::Array(items) => {
            let kept: Vec<Value> = items.into_iter().filter_map(|item| keep(item, paths)).collect();
            (!kept.is_empty()).then_some(Value::Array(kept))
        }
        _ => None,
    }
}

fn leave_out(value: Value, paths: &[&[String]]) -> Value {
    match value {
        Value::Object(object) => object
            .into_iter()
            .filter_map(|(name, value)| {
                let paths = below(paths, &name);
                (!paths.iter().any(|path| path.is_empty()))
                    .then(|| (name, leave_out(value, &paths)))
            })
            .collect(),
        Value::Array(items) => items.into_iter().map(|item| leave_out(item, paths)).collect(),
        value => value,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn filtered(paths: &str) -> Value {
        Filter::parse(paths).apply(json!({
            "took": 3,
            "errors": false,
            "nodes": {
                "n1": {"name": "n1", "indices": {"docs": {"count": 1}}},
                "n2": {"name": "n2", "indices": {"docs": {"count": 2}}},
            },
            "items": [{"index": {"_id": "a", "status": 201}}, {"create": {"_id": "b", "status": 409}}],
        }))
    }

    #[test]
    fn keeps_what_is_named() {
        assert_eq!(filtered("took,errors"), json!({"took": 3, "errors": false}));
        assert_eq!(
            filtered("nodes.*.name"),
            json!({"nodes": {"n1": {"name": "n1"}, "n2": {"name": "n2"}}})
        );
        assert_eq!(
            filtered("nodes.n1.**.count"),
            json!({"nodes": {"n1": {"indices": {"docs": {"count": 1}}}}})
        );
        assert_eq!(
            filtered("items.*.status"),
            json!({"items": [{"index": {"status": 201}}, {"create": {"status": 409}}]})
        );
        assert_eq!(filtered("t*k"), json!({"took": 3}));
        assert_eq!(filtered("nothing"), json!({}));
    }

    #[test]
    fn leaves_out_what_is_named_with_a_minus() {
        assert_eq!(filtered("-nodes,-items"), json!({"took": 3, "errors": false}));
        assert_eq!(
            filtered("nodes.n1,-**.docs"),
            json!({"nodes": {"n1": {"name": "n1", "indices": {}}}})
        );
    }

    #[test]
    fn knows_what_need_not_be_made() {
        for (paths, wanted) in [
            ("errors,took", false),
            ("items.*.status", true),
            ("**.status", true),
            ("-items", false),
            ("-items.index", true),
            ("-took", true),
            ("", true),
        ] {
            assert_eq!(Filter::parse(paths).may_want("items"), wanted, "{paths}");
        }
    }
}
