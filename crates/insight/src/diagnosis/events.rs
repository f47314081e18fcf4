//! What happened between one look and the next, in sentences: nodes that left, settings that somebody changed, indices
//! that became yellow, recoveries that began and ended, and another verdict.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use record::observation::{Observation, Recovery, Scope, Setting, WaitingCopy};
use record::units::{parse_size, parse_throttle, show_bytes, show_seconds};
use serde::Serialize;

use super::class::Class;
use super::diagnose::Diagnosis;
use super::unanswered::{SHARDS, lacks, tells_of_recoveries};

/// Events of one kind in one look that have a sentence each; the others are counted.
const NAMED_MAX: usize = 3;
/// Another verdict counts once so many looks in a row have it.
const VERDICT_LOOKS: u32 = 3;

/// What an event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Topic {
    /// A node came or went.
    Node,
    /// Somebody changed a setting.
    Setting,
    /// The health of the cluster or of an index.
    Health,
    /// A recovery began or ended.
    Recovery,
    /// Something else holds.
    Verdict,
    /// The cluster no longer answers, or answers again.
    Reach,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Event {
    /// What it is about.
    pub topic: Topic,
    /// What happened.
    pub sentence: String,
}

impl Event {
    /// An event in a sentence.
    pub fn new(topic: Topic, sentence: impl Into<String>) -> Event {
        Event { topic, sentence: sentence.into() }
    }
}

/// Compares each look with those before it. The first look tells nothing: there is nothing to compare it with.
#[derive(Clone, Debug, Default)]
pub struct EventFinder {
    /// By name, with the time for which it has run.
    nodes: Option<BTreeMap<String, Option<u64>>>,
    settings: Option<BTreeMap<String, Setting>>,
    status: Option<String>,
    indices: Option<BTreeMap<String, Lack>>,
    /// The list from which that was told.
    waiting: Arc<[WaitingCopy]>,
    recoveries: Option<BTreeSet<Key>>,
    /// What held when it was last said, and what has held since for how many looks.
    verdict: Option<String>,
    other: (String, u32),
}

/// What tells a recovery from all others.
pub(super) type Key = (String, u32, Option<String>, Option<u64>);

pub(super) fn key(recovery: &Recovery) -> Key {
    let (index, shard, target, start_ms) = recovery.key();
    (index.to_owned(), shard, target.map(str::to_owned), start_ms)
}

/// What an index lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Lack {
    Replica,
    Primary,
}

impl EventFinder {
    /// What happened since the last look, and what `diagnosis`, which ends with this one, says anew.
    pub fn take(&mut self, look: &Observation, diagnosis: &Diagnosis) -> Vec<Event> {
        let mut found = Vec::new();
        self.nodes(look, &mut found);
        self.settings(look, &mut found);
        self.health(look, &mut found);
        self.recoveries(look, &mut found);
        self.verdict(diagnosis, &mut found);
        found
    }

    fn nodes(&mut self, look: &Observation, found: &mut Vec<Event>) {
        // Not every look asks for nodes.
        if look.nodes.is_empty() {
            return;
        }
        let now: BTreeMap<String, Option<u64>> =
            look.nodes.iter().map(|node| (node.name.clone(), node.uptime_ms)).collect();
        if let Some(before) = &self.nodes {
            let left = before.keys().filter(|name| !now.contains_key(*name));
            let joined = now.keys().filter(|name| !before.contains_key(*name));
            let again = now.iter().filter(|(name, uptime)| {
                let earlier = before.get(*name).copied().flatten();
                uptime.zip(earlier).is_some_and(|(now, then)| now < then)
            });
            say(found, Topic::Node, left.map(|name| format!("node {name} left")), "nodes left");
            let joined = joined.map(|name| format!("node {name} joined"));
            say(found, Topic::Node, joined, "nodes joined");
            let again = again.map(|(name, _)| format!("node {name} started again"));
            say(found, Topic::Node, again, "nodes started again");
        }
        self.nodes = Some(now);
    }

    fn settings(&mut self, look: &Observation, found: &mut Vec<Event>) {
        let Some(now) = &look.settings else { return };
        if self.settings.as_ref() == Some(now) {
            return;
        }
        if let Some(before) = &self.settings {
            let names: BTreeSet<&String> = before.keys().chain(now.keys()).collect();
            let changed = names.into_iter().filter_map(|name| changed(name, before, now));
            say(found, Topic::Setting, changed, "settings changed");
        }
        self.settings = Some(now.clone());
    }

    fn health(&mut self, look: &Observation, found: &mut Vec<Event>) {
        let Some(health) = &look.health else { return };
        let before = self.status.replace(health.status.clone());
        if let Some(before) = before.filter(|before| *before != health.status) {
            let sentence = format!("health went from {before} to {}", health.status);
            found.push(Event::new(Topic::Health, sentence));
        }
        let is_same = self.indices.is_some() && Arc::ptr_eq(&self.waiting, &look.waiting);
        if is_same || lacks(look, SHARDS) {
            return;
        }
        self.waiting = look.waiting.clone();
        let now = lacking(&look.waiting);
        if let Some(before) = &self.indices {
            let worse = now
                .iter()
                .filter(|(index, lack)| before.get(*index).is_none_or(|earlier| earlier < lack));
            let worse = worse.map(|(index, lack)| {
                let colour = if *lack == Lack::Primary { "red" } else { "yellow" };
                format!("index {index} became {colour}{}", why(index, &look.waiting))
            });
            say(found, Topic::Health, worse, "indices became yellow or red");
            let better = before.keys().filter(|index| !now.contains_key(*index));
            let better = better.map(|index| format!("index {index} is green again"));
            say(found, Topic::Health, better, "indices are green again");
        }
        self.indices = Some(now);
    }

    fn recoveries(&mut self, look: &Observation, found: &mut Vec<Event>) {
        // Unknown is not none: nothing has ended, and what is told again has not begun again.
        if !tells_of_recoveries(look) {
            return;
        }
        let copying = || look.recoveries.iter().filter(|one| one.copies_files());
        let now: BTreeSet<Key> = copying().filter(|one| !one.ended).map(key).collect();
        if let Some(before) = &self.recoveries {
            let is_new = |one: &&Recovery| !before.contains(&key(one));
            let began = copying().filter(|one| !one.ended).filter(is_new).map(|one| {
                let from = one.source.as_ref().or(one.repository.as_ref());
                let from = from.map_or_else(String::new, |name| format!(" from {name}"));
                let size = one.total_bytes.filter(|bytes| *bytes > 0);
                let size =
                    size.map_or_else(String::new, |bytes| format!(", {}", show_bytes(bytes)));
                format!("{} began to recover{from}{}{size}", one.shard_name(), to(one))
            });
            say(found, Topic::Recovery, began, "recoveries began");
            let ended = copying().filter(|one| one.ended).map(end_of);
            say(found, Topic::Recovery, ended, "recoveries ended");
        }
        self.recoveries = Some(now);
    }

    /// What holds most is said when it is another cause, or has another place.
    fn verdict(&mut self, diagnosis: &Diagnosis, found: &mut Vec<Event>) {
        if diagnosis.looks < 2 {
            return;
        }
        let leads = diagnosis.findings.iter().find(|one| one.class != Class::Unknown);
        let key =
            leads.map_or_else(String::new, |one| format!("{} {}", one.class.label(), one.place));
        if self.other.0 != key {
            self.other = (key.clone(), 0);
        }
        self.other.1 += 1;
        if self.other.1 < VERDICT_LOOKS || self.verdict.as_ref() == Some(&key) {
            return;
        }
        let was_silent = self.verdict.replace(key).is_none_or(|before| before.is_empty());
        match leads {
            Some(one) => {
                let sentence = format!("{}: {}", one.class.label(), one.sentence);
                found.push(Event::new(Topic::Verdict, sentence));
            }
            None if was_silent => {}
            None => found.push(Event::new(Topic::Verdict, "nothing that is known holds any more")),
        }
    }
}

fn to(recovery: &Recovery) -> String {
    recovery.target.as_ref().map_or_else(String::new, |name| format!(" to {name}"))
}

/// How a recovery ended. One that is no longer told of and was not done was cancelled, failed, or lost its node.
fn end_of(recovery: &Recovery) -> String {
    let name = format!("the recovery of {}{}", recovery.shard_name(), to(recovery));
    if recovery.stage == "DONE" {
        let took = recovery.total_ms.map(|ms| format!(" after {}", show_seconds(ms as f64 / 1e3)));
        return format!("{name} ended{}", took.unwrap_or_default());
    }
    let of = |bytes: Option<u64>| bytes.map_or_else(|| "?".to_owned(), show_bytes);
    let (came, total) = (of(recovery.recovered_bytes), of(recovery.total_bytes));
    format!("{name} is gone; it was last seen in {} with {came} of {total}", recovery.stage)
}

/// A sentence for each, or their number where there are too many.
fn say(
    found: &mut Vec<Event>,
    topic: Topic,
    sentences: impl Iterator<Item = String>,
    counted: &str,
) {
    let mut all: Vec<String> = sentences.collect();
    let more = all.len().saturating_sub(NAMED_MAX);
    if more > 0 {
        let first = all.swap_remove(0);
        all = vec![format!("{} {counted}, the first: {first}", more + NAMED_MAX)];
    }
    found.extend(all.into_iter().map(|sentence| Event::new(topic, sentence)));
}

/// Indices that lack copies. A primary of an index that was created a moment ago has nothing to lose.
fn lacking(waiting: &[WaitingCopy]) -> BTreeMap<String, Lack> {
    let mut all: BTreeMap<String, Lack> = BTreeMap::new();
    for copy in waiting {
        let is_created = copy.reason.as_deref() == Some("INDEX_CREATED");
        let lack = if copy.primary && !is_created { Lack::Primary } else { Lack::Replica };
        let known = all.entry(copy.index.clone()).or_insert(lack);
        *known = lack.max(*known);
    }
    all
}

fn why(index: &str, waiting: &[WaitingCopy]) -> String {
    let mut copies = waiting.iter().filter(|copy| copy.index == index);
    let reason = copies.find_map(|copy| copy.reason.as_deref());
    reason.map_or_else(String::new, |reason| format!(" ({reason})"))
}

/// How a setting changed; none if it did not. Defaults that a cluster merely begins to tell are no change.
fn changed(
    name: &str,
    before: &BTreeMap<String, Setting>,
    now: &BTreeMap<String, Setting>,
) -> Option<String> {
    let is_set = |one: &&Setting| one.scope != Scope::Default;
    match (before.get(name), now.get(name)) {
        (Some(was), Some(is)) if was.value == is.value => None,
        (Some(was), Some(is)) => {
            let (was_set, is_set) = (is_set(&was), is_set(&is));
            let did = match (was_set, is_set) {
                (false, false) => {
                    return Some(format!("{name} went from {} to {}", was.value, is.value));
                }
                (true, false) => "reset",
                (_, true) => direction(name, &was.value, &is.value),
            };
            let default = |is_set: bool| if is_set { "" } else { " (default)" };
            Some(format!(
                "{name} was {did} from {}{} to {}{}",
                was.value,
                default(was_set),
                is.value,
                default(is_set)
            ))
        }
        (None, Some(is)) if is_set(&is) => Some(format!("{name} was set to {}", is.value)),
        (Some(was), None) if is_set(&was) => Some(format!("{name} was reset from {}", was.value)),
        _ => None,
    }
}

/// `raised`, `lowered`, or `changed` where the values have no order.
fn direction(name: &str, was: &str, is: &str) -> &'static str {
    let amount = |text: &str| match name.ends_with("bytes_per_sec") {
        // Zero and below mean no limit.
        true => parse_throttle(text).ok().map(|limit| limit.map_or(f64::INFINITY, |l| l as f64)),
        false => {
            text.parse::<f64>().ok().or_else(|| parse_size(text).ok().map(|bytes| bytes as f64))
        }
    };
    match amount(was).zip(amount(is)) {
        Some((was, is)) if is > was => "raised",
        Some((was, is)) if is < was => "lowered",
        _ => "changed",
    }
}
