//! The rules that answers and copies keep, and one that is broken.

use std::fmt;

/// What a copy, or an answer, breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// One number of a shard's history, one operation.
    NumbersAreGivenOnce,
    /// A write that began after another was acknowledged has the higher number; and the higher version, unless the
    /// document was deleted meanwhile.
    AcknowledgedInOrder,
    /// What was acknowledged last is there, unless something newer without an answer is.
    AcknowledgedIsThere,
    /// What was deleted stays deleted.
    DeletedStaysDeleted,
    /// Only what was written and not rejected is there.
    NothingElseIsThere,
    /// Each document once.
    OnceEach,
    /// The history has no hole.
    NoHoles,
    /// Copies of a shard hold the same.
    CopiesAreEqual,
}

/// A rule that is broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which.
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
