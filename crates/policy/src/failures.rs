//! What is done when something fails: one table, which the code asks.
//!
//! An error has a kind wherever it shows: in the store (`store::Error::kind`), and in an answer that crossed the wire
//! ([`ErrorKind::of_answer`]). A full disk is a kind of its own, from the log up to the client.

/// Where an error shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Component {
    /// A write on a primary.
    Primary,
    /// The same operations on a replica, as its primary sees it.
    Replica,
    /// A read from a leader.
    FollowerRead,
    /// A batch of a leader's operations, written on the follower's primary and its replicas.
    FollowerWrite,
    /// A copy that recovers, and what it hears from its source.
    Recovery,
    /// A copy that is searched, as the coordinating node sees it.
    Search,
    /// Refresh, sync and flush, by time or on request.
    Maintenance,
    /// An event that the manager is told.
    ManagerEvent,
    /// A node that joins its cluster.
    Join,
    /// A bucket's flusher, which appends to the bucket's log and syncs it.
    Flusher,
}

/// What kind of error it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// A disk has no room. Nothing of what was to be written is there.
    DiskFull,
    /// The copy, or the log, accepts nothing until it is opened again; the first failure may have been a full disk.
    CopyFailed,
    /// A file or a log is not what its commit lists.
    Damaged,
    /// What was received is damaged, and its source is whole.
    ReceivedDamaged,
    /// The node does not answer, or says that it cannot now (429, 503); or the index is closed, until it is opened.
    Unavailable,
    /// The operations, or the session, are not there any more.
    Gone,
    /// The alias of a remote cluster is not in the settings.
    RemoteUnknown,
    /// A document that was accepted elsewhere does not fit the mapping here.
    MappingBehind,
    /// The request is wrong (400).
    BadRequest,
    /// Whoever asked knows another state of the cluster (403, 404, 409, 410).
    OtherState,
    /// Anything else.
    Other,
}

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Whoever asked is told.
    Answer,
    /// The manager is told, and the copy is opened again.
    ReopenCopy,
    /// The manager takes the copy out of the in-sync set.
    MarkStale,
    /// The same is tried again after a pause.
    TryAgain,
    /// The follower's shard recovers from its leader again.
    RecoverAgain,
    /// Following stops.
    StopFollowing,
    /// The manager is told that the recovery failed.
    FailRecovery,
    /// The next copy is asked.
    AskNextCopy,
    /// Nothing.
    GiveUp,
    /// The node does not start.
    EndStart,
    /// A bucket's writes are refused until it is opened again.
    StopWriting,
}

/// A line of the table. One without kinds matches every kind that no line before it has.
struct Line {
    component: Component,
    kinds: &'static [ErrorKind],
    action: Action,
}

const fn line(component: Component, kinds: &'static [ErrorKind], action: Action) -> Line {
    Line { component, kinds, action }
}

const ANY_OTHER: &[ErrorKind] = &[];

/// The table. The README of this crate is compared with it.
const TABLE: &[Line] = {
    use Action::*;
    use Component::*;
    use ErrorKind::*;
    &[
        line(Primary, &[CopyFailed], ReopenCopy),
        line(Primary, ANY_OTHER, Answer),
        line(Replica, ANY_OTHER, MarkStale),
        line(FollowerRead, &[DiskFull, CopyFailed, Unavailable, RemoteUnknown], TryAgain),
        line(FollowerRead, &[Gone], RecoverAgain),
        line(FollowerRead, ANY_OTHER, StopFollowing),
        line(FollowerWrite, &[CopyFailed], ReopenCopy),
        line(FollowerWrite, &[BadRequest, OtherState], StopFollowing),
        line(FollowerWrite, ANY_OTHER, TryAgain),
        line(Recovery, &[Unavailable, ReceivedDamaged, Gone], TryAgain),
        line(Recovery, ANY_OTHER, FailRecovery),
        line(Search, &[BadRequest], Answer),
        line(Search, ANY_OTHER, AskNextCopy),
        line(Maintenance, &[CopyFailed], ReopenCopy),
        line(Maintenance, ANY_OTHER, TryAgain),
        line(ManagerEvent, &[Gone, RemoteUnknown, BadRequest, OtherState], GiveUp),
        line(ManagerEvent, ANY_OTHER, TryAgain),
        line(Join, &[Unavailable, DiskFull], TryAgain),
        line(Join, ANY_OTHER, EndStart),
        line(Flusher, &[DiskFull, Other], TryAgain),
        line(Flusher, ANY_OTHER, StopWriting),
    ]
};

/// What is done where a component meets an error.
pub fn action(component: Component, kind: ErrorKind) -> Action {
    let matches = |line: &&Line| line.kinds.is_empty() || line.kinds.contains(&kind);
    let line = TABLE.iter().filter(|line| line.component == component).find(matches);
    line.expect("each component ends with a line for any other kind").action
}

/// `type` of an answer whose reason is a full disk, as the field's flood-stage block has it: 429 where nothing was
/// done, 503 where that is not known.
pub const DISK_FULL: &str = "cluster_block_exception";
/// `type` of an answer about operations or a session that are not there any more.
pub const GONE: &str = "resource_not_found_exception";
/// `type` of an answer about documents of an index that is closed.
pub const CLOSED: &str = "index_closed_exception";
/// `type` of an answer about an alias that no remote cluster has.
pub const REMOTE_UNKNOWN: &str = "no_such_remote_cluster_exception";
/// `type` of an answer about a mapping, or a document that does not fit its mapping.
pub const MAPPER_PARSING: &str = "mapper_parsing_exception";
const DAMAGED: &str = "corrupt_index_exception";

impl ErrorKind {
    /// The kind of an answer that crossed the wire.
    pub fn of_answer(status: u16, kind: &str) -> ErrorKind {
        match (status, kind) {
            (_, DISK_FULL) => ErrorKind::DiskFull,
            (_, DAMAGED) => ErrorKind::Damaged,
            (_, GONE) => ErrorKind::Gone,
            (_, REMOTE_UNKNOWN) => ErrorKind::RemoteUnknown,
            (429 | 503, _) | (_, CLOSED) => ErrorKind::Unavailable,
            (400, _) => ErrorKind::BadRequest,
            (401..500, _) => ErrorKind::OtherState,
            _ => ErrorKind::Other,
        }
    }

    /// The status and the `type` by which a client is told. 4xx says that nothing was done.
    pub fn answer(self) -> (u16, &'static str) {
        match self {
            ErrorKind::DiskFull => (429, DISK_FULL),
            ErrorKind::CopyFailed | ErrorKind::Unavailable => (503, "engine_exception"),
            ErrorKind::Damaged => (500, DAMAGED),
            ErrorKind::Gone => (404, GONE),
            ErrorKind::RemoteUnknown => (404, REMOTE_UNKNOWN),
            ErrorKind::MappingBehind => (400, MAPPER_PARSING),
            ErrorKind::BadRequest => (400, "illegal_argument_exception"),
            ErrorKind::OtherState => (404, "shard_not_found_exception"),
            ErrorKind::ReceivedDamaged | ErrorKind::Other => (500, "engine_exception"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMPONENTS: [(Component, &str); 10] = [
        (Component::Primary, "a write on a primary"),
        (Component::Replica, "a write on a replica"),
        (Component::FollowerRead, "a follower's read from its leader"),
        (Component::FollowerWrite, "a follower's write"),
        (Component::Recovery, "a recovery"),
        (Component::Search, "a search of a copy"),
        (Component::Maintenance, "refresh, sync, flush"),
        (Component::ManagerEvent, "an event for the manager"),
        (Component::Join, "a node that joins"),
        (Component::Flusher, "a bucket's flusher"),
    ];
    const KINDS: [(ErrorKind, &str); 11] = [
        (ErrorKind::DiskFull, "disk full"),
        (ErrorKind::CopyFailed, "copy failed"),
        (ErrorKind::Damaged, "damaged"),
        (ErrorKind::ReceivedDamaged, "received damaged"),
        (ErrorKind::Unavailable, "unavailable"),
        (ErrorKind::Gone, "gone"),
        (ErrorKind::RemoteUnknown, "remote unknown"),
        (ErrorKind::MappingBehind, "mapping behind"),
        (ErrorKind::BadRequest, "bad request"),
        (ErrorKind::OtherState, "other state"),
        (ErrorKind::Other, "other"),
    ];

    fn name(kind: ErrorKind) -> &'static str {
        KINDS.iter().find(|(known, _)| *known == kind).expect("every kind has a name").1
    }

    fn done(action: Action) -> &'static str {
        match action {
            Action::Answer => "whoever asked is told",
            Action::ReopenCopy => "the manager is told, and the copy is opened again",
            Action::MarkStale => "the manager takes the copy out of the in-sync set first",
            Action::TryAgain => "the same is tried again after a pause",
            Action::RecoverAgain => "the shard recovers from its leader again, once",
            Action::StopFollowing => "following stops, and shows why",
            Action::FailRecovery => "what was verified is kept; the manager has it tried 5 times",
            Action::AskNextCopy => "the next copy is asked",
            Action::GiveUp => "nothing: the state has changed meanwhile",
            Action::EndStart => "the node does not start, and says why",
            Action::StopWriting => "the bucket refuses writes until it is opened again",
        }
    }

    fn table() -> String {
        let mut text = String::from("| component | kind of error | what is done |\n");
        text += "| --- | --- | --- |\n";
        for (component, of) in COMPONENTS {
            for line in TABLE.iter().filter(|line| line.component == component) {
                let kinds: Vec<&str> = line.kinds.iter().map(|kind| name(*kind)).collect();
                let kinds =
                    if kinds.is_empty() { "any other".to_owned() } else { kinds.join(", ") };
                text += &format!("| {of} | {kinds} | {} |\n", done(line.action));
            }
        }
        text
    }

    #[test]
    fn each_component_has_one_line_for_each_kind() {
        for (component, of) in COMPONENTS {
            let lines: Vec<&Line> =
                TABLE.iter().filter(|line| line.component == component).collect();
            let (last, others) = lines.split_last().expect(of);
            assert!(last.kinds.is_empty(), "{of}");
            let named: Vec<ErrorKind> =
                others.iter().flat_map(|line| line.kinds).copied().collect();
            assert!(others.iter().all(|line| !line.kinds.is_empty()), "{of}");
            for (kind, _) in KINDS {
                assert!(named.iter().filter(|one| **one == kind).count() <= 1, "{of}: {kind:?}");
            }
        }
    }

    #[test]
    fn a_full_disk_is_the_end_of_nothing() {
        for (component, of) in COMPONENTS {
            let done = action(component, ErrorKind::DiskFull);
            let ends = matches!(
                done,
                Action::StopFollowing | Action::GiveUp | Action::EndStart | Action::StopWriting
            );
            assert!(!ends, "{of}: {done:?}");
        }
    }

    #[test]
    fn what_a_leaders_store_meets_reaches_its_follower() {
        for (kind, _) in KINDS {
            let (status, text) = kind.answer();
            let behind = ErrorKind::of_answer(status, text);
            let of = |kind| action(Component::FollowerRead, kind);
            assert_eq!(of(behind), of(kind), "{kind:?} arrives as {behind:?}");
        }
    }

    #[test]
    fn the_readme_has_the_table() {
        testbed::generated::check("crates/policy/README.md", "failures", &table());
    }
}
