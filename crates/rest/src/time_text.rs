//! Moments and times as the field writes them.

use query::DateFormat;

/// The last moment of the year 9999, which a clock is taken to show that shows a later year.
const LAST_MS: u64 = 253_402_300_799_999;

/// A moment as `2020-01-01T00:00:00.000Z`, from milliseconds since 1970.
pub(super) fn moment(epoch_ms: u64) -> String {
    DateFormat::default().show(epoch_ms.min(LAST_MS) as i64)
}

/// The time of day of a moment, `13:05:59`, in UTC.
pub(super) fn clock(epoch_ms: u64) -> String {
    moment(epoch_ms)["2020-01-01T".len()..][.."13:05:59".len()].to_owned()
}

/// A time for people: `740ms`, `12.3s`, `1.5h`; `0s` for none.
pub(super) fn span(ms: u64) -> String {
    if ms == 0 {
        return "0s".to_owned();
    }
    for (unit, factor) in [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000)] {
        if ms >= factor {
            return tenths(ms, factor, unit);
        }
    }
    format!("{ms}ms")
}

/// A size for people, in powers of 1024: `208b`, `4.2kb`.
pub(super) fn size(bytes: u64) -> String {
    for (unit, power) in [("pb", 50), ("tb", 40), ("gb", 30), ("mb", 20), ("kb", 10)] {
        if bytes >= 1 << power {
            return tenths(bytes, 1 << power, unit);
        }
    }
    format!("{bytes}b")
}

/// One digit behind the point, and none where it is zero; cut, not rounded, as in the field.
fn tenths(value: u64, factor: u64, unit: &str) -> String {
    let digit = (value % factor) * 10 / factor;
    let whole = value / factor;
    if digit == 0 { format!("{whole}{unit}") } else { format!("{whole}.{digit}{unit}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_moments() {
        assert_eq!(moment(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(moment(1_577_836_800_000), "2020-01-01T00:00:00.000Z");
        assert_eq!(moment(1_582_934_399_999), "2020-02-28T23:59:59.999Z");
        assert_eq!(moment(1_582_934_400_000), "2020-02-29T00:00:00.000Z");
        assert_eq!(moment(1_583_020_800_000), "2020-03-01T00:00:00.000Z");
        assert_eq!(moment(u64::MAX), "9999-12-31T23:59:59.999Z");
        assert_eq!(clock(1_582_934_399_999), "23:59:59");
    }

    #[test]
    fn writes_times_and_sizes() {
        for (ms, text) in
            [(0, "0s"), (999, "999ms"), (12_345, "12.3s"), (60_000, "1m"), (5_400_000, "1.5h")]
        {
            assert_eq!(span(ms), text);
        }
        for (bytes, text) in [(0, "0b"), (1023, "1023b"), (4300, "4.1kb"), (5 << 20, "5mb")] {
            assert_eq!(size(bytes), text);
        }
    }
}
