//! The limiter of a repository holds a restore that is read from it, or a snapshot that is written to it.

use record::units::show_size_setting;

use super::answers::{Answer, Answers};
use super::class::Class;
use super::copying::Copying;
use super::finding::{Evidence, Finding, Gain, Lift, Next};
use super::knobs::to_step;
use super::rivals::Against;
use super::rule::Rule;
use super::series::Series;
use super::snapshots::{each_of, written};
use super::threshold::{RAISE_MIN, Threshold, USED_ALONE, at};
use crate::words;

/// A restore or a snapshot that goes at the rate of its repository's limit.
pub(crate) const REPOSITORY_STRENGTH: Threshold =
    at("strength of a repository's limit, at most", 0.95);

const DONE_BEFORE: &str =
    "nodes that were done before one looked may have written a part of it: no API tells";

/// OpenSearch 2.19.1 answers "trying to modify or unregister repository that is currently used".
const IN_USE: &str = "a cluster that refuses this of a repository in use takes it once";

/// The evidence that a repository's own limit holds restores from it.
const RESTORE_LIMIT: &str = "settings.max_restore_bytes_per_sec";

/// Whether a finding is that of [`restore`].
pub(crate) fn is_of_repository(finding: &Finding) -> bool {
    finding.evidence.iter().any(|line| line.field == RESTORE_LIMIT)
}

/// A restore that is read as fast as its repository's own limiter lets it, where that is lower than the node's.
pub(crate) fn restore(rule: &Rule, recovery: &Copying<'_, '_>) -> Option<Finding> {
    let (repository, value, limit) = recovery.repository_limit()?;
    let read = recovery.restored_bytes_per_s();
    let used = read / limit;
    let is_lower = recovery.limit_bytes_per_s.is_none_or(|of_node| limit < of_node);
    if !is_lower || used < USED_ALONE.value {
        return None;
    }
    let node = &recovery.node;
    let sentence = format!(
        "the repository {repository} is the bottleneck: {} of the {} that its max_restore_bytes_per_sec = {value} lets \
         {node} read",
        words::rate(read.min(limit)),
        words::rate(limit)
    );
    let api = format!("_snapshot/{repository}");
    let action = format!(
        "PUT {api} again with its settings and a higher max_restore_bytes_per_sec, while searches and indexing have \
         room; {IN_USE} the restore is over: to begin it anew, DELETE the index that it fills"
    );
    Some(Finding {
        subjects: vec![recovery.transfer.name()],
        evidence: vec![recovery.rate_evidence(), Evidence::new(api, RESTORE_LIMIT, value)],
        lift: Some(Lift::action(&action)),
        gain: Some(raised(limit)),
        next: Next::words("the path to the repository, disks or cores"),
        // Nothing else keeps a restore at the very rate that somebody set for it, however busy its machine is.
        ..Finding::of(rule, node, REPOSITORY_STRENGTH.at_most(used), sentence)
    })
}

/// A snapshot whose nodes write as fast as the limiter of its repository lets each of them.
pub(crate) fn snapshot(rule: &Rule, series: &Series<'_>) -> Option<Finding> {
    let all = written(series).into_iter().map(|one| {
        let used = one.bytes_per_s / (one.limit.1 * one.nodes_max);
        (one, used)
    });
    // No limiter lets more through than its rate: where more was written, nodes that are done by now wrote it, too.
    let held = all.filter(|(_, used)| (USED_ALONE.value..=1.0 / USED_ALONE.value).contains(used));
    let (one, used) = held.max_by(|a, b| a.1.total_cmp(&b.1))?;
    let (repository, (text, limit)) = (&one.snapshot.repository, one.limit);
    let sentence = format!(
        "the repository {repository} is the bottleneck: its max_snapshot_bytes_per_sec = {text} lets {} write {}; \
         {}",
        each_of(one.nodes_max),
        words::rate(limit),
        one.sentence()
    );
    let api = format!("_snapshot/{repository}");
    let action = format!(
        "nothing, if it is in time; otherwise PUT {api} again with its settings and a higher \
         max_snapshot_bytes_per_sec; {IN_USE} the snapshot is over, or ended by DELETE {api}/{}",
        one.snapshot.name
    );
    Some(Finding {
        subjects: vec![one.name()],
        evidence: vec![
            Evidence::new(
                "_snapshot/_status",
                "stats.processed.size_in_bytes / time_in_millis",
                words::rate(one.bytes_per_s),
            ),
            Evidence::new(api, "settings.max_snapshot_bytes_per_sec", text),
        ],
        lift: Some(Lift::action(&action)),
        gain: Some(raised(limit)),
        next: Next::words("the path to the repository, disks or cores"),
        doubt: one.snapshot.shards_done.filter(|done| *done > 0).map(|_| DONE_BEFORE.to_owned()),
        ruled_out: Answers::new(slower(used)).ruled_out(Class::RateLimit),
        ..Finding::of(rule, repository, REPOSITORY_STRENGTH.at_most(used), sentence)
    })
}

/// What a limit of a repository that is about twice as high would bring.
fn raised(limit: f64) -> Gain {
    let to = to_step(limit * RAISE_MIN.value, f64::INFINITY);
    let (text, today) = (show_size_setting(to), words::rate(limit));
    let formula = format!("{text} / {today}; if nothing else binds first");
    Gain { factor: to as f64 / limit, formula }
}

/// What speaks against all that would be slower than the limiter of a repository: the rate is the limiter's.
fn slower(used: f64) -> Vec<(Class, Answer)> {
    let (used, least) = (words::percent(used.min(1.0)), words::percent(USED_ALONE.value));
    let why = format!(
        "nodes write {used} of what the limiter lets through; what is slower would keep them below {least}"
    );
    let against = |class| -> (Class, Answer) { (class, Err(Against::figure(why.clone()))) };
    [Class::Bandwidth, Class::Cpu, Class::Disk].map(against).into()
}
