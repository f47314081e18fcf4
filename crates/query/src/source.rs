//! `_source` filtering.

use bytes::Bytes;
use record::names::matches;
use serde::{Deserialize, Serialize};

use super::error::Spot;
use super::json::{Member, Node, Part, Value, Written, document};

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
    /// What is left of a source, each value as it was sent; none where it is not to be shown.
    pub fn apply(&self, source: &Bytes) -> Option<Bytes> {
        if !self.enabled {
            return None;
        }
        if self.includes.is_empty() && self.excludes.is_empty() {
            return Some(source.clone());
        }
        let value = document(source, Some(&|_| Part::Whole)).ok()?;
        let mut walk = Walk::new(self, source, matches);
        let shown = if self.includes.is_empty() { Shown::Rest } else { Shown::Fitting };
        walk.below(&Node { at: Spot { line: 0, column: 0 }, value }, shown);
        Some(Bytes::from(walk.text))
    }

    /// Whether something below a path may fit one of those that are left out.
    fn may_leave_out_below(&self, path: &str) -> bool {
        self.excludes.iter().any(|pattern| {
            let head = pattern.split('*').next().unwrap_or_default();
            match head.strip_prefix(path) {
                Some(rest) => rest.starts_with('.') || rest.is_empty() && head != pattern,
                None => head != pattern && path.starts_with(head),
            }
        })
    }
}

/// What is written of a value.
#[derive(Clone, Copy, PartialEq)]
enum Shown {
    /// What fits a pattern.
    Fitting,
    /// All but what is left out: a name above is one of those that are shown.
    Rest,
    /// All: nothing there can be left out.
    Whole,
}

/// A walk through a source, which writes what is left of it: each pattern is compared with each path once.
struct Walk<'a, F> {
    filter: &'a SourceFilter,
    written: Written<'a>,
    text: String,
    path: String,
    fits: F,
}

impl<'a, F: FnMut(&str, &str) -> bool> Walk<'a, F> {
    fn new(filter: &'a SourceFilter, source: &'a [u8], fits: F) -> Walk<'a, F> {
        let (written, text, path) = (Written::new(source), String::new(), String::new());
        Walk { filter, written, text, path, fits }
    }

    /// Whether one fits the path, whose last name begins at `name_at`. A dot in the name stands for an object: what
    /// fits that object fits all of it.
    fn fits(&mut self, patterns: &[String], name_at: usize) -> bool {
        let Walk { path, fits, .. } = self;
        let dots = path[name_at..].match_indices('.').map(|(at, _)| name_at + at);
        let mut ends = dots.chain([path.len()]).filter(|end| *end > 0);
        ends.any(|end| patterns.iter().any(|pattern| fits(pattern, &path[..end])))
    }

    /// Writes what is left of the value under the path; whether that is to stay.
    fn keep(&mut self, node: &Node<'_>, mut shown: Shown, name_at: usize) -> bool {
        if shown != Shown::Whole {
            let filter = self.filter;
            if self.fits(&filter.excludes, name_at) {
                return false;
            }
            if shown == Shown::Rest || self.fits(&filter.includes, name_at) {
                let is_whole = !filter.may_leave_out_below(&self.path);
                shown = if is_whole { Shown::Whole } else { Shown::Rest };
            }
        }
        self.below(node, shown) || shown != Shown::Fitting
    }

    /// Writes what is left within a value; whether anything is.
    fn below(&mut self, node: &Node<'_>, shown: Shown) -> bool {
        let begin = self.text.len() + 1;
        match &node.value {
            Value::Object(members) => {
                self.text.push('{');
                let above = self.path.len();
                for Member { at, name, node } in members {
                    if above > 0 {
                        self.path.push('.');
                    }
                    let name_at = self.path.len();
                    self.path.push_str(name);
                    let end = self.separate(begin);
                    self.copy(*at);
                    self.text.push(':');
                    if !self.keep(node, shown, name_at) {
                        self.text.truncate(end);
                    }
                    self.path.truncate(above);
                }
            }
            Value::List(items) => {
                self.text.push('[');
                for item in items {
                    let end = self.separate(begin);
                    // What is left empty is left out, whatever left it so.
                    if !self.below(item, shown) {
                        self.text.truncate(end);
                    }
                }
            }
            _ => {
                self.copy(node.at);
                return shown != Shown::Fitting;
            }
        }
        let holds_any = self.text.len() > begin;
        self.text.push(if matches!(node.value, Value::Object(_)) { '}' } else { ']' });
        holds_any || shown == Shown::Whole
    }

    /// Begins another part of what begins there; where the text ended before.
    fn separate(&mut self, begin: usize) -> usize {
        let end = self.text.len();
        if end > begin {
            self.text.push(',');
        }
        end
    }

    /// Writes a name or a plain value as it was sent.
    fn copy(&mut self, at: Spot) {
        self.text.push_str(&self.written.at(at).unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

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
        let source = source.to_string();
        let value = document(source.as_bytes(), Some(&|_| Part::Whole)).unwrap();
        let mut compared = 0;
        let fits = |_: &str, _: &str| {
            compared += 1;
            false
        };
        let root = Node { at: Spot { line: 0, column: 0 }, value };
        Walk::new(&filter, source.as_bytes(), fits).below(&root, Shown::Fitting);
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
            "places": [[[1, 2], [3, 4]], [{"x": 5}]], "empty": [{}, [], 1],
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
                json!({"name": "x", "tags": ["a", "b"], "items": [{"id": 1}], "empty": [{}, [], 1]}),
            ),
            ("nothing", "", json!({})),
            ("places.x", "", json!({"places": [[{"x": 5}]]})),
            ("pl*", "*.x", json!({"places": [[[1, 2], [3, 4]]]})),
            ("empty", "", json!({"empty": [{}, [], 1]})),
            ("empty name", "emp nam", json!({"empty": [{}, [], 1], "name": "x"})),
            ("empty", "empty.x", json!({"empty": [1]})),
            ("empty", "em*.x", json!({"empty": [1]})),
        ] {
            assert_eq!(shown(&source, includes, excludes), expected, "{includes} -{excludes}");
        }
        let sent = Bytes::from_static(
            br#"{"n" : {"b":123456789012345678901234567890 , "a": -0},"t":"\u00e9\n\"","x":1}"#,
        );
        let filter = SourceFilter { excludes: vec!["x".to_owned()], ..SourceFilter::default() };
        let shown = br#"{"n":{"b":123456789012345678901234567890,"a":-0},"t":"\u00e9\n\""}"#;
        assert_eq!(filter.apply(&sent), Some(Bytes::from_static(shown)), "as it was sent");
        let none = SourceFilter { enabled: false, ..SourceFilter::default() };
        assert_eq!(none.apply(&Bytes::from_static(b"{}")), None);
        let whole = SourceFilter::default().apply(&Bytes::from_static(b"{ \"a\" : 1}"));
        assert_eq!(whole, Some(Bytes::from_static(b"{ \"a\" : 1}")), "byte for byte");
    }
}
