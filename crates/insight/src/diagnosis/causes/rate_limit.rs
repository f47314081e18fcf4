//! A limiter holds a recovery, a restore or a snapshot.
//!
//! The judge of a recovery looks for it in this order, and takes the first that shows:
//!
//! | way | shows in | needs |
//! | --- | --- | --- |
//! | `restore` | the rate of a restore is that of its repository's limit | a limit below the node's |
//! | `in_line` | what came and the next chunk take the recovery's time to pass | a chunk takes seconds to pass |
//! | `Seen::while_looked` | rate and pauses between the looks | the node's limit |
//! | `Seen::since_it_began` | the same since the recovery began | few chunks came while one looked |
//!
//! The judge of the cluster looks for a `snapshot` that is written at the rate of its repository's limit.

use record::observation::Setting;
use record::units::{parse_throttle, show_seconds, show_size_setting};

use super::{Against, Answer, Cause, Class, Judge, Rule};
use crate::diagnosis::copying::Copying;
use crate::diagnosis::finding::{Evidence, Finding, Gain, Lift, NODES_STATS, Next, RECOVERY};
use crate::diagnosis::knobs::to_step;
use crate::diagnosis::repository_limit::{REPOSITORY_STRENGTH, restore, snapshot};
use crate::diagnosis::series::{Changed, MS_PER_S, Series, Step, Transfer};
use crate::diagnosis::threshold::{
    CPU_OWN, DISK_OWN, GIVEN_BACK, HIDES, IDLE, IN_LINE_USE, LATE_ANSWERS, LATE_MS, LATE_SHARE,
    LIMIT_COSTS, LIMIT_FULL, LIMIT_PAUSED, LIMIT_USED, LITTLE_USED, NEAR_MS, NEAR_PATH, NEAR_USE,
    PASSES, PAUSED_ALONE, RAISE_MIN, ROUNDS, SHORT_S, Threshold, USED_ALONE, VERDICT, at,
};
use crate::words;

/// Pauses alone are weaker evidence than a rate that is the limiter's.
const PAUSED_STRENGTH: Threshold = at("strength of pauses alone, at most", 0.9);
/// The limit is raised up to the ceiling of latency where that is so much above it.
const ROOM: Threshold = at("ceiling of latency over the limit, to raise it up to there", 1.05);
/// Otherwise it is raised by what chunks pause, from `RAISE_MIN` up to this, or to the default.
const RAISE_MAX: Threshold =
    at("times the limit to try, at most, where that is not the default", 8.0);

/// Where less came than so many times what is in flight, the whole time of a recovery tells more than the looks.
const FEW: Threshold = at(
    "chunks that came over those in flight, below which the time since the beginning counts",
    2.0,
);

/// A limit that changed is not blamed for so long, or until what was in flight has passed, and never for longer.
const THROUGH_MS: Threshold = at("ms after a change of the limit until it is through", 5000.0);
const THROUGH_MS_MAX: Threshold = at("the same where more is in flight, at most", 30_000.0);
/// The rate since a change is taken over so many steps at least.
pub(super) const LOOKS_SINCE: Threshold =
    at("steps between looks that tell the rate since a change", 3.0);

pub(super) static CAUSE: Cause = Cause {
    rule: Rule {
        class: Class::RateLimit,
        label: "rate limit",
        signature: "pauses rise, and the node moves as much as its limiter lets through",
        reads: "_recovery index.{source,target}_throttle_time_in_millis; _nodes/stats \
                indices.recovery.throttle_time_in_millis; _cluster/settings; _snapshot/{repository} \
                max_restore_bytes_per_sec, max_snapshot_bytes_per_sec; _snapshot/_status",
        thresholds: &[
            LIMIT_USED, USED_ALONE, LIMIT_PAUSED, LIMIT_FULL, LIMIT_COSTS, PAUSED_ALONE,
            PAUSED_STRENGTH, REPOSITORY_STRENGTH, VERDICT, NEAR_MS, ROOM, RAISE_MIN, RAISE_MAX,
            GIVEN_BACK, THROUGH_MS, THROUGH_MS_MAX, LOOKS_SINCE, NEAR_USE, IN_LINE_USE, CPU_OWN,
            DISK_OWN, NEAR_PATH, LITTLE_USED, ROUNDS, FEW, SHORT_S, LATE_MS, LATE_SHARE,
            LATE_ANSWERS, IDLE, PASSES, HIDES,
        ],
        lift: "indices.recovery.max_bytes_per_sec (ccr.indices.recovery.max_bytes_per_sec from remote)",
        default: "40mb",
        probe: "limit -20 % (-50 % where few chunks pass): the rate falls as much",
    },
    judges: &[Judge::Copying(judge), Judge::Cluster(of_snapshot)],
};

fn of_snapshot(series: &Series<'_>) -> Option<Finding> {
    snapshot(&CAUSE.rule, series)
}

fn judge(recovery: &Copying<'_, '_>) -> Answer {
    if let Some(finding) = restore(&CAUSE.rule, recovery) {
        return Ok(finding);
    }
    let no_limiter = || Against::figure("no limiter serves a recovery of this kind");
    let limiter = recovery.knobs.rate.zip(recovery.limiter.clone());
    let ((name, _), (setting, _)) = limiter.ok_or_else(no_limiter)?;
    let no_limit = || match parse_throttle(&setting.value) {
        Ok(Some(_)) => Against::untold(format!(
            "{} moves {}, which is more than {name} = {} lets through: its own configuration sets another limit",
            recovery.node,
            words::rate(recovery.node_bytes_per_s),
            setting.value
        )),
        _ => Against::figure(format!("{name} = {} sets no limit", setting.value)),
    };
    let limit = recovery.limit_bytes_per_s.ok_or_else(no_limit)?;
    if let Some(finding) = in_line(recovery, name, &setting, limit) {
        return Ok(finding);
    }
    let seen = Seen::while_looked(recovery, name, limit)
        .or_else(|| Seen::since_it_began(recovery, name, limit))
        .ok_or_else(|| below(recovery, name, limit))?;
    if let Some(finding) = not_yet_through(recovery, name, limit, seen.strength) {
        return Ok(finding);
    }
    Ok(seen.finding(recovery, name, setting, limit))
}

/// What is seen of a limiter at work.
struct Seen {
    /// What the node moves over what its limiter lets through.
    used: f64,
    /// Share of the time that each chunk in flight pauses.
    each_paused: f64,
    /// The same as it is told: where they pause one after another and nothing tells what comes next, each of them waits
    /// behind the ones that pause.
    told_paused: f64,
    strength: f64,
}

impl Seen {
    /// None where the limiter does not hold. `paused` is summed over the chunks in flight; none where it is not told.
    fn of(recovery: &Copying<'_, '_>, used: f64, paused: Option<f64>) -> Option<Seen> {
        let each_paused = paused.map_or(0.0, |paused| recovery.of_each(paused));
        let in_line = paused.filter(|_| raise_max(recovery) <= RAISE_MIN.value);
        let told_paused = in_line.unwrap_or(each_paused);
        let strength = match paused {
            Some(paused) if recovery.is_limited(used, paused) => used.min(1.0),
            None if used >= USED_ALONE.value => VERDICT.value,
            // The limiter may also serve recoveries that are not seen from here.
            Some(_) if each_paused >= PAUSED_ALONE.value => PAUSED_STRENGTH.at_most(told_paused),
            _ => return None,
        };
        Some(Seen { used, each_paused, told_paused, strength })
    }

    fn while_looked(recovery: &Copying<'_, '_>, name: &str, limit: f64) -> Option<Seen> {
        Seen::of(recovery, moved(recovery, name) / limit, recovery.paused())
    }

    /// Of chunks that hardly any came of while one looked, the whole time of the recovery tells more. A limit that
    /// changed meanwhile is not the one that they met.
    fn since_it_began(recovery: &Copying<'_, '_>, name: &str, limit: f64) -> Option<Seen> {
        let came = recovery.transfer.bytes()? as f64;
        let last = recovery.transfer.last();
        let is_told = came < recovery.in_flight_bytes? * FEW.value
            && last.stage == "INDEX"
            && recovery.series.changed(name).is_none();
        let whole = Transfer::since_its_beginning(0.0, last);
        let wall_ms = last.total_ms.filter(|ms| *ms > 0 && is_told)? as f64;
        let paused = whole.paused_ms().map(|ms| ms as f64 / wall_ms);
        // Others share the limiter; where nothing came meanwhile, no rates tell how.
        let shared = recovery.node_bytes_per_s / recovery.rate_bytes_per_s;
        let shared = if shared.is_finite() { shared } else { 1.0 };
        // No limiter lets more through than its rate: where more came, it was higher for most of the time.
        let used = whole.bytes_per_s()? / limit;
        if used > 1.0 / LIMIT_USED.value {
            return None;
        }
        Seen::of(recovery, used * shared, paused)
    }

    fn finding(
        &self,
        recovery: &Copying<'_, '_>,
        name: &str,
        setting: Setting,
        limit: f64,
    ) -> Finding {
        let ceiling = recovery
            .little_bytes_per_s()
            .map(|one| one * recovery.node_bytes_per_s / recovery.rate_bytes_per_s)
            .filter(|ceiling| ceiling.is_finite());
        let raise_max = raise_max(recovery);
        let is_next_told = raise_max > RAISE_MIN.value;
        let wanted = raised(limit, ceiling, self.each_paused, raise_max);
        let to = to_try(limit, wanted, default_of(recovery).filter(|_| is_next_told));
        let today_bytes_per_s = self.today_bytes_per_s(limit);
        // Of pauses that take nearly all of the time, a hundredth more or less would make the promise another one.
        let unpaused = limit / (1.0 - self.each_paused.min(GIVEN_BACK.value));
        let most = brings(to, unpaused.max(round(limit, wanted)), wanted, ceiling);
        let gain = Gain {
            factor: (most / today_bytes_per_s).max(1.0),
            formula: self.formula(most, to, today_bytes_per_s, ceiling.is_some()),
        };
        let action = match is_next_told {
            true => RAISE,
            false => {
                "raise the limit step by step while searches and indexing have room: the next limit is not known before"
            }
        };
        let sentence = self.sentence(recovery, name, &setting, limit);
        let mut evidence = evidence(recovery, name, &setting);
        let mut next = next_limit(recovery, ceiling, today_bytes_per_s);
        let mut doubt = (!self.is_full()).then(|| BELOW_LIMIT.to_owned());
        if let Some(still) = recovery.standstill() {
            evidence.push(still.evidence());
            next = Next::words(format!("not known while {} stands still", still.node));
            doubt = Some(format!("{}: a higher limit may bring less or more", still.why()));
        }
        let mut action = action.to_owned();
        if let Some((node, rate)) = recovery.knobs.slowed_by(to, recovery.series) {
            action +=
                &format!("; it counts for all nodes, and {node} lets {rate} through by default");
        } else if let Some(rate) = recovery.knobs.less_elsewhere(&recovery.node, recovery.series) {
            action += &format!(
                "; it counts for all nodes, and those of other tiers let {rate} through by default"
            );
        }
        let lift = Lift::setting(name, setting, Some(show_size_setting(to)), &action);
        Finding {
            subjects: vec![recovery.transfer.name()],
            evidence,
            lift: Some(lift.with_default(default_of(recovery))),
            gain: Some(gain),
            next,
            doubt,
            ..Finding::of(&CAUSE.rule, &recovery.node, self.strength, sentence)
        }
    }

    /// Whether the node moves as much as its limiter lets through.
    fn is_full(&self) -> bool {
        self.used >= LIMIT_USED.value
    }

    /// The rate that a higher limit is compared with. Where the recoveries that are seen use less than the limit,
    /// others use the rest: these have the whole limit to gain, and no more. What is more than the limit came in a
    /// lump: no limiter lets more through than its rate.
    fn today_bytes_per_s(&self, limit: f64) -> f64 {
        if self.is_full() { (self.used * limit).min(limit) } else { limit }
    }

    fn sentence(
        &self,
        recovery: &Copying<'_, '_>,
        name: &str,
        setting: &Setting,
        limit: f64,
    ) -> String {
        let (node, value) = (&recovery.node, &setting.value);
        if self.is_full() {
            let moved = words::rate(self.today_bytes_per_s(limit));
            let limit = words::rate(limit);
            format!(
                "the limiter of {node} is the bottleneck: {moved} of the {limit} that {name} = {value} lets through"
            )
        } else {
            let paused = self.paused_text();
            format!(
                "the limiter of {node} is the bottleneck ({name} = {value}): chunks pause {paused} of their time"
            )
        }
    }

    /// How the gain is reckoned.
    fn formula(&self, most: f64, to: u64, today_bytes_per_s: f64, has_ceiling: bool) -> String {
        let reckoned = format!("{} / {}", shown(most, to), words::rate(today_bytes_per_s));
        if has_ceiling {
            return reckoned;
        }
        let mut paused = self.paused_text();
        if most < to as f64 && self.each_paused > GIVEN_BACK.value {
            let counted = words::percent(GIVEN_BACK.value);
            paused = format!("{paused} of their time, of which {counted} count");
        } else {
            paused += " of their time";
        }
        format!("{reckoned}: chunks pause {paused}; if nothing else binds first")
    }

    fn paused_text(&self) -> String {
        words::percent(self.told_paused.min(1.0))
    }
}

/// A limit so low that a single chunk takes seconds to pass: neither its bytes nor its pause are told before. Where
/// what came, of this recovery and of those in the same line, and the next chunk take about the recovery's whole time
/// to pass, nothing else has to hold it.
fn in_line(
    recovery: &Copying<'_, '_>,
    name: &str,
    setting: &Setting,
    limit: f64,
) -> Option<Finding> {
    let last = recovery.transfer.last();
    let taken_s = last.total_ms.filter(|ms| *ms > 0)? as f64 / MS_PER_S;
    let chunk_s = recovery.chunk_bytes? / limit;
    // No limiter lets more through than its rate: where more came of others, it was higher then.
    let let_through = limit * (taken_s / LIMIT_USED.value + chunk_s);
    let (node, passed) = recovery
        .passed
        .filter(|(_, passed)| *passed <= let_through)
        .unwrap_or((recovery.node.as_str(), last.recovered_bytes? as f64));
    // Chunks pass one after another: where the next one was due long ago, something else holds it.
    let due_s = passed / limit + chunk_s;
    let explained = due_s / taken_s;
    let is_told = last.stage == "INDEX" && !last.ended && chunk_s >= SHORT_S.value;
    if !is_told || explained < LIMIT_USED.value || recovery.series.changed(name).is_some() {
        return None;
    }
    let sentence = format!(
        "the limiter of {node} is the bottleneck ({name} = {}): a chunk takes {} to pass it, and the next one is due \
         {} after the beginning, which was {} ago",
        setting.value,
        show_seconds(chunk_s),
        show_seconds(due_s),
        show_seconds(taken_s)
    );
    let (wanted, ceiling) = (limit * RAISE_MAX.value, recovery.little_bytes_per_s());
    let to = to_try(limit, wanted, default_of(recovery));
    let most = brings(to, wanted, wanted, ceiling);
    let text = shown(most, to);
    let lift = Lift::setting(name, setting.clone(), Some(show_size_setting(to)), RAISE);
    Some(Finding {
        subjects: vec![recovery.transfer.name()],
        evidence: evidence(recovery, name, setting),
        lift: Some(lift.with_default(default_of(recovery))),
        gain: Some(Gain {
            factor: most / limit,
            formula: format!("{text} / {}; if nothing else binds first", words::rate(limit)),
        }),
        next: next_limit(recovery, ceiling, limit),
        doubt: Some(
            "a path that carries nothing looks the same until a chunk has passed".to_owned(),
        ),
        ..Finding::of(&CAUSE.rule, node, PAUSED_STRENGTH.at_most(explained), sentence)
    })
}

/// The field's default of the limit.
fn default_of(recovery: &Copying<'_, '_>) -> Option<&'static str> {
    recovery.limiter.as_ref().map(|(_, default)| *default)
}

/// The value to try: the field's default where the limit is below it and that is enough, or else a round value.
fn to_try(limit: f64, wanted: f64, default: Option<&str>) -> u64 {
    let default = default.and_then(|default| parse_throttle(default).ok().flatten());
    let enough = default.filter(|default| *default as f64 > limit && *default as f64 >= wanted);
    enough.unwrap_or_else(|| round(limit, wanted) as u64)
}

/// A round value, at most `RAISE_MAX` times the limit.
fn round(limit: f64, wanted: f64) -> f64 {
    to_step(wanted, limit * RAISE_MAX.value) as f64
}

/// Bytes a second that are promised of a value. The default may be many times the limit: no more is promised than what
/// is seen supports, as what chunks carry without their pauses. What is above what latency lets through brings no more.
fn brings(to: u64, supported: f64, wanted: f64, ceiling: Option<f64>) -> f64 {
    let most = supported.min(to as f64);
    ceiling.map_or(most, |ceiling| ceiling.max(wanted).min(most))
}

/// How a formula writes what is promised of a value: as that, or as the rate that it stays below.
fn shown(most: f64, to: u64) -> String {
    if most < to as f64 { words::rate(most) } else { show_size_setting(to) }
}

/// The rate, the pauses, and the limit.
fn evidence(recovery: &Copying<'_, '_>, name: &str, setting: &Setting) -> Vec<Evidence> {
    let mut found = vec![recovery.rate_evidence()];
    // One that was over by then tells nothing of it.
    let steps = recovery.transfer.steps();
    let is_since = |since_ms: f64| steps.last().is_some_and(|step| step.t_ms > since_ms);
    let since = since_change(recovery, name).filter(|(changed, _)| is_since(changed.since_ms));
    found.extend(since.map(|(changed, moved)| {
        let moved = words::rate(moved);
        let value =
            format!("{moved} on {} since {name} changed from {}", recovery.node, changed.was);
        Evidence::new(RECOVERY, "index.size.recovered_in_bytes", value)
    }));
    found.extend(recovery.paused_evidence());
    found.extend(node_pauses(recovery));
    found.push(Evidence::setting(name, setting, default_of(recovery)));
    found
}

/// What speaks against the limiter: the rate and the pauses that it has.
fn below(recovery: &Copying<'_, '_>, name: &str, limit: f64) -> Against {
    let moved = moved(recovery, name);
    let (rate, of) = (words::rate(moved), words::rate(limit));
    let used = words::percent(moved / limit);
    let pauses = match recovery.paused().map(|summed| recovery.of_each(summed).min(1.0)) {
        Some(paused) => format!("chunks pause {} of their time", words::percent(paused)),
        None => "pauses are not told".to_owned(),
    };
    let node = &recovery.node;
    let why = format!("{node} moves {rate}, {used} of the {of} of {name}, and {pauses}");
    match recovery.may_be_limited() {
        true => Against::untold(format!("{why}; too few chunks came yet to tell")),
        false => Against::figure(why),
    }
}

const RAISE: &str = "raise the limit while searches and indexing have room";
const BELOW_LIMIT: &str = "the rate is below this limit: other recoveries that are not seen from here use the rest, or \
                           the limit was raised a moment ago and chunks that wait keep to the one before";

const UNTOLD: &str = "latency, at a rate that is not told: round trips differ, or nodes are too busy to measure them";

/// What the node moves: since the limit changed, where it did. What came before met another one.
pub(super) fn moved(recovery: &Copying<'_, '_>, name: &str) -> f64 {
    since_change(recovery, name).map_or(recovery.node_bytes_per_s, |(_, moved)| moved)
}

/// How the limit changed while one looked, and what the node has moved since.
fn since_change<'a>(recovery: &Copying<'_, 'a>, name: &str) -> Option<(Changed<'a>, f64)> {
    let changed = recovery.series.changed(name)?;
    let own = rate_since(&recovery.transfer.steps(), changed.since_ms)?;
    // Where nothing of this recovery came at all, there is no share of the node's rate to reckon with.
    let of_node = recovery.node_bytes_per_s / recovery.rate_bytes_per_s;
    Some((changed, own * if of_node.is_finite() { of_node } else { 1.0 }))
}

/// A limit that changed while one looked, and that the rate does not keep to yet.
fn not_yet_through(
    recovery: &Copying<'_, '_>,
    name: &str,
    limit: f64,
    strength: f64,
) -> Option<Finding> {
    let (changed, moved) = since_change(recovery, name)?;
    // What is in flight when a limit changes has to pass first.
    let passes_s = recovery.in_flight_bytes.map_or(0.0, |bytes| bytes / recovery.rate_bytes_per_s);
    let through_ms = (passes_s * MS_PER_S).clamp(THROUGH_MS.value, THROUGH_MS_MAX.value);
    if changed.ago_ms_min > through_ms {
        return None;
    }
    let (was, ago_ms) = (changed.was, changed.ago_ms_max);
    let is = &recovery.series.setting(name)?.value;
    let used = moved / limit;
    if (LIMIT_USED.value..=1.0 / LIMIT_USED.value).contains(&used) {
        return None;
    }
    let setting = recovery.setting_evidence(name, CAUSE.rule.default);
    let ago = show_seconds((ago_ms / MS_PER_S).ceil());
    let sentence = format!(
        "{name} changed from {was} to {is} within the last {ago} and is not yet through: {} on {}",
        words::rate(used * limit),
        recovery.node
    );
    let mut evidence = vec![recovery.rate_evidence(), setting];
    evidence.extend(recovery.paused_evidence());
    let action = "look again: chunks that wait already still keep to the old limit";
    Some(Finding {
        subjects: vec![recovery.transfer.name()],
        evidence,
        lift: Some(Lift::action(action)),
        ..Finding::of(&CAUSE.rule, &recovery.node, strength, sentence)
    })
}

/// Bytes a second since a time; over so many looks at least, because chunks come in lumps.
fn rate_since(steps: &[Step], since_ms: f64) -> Option<f64> {
    let later = steps.iter().filter(|step| step.t_ms > since_ms).count();
    let few = steps.len().saturating_sub(later.max(LOOKS_SINCE.value as usize));
    let counted = &steps[few..];
    let bytes: u64 = counted.iter().map(|step| step.bytes).sum();
    let wall_ms: f64 = counted.iter().map(|step| step.wall_ms).sum();
    (wall_ms > 0.0).then(|| bytes as f64 / (wall_ms / MS_PER_S))
}

/// Times the limit to try, at most. Where chunks pause one after another and nearly all of the time, nothing tells what
/// holds next: who raises it by much promises what nobody has seen.
fn raise_max(recovery: &Copying<'_, '_>) -> f64 {
    let is_told = recovery.sends().is_some_and(|sends| sends >= NEAR_PATH.value);
    if recovery.pauses_in_line() && !is_told { RAISE_MIN.value } else { RAISE_MAX.value }
}

/// The limit to try: up to where latency holds, or by what chunks would be faster without their pauses.
fn raised(limit: f64, ceiling: Option<f64>, each_paused: f64, raise_max: f64) -> f64 {
    let paused_max = 1.0 - 1.0 / raise_max;
    let unpaused = (1.0 / (1.0 - each_paused.min(paused_max))).max(RAISE_MIN.value);
    let ceiling = ceiling.filter(|ceiling| *ceiling > limit * ROOM.value);
    ceiling.unwrap_or(limit * unpaused).min(limit * raise_max)
}

fn node_pauses(recovery: &Copying<'_, '_>) -> Option<Evidence> {
    let end = recovery.ends.iter().find(|end| end.node() == recovery.node)?;
    let paused = end.span.over(|node| node.throttle_ms)?;
    let summed = words::summed_pauses(paused.count, paused.wall_ms, None);
    let value = format!("{}: {summed}", recovery.node);
    Some(Evidence::new(NODES_STATS, "indices.recovery.throttle_time_in_millis", value))
}

/// By how many times the ceiling of all recoveries of a node is that of one; nothing where there is one.
fn for_all(ceiling: f64, of_one: Option<f64>, node: &str) -> String {
    let times = of_one.map_or(1.0, |one| ceiling / one);
    match times > ROOM.value {
        true => format!(", {} for all that {node} moves", words::times(times)),
        false => String::new(),
    }
}

/// No figure where it would be another one with each look.
fn next_limit(recovery: &Copying<'_, '_>, ceiling: Option<f64>, today_bytes_per_s: f64) -> Next {
    match (ceiling, recovery.rtt_ms) {
        (Some(ceiling), rtt_ms) => {
            let sentence = match recovery.tells_little() {
                true => format!(
                    "latency at {} ({} over {}{})",
                    words::rate(ceiling),
                    recovery.in_flight().unwrap_or_default(),
                    words::rtt_tenths(rtt_ms.unwrap_or_default()),
                    for_all(ceiling, recovery.little_bytes_per_s(), &recovery.node)
                ),
                false => UNTOLD.to_owned(),
            };
            Next::at(ceiling / today_bytes_per_s, Class::Latency, sentence)
        }
        (None, Some(rtt_ms)) if rtt_ms < NEAR_MS.value => {
            Next::words("disks, cores or the network: the nodes are near each other")
        }
        (None, _) => {
            Next::words("latency, disks, cores or the network; the round trip is not known")
        }
    }
}
