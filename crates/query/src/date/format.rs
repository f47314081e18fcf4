//! How dates are written and read: by formats that have a name, and by patterns.

use record::names::did_you_mean;

use crate::value::{DAY_MS, Moment, civil_date, days_to_month, iso, offset_minutes};
use crate::zone::Zone;

/// How a date is written: what was given as `format`, as `a||b`. The first one writes.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct DateFormat(Vec<Form>);

#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
enum Form {
    /// ISO 8601, where all behind the year may be missing. It is written as [`ISO`] says.
    Iso,
    Millis,
    Seconds,
    Pattern(String),
}

/// Each date is written with all of its format, and read with each of several.
const MAX_FORMAT_BYTES: usize = 1024;

/// Signs of the patterns that people write.
const SIGNS: &[u8] = b"yuMdHmsS";
/// Those of all patterns. `f` is a fraction of a second, of one to nine digits, and is written with three; `X` is an
/// offset from UTC, as [`offset_minutes`] reads it, and is written as `Z` or `+02:00`.
const ALL_SIGNS: &[u8] = b"yuMdHmsSfX";

const ISO: &str = "yyyy-MM-dd'T'HH:mm:ss.fX";

/// What the field calls patterns (`DateFormatters`). A lenient format wants all digits of each part, as its strict twin
/// does: dates with fewer are refused. Dates of weeks, days of years and names of earlier releases (`basicDate`) are
/// not there.
const NAMED: &str = "
date_optional_time strict_date_optional_time strict_date_optional_time_nanos iso8601: yyyy-MM-dd'T'HH:mm:ss.fX
date_time: yyyy-MM-dd'T'HH:mm:ss.fX||yyyy-MM-dd'T'HH:mmX
strict_date_time: yyyy-MM-dd'T'HH:mm:ss.fX||yyyy-MM-dd'T'HH:mm:ssX
basic_date: yyyyMMdd
basic_date_time: yyyyMMdd'T'HHmmss.fX
basic_date_time_no_millis: yyyyMMdd'T'HHmmssX
basic_time: HHmmss.fX
basic_time_no_millis: HHmmssX
basic_t_time: 'T'HHmmss.fX
basic_t_time_no_millis: 'T'HHmmssX
date strict_date year_month_day strict_year_month_day: yyyy-MM-dd
date_hour strict_date_hour: yyyy-MM-dd'T'HH
date_hour_minute strict_date_hour_minute: yyyy-MM-dd'T'HH:mm
date_hour_minute_second strict_date_hour_minute_second: yyyy-MM-dd'T'HH:mm:ss
date_hour_minute_second_millis strict_date_hour_minute_second_millis: yyyy-MM-dd'T'HH:mm:ss.f
date_hour_minute_second_fraction strict_date_hour_minute_second_fraction: yyyy-MM-dd'T'HH:mm:ss.f
date_time_no_millis strict_date_time_no_millis: yyyy-MM-dd'T'HH:mm:ssX
hour strict_hour: HH
hour_minute strict_hour_minute: HH:mm
hour_minute_second strict_hour_minute_second: HH:mm:ss
hour_minute_second_millis strict_hour_minute_second_millis: HH:mm:ss.f
hour_minute_second_fraction strict_hour_minute_second_fraction: HH:mm:ss.f
time strict_time: HH:mm:ss.fX
time_no_millis strict_time_no_millis: HH:mm:ssX
t_time strict_t_time: 'T'HH:mm:ss.fX
t_time_no_millis strict_t_time_no_millis: 'T'HH:mm:ssX
year strict_year: yyyy
year_month strict_year_month: yyyy-MM
";

/// Each name with its patterns, of which the first one writes.
fn named() -> impl Iterator<Item = (&'static str, &'static str)> {
    let lines = NAMED.lines().filter_map(|line| line.split_once(": "));
    lines.flat_map(|(names, pattern)| names.split(' ').map(move |name| (name, pattern)))
}

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
        if text.trim().is_empty() {
            return Err("a date format is empty; leave it out, or name one".to_owned());
        }
        let mut forms = Vec::new();
        for part in text.split("||").map(str::trim) {
            match (part, named().find(|(name, _)| *name == part)) {
                ("epoch_millis", _) => forms.push(Form::Millis),
                ("epoch_second", _) => forms.push(Form::Seconds),
                (_, Some((_, ISO))) => forms.push(Form::Iso),
                (_, Some((_, patterns))) => {
                    let patterns = patterns.split("||").map(str::to_owned);
                    forms.extend(patterns.map(Form::Pattern));
                }
                (pattern, None) => {
                    let near = || did_you_mean(pattern, named().map(|(name, _)| name));
                    pieces(pattern, SIGNS).map_err(|why| why + &near())?;
                    forms.push(Form::Pattern(pattern.to_owned()));
                }
            }
        }
        Ok(DateFormat(forms))
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

    /// Whether moments are written as numbers, the same in each zone.
    pub fn is_of_numbers(&self) -> bool {
        matches!(self.0.first(), Some(Form::Millis | Form::Seconds))
    }

    /// Writes a moment.
    pub fn show(&self, ms: i64) -> String {
        self.show_ahead(ms, 0)
    }

    /// Writes a moment as a clock of a zone shows it, with the zone's offset.
    pub fn show_in_zone(&self, ms: i64, zone: &Zone) -> String {
        self.show_ahead(ms, zone.offset_ms(ms))
    }

    /// Writes a moment as a clock shows it that is so far ahead of UTC.
    fn show_ahead(&self, ms: i64, offset_ms: i64) -> String {
        match self.0.first() {
            Some(Form::Millis) => ms.to_string(),
            // With what there is of a fraction.
            Some(Form::Seconds) if ms % 1000 != 0 => {
                let (sign, ms) = (if ms < 0 { "-" } else { "" }, ms.unsigned_abs());
                let text = format!("{sign}{}.{:03}", ms / 1000, ms % 1000);
                text.trim_end_matches('0').to_owned()
            }
            Some(Form::Seconds) => (ms / 1000).to_string(),
            Some(Form::Pattern(pattern)) => show_pattern(pattern, ms, offset_ms),
            Some(Form::Iso) | None => show_pattern(ISO, ms, offset_ms),
        }
    }

    /// Milliseconds since 1970 of a text in one of the forms.
    pub(crate) fn read_ms(&self, text: &str) -> Option<i64> {
        self.read(text).map(|moment| moment.ms)
    }

    /// As [`DateFormat::read_ms`], of a text that was accepted before: an earlier build took `2024/05/06 07:08:09z` for
    /// ISO 8601, too, and all of it where a time with a zone is asked for.
    pub(crate) fn read_stored_ms(&self, text: &str) -> Option<i64> {
        let iso_ms = || {
            let text = text.replace('/', "-").replace([' ', 't'], "T").replace('z', "Z");
            let is_iso = |form: &Form| match form {
                Form::Iso => true,
                Form::Pattern(pattern) => pattern == ISO,
                _ => false,
            };
            iso(&text).filter(|_| self.0.iter().any(is_iso)).map(|moment| moment.ms)
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

    pub(super) fn read(&self, text: &str) -> Option<Moment> {
        // As in the field a zone counts for these, too: its clocks are taken to show what UTC does then.
        let exact = |ms| Moment { ms, open_ms: 0, is_zoned: false };
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

fn pieces<'a>(pattern: &'a str, signs: &[u8]) -> Result<Vec<Piece<'a>>, String> {
    let wrong =
        |part: &str, why: &str| Err(format!("date format [{pattern}] has [{part}], which {why}"));
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
            if !signs.contains(&first) || count > 9 {
                let known = "is not read here; known are y, M, d, H, m, s and S";
                return wrong(&pattern[at..=at], known);
            }
            if count > 2 && b"MdHms".contains(&first) {
                let why = "is not read here; months are numbers, and they, days, hours, minutes and seconds have one \
                           letter or two";
                return wrong(&pattern[at..at + count], why);
            }
            found.push(Piece::Field(first, count));
            at += count;
        } else if b"[]{}#".contains(&first) {
            let why = "stands for no sign of its own and is not read here; optional parts are written as several \
                       formats: yyyy-MM-dd||yyyy-MM";
            return wrong(&pattern[at..=at], why);
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
    if value > 9 || rest > 0 {
        put(text, value / 10, rest);
    }
    text.push(char::from(b'0' + (value % 10) as u8));
}

fn show_pattern(pattern: &str, ms: i64, offset_ms: i64) -> String {
    let local = ms.saturating_add(offset_ms);
    let (year, month, day) = civil_date(local.div_euclid(DAY_MS));
    let of_day = local.rem_euclid(DAY_MS);
    let mut text = String::with_capacity(32);
    for piece in pieces(pattern, ALL_SIGNS).unwrap_or_default() {
        match piece {
            Piece::Text(literal) => text.push_str(literal),
            Piece::Field(b'X', _) => match offset_ms / 60_000 {
                0 => text.push('Z'),
                minutes => {
                    text.push(if minutes < 0 { '-' } else { '+' });
                    put(&mut text, minutes.abs() / 60, 2);
                    text.push(':');
                    put(&mut text, minutes.abs() % 60, 2);
                }
            },
            Piece::Field(letter, width) => {
                let width = if letter == b'f' { 3 } else { width };
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
                // A year of more digits than the four or more that are asked for.
                if width >= 4 && value >= 10i64.pow(width as u32) {
                    text.push('+');
                } else if value < 0 {
                    text.push('-');
                }
                put(&mut text, value.abs(), width);
            }
        }
    }
    text
}

fn read_pattern(pattern: &str, text: &str) -> Option<Moment> {
    let (mut parts, mut millis, mut open) = ([1970, 1, 1, 0, 0, 0], 0, DAY_MS - 1);
    let (mut rest, mut offset) = (text, None);
    for piece in pieces(pattern, ALL_SIGNS).ok()? {
        let (letter, width) = match piece {
            Piece::Text(literal) => {
                rest = rest.strip_prefix(literal)?;
                continue;
            }
            // It stands at the end.
            Piece::Field(b'X', _) => {
                (offset, rest) = (Some(offset_minutes(rest.as_bytes())?), "");
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
        match letter {
            b'y' | b'u' if width == 2 => parts[0] = 2000 + number,
            b'y' | b'u' => parts[0] = number,
            b'M' => parts[1] = number,
            b'd' => parts[2] = number,
            b'H' => (parts[3], open) = (number, open.min(3_600_000 - 1)),
            b'm' => (parts[4], open) = (number, open.min(60_000 - 1)),
            b's' => (parts[5], open) = (number, open.min(999)),
            _ => (millis, open) = (number * 10i64.pow(9 - digits as u32) / 1_000_000, 0),
        }
    }
    let read = Moment::of(parts, millis, offset, open).filter(|_| rest.is_empty())?;
    Some(Moment { is_zoned: read.is_zoned || text.ends_with('Z'), ..read })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::date::tests::at;

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
        let far = |format: &str, ms| DateFormat::parse(format).unwrap().show(ms);
        let (year_10000, year_2_before_0) = (253_402_300_800_000, -62_198_755_200_001);
        assert_eq!(far("yyyy/MM", year_10000), "+10000/01");
        assert_eq!(far("yyyyy y yy", year_10000), "10000 10000 00");
        assert_eq!(far("strict_date", year_2_before_0), "-0002-12-31");
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
        // What has neither time nor zone is none of these; a year may be so many milliseconds.
        let strict = DateFormat::parse("strict_date_time||epoch_millis").unwrap();
        assert_eq!((strict.read_ms("2015-03-09"), strict.read_number_ms(2015)), (None, Some(2015)));
        assert_eq!(strict.read_ms("2015-03-09T10:11:00+02:00"), Some(at("2015-03-09T08:11Z")));
        assert_eq!(strict.read_stored_ms("2015-03-09"), Some(at("2015-03-09")));
        assert!(DateFormat::parse(" ").unwrap_err().contains("is empty"));
        assert!(DateFormat::parse("yyyy'T").is_err());
        assert!(DateFormat::parse(&"yyyy||".repeat(170)).is_ok());
        assert!(DateFormat::parse(&"yyyy||".repeat(171)).unwrap_err().contains("1024"));
    }

    #[test]
    fn named_formats_write_and_read_what_the_field_does() {
        let ms = at("2015-03-09T04:05:06.007Z");
        for (name, text, read, open_ms) in [
            ("basic_date", "20150309", "2015-03-09", DAY_MS - 1),
            ("basic_date_time", "20150309T040506.007Z", "2015-03-09T04:05:06.007", 0),
            ("basic_date_time_no_millis", "20150309T040506Z", "2015-03-09T04:05:06", 999),
            ("basic_time", "040506.007Z", "1970-01-01T04:05:06.007", 0),
            ("basic_time_no_millis", "040506Z", "1970-01-01T04:05:06", 999),
            ("basic_t_time", "T040506.007Z", "1970-01-01T04:05:06.007", 0),
            ("basic_t_time_no_millis", "T040506Z", "1970-01-01T04:05:06", 999),
            ("strict_year_month_day", "2015-03-09", "2015-03-09", DAY_MS - 1),
            ("date_hour", "2015-03-09T04", "2015-03-09T04", 3_599_999),
            ("strict_date_hour_minute", "2015-03-09T04:05", "2015-03-09T04:05", 59_999),
            ("date_hour_minute_second", "2015-03-09T04:05:06", "2015-03-09T04:05:06", 999),
            (
                "date_hour_minute_second_millis", "2015-03-09T04:05:06.007",
                "2015-03-09T04:05:06.007", 0,
            ),
            ("date_time", "2015-03-09T04:05:06.007Z", "2015-03-09T04:05:06.007", 0),
            ("strict_date_time_no_millis", "2015-03-09T04:05:06Z", "2015-03-09T04:05:06", 999),
            ("hour", "04", "1970-01-01T04", 3_599_999),
            ("hour_minute", "04:05", "1970-01-01T04:05", 59_999),
            ("strict_hour_minute_second", "04:05:06", "1970-01-01T04:05:06", 999),
            ("hour_minute_second_fraction", "04:05:06.007", "1970-01-01T04:05:06.007", 0),
            ("time", "04:05:06.007Z", "1970-01-01T04:05:06.007", 0),
            ("strict_time_no_millis", "04:05:06Z", "1970-01-01T04:05:06", 999),
            ("t_time", "T04:05:06.007Z", "1970-01-01T04:05:06.007", 0),
            ("strict_t_time_no_millis", "T04:05:06Z", "1970-01-01T04:05:06", 999),
            ("year", "2015", "2015-01-01", DAY_MS - 1),
            ("strict_year_month", "2015-03", "2015-03-01", DAY_MS - 1),
        ] {
            let format = DateFormat::parse(name).unwrap();
            assert_eq!(format.show(ms), text, "{name}");
            let moment = format.read(text).unwrap();
            assert_eq!((moment.ms, moment.open_ms), (at(read), open_ms), "{name}");
            assert_eq!(moment.is_zoned, text.ends_with('Z'), "{name}");
        }
        for (name, _) in named() {
            let format = DateFormat::parse(name).unwrap();
            assert!(format.read(&format.show(ms)).is_some(), "{name}");
        }
    }

    #[test]
    fn named_formats_read_offsets_and_fractions() {
        let second = DateFormat::parse("basic_date_time_no_millis").unwrap();
        let utc = at("2015-03-09T04:05:06Z");
        for (end, minutes) in [("Z", 0), ("+02:00", 120), ("+0230", 150), ("-02", -120)] {
            let text = format!("20150309T040506{end}");
            let read = Moment { ms: utc - minutes * 60_000, open_ms: 999, is_zoned: true };
            assert_eq!(second.read(&text), Some(read), "{text}");
        }
        for end in ["", "z", "+2", "+18:01", "+02:60", "Z0", ".5Z"] {
            let text = format!("20150309T040506{end}");
            assert_eq!(second.read(&text), None, "{text}");
        }
        for text in ["20150309t040506Z", "20150309T040560Z", "20150309T240506Z", "20150229T040506Z"]
        {
            assert_eq!(second.read(text), None, "{text}");
        }
        let fraction = DateFormat::parse("strict_date_hour_minute_second_fraction").unwrap();
        for (end, ms) in [
            (".5", Some(500)),
            (".0079", Some(7)),
            (".123456789", Some(123)),
            (".1234567891", None),
            (",5", None),
            (".", None),
            ("", None),
            (".5Z", None),
        ] {
            let read = fraction.read_ms(&format!("2015-03-09T04:05:06{end}"));
            assert_eq!(read, ms.map(|ms| utc + ms), "{end}");
        }
    }

    #[test]
    fn clocks_of_a_zone_are_written_with_their_offset() {
        let ms = at("2015-03-09T04:05:06.007Z");
        for (zone, format, text) in [
            ("+05:30", "basic_date_time_no_millis", "20150309T093506+05:30"),
            ("+05:30", "strict_date_optional_time", "2015-03-09T09:35:06.007+05:30"),
            ("-03:30", "t_time", "T00:35:06.007-03:30"),
            ("-05:00", "date_hour", "2015-03-08T23"),
            ("-05:00", "yyyy-MM-dd", "2015-03-08"),
            ("-05:00", "epoch_millis", "1425873906007"),
            ("Europe/London", "date_time", "2015-03-09T04:05:06.007Z"),
        ] {
            let zone = Zone::try_from(zone.to_owned()).unwrap();
            let shown = DateFormat::parse(format).unwrap().show_in_zone(ms, &zone);
            assert_eq!(shown, text, "{format}");
        }
    }

    #[test]
    fn what_the_table_has_not_is_refused_by_name() {
        let unknown = "strict_basic_date strict_iso8601 ordinal_date basic_week_date basicDateTime f HH:mm:ssX";
        for name in unknown.split(' ') {
            let why = DateFormat::parse(name).unwrap_err();
            assert!(why.contains(&format!("[{name}]")), "{why}");
        }
        let why = DateFormat::parse("basicDateTime").unwrap_err();
        assert!(why.contains("\"basic_date_time\""), "{why}");
    }

    proptest! {
        #[test]
        fn patterns_never_panic(pattern in "[yMdHmsS/:' -]{0,12}", text in "[0-9/: -]{0,16}") {
            if let Ok(format) = DateFormat::parse(&pattern) {
                let _ = format.read(&text);
                let _ = format.show(1_425_873_906_007);
            }
        }
    }
}
