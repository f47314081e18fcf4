//! The path between the nodes is full.

use record::observation::Setting;
use record::units::show_bytes;

use super::rate_limit::{LOOKS_SINCE, moved};
use super::{Against, Answer, Cause, Class, Judge, Rule, proxy};
use crate::diagnosis::copying::{Copying, alias_of};
use crate::diagnosis::finding::{Evidence, Finding, Lift, NODES_STATS, Next, RECOVERY};
use crate::diagnosis::series::{MS_PER_S, Step};
use crate::diagnosis::threshold::{
    CORES_ANSWER, CPU_OWN, DISK_OWN, FAST_BYTES_PER_S, IDLE, IN_LINE_USE, LATE_ANSWERS, LATE_MS,
    LATE_SHARE, LIMIT_COSTS, LIMIT_FULL, LIMIT_PAUSED, LIMIT_USED, LITTLE_USED, NEAR_MS, NEAR_USE,
    PAUSED_ALONE, Threshold, at,
};
use crate::{stats, words};

/// A path that is full carries a level rate: it varies by less than this.
const LEVEL: Threshold = at("spread of the rate around its mean", 0.15);
/// Chunks come whole: between two looks there may be so many more or fewer than the path carries.
const LUMP: Threshold = at("chunks of a recovery by which what comes between looks differs", 1.0);
/// Fewer rates than this tell no spread.
const RATES: Threshold = at("rates between looks, at least", 3.0);
/// A fast and near path is full only where the rate is that of a usual card: this much below or above it, at most.
const BELOW_CARD: Threshold = at("share below a card", 0.12);
const ABOVE_CARD: Threshold = at("share above a card", 0.02);
const CARDS_BYTES_PER_S: [Threshold; 4] = [
    at("bytes a second of a card of 1 Gbit/s", 125e6),
    at("of 10 Gbit/s", 1.25e9),
    at("of 25 Gbit/s", 3.125e9),
    at("of 100 Gbit/s", 12.5e9),
];
/// Nobody saw the path itself, so a cause that was seen comes before it.
const STRENGTH: Threshold = at("strength", 0.6);

const DOUBT: &str = "a cap for each flow, segments that are lost and a full link look the same: compare 1 with 8 \
                     streams";
const UNTOLD: &str = "; so do cores or a disk of which nothing is told";
const CARRIES: &str = "find out what the link and the cards carry";
const MORE_CONNECTIONS: &str =
    "where there is a cap for each flow, open more connections (a node setting)";
const CONNECTIONS: &str = "transport.connections_per_node.recovery";

pub(super) static CAUSE: Cause = Cause {
    rule: Rule {
        class: Class::Bandwidth,
        label: "bandwidth",
        signature: "near nodes or chunks enough, no pauses, CPU and disk idle, and the rate is level",
        reads: "_nodes/stats transport.{rx,tx}_size_in_bytes; _recovery bytes over time",
        thresholds: &[
            LEVEL, LUMP, RATES, LITTLE_USED, IDLE, LIMIT_USED, LIMIT_PAUSED, LIMIT_FULL,
            LIMIT_COSTS, PAUSED_ALONE, LOOKS_SINCE, NEAR_MS, FAST_BYTES_PER_S, LATE_MS, LATE_SHARE,
            LATE_ANSWERS, CORES_ANSWER, CPU_OWN, DISK_OWN, NEAR_USE, IN_LINE_USE, BELOW_CARD,
            ABOVE_CARD, CARDS_BYTES_PER_S[0], CARDS_BYTES_PER_S[1], CARDS_BYTES_PER_S[2],
            CARDS_BYTES_PER_S[3], STRENGTH,
        ],
        lift: "the link; with a cap for each flow, transport.connections_per_node.recovery",
        default: "2",
        probe: "1 against 8 streams",
    },
    judges: &[Judge::Copying(judge)],
};

fn judge(recovery: &Copying<'_, '_>) -> Answer {
    if let Some(why) = held_otherwise(recovery) {
        return Err(Against::figure(why));
    }
    // Only a measured round trip tells a full path from a long one.
    let unmeasured = || Against::untold("the round trip was not measured");
    let rtt_ms = recovery.rtt_ms.ok_or_else(unmeasured)?;
    let little = recovery.little_bytes_per_s();
    let is_explained = |little: &f64| recovery.rate_bytes_per_s >= little * LITTLE_USED.value;
    if let Some(little) = little.filter(is_explained) {
        let why = format!("the round trip explains the rate: it allows {}", words::rate(little));
        return Err(Against::figure(why));
    }
    // Something always limits a fast recovery between near nodes; only a full card would be worth lifting.
    let one_way = recovery.one_way_bytes_per_s();
    let is_fast = one_way >= FAST_BYTES_PER_S.value;
    if is_fast && rtt_ms < NEAR_MS.value && !is_a_cards(one_way) {
        let rate = words::rate(one_way);
        let why = format!("{rate} between near nodes is not what a usual card carries");
        return Err(Against::figure(why));
    }
    let steps = &recovery.path_steps;
    let too_few = || Against::untold("there are too few looks to tell whether the rate is level");
    let spread = spread(steps).ok_or_else(too_few)?;
    let chunk_bytes = recovery.chunk_bytes.unwrap_or(0.0);
    let lump = LUMP.value * chunk_bytes * lumps(steps);
    if spread > LEVEL.value + lump || recovery.rate_bytes_per_s <= 0.0 {
        let (spread, level) = (words::percent(spread), words::percent(LEVEL.value + lump));
        let why = format!("the rate is within {spread} of its mean ({level} would tell)");
        return Err(Against::figure(why));
    }
    let last = recovery.transfer.last();
    let alias = last.repository.as_deref().and_then(alias_of);
    let from = last.source.as_deref().or(alias).unwrap_or_default();
    let place = format!("{from} to {}", last.target.as_deref().unwrap_or_default());
    // Of near nodes, whole milliseconds would read 0.
    let trip = match rtt_ms < NEAR_MS.value {
        true => words::rtt_tenths(rtt_ms),
        false => words::rtt(rtt_ms.round()),
    };
    let (seen, untold) = if recovery.tells_use() { ("", "") } else { (" that is seen", UNTOLD) };
    let sentence = format!(
        "the path {place} carries {} and no more: the rate is level, {trip} of round trip would let more through, and \
         no limiter, core or disk{seen} binds",
        words::rate(recovery.path_bytes_per_s())
    );
    let (mut evidence, mut doubt) = (evidence(recovery, spread), format!("{DOUBT}{untold}"));
    let lift = match alias {
        Some(alias) => Lift::action(&format!("{CARRIES}; {}", connections_to(alias))),
        None => {
            let found = recovery.series.setting_or_default(CONNECTIONS, CAUSE.rule.default);
            if let Some(window) = window(recovery, rtt_ms, &found) {
                evidence.push(Evidence::setting(CONNECTIONS, &found, Some(CAUSE.rule.default)));
                doubt = format!("{doubt}; {window}");
            }
            let action = format!("{CARRIES}; {MORE_CONNECTIONS}");
            Lift { set_by: None, ..Lift::setting(CONNECTIONS, found, None, &action) }
        }
    };
    let found = Finding {
        subjects: vec![recovery.transfer.name()],
        evidence,
        lift: Some(lift),
        next: little.map(|little| latency(recovery, little)).unwrap_or_default(),
        doubt: Some(doubt),
        ..Finding::of(&CAUSE.rule, place, STRENGTH.value, sentence)
    };
    Ok(proxy::of_path(recovery, &found).unwrap_or(found))
}

/// What connections to a node of another cluster there are: their number is fixed, but for those to a proxy.
fn connections_to(alias: &str) -> String {
    format!(
        "the connections to {alias} are as many whatever {CONNECTIONS} says, and only through a proxy a setting opens \
         more (cluster.remote.{alias}.proxy_socket_connections)"
    )
}

/// What the round trip allows, which is more than the path carries.
fn latency(recovery: &Copying<'_, '_>, little: f64) -> Next {
    let sentence = format!("latency at {} a shard", words::rate(little));
    Next::at(little / recovery.rate_bytes_per_s, Class::Latency, sentence)
}

/// The window by connection that would hold the rate as well (bytes in flight = rate x round trip), in words; none
/// between near nodes, where no window would be so small.
fn window(recovery: &Copying<'_, '_>, rtt_ms: f64, connections: &Setting) -> Option<String> {
    let count: f64 = connections.value.parse().ok().filter(|count| *count >= 1.0)?;
    if rtt_ms < NEAR_MS.value {
        return None;
    }
    let rate = recovery.path_bytes_per_s();
    let bytes = rate * rtt_ms / MS_PER_S / count;
    Some(format!(
        "a window of {} a connection would give it, too: {} x {} / {}",
        show_bytes(bytes as u64),
        words::rate(rate),
        words::rtt_tenths(rtt_ms),
        words::counted(count, "connection", "connections")
    ))
}

/// What else could hold the rate, so that the path need not.
fn held_otherwise(recovery: &Copying<'_, '_>) -> Option<String> {
    if !recovery.is_idle() {
        let idle = words::percent(IDLE.value);
        return Some(format!("cores or a disk are in use for more than {idle} of the time"));
    }
    if is_limited(recovery) {
        return Some("the limiter of the node explains the rate".to_owned());
    }
    recovery.standstill().map(|still| still.why())
}

/// Whether the limiter of the node could hold it. Chunks that come in a burst pause for each other far below the limit,
/// too: there only pauses say so that are long. And a rate that happens to be near the limit is none of the limiter's
/// where nothing pauses.
fn is_limited(recovery: &Copying<'_, '_>) -> bool {
    let paused = recovery.paused();
    let each_paused = recovery.of_each(paused.unwrap_or(0.0));
    match recovery.knobs.rate.zip(recovery.limit_bytes_per_s) {
        Some(((name, _), limit)) => {
            let used = moved(recovery, name) / limit;
            let holds = match paused {
                Some(paused) => recovery.is_limited(used, paused),
                None => used >= LIMIT_USED.value,
            };
            holds || each_paused >= PAUSED_ALONE.value
        }
        None => each_paused >= LIMIT_PAUSED.value,
    }
}

/// Whether a rate is what a usual network card carries.
fn is_a_cards(bytes_per_s: f64) -> bool {
    CARDS_BYTES_PER_S.iter().any(|card| {
        let used = bytes_per_s / card.value;
        used > 1.0 - BELOW_CARD.value && used <= 1.0 + ABOVE_CARD.value
    })
}

fn evidence(recovery: &Copying<'_, '_>, spread: f64) -> Vec<Evidence> {
    let mut evidence = vec![recovery.rate_evidence()];
    evidence.extend(recovery.paused_evidence());
    // The source sends what the target receives; of a recovery from remote the target alone is seen.
    if let Some(end) = recovery.ends.first() {
        let (field, moved) = match end.is_source {
            true => ("transport.tx_size_in_bytes", end.span.per_s(|node| node.transport_tx_bytes)),
            false => ("transport.rx_size_in_bytes", end.span.per_s(|node| node.transport_rx_bytes)),
        };
        let value = moved.map(|moved| format!("{}: {}", end.node(), words::rate(moved)));
        evidence.extend(value.map(|value| Evidence::new(NODES_STATS, field, value)));
    }
    let value = format!("level: within {} of its mean", words::percent(spread));
    evidence.push(Evidence::new(RECOVERY, "recovered_in_bytes between looks", value));
    evidence.extend(recovery.idle_evidence());
    evidence
}

/// Recoveries that share the path, over the bytes that come between two looks: each may bring a chunk more or less.
fn lumps(steps: &[Step]) -> f64 {
    let shards: usize = steps.iter().map(|step| step.shards).sum();
    let bytes: u64 = steps.iter().map(|step| step.bytes).sum();
    shards as f64 / bytes as f64
}

/// Mean distance of the rate from its mean, over the mean; none for too few rates.
fn spread(steps: &[Step]) -> Option<f64> {
    let rates: Vec<f64> = steps.iter().map(Step::bytes_per_s).collect();
    if (rates.len() as f64) < RATES.value {
        return None;
    }
    let mean = stats::mean(&rates)?;
    let off: Vec<f64> = rates.iter().map(|rate| (rate - mean).abs()).collect();
    Some(stats::mean(&off)? / mean).filter(|_| mean > 0.0)
}
