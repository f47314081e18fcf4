//! No node may hold a copy, or a primary waits for something that comes by itself.

use record::names::listed;
use record::observation::WaitingCopy;

use super::{Against, Answer, Cause, Class, Judge, Rule};
use crate::diagnosis::deciders::{DECIDERS, ENABLE, SAME_SHARD};
use crate::diagnosis::finding::{Finding, LINES_SHOWN, Lift, Next};
use crate::diagnosis::threshold::{Threshold, at};
use crate::diagnosis::waiting::{
    ASKED, Need, Waiting, answers_awaited, explained, has_left, named, refused_elsewhere, subjects,
};

/// Data that cannot be reached comes before data that is slow.
const STRENGTH_PRIMARY: Threshold = at("strength of a primary that no node may hold", 1.0);
const STRENGTH_REPLICA: Threshold = at("strength of a replica", 0.95);
const STRENGTH_TIME: Threshold = at("strength of a primary that comes by itself", 0.6);

/// What one does about a replica that other nodes hold copies of.
const START_FIRST: &str = "start the node that left, which takes it back; where that stays away, ";
const BACK_FIRST: &str = "; where the node that left is being restarted, once it is back: before that whole copies are \
                          made on other nodes";

pub(super) static CAUSE: Cause = Cause {
    rule: Rule {
        class: Class::AllocationBlock,
        label: "allocation block",
        signature: "copies wait, and deciders say NO on every node",
        reads: "_cluster/allocation/explain node_allocation_decisions",
        thresholds: &[STRENGTH_PRIMARY, STRENGTH_REPLICA, STRENGTH_TIME],
        lift: "what the decider asks for: room on disks, filters, _cluster/reroute?retry_failed",
        default: "",
        probe: "_cluster/reroute?dry_run",
    },
    judges: &[Judge::Waiting(judge)],
};

fn judge(waiting: &Waiting<'_, '_>) -> Answer {
    match &waiting.need {
        Need::Slot => {
            let nodes = waiting.takers();
            // Of a large cluster nobody reads every name.
            let more = match nodes.len().saturating_sub(LINES_SHOWN) {
                0 => String::new(),
                1 => " or another node".to_owned(),
                more => format!(" or one of {more} others"),
            };
            Err(match nodes.is_empty() {
                true => Against::untold("the cluster does not say which node would take it"),
                false => Against::figure(format!(
                    "{}{more} takes it once a slot is free",
                    nodes.into_iter().take(LINES_SHOWN).collect::<Vec<_>>().join(" or ")
                )),
            })
        }
        Need::Decider(name) => Ok(blocked(waiting, name)),
        Need::Time(why) => primaries_wait(waiting, why).ok_or_else(|| Against::figure(*why)),
    }
}

fn blocked(waiting: &Waiting<'_, '_>, name: &str) -> Finding {
    let copies = &waiting.copies;
    let decider = DECIDERS.iter().find(|decider| decider.name == name);
    // Some deciders obey a setting of the index as well, and say which of the two it is.
    let is_of_index = |copy: &&&WaitingCopy| {
        let mut own = copy.decisions.iter().filter(|decision| decision.decider == name);
        own.any(|decision| decision.explanation.contains("index setting ["))
    };
    let by_index = copies.iter().filter(is_of_index).count();
    let cited = decider.and_then(|decider| decider.cited(copies));
    let setting = decider.and_then(|decider| decider.setting);
    let setting = setting.filter(|_| by_index < copies.len());
    let setting = setting.map(|setting| cited.map_or(setting, |(name, _)| name));
    let found = setting.and_then(|name| waiting.series.setting(name));
    let now = found.map(|found| found.value.as_str()).or(cited.map(|(_, value)| value));
    let enable = setting.filter(|name| *name == ENABLE.0).map(|_| ENABLE.1.to_owned());
    let action = decider
        .map_or("read what the cluster says of each node", |decider| decider.action_for(copies));
    let have_left = copies.iter().all(|copy| has_left(copy));
    let first = if enable.is_some() && have_left { BACK_FIRST } else { "" };
    let comes_back = name == SAME_SHARD && have_left;
    let (start, comes) = match comes_back {
        true => (START_FIRST, "it comes back with the node that left"),
        false => ("", "it will not come by itself"),
    };
    let others_come = if name == SAME_SHARD { others_come(copies) } else { String::new() };
    let of_index = match by_index {
        0 => String::new(),
        all if all == copies.len() => " (a setting of the index: see the evidence)".to_owned(),
        some => format!(" (of {some} of them by a setting of the index: see the evidence)"),
    };
    let others = if waiting.unassigned > copies.len() {
        format!(" (of {} that wait)", waiting.unassigned)
    } else {
        String::new()
    };
    let by =
        if name.is_empty() { "no decider is named".to_owned() } else { format!("decider {name}") };
    let sentence = format!("no node may hold the {}{others}: {by}; {comes}", named(copies));
    let has_primary = copies.iter().any(|copy| copy.primary);
    let strength = if has_primary { STRENGTH_PRIMARY } else { STRENGTH_REPLICA };
    Finding {
        subjects: subjects(copies),
        evidence: explained(copies, decider.map(|decider| decider.name)),
        lift: Some(Lift {
            setting: setting.map(str::to_owned),
            now: setting.and(now).map(str::to_owned),
            set_by: found.map(|found| found.scope),
            default: enable.clone(),
            to: enable,
            ..Lift::action(&format!("{start}{action}{first}{of_index}{others_come}"))
        }),
        next: Next::words("a recovery slot, then the recovery itself"),
        ..Finding::of(&CAUSE.rule, name, strength.value, sentence)
    }
}

/// Whoever lifts what refuses these copies on nodes without one helps other copies of the shard, and is told so.
fn others_come(copies: &[&WaitingCopy]) -> String {
    let elsewhere: Vec<&str> = refused_elsewhere(copies).into_iter().collect();
    if elsewhere.is_empty() {
        return String::new();
    }
    format!(
        "; to lift what else refuses them ({}) places other copies of the shard, and none of these",
        listed(&elsewhere)
    )
}

/// Waiting that ends by itself is no finding, unless data cannot be reached meanwhile.
fn primaries_wait(waiting: &Waiting<'_, '_>, why: &str) -> Option<Finding> {
    let primaries: Vec<_> = waiting.copies.iter().copied().filter(|copy| copy.primary).collect();
    let subjects = subjects(&primaries);
    let wait = if subjects.len() == 1 { "waits" } else { "wait" };
    let sentence = format!("{} {wait}: {why}", subjects.join(", "));
    (!primaries.is_empty()).then(|| Finding {
        subjects,
        evidence: explained(&primaries, None),
        lift: (why == ASKED).then(|| Lift::action(&answers_awaited(waiting.series))),
        ..Finding::of(&CAUSE.rule, "", STRENGTH_TIME.value, sentence)
    })
}
