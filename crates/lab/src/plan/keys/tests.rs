//! The table is what the types need, with examples that are right; `docs/plans.md` is what it says.

use toml::Spanned;
use toml::de::DeTable;

use super::steps::{STEPS, section_of};
use super::*;
use crate::plan::document::{self, BUCKET, FULL_ROLLOVER, PLAN, ROLLOVER};

/// A table that has these keys, each with its example.
fn read(keys: &[&Key]) -> toml::de::Deserializer<'static> {
    let mut all = DeTable::new();
    for key in keys {
        all.insert(Spanned::new(0..0, key.name.into()), key.replacement(0..0));
    }
    toml::de::Deserializer::from(Spanned::new(0..0, all))
}

#[test]
fn a_type_needs_what_the_table_says() {
    for (section, refused) in document::TYPES.iter().chain(steps::TYPES) {
        let refused = |keys: &[&Key]| refused(read(keys)).map(|error| error.to_string());
        let needed: Vec<&Key> = section.keys.iter().filter(|key| key.default.is_none()).collect();
        if let Some(error) = refused(&needed) {
            panic!("{}: its type needs more than the table says: {error}", section.title);
        }
        for Key { name, .. } in &needed {
            let without = needed.iter().copied().filter(|key| key.name != *name);
            let without: Vec<&Key> = without.collect();
            assert!(refused(&without).is_some(), "{}: nothing needs {name}", section.title);
        }
        // Whatever may be left out may be there, too.
        for key in section.keys.iter().filter(|key| key.default.is_some()) {
            let with: Vec<&Key> = needed.iter().copied().chain([key]).collect();
            if let Some(error) = refused(&with) {
                panic!("{} {} = {}: {error}", section.title, key.name, key.example);
            }
        }
    }
}

/// Their rule is one type with itself: `full` has no `full`.
#[test]
fn a_full_rollover_has_the_keys_of_a_rollover() {
    let mut names = ROLLOVER.names();
    names.retain(|name| *name != "full");
    assert_eq!(FULL_ROLLOVER.names(), names);
}

#[test]
fn every_step_is_described() {
    let mut known = crate::plan::resolve::step_names(crate::experiments::STEPS);
    let mut there: Vec<&str> = STEPS.iter().map(|step| step.title).collect();
    known.sort_unstable();
    there.sort_unstable();
    assert_eq!(there, known);
    for step in crate::experiments::STEPS {
        let options = section_of(step.name).unwrap().keys;
        let is_of_leader = |option: &Key| matches!(option.bounds, Some(Bounds::OfLeader(_)));
        assert!(options.iter().all(is_of_leader), "{}", step.name);
    }
}

/// A plan has faults in a table and as a step.
#[test]
fn a_fault_is_described_alike_wherever_it_stands() {
    let (last, others) = clusters::FaultKind::NAMES.split_last().unwrap();
    let kinds = format!("{} or {last}.", others.join(", "));
    for section in [&document::FAULT, &steps::FAULT] {
        assert_eq!(section.key("kind").unwrap().about, kinds);
    }
    // A step begins when its turn comes.
    for name in document::FAULT.names().into_iter().filter(|name| *name != "at") {
        assert!(steps::FAULT.key(name).is_some(), "{name}");
    }
}

#[test]
fn a_bucket_is_no_larger_than_one_can_be() {
    let most = |key| BUCKET.bounds(key, record::units::parse_size).1.into_inner().1;
    assert_eq!(most("item_size"), dcp::bucket::MAX_VALUE_BYTES as u64);
    let vbuckets = BUCKET.bounds("vbuckets", parse_number::<u16>).1;
    assert_eq!(vbuckets, 1..=dcp::bucket::MAX_VBUCKETS);
}

#[test]
fn every_example_is_right() {
    let steps = STEPS.iter().flat_map(|step| step.keys);
    for key in sections().into_iter().flat_map(|section| section.keys).chain(steps) {
        let text = key.example.trim_matches('"');
        let value: toml::Value =
            toml::from_str::<toml::Table>(&format!("x = {}", key.example)).unwrap()["x"].clone();
        let is = match key.holds {
            Holds::Text => value.is_str(),
            Holds::Time => record::units::parse_duration(text).is_ok(),
            Holds::Size => record::units::parse_size(text).is_ok(),
            Holds::Rate => record::units::parse_rate(text).is_ok(),
            Holds::Whole => value.is_integer(),
            Holds::Number => value.is_integer() || value.is_float(),
            Holds::TimeOrRequests => {
                value.is_integer() || record::units::parse_duration(text).is_ok()
            }
            Holds::Texts | Holds::Values | Holds::Steps | Holds::Tables(_) => value.is_array(),
            Holds::Settings | Holds::Parameters(_) | Holds::Table(_) => value.is_table(),
            Holds::Anything => true,
        };
        assert!(is, "{} = {}", key.name, key.example);
        let Some(Bounds::Within(least, most)) = key.bounds else { continue };
        let [least, example, most] = [least, text, most].map(|text| match key.holds {
            Holds::Size => record::units::parse_size(text).unwrap() as f64,
            Holds::Rate => record::units::parse_rate(text).unwrap() as f64,
            Holds::Whole | Holds::Number => parse_number(text).unwrap(),
            // A time may go back where the key says so.
            _ => record::units::parse_duration(text.trim_start_matches('-')).unwrap().as_secs_f64(),
        });
        assert!(least <= example && example <= most, "{} = {}", key.name, key.example);
    }
}

fn sections() -> Vec<&'static Section> {
    fn add(section: &'static Section, all: &mut Vec<&'static Section>) {
        if all.iter().any(|one| one.title == section.title) {
            return;
        }
        all.push(section);
        for key in section.keys {
            if let Holds::Table(section) | Holds::Tables(section) | Holds::Parameters(section) =
                key.holds
            {
                add(section, all);
            }
        }
    }
    let mut all = Vec::new();
    add(&PLAN, &mut all);
    all
}

#[test]
fn the_document_is_what_the_table_says() {
    testbed::generated::check_page("docs/plans.md", &markdown());
}
