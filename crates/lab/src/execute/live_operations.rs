//! What the loads of a plan may send to a cluster that was there already: what reads, and what is about indices of the
//! plan. These get names of the run; everything else there is somebody else's, and nothing would put it back.

use clusters::{READING, READING_ALONE, reads};
use serde_json::Value;

use crate::error::{Error, Result};
use crate::load::{Content, Draw, Operation};
use crate::plan::Resolved;
use crate::track::check_request;

/// Refuses a plan whose loads would do more there.
pub(super) fn check(plan: &Resolved) -> Result<()> {
    let joined = plan.index_names();
    let names = plan.indices.iter().map(|index| index.name.as_str());
    let own: Vec<&str> = names.chain([joined.as_str()]).collect();
    let loads = plan.variants.iter().filter_map(|variant| variant.load.as_ref());
    for Operation { name, content } in loads.flat_map(|load| &load.operations) {
        if let Some(why) = why_not(&own, content) {
            return Err(Error::usage(format!("plan {}, operation {name}: {why}", plan.name)));
        }
    }
    Ok(())
}

/// Why an operation of a plan with these indices is not sent there; none where it is.
fn why_not(own: &[&str], content: &Content) -> Option<String> {
    let Content::Pattern { method, path, bodies, parameters, .. } = content else { return None };
    if matches!(method.as_str(), "GET" | "HEAD") {
        return None;
    }
    let refuse = |why: &str| {
        Some(format!("{method} {path} is not sent to a cluster that was there already: {why}"))
    };
    let bare = path.split('?').next().unwrap_or_default();
    let may_lead_elsewhere = |(name, draw): (&String, &Draw)| match draw {
        Draw::Choice(texts) if bare.contains(&format!("{{{{{name}}}}}")) => {
            !texts.iter().all(|text| is_plain(text))
        }
        _ => false,
    };
    if parameters.iter().any(may_lead_elsewhere) {
        return refuse(
            "values in its path begin with a letter or a digit, and have besides only - _ . : , and *",
        );
    }
    if method == "POST" && reads(bare) {
        return None;
    }
    // As it is renamed.
    let first = path.split('/').nth(1).unwrap_or_default();
    if !path.starts_with('/') || !own.contains(&first) {
        let (apis, alone) = (READING.join(", "), READING_ALONE.join(", "));
        return refuse(&format!(
            "it may change what is not the run's own; its path begins with {{index}}, or it reads: GET, or POST of \
             {apis}, and, without an index before it, of {alone}"
        ));
    }
    let bodies = bodies.iter().map(|body| serde_json::from_str::<Value>(body).ok());
    let mut bodies = std::iter::once(None).chain(bodies);
    bodies.find_map(|body| check_request(method, path, body.as_ref()).err())
}

/// Whether a text stays one part of a path, and is the name of no API.
fn is_plain(text: &str) -> bool {
    let is_of_a_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:,*".contains(&byte);
    text.starts_with(|c: char| c.is_ascii_alphanumeric()) && text.bytes().all(is_of_a_name)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::load::Check;

    fn why(method: &str, path: &str, x: &str) -> Option<String> {
        let content = Content::Pattern {
            method: method.to_owned(),
            path: path.to_owned(),
            bodies: Vec::new(),
            parameters: BTreeMap::from([("x".to_owned(), Draw::Choice(vec![x.to_owned()]))]),
            check: Check::Status,
        };
        why_not(&["logs", "other", "logs,other"], &content)
    }

    #[test]
    fn what_reads_and_what_is_about_the_plans_own_indices_is_sent() {
        for (method, path) in [
            ("GET", "/_cluster/health"),
            ("POST", "/_search"),
            ("POST", "/theirs/_count?q=a"),
            ("POST", "/_eql/search"),
            ("POST", "/_query?format=csv"),
            ("GET", "/theirs/_eql/search"),
            ("POST", "/_all/_search"),
            ("POST", "/logs/_doc"),
            ("PUT", "/logs/_doc/{{x}}?refresh=true"),
            ("POST", "/logs,other/_forcemerge"),
        ] {
            assert_eq!(why(method, path, "a-1"), None, "{method} {path}");
        }
        assert_eq!(why("POST", "/logs/_search?q={{x}}", "a/b"), None, "it stands in no path");
        assert_eq!(why("PUT", "/logs/_doc/{{x}}", "user:1"), None);
    }

    #[test]
    fn what_would_change_somebody_elses_indices_or_the_cluster_is_not_sent() {
        for (method, path) in [
            ("DELETE", "/theirs"),
            ("DELETE", "/_all"),
            ("DELETE", "/logs?x"),
            ("DELETE", "theirs/logs"),
            ("PUT", "/_cluster/settings"),
            ("POST", "/_forcemerge"),
            ("POST", "/_bulk"),
            ("POST", "/logs/_bulk"),
            ("POST", "/theirs/_doc/_search"),
            ("POST", "/theirs_search"),
            // A cluster of another release makes the index.
            ("POST", "/theirs/_eql/search"),
            ("POST", "/theirs/_plugins/_ppl"),
            ("POST", "/theirs/_query"),
            ("POST", "/theirs/_terms_enum"),
            ("POST", "theirs/_search"),
            ("POST", "/_scripts/_search"),
            ("POST", "/_scripts/_search/template"),
            ("PUT", "/logs/_alias/theirs"),
        ] {
            let said = why(method, path, "a").unwrap_or_default();
            assert!(said.contains("there already"), "{method} {path}: {said}");
        }
        for x in ["../../theirs", "_alias/theirs", "_aliases", ".", ""] {
            assert!(why("PUT", "/logs/_doc/{{x}}", x).is_some(), "{x}");
        }
        assert!(why("POST", "/{{x}}/_search", "theirs/_doc").is_some());
        let said = why("POST", "/_delete_by_query", "").unwrap_or_default();
        assert!(
            said.contains("or it reads: GET, or POST of _analyze, _count, _field_caps,"),
            "{said}"
        );
    }
}
