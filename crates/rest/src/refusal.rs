//! What a client without the right credentials is told.

use serde_json::json;

use super::error::error_json;
use super::message::RestResponse;
use engine::transport::Failure;

/// What a stranger is asked for, in `WWW-Authenticate`.
pub(super) const CHALLENGE: &str = "Basic realm=\"security\", charset=\"UTF-8\"";

/// The answer to a request without the right credentials, as the field writes it.
pub(super) fn refusal(path: &str, gave_some: bool) -> RestResponse {
    let reason = if gave_some {
        format!("unable to authenticate for REST request [{path}]: wrong user or password")
    } else {
        format!("missing authentication credentials for REST request [{path}]")
    };
    let mut body = error_json(&Failure::new(401, "security_exception", reason));
    let header = json!({ "WWW-Authenticate": CHALLENGE });
    body["error"]["header"] = header.clone();
    body["error"]["root_cause"][0]["header"] = header;
    RestResponse {
        status: 401,
        content_type: "application/json; charset=UTF-8".to_owned(),
        location: None,
        body: body.to_string().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stranger_is_told_what_to_send() {
        let answer = refusal("/_bulk", false);
        let body: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!((answer.status, &body["status"]), (401, &json!(401)));
        for error in [&body["error"], &body["error"]["root_cause"][0]] {
            assert_eq!(error["type"], "security_exception");
            let reason = "missing authentication credentials for REST request [/_bulk]";
            assert_eq!(error["reason"], reason);
            assert_eq!(error["header"]["WWW-Authenticate"], CHALLENGE);
        }
        let wrong = refusal("/", true).body;
        assert!(String::from_utf8_lossy(&wrong).contains("wrong user or password"));
    }
}
