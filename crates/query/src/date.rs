//! Moments as searches write them: dates, date math (`now-1d/d`), formats, and the units of calendars.
//!
//! Everything is milliseconds since 1970, UTC, in the proleptic Gregorian calendar.

use crate::value::{Moment, civil_date, days_in_month, days_to_month, iso};
use crate::zone::Zone;

/// Milliseconds of a day.
pub const DAY_MS: i64 = 86_400_000;
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

/// How a date is written: what was given as `format`, as `a||b`. The first one writes.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct DateFormat(Vec<Form>);

#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
enum Form {
    /// ISO 8601 (`strict_date_optional_time` and its like).
    Iso,
    Millis,
    Seconds,
    Pattern(String),
}

/// Each date is written with all of its format, and read with each of several.
const MAX_FORMAT_BYTES: usize = 1024;

const ISO_NAMES: &str = "date_optional_time strict_date_optional_time strict_date_optional_time_nanos date_time \
                         strict_date_time iso8601";

impl Default for DateFormat {
    fn default() -> Self {
        DateFormat(vec![Form::Iso, Form::Millis])
    }
}

impl DateFormat {
    /// Reads a format. The error says which part is not known.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.len() > MAX_FORMAT_BYTES {
            let len = text.len();
            return Err(format!("a date format of {len} bytes is longer than {MAX_FORMAT_BYTES}"));
        }
        let forms = text.split("||").map(str::trim).map(|part| match part {
            "epoch_millis" => Ok(Form::Millis),
            "epoch_second" => Ok(Form::Seconds),
            "date" | "strict_date" => Ok(Form::Pattern("yyyy-MM-dd".to_owned())),
            "basic_date" => Ok(Form::Pattern("yyyyMMdd".to_owned())),
            "year_month" | "strict_year_month" => Ok(Form::Pattern("yyyy-MM".to_owned())),
            "year" | "strict_year" => Ok(Form::Pattern("yyyy".to_owned())),
            name if ISO_NAMES.split(' ').any(|known| known == name) => Ok(Form::Iso),
            pattern => {
                pieces(pattern)?;
                Ok(Form::Pattern(pattern.to_owned()))
            }
        });
        Ok(DateFormat(forms.collect::<Result<_, String>>()?))
    }

    /// Reads a format that an earlier build took: those of its forms that are read by now, or the default where none
    /// is.
    pub(crate) fn stored(text: &str) -> Self {
        let read = text.split("||").filter_map(|part| DateFormat::parse(part).ok());
        let forms: Vec<Form> = read.flat_map(|format| format.0).collect();
        if forms.is_empty() { DateFormat::default() } else { DateFormat(forms) }
    }

    /// `epoch_millis`
    pub fn millis() -> Self {
        DateFormat(vec![Form::Millis])
    }

    /// Writes a moment.
    pub fn show(&self, ms: i64) -> String {
        match self.0.first() {
            Some(Form::Millis) => ms.to_string(),
            // With what there is of a fraction.
            Some(Form::Seconds) if ms % 1000 != 0 => {
                let (sign, ms) = (if ms < 0 { "-" } else { "" }, ms.unsigned_abs());
                let text = format!("{sign}{}.{:03}", ms / 1000, ms % 1000);
                text.trim_end_matches('0').to_owned()
            }
            Some(Form::Seconds) => (ms / 1000).to_string(),
            Some(Form::Pattern(pattern)) => show_pattern(pattern, ms),
            Some(Form::Iso) | None => show_pattern("yyyy-MM-dd'T'HH:mm:ss.SSS'Z'", ms),
        }
    }

    /// Writes a moment as a clock of a zone shows it, with the zone's offset.
    pub fn show_in_zone(&self, ms: i64, zone: &Zone) -> String {
        if zone.is_utc() || matches!(self.0.first(), Some(Form::Millis | Form::Seconds)) {
            return self.show(ms);
        }
        let text = self.show(zone.local(ms));
        match (self.0.first(), text.strip_suffix('Z')) {
            (Some(Form::Iso), Some(local)) => {
                let offset = zone.offset_ms(ms);
                let (sign, minutes) = (if offset < 0 { '-' } else { '+' }, offset.abs() / 60_000);
                format!("{local}{sign}{:02}:{:02}", minutes / 60, minutes % 60)
            }
            _ => text,
        }
    }

    /// Milliseconds since 1970 of a text in one of the forms.
    pub(crate) fn read_ms(&self, text: &str) -> Option<i64> {
        self.read(text).map(|moment| moment.ms)
    }

    /// As [`DateFormat::read_ms`], of a text that was accepted before: an earlier build took `2024/05/06 07:08:09z` for
    /// ISO 8601, too.
    pub(crate) fn read_stored_ms(&self, text: &str) -> Option<i64> {
        let iso_ms = || {
            let text = text.replace('/', "-").replace([' ', 't'], "T").replace('z', "Z");
            iso(&text).filter(|_| self.0.contains(&Form::Iso)).map(|moment| moment.ms)
        };
        self.read_ms(text).or_else(iso_ms)
    }

    /// Milliseconds since 1970 of a whole number, which is read as its text is.
    pub(crate) fn read_number_ms(&self, number: i64) -> Option<i64> {
        self.0.iter().find_map(|form| match form {
            Form::Millis => Some(number),
            Form::Seconds => number.checked_mul(1000),
            // Four digits are a year, others no date. So the text is not written where there are many documents.
            Form::Iso => (1000..=9999).contains(&number).then(|| days_to_month(number, 1) * DAY_MS),
            Form::Pattern(pattern) => Some(read_pattern(pattern, &number.to_string())?.ms),
        })
    }

    fn read(&self, text: &str) -> Option<Moment> {
        let exact = |ms| Moment { ms, open_ms: 0, is_zoned: true };
        self.0.iter().find_map(|form| match form {
            Form::Millis => epoch(text, 1).map(exact),
            Form::Seconds => epoch(text, 1000).map(exact),
            Form::Iso => iso(text),
            Form::Pattern(pattern) => read_pattern(pattern, text),
        })
    }
}

/// Milliseconds of a number of units since 1970; what is less than one is cut off.
fn epoch(text: &str, unit_ms: i64) -> Option<i64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let is_fraction = !fraction.is_empty() && fraction.bytes().all(|byte| byte.is_ascii_digit());
    let ms = whole.parse::<i64>().ok().filter(|_| is_fraction)?.checked_mul(unit_ms)?;
    let thousandths = fraction.bytes().chain(*b"000").take(3);
    let thousandths = thousandths.fold(0, |ms, digit| ms * 10 + i64::from(digit - b'0'));
    let below = thousandths * unit_ms / 1000;
    ms.checked_add(if whole.starts_with('-') { -below } else { below })
}

enum Piece<'a> {
    Field(u8, usize),
    Text(&'a str),
}

fn pieces(pattern: &str) -> Result<Vec<Piece<'_>>, String> {
    let bytes = pattern.as_bytes();
    let mut found = Vec::with_capacity(bytes.len().min(16));
    let mut at = 0;
    while at < bytes.len() {
        let first = bytes[at];
        if first == b'\'' {
            let end = pattern[at + 1..].find('\'').ok_or("a quote has no end")? + at + 1;
            found.push(Piece::Text(&pattern[at + 1..end]));
            at = end + 1;
        } else if first.is_ascii_alphabetic() {
            let count = bytes[at..].iter().take_while(|byte| **byte == first).count();
            if !b"yuMdHmsS".contains(&first) || count > 9 {
                return Err(format!(
                    "date format [{pattern}] has [{}], which is not read here; known are y, M, d, H, \
                     m, s and S",
                    char::from(first)
                ));
            }
            if count > 2 && b"MdHms".contains(&first) {
                return Err(format!(
                    "date format [{pattern}] has [{}], which is not read here; months are numbers, and they, days, hours, \
                     minutes and seconds have one letter or two",
                    &pattern[at..at + count]
                ));
            }
            found.push(Piece::Field(first, count));
            at += count;
        } else if b"[]{}#".contains(&first) {
            return Err(format!(
                "date format [{pattern}] has [{}], which stands for no sign of its own and is not read here; optional \
                 parts are written as several formats: yyyy-MM-dd||yyyy-MM",
                char::from(first)
            ));
        } else {
            let len = pattern[at..].chars().next().map_or(1, char::len_utf8);
            found.push(Piece::Text(&pattern[at..at + len]));
            at += len;
        }
    }
    Ok(found)
}

/// Writes a number with zeros in front, as `{value:0width$}` does, which takes too long: histograms show many dates.
fn put(text: &mut String, value: i64, width: usize) {
    let rest = width.saturating_sub(1);
    if value < 0 {
        text.push('-');
        return put(text, -value, rest);
    }
    if value > 9 || rest > 0 {
        put(text, value / 10, rest);
    }
    text.push(char::from(b'0' + (value % 10) as u8));
}

fn show_pattern(pattern: &str, ms: i64) -> String {
    let (year, month, day) = civil_date(ms.div_euclid(DAY_MS));
    let of_day = ms.rem_euclid(DAY_MS);
    let mut text = String::with_capacity(24);
    for piece in pieces(pattern).unwrap_or_default() {
        match piece {
            Piece::Text(literal) => text.push_str(literal),
            Piece::Field(letter, width) => {
                let value = match letter {
                    b'y' | b'u' if width == 2 => year.rem_euclid(100),
                    b'y' | b'u' => year,
                    b'M' => month,
                    b'd' => day,
                    b'H' => of_day / 3_600_000,
                    b'm' => of_day / 60_000 % 60,
                    b's' => of_day / 1000 % 60,
                    _ => of_day % 1000 * 1_000_000 / 10i64.pow(9 - width as u32),
                };
                put(&mut text, value, width);
            }
        }
    }
    text
}

fn read_pattern(pattern: &str, text: &str) -> Option<Moment> {
    let (mut year, mut month, mut day, mut of_day, mut open) = (1970, 1, 1, 0, DAY_MS - 1);
    let mut rest = text;
    for piece in pieces(pattern).ok()? {
        let (letter, width) = match piece {
            Piece::Text(literal) => {
                rest = rest.strip_prefix(literal)?;
                continue;
            }
            Piece::Field(letter, width) => (letter, width),
        };
        let most = if width == 1 { 9 } else { width };
        let digits = rest.bytes().take(most).take_while(u8::is_ascii_digit).count();
        if digits == 0 || (width > 1 && digits < width) {
            return None;
        }
        let number: i64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        // What no clock shows is refused, as the field's strict resolver does.
        let greatest = match letter {
            b'H' => 23,
            b'm' | b's' => 59,
            _ => i64::MAX,
        };
        if number > greatest {
            return None;
        }
        match letter {
            b'y' | b'u' => year = if width == 2 { 2000 + number } else { number },
            b'M' => month = number,
            b'd' => day = number,
            b'H' => (of_day, open) = (of_day + number * 3_600_000, open.min(3_600_000 - 1)),
            b'm' => (of_day, open) = (of_day + number * 60_000, open.min(60_000 - 1)),
            b's' => (of_day, open) = (of_day + number * 1000, open.min(999)),
            _ => {
                let millis = number * 10i64.pow(9 - digits as u32) / 1_000_000;
                (of_day, open) = (of_day + millis, 0);
            }
        }
    }
    let fits = rest.is_empty()
        && (0..=9999).contains(&year)
        && (1..=12).contains(&month)
        && (1..=days_in_month(year, month.clamp(1, 12))).contains(&day)
        && of_day < DAY_MS;
    let ms = || (days_to_month(year, month) + day - 1) * DAY_MS + of_day;
    fits.then(|| Moment { ms: ms(), open_ms: open, is_zoned: text.ends_with('Z') })
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
                b'+' => unit.add(ms, count),
                b'-' => unit.add(ms, -count),
                b'/' if digits == 0 => {
                    let start = unit.floor(self.zone.local(ms));
                    match round_up {
                        true => self.zone.moment(unit.add(start, 1)) - 1,
                        false => self.zone.moment(start),
                    }
                }
                _ => return Err(wrong()),
            };
        }
        Ok(ms)
    }
}

fn math_number(digits: &[u8]) -> Option<i64> {
    std::str::from_utf8(digits).ok()?.parse().ok().filter(|n| *n < 1 << 40)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(text: &str) -> i64 {
        iso(text).unwrap().ms
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
        let (iso, utc) = (DateFormat::default(), Zone::default());
        let context = DateContext { format: &iso, now_ms: at("2024-02-29T12:00:00Z"), zone: &utc };
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
            assert_eq!(context.resolve(text, false), Ok(at(down)), "{text}");
            assert_eq!(context.resolve(text, true), Ok(at(up)), "{text}");
        }
        for bad in ["yesterday", "now-", "now-1", "now/2d", "2015-01-01||+1x", "now-1d/"] {
            assert!(context.resolve(bad, false).is_err(), "{bad}");
        }
        let zone = Zone::try_from("+02:00".to_owned()).unwrap();
        let east = DateContext { zone: &zone, ..context };
        assert_eq!(east.resolve("2015-01-01", false), Ok(at("2014-12-31T22:00:00Z")));
        assert_eq!(east.resolve("2015-01-01T00:00:00Z", false), Ok(at("2015-01-01")));
    }

    #[test]
    fn formats_read_and_write() {
        let ms = at("2015-03-09T04:05:06.007Z");
        for (format, text) in [
            ("strict_date_optional_time||epoch_second", "2015-03-09T04:05:06.007Z"),
            ("dd/MM/yyyy", "09/03/2015"),
            ("yyyy-MM-dd HH:mm:ss.SSS", "2015-03-09 04:05:06.007"),
            ("yyyy'Y' S SSSSSS", "2015Y 0 007000"),
            ("epoch_millis", "1425873906007"),
            ("epoch_second||yyyy", "1425873906.007"),
        ] {
            assert_eq!(DateFormat::parse(format).unwrap().show(ms), text, "{format}");
        }
        let seconds = DateFormat::parse("epoch_second").unwrap();
        for (ms, text) in [(1_700_000_000_500, "1700000000.5"), (-250, "-0.25"), (-2000, "-2")] {
            assert_eq!((seconds.show(ms), seconds.read_ms(text)), (text.to_owned(), Some(ms)));
        }
        let format = DateFormat::parse("dd/MM/yyyy||yyyy-MM").unwrap();
        assert_eq!(format.read("09/03/2015"), iso("2015-03-09"));
        assert_eq!(format.read("2015-03"), iso("2015-03-01"));
        assert_eq!(format.read("31/02/2015"), None);
        let clock = DateFormat::parse("yyyy-MM-dd HH:mm:ss").unwrap();
        assert_eq!(clock.read("2015-03-09 23:59:59"), iso("2015-03-09T23:59:59"));
        for beyond in ["2015-03-09 24:00:00", "2015-03-09 10:60:00", "2015-03-09 10:00:60"] {
            assert_eq!(clock.read(beyond), None, "{beyond}");
        }
        assert!(DateFormat::parse("EEE").unwrap_err().contains("[E]"));
        for worded in ["MMM yyyy", "dd/MMMM/yyyy", "ddd", "HHH:mm", "HH:mmm", "sss"] {
            assert!(
                DateFormat::parse(worded).unwrap_err().contains("one letter or two"),
                "{worded}"
            );
        }
        let kept = DateFormat::stored("MM/dd/yyyy||dd MMM yyyy||epoch_second");
        assert_eq!(kept, DateFormat::parse("MM/dd/yyyy||epoch_second").unwrap());
        assert_eq!(DateFormat::stored("dd MMM yyyy"), DateFormat::default());
        let (default, taken) = (DateFormat::default(), "2015/03/09t10:11z");
        let ms = iso("2015-03-09T10:11Z").map(|moment| moment.ms);
        assert_eq!((default.read_ms(taken), default.read_stored_ms(taken)), (None, ms));
        assert_eq!(clock.read_stored_ms(taken), None, "it has no ISO 8601");
        assert!(DateFormat::parse("yyyy'T").is_err());
        assert!(DateFormat::parse(&"yyyy||".repeat(170)).is_ok());
        assert!(DateFormat::parse(&"yyyy||".repeat(171)).unwrap_err().contains("1024"));
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
            let iso = DateFormat::default();
            let context = DateContext { format: &iso, now_ms: 0, zone: &Zone::default() };
            let _ = context.resolve(&text, up);
        }

        #[test]
        fn patterns_never_panic(pattern in "[yMdHmsS/:' -]{0,12}", text in "[0-9/: -]{0,16}") {
            if let Ok(format) = DateFormat::parse(&pattern) {
                let _ = format.read(&text);
                let _ = format.show(1_425_873_906_007);
            }
        }
    }
}
