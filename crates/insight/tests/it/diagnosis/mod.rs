//! Each class from constructed observations, each trap of the field, what is healthy, and what is unknown.

mod changes;
mod copies;
mod evidence;
mod followers;
mod gains;
mod goes_on;
mod limiters;
mod paths;
mod searches;
mod streams;
mod transfers;

use insight::diagnosis::{Class, Diagnosis, Finding, diagnose};
use record::observation::Observation;

use crate::common::{case, looks, series};

const LIMIT: u64 = 40 << 20;

/// Ten looks at a [`case`] with a rate, each with a change that is given the seconds gone by.
fn looks_at(rate: u64, change: impl Fn(&mut Observation, u64)) -> Vec<(f64, Observation)> {
    looks(|s| {
        let mut look = case(s, rate);
        change(&mut look, s);
        look
    })
}

/// The same where nothing recovers.
fn looks_at_rest(change: impl Fn(&mut Observation, u64)) -> Vec<(f64, Observation)> {
    looks_at(0, |look, s| {
        look.recoveries.clear();
        change(look, s);
    })
}

fn judge(looks: &[(f64, Observation)]) -> Diagnosis {
    diagnose(&series(looks))
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
