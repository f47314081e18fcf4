//! What was advised stays while one looks, and so does what leads: whoever reads it twice must find the same.

use std::collections::{BTreeMap, BTreeSet};

use record::units::parse_size;

use super::class::Class;
use super::diagnose::{Diagnosis, lead};
use super::finding::{Finding, Gain, Lift};
use super::knobs::steps;

/// Another value is advised once so many looks in a row have it computed: by then a verdict rests on others than those
/// of the value before.
const ANEW: usize = 15;
/// A finding goes on to lead before another one of the same cause that is stronger by no more than this.
const HARDLY: f64 = 0.1;

/// What was advised.
#[derive(Debug, Default)]
pub struct Advised {
    /// Each by its setting and the value that this had.
    values: BTreeMap<[String; 2], Kept>,
    /// The cause and the place of the finding that led.
    led: Option<(Class, String)>,
}

/// What was advised last.
#[derive(Debug)]
struct Kept {
    place: String,
    lift: Lift,
    gain: Option<Gain>,
    /// For how many looks in a row another value was computed.
    others: usize,
}

impl Advised {
    /// Advises what was advised before, where that is no more than a step from what is computed now, or something else
    /// was computed of late. `is_new` is a look that was not told before: those that are late are told every second.
    pub fn keep(&mut self, diagnosis: &mut Diagnosis, is_new: bool) {
        self.keep_first(diagnosis);
        let mut known = BTreeSet::new();
        for finding in &mut diagnosis.findings {
            let Some(lift) = &finding.lift else { continue };
            let (Some(setting), Some(now), Some(_)) = (&lift.setting, &lift.now, &lift.to) else {
                continue;
            };
            let key = [setting.clone(), now.clone()];
            let is_first = known.insert(key.clone());
            let kept = self.values.entry(key).or_insert_with(|| Kept::of(finding, lift.clone()));
            kept.keep(finding, is_first, is_new);
        }
    }

    /// Of two limiters that are nearly as full, now the one is fuller and now the other.
    fn keep_first(&mut self, diagnosis: &mut Diagnosis) {
        let findings = &diagnosis.findings;
        let led = |one: &Finding| {
            self.led
                .as_ref()
                .is_some_and(|(class, place)| one.class == *class && one.place == *place)
        };
        let is_as_strong = |one: &Finding| {
            let first = &findings[0];
            (one.class, one.over) == (first.class, first.over)
                && first.strength - one.strength <= HARDLY
        };
        let at = findings.iter().position(|one| led(one) && is_as_strong(one));
        if let Some(at) = at.filter(|at| *at > 0) {
            lead(diagnosis, at);
        }
        let first = diagnosis.findings.first();
        self.led = first.map(|first| (first.class, first.place.clone()));
    }
}

impl Kept {
    fn of(finding: &Finding, lift: Lift) -> Kept {
        let (place, gain) = (finding.place.clone(), finding.gain.clone());
        Kept { place, lift, gain, others: 0 }
    }

    /// `is_first` is the first finding of a look on this setting, which the others follow.
    fn keep(&mut self, finding: &mut Finding, is_first: bool, is_new: bool) {
        let Finding { lift: Some(lift), gain, .. } = finding else { return };
        let (Some(kept), Some(to)) = (&self.lift.to, &mut lift.to) else { return };
        let sizes = parse_size(kept).ok().zip(parse_size(to).ok());
        let is_kept = kept == to || sizes.is_some_and(|(is, computed)| is_near(is, computed));
        if is_kept {
            if let (Some(gain), Some((is, computed))) = (gain, sizes) {
                promise(gain, to, kept, (is as f64 / computed as f64).min(1.0));
            }
            to.clone_from(kept);
        } else {
            self.others += usize::from(is_first && is_new);
        }
        if is_kept || self.others >= ANEW {
            if is_first {
                let lift = lift.clone();
                *self = Kept::of(finding, lift);
            }
            return;
        }
        // What it brings elsewhere was not reckoned.
        let gain = self.gain.clone().filter(|_| finding.place == self.place);
        (finding.lift, finding.gain) = (Some(self.lift.clone()), gain);
    }
}

/// Whether two sizes are the same step, or neighbours.
fn is_near(one: u64, other: u64) -> bool {
    let between = steps().filter(|step| one.min(other) < *step && *step < one.max(other)).count();
    between == 0
}

/// Says of a value what was said of another one. One that is lower brings less; a higher one no more than was promised.
fn promise(gain: &mut Gain, computed: &str, kept: &str, times: f64) {
    gain.factor = (gain.factor * times).max(1.0);
    if let Some(reckoned) = gain.formula.strip_prefix(computed) {
        gain.formula = format!("{kept}{reckoned}");
    }
}

#[cfg(test)]
mod tests {
    use record::observation::{Scope, Setting};

    use super::*;
    use crate::diagnosis::diagnose::sort;
    use crate::diagnosis::{Series, diagnose};

    /// What is advised where this is computed.
    fn advises(advised: &mut Advised, now: &str, to: &str) -> (String, Gain) {
        advises_at(advised, now, to, true)
    }

    fn advises_at(advised: &mut Advised, now: &str, to: &str, is_new: bool) -> (String, Gain) {
        let setting = Setting { value: now.into(), scope: Scope::Persistent };
        let lift = Lift::setting("limit", setting, Some(to.to_owned()), "raise it");
        let gain = Gain { factor: 4.0, formula: format!("{to} / 20.0 MB/s") };
        let rule = Class::RateLimit.rule();
        let finding = Finding {
            lift: Some(lift),
            gain: Some(gain),
            ..Finding::of(rule, "a", 0.9, "it holds")
        };
        let mut diagnosis = diagnose(&Series::new([]));
        diagnosis.findings = vec![finding];
        advised.keep(&mut diagnosis, is_new);
        let Finding { lift, gain, .. } = diagnosis.findings.remove(0);
        (lift.unwrap().to.unwrap(), gain.unwrap())
    }

    #[test]
    fn a_value_stays_while_it_is_within_a_step_of_what_is_computed() {
        let mut advised = Advised::default();
        let mut of = |to: &str| advises(&mut advised, "20mb", to).0;
        assert_eq!(["80mb", "100mb", "64mb", "80mb"].map(&mut of), ["80mb"; 4]);
        assert_eq!([of("125mb"), of("100mb")], ["80mb"; 2]);
        assert_eq!(advises(&mut advised, "40mb", "125mb").0, "125mb", "the limit is another one");
        assert_eq!(advises(&mut advised, "20mb", "64mb").0, "80mb");
    }

    /// The trap: limiters of two nodes that are nearly as full, each raised by as much as its own path allows.
    #[test]
    fn of_two_that_are_nearly_as_strong_the_one_that_led_goes_on_to_lead() {
        let of = |place: &str, strength: f64, to: &str| {
            let setting = Setting { value: "20mb".into(), scope: Scope::Persistent };
            let lift = Some(Lift::setting("limit", setting, Some(to.to_owned()), "raise it"));
            Finding { lift, ..Finding::of(Class::RateLimit.rule(), place, strength, "it holds") }
        };
        let mut advised = Advised::default();
        let mut leads = |of_a: f64, of_b: f64| {
            let mut diagnosis = diagnose(&Series::new([]));
            diagnosis.findings = vec![of("a", of_a, "80mb"), of("b", of_b, "200mb")];
            sort(&mut diagnosis.findings);
            advised.keep(&mut diagnosis, true);
            let of = |at: usize| {
                let Finding { place, lift, .. } = &diagnosis.findings[at];
                (place.clone(), lift.as_ref().and_then(|lift| lift.to.clone()))
            };
            assert_eq!(of(1).1, None, "the other one follows");
            let is_changed = of(0).0 == "a" && of_a < of_b;
            assert!(!is_changed || diagnosis.headline.ends_with("; the same at b"));
            of(0)
        };
        let first = |place: &str, to: &str| (place.to_owned(), Some(to.to_owned()));
        assert_eq!(leads(0.98, 0.96), first("a", "80mb"));
        assert_eq!(leads(0.96, 0.98), first("a", "80mb"));
        assert_eq!(leads(0.80, 0.98), first("b", "80mb"), "it is stronger");
        assert_eq!(leads(0.98, 0.96), first("b", "80mb"));
    }

    /// The trap: of few chunks, one look tells what holds next and the next look does not.
    #[test]
    fn another_value_is_advised_once_it_has_been_computed_for_long() {
        let mut advised = Advised::default();
        let of = |advised: &mut Advised, to: &str| advises(advised, "320kb", to);
        for _ in 0..ANEW {
            for to in ["640kb", "40mb"] {
                let (is, gain) = of(&mut advised, to);
                assert_eq!((is.as_str(), gain.formula.as_str()), ("640kb", "640kb / 20.0 MB/s"));
            }
        }
        assert_eq!(of(&mut advised, "640kb").0, "640kb");
        // While the next look is late, the last one is told again and again.
        for _ in 0..=ANEW {
            assert_eq!(advises_at(&mut advised, "320kb", "40mb", false).0, "640kb");
        }
        let long: Vec<String> = (0..=ANEW).map(|_| of(&mut advised, "40mb").0).collect();
        assert_eq!(long[ANEW - 2..], ["640kb", "40mb", "40mb"]);
    }

    #[test]
    fn a_value_that_is_lower_than_computed_promises_less() {
        let mut advised = Advised::default();
        advises(&mut advised, "20mb", "80mb");
        let (to, gain) = advises(&mut advised, "20mb", "100mb");
        assert_eq!((to.as_str(), gain.formula.as_str()), ("80mb", "80mb / 20.0 MB/s"));
        assert!((gain.factor - 3.2).abs() < 1e-9, "{gain:?}");
        let (_, gain) = advises(&mut advised, "20mb", "64mb");
        assert!((gain.factor - 4.0).abs() < 1e-9, "{gain:?}");
    }
}
