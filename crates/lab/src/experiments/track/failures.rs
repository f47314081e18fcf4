//! What it means for a step that a request was not answered well.

use crate::load::Failure;

/// What the last of several hosts did.
fn last_of(error: &clusters::Error) -> &clusters::Error {
    match error {
        clusters::Error::NoHost { tried } => tried.last().map_or(error, last_of),
        other => other,
    }
}

/// Whether nobody is there to be asked. As in Rally, that ends the run.
pub(super) fn is_unreachable(error: &clusters::Error) -> bool {
    match error {
        clusters::Error::Connection { .. } | clusters::Error::Peer { .. } => true,
        clusters::Error::NoHost { tried } => tried.iter().all(is_unreachable),
        _ => false,
    }
}

/// Status and type of an answer that is an error.
pub(super) fn status_of(error: &clusters::Error) -> Option<(u16, &str)> {
    match last_of(error) {
        clusters::Error::Refused { status, kind, .. } => Some((*status, kind.as_str())),
        clusters::Error::Unauthorized { .. } => Some((401, "")),
        clusters::Error::Forbidden { .. } => Some((403, "")),
        _ => None,
    }
}

/// Why a request was not answered well, as loads count it.
pub(super) fn failure_of(error: &clusters::Error) -> Failure {
    if let Some((status, kind)) = status_of(error) {
        let reason = match last_of(error) {
            clusters::Error::Refused { reason, .. } => reason.as_str(),
            _ => "",
        };
        return Failure::refused(status, kind, reason);
    }
    match last_of(error) {
        clusters::Error::Timeout { .. } => Failure::NoAnswer,
        clusters::Error::Broken { .. } => Failure::Closed,
        clusters::Error::TooLarge { .. } => Failure::Malformed,
        _ => Failure::Unreachable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_last_host_said_counts_and_where_there_is_none_the_run_ends() {
        let lost = || clusters::Error::Connection {
            address: "a".to_owned(),
            source: std::io::Error::other("refused"),
        };
        let busy = clusters::Error::Refused {
            method: "GET".to_owned(),
            path: "/".to_owned(),
            status: 503,
            kind: "busy".to_owned(),
            reason: String::new(),
        };
        let one = clusters::Error::NoHost { tried: vec![lost(), busy] };
        assert_eq!(failure_of(&one).to_string(), "503 busy");
        assert!(!is_unreachable(&one));
        assert!(is_unreachable(&clusters::Error::NoHost { tried: vec![lost(), lost()] }));
    }
}
