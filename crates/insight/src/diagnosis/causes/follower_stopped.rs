//! A follower does not run: it stopped for good, somebody paused it, it cannot begin, or all its reads fail.

use record::observation::Follower;

use crate::diagnosis::answers::Answer;
use crate::diagnosis::cause::{Cause, Judge};
use crate::diagnosis::class::Class;
use crate::diagnosis::finding::{Evidence, Finding, Lift, RECOVERY};
use crate::diagnosis::following::Following;
use crate::diagnosis::rivals::Against;
use crate::diagnosis::rule::Rule;
use crate::diagnosis::series::Transfer;
use crate::diagnosis::threshold::{CATCHES_UP, LAG_OPS, STAGE, Threshold, at};

const STRENGTH: Threshold = at("strength", 1.0);

pub(super) static CAUSE: Cause = Cause {
    rule: Rule {
        class: Class::FollowerStopped,
        label: "follower stopped",
        signature: "a fatal exception, or a status that says so; reads that all fail while it lags; a recovery from \
                    remote that cannot begin",
        reads: "_ccr/stats fatal_exception, failed_read_requests, read_exceptions; _ccr/info status; \
                _plugins/_replication/{index}/_status; _recovery stage, narrows.failure",
        thresholds: &[STRENGTH, STAGE, LAG_OPS, CATCHES_UP],
        lift: "resume_follow after its cause is gone; follow anew where operations or history are lost",
        default: "",
        probe: "",
    },
    judges: &[Judge::Following(judge)],
};

/// A recovery from remote that cannot begin, and is tried again and again; none where it can.
pub(crate) fn cannot_begin(transfer: &Transfer<'_>) -> Option<Finding> {
    let last = transfer.last();
    let is_there = last.is_from_remote() && !last.ended && last.stage == "INIT";
    let why =
        last.failure.as_ref().filter(|_| is_there && transfer.share_in("INIT") >= STAGE.value)?;
    let name = transfer.name();
    let alias = last.repository.as_deref().and_then(|name| name.strip_prefix("_ccr_"));
    let alias = alias.unwrap_or("<alias>");
    let action = format!(
        "remove the reason: it is tried again by itself. GET _remote/info says how many nodes of [{alias}] are \
         connected, cluster.remote.{alias}.seeds where they are reached"
    );
    let sentence = format!("{name} cannot begin to follow [{alias}]: {why}");
    Some(Finding {
        subjects: vec![name],
        evidence: vec![Evidence::new(RECOVERY, "narrows.failure", why)],
        lift: Some(Lift::action(&action)),
        ..Finding::of(&CAUSE.rule, alias, STRENGTH.value, sentence)
    })
}

fn judge(following: &Following<'_, '_>) -> Answer {
    let now = following.now;
    let name = now.shard_name();
    if let Some(why) = &now.fatal {
        let sentence = format!("{name} stopped following: {why}");
        return Ok(Finding {
            evidence: vec![Evidence::new(following.api(), "fatal_exception.reason", why)],
            ..following.finding(&CAUSE.rule, STRENGTH.value, sentence)
        });
    }
    if let Some(found) = fails_to_read(following) {
        return Ok(found);
    }
    let against = || Against::figure("no fatal exception, and no status that says so");
    let status = now.status.as_ref().filter(|_| now.is_stopped()).ok_or_else(against)?;
    let is_paused = status == "PAUSED";
    let what = if is_paused { "is paused" } else { "has failed" };
    let why = now.reason.as_deref().map_or_else(String::new, |why| format!(": {why}"));
    // Elasticsearch gives no reason.
    let (api, resume) = match now.reason {
        Some(_) => {
            ("_plugins/_replication/{index}/_status", "_plugins/_replication/{index}/_resume")
        }
        None => ("_ccr/info", "{index}/_ccr/resume_follow"),
    };
    let action = match is_paused {
        true => format!("POST {} if it is to go on", resume.replace("{index}", &now.index)),
        false => format!("read the reason, remove its cause, and start {} anew", now.index),
    };
    Ok(Finding {
        evidence: vec![Evidence::new(api.replace("{index}", &now.index), "status", status)],
        lift: Some(Lift::action(&action)),
        ..following.finding(&CAUSE.rule, STRENGTH.value, format!("{name} {what}{why}"))
    })
}

/// None of its reads succeeds: it has not stopped, and comes no nearer to its leader.
fn fails_to_read(following: &Following<'_, '_>) -> Option<Finding> {
    let lagging = following.lagging().ok()?;
    let (then, now) = (lagging.then, following.now);
    let rise = |counter: fn(&Follower) -> Option<u64>| counter(now)?.checked_sub(counter(then)?);
    let failed = rise(|one| one.failed_reads).filter(|count| *count > 0)?;
    rise(|one| one.ops_read).filter(|read| *read == 0)?;
    let why = now.reason.as_deref().map_or_else(String::new, |why| format!(": {why}"));
    let sentence =
        format!("{} reads nothing, for its reads fail and are tried again{why}", now.shard_name());
    let failed =
        Evidence::new(following.api(), "failed_read_requests", format!("rose by {failed}"));
    let alias = now.remote.as_deref().unwrap_or("<alias>");
    let action = format!(
        "remove the reason: it goes on by itself. GET _remote/info says how many nodes of [{alias}] are connected"
    );
    Some(Finding {
        evidence: vec![lagging.evidence, failed],
        lift: Some(Lift::action(&action)),
        ..following.finding(&CAUSE.rule, STRENGTH.value, sentence)
    })
}
