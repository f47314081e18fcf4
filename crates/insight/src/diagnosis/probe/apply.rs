//! What the outcomes of probes make of a diagnosis that was made by looking alone.

use super::outcome::{Kind, Outcome, Reading};
use crate::diagnosis::class::Class;
use crate::diagnosis::diagnose::{Diagnosis, headline, sort};
use crate::diagnosis::finding::{Evidence, Finding, Lift};
use crate::diagnosis::series::Series;

/// A verdict that a probe confirmed.
const CONFIRMED: f64 = 0.98;
/// What waits for slots that would only be shared.
const SHARED: f64 = 0.3;

/// Confirms, corrects or takes back findings; every outcome becomes evidence where it speaks of one. `series` is what
/// the diagnosis was made of.
pub fn apply(diagnosis: &mut Diagnosis, outcomes: Vec<Outcome>, series: &Series<'_>) {
    for outcome in &outcomes {
        match (outcome.probe.kind, &outcome.reading) {
            (_, Reading::Open(_) | Reading::GivenUp(_)) => {}
            (Kind::Brake, reading) => brake(diagnosis, outcome, *reading == Reading::Follows),
            (Kind::Lull, reading) => lull(diagnosis, outcome, *reading == Reading::Follows),
            (Kind::Chunks, reading) => chunks(diagnosis, outcome, *reading == Reading::Follows),
            (Kind::Slots, reading) => slots(diagnosis, outcome, *reading == Reading::Follows),
        }
    }
    diagnosis.probes = outcomes;
    sort(&mut diagnosis.findings);
    diagnosis.headline = headline(diagnosis, series);
}

fn evidence(outcome: &Outcome) -> Evidence {
    Evidence::new("probe", &outcome.probe.setting, outcome.sentence())
}

fn confirm(finding: &mut Finding, outcome: &Outcome) {
    finding.strength = finding.strength.max(CONFIRMED);
    finding.evidence.push(evidence(outcome));
    finding.doubt = None;
}

fn of_class<'d>(
    diagnosis: &'d mut Diagnosis,
    classes: &'static [Class],
) -> impl Iterator<Item = &'d mut Finding> {
    diagnosis.findings.iter_mut().filter(|finding| classes.contains(&finding.class))
}

/// Makes another class of a finding: its subjects and evidence stay, what lifts it is the class's.
fn reclassify(finding: &mut Finding, class: Class, sentence: String, outcome: &Outcome) {
    finding.lift = Some(Lift::action(class.rule().lift));
    finding.class = class;
    finding.sentence = sentence;
    finding.strength = if class == Class::Unknown { 0.0 } else { CONFIRMED };
    finding.gain = None;
    finding.next = None;
    finding.doubt = None;
    finding.evidence.push(evidence(outcome));
}

fn brake(diagnosis: &mut Diagnosis, outcome: &Outcome, holds: bool) {
    let setting = &outcome.probe.setting;
    if !holds {
        for finding in of_class(diagnosis, &[Class::RateLimit]) {
            let sentence = format!(
                "{} pauses for its limiter, but a lower limit changes nothing, so what holds is unknown",
                finding.subjects.join(", ")
            );
            reclassify(finding, Class::Unknown, sentence, outcome);
        }
        for finding in of_class(diagnosis, &[Class::Latency, Class::Bandwidth, Class::Unknown]) {
            if finding.evidence.last().is_none_or(|line| line.api != "probe") {
                finding.evidence.push(evidence(outcome));
            }
        }
        return;
    }
    let mut any = false;
    for finding in of_class(diagnosis, &[Class::RateLimit]) {
        confirm(finding, outcome);
        any = true;
    }
    if any {
        return;
    }
    // Whatever else is busy: the rate follows the limit.
    const OTHERS: &[Class] = &[
        Class::Unknown,
        Class::Latency,
        Class::Bandwidth,
        Class::Cpu,
        Class::Disk,
        Class::NoisyNeighbour,
    ];
    for finding in of_class(diagnosis, OTHERS) {
        let sentence = format!("the limiter of {} holds: {setting}", outcome.probe.place);
        reclassify(finding, Class::RateLimit, sentence, outcome);
        lift_by(finding, outcome);
    }
}

/// The probe's own setting is what lifts it.
fn lift_by(finding: &mut Finding, outcome: &Outcome) {
    let lift = finding.lift.get_or_insert_with(Default::default);
    lift.setting = Some(outcome.probe.setting.clone());
    lift.now = Some(outcome.probe.found.value.clone());
    lift.set_by = Some(outcome.probe.found.scope);
    lift.to = (outcome.probe.kind == Kind::Chunks).then(|| outcome.probe.to.clone());
}

fn lull(diagnosis: &mut Diagnosis, outcome: &Outcome, own: bool) {
    let place = &outcome.probe.place;
    let busy = of_class(diagnosis, &[Class::Cpu, Class::Disk, Class::NoisyNeighbour]);
    for finding in busy.filter(|finding| finding.place == *place) {
        let disk = finding.evidence.iter().any(|line| line.field.starts_with("fs.io_stats"));
        let part = if disk { "disk" } else { "cores" };
        match (own, finding.class) {
            (true, Class::NoisyNeighbour) => {
                let class = if disk { Class::Disk } else { Class::Cpu };
                let sentence = format!("the {part} of {place} are busy with the recovery itself");
                reclassify(finding, class, sentence, outcome);
            }
            (false, Class::Cpu | Class::Disk) => {
                let sentence = format!("something else keeps the {part} of {place} busy");
                reclassify(finding, Class::NoisyNeighbour, sentence, outcome);
            }
            _ => confirm(finding, outcome),
        }
    }
}

fn chunks(diagnosis: &mut Diagnosis, outcome: &Outcome, gains: bool) {
    for finding in of_class(diagnosis, &[Class::Latency, Class::ThreadCpu]) {
        if gains {
            confirm(finding, outcome);
        } else {
            let sentence = format!(
                "{}: nothing is near a limit and more in flight brings nothing, so what holds is unknown",
                finding.subjects.join(", ")
            );
            reclassify(finding, Class::Unknown, sentence, outcome);
        }
    }
    for finding in of_class(diagnosis, &[Class::Unknown, Class::Bandwidth]) {
        if finding.evidence.last().is_some_and(|line| line.field == outcome.probe.setting) {
            continue;
        }
        if gains {
            let sentence = format!(
                "chunks that travel hold {}: with more in flight it is faster",
                finding.subjects.join(", ")
            );
            reclassify(finding, Class::Latency, sentence, outcome);
            lift_by(finding, outcome);
        } else if finding.class == Class::Bandwidth {
            confirm(finding, outcome);
        } else {
            finding.evidence.push(evidence(outcome));
        }
    }
}

fn slots(diagnosis: &mut Diagnosis, outcome: &Outcome, rises: bool) {
    for finding in of_class(diagnosis, &[Class::AllocationSlots]) {
        if rises {
            confirm(finding, outcome);
        } else {
            finding.strength = SHARED;
            finding.gain = None;
            finding.evidence.push(evidence(outcome));
            finding
                .sentence
                .push_str("; but with one more the sum stays: they share what holds them");
        }
    }
}
