//! Why copies wait: for a slot, or for something that will not come by itself.

use std::collections::BTreeMap;

use record::observation::WaitingCopy;

use super::finding::{Evidence, Finding, Gain, Lift};
use super::knobs::today;
use super::series::Series;
use super::{Class, transfer};

const EXPLAIN: &str = "_cluster/allocation/explain";
/// Slots of a node for copies from its peers, and for primaries; with their defaults.
const SLOTS: [(&str, &str); 2] = [
    ("cluster.routing.allocation.node_concurrent_recoveries", "2"),
    ("cluster.routing.allocation.node_initial_primaries_recoveries", "4"),
];

/// What a decider that says no asks for, most telling first: a node that is refused for several reasons is
/// named by the first of these.
const DECIDERS: [(&str, &str, Option<&str>); 13] = [
    (
        "max_retry",
        "it failed too often: see its last failure, then POST _cluster/reroute?retry_failed",
        None,
    ),
    (
        "disk_threshold",
        "disks are past the watermark: make room, add a node, or raise the watermark while you do",
        Some("cluster.routing.allocation.disk.watermark.low"),
    ),
    ("enable", "allocation is turned off: turn it on", Some("cluster.routing.allocation.enable")),
    (
        "filter",
        "allocation filters name no node that may hold it: look at index.routing.allocation.* and cluster.routing.allocation.*",
        None,
    ),
    (
        "awareness",
        "awareness wants it in a zone that has no room: add a node there",
        Some("cluster.routing.allocation.awareness.attributes"),
    ),
    (
        "data_tier",
        "no node has the tier that the index prefers: look at index.routing.allocation.include._tier_preference",
        None,
    ),
    (
        "shards_limit",
        "nodes hold as many shards as they may",
        Some("cluster.routing.allocation.total_shards_per_node"),
    ),
    ("node_version", "the other nodes are older than the primary's: upgrade them", None),
    ("snapshot_in_progress", "a snapshot is being taken: wait for it", None),
    (
        "restore_in_progress",
        "a restore failed or goes on: look at it, then POST _cluster/reroute?retry_failed",
        None,
    ),
    ("node_shutdown", "nodes are being shut down: add one", None),
    (
        "in_sync_store",
        "the nodes that hold its data are gone: bring one back; _cluster/reroute with allocate_stale_primary loses data",
        None,
    ),
    (
        "same_shard",
        "every node holds a copy already: add a node, or lower index.number_of_replicas",
        None,
    ),
];

/// Findings of everything that waits. `held` says whether recoveries that have a slot are held by something else.
pub(crate) fn findings(series: &Series<'_>, held: Option<&str>) -> Vec<Finding> {
    let Some(last) = series.last() else { return Vec::new() };
    // One that waits only at the very end has hardly begun to; a copy counts once it was seen twice.
    let before: Vec<&WaitingCopy> = series.looks()[..series.looks().len().saturating_sub(1)]
        .iter()
        .flat_map(|(_, look)| &look.waiting)
        .collect();
    let is_old = |copy: &&WaitingCopy| before.iter().any(|other| is_same(other, copy));
    let unassigned: Vec<&WaitingCopy> =
        last.waiting.iter().filter(|copy| copy.state == "UNASSIGNED").filter(is_old).collect();
    let explained = unassigned.iter().filter(|copy| copy.can_allocate.is_some());
    let mut groups: BTreeMap<Cause, Vec<&WaitingCopy>> = BTreeMap::new();
    for copy in explained {
        groups.entry(cause(copy)).or_default().push(copy);
    }
    groups
        .into_iter()
        .filter_map(|(cause, copies)| match cause {
            Cause::Slots => Some(slots(series, &copies, unassigned.len(), held)),
            Cause::Wait(sentence) => wait(sentence, &copies),
            Cause::Block(decider) => Some(block(series, &decider, &copies, unassigned.len())),
        })
        .collect()
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Cause {
    /// A decider that says no everywhere.
    Block(String),
    /// A slot.
    Slots,
    /// The passing of time.
    Wait(&'static str),
}

fn is_same(a: &WaitingCopy, b: &WaitingCopy) -> bool {
    (&a.index, a.shard, a.primary) == (&b.index, b.shard, b.primary)
}

fn cause(copy: &WaitingCopy) -> Cause {
    let cause = stated_cause(copy);
    match cause {
        // The primary has a finding of its own where it does not come up.
        Cause::Block(decider) if decider == "replica_after_primary_active" => {
            Cause::Wait("its primary is not started yet")
        }
        cause => cause,
    }
}

fn stated_cause(copy: &WaitingCopy) -> Cause {
    match copy.can_allocate.as_deref() {
        Some("throttled") => return Cause::Slots,
        Some("yes" | "awaiting_info") => return Cause::Wait("the manager is about to place it"),
        Some("allocation_delayed") => {
            return Cause::Wait(
                "its node may come back: index.unassigned.node_left.delayed_timeout lets it",
            );
        }
        Some("no_valid_shard_copy") => return Cause::Block("in_sync_store".to_owned()),
        _ => {}
    }
    // Without nodes the cluster says its reason in words alone.
    if copy.decisions.is_empty() {
        let words = copy.explanation.as_deref().unwrap_or_default();
        let known = DECIDERS.iter().find(|(decider, ..)| words.contains(decider));
        let named = match known {
            Some((decider, ..)) => *decider,
            None if words.contains("primary is not started") => "replica_after_primary_active",
            None if words.contains("cluster.routing.allocation.enable") => "enable",
            None if words.contains("retry_failed") || words.contains("failed") => "max_retry",
            None => "",
        };
        return Cause::Block(named.to_owned());
    }
    let says = |name: &str| copy.decisions.iter().any(|decision| decision.decider == name);
    let no = copy.decisions.iter().filter(|decision| decision.decision == "NO");
    let throttled = copy.decisions.iter().any(|decision| decision.decision == "THROTTLE");
    // A node that only throttles takes it once a slot is free, whatever the others say.
    let blocked: Vec<&str> = no.map(|decision| decision.node.as_str()).collect();
    let waits = copy
        .decisions
        .iter()
        .any(|d| d.decision == "THROTTLE" && !blocked.contains(&d.node.as_str()));
    if throttled && waits {
        return Cause::Slots;
    }
    let first = DECIDERS.iter().map(|(name, ..)| *name).find(|name| says(name));
    let other = || copy.decisions.first().map_or("", |decision| decision.decider.as_str());
    Cause::Block(first.unwrap_or_else(other).to_owned())
}

fn names(copies: &[&WaitingCopy]) -> Vec<String> {
    let kind = |copy: &WaitingCopy| if copy.primary { "primary" } else { "replica" };
    copies.iter().map(|copy| format!("{} of {}[{}]", kind(copy), copy.index, copy.shard)).collect()
}

fn explained(copies: &[&WaitingCopy], decider: Option<&str>) -> Vec<Evidence> {
    let mut evidence = Vec::new();
    if let Some(copy) = copies.first() {
        if let Some(said) = &copy.can_allocate {
            evidence.push(Evidence::new(EXPLAIN, "can_allocate", said));
        }
        let telling =
            copy.decisions.iter().filter(|d| decider.is_none_or(|name| d.decider == name));
        for decision in telling.take(3) {
            let field = format!("node_allocation_decisions, {}", decision.node);
            let value =
                format!("{} {}: {}", decision.decider, decision.decision, decision.explanation);
            evidence.push(Evidence::new(EXPLAIN, &field, value));
        }
        if copy.decisions.is_empty()
            && let Some(words) = &copy.explanation
        {
            evidence.push(Evidence::new(EXPLAIN, "allocate_explanation", words));
        }
    }
    evidence
}

fn slots(
    series: &Series<'_>,
    copies: &[&WaitingCopy],
    unassigned: usize,
    held: Option<&str>,
) -> Finding {
    let is_of_primaries = |copy: &&WaitingCopy| {
        copy.decisions.iter().any(|d| d.explanation.contains("node_initial_primaries_recoveries"))
    };
    let (name, default) = SLOTS[usize::from(copies.first().is_some_and(is_of_primaries))];
    let setting = today(series, name, default);
    let now: u64 = setting.value.parse().unwrap_or(2);
    let active =
        series.last().map_or(0, |look| look.recoveries.iter().filter(|r| !r.ended).count());
    let place = copies
        .first()
        .and_then(|copy| copy.decisions.iter().find(|decision| decision.decision == "THROTTLE"))
        .map_or_else(String::new, |decision| decision.node.clone());
    let mut evidence = explained(copies, Some("throttling"));
    evidence.push(Evidence::new(
        "_cluster/settings",
        name,
        format!("{} ({})", setting.value, transfer::scope(setting.scope)),
    ));
    evidence.push(Evidence::new("_recovery", "active recoveries", active.to_string()));
    let waits = if unassigned == 1 {
        "1 copy waits".to_owned()
    } else {
        format!("{unassigned} copies wait")
    };
    let (strength, sentence) = match held {
        None => (
            0.9,
            format!("{waits} for a recovery slot, and the recoveries that have one leave room"),
        ),
        Some(other) => (
            0.3,
            format!(
                "{waits} for a recovery slot; more slots would share what {other} lets through, so lift that first"
            ),
        ),
    };
    let to = (now * 2).max(now + 1);
    Finding {
        class: Class::AllocationSlots,
        subjects: names(copies),
        place,
        strength,
        sentence,
        evidence,
        lift: Some(Lift {
            setting: Some(name.to_owned()),
            now: Some(setting.value),
            set_by: Some(setting.scope),
            to: Some(to.to_string()),
            action: "give nodes more recoveries at once; look whether the total rises, and go back if it does not".to_owned(),
        }),
        gain: held.is_none().then(|| Gain {
            factor: to as f64 / now.max(1) as f64,
            formula: format!("{to} slots / {now}, while each recovery keeps its rate"),
        }),
        next: Some("the limiter of a node, its disks and its link, which its recoveries share".to_owned()),
        doubt: None,
    }
}

fn block(
    series: &Series<'_>,
    decider: &str,
    copies: &[&WaitingCopy],
    unassigned: usize,
) -> Finding {
    let known = DECIDERS.iter().find(|(name, ..)| *name == decider);
    let (action, setting) = match known {
        Some((_, action, setting)) => (*action, *setting),
        None => ("read what the cluster says of each node", None),
    };
    let now = setting.and_then(|name| series.setting(name));
    let primary = copies.iter().any(|copy| copy.primary);
    let what = names(copies).join(", ");
    let more = unassigned.saturating_sub(copies.len());
    let others = if more > 0 { format!(" (of {unassigned} that wait)") } else { String::new() };
    let by = if decider.is_empty() {
        "no decider is named".to_owned()
    } else {
        format!("decider {decider}")
    };
    Finding {
        class: Class::AllocationBlock,
        subjects: names(copies),
        place: decider.to_owned(),
        // Data that cannot be reached comes before data that is slow.
        strength: if primary { 1.0 } else { 0.95 },
        sentence: format!("no node may hold the {what}{others}: {by}; it will not come by itself"),
        evidence: explained(copies, known.map(|(name, ..)| *name)),
        lift: Some(Lift {
            setting: setting.map(str::to_owned),
            now: now.map(|setting| setting.value.clone()),
            set_by: now.map(|setting| setting.scope),
            to: None,
            action: action.to_owned(),
        }),
        gain: None,
        next: Some("a recovery slot, then the recovery itself".to_owned()),
        doubt: None,
    }
}

/// Waiting that ends by itself is no finding, unless data cannot be reached meanwhile.
fn wait(sentence: &str, copies: &[&WaitingCopy]) -> Option<Finding> {
    let primaries: Vec<&WaitingCopy> = copies.iter().copied().filter(|copy| copy.primary).collect();
    if primaries.is_empty() {
        return None;
    }
    Some(Finding {
        class: Class::AllocationBlock,
        subjects: names(&primaries),
        place: String::new(),
        strength: 0.6,
        sentence: format!("{} waits: {sentence}", names(&primaries).join(", ")),
        evidence: explained(&primaries, None),
        lift: None,
        gain: None,
        next: None,
        doubt: None,
    })
}
