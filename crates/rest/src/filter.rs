//! `filter_path`: which parts of an answer are sent.
//!
//! As in the field: paths joined by commas, `*` for any part of a name, `**` for any depth, a `-` before a
//! path that is left out. Arrays are passed through to their elements.
//!
//! An answer is walked once. At each name the paths stand at a set of places, each part of a path at most once, so that
//! the work is at most the product of the two lengths.

use serde_json::{Map, Value};

use super::names::matches;

/// The paths of one request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Filter {
    include: Paths,
    exclude: Paths,
}

impl Filter {
    /// Reads the parameter.
    pub(super) fn parse(text: &str) -> Filter {
        let mut filter = Filter::default();
        for path in text.split(',').map(str::trim).filter(|path| !path.is_empty()) {
            match path.strip_prefix('-') {
                // What is left out below a name leaves the name itself.
                Some(path) => match path.strip_suffix("**") {
                    Some(above) => filter.exclude.push(&format!("{above}*")),
                    None => filter.exclude.push(path),
                },
                None => filter.include.push(path),
            }
        }
        filter
    }

    /// Whether some of what stands under a name at the top may be sent.
    pub(super) fn may_want(&self, name: &str) -> bool {
        let left_out = self.exclude.below(&self.exclude.start(), name, matches);
        let wanted = self.include.below(&self.include.start(), name, matches);
        (self.include.is_empty() || !wanted.is_empty()) && !self.exclude.is_fulfilled(&left_out)
    }

    /// What is left of an answer.
    pub(super) fn apply(&self, mut value: Value) -> Value {
        if !self.include.is_empty() {
            let kept = keep(&self.include, value, &self.include.start());
            value = kept.unwrap_or_else(|| Value::Object(Map::new()));
        }
        if !self.exclude.is_empty() {
            value = leave_out(&self.exclude, value, &self.exclude.start());
        }
        value
    }
}

/// Paths one behind another, each with an end: none. Part 3 of all is a place where a path can stand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Paths {
    parts: Vec<Option<String>>,
    first: Vec<usize>,
}

impl Paths {
    fn push(&mut self, path: &str) {
        self.first.push(self.parts.len());
        self.parts.extend(path.split('.').map(|part| Some(part.to_owned())));
        self.parts.push(None);
    }

    fn is_empty(&self) -> bool {
        self.first.is_empty()
    }

    /// Where the paths stand above the first name.
    fn start(&self) -> Vec<usize> {
        let mut places = Vec::new();
        self.first.iter().for_each(|first| self.stand(*first, &mut places));
        places
    }

    /// Stands at a part, and behind it too where it may stand for nothing. Places are in order, as they come.
    fn stand(&self, mut at: usize, places: &mut Vec<usize>) {
        while places.last().is_none_or(|last| *last < at) {
            places.push(at);
            if self.parts[at].as_deref() != Some("**") {
                return;
            }
            at += 1;
        }
    }

    /// Where the paths stand below a name; each place is looked at once.
    fn below(
        &self,
        places: &[usize],
        name: &str,
        mut fits: impl FnMut(&str, &str) -> bool,
    ) -> Vec<usize> {
        let mut below = Vec::new();
        for at in places {
            match self.parts[*at].as_deref() {
                Some("**") => self.stand(*at, &mut below),
                Some(part) if fits(part, name) => self.stand(at + 1, &mut below),
                _ => {}
            }
        }
        below
    }

    /// Whether one of the paths is at its end.
    fn is_fulfilled(&self, places: &[usize]) -> bool {
        places.iter().any(|at| self.parts[*at].is_none())
    }
}

fn keep(paths: &Paths, value: Value, places: &[usize]) -> Option<Value> {
    if paths.is_fulfilled(places) {
        return Some(value);
    }
    match value {
        _ if places.is_empty() => None,
        Value::Object(object) => {
            let kept: Map<String, Value> = object
                .into_iter()
                .filter_map(|(name, value)| {
                    let places = paths.below(places, &name, matches);
                    Some((name, keep(paths, value, &places)?))
                })
                .collect();
            (!kept.is_empty()).then_some(Value::Object(kept))
        }
        Value::Array(items) => {
            let kept = items.into_iter().filter_map(|item| keep(paths, item, places));
            let kept: Vec<Value> = kept.collect();
            (!kept.is_empty()).then_some(Value::Array(kept))
        }
        _ => None,
    }
}

fn leave_out(paths: &Paths, value: Value, places: &[usize]) -> Value {
    match value {
        _ if places.is_empty() => value,
        Value::Object(object) => object
            .into_iter()
            .filter_map(|(name, value)| {
                let places = paths.below(places, &name, matches);
                let kept = !paths.is_fulfilled(&places);
                kept.then(|| (name, leave_out(paths, value, &places)))
            })
            .collect(),
        Value::Array(items) => {
            items.into_iter().map(|item| leave_out(paths, item, places)).collect()
        }
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
    fn keeps_what_is_named_and_leaves_out_what_has_a_minus() {
        for (paths, kept) in [
            ("took,errors", json!({"took": 3, "errors": false})),
            ("nodes.*.name", json!({"nodes": {"n1": {"name": "n1"}, "n2": {"name": "n2"}}})),
            ("nodes.n1.**.count", json!({"nodes": {"n1": {"indices": {"docs": {"count": 1}}}}})),
            (
                "items.*.status",
                json!({"items": [{"index": {"status": 201}}, {"create": {"status": 409}}]}),
            ),
            ("t*k", json!({"took": 3})),
            ("nothing", json!({})),
            ("-nodes,-items", json!({"took": 3, "errors": false})),
            ("took,nodes,-nodes.**", json!({"took": 3, "nodes": {}})),
            ("nodes.n1,-**.docs", json!({"nodes": {"n1": {"name": "n1", "indices": {}}}})),
        ] {
            assert_eq!(filtered(paths), kept, "{paths}");
        }
    }

    #[test]
    fn work_is_at_most_the_product_of_paths_and_names() {
        let mut paths = Paths::default();
        paths.push(&["**"; 2000].join("."));
        paths.push(&format!("{}.z", ["**.*"; 500].join(".")));
        let mut places = paths.start();
        let (mut looked_at, names) = (0, 200);
        for _ in 0..names {
            places = paths.below(&places, "a", |part, name| {
                looked_at += 1;
                matches(part, name)
            });
            assert!(places.len() <= paths.parts.len());
        }
        assert!(places.len() > 2000, "all of them are still there");
        assert!(looked_at <= names * paths.parts.len(), "{looked_at}");
        let deep = (0..100).fold(json!({"z": 1}), |below, _| json!({"a": below}));
        for (end, kept) in [("y", json!({})), ("z", deep.clone())] {
            let filter = Filter::parse(&format!("{}.{end}", ["**"; 1000].join(".")));
            assert_eq!(filter.apply(deep.clone()), kept, "{end}");
        }
    }

    /// Paths that nobody would write.
    #[test]
    fn paths() {
        let samples: [&[u8]; 4] = [
            b"took,items.*.status,-items.*.error.**",
            b"**.count,nodes.n*.indices.**",
            b"-**.docs,nodes.*.name",
            b"**.**.*.**.x*y",
        ];
        let budget = testbed::fuzz::Budget::default();
        testbed::fuzz::search("filter paths", &samples, 5_000, budget, |text| {
            let Ok(text) = std::str::from_utf8(text) else { return };
            filtered(text);
            Filter::parse(text).may_want("items");
        });
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
