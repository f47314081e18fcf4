//! Why a request was not answered well.

use std::fmt;

const REASON_CHARS_MAX: usize = 200;

/// Why a request was not answered well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// A status other than 2xx, of the whole or of one of many searches.
    Refused {
        /// The status.
        status: u16,
        /// The type of the error, where the answer has one.
        kind: String,
        /// The beginning of its reason, where the answer has one.
        reason: String,
    },
    /// A search says that it timed out.
    TimedOut,
    /// Some shards of a search failed.
    Partial,
    /// Some documents of a bulk request were refused.
    Items,
    /// No answer within the load's limit.
    NoAnswer,
    /// The host could not be reached.
    Unreachable,
    /// The connection ended before the answer did.
    Closed,
    /// What came is not HTTP, or too large.
    Malformed,
    /// What came is not the answer of a cluster: a proxy may have sent it.
    NotJson,
    /// The answer to many searches is longer than what is kept of answers: an error in it would not be seen.
    TooLong,
    /// A search that scrolls was answered without a scroll id, or with one that is longer than what is kept of answers.
    NoScrollId,
    /// Its time was over before a client was free for it.
    NotSent,
}

impl Failure {
    /// An answer that is an error, with the beginning of its reason.
    pub(crate) fn refused(status: u16, kind: &str, reason: &str) -> Failure {
        let reason = match reason.char_indices().nth(REASON_CHARS_MAX) {
            Some((at, _)) => format!("{}…", &reason[..at]),
            None => reason.to_owned(),
        };
        Failure::Refused { status, kind: kind.to_owned(), reason }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Refused { status, kind, .. } if kind.is_empty() => write!(f, "{status}"),
            Failure::Refused { status, kind, .. } => write!(f, "{status} {kind}"),
            Failure::TimedOut => f.write_str("search timed out"),
            Failure::Partial => f.write_str("shards failed"),
            Failure::Items => f.write_str("documents refused"),
            Failure::NoAnswer => f.write_str("timeout"),
            Failure::Unreachable => f.write_str("not reachable"),
            Failure::Closed => f.write_str("connection closed"),
            Failure::Malformed => f.write_str("not HTTP"),
            Failure::NotJson => f.write_str("not a cluster's answer"),
            Failure::TooLong => f.write_str("answer too long to judge"),
            Failure::NoScrollId => f.write_str("no scroll id"),
            Failure::NotSent => f.write_str("not sent in time"),
        }
    }
}
