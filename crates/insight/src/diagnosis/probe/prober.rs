//! When to change a setting and when to put it back. A pure state machine: looks go in, steps come out.

use std::collections::VecDeque;

use record::units::{parse_size, show_seconds};

use super::meter::{Meter, Span, Whose};
use super::result::{Elasticity, Kind, Probe, ProbeResult, Reading, as_limit};
use crate::diagnosis::series::{MS_PER_S, Series};
use crate::diagnosis::threshold::{LIMIT_USED, Threshold, at};
use crate::stats::{MIN_LAPS, Part, mean_of, mean_ratio_interval};

/// Nothing is measured for so long after a change, which has to reach every node; longer where chunks in flight take
/// longer to pass.
pub(super) const SETTLE_MS: Threshold = at("ms after a change before anything is measured", 1500.0);
/// A measurement takes at least this long, and has at least so many samples.
pub(super) const MEASURE_MS: Threshold = at("ms that a measurement takes, at least", 5000.0);
pub(super) const SAMPLES: Threshold = at("samples of a measurement, at least", 8.0);
/// A probe takes no longer than this, whatever it waits for: one whose result is not clear is made again while there
/// is time for another round, and one that needs longer is not made.
pub(super) const PROBE_MS: Threshold = at("ms that a probe takes, at most", 30_000.0);
pub(super) const HALF: Threshold =
    at("elasticity above which the measure follows, below which it stays", 0.5);
pub(super) const STAYS: Threshold = at("elasticity of a measure that stays, at most", 0.25);
pub(super) const OBEYED: Threshold = at("share of the rate that obeys a limit of half of it", 0.8);
/// By how much rates vary without any cause.
pub(super) const RESOLUTION: Threshold =
    at("difference of the logarithms of two rates that means nothing", 0.02);
const SEED: u64 = 1;

/// What to do next.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Look again after the usual pause.
    Look,
    /// Change the setting, then look again.
    Set(Box<Probe>),
    /// Put it back, then look again.
    PutBack,
    /// There is nothing more to try.
    Done,
}

/// Works through probes.
#[derive(Clone, Debug)]
pub struct Prober {
    waiting: VecDeque<Probe>,
    active: Option<Active>,
    results: Vec<ProbeResult>,
    began_ms: f64,
}

#[derive(Clone, Debug)]
struct Active {
    probe: Probe,
    phase: Phase,
    /// Samples count from this time on.
    since_ms: f64,
    /// When the phase began.
    entered_ms: f64,
    /// When the probe is over at the latest; none before its first look: what was seen before takes none of its time.
    ends_ms: Option<f64>,
    base: Vec<Part>,
    during: Vec<Part>,
    /// Rates before and during a lull, which changes the rate and measures something else.
    rates: (Vec<Part>, Vec<Part>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Before,
    Set,
    During,
    PutBack,
    After,
}

impl Prober {
    /// A prober that works through `probes`. Looks from `since_ms` on serve as the measurement before the first.
    pub fn new(probes: Vec<Probe>, since_ms: f64) -> Prober {
        let waiting = probes.into();
        let mut prober = Prober { waiting, active: None, results: Vec::new(), began_ms: since_ms };
        prober.begin(since_ms, None);
        prober
    }

    /// The probe that is under way, and whether its setting is changed now.
    pub fn under_way(&self) -> Option<(&Probe, bool)> {
        let changed = |phase| matches!(phase, Phase::Set | Phase::During);
        self.active.as_ref().map(|active| (&active.probe, changed(active.phase)))
    }

    /// What is known so far.
    pub fn results(&self) -> &[ProbeResult] {
        &self.results
    }

    /// What is known in the end.
    pub fn into_results(self) -> Vec<ProbeResult> {
        self.results
    }

    /// What to do, now that the series has another look. `now_ms` is that look's time.
    pub fn next(&mut self, now_ms: f64, series: &Series<'_>) -> Step {
        let Some(active) = &mut self.active else { return Step::Done };
        active.ends_ms.get_or_insert(now_ms + PROBE_MS.value);
        let span = Span { from_ms: active.since_ms, to_ms: now_ms };
        match active.phase {
            Phase::Set if now_ms - active.entered_ms < settle_ms(active.probe.passes_in_ms) => {
                Step::Look
            }
            Phase::PutBack if now_ms - active.entered_ms < settle_back_ms(&active.probe) => {
                Step::Look
            }
            Phase::Set => {
                active.enter(Phase::During, now_ms);
                Step::Look
            }
            Phase::PutBack => {
                active.enter(Phase::After, now_ms);
                Step::Look
            }
            Phase::Before if round_ms(&active.probe) > PROBE_MS.value => {
                let why = too_long(&active.probe);
                self.finish(now_ms, Some(&why))
            }
            Phase::Before => match active.measure(series, span) {
                Measured::Whole => {
                    active.plan_anew(series, span);
                    active.enter(Phase::Set, now_ms);
                    Step::Set(Box::new(active.probe.clone()))
                }
                Measured::NotYet => Step::Look,
                Measured::Never if active.probe.later_only => self.finish(now_ms, Some(TOO_FEW)),
                Measured::Never if !active.base.is_empty() => self.finish(now_ms, Some(TOO_LITTLE)),
                Measured::Never => self.finish(now_ms, Some(NOTHING_GOES_ON)),
            },
            Phase::During => match active.measure(series, span) {
                Measured::NotYet => Step::Look,
                Measured::Whole | Measured::Never => {
                    active.enter(Phase::PutBack, now_ms);
                    Step::PutBack
                }
            },
            Phase::After => match active.measure(series, span) {
                Measured::NotYet => Step::Look,
                // Recoveries that began in the additional slot go on after it is taken back.
                Measured::Whole | Measured::Never => self.finish(now_ms, None),
            },
        }
    }

    /// Ends all probes: the change could not be made, or someone else changed the setting.
    pub fn give_up(&mut self, why: &str) {
        let active = self.active.take().map(|active| active.probe);
        for probe in active.into_iter().chain(std::mem::take(&mut self.waiting)) {
            let reading = Reading::GivenUp(why.to_owned());
            let result =
                ProbeResult { probe, before: None, during: None, elasticity: None, reading };
            self.results.push(result);
        }
    }

    fn begin(&mut self, since_ms: f64, ends_ms: Option<f64>) {
        let holds = |o: &ProbeResult| o.probe.kind == Kind::Brake && o.reading == Reading::Follows;
        if self.results.iter().any(holds) {
            // Where the limiter is the bottleneck, the rate follows nothing else: other probes would tell nothing.
            self.waiting.clear();
        }
        self.active = self.waiting.pop_front().map(|probe| Active {
            phase: Phase::Before,
            // Recoveries are few, so those before the first probe count, too: the brake has shown that the limiter
            // did not hold them.
            since_ms: if probe.later_only { self.began_ms } else { since_ms },
            entered_ms: since_ms,
            ends_ms,
            probe,
            base: Vec::new(),
            during: Vec::new(),
            rates: (Vec::new(), Vec::new()),
        });
    }

    fn finish(&mut self, now_ms: f64, why: Option<&str>) -> Step {
        let Some(active) = self.active.take() else { return Step::Done };
        let result = active.result(why);
        let again = matches!(result.reading, Reading::Open(_)) && result.elasticity.is_some();
        let is_time_left = |ends_ms: f64| now_ms + round_ms(&active.probe) <= ends_ms;
        if again && active.ends_ms.is_some_and(is_time_left) {
            // What was measured after this round is the base of the next.
            let mut active = active;
            active.enter(Phase::Set, now_ms);
            let again = Step::Set(Box::new(active.probe.clone()));
            self.active = Some(active);
            return again;
        }
        let since_ms = if active.base.is_empty() { now_ms } else { active.since_ms };
        self.results.push(result);
        self.begin(since_ms, Some(now_ms + PROBE_MS.value));
        if self.active.is_some() { Step::Look } else { Step::Done }
    }
}

/// How long nothing is measured after a change, where what is in flight takes so long to pass.
pub(super) fn settle_ms(passes_in_ms: f64) -> f64 {
    SETTLE_MS.value.max(passes_in_ms)
}

/// How long the rate is measured before a change, and after it: at its whole rate as many chunks pass sooner.
fn base_ms(probe: &Probe) -> f64 {
    MEASURE_MS.value.max(probe.measure_ms * probe.factor.min(1.0))
}

/// How long nothing is measured once a change is put back: what is in flight then may pass at the lower rate.
fn settle_back_ms(probe: &Probe) -> f64 {
    settle_ms(probe.passes_in_ms / probe.factor.min(1.0))
}

/// How long it takes at least to put a change back and to see that it is through.
fn back_ms(probe: &Probe) -> f64 {
    settle_back_ms(probe) + base_ms(probe)
}

/// How long a change and its way back take at least.
fn round_ms(probe: &Probe) -> f64 {
    probe.changed_ms() + back_ms(probe)
}

impl Probe {
    /// How long its setting is changed, at least: in milliseconds.
    pub fn changed_ms(&self) -> f64 {
        settle_ms(self.passes_in_ms) + self.measure_ms
    }
}

/// Why a probe is not made whose round takes longer than a probe may.
fn too_long(probe: &Probe) -> String {
    let passes_in = show_seconds(probe.passes_in_ms / MS_PER_S);
    match 2.0 * (settle_ms(probe.passes_in_ms) + MEASURE_MS.value) > PROBE_MS.value {
        true => format!("what is in flight takes {passes_in} to pass, too long for a probe"),
        false => {
            let round = show_seconds(round_ms(probe) / MS_PER_S);
            format!("chunks pass so seldom that a change shows after {round}, too long for a probe")
        }
    }
}

const NOTHING_GOES_ON: &str = "no recovery went on for long enough";
const TOO_LITTLE: &str = "too little was seen before it; a longer --for may do";
const TOO_FEW: &str =
    "the setting is read when a recovery begins, and too few were seen to compare with";
const NONE_BEGAN: &str =
    "the setting is read when a recovery begins, and too few began while it was changed";

enum Measured {
    Whole,
    NotYet,
    Never,
}

impl Active {
    fn enter(&mut self, phase: Phase, now_ms: f64) {
        self.phase = phase;
        self.since_ms = now_ms;
        self.entered_ms = now_ms;
    }

    /// A lull leaves half of the rate that was seen just before it: other probes were made since it was planned.
    fn plan_anew(&mut self, series: &Series<'_>, span: Span) {
        let rate = self.probe.of_rate.as_ref();
        let rate = rate.and_then(|rate| mean_of(&rate.samples(series, span, false)));
        if let Some(rate) = rate.filter(|rate| *rate > 0.0) {
            self.probe.to = as_limit(rate * self.probe.factor);
        }
    }

    /// Takes the samples of a phase once there are enough of them.
    fn measure(&mut self, series: &Series<'_>, span: Span) -> Measured {
        let during = self.phase == Phase::During;
        let born = self.probe.later_only && self.phase != Phase::Before;
        let samples = self.probe.meter.samples(series, span, born);
        let least = if self.probe.later_only { MIN_LAPS } else { SAMPLES.value as usize };
        // What comes after this phase needs its time, too.
        let later_ms = match self.phase {
            Phase::Before | Phase::Set => round_ms(&self.probe),
            Phase::During | Phase::PutBack => back_ms(&self.probe),
            Phase::After => 0.0,
        };
        let is_time_left = |ends_ms: f64| span.to_ms < ends_ms - later_ms;
        let wanted_ms = if during { self.probe.measure_ms } else { base_ms(&self.probe) };
        let is_whole = span.to_ms - span.from_ms >= wanted_ms && samples.len() >= least;
        if !is_whole && self.ends_ms.is_none_or(is_time_left) {
            return Measured::NotYet;
        }
        if self.probe.kind == Kind::Lull {
            let whose = Whose::Node(self.probe.place.clone());
            let rate = Meter::Together { whose, steady: true };
            let rates = rate.samples(series, span, false);
            let kept = if during { &mut self.rates.1 } else { &mut self.rates.0 };
            kept.extend(rates);
        }
        if during {
            self.during.extend(samples);
        } else if self.phase == Phase::Before || self.probe.kind != Kind::Slots {
            self.base.extend(samples);
        }
        if is_whole { Measured::Whole } else { Measured::Never }
    }

    fn result(&self, why: Option<&str>) -> ProbeResult {
        let (before, during) = (mean_of(&self.base), mean_of(&self.during));
        let elasticity = self.elasticity();
        let reading = match elasticity {
            _ if why.is_some() => {
                Reading::Open(format!("it was not tried, as {}", why.unwrap_or_default()))
            }
            None if self.probe.later_only => Reading::Open(NONE_BEGAN.to_owned()),
            None if self.probe.kind == Kind::Lull => {
                Reading::Open("the rate did not obey the limit".to_owned())
            }
            None => Reading::Open(NOTHING_GOES_ON.to_owned()),
            Some(found) if found.low > HALF.value && self.is_far_below(before) => Reading::Open(
                "the rate was far below the lower limit before, so that something else slowed it"
                    .to_owned(),
            ),
            Some(found) if found.low > HALF.value => Reading::Follows,
            // What is seen by looking is overturned only by what is clear: a rate that follows in part tells neither,
            // and one that rises where it is braked varies for another reason.
            Some(found) if found.high < HALF.value && found.mid >= STAYS.value => {
                Reading::Open("it follows in part".to_owned())
            }
            Some(found)
                if found.high < HALF.value
                    && (!self.probe.slows()
                        || (found.low > -HALF.value && found.mid > -STAYS.value)) =>
            {
                Reading::Stays
            }
            Some(_) => Reading::Open("the rate varies too much by itself".to_owned()),
        };
        ProbeResult { probe: self.probe.clone(), before, during, elasticity, reading }
    }

    /// Whether the rate was far below the limit that a brake sets, before it was set.
    fn is_far_below(&self, before: Option<f64>) -> bool {
        let brake = parse_size(&self.probe.to).ok().filter(|_| self.probe.kind == Kind::Brake);
        before.zip(brake).is_some_and(|(rate, limit)| rate < limit as f64 * LIMIT_USED.value)
    }

    fn elasticity(&self) -> Option<Elasticity> {
        let change = match self.probe.kind {
            // A lull changes the rate itself. By how much is measured, because a limit may be obeyed only in part.
            Kind::Lull => {
                let (before, during) = (mean_of(&self.rates.0)?, mean_of(&self.rates.1)?);
                Some(during / before).filter(|ratio| *ratio > 0.0 && *ratio < OBEYED.value)?
            }
            _ => self.probe.factor,
        };
        let interval = mean_ratio_interval(&self.during, &self.base, SEED)?;
        let mid = mean_of(&self.during)? / mean_of(&self.base)?;
        let of = |ratio: f64| ratio.max(0.01).ln() / change.ln();
        let (one, other) = (of(interval.low), of(interval.high));
        let margin = RESOLUTION.value / change.ln().abs();
        Some(Elasticity {
            low: one.min(other) - margin,
            mid: of(mid),
            high: one.max(other) + margin,
        })
    }
}

#[cfg(test)]
mod tests {
    use record::observation::{Observation, Recovery, Scope, Setting};

    use super::*;

    /// The round takes all the time of the probe, so that nothing but the looks before it can be its base.
    #[test]
    fn a_probe_that_saw_too_little_before_it_does_not_say_that_nothing_goes_on() {
        let look = |s: u64| Observation {
            recoveries: vec![Recovery {
                stage: "INDEX".into(),
                recovered_bytes: Some((100 + s) << 20),
                ..Recovery::default()
            }],
            ..Observation::default()
        };
        let probe = Probe {
            kind: Kind::Brake,
            setting: "limit".into(),
            found: Setting { value: "1mb".into(), scope: Scope::Persistent },
            to: "512kb".into(),
            factor: 0.5,
            later_only: false,
            place: String::new(),
            passes_in_ms: 0.0,
            measure_ms: (PROBE_MS.value - 2.0 * SETTLE_MS.value) / 1.5,
            meter: Meter::Together { whose: Whose::All, steady: true },
            of_rate: None,
        };
        let looks: Vec<_> = (0..=5).map(|s| (s as f64 * 1e3, look(s))).collect();
        let series = Series::new(looks.iter().map(|(t_ms, look)| (*t_ms, look)));
        let mut prober = Prober::new(vec![probe], 0.0);
        assert_eq!(prober.next(5000.0, &series), Step::Done);
        let Reading::Open(why) = &prober.results()[0].reading else { panic!("{prober:?}") };
        assert!(why.contains("too little was seen before it"), "{why}");
    }
}
