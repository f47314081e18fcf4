//! `?q=`: a query as a parameter.

use query::QueryString;

use super::error::{bad_request, not_supported};
use super::parameters::Query;
use engine::transport::Result;

/// `q`, and what says how it is read.
pub(super) const URI_QUERY: &[&str] =
    &["analyze_wildcard", "analyzer", "default_operator", "df", "lenient", "q"];

/// The query that the parameters ask for; none where there is no `q`.
pub(super) fn uri_query(query: &Query) -> Result<Option<query::Query>> {
    let Some(text) = query.get("q") else {
        return match URI_QUERY.iter().find(|name| query.get(name).is_some()) {
            None => Ok(None),
            Some(name) => {
                Err(bad_request(format!("[{name}] says how [q] is read, and there is no [q]")))
            }
        };
    };
    let mut read = QueryString::default();
    if let Some(field) = query.get("df") {
        read.fields = vec![(field.to_owned(), 1.0)];
        read.lenient = Some(field == "*");
    }
    if query.get("lenient").is_some() {
        read.lenient = Some(query.flag("lenient", false)?);
    }
    read.all = match query.get("default_operator").map(str::to_ascii_lowercase).as_deref() {
        None | Some("or") => false,
        Some("and") => true,
        Some(other) => {
            return Err(bad_request(format!("[default_operator] is AND or OR, not [{other}]")));
        }
    };
    if query.get("analyzer").is_some() {
        return Err(not_supported("[analyzer]", "leave it out: fields have their own"));
    }
    read.analyze_wildcard = query.flag("analyze_wildcard", false)?;
    Ok(Some(read.parse(text)?))
}
