//! What was advised stays while one looks: whoever reads a value twice must find the same one.

use std::collections::BTreeMap;

use record::units::parse_size;

use super::diagnose::Diagnosis;
use super::finding::{Finding, Gain, Lift};
use super::knobs::steps;

/// The sizes that were advised, each by its setting and the value that this had.
#[derive(Debug, Default)]
pub struct Advised(BTreeMap<[String; 2], String>);

impl Advised {
    /// Advises what was advised before, where that is no more than a step from what is computed now.
    pub fn keep(&mut self, diagnosis: &mut Diagnosis) {
        for finding in &mut diagnosis.findings {
            let Finding { lift: Some(lift), gain, .. } = finding else { continue };
            let Lift { setting: Some(setting), now: Some(now), to: Some(to), .. } = lift else {
                continue;
            };
            let kept = self.0.entry([setting.clone(), now.clone()]).or_insert_with(|| to.clone());
            match parse_size(kept).ok().zip(parse_size(to).ok()) {
                Some((is, computed)) if is_near(is, computed) => {
                    if let Some(gain) = gain {
                        promise(gain, to, kept, (is as f64 / computed as f64).min(1.0));
                    }
                    to.clone_from(kept);
                }
                _ => kept.clone_from(to),
            }
        }
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
    use crate::diagnosis::{Class, Series, diagnose};

    /// What is advised where this is computed.
    fn advises(advised: &mut Advised, now: &str, to: &str) -> (String, Gain) {
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
        advised.keep(&mut diagnosis);
        let Finding { lift, gain, .. } = diagnosis.findings.remove(0);
        (lift.unwrap().to.unwrap(), gain.unwrap())
    }

    #[test]
    fn a_value_stays_while_it_is_within_a_step_of_what_is_computed() {
        let mut advised = Advised::default();
        let mut of = |to: &str| advises(&mut advised, "20mb", to).0;
        assert_eq!(["80mb", "100mb", "64mb", "80mb"].map(&mut of), ["80mb"; 4]);
        assert_eq!(["125mb", "100mb", "64mb"].map(&mut of), ["125mb", "125mb", "64mb"]);
        assert_eq!(advises(&mut advised, "40mb", "80mb").0, "80mb", "the limit is another one");
        assert_eq!(advises(&mut advised, "20mb", "80mb").0, "64mb");
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
