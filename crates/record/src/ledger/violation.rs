//! The rules that answers and copies keep, and one that is broken.

use std::fmt;

/// A rule that answers and copies must keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// No two operations of a shard were acknowledged with the same sequence number.
    NumbersAreGivenOnce,
    /// A write that began after another write to the document was acknowledged has a higher sequence number, and a
    /// higher version unless the document was deleted meanwhile.
    AcknowledgedInOrder,
    /// A document that is there is not created.
    CreatedWhereNoneIs,
    /// A copy holds the last acknowledged write of a document, or a newer one that got no answer.
    AcknowledgedIsThere,
    /// A document that was deleted stays deleted.
    DeletedStaysDeleted,
    /// A copy holds only documents of its shard that were written, and no write that was rejected.
    NothingElseIsThere,
    /// A copy lists each document once.
    OnceEach,
    /// The history of a copy has no holes: its local checkpoint is its highest sequence number.
    NoHoles,
    /// All copies of a shard hold the same documents.
    CopiesAreEqual,
}

/// A rule that is broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The rule.
    pub rule: Rule,
    /// Where, and what was found.
    pub found: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.rule, self.found)
    }
}

pub(super) fn violation(rule: Rule, found: String) -> Violation {
    Violation { rule, found }
}
