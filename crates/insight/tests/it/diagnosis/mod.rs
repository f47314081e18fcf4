//! Each class from constructed observations, each trap of the field, what is healthy, and what is unknown.

mod changes;
mod copies;
mod evidence;
mod followers;
mod gains;
mod goes_on;
mod limiters;
mod paths;
mod streams;
mod transfers;

use insight::diagnosis::{Class, Diagnosis, Finding, Series, diagnose};
use record::observation::Observation;

use crate::common::case;

const LIMIT: u64 = 40 << 20;

/// Ten looks, a second apart; `at` makes each from the seconds gone by.
fn looks(at: impl Fn(u64) -> Observation) -> Vec<(f64, Observation)> {
    (0..=10).map(|s| (s as f64 * 1000.0, at(s))).collect()
}

/// Ten looks at a [`case`] with a rate, each with a change that is given the seconds gone by.
fn looks_at(rate: u64, change: impl Fn(&mut Observation, u64)) -> Vec<(f64, Observation)> {
    looks(|s| {
        let mut look = case(s, rate);
        change(&mut look, s);
        look
    })
}

fn judge(looks: &[(f64, Observation)]) -> Diagnosis {
    diagnose(&Series::new(looks.iter().map(|(t_ms, look)| (*t_ms, look))))
}

#[track_caller]
fn only(looks: &[(f64, Observation)]) -> Finding {
    let diagnosis = judge(looks);
    let [finding] = &diagnosis.findings[..] else { panic!("{diagnosis:#?}") };
    finding.clone()
}

#[test]
fn every_class_says_how_it_shows_and_what_lifts_it() {
    for class in Class::ALL {
        let rule = class.rule();
        assert!(!rule.label.is_empty() && !rule.signature.is_empty());
        assert!(!rule.reads.is_empty() && !rule.lift.is_empty());
    }
}
