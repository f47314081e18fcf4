//! The cores or the disk of a node are busy with something else than the recovery.

use super::{Against, Answer, Cause, Class, Judge, Rule};
use crate::diagnosis::busy::{BusyCores, BusyDisk};
use crate::diagnosis::copying::{Copying, End};
use crate::diagnosis::finding::{Evidence, Finding, NODES_STATS};
use crate::diagnosis::threshold::{
    CORES_ANSWER, CPU_BUSY, CPU_OWN, DISK_BUSY, DISK_OWN, IN_LINE_USE, NEAR_USE, Threshold, at,
};
use crate::words;

/// A busy neighbour is only a suspicion: a cause that explains the rate itself comes before it.
const STRENGTH: Threshold = at("strength, at most", 0.75);

pub(super) static CAUSE: Cause = Cause {
    rule: Rule {
        class: Class::NoisyNeighbour,
        label: "noisy neighbour",
        signature: "the disk is busy, or the cores are and the node answers late, and mostly not with this",
        reads: "_nodes/stats fs.io_stats.total.*_kilobytes, os.cpu.percent, process.cpu.total_in_millis, \
                indices.search.query_total, indexing.index_total; time of its own answers",
        thresholds: &[
            DISK_BUSY, DISK_OWN, CPU_BUSY, CPU_OWN, CORES_ANSWER, STRENGTH, NEAR_USE, IN_LINE_USE,
        ],
        lift: "move or cap the neighbour",
        default: "",
        probe: "a control recovery elsewhere",
    },
    judges: &[Judge::End(cores), Judge::End(disk)],
};

fn cores(recovery: &Copying<'_, '_>, end: &End<'_>) -> Answer {
    let busy = BusyCores::of(end)?;
    if busy.is_own() {
        return Err(busy.against(end));
    }
    if let Some(others) = recovery.hardly_waits(end) {
        return Err(Against::figure(others.why(end)));
    }
    let sentence = format!(
        "{}, of which its own process takes {}",
        busy.sentence(end),
        words::percent(busy.own.unwrap_or(0.0))
    );
    Ok(Finding {
        evidence: busy.evidence(recovery, end),
        ..recovery.finding_at(end, &CAUSE.rule, STRENGTH.at_most(busy.share), sentence)
    })
}

fn disk(recovery: &Copying<'_, '_>, end: &End<'_>) -> Answer {
    let busy = BusyDisk::of(end)?;
    if busy.is_own() {
        return Err(busy.against(end));
    }
    let name = end.node();
    let sentence = format!(
        "the disk of {name} ({}) is busy {} of the time, {} of it with something else",
        end.side(),
        words::percent(busy.share),
        words::percent(1.0 - busy.own.unwrap_or(0.0))
    );
    let mut evidence = busy.evidence(recovery, end);
    for (field, rate) in [
        ("indices.search.query_total", end.span.per_s(|node| node.searches)),
        ("indices.indexing.index_total", end.span.per_s(|node| node.indexed_ops)),
    ] {
        if let Some(rate) = rate {
            let value = format!("{name}: {} a second", words::three_digits(rate));
            evidence.push(Evidence::new(NODES_STATS, field, value));
        }
    }
    Ok(Finding {
        evidence,
        doubt: Some(BusyDisk::doubt(end)),
        ..recovery.finding_at(end, &CAUSE.rule, STRENGTH.at_most(busy.share), sentence)
    })
}
