//! One change of a cluster that was not started here, as plain data.

use std::collections::BTreeMap;

use record::observation::{Scope, Setting};
use serde::{Deserialize, Serialize};

/// A setting's value; none where it was not set.
pub type SettingValue = Option<String>;
/// Settings by name.
pub type Values = BTreeMap<String, SettingValue>;
/// Settings that are to stay as a run has set them, by name.
pub type Kept = BTreeMap<String, Setting>;

/// One change, as it is written before it is made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum Change {
    /// An index is created.
    Index {
        /// Its name.
        name: String,
    },
    /// Cluster settings are set.
    Settings {
        /// The scope in which they are set.
        #[serde(default = "persistent")]
        scope: Scope,
        /// What they were.
        before: Values,
        /// What they become.
        set: Values,
    },
}

fn persistent() -> Scope {
    Scope::Persistent
}

/// The one setting of many tests.
#[cfg(test)]
pub(super) fn one(value: Option<&str>) -> Values {
    Values::from([("a".to_owned(), value.map(str::to_owned))])
}

/// Settings that are set for good, for tests.
#[cfg(test)]
pub(super) fn settings(before: &[(&str, Option<&str>)], set: &[(&str, Option<&str>)]) -> Change {
    let map = |pairs: &[(&str, Option<&str>)]| {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), value.map(str::to_owned))).collect()
    };
    Change::Settings { scope: Scope::Persistent, before: map(before), set: map(set) }
}
