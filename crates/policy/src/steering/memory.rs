//! What trials and users taught: which raises are not tried again, or not yet.
//!
//! | what happened | what follows |
//! | --- | --- |
//! | a raise was kept | what brought nothing before may be tried again |
//! | a large raise brought nothing | only a small one is tried ([`Memory::is_timid`]) |
//! | a small raise brought nothing | none from this value, until another is kept |
//! | noise hid what a raise brings | it is made again once the rate without it is known; of chunks, in a large step |
//! | a raise could not be told | none from this value for a while, ever longer |
//! | the rate fell once it was back | the raise is tried again at once, a few times |
//! | users suffered | nothing is raised for a while, and this value not for longer |

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use world::Time;

use super::bounds::amount;
use super::decision::Proposal;
use super::look::{Lever, Role};
use super::meter::{MEASURE, Measured};
use super::trial::{CLEAR, MEASURE_MAX, Made, Trial, WORTH};

/// A value at which users suffered is not tried again for `HURT_FOR`. Half of the step below it is tried, `HURT_TIMES`
/// times at most, and only where that raises the setting by `HALF_STEP` times at least.
const HURT_FOR: Duration = Duration::from_secs(900);
const HURT_TIMES: u32 = 2;
const HALF_STEP: f64 = 1.15;
/// A trial that told nothing is made again after this pause. The pause doubles each time, `AGAIN_DOUBLED` times at
/// most: the change itself may be what keeps a trial from telling.
const AGAIN: Duration = Duration::from_secs(300);
const AGAIN_DOUBLED: u32 = 5;
/// The first time that noise hid what a raise brings, it is made again after this pause: by then the rate without it is
/// measured for as long as the rate with it was. Few looks before a trial leave an error that no look after it lessens.
const SOON: Duration = MEASURE_MAX.saturating_add(MEASURE);
/// How often a raise that seemed to bring nothing is tried again at once, where the rate fell when it was taken back.
const AT_ONCE: u32 = 2;
/// Nothing is raised for so long after users suffered.
const QUIET: Duration = Duration::from_secs(30);

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
pub(super) struct Hurt {
    pub(super) amount: u64,
    times: u32,
    until: Time,
}

impl Hurt {
    /// By how many times to raise a setting from this value, so that it stays below; none where that is not tried.
    pub(super) fn half_step(&self, now: u64) -> Option<f64> {
        let half = (now as f64 * self.amount as f64).sqrt() / now as f64;
        let is_little = half < HALF_STEP;
        (self.times <= HURT_TIMES && !is_little).then_some(half)
    }
}

/// What is remembered of trials, and of users who suffered.
#[derive(Clone, Debug, Default)]
pub(super) struct Memory {
    knees: BTreeMap<String, Knee>,
    /// Settings of which a large step brought nothing: a small one may.
    timid: BTreeSet<String>,
    /// Settings of which noise hid what a raise brings: of chunks and of their size, a large one stands out.
    hidden: BTreeSet<String>,
    taken_back: Option<TakenBack>,
    /// Whether the last trial was a leap, so that a short measurement told it.
    pub(super) leapt: bool,
    hurts: BTreeMap<String, Hurt>,
    quiet_until: Time,
}

impl Memory {
    /// Whether users suffered a moment ago.
    pub(super) fn is_quiet(&self, at: Time) -> bool {
        at < self.quiet_until
    }

    /// Whether a setting is raised by small steps only.
    pub(super) fn is_timid(&self, setting: &str) -> bool {
        self.timid.contains(setting)
    }

    /// Whether noise hid what a raise of a setting brings.
    pub(super) fn is_hidden(&self, setting: &str) -> bool {
        self.hidden.contains(setting)
    }

    /// Why a raise from a value is not tried now; none where it may be.
    pub(super) fn against(&self, lever: &Lever, now: u64, at: Time) -> Option<String> {
        let (name, value) = (&lever.name, &lever.setting.value);
        let knee = self.knees.get(name).filter(|knee| knee.amount == now)?;
        match knee.until {
            None => Some(format!("more than {name} = {value} brings nothing")),
            Some(until) if at < until => {
                Some(format!("a trial of more than {name} = {value} did not tell"))
            }
            Some(_) => None,
        }
    }

    /// Where users suffered, if this value is not below it.
    pub(super) fn hurt(&self, setting: &str, to: u64, at: Time) -> Option<&Hurt> {
        self.hurts.get(setting).filter(|hurt| at < hurt.until && to >= hurt.amount)
    }

    /// The rate is no more what the last trial left.
    pub(super) fn forget_last(&mut self) {
        self.taken_back = None;
        self.leapt = false;
    }

    /// Users suffer.
    pub(super) fn suffered(&mut self, at: Time) {
        self.forget_last();
        self.quiet_until = at + QUIET;
    }

    /// Users suffered with this change, which is taken back.
    pub(super) fn suffered_with(&mut self, at: Time, made: &Made) {
        let Proposal { setting, to, .. } = &made.proposal;
        let amount = amount(made.role, to).unwrap_or(u64::MAX);
        let times = self.hurts.get(setting).map_or(1, |hurt| hurt.times + 1);
        self.hurts.insert(setting.clone(), Hurt { amount, times, until: at + HURT_FOR });
    }

    /// A trial was kept: what brought nothing before may bring something now.
    pub(super) fn kept(&mut self, after: &Measured) {
        self.knees.clear();
        self.timid.clear();
        self.hidden.clear();
        self.taken_back = None;
        self.leapt = !after.is_whole();
    }

    /// A trial was taken back. `measured` is the rate with it, and whether that tells that it brings nothing.
    pub(super) fn took_back(
        &mut self,
        at: Time,
        trial: &Trial,
        measured: Option<(Measured, bool)>,
    ) {
        let Made { proposal, role } = &trial.made;
        let (setting, role) = (&proposal.setting, *role);
        let tells = measured.is_some_and(|(_, tells)| tells);
        self.leapt = false;
        self.taken_back =
            measured.map(|(after, _)| TakenBack { setting: setting.clone(), role, after });
        if trial.is_bold() && tells {
            self.timid.insert(setting.clone());
        } else if let Some(amount) = amount(role, &proposal.from) {
            let before = self.knees.get(setting).filter(|knee| knee.amount == amount);
            let times = before.map_or(0, |knee| knee.times + 1).min(AGAIN_DOUBLED);
            let is_hidden = measured.is_some() && !tells;
            let pause = if is_hidden && times == 0 { SOON } else { AGAIN * 2u32.pow(times) };
            let until = (!tells).then(|| at + pause);
            self.knees.insert(setting.clone(), Knee { amount, times, until });
            if is_hidden {
                self.hidden.insert(setting.clone());
            }
        }
    }

    /// Has a raise that seemed to bring nothing tried again, if the rate without it is clearly lower: not the raise was
    /// bad, but the moment.
    pub(super) fn reconsider(&mut self, now: Time, without: impl FnOnce(Role) -> Option<Measured>) {
        let Some(TakenBack { setting, role, after }) = &self.taken_back else { return };
        let Some(without) = without(*role).filter(Measured::is_whole) else { return };
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
}
