//! Operations are replayed, one batch after another.

use super::{Against, Answer, Cause, Class, Judge, Rule};
use crate::diagnosis::finding::{Finding, Gain, Lift, Next};
use crate::diagnosis::replaying::Replaying;
use crate::diagnosis::series::{Series, Transfer};
use crate::diagnosis::threshold::{STAGE, Threshold, at};
use crate::words;

/// Twice the batches are worth trying, up to the setting's maximum.
const RAISE: Threshold = at("times the batches at once to try", 2.0);
const BATCHES_MAX: Threshold = at("batches at once, at most", 4.0);

const MORE_BATCHES: &str = "replay more batches at once; fewer operations are retained where leases are short \
                            (index.soft_deletes.retention_lease.period)";
const AT_MAXIMUM: &str =
    "it is at its maximum: let indexing pause, or let the copy start from files";
const FEWER_OPERATIONS: &str = "let indexing pause, or let the copy start from files";
const OWN_LOG: &str = "let it finish: if its node is started again it begins anew, and no setting makes it faster; \
                       next time let indexing pause, POST _flush, and leave the node time to stop; a smaller \
                       index.translog.flush_threshold_size leaves less to replay after a crash";
const STUCK: &str = "none was replayed meanwhile: its node's log and GET _nodes/hot_threads say what it waits for; if \
                     its node is started again it begins anew";
const SETTING: &str = "indices.recovery.max_concurrent_operations";

pub(super) static CAUSE: Cause = Cause {
    rule: Rule {
        class: Class::OperationReplay,
        label: "operation replay",
        signature: "the stage is TRANSLOG most of the time, and operations are replayed or left",
        reads: "_recovery stage, translog.{recovered,total}",
        thresholds: &[STAGE, RAISE, BATCHES_MAX],
        lift: SETTING,
        default: "1",
        probe: "operations 1 to 2",
    },
    judges: &[Judge::Replaying(judge)],
};

fn judge(recovery: &Replaying<'_, '_>) -> Answer {
    let transfer = recovery.transfer;
    if has_nothing_to_replay(transfer) {
        return Err(Against::figure("no operation was replayed meanwhile, and none is left"));
    }
    let rate = transfer
        .ops_per_s()
        .map_or_else(String::new, |rate| format!(" at {} a second", words::three_digits(rate)));
    let target = transfer.last().target.as_deref().unwrap_or_default();
    let is_stuck = transfer.rise(|one| one.recovered_ops) == Some(0);
    if !transfer.last().copies_files() {
        let sentence = format!(
            "{} replays operations{rate} from its own log, as it was not closed in order; its data is away until then",
            transfer.name()
        );
        return Ok(Finding {
            subjects: vec![transfer.name()],
            evidence: recovery.evidence.clone(),
            lift: Some(Lift::action(if is_stuck { STUCK } else { OWN_LOG })),
            ..Finding::of(&CAUSE.rule, target, transfer.share_in("TRANSLOG"), sentence)
        });
    }
    let setting = recovery.series.setting_or_default(SETTING, CAUSE.rule.default);
    let now = f64::max(setting.value.parse().unwrap_or(1.0), 1.0);
    let sentence = format!(
        "{} replays operations{rate}, {} batch{} at a time; the files are there",
        transfer.name(),
        setting.value,
        if now > 1.0 { "es" } else { "" }
    );
    let to = (now * RAISE.value).clamp(RAISE.value, BATCHES_MAX.value);
    let can_be_set = can_be_set(recovery.series) && !is_stuck;
    let may_rise = can_be_set && now < BATCHES_MAX.value;
    let lift = match (may_rise, can_be_set) {
        (true, _) => Lift::setting(SETTING, setting, Some(format!("{to:.0}")), MORE_BATCHES),
        (false, true) => Lift::setting(SETTING, setting, None, AT_MAXIMUM),
        (false, false) => Lift::action(if is_stuck { STUCK } else { FEWER_OPERATIONS }),
    };
    let lift = lift.with_default(can_be_set.then_some(CAUSE.rule.default));
    Ok(Finding {
        subjects: vec![transfer.name()],
        evidence: recovery.evidence.clone(),
        lift: Some(lift),
        gain: may_rise.then(|| gain(recovery, to, now)),
        next: Next::words("the target's cores or disk"),
        ..Finding::of(&CAUSE.rule, target, transfer.share_in("TRANSLOG"), sentence)
    })
}

/// More batches bring no more than the target has left, whatever uses the rest.
fn gain(recovery: &Replaying<'_, '_>, to: f64, now: f64) -> Gain {
    let target = recovery.target.as_ref();
    let cores = target.and_then(|span| Some((span.cpu()?.0, "cores of the target are")));
    let disk = target.and_then(|span| Some((span.disk_busy()?, "disk of the target is")));
    let busiest = cores.into_iter().chain(disk).max_by(|a, b| a.0.total_cmp(&b.0));
    let formula = format!("{to:.0} batches at once / {now:.0}");
    match busiest.filter(|(share, _)| share * to > now) {
        Some((share, what)) => {
            let busy = words::percent(share);
            let formula = format!("{formula}, but the {what} busy {busy} of the time already");
            Gain { factor: (1.0 / share).max(1.0), formula }
        }
        None => Gain {
            factor: to / now,
            formula: format!("{formula}, until the target's cores are busy"),
        },
    }
}

/// Whether no operation came while somebody looked, and none is to come: a copy stays in the stage until the nodes have
/// agreed on it, too.
fn has_nothing_to_replay(transfer: &Transfer<'_>) -> bool {
    let last = transfer.last();
    let left = last.total_ops.zip(last.recovered_ops).map(|(all, done)| all.saturating_sub(done));
    left == Some(0) && transfer.rise(|recovery| recovery.recovered_ops) == Some(0)
}

/// Whether the cluster has the setting and takes other values than 1, which the embedded engine refuses.
fn can_be_set(series: &Series<'_>) -> bool {
    let is_there = series.setting(SETTING).is_some() || !series.tells_defaults();
    is_there && series.flavour() != "narrows"
}
