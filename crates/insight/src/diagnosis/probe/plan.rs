//! Which probes tell apart the causes that a diagnosis leaves possible.

use record::observation::Setting;
use record::units::{parse_size, show_size_setting};

use super::meter::{Meter, Whose};
use super::result::{Kind, Probe};
use crate::diagnosis::busiest::{Busiest, busiest};
use crate::diagnosis::class::Class;
use crate::diagnosis::diagnose::Diagnosis;
use crate::diagnosis::series::Series;
use crate::diagnosis::threshold::{Threshold, at};

pub(super) const BRAKE: Threshold = at("share of the limit that a brake leaves", 0.8);
pub(super) const LULL: Threshold = at("share of the rate that a lull leaves", 0.5);

/// The probes to make. A result can make later probes needless, so those that decide most come first. Empty if nothing
/// recovers, or what recovers stands still: then there is no rate to measure.
pub fn plan(series: &Series<'_>, diagnosis: &Diagnosis) -> Vec<Probe> {
    let Some(busiest) = busiest(series) else { return Vec::new() };
    let mut probes = Vec::new();
    probes.extend(brake(series, &busiest));
    let mut findings = diagnosis.findings.iter();
    let busy =
        findings.find(|f| matches!(f.class, Class::Cpu | Class::Disk | Class::NoisyNeighbour));
    if let Some(finding) = busy {
        let disk = finding.evidence.iter().any(|line| line.field.starts_with("fs.io_stats"));
        probes.extend(lull(series, &busiest, &finding.place, disk));
    }
    let path = [Class::Latency, Class::Bandwidth, Class::Unknown, Class::ThreadCpu];
    // Of what holds recoveries on other paths it would tell nothing.
    let tells = |probe: &Probe| {
        let measured = probe.meter.measured(series);
        diagnosis.findings.iter().any(|f| path.contains(&f.class) && f.is_of(&measured))
    };
    probes.extend(chunks(series, &busiest).filter(tells));
    probes.extend(slots(series, diagnosis));
    probes
}

/// The setting of the busiest limiter, and its value. None where other nodes let less through by default: what is low
/// for this one would lift their limit, which no probe does.
fn limiter(series: &Series<'_>, busiest: &Busiest<'_>) -> Option<(&'static str, Setting)> {
    let (name, default) = busiest.knobs.rate?;
    let less_elsewhere = busiest.knobs.less_elsewhere(&busiest.node, series);
    less_elsewhere.is_none().then(|| (name, series.setting_or_default(name, default)))
}

fn brake(series: &Series<'_>, busiest: &Busiest<'_>) -> Option<Probe> {
    let (name, found) = limiter(series, busiest)?;
    // Whole kilobytes: a limit is written as a size.
    let kib = (busiest.limit_bytes_per_s? * BRAKE.value / 1024.0).ceil().max(1.0);
    let factor = kib * 1024.0 / busiest.limit_bytes_per_s?;
    // A limit of a few of them cannot be lowered by a fifth.
    (factor < 1.0).then(|| Probe {
        kind: Kind::Brake,
        setting: name.to_owned(),
        found,
        to: show_size_setting(kib as u64 * 1024),
        factor,
        later_only: false,
        place: busiest.node.clone(),
        passes_in_ms: busiest.passes_in_ms.unwrap_or(0.0),
        meter: Meter::Together {
            whose: Whose::Limiter(busiest.node.clone(), busiest.knobs),
            steady: true,
        },
    })
}

fn lull(series: &Series<'_>, busiest: &Busiest<'_>, place: &str, disk: bool) -> Option<Probe> {
    let (name, found) = limiter(series, busiest)?;
    let kib = (busiest.node_bytes_per_s * LULL.value / 1024.0).ceil().max(1.0);
    Some(Probe {
        kind: Kind::Lull,
        setting: name.to_owned(),
        found,
        to: show_size_setting(kib as u64 * 1024),
        factor: LULL.value,
        later_only: false,
        place: place.to_owned(),
        passes_in_ms: busiest.passes_in_ms.unwrap_or(0.0),
        meter: Meter::Busy { node: place.to_owned(), disk },
    })
}

/// Twice the chunks in flight; where their number is at its maximum, chunks of twice the size, as far as that goes.
fn chunks(series: &Series<'_>, busiest: &Busiest<'_>) -> Option<Probe> {
    // A scheduler that chooses the number of chunks leaves nothing to probe.
    let count = busiest.knobs.chunk_count(series)?;
    // The field's engines read both when a recovery begins; the embedded one at each chunk.
    let later_only = series.flavour() != "narrows";
    let whose = Whose::Path(Box::new(busiest.recovery.clone()));
    let meter = match later_only {
        true => Meter::Each { whose },
        false => Meter::Together { whose, steady: true },
    };
    let place = busiest.node.clone();
    let probe = |setting: &str, found, to, factor| Probe {
        kind: Kind::Chunks,
        setting: setting.to_owned(),
        found,
        to,
        factor,
        later_only,
        place,
        passes_in_ms: busiest.passes_in_ms.unwrap_or(0.0),
        meter,
    };
    let chunks = busiest.knobs.chunks_setting(series);
    if let Some((name, default, most)) = chunks.filter(|(.., most)| count < f64::from(*most)) {
        let found = series.setting_or_default(name, default);
        let to = (count * 2.0).min(f64::from(most));
        return Some(probe(name, found, format!("{to:.0}"), to / count));
    }
    let (name, default) = (busiest.knobs.chunk_setting(series)?, busiest.knobs.chunk.1);
    let found = series.setting_or_default(name, default);
    let bytes = parse_size(&found.value).ok().filter(|bytes| *bytes > 0)?;
    let to = busiest.knobs.larger_chunk(bytes as f64, 2.0)?;
    Some(probe(name, found, show_size_setting(to), to as f64 / bytes as f64))
}

fn slots(series: &Series<'_>, diagnosis: &Diagnosis) -> Option<Probe> {
    let finding = diagnosis.findings.iter().find(|f| f.class == Class::AllocationSlots)?;
    let name = finding.lift.as_ref()?.setting.clone()?;
    let found = series.setting_or_default(&name, finding.lift.as_ref()?.now.as_deref()?);
    let now: u32 = found.value.parse().ok().filter(|now| *now > 0)?;
    Some(Probe {
        kind: Kind::Slots,
        setting: name,
        found,
        to: (now + 1).to_string(),
        factor: f64::from(now + 1) / f64::from(now),
        later_only: false,
        place: String::new(),
        passes_in_ms: 0.0,
        // A further slot also fills the gaps between one recovery and the next, so steps with those count.
        meter: Meter::Together { whose: Whose::All, steady: false },
    })
}
