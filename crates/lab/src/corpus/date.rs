//! How the corpora write dates, without going through a formatter: they write millions.

use time::UtcDateTime;

use super::number::write_padded;

/// The moment so many seconds after 1970 began.
pub(super) fn utc(epoch_s: u64) -> UtcDateTime {
    let epoch_s = i64::try_from(epoch_s).ok();
    let moment = epoch_s.and_then(|epoch_s| UtcDateTime::from_unix_timestamp(epoch_s).ok());
    moment.expect("the documents of a corpus end long before the year 9999")
}

/// The first three letters of a month: `Dec`.
pub(super) fn month_name(moment: UtcDateTime) -> String {
    let mut name = moment.month().to_string();
    name.truncate(3);
    name
}

/// Appends `2015-10-30`, `between`, `20:08:11`.
pub(super) fn write_digits(moment: UtcDateTime, between: u8, out: &mut Vec<u8>) {
    write_padded::<4>(out, moment.year() as u64);
    for part in [moment.month().into(), moment.day()] {
        out.push(b'-');
        write_padded::<2>(out, part.into());
    }
    out.push(between);
    write_padded::<2>(out, moment.hour().into());
    for part in [moment.minute(), moment.second()] {
        out.push(b':');
        write_padded::<2>(out, part.into());
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
