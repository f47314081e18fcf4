//! Durations as statistics hold them: `850 us`, `9999 ms`, `420 s`, `12m:3s`, `3h:0m:12s`.
//!
//! Whole numbers of a unit that leaves at most four digits, as `cb::time2text` of the field's servers writes them: so
//! from ten seconds on they are known to a second.

use std::time::Duration;

const DIGITS_MAX: u128 = 9999;
const PLAIN_S_MAX: u128 = 599;

/// As a server writes it.
pub fn time_text(time: Duration) -> String {
    let ns = time.as_nanos();
    for (unit_ns, unit) in [(1, "ns"), (1_000, "us"), (1_000_000, "ms")] {
        let count = ns / unit_ns;
        if count <= DIGITS_MAX {
            return format!("{count} {unit}");
        }
    }
    let s = ns / 1_000_000_000;
    match (s / 3600, s / 60 % 60, s % 60) {
        _ if s <= PLAIN_S_MAX => format!("{s} s"),
        (0, minutes, seconds) => format!("{minutes}m:{seconds}s"),
        (hours, minutes, seconds) => format!("{hours}h:{minutes}m:{seconds}s"),
    }
}

/// Reads it; none if it is no such text.
pub fn parse_time_text(text: &str) -> Option<Duration> {
    let count = |text: &str| text.parse::<u32>().ok().map(u64::from);
    if let Some((number, unit)) = text.split_once(' ') {
        let number = count(number)?;
        return match unit {
            "ns" => Some(Duration::from_nanos(number)),
            "us" => Some(Duration::from_micros(number)),
            "ms" => Some(Duration::from_millis(number)),
            "s" => Some(Duration::from_secs(number)),
            _ => None,
        };
    }
    let mut s = 0;
    for part in text.split(':') {
        let (number, unit_s) = match part.split_at_checked(part.len().checked_sub(1)?)? {
            (number, "h") => (number, 3600),
            (number, "m") => (number, 60),
            (number, "s") => (number, 1),
            _ => return None,
        };
        s = (count(number)? * unit_s).checked_add(s)?;
    }
    Some(Duration::from_secs(s))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_written_as_servers_do_and_read_again() {
        for (ns, text) in [
            (0, "0 ns"),
            (9_999, "9999 ns"),
            (10_000, "10 us"),
            (9_999_000_000, "9999 ms"),
            (10_900_000_000, "10 s"),
            (599_000_000_000, "599 s"),
            (600_000_000_000, "10m:0s"),
            (3_600_000_000_000, "1h:0m:0s"),
            (90_061_000_000_000, "25h:1m:1s"),
        ] {
            let time = Duration::from_nanos(ns);
            assert_eq!(time_text(time), text);
            let read = parse_time_text(text).unwrap();
            assert!(read <= time && time - read < Duration::from_secs(1), "{text}");
        }
        for text in
            ["", "s", "5", "5 h", "-5 s", "1.5 s", "1m:", "x:1s", "9999999999 s", "1m:\u{e9}"]
        {
            assert_eq!(parse_time_text(text), None, "{text:?}");
        }
        // As long as a packet may be.
        assert_eq!(parse_time_text(&("4294967295h:".repeat(1_300_000) + "0s")), None);
    }
}
