//! The disk of the source or of the target is busy with the recovery.

use super::{Answer, Cause, Class, Judge, Rule};
use crate::diagnosis::busy::BusyDisk;
use crate::diagnosis::copying::{Copying, End};
use crate::diagnosis::finding::Finding;
use crate::diagnosis::threshold::{
    CPU_OWN, DISK_BUSY, DISK_OWN, IN_LINE_USE, NEAR_USE, Threshold, at,
};
use crate::words;

const STRENGTH: Threshold = at("strength, at most", 0.9);

pub(super) static CAUSE: Cause = Cause {
    rule: Rule {
        class: Class::Disk,
        label: "disk",
        signature: "the disk is busy nearly all the time, mostly with the recovery's bytes",
        reads: "_nodes/stats fs.io_stats.total.{io_time_in_millis,read_kilobytes,write_kilobytes}",
        thresholds: &[DISK_BUSY, DISK_OWN, STRENGTH, NEAR_USE, IN_LINE_USE, CPU_OWN],
        lift: "the device, its scheduler, its IOPS, or the burst credits of a volume, which may be used up",
        default: "",
        probe: "chunks up gives nothing",
    },
    judges: &[Judge::End(judge)],
};

fn judge(recovery: &Copying<'_, '_>, end: &End<'_>) -> Answer {
    let busy = BusyDisk::of(end)?;
    if !busy.is_own() {
        return Err(busy.against(end));
    }
    let sentence = format!(
        "the disk of {} ({}) is busy {} of the time with what it {} for the recovery",
        end.node(),
        end.side(),
        words::percent(busy.share),
        if end.is_source { "reads" } else { "writes" }
    );
    Ok(Finding {
        evidence: busy.evidence(recovery, end),
        doubt: Some(BusyDisk::doubt(end)),
        ..recovery.finding_at(end, &CAUSE.rule, STRENGTH.at_most(busy.share), sentence)
    })
}
