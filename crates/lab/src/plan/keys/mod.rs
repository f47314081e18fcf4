//! Every key of a plan's file: what it holds, its default, an example. Plans are checked against this table, and
//! `docs/plans.md` and `narrows plans --keys` are written from it. The tables of a plan are in `document.rs`.
//!
//! | file | holds |
//! | --- | --- |
//! | `steps` | the steps, and the options of each |
//! | `check` | a file against the table: every mistake, and what to write instead |
//! | `markdown` | the table as a document |

mod check;
mod markdown;
#[rustfmt::skip]
pub(super) mod steps;
#[cfg(test)]
mod tests;

use std::fmt::Debug;
use std::ops::RangeInclusive;
use std::str::FromStr;

use super::topology::Cluster;

pub(super) use check::{Checked, check};
pub use markdown::markdown;

/// The default of a key without which nothing is done.
pub(super) const NONE: &str = "none";

/// A table of a plan's file.
#[derive(Debug)]
pub(super) struct Section {
    /// As a file writes it, with brackets: `[link]`, `[[index]]`.
    pub(super) title: &'static str,
    /// What it is for, in one or two sentences.
    pub(super) about: &'static str,
    pub(super) keys: &'static [Key],
}

#[derive(Debug)]
pub(super) struct Key {
    pub(super) name: &'static str,
    pub(super) holds: Holds,
    /// What counts where the key is not given; none where it has to be given.
    pub(super) default: Option<&'static str>,
    /// A value as a file writes it.
    pub(super) example: &'static str,
    pub(super) about: &'static str,
    pub(super) bounds: Option<Bounds>,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Bounds {
    /// The least and the most, as a file writes them; of a key that takes requests as well those of its times.
    Within(&'static str, &'static str),
    /// What messages call a whole number, and its bounds, with a leader of so many nodes.
    OfLeader(fn(Cluster) -> (String, RangeInclusive<i64>)),
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Holds {
    /// Any text.
    Text,
    Texts,
    /// A text with a unit of time.
    Time,
    /// A text with a unit of bytes.
    Size,
    /// A text with a unit of bits or bytes a second.
    Rate,
    Whole,
    Number,
    /// A text with a unit of time, or a whole number of requests.
    TimeOrRequests,
    /// A list of values, each of them a text, a number, true or false.
    Values,
    /// A table of names, each with a text, a number, true or false: settings, or columns.
    Settings,
    /// A table of anything.
    Anything,
    /// A table of parameters of the virtual world, each a table of its own.
    Parameters(&'static Section),
    /// The list of steps.
    Steps,
    /// A table.
    Table(&'static Section),
    /// A list of tables.
    Tables(&'static Section),
}

impl Section {
    pub(super) fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.name == name)
    }

    pub(super) fn names(&self) -> Vec<&'static str> {
        self.keys.iter().map(|key| key.name).collect()
    }

    /// The bounds of a key, as a file writes them and as `read` reads them. The key has some, and a test reads all.
    pub(super) fn bounds<T, E: Debug>(
        &self,
        name: &str,
        read: impl Fn(&str) -> Result<T, E>,
    ) -> ([&'static str; 2], RangeInclusive<T>) {
        match self.key(name).and_then(|key| key.bounds) {
            Some(Bounds::Within(least, most)) => {
                let [from, to] =
                    [least, most].map(|text| read(text).expect("bounds that are read"));
                ([least, most], from..=to)
            }
            _ => unreachable!("{name} of {} has no bounds", self.title),
        }
    }
}

/// A number as a file writes it.
pub(super) fn parse_number<T: FromStr>(text: &str) -> Result<T, T::Err> {
    text.replace('_', "").parse()
}

impl Holds {
    /// What it is in words, with its article.
    fn words(self) -> &'static str {
        match self {
            Holds::Text => "a text",
            Holds::Texts => "a list of texts",
            Holds::Time => "a time, which is a text with a unit",
            Holds::Size => "a size, which is a text with a unit",
            Holds::Rate => "a rate, which is a text with a unit",
            Holds::Whole => "a whole number",
            Holds::Number => "a number",
            Holds::TimeOrRequests => "a time, which is a text with a unit, or a number of requests",
            Holds::Values => "a list of texts and numbers",
            Holds::Settings => "a table of names and values",
            Holds::Anything | Holds::Table(_) => "a table",
            Holds::Parameters(_) => "a table of parameters",
            Holds::Steps => "a list of steps",
            Holds::Tables(_) => "a list of tables",
        }
    }

    /// What it is in a column of a table.
    fn column(self) -> &'static str {
        match self {
            Holds::Time => "time",
            Holds::Size => "size",
            Holds::Rate => "rate",
            Holds::TimeOrRequests => "requests, or time",
            Holds::Settings => "names and values",
            other => {
                let words = other.words();
                words.strip_prefix("a ").unwrap_or(words)
            }
        }
    }
}

pub(super) const fn needed(
    name: &'static str,
    holds: Holds,
    example: &'static str,
    about: &'static str,
) -> Key {
    Key { name, holds, default: None, example, about, bounds: None }
}

pub(super) const fn optional(
    name: &'static str,
    holds: Holds,
    default: &'static str,
    example: &'static str,
    about: &'static str,
) -> Key {
    Key { name, holds, default: Some(default), example, about, bounds: None }
}

impl Key {
    pub(super) const fn within(self, least: &'static str, most: &'static str) -> Key {
        Key { bounds: Some(Bounds::Within(least, most)), ..self }
    }
}

/// Makes a type and a section of each table. A key is `field: what the type has = what the section says of it`, by the
/// name of its field, unless another one stands beside that.
macro_rules! tables {
    (@name $field:ident) => {
        stringify!($field)
    };
    (@name $field:ident $name:literal) => {
        $name
    };
    ($($type:ident $section:ident: $title:literal, $about:literal {
        $($(#[$default:meta])? $field:ident $($name:literal)?: $holds:ty = $key:ident($($said:expr),*)$(.within($($bound:expr),*))?;)*
    })*) => {
        $(
            #[derive(Clone, Debug, Deserialize)]
            pub(in crate::plan) struct $type {
                $($(#[$default])? $(#[serde(rename = $name)])? pub(in crate::plan) $field: $holds,)*
            }

            pub(in crate::plan) static $section: Section = Section {
                title: $title,
                about: $about,
                keys: &[$($key(tables!(@name $field $($name)?), $($said),*)$(.within($($bound),*))?),*],
            };
        )*

        #[cfg(test)]
        pub(in crate::plan) static TYPES: &[(&Section, $crate::plan::keys::Refuses)] =
            &[$((&$section, |table| $type::deserialize(table).err())),*];
    };
}
pub(super) use tables;

/// What a type says is wrong with a table, if anything is.
#[cfg(test)]
pub(super) type Refuses = fn(toml::de::Deserializer<'static>) -> Option<toml::de::Error>;
