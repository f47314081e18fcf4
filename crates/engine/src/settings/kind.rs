//! What the value of a setting may be.

use std::time::Duration;

use record::units;

use super::watermark::Watermark;

/// The kind of a setting, with its bounds (both inclusive).
#[expect(missing_docs, reason = "the fields that a name says enough about have no description")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Bytes.
    Size { min: u64, max: u64 },
    /// Bytes a second; 0 and -1 mean no limit.
    Throttle,
    /// A whole number.
    Count { min: u64, max: u64 },
    /// A whole number from 0 on; -1 means none.
    Limit { max: u64 },
    /// A number from 0 on, with up to six decimals.
    Decimal,
    /// `true` or `false`.
    Bool,
    /// A time, or `-1` for never where it may be off.
    Duration { min: Duration, may_be_off: bool },
    /// One of these words.
    Word(&'static [&'static str]),
    /// `false`, or the least and the most replicas: `0-1`, `0-all`. The least may be so many.
    Expansion { max: u32 },
    /// `host:port`, one of them.
    Address,
    /// `host:port`, any number of them.
    Addresses,
    /// Names or patterns with `*`, any number of them.
    Names,
    /// How full a disk may be.
    Watermark,
    /// Anything.
    Text { chars_max: usize },
}

/// A value that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Typed {
    /// Bytes.
    Size(u64),
    /// Bytes a second; none means no limit.
    Throttle(Option<u64>),
    /// A whole number.
    Count(u64),
    /// A whole number, or none.
    Limit(Option<u64>),
    /// A number, in millionths.
    Decimal(u64),
    /// Yes or no.
    Bool(bool),
    /// A time; none means never.
    Duration(Option<Duration>),
    /// A word of the setting's list.
    Word(&'static str),
    /// `host:port` each.
    Addresses(Vec<String>),
    /// Names or patterns.
    Names(Vec<String>),
    /// How full a disk may be.
    Watermark(Watermark),
    /// As it was given.
    Text(String),
}

impl Kind {
    /// Reads a value. The error is a sentence that says what is accepted.
    pub fn read(self, text: &str) -> Result<Typed, String> {
        let text = text.trim();
        match self {
            Kind::Size { min, max } => read_size(text, min, max),
            Kind::Throttle => read_throttle(text),
            Kind::Count { min, max } => read_count(text, min, max),
            Kind::Limit { .. } if text == "-1" => Ok(Typed::Limit(None)),
            Kind::Limit { max } => match text.parse::<u64>() {
                Ok(count) if count <= max => Ok(Typed::Limit(Some(count))),
                _ => Err(format!("write a whole number from 0 to {max}, or -1 for none")),
            },
            Kind::Decimal => read_decimal(text),
            Kind::Bool => match text {
                "true" => Ok(Typed::Bool(true)),
                "false" => Ok(Typed::Bool(false)),
                _ => Err("write true or false".to_owned()),
            },
            Kind::Duration { min, may_be_off } => read_duration(text, min, may_be_off),
            Kind::Word(words) => match words.iter().find(|word| **word == text) {
                Some(word) => Ok(Typed::Word(word)),
                None if words.len() == 1 => Err(format!("leave it out, or write {}", words[0])),
                None => {
                    let hint = record::names::did_you_mean(text, words.iter().copied());
                    Err(format!("write one of {}{hint}", words.join(", ")))
                }
            },
            Kind::Expansion { max } => read_expansion(text, max),
            Kind::Address if parts(text).count() > 1 => Err("write one address".to_owned()),
            Kind::Address | Kind::Addresses => read_addresses(text),
            Kind::Names => Ok(Typed::Names(parts(text).map(str::to_owned).collect())),
            Kind::Watermark => Watermark::read(text).map(Typed::Watermark),
            Kind::Text { chars_max } if text.chars().count() > chars_max => {
                Err(format!("it may have {chars_max} characters"))
            }
            Kind::Text { .. } => Ok(Typed::Text(text.to_owned())),
        }
    }

    /// The one way to write a value: `1024kb` becomes `1mb`, every throttle that is off `-1`.
    ///
    /// A time in whole units stays as it was given, as Elasticsearch shows `60s` and not `1m`.
    pub(crate) fn canonical(self, text: &str) -> Result<String, String> {
        Ok(match self.read(text)? {
            Typed::Size(bytes) | Typed::Throttle(Some(bytes)) => units::show_size_setting(bytes),
            Typed::Throttle(None) | Typed::Duration(None) | Typed::Limit(None) => "-1".to_owned(),
            Typed::Count(count) | Typed::Limit(Some(count)) => count.to_string(),
            Typed::Decimal(millionths) => (millionths as f64 / MILLION).to_string(),
            Typed::Bool(yes) => yes.to_string(),
            Typed::Duration(Some(time)) => show_duration(text.trim(), time),
            Typed::Word(word) => word.to_owned(),
            Typed::Text(text) => text,
            Typed::Watermark(mark) => mark.to_string(),
            Typed::Addresses(list) | Typed::Names(list) => list.join(","),
        })
    }
}

const MILLION: f64 = 1e6;

fn read_decimal(text: &str) -> Result<Typed, String> {
    let number = text.parse::<f64>().ok().filter(|number| (0.0..=MILLION).contains(number));
    let number = number.ok_or("write a number from 0 to 1000000, such as 0.45")?;
    Ok(Typed::Decimal((number * MILLION).round() as u64))
}

fn read_size(text: &str, min: u64, max: u64) -> Result<Typed, String> {
    let bytes = units::parse_size(text).map_err(|error| error.to_string())?;
    if (min..=max).contains(&bytes) {
        return Ok(Typed::Size(bytes));
    }
    let [min, max] = [min, max].map(units::show_size_setting);
    Err(format!("it must be from {min} to {max}"))
}

fn read_throttle(text: &str) -> Result<Typed, String> {
    let rate = units::parse_throttle(text).map_err(|error| error.to_string())?;
    // A fraction of a byte a second rounds to zero, which would mean no limit.
    Ok(Typed::Throttle(rate.map(|bytes| bytes.max(1))))
}

fn read_count(text: &str, min: u64, max: u64) -> Result<Typed, String> {
    match text.parse::<u64>() {
        Ok(count) if (min..=max).contains(&count) => Ok(Typed::Count(count)),
        _ => Err(format!("write a whole number from {min} to {max}")),
    }
}

fn read_expansion(text: &str, max: u32) -> Result<Typed, String> {
    let is_range = text.split_once('-').is_some_and(|(least, most)| {
        let most = if most == "all" { Some(u32::MAX) } else { most.parse().ok() };
        let least = least.parse::<u32>().ok().filter(|least| *least <= max);
        least.zip(most).is_some_and(|(least, most)| least <= most)
    });
    if is_range || text == "false" {
        return Ok(Typed::Text(text.to_owned()));
    }
    Err(format!(
        "write false, or the least and the most replicas, such as 0-1 or 0-all; the least is {max} at most"
    ))
}

fn read_duration(text: &str, min: Duration, may_be_off: bool) -> Result<Typed, String> {
    if may_be_off && text == "-1" {
        return Ok(Typed::Duration(None));
    }
    let off = if may_be_off { "; -1 turns it off" } else { "" };
    let time = units::parse_duration(text).map_err(|error| format!("{error}{off}"))?;
    if time < min {
        return Err(format!("it must be at least {}{off}", show_duration("", min)));
    }
    Ok(Typed::Duration(Some(time)))
}

/// What stands between commas.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|part| !part.is_empty())
}

fn read_addresses(text: &str) -> Result<Typed, String> {
    // A space stands before the proxy that a node is reached through (`core::proxied`), and in no name of a host.
    let is_host = |host: &str| !host.is_empty() && !host.contains(char::is_whitespace);
    let mut list = Vec::new();
    for address in parts(text) {
        let port = address.rsplit_once(':').filter(|(host, _)| is_host(host));
        if !port.is_some_and(|(_, port)| port.parse::<u16>().is_ok_and(|port| port > 0)) {
            return Err(format!("\"{address}\" is no address; write host:port[,host:port...]"));
        }
        list.push(address.to_owned());
    }
    Ok(Typed::Addresses(list))
}

const TIME_UNITS: [(&str, u128); 7] = [
    ("d", 86_400_000_000_000),
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("micros", 1_000),
    ("nanos", 1),
];

/// A time in the largest unit in which it is whole.
pub(super) fn show_time(time: Duration) -> String {
    show_duration("", time)
}

fn show_duration(given: &str, time: Duration) -> String {
    let digits = given.bytes().take_while(u8::is_ascii_digit).count();
    let whole = digits > 0 && (digits == 1 || !given.starts_with('0'));
    if whole && TIME_UNITS.iter().any(|(unit, _)| *unit == &given[digits..]) {
        return given.to_owned();
    }
    let nanos = time.as_nanos();
    if nanos == 0 {
        return "0s".to_owned();
    }
    let fits = |factor: &u128| nanos.is_multiple_of(*factor);
    let (unit, factor) = TIME_UNITS.iter().find(|(_, f)| fits(f)).expect("1 divides everything");
    format!("{}{unit}", nanos / factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXPANSION: Kind = Kind::Expansion { max: 10 };
    const TIMEOUT: Kind = Kind::Duration { min: Duration::from_millis(1), may_be_off: false };

    #[test]
    fn writes_each_value_in_one_way() {
        let size = Kind::Size { min: 1, max: 1 << 30 };
        for (kind, given, canonical) in [
            (size, "1024kb", "1mb"),
            (size, " 1048577b ", "1048577b"),
            (Kind::Throttle, "80MB", "80mb"),
            (Kind::Throttle, "0", "-1"),
            (Kind::Throttle, "-1b", "-1"),
            (Kind::Throttle, "0.1b", "1b"),
            (Kind::Count { min: 1, max: 10 }, "05", "5"),
            (Kind::Limit { max: 10 }, "-1", "-1"),
            (Kind::Limit { max: 10 }, "010", "10"),
            (Kind::Bool, "true", "true"),
            (Kind::Decimal, "0.450", "0.45"),
            (Kind::Decimal, "1", "1"),
            (TIMEOUT, "60s", "60s"),
            (TIMEOUT, "0.5s", "500ms"),
            (TIMEOUT, "90 s", "90s"),
            (TIMEOUT, "1min", "1m"),
            (Kind::Duration { min: Duration::ZERO, may_be_off: true }, "-1", "-1"),
            (Kind::Duration { min: Duration::ZERO, may_be_off: true }, "0ms", "0ms"),
            (Kind::Addresses, "a:9300, [::1]:9301,", "a:9300,[::1]:9301"),
            (Kind::Addresses, "", ""),
            (Kind::Address, " a:9300", "a:9300"),
            (Kind::Names, "a, b-*,", "a,b-*"),
            (Kind::Watermark, "0.85", "85%"),
            (Kind::Watermark, "92.5%", "92.5%"),
            (Kind::Watermark, "1024mb", "1gb"),
            (EXPANSION, "false", "false"),
            (EXPANSION, " 0-9", "0-9"),
            (EXPANSION, "2-2", "2-2"),
            (EXPANSION, "10-all", "10-all"),
            (Kind::Text { chars_max: 9 }, "on, call ", "on, call"),
        ] {
            assert_eq!(kind.canonical(given).as_deref(), Ok(canonical), "{kind:?} {given}");
            assert_eq!(kind.canonical(canonical).as_deref(), Ok(canonical), "{canonical}");
        }
    }

    #[test]
    fn says_what_is_accepted() {
        for (kind, given, why) in [
            (Kind::Size { min: 1024, max: 1 << 30 }, "1b", "it must be from 1kb to 1gb"),
            (
                Kind::Throttle,
                "40",
                "\"40\" is not a rate; write a number with b, kb, mb, gb or tb, for example 40mb",
            ),
            (Kind::Count { min: 1, max: 10 }, "11", "write a whole number from 1 to 10"),
            (Kind::Count { min: 0, max: 10 }, "-1", "write a whole number from 0 to 10"),
            (Kind::Count { min: 1, max: 10 }, "2.0", "write a whole number from 1 to 10"),
            (Kind::Limit { max: 10 }, "-2", "write a whole number from 0 to 10, or -1 for none"),
            (Kind::Bool, "indexing_data", "write true or false"),
            (TIMEOUT, "0s", "it must be at least 1ms"),
            (Kind::Word(&["lz4", "zstd"]), "zst", "write one of lz4, zstd; did you mean \"zstd\"?"),
            (Kind::Addresses, "a:9300,b", "\"b\" is no address; write host:port[,host:port...]"),
            (Kind::Address, "a:9300,b:9300", "write one address"),
            (Kind::Addresses, ":9300", "\":9300\" is no address; write host:port[,host:port...]"),
            (
                Kind::Addresses,
                "a:1 via b:2",
                "\"a:1 via b:2\" is no address; write host:port[,host:port...]",
            ),
        ] {
            assert_eq!(kind.read(given), Err(why.to_owned()), "{kind:?} {given}");
        }
        for given in
            ["", "x", "true", "1", "-1", "0-", "-all", "0-x", "3-2", "11-12", "0--1", "0 - 1"]
        {
            let why = EXPANSION.read(given).unwrap_err();
            assert!(why.starts_with("write false, or the least"), "{given}: {why}");
        }
    }
}
