//! The table has the keys of the types, with examples that are right; `docs/plans.md` is what it says.

use serde::de::value::Error as Seen;
use serde::de::{Deserialize, Deserializer, Error as _, Visitor};
use serde::forward_to_deserialize_any;
use toml::Spanned;
use toml::de::DeTable;

use super::sections as table;
use super::*;
use crate::plan::document::*;

/// Notes the fields that a type asks for.
struct Fields(Vec<&'static str>);

impl<'de> Deserializer<'de> for &mut Fields {
    type Error = Seen;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Seen> {
        Err(Seen::custom("no struct"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Seen> {
        self.0 = fields.to_vec();
        Err(Seen::custom("seen"))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit
        unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

/// What a type says of itself.
struct OfType {
    fields: Vec<&'static str>,
    /// What is wrong with a table of these keys, if anything is.
    refuses: fn(&[&Key]) -> Option<String>,
}

/// Little more than what differs by type: what is done with it is compiled once.
fn of_type<T: for<'de> Deserialize<'de>>() -> OfType {
    let mut fields = Fields(Vec::new());
    let _ = T::deserialize(&mut fields);
    let refuses = |keys: &[&Key]| T::deserialize(read(keys)).err().map(|error| error.to_string());
    OfType { fields: fields.0, refuses }
}

/// A table that has these keys, each with its example.
fn read(keys: &[&Key]) -> toml::de::Deserializer<'static> {
    let mut all = DeTable::new();
    for key in keys {
        all.insert(Spanned::new(0..0, key.name.into()), key.replacement(0..0));
    }
    toml::de::Deserializer::from(Spanned::new(0..0, all))
}

/// That a section has the keys of a type, and asks for those that the type needs.
fn has_keys_of<T: for<'de> Deserialize<'de>>(section: &'static Section) {
    compare(section, of_type::<T>());
}

fn compare(section: &'static Section, of: OfType) {
    let (mut known, mut there) = (of.fields, section.names());
    known.sort_unstable();
    there.sort_unstable();
    assert_eq!(there, known, "{}: plan/keys/ against plan/document.rs", section.title);
    let needed: Vec<&Key> = section.keys.iter().filter(|key| key.default.is_none()).collect();
    if let Some(error) = (of.refuses)(&needed) {
        panic!("{}: its type needs more than the table says: {error}", section.title);
    }
    for Key { name, .. } in &needed {
        let without: Vec<&Key> = needed.iter().copied().filter(|key| key.name != *name).collect();
        assert!((of.refuses)(&without).is_some(), "{}: nothing needs {name}", section.title);
    }
    // Whatever may be left out may be there, too.
    for key in section.keys.iter().filter(|key| key.default.is_some()) {
        let with: Vec<&Key> = needed.iter().copied().chain([key]).collect();
        if let Some(error) = (of.refuses)(&with) {
            panic!("{} {} = {}: {error}", section.title, key.name, key.example);
        }
    }
}

#[test]
fn every_key_of_the_types_is_described() {
    has_keys_of::<Document>(&PLAN);
    has_keys_of::<ClusterTable>(&table::LEADER);
    has_keys_of::<TwinTable>(&table::TWIN);
    has_keys_of::<TwinNodeTable>(&table::TWIN_NODE);
    has_keys_of::<TwinIndexTable>(&table::TWIN_INDEX);
    has_keys_of::<TwinShardTable>(&table::TWIN_SHARD);
    has_keys_of::<UncertainTable>(&table::UNCERTAIN);
    has_keys_of::<FollowerTable>(&table::FOLLOWER);
    has_keys_of::<LinkTable>(&table::LINK);
    has_keys_of::<CorpusTable>(&table::CORPUS);
    has_keys_of::<IndexTable>(&table::INDEX);
    has_keys_of::<FullTable>(&table::FULL);
    has_keys_of::<RolloverTable>(&table::ROLLOVER);
    has_keys_of::<BucketTable>(&table::BUCKET);
    has_keys_of::<FullBucketTable>(&table::FULL_BUCKET);
    has_keys_of::<OperationTable>(&table::OPERATION);
    has_keys_of::<CostTable>(&table::COST);
    has_keys_of::<LoadTable>(&table::LOAD);
    has_keys_of::<FullLoadTable>(&table::FULL_LOAD);
    has_keys_of::<FaultTable>(&table::FAULT);
    has_keys_of::<ChangeTable>(&table::CHANGE);
    has_keys_of::<ParameterTable>(&table::PARAMETER);
    has_keys_of::<FittedTable>(&table::FITTED);
    has_keys_of::<VariantTable>(&table::VARIANT);
    has_keys_of::<EachTable>(&table::EACH);
    has_keys_of::<PublishedTable>(&table::PUBLISHED);
}

/// Their rule is one type with itself: `full` has no `full`.
#[test]
fn a_full_rollover_has_the_keys_of_a_rollover() {
    let mut names = table::ROLLOVER.names();
    names.retain(|name| *name != "full");
    assert_eq!(table::FULL_ROLLOVER.names(), names);
}

#[test]
fn every_step_is_described() {
    let mut known = crate::plan::resolve::step_names(crate::experiments::STEPS);
    let mut there: Vec<&str> = STEPS.iter().map(|step| step.title).collect();
    known.sort_unstable();
    there.sort_unstable();
    assert_eq!(there, known);
    for step in crate::experiments::STEPS {
        let names: Vec<&str> = step.options.iter().map(|option| option.name).collect();
        assert_eq!(options_of(step.name), names, "{}", step.name);
    }
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
