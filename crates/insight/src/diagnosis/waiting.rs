//! Copies that wait, by what they wait for, for the judges of their causes.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use record::names::listed;
use record::observation::{Decision, Lack, Observation, Recovery, Scope, Setting, WaitingCopy};
use record::units::show_seconds;

use super::deciders::{DECIDERS, ENABLE, MAX_RETRY, SAME_SHARD};
use super::finding::{Evidence, LINES_SHOWN};
use super::series::{MS_PER_S, Series};
use super::unanswered::{NODES, lacks as is_untold};
use crate::words;

const EXPLAIN: &str = "_cluster/allocation/explain";
/// What `can_allocate` says of a copy that waits for its node to come back.
const DELAYED: &str = "allocation_delayed";
/// The same of one that nodes are asked about.
const AWAITING_INFO: &str = "awaiting_info";
/// The decider of replicas whose primary is not there.
const BELOW_PRIMARY: &str = "replica_after_primary_active";
pub(crate) const ASKED: &str =
    "the manager asks nodes what they have of it, and one that hangs keeps it waiting";

/// What copies wait for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Need {
    /// The decider of this name refuses every node; empty if the cluster names none.
    Decider(String),
    /// The copy waits for a recovery slot.
    Slot,
    /// The copy will be placed without anybody's help; why, in words.
    Time(&'static str),
}

/// Copies that wait for the same thing.
pub(crate) struct Waiting<'s, 'a> {
    pub(crate) series: &'s Series<'a>,
    pub(crate) need: Need,
    pub(crate) copies: Vec<&'a WaitingCopy>,
    /// How many copies wait in all.
    pub(crate) unassigned: usize,
    /// How many of these wait for something else. Of many copies the cluster explains only some.
    pub(crate) elsewhere: usize,
    /// What holds the recoveries that have the slots which these wait for, where something does.
    pub(crate) held_by: Option<&'static str>,
    /// What the fastest of their nodes sends or receives for recoveries.
    pub(crate) one_way_bytes_per_s: Option<f64>,
}

impl<'a> Waiting<'_, 'a> {
    /// The nodes that would take one of the copies once a slot is free, as far as the cluster names them.
    pub(crate) fn takers(&self) -> BTreeSet<&'a str> {
        self.throttles().map(|decision| decision.node.as_str()).collect()
    }

    /// The nodes whose slots are taken, as far as the cluster names them.
    pub(crate) fn throttled(&self) -> BTreeSet<&'a str> {
        self.throttles().map(|one| self.sender(one).unwrap_or(&one.node)).collect()
    }

    /// The node that sends all of these that the cluster explained; none where they are of several, or it is not told.
    pub(crate) fn source(&self) -> Option<&'a str> {
        let mut sources = self.copies.iter().copied().map(only_holder);
        let first = sources.next()??;
        sources.all(|one| one == Some(first)).then_some(first)
    }

    fn throttles(&self) -> impl Iterator<Item = &'a Decision> {
        let decisions = self.copies.iter().copied().flat_map(|copy| &copy.decisions);
        decisions.filter(|decision| decision.decision == "THROTTLE")
    }

    /// The node of the primary, where a decision says that it sends as many copies as it may: then every node that
    /// would take one answers so. It is named by its id.
    pub(crate) fn sender(&self, decision: &Decision) -> Option<&'a str> {
        let (_, limit) = decision.explanation.split_once("outgoing shard recoveries")?;
        let (id, _) = limit.split_once("on the node [")?.1.split_once(']')?;
        let (_, nodes) = self.series.last_nodes()?;
        Some(nodes.iter().find(|node| node.id == id)?.name.as_str())
    }
}

/// Copies that have no node yet.
pub(crate) fn unassigned(look: &Observation) -> impl Iterator<Item = &WaitingCopy> {
    look.waiting.iter().filter(|copy| copy.state == "UNASSIGNED")
}

/// Everything that waits, by what it waits for. What holds other recoveries is not known yet.
pub(crate) fn waiting<'s, 'a>(series: &'s Series<'a>) -> Vec<Waiting<'s, 'a>> {
    let Some(((_, last), earlier)) = series.looks().split_last() else { return Vec::new() };
    // A copy that waits only in the last look has hardly begun to: it counts once it, or the same list, was seen twice.
    let is_known = earlier.iter().any(|(_, look)| Arc::ptr_eq(&look.waiting, &last.waiting));
    let mut new: HashSet<_> = unassigned(last).filter(|_| !is_known).map(identity).collect();
    for copy in earlier.iter().rev().flat_map(|(_, look)| look.waiting.iter()) {
        if new.is_empty() {
            break;
        }
        new.remove(&identity(copy));
    }
    let unassigned: Vec<&WaitingCopy> =
        unassigned(last).filter(|copy| !new.contains(&identity(copy))).collect();
    let told = unassigned.iter().copied().filter(|copy| copy.can_allocate.is_some());
    let told: Vec<&WaitingCopy> = told.collect();
    let mut groups: BTreeMap<Need, Vec<&WaitingCopy>> = BTreeMap::new();
    for same in told.chunk_by(|a, b| are_told_alike(a, b)) {
        for (copy, need) in same.iter().zip(needs(same[0], same.len())) {
            groups.entry(need).or_default().push(copy);
        }
    }
    let explained: usize = groups.values().map(Vec::len).sum();
    // The list is asked for less often than the health, and while copies come up fewer wait than it names.
    let by_health = last.health.as_ref().and_then(|health| health.unassigned);
    let most = by_health.map_or(usize::MAX, |count| count as usize);
    let unassigned = unassigned.len().min(most).max(explained);
    let waiting = |(need, copies): (Need, Vec<&'a WaitingCopy>)| {
        let elsewhere = explained - copies.len();
        let (held_by, one_way_bytes_per_s) = (None, None);
        Waiting { series, need, copies, unassigned, elsewhere, held_by, one_way_bytes_per_s }
    };
    groups.into_iter().map(waiting).collect()
}

fn identity(copy: &WaitingCopy) -> (&str, u32, bool) {
    (&copy.index, copy.shard, copy.primary)
}

/// Whether two copies are of one shard, and the cluster says the same of both.
fn are_told_alike(a: &WaitingCopy, b: &WaitingCopy) -> bool {
    identity(a) == identity(b) && (&a.can_allocate, &a.decisions) == (&b.can_allocate, &b.decisions)
}

/// What each of so many copies of a shard waits for, of which the cluster says the same. A node takes one of them, so
/// that what is lifted there leaves the others where they are.
fn needs(copy: &WaitingCopy, count: usize) -> Vec<Need> {
    let mut refusals = refusals(copy);
    if let Some(need) = need_of_each(copy, &refusals) {
        return vec![need; count];
    }
    // A node that holds a copy takes no other, whatever is lifted. Where all do and a node has left, that one may come
    // back: what else refuses the copy everywhere, as allocation that is off for a restart, does so there, too.
    if !has_left(copy) || refusals.values().any(|said| is_free(said)) {
        refusals.retain(|_, said| is_free(said));
    }
    let mut next = || {
        let name = first_to_lift(&refusals);
        let mut takers = refusals.iter().filter(|(_, said)| said.contains(&name) && is_free(said));
        let best = takers.clone().find(|(_, said)| said.len() == 1).or_else(|| takers.next());
        if let Some(node) = best.map(|(node, _)| *node) {
            refusals.remove(node);
        }
        Need::Decider(name.to_owned())
    };
    (0..count).map(|_| next()).collect()
}

/// What every copy of the shard waits for, however many there are; none where that goes by nodes.
fn need_of_each(copy: &WaitingCopy, refusals: &BTreeMap<&str, Vec<&str>>) -> Option<Need> {
    match copy.can_allocate.as_deref() {
        Some("throttled") => return Some(Need::Slot),
        Some("yes") => return Some(Need::Time("the manager is about to place it")),
        Some(AWAITING_INFO) => return Some(Need::Time(ASKED)),
        Some(DELAYED) => {
            return Some(Need::Time(
                "its node may come back within index.unassigned.node_left.delayed_timeout",
            ));
        }
        Some("no_valid_shard_copy") => return Some(Need::Decider("in_sync_store".to_owned())),
        _ => {}
    }
    // Without decisions on nodes the cluster gives its reason only as text.
    let words = copy.explanation.as_deref().filter(|_| copy.decisions.is_empty());
    let says = |part: &str| words.is_some_and(|words| words.contains(part));
    // The primary has a finding of its own where it does not come up, whatever else keeps its replicas from nodes.
    if refusals.values().any(|said| said.contains(&BELOW_PRIMARY))
        || says(BELOW_PRIMARY)
        || says("primary is not started")
    {
        return Some(Need::Time("its primary is not started yet"));
    }
    if copy.decisions.is_empty() {
        let known = DECIDERS.iter().find(|decider| says(decider.name));
        let named = match known {
            Some(decider) => decider.name,
            None if says(ENABLE.0) => "enable",
            None if says("retry_failed") || says("failed") => MAX_RETRY,
            None => "",
        };
        return Some(Need::Decider(named.to_owned()));
    }
    // A node whose deciders only throttle takes the copy once a slot is free, whatever other nodes answer.
    let takes = |node: &str| !refusals.contains_key(node);
    let is_taken = copy.decisions.iter().any(|one| one.decision == "THROTTLE" && takes(&one.node));
    is_taken.then_some(Need::Slot)
}

/// The deciders that refuse a copy, by node.
fn refusals(copy: &WaitingCopy) -> BTreeMap<&str, Vec<&str>> {
    let mut refusals: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for decision in copy.decisions.iter().filter(|decision| decision.decision == "NO") {
        refusals.entry(&decision.node).or_default().push(&decision.decider);
    }
    refusals
}

/// The node that holds a copy of the shard where one alone does: of a replica that waits, that is its primary.
fn only_holder(copy: &WaitingCopy) -> Option<&str> {
    let refusals = refusals(copy);
    let mut holders = refusals.iter().filter(|(_, said)| !is_free(said)).map(|(node, _)| *node);
    holders.next().filter(|_| !copy.primary && holders.next().is_none())
}

/// Whether a node holds no copy of the shard, by those that refuse another one there.
fn is_free(said: &[&str]) -> bool {
    !said.contains(&SAME_SHARD)
}

/// The deciders that refuse copies on nodes which hold none of their shards.
pub(crate) fn refused_elsewhere<'c>(copies: &[&'c WaitingCopy]) -> BTreeSet<&'c str> {
    let by_node = copies.iter().flat_map(|copy| refusals(copy).into_values());
    by_node.filter(|said| is_free(said)).flatten().collect()
}

/// Every decider answers for every node. One that alone refuses a node keeps a copy from it, and one that refuses all
/// nodes has to be lifted whatever is done about the others.
fn first_to_lift<'c>(refusals: &BTreeMap<&str, Vec<&'c str>>) -> &'c str {
    let alone = |name: &str| refusals.values().any(|said| *said == [name]);
    let everywhere = |name: &str| refusals.values().all(|said| said.contains(&name));
    let is_said = |name: &&str| refusals.values().flatten().any(|said| said == name);
    let known = DECIDERS.iter().map(|decider| decider.name).filter(is_said);
    let names: Vec<&'c str> = known.chain(refusals.values().flatten().copied()).collect();
    let named = names.iter().find(|name| alone(name));
    let named = named.or_else(|| names.iter().find(|name| everywhere(name))).or(names.first());
    named.copied().unwrap_or(SAME_SHARD)
}

/// That allocation is turned off though no copy waits: forgotten, it shows when the next node is lost.
pub(crate) fn allocation_off(series: &Series<'_>) -> Option<String> {
    let (name, default) = ENABLE;
    // The field takes these values in capitals as well.
    let is_off = |found: &&Setting| !found.value.eq_ignore_ascii_case(default);
    let Setting { value, scope } = series.setting(name).filter(is_off)?;
    if unassigned(series.last()?).next().is_some() {
        return None;
    }
    let copies = if value.eq_ignore_ascii_case("primaries") { "replicas" } else { "copies" };
    let put = taken_back(name, *scope, default);
    Some(format!(
        "{name} = {value}: {copies} of a node that is lost will not be placed anew; {put}"
    ))
}

/// The request that takes a setting back to its default.
pub(crate) fn taken_back(name: &str, scope: Scope, default: &str) -> String {
    let (rank, to) = match scope {
        Scope::Transient => ("transient", "null".to_owned()),
        Scope::Persistent => ("persistent", "null".to_owned()),
        // Nodes' configuration is not undone by a request, and a persistent value hides it.
        Scope::Default => ("persistent", format!("\"{default}\"")),
    };
    format!(
        "where that is no longer meant, PUT _cluster/settings {{\"{rank}\":{{\"{name}\":{to}}}}}"
    )
}

/// How long copies still wait for their nodes at most, where the cluster says so.
pub(crate) fn delay_left_ms(last: &Observation) -> Option<u64> {
    delayed(last).into_iter().filter_map(|copy| last.delay_left_ms(copy)).max()
}

fn delayed(last: &Observation) -> Vec<&WaitingCopy> {
    let is_delayed = |copy: &&WaitingCopy| copy.can_allocate.as_deref() == Some(DELAYED);
    last.waiting.iter().filter(is_delayed).collect()
}

/// Copies that wait for their nodes to come back, in a sentence; none where no copy does.
pub(crate) fn waits_for_nodes(last: &Observation) -> Option<String> {
    let copies = delayed(last);
    // Of many copies, the cluster explains only some. It counts primaries of the node that left as well, which nobody
    // makes anew elsewhere.
    let delayed = last.health.as_ref().and_then(|health| health.delayed).unwrap_or(0) as usize;
    let primaries = unassigned(last).filter(|copy| copy.primary && has_left(copy));
    let count = copies.len().max(delayed.saturating_sub(primaries.count()));
    let waits = match count {
        0 => return None,
        1 if copies.len() == 1 => names(&copies).remove(0) + " waits",
        n if n == copies.len() && n <= LINES_SHOWN => names(&copies).join(", ") + " wait",
        n => words::counted(n, "copy waits", "copies wait"),
    };
    let left = delay_left_ms(last).map_or_else(String::new, |ms| {
        let left = show_seconds((ms as f64 / MS_PER_S).ceil());
        format!(": {left} left, then another node takes over")
    });
    let lacks = lacks(&copies).map_or_else(String::new, |lacks| format!("; {lacks}"));
    Some(format!("{waits} for a node to come back ({}){left}{lacks}", timeout(&copies)))
}

/// Replicas that nodes are asked about, in a sentence; none where there is none. A primary of which that is so is a
/// finding.
pub(crate) fn waits_for_answers(last: &Observation) -> Option<String> {
    let is_asked =
        |copy: &&WaitingCopy| !copy.primary && copy.can_allocate.as_deref() == Some(AWAITING_INFO);
    let replicas: Vec<&WaitingCopy> = last.waiting.iter().filter(is_asked).collect();
    let wait = match replicas.len() {
        0 => return None,
        n if n <= LINES_SHOWN => named(&replicas) + if n == 1 { " waits" } else { " wait" },
        n => format!("{n} replicas wait"),
    };
    Some(format!("{wait}: {ASKED}"))
}

/// What to do about a primary that nodes are asked about. One of them that hangs keeps it waiting for as long as it is
/// in the cluster, and mostly does not tell its statistics either.
pub(crate) fn answers_awaited(series: &Series<'_>) -> String {
    let last = series.last().filter(|last| is_untold(last, NODES));
    let (Some(last), Some((_, told))) = (last, series.last_nodes()) else {
        return STILL_ASKED.to_owned();
    };
    let seen = series.looks().iter().flat_map(|(_, look)| &look.nodes);
    let mut silent: BTreeSet<&str> = seen.map(|node| node.name.as_str()).collect();
    silent.retain(|name| {
        told.iter().all(|node| node.name != *name) && last.gone.iter().all(|gone| gone != name)
    });
    let silent: Vec<&str> = silent.into_iter().take(LINES_SHOWN).collect();
    match silent.is_empty() {
        true => ONE_IS_SILENT.to_owned(),
        false => format!(
            "look at the disks and the logs of {}, which told nothing of themselves lately, and start again what \
             hangs: the manager goes on without a node that leaves",
            listed(&silent)
        ),
    }
}

const STILL_ASKED: &str = "wait a minute or two: after a start nodes read what they have. Where it lasts, GET \
                           _cluster/health says how many answers are missing (number_of_in_flight_fetch), and the \
                           manager's log which node fails to list its shards: look at its disk, and start it again \
                           where it hangs";
const ONE_IS_SILENT: &str = "a node does not tell its statistics either: GET _cat/nodes names all nodes, and GET \
                             _nodes/stats/fs?timeout=3s those that answer; look at the disk and the log of the one \
                             that is missing there, and start it again where it hangs";

/// How a copy came to wait whose node announced that it restarts (the node shutdown API of Elasticsearch).
const RESTARTING: &str = "NODE_RESTARTING";

/// Whether a copy waits because its node has left. Somebody may be restarting it, with allocation turned off for that.
pub(crate) fn has_left(copy: &WaitingCopy) -> bool {
    matches!(copy.reason.as_deref(), Some("NODE_LEFT" | RESTARTING))
}

const DELAY: &str = "index.unassigned.node_left.delayed_timeout";

/// What says how long they wait: the setting, with its value where the cluster tells it of a copy. Where all of them
/// wait for a restart, the longer of that and of what was announced counts, of which only what is left is told.
fn timeout(copies: &[&WaitingCopy]) -> String {
    let restarts = |copy: &&WaitingCopy| copy.reason.as_deref() == Some(RESTARTING);
    if !copies.is_empty() && copies.iter().all(restarts) {
        return format!("allocation_delay of its shutdown, or {DELAY} where that is longer");
    }
    let ms = copies.iter().find_map(|copy| copy.delay_ms);
    let value = ms.map(|ms| format!(" = {}", show_seconds(ms as f64 / MS_PER_S)));
    format!("{DELAY}{}", value.unwrap_or_default())
}

/// What the copies that were explained lack once their node is back, and what to set where it needs longer.
fn lacks(copies: &[&WaitingCopy]) -> Option<String> {
    let (mut ops, mut by_ops, mut by_files) = (0, 0, 0);
    for lack in copies.iter().filter_map(|copy| copy.lacks) {
        match lack {
            Lack::Operations(count) => (ops, by_ops) = (ops + count, by_ops + 1),
            Lack::Files => by_files += 1,
        }
    }
    let ops = words::counted(words::count(ops), "operation brings", "operations bring");
    let told = by_ops + by_files;
    let back = match (by_ops, by_files) {
        (0, 0) => return None,
        (_, 0) => format!("{ops} it up to date"),
        (0, _) => {
            "what differs of its files is copied, as no primary keeps operations for it".into()
        }
        _ => format!(
            "{ops} {by_ops} of {told} copies up to date, and files the others, for which no primary \
             keeps operations"
        ),
    };
    let whole = match by_ops {
        0 => String::new(),
        _ => format!(
            "; where it needs longer, PUT _all/_settings a longer {DELAY} saves whole copies"
        ),
    };
    let next_time = match by_files {
        0 => "",
        _ => {
            "; before a node is stopped next time, let indexing pause and POST _flush: what all copies have in their \
              files need not be copied"
        }
    };
    Some(format!("once it is back, {back}{whole}{next_time}"))
}

/// That copies are made anew because their node left, and what keeps the next restart from that; none where none is.
pub(crate) fn made_anew(series: &Series<'_>) -> Option<String> {
    let last = series.last()?;
    let is_whole = |one: &&Recovery| {
        let begins_with_nothing = one.reused_bytes == Some(0) && one.recovered_bytes > Some(0);
        begins_with_nothing && !one.ended && one.source.is_some()
    };
    let whole = last.recoveries.iter().filter(is_whole);
    let whole: BTreeSet<_> = whole.map(|one| (&one.index, one.shard, &one.target)).collect();
    let comes_up = |copy: &&WaitingCopy| {
        let is_known = whole.contains(&(&copy.index, copy.shard, &copy.node));
        copy.state == "INITIALIZING" && has_left(copy) && is_known
    };
    let copies = match last.waiting.iter().filter(comes_up).count() {
        0 => return None,
        count => words::counted(count, "copy is", "copies are"),
    };
    Some(format!(
        "{copies} copied whole because a node left: one that only restarts was away for longer than {DELAY}; before \
         the next one, PUT _all/_settings a longer one"
    ))
}

/// `replica of logs[3]` for each copy.
pub(crate) fn names(copies: &[&WaitingCopy]) -> Vec<String> {
    let kind = |copy: &WaitingCopy| if copy.primary { "primary" } else { "replica" };
    copies.iter().map(|copy| format!("{} of {}[{}]", kind(copy), copy.index, copy.shard)).collect()
}

/// The same for a sentence: `2 replicas of logs[3]` where copies of one shard wait.
pub(crate) fn named(copies: &[&WaitingCopy]) -> String {
    let all = names(copies);
    let words = all.chunk_by(|a, b| a == b).map(|alike| match alike {
        [one] => one.clone(),
        [one, ..] => format!("{} {}", alike.len(), one.replacen(" of ", "s of ", 1)),
        [] => String::new(),
    });
    words.collect::<Vec<_>>().join(", ")
}

/// The same, each once: two replicas of a shard have one name.
pub(crate) fn subjects(copies: &[&WaitingCopy]) -> Vec<String> {
    let mut all = names(copies);
    all.dedup();
    all
}

/// The cluster's explanations for the copies: the answers of one decider, or of all. The first copy speaks for those of
/// which the same is said; of the others, a few speak for themselves.
pub(crate) fn explained(copies: &[&WaitingCopy], decider: Option<&str>) -> Vec<Evidence> {
    let mut said: Vec<(BTreeSet<String>, &WaitingCopy)> = Vec::new();
    for copy in copies.iter().copied() {
        let reasons = reasons(copy, decider);
        if said.len() < LINES_SHOWN && said.iter().all(|(known, _)| *known != reasons) {
            said.push((reasons, copy));
        }
    }
    let mut evidence = Vec::new();
    if let Some(can_allocate) = copies.first().and_then(|copy| copy.can_allocate.as_ref()) {
        evidence.push(Evidence::new(EXPLAIN, "can_allocate", can_allocate));
    }
    let are_several = said.len() > 1;
    for (_, copy) in said {
        let of = match are_several {
            true => format!(" of {}[{}]", copy.index, copy.shard),
            false => String::new(),
        };
        // A long failure is told once, whichever nodes it keeps the copy from.
        let mut said_by: Vec<(String, Vec<&str>)> = Vec::new();
        for decision in telling(copy, decider) {
            let value =
                format!("{} {}: {}", decision.decider, decision.decision, decision.explanation);
            match said_by.iter_mut().find(|(known, _)| *known == value) {
                Some((_, nodes)) => nodes.push(&decision.node),
                None => said_by.push((value, vec![decision.node.as_str()])),
            }
        }
        evidence.extend(said_by.into_iter().map(|(value, nodes)| {
            let field = format!("node_allocation_decisions{of}, {}", nodes.join(", "));
            Evidence::new(EXPLAIN, field, value)
        }));
        if copy.decisions.is_empty()
            && let Some(words) = &copy.explanation
        {
            evidence.push(Evidence::new(EXPLAIN, format!("allocate_explanation{of}"), words));
        }
    }
    evidence
}

/// What one decider answers for a copy, or all of them: of a few nodes.
fn telling<'c>(
    copy: &'c WaitingCopy,
    decider: Option<&'c str>,
) -> impl Iterator<Item = &'c Decision> {
    let is_told = move |one: &&Decision| decider.is_none_or(|name| one.decider == name);
    copy.decisions.iter().filter(is_told).take(LINES_SHOWN)
}

/// What is said of a copy, without what differs from copy to copy and from node to node.
fn reasons(copy: &WaitingCopy, decider: Option<&str>) -> BTreeSet<String> {
    let whole = copy.explanation.as_deref().filter(|_| copy.decisions.is_empty());
    let words = telling(copy, decider).map(|one| one.explanation.as_str()).chain(whole);
    let mut reasons: BTreeSet<String> = words.map(reason).collect();
    // Why the last try failed stands among its figures.
    if decider == Some(MAX_RETRY) {
        reasons.insert(copy.index.clone());
    }
    reasons
}

/// An explanation without what it has in brackets, but for settings and filters: figures, nodes and shards.
fn reason(words: &str) -> String {
    let is_kept = |part: &str| {
        let is_named = ["index.", "cluster."].iter().any(|start| part.starts_with(start));
        !part.contains('[') && (is_named || part.contains(['=', ':']))
    };
    let (mut kept, mut rest) = (String::new(), words);
    while let Some((before, after)) = rest.split_once('[') {
        kept.push_str(before);
        let mut open = 1;
        let end = after.find(|c: char| {
            open += i32::from(c == '[') - i32::from(c == ']');
            open == 0
        });
        let (part, behind) = after.split_at(end.unwrap_or(after.len()));
        if is_kept(part) {
            kept.push_str(part);
        }
        rest = behind;
    }
    kept.push_str(rest);
    kept
}
