//! Why a request was not answered well.

const REASON_CHARS_MAX: usize = 200;

/// Why a request was not answered well.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// A status other than 2xx, of the whole or of one of many searches.
    #[error("{status}{}{kind}", if kind.is_empty() { "" } else { " " })]
    Refused {
        /// The status.
        status: u16,
        /// The type of the error, where the answer has one.
        kind: String,
        /// The beginning of its reason, where the answer has one.
        reason: String,
    },
    /// A search says that it timed out.
    #[error("search timed out")]
    TimedOut,
    /// Some shards of a search failed.
    #[error("shards failed")]
    Partial,
    /// Some documents of a bulk request were refused.
    #[error("documents refused")]
    Items,
    /// No answer within the load's limit.
    #[error("timeout")]
    NoAnswer,
    /// The host could not be reached.
    #[error("not reachable")]
    Unreachable,
    /// The connection ended before the answer did.
    #[error("connection closed")]
    Closed,
    /// What came is not HTTP, or too large.
    #[error("not HTTP")]
    Malformed,
    /// What came is not the answer of a cluster: a proxy may have sent it.
    #[error("not a cluster's answer")]
    NotJson,
    /// The answer to many searches is longer than what is kept of answers: an error in it would not be seen.
    #[error("answer too long to judge")]
    TooLong,
    /// A search that scrolls was answered without a scroll id, or with one that is longer than what is kept of answers.
    #[error("no scroll id")]
    NoScrollId,
    /// Its time was over before a client was free for it.
    #[error("not sent in time")]
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
