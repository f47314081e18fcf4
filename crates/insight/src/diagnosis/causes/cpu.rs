//! All cores of the source or of the target are busy, and with its own work.

use super::{Answer, Cause, Class, Judge, Rule};
use crate::diagnosis::busy::BusyCores;
use crate::diagnosis::copying::{Copying, End};
use crate::diagnosis::finding::Finding;
use crate::diagnosis::threshold::{
    CPU_BUSY, CPU_OWN, DISK_OWN, IN_LINE_USE, NEAR_USE, Threshold, at,
};

const STRENGTH: Threshold = at("strength, at most", 0.95);

pub(super) static CAUSE: Cause = Cause {
    rule: Rule {
        class: Class::Cpu,
        label: "CPU",
        signature: "all cores of the source or of the target are busy",
        reads: "_nodes/stats os.cpu.percent, process.cpu.total_in_millis",
        thresholds: &[CPU_BUSY, CPU_OWN, STRENGTH, NEAR_USE, IN_LINE_USE, DISK_OWN],
        lift: "more cores, or less work on the node",
        default: "",
        probe: "chunks up gives nothing",
    },
    judges: &[Judge::End(judge)],
};

fn judge(recovery: &Copying<'_, '_>, end: &End<'_>) -> Answer {
    let busy = BusyCores::of(end)?;
    if !busy.is_own() {
        return Err(busy.against(end));
    }
    Ok(Finding {
        evidence: busy.evidence(recovery, end),
        ..recovery.finding_at(end, &CAUSE.rule, STRENGTH.at_most(busy.share), busy.sentence(end))
    })
}
