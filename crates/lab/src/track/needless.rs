//! Settings that the embedded engine does not have, and without which an index answers the same: indices and templates
//! of a track are made without them, and the run says so.

use std::collections::BTreeMap;

use engine::settings::needless;
use serde_json::{Map, Value};

/// By why they are not needed.
type Found = BTreeMap<&'static str, Vec<String>>;

/// Takes them out of the body of an index or a template. Answers with a sentence for each reason, which begins with
/// what the body is.
pub(super) fn take_out(what: &str, body: &mut Value) -> Vec<String> {
    let mut found = Found::new();
    for path in ["/settings", "/template/settings"] {
        if let Some(Value::Object(settings)) = body.pointer_mut(path) {
            take_below(settings, "", &mut found);
        }
    }
    let said = |(why, names): (&str, Vec<String>)| {
        let names = names.join(", ");
        format!("{what} is sent without {names}, which the embedded engine does not have: {why}.")
    };
    found.into_iter().map(said).collect()
}

fn take_below(settings: &mut Map<String, Value>, above: &str, found: &mut Found) {
    settings.retain(|own, value| {
        let name = if above.is_empty() { own.clone() } else { format!("{above}.{own}") };
        if let Value::Object(below) = value {
            take_below(below, &name, found);
            return !below.is_empty();
        }
        let name = if name.starts_with("index.") { name } else { format!("index.{name}") };
        let why = needless(&name);
        if let Some(why) = why {
            found.entry(why).or_default().push(name);
        }
        why.is_none()
    });
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_are_found_nested_or_not_and_with_or_without_index_before_them() {
        let mut body = json!({ "settings": {
            "index": { "merge": { "policy.max_merged_segment": "100GB" }, "number_of_shards": 1 },
            "sort.field": ["a"],
            "index.codec": "best_compression",
        } });
        let said = take_out("index.json", &mut body);
        let kept = json!({ "index": { "number_of_shards": 1 }, "index.codec": "best_compression" });
        assert_eq!(body, json!({ "settings": kept }));
        let begins = ["index.merge.policy.max_merged_segment,", "index.sort.field,"];
        for begin in begins {
            let begin = format!("index.json is sent without {begin} which the embedded engine");
            assert!(said.iter().any(|sentence| sentence.starts_with(&begin)), "{said:?}");
        }
        assert_eq!(said.len(), 2);
        assert!(take_out("index.json", &mut body).is_empty());
    }

    #[test]
    fn they_are_taken_out_of_templates_too() {
        let settings =
            json!({ "index.merge.scheduler.max_thread_count": 1, "index.number_of_replicas": 0 });
        let mut body = json!({ "index_patterns": ["a*"], "template": { "settings": settings } });
        assert_eq!(take_out("a.json", &mut body).len(), 1);
        assert_eq!(body["template"]["settings"], json!({ "index.number_of_replicas": 0 }));
    }
}
