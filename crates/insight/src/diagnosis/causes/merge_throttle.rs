//! Merges hold indexing back while operations are replayed.

use crate::diagnosis::answers::Answer;
use crate::diagnosis::cause::{Cause, Judge};
use crate::diagnosis::class::Class;
use crate::diagnosis::finding::Finding;
use crate::diagnosis::replaying::Replaying;
use crate::diagnosis::rivals::Against;
use crate::diagnosis::rule::Rule;
use crate::diagnosis::threshold::{STAGE, Threshold, VERDICT, at};

/// Merges hold indexing back for this share of the time.
const MERGES: Threshold = at("merge throttle time over wall time", 0.2);

pub(super) static CAUSE: Cause = Cause {
    rule: Rule {
        class: Class::MergeThrottle,
        label: "merge throttle",
        signature: "merges hold indexing back while operations are replayed",
        reads: "_nodes/stats indices.indexing.is_throttled, indices.merges.total_throttled_time_in_millis",
        thresholds: &[STAGE, MERGES, VERDICT],
        lift: "index.merge.scheduler.max_thread_count",
        default: "max(1, min(4, cores / 2))",
        probe: "a lull in indexing",
    },
    judges: &[Judge::Replaying(judge)],
};

fn judge(recovery: &Replaying<'_, '_>) -> Answer {
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
