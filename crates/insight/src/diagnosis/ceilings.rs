//! What a recovery meets once what holds it is lifted: limits that are near already, each reckoned from what was seen.
//!
//! A resource that is busy for a share of the time carries at most the rate of today over that share (the utilisation
//! law), and one whose service no counter tells shows in the time that chunks take (Little's law): what is left of it
//! without pauses, the round trip, cores and disks was spent on the path. See E. D. Lazowska and others, Quantitative
//! System Performance, 1984, chapters 3 and 5.

use super::busy::{BusyCores, BusyDisk};
use super::class::Class;
use super::copying::{ChunkTimes, Copying, End};
use super::finding::{Finding, Next};
use super::repository_limit::is_of_repository;
use super::series::MS_PER_S;
use super::threshold::{
    CPU_OWN, DISK_BUSY, DISK_OWN, IN_LINE_USE, LITTLE_USED, NEAR_MS, NEAR_PATH, NEAR_USE, Threshold,
};
use crate::words;

/// A limit after the one that holds.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ceiling {
    /// Where it holds, in times the rate of today.
    factor: f64,
    /// Its class; none where nothing tells what keeps chunks for so long.
    class: Option<Class>,
    /// What it is, in words.
    text: String,
}

impl Ceiling {
    /// As a finding names it.
    pub(crate) fn into_next(self) -> Next {
        let Ceiling { factor, class, text } = self;
        Next { sentence: Some(text), class, factor: Some(factor.max(1.0)) }
    }
}

/// Lowers what a finding promises to the nearest of the limits that these recoveries meet next.
pub(crate) fn cap<'r, 's: 'r, 'a: 's>(
    finding: &mut Finding,
    recoveries: impl IntoIterator<Item = &'r Copying<'s, 'a>>,
) {
    if finding.gain.is_none() {
        return;
    }
    if let Some(nearest) = nearest(finding, recoveries)
        && lower(finding, &nearest)
    {
        finding.next = nearest.into_next();
    }
}

/// The same for what holds one recovery, whose next limit is the nearest, even where less than that is promised, or
/// nothing. A cause that was seen to hold besides is nearer than what is reckoned, and of two sentences on limits of
/// one class that of the cause stays.
pub(crate) fn name_next(finding: &mut Finding, recovery: &Copying<'_, '_>) {
    let Some(nearest) = nearest(finding, [recovery]) else { return };
    let known = &finding.next;
    let is_nearer =
        known.class.is_none() || known.factor.is_some_and(|factor| nearest.factor < factor);
    let is_another = known.sentence.is_none() || nearest.class != known.class;
    if lower(finding, &nearest) || (is_nearer && is_another) {
        finding.next = nearest.into_next();
    }
}

/// The nearest of the limits that these recoveries meet once a finding no longer holds them.
fn nearest<'r, 's: 'r, 'a: 's>(
    finding: &Finding,
    recoveries: impl IntoIterator<Item = &'r Copying<'s, 'a>>,
) -> Option<Ceiling> {
    let all = recoveries.into_iter().flat_map(|one| ceilings(one, finding));
    // Of what does not move at all, nothing is so many times as much.
    all.filter(|one| one.factor.is_finite()).min_by(|a, b| a.factor.total_cmp(&b.factor))
}

/// Lowers what a finding promises to a limit; whether that is less.
fn lower(finding: &mut Finding, limit: &Ceiling) -> bool {
    let Some(gain) = &mut finding.gain else { return false };
    if limit.factor >= gain.factor {
        return false;
    }
    gain.factor = limit.factor.max(1.0);
    gain.formula = format!("{}, but {} is reached first", gain.formula, limit.text);
    true
}

/// The limits that a recovery meets next once a finding no longer holds it.
fn ceilings(recovery: &Copying<'_, '_>, finding: &Finding) -> Vec<Ceiling> {
    let lifted = finding.class;
    let setting = finding.lift.as_ref().and_then(|lift| lift.setting.as_deref());
    // What is lifted at one end may be near at the other.
    let is_there = |end: &&End<'_>| end.node() == finding.place;
    let has_disk = |end: &&End<'_>| lifted != Class::Disk || !is_there(end);
    // A quota is of cores, at whichever end.
    let has_cores = |end: &&End<'_>| match lifted {
        Class::CpuQuota => false,
        Class::Cpu => !is_there(end),
        _ => true,
    };
    let ends = recovery.ends.iter();
    let is_in_line = recovery.pauses_in_line();
    let disks = ends.clone().filter(has_disk).filter_map(|end| disk(end, is_in_line));
    let mut all: Vec<Ceiling> = disks.collect();
    all.extend(ends.filter(has_cores).filter_map(cores));
    let knob = recovery.knobs.rate.map(|(name, _)| name);
    if knob.is_none() || knob != setting {
        // A repository's own limit holds what is restored from it; what else passes the limiter of the node goes on.
        let lifted_bytes_per_s = match is_of_repository(finding) {
            true => recovery.restored_bytes_per_s(),
            false => recovery.node_bytes_per_s,
        };
        all.extend(limiter(recovery, lifted_bytes_per_s));
    }
    // Elsewhere chunks in flight are what holds, or nodes that do not run take of their time, too.
    match lifted {
        Class::RateLimit if recovery.standstill().is_some() => {}
        Class::RateLimit if recovery.pauses_in_line() => all.extend(sender(recovery)),
        Class::RateLimit => all.extend(in_flight(recovery).into_iter().chain(path(recovery))),
        _ => {}
    }
    all
}

/// What a resource carries once it is busy for the share `full` of the time, where it is busy for `share` of it and
/// `own` of that with the recoveries. What it is busy with besides goes on.
fn factor_at(full: f64, share: f64, own: f64) -> f64 {
    (full - share * (1.0 - own)) / (share * own)
}

/// The same of one that gets busy all the time. Of one that is busy mostly with something else, the recoveries may get
/// more than what is left.
fn at_full_use(share: f64, own: f64, least: Threshold) -> Option<f64> {
    let is_near = share >= NEAR_USE.value && own >= least.value;
    is_near.then(|| factor_at(1.0, share, own))
}

/// A disk that chunks meet one after another never gets busy all the time. What it carries then is known from where it
/// would count as what holds up to all the time: the promise is between the two.
fn disk(end: &End<'_>, is_in_line: bool) -> Option<Ceiling> {
    let disk = BusyDisk::seen(end)?;
    let (share, own) = (disk.share, disk.own.unwrap_or(1.0));
    let most = at_full_use(share, own, DISK_OWN)?;
    let mut text = format!(
        "the disk of {} ({}), busy {} of the time already",
        end.node(),
        end.side(),
        words::percent(share)
    );
    let mut factor = most;
    if is_in_line {
        factor = factor_at(IN_LINE_USE.value, share, own);
        let least = factor_at(DISK_BUSY.value, share, own).max(1.0);
        let [least, most] = [least, most.max(1.0)].map(words::three_digits);
        text += &format!(", which carries {least} to {most} times as much");
    }
    Some(Ceiling { factor, class: Some(Class::Disk), text })
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
    Some(Ceiling { factor, class: Some(Class::Cpu), text })
}

/// The limiter of the node, where there is one, for so many of the bytes a second that pass it.
pub(crate) fn limiter(recovery: &Copying<'_, '_>, lifted_bytes_per_s: f64) -> Option<Ceiling> {
    let (name, _) = recovery.knobs.rate?;
    let limit = recovery.limit_bytes_per_s?;
    let beside_bytes_per_s = recovery.node_bytes_per_s - lifted_bytes_per_s;
    let factor = (limit - beside_bytes_per_s) / lifted_bytes_per_s;
    let text = format!("the limiter at {} a node ({name})", words::rate(limit));
    Some(Ceiling { factor, class: Some(Class::RateLimit), text })
}

/// A source that pauses in line sends all that comes in the rest of the time: without pauses, it carries so much more
/// at most. Chunks behind one that pauses wait for nothing else, so that their time says nothing of the path.
fn sender(recovery: &Copying<'_, '_>) -> Option<Ceiling> {
    let sends = recovery.sends().filter(|sends| (NEAR_PATH.value..1.0).contains(sends))?;
    let text = format!(
        "what chunks sent one after another carry: they are on their way {} of the time already",
        words::percent(sends)
    );
    let unpaused_bytes_per_s = recovery.rate_bytes_per_s / sends;
    let little = recovery.little_bytes_per_s();
    let is_explained = little.is_some_and(|most| unpaused_bytes_per_s >= most * LITTLE_USED.value);
    let class = is_explained.then_some(Class::Latency);
    Some(Ceiling { factor: 1.0 / sends, class, text })
}

/// What chunks in flight carry without their pauses. Pauses are told of chunks that came, and time of those that wait,
/// so that nearly nothing or less may be left of it: that says nothing.
fn in_flight(recovery: &Copying<'_, '_>) -> Option<Ceiling> {
    let chunks = recovery.chunk_times().filter(|chunks| chunks.unpaused_ms() > 0.0)?;
    let factor = chunks.each_ms / chunks.unpaused_ms();
    let is_one = recovery.chunk_count == Some(1.0);
    let (carry, each) = if is_one { ("carries", "which") } else { ("carry", "each of which") };
    let text = format!(
        "what {} {carry}, {each} takes {} without its pauses",
        recovery.in_flight()?,
        words::rtt(chunks.unpaused_ms().round())
    );
    Some(Ceiling { factor, class: chunk_class(recovery, &chunks), text })
}

/// What keeps chunks in flight for as long as they take without their pauses: the round trip, where it explains that as
/// it would explain a rate, or the path, where they are there for longer than all the rest. Otherwise nothing tells.
fn chunk_class(recovery: &Copying<'_, '_>, chunks: &ChunkTimes) -> Option<Class> {
    let (rtt_ms, unpaused_ms) = (recovery.rtt_ms?, chunks.unpaused_ms());
    let path_ms = on_path(recovery, chunks)?.each_ms;
    if rtt_ms >= NEAR_MS.value && rtt_ms >= unpaused_ms * LITTLE_USED.value {
        return Some(Class::Latency);
    }
    (path_ms > unpaused_ms - path_ms).then_some(Class::Bandwidth)
}

/// The chunks of all recoveries between two nodes on the path between them.
struct OnPath {
    chunks_per_ms: f64,
    /// What each takes there.
    each_ms: f64,
}

/// What a chunk takes on the path is what neither its pauses nor the round trip nor cores nor disks take of its time.
/// None where the round trip is not known.
fn on_path(recovery: &Copying<'_, '_>, chunks: &ChunkTimes) -> Option<OnPath> {
    let chunks_per_ms = recovery.path_bytes_per_s() / chunks.bytes / MS_PER_S;
    let served: f64 = recovery.ends.iter().map(served).sum();
    let each_ms = chunks.unpaused_ms() - recovery.rtt_ms? - served / chunks_per_ms;
    Some(OnPath { chunks_per_ms, each_ms })
}

/// The path carries chunks one after another. Whatever else a chunk waits for counts as well, so that the path is
/// reckoned to be nearer than it may be; where it would be used for more than all of the time, that is shown to be so.
fn path(recovery: &Copying<'_, '_>) -> Option<Ceiling> {
    let chunks = recovery.chunk_times()?;
    let OnPath { chunks_per_ms, each_ms } = on_path(recovery, &chunks)?;
    let used = each_ms * chunks_per_ms;
    if !(NEAR_PATH.value..=1.0).contains(&used) {
        return None;
    }
    let carries = recovery.path_bytes_per_s() / used;
    let text = format!(
        "the path at about {}, which takes {} of the time of each chunk, pauses apart",
        words::rate(carries),
        words::percent(each_ms / chunks.unpaused_ms())
    );
    Some(Ceiling { factor: 1.0 / used, class: Some(Class::Bandwidth), text })
}

/// Cores and disk of an end that are at work for the recoveries at once, on average.
fn served(end: &End<'_>) -> f64 {
    let disk = BusyDisk::seen(end).map_or(0.0, |disk| disk.share * disk.own.unwrap_or(1.0));
    disk + end.span.share(|node| node.process_cpu_ms).unwrap_or(0.0)
}
