//! Which probes tell apart the causes that a diagnosis leaves possible.

use record::observation::Setting;
use record::units::{parse_size, show_size_setting};

use super::meter::{Meter, Whose};
use super::prober::{MEASURE_MS, PROBE_MS, SAMPLES, settle_ms};
use super::result::{Kind, Probe, as_limit};
use crate::diagnosis::busiest::{Busiest, busiest};
use crate::diagnosis::class::Class;
use crate::diagnosis::diagnose::Diagnosis;
use crate::diagnosis::series::{MS_PER_S, Series};
use crate::diagnosis::threshold::{Threshold, at};

pub(super) const BRAKE: Threshold = at("share of the limit that a brake leaves", 0.8);
/// Where chunks are few, one more or less is as much as a fifth.
pub(super) const FEW_CHUNKS: Threshold =
    at("chunks that pass while a limit is braked so, below which half of it is left", 40.0);
pub(super) const HALF_BRAKE: Threshold = at("share of the limit that a brake leaves then", 0.5);
pub(super) const LULL: Threshold = at("share of the rate that a lull leaves", 0.5);

/// The probes to make. A result can make later probes needless, so those that decide most come first. Empty if nothing
/// recovers, or what recovers stands still: then there is no rate to measure.
pub fn plan(series: &Series<'_>, diagnosis: &Diagnosis) -> Vec<Probe> {
    let Some(busiest) = busiest(series) else { return Vec::new() };
    let mut probes = Vec::new();
    probes.extend(brake(series, diagnosis, &busiest));
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

fn brake(series: &Series<'_>, diagnosis: &Diagnosis, busiest: &Busiest<'_>) -> Option<Probe> {
    let (name, found) = limiter(series, busiest)?;
    let limit = busiest.limit_bytes_per_s?;
    let is_blamed = diagnosis.findings.iter().any(|finding| {
        let setting = finding.lift.as_ref().and_then(|lift| lift.setting.as_deref());
        finding.class == Class::RateLimit && setting == Some(name)
    });
    // Half of a limit that did not seem to hold may be low enough to.
    let chunk_ms = busiest.knobs.chunk_bytes(series).map(|bytes| bytes / limit * MS_PER_S);
    let chunk_ms =
        chunk_ms.filter(|ms| is_blamed && MEASURE_MS.value * BRAKE.value / ms < FEW_CHUNKS.value);
    let share = if chunk_ms.is_some() { HALF_BRAKE } else { BRAKE };
    // Whole kilobytes: a limit is written as a size.
    let kib = (limit * share.value / 1024.0).ceil().max(1.0);
    let factor = kib * 1024.0 / limit;
    let passes_in_ms = busiest.passes_in_ms.unwrap_or(0.0);
    let measure_ms = chunk_ms.map_or(MEASURE_MS.value, |ms| {
        // As long as there is time for, before, after and meanwhile, and for so many samples at least.
        let settles_ms = settle_ms(passes_in_ms) + settle_ms(passes_in_ms / factor);
        let left_ms = PROBE_MS.value - MEASURE_MS.value - settles_ms;
        (left_ms / (1.0 + factor)).max(SAMPLES.value * ms / factor).max(MEASURE_MS.value)
    });
    // A limit of a few of them cannot be lowered.
    (factor < 1.0).then(|| Probe {
        kind: Kind::Brake,
        setting: name.to_owned(),
        found,
        to: show_size_setting(kib as u64 * 1024),
        factor,
        later_only: false,
        place: busiest.node.clone(),
        passes_in_ms,
        measure_ms,
        meter: passes(busiest),
        of_rate: None,
    })
}

/// The rate of all that pass the busiest limiter.
fn passes(busiest: &Busiest<'_>) -> Meter {
    let whose = Whose::Limiter(busiest.node.clone(), busiest.knobs);
    Meter::Together { whose, steady: true }
}

fn lull(series: &Series<'_>, busiest: &Busiest<'_>, place: &str, disk: bool) -> Option<Probe> {
    let (name, found) = limiter(series, busiest)?;
    Some(Probe {
        kind: Kind::Lull,
        setting: name.to_owned(),
        found,
        to: as_limit(busiest.node_bytes_per_s * LULL.value),
        factor: LULL.value,
        later_only: false,
        place: place.to_owned(),
        passes_in_ms: busiest.passes_in_ms.unwrap_or(0.0),
        measure_ms: MEASURE_MS.value,
        meter: Meter::Busy { node: place.to_owned(), disk },
        of_rate: Some(passes(busiest)),
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
        measure_ms: MEASURE_MS.value,
        meter,
        of_rate: None,
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
        measure_ms: MEASURE_MS.value,
        // A further slot also fills the gaps between one recovery and the next, so steps with those count.
        meter: Meter::Together { whose: Whose::All, steady: false },
        of_rate: None,
    })
}
