//! Garbage collections stop a node.

use super::{Against, Answer, Cause, Class, Judge, Rule};
use crate::diagnosis::copying::{Copying, End};
use crate::diagnosis::finding::{Evidence, Finding, Gain, NODES_STATS};
use crate::diagnosis::node_span::NodeSpan;
use crate::diagnosis::series::Series;
use crate::diagnosis::threshold::{
    CPU_OWN, DISK_OWN, GIVEN_BACK, IN_LINE_USE, NEAR_USE, Threshold, VERDICT, at,
};
use crate::words;

/// Collections take this share of the time.
const COLLECTING: Threshold = at("GC time over wall time", 0.15);

const HEAP: &str = "it needs more heap, or less on it";

pub(super) static CAUSE: Cause = Cause {
    rule: Rule {
        class: Class::Gc,
        label: "garbage collection",
        signature: "collections take much of the time",
        reads: "_nodes/stats jvm.gc.collectors.*.collection_time_in_millis",
        thresholds: &[COLLECTING, VERDICT, GIVEN_BACK, NEAR_USE, IN_LINE_USE, CPU_OWN, DISK_OWN],
        lift: "more heap, or less on it; smaller chunks, or fewer of them in flight",
        default: "",
        probe: "dips align with pauses",
    },
    judges: &[Judge::End(judge)],
};

fn judge(recovery: &Copying<'_, '_>, end: &End<'_>) -> Answer {
    let found = of_node(end.span)?;
    Ok(Finding { subjects: vec![recovery.transfer.name()], ..found })
}

/// Nodes that collections stop where no finding says it, a sentence each: nothing recovers there, and all that they
/// answer waits.
pub(crate) fn elsewhere(series: &Series<'_>, found: &[Finding]) -> Vec<String> {
    let is_told = |name: &str| found.iter().any(|one| one.class == Class::Gc && one.place == name);
    let of_span = |span: &NodeSpan<'_>| of_node(span).ok();
    let all = series.nodes().filter(|span| !is_told(&span.last().name)).filter_map(of_span);
    all.map(|one| format!("{}: all that it does waits for them; {HEAP}", one.sentence)).collect()
}

/// Whether collections stop a node, whatever goes on there.
pub(super) fn of_node(span: &NodeSpan<'_>) -> Answer {
    let name = &span.last().name;
    let untold = || Against::untold_at(name, "collections");
    let share = span.share(|node| node.gc_ms).ok_or_else(untold)?;
    if share < COLLECTING.value {
        let what = |name: &str| format!("collections stop {name} for");
        return Err(Against::below_at(name, what, share, COLLECTING));
    }
    let percent = words::percent(share);
    let sentence = format!("garbage collections take {percent} of the time on {name}");
    let mut evidence = vec![Evidence::new(
        NODES_STATS,
        "jvm.gc.collectors.*.collection_time_in_millis",
        format!("{name}: {percent} of the time"),
    )];
    if let Some(heap) = span.mean(|node| node.heap_used_percent) {
        let value = format!("{name}: {heap:.0} % on average");
        evidence.push(Evidence::new(NODES_STATS, "jvm.mem.heap_used_percent", value));
    }
    Ok(Finding {
        evidence,
        gain: Some(Gain::of_lost_time(share)),
        ..Finding::of(&CAUSE.rule, name, VERDICT.up_to_one(share), sentence)
    })
}
