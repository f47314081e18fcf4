//! The trial of a raise: how long it is measured, and what the rate with it says.

use std::time::Duration;

use world::Time;

use super::decision::Proposal;
use super::look::{Look, Role};
use super::meter::Measured;

/// Nothing is measured for so long after a change, which has to reach every node; longer where what is in flight takes
/// longer to pass, but not for ever.
pub(super) const SETTLE: Duration = Duration::from_secs(1);
const SETTLE_MAX: Duration = Duration::from_secs(30);
/// A measurement that is not clear after so long is taken as it is.
pub(super) const MEASURE_MAX: Duration = Duration::from_secs(20);
/// A trial that cannot be measured for so long is given up.
const PATIENCE: Duration = Duration::from_secs(60);
/// A trial has this much longer where only later recoveries obey, as long as anything recovers or waits for that.
const PATIENCE_LATER: Duration = Duration::from_secs(240);
/// A change that brings less than this is not worth having.
pub(super) const WORTH: f64 = 1.03;
/// A difference of so many standard errors is clear; one of a single error will do once there is no more time.
pub(super) const CLEAR: f64 = 2.0;
const LIKELY: f64 = 1.0;
/// A leap is a rise that a short measurement shows: by at least the square root of the expected factor, by at least
/// `LEAP` times, and by at least `CLEAR_LEAP` standard errors, because a few steps estimate their own error badly.
pub(super) const LEAP: f64 = 1.2;
const CLEAR_LEAP: f64 = 3.0;
/// A rate whose later half is so many times the earlier one still rises: a connection that lost segments to the change
/// takes a while to be as fast again.
const RISES: f64 = 1.1;
/// By how many times a step raises a setting, as a rule.
pub(super) const STEP: f64 = 2.0;

/// For how long nothing is measured after a change.
pub(super) fn settling(passes_in: Duration) -> Duration {
    passes_in.clamp(SETTLE, SETTLE_MAX)
}

/// A change that was made.
#[derive(Clone, Debug)]
pub(super) struct Made {
    pub(super) proposal: Proposal,
    pub(super) role: Role,
}

/// A raise that is being measured.
#[derive(Clone, Debug)]
pub(super) struct Trial {
    pub(super) made: Made,
    pub(super) later_only: bool,
    /// By how many times the setting is raised.
    pub(super) times: f64,
    /// By how many times the rate rises where it leaps.
    pub(super) leap: f64,
    /// And where the raise is worth having.
    pub(super) worth: f64,
    pub(super) before: Measured,
    /// Since when the rate before was measured.
    pub(super) since: Time,
    pub(super) changed: Time,
    pub(super) settled: Option<Time>,
    /// Since when nothing recovers, and no copy waits for that.
    pub(super) idle: Option<Time>,
}

/// What becomes of a trial.
pub(super) enum Ruling {
    /// It is measured for longer.
    GoOn,
    /// It helps, by this rate.
    Keep(Measured),
    /// It does not help: the rate with it and whether that tells so, where it was measured; and why.
    TakeBack(Option<(Measured, bool)>, &'static str),
}

impl Trial {
    /// Whether the setting is raised by more than one step.
    pub(super) fn is_bold(&self) -> bool {
        self.times > STEP
    }

    /// Notes from when on it can be measured: once what was in flight has passed, and recoveries obey. And since when
    /// nobody can obey.
    pub(super) fn settle(&mut self, look: &Look) {
        let is_idle = look.active.is_empty() && look.waiting == 0;
        self.idle = is_idle.then(|| self.idle.unwrap_or(look.at));
        let obey = || look.active.iter().all(|began| *began > self.changed);
        let is_settled = look.at - self.changed >= settling(look.passes_in);
        if self.settled.is_none() && is_settled && (!self.later_only || obey()) {
            self.settled = Some(look.at);
        }
    }

    /// What becomes of it, by the rate since it settled.
    pub(super) fn rule(&self, at: Time, after: Option<Measured>) -> Ruling {
        let patience = if self.later_only { PATIENCE + PATIENCE_LATER } else { PATIENCE };
        let is_over = self.idle.is_some_and(|idle| at - idle >= PATIENCE);
        let is_late = is_over || at - self.changed >= patience;
        let not_measured = |says| Ruling::TakeBack(None, says);
        if let Some(after) = after.filter(|after| self.leaps(after)) {
            return Ruling::Keep(after);
        }
        let whole = after.filter(|after| after.is_whole() && (self.is_alike(after) || is_late));
        match whole {
            Some(after) if !self.is_alike(&after) => {
                not_measured("recoveries ended or began meanwhile, so that it does not tell")
            }
            Some(after) => self.compare(after, is_late),
            None if is_late && self.later_only && after.is_none() => {
                not_measured("no recovery began with it, and only those that begin obey it")
            }
            None if is_late => not_measured("too little recovered to tell what it brings"),
            None => Ruling::GoOn,
        }
    }

    /// Has the measurement begin at its later half, where the rate clearly rises to there, and not for ever; whether it
    /// does.
    pub(super) fn measures_anew(
        &mut self,
        at: Time,
        halves: Option<(Measured, Measured, Time)>,
    ) -> bool {
        let Some((early, late, middle)) = halves else { return false };
        let risen = late.per_s - early.per_s;
        let rises = at - self.changed < MEASURE_MAX
            && late.per_s >= early.per_s * RISES
            && risen >= CLEAR * early.error.hypot(late.error);
        if rises {
            self.settled = Some(middle);
        }
        rises
    }

    fn is_alike(&self, after: &Measured) -> bool {
        after.is_like(&self.before, self.made.role)
    }

    /// Whether a short measurement shows already that it helps.
    fn leaps(&self, after: &Measured) -> bool {
        let risen = after.per_s - self.before.per_s;
        after.is_brief()
            && risen > 0.0
            && !self.later_only
            && self.is_alike(after)
            && after.per_s >= self.before.per_s * self.leap
            && risen >= CLEAR_LEAP * self.before.error.hypot(after.error)
    }

    /// Compares the rates before and after, of which each was measured for long enough.
    fn compare(&self, after: Measured, is_late: bool) -> Ruling {
        let before = self.before;
        let error = before.error.hypot(after.error);
        let risen = after.per_s - before.per_s;
        let is_clear = risen.abs() >= CLEAR * error;
        if !is_clear && after.span < MEASURE_MAX && !is_late {
            return Ruling::GoOn;
        }
        if after.per_s >= before.per_s * self.worth && risen >= LIKELY * error {
            return Ruling::Keep(after);
        }
        // An error that may hide a gain worth having: the trial tells nothing.
        let tells = is_clear || risen + LIKELY * error < before.per_s * (self.worth - 1.0);
        let says = match tells {
            true => "it brings nothing",
            false => "the rate varies too much to tell what it brings",
        };
        Ruling::TakeBack(Some((after, tells)), says)
    }
}
