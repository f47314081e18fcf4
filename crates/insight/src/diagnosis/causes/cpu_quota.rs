//! The control group of a node keeps it from running.

use super::{Answer, Cause, Class, Judge, Rule};
use crate::diagnosis::copying::{Copying, End};
use crate::diagnosis::finding::{Evidence, Finding, Gain, NODES_STATS};
use crate::diagnosis::node_span::NodeSpan;
use crate::diagnosis::rivals::{Against, By};
use crate::diagnosis::threshold::{
    CPU_OWN, DISK_OWN, GIVEN_BACK, IN_LINE_USE, NEAR_USE, Threshold, at,
};
use crate::words;

/// The control group keeps the node from running for this share of the time.
const THROTTLED: Threshold = at("cgroup time_throttled over wall time", 0.1);
const STRENGTH: Threshold = at("strength, at least", 0.55);

pub(super) static CAUSE: Cause = Cause {
    rule: Rule {
        class: Class::CpuQuota,
        label: "CPU quota",
        signature: "the control group keeps the node from running",
        reads: "_nodes/stats os.cgroup.cpu.stat.time_throttled_nanos",
        thresholds: &[THROTTLED, STRENGTH, GIVEN_BACK, NEAR_USE, IN_LINE_USE, CPU_OWN, DISK_OWN],
        lift: "the quota (cpu.max, limits.cpu)",
        default: "",
        probe: "raise the quota",
    },
    judges: &[Judge::End(judge)],
};

fn judge(recovery: &Copying<'_, '_>, end: &End<'_>) -> Answer {
    let name = end.node();
    let share = kept_from_running(end.span)?;
    let percent = words::percent(share);
    let sentence = format!(
        "the control group of {name} ({}) kept it from running for {percent} of the time",
        end.side()
    );
    let value = format!("{name}: {percent} of the time, for each core that it used");
    Ok(Finding {
        evidence: vec![
            recovery.rate_evidence(),
            Evidence::new(NODES_STATS, "os.cgroup.cpu.stat.time_throttled_nanos", value),
        ],
        gain: Some(Gain::of_lost_time(share)),
        ..recovery.finding_at(end, &CAUSE.rule, STRENGTH.up_to_one(share), sentence)
    })
}

/// What the control group of a node says beside a cause that is not a recovery's.
pub(super) fn of_node(span: &NodeSpan<'_>) -> Against {
    let said = |share| format!("{} {} of the time", kept(&span.last().name), words::percent(share));
    match kept_from_running(span) {
        Ok(share) => Against { by: By::Weaker, why: said(share).into() },
        Err(against) => against,
    }
}

/// For which share of the time, 0 to 1; or what speaks against it.
fn kept_from_running(span: &NodeSpan<'_>) -> Result<f64, Against> {
    let name = &span.last().name;
    let untold = || Against::untold_at(name, "a control group");
    let share = span.cgroup_throttled().ok_or_else(untold)?;
    if share < THROTTLED.value {
        return Err(Against::below_at(name, kept, share, THROTTLED));
    }
    Ok(share)
}

fn kept(name: &str) -> String {
    format!("the control group of {name} kept it from running for")
}
