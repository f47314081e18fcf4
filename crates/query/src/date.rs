//! Moments as searches write them: dates, date math (`now-1d/d`), formats, and the units of calendars.
//!
//! Everything is milliseconds since 1970, UTC, in the proleptic Gregorian calendar.

mod format;

pub use format::DateFormat;

use crate::value::{DAY_MS, Moment, civil_date, days_in_month, days_to_month};
use crate::zone::Zone;

/// Some 300 000 years.
const MATH_LIMIT_MS: i64 = 10_000_000_000_000_000;

/// A unit of the calendar. Weeks begin on Mondays.
#[expect(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum CalendarUnit {
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Quarter,
    Year,
}

/// A unit's name, its short name, its letter in date math, its milliseconds, and its months where these differ.
type Unit = (CalendarUnit, &'static str, &'static str, u8, i64, i64);

/// In the order of [`CalendarUnit`].
const UNITS: [Unit; 8] = [
    (CalendarUnit::Second, "second", "1s", b's', 1000, 0),
    (CalendarUnit::Minute, "minute", "1m", b'm', 60_000, 0),
    (CalendarUnit::Hour, "hour", "1h", b'h', 3_600_000, 0),
    (CalendarUnit::Day, "day", "1d", b'd', DAY_MS, 0),
    (CalendarUnit::Week, "week", "1w", b'w', 7 * DAY_MS, 0),
    (CalendarUnit::Month, "month", "1M", b'M', 0, 1),
    (CalendarUnit::Quarter, "quarter", "1q", 0, 0, 3),
    (CalendarUnit::Year, "year", "1y", b'y', 0, 12),
];

impl CalendarUnit {
    /// The unit of `calendar_interval`: `month`, `1M`.
    pub fn of_interval(text: &str) -> Option<Self> {
        UNITS.iter().find(|unit| unit.1 == text || unit.2 == text).map(|unit| unit.0)
    }

    fn of_math(letter: u8) -> Option<Self> {
        let letter = if letter == b'H' { b'h' } else { letter };
        UNITS.iter().find(|unit| unit.3 == letter).map(|unit| unit.0)
    }

    /// Milliseconds of a unit whose length never changes.
    fn fixed_ms(self) -> Option<i64> {
        Some(UNITS[self as usize].4).filter(|ms| *ms > 0)
    }

    /// Whether days have several of it.
    pub fn is_within_days(self) -> bool {
        self.fixed_ms().is_some_and(|ms| ms < DAY_MS)
    }

    fn months(self) -> i64 {
        UNITS[self as usize].5
    }

    /// Milliseconds of the unit; of months and years, what they have on average.
    pub fn average_ms(self) -> i64 {
        // 400 years have 146 097 days.
        self.fixed_ms().unwrap_or(self.months() * 2_629_746_000)
    }

    /// The start of the unit that a moment lies in. Documents may have any moment: a start before the first one that
    /// an `i64` can say becomes that one.
    pub fn floor(self, ms: i64) -> i64 {
        match self.fixed_ms() {
            // 1970 began on a Thursday; weeks begin on Mondays.
            Some(unit) if self == CalendarUnit::Week => {
                let shift = 3 * DAY_MS;
                let weeks = ms.saturating_add(shift).div_euclid(unit);
                weeks.saturating_mul(unit).saturating_sub(shift)
            }
            Some(unit) => ms.div_euclid(unit).saturating_mul(unit),
            None => {
                let (year, month, _) = civil_date(ms.div_euclid(DAY_MS));
                let months = year * 12 + month - 1;
                let months = months.div_euclid(self.months()) * self.months();
                let days = days_to_month(months.div_euclid(12), months.rem_euclid(12) + 1);
                days.saturating_mul(DAY_MS)
            }
        }
    }

    /// A moment `count` units later. The 31st becomes the last of a shorter month.
    pub fn add(self, ms: i64, count: i64) -> i64 {
        if let Some(unit) = self.fixed_ms() {
            return ms.saturating_add(unit.saturating_mul(count));
        }
        let (year, month, day) = civil_date(ms.div_euclid(DAY_MS));
        let step = self.months().saturating_mul(count.clamp(-1_000_000, 1_000_000));
        let months = year * 12 + month - 1 + step;
        let (year, month) = (months.div_euclid(12), months.rem_euclid(12) + 1);
        let day = day.min(days_in_month(year, month));
        let days = days_to_month(year, month) + day - 1;
        days.saturating_mul(DAY_MS).saturating_add(ms.rem_euclid(DAY_MS))
    }
}

/// Milliseconds of a fixed interval: `90m`, `1.5h` is not one.
pub fn fixed_interval_ms(text: &str) -> Option<i64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let count: i64 = text[..digits].parse().ok()?;
    let unit = match &text[digits..] {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => DAY_MS,
        _ => return None,
    };
    count.checked_mul(unit).filter(|ms| *ms > 0)
}

/// What a date of a query is read with.
pub struct DateContext<'a> {
    /// The formats that are tried.
    pub format: &'a DateFormat,
    /// What `now` means, in milliseconds since 1970.
    pub now_ms: i64,
    /// Of dates that bring none.
    pub zone: &'a Zone,
}

impl DateContext<'_> {
    /// Reads a date with its math: `2024-01-01||+1M/d`, `now-15m`. `round_up` takes the last millisecond of what
    /// the text leaves open, as the upper end of a range does.
    pub fn resolve(&self, text: &str, round_up: bool) -> Result<i64, String> {
        if let Some(math) = text.strip_prefix("now") {
            return self.math(self.now_ms, math, round_up, text);
        }
        let (date, math) = text.split_once("||").unwrap_or((text, ""));
        let Moment { ms, open_ms, is_zoned } =
            self.format.read(date).ok_or_else(|| format!("failed to parse date field [{text}]"))?;
        let ms = if is_zoned { ms } else { self.zone.moment(ms) };
        // Math begins at the start of what was written.
        let ms = if round_up && math.is_empty() { ms.saturating_add(open_ms) } else { ms };
        self.math(ms, math, round_up, text)
    }

    fn math(&self, mut ms: i64, math: &str, round_up: bool, text: &str) -> Result<i64, String> {
        let wrong = || format!("failed to parse date math [{text}]");
        let mut rest = math.as_bytes();
        while let Some((sign, after)) = rest.split_first() {
            let digits = after.iter().take_while(|byte| byte.is_ascii_digit()).count();
            let unit =
                after.get(digits).and_then(|l| CalendarUnit::of_math(*l)).ok_or_else(wrong)?;
            let count = match digits {
                0 => 1,
                _ => math_number(&after[..digits]).ok_or_else(wrong)?,
            };
            rest = &after[digits + 1..];
            // Beyond this lies nothing that a date could be.
            ms = ms.clamp(-MATH_LIMIT_MS, MATH_LIMIT_MS);
            ms = match sign {
                b'+' => self.moved(unit, ms, |shown| unit.add(shown, count)),
                b'-' => self.moved(unit, ms, |shown| unit.add(shown, -count)),
                b'/' if digits == 0 && round_up => {
                    self.moved(unit, ms, |shown| unit.add(unit.floor(shown), 1)) - 1
                }
                b'/' if digits == 0 => self.moved(unit, ms, |shown| unit.floor(shown)),
                _ => return Err(wrong()),
            };
        }
        Ok(ms)
    }

    /// A moment after `to` has moved what clocks of the zone show then. Within days they go on as they are: an hour
    /// that they show twice is two. Days later, of two such hours it is that one whose offset is the one of before.
    fn moved(&self, unit: CalendarUnit, ms: i64, to: impl FnOnce(i64) -> i64) -> i64 {
        let shown = self.zone.local(ms);
        let (offset_ms, moved) = (shown - ms, to(shown));
        let unchanged = moved.saturating_sub(offset_ms);
        match unit.is_within_days() || self.zone.offset_ms(unchanged) == offset_ms {
            true => unchanged,
            false => self.zone.moment(moved),
        }
    }
}

fn math_number(digits: &[u8]) -> Option<i64> {
    std::str::from_utf8(digits).ok()?.parse().ok().filter(|n| *n < 1 << 40)
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::value::iso;

    pub(crate) fn at(text: &str) -> i64 {
        iso(text).unwrap().ms
    }

    /// What a text of a query says in a zone at a moment, rounded up or down.
    fn resolved(zone: &str, now: &str, text: &str, up: bool) -> Result<i64, String> {
        let (format, zone) = (DateFormat::default(), Zone::try_from(zone.to_owned()).unwrap());
        DateContext { format: &format, now_ms: at(now), zone: &zone }.resolve(text, up)
    }

    #[test]
    fn units_begin_where_calendars_say() {
        let moment = at("2024-08-15T13:47:11.250Z");
        for (unit, start, next) in [
            (CalendarUnit::Second, "2024-08-15T13:47:11Z", "2024-08-15T13:47:12Z"),
            (CalendarUnit::Minute, "2024-08-15T13:47:00Z", "2024-08-15T13:48:00Z"),
            (CalendarUnit::Hour, "2024-08-15T13:00:00Z", "2024-08-15T14:00:00Z"),
            (CalendarUnit::Day, "2024-08-15", "2024-08-16"),
            (CalendarUnit::Week, "2024-08-12", "2024-08-19"),
            (CalendarUnit::Month, "2024-08-01", "2024-09-01"),
            (CalendarUnit::Quarter, "2024-07-01", "2024-10-01"),
            (CalendarUnit::Year, "2024-01-01", "2025-01-01"),
        ] {
            assert_eq!(unit.floor(moment), at(start), "{unit:?}");
            assert_eq!(unit.add(at(start), 1), at(next), "{unit:?}");
        }
        assert_eq!(CalendarUnit::Month.add(at("2024-01-31"), 1), at("2024-02-29"));
        assert_eq!(CalendarUnit::Month.add(at("2024-03-31"), -13), at("2023-02-28"));
        assert_eq!(CalendarUnit::Week.floor(at("1969-12-31")), at("1969-12-29"));
        for (unit, ..) in UNITS {
            let (first, last) = (unit.floor(i64::MIN), unit.floor(i64::MAX));
            assert!(first < 0 && last > 0 && unit.add(last, 1) > last, "{unit:?}");
        }
    }

    #[test]
    fn reads_dates_of_queries() {
        let utc = |text: &str, up| resolved("UTC", "2024-02-29T12:00:00Z", text, up);
        for (text, down, up) in [
            ("2015-01-01", "2015-01-01", "2015-01-01T23:59:59.999Z"),
            ("2015-01", "2015-01-01", "2015-01-01T23:59:59.999Z"),
            ("2015-01-01T10", "2015-01-01T10:00:00Z", "2015-01-01T10:59:59.999Z"),
            ("2015-01-01T10:05:06Z", "2015-01-01T10:05:06Z", "2015-01-01T10:05:06.999Z"),
            ("now", "2024-02-29T12:00:00Z", "2024-02-29T12:00:00Z"),
            ("now-1y/d", "2023-02-28", "2023-02-28T23:59:59.999Z"),
            ("2015-01-31||+1M/M", "2015-02-01", "2015-02-28T23:59:59.999Z"),
            ("now+1h-30m", "2024-02-29T12:30:00Z", "2024-02-29T12:30:00Z"),
        ] {
            assert_eq!(utc(text, false), Ok(at(down)), "{text}");
            assert_eq!(utc(text, true), Ok(at(up)), "{text}");
        }
        for bad in ["yesterday", "now-", "now-1", "now/2d", "2015-01-01||+1x", "now-1d/"] {
            assert!(utc(bad, false).is_err(), "{bad}");
        }
        assert_eq!(utc("1711843200000", true), Ok(1_711_843_200_000));
        let east = |text: &str, up| resolved("+02:00", "2024-02-29T12:00:00Z", text, up);
        assert_eq!(east("1711843200000", false), Ok(1_711_836_000_000));
        assert_eq!(east("1711843200000||+1h", true), Ok(1_711_839_600_000));
        assert_eq!(east("2015-01-01", false), Ok(at("2014-12-31T22:00:00Z")));
        assert_eq!(east("2015-01-01T00:00:00Z", false), Ok(at("2015-01-01")));
    }

    #[test]
    fn math_counts_the_days_of_the_zone() {
        for (zone, text, moment) in [
            ("+02:00", "2015-03-01||+1M", "2015-03-31T22:00:00Z"),
            ("+02:00", "2015-03-01||+1h", "2015-02-28T23:00:00Z"),
            ("Europe/Paris", "2024-03-30||+1d", "2024-03-30T23:00:00Z"),
            ("Europe/Paris", "2024-03-30||+2d", "2024-03-31T22:00:00Z"),
            ("Europe/Paris", "2024-03-30||+48h", "2024-03-31T23:00:00Z"),
            ("Europe/Paris", "2024-04-05||-1w", "2024-03-28T23:00:00Z"),
            // Clocks left this time out.
            ("Europe/Paris", "2024-03-31T02:30", "2024-03-31T01:30:00Z"),
            ("Europe/Paris", "2024-03-30T02:30||+1d", "2024-03-31T01:30:00Z"),
            // Clocks show this hour for the second time.
            ("Europe/Paris", "now/h", "2024-10-27T01:00:00Z"),
            ("Europe/Paris", "now+1d-1d", "2024-10-27T01:30:00Z"),
            ("Europe/Paris", "now-1d+1d", "2024-10-27T00:30:00Z"),
            ("Europe/Paris", "now/d", "2024-10-26T22:00:00Z"),
        ] {
            let there = resolved(zone, "2024-10-27T01:30:00Z", text, false);
            assert_eq!(there, Ok(at(moment)), "{text}");
        }
    }

    #[test]
    fn intervals() {
        assert_eq!(fixed_interval_ms("90m"), Some(5_400_000));
        assert_eq!(["0d", "1M", "d", "1.5h"].map(fixed_interval_ms), [None; 4]);
    }

    proptest! {
        #[test]
        fn days_and_dates_are_one_to_one(days in -1_000_000i64..1_000_000) {
            let (year, month, day) = civil_date(days);
            prop_assert_eq!(days_to_month(year, month) + day - 1, days);
            prop_assert!((1..=12).contains(&month) && (1..=days_in_month(year, month)).contains(&day));
        }

        #[test]
        fn never_panics(text in "(now|2015-01-01)?(\\|\\|)?[-+/0-9smhdwMy]{0,12}", up in any::<bool>()) {
            let _ = resolved("UTC", "1970-01-01", &text, up);
        }
    }
}
