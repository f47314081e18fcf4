//! The state machine: looks go in, decisions come out.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use record::observation::Scope;
use world::Time;

use super::bounds::{Bounds, amount, raised, text};
use super::decision::{Back, Decision, Outcome, Proposal};
use super::guard::{Guard, Marks, Users};
use super::look::{Holds, Lever, Look, Role, Verdict};
use super::meter::{MEASURE, MEASURE_BRIEF, Measured, Meter};

/// Nothing is measured for so long after a change, which has to reach every node; longer where what is in flight takes
/// longer to pass, but not for ever.
const SETTLE: Duration = Duration::from_secs(1);
const SETTLE_MAX: Duration = Duration::from_secs(30);
/// A measurement that is not clear after so long is taken as it is.
const MEASURE_MAX: Duration = Duration::from_secs(20);
/// A trial that cannot be measured for so long is given up.
const PATIENCE: Duration = Duration::from_secs(60);
/// A trial has this much longer where only later recoveries obey.
const PATIENCE_LATER: Duration = Duration::from_secs(240);
/// No round trip takes longer. Bytes that take longer to pass a path queue there, and with more in flight they would
/// queue longer.
const ROUND_TRIP_MAX: Duration = Duration::from_millis(500);
/// A change that brings less than this is not worth having.
const WORTH: f64 = 1.03;
/// A difference of so many standard errors is clear; one of a single error will do once there is no more time.
const CLEAR: f64 = 2.0;
const LIKELY: f64 = 1.0;
/// A leap is a rise that a short measurement shows: by at least the square root of the expected factor, by at least
/// `LEAP` times, and by at least `CLEAR_LEAP` standard errors, because a few steps estimate their own error badly.
const LEAP: f64 = 1.2;
const CLEAR_LEAP: f64 = 3.0;
/// By how many times a step raises a setting: as a rule, and where users have room and a large step is safe.
const STEP: f64 = 2.0;
const STRIDE: f64 = 4.0;
/// A value at which users suffered is not tried again for `HURT_FOR`. Half of the step below it is tried, `HURT_TIMES`
/// times at most, and only where that raises the setting by `HALF_STEP` times at least.
const HURT_FOR: Duration = Duration::from_secs(900);
const HURT_TIMES: u32 = 2;
const HALF_STEP: f64 = 1.15;
/// A trial that told nothing is made again after this pause. The pause doubles each time, `AGAIN_DOUBLED` times at
/// most: the change itself may be what keeps a trial from telling.
const AGAIN: Duration = Duration::from_secs(300);
const AGAIN_DOUBLED: u32 = 5;
/// How often a raise that seemed to bring nothing is tried again at once, where the rate fell when it was taken back.
const AT_ONCE: u32 = 2;
/// Nothing is raised for so long after users suffered.
const QUIET: Duration = Duration::from_secs(30);
/// A recovery that began within this time is a sign that others will begin.
const LATELY: Duration = Duration::from_secs(60);
/// A value that nobody here set is believed once so many looks in a row have it.
const FOREIGN_LOOKS: u32 = 2;

/// A change that was made.
#[derive(Clone, Debug)]
struct Made {
    proposal: Proposal,
    role: Role,
}

#[derive(Clone, Debug)]
struct Trial {
    made: Made,
    later_only: bool,
    /// By how many times the setting is raised.
    times: f64,
    /// By how many times the rate rises where it leaps.
    leap: f64,
    /// And where the raise is worth having.
    worth: f64,
    before: Measured,
    /// Since when the rate before was measured.
    since: Time,
    changed: Time,
    settled: Option<Time>,
}

#[derive(Clone, Debug)]
enum Phase {
    /// The settings have been what they are since this moment.
    Watching(Time),
    Trying(Box<Trial>),
    Over(String),
}

/// A raise that was measured, and taken back: what follows may say that it was measured in a bad moment.
#[derive(Clone, Debug)]
struct TakenBack {
    setting: String,
    role: Role,
    after: Measured,
}

/// A value from which a raise is not tried.
#[derive(Clone, Copy, Debug)]
struct Knee {
    amount: u64,
    /// Trials from this value before the last one.
    times: u32,
    /// Until when; none where a raise brought nothing, which stays so until something else was raised.
    until: Option<Time>,
}

/// Where users suffered.
#[derive(Clone, Copy, Debug)]
struct Hurt {
    amount: u64,
    times: u32,
    until: Time,
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
    knees: BTreeMap<String, Knee>,
    /// Settings of which a large step brought nothing: a small one may.
    timid: BTreeSet<String>,
    taken_back: Option<TakenBack>,
    /// Whether the last trial was a leap, so that a short measurement told it.
    leapt: bool,
    hurts: BTreeMap<String, Hurt>,
    /// Settings that are left alone, because somebody else sets them or the cluster refused them.
    left: BTreeSet<String>,
    /// Looks in a row in which a setting had a value of somebody else.
    foreign: BTreeMap<String, u32>,
    quiet_until: Time,
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
            knees: BTreeMap::new(),
            timid: BTreeSet::new(),
            taken_back: None,
            leapt: false,
            hurts: BTreeMap::new(),
            left: BTreeSet::new(),
            foreign: BTreeMap::new(),
            quiet_until: now,
        }
    }

    /// What is changed now and was kept, by name: as it was found, and as it is.
    pub fn in_force(&self) -> BTreeMap<&str, (&str, &str)> {
        let now = self.kept.iter().map(|made| {
            let (name, to) = (made.proposal.setting.as_str(), made.proposal.to.as_str());
            (name, (self.found.get(name).map_or("", |lever| &lever.setting.value), to))
        });
        now.collect()
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
        let as_found = self.kept.is_empty() && matches!(self.phase, Phase::Watching(_));
        match self.guard.judge(&look.foreground, as_found) {
            Users::Suffer(why) => return self.give_way(look.at, why),
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
        for lever in &look.levers {
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
        self.guard.forgive();
        self.taken_back = None;
        self.leapt = false;
        self.quiet_until = at + QUIET;
        let made = match std::mem::replace(&mut self.phase, Phase::Watching(at + SETTLE)) {
            Phase::Trying(trial) => Some(trial.made),
            _ => self.kept.pop(),
        };
        let Some(made) = made else {
            return Decision::Wait(format!("users suffer, and every setting is as it was: {why}"));
        };
        let name = made.proposal.setting.clone();
        let amount = amount(made.role, &made.proposal.to).unwrap_or(u64::MAX);
        let times = self.hurts.get(&name).map_or(1, |hurt| hurt.times + 1);
        self.hurts.insert(name, Hurt { amount, times, until: at + HURT_FOR });
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
            self.taken_back = None;
            self.leapt = false;
            return wait("nothing recovers");
        }
        if look.at < self.quiet_until {
            return wait("users suffered a moment ago");
        }
        // A rate that has leapt is known well enough to be compared with the next one.
        let leapt = self.leapt;
        let least = if leapt { MEASURE_BRIEF } else { MEASURE };
        let is_enough = |measured: &Measured| measured.is_whole() || (leapt && measured.is_brief());
        if look.at - since < least {
            return Decision::Look;
        }
        self.reconsider(look.at, since);
        let (verdict, lever, to) = match self.choose(look) {
            Ok(found) => found,
            Err(why) => return Decision::Wait(why),
        };
        let before = self.meter.since(since, lever.role);
        let Some(before) = before.filter(is_enough) else { return Decision::Look };
        let from = lever.setting.value.clone();
        let times = amount(lever.role, &from).map_or(STEP, |from| to as f64 / from as f64);
        let proposal = Proposal {
            setting: lever.name.clone(),
            to: text(lever.role, to),
            from,
            label: verdict.label.clone(),
            before_per_s: before.per_s,
            expected: verdict
                .holds
                .promises(lever.role)
                .then(|| verdict.gain.unwrap_or(times).min(times)),
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
            changed: look.at,
            settled: None,
        }));
        Decision::Set(proposal)
    }

    /// Has a raise that seemed to bring nothing tried again, if the rate without it, since this moment, is clearly
    /// lower: not the raise was bad, but the moment.
    fn reconsider(&mut self, now: Time, since: Time) {
        let Some(TakenBack { setting, role, after }) = &self.taken_back else { return };
        let without = self.meter.since(since, *role).filter(Measured::is_whole);
        let Some(without) = without else { return };
        let fallen = after.per_s - without.per_s;
        let helped = after.is_like(&without, *role)
            && after.per_s >= without.per_s * WORTH
            && fallen >= CLEAR * after.error.hypot(without.error);
        if let Some(knee) = self.knees.get_mut(setting)
            && helped
            && knee.times < AT_ONCE
        {
            knee.until = Some(now);
        }
        self.taken_back = None;
    }

    /// The setting to raise, and to which value; why there is none otherwise.
    fn choose<'l>(&self, look: &'l Look) -> Result<(Verdict, &'l Lever, u64), String> {
        let mut at_bound = None;
        let unseen = [Verdict::unseen()];
        let verdicts = if look.verdicts.is_empty() { &unseen[..] } else { &look.verdicts[..] };
        for verdict in verdicts {
            let is_queued = verdict.holds == Holds::Path && look.passes_in > ROUND_TRIP_MAX;
            if verdict.holds == Holds::Elsewhere || is_queued {
                let label = &verdict.label;
                return Err(format!("at the knee: {label} holds, which no setting here lifts"));
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
            Some((verdict, why)) => format!("at the knee: {} holds, and {why}", verdict.label),
            None => format!(
                "{} holds, and no setting of this cluster that may be changed lifts it",
                verdicts[0].label
            ),
        })
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
        match self.knees.get(name).filter(|knee| knee.amount == now) {
            Some(Knee { until: None, .. }) => {
                return Err(format!("more than {name} = {value} brings nothing"));
            }
            Some(Knee { until: Some(until), .. }) if look.at < *until => {
                return Err(format!("a trial of more than {name} = {value} did not tell"));
            }
            _ => {}
        }
        if lever.later_only && !self.others_begin(look) {
            return Err(format!(
                "only recoveries that begin later obey {name}, and none was seen to begin"
            ));
        }
        let first = amount(lever.role, &found.setting.value).unwrap_or(now);
        let most = self.bounds.most(lever, first);
        let is_bold = verdict.is_safe(lever.role)
            && !self.timid.contains(name)
            && (look.foreground.is_idle() || self.guard.has_room(&look.foreground, STRIDE));
        let times = if is_bold { STRIDE } else { STEP };
        let to = raised(lever.role, now, times, most)
            .ok_or_else(|| format!("{name} = {value} is as far as it may rise"))?;
        let Some(hurt) = self.hurts.get(name).filter(|hurt| look.at < hurt.until) else {
            return Ok(to);
        };
        if to < hurt.amount {
            return Ok(to);
        }
        let half = (now as f64 * hurt.amount as f64).sqrt() / now as f64;
        let too_much = || format!("users suffered with more than {name} = {value}");
        if hurt.times > HURT_TIMES || half < HALF_STEP {
            return Err(too_much());
        }
        raised(lever.role, now, half, most.min(hurt.amount - 1)).ok_or_else(too_much)
    }

    /// Whether recoveries were seen to begin, or will.
    fn others_begin(&self, look: &Look) -> bool {
        let is_late = |began: &Time| *began > self.began + SETTLE && look.at - *began <= LATELY;
        look.waiting > 0 || look.active.iter().any(is_late)
    }

    fn judge(&mut self, look: &Look, mut trial: Trial) -> Decision {
        let role = trial.made.role;
        if trial.settled.is_none() {
            let settle = look.passes_in.clamp(SETTLE, SETTLE_MAX);
            let obey = look.active.iter().all(|began| *began > trial.changed);
            if look.at - trial.changed >= settle && (!trial.later_only || obey) {
                trial.settled = Some(look.at);
            }
        }
        let after = trial.settled.and_then(|settled| self.meter.since(settled, role));
        let patience = if trial.later_only { PATIENCE + PATIENCE_LATER } else { PATIENCE };
        let is_late = look.at - trial.changed >= patience;
        let before = trial.before;
        let is_alike = |after: &Measured| after.is_like(&before, role);
        let leaps = |after: &Measured| {
            let risen = after.per_s - before.per_s;
            after.is_brief()
                && risen > 0.0
                && !trial.later_only
                && is_alike(after)
                && after.per_s >= before.per_s * trial.leap
                && risen >= CLEAR_LEAP * before.error.hypot(after.error)
        };
        if let Some(after) = after.filter(leaps) {
            return self.keep(trial, after);
        }
        let whole = after.filter(|after| after.is_whole() && (is_alike(after) || is_late));
        match whole {
            Some(after) if !is_alike(&after) => {
                let says = "recoveries ended or began meanwhile, so that it does not tell";
                self.take_back(look, trial, None, says)
            }
            Some(after) => {
                let error = before.error.hypot(after.error);
                let (risen, is_clear) = {
                    let risen = after.per_s - before.per_s;
                    (risen, risen.abs() >= CLEAR * error)
                };
                let is_worth = after.per_s >= before.per_s * trial.worth && risen >= LIKELY * error;
                if !is_clear && after.span < MEASURE_MAX && !is_late {
                    return self.go_on(trial);
                }
                if is_worth {
                    return self.keep(trial, after);
                }
                // An error that may hide a gain worth having: the trial tells nothing.
                let tells = is_clear || risen + LIKELY * error < before.per_s * (trial.worth - 1.0);
                let says = match tells {
                    true => "it brings nothing",
                    false => "the rate varies too much to tell what it brings",
                };
                self.take_back(look, trial, Some((after, tells)), says)
            }
            None if is_late && trial.later_only => {
                let says = "no recovery began with it, and only those that begin obey it";
                self.take_back(look, trial, None, says)
            }
            None if is_late => {
                self.take_back(look, trial, None, "too little recovered to tell what it brings")
            }
            None => self.go_on(trial),
        }
    }

    fn go_on(&mut self, trial: Trial) -> Decision {
        self.phase = Phase::Trying(Box::new(trial));
        Decision::Look
    }

    fn keep(&mut self, trial: Trial, after: Measured) -> Decision {
        let name = trial.made.proposal.setting.clone();
        // What brought nothing before may bring something now.
        self.knees.clear();
        self.timid.clear();
        self.taken_back = None;
        self.leapt = !after.is_whole();
        // What was measured after this change is the rate before the next.
        self.phase = Phase::Watching(trial.settled.unwrap_or(trial.changed));
        let proposal = trial.made.proposal.clone();
        self.kept.push(trial.made);
        Decision::Keep(Outcome {
            says: format!("{name} stays at {}", proposal.to),
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
        let name = trial.made.proposal.setting.clone();
        let tells = measured.is_some_and(|(_, tells)| tells);
        let after = measured.map(|(after, _)| after);
        let role = trial.made.role;
        self.leapt = false;
        self.taken_back = after.map(|after| TakenBack { setting: name.clone(), role, after });
        if trial.times > STEP && tells {
            self.timid.insert(name);
        } else if let Some(amount) = amount(role, &trial.made.proposal.from) {
            let before = self.knees.get(&name).filter(|knee| knee.amount == amount);
            let times = before.map_or(0, |knee| knee.times + 1).min(AGAIN_DOUBLED);
            let until = (!tells).then(|| look.at + AGAIN * 2u32.pow(times));
            self.knees.insert(name, Knee { amount, times, until });
        }
        self.phase = Phase::Watching(look.at + look.passes_in.clamp(SETTLE, SETTLE_MAX));
        let outcome = Outcome {
            proposal: trial.made.proposal,
            after_per_s: after.map(|after| after.per_s),
            says: says.to_owned(),
        };
        Decision::TakeBack(outcome, back)
    }
}
