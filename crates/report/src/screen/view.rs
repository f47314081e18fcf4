//! What is shown of a live cluster.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use insight::diagnosis::{
    Alike, Diagnosis, Pace, Series, TimeToGreen, node_paces, paces, time_to_green,
};
use insight::words;
use record::observation::{Follower, Observation, WaitingCopy};
use record::units::{show_bytes, show_interval, show_seconds};
use serde::Serialize;

use super::findings::promised;
use super::nodes::Nodes;

/// The most lines of copies that wait; the other copies are counted.
pub(crate) const WAITING_MAX: usize = 20;
/// Shards that a line of copies that wait names; the others are counted.
const NAMED_MAX: usize = 3;

/// Where and how one looks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Place {
    /// The hosts, as they were given.
    pub hosts: String,
    /// What went wrong at the last look, if it did.
    pub trouble: Option<String>,
    /// Seconds since the last look that was answered.
    pub answered_s_ago: f64,
    /// Where it is recorded, if it is.
    pub record: Option<String>,
    /// The nodes, where no look told more of them since they were last shown.
    pub nodes: Option<Arc<Nodes>>,
}

/// One moment of a cluster, ready to be shown.
#[derive(Clone, Debug, PartialEq)]
pub struct View {
    /// Cluster and version.
    pub title: String,
    /// `green`, `yellow`, `red`, or `unknown`, as it is while nobody answers.
    pub health: String,
    /// Copies on no node; none where the health is not told.
    pub unassigned: Option<u64>,
    /// When it will be green.
    pub green: TimeToGreen,
    /// Hosts, what a look costs, where it is recorded.
    pub about: String,
    /// Since when nobody answers, and why. Everything else is then of the last look that was answered.
    pub trouble: Option<String>,
    /// Recoveries, active ones first.
    pub recoveries: Vec<Pace>,
    /// Nodes by name.
    pub nodes: Arc<Nodes>,
    /// A line for each follower.
    pub followers: Vec<String>,
    /// Lines of copies that wait, those whose reason is told first.
    pub waiting: Vec<WaitingLine>,
    /// How many copies wait besides.
    pub waiting_more: usize,
    /// The verdict in a sentence.
    pub verdict: String,
    /// What is found, in the order of the diagnosis; what one setting lifts at several places is one.
    pub found: Vec<Found>,
    /// What holds nothing today and should be known all the same.
    pub notes: Vec<String>,
}

/// Copies of which the same is told.
#[derive(Clone, Debug, PartialEq)]
pub struct WaitingLine {
    /// Which they are, and why they wait.
    pub text: String,
    /// The same of several shards by their number, for where names leave no room for the reason.
    pub brief: String,
    /// How many they are.
    pub copies: usize,
}

/// Something that holds, on few lines.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// The class: `rate limit`, or `rate limit, recovery ended`.
    pub class: String,
    /// Whether it holds nothing now.
    pub over: bool,
    /// The verdict in one sentence.
    pub sentence: String,
    /// What lifts it, and what that brings.
    pub lift: Option<String>,
}

impl View {
    /// The view of the last look of a series.
    pub fn of(series: &Series<'_>, diagnosis: &Diagnosis, place: &Place) -> View {
        let last = series.last();
        let health = last.and_then(|look| look.health.as_ref());
        let identity = last.map(|look| &look.cluster);
        let title = identity.map_or_else(String::new, |id| format!("{}  {}", id.name, id.build()));
        let cost = last.map(|look| look.cost).unwrap_or_default();
        let mut about = format!(
            "{}; a look: {}, {}, {:.0} ms",
            place.hosts,
            words::counted(cost.requests, "request", "requests"),
            show_bytes(cost.bytes),
            cost.took_ms
        );
        if let Some(record) = &place.record {
            about.push_str(&format!("; recorded in {record}"));
        }
        let mut recoveries = paces(series);
        recoveries.sort_by_key(|pace| pace.ended);
        let green = match place.trouble.is_some() {
            true => TimeToGreen::Unknown { why: "the cluster does not answer".to_owned() },
            false => time_to_green(series, &recoveries, diagnosis),
        };
        let unassigned = health.and_then(|health| health.unassigned);
        let health = health.filter(|_| place.trouble.is_none());
        let trouble = place.trouble.as_ref().map(|why| {
            let since = show_seconds(place.answered_s_ago.round());
            format!("no answer for {since}, what is shown is as old: {why}")
        });
        let (waiting, waiting_more) = last.map(waiting).unwrap_or_default();
        View {
            title,
            health: health.map_or("unknown", |health| health.status.as_str()).to_owned(),
            unassigned,
            green,
            about,
            trouble,
            recoveries,
            nodes: place.nodes.clone().unwrap_or_else(|| Arc::new(node_paces(series).into())),
            followers: last.map(|look| followers(&look.followers)).unwrap_or_default(),
            waiting,
            waiting_more,
            // A cluster that was healthy at its last answer may no longer be so.
            verdict: match place.trouble.is_some() && diagnosis.findings.is_empty() {
                true => "unknown: the cluster does not answer".to_owned(),
                false => diagnosis.headline.clone(),
            },
            found: Alike::of(&diagnosis.findings).iter().map(found).collect(),
            notes: diagnosis.notes.clone(),
        }
    }
}

fn found(alike: &Alike<'_>) -> Found {
    let finding = alike.first;
    let lift = finding.lift.as_ref().map(|lift| {
        let setting = lift.in_words("").filter(|_| lift.to.is_some());
        let action = setting.unwrap_or_else(|| lift.action.clone());
        let gain = finding.gain.as_ref();
        let gain = gain.map_or_else(String::new, |gain| format!(": {}", promised(gain)));
        let next = finding.next.sentence.as_ref();
        let next = next.map_or_else(String::new, |next| format!("; then {next}"));
        format!("{action}{gain}{next}")
    });
    Found {
        class: finding.label().into_owned(),
        over: finding.over,
        sentence: alike.sentence(),
        lift,
    }
}

/// Followers that are behind first.
fn followers(all: &[Follower]) -> Vec<String> {
    let mut sorted: Vec<&Follower> = all.iter().collect();
    sorted.sort_by_key(|follower| std::cmp::Reverse(follower.lag_ops()));
    let line = |follower: &&Follower| {
        let lag = match follower.lag_ops() {
            Some(0) => "up to date".to_owned(),
            Some(1) => "1 operation behind".to_owned(),
            Some(lag) => format!("{} operations behind", words::count(lag)),
            None => "lag not told".to_owned(),
        };
        let remote =
            follower.remote.as_deref().map_or_else(String::new, |name| format!(" of {name}"));
        let status =
            follower.status.as_deref().map_or_else(String::new, |name| format!(", {name}"));
        let fatal =
            follower.fatal.as_deref().map_or_else(String::new, |why| format!(", stopped: {why}"));
        format!("{}{remote}: {lag}{status}{fatal}", follower.shard_name())
    };
    sorted.iter().map(line).collect()
}

/// Why copies wait: a line for all of which the same is told, and how many copies have none. Of many copies a look asks
/// for the reason of a few: the others share a line for each way in which they came to wait.
fn waiting(look: &Observation) -> (Vec<WaitingLine>, usize) {
    let mut alike: BTreeMap<(bool, bool, Cow<'_, str>), Vec<&WaitingCopy>> = BTreeMap::new();
    for copy in look.waiting.iter().filter(|copy| copy.state == "UNASSIGNED") {
        let answer = answer(look, copy);
        let is_untold = answer.is_none();
        let why = answer.unwrap_or_else(|| copy.reason.as_deref().unwrap_or_default().into());
        alike.entry((is_untold, !copy.primary, why)).or_default().push(copy);
    }
    let hidden = alike.values().skip(WAITING_MAX).map(Vec::len).sum();
    let line =
        |((is_untold, _, why), copies): (&(bool, bool, Cow<'_, str>), &Vec<&WaitingCopy>)| {
            let why = match (*is_untold, &**why) {
                (false, answer) => answer.to_owned(),
                (true, "") => "the cluster was not asked why".to_owned(),
                (true, came_by) => format!("{came_by}; the cluster was not asked why"),
            };
            let [text, brief] = waiting_names(copies).map(|names| format!("{names}: {why}"));
            WaitingLine { text, brief, copies: copies.len() }
        };
    (alike.iter().take(WAITING_MAX).map(line).collect(), hidden)
}

/// Why a copy waits, where the cluster said it. The words suit one copy and several.
fn answer<'c>(look: &Observation, copy: &'c WaitingCopy) -> Option<Cow<'c, str>> {
    // A node that already holds a copy always refuses another: that explains nothing.
    let telling = copy.decisions.iter().find(|decision| decision.decider != "same_shard");
    let delay = look.delay_left_ms(copy).map(|ms| {
        let left = show_seconds((ms as f64 / 1e3).ceil());
        format!("waiting for a node to come back, {left} left")
    });
    let named = telling
        .or(copy.decisions.first())
        .map(|decision| format!("{}: {}", decision.decider, decision.explanation));
    delay.or(named).map(Cow::Owned).or_else(|| copy.explanation.as_deref().map(Cow::Borrowed))
}

/// `replica of logs[3]`, or `7 replicas of logs[3], logs[4], logs[5] and 4 more shards` and `7 replicas of 7 shards`;
/// all are of one kind.
fn waiting_names(copies: &[&WaitingCopy]) -> [String; 2] {
    let is_primary = copies.iter().any(|copy| copy.primary);
    let who = match (copies.len(), is_primary) {
        (1, true) => "primary".to_owned(),
        (1, false) => "replica".to_owned(),
        (several, true) => format!("{several} primaries"),
        (several, false) => format!("{several} replicas"),
    };
    // Copies of one shard stand together.
    let shards: Vec<_> =
        copies.chunk_by(|a, b| (&a.index, a.shard) == (&b.index, b.shard)).collect();
    let name = |shard: &&[&WaitingCopy]| format!("{}[{}]", shard[0].index, shard[0].shard);
    let named: Vec<String> = shards.iter().take(NAMED_MAX).map(name).collect();
    let more = match shards.len().saturating_sub(NAMED_MAX) {
        0 => String::new(),
        1 => " and 1 more shard".to_owned(),
        more => format!(" and {more} more shards"),
    };
    let text = format!("{who} of {}{more}", named.join(", "));
    let brief = match shards.len() {
        1 => text.clone(),
        count => format!("{who} of {count} shards"),
    };
    [text, brief]
}

/// What stands on the line of a recovery, by column.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct RecoveryCells {
    pub name: String,
    pub path: String,
    pub stage: String,
    /// Share that is done, 0 to 1, where it is known.
    pub done: Option<f64>,
    pub amount: String,
    pub now: String,
    pub since: String,
    pub eta: String,
    pub ended: bool,
}

pub(crate) fn recovery_cells(pace: &Pace) -> RecoveryCells {
    let replaying = pace.stage == "TRANSLOG";
    let (done, total) = if replaying {
        (pace.done_ops, pace.total_ops)
    } else {
        (pace.done_bytes, pace.total_bytes)
    };
    let share = done
        .zip(total)
        .filter(|(_, total)| *total > 0)
        .map(|(done, total)| done as f64 / total as f64);
    let amount = match (done, total, replaying) {
        (Some(done), Some(total), false) => {
            format!("{} of {}", show_bytes(done), show_bytes(total))
        }
        (Some(done), Some(total), true) => {
            format!("{} of {} ops", words::count(done), words::count(total))
        }
        (Some(done), None, true) => format!("{} ops", words::count(done)),
        _ => "-".to_owned(),
    };
    let rate = |rate: Option<f64>| rate.map_or_else(|| "-".to_owned(), words::rate);
    let ops = |rate: Option<f64>| {
        rate.map_or_else(|| "-".to_owned(), |rate| format!("{} ops/s", words::three_digits(rate)))
    };
    let eta = match pace.eta_s {
        Some((soon, late)) => show_interval(soon, late),
        None if pace.ended => "over".to_owned(),
        None => "-".to_owned(),
    };
    RecoveryCells {
        name: format!("{}[{}]", pace.index, pace.shard),
        path: format!(
            "{} > {}",
            pace.source.as_deref().unwrap_or("?"),
            pace.target.as_deref().unwrap_or("?")
        ),
        stage: if pace.ended { format!("{} (over)", pace.stage) } else { pace.stage.clone() },
        done: share.map(|share| share.clamp(0.0, 1.0)),
        amount,
        now: if replaying { ops(pace.ops_per_s) } else { rate(pace.now_bytes_per_s) },
        since: if replaying { "-".to_owned() } else { rate(pace.bytes_per_s) },
        eta,
        ended: pace.ended,
    }
}
