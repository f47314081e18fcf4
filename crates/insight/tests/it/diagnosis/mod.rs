//! Each class from constructed observations, each trap of the field, what is healthy, and what is unknown.

mod changes;
mod copies;
mod evidence;
mod followers;
mod gains;
mod goes_on;
mod limiters;
mod paths;
mod plugin_followers;
mod searches;
mod streams;
mod transfers;

use insight::diagnosis::{By, Class, Diagnosis, Finding, diagnose};
use record::observation::Observation;

use crate::common::{looks_at, series};

const LIMIT: u64 = 40 << 20;

/// Looks while nothing recovers, each with a change that is given the seconds gone by.
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

/// What speaks against a cause that was not named.
#[track_caller]
fn against(finding: &Finding, class: Class) -> (By, &str) {
    let found = finding.ruled_out.iter().find(|one| one.class == class);
    found.map(|one| (one.by, one.why.as_str())).expect("it was looked for")
}

#[test]
fn every_class_says_how_it_shows_and_what_lifts_it() {
    for class in Class::ALL {
        let rule = class.rule();
        assert!(!rule.label.is_empty() && !rule.signature.is_empty());
        assert!(!rule.reads.is_empty() && !rule.lift.is_empty());
    }
}
