//! A follower reads too slowly from its leader.

use record::names::listed;
use record::observation::{FollowLimits, Follower};
use record::units::show_size_setting;

use super::{Against, Answer, Cause, Class, Judge, Rule, proxy};
use crate::diagnosis::finding::{Evidence, Finding, Gain, Lift, Next};
use crate::diagnosis::following::{Following, Lagging};
use crate::diagnosis::series::MS_PER_S;
use crate::diagnosis::threshold::{CATCHES_UP_S, FALLS_BACK, LAG_OPS, LAG_S, Threshold, at};
use crate::words;

/// The network holds reads where at least this share of their time is not the leader's work; otherwise the leader does.
const READ_NETWORK: Threshold = at("read time outside of the leader over read time", 0.5);
/// Fewer reads than the default were somebody's choice. Twice as many are worth trying, and the default at least.
const READS: Threshold = at("reads under way, by default", 12.0);
const RAISE: Threshold = at("times the reads to try", 2.0);
/// The same of what comes with each. A read that is bounded by it comes up to it.
const READ_OPS: Threshold = at("operations of a read, by default", 5120.0);
const READ_BYTES: Threshold = at("bytes of a read, by default", 33_554_432.0);
const FILLED: Threshold = at("what comes with a read over its bound, for that to hold", 0.9);
const FULL_PATH: &str = "a path that is full looks the same, and more reads bring nothing there: compare bytes_read \
                         with what it carries";
/// Reads that fail so often are slow for that.
const FAILING: Threshold = at("reads that fail over all reads", 0.5);

/// Where the time of reads is not told, all that is read is written at once, and it lags: reads hold, wherever their
/// time goes.
const ALONE: Threshold = at("strength where the time of reads is not told", 0.6);
const PLUGIN_READERS: Threshold =
    at("concurrent_readers_per_shard of OpenSearch's plugin, by default", 2.0);
const READERS: &str = "plugins.replication.follower.concurrent_readers_per_shard";

pub(super) static CAUSE: Cause = Cause {
    rule: Rule {
        class: Class::FollowerReader,
        label: "follower reader",
        signature: "the lag does not fall, reads are all under way, and most of their time is not the leader's",
        reads: "_ccr/stats total_read_time_millis, total_read_remote_exec_time_millis, outstanding_read_requests, \
                failed_read_requests; _ccr/info parameters; _plugins/_replication/follower_stats operations_read, \
                operations_written, throttled_read_requests",
        thresholds: &[
            LAG_OPS, CATCHES_UP_S, LAG_S, FALLS_BACK, READ_NETWORK, READS, RAISE, READ_OPS,
            READ_BYTES, FILLED, FAILING, ALONE, PLUGIN_READERS,
        ],
        lift: "max_outstanding_read_requests, max_read_request_operation_count, max_read_request_size (follow \
               parameters)",
        default: "12, 5120 and 32mb",
        probe: "double the reads",
    },
    judges: &[Judge::Following(judge)],
};

fn judge(following: &Following<'_, '_>) -> Answer {
    let lagging = following.lagging()?;
    if following.failing_reads().is_some() {
        return Err(Against::figure("none of its reads succeeds"));
    }
    if following.still_s().is_some() {
        return Err(Against::figure("it stands still, and reads nothing"));
    }
    let now = following.now;
    let rise = |counter: fn(&Follower) -> Option<u64>| following.rise(counter);
    let times = rise(|one| one.read_ms).zip(rise(|one| one.read_remote_ms));
    let Some((read_ms, leader_ms)) = times else {
        // A shard is Elasticsearch's, whose counters begin anew where its task moves.
        return match now.shard {
            None => by_operations(following, lagging),
            Some(_) => Err(untold()),
        };
    };
    if read_ms == 0 {
        return Err(Against::figure("no read was answered meanwhile"));
    }
    let (read_ms, leader_ms) = (read_ms as f64, leader_ms as f64);
    let network = 1.0 - (leader_ms / read_ms).min(1.0);
    let is_the_leaders = network < READ_NETWORK.value;
    let share = if is_the_leaders { 1.0 - network } else { network };
    let sentence = format!(
        "{} reads slowly: {} of the read time is {}",
        now.shard_name(),
        words::percent(share),
        if is_the_leaders { "the leader's work" } else { "network time, not the leader's work" }
    );
    let times = format!("rose by {read_ms:.0} and {leader_ms:.0} ms");
    let fields = "total_read_time_millis, total_read_remote_exec_time_millis";
    let mut evidence = vec![lagging.evidence, following.evidence(fields, times)];
    let reads = rise(|one| one.reads).filter(|reads| *reads > 0).map(|reads| reads as f64);
    let of_each = |sum: Option<u64>| Some(sum? as f64 / reads?);
    let ops = of_each(rise(|one| one.ops_read));
    if let Some(reads) = reads {
        let mut value = format!("{reads:.0}, {:.0} ms each", read_ms / reads);
        if let Some(ops) = ops {
            value += &format!(" for {ops:.0} operations");
        }
        evidence.push(following.evidence("successful_read_requests", value));
    }
    let bytes_read = rise(|one| one.bytes_read);
    if let Some(bytes) = bytes_read {
        let seconds = following.series.span_ms() / MS_PER_S;
        let value = words::rate(bytes as f64 / seconds);
        evidence.push(following.evidence("bytes_read", value));
    }
    if let Some(reads) = now.outstanding_reads {
        evidence.push(following.evidence("outstanding_read_requests", reads.to_string()));
    }
    let found = Finding { evidence, ..following.finding(&CAUSE.rule, share, sentence) };
    if let Some(failing) = mostly_fails(following, reads.unwrap_or(0.0), &found) {
        return Ok(failing);
    }
    Ok(if is_the_leaders {
        let action = "look at the leader: its disks, its cores, and what else it serves";
        Finding { lift: Some(Lift::action(action)), ..found }
    } else {
        let found = with_larger_reads(found, now, ops, of_each(bytes_read));
        let each_ms = reads.map(|reads| (read_ms - leader_ms) / reads);
        let of_sockets = each_ms.and_then(|each_ms| proxy::of_reads(following, &found, each_ms));
        of_sockets.unwrap_or(found)
    })
}

/// A bound of each read that is lower than by default, and that reads come up to.
struct Small {
    parameter: &'static str,
    now: String,
    default: String,
    factor: f64,
}

impl Small {
    /// None where it is as by default or larger, or where less comes with `each` read.
    fn of(
        parameter: &'static str,
        now: Option<u64>,
        default: Threshold,
        each: Option<f64>,
        show: fn(u64) -> String,
    ) -> Option<Small> {
        let now = now.filter(|now| *now > 0)?;
        let is_small = (now as f64) < default.value && each? >= now as f64 * FILLED.value;
        is_small.then(|| Small {
            parameter,
            now: show(now),
            default: show(default.value as u64),
            factor: default.value / now as f64,
        })
    }
}

/// What the network holds is lifted by more reads under way, or by more in each; `ops` and `bytes` come with one.
fn with_larger_reads(
    mut found: Finding,
    now: &Follower,
    ops: Option<f64>,
    bytes: Option<f64>,
) -> Finding {
    let FollowLimits { reads, read_ops, read_bytes, .. } = now.limits.unwrap_or_default();
    let (in_ops, in_bytes) = ("max_read_request_operation_count", "max_read_request_size");
    let in_ops = Small::of(in_ops, read_ops, READ_OPS, ops, |count| count.to_string());
    let in_bytes = Small::of(in_bytes, read_bytes, READ_BYTES, bytes, show_size_setting);
    let small: Vec<Small> = [in_ops, in_bytes].into_iter().flatten().collect();
    let reads = reads.or(now.outstanding_reads).filter(|reads| *reads > 0);
    let reads = reads.map_or(READS.value, |reads| reads as f64);
    let raised = (reads * RAISE.value).max(READS.value);
    let is_usual = reads >= READS.value;
    let (mut tried, mut gain) = (Vec::new(), None);
    if !is_usual || small.is_empty() {
        tried.push(format!("max_outstanding_read_requests = {raised} ({reads} today)"));
        let formula = format!("{raised} reads under way / {reads}");
        gain = Some(Gain { factor: raised / reads, formula });
    }
    for Small { parameter, now, default, factor } in &small {
        tried.push(format!("{parameter} = {default} ({now} today)"));
        found.evidence.push(Evidence::new("_ccr/info", *parameter, now.clone()));
        gain = gain.or_else(|| {
            Some(Gain { factor: *factor, formula: format!("{default} a read / {now}") })
        });
    }
    let action = format!(
        "POST {index}/_ccr/pause_follow, then {index}/_ccr/resume_follow with {}; parameters that it does not name go \
         back to their defaults",
        listed(&tried),
        index = now.index
    );
    Finding {
        lift: Some(Lift::action(&action)),
        gain,
        next: Next::words("the link, then the follower's writes"),
        doubt: is_usual.then(|| FULL_PATH.to_owned()),
        ..found
    }
}

/// Reads of which at least half fail are not slow by their way.
fn mostly_fails(following: &Following<'_, '_>, reads: f64, found: &Finding) -> Option<Finding> {
    let failed = following.rise(|one| one.failed_reads).filter(|failed| *failed > 0)?;
    let share = failed as f64 / (failed as f64 + reads);
    if share < FAILING.value {
        return None;
    }
    let why = following.now.reason.as_deref();
    let sentence = format!(
        "{} reads slowly: {} of its reads fail and are tried again{}",
        following.now.shard_name(),
        words::percent(share),
        why.map_or_else(String::new, |why| format!(": {why}"))
    );
    let mut evidence = found.evidence.clone();
    evidence.push(following.rose("failed_read_requests", failed));
    let action = "remove the reason: where the leader refuses reads, look at its disks, its cores, and what else it \
                  serves";
    Some(Finding {
        evidence,
        lift: Some(Lift::action(action)),
        ..following.finding(&CAUSE.rule, share, sentence)
    })
}

fn untold() -> Against {
    Against::untold("the time that its reads take is not told")
}

/// OpenSearch's plugin tells operations that were read and written, and no time of reads.
fn by_operations(following: &Following<'_, '_>, lagging: Lagging<'_>) -> Answer {
    let (was, is) = following.unwritten(lagging.then).ok_or_else(untold)?;
    if is as f64 >= LAG_OPS.value {
        let why = format!("{is} operations were read and wait to be written");
        return Err(Against::figure(why));
    }
    let read = following.rise(|one| one.ops_read).ok_or_else(untold)?;
    let refused = following.rise(|one| one.throttled_reads);
    let failed = following.rise(|one| one.failed_reads);
    let refuses = refused > Some(0);
    let seconds = following.series.span_ms() / MS_PER_S;
    let sentence = format!(
        "{} reads slowly: {:.0} operations a second, which are written as they come{}",
        following.now.shard_name(),
        read as f64 / seconds,
        if refuses { "; the leader refused reads" } else { "" }
    );
    let waiting = format!("{was} then, {is} now");
    let mut evidence = vec![
        lagging.evidence,
        following.rose("operations_read", read),
        following.evidence("operations_read - operations_written", waiting),
    ];
    evidence.extend(refused.map(|count| following.rose("throttled_read_requests", count)));
    evidence.extend(failed.map(|count| following.rose("failed_read_requests", count)));
    let doubt = "whether the leader or the network takes the time is not told: see \
                 _plugins/_replication/leader_stats on the leader";
    let found = Finding {
        evidence,
        doubt: Some(doubt.to_owned()),
        ..following.finding(&CAUSE.rule, ALONE.value, sentence)
    };
    if refuses {
        let action = "look at the leader: its disks, its cores, and what else it serves";
        return Ok(Finding { lift: Some(Lift::action(action)), ..found });
    }
    let default = format!("{:.0}", PLUGIN_READERS.value);
    let setting = following.series.setting_or_default(READERS, &default);
    let readers = setting.value.parse().ok().filter(|readers: &f64| *readers > 0.0);
    let readers = readers.unwrap_or(PLUGIN_READERS.value);
    let raised = readers * RAISE.value;
    let to = Some(format!("{raised:.0}"));
    let lift = Lift::setting(READERS, setting, to, "read with more readers a shard");
    Ok(Finding {
        lift: Some(lift.with_default(Some(&default))),
        gain: Some(Gain {
            factor: raised / readers,
            formula: format!("{raised:.0} readers / {readers:.0}"),
        }),
        next: Next::words("the link, then the follower's writes"),
        ..found
    })
}
