//! All cores of the source or of the target are busy, and with its own work.

use super::{Against, Answer, Cause, Class, Judge, Rule};
use crate::diagnosis::busy::BusyCores;
use crate::diagnosis::copying::{Copying, End};
use crate::diagnosis::finding::Finding;
use crate::diagnosis::threshold::{
    CPU_BUSY, CPU_OWN, DISK_OWN, IN_LINE_USE, NEAR_USE, Threshold, at,
};
use crate::words;

const STRENGTH: Threshold = at("strength, at most", 0.95);
/// From here on the field warns of collections (`monitor.jvm.gc.overhead.warn`): they run on all cores.
const COLLECTED: Threshold =
    at("GC time over wall time, from which on collections are what keeps cores busy", 0.5);

pub(super) static CAUSE: Cause = Cause {
    rule: Rule {
        class: Class::Cpu,
        label: "CPU",
        signature: "all cores of the source or of the target are busy",
        reads: "_nodes/stats os.cpu.percent, process.cpu.total_in_millis",
        thresholds: &[CPU_BUSY, CPU_OWN, COLLECTED, STRENGTH, NEAR_USE, IN_LINE_USE, DISK_OWN],
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
    let collected = end.span.share(|node| node.gc_ms).filter(|share| *share >= COLLECTED.value);
    if let Some(share) = collected {
        let (sentence, share) = (busy.sentence(end), words::percent(share));
        return Err(Against::figure(format!(
            "{sentence}, and collections take {share} of the time"
        )));
    }
    Ok(Finding {
        evidence: busy.evidence(recovery, end),
        ..recovery.finding_at(end, &CAUSE.rule, STRENGTH.at_most(busy.share), busy.sentence(end))
    })
}
