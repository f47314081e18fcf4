//! A follower stopped for good.

use crate::diagnosis::answers::Answer;
use crate::diagnosis::cause::{Cause, Judge};
use crate::diagnosis::class::Class;
use crate::diagnosis::finding::{Against, Evidence, Finding};
use crate::diagnosis::following::{CCR_STATS, Following};
use crate::diagnosis::rule::Rule;
use crate::diagnosis::threshold::{Threshold, at};

const STRENGTH: Threshold = at("strength", 1.0);

pub(super) static CAUSE: Cause = Cause {
    rule: Rule {
        class: Class::FollowerStopped,
        label: "follower stopped",
        signature: "a fatal exception",
        reads: "_ccr/stats fatal_exception",
        thresholds: &[STRENGTH],
        lift: "resume_follow after its cause is gone; follow anew where operations or history are lost",
        default: "",
        probe: "",
    },
    judges: &[Judge::Following(judge)],
};

fn judge(following: &Following<'_, '_>) -> Answer {
    let against = || Against::figure("no fatal exception");
    let why = following.now.fatal.as_ref().ok_or_else(against)?;
    let sentence = format!("{} stopped following: {why}", following.now.shard_name());
    Ok(Finding {
        evidence: vec![Evidence::new(CCR_STATS, "fatal_exception.reason", why)],
        ..following.finding(&CAUSE.rule, STRENGTH.value, sentence)
    })
}
