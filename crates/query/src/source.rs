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
        let kept = self.keep(value, "").unwrap_or_else(|| Value::Object(Map::new()));
        Some(Bytes::from(kept.to_string()))
    }

    fn keep(&self, value: Value, path: &str) -> Option<Value> {
        let fits = |patterns: &[String]| {
            !path.is_empty() && patterns.iter().any(|pattern| matches(pattern, path))
        };
        if fits(&self.excludes) {
            return None;
        }
        if self.includes.is_empty() || fits(&self.includes) {
            if self.excludes.is_empty() {
                return Some(value);
            }
            let all_below = SourceFilter { includes: Vec::new(), ..self.clone() };
            return all_below.below(value, path);
        }
        self.below(value, path).filter(|value| match value {
            Value::Object(object) => !object.is_empty(),
            Value::Array(items) => !items.is_empty(),
            _ => false,
        })
    }

    fn below(&self, value: Value, path: &str) -> Option<Value> {
        match value {
            Value::Object(object) => {
                let kept = object.into_iter().filter_map(|(name, value)| {
                    let path =
                        if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                    Some((name, self.keep(value, &path)?))
                });
                Some(Value::Object(kept.collect()))
            }
            Value::Array(items) => {
                let kept = items.into_iter().filter_map(|item| match item {
                    Value::Object(_) | Value::Array(_) => self.below(item, path),
                    leaf => self.includes.is_empty().then_some(leaf),
                });
                let kept: Vec<Value> = kept
                    .filter(|item| self.includes.is_empty() || *item != Value::Object(Map::new()))
                    .collect();
                Some(Value::Array(kept))
            }
            leaf => Some(leaf),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(includes: &[&str], excludes: &[&str]) -> Value {
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        let filter =
            SourceFilter { enabled: true, includes: texts(includes), excludes: texts(excludes) };
        let source = json!({
            "name": "x", "tags": ["a", "b"],
            "user": {"id": 7, "mail": {"home": "h", "work": "w"}},
            "items": [{"id": 1, "price": 2}, {"price": 3}],
        });
        serde_json::from_slice(&filter.apply(&Bytes::from(source.to_string())).unwrap()).unwrap()
    }

    #[test]
    fn keeps_and_leaves_out_as_the_field_does() {
        assert_eq!(
            shown(&["user"], &[]),
            json!({"user": {"id": 7, "mail": {"home": "h", "work": "w"}}})
        );
        assert_eq!(
            shown(&["user.mail.*"], &[]),
            json!({"user": {"mail": {"home": "h", "work": "w"}}})
        );
        assert_eq!(shown(&["*.id"], &[]), json!({"user": {"id": 7}, "items": [{"id": 1}]}));
        assert_eq!(
            shown(&["user"], &["*.home", "user.id"]),
            json!({"user": {"mail": {"work": "w"}}})
        );
        assert_eq!(shown(&["tags", "nothing"], &[]), json!({"tags": ["a", "b"]}));
        assert_eq!(
            shown(&[], &["user", "items.price"]),
            json!({"name": "x", "tags": ["a", "b"], "items": [{"id": 1}, {}]})
        );
        assert_eq!(shown(&["nothing"], &[]), json!({}));
        let none = SourceFilter { enabled: false, ..SourceFilter::default() };
        assert_eq!(none.apply(&Bytes::from_static(b"{}")), None);
        let whole = SourceFilter::default().apply(&Bytes::from_static(b"{ \"a\" : 1}"));
        assert_eq!(whole, Some(Bytes::from_static(b"{ \"a\" : 1}")), "byte for byte");
    }
}
