//! Values: as requests write them, and from their texts: dates, addresses, points.

use std::cmp::Ordering;
use std::net::{IpAddr, Ipv6Addr};

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::Offset;
use serde::{Deserialize, Serialize};

/// A value of a query, as it was written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Literal {
    /// A string.
    Text(String),
    /// A whole number.
    Integer(i64),
    /// Another number.
    Float(f64),
    /// True or false.
    Boolean(bool),
    /// An address that a hit is sorted by; IPv4 is mapped into IPv6. Requests have texts in its place.
    Address(Ipv6Addr),
    /// What a document without a value has in a tuple (`missing_bucket`).
    Null,
}

impl Literal {
    /// Its text, as an analyzer or a parser of dates reads it.
    pub fn text(&self) -> String {
        match self {
            Literal::Text(text) => text.clone(),
            Literal::Integer(number) => number.to_string(),
            // As JSON has it, `2.0`, and so as documents are indexed. JSON has no infinity.
            Literal::Float(number) => match serde_json::Number::from_f64(*number) {
                Some(written) => written.to_string(),
                None => number.to_string(),
            },
            Literal::Boolean(yes) => yes.to_string(),
            Literal::Address(address) => show_ip(address),
            Literal::Null => "null".to_owned(),
        }
    }

    /// As a number, where it is one.
    pub fn number(&self) -> f64 {
        match self {
            Literal::Integer(number) => *number as f64,
            Literal::Float(number) => *number,
            _ => f64::NAN,
        }
    }

    /// The order of hits and of buckets. Indices may map a field differently: numbers come before addresses, and these
    /// before texts. Null comes before all.
    pub fn order(&self, other: &Self) -> Ordering {
        let rank = |value: &Literal| match value {
            Literal::Text(_) => 2,
            Literal::Address(_) => 1,
            Literal::Null => -1,
            _ => 0,
        };
        match (self, other) {
            (Literal::Integer(a), Literal::Integer(b)) => a.cmp(b),
            (Literal::Text(a), Literal::Text(b)) => a.cmp(b),
            (Literal::Address(a), Literal::Address(b)) => a.cmp(b),
            (a, b) => rank(a).cmp(&rank(b)).then(a.number().total_cmp(&b.number())),
        }
    }

    /// The order of values of which some are missing: these come last in either direction.
    pub fn order_of(a: &Option<Self>, b: &Option<Self>, descending: bool) -> Ordering {
        match (a, b) {
            (Some(a), Some(b)) if descending => b.order(a),
            (Some(a), Some(b)) => a.order(b),
            (a, b) => b.is_some().cmp(&a.is_some()),
        }
    }

    /// As a hit shows it: JSON has no infinity, which the field writes as a string.
    pub fn json(&self) -> serde_json::Value {
        match self {
            Literal::Text(text) => text.as_str().into(),
            Literal::Integer(number) => (*number).into(),
            Literal::Float(f64::INFINITY) => "Infinity".into(),
            Literal::Float(f64::NEG_INFINITY) => "-Infinity".into(),
            Literal::Float(number) => (*number).into(),
            Literal::Boolean(yes) => (*yes).into(),
            Literal::Address(address) => show_ip(address).into(),
            Literal::Null => serde_json::Value::Null,
        }
    }
}

/// Milliseconds of a day.
pub const DAY_MS: i64 = 86_400_000;

/// The calendar repeats itself after 400 years. With it, dates reach as far as milliseconds do; those of `jiff` end
/// with the year 9999.
const CYCLE_YEARS: i64 = 400;
const CYCLE_DAYS: i64 = 146_097;

/// The first of a month (1 to 12), in the first of these cycles.
fn first_of_month(year: i64, month: i64) -> Date {
    let within_cycle = Date::new(year.rem_euclid(CYCLE_YEARS) as i16, month as i8, 1);
    within_cycle.expect("a month is 1 to 12")
}

/// Days from 1970-01-01 to a date.
fn days_to(date: Date) -> i64 {
    date.duration_since(Date::constant(1970, 1, 1)).as_hours() / 24
}

/// Days from 1970-01-01 to the first of a month (1 to 12), in the proleptic Gregorian calendar.
pub fn days_to_month(year: i64, month: i64) -> i64 {
    days_to(first_of_month(year, month)) + year.div_euclid(CYCLE_YEARS) * CYCLE_DAYS
}

/// Year, month and day, so many days after 1970-01-01.
pub fn civil_date(days: i64) -> (i64, i64, i64) {
    let within_cycle = Timestamp::from_second(days.rem_euclid(CYCLE_DAYS) * (DAY_MS / 1000))
        .expect("400 years from 1970 on are dates");
    let date = Offset::UTC.to_datetime(within_cycle);
    let year = i64::from(date.year()) + days.div_euclid(CYCLE_DAYS) * CYCLE_YEARS;
    (year, date.month().into(), date.day().into())
}

pub(crate) fn days_in_month(year: i64, month: i64) -> i64 {
    first_of_month(year, month).days_in_month().into()
}

/// A reader over the text's bytes.
struct Digits<'a>(&'a [u8]);

impl Digits<'_> {
    fn number(&mut self, digits: usize) -> Option<i64> {
        let head = self.0.get(..digits)?;
        if !head.iter().all(u8::is_ascii_digit) {
            return None;
        }
        self.0 = &self.0[digits..];
        Some(head.iter().fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0')))
    }

    fn skip(&mut self, any_of: &[u8]) -> Option<u8> {
        let first = *self.0.first().filter(|first| any_of.contains(first))?;
        self.0 = &self.0[1..];
        Some(first)
    }
}

/// A moment as it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Milliseconds since 1970.
    pub ms: i64,
    /// What the text leaves open behind it: a day for a date alone. Elasticsearch fills in hours, minutes, seconds and
    /// fractions when it rounds up, but never months or days.
    pub open_ms: i64,
    /// Whether the text says of which time zone it is.
    pub is_zoned: bool,
}

impl Moment {
    /// Of year, month, day, hour, minute and second, and minutes that clocks are ahead; none of a day that no calendar
    /// has, or of a time that no clock shows.
    pub(crate) fn of(
        [year, month, day, hour, minute, second]: [i64; 6],
        millis: i64,
        offset: Option<i64>,
        open_ms: i64,
    ) -> Option<Moment> {
        let small = |part: i64| i8::try_from(part).ok();
        let date = Date::new(i16::try_from(year).ok()?, small(month)?, small(day)?).ok()?;
        let is_time = hour <= 23 && minute <= 59 && second <= 59;
        let of_day = ((hour * 60 + minute - offset.unwrap_or(0)) * 60 + second) * 1000 + millis;
        let ms = days_to(date) * DAY_MS + of_day;
        is_time.then_some(Moment { ms, open_ms, is_zoned: offset.is_some() })
    }
}

/// The parts of a date: what may stand before each, its digits, and what is open where it is the last one.
const PARTS: [(&[u8], usize, i64); 6] = [
    (b"", 4, DAY_MS - 1),
    (b"-", 2, DAY_MS - 1),
    (b"-", 2, DAY_MS - 1),
    (b"T", 2, 3_600_000 - 1),
    (b":", 2, 60_000 - 1),
    (b":", 2, 999),
];

/// No time zone is further from UTC.
const MAX_OFFSET_MINUTES: i64 = 18 * 60;

/// `2024-05-06T07:08:09.123+02:00` and its shorter forms. A space in place of the T, a day that no calendar has and a
/// time that no clock shows are refused, as by `strict_date_optional_time` of the field.
pub fn iso(text: &str) -> Option<Moment> {
    let mut rest = Digits(text.as_bytes());
    let (mut parts, mut read, mut open_ms) = ([0, 1, 1, 0, 0, 0], 0, 0);
    for (before, digits, open) in PARTS {
        let goes_on = read == 0 || rest.skip(before).is_some();
        if !goes_on || (read == 3 && rest.0.is_empty()) {
            break;
        }
        (parts[read], open_ms, read) = (rest.number(digits)?, open, read + 1);
    }
    let mut millis = 0;
    if read == 6 && rest.skip(b".,").is_some() {
        let digits = rest.0.iter().take_while(|byte| byte.is_ascii_digit()).count();
        // Further digits are cut off.
        let kept = digits.min(3);
        millis = rest.number(kept).filter(|_| kept > 0)? * 10i64.pow(3 - kept as u32);
        (rest, open_ms) = (Digits(&rest.0[digits - kept..]), 0);
    }
    let offset = match rest.0 {
        [] => None,
        zone if read > 3 => Some(offset_minutes(zone)?),
        _ => return None,
    };
    Moment::of(parts, millis, offset, open_ms)
}

/// Minutes that clocks are ahead of UTC, as a date ends: `Z`, `+02:00`, `+0200`, `+02`.
pub(crate) fn offset_minutes(text: &[u8]) -> Option<i64> {
    let mut rest = Digits(text);
    let sign = match rest.skip(b"Z+-")? {
        b'Z' => return rest.0.is_empty().then_some(0),
        b'-' => -1,
        _ => 1,
    };
    let hours = rest.number(2)?;
    rest.skip(b":");
    let minutes = if rest.0.is_empty() { 0 } else { rest.number(2).filter(|of| *of < 60)? };
    let offset = hours * 60 + minutes;
    (rest.0.is_empty() && offset <= MAX_OFFSET_MINUTES).then_some(sign * offset)
}

/// An address; IPv4 as an IPv4-mapped IPv6 address.
pub fn ip(text: &str) -> Option<Ipv6Addr> {
    match text.parse().ok()? {
        IpAddr::V4(v4) => Some(v4.to_ipv6_mapped()),
        IpAddr::V6(v6) => Some(v6),
    }
}

/// An address as it was written: IPv4 where it is one.
fn show_ip(address: &Ipv6Addr) -> String {
    address.to_ipv4_mapped().map_or_else(|| address.to_string(), |v4| v4.to_string())
}

/// `"lat,lon"`.
pub fn point(text: &str) -> Option<(f64, f64)> {
    let number = |text: &str| text.trim().parse().ok();
    if let Some((lat, lon)) = text.split_once(',') {
        return Some((number(lat)?, number(lon)?));
    }
    let within = text.strip_prefix("POINT")?.trim().strip_prefix('(')?.strip_suffix(')')?;
    let (lon, lat) = within.trim().split_once(' ')?;
    Some((number(lat)?, number(lon)?))
}

/// Whether a point lies on Earth.
pub fn is_point(lat: f64, lon: f64) -> bool {
    (-90.0..=90.0).contains(&lat) && (-180.0..=180.0).contains(&lon)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_dates() {
        let cases = [
            ("1970-01-01", 0),
            ("2000-03-01T00:00:00Z", 951_868_800_000),
            ("2024-02-29T12:30:15", 1_709_209_815_000),
            ("2024-02-29T12:30:15.1239+02:00", 1_709_202_615_123),
            ("1969-12-31T23:59:59,5Z", -500),
            ("1998", 883_612_800_000),
            ("1998-06", 896_659_200_000),
        ];
        for (text, millis) in cases {
            assert_eq!(iso(text).map(|moment| moment.ms), Some(millis), "{text}");
        }
        for bad in [
            "", "today", "2024-1-1", "20-01", "2013/10/05", "2024-02-29 12:30:15",
            "2024-02-29t12:30:15", "2024-02-29T12:30:15z",
        ] {
            assert_eq!(iso(bad), None, "{bad}");
        }
        for (last, beyond) in [
            ("2024-12-31", "2024-13-01"),
            ("2024-01-31", "2024-01-32"),
            ("2024-02-29", "2024-02-30"),
            ("2024-02-29", "2023-02-29"),
            ("2024-04-30", "2024-04-31"),
            ("2024-01-01T23:00", "2024-01-01T24:00"),
            ("2024-01-01T10:59", "2024-01-01T10:60"),
            ("2024-01-01T10:00:59", "2024-01-01T10:00:60"),
            ("2024-01-01T10:00+18:00", "2024-01-01T10:00+18:01"),
            ("2024-01-01T10:00-05:59", "2024-01-01T10:00-05:60"),
        ] {
            assert!(iso(last).is_some() && iso(beyond).is_none(), "{last} {beyond}");
        }
    }

    #[test]
    fn fractional_numbers_have_the_texts_of_json() {
        for number in [2.0, -0.5, 1e21, 1.2e-7] {
            let written = serde_json::json!(number).to_string();
            assert_eq!(Literal::Float(number).text(), written);
        }
        assert_eq!(Literal::Float(2.0).text(), "2.0");
        assert_eq!(Literal::Float(f64::INFINITY).text(), "inf");
    }

    #[test]
    fn reads_points_and_addresses() {
        assert_eq!(point("51.52, -0.14"), Some((51.52, -0.14)));
        assert_eq!(point("POINT (-0.14 51.52)"), Some((51.52, -0.14)));
        assert_eq!((point("51.52"), point("POINT (1, 2)"), point("POINT 1 2")), (None, None, None));
        assert!(is_point(90.0, -180.0) && !is_point(90.5, 0.0) && !is_point(f64::NAN, 0.0));
        assert_eq!(ip("10.0.0.1").unwrap().to_ipv4_mapped().unwrap().octets(), [10, 0, 0, 1]);
        assert_eq!(ip("10.0.0"), None);
    }
}
