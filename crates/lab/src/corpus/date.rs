//! How the corpora write dates, without going through a formatter: they write millions.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::Offset;

use super::number::write_padded;

/// The moment so many seconds after 1970 began.
pub(super) fn utc(epoch_s: u64) -> DateTime {
    let epoch_s = i64::try_from(epoch_s).ok();
    let moment = epoch_s.and_then(|epoch_s| Timestamp::from_second(epoch_s).ok());
    let moment = moment.expect("the documents of a corpus end long before the year 9999");
    Offset::UTC.to_datetime(moment)
}

/// The first three letters of a month: `Dec`.
pub(super) fn month_name(moment: DateTime) -> String {
    moment.strftime("%b").to_string()
}

/// Appends `2015-10-30`, `between`, `20:08:11`.
pub(super) fn write_digits(moment: DateTime, between: u8, out: &mut Vec<u8>) {
    write_padded::<4>(out, moment.year() as u64);
    for part in [moment.month(), moment.day()] {
        out.push(b'-');
        write_padded::<2>(out, part as u64);
    }
    out.push(between);
    write_padded::<2>(out, moment.hour() as u64);
    for part in [moment.minute(), moment.second()] {
        out.push(b':');
        write_padded::<2>(out, part as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_digits_and_months() {
        let mut out = Vec::new();
        write_digits(utc(951_782_400), b'T', &mut out);
        assert_eq!(out, b"2000-02-29T00:00:00");
        assert_eq!(month_name(utc(1_449_964_800)), "Dec");
    }
}
