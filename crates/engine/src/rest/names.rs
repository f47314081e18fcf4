//! Expressions that name indices or nodes: `a,b*,-bc`, `_all`.

use record::names::did_you_mean;
pub(super) use record::names::matches;

use super::query::Query;
use crate::state::ClusterState;
use crate::transport::Failure;

/// Parameters of requests that take such an expression.
pub(super) const EXPRESSION: &[&str] =
    &["allow_no_indices", "expand_wildcards", "ignore_unavailable"];

/// Whether a name fits one of several patterns.
pub(super) fn matches_any(patterns: &str, name: &str) -> bool {
    patterns.split(',').any(|pattern| pattern == "_all" || matches(pattern, name))
}

/// There is no such index; the nearest names are offered.
pub(super) fn no_such_index(state: &ClusterState, index: &str) -> Failure {
    let mut failure = Failure::no_such_index(index);
    failure.reason += &did_you_mean(index, state.indices.keys().map(String::as_str));
    failure
}

/// The indices that an expression names, in the order of their names; none means all.
///
/// Fails with 404 if one that is named without `*` does not exist, unless `ignore_unavailable`; and if none
/// is left though `allow_no_indices` is false.
pub(super) fn indices(
    state: &ClusterState,
    expression: Option<&str>,
    query: &Query,
) -> Result<Vec<String>, Failure> {
    let ignore = query.flag("ignore_unavailable", false)?;
    let allow_none = query.flag("allow_no_indices", true)?;
    let expression = expression.filter(|text| !text.is_empty()).unwrap_or("_all");
    let all = state.indices.keys();
    let mut found: Vec<String> = Vec::new();
    for part in expression.split(',') {
        if let Some(excluded) = part.strip_prefix('-').filter(|_| !found.is_empty()) {
            found.retain(|name| !matches(excluded, name));
        } else if part == "_all" || part.contains('*') {
            found.extend(all.clone().filter(|name| matches_any(part, name)).cloned());
        } else if state.indices.contains_key(part) {
            found.push(part.to_owned());
        } else if !ignore {
            return Err(no_such_index(state, part));
        }
    }
    if found.is_empty() && !allow_none {
        return Err(no_such_index(state, expression));
    }
    found.sort();
    found.dedup();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::settings::Update;
    use crate::state::{Event, apply};

    fn state() -> ClusterState {
        let mut state = ClusterState::new("c", [], || 1);
        for index in ["logs-1", "logs-2", "geo"] {
            let settings = Update::new();
            let event =
                Event::CreateIndex { index: index.to_owned(), settings, mappings: Value::Null };
            apply(&mut state, 0, event).unwrap();
        }
        state
    }

    fn named(expression: &str, query: &str) -> Result<Vec<String>, String> {
        let query = Query::parse(query).unwrap();
        indices(&state(), Some(expression), &query).map_err(|failure| failure.reason)
    }

    #[test]
    fn names_indices() {
        assert_eq!(named("_all", "").unwrap(), ["geo", "logs-1", "logs-2"]);
        assert_eq!(named("", "").unwrap().len(), 3);
        assert_eq!(named("logs-*,geo,logs-1", "").unwrap(), ["geo", "logs-1", "logs-2"]);
        assert_eq!(named("*,-logs-*", "").unwrap(), ["geo"]);
        assert_eq!(named("zzz*", "").unwrap(), Vec::<String>::new());
        assert_eq!(named("zzz*", "allow_no_indices=false").unwrap_err(), "no such index [zzz*]");
        assert_eq!(named("geo,gone", "ignore_unavailable").unwrap(), ["geo"]);
        let said = named("log-1", "").unwrap_err();
        assert!(said.starts_with("no such index [log-1]; did you mean \"logs-1\""), "{said}");
    }
}
