//! Values wherever they stand: numbers within bounds, texts with units, settings.

use std::collections::BTreeMap;
use std::fmt::{Debug, Display};
use std::ops::RangeInclusive;
use std::time::Duration;

use record::units::{parse_duration, parse_size};
use toml::Spanned;

use super::together::every;
use crate::choices::unknown;
use crate::error::{Error, Result};
use crate::plan::bounds::{self, out_of_range};
use crate::plan::document::Values;
use crate::plan::file::Plan;
use crate::plan::keys::{Section, parse_number};
use crate::plan::scalar;

impl Plan {
    /// That nothing has this name, with the names that there are.
    pub(super) fn unknown(
        &self,
        what: &str,
        name: &Spanned<String>,
        heading: &str,
        known: &[&str],
    ) -> Error {
        self.error(name.span(), unknown(what, name.get_ref(), heading, known))
    }

    /// A whole number within the bounds of its key.
    pub(super) fn number<T: TryFrom<i64>>(
        &self,
        section: &Section,
        key: &str,
        value: &Spanned<i64>,
    ) -> Result<T> {
        self.number_within(key, value, section.bounds(key, parse_number).1)
    }

    /// A whole number within bounds that the plan gives it, which a leader of few nodes may leave empty; the message
    /// calls it `what`.
    pub(super) fn number_within<T: TryFrom<i64>>(
        &self,
        what: &str,
        value: &Spanned<i64>,
        bounds: RangeInclusive<i64>,
    ) -> Result<T> {
        if !bounds.contains(value.get_ref()) {
            let said = match bounds.is_empty() {
                true => format!("{what}: that leaves none; give the leader more nodes"),
                false => out_of_range(what, bounds.start(), bounds.end()),
            };
            return Err(self.error(value.span(), said));
        }
        T::try_from(*value.get_ref())
            .map_err(|_| unreachable!("the bounds of {what} fit the type that it is read into"))
    }

    /// A number of documents within bounds, multiplied by the scale; at least one.
    pub(super) fn scaled(
        &self,
        section: &Section,
        key: &str,
        value: &Spanned<i64>,
        scale: f64,
    ) -> Result<u64> {
        Ok(scaled(self.number(section, key, value)?, scale))
    }

    pub(super) fn unit<T, E: Display>(
        &self,
        value: &Spanned<String>,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Result<T> {
        parse(value.get_ref()).map_err(|error| self.error(value.span(), error.to_string()))
    }

    pub(super) fn time(
        &self,
        section: &Section,
        key: &str,
        text: &Spanned<String>,
    ) -> Result<Duration> {
        let time = self.unit(text, parse_duration)?;
        self.within(section, key, text, time, parse_duration)
    }

    pub(super) fn size(&self, section: &Section, key: &str, text: &Spanned<String>) -> Result<u64> {
        let bytes = self.unit(text, parse_size)?;
        self.within(section, key, text, bytes, parse_size)
    }

    /// A number with a fraction within bounds.
    pub(super) fn real(&self, section: &Section, key: &str, value: &Spanned<f64>) -> Result<f64> {
        self.within(section, key, value, *value.get_ref(), parse_number)
    }

    /// A value of a key, written at `place`, where it is within bounds.
    fn within<T: PartialOrd, P, E: Debug>(
        &self,
        section: &Section,
        key: &str,
        place: &Spanned<P>,
        value: T,
        read: impl Fn(&str) -> Result<T, E>,
    ) -> Result<T> {
        let checked = bounds::within(section, key, key, &value, read);
        checked.map(|()| value).map_err(|why| self.error(place.span(), why))
    }

    /// Settings as texts, each checked by whoever knows it.
    pub(super) fn settings(
        &self,
        settings: &Values,
        check_setting: &dyn Fn(&str, &str) -> Result<(), String>,
    ) -> Result<BTreeMap<String, String>> {
        let checked = settings.iter().map(|(name, value)| {
            let text = self.text_of(value, "a setting")?;
            // Name and value together: only the check knows which of the two is wrong.
            check_setting(name.get_ref(), &text)
                .map_err(|why| self.error(name.span().start..value.span().end, why))?;
            Ok((name.get_ref().clone(), text))
        });
        every(checked)
    }

    /// Strings, numbers and booleans as texts.
    pub(super) fn texts(&self, values: &Values, what: &str) -> Result<BTreeMap<String, String>> {
        let text = |(name, value): (&Spanned<String>, &Spanned<toml::Value>)| {
            Ok((name.get_ref().clone(), self.text_of(value, what)?))
        };
        every(values.iter().map(text))
    }

    fn text_of(&self, value: &Spanned<toml::Value>, what: &str) -> Result<String> {
        scalar::text(value.get_ref()).map_err(|found| {
            let hint = if found == "a table" { "; put a dotted name in quotes" } else { "" };
            let message =
                format!("{what} is a string, a number, true or false, found {found}{hint}");
            self.error(value.span(), message)
        })
    }
}

/// A whole number, multiplied by the scale; at least one.
pub(super) fn scaled(whole: u64, scale: f64) -> u64 {
    ((whole as f64 * scale).round() as u64).max(1)
}
