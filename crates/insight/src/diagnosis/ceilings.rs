//! What a recovery meets once what holds it is lifted: limits that are near already, each reckoned from what was seen.
//!
//! A resource that is busy for a share of the time carries at most the rate of today over that share (the utilisation
//! law), and one whose service no counter tells shows in the time that chunks take (Little's law): what is left of it
//! without pauses, the round trip, cores and disks was spent on the path. See E. D. Lazowska and others, Quantitative
//! System Performance, 1984, chapters 3 and 5.

use super::busy::{BusyCores, BusyDisk};
use super::class::Class;
use super::copying::{Copying, End};
use super::finding::Finding;
use super::series::MS_PER_S;
use super::threshold::{CPU_OWN, DISK_OWN, NEAR_PATH, NEAR_USE, Threshold};
use crate::words;

/// A limit after the one that holds.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ceiling {
    /// Where it holds, in times the rate of today.
    pub(crate) factor: f64,
    /// What it is, in words.
    pub(crate) text: String,
}

/// Lowers what a finding promises to the nearest of the limits that these recoveries meet next.
pub(crate) fn cap<'r, 's: 'r, 'a: 's>(
    finding: &mut Finding,
    recoveries: impl IntoIterator<Item = &'r Copying<'s, 'a>>,
) {
    let Some(gain) = &mut finding.gain else { return };
    let setting = finding.lift.as_ref().and_then(|lift| lift.setting.as_deref());
    let all = recoveries.into_iter().flat_map(|one| ceilings(one, finding.class, setting));
    let nearest = all.min_by(|a, b| a.factor.total_cmp(&b.factor));
    let Some(nearest) = nearest.filter(|nearest| nearest.factor < gain.factor) else { return };
    gain.factor = nearest.factor.max(1.0);
    gain.formula = format!("{}, but {} is reached first", gain.formula, nearest.text);
    finding.next = Some(nearest.text);
}

/// The limits that a recovery meets next once that of a class, which a setting lifts, no longer holds it.
fn ceilings(recovery: &Copying<'_, '_>, lifted: Class, setting: Option<&str>) -> Vec<Ceiling> {
    let ends = recovery.ends.iter();
    let mut all: Vec<Ceiling> = ends.clone().filter_map(disk).collect();
    if lifted != Class::CpuQuota {
        all.extend(ends.filter_map(cores));
    }
    let knob = recovery.knobs.rate.map(|(name, _)| name);
    if knob.is_none() || knob != setting {
        all.extend(limiter(recovery));
    }
    // Elsewhere chunks in flight are what holds, or nodes that do not run take of their time, too.
    match lifted {
        Class::RateLimit if recovery.pauses_in_line() => all.extend(sender(recovery)),
        Class::RateLimit => all.extend(in_flight(recovery).into_iter().chain(path(recovery))),
        _ => {}
    }
    all
}

/// What a resource carries once it is busy all the time, where it is busy for a share of it and `own` of that with the
/// recoveries. Of one that is busy mostly with something else, the recoveries may get more than what is left.
fn at_full_use(share: f64, own: f64, least: Threshold) -> Option<f64> {
    let is_near = share >= NEAR_USE.value && own >= least.value;
    is_near.then(|| (1.0 - share * (1.0 - own)) / (share * own))
}

fn disk(end: &End<'_>) -> Option<Ceiling> {
    let disk = BusyDisk::seen(end)?;
    let factor = at_full_use(disk.share, disk.own.unwrap_or(1.0), DISK_OWN)?;
    let text = format!(
        "the disk of {} ({}), busy {} of the time already",
        end.node(),
        end.side(),
        words::percent(disk.share)
    );
    Some(Ceiling { factor, text })
}

fn cores(end: &End<'_>) -> Option<Ceiling> {
    let cores = BusyCores::seen(end)?;
    let factor = at_full_use(cores.share, cores.own? / cores.share, CPU_OWN)?;
    let text = format!(
        "the cores of {} ({}), busy {} of the time already",
        end.node(),
        end.side(),
        words::percent(cores.share)
    );
    Some(Ceiling { factor, text })
}

/// The limiter of the node, where there is one.
pub(crate) fn limiter(recovery: &Copying<'_, '_>) -> Option<Ceiling> {
    let (name, _) = recovery.knobs.rate?;
    let limit = recovery.limit_bytes_per_s?;
    let factor = limit / recovery.node_bytes_per_s;
    let text = format!("the limiter at {} a node ({name})", words::rate(limit));
    Some(Ceiling { factor, text })
}

/// A source that pauses in line sends all that comes in the rest of the time: without pauses, it carries so much more
/// at most. Chunks behind one that pauses wait for nothing else, so that their time says nothing of the path.
fn sender(recovery: &Copying<'_, '_>) -> Option<Ceiling> {
    let sends = recovery.sends().filter(|sends| (NEAR_PATH.value..1.0).contains(sends))?;
    let text = format!(
        "what chunks sent one after another carry: they are on their way {} of the time already",
        words::percent(sends)
    );
    Some(Ceiling { factor: 1.0 / sends, text })
}

/// What chunks in flight carry without their pauses. Pauses are told of chunks that came, and time of those that wait,
/// so that nearly nothing or less may be left of it: that says nothing.
fn in_flight(recovery: &Copying<'_, '_>) -> Option<Ceiling> {
    let chunks = recovery.chunk_times().filter(|chunks| chunks.unpaused_ms() > 0.0)?;
    let factor = chunks.each_ms / chunks.unpaused_ms();
    let text = format!(
        "what {} carry, each of which takes {} without its pauses",
        recovery.in_flight()?,
        words::rtt(chunks.unpaused_ms().round())
    );
    Some(Ceiling { factor, text })
}

/// The path carries chunks one after another: what a chunk takes there is what neither its pauses nor the round trip
/// nor cores nor disks take of its time. Whatever else it waits for counts as well, so that the path is reckoned to be
/// nearer than it may be; where it would be used for more than all of the time, that is shown to be so.
fn path(recovery: &Copying<'_, '_>) -> Option<Ceiling> {
    let (rtt_ms, chunks) = (recovery.rtt_ms?, recovery.chunk_times()?);
    let chunks_per_ms = recovery.path_bytes_per_s() / chunks.bytes / MS_PER_S;
    let served: f64 = recovery.ends.iter().map(served).sum();
    let used = (chunks.unpaused_ms() - rtt_ms) * chunks_per_ms - served;
    if !(NEAR_PATH.value..=1.0).contains(&used) {
        return None;
    }
    let carries = recovery.path_bytes_per_s() / used;
    let text = format!(
        "the path at about {}, which takes {} of the time of each chunk, pauses apart",
        words::rate(carries),
        words::percent(used / chunks_per_ms / chunks.unpaused_ms())
    );
    Some(Ceiling { factor: 1.0 / used, text })
}

/// Cores and disk of an end that are at work for the recoveries at once, on average.
fn served(end: &End<'_>) -> f64 {
    let disk = BusyDisk::seen(end).map_or(0.0, |disk| disk.share * disk.own.unwrap_or(1.0));
    disk + end.span.share(|node| node.process_cpu_ms).unwrap_or(0.0)
}
