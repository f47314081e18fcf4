//! One entry of `steps` with its options, as it is written.

use std::time::Duration;

use serde::de::DeserializeOwned;
use toml::{Spanned, Table, Value};

use super::together::every;
use crate::choices::unknown;
use crate::error::{Error, Result};
use crate::plan::by_world::ByWorld;
use crate::plan::file::Plan;
use crate::plan::keys::Section;
use crate::plan::keys::steps::{STEPS, section_of};
use crate::plan::topology::Cluster;

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
    /// What its options can be.
    pub(super) section: &'static Section,
    options: Table,
}

impl<'a> StepText<'a> {
    pub(super) fn read(plan: &'a Plan, entry: &'a Spanned<Value>) -> Result<StepText<'a>> {
        let (name, options) =
            name_and_options(entry).map_err(|why| plan.error(entry.span(), why))?;
        let Some(section) = section_of(name) else {
            // The name is what is wrong, and it is told by whoever knows the steps.
            return Ok(StepText { plan, entry, name, section: STEPS[0], options: Table::new() });
        };
        let step = StepText { plan, entry, name, section, options };
        step.check_names(&format!("the step \"{name}\""), section, &step.options)?;
        Ok(step)
    }

    fn check_names(&self, of: &str, section: &Section, options: &Table) -> Result<()> {
        let known = section.names();
        let checked = options.keys().map(|key| {
            if known.contains(&key.as_str()) {
                return Ok(());
            }
            Err(self.wrong(match known.as_slice() {
                [] => format!("{of} has no options, found \"{key}\""),
                known => unknown(&format!("{of} has no option"), key, "Options", known),
            }))
        });
        every(checked)
    }

    /// The options. Where one is none of its kind, `keys/check.rs` has put an example in its place, so they can be
    /// read unless one is not given that is needed; that is told by `lacks`.
    pub(super) fn options<T: DeserializeOwned>(&self, lacks: &str) -> Result<T> {
        self.options.clone().try_into().map_err(|_| self.wrong(lacks))
    }

    /// The options for virtual time, which stand in the table `full`.
    pub(super) fn full<T: DeserializeOwned>(
        &self,
        section: &Section,
        full: Table,
        lacks: &str,
    ) -> Result<T> {
        self.check_names(&format!("full of the step \"{}\"", self.name), section, &full)?;
        full.try_into().map_err(|_| self.wrong(lacks))
    }

    pub(super) fn has(&self, option: &str) -> bool {
        self.options.contains_key(option)
    }

    /// A whole number, where the option is given.
    pub(super) fn whole(&self, option: &str) -> Option<Spanned<i64>> {
        Some(self.here(self.options.get(option)?.as_integer()?))
    }

    pub(super) fn wrong(&self, message: impl Into<String>) -> Error {
        self.plan.error(self.entry.span(), message)
    }

    /// A value of the step: what is wrong with it is told of the step.
    pub(super) fn here<T>(&self, value: T) -> Spanned<T> {
        Spanned::new(self.entry.span(), value)
    }

    /// Names, one at least.
    pub(super) fn names(&self, key: &str, names: Vec<String>) -> Result<Vec<String>> {
        match names.is_empty() {
            true => Err(self.wrong(format!("{key} is a list of names, as [\"logs-*\"]"))),
            false => Ok(names),
        }
    }

    /// A share, in thousandths.
    pub(super) fn in_1000(&self, key: &str, share: Option<f64>) -> Result<u32> {
        let Some(share) = share else { return Ok(0) };
        let share = self.plan.real(self.section, key, &self.here(share))?;
        Ok((share * 1000.0).round() as u32)
    }

    pub(super) fn time(&self, key: &str, text: String) -> Result<Duration> {
        self.plan.time(self.section, key, &self.here(text))
    }

    /// A time, and in virtual time `full` where it is given. `keys` is what messages call the two.
    pub(super) fn times(
        &self,
        keys: [&str; 2],
        real: String,
        full: Option<String>,
    ) -> Result<ByWorld<Duration>> {
        let real = self.time(keys[0], real)?;
        let full = full.map_or(Ok(real), |full| self.time(keys[1], full))?;
        Ok(ByWorld { real, full })
    }

    /// The same where no time may be given.
    pub(super) fn lasts(
        &self,
        key: &str,
        real: Option<String>,
        full: Option<String>,
    ) -> Result<Option<ByWorld<Duration>>> {
        match (real, full) {
            (Some(real), full) => self.times([key, "full"], real, full).map(Some),
            (None, None) => Ok(None),
            (None, Some(_)) => Err(self.wrong(full_alone(key))),
        }
    }
}

/// That a step has a time for virtual time alone.
pub(super) fn full_alone(key: &str) -> String {
    format!("full is the time for --on virtual; say with {key} what it is on real processes")
}

/// The name of a step, and its options; otherwise what is wrong, in a sentence.
fn name_and_options(entry: &Spanned<Value>) -> Result<(&str, Table), String> {
    match entry.get_ref() {
        Value::String(name) => Ok((name, Table::new())),
        Value::Table(table) => match table.iter().next() {
            Some((name, Value::Table(options))) if table.len() == 1 => Ok((name, options.clone())),
            // A wait has one option, so its value may stand alone.
            Some((name, lasts @ Value::String(_))) if table.len() == 1 && name == "wait" => {
                Ok((name, Table::from_iter([("lasts".to_owned(), lasts.clone())])))
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
