//! A follower does not run: it stopped for good, somebody paused it, it cannot begin, all its reads fail, or it stands
//! still though nothing fails.

use record::observation::AutoFollowError;
use record::units::show_seconds;

use super::{Against, Answer, Cause, Class, Judge, Rule};
use crate::diagnosis::copying::alias_of;
use crate::diagnosis::finding::{Evidence, Finding, Lift, RECOVERY, few};
use crate::diagnosis::following::Following;
use crate::diagnosis::series::{MS_PER_S, Series, Transfer};
use crate::diagnosis::threshold::{
    CATCHES_UP_S, FALLS_BACK, LAG_OPS, LAG_S, SILENT_S, STAGE, STILL_S, Threshold, at,
};

const STRENGTH: Threshold = at("strength", 1.0);
const STRENGTH_STILL: Threshold = at("strength where it stands still and nothing fails", 0.8);
const RECENT_S: Threshold = at("seconds for which a failure of auto-follow is told", 600.0);

/// How Elasticsearch and OpenSearch say that a leader has given up what its follower has not read yet, or that it has
/// another history.
const LOST: &[&str] =
    &["no longer available for replicating", "Retention lease doesn't exist", "history uuid"];
const KEPT_FOR: &str = "index.soft_deletes.retention_lease.period";
/// How OpenSearch's plugin begins the reason where it paused a follower itself.
const BY_ITSELF: &str = "AutoPaused";

pub(super) static CAUSE: Cause = Cause {
    rule: Rule {
        class: Class::FollowerStopped,
        label: "follower stopped",
        signature: "a fatal exception, or a status that says so; reads that all fail; a recovery from \
                    remote that cannot begin; checkpoints that stand still though nothing fails",
        reads: "_ccr/stats fatal_exception, failed_read_requests, read_exceptions, time_since_last_read_millis, \
                outstanding_read_requests, recent_auto_follow_errors; _ccr/info status; _remote/info connected; \
                _plugins/_replication/{index}/_status; _plugins/_replication/follower_stats; _recovery stage, \
                narrows.failure",
        thresholds: &[
            STRENGTH, STRENGTH_STILL, RECENT_S, STAGE, LAG_OPS, CATCHES_UP_S, LAG_S, FALLS_BACK,
            STILL_S, SILENT_S,
        ],
        lift: "resume_follow after its cause is gone; follow anew where operations or history are lost",
        default: "",
        probe: "",
    },
    judges: &[Judge::Following(judge)],
};

/// A recovery from remote that cannot begin, and is tried again and again; none where it can.
pub(crate) fn cannot_begin(series: &Series<'_>, transfer: &Transfer<'_>) -> Option<Finding> {
    let last = transfer.last();
    let is_there = last.is_from_remote() && !last.ended && last.stage == "INIT";
    if !is_there || transfer.share_in("INIT") < STAGE.value {
        return None;
    }
    let alias = last.repository.as_deref().and_then(alias_of).unwrap_or("<alias>");
    let failed = last.failure.as_ref();
    let failed = failed.map(|why| (why.as_str(), Evidence::new(RECOVERY, "narrows.failure", why)));
    let is_cut_off = |evidence| ("no node of it is connected", evidence);
    let (why, evidence) = failed.or_else(|| cut_off(series, alias).map(is_cut_off))?;
    let name = transfer.name();
    let action = format!(
        "remove the reason: it is tried again by itself. GET _remote/info says how many nodes of [{alias}] are \
         connected, cluster.remote.{alias}.seeds where they are reached"
    );
    let sentence = format!("{name} cannot begin to follow [{alias}]: {why}");
    Some(Finding {
        subjects: vec![name],
        evidence: vec![evidence],
        lift: Some(Lift::action(&action)),
        ..Finding::of(&CAUSE.rule, alias, STRENGTH.value, sentence)
    })
}

/// What keeps followers from beginning, or from reading anything, a sentence each: other clusters that are cut off, and
/// indices that auto-follow could not begin to follow lately. It tries them again every minute. The connections are
/// those of the node that was asked, and searches may leave a cluster out that is not there (`skip_unavailable`).
pub(crate) fn held_off(series: &Series<'_>) -> Vec<String> {
    let cut_off = series.remotes().iter().filter(|remote| remote.connected == Some(false));
    let cut_off = cut_off.map(|remote| {
        format!(
            "no node of the remote cluster {} is connected to the node that was asked (_remote/info): where that is so \
             of all nodes, what follows it reads nothing, and searches of it fail or leave it out",
            remote.alias
        )
    });
    let mut all = few(cut_off.collect(), "more remote clusters are cut off");
    let (_, nodes) = series.last_nodes().unwrap_or_default();
    let now_ms = nodes.iter().filter_map(|node| node.timestamp_ms).max();
    let is_recent = |error: &&AutoFollowError| {
        let ago_ms = now_ms.zip(error.at_ms).map(|(now_ms, at_ms)| now_ms.saturating_sub(at_ms));
        ago_ms.is_some_and(|ago_ms| ago_ms as f64 / MS_PER_S <= RECENT_S.value)
    };
    let failed = series.last().into_iter().flat_map(|look| &look.auto_follow_errors);
    all.extend(failed.filter(is_recent).map(|error| {
        // A pattern alone stands there where its cluster was not reached; names of indices follow a colon.
        let what = if error.leader.contains(':') { "" } else { "what fits the pattern " };
        format!("auto-follow cannot begin to follow {what}{}: {}", error.leader, error.reason)
    }));
    all
}

/// That no node of a remote cluster is connected; none where one is, or where that is not told.
fn cut_off(series: &Series<'_>, alias: &str) -> Option<Evidence> {
    let remote = series.remotes().iter().find(|remote| remote.alias == alias)?;
    let connected = Evidence::new("_remote/info", format!("{alias}.connected"), "false");
    (remote.connected == Some(false)).then_some(connected)
}

/// The one remote cluster that is known: OpenSearch's plugin does not tell which one a follower has its leader in.
fn only_remote<'a>(series: &Series<'a>) -> Option<&'a str> {
    match series.remotes() {
        [remote] => Some(remote.alias.as_str()),
        _ => None,
    }
}

/// Whether a follower cannot go on from where it is, for its leader has not kept what comes next.
fn is_lost(reason: &str) -> bool {
    LOST.iter().any(|words| reason.contains(words))
}

fn judge(following: &Following<'_, '_>) -> Answer {
    let now = following.now;
    let name = now.shard_name();
    if let Some(why) = &now.fatal {
        let sentence = format!("{name} stopped following: {why}");
        let index = &now.index;
        let action = match is_lost(why) {
            true => format!(
                "begin anew: POST {index}/_ccr/pause_follow and {index}/_close, then PUT {index}/_ccr/follow, which \
                 takes all files again; {KEPT_FOR} of the leader says how long a follower may be away"
            ),
            false => format!(
                "remove the reason, then POST {index}/_ccr/pause_follow and {index}/_ccr/resume_follow"
            ),
        };
        return Ok(Finding {
            evidence: vec![following.evidence("fatal_exception.reason", why)],
            lift: Some(Lift::action(&action)),
            ..following.finding(&CAUSE.rule, STRENGTH.value, sentence)
        });
    }
    if let Some(found) = fails_to_read(following).or_else(|| stands_still(following)) {
        return Ok(found);
    }
    let against = || Against::figure("no fatal exception, and no status that says so");
    let status = now.status.as_ref().filter(|_| now.is_stopped()).ok_or_else(against)?;
    let is_paused = status == "PAUSED";
    let what = if is_paused { "is paused" } else { "has failed" };
    // OpenSearch lists a reason for each shard, and ends the list with a comma.
    let why = now.reason.as_deref().map(|why| why.trim_end_matches([',', ' ']));
    let why = why.map_or_else(String::new, |why| format!(": {why}"));
    let told = |api: &str, action: String| Finding {
        evidence: vec![Evidence::new(api.replace("{index}", &now.index), "status", status)],
        lift: Some(Lift::action(&action)),
        ..following.finding(&CAUSE.rule, STRENGTH.value, format!("{name} {what}{why}"))
    };
    let index = &now.index;
    // Elasticsearch gives no reason.
    let Some(reason) = now.reason.as_deref() else {
        let action = format!("POST {index}/_ccr/resume_follow if it is to go on");
        return Ok(told("_ccr/info", action));
    };
    let resume = format!("POST _plugins/_replication/{index}/_resume");
    let action = if !is_paused || is_lost(reason) {
        format!(
            "read the reason, remove its cause, and begin anew: POST _plugins/_replication/{index}/_stop, delete \
             {index}, PUT _plugins/_replication/{index}/_start"
        )
    } else if reason.starts_with(BY_ITSELF) {
        format!("remove the reason, then {resume}")
    } else {
        format!("{resume} if it is to go on")
    };
    Ok(told("_plugins/_replication/{index}/_status", action))
}

/// None of its reads succeeds: it has not stopped, and comes no nearer to its leader.
fn fails_to_read(following: &Following<'_, '_>) -> Option<Finding> {
    let failed = following.failing_reads()?;
    let now = following.now;
    let why = now.reason.as_deref().map_or_else(String::new, |why| format!(": {why}"));
    let sentence =
        format!("{} reads nothing, for its reads fail and are tried again{why}", now.shard_name());
    let lag = following.lagging().ok().map(|lagging| lagging.evidence);
    let doubt = "how far it is behind is not known meanwhile: its reads tell what its leader has";
    let alias = now.remote.as_deref().or_else(|| only_remote(following.series));
    let leader =
        alias.map_or_else(|| "its leader's cluster".to_owned(), |alias| format!("[{alias}]"));
    let cut_off = alias.and_then(|alias| cut_off(following.series, alias));
    let failed = following.rose("failed_read_requests", failed);
    let action = format!(
        "remove the reason: it goes on by itself. GET _remote/info says how many nodes of {leader} are connected"
    );
    Some(Finding {
        doubt: lag.is_none().then(|| doubt.to_owned()),
        evidence: lag.into_iter().chain([failed]).chain(cut_off).collect(),
        lift: Some(Lift::action(&action)),
        ..following.finding(&CAUSE.rule, STRENGTH.value, sentence)
    })
}

/// It is behind, has not stopped, and neither reads nor writes, though nothing fails.
fn stands_still(following: &Following<'_, '_>) -> Option<Finding> {
    let still = show_seconds(following.still_s()?.floor());
    let lag = following.lagging().ok()?.evidence;
    let (now, index) = (following.now, &following.now.index);
    // Figures stand in the evidence: shards that stand still alike are one finding.
    let found = |why: &str, evidence: Evidence, action: String| Finding {
        evidence: vec![lag, evidence],
        lift: Some(Lift::action(&action)),
        ..following.finding(
            &CAUSE.rule,
            STRENGTH_STILL.value,
            format!("{} stands still: it is behind its leader, {why}", now.shard_name()),
        )
    };
    if now.shard.is_none() {
        let evidence = following.evidence("operations_read", format!("rose by 0 within {still}"));
        let action = format!(
            "GET _plugins/_replication/{index}/_status: where it says SYNCING, POST \
             _plugins/_replication/{index}/_pause and {index}/_resume begin its tasks anew; where it stands still \
             again, read the log of the node that has its primary"
        );
        let doubt = "a read that takes longer than one looked looks the same: look for longer";
        let why = "and reads nothing, though nothing fails";
        return Some(Finding { doubt: Some(doubt.to_owned()), ..found(why, evidence, action) });
    }
    let anew = format!(
        "POST {index}/_ccr/pause_follow, then {index}/_ccr/resume_follow begin its task anew; parameters that are not \
         named go back to their defaults"
    );
    if now.outstanding_reads == Some(0) {
        let evidence = following.evidence("time_since_last_read_millis", still);
        let action = format!(
            "{anew}; where it stands still again, GET _cat/shards/{index} names the nodes that have its primaries, and \
             their logs say why"
        );
        return Some(found("and asks for nothing, though nothing fails", evidence, action));
    }
    let alias = now.remote.as_deref().unwrap_or("<alias>");
    let action = format!(
        "its connections may be dead, as a firewall that forgets idle ones leaves them: set \
         cluster.remote.{alias}.transport.ping_schedule, or a shorter net.ipv4.tcp_keepalive_time at both ends; {anew}"
    );
    let reads = now.outstanding_reads.map_or_else(String::new, |reads| reads.to_string());
    let evidence = following.evidence(
        "outstanding_read_requests, time_since_last_read_millis",
        format!("{reads}, {still}"),
    );
    let doubt = "large reads over a path that hardly carries anything look the same";
    let why = "and none of its reads is answered";
    Some(Finding { doubt: Some(doubt.to_owned()), ..found(why, evidence, action) })
}
