//! What a plan may say of its laps and its link; the command line may say no more.

use std::ops::RangeInclusive;
use std::time::Duration;

use record::units::{ParseError, parse_duration, parse_rate, parse_size, show_size_setting};

use crate::error::{Error, Result};

/// The least and the most that something may be, and how it is written.
pub struct Bounds<T> {
    what: &'static str,
    range: RangeInclusive<T>,
    read: fn(&str) -> Result<T, ParseError>,
    show: fn(&T) -> String,
}

/// The most that the documents of a corpus are multiplied by.
const SCALE_MAX: f64 = 1e6;
/// Repetitions of every variant.
pub const LAPS: RangeInclusive<i64> = 1..=1000;
/// Round-trip time of a link.
pub const RTT: Bounds<Duration> = Bounds {
    what: "rtt",
    range: Duration::ZERO..=Duration::from_secs(60),
    read: parse_duration,
    show: |rtt| format!("{}s", rtt.as_secs()),
};
/// Bytes a second of a link.
pub const RATE: Bounds<u64> = Bounds {
    what: "rate",
    range: 1_000..=125_000_000_000,
    read: parse_rate,
    show: |rate| match rate / 125 {
        kbit if kbit >= 1_000_000 => format!("{}gbit", kbit / 1_000_000),
        kbit => format!("{kbit}kbit"),
    },
};
/// Bytes that a connection may have under way: up to the most that TCP can announce, RFC 7323.
pub const WINDOW: Bounds<u64> = Bounds {
    what: "window",
    range: 1 << 10..=1 << 30,
    read: parse_size,
    show: |bytes| show_size_setting(*bytes),
};

impl<T: PartialOrd> Bounds<T> {
    /// Reads a text with a unit. The error is a sentence.
    pub fn read(&self, text: &str) -> Result<T, String> {
        self.check((self.read)(text).map_err(|error| error.to_string())?)
    }

    /// The value, where it is within the bounds. The error is a sentence.
    pub fn check(&self, value: T) -> Result<T, String> {
        within(self.what, &value, &self.range, self.show)?;
        Ok(value)
    }
}

/// Refuses a number that no corpus can be multiplied by.
pub fn check_scale(scale: f64) -> Result<()> {
    match scale > 0.0 && scale <= SCALE_MAX {
        true => Ok(()),
        false => Err(Error::Scale { scale }),
    }
}

/// Checks that `value` is within `bounds`; the message shows those with `show`.
pub(crate) fn within<T: PartialOrd>(
    what: &str,
    value: &T,
    bounds: &RangeInclusive<T>,
    show: impl Fn(&T) -> String,
) -> Result<(), String> {
    if bounds.contains(value) {
        return Ok(());
    }
    let (least, most) = (show(bounds.start()), show(bounds.end()));
    Err(format!("{what} is out of range; give {least} to {most}"))
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
