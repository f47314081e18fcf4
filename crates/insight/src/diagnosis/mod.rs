//! What holds a live cluster's transfers, copies and followers, told from observations alone.
//!
//! | module | holds |
//! | --- | --- |
//! | `rules` | the table: classes, signatures, fields, thresholds, what lifts each |
//! | `series` | looks in order of time, and what changed between them |
//! | `transfer`, `waiting`, `follower` | the judges |
//! | `knobs` | which settings rule which recovery, and what they are today |
//! | [`probe`] | changing a setting for seconds, to tell apart what looks the same |
//! | `pace`, `node_pace` | rates and times to go; what each node does now |
//!
//! Two looks are needed: counters alone say nothing. The traps of the field are kept: source and target pauses are
//! summed, a limiter is a node's and not a shard's, pauses of several threads may exceed the time, and a setting
//! that was acknowledged counts only if the rate obeys it.

mod class;
mod finding;
mod follower;
mod knobs;
mod node_pace;
mod pace;
pub mod probe;
mod rules;
mod series;
mod transfer;
mod waiting;

use record::observation::Recovery;
use record::{Line, RunDir};
use serde::Serialize;

pub use class::Class;
pub use finding::{Evidence, Finding, Gain, Lift};
pub use node_pace::{NodePace, node_paces};
pub use pace::{Pace, paces};
pub use rules::{RULES, Rule, Threshold, rule};
pub use series::Series;

use transfer::Judged;

/// What was found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Diagnosis {
    /// How long was looked, in milliseconds.
    pub looked_ms: f64,
    /// How often.
    pub looks: usize,
    /// Everything that holds something, strongest first; unknown causes come last.
    pub findings: Vec<Finding>,
    /// What was looked at and is well, a sentence each.
    pub healthy: Vec<String>,
    /// What could not be asked, and what is lost without it.
    pub gaps: Vec<String>,
    /// The whole in one sentence.
    pub headline: String,
    /// What was tried; empty where looking was all.
    pub probes: Vec<probe::Outcome>,
}

/// The looks that a run recorded; empty where it measured instead.
pub fn recorded(run: &RunDir) -> Series<'_> {
    Series::new(run.lines.iter().filter_map(|line| match line {
        Line::Observation { t_ms, observation } => Some((*t_ms, &**observation)),
        _ => None,
    }))
}

/// Judges everything that a series of looks shows.
pub fn diagnose(series: &Series<'_>) -> Diagnosis {
    let transfers = series.transfers();
    let queue = series.last().is_some_and(|look| {
        look.waiting.iter().any(|copy| copy.can_allocate.as_deref() == Some("throttled"))
    });
    let mut findings = Vec::new();
    let mut healthy = Vec::new();
    for one in transfers.iter().filter(|transfer| copies(transfer.last())) {
        match transfer::judge(series, one, &transfers, queue) {
            Judged::Held(finding) => findings.push(*finding),
            Judged::Healthy(sentence) => healthy.push(sentence),
        }
    }
    if findings.is_empty() && healthy.is_empty() {
        findings.extend(transfer::just_begun(series));
    }
    let mut findings = merged(findings);
    // More slots help only where the recoveries that have one leave room.
    let held = findings
        .iter()
        .find(|f| !matches!(f.class, Class::Unknown | Class::Latency | Class::OperationReplay))
        .map(|finding| finding.class.label());
    findings.extend(waiting::findings(series, held));
    findings.extend(merged(follower::findings(series)));
    findings.extend(follower::proxies(series));
    findings.extend(follower::routing(series));
    let nodes = without_transfer(series, &findings);
    findings.extend(nodes);
    sort_findings(&mut findings);
    let gaps = series.last().map(|look| &look.gaps).into_iter().flatten();
    let mut diagnosis = Diagnosis {
        looked_ms: series.span_ms(),
        looks: series.looks().len(),
        findings,
        healthy,
        gaps: gaps
            .map(|gap| {
                format!("{}: {}; without it one cannot tell {}", gap.path, gap.found, gap.lost)
            })
            .collect(),
        headline: String::new(),
        probes: Vec::new(),
    };
    diagnosis.headline = headline(&diagnosis, series);
    diagnosis
}

/// Whether a recovery takes its files from elsewhere; others have nothing to wait for.
fn copies(recovery: &Recovery) -> bool {
    !matches!(recovery.kind.as_str(), "EMPTY_STORE" | "EXISTING_STORE")
}

/// Strongest first; unknown causes come last.
fn sort_findings(findings: &mut [Finding]) {
    let rank = |finding: &Finding| (finding.class == Class::Unknown, -finding.strength);
    findings.sort_by(|a, b| rank(a).partial_cmp(&rank(b)).unwrap_or(std::cmp::Ordering::Equal));
}

/// Findings of one cause in one place become one: a limiter is a node's, whichever shards it holds.
fn merged(findings: Vec<Finding>) -> Vec<Finding> {
    let mut kept: Vec<Finding> = Vec::new();
    for finding in findings {
        let twin = kept
            .iter_mut()
            .find(|other| other.class == finding.class && other.place == finding.place);
        match twin {
            Some(twin) => {
                twin.subjects.extend(finding.subjects.iter().cloned());
                if finding.strength > twin.strength {
                    *twin = Finding { subjects: std::mem::take(&mut twin.subjects), ..finding };
                }
            }
            None => kept.push(finding),
        }
    }
    kept
}

/// Memory that refuses work matters also where nothing recovers.
fn without_transfer(series: &Series<'_>, known: &[Finding]) -> Vec<Finding> {
    let one = |name: &str| {
        let span = series.node(name)?;
        let is_known = known.iter().any(|f| f.class == Class::Memory && f.place == name);
        if is_known { None } else { transfer::memory(&format!("node {name}"), &span) }
    };
    series.node_names().into_iter().filter_map(one).collect()
}

fn headline(diagnosis: &Diagnosis, series: &Series<'_>) -> String {
    if diagnosis.looks < 2 {
        return "one look is not enough: counters say something only by how they change".to_owned();
    }
    let known = diagnosis.findings.iter().find(|finding| finding.class != Class::Unknown);
    if let Some(first) = known.or(diagnosis.findings.first()) {
        let more = diagnosis.findings.len() - 1;
        let others = match more {
            0 => String::new(),
            1 => "; 1 more finding".to_owned(),
            n => format!("; {n} more findings"),
        };
        return format!("{}: {}{others}", first.class.label(), first.sentence);
    }
    let last = series.last();
    let goes_on = |recovery: &&Recovery| !recovery.ended && copies(recovery);
    let recovering = last.map_or(0, |look| look.recoveries.iter().filter(goes_on).count());
    let status = last
        .and_then(|look| look.health.as_ref())
        .map_or("unknown", |health| health.status.as_str());
    match recovering {
        0 if diagnosis.healthy.is_empty() => {
            format!("healthy: nothing recovers or waits (health {status})")
        }
        0 => format!("healthy: what recovered is done (health {status})"),
        1 => "healthy: 1 recovery goes on and nothing holds it".to_owned(),
        n => format!("healthy: {n} recoveries go on and nothing holds them"),
    }
}
