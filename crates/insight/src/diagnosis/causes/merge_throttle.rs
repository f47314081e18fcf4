//! Merges hold indexing back while operations are replayed.
//!
//! `InternalEngine.index` of Elasticsearch 6, and of 7 for a time, made recoveries wait for this throttle, and clients
//! not. Since then it is as it was meant: what is replayed passes (read in the bytecode of Elasticsearch 7.10.2 and of
//! OpenSearch 1.3.13, 2.19.1 and 3.0.0).

use record::observation::{Identity, UNKNOWN_FLAVOUR};

use super::{Against, Answer, Cause, Class, Judge, Rule};
use crate::diagnosis::finding::Finding;
use crate::diagnosis::knobs::REPLAY_PASSES_FROM;
use crate::diagnosis::replaying::Replaying;
use crate::diagnosis::threshold::{STAGE, Threshold, VERDICT, at};

/// Merges hold indexing back for this share of the time.
const MERGES: Threshold = at("merge throttle time over wall time", 0.2);

pub(super) static CAUSE: Cause = Cause {
    rule: Rule {
        class: Class::MergeThrottle,
        label: "merge throttle",
        signature: "before Elasticsearch 7.10: merges hold indexing back while operations are replayed",
        reads: "_nodes/stats indices.indexing.is_throttled, indices.merges.total_throttled_time_in_millis",
        thresholds: &[STAGE, MERGES, VERDICT],
        lift: "index.merge.scheduler.max_thread_count",
        default: "max(1, min(4, cores / 2))",
        probe: "a lull in indexing",
    },
    judges: &[Judge::Replaying(judge)],
};

/// Whether a replay is known to go on however much merges hold indexing back.
fn passes(cluster: &Identity) -> bool {
    match cluster.flavour.as_str() {
        "elasticsearch" => cluster.release() >= Some(REPLAY_PASSES_FROM),
        flavour => flavour != UNKNOWN_FLAVOUR,
    }
}

fn judge(recovery: &Replaying<'_, '_>) -> Answer {
    if recovery.series.last().is_some_and(|look| passes(&look.cluster)) {
        return Err(Against::figure("in this release a replay passes the throttle of merges"));
    }
    let untold = || Against::untold("the target tells nothing of its merges");
    let target = &recovery.target.as_ref().ok_or_else(untold)?.last().name;
    let merges = recovery.merges.ok_or_else(untold)?;
    if merges < MERGES.value {
        let what = format!("merges on {target} hold indexing back for");
        return Err(Against::below(what, merges, MERGES));
    }
    let name = recovery.transfer.name();
    let sentence = format!("{name} replays operations while merges on {target} hold indexing back");
    Ok(Finding {
        subjects: vec![name],
        evidence: recovery.evidence.clone(),
        ..Finding::of(&CAUSE.rule, target, VERDICT.up_to_one(merges), sentence)
    })
}
