//! Every recovery slot is taken.

use std::collections::BTreeSet;

use record::observation::Scope;

use super::{Against, Answer, Cause, Class, Judge, Rule};
use crate::diagnosis::finding::{Evidence, Finding, Gain, Lift, Next, RECOVERY};
use crate::diagnosis::knobs::SLOTS;
use crate::diagnosis::manager_queue::long_queue;
use crate::diagnosis::threshold::{
    CPU_OWN, DISK_OWN, FAST_BYTES_PER_S, IN_LINE_USE, NEAR_USE, Threshold, at,
};
use crate::diagnosis::unanswered::tells_of_recoveries;
use crate::diagnosis::waiting::{Need, Waiting, explained, subjects};
use crate::words::{self, counted};

const STRENGTH: Threshold = at("strength where recoveries leave room", 0.9);
/// More slots would only share what holds the recoveries that have one.
const STRENGTH_HELD: Threshold = at("strength where something else holds them", 0.3);
/// Twice the slots are worth trying.
const RAISE: Threshold = at("times the slots to try", 2.0);

/// The settings for primaries and for the first replicas of a new index, of which OpenSearch alone has the last; with
/// their defaults. Copies that recover from their primary have the usual one.
const INITIAL_SLOTS: &[(&str, &str)] = &[
    ("cluster.routing.allocation.node_initial_primaries_recoveries", "4"),
    ("cluster.routing.allocation.node_initial_replicas_recoveries", "4"),
];
/// Where one of these is set, it counts in place of the usual one: for recoveries onto a node, and from one.
const SLOTS_OF_ONE_SIDE: &[&str] = &[
    "cluster.routing.allocation.node_concurrent_incoming_recoveries",
    "cluster.routing.allocation.node_concurrent_outgoing_recoveries",
];

const QUEUE: &str = "the manager's queue is long: a slot is free only once the manager has noted that its copy has \
                     started, so that more slots may bring nothing";

pub(super) static CAUSE: Cause = Cause {
    rule: Rule {
        class: Class::AllocationSlots,
        label: "allocation slots",
        signature: "copies wait, the decider \"throttling\" says so, and what has a slot is not held elsewhere",
        reads: "_cluster/allocation/explain deciders; _cat/shards",
        thresholds: &[
            STRENGTH, STRENGTH_HELD, RAISE, NEAR_USE, IN_LINE_USE, CPU_OWN, DISK_OWN,
            FAST_BYTES_PER_S,
        ],
        lift: SLOTS.0,
        default: SLOTS.1,
        probe: "one more slot: does the total rise?",
    },
    judges: &[Judge::Waiting(judge)],
};

fn judge(waiting: &Waiting<'_, '_>) -> Answer {
    let copies = &waiting.copies;
    let first = copies.first().filter(|_| waiting.need == Need::Slot);
    let first = first.ok_or_else(|| not_for_a_slot(waiting))?;
    let says = |name: &str| first.decisions.iter().any(|one| one.explanation.contains(name));
    // The decider names them also where nobody set them, with the value that they take from the first.
    let is_set = |name: &str| {
        waiting.series.setting(name).is_some_and(|found| found.scope != Scope::Default)
    };
    let of_one_side = SLOTS_OF_ONE_SIDE.iter().find(|name| says(name) && is_set(name));
    let (name, default) = match of_one_side {
        Some(name) => (*name, SLOTS.1),
        None => INITIAL_SLOTS.iter().find(|(name, _)| says(name)).copied().unwrap_or(SLOTS),
    };
    let setting = waiting.series.setting_or_default(name, default);
    let now: f64 = setting.value.parse().unwrap_or(RAISE.value);
    let to = (now * RAISE.value).max(now + 1.0);
    let throttled = first.decisions.iter().find(|decision| decision.decision == "THROTTLE");
    let sender = throttled.and_then(|decision| waiting.sender(decision));
    let place = sender.or(throttled.map(|decision| &*decision.node)).unwrap_or_default();
    let of_sender = match sender.filter(|_| waiting.throttled().len() == 1) {
        Some(node) => format!(" of {node}, which holds the primaries"),
        None => String::new(),
    };
    let told = waiting.series.last().filter(|look| tells_of_recoveries(look));
    let active = told.map(|look| look.recoveries.iter().filter(|one| !one.ended).count());
    let mut evidence = explained(copies, Some("throttling"));
    evidence.push(Evidence::setting(name, &setting, Some(default)));
    evidence.extend(active.map(|n| Evidence::new(RECOVERY, "active recoveries", n.to_string())));
    let count = waiting.unassigned - waiting.elsewhere;
    // Those that the cluster did not explain may wait for something else as well.
    let up_to = if waiting.elsewhere > 0 && count > copies.len() { "up to " } else { "" };
    let waits = up_to.to_owned() + &counted(count, "copy waits", "copies wait");
    let (strength, holds) = match waiting.held_by {
        None => (STRENGTH, ", and the recoveries that have one leave room".to_owned()),
        Some(other) => {
            let first =
                format!("; more slots would share what {other} lets through, so lift that first");
            (STRENGTH_HELD, first)
        }
    };
    let sentence = format!("{waits} for a recovery slot{of_sender}{holds}");
    let action = "give nodes more recoveries at once; look whether the total rises, and go back if it does not";
    let lift = Lift::setting(name, setting, Some(to.to_string()), action);
    Ok(Finding {
        subjects: subjects(copies),
        evidence,
        lift: Some(lift.with_default(Some(default))),
        // From no slot at all there is no rate to gain on.
        gain: (waiting.held_by.is_none() && now > 0.0).then(|| gain(to, now, count as f64)),
        next: Next::words(
            "the limiter of a node, its disks and its link, which its recoveries share",
        ),
        doubt: long_queue(waiting.series).map(|_| QUEUE.to_owned()).or_else(|| link(waiting)),
        ..Finding::of(&CAUSE.rule, place, strength.value, sentence)
    })
}

/// That the recoveries which have a slot may fill a link, of which nothing is told.
fn link(waiting: &Waiting<'_, '_>) -> Option<String> {
    let is_fast = |rate: &f64| *rate >= FAST_BYTES_PER_S.value && waiting.held_by.is_none();
    let rate = words::rate(waiting.one_way_bytes_per_s.filter(is_fast)?);
    Some(format!(
        "the recoveries that have a slot move {rate} one way already, and nothing tells what the link that more of \
         them would share carries"
    ))
}

/// More slots than copies that wait stay empty.
fn gain(to: f64, now: f64, waiting: f64) -> Gain {
    let (used, fewer) = match now + waiting < to {
        true => (now + waiting, ", as no more copies wait"),
        false => (to, ""),
    };
    let formula = format!("{used} slots / {now}{fewer}, while each recovery keeps its rate");
    Gain { factor: used / now, formula }
}

/// Why no slot is what copies wait for: what the deciders say of the first of them.
fn not_for_a_slot(waiting: &Waiting<'_, '_>) -> Against {
    let decisions = waiting.copies.first().map_or(&[][..], |copy| &copy.decisions);
    let nodes = |says: &str| {
        let said = decisions.iter().filter(|one| one.decision == says);
        said.map(|one| &one.node).collect::<BTreeSet<_>>().len()
    };
    match (&waiting.need, decisions.is_empty()) {
        (Need::Time(why), _) => Against::figure(*why),
        (_, true) => Against::untold("the cluster does not say what deciders answer"),
        (_, false) => {
            let (no, throttle) = (nodes("NO"), nodes("THROTTLE"));
            let say = if no == 1 { "says" } else { "say" };
            Against::figure(format!("of the nodes, {no} {say} NO and {throttle} THROTTLE"))
        }
    }
}
