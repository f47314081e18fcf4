//! Values from their texts: dates, addresses, points.

use std::net::{IpAddr, Ipv6Addr};

use time::{Date, Month, UtcDateTime};

/// What a bare number in a date field counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DateUnit {
    /// Milliseconds since 1970, the default (`epoch_millis`).
    Millis,
    /// Seconds since 1970 (`epoch_second`).
    Seconds,
}

impl DateUnit {
    /// What the `format` of a date field says of bare numbers.
    pub fn of_format(format: &str) -> Self {
        let mut parts = format.split("||").map(str::trim);
        if parts.any(|part| part == "epoch_second") { DateUnit::Seconds } else { DateUnit::Millis }
    }

    /// Milliseconds since 1970.
    pub fn to_millis(self, number: i64) -> i64 {
        match self {
            DateUnit::Millis => number,
            DateUnit::Seconds => number.saturating_mul(1000),
        }
    }
}

/// The calendar repeats itself after 400 years. With it, dates reach as far as milliseconds do; those of `time` end
/// with the year 9999.
const CYCLE_YEARS: i64 = 400;
const CYCLE_DAYS: i64 = 146_097;

/// Days from 1970-01-01 to the first of a month (1 to 12), in the proleptic Gregorian calendar.
pub fn days_to_month(year: i64, month: i64) -> i64 {
    let month = Month::try_from(month as u8).expect("a month is 1 to 12");
    let within_cycle = Date::from_calendar_date(year.rem_euclid(CYCLE_YEARS) as i32, month, 1)
        .expect("the first of a month exists");
    let days = within_cycle.to_julian_day() - UtcDateTime::UNIX_EPOCH.to_julian_day();
    i64::from(days) + year.div_euclid(CYCLE_YEARS) * CYCLE_DAYS
}

/// Year, month and day, so many days after 1970-01-01.
pub fn civil_date(days: i64) -> (i64, i64, i64) {
    let within_cycle = days.rem_euclid(CYCLE_DAYS) as i32;
    let date = Date::from_julian_day(UtcDateTime::UNIX_EPOCH.to_julian_day() + within_cycle)
        .expect("400 years from 1970 on are dates");
    let year = i64::from(date.year()) + days.div_euclid(CYCLE_DAYS) * CYCLE_YEARS;
    (year, u8::from(date.month()).into(), date.day().into())
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

    /// A fraction of a second in milliseconds; further digits are cut off.
    fn millis(&mut self) -> Option<i64> {
        let digits = self.0.iter().take_while(|b| b.is_ascii_digit()).count();
        let fraction = &self.0[..digits];
        self.0 = &self.0[digits..];
        let digit = |i: usize| fraction.get(i).map_or(0, |d| i64::from(d - b'0'));
        (digits > 0).then(|| digit(0) * 100 + digit(1) * 10 + digit(2))
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

/// Milliseconds since 1970 of [`iso`], or a number in a string.
pub fn date_millis(text: &str, unit: DateUnit) -> Option<i64> {
    let is_number = |t: &str| !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit());
    if text.len() > 4 && is_number(text.strip_prefix('-').unwrap_or(text)) {
        return text.parse().ok().map(|number| unit.to_millis(number));
    }
    iso(text).map(|moment| moment.ms)
}

/// `2024-05-06T07:08:09.123+02:00` and its shorter forms, a space in place of the T.
pub fn iso(text: &str) -> Option<Moment> {
    let mut rest = Digits(text.as_bytes());
    let year = rest.number(4)?;
    let (mut month, mut day) = (1, 1);
    let mut of_day = Moment { ms: 0, open_ms: 86_400_000 - 1, is_zoned: false };
    if rest.skip(b"-/").is_some() {
        month = rest.number(2)?;
        if rest.skip(b"-/").is_some() {
            day = rest.number(2)?;
            if rest.skip(b"Tt ").is_some() && !rest.0.is_empty() {
                of_day = time_of_day(&mut rest)?;
            }
        }
    }
    let fits = rest.0.is_empty() && (1..=12).contains(&month) && (1..=31).contains(&day);
    let days_ms = || (days_to_month(year, month) + day - 1) * 86_400_000;
    fits.then(|| Moment { ms: days_ms() + of_day.ms, ..of_day })
}

fn time_of_day(rest: &mut Digits) -> Option<Moment> {
    let hour = rest.number(2)?;
    let (mut minute, mut second, mut millis, mut open_ms) = (0, 0, 0, 3_600_000 - 1);
    if rest.skip(b":").is_some() {
        (minute, open_ms) = (rest.number(2)?, 60_000 - 1);
        if rest.skip(b":").is_some() {
            (second, open_ms) = (rest.number(2)?, 999);
            if rest.skip(b".,").is_some() {
                (millis, open_ms) = (rest.millis()?, 0);
            }
        }
    }
    if hour > 24 || minute > 59 || second > 60 {
        return None;
    }
    let zone = rest.skip(b"Zz+-");
    let mut offset = 0;
    if let Some(sign @ (b'+' | b'-')) = zone {
        let hours = rest.number(2)?;
        rest.skip(b":");
        let minutes = if rest.0.is_empty() { 0 } else { rest.number(2)? };
        offset = (hours * 60 + minutes) * if sign == b'-' { -1 } else { 1 };
    }
    let ms = ((hour * 60 + minute - offset) * 60 + second) * 1000 + millis;
    Some(Moment { ms, open_ms, is_zoned: zone.is_some() })
}

/// An address; IPv4 as an IPv4-mapped IPv6 address.
pub fn ip(text: &str) -> Option<Ipv6Addr> {
    match text.parse().ok()? {
        IpAddr::V4(v4) => Some(v4.to_ipv6_mapped()),
        IpAddr::V6(v6) => Some(v6),
    }
}

/// An address as it was written: IPv4 where it is one.
pub fn show_ip(address: &Ipv6Addr) -> String {
    address.to_ipv4_mapped().map_or_else(|| address.to_string(), |v4| v4.to_string())
}

/// `"lat,lon"`.
pub fn point(text: &str) -> Option<(f64, f64)> {
    let (lat, lon) = text.split_once(',')?;
    Some((lat.trim().parse().ok()?, lon.trim().parse().ok()?))
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
            ("2024-02-29 12:30:15", 1_709_209_815_000),
            ("2024-02-29T12:30:15.1239+02:00", 1_709_202_615_123),
            ("1969-12-31T23:59:59,5Z", -500),
            ("1998", 883_612_800_000),
            ("1998-06", 896_659_200_000),
            ("2013/10/05", 1_380_931_200_000),
            ("893964617000", 893_964_617_000),
        ];
        for (text, millis) in cases {
            assert_eq!(date_millis(text, DateUnit::Millis), Some(millis), "{text}");
        }
        assert_eq!(date_millis("893964617", DateUnit::Seconds), Some(893_964_617_000));
        for bad in
            ["", "today", "2024-13-01", "2024-01-32", "2024-01-01T25:00", "2024-1-1", "20-01"]
        {
            assert_eq!(date_millis(bad, DateUnit::Millis), None, "{bad}");
        }
    }

    #[test]
    fn reads_points_and_addresses() {
        assert_eq!(point("51.52, -0.14"), Some((51.52, -0.14)));
        assert_eq!(point("51.52"), None);
        assert!(is_point(90.0, -180.0) && !is_point(90.5, 0.0) && !is_point(f64::NAN, 0.0));
        assert_eq!(ip("10.0.0.1").unwrap().to_ipv4_mapped().unwrap().octets(), [10, 0, 0, 1]);
        assert_eq!(ip("10.0.0"), None);
    }
}
