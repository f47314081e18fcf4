//! Errors as the field writes them.

use serde_json::{Value, json};

use engine::transport::Failure;

/// `{"error":{"root_cause":[..],"type","reason"},"status"}`.
pub(super) fn error_json(failure: &Failure) -> Value {
    let mut error = cause_json(failure);
    error["root_cause"] = json!([cause_json(failure)]);
    json!({ "error": error, "status": failure.status })
}

/// The inside of it, as it stands in items and in lists of failures.
pub(super) fn cause_json(failure: &Failure) -> Value {
    let mut cause = json!({ "type": failure.kind, "reason": failure.reason });
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
    let reason = format!("Validation Failed: 1: {why};");
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
    fn has_the_shape_of_the_field() {
        let failure = Failure::no_such_index("a");
        let cause = json!({"type": "index_not_found_exception", "reason": "no such index [a]"});
        let mut error = cause.clone();
        error["root_cause"] = json!([cause]);
        assert_eq!(error_json(&failure), json!({"error": error, "status": 404}));
    }
}
