//! What a plan may say of its laps and its link; the command line may say no more.

use std::fmt::{Debug, Display};
use std::time::Duration;

use record::units::{ParseError, parse_duration, parse_rate, parse_size};

use super::document::{LINK, PLAN};
use super::keys::{Section, parse_number};
use crate::error::{Error, Result};

/// The least and the most that something may be, by its key in plans, and how it is written.
pub struct Bounds<T> {
    section: &'static Section,
    key: &'static str,
    read: fn(&str) -> Result<T, ParseError>,
}

/// The most that the documents of a corpus are multiplied by.
const SCALE_MAX: f64 = 1e6;
/// Round-trip time of a link.
pub static RTT: Bounds<Duration> = Bounds { section: &LINK, key: "rtt", read: parse_duration };
/// Bytes a second of a link.
pub static RATE: Bounds<u64> = Bounds { section: &LINK, key: "rate", read: parse_rate };
/// Bytes that a connection may have under way: up to the most that TCP can announce, RFC 7323.
pub static WINDOW: Bounds<u64> = Bounds { section: &LINK, key: "window", read: parse_size };

impl<T: PartialOrd> Bounds<T> {
    /// Reads a text with a unit. The error is a sentence.
    pub fn read(&self, text: &str) -> Result<T, String> {
        self.check((self.read)(text).map_err(|error| error.to_string())?)
    }

    /// The value, where it is within the bounds. The error is a sentence.
    pub fn check(&self, value: T) -> Result<T, String> {
        within(self.section, self.key, self.key, &value, self.read)?;
        Ok(value)
    }
}

/// Refuses laps that no plan may have.
pub(crate) fn check_laps(laps: Option<u32>) -> Result<()> {
    let checked = laps.map(|laps| within(&PLAN, "laps", "--laps", &i64::from(laps), parse_number));
    checked.transpose().map(drop).map_err(Error::usage)
}

/// Refuses a number that no corpus can be multiplied by.
pub fn check_scale(scale: f64) -> Result<()> {
    match scale > 0.0 && scale <= SCALE_MAX {
        true => Ok(()),
        false => Err(Error::Scale { scale }),
    }
}

/// Checks that a value is within the bounds of a key; the message calls it `what`.
pub(super) fn within<T: PartialOrd, E: Debug>(
    section: &Section,
    key: &str,
    what: &str,
    value: &T,
    read: impl Fn(&str) -> Result<T, E>,
) -> Result<(), String> {
    let ([least, most], bounds) = section.bounds(key, read);
    let out = || out_of_range(what, least, most);
    bounds.contains(value).then_some(()).ok_or_else(out)
}

pub(super) fn out_of_range(what: &str, least: impl Display, most: impl Display) -> String {
    format!("{what} is out of range; give {least} to {most}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_out_of_range_is_told_what_is_in_it() {
        assert_eq!(RTT.read("60s"), Ok(Duration::from_secs(60)));
        assert_eq!(WINDOW.read("0b").unwrap_err(), "window is out of range; give 1kb to 1gb");
    }
}
