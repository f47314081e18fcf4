//! How the results of probes change a diagnosis that was made from looks alone.

use std::collections::BTreeSet;

use super::result::{Kind, ProbeResult, Reading};
use crate::diagnosis::busy::BusyDisk;
use crate::diagnosis::class::Class;
use crate::diagnosis::copying::{Recovering, standstills};
use crate::diagnosis::diagnose::{Diagnosis, headline, mark_over, sort, unsettle};
use crate::diagnosis::finding::{Evidence, Finding, Lift, Next};
use crate::diagnosis::rivals::{By, RuledOut};
use crate::diagnosis::series::Series;
use crate::diagnosis::threshold::{Threshold, at};

pub(super) const CONFIRMED: Threshold = at("strength of a finding that a probe confirmed", 0.98);
pub(super) const MOSTLY_OWN: Threshold =
    at("recovery bytes over device bytes, from which on its time tells nothing against it", 0.8);
pub(super) const SHARED: Threshold = at("strength of slots that would share the same rate", 0.3);

/// What to do where one more slot brought nothing.
const SHARES: &str =
    "lift what holds the recoveries that have a slot; more slots would share the same";

/// Confirms, corrects or takes back findings; every result becomes evidence where it speaks of one. `series` is what
/// the diagnosis was made of, and what was seen while probes were made.
pub fn apply(diagnosis: &mut Diagnosis, results: Vec<ProbeResult>, series: &Series<'_>) {
    unsettle(&mut diagnosis.findings);
    // Looks went on meanwhile, so that there may be late answers enough by now.
    let standstills = standstills(series);
    let unknown = of_class(diagnosis, &[Class::Unknown]);
    for finding in unknown.filter(|one| !one.is_of_a_standstill()) {
        let still = finding.subjects.iter().find_map(|subject| standstills.get(subject));
        finding.evidence.extend(still.cloned());
    }
    for result in &results {
        let follows = match result.reading {
            Reading::Open(_) | Reading::GivenUp(_) => continue,
            Reading::Follows => true,
            Reading::Stays => false,
        };
        let measured = result.probe.meter.measured(series);
        match result.probe.kind {
            Kind::Brake => brake(diagnosis, result, &measured, follows),
            Kind::Lull => lull(diagnosis, result, series, follows),
            Kind::Chunks => chunks(diagnosis, result, &measured, follows),
            Kind::Slots => slots(diagnosis, result, follows),
        }
    }
    diagnosis.probes = results;
    mark_over(&mut diagnosis.findings, series, &series.head(diagnosis.looks));
    sort(&mut diagnosis.findings);
    diagnosis.headline = headline(diagnosis, series);
}

fn evidence(result: &ProbeResult) -> Evidence {
    Evidence::new("probe", result.probe.setting.clone(), result.of_setting())
}

fn confirm(finding: &mut Finding, result: &ProbeResult) {
    finding.strength = finding.strength.max(CONFIRMED.value);
    finding.evidence.push(evidence(result));
    finding.doubt = None;
}

/// Findings on nothing but what was measured, by class.
fn of_measured<'d>(
    diagnosis: &'d mut Diagnosis,
    measured: &'d BTreeSet<String>,
    classes: &'static [Class],
) -> impl Iterator<Item = &'d mut Finding> {
    of_class(diagnosis, classes).filter(move |finding| finding.is_of(measured))
}

/// Whether the setting that was changed is the one that lifts it: another limiter, or a repository's, is another limit.
fn is_lifted_by(finding: &Finding, result: &ProbeResult) -> bool {
    let setting = finding.lift.as_ref().and_then(|lift| lift.setting.as_ref());
    setting == Some(&result.probe.setting)
}

fn of_class<'d>(
    diagnosis: &'d mut Diagnosis,
    classes: &'static [Class],
) -> impl Iterator<Item = &'d mut Finding> {
    diagnosis.findings.iter_mut().filter(|finding| classes.contains(&finding.class))
}

/// Changes the cause of a finding: its subjects and evidence stay, and the rule of the new cause says what lifts it.
fn reclassify(finding: &mut Finding, class: Class, sentence: String, result: &ProbeResult) {
    let others = finding.ruled_out.iter().filter(|one| one.class != class);
    let mut ruled_out: Vec<RuledOut> = others.cloned().collect();
    if finding.class != Class::Unknown {
        let (class, why) = (finding.class, result.sentence());
        ruled_out.push(RuledOut { class, by: By::Figure, why });
    }
    finding.ruled_out = ruled_out.into();
    finding.lift = Some(Lift::action(class.rule().lift));
    finding.class = class;
    finding.sentence = sentence;
    finding.strength = if class == Class::Unknown { 0.0 } else { CONFIRMED.value };
    finding.gain = None;
    finding.next = Next::default();
    finding.doubt = None;
    finding.evidence.push(evidence(result));
}

fn brake(
    diagnosis: &mut Diagnosis,
    result: &ProbeResult,
    measured: &BTreeSet<String>,
    holds: bool,
) {
    let setting = &result.probe.setting;
    let limits = of_measured(diagnosis, measured, &[Class::RateLimit]);
    let limits = limits.filter(|finding| is_lifted_by(finding, result));
    if !holds {
        for finding in limits {
            let is_one = finding.subjects.len() == 1;
            let pauses = if is_one { "pauses for its" } else { "pause for their" };
            let sentence = format!(
                "{} {pauses} limiter, but a lower limit changes nothing, so the bottleneck is unknown",
                finding.subjects.join(", ")
            );
            reclassify(finding, Class::Unknown, sentence, result);
        }
        let others = &[Class::Latency, Class::Bandwidth, Class::Unknown];
        for finding in of_measured(diagnosis, measured, others) {
            if finding.evidence.last().is_none_or(|line| line.api != "probe") {
                finding.evidence.push(evidence(result));
            }
        }
        return;
    }
    let mut any = false;
    for finding in limits {
        confirm(finding, result);
        any = true;
    }
    if any {
        return;
    }
    // The rate follows the limit, so the limiter is the bottleneck, whatever else is busy.
    const OTHERS: &[Class] = &[
        Class::Unknown,
        Class::Latency,
        Class::Bandwidth,
        Class::Cpu,
        Class::Disk,
        Class::NoisyNeighbour,
    ];
    for finding in of_measured(diagnosis, measured, OTHERS) {
        let sentence =
            format!("the limiter of {} is the bottleneck: {setting}", result.probe.place);
        reclassify(finding, Class::RateLimit, sentence, result);
        lift_by(finding, result);
    }
}

/// The probe's own setting is what lifts it.
fn lift_by(finding: &mut Finding, result: &ProbeResult) {
    let lift = finding.lift.get_or_insert_with(Default::default);
    if lift.setting.as_ref() != Some(&result.probe.setting) {
        lift.default = None;
    }
    lift.setting = Some(result.probe.setting.clone());
    lift.now = Some(result.probe.found.value.clone());
    lift.set_by = Some(result.probe.found.scope);
    lift.to = (result.probe.kind == Kind::Chunks).then(|| result.probe.to.clone());
}

/// Whether most of what the disk of a node moved were the recoveries' bytes: a device that serves many requests at once
/// has work all the time long before it is full, so that its time need not fall with the rate.
fn moves_mostly_recoveries(series: &Series<'_>, node: &str) -> bool {
    let recovering = Recovering::all(series);
    let mut ends =
        recovering.iter().filter_map(|one| one.copying(series)).flat_map(|one| &one.ends);
    let disk = ends.find(|end| end.node() == node).and_then(BusyDisk::seen);
    disk.and_then(|disk| disk.own).is_some_and(|own| own >= MOSTLY_OWN.value)
}

fn lull(diagnosis: &mut Diagnosis, result: &ProbeResult, series: &Series<'_>, own: bool) {
    let place = &result.probe.place;
    let busy = of_class(diagnosis, &[Class::Cpu, Class::Disk, Class::NoisyNeighbour]);
    for finding in busy.filter(|finding| finding.place == *place) {
        let disk = finding.evidence.iter().any(|line| line.field.starts_with("fs.io_stats"));
        let part = if disk { "disk" } else { "cores" };
        match (own, finding.class) {
            (true, Class::NoisyNeighbour) => {
                let class = if disk { Class::Disk } else { Class::Cpu };
                let sentence = format!("the {part} of {place} are busy with the recovery itself");
                reclassify(finding, class, sentence, result);
            }
            (false, Class::Disk) if moves_mostly_recoveries(series, place) => {
                finding.evidence.push(evidence(result));
            }
            (false, Class::Cpu | Class::Disk) => {
                let sentence = format!("something else keeps the {part} of {place} busy");
                reclassify(finding, Class::NoisyNeighbour, sentence, result);
            }
            _ => confirm(finding, result),
        }
    }
}

fn chunks(
    diagnosis: &mut Diagnosis,
    result: &ProbeResult,
    measured: &BTreeSet<String>,
    gains: bool,
) {
    for finding in of_measured(diagnosis, measured, &[Class::Latency, Class::ThreadCpu]) {
        if gains {
            confirm(finding, result);
        } else {
            let sentence = format!(
                "{}: nothing is near a limit and more in flight brings nothing, so the bottleneck is unknown",
                finding.subjects.join(", ")
            );
            reclassify(finding, Class::Unknown, sentence, result);
        }
    }
    for finding in of_measured(diagnosis, measured, &[Class::Unknown, Class::Bandwidth]) {
        if finding.evidence.last().is_some_and(|line| line.field == result.probe.setting) {
            continue;
        }
        // While it runs, a node that stands still for a part of the time moves what is in flight: that says nothing of
        // why it does.
        if gains && !finding.is_of_a_standstill() {
            let sentence = format!(
                "latency is the bottleneck of {}: with more in flight it is faster",
                finding.subjects.join(", ")
            );
            reclassify(finding, Class::Latency, sentence, result);
            lift_by(finding, result);
        } else if !gains && finding.class == Class::Bandwidth {
            confirm(finding, result);
        } else {
            finding.evidence.push(evidence(result));
        }
    }
}

fn slots(diagnosis: &mut Diagnosis, result: &ProbeResult, rises: bool) {
    let of_slots = of_class(diagnosis, &[Class::AllocationSlots]);
    for finding in of_slots.filter(|finding| is_lifted_by(finding, result)) {
        if rises {
            confirm(finding, result);
        } else {
            finding.strength = SHARED.value;
            (finding.lift, finding.gain) = (Some(Lift::action(SHARES)), None);
            finding.evidence.push(evidence(result));
            finding.sentence += "; but with one more the sum stays: they share what holds them";
        }
    }
}
