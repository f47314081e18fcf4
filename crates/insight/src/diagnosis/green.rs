//! When a cluster will be green: an interval with what it rests on, or why nobody can tell.

use std::collections::{BTreeSet, HashMap};

use record::observation::{Observation, WaitingCopy};
use record::units::{show_bytes, show_interval, show_seconds};
use serde::Serialize;

use super::class::Class;
use super::diagnose::Diagnosis;
use super::finding::Finding;
use super::pace::{Pace, SPREAD_MAX, SPREAD_MIN, between};
use super::series::{MS_PER_S, Series};
use super::waiting::{delay_left_ms, names, unassigned};
use crate::words::counted;

/// What verifying, finalizing and starting a copy may take after its last byte.
const ENDS_S: f64 = 0.5;
/// How many copies must have come while one looked, in how many steps, to reckon by their number.
const COUNTED_MIN: f64 = 5.0;
const STEPS_MIN: usize = 3;

/// When every copy is where it should be.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum TimeToGreen {
    /// It is green.
    Now,
    /// Not yet.
    Within {
        /// Seconds from the last look, earliest.
        soon_s: f64,
        /// Seconds from the last look, latest.
        late_s: f64,
        /// What was reckoned with.
        rests_on: String,
    },
    /// Never by itself: no node may hold some copies. The others come.
    Partly {
        /// Seconds from the last look, earliest, until those are there that come.
        soon_s: f64,
        /// Seconds from the last look, latest.
        late_s: f64,
        /// What was reckoned with, and which copies stay away.
        rests_on: String,
    },
    /// What is seen does not tell.
    Unknown {
        /// Why not.
        why: String,
    },
}

impl TimeToGreen {
    fn unknown(why: impl Into<String>) -> TimeToGreen {
        TimeToGreen::Unknown { why: why.into() }
    }

    /// A few words: `now`, `in 3:10 to 4:20`, `not by itself; the rest in 3:10 to 4:20`, `unknown`.
    pub fn words(&self) -> String {
        match self {
            TimeToGreen::Now => "now".to_owned(),
            TimeToGreen::Within { soon_s, late_s, .. } => {
                format!("in {}", show_interval(*soon_s, *late_s))
            }
            TimeToGreen::Partly { soon_s, late_s, .. } => {
                format!("not by itself; the rest in {}", show_interval(*soon_s, *late_s))
            }
            TimeToGreen::Unknown { .. } => "unknown".to_owned(),
        }
    }

    /// What it rests on, or why it is unknown; empty where there is nothing to say.
    pub fn note(&self) -> &str {
        match self {
            TimeToGreen::Now => "",
            TimeToGreen::Within { rests_on, .. } | TimeToGreen::Partly { rests_on, .. } => rests_on,
            TimeToGreen::Unknown { why } => why,
        }
    }

    /// The same of the copies that come, where these stay away.
    fn without(self, stay: &Blocked) -> TimeToGreen {
        match self {
            TimeToGreen::Within { soon_s, late_s, rests_on } if !stay.sentences.is_empty() => {
                let rests_on = format!("{rests_on}; {}", stay.sentences.join("; "));
                TimeToGreen::Partly { soon_s, late_s, rests_on }
            }
            other => other,
        }
    }
}

/// When the cluster of a series will be green. `paces` are those of its last look, and `diagnosis` its own.
pub fn time_to_green(series: &Series<'_>, paces: &[Pace], diagnosis: &Diagnosis) -> TimeToGreen {
    let Some(last) = series.last() else { return TimeToGreen::unknown("nothing was seen yet") };
    let Some(health) = &last.health else {
        return TimeToGreen::unknown("the cluster's health is not told");
    };
    if health.status == "green" {
        return TimeToGreen::Now;
    }
    let needed = needed(last, paces);
    let blocks = diagnosis.findings.iter().filter(|one| one.class == Class::AllocationBlock);
    // A primary that only waits for its turn has nothing that lifts it: nobody knows how long.
    let (stays, waits): (Vec<&Finding>, Vec<_>) = blocks.partition(|one| one.lift.is_some());
    let first = waits.first().or_else(|| stays.first().filter(|_| needed.is_empty()));
    if let Some(first) = first {
        return TimeToGreen::unknown(format!("not before this is lifted: {}", first.sentence));
    }
    let blocked = Blocked::new(last, &stays);
    if let Some(delayed) = health.delayed.filter(|count| *count > 0) {
        let left = delay_left_ms(last).map_or_else(String::new, |ms| {
            format!("; another node takes over in {}", show_seconds((ms as f64 / MS_PER_S).ceil()))
        });
        return TimeToGreen::unknown(format!(
            "copies that wait for a node to come back: {delayed}{left}"
        ));
    }
    if needed.is_empty() {
        return TimeToGreen::unknown("copies are missing, and none of them recovers now");
    }
    let by_bytes = by_bytes(series, last, &needed, &blocked);
    // Rates of copies that come between two looks are not among those that are known.
    let green = match by_bytes {
        Ok(green) if !needed.iter().any(|pace| has_just_begun(pace)) => green,
        by_bytes => by_count(series, &blocked)
            .unwrap_or_else(|| by_bytes.unwrap_or_else(TimeToGreen::unknown)),
    };
    green.without(&blocked)
}

/// The copies that no node may hold.
struct Blocked {
    /// What says so, a sentence for each reason.
    sentences: Vec<String>,
    /// Their names.
    names: BTreeSet<String>,
    /// How many of those that are listed as unassigned they are.
    copies: u64,
}

impl Blocked {
    fn new(last: &Observation, findings: &[&Finding]) -> Blocked {
        let mut all = Blocked {
            sentences: findings.iter().map(|one| one.sentence.clone()).collect(),
            names: findings.iter().flat_map(|one| one.subjects.iter().cloned()).collect(),
            copies: 0,
        };
        all.copies = unassigned(last).filter(|copy| all.holds(copy)).count() as u64;
        all
    }

    fn holds(&self, copy: &WaitingCopy) -> bool {
        !self.names.is_empty() && names(&[copy]).iter().all(|name| self.names.contains(name))
    }
}

/// By the bytes that are left and the rates at which they come.
fn by_bytes(
    series: &Series<'_>,
    last: &Observation,
    needed: &[&Pace],
    blocked: &Blocked,
) -> Result<TimeToGreen, String> {
    let mut left = Left::default();
    for pace in needed {
        left.add(pace)?;
    }
    left.within(needed.len(), queued(series, last, blocked)?)
}

/// Many small copies come between two looks, so that none of them has a rate. How many are missing falls all the same.
fn by_count(series: &Series<'_>, blocked: &Blocked) -> Option<TimeToGreen> {
    let missing = |(t_ms, look): &(f64, &Observation)| {
        let health = look.health.as_ref()?;
        Some((*t_ms, health.unassigned?.saturating_add(health.initializing?) as f64))
    };
    let counts: Vec<(f64, f64)> = series.looks().iter().filter_map(missing).collect();
    let steps = counts.windows(2).map(|pair| pair[0].1 - pair[1].1);
    // Copies come in batches: one less than is due may have come so far, and one may be about to come besides.
    let batch = steps.fold(0.0, f64::max);
    let ((first_ms, first), (last_ms, left)) = (*counts.first()?, *counts.last()?);
    let came = first - left;
    if came < COUNTED_MIN || counts.len() <= STEPS_MIN {
        return None;
    }
    let left = (left - blocked.copies as f64).max(0.0);
    let per_s = came / ((last_ms - first_ms) / MS_PER_S);
    let spread = |batches: f64| (batches * batch / came).clamp(SPREAD_MIN, SPREAD_MAX);
    let (soon_s, _) = between(left, per_s, spread(2.0));
    let (_, late_s) = between(left, per_s, spread(1.0));
    let missing = counted(left, "copy is missing", "copies are missing");
    let rests_on = format!("{missing}, and {came:.0} came meanwhile");
    Some(TimeToGreen::Within { soon_s, late_s: late_s + ENDS_S, rests_on })
}

/// The recoveries that the cluster waits for; a copy that merely moves leaves it as green as it was.
fn needed<'p>(last: &Observation, paces: &'p [Pace]) -> Vec<&'p Pace> {
    let copies = |pace: &&Pace| !matches!(pace.kind.as_str(), "EMPTY_STORE" | "EXISTING_STORE");
    let active: Vec<&Pace> = paces.iter().filter(|pace| !pace.ended).filter(copies).collect();
    let coming = last.waiting.iter().filter(|copy| copy.state == "INITIALIZING");
    let coming: BTreeSet<(u32, &str, Option<&str>)> =
        coming.map(|copy| (copy.shard, copy.index.as_str(), copy.node.as_deref())).collect();
    let is_missing =
        |pace: &&Pace| coming.contains(&(pace.shard, pace.index.as_str(), pace.target.as_deref()));
    let missing: Vec<&Pace> = active.iter().copied().filter(|pace| is_missing(pace)).collect();
    // The list of copies is older than that of recoveries.
    if missing.is_empty() { active } else { missing }
}

/// Whether a recovery that copies files was seen once, so that it has no rate yet.
fn has_just_begun(pace: &Pace) -> bool {
    let is_told = pace.total_bytes.is_some() && pace.done_bytes.is_some();
    pace.stage == "INDEX" && pace.now_bytes_per_s.is_none() && is_told
}

/// What is left of the recoveries that go on.
#[derive(Default)]
struct Left {
    bytes: f64,
    /// Bytes a second of all of them, if each has its highest and its lowest likely rate.
    high_bytes_per_s: f64,
    low_bytes_per_s: f64,
    /// The last of them ends so late at its own rate.
    late_s: f64,
    /// The last replay of operations ends so early.
    replayed_s: f64,
    /// Those that have just begun, and their bytes: they share what the others bring, as copies that wait do.
    begun: Vec<String>,
    begun_bytes: f64,
}

impl Left {
    fn add(&mut self, pace: &Pace) -> Result<(), String> {
        let name = || format!("{}[{}]", pace.index, pace.shard);
        let bytes = pace.total_bytes.zip(pace.done_bytes);
        let bytes = bytes.map(|(total, done)| total.saturating_sub(done) as f64);
        match (pace.stage.as_str(), pace.eta_s) {
            ("VERIFY_INDEX" | "FINALIZE" | "DONE", _) => {}
            ("TRANSLOG", Some((soon, late))) => {
                self.replayed_s = self.replayed_s.max(soon);
                self.late_s = self.late_s.max(late);
            }
            (_, Some((soon, late))) => {
                let bytes = bytes.unwrap_or(0.0);
                self.bytes += bytes;
                if bytes > 0.0 && soon > 0.0 {
                    self.high_bytes_per_s += bytes / soon;
                    self.low_bytes_per_s += bytes / late;
                }
                self.late_s = self.late_s.max(late);
            }
            (_, None) if has_just_begun(pace) => {
                self.begun.push(name());
                self.begun_bytes += bytes.unwrap_or(0.0);
            }
            (_, None) => return Err(no_rate(&name())),
        }
        Ok(())
    }

    /// Earliest, if a recovery that ends leaves its rate to the others; latest, if each keeps to its own.
    fn within(self, active: usize, queued: Queued) -> Result<TimeToGreen, String> {
        let is_at_rest = self.low_bytes_per_s <= 0.0;
        if let Some(name) = self.begun.first().filter(|_| is_at_rest) {
            return Err(no_rate(name));
        }
        if queued.copies > 0 && is_at_rest {
            return Err("nothing is copied now, and copies wait".to_owned());
        }
        let shared = |bytes: f64, rate: f64| if rate > 0.0 { bytes / rate } else { 0.0 };
        let left = self.bytes + self.begun_bytes;
        let soon = shared(left + queued.least_bytes, self.high_bytes_per_s);
        let late = shared(left + queued.most_bytes, self.low_bytes_per_s);
        let late = if queued.copies > 0 || !self.begun.is_empty() { late } else { 0.0 };
        let soon_s = soon.max(self.replayed_s);
        Ok(TimeToGreen::Within {
            soon_s,
            late_s: late.max(self.late_s).max(soon_s) + ENDS_S,
            rests_on: rests_on(active, self.begun.len(), &queued),
        })
    }
}

fn no_rate(name: &str) -> String {
    format!("the rate of {name} is not known yet")
}

fn rests_on(active: usize, begun: usize, queued: &Queued) -> String {
    let mut recoveries = counted(
        active - begun,
        "recovery at its current rate",
        "recoveries at their current rates",
    );
    if begun > 0 {
        recoveries += &format!(" and {begun} more that just began");
    }
    if queued.copies == 0 {
        return format!("{recoveries}; replaying operations afterwards comes on top");
    }
    let each = match queued.sizes {
        (least, most) if least == most => show_bytes(most),
        (least, most) => format!("{} to {}", show_bytes(least), show_bytes(most)),
    };
    let copies = counted(queued.copies, "copy that waits is", "copies that wait are");
    format!("{recoveries}; {copies} taken to be as large as those that were seen ({each})")
}

/// Copies that are on no node yet.
#[derive(Default)]
struct Queued {
    copies: u64,
    least_bytes: f64,
    most_bytes: f64,
    /// The smallest and the largest that one is taken to be.
    sizes: (u64, u64),
}

/// What waits for a slot. Nobody tells the size of a copy that is on no node: it is taken from those of its index that
/// were seen recovering, or else from all that were.
fn queued(series: &Series<'_>, last: &Observation, blocked: &Blocked) -> Result<Queued, String> {
    let count = last.health.as_ref().and_then(|health| health.unassigned).unwrap_or(0);
    let count = count.saturating_sub(blocked.copies);
    if count == 0 {
        return Ok(Queued::default());
    }
    let mut by_index: HashMap<&str, (u64, u64)> = HashMap::new();
    let mut any: Option<(u64, u64)> = None;
    let wider = |known: (u64, u64), bytes: u64| (known.0.min(bytes), known.1.max(bytes));
    for recovery in series.looks().iter().flat_map(|(_, look)| &look.recoveries) {
        let Some(bytes) = recovery.total_bytes.filter(|bytes| *bytes > 0) else { continue };
        let of = by_index.entry(recovery.index.as_str()).or_insert((bytes, bytes));
        *of = wider(*of, bytes);
        any = Some(wider(any.unwrap_or((bytes, bytes)), bytes));
    }
    let Some(any) = any else {
        return Err(format!("the sizes of the copies that wait ({count}) are not known yet"));
    };
    let mut queued = Queued { sizes: (u64::MAX, 0), ..Queued::default() };
    for copy in unassigned(last).filter(|copy| !blocked.holds(copy)) {
        let (least, most) = by_index.get(copy.index.as_str()).copied().unwrap_or(any);
        queued.copies += 1;
        // Of many copies the cluster explains only some. Those that it did not may have no place, either.
        let may_stay = blocked.copies > 0 && copy.can_allocate.is_none();
        queued.least_bytes += if may_stay { 0.0 } else { least as f64 };
        queued.most_bytes += most as f64;
        queued.sizes = (queued.sizes.0.min(least), queued.sizes.1.max(most));
    }
    if queued.copies == 0 {
        queued.sizes = any;
        (queued.least_bytes, queued.most_bytes, queued.copies) = (any.0 as f64, any.1 as f64, 1);
    }
    // The list may be older than the count.
    let factor = count as f64 / queued.copies as f64;
    queued.least_bytes *= factor;
    queued.most_bytes *= factor;
    queued.copies = count;
    Ok(queued)
}
