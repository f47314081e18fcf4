//! Writes that are refused where another came in between: by `if_seq_no` and `if_primary_term`, or by a `version` that
//! the client counts.

use std::sync::Arc;

use bytes::Bytes;
use store::WriteRequest;

use super::error::{bad_request, invalid};
use super::parameters::Query;
use engine::transport::Result;

/// Of which operation, and read in which term, a document must be that is written (`if_seq_no`, `if_primary_term`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unchanged {
    pub(super) seq_no: u64,
    pub(super) primary_term: u64,
}

impl Unchanged {
    /// Reads it from a request; none where it has none.
    pub(super) fn read(query: &Query) -> Result<Option<Unchanged>> {
        Unchanged::of(query.number("if_seq_no")?, query.number("if_primary_term")?)
    }

    /// One of both alone is refused.
    pub(super) fn of(seq_no: Option<u64>, primary_term: Option<u64>) -> Result<Option<Unchanged>> {
        match (seq_no, primary_term) {
            // The first term is 1. As in the field it is no conflict, which a client would try again.
            (Some(_), Some(0)) => Err(invalid("ifSeqNo is set, but primary term is [0]")),
            (Some(seq_no), Some(primary_term)) => Ok(Some(Unchanged { seq_no, primary_term })),
            (None, None) => Ok(None),
            _ => Err(bad_request("if_seq_no and if_primary_term go together; send both or none")),
        }
    }
}

/// `version_type`: whether a document may have the version already that its client gives it; none where nobody does.
pub(super) fn may_be_equal(version_type: Option<&str>) -> Result<Option<bool>> {
    match version_type {
        None | Some("internal") => Ok(None),
        Some("external" | "external_gt") => Ok(Some(false)),
        Some("external_gte") => Ok(Some(true)),
        Some(other) => Err(bad_request(format!(
            "No version type match [{other}]; known are internal, external, external_gte"
        ))),
    }
}

/// The version that a client gives a document (`version` with a `version_type` that is external).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct External {
    version: u64,
    /// Whether the document may have that version already.
    or_equal: bool,
}

impl External {
    /// Reads it from a request; none where it has none.
    pub(super) fn read(query: &Query) -> Result<Option<External>> {
        External::of(query.number("version")?, query.get("version_type"))
    }

    /// As in the field the engine's own versions are no condition.
    pub(super) fn of(version: Option<i64>, version_type: Option<&str>) -> Result<Option<External>> {
        let or_equal = match (may_be_equal(version_type)?, version) {
            (None, None) => return Ok(None),
            (None, Some(_)) => {
                return Err(invalid(
                    "internal versioning can not be used for optimistic concurrency control. Please use \
                     `if_seq_no` and `if_primary_term` instead",
                ));
            }
            (Some(or_equal), _) => or_equal,
        };
        match version.and_then(|version| u64::try_from(version).ok()) {
            Some(version) => Ok(Some(External { version, or_equal })),
            None => {
                Err(invalid("an external [version_type] needs a [version], a number from 0 on"))
            }
        }
    }
}

/// What a write of a document asks of the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Condition {
    Unchanged(Unchanged),
    External(External),
}

impl Condition {
    /// Reads it from a request; none where it has none.
    pub(super) fn read(query: &Query, is_created: bool) -> Result<Option<Condition>> {
        Condition::of(Unchanged::read(query)?, External::read(query)?, is_created)
    }

    /// Both of them together are refused, and either of what is created.
    pub(super) fn of(
        unchanged: Option<Unchanged>,
        external: Option<External>,
        is_created: bool,
    ) -> Result<Option<Condition>> {
        match (unchanged, external) {
            (None, None) => Ok(None),
            (Some(_), Some(_)) => {
                Err(invalid("compare and write operations can not use versioning"))
            }
            (Some(_), None) if is_created => {
                Err(bad_request("what is created has no if_seq_no; leave it out"))
            }
            (None, Some(_)) if is_created => Err(invalid(
                "create operations only support internal versioning. use index instead",
            )),
            (Some(unchanged), None) => Ok(Some(Condition::Unchanged(unchanged))),
            (None, Some(external)) => Ok(Some(Condition::External(external))),
        }
    }

    /// The write of a document, or its deletion.
    pub(super) fn write(
        self,
        id: Arc<str>,
        source: Option<Bytes>,
        routing: Option<Arc<str>>,
    ) -> WriteRequest {
        match self {
            Condition::Unchanged(Unchanged { seq_no, primary_term }) => {
                WriteRequest::IfUnchanged { id, seq_no, primary_term, source, routing }
            }
            Condition::External(External { version, or_equal }) => {
                WriteRequest::Versioned { id, version, or_equal, source, routing }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_that_is_as_it_was_has_a_number_and_a_term() {
        assert_eq!(Unchanged::of(None, None).map_err(|_| ()), Ok(None));
        let expected = Unchanged { seq_no: 0, primary_term: 1 };
        assert_eq!(Unchanged::of(Some(0), Some(1)).map_err(|_| ()), Ok(Some(expected)));
        for (seq_no, term, why) in
            [(Some(0), Some(0), "primary term is [0]"), (Some(0), None, "go together")]
        {
            let said = Unchanged::of(seq_no, term).unwrap_err().reason;
            assert!(said.contains(why), "{said}");
        }
    }

    #[test]
    fn versions_of_clients_are_numbers_from_zero_on() {
        let read = |text: &str| {
            let read = External::read(&Query::parse(text).unwrap());
            read.map_err(|failure| failure.reason)
        };
        let external = |version, or_equal| Ok(Some(External { version, or_equal }));
        assert_eq!(read(""), Ok(None));
        assert_eq!(read("version_type=internal"), Ok(None));
        assert_eq!(read("version=0&version_type=external"), external(0, false));
        assert_eq!(read("version=7&version_type=external_gte"), external(7, true));
        for (text, why) in [
            ("version=7", "internal versioning"),
            ("version=7&version_type=internal", "internal versioning"),
            ("version_type=external", "needs a [version]"),
            ("version=-1&version_type=external", "needs a [version]"),
            ("version=x&version_type=external", "[x] is no number"),
            ("version=1&version_type=force", "No version type match [force]"),
        ] {
            let said = read(text).unwrap_err();
            assert!(said.contains(why), "{text}: {said}");
        }
    }
}
