//! `_source` filtering.

use bytes::Bytes;
use record::names::matches;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Which parts of `_source` a hit shows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceFilter {
    /// Whether it is shown at all.
    pub enabled: bool,
    /// Only what fits one of these, and what lies below it; everything where there are none.
    pub includes: Vec<String>,
    /// But not what fits one of these.
    pub excludes: Vec<String>,
}

impl Default for SourceFilter {
    fn default() -> Self {
        SourceFilter { enabled: true, includes: Vec::new(), excludes: Vec::new() }
    }
}

impl SourceFilter {
    /// What is left of a source; none where it is not to be shown.
    pub fn apply(&self, source: &Bytes) -> Option<Bytes> {
        if !self.enabled {
            return None;
        }
        if self.includes.is_empty() && self.excludes.is_empty() {
            return Some(source.clone());
        }
        let value: Value = serde_json::from_slice(source).ok()?;
        let mut walk = Walk { filter: self, path: String::new(), fits: matches };
        let kept = walk.keep(value, false, 0).unwrap_or_else(|| Value::Object(Map::new()));
        Some(Bytes::from(kept.to_string()))
    }
}

/// A walk through a source: each pattern is compared with each path once.
struct Walk<'a, F> {
    filter: &'a SourceFilter,
    path: String,
    fits: F,
}

impl<F: FnMut(&str, &str) -> bool> Walk<'_, F> {
    /// Whether one fits the path, whose last name begins at `name_at`. A dot in the name stands for an object: what
    /// fits that object fits all of it.
    fn fits(&mut self, patterns: &[String], name_at: usize) -> bool {
        let Walk { path, fits, .. } = self;
        let dots = path[name_at..].match_indices('.').map(|(at, _)| name_at + at);
        let mut ends = dots.chain([path.len()]).filter(|end| *end > 0);
        ends.any(|end| patterns.iter().any(|pattern| fits(pattern, &path[..end])))
    }

    /// `all`: a name above is one of those that are shown, and so is all below it.
    fn keep(&mut self, value: Value, all: bool, name_at: usize) -> Option<Value> {
        let SourceFilter { includes, excludes, .. } = self.filter;
        if self.fits(excludes, name_at) {
            return None;
        }
        if all || includes.is_empty() || self.fits(includes, name_at) {
            return if excludes.is_empty() { Some(value) } else { self.below(value, true) };
        }
        self.below(value, false).filter(holds_any)
    }

    fn below(&mut self, value: Value, all: bool) -> Option<Value> {
        match value {
            Value::Object(object) => {
                let above = self.path.len();
                let mut kept = Map::new();
                for (name, value) in object {
                    if above > 0 {
                        self.path.push('.');
                    }
                    let name_at = self.path.len();
                    self.path.push_str(&name);
                    if let Some(value) = self.keep(value, all, name_at) {
                        kept.insert(name, value);
                    }
                    self.path.truncate(above);
                }
                Some(Value::Object(kept))
            }
            Value::Array(items) => {
                let kept = items.into_iter().filter_map(|item| match item {
                    // What is left empty is left out, whatever left it so.
                    Value::Object(_) | Value::Array(_) => self.below(item, all).filter(holds_any),
                    leaf => all.then_some(leaf),
                });
                Some(Value::Array(kept.collect()))
            }
            leaf => Some(leaf),
        }
    }
}

/// Whether an object or an array has anything in it.
fn holds_any(value: &Value) -> bool {
    match value {
        Value::Object(object) => !object.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// What is shown of a source, by patterns with spaces in between.
    fn shown(source: &Value, includes: &str, excludes: &str) -> Value {
        let texts = |texts: &str| texts.split_whitespace().map(str::to_owned).collect();
        let filter =
            SourceFilter { enabled: true, includes: texts(includes), excludes: texts(excludes) };
        serde_json::from_slice(&filter.apply(&Bytes::from(source.to_string())).unwrap()).unwrap()
    }

    #[test]
    fn each_pattern_is_compared_with_each_path_once() {
        let texts = |text: &str| (0..50).map(|number| format!("*{text}{number}*")).collect();
        let filter = SourceFilter { enabled: true, includes: texts("a"), excludes: texts("b") };
        let source = (0..100).fold(json!(1), |below, _| json!({"x": below, "y": [{"z": 1}]}));
        let mut compared = 0;
        let fits = |_: &str, _: &str| {
            compared += 1;
            false
        };
        Walk { filter: &filter, path: String::new(), fits }.keep(source, false, 0);
        assert_eq!(compared, 300 * 100, "300 names, 100 patterns");
    }

    #[test]
    fn a_dot_in_a_name_stands_for_an_object() {
        let source = json!({"user.id": 7, "http": {"request.body.bytes": 1, "version": 2}});
        for (includes, excludes, expected) in [
            ("user", "", json!({"user.id": 7})),
            ("user.id", "http", json!({"user.id": 7})),
            ("http.request", "", json!({"http": {"request.body.bytes": 1}})),
            ("h*.body", "", json!({"http": {"request.body.bytes": 1}})),
            ("", "user http.request.body", json!({"http": {"version": 2}})),
            ("http", "http.req*", json!({"http": {"version": 2}})),
            ("use http.body", "", json!({})),
        ] {
            assert_eq!(shown(&source, includes, excludes), expected, "{includes} -{excludes}");
        }
    }

    #[test]
    fn keeps_and_leaves_out_as_the_field_does() {
        let source = json!({
            "name": "x", "tags": ["a", "b"],
            "user": {"id": 7, "mail": {"home": "h", "work": "w"}},
            "items": [{"id": 1, "price": 2}, {"price": 3}],
            "places": [[[1, 2], [3, 4]], [{"x": 5}]],
        });
        for (includes, excludes, expected) in [
            ("user", "", json!({"user": {"id": 7, "mail": {"home": "h", "work": "w"}}})),
            ("user.mail.*", "", json!({"user": {"mail": {"home": "h", "work": "w"}}})),
            ("*.id", "", json!({"user": {"id": 7}, "items": [{"id": 1}]})),
            ("user", "*.home user.id", json!({"user": {"mail": {"work": "w"}}})),
            ("tags nothing", "", json!({"tags": ["a", "b"]})),
            (
                "",
                "user items.price places",
                json!({"name": "x", "tags": ["a", "b"], "items": [{"id": 1}]}),
            ),
            ("nothing", "", json!({})),
            ("places.x", "", json!({"places": [[{"x": 5}]]})),
            ("pl*", "*.x", json!({"places": [[[1, 2], [3, 4]]]})),
        ] {
            assert_eq!(shown(&source, includes, excludes), expected, "{includes} -{excludes}");
        }
        let none = SourceFilter { enabled: false, ..SourceFilter::default() };
        assert_eq!(none.apply(&Bytes::from_static(b"{}")), None);
        let whole = SourceFilter::default().apply(&Bytes::from_static(b"{ \"a\" : 1}"));
        assert_eq!(whole, Some(Bytes::from_static(b"{ \"a\" : 1}")), "byte for byte");
    }
}
