//! One entry of `steps` with its options, as it is written.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use toml::{Spanned, Value};

use super::together::every;
use crate::choices::unknown;
use crate::error::{Error, Result};
use crate::plan::by_world::ByWorld;
use crate::plan::file::Plan;
use crate::plan::keys::{STEPS, options_of};
use crate::plan::topology::Cluster;

/// Updates and deletes need documents that were written before.
const SHARES: RangeInclusive<f64> = 0.0..=0.4;
const TIMES: RangeInclusive<Duration> =
    Duration::from_millis(1)..=Duration::from_secs(100 * 86_400);

/// What the options of steps are checked against.
#[derive(Clone, Copy)]
pub(super) struct Around<'a> {
    pub(super) leader: Cluster,
    /// The names that a fault can have.
    pub(super) fault_nodes: &'a [String],
    /// What numbers of documents are multiplied by.
    pub(super) scale: f64,
}

/// A step with its options, as it is written.
pub(super) struct StepText<'a> {
    pub(super) plan: &'a Plan,
    entry: &'a Spanned<Value>,
    pub(super) name: &'a str,
    options: BTreeMap<&'a str, &'a Value>,
}

impl<'a> StepText<'a> {
    pub(super) fn read(plan: &'a Plan, entry: &'a Spanned<Value>) -> Result<StepText<'a>> {
        let wrong = |message: String| plan.error(entry.span(), message);
        let (name, options) = name_and_options(entry).map_err(wrong)?;
        if !STEPS.iter().any(|step| step.title == name) {
            // The name is what is wrong, and it is told by whoever knows the steps.
            return Ok(StepText { plan, entry, name, options: BTreeMap::new() });
        }
        let known = options_of(name);
        let checked = options.keys().map(|key| {
            if known.contains(key) {
                return Ok(());
            }
            let said = format!("the step \"{name}\" has no option");
            Err(wrong(match known.as_slice() {
                [] => format!("{said}s, found \"{key}\""),
                known => unknown(&said, key, "Options", known),
            }))
        });
        every::<(), ()>(checked)?;
        Ok(StepText { plan, entry, name, options })
    }

    /// The table `full`, which has the options for virtual time, of which these are `known`.
    pub(super) fn full(&self, known: &[&str]) -> Result<Option<StepText<'a>>> {
        let Some(table) = self.options.get("full").and_then(|full| full.as_table()) else {
            return Ok(None);
        };
        let options: BTreeMap<&str, &Value> =
            table.iter().map(|(key, value)| (key.as_str(), value)).collect();
        if let Some(key) = options.keys().find(|key| !known.contains(key)) {
            let said = format!("full of the step \"{}\" has no option", self.name);
            return Err(self.wrong(unknown(&said, key, "Options", known)));
        }
        Ok(Some(StepText { options, ..*self }))
    }

    pub(super) fn wrong(&self, message: impl Into<String>) -> Error {
        self.plan.error(self.entry.span(), message)
    }

    /// The value of an option. Where it is none of its kind, `keys/check.rs` has put an example in its place.
    fn option<T>(&self, key: &str, read: impl Fn(&Value) -> Option<T>) -> Option<Spanned<T>> {
        Some(Spanned::new(self.entry.span(), read(self.options.get(key)?)?))
    }

    pub(super) fn whole(&self, key: &str) -> Option<Spanned<i64>> {
        self.option(key, Value::as_integer)
    }

    pub(super) fn number(&self, key: &str) -> Option<Spanned<f64>> {
        self.option(key, |value| value.as_float().or_else(|| Some(value.as_integer()? as f64)))
    }

    pub(super) fn text(&self, key: &str) -> Option<Spanned<String>> {
        self.option(key, |value| value.as_str().map(str::to_owned))
    }

    /// Names, one at least where it is given.
    pub(super) fn texts(&self, key: &str) -> Result<Option<Vec<String>>> {
        let Some(list) = self.options.get(key).and_then(|list| list.as_array()) else {
            return Ok(None);
        };
        if list.is_empty() {
            return Err(self.wrong(format!("{key} is a list of names, as [\"logs-*\"]")));
        }
        Ok(Some(list.iter().filter_map(Value::as_str).map(str::to_owned).collect()))
    }

    /// A share, in thousandths.
    pub(super) fn in_1000(&self, key: &str) -> Result<u32> {
        let Some(share) = self.number(key) else { return Ok(0) };
        Ok((self.plan.real(key, &share, &SHARES)? * 1000.0).round() as u32)
    }

    pub(super) fn time(&self, key: &str) -> Result<Option<Duration>> {
        self.text(key).map(|text| self.plan.time(key, &text, &TIMES)).transpose()
    }

    /// The time of `key`, and in virtual time that of `full` where it is given.
    pub(super) fn lasts(&self, key: &str) -> Result<Option<ByWorld<Duration>>> {
        let (real, full) = (self.time(key)?, self.time("full")?);
        match (real, full) {
            (Some(real), full) => Ok(Some(ByWorld { real, full: full.unwrap_or(real) })),
            (None, None) => Ok(None),
            (None, Some(_)) => Err(self.wrong(format!(
                "full is the time for --on virtual; say with {key} what it is on real processes"
            ))),
        }
    }
}

/// The name of a step, and its options by their names; otherwise what is wrong, in a sentence.
fn name_and_options(entry: &Spanned<Value>) -> Result<(&str, BTreeMap<&str, &Value>), String> {
    match entry.get_ref() {
        Value::String(name) => Ok((name, BTreeMap::new())),
        Value::Table(table) => match table.iter().next() {
            Some((name, Value::Table(options))) if table.len() == 1 => {
                Ok((name, options.iter().map(|(key, value)| (key.as_str(), value)).collect()))
            }
            // A wait has one option, so its value may stand alone.
            Some((name, lasts @ Value::String(_))) if table.len() == 1 && name == "wait" => {
                Ok((name, BTreeMap::from([("lasts", lasts)])))
            }
            _ => {
                let example = "{ recover_peers = { restart = 4 } }";
                Err(format!(
                    "a step is a name, or a table of one name with its options, as {example}"
                ))
            }
        },
        other => Err(format!("a step is a name or a table, found {}", other.type_str())),
    }
}
