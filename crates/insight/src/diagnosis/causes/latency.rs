//! Latency is the bottleneck: chunks travel, and nothing else could hold them.

use record::units::{parse_size, show_size_setting};

use super::{Against, Answer, Cause, Class, Judge, Rule};
use crate::diagnosis::ceilings::limiter;
use crate::diagnosis::copying::{Copying, alias_of};
use crate::diagnosis::finding::{Evidence, Finding, Gain, Lift, NODES_STATS, Next};
use crate::diagnosis::series::MS_PER_S;
use crate::diagnosis::threshold::{
    CORES_ANSWER, CPU_OWN, DISK_OWN, IDLE, IN_LINE_USE, LIMIT_USED, LITTLE_USED, NEAR_MS, NEAR_USE,
    ROUNDS, Threshold, at,
};
use crate::words;

/// Where cores or disks are busy besides, only a rate that the round trip explains speaks for latency.
const LITTLE_USED_BUSY: Threshold = at(
    "the same beside busy cores or disks, or a node that stands still for a part of the time",
    0.8,
);
/// Without a measured round trip, chunks must take this long for latency to be a guess.
const IMPLIED_MS: Threshold = at("chunk_size x chunks / rate, in ms", 10.0);
/// A cause that is seen at work, such as a limiter's pauses, comes before latency.
const STRENGTH: Threshold = at("strength, at most", 0.98);
const GUESS_STRENGTH: Threshold = at("strength where the round trip is not known", 0.6);
/// Where chunks in flight are at their most, these many times their size or the shards side by side are worth trying.
const RAISE_CHUNK: Threshold = at("times the chunk size to try", 4.0);
const RAISE_SHARDS: Threshold = at("times the shards side by side to try", 2.0);

pub(super) static CAUSE: Cause = Cause {
    rule: Rule {
        class: Class::Latency,
        label: "latency",
        signature: "no pauses that bind, CPU and disk idle, rate = chunk x chunks / round trip",
        reads: "_recovery bytes over time; round trips measured through _nodes/stats; _cluster/settings",
        thresholds: &[
            LITTLE_USED, LITTLE_USED_BUSY, IMPLIED_MS, IDLE, CORES_ANSWER, NEAR_MS, STRENGTH,
            GUESS_STRENGTH, RAISE_CHUNK, RAISE_SHARDS, NEAR_USE, IN_LINE_USE, CPU_OWN, DISK_OWN,
            LIMIT_USED, ROUNDS,
        ],
        lift: "max_concurrent_file_chunks, then chunk_size",
        default: "2 and 512kb; from remote 5 and 1mb",
        probe: "chunks x2: rate x2",
    },
    judges: &[Judge::Copying(judge)],
};

fn judge(recovery: &Copying<'_, '_>) -> Answer {
    if recovery.rate_bytes_per_s <= 0.0 {
        return Err(Against::figure("nothing moved meanwhile"));
    }
    let chosen = || Against::untold("no setting says how much is in flight");
    let in_flight_bytes = recovery.in_flight_bytes.ok_or_else(chosen)?;
    let implied_ms = in_flight_bytes / recovery.rate_bytes_per_s * MS_PER_S;
    let (strength, doubt) = strength(recovery, implied_ms)?;
    let (lift, factor, formula) = more_in_flight(recovery).ok_or_else(chosen)?;
    let between = between(recovery);
    let is_one = recovery.chunk_count == Some(1.0);
    let (of_each, give) = if is_one { ("which", "gives") } else { ("of which each", "give") };
    let sentence = format!(
        "the round trip between {between} is the bottleneck: {} in flight, {of_each} takes {}, {give} {} (Little's \
         law); {}",
        recovery.in_flight().unwrap_or_default(),
        words::rtt(implied_ms.round()),
        words::rate(recovery.rate_bytes_per_s),
        ruled_out(recovery)
    );
    Ok(Finding {
        subjects: vec![recovery.transfer.name()],
        lift: Some(lift),
        gain: Some(Gain { factor, formula }),
        next: after_latency(recovery),
        doubt,
        ..Finding::of(&CAUSE.rule, format!("between {between}"), strength, sentence)
    })
}

/// What is ruled out besides, in words.
fn ruled_out(recovery: &Copying<'_, '_>) -> &'static str {
    if !recovery.is_idle() {
        "no limiter binds, and that explains the rate although cores or disks are busy"
    } else if !recovery.tells_use() {
        "no limiter binds, and not all is told of cores and disks"
    } else if recovery.ends.iter().any(|end| recovery.hardly_waits(end).is_some()) {
        "no limiter binds, disks are idle, and chunks hardly wait for cores that other work keeps busy"
    } else {
        "no limiter binds, cores and disks are idle"
    }
}

/// How well the round trip explains the rate, and what else would; what speaks against it where it does not.
fn strength(recovery: &Copying<'_, '_>, implied_ms: f64) -> Result<(f64, Option<String>), Against> {
    match (recovery.little_bytes_per_s(), recovery.rtt_ms) {
        (Some(little), _) => {
            let is_free = recovery.is_idle() && recovery.standstill().is_none();
            let least = if is_free { LITTLE_USED } else { LITTLE_USED_BUSY };
            if let Some(against) = allows_more(recovery, little, least, "the round trip") {
                return Err(against);
            }
            // A node that is kept from running answers as late as its chunks come: that is no round trip.
            let runs = 1.0 - recovery.starved();
            Ok((STRENGTH.at_most(recovery.rate_bytes_per_s / little) * runs, None))
        }
        // Near nodes: a round trip explains nothing.
        (None, Some(rtt_ms)) => {
            let rtt = words::rtt_tenths(rtt_ms);
            Err(Against::figure(format!("the nodes are near each other: {rtt} of round trip")))
        }
        (None, None) => {
            if let Some(against) = too_short(recovery) {
                return Err(against);
            }
            let doubt = "bandwidth looks the same while the round trip is not known: give the hosts of both nodes, or \
                 compare a ping with the time a chunk takes";
            if !recovery.is_idle() || implied_ms < IMPLIED_MS.value {
                let chunk = words::rtt_tenths(implied_ms);
                return Err(Against::untold(format!(
                    "the round trip was not measured; a chunk takes {chunk}"
                )));
            }
            if recovery.may_be_limited() {
                return Err(Against::untold(format!(
                    "the round trip was not measured, and whether the limiter of {} binds is not known yet",
                    recovery.node
                )));
            }
            Ok((GUESS_STRENGTH.value, Some(doubt.to_owned())))
        }
    }
}

/// What speaks against a round trip that was not measured: a third node is near to both ends.
fn too_short(recovery: &Copying<'_, '_>) -> Option<Against> {
    let at_most_ms = recovery.rtt_at_most_ms?;
    let little = recovery.in_flight_bytes? / (at_most_ms / MS_PER_S);
    let over =
        format!("{}, in which a third node reaches both ends", words::rtt_tenths(at_most_ms));
    allows_more(recovery, little, LITTLE_USED, &over)
}

/// What speaks against a round trip `over` which chunks in flight allow `little` bytes a second, where much less comes.
fn allows_more(
    recovery: &Copying<'_, '_>,
    little: f64,
    least: Threshold,
    over: &str,
) -> Option<Against> {
    let used = recovery.rate_bytes_per_s / little;
    (used < least.value).then(|| {
        let [rate, little] = [recovery.rate_bytes_per_s, little].map(words::rate);
        let [used, least] = [used, least.value].map(words::percent);
        Against::figure(format!(
            "{rate} is {used} of the {little} that chunks in flight allow over {over} ({least} would tell)"
        ))
    })
}

/// What the finding rests on once it is named. Where nobody measured the round trip every recovery has one, mostly
/// weaker than another cause's, and of that only its sentence is read.
pub(crate) fn evidence(recovery: &Copying<'_, '_>) -> Vec<Evidence> {
    let mut evidence = vec![recovery.rate_evidence()];
    evidence.extend(recovery.paused_evidence());
    if let Some(rtt_ms) = recovery.rtt_ms {
        let value =
            format!("{} shortest, against asking one node alone", words::rtt_tenths(rtt_ms));
        evidence.push(Evidence::new(NODES_STATS, "time through another node", value));
    }
    let knobs = recovery.knobs;
    let chunks = knobs.chunks_setting(recovery.series);
    evidence.extend(chunks.map(|(name, default, _)| recovery.setting_evidence(name, default)));
    if let Some(name) = knobs.chunk_setting(recovery.series) {
        // Releases differ by some bytes in its default.
        let found = recovery.series.setting_or_default(name, knobs.chunk.1);
        evidence.push(Evidence::setting(name, &found, None));
    }
    evidence.extend(recovery.idle_evidence());
    evidence
}

/// `es-1 and es-2`, or the remote cluster and its target.
fn between(recovery: &Copying<'_, '_>) -> String {
    let last = recovery.transfer.last();
    match (&last.source, &last.repository, &last.target) {
        (Some(source), _, Some(target)) => format!("{source} and {target}"),
        (None, Some(repository), Some(target)) => {
            format!("{} and {target}", alias_of(repository).unwrap_or(repository))
        }
        _ => "the nodes".to_owned(),
    }
}

/// What to raise so that more is in flight, by what factor, and how that is reckoned.
fn more_in_flight(recovery: &Copying<'_, '_>) -> Option<(Lift, f64, String)> {
    let (series, knobs) = (recovery.series, recovery.knobs);
    let (count, chunk_bytes) = (recovery.chunk_count?, recovery.chunk_bytes?);
    let chunks = knobs.chunks_setting(series);
    if let Some((name, default, most)) = chunks.filter(|(.., most)| count < f64::from(*most)) {
        let found = series.setting_or_default(name, default);
        let lift = Lift::setting(name, found, Some(most.to_string()), "keep more chunks in flight");
        let lift = lift.with_default(Some(default));
        return Some((lift, f64::from(most) / count, format!("{most} chunks / {count:.0}")));
    }
    let larger = knobs.larger_chunk(chunk_bytes, RAISE_CHUNK.value);
    let Some((name, larger)) = knobs.chunk_setting(series).zip(larger) else {
        let action = "chunks are at their most and no larger ones are to be had: recover more shards side by side \
                      (cluster.routing.allocation.node_concurrent_recoveries)";
        let formula = "twice the shards side by side / 1".to_owned();
        return Some((Lift::action(action), RAISE_SHARDS.value, formula));
    };
    let found = series.setting_or_default(name, knobs.chunk.1);
    let [most, now] = [larger, chunk_bytes as u64].map(show_size_setting);
    // Of smaller ones than the default, that is what many want back; no more is promised of it.
    let to = show_size_setting(larger.max(parse_size(knobs.chunk.1).unwrap_or(0)));
    let formula = format!("{most} / {now}");
    let lift = Lift::setting(name, found, Some(to), "move larger chunks");
    let lift = lift.with_default(Some(knobs.chunk.1));
    Some((lift, larger as f64 / chunk_bytes, formula))
}

/// What binds once latency does not.
fn after_latency(recovery: &Copying<'_, '_>) -> Next {
    match limiter(recovery, recovery.node_bytes_per_s) {
        Some(limiter) => limiter.into_next(),
        None => Next::words("the link, then disks and cores"),
    }
}
