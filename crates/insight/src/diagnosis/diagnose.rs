//! The diagnosis of a series of looks: every judge is asked, and the findings are put in order.

use std::collections::{BTreeMap, BTreeSet};

use record::observation::{Gap, Health, Observation, Recovery};
use record::{Line, RunDir};
use serde::Serialize;

use super::alike::Alike;
use super::answers::Answers;
use super::begun_anew::begun_anew;
use super::cause::Judge;
use super::causes::{follower_stopped, gc, judges, replica_routing, unknown};
use super::ceilings;
use super::class::Class;
use super::copying::Recovering;
use super::finding::{Finding, Lift};
use super::following::{follow_on, followings};
use super::knobs::Knobs;
use super::manager_queue::long_queue;
use super::moving::{moves, settings_against_moves};
use super::probe::result::ProbeResult;
use super::recovery::{self, Judged};
use super::series::{Series, Transfer};
use super::snapshots::{Written, standing, written};
use super::streaming::{Streaming, long_disk_queues, streamings};
use super::threshold::FAST_BYTES_PER_S;
use super::unanswered::{HEALTH, RECOVERY, SHARDS, lacks, tells_of_recoveries};
use super::waiting::{
    Waiting, allocation_off, made_anew, waiting, waits_for_answers, waits_for_nodes,
};
use super::watermarks::forbidden;
use crate::words::counted;

/// What was found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Diagnosis {
    /// For how long the cluster was looked at, in milliseconds.
    pub looked_ms: f64,
    /// How many looks there were.
    pub looks: usize,
    /// Everything that holds something: what holds now before what held recoveries that are over, each the strongest
    /// first; unknown causes come last.
    pub findings: Vec<Finding>,
    /// What goes on without being held by anything, a sentence each: recoveries, copies that move, nodes that are
    /// waited for.
    pub healthy: Vec<String>,
    /// What holds nothing today and should be known all the same, a sentence each.
    pub notes: Vec<String>,
    /// What could not be asked, and what is lost without it.
    pub gaps: Vec<String>,
    /// The cluster's health by the last look; none where it was not told, as of a bucket.
    pub health: Option<Health>,
    /// The whole in one sentence.
    pub headline: String,
    /// Results of probes; empty without probes.
    pub probes: Vec<ProbeResult>,
}

impl Diagnosis {
    /// The finding that the headline names, where the same holds besides, and how many other findings there are.
    pub(crate) fn leading(&self) -> Option<(&Finding, String)> {
        let all = Alike::of(&self.findings);
        let first = all.first()?;
        let others = match all.len() - 1 {
            0 => String::new(),
            1 => "; 1 more finding".to_owned(),
            n => format!("; {n} more findings"),
        };
        Some((first.first, first.elsewhere() + &others))
    }

    fn headline_of_findings(&self) -> Option<String> {
        let (first, others) = self.leading()?;
        Some(format!("{}: {}{others}", first.label(), first.sentence))
    }
}

/// The looks that a run recorded; empty where it measured instead.
pub fn recorded(run: &RunDir) -> Series<'_> {
    Series::new(run.lines.iter().filter_map(|line| match line {
        Line::Observation { t_ms, observation } => Some((*t_ms, &**observation)),
        _ => None,
    }))
}

/// What the judges of nodes found, which counts until nodes are asked for again.
#[derive(Debug, Default)]
pub struct OfNodes {
    /// The times of the looks that told of nodes.
    told_ms: Vec<f64>,
    found: Vec<Finding>,
}

/// Judges everything that a series of looks shows.
pub fn diagnose(series: &Series<'_>) -> Diagnosis {
    diagnose_again(series, &mut OfNodes::default())
}

/// The same of a cluster that is looked at again and again, whose hundreds of nodes are asked for less often.
pub fn diagnose_again(series: &Series<'_>, of_nodes: &mut OfNodes) -> Diagnosis {
    let recovering = Recovering::all(series);
    let (held, mut healthy) = of_recoveries(series, &recovering);
    healthy.extend(goes_on_beside(series));
    healthy.extend(follow_on(series));
    let mut findings = merged(held);
    mark_over(&mut findings, series, series);
    let mut waiting = of_waiting(series, &findings, &recovering);
    join_slots(&mut waiting, &mut findings, series);
    findings.extend(waiting);
    findings.extend(merged(of_followers(series)));
    let (held, streaming) = of_streams(series);
    findings.extend(merged(held));
    healthy.extend(streaming);
    findings.extend(of_cluster(series));
    let nodes = of_nodes.judge(series);
    let is_known = |one: &&Finding| findings.iter().any(|other| one.names_the_same_as(other));
    let nodes: Vec<Finding> = nodes.iter().filter(|one| !is_known(one)).cloned().collect();
    findings.extend(nodes);
    sort(&mut findings);
    let notes = notes(series, &findings);
    let gaps = series.last().map(|look| &look.gaps).into_iter().flatten();
    let mut diagnosis = Diagnosis {
        looked_ms: series.span_ms(),
        looks: series.looks().len(),
        findings,
        healthy,
        notes,
        gaps: gaps.map(in_words).collect(),
        health: series.last().and_then(|look| look.health.clone()),
        headline: String::new(),
        probes: Vec::new(),
    };
    diagnosis.headline = headline(&diagnosis, series);
    diagnosis
}

fn in_words(gap: &Gap) -> String {
    format!("{}: {}; without it one cannot tell {}", gap.path, gap.found, gap.lost)
}

/// What holds nothing today and should be known all the same.
fn notes(series: &Series<'_>, findings: &[Finding]) -> Vec<String> {
    let anew = begun_anew(series).into_iter().chain(made_anew(series));
    let settings = allocation_off(series).into_iter().chain(settings_against_moves(series));
    let refused = replica_routing::refused(series).into_iter();
    let searches = refused.chain(replica_routing::cancelled(series));
    let searches = replica_routing::avoided(series).into_iter().chain(searches);
    anew.chain(settings)
        .chain(forbidden(series))
        .chain(long_queue(series))
        .chain(standing(series))
        .chain(searches)
        .chain(long_disk_queues(series))
        .chain(follower_stopped::held_off(series))
        .chain(gc::elsewhere(series, findings))
        .collect()
}

/// What goes on without anybody's help, beside recoveries: copies that wait for a node to come back or move, and
/// snapshots.
fn goes_on_beside(series: &Series<'_>) -> Vec<String> {
    let waits = series.last().and_then(waits_for_nodes);
    let snapshots = written(series).into_iter().filter(Written::goes_on).map(|one| one.sentence());
    let asked = series.last().and_then(waits_for_answers);
    waits.into_iter().chain(asked).chain(moves(series)).chain(snapshots).collect()
}

/// What holds recoveries, and sentences on those that nothing holds.
fn of_recoveries<'s, 'a>(
    series: &'s Series<'a>,
    recovering: &[Recovering<'s, 'a>],
) -> (Vec<Finding>, Vec<String>) {
    let queue = series.last().is_some_and(|look| {
        look.waiting.iter().any(|copy| copy.can_allocate.as_deref() == Some("throttled"))
    });
    let (mut held, mut healthy) = (Vec::new(), Vec::new());
    for one in recovering {
        match recovery::judge(series, one, queue) {
            Judged::Held(finding) => held.push((one.transfer.last(), *finding)),
            Judged::Healthy(sentence) => healthy.push(sentence),
        }
    }
    let mut findings = joined(held, series);
    if findings.is_empty() && healthy.is_empty() {
        findings.extend(recovery::just_begun(series));
    }
    (findings, healthy)
}

/// What holds recoveries on a path holds the others between the same nodes as well, and what a node's limiter holds are
/// all that pass it: those without a cause of their own become its subjects, and of those of which nothing came, the
/// ones that only have a busy neighbour. A replay is a copy's own, and so is what a copy waits for that has all its
/// files.
fn joined(held: Vec<(&Recovery, Finding)>, series: &Series<'_>) -> Vec<Finding> {
    let (mut without, mut findings): (Vec<(&Recovery, Finding)>, Vec<_>) =
        held.into_iter().partition(|(one, finding)| {
            let is_open = finding.is_without_a_cause() || is_suspected(one, finding, series);
            is_open && one.copies_files() && !waits_with_all(one, series)
        });
    // What stays a suspicion holds others on its path as before.
    without.sort_by_key(|(_, finding)| finding.is_without_a_cause());
    for (recovery, finding) in without {
        let holds = |(other, known): &&mut (&Recovery, Finding)| {
            let is_on_path = recovery.is_on_path_of(other) && is_of_path(known.class);
            (is_on_path && finding.is_without_a_cause()) || passes_limiter(recovery, known, series)
        };
        let strongest = findings
            .iter_mut()
            .filter(holds)
            .max_by(|(_, a), (_, b)| a.strength.total_cmp(&b.strength));
        match strongest {
            Some((_, known)) => holds_too(known, finding.subjects),
            None => findings.push((recovery, finding)),
        }
    }
    findings.into_iter().map(|(_, finding)| finding).collect()
}

/// Whether nothing of a recovery came while one looked, and busy cores of a neighbour are all that is seen beside it. A
/// chunk that waits in line at a limiter looks the same.
fn is_suspected(recovery: &Recovery, finding: &Finding, series: &Series<'_>) -> bool {
    let came = series.transfer(recovery).and_then(Transfer::bytes);
    let is_of_a_disk = finding.evidence.iter().any(|line| line.field.starts_with("fs.io_stats"));
    finding.class == Class::NoisyNeighbour && !is_of_a_disk && came == Some(0)
}

/// Whether a recovery has had all its files for as long as one looked, which is long, and is not over.
fn waits_with_all(recovery: &Recovery, series: &Series<'_>) -> bool {
    let is_still = series.transfer(recovery).is_some_and(Transfer::stands_still);
    is_still && recovery::has_all_bytes(recovery)
}

/// Adds what a finding holds as well. A recovery that began anew stands behind the one before, and is named once.
fn holds_too(known: &mut Finding, subjects: Vec<String>) {
    if known.subjects.last() != subjects.last() {
        known.subjects.extend(subjects);
    }
}

fn is_of_path(class: Class) -> bool {
    !matches!(class, Class::Unknown | Class::OperationReplay | Class::MergeThrottle)
}

/// Whether a recovery passes the limiter that was found to hold another one.
fn passes_limiter(recovery: &Recovery, known: &Finding, series: &Series<'_>) -> bool {
    let setting = known.lift.as_ref().and_then(|lift| lift.setting.as_deref());
    let own = Knobs::of(recovery, series).rate.map(|(name, _)| name);
    let ends = [recovery.sender(), recovery.target.as_deref()];
    known.class == Class::RateLimit
        && setting.is_some()
        && setting == own
        && ends.into_iter().flatten().any(|node| node == known.place)
}

/// Copies that wait for a slot of a node and recoveries onto it that nothing else holds are held by the same. One that
/// has a slot and stands still is held by something else, and keeps the others waiting.
fn join_slots(waiting: &mut [Finding], findings: &mut Vec<Finding>, series: &Series<'_>) {
    let all = series.transfers().iter().filter(|one| one.stands_still());
    let still: BTreeSet<String> = all.map(Transfer::name).collect();
    let is_of_slots =
        |one: &&mut Finding| one.class == Class::AllocationSlots && one.gain.is_some();
    for slots in waiting.iter_mut().filter(is_of_slots) {
        let place = slots.place.clone();
        let is_held = |one: &mut Finding| {
            let goes_on = !one.subjects.iter().any(|subject| still.contains(subject));
            one.is_without_a_cause() && one.place == place && goes_on
        };
        slots.subjects.extend(findings.extract_if(.., is_held).flat_map(|one| one.subjects));
    }
}

/// What holds copies that wait. `held` is what holds recoveries: more slots share what those at the same nodes have.
fn of_waiting<'s, 'a>(
    series: &'s Series<'a>,
    held: &[Finding],
    recovering: &[Recovering<'s, 'a>],
) -> Vec<Finding> {
    let first = |mut waiting: Waiting<'s, 'a>| {
        let nodes = waiting.throttled();
        let there: Vec<_> = recovering.iter().filter(|one| is_at(one.transfer, &nodes)).collect();
        waiting.held_by = holder(held, &there).or_else(|| full(held, waiting.source()?));
        let rates = there.iter().filter_map(|one| Some(one.copying(series)?.one_way_bytes_per_s()));
        waiting.one_way_bytes_per_s = rates.reduce(f64::max);
        let answers = Answers::new(judges().filter_map(|(class, judge)| match judge {
            Judge::Waiting(judge) => Some((class, judge(&waiting))),
            _ => None,
        }));
        let mut finding = answers.first().ok()?;
        ceilings::cap(&mut finding, there.into_iter().filter_map(|one| one.copying(series)));
        Some(finding)
    };
    waiting(series).into_iter().filter_map(first).collect()
}

/// Whether a recovery is from or to one of these nodes; where none is told, it may be.
fn is_at(transfer: &Transfer<'_>, nodes: &BTreeSet<&str>) -> bool {
    let ends = [&transfer.last().source, &transfer.last().target];
    nodes.is_empty() || ends.into_iter().flatten().any(|node| nodes.contains(node.as_str()))
}

/// The cause that holds one of these recoveries. More slots help only where those that have one leave room.
fn holder(held: &[Finding], there: &[&Recovering<'_, '_>]) -> Option<&'static str> {
    let names: BTreeSet<String> = there.iter().map(|one| one.transfer.name()).collect();
    let is_there = |one: &&Finding| one.subjects.iter().any(|subject| names.contains(subject));
    let held = held.iter().filter(|one| leaves_no_room(one)).filter(is_there);
    held.min_by_key(|one| one.over).map(|finding| finding.class.label())
}

/// The cause that holds what the node of the primaries sends to others: what waits would share it.
fn full(held: &[Finding], source: &str) -> Option<&'static str> {
    let mut held = held.iter().filter(|one| !one.over && leaves_no_room(one));
    held.find(|one| one.place == source).map(|finding| finding.class.label())
}

fn leaves_no_room(finding: &Finding) -> bool {
    !matches!(finding.class, Class::Unknown | Class::Latency | Class::OperationReplay)
}

fn of_followers(series: &Series<'_>) -> Vec<Finding> {
    let first = |following| {
        let answers = Answers::new(judges().filter_map(|(class, judge)| match judge {
            Judge::Following(judge) => Some((class, judge(&following))),
            _ => None,
        }));
        match answers.first() {
            Ok(first) => Some(first),
            Err(ruled_out) => Some(Finding { ruled_out, ..unknown::follower(&following)? }),
        }
    };
    followings(series).into_iter().filter_map(first).collect()
}

/// What holds DCP connections that are behind, and sentences on those that nothing holds.
fn of_streams(series: &Series<'_>) -> (Vec<Finding>, Vec<String>) {
    let (mut findings, mut healthy) = (Vec::new(), Vec::new());
    for streaming in streamings(series) {
        match streaming.behind().and_then(|()| stream_held(&streaming)) {
            Ok(finding) => findings.push(finding),
            Err(well) => healthy.push(well),
        }
    }
    (findings, healthy)
}

fn stream_held(streaming: &Streaming<'_>) -> Result<Finding, String> {
    let answers = Answers::new(judges().filter_map(|(class, judge)| match judge {
        Judge::Streaming(judge) => Some((class, judge(streaming))),
        _ => None,
    }));
    let ruled_out = match answers.first() {
        Ok(first) => return Ok(first),
        Err(ruled_out) => ruled_out,
    };
    match streaming.bytes_per_s() {
        Some(rate) if rate >= FAST_BYTES_PER_S.value => Err(streaming.goes_on(rate)),
        _ => Ok(Finding { ruled_out, ..unknown::stream(streaming) }),
    }
}

/// What the judges of remote clusters and of the cluster as a whole find.
fn of_cluster(series: &Series<'_>) -> Vec<Finding> {
    let remotes = series.remotes();
    let of_remote = judges().flat_map(|(_, judge)| match judge {
        Judge::Remote(judge) => remotes.iter().filter_map(|one| judge(series, one)).collect(),
        _ => Vec::new(),
    });
    let of_all = judges().filter_map(|(_, judge)| match judge {
        Judge::Cluster(judge) => judge(series),
        _ => None,
    });
    of_remote.chain(of_all).collect()
}

impl OfNodes {
    /// What the judges of nodes find.
    fn judge(&mut self, series: &Series<'_>) -> &[Finding] {
        let looks = series.looks().iter().filter(|(_, look)| !look.nodes.is_empty());
        let told_ms: Vec<f64> = looks.map(|(t_ms, _)| *t_ms).collect();
        if self.told_ms != told_ms {
            let all = judges().flat_map(|(_, judge)| match judge {
                Judge::Node(judge) => series.nodes().filter_map(judge).collect(),
                _ => Vec::new(),
            });
            (self.found, self.told_ms) = (all.collect(), told_ms);
        }
        &self.found
    }
}

/// Marks findings of which all recoveries are over by the last look. What passes a limiter next is held by it as well:
/// of many short recoveries, those of now began too late for the looks that were `judged`.
pub(super) fn mark_over(findings: &mut [Finding], series: &Series<'_>, judged: &Series<'_>) {
    let (ended, going): (Vec<_>, Vec<_>) =
        series.transfers().iter().partition(|transfer| transfer.last().ended);
    let names = |all: Vec<&Transfer<'_>>| all.into_iter().map(Transfer::name).collect();
    let (ended, going): (BTreeSet<String>, BTreeSet<String>) = (names(ended), names(going));
    let last = series.last().map(|look| &look.recoveries[..]).unwrap_or_default();
    let is_new =
        |one: &&Recovery| !one.ended && one.copies_files() && judged.transfer(one).is_none();
    let new: Vec<&Recovery> = last.iter().filter(is_new).collect();
    for finding in findings {
        let is_over = |subject: &String| ended.contains(subject) && !going.contains(subject);
        finding.over = !finding.subjects.is_empty() && finding.subjects.iter().all(is_over);
        if !finding.over {
            continue;
        }
        let known: &Finding = finding;
        let next = new.iter().filter(|one| passes_limiter(one, known, series));
        let next: Vec<String> =
            next.map(|one| Transfer::since_its_beginning(series.span_ms(), one).name()).collect();
        finding.over = next.is_empty();
        for subject in next {
            holds_too(finding, vec![subject]);
        }
        if finding.over {
            finding.sentence =
                finding.sentence.replace(" is the bottleneck", " was the bottleneck");
        }
    }
}

/// What holds now comes before what held recoveries that are over, each the strongest first; unknown causes come last.
/// Of two as strong, what keeps a copy from coming up at all comes before what slows another.
pub(super) fn sort(findings: &mut [Finding]) {
    let rank = |one: &Finding| {
        let slows = one.class != Class::AllocationBlock;
        (one.class == Class::Unknown, one.over, -one.strength, slows)
    };
    findings.sort_by(|a, b| rank(a).partial_cmp(&rank(b)).unwrap_or(std::cmp::Ordering::Equal));
    settle(findings);
}

/// Of two findings that propose values for one setting, the first has its way.
fn settle(findings: &mut [Finding]) {
    let mut proposed: BTreeMap<String, String> = BTreeMap::new();
    for finding in findings {
        let Some(lift) = &mut finding.lift else { continue };
        let (Some(setting), Some(to)) = (&lift.setting, &lift.to) else { continue };
        let first = proposed.entry(setting.clone()).or_insert_with(|| to.clone());
        if first != to {
            let action = "try the value above first: one setting serves both".to_owned();
            let yields = Lift { action, to: None, ..lift.clone() };
            // The gain was reckoned from the value that is not tried.
            let own = (std::mem::replace(lift, yields), finding.gain.take());
            finding.yielded = Some(Box::new(own));
        }
    }
}

/// Has the finding at a place lead all before it.
pub(super) fn lead(diagnosis: &mut Diagnosis, at: usize) {
    unsettle(&mut diagnosis.findings);
    diagnosis.findings[..=at].rotate_right(1);
    settle(&mut diagnosis.findings);
    if let Some(headline) = diagnosis.headline_of_findings() {
        diagnosis.headline = headline;
    }
}

/// Gives every finding its own proposal back: which one has its way is settled anew by [`sort`].
pub(super) fn unsettle(findings: &mut [Finding]) {
    for finding in findings {
        if let Some(own) = finding.yielded.take() {
            (finding.lift, finding.gain) = (Some(own.0), own.1);
        }
    }
}

/// Findings of one cause in one place become one: a limiter is a node's, whichever shards it holds.
fn merged(findings: Vec<Finding>) -> Vec<Finding> {
    let mut merged: Vec<Finding> = Vec::new();
    for finding in findings {
        match merged.iter_mut().find(|other| finding.names_the_same_as(other)) {
            Some(same) => {
                holds_too(same, finding.subjects.clone());
                if finding.strength > same.strength {
                    *same = Finding { subjects: std::mem::take(&mut same.subjects), ..finding };
                }
            }
            None => merged.push(finding),
        }
    }
    merged
}

/// What one cannot tell for want of an answer: that nothing recovers or waits, or which copies wait.
fn not_known(look: &Observation) -> Option<String> {
    let path = match &look.health {
        _ if !tells_of_recoveries(look) => RECOVERY,
        None => HEALTH,
        Some(_) if !lacks(look, SHARDS) => return None,
        Some(health) => match health.unassigned {
            None | Some(0) => SHARDS,
            Some(count) => {
                let wait = counted(count, "copy waits", "copies wait");
                return Some(format!("{wait}, and which is not known: {SHARDS} was not answered"));
            }
        },
    };
    Some(format!("not known: whether anything recovers or waits, for {path} was not answered"))
}

/// The questions without an answer, where nothing was found and one cannot tell that all is well for want of one of
/// them; none elsewhere.
pub fn untold(diagnosis: &Diagnosis, series: &Series<'_>) -> Option<Vec<String>> {
    let last = series.last()?;
    let is_told = !diagnosis.findings.is_empty() || copying(last) > 0 || not_known(last).is_none();
    // A health that says nothing was answered all the same.
    let is_asked = [RECOVERY, HEALTH, SHARDS].iter().any(|path| lacks(last, path));
    let paths = || last.gaps.iter().map(|gap| gap.path.clone()).collect();
    (diagnosis.looks >= 2 && !is_told && is_asked).then(paths)
}

/// How many recoveries copy files.
fn copying(look: &Observation) -> usize {
    look.recoveries.iter().filter(|recovery| !recovery.ended && recovery.copies_files()).count()
}

/// Copies on no node, or coming up, as the health counts them: those of an index that was just created move no bytes,
/// and wait for nothing but the manager's next turn.
fn still_to_come(look: &Observation) -> u64 {
    let health = look.health.as_ref();
    let counts = health.map(|health| [health.unassigned, health.initializing]);
    counts.into_iter().flatten().flatten().sum()
}

pub(super) fn headline(diagnosis: &Diagnosis, series: &Series<'_>) -> String {
    if diagnosis.looks < 2 {
        return "one look is not enough: counters say something only by how they change".to_owned();
    }
    if let Some(of_findings) = diagnosis.headline_of_findings() {
        return of_findings;
    }
    let last = series.last();
    if last.is_some_and(|look| !look.buckets.is_empty()) {
        return match diagnosis.healthy.len() {
            0 => "healthy: the bucket sends on no DCP connection".to_owned(),
            1 => "healthy: 1 DCP connection, and nothing holds it".to_owned(),
            n => format!("healthy: {n} DCP connections, and nothing holds one that is behind"),
        };
    }
    let recovering = last.map_or(0, copying);
    if let Some(sentence) = last.and_then(not_known).filter(|_| recovering == 0) {
        return sentence;
    }
    let health = last.and_then(|look| look.health.as_ref());
    let status = health.map_or("unknown", |health| health.status.as_str());
    // Followers that keep up are the news where there is no other.
    let (beside, followers) = (goes_on_beside(series), follow_on(series));
    let to_come = last.map_or(0, still_to_come);
    let is_alone = diagnosis.healthy.len() == followers.len();
    let follower = followers.first().filter(|_| is_alone && to_come == 0);
    match (recovering, beside.first().or(follower)) {
        (0, Some(first)) => format!("healthy: {first} (health {status})"),
        (0, None) if is_alone => {
            let said = match to_come {
                0 => "nothing recovers or waits".to_owned(),
                1 => "1 copy is still to come up, and nothing seen holds it".to_owned(),
                n => format!("{n} copies are still to come up, and nothing seen holds them"),
            };
            format!("healthy: {said} (health {status})")
        }
        (0, None) => format!("healthy: what recovered is done (health {status})"),
        (1, _) => "healthy: 1 recovery goes on and nothing holds it".to_owned(),
        (n, _) => format!("healthy: {n} recoveries go on and nothing holds them"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_holds_now_comes_before_what_held_what_is_over() {
        let of = |class: Class, over, strength| Finding {
            over,
            ..Finding::of(class.rule(), "a", strength, "s")
        };
        let leads = |mut findings: Vec<Finding>| {
            sort(&mut findings);
            let diagnosis = Diagnosis { findings, ..diagnose(&Series::new([])) };
            diagnosis.leading().map(|(first, _)| first.class)
        };
        let limit = of(Class::RateLimit, true, 0.9);
        assert_eq!(leads(vec![limit.clone(), of(Class::Cpu, false, 0.5)]), Some(Class::Cpu));
        let unknown = of(Class::Unknown, false, 1.0);
        assert_eq!(leads(vec![unknown, limit.clone()]), Some(Class::RateLimit));
        assert_eq!(leads(vec![limit]), Some(Class::RateLimit));
        let full = of(Class::RateLimit, false, 1.0);
        let primary = of(Class::AllocationBlock, false, 1.0);
        assert_eq!(leads(vec![full, primary]), Some(Class::AllocationBlock), "it is away");
    }
}
