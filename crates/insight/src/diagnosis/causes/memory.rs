//! A bound on memory refuses work, whether something recovers or not.

use record::observation::Node;

use super::{Cause, Class, Judge, Rule, gc};
use crate::diagnosis::answers::{Answer, Answers};
use crate::diagnosis::copying::{Copying, End};
use crate::diagnosis::finding::{Evidence, Finding, Lift, NODES_STATS};
use crate::diagnosis::node_span::NodeSpan;
use crate::diagnosis::rivals::{Against, Why};
use crate::diagnosis::threshold::{CPU_OWN, DISK_OWN, IN_LINE_USE, NEAR_USE, Threshold, at};

const STRENGTH: Threshold = at("strength", 0.65);

const TRIPPED: &str = "see what fills the heap (GET _nodes/stats/breaker), and take that off the node or give it more \
                       heap; a higher limit of a breaker only lets the node run out of memory";
const REFUSED: &str = "let clients send less at once, or more nodes take it; indexing_pressure.memory.limit in the \
                       node's configuration gives it more of the heap";

pub(super) static CAUSE: Cause = Cause {
    rule: Rule {
        class: Class::Memory,
        label: "memory",
        signature: "breakers trip, or indexing pressure refuses requests",
        reads: "_nodes/stats breakers.*.tripped, indexing_pressure.memory.total.*_rejections",
        thresholds: &[STRENGTH, NEAR_USE, IN_LINE_USE, CPU_OWN, DISK_OWN],
        lift: "what fills the heap, or more heap; indexing_pressure.memory.limit where requests are refused",
        default: "10%",
        probe: "a lull in indexing",
    },
    judges: &[Judge::End(at_end), Judge::Node(at_node)],
};

fn at_end(recovery: &Copying<'_, '_>, end: &End<'_>) -> Answer {
    let against = || match tells(end.span) {
        true => {
            let name = end.node().to_owned();
            Against::figure(Why::later(move || {
                format!("no breaker tripped on {name}, and no request was refused")
            }))
        }
        false => Against::untold_at(end.node(), "breakers"),
    };
    let found = judge(end.span).ok_or_else(against)?;
    Ok(Finding { subjects: vec![recovery.transfer.name()], ..found })
}

/// On a node where nothing recovers, or holds: a heap that is full makes it refuse work and collect, too.
fn at_node(span: &NodeSpan<'_>) -> Option<Finding> {
    let found = judge(span)?;
    let rivals = Answers::new([(Class::Gc, gc::of_node(span))]);
    Some(Finding { ruled_out: rivals.ruled_out(Class::Memory), ..found })
}

/// Whether the node tells of its breakers, or of requests that it refused.
fn tells(span: &NodeSpan<'_>) -> bool {
    let breakers = span.latest(|node| (!node.breakers_tripped.is_empty()).then_some(()));
    breakers.is_some() || span.rise(|node| node.pressure_rejections).is_some()
}

/// Breakers that tripped and requests that were refused while the node was looked at.
fn judge(span: &NodeSpan<'_>) -> Option<Finding> {
    let name = &span.last().name;
    let tripped = tripped(span);
    let rejected = span.rise(|node| node.pressure_rejections).filter(|count| *count > 0);
    if tripped.is_empty() && rejected.is_none() {
        return None;
    }
    let mut evidence = Vec::new();
    if !tripped.is_empty() {
        let value = format!("{name}: {}", tripped.join(", "));
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

/// `parent +2` for each breaker that tripped.
fn tripped<'a>(span: &NodeSpan<'a>) -> Vec<String> {
    let breakers =
        |node: &'a Node| Some(&node.breakers_tripped).filter(|breakers| !breakers.is_empty());
    let Some((then, now)) = span.ends(breakers).filter(|(then, now)| then != now) else {
        return Vec::new();
    };
    let rise = |(name, now): (&String, &u64)| {
        let rise = now.checked_sub(*then.get(name)?)?;
        (rise > 0).then(|| format!("{name} +{rise}"))
    };
    now.iter().filter_map(rise).collect()
}
