//! A bound on memory refuses work, whether something recovers or not.

use super::{Cause, Class, Judge, Rule, gc};
use crate::diagnosis::answers::{Answer, Answers};
use crate::diagnosis::copying::{Copying, End};
use crate::diagnosis::finding::{Evidence, Finding, Lift, NODES_STATS};
use crate::diagnosis::node_span::NodeSpan;
use crate::diagnosis::rivals::{Against, Why};
use crate::diagnosis::threshold::{CPU_OWN, DISK_OWN, IN_LINE_USE, NEAR_USE, Threshold, at};

const STRENGTH: Threshold = at("strength", 0.65);

/// The breakers that the files of a recovery pass, as every request between nodes does. The others are of searches and
/// fields, and indexing pressure counts writes.
const OF_TRANSFERS: &[&str] = &["parent", "in_flight_requests", "inflight_requests"];

const TRIPPED: &str = "see what fills the heap (GET _nodes/stats/breaker), and take that off the node or give it more \
                       heap; a higher limit of a breaker only lets the node run out of memory";
const REFUSED: &str = "let clients send less at once, or more nodes take it; indexing_pressure.memory.limit in the \
                       node's configuration gives it more of the heap";

pub(super) static CAUSE: Cause = Cause {
    rule: Rule {
        class: Class::Memory,
        label: "memory",
        signature: "breakers trip, or indexing pressure refuses requests; files pass few of these bounds",
        reads: "_nodes/stats breakers.*.tripped, indexing_pressure.memory.total.*_rejections",
        thresholds: &[STRENGTH, NEAR_USE, IN_LINE_USE, CPU_OWN, DISK_OWN],
        lift: "what fills the heap, or more heap; indexing_pressure.memory.limit where requests are refused",
        default: "10%",
        probe: "a lull in indexing",
    },
    judges: &[Judge::End(at_end), Judge::Node(at_node)],
};

fn at_end(recovery: &Copying<'_, '_>, end: &End<'_>) -> Answer {
    let is_told = end.span.latest(|node| (!node.breakers_tripped.is_empty()).then_some(()));
    let against = || match is_told {
        Some(()) => {
            let name = end.node().to_owned();
            let why = move || format!("no breaker that transfers pass tripped on {name}");
            Against::figure(Why::later(why))
        }
        None => Against::untold_at(end.node(), "breakers"),
    };
    let mut tripped = tripped(end.span);
    tripped.retain(|(name, _)| OF_TRANSFERS.contains(name));
    let found = refuses(end.span, &tripped, None).ok_or_else(against)?;
    Ok(Finding { subjects: vec![recovery.transfer.name()], ..found })
}

/// On a node where nothing recovers, or holds: a heap that is full makes it refuse work and collect, too.
fn at_node(span: &NodeSpan<'_>) -> Option<Finding> {
    let rejected = span.rise(|node| node.pressure_rejections).filter(|count| *count > 0);
    let found = refuses(span, &tripped(span), rejected)?;
    let rivals = Answers::new([(Class::Gc, gc::of_node(span))]);
    Some(Finding { ruled_out: rivals.ruled_out(Class::Memory), ..found })
}

/// Breakers that tripped while the node was looked at.
fn tripped<'a>(span: &NodeSpan<'a>) -> Vec<(&'a str, u64)> {
    span.rises(|node| &node.breakers_tripped)
}

/// What these breakers and indexing pressure refused; none where they refused nothing.
fn refuses(span: &NodeSpan<'_>, tripped: &[(&str, u64)], rejected: Option<u64>) -> Option<Finding> {
    let name = &span.last().name;
    if tripped.is_empty() && rejected.is_none() {
        return None;
    }
    let mut evidence = Vec::new();
    if !tripped.is_empty() {
        let rises = tripped.iter().map(|(breaker, count)| format!("{breaker} +{count}"));
        let value = format!("{name}: {}", rises.collect::<Vec<_>>().join(", "));
        evidence.push(Evidence::new(NODES_STATS, "breakers.*.tripped", value));
    }
    if let Some(count) = rejected {
        let field = "indexing_pressure.memory.total.*_rejections";
        evidence.push(Evidence::new(NODES_STATS, field, format!("{name}: +{count}")));
    }
    let sentence = format!("a bound on memory refuses work on {name}");
    let action = if tripped.is_empty() { REFUSED } else { TRIPPED };
    Some(Finding {
        subjects: vec![format!("node {name}")],
        evidence,
        lift: Some(Lift::action(action)),
        ..Finding::of(&CAUSE.rule, name, STRENGTH.value, sentence)
    })
}
