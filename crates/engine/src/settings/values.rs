//! Typed values by the names of their settings: those that were given, above the defaults, which all share.

use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::time::Duration;

use super::SettingsMap;
use super::kind::Typed;
use super::table::{SettingScope, TABLE, find};
use super::watermark::Watermark;

/// Values by the names of their settings, the shortest first, and those of one length in the order of the alphabet. A
/// search by halves compares a third of the names that a map does, and of most the length alone.
type ByName = [(&'static str, Typed)];

/// The values of all settings of a scope, but for those whose names are patterns.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TypedValues {
    defaults: &'static ByName,
    /// Those that are not the default: a few, in the order of their names.
    given: Box<ByName>,
}

fn defaults(scope: SettingScope) -> &'static ByName {
    static CLUSTER: OnceLock<Box<ByName>> = OnceLock::new();
    static INDEX: OnceLock<Box<ByName>> = OnceLock::new();
    let of_scope = match scope {
        SettingScope::Cluster => &CLUSTER,
        SettingScope::Index => &INDEX,
    };
    of_scope.get_or_init(|| {
        let plain = TABLE.iter().filter(|one| one.scope == scope && !one.is_pattern());
        let typed = plain.map(|one| (one.name, one.kind.read(one.default)));
        let mut all: Vec<(&str, Typed)> =
            typed.map(|(name, value)| (name, value.expect("defaults are accepted"))).collect();
        all.sort_unstable_by_key(|(name, _)| (name.len(), *name));
        all.into_boxed_slice()
    })
}

/// A setting with its value.
fn of_name<'v>(values: &'v ByName, name: &str) -> Option<&'v (&'static str, Typed)> {
    let at = values.binary_search_by_key(&(name.len(), name), |(known, _)| (known.len(), *known));
    at.ok().map(|at| &values[at])
}

impl TypedValues {
    /// Each from the first layer that has a good one, else its default.
    pub(super) fn resolve(scope: SettingScope, layers: &[&SettingsMap]) -> Self {
        let names = layers.iter().flat_map(|layer| layer.keys()).map(String::as_str);
        TypedValues::only(scope, names, layers)
    }

    /// As [`TypedValues::resolve`], where an index is asked for one setting alone.
    pub(super) fn of_one(name: &str, given: &SettingsMap) -> Self {
        let is_given = given.get_key_value(name).map(|(name, _)| name.as_str());
        TypedValues::only(SettingScope::Index, is_given, &[given])
    }

    fn only<'n>(
        scope: SettingScope,
        names: impl IntoIterator<Item = &'n str>,
        layers: &[&SettingsMap],
    ) -> Self {
        let defaults = defaults(scope);
        let mut given = BTreeMap::new();
        for name in names {
            let Some(&(name, ref default)) = of_name(defaults, name) else { continue };
            let setting = find(name).expect("a setting with a default is in the table");
            let mut texts = layers.iter().filter_map(|layer| layer.get(name));
            let value = texts.find_map(|text| setting.kind.read(text).ok());
            if let Some(value) = value.filter(|value| value != default) {
                given.insert(name, value);
            }
        }
        TypedValues { defaults, given: given.into_iter().collect() }
    }

    pub(super) fn names_of_settings(&self) -> impl Iterator<Item = &'static str> {
        self.defaults.iter().map(|(name, _)| *name)
    }

    fn get(&self, name: &str) -> Option<&Typed> {
        let given = self.given.iter().find(|(given, _)| *given == name);
        given.or_else(|| of_name(self.defaults, name)).map(|(_, value)| value)
    }
}

pub(super) fn size(values: &TypedValues, name: &str) -> u64 {
    let Some(Typed::Size(bytes)) = values.get(name) else { wrong(name) };
    *bytes
}

pub(super) fn throttle(values: &TypedValues, name: &str) -> Option<u64> {
    let Some(Typed::Throttle(rate)) = values.get(name) else { wrong(name) };
    *rate
}

pub(super) fn count(values: &TypedValues, name: &str) -> u32 {
    let Some(Typed::Count(count)) = values.get(name) else { wrong(name) };
    u32::try_from(*count).expect("the table bounds counts below 2^32")
}

/// None without a limit.
pub(super) fn limit(values: &TypedValues, name: &str) -> Option<u32> {
    let Some(Typed::Limit(limit)) = values.get(name) else { wrong(name) };
    limit.map(|count| u32::try_from(count).expect("the table bounds limits below 2^32"))
}

pub(super) fn decimal(values: &TypedValues, name: &str) -> f64 {
    let Some(Typed::Decimal(millionths)) = values.get(name) else { wrong(name) };
    *millionths as f64 / 1e6
}

pub(super) fn flag(values: &TypedValues, name: &str) -> bool {
    let Some(Typed::Bool(yes)) = values.get(name) else { wrong(name) };
    *yes
}

pub(super) fn names<'a>(values: &'a TypedValues, name: &str) -> &'a [String] {
    let Some(Typed::Names(list)) = values.get(name) else { wrong(name) };
    list
}

pub(super) fn watermark(values: &TypedValues, name: &str) -> Watermark {
    let Some(Typed::Watermark(mark)) = values.get(name) else { wrong(name) };
    *mark
}

pub(super) fn duration(values: &TypedValues, name: &str) -> Duration {
    optional_duration(values, name).unwrap_or_else(|| wrong(name))
}

pub(super) fn optional_duration(values: &TypedValues, name: &str) -> Option<Duration> {
    let Some(Typed::Duration(time)) = values.get(name) else { wrong(name) };
    *time
}

pub(super) fn word<T>(values: &TypedValues, name: &str, of: impl Fn(&str) -> Option<T>) -> T {
    let Some(Typed::Word(word)) = values.get(name) else { wrong(name) };
    of(word).unwrap_or_else(|| wrong(name))
}

fn wrong(name: &str) -> ! {
    panic!("the table has no {name} of the kind that the accessor reads")
}
