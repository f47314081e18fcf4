//! Sizes, rates and times as people write and read them.
//!
//! Two families, as in the field: sizes of settings are powers of 1024 (`1mb` is 1 048 576 bytes, as
//! in Elasticsearch), rates of links are powers of 1000 (`1gbit` is 10^9 bits a second). What is shown
//! to people is in powers of 1000 (`MB/s`), as the source documents do.

use std::fmt::Display;
use std::time::Duration;

/// A text that is no size, rate or time; the message says what is accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{text}\" is not a {what}; write {}", self.example())]
pub struct ParseError {
    text: String,
    what: &'static str,
    accepted: Accepted,
}

/// How something is written: `a number with b or kb, for example 1mb`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Accepted {
    /// What is accepted, in words.
    words: &'static str,
    /// Examples: a number with the unit that stands behind it.
    examples: &'static [(&'static str, &'static str)],
}

const SIZE: Accepted = Accepted {
    words: "a number with b, kb, mb, gb or tb, ",
    examples: &[("64", "kb"), ("1", "mb")],
};
const THROTTLE: Accepted = Accepted { examples: &[("40", "mb")], ..SIZE };
const RATE: Accepted =
    Accepted { words: "", examples: &[("1", "gbit"), ("100", "mbit"), ("12.5", "MB/s")] };
const TIME: Accepted = Accepted {
    words: "a number with micros, ms, s, m, h or d, ",
    examples: &[("100", "ms"), ("10", "s")],
};

impl ParseError {
    /// Where a number lacks its unit, the examples are of that number; nobody wants a rate of 0.
    fn example(&self) -> String {
        let bare = self.text.trim();
        let is_bare = bare.parse::<f64>().is_ok_and(|number| number.is_finite() && number > 0.0);
        let one = |(number, unit): &(&str, &str)| match is_bare {
            true => format!("{bare}{unit}"),
            false => format!("{number}{unit}"),
        };
        let mut examples: Vec<String> = self.accepted.examples.iter().map(one).collect();
        let last = examples.pop().unwrap_or_default();
        let before = match examples.is_empty() {
            true => String::new(),
            false => format!("{} or ", examples.join(", ")),
        };
        format!("{}for example {before}{last}", self.accepted.words)
    }
}

fn split_number(text: &str) -> Option<(f64, String)> {
    let text = text.trim();
    let end = text
        .char_indices()
        .find(|(i, c)| !(c.is_ascii_digit() || *c == '.' || (*i == 0 && *c == '-')))
        .map_or(text.len(), |(i, _)| i);
    let number: f64 = text[..end].parse().ok()?;
    number.is_finite().then(|| (number, text[end..].trim().to_ascii_lowercase()))
}

fn parse(
    text: &str,
    what: &'static str,
    accepted: Accepted,
    factor: impl Fn(&str) -> Option<f64>,
) -> Result<f64, ParseError> {
    let error = || ParseError { text: text.to_owned(), what, accepted };
    let (number, unit) = split_number(text).ok_or_else(error)?;
    let value = number * factor(&unit).ok_or_else(error)?;
    if value.abs() <= 9.0e18 { Ok(value) } else { Err(error()) }
}

/// Bytes of a size setting: `64kb`, `1mb`, `5MB`, `10gb`. Powers of 1024; `0` alone needs no unit. Fails if it is none,
/// or negative; the error has an example, as in all of these.
pub fn parse_size(text: &str) -> Result<u64, ParseError> {
    let error = || ParseError { text: text.to_owned(), what: "size", accepted: SIZE };
    let bytes = parse_bytes(text, "size", SIZE)?;
    if bytes < 0.0 { Err(error()) } else { Ok(bytes.round() as u64) }
}

/// Bytes a second of a throttle setting: a size, where `0` and `-1` mean no limit. Less is refused, as in the field.
pub fn parse_throttle(text: &str) -> Result<Option<u64>, ParseError> {
    let bytes = parse_bytes(text, "rate", THROTTLE)?;
    if bytes < -1.0 {
        return Err(ParseError { text: text.to_owned(), what: "rate", accepted: THROTTLE });
    }
    // Less than half a byte a second is next to nothing, and not no limit.
    Ok((bytes > 0.0).then(|| (bytes.round() as u64).max(1)))
}

/// As in Elasticsearch, `0` and `-1` alone may stand without a unit.
fn parse_bytes(text: &str, what: &'static str, accepted: Accepted) -> Result<f64, ParseError> {
    let needs_no_unit = matches!(text.trim(), "0" | "-1");
    parse(text, what, accepted, |unit| match unit {
        "" => needs_no_unit.then_some(1.0),
        _ => size_factor(unit),
    })
}

fn size_factor(unit: &str) -> Option<f64> {
    Some(match unit {
        "b" => 1.0,
        "k" | "kb" | "kib" => 1024.0,
        "m" | "mb" | "mib" => 1_048_576.0,
        "g" | "gb" | "gib" => 1_073_741_824.0,
        "t" | "tb" | "tib" => 1_099_511_627_776.0,
        _ => return None,
    })
}

/// Bytes a second of a link: `1gbit`, `100mbit`, `12.5MB/s`. Powers of 1000. Fails below one byte a second.
pub fn parse_rate(text: &str) -> Result<u64, ParseError> {
    let error = || ParseError { text: text.to_owned(), what: "rate", accepted: RATE };
    let rate = parse(text, "rate", RATE, |unit| {
        Some(match unit {
            "bit" | "bit/s" => 0.125,
            "kbit" | "kbit/s" => 125.0,
            "mbit" | "mbit/s" => 125e3,
            "gbit" | "gbit/s" => 125e6,
            "b/s" => 1.0,
            "kb/s" => 1e3,
            "mb/s" => 1e6,
            "gb/s" => 1e9,
            _ => return None,
        })
    })?;
    if rate < 1.0 { Err(error()) } else { Ok(rate.round() as u64) }
}

/// How a microsecond is shown everywhere, and the same with a Greek letter, which keyboards and editors write.
const MICRO: &str = "µs";
const GREEK_MICRO: &str = "\u{3bc}s";

/// A time: `100ms`, `30s`, `5m`, `1h`, `10d`, `250micros`; `us` and `µs` are read, too. Fails if it is negative.
pub fn parse_duration(text: &str) -> Result<Duration, ParseError> {
    let error = || ParseError { text: text.to_owned(), what: "time", accepted: TIME };
    let seconds = parse(text, "time", TIME, |unit| {
        Some(match unit {
            "nanos" | "ns" => 1e-9,
            "micros" | "us" | MICRO | GREEK_MICRO => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            "m" | "min" => 60.0,
            "h" => 3600.0,
            "d" => 86400.0,
            _ => return None,
        })
    })?;
    Duration::try_from_secs_f64(seconds).map_err(|_| error())
}

/// A time in which something can be waited for or measured. Fails if it is no time, or 0.
pub fn parse_time_above_zero(text: &str) -> Result<Duration, ParseError> {
    let zero = ParseError { text: text.to_owned(), what: "time above 0", accepted: TIME };
    Some(parse_duration(text)?).filter(|time| !time.is_zero()).ok_or(zero)
}

/// A size for people: `4.90 GB`, `633 MB`, `512 B`. Powers of 1000, three digits.
pub fn show_bytes(bytes: u64) -> String {
    scaled(bytes as f64, &["B", "kB", "MB", "GB", "TB", "PB"])
}

/// A rate for people: `118 MB/s`.
pub fn show_rate(bytes_per_s: f64) -> String {
    scaled(bytes_per_s, &["B/s", "kB/s", "MB/s", "GB/s", "TB/s", "PB/s"])
}

/// A time as plans write it, in its largest unit, which reads back as it is: `30s`, `42.4ms`, `250µs`.
pub fn show_time_setting(time: Duration) -> String {
    let nanos = time.as_nanos();
    for (unit, factor) in [("s", 1_000_000_000), ("ms", 1_000_000), (MICRO, 1000)] {
        if nanos == 0 || (nanos >= factor && nanos.is_multiple_of(factor / 1000)) {
            return format!("{}{unit}", nanos as f64 / factor as f64);
        }
    }
    format!("{nanos}ns")
}

/// A chunk size as settings write it: `64kb`, `1mb`; bytes where it is no round number.
pub fn show_size_setting(bytes: u64) -> String {
    for (unit, factor) in [("gb", 1u64 << 30), ("mb", 1 << 20), ("kb", 1 << 10)] {
        if bytes >= factor && bytes.is_multiple_of(factor) {
            return format!("{}{unit}", bytes / factor);
        }
    }
    format!("{bytes}b")
}

/// Between thousands: narrow, and no line is broken there.
const THOUSANDS: char = '\u{202f}';

/// A number of things for people: `5000`, and with narrow spaces `17 021 194 000`.
pub fn show_count(count: u64) -> String {
    let digits = count.to_string();
    let mut shown = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && digits.len() > 4 && (digits.len() - at).is_multiple_of(3) {
            shown.push(THOUSANDS);
        }
        shown.push(digit);
    }
    shown
}

/// A number and what it counts, or does: `1 copy waits`, `3 copies wait`.
pub fn counted(count: impl Display, one: &str, many: &str) -> String {
    let count = count.to_string();
    let what = if count == "1" { one } else { many };
    format!("{count} {what}")
}

fn scaled(value: f64, units: &[&str]) -> String {
    let mut value = value;
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < units.len() {
        value /= 1000.0;
        unit += 1;
    }
    let digits = if unit == 0 || value >= 99.95 {
        0
    } else if value >= 9.995 {
        1
    } else {
        2
    };
    format!("{value:.digits$} {}", units[unit])
}

/// From here on a time is told in minutes.
const MINUTES_FROM_S: f64 = 99.95;

/// A time for people: `3:59:45`, `1:13`, `47.3 s`, `820 ms`, `< 1 ms`; it reads 0 only where it is nought.
pub fn show_seconds(seconds: f64) -> String {
    if !seconds.is_finite() {
        return "-".to_owned();
    }
    match seconds {
        s if s >= MINUTES_FROM_S => clock(s),
        s if s >= 9.995 => format!("{s:.1} s"),
        s if s >= 0.9995 => format!("{s:.2} s"),
        s if is_lost(s, 0.0005) => "< 1 ms".to_owned(),
        s => format!("{:.0} ms", s * 1000.0),
    }
}

/// A time for people, written as a longer one that stands beside it: `1:13` beside `1:43`, `0.82 s` beside `1.20 s`.
pub fn show_seconds_beside(seconds: f64, other: f64) -> String {
    match seconds.max(other) {
        _ if !seconds.is_finite() || !other.is_finite() => show_seconds(seconds),
        // Of few seconds a clock would lose a digit that counts.
        longer if longer >= MINUTES_FROM_S && seconds >= 9.995 => clock(seconds),
        // Of still fewer it would lose all that there are.
        longer if longer >= 0.9995 && seconds < 0.9995 && !is_lost(seconds, 0.005) => {
            format!("{seconds:.2} s")
        }
        _ => show_seconds(seconds),
    }
}

/// Two times for people, the first written as the second: `1:22 to 1:40`, `0.82 s to 1.20 s`.
pub fn show_interval(soon: f64, late: f64) -> String {
    let is_clock = late >= MINUTES_FROM_S && late.is_finite() && soon.is_finite();
    let first = match is_clock && !is_lost(soon, 0.5) {
        true => clock(soon),
        false => show_seconds_beside(soon, late),
    };
    format!("{first} to {}", show_seconds(late))
}

/// Whether a time that is not nought would read 0 where less than `least` does.
fn is_lost(seconds: f64, least: f64) -> bool {
    seconds > 0.0 && seconds < least
}

/// From when to when something was so, as exactly as tells both ends apart: `0 to 27 s`, `1:20 to 2:05`.
pub fn show_span(from: f64, to: f64) -> String {
    let [first, last] = [from, to].map(clock);
    if to >= MINUTES_FROM_S && first != last {
        let first = if first == "0:00" { "0" } else { first.as_str() };
        return format!("{first} to {last}");
    }
    let (factor, unit, least) = match to {
        to if to < 0.9995 => (1000.0, "ms", 0),
        to if to < 9.95 => (1.0, "s", 1),
        _ => (1.0, "s", 0),
    };
    let number = |seconds: f64, digits: usize| match format!("{:.digits$}", seconds * factor) {
        text if digits == 0 => text,
        text => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
    };
    let differs = |digits: &usize| number(from, *digits) != number(to, *digits);
    let digits = (least..3).find(differs).unwrap_or(least);
    format!("{} to {} {unit}", number(from, digits), number(to, digits))
}

fn clock(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match whole / 3600 {
        0 => format!("{}:{:02}", whole / 60, whole % 60),
        hours => format!("{hours}:{:02}:{:02}", whole % 3600 / 60, whole % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_the_field_writes() {
        assert_eq!(parse_size("64kb"), Ok(65536));
        assert_eq!(parse_size("5MB"), Ok(5 << 20));
        assert_eq!(parse_size("0"), Ok(0));
        assert_eq!(parse_throttle("-1"), Ok(None));
        assert_eq!(parse_throttle("0"), Ok(None));
        assert!(["-5mb", "-1kb"].iter().all(|below| parse_throttle(below).is_err()));
        assert_eq!(parse_throttle("40mb"), Ok(Some(40 << 20)));
        assert_eq!(parse_throttle("0.4b"), Ok(Some(1)));
        assert_eq!(parse_rate("1gbit"), Ok(125_000_000));
        assert_eq!(parse_rate("12.5MB/s"), Ok(12_500_000));
        assert_eq!(parse_duration("100ms"), Ok(Duration::from_millis(100)));
        for text in ["20micros", "20us", "20µs", "20 \u{3bc}s"] {
            assert_eq!(parse_duration(text), Ok(Duration::from_micros(20)), "{text}");
        }
    }

    #[test]
    fn counts_are_parted_where_they_are_long() {
        let shown = [0, 5000, 10_000, 904_000, 17_021_194_000].map(show_count);
        let shown = shown.map(|text| text.replace(THOUSANDS, " "));
        assert_eq!(shown, ["0", "5000", "10 000", "904 000", "17 021 194 000"]);
    }

    #[test]
    fn what_is_counted_is_one_or_many() {
        let copies = |count: f64| counted(count, "copy waits", "copies wait");
        assert_eq!([0.0, 1.0, 3.0].map(copies), ["0 copies wait", "1 copy waits", "3 copies wait"]);
    }

    #[test]
    fn refuses_with_an_example() {
        for bad in ["", "mb", "1xb", "-1mb", "1e999", "."] {
            assert!(parse_size(bad).is_err(), "{bad}");
        }
        let said = parse_rate("fast").unwrap_err().to_string();
        assert_eq!(said, "\"fast\" is not a rate; write for example 1gbit, 100mbit or 12.5MB/s");
        let said = parse_rate("100").unwrap_err().to_string();
        assert_eq!(said, "\"100\" is not a rate; write for example 100gbit, 100mbit or 100MB/s");
        let said = parse_throttle("40").unwrap_err().to_string();
        assert!(said.ends_with("gb or tb, for example 40mb"), "{said}");
        let said = parse_size("64").unwrap_err().to_string();
        assert!(said.ends_with("for example 64kb or 64mb"), "{said}");
        let said = parse_rate("0").unwrap_err().to_string();
        assert!(said.ends_with("for example 1gbit, 100mbit or 12.5MB/s"), "{said}");
        let said = parse_duration("50").unwrap_err().to_string();
        assert!(said.ends_with("m, h or d, for example 50ms or 50s"), "{said}");
        assert_eq!(parse_time_above_zero("1ms"), Ok(Duration::from_millis(1)));
        let said = parse_time_above_zero("0s").unwrap_err().to_string();
        assert!(said.starts_with("\"0s\" is not a time above 0; write a number with"), "{said}");
    }

    #[test]
    fn shows_three_digits() {
        assert_eq!(show_bytes(4_900_000_000), "4.90 GB");
        assert_eq!(show_bytes(512), "512 B");
        assert_eq!(show_rate(118.4e6), "118 MB/s");
        assert_eq!(show_seconds(14384.9), "3:59:45");
        assert_eq!(show_seconds(3599.7), "1:00:00");
        assert_eq!(show_seconds(73.3), "73.3 s");
        assert_eq!(show_size_setting(5 << 20), "5mb");
    }

    #[test]
    fn both_ends_of_an_interval_are_written_alike() {
        assert_eq!(show_interval(81.7, 99.6), "81.7 s to 99.6 s");
        assert_eq!(show_interval(81.7, 100.4), "1:22 to 1:40");
        assert_eq!(show_interval(754.0, 3754.0), "12:34 to 1:02:34");
        assert_eq!(show_interval(0.82, 1.2), "0.82 s to 1.20 s");
        assert_eq!(show_interval(0.0, 0.5), "0 ms to 500 ms");
        for (seconds, other, shown) in [
            (73.3, 103.0, "1:13"),
            (103.0, 73.3, "1:43"),
            (73.3, 61.0, "73.3 s"),
            (0.82, 1.2, "0.82 s"),
            (5.42, 287.0, "5.42 s"),
            (0.0, 1.2, "0.00 s"),
            (0.004, 1.2, "4 ms"),
            (0.0003, 287.0, "< 1 ms"),
        ] {
            assert_eq!(show_seconds_beside(seconds, other), shown);
        }
        for (soon, late, shown) in [
            (0.0, 120.0, "0:00 to 2:00"),
            (0.3, 120.0, "0.30 s to 2:00"),
            (0.003, 120.0, "3 ms to 2:00"),
            (0.003, 1.2, "3 ms to 1.20 s"),
            (0.0003, 0.5, "< 1 ms to 500 ms"),
        ] {
            assert_eq!(
                show_interval(soon, late),
                shown,
                "what is not nought is not shown as nought"
            );
        }
        for (from, to, shown) in [
            (0.0, 27.0, "0 to 27 s"),
            (80.0, 125.0, "1:20 to 2:05"),
            (0.0, 300.0, "0 to 5:00"),
            (2.0, 3.0, "2 to 3 s"),
            (0.5, 7.3, "0.5 to 7.3 s"),
            (26.6, 27.1, "26.6 to 27.1 s"),
            (125.2, 125.4, "125.2 to 125.4 s"),
            (0.02, 0.5, "20 to 500 ms"),
            (5.0, 5.0, "5 to 5 s"),
        ] {
            assert_eq!(show_span(from, to), shown);
        }
    }
}
