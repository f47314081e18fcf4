//! What can go wrong with clusters.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::reading::changes_nothing;

/// The result of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Paths up to so long are shown whole.
const PATH_BYTES_MAX: usize = 100;

/// Why clusters could not be started, asked or changed.
#[expect(missing_docs, reason = "each message says what is wrong, and what its fields are")]
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No connection, or it was closed before the request was read.
    #[error("{address}: {source}")]
    Connection { address: String, source: io::Error },
    #[error(
        "{address}: the connection broke during {method} {}{}: {source}",
        shown(.path), may_be_done(.method, .path)
    )]
    Broken { address: String, method: String, path: String, source: io::Error },
    #[error(
        "{address} answered {method} {path} with more than {limit_bytes} bytes; ask for less at once"
    )]
    TooLarge { address: String, method: String, path: String, limit_bytes: usize },
    #[error(
        "{address} did not answer {method} {} within {limit:?}{}",
        shown(.path), may_be_done(.method, .path)
    )]
    Timeout { address: String, method: String, path: String, limit: Duration },
    /// The node answered with an error.
    #[error("{method} {}: {status} {kind}: {reason}", shown(.path))]
    Refused { method: String, path: String, status: u16, kind: String, reason: String },
    #[error("{} was answered with something that is no JSON: {reason}", shown(.path))]
    NotJson { path: String, reason: String },
    #[error("there is no {what} called \"{name}\" in this topology")]
    Unknown { what: &'static str, name: String },
    #[error("no node of the {cluster} cluster is running")]
    NoNode { cluster: String },
    /// A node's process did not start, or ended by itself.
    #[error("node {node} {what}{}", last_lines(.stderr))]
    Node { node: String, what: String, stderr: Vec<String> },
    #[error("the address of node {node} is taken{}", last_lines(.stderr))]
    AddressTaken { node: String, stderr: Vec<String> },
    #[error(
        "a cluster cannot be called \"{name}\": its name begins with a letter or a digit and has up to 64 \
         letters, digits, '-', '_' and '.'"
    )]
    ClusterName { name: String },
    /// Credentials that cannot be used. The message says where they were found, and never shows them.
    #[error("{source_name} {why}")]
    Credentials { source_name: String, why: String },
    /// A node did not start in this process, or was given what no node takes.
    #[error(transparent)]
    Engine(#[from] engine::Error),
    #[error("{joined} of {nodes} nodes of the {cluster} cluster have joined after 30 s")]
    NotJoined { cluster: String, joined: u64, nodes: usize },
    #[error(
        "OpenSearch needs {what} {oldest} or later: {found}; `{install}` installs it on Debian"
    )]
    Missing { what: &'static str, found: String, install: &'static str, oldest: String },
    #[error(
        "release \"{name}\" cannot be fetched from Maven Central: there are {known}; an unpacked distribution is \
         given with --opensearch-home"
    )]
    NoRelease { name: String, known: String },
    #[error(
        "{name} is set on that cluster to something else: whatever reads from it would be cut off, so nothing was \
         changed; rename that remote cluster, or run this elsewhere"
    )]
    RemoteTaken { name: String },
    #[error(
        "{cluster} has no cross-cluster replication ({}); Elasticsearch has it with a licence, OpenSearch in the plugin \
         opensearch-cross-cluster-replication; nothing was changed; \"replica-over-link\" runs inside one cluster, and \
         --on opensearch restores a snapshot instead",
        refusals.join("; ")
    )]
    NoFollowing { cluster: String, refusals: Vec<String> },
    #[error(
        "neither NARROWS_CACHE nor XDG_CACHE_HOME nor HOME is set; set NARROWS_CACHE to a directory \
         where OpenSearch's jars may be kept (80 MB)"
    )]
    NoCache,
    /// The jars could not be fetched, or the class that starts a node not compiled.
    #[error(
        "mvn could not fetch OpenSearch from Maven Central; is the network there, or a mirror in \
         ~/.m2/settings.xml? --opensearch-home does without{}", last_lines(.lines)
    )]
    Build { lines: Vec<String> },
    #[error(
        "nodes of {name} cannot encrypt what they send each other: the plugin opensearch-security is not known for \
         that release, or not in that directory; 2.19.1 has it"
    )]
    NoEncryption { name: String },
    #[error("keytool, which comes with Java, made no key for nodes that encrypt: {said}")]
    NoKeys { said: String },
    #[error(
        "{home} holds no OpenSearch, and no Elasticsearch 7: there is no lib and modules of one in it; give the \
         directory of an unpacked distribution, or start another release yourself and say --on URL"
    )]
    NoDistribution { home: PathBuf },
    #[error(
        "a node tells every other one address, so on this target a site of a cluster that spans a \
         link has one node; set nodes = 1 for both"
    )]
    SitesOfOne,
    #[error(
        "this plan needs two clusters, and --on URL gives it one; \"replica-over-link\" runs on one, \
         or start both with --on opensearch"
    )]
    OneCluster,
    #[error(
        "the cluster has {data} data nodes for new indices (of the roles data and data_content), and a copy on \
         another one needs {needed}; nothing was changed"
    )]
    TooFewNodes { data: usize, needed: usize },
    #[error(
        "the cluster is red: copies of data are on no node ({unassigned} unassigned); what was to be changed for a \
         while is left alone, and nothing was changed: see `narrows explain` for why they wait, and try again once it \
         is yellow or green"
    )]
    Red { unassigned: u64 },
    /// A version that narrows was not built for.
    #[error("{sentence}")]
    Unfamiliar { sentence: String },
    #[error("{method} {path} would change what was not made for this run; it is not sent")]
    NotOurs { method: String, path: String },
    #[error(
        "{name} is set transiently, to \"{value}\", so what a variant sets would have no effect; \
         remove the transient setting first"
    )]
    Transient { name: String, value: String },
    /// A setting that was to be changed for a while is not what it was found to be. By then something was changed.
    #[error(
        "{name} is {now} now and was {found} a moment ago: someone else is changing it, so it is left alone"
    )]
    ChangedMeanwhile { name: String, found: String, now: String },
    #[error(
        "{holder} changes settings of that cluster already, and lives: it renews its lease, the setting \
         cluster.metadata.narrows_steerer; nothing was changed by this one that was not put back; end the other, or wait \
         until it has ended"
    )]
    Leased { holder: String },
    #[error(
        "the cluster that answers is {found}, and the changes were made on {expected}; the one \
         that answers was left alone"
    )]
    OtherCluster { expected: String, found: String },
    #[error(
        "the cluster is busy and may yet make the index {index}, which is to be deleted: try again once it is less busy"
    )]
    Busy { index: String },
    /// Somebody did not want to wait until everything was put back.
    #[error("somebody said stop once more before everything was put back")]
    BrokenOff,
    /// An operation on a file failed.
    #[error("cannot {what} {path}: {source}")]
    Io { what: &'static str, path: PathBuf, source: io::Error },
    /// A transcript that cannot be played.
    #[error("{path} {why}")]
    Transcript { path: PathBuf, why: String },
    #[error("the transcript has no answer to {method} {path}")]
    NotRecorded { method: String, path: String },
    #[error("{path} is full; make room there, or set TMPDIR to a directory that has some")]
    NoRoom { path: PathBuf },
    #[error("\"{what}\" is not an address to use: {why}")]
    Address { what: String, why: String },
    /// TLS cannot be set up as it was asked for.
    #[error("{0}")]
    Tls(String),
    /// The peer is not trusted, or speaks another protocol.
    #[error("{address} {why}")]
    Peer { address: String, why: String },
    #[error(
        "{address} does not accept {sent} (401{}); set NARROWS_USER and NARROWS_PASSWORD, \
         NARROWS_API_KEY or NARROWS_TOKEN, or give --credentials FILE", after_colon(.reason)
    )]
    Unauthorized { address: String, sent: &'static str, reason: String },
    #[error("{method} {} is forbidden (403{}); {needs}", shown(.path), after_colon(.reason))]
    Forbidden { method: String, path: String, reason: String, needs: &'static str },
    #[error("none of {} hosts answered: {}", .tried.len(), one_by_one(.tried))]
    NoHost { tried: Vec<Error> },
    #[error("the link cannot {0}")]
    Link(io::Error),
    /// Something that only the virtual world can do.
    #[error("{target} cannot {what}; run it with --on virtual")]
    VirtualOnly { target: &'static str, what: &'static str },
    /// A fault that this place cannot bring about.
    #[error("{target} cannot {what}{}", after_colon(.why))]
    NoFault { target: &'static str, what: String, why: String },
    /// Synthetic documents could not be loaded.
    #[error("{node} cannot load shard {shard} of {index}: {reason}")]
    Load { node: String, index: String, shard: u32, reason: String },
    /// Indices could not be put in place.
    #[error("the indices of the twin cannot be put in place: {reason}")]
    Place { reason: String },
}

impl Error {
    /// Whether it would be the same if it were asked again: the cluster does not have it, or keeps it from us. What a
    /// transcript lacks was not asked again then.
    pub(crate) fn is_absent(&self) -> bool {
        match self {
            Error::Refused { status, .. } => matches!(status, 400 | 401 | 404 | 405 | 410),
            Error::Forbidden { .. } | Error::NotRecorded { .. } => true,
            _ => false,
        }
    }

    /// Whether what was asked for cannot be done as it was asked: nothing was started or changed.
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            Error::Missing { .. }
                | Error::NoCache
                | Error::NoDistribution { .. }
                | Error::NoEncryption { .. }
                | Error::NoRelease { .. }
                | Error::RemoteTaken { .. }
                | Error::NoFollowing { .. }
                | Error::SitesOfOne
                | Error::OneCluster
                | Error::TooFewNodes { .. }
                | Error::Red { .. }
                | Error::Unfamiliar { .. }
                | Error::Transient { .. }
                | Error::VirtualOnly { .. }
                | Error::Leased { .. }
        )
    }
}

fn last_lines(lines: &[String]) -> String {
    if lines.is_empty() { String::new() } else { format!("; it said:\n  {}", lines.join("\n  ")) }
}

/// A path without its parameters where these are a list of what is read: nobody looks for that in a sentence.
pub(crate) fn shown(path: &str) -> String {
    match path.split_once('?') {
        Some((short, _)) if path.len() > PATH_BYTES_MAX => format!("{short}?..."),
        _ => path.to_owned(),
    }
}

/// What is not known of a request that changes something.
fn may_be_done(method: &str, path: &str) -> &'static str {
    if changes_nothing(method, path) { "" } else { ", which may have been done" }
}

fn one_by_one(errors: &[Error]) -> String {
    errors.iter().map(Error::to_string).collect::<Vec<_>>().join("; ")
}

fn after_colon(reason: &str) -> String {
    if reason.is_empty() { String::new() } else { format!(": {reason}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_has_no_list_of_all_that_is_read() {
        let said = |path: String| Error::NotJson { path, reason: "so".to_owned() }.to_string();
        let long = said(format!("/_nodes/stats?filter_path={}", "nodes.*.name,".repeat(20)));
        assert_eq!(long, "/_nodes/stats?... was answered with something that is no JSON: so");
        let short = said("/logs/_search?q=error".to_owned());
        assert!(short.starts_with("/logs/_search?q=error was answered"), "{short}");
    }
}
