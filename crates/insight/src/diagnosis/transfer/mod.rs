//! What holds one recovery.

mod case;
mod limiter;
mod node;
mod path;
mod replay;

use super::knobs::Knobs;
use super::rules::{FAST_BYTES_PER_S, SHORT_S, STAGE, VERDICT};
use super::series::{Series, Transfer};
use super::{Class, Evidence, Finding, Lift};
use crate::words;
use case::Case;
pub(crate) use case::cpu;
pub(crate) use node::memory;

const STATS: &str = "_nodes/stats";
const RECOVERY: &str = "_recovery";
const SETTINGS: &str = "_cluster/settings";

/// Looks that are of now.
const LATEST: usize = 5;
/// A recovery that was seen for less than this is not judged at all.
const JUDGED_MS: f64 = 300.0;

/// What is made of one recovery.
#[derive(Clone, Debug)]
pub(crate) enum Judged {
    /// Nothing that a setting would lift; why, in a sentence.
    Healthy(String),
    /// What holds it.
    Held(Box<Finding>),
}

/// Judges one recovery among all.
///
/// `queue` says whether copies wait for a slot: then the short ones count too, for they are many.
pub(crate) fn judge(
    series: &Series<'_>,
    transfer: &Transfer<'_>,
    all: &[Transfer<'_>],
    queue: bool,
) -> Judged {
    if let Some(why) = is_short(transfer).filter(|_| !queue || transfer.wall_ms() < JUDGED_MS) {
        return Judged::Healthy(why);
    }
    if transfer.share_in("TRANSLOG") >= STAGE.value {
        return replay::replay(series, transfer);
    }
    let Some(case) = Case::of(series, transfer, all) else {
        return Judged::Held(Box::new(unknown(transfer, "its bytes are not told", Vec::new())));
    };
    let mut candidates: Vec<Finding> = [case.rate_limit(), case.latency(), case.bandwidth()]
        .into_iter()
        .flatten()
        .chain(case.ends.iter().flat_map(|(side, span)| case.node_causes(side, span)))
        .collect();
    // Stable, so that of equals the first of the table counts.
    candidates.sort_by(|a, b| b.strength.total_cmp(&a.strength));
    let second = candidates.get(1).cloned();
    match candidates.into_iter().next().filter(|first| first.strength >= VERDICT.value) {
        Some(mut first) => {
            if first.next.is_none() {
                first.next = second
                    .filter(|other| other.strength >= VERDICT.value && other.class != first.class)
                    .map(|other| format!("{} ({})", other.class.label(), other.sentence));
            }
            first.evidence.extend(case.own_accounting());
            Judged::Held(Box::new(first))
        }
        None if case.node_bytes_per_s >= FAST_BYTES_PER_S.value => Judged::Healthy(format!(
            "{} goes at {} and nothing visible holds it",
            transfer.name(),
            words::rate(case.rate_bytes_per_s)
        )),
        None => Judged::Held(Box::new(nothing_near(&case))),
    }
}

/// The limiter that lets most through: a node, and what its recoveries of one kind do together.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Busiest {
    pub(crate) node: String,
    pub(crate) node_bytes_per_s: f64,
    pub(crate) limit_bytes_per_s: Option<f64>,
    pub(crate) knobs: Knobs,
}

/// Of the recoveries that copy files in the latest looks, the busiest; none where none does.
pub(crate) fn busiest(series: &Series<'_>) -> Option<Busiest> {
    let transfers = series.tail(LATEST).transfers();
    let copies = |transfer: &&Transfer<'_>| transfer.share_in("INDEX") > 0.0;
    let cases = transfers.iter().filter(copies).filter_map(|transfer| {
        let case = Case::of(series, transfer, &transfers)?;
        Some(Busiest {
            node: case.node,
            node_bytes_per_s: case.node_bytes_per_s,
            limit_bytes_per_s: case.limit_bytes_per_s,
            knobs: case.knobs,
        })
    });
    cases.max_by(|a, b| a.node_bytes_per_s.total_cmp(&b.node_bytes_per_s))
}

/// A sentence, if the whole recovery is too short to be worth judging.
fn is_short(transfer: &Transfer<'_>) -> Option<String> {
    let last = transfer.last();
    let taken_s = last.total_ms? as f64 / 1e3;
    if last.ended {
        return (taken_s < SHORT_S.value).then(|| {
            format!("{} took {} in all", transfer.name(), record::units::show_seconds(taken_s))
        });
    }
    let left =
        last.total_bytes?.checked_sub(last.recovered_bytes? + last.reused_bytes.unwrap_or(0))?;
    let rate = transfer.bytes_per_s().filter(|rate| *rate > 0.0)?;
    let whole_s = taken_s + left as f64 / rate;
    (last.stage == "INDEX" && left > 0 && whole_s < SHORT_S.value).then(|| {
        format!(
            "{} will have taken {} in all",
            transfer.name(),
            record::units::show_seconds(whole_s)
        )
    })
}

/// What goes on and was not seen for long enough to be judged; none where one look is all there is.
pub(crate) fn just_begun(series: &Series<'_>) -> Option<Finding> {
    let last = series.last().filter(|_| series.looks().len() >= 2)?;
    let recovery = last.recoveries.iter().find(|one| !one.ended && super::copies(one))?;
    let transfer = Transfer::since_its_beginning(series.span_ms(), recovery);
    Some(unknown(&transfer, "it was seen for too short a time; look longer", Vec::new()))
}

fn nothing_near(case: &Case<'_, '_>) -> Finding {
    let mut evidence = vec![case.rate_evidence()];
    evidence.extend(case.paused_evidence());
    evidence.extend(case.idle_evidence());
    evidence.extend(case.own_accounting());
    unknown(case.transfer, "nothing that REST shows is near a limit", evidence)
}

fn unknown(transfer: &Transfer<'_>, why: &str, evidence: Vec<Evidence>) -> Finding {
    let last = transfer.last();
    let rate = transfer
        .bytes_per_s()
        .map_or_else(String::new, |rate| format!(" at {}", words::rate(rate)));
    Finding {
        class: Class::Unknown,
        subjects: vec![transfer.name()],
        place: last.target.clone().unwrap_or_default(),
        strength: 0.0,
        sentence: if last.ended {
            format!("{} came{rate}, and what held it is unknown: {why}", transfer.name())
        } else {
            format!(
                "{} is in {}{rate}, and what holds it is unknown: {why}",
                transfer.name(),
                last.stage
            )
        },
        evidence,
        lift: Some(Lift {
            setting: None,
            now: None,
            set_by: None,
            to: None,
            action: super::rule(Class::Unknown).lift.to_owned(),
        }),
        gain: None,
        next: None,
        doubt: None,
    }
}

pub(super) fn scope(scope: record::observation::Scope) -> &'static str {
    match scope {
        record::observation::Scope::Default => "default",
        record::observation::Scope::Persistent => "persistent",
        record::observation::Scope::Transient => "transient",
    }
}
