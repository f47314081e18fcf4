//! A follower reads too slowly from its leader.

use crate::diagnosis::answers::Answer;
use crate::diagnosis::cause::{Cause, Judge};
use crate::diagnosis::class::Class;
use crate::diagnosis::finding::{Against, Evidence, Finding, Gain, Lift};
use crate::diagnosis::following::{CCR_STATS, Following};
use crate::diagnosis::rule::Rule;
use crate::diagnosis::series::MS_PER_S;
use crate::diagnosis::threshold::{CATCHES_UP, LAG_OPS, Threshold, at};
use crate::words;

/// The network holds reads where at least this share of their time is not the leader's work; otherwise the leader does.
const READ_NETWORK: Threshold = at("read time outside of the leader over read time", 0.5);
/// Fewer reads than the default were somebody's choice. Twice as many are worth trying, and the default at least.
const READS: Threshold = at("reads under way, by default", 12.0);
const RAISE: Threshold = at("times the reads to try", 2.0);

pub(super) static CAUSE: Cause = Cause {
    rule: Rule {
        class: Class::FollowerReader,
        label: "follower reader",
        signature: "the lag does not fall, reads are all under way, and most of their time is not the leader's",
        reads: "_ccr/stats total_read_time_millis, total_read_remote_exec_time_millis, outstanding_read_requests",
        thresholds: &[LAG_OPS, CATCHES_UP, READ_NETWORK, READS, RAISE],
        lift: "max_outstanding_read_requests, max_read_request_operation_count, max_read_request_size (follow \
               parameters)",
        default: "12, 5120 and 32mb",
        probe: "double the reads",
    },
    judges: &[Judge::Following(judge)],
};

fn judge(following: &Following<'_, '_>) -> Answer {
    let lagging = following.lagging()?;
    let (then, now) = (lagging.then, following.now);
    let rise = |now: Option<u64>, then: Option<u64>| now?.checked_sub(then?);
    let times = rise(now.read_ms, then.read_ms).zip(rise(now.read_remote_ms, then.read_remote_ms));
    let (read_ms, leader_ms) =
        times.ok_or_else(|| Against::untold("the time that its reads take is not told"))?;
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
        if is_the_leaders { "the leader's work" } else { "on the way and not the leader's work" }
    );
    let times = format!("rose by {read_ms:.0} and {leader_ms:.0} ms");
    let fields = "total_read_time_millis, total_read_remote_exec_time_millis";
    let mut evidence = vec![lagging.evidence, Evidence::new(CCR_STATS, fields, times)];
    if let Some(reads) = rise(now.reads, then.reads).filter(|reads| *reads > 0) {
        let mut value = format!("{reads}, {:.0} ms each", read_ms / reads as f64);
        if let Some(ops) = rise(now.ops_read, then.ops_read) {
            value += &format!(" for {:.0} operations", ops as f64 / reads as f64);
        }
        evidence.push(Evidence::new(CCR_STATS, "successful_read_requests", value));
    }
    if let Some(bytes) = rise(now.bytes_read, then.bytes_read) {
        let seconds = following.series.span_ms() / MS_PER_S;
        let value = words::rate(bytes as f64 / seconds);
        evidence.push(Evidence::new(CCR_STATS, "bytes_read", value));
    }
    if let Some(reads) = now.outstanding_reads {
        evidence.push(Evidence::new(CCR_STATS, "outstanding_read_requests", reads.to_string()));
    }
    let found = Finding { evidence, ..following.finding(&CAUSE.rule, share, sentence) };
    Ok(if is_the_leaders {
        let action = "look at the leader: its disks, its cores, and what else it serves";
        Finding { lift: Some(Lift::action(action)), ..found }
    } else {
        let under_way = now.outstanding_reads.filter(|reads| *reads > 0);
        let under_way = under_way.map_or(READS.value, |reads| reads as f64);
        let raised = (under_way * RAISE.value).max(READS.value);
        let formula = format!("{raised} reads under way / {under_way}");
        Finding {
            gain: Some(Gain { factor: raised / under_way, formula }),
            next: Some("the link, then the follower's writes".to_owned()),
            ..found
        }
    })
}
