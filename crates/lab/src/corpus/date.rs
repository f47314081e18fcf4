//! Dates of the proleptic Gregorian calendar in UTC, from seconds since 1970.

use super::number::{write_padded, write_u64};

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// A second of a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Date {
    pub(super) year: u64,
    /// 1 to 12.
    pub(super) month: u64,
    /// 1 to 31.
    pub(super) day: u64,
    second_of_day: u64,
}

impl Date {
    /// The date of a time after 1970. Counts in eras of 400 years that begin in March, so that a
    /// leap day is the last day of its year.
    pub(super) fn from_epoch_s(epoch_s: u64) -> Self {
        const DAYS_FROM_MARCH_OF_YEAR_0: u64 = 719_468;
        const DAYS_OF_ERA: u64 = 146_097;
        let days = epoch_s / 86_400 + DAYS_FROM_MARCH_OF_YEAR_0;
        let (era, day_of_era) = (days / DAYS_OF_ERA, days % DAYS_OF_ERA);
        let leap_corrected =
            day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096;
        let year_of_era = leap_corrected / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let march_month = (5 * day_of_year + 2) / 153;
        let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
        Date {
            year: era * 400 + year_of_era + u64::from(month <= 2),
            month,
            day: day_of_year - (153 * march_month + 2) / 5 + 1,
            second_of_day: epoch_s % 86_400,
        }
    }

    /// Appends `2015 Dec 13`.
    pub(super) fn write_words(self, out: &mut Vec<u8>) {
        write_u64(out, self.year);
        out.push(b' ');
        out.extend_from_slice(self.month_name().as_bytes());
        out.push(b' ');
        write_u64(out, self.day);
    }

    /// Appends `2015-10-30`, `between`, `20:08:11`.
    pub(super) fn write_digits(self, out: &mut Vec<u8>, between: u8) {
        write_padded::<4>(out, self.year);
        for part in [self.month, self.day] {
            out.push(b'-');
            write_padded::<2>(out, part);
        }
        out.push(between);
        write_padded::<2>(out, self.second_of_day / 3600);
        for part in [self.second_of_day % 3600 / 60, self.second_of_day % 60] {
            out.push(b':');
            write_padded::<2>(out, part);
        }
    }

    /// `Jan` to `Dec`.
    pub(super) fn month_name(self) -> &'static str {
        MONTHS[self.month as usize - 1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digits(epoch_s: u64) -> String {
        let mut out = Vec::new();
        Date::from_epoch_s(epoch_s).write_digits(&mut out, b'T');
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn knows_leap_years_and_centuries() {
        assert_eq!(digits(0), "1970-01-01T00:00:00");
        assert_eq!(digits(893_971_817), "1998-04-30T21:30:17");
        assert_eq!(digits(951_782_400), "2000-02-29T00:00:00");
        assert_eq!(digits(1_709_251_199), "2024-02-29T23:59:59");
        assert_eq!(digits(4_107_542_400), "2100-03-01T00:00:00");
    }

    #[test]
    fn writes_words() {
        let mut out = Vec::new();
        Date::from_epoch_s(1_449_964_800).write_words(&mut out);
        assert_eq!(out, b"2015 Dec 13");
    }
}
