//! The state machine: looks go in, decisions come out.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use record::observation::Scope;
use world::Time;

use super::bounds::{Bounds, amount, raised, text};
use super::decision::{Back, Decision, Outcome, Proposal};
use super::guard::{Guard, Marks, Users};
use super::look::{Holds, Lever, Look, Role, Verdict};
use super::memory::Memory;
use super::meter::{MEASURE, MEASURE_BRIEF, Measured, Meter};
use super::trial::{LEAP, Made, Ruling, SETTLE, STEP, Trial, WORTH, settling};

/// No round trip takes longer. Bytes that take longer to pass a path queue there, and with more in flight they would
/// queue longer.
const ROUND_TRIP_MAX: Duration = Duration::from_millis(500);
/// By how many times a step raises a setting where users have room and a large step is safe.
const STRIDE: f64 = 4.0;
/// A recovery that began within this time is a sign that others will begin.
const LATELY: Duration = Duration::from_secs(60);
/// A value that nobody here set is believed once so many looks in a row have it.
const FOREIGN_LOOKS: u32 = 2;

/// What it is at.
///
/// | from | to | when |
/// | --- | --- | --- |
/// | `Watching` | `Trying` | a setting is raised |
/// | `Trying` | `Watching` | the raise is kept, taken back or withdrawn |
/// | each but `Over` | `Watching` | users suffer: what is on trial, or else the last that was kept, is taken back |
/// | each but `Over` | `Over` | somebody else changes a setting that was raised here |
#[derive(Clone, Debug)]
enum Phase {
    /// The settings have been what they are since this moment.
    Watching(Time),
    Trying(Box<Trial>),
    Over(String),
}

/// Steers one cluster.
#[derive(Clone, Debug)]
pub struct Steering {
    bounds: Bounds,
    guard: Guard,
    meter: Meter,
    phase: Phase,
    began: Time,
    /// Each setting as it was first seen.
    found: BTreeMap<String, Lever>,
    /// What was changed and helped, the last one last.
    kept: Vec<Made>,
    /// The limit whose raise was kept last, where that brought much.
    climbs: Option<String>,
    memory: Memory,
    /// Settings that are left alone, because somebody else sets them or the cluster refused them.
    left: BTreeSet<String>,
    /// Looks in a row in which a setting had a value of somebody else.
    foreign: BTreeMap<String, u32>,
}

impl Steering {
    /// Steers from `now` on, within these bounds, as long as users are well by these marks.
    pub fn new(now: Time, bounds: Bounds, marks: Marks) -> Steering {
        Steering {
            bounds,
            guard: Guard::new(marks),
            meter: Meter::default(),
            phase: Phase::Watching(now),
            began: now,
            found: BTreeMap::new(),
            kept: Vec::new(),
            climbs: None,
            memory: Memory::default(),
            left: BTreeSet::new(),
            foreign: BTreeMap::new(),
        }
    }

    /// How far it may raise settings.
    pub fn bounds(&self) -> &Bounds {
        &self.bounds
    }

    /// What is changed now and was kept, by name: as it was found, and as it is.
    pub fn in_force(&self) -> BTreeMap<&str, (&str, &str)> {
        let now = self.kept.iter().map(|made| {
            let (name, to) = (made.proposal.setting.as_str(), made.proposal.to.as_str());
            (name, (self.found.get(name).map_or("", |lever| &lever.setting.value), to))
        });
        now.collect()
    }

    /// What users bear before anything is changed, in words; none before that is known.
    pub fn baseline(&self) -> Option<String> {
        self.guard.knows_usual().then(|| self.guard.usual())
    }

    /// From when on what is seen speaks of the settings as they are.
    pub fn settled_since(&self) -> Time {
        match &self.phase {
            Phase::Watching(since) => *since,
            Phase::Trying(trial) => trial.settled.unwrap_or(trial.changed),
            Phase::Over(_) => self.began,
        }
    }

    /// What to do, now that the cluster was looked at again. What is answered is taken for done; where it was not,
    /// [`Steering::withdraw`] or [`Steering::leave`] says so before the next look.
    pub fn next(&mut self, look: &Look) -> Decision {
        if let Phase::Over(why) = &self.phase {
            return Decision::Stop(why.clone());
        }
        self.meter.push(look);
        if let Some(decision) = self.of_others(look) {
            return decision;
        }
        for lever in &look.levers {
            self.found.entry(lever.name.clone()).or_insert_with(|| lever.clone());
        }
        let is_settled = matches!(self.phase, Phase::Watching(since) if look.at >= since);
        let as_found = self.kept.is_empty() && is_settled;
        match self.guard.judge(look.at, &look.foreground, as_found) {
            Users::Suffer(why) => return self.give_way(look.at, why),
            // What is usual is told first.
            Users::Uneasy(_) if !self.guard.knows_usual() => return Decision::Look,
            // Neither begun nor judged while that is not clear.
            Users::Uneasy(why) => return Decision::Wait(format!("users may suffer: {why}")),
            Users::Fine => {}
        }
        match std::mem::replace(&mut self.phase, Phase::Watching(look.at)) {
            Phase::Watching(since) => self.watch(look, since),
            Phase::Trying(trial) => self.judge(look, *trial),
            Phase::Over(_) => unreachable!("it answers at once"),
        }
    }

    /// The setting that was proposed last was not set: nothing is changed.
    pub fn withdraw(&mut self) {
        if let Phase::Trying(trial) = &self.phase {
            self.phase = Phase::Watching(trial.since);
        }
    }

    /// The same, and this setting is never proposed again: the cluster refuses it.
    pub fn leave(&mut self, setting: &str) {
        self.withdraw();
        self.left.insert(setting.to_owned());
    }

    /// Looks for values that nobody here set.
    fn of_others(&mut self, look: &Look) -> Option<Decision> {
        if !look.settings_are_new {
            return None;
        }
        for lever in look.levers.iter().chain(&look.resting) {
            let Some(found) = self.found.get(&lever.name) else { continue };
            if self.left.contains(&lever.name) {
                continue;
            }
            let ours = self.made(&lever.name).map(|made| made.proposal.to.clone());
            let expected = ours.as_ref().unwrap_or(&found.setting.value);
            let same = |a: &str, b: &str| a == b || amount(lever.role, a) == amount(lever.role, b);
            let is_back = ours.is_some() && lever.setting.scope == Scope::Default;
            if same(expected, &lever.setting.value) && !is_back {
                self.foreign.remove(&lever.name);
                continue;
            }
            let looks = self.foreign.entry(lever.name.clone()).or_default();
            *looks += 1;
            if *looks < FOREIGN_LOOKS {
                continue;
            }
            let said = format!(
                "somebody else changes {}: it is {} and was {expected}",
                lever.name, lever.setting.value
            );
            self.left.insert(lever.name.clone());
            if ours.is_none() {
                return Some(Decision::Leave(said));
            }
            self.phase = Phase::Over(said.clone());
            return Some(Decision::Stop(said));
        }
        None
    }

    /// The change of a setting that is in force: the one on trial, or the last that was kept.
    fn made(&self, name: &str) -> Option<&Made> {
        let trial = match &self.phase {
            Phase::Trying(trial) => Some(&trial.made),
            _ => None,
        };
        trial.into_iter().chain(self.kept.iter().rev()).find(|made| made.proposal.setting == name)
    }

    /// What to do where the cluster does not answer any more, so that nobody sees how its users are: as if they
    /// suffered.
    pub fn unseen(&mut self, at: Time) -> Decision {
        self.give_way(at, "the cluster does not answer".to_owned())
    }

    /// What is on trial, as it would be taken back: nobody knows yet whether it helps.
    pub fn on_trial(&self) -> Option<Back> {
        match &self.phase {
            Phase::Trying(trial) => Some(self.back(&trial.made)),
            _ => None,
        }
    }

    fn give_way(&mut self, at: Time, why: String) -> Decision {
        self.memory.suffered(at);
        self.climbs = None;
        let made = match std::mem::replace(&mut self.phase, Phase::Watching(at + SETTLE)) {
            Phase::Trying(trial) => Some(trial.made),
            _ => self.kept.pop(),
        };
        let Some(made) = made else {
            return Decision::Wait(format!("users suffer, and every setting is as it was: {why}"));
        };
        self.guard.forgive();
        self.memory.suffered_with(at, &made);
        Decision::GiveWay(self.back(&made), why)
    }

    fn back(&self, made: &Made) -> Back {
        let Proposal { setting, from, to, .. } = made.proposal.clone();
        let is_as_found = self.kept.iter().all(|other| other.proposal.setting != setting);
        Back { setting, from: to, to: from, is_as_found }
    }

    fn watch(&mut self, look: &Look, since: Time) -> Decision {
        self.phase = Phase::Watching(since);
        let wait = |why: &str| Decision::Wait(why.to_owned());
        if look.active.is_empty() {
            // The next measurement begins with the next recovery.
            self.phase = Phase::Watching(look.at.max(since));
            self.memory.forget_last();
            // What is usual is told first.
            if !self.guard.knows_usual() {
                return Decision::Look;
            }
            return wait("nothing recovers");
        }
        if self.memory.is_quiet(look.at) {
            return wait("users suffered a moment ago");
        }
        // A rate that has leapt is known well enough to be compared with the next one.
        let leapt = self.memory.leapt;
        let least = if leapt { MEASURE_BRIEF } else { MEASURE };
        let is_enough = |measured: &Measured| measured.is_whole() || (leapt && measured.is_brief());
        if look.at - since < least || !self.guard.knows_usual() {
            return Decision::Look;
        }
        let meter = &self.meter;
        self.memory.reconsider(look.at, |role| meter.since(since, role));
        let (verdict, lever, to) = match self.choose(look) {
            Ok(found) => found,
            Err(why) => return Decision::Wait(why),
        };
        match self.meter.since(since, lever.role).filter(is_enough) {
            Some(before) => self.begin(look.at, (since, before), &verdict, lever, to),
            None => Decision::Look,
        }
    }

    /// Begins a trial of a higher value. The rate before was measured since a moment.
    fn begin(
        &mut self,
        at: Time,
        (since, before): (Time, Measured),
        verdict: &Verdict,
        lever: &Lever,
        to: u64,
    ) -> Decision {
        let from = lever.setting.value.clone();
        let times = amount(lever.role, &from).map_or(STEP, |from| to as f64 / from as f64);
        let proposal = Proposal {
            setting: lever.name.clone(),
            to: text(lever.role, to),
            from,
            label: verdict.label.clone(),
            before_per_s: before.per_s,
            expected: verdict.promised(lever.role, times),
        };
        self.phase = Phase::Trying(Box::new(Trial {
            made: Made { proposal: proposal.clone(), role: lever.role },
            later_only: lever.later_only,
            times,
            leap: proposal.expected.unwrap_or(times).sqrt().max(LEAP),
            worth: match proposal.expected {
                // The gain is small because another setting is the next limit; that one is raised next.
                Some(little) if verdict.is_held_next() => WORTH.min((1.0 + little) / 2.0),
                _ => WORTH,
            },
            before,
            since,
            changed: at,
            settled: None,
            idle: None,
        }));
        Decision::Set(proposal)
    }

    /// The setting to raise, and to which value; why there is none otherwise.
    fn choose<'l>(&self, look: &'l Look) -> Result<(Verdict, &'l Lever, u64), String> {
        let mut at_bound = None;
        let unseen = [Verdict::unseen()];
        let verdicts = if look.verdicts.is_empty() { &unseen[..] } else { &look.verdicts[..] };
        for verdict in verdicts {
            let may_queue = matches!(verdict.holds, Holds::Path | Holds::Neighbour);
            let is_queued = may_queue && look.passes_in > ROUND_TRIP_MAX;
            if verdict.holds == Holds::Elsewhere || is_queued {
                let otherwise = self.climb_on(look, verdict);
                let why = || format!("{} holds, which no setting here lifts", verdict.label);
                return otherwise.ok_or_else(why);
            }
            for role in verdict.holds.roles() {
                let of_role = |lever: &&Lever| {
                    lever.role == *role && verdict.is_of(lever) && self.may_touch(lever)
                };
                for lever in look.levers.iter().filter(of_role) {
                    match self.raise(look, verdict, lever) {
                        Ok(to) => return Ok((verdict.clone(), lever, to)),
                        Err(why) => at_bound = at_bound.or(Some((verdict, why))),
                    }
                }
            }
        }
        Err(match at_bound {
            Some((verdict, why)) => format!("{} holds, and {why}", verdict.label),
            None => format!(
                "{} holds, and no setting of this cluster that may be changed lifts it",
                verdicts[0].label
            ),
        })
    }

    /// A step of the limit whose last raise brought much: where that ends a trial tells, and not what is named
    /// meanwhile. A limit that holds nothing any more takes nothing from anybody when it is raised.
    fn climb_on<'l>(&self, look: &'l Look, verdict: &Verdict) -> Option<(Verdict, &'l Lever, u64)> {
        let name = self.climbs.as_ref()?;
        let lever =
            look.levers.iter().find(|lever| lever.name == *name && self.may_touch(lever))?;
        let verdict = Verdict { label: verdict.label.clone(), ..Verdict::unseen() };
        let to = self.raise(look, &verdict, lever).ok()?;
        Some((verdict, lever, to))
    }

    fn may_touch(&self, lever: &Lever) -> bool {
        !self.left.contains(&lever.name) && !self.foreign.contains_key(&lever.name)
    }

    /// The next value of a setting; why it has none otherwise.
    fn raise(&self, look: &Look, verdict: &Verdict, lever: &Lever) -> Result<u64, String> {
        let name = &lever.name;
        let found = self.found.get(name).unwrap_or(lever);
        let value = &lever.setting.value;
        let now = amount(lever.role, value).ok_or_else(|| format!("{name} is {value}"))?;
        if let Some(why) = self.memory.against(lever, now, look.at) {
            return Err(why);
        }
        if lever.later_only && !self.others_begin(look) {
            return Err(format!(
                "only recoveries that begin later obey {name}, and none was seen to begin"
            ));
        }
        let first = amount(lever.role, &found.setting.value).unwrap_or(now);
        let most = self.bounds.most(lever, first);
        let is_in_flight = matches!(lever.role, Role::Chunks | Role::ChunkSize);
        let is_hidden = is_in_flight && self.memory.is_hidden(name);
        // Copies that wait fill all slots of a large step, on every node that takes them.
        let slots = now as f64 * STRIDE * f64::from(look.targets.max(1));
        let is_used = lever.role != Role::Slots || f64::from(look.waiting) >= slots;
        let is_bold = (verdict.is_safe(lever.role) || is_hidden)
            && is_used
            && !self.memory.is_timid(name)
            && (look.foreground.is_idle() || self.guard.has_room(&look.foreground, STRIDE));
        let times = if is_bold { STRIDE } else { STEP };
        let to = raised(lever.role, now, times, most).ok_or_else(|| {
            let above = match now > most {
                true => format!("above {} already, ", text(lever.role, most)),
                false => String::new(),
            };
            let by = if self.bounds.is_said(lever) { "--max lets it" } else { "it may" };
            format!("{name} = {value} is {above}as far as {by} rise")
        })?;
        let Some(hurt) = self.memory.hurt(name, to, look.at) else { return Ok(to) };
        let half = hurt.half_step(now);
        let to = half.and_then(|half| raised(lever.role, now, half, most.min(hurt.amount - 1)));
        to.ok_or_else(|| format!("users suffered with more than {name} = {value}"))
    }

    /// Whether recoveries were seen to begin, or will.
    fn others_begin(&self, look: &Look) -> bool {
        let is_late = |began: &Time| *began > self.began + SETTLE && look.at - *began <= LATELY;
        look.waiting > 0 || look.active.iter().any(is_late)
    }

    fn judge(&mut self, look: &Look, mut trial: Trial) -> Decision {
        trial.settle(look);
        let role = trial.made.role;
        let after = trial.settled.and_then(|settled| self.meter.since(settled, role));
        let mut ruling = trial.rule(look.at, after);
        if matches!(ruling, Ruling::TakeBack(Some(_), _)) {
            let halves = trial.settled.and_then(|settled| self.meter.halves(settled, role));
            if trial.measures_anew(look.at, halves) {
                ruling = Ruling::GoOn;
            }
        }
        match ruling {
            Ruling::GoOn => {
                self.phase = Phase::Trying(Box::new(trial));
                Decision::Look
            }
            Ruling::Keep(after) => self.keep(trial, after),
            Ruling::TakeBack(measured, says) => self.take_back(look, trial, measured, says),
        }
    }

    fn keep(&mut self, trial: Trial, after: Measured) -> Decision {
        self.memory.kept(&after);
        let brought_much = after.per_s >= trial.before.per_s * LEAP;
        let climbs = trial.made.role == Role::Rate && brought_much;
        self.climbs = climbs.then(|| trial.made.proposal.setting.clone());
        // What was measured after this change is the rate before the next.
        self.phase = Phase::Watching(trial.settled.unwrap_or(trial.changed));
        let proposal = trial.made.proposal.clone();
        self.kept.push(trial.made);
        Decision::Keep(Outcome {
            says: format!("{} stays at {}", proposal.setting, proposal.to),
            proposal,
            after_per_s: Some(after.per_s),
        })
    }

    /// Takes a trial back. `measured` is the rate with it, and whether that tells that it brings nothing.
    fn take_back(
        &mut self,
        look: &Look,
        trial: Trial,
        measured: Option<(Measured, bool)>,
        says: &str,
    ) -> Decision {
        let back = self.back(&trial.made);
        self.memory.took_back(look.at, &trial, measured);
        self.phase = Phase::Watching(look.at + settling(look.passes_in));
        let outcome = Outcome {
            proposal: trial.made.proposal,
            after_per_s: measured.map(|(after, _)| after.per_s),
            says: says.to_owned(),
        };
        Decision::TakeBack(outcome, back)
    }
}
