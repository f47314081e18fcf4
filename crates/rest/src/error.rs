//! Errors as the field writes them.

use serde_json::{Value, json};

use engine::transport::Failure;

/// `{"error":{"root_cause":[..],"type","reason"},"status"}`.
pub(super) fn error_json(failure: &Failure) -> Value {
    let mut error = cause_json(failure);
    error["root_cause"] = json!([cause_json(failure)]);
    json!({ "error": error, "status": failure.status })
}

/// Bytes of a reason that are shown: one that repeats what was asked may be as long as that.
const REASON_BYTES_MAX: usize = 4096;

/// What stands behind the name of an index where there had to be an alias of that name.
pub(super) const NO_ALIAS: &str = " and [require_alias] request flag is [true] and";

/// The inside of it, as it stands in items and in lists of failures.
pub(super) fn cause_json(failure: &Failure) -> Value {
    let shown = &failure.reason[..failure.reason.floor_char_boundary(REASON_BYTES_MAX)];
    let reason = match failure.reason.len() - shown.len() {
        0 => shown.to_owned(),
        more => format!("{shown}... [{more} bytes more]"),
    };
    let mut cause = json!({ "type": failure.kind, "reason": reason });
    let missing = shown.strip_prefix("no such index [").and_then(|of| of.split_once(']'));
    if let Some((index, more)) = missing {
        (cause["index"], cause["index_uuid"]) = (json!(index), json!("_na_"));
        if !more.starts_with(NO_ALIAS) {
            cause["resource.id"] = json!(index);
            cause["resource.type"] = json!("index_or_alias");
        }
    }
    if let Some(index) = &failure.index {
        (cause["index"], cause["index_uuid"]) = (json!(index.name), json!(index.uuid));
    }
    if let Some((line, column)) = failure.at {
        cause["line"] = json!(line);
        cause["col"] = json!(column);
    }
    cause
}

/// The request itself is wrong.
pub(super) fn bad_request(reason: impl Into<String>) -> Failure {
    Failure::new(400, "illegal_argument_exception", reason)
}

/// The parts of the request do not go together.
pub(super) fn invalid(why: &str) -> Failure {
    invalid_action(1, why)
}

/// The same of one of several actions.
pub(super) fn invalid_action(number: usize, why: &str) -> Failure {
    let reason = format!("Validation Failed: {number}: {why};");
    Failure::new(400, "action_request_validation_exception", reason)
}

/// The body cannot be read.
pub(super) fn bad_body(reason: impl Into<String>) -> Failure {
    Failure::new(400, "parse_exception", reason)
}

/// A part of the field's interface that is not here. `what` begins the sentence, `instead` ends it.
pub(super) fn not_supported(what: &str, instead: &str) -> Failure {
    bad_request(format!("{what} is not supported by this engine; {instead}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_not_as_long_as_what_was_asked() {
        let long = Failure::new(400, "x", format!("a{}", "é".repeat(REASON_BYTES_MAX)));
        let shown = cause_json(&long)["reason"].as_str().unwrap().to_owned();
        assert!(shown.len() < REASON_BYTES_MAX + 100, "{}", shown.len());
        assert!(shown.ends_with(&format!("... [{} bytes more]", REASON_BYTES_MAX + 2)), "{shown}");
    }

    #[test]
    fn has_the_shape_of_the_field() {
        let failure = Failure::no_such_index("a");
        let cause = json!({
            "type": "index_not_found_exception", "reason": "no such index [a]", "index": "a", "index_uuid": "_na_",
            "resource.id": "a", "resource.type": "index_or_alias",
        });
        let required = Failure::new(404, "x", format!("no such index [a]{NO_ALIAS} [a] is none"));
        assert_eq!(cause_json(&required).get("resource.id"), None, "as in the field");
        let mut error = cause.clone();
        error["root_cause"] = json!([cause]);
        assert_eq!(error_json(&failure), json!({"error": error, "status": 404}));
        let closed = json!({
            "type": "index_closed_exception", "reason": "closed", "index": "a", "index_uuid": "u",
        });
        assert_eq!(cause_json(&Failure::index_closed("a", "u")), closed);
    }
}
