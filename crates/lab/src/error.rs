//! What can go wrong with a plan, a corpus, or a run.

use std::path::PathBuf;

use record::units::counted;

use crate::diagnostic::Mistakes;

/// What is tried when a plan's file is opened. Where that fails, the command line named no plan.
pub(crate) const READ_PLAN: &str = "read plan";

/// A number as people write it: `1e9`, and not a one with nine zeros to count.
fn as_written(number: f64) -> String {
    let (whole, short) = (format!("{number}"), format!("{number:e}"));
    if short.len() < whole.len() { short } else { whole }
}

/// The result of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a plan or a corpus cannot be used, or a run did not reach its end.
#[expect(missing_docs, reason = "each message says what its fields are")]
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "there is no file {path}; `narrows plans remote-recovery > {path}` writes a plan to start from"
    )]
    NoPlan { path: PathBuf },
    /// What is wrong in a plan's text; shows each place.
    #[error(transparent)]
    Plan(#[from] Mistakes),
    /// A plan cannot be run as it was asked for, or not in this place.
    #[error("{why}")]
    Usage { why: String },
    #[error("start {}", counted(.nodes, "node", "nodes"))]
    Start { nodes: usize, source: clusters::Error },
    /// The emulated link could not be measured by itself, before nodes use it.
    #[error("measure the link's own ceiling")]
    Ceiling { source: clusters::Error },
    /// A node has ended by itself, and nothing says why.
    #[error("a node has ended")]
    NodeEnded,
    #[error("the cluster could not be put back as it was; once it answers, say `{restore}`")]
    NotRestored { restore: String, source: Box<clusters::Error> },
    /// What runs has a bug. Its words were printed where it was found.
    #[error("this is a bug of narrows, which the lines above name; please report it with them")]
    Panicked,
    /// Signal handlers could not be installed, so that nothing could interrupt the run.
    #[error(transparent)]
    Signals { source: std::io::Error },
    /// Nothing is left to happen in virtual time.
    #[error(transparent)]
    Deadlock(#[from] world::virtual_world::Deadlock),
    #[error(
        "scale {} is out of range; give a number above 0 and at most 1000000, for example 0.1",
        as_written(*scale)
    )]
    Scale { scale: f64 },
    #[error("cannot {what}: {reason}")]
    Calibration { what: &'static str, reason: String },
    #[error("cannot {what} {path}: {source}")]
    Io { what: &'static str, path: PathBuf, source: std::io::Error },
    #[error(
        "cannot read {path} as a corpus: the ending .{ending} is not known; \
         give newline-delimited JSON as .json, .ndjson, .jsonl, .bz2, .gz or .zst"
    )]
    CorpusEnding { path: PathBuf, ending: String },
    #[error("{path} line {line}: cannot be read further: {source}")]
    CorpusRead {
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        source: std::io::Error,
    },
    /// A file of a track has other documents than the track says.
    #[error(
        "{path}: the track's document-count is {said}, and the file has {found}; mend the one that is wrong"
    )]
    CorpusCount {
        path: PathBuf,
        said: u64,
        /// How many, or `more`.
        found: String,
    },
    #[error("{path} line {line}: {why}; a corpus has one JSON object on each line")]
    CorpusLine {
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        why: String,
    },
    /// A server of a bucket, or a connection to one.
    #[error(transparent)]
    Bucket(#[from] dcp::Error),
    /// The target did not start, did not answer, or refused.
    #[error(transparent)]
    Target(#[from] clusters::Error),
    /// The record cannot be written.
    #[error(transparent)]
    Record(#[from] record::Error),
    #[error("a thread of the run: {source}; raise the limit of processes, or report a bug")]
    Thread { source: std::io::Error },
    #[error("the leader refused a document: {why}; check that the corpus fits its mapping")]
    Rejected { why: String },
    #[error(
        "index {index} of the {cluster} is {status}, and no copy is on its way; \
         more replicas than nodes, or a node that is gone?"
    )]
    NotGreen { cluster: String, index: String, status: String },
    #[error(
        "the follower reaches {connected} of the leader's {nodes} nodes after 30 s; is the link cut?"
    )]
    NotConnected { connected: u64, nodes: u32 },
    #[error("{variant}: nothing has moved for {seconds} s after {bytes} bytes: {why}")]
    Stuck { variant: String, seconds: u64, bytes: u64, why: String },
    /// Copies find no place, and what is waited for never comes.
    #[error("{variant}: {sentence}")]
    Stays { variant: String, sentence: String },
    #[error(
        "{variant}: {} so slowly that not a chunk of theirs has come for {seconds} s, longer than what is simulated: \
         {setting} is [{value}]; ask with a higher one, and look at the rates of links and disks, and at what a copy \
         takes besides (--open-copy, --first-copy, --each-file){others}",
        counted(.copies, "copy is made", "copies are made")
    )]
    TooSlow {
        variant: String,
        copies: u64,
        seconds: u64,
        setting: &'static str,
        value: String,
        others: String,
    },
    #[error(
        "{variant}: the follower lacks {lag} operations after {seconds} s, and was to lack fewer than {under}: {why}"
    )]
    Lags { variant: String, seconds: u64, lag: u64, under: u64, why: String },
    #[error(
        "{variant}: the leader has acknowledged nothing for {seconds} s, after {written} of {wanted} documents; is it down?"
    )]
    NobodyWrites { variant: String, seconds: u64, written: u64, wanted: u64 },
    #[error(
        "{variant} cannot be run there: that release has no {setting}; take other variants with --variant"
    )]
    NoSetting { variant: String, setting: String },
    #[error("the leader could not take a snapshot: {why}")]
    Snapshot { why: String },
    #[error(
        "{task}: {method} {path} was not answered well: {why}; later tasks depend on it. --exclude-tasks leaves tasks \
         out"
    )]
    Task { task: String, method: &'static str, path: String, why: String },
    #[error("the {cluster} gave no digest of its documents: {why}")]
    Digest { cluster: String, why: String },
    #[error(
        "the leader holds {held} documents, and has acknowledged {acknowledged}: copies of what is left prove nothing"
    )]
    Lost { held: u64, acknowledged: u64 },
    #[error(
        "{variant}: the streams have ended after {came} of {items} documents, so that nothing was measured"
    )]
    Short { variant: String, came: u64, items: u64 },
    #[error(
        "{variant}: {count} vbuckets, {first} the first, have other documents or another last sequence number at the \
         destination than the source says that it has"
    )]
    OtherVbuckets { variant: String, count: usize, first: u16 },
    #[error(
        "{variant}: the follower does NOT hold the leader's documents; the run's record has the \
         digests of each shard on both sides"
    )]
    NotTheSame { variant: String },
    #[error(
        "{variant}: {violations} of the rules that it is held to were broken; the first: {first}"
    )]
    RulesBroken { variant: String, violations: u64, first: String },
}

impl Error {
    /// What was asked for cannot be done; the sentence says why and what to do.
    pub(crate) fn usage(why: impl Into<String>) -> Error {
        Error::Usage { why: why.into() }
    }

    /// Joins two errors. It keeps both if both are mistakes of a plan, else the first that is none.
    pub(crate) fn and(self, other: Error) -> Error {
        match (self, other) {
            (Error::Plan(one), Error::Plan(other)) => Error::Plan(one.and(other)),
            (Error::Plan(_), other) => other,
            (one, _) => one,
        }
    }

    /// Whether what was asked for cannot be done as it was asked: nothing was started.
    pub fn is_usage(&self) -> bool {
        match self {
            Error::NoPlan { .. }
            | Error::Io { what: READ_PLAN, .. }
            | Error::Plan(_)
            | Error::Usage { .. }
            | Error::Scale { .. }
            | Error::NoSetting { .. } => true,
            Error::Target(error) => error.is_usage(),
            _ => false,
        }
    }
}

/// An error and its causes, each once: some say their cause themselves, at their end or before what to do.
pub fn with_causes(causes: impl Iterator<Item = String>) -> String {
    causes.fold(String::new(), |said, cause| match said.is_empty() {
        true => cause,
        false if said.contains(&cause) => said,
        false => format!("{said}: {cause}"),
    })
}
