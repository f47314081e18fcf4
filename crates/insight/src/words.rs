//! Numbers and limits as people read them; one wording for terminal and page.

use record::{Limit, units};

pub use record::units::{counted, show_count as count};

/// The units of sentences.
const UNITS: [&str; 15] = [
    "s", "ms", "%", "B", "kB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "B/s", "kB/s", "MB/s", "GB/s",
];

/// A share, 0 to 1, as `97 %`, `2.4 %` or `< 0.1 %`.
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    match percent {
        p if !p.is_finite() => "-".to_owned(),
        // As `{p:.0}` rounds, and cheaper: a look at many recoveries says hundreds of shares.
        p if p >= 9.95 => format!("{} %", p.round_ties_even() as u64),
        p if p >= 0.05 => format!("{p:.1} %"),
        p if p > 0.0 => "< 0.1 %".to_owned(),
        _ => "0 %".to_owned(),
    }
}

/// What is said beside a share of a link's rate that the link cannot have carried: bytes are counted before they are
/// compressed. Up to a twentieth more is how times are measured.
pub fn before_compression(link_share: f64) -> Option<&'static str> {
    (link_share > 1.05).then_some("before compression")
}

/// A share that is done: nothing is whole before its last byte.
pub fn done(share: f64) -> String {
    percent(if share < 1.0 { share.min(0.99) } else { share })
}

/// Three digits: `0.66`, `9.87`, `48.2`, `192`; more after the point for what is smaller than 0.1. What has more before
/// it is written as a [`count`] is.
pub fn three_digits(value: f64) -> String {
    match value.abs() {
        v if !v.is_finite() => "-".to_owned(),
        v if v >= 99.95 => {
            let sign = if value < 0.0 { "-" } else { "" };
            format!("{sign}{}", count(v.round_ties_even() as u64))
        }
        v if v >= 9.995 => format!("{value:.1}"),
        v if v >= 0.0995 || v == 0.0 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

/// As [`three_digits`], with two digits after the point at most, for where there is little room: `0.08`, `< 0.01`.
pub fn two_decimals(value: f64) -> String {
    if value < 9.995 { cores(value) } else { three_digits(value) }
}

/// Cores, `0.23` or `< 0.01`.
pub fn cores(cores: f64) -> String {
    match cores {
        c if !c.is_finite() => "-".to_owned(),
        c if c >= 0.005 => format!("{c:.2}"),
        c if c > 0.0 => "< 0.01".to_owned(),
        _ => "0".to_owned(),
    }
}

/// A gain, `48.2×`.
pub fn gain(gain: f64) -> String {
    format!("{}×", three_digits(gain))
}

/// The number of a rate in MB/s. One unit throughout, so that the rows of a table compare.
pub fn mb_per_s(bytes_per_s: f64) -> String {
    three_digits(bytes_per_s / 1e6)
}

/// A rate in MB/s with its unit, `0.66 MB/s`; it reads 0 only where nothing moves.
pub fn rate(bytes_per_s: f64) -> String {
    match bytes_per_s {
        slow if slow > 0.0 && slow < 50.0 => "< 0.0001 MB/s".to_owned(),
        other => format!("{} MB/s", mb_per_s(other)),
    }
}

/// A chunk size: `64 KiB`, `1 MiB`; `524 kB` where it is no round number.
pub fn chunk(bytes: u64) -> String {
    let text = units::show_size_setting(bytes);
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let unit = match &text[end..] {
        "kb" => "KiB",
        "mb" => "MiB",
        "gb" => "GiB",
        _ => return units::show_bytes(bytes),
    };
    format!("{} {unit}", &text[..end])
}

/// A round trip: `100 ms`, `0.25 ms`.
pub fn rtt(rtt_ms: f64) -> String {
    let text = format!("{rtt_ms:.2}");
    format!("{} ms", text.trim_end_matches('0').trim_end_matches('.'))
}

/// A round trip to a tenth of a millisecond: what telemetry can tell.
pub fn rtt_tenths(rtt_ms: f64) -> String {
    match (rtt_ms * 10.0).round() / 10.0 {
        0.0 => "less than 0.1 ms".to_owned(),
        tenths => rtt(tenths),
    }
}

/// Names in the order in which they come, each once.
pub fn each_once<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut once: Vec<&str> = Vec::new();
    for name in names {
        if !once.contains(&name) {
            once.push(name);
        }
    }
    once
}

/// For HTML: a sentence whose figures keep their units on their line, and values their names: `b = 4`.
pub fn unbroken(sentence: &str) -> String {
    let mut words = sentence.split(' ');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |mut text, word| {
        let is_unit = UNITS.contains(&word.trim_end_matches([',', ';', ':', '.', ')']));
        let is_of_figure = is_unit && text.ends_with(|c: char| c.is_ascii_digit());
        let is_of_value = word == "=" || text.ends_with("\u{a0}=");
        text.push(if is_of_figure || is_of_value { '\u{a0}' } else { ' ' });
        text + word
    })
}

/// The limit as the subject of a sentence: `latency`, `the link`.
pub fn holder(limit: Limit) -> &'static str {
    match limit {
        Limit::Latency => "latency",
        Limit::LinkRate => "the link",
        Limit::Loss => "loss on the link",
        Limit::Throttle => "the throttle",
        Limit::DiskRead => "the source's disk",
        Limit::DiskWrite => "the target's disk",
        Limit::Cpu => "the CPU",
        Limit::Slots => "waiting for a slot",
        Limit::Memory => "memory",
        Limit::Proxy => "the proxy",
        Limit::Coordination => "coordination",
    }
}

/// Pauses of chunks that wait side by side: their sum may exceed the time in which they waited. `chunks` is how many
/// are in flight; none where that is not told, or differs between recoveries.
pub fn summed_pauses(ms: u64, wall_ms: f64, chunks: Option<f64>) -> String {
    let seconds = |ms: f64| units::show_seconds(ms / 1e3);
    let over = match chunks {
        Some(count) if count < 1.5 => "one chunk".to_owned(),
        Some(count) => format!("{count:.0} chunks"),
        None => "all chunks".to_owned(),
    };
    format!("{} of pauses in {}, over {over} in flight", seconds(ms as f64), seconds(wall_ms))
}

/// A factor in a sentence: `48 times`, `2.4 times`, `1.08 times`.
pub fn times(factor: f64) -> String {
    match factor {
        f if f >= 9.95 => format!("{f:.0} times"),
        f if f >= 1.15 => format!("{f:.1} times"),
        f => format!("{f:.2} times"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(percent(0.974), "97 %");
        assert_eq!(percent(0.0243), "2.4 %");
        assert_eq!(percent(0.0001), "< 0.1 %");
        assert_eq!(percent(1.0), "100 %");
        assert_eq!(percent(f64::NAN), "-");
        assert_eq!([0.004, 0.999, 1.0, f64::NAN].map(done), ["0.4 %", "99 %", "100 %", "-"]);
        let long = [9999.4, 10_000.0, 380_181.2, -12_345.0].map(three_digits);
        assert_eq!(long, ["9999", "10\u{202f}000", "380\u{202f}181", "-12\u{202f}345"]);
        assert_eq!(rate(655_360.0), "0.66 MB/s");
        assert_eq!(rate(125e6), "125 MB/s");
        assert_eq!(rate(4200.0), "0.0042 MB/s");
        assert_eq!([0.0, 3.0, 50.0].map(rate), ["0.00 MB/s", "< 0.0001 MB/s", "0.0001 MB/s"]);
        assert_eq!(gain(48.23), "48.2×");
        assert_eq!([0.0, 0.0012, 0.234].map(cores), ["0", "< 0.01", "0.23"]);
        let short = [0.0, 0.0012, 0.0778, 9.99, 9.996, 118.4].map(two_decimals);
        assert_eq!(short, ["0", "< 0.01", "0.08", "9.99", "10.0", "118"]);
        assert_eq!(times(48.23), "48 times");
        assert_eq!(times(1.078), "1.08 times");
    }

    #[test]
    fn no_rate_reads_zero_while_bytes_move() {
        for exponent in -2..12 {
            for digit in [1.0, 4.9, 9.96] {
                let shown = rate(digit * 10f64.powi(exponent));
                assert!(
                    shown.contains(|c: char| matches!(c, '1'..='9')),
                    "{digit}e{exponent}: {shown}"
                );
            }
        }
    }

    #[test]
    fn a_figure_of_a_sentence_keeps_its_unit() {
        let said = unbroken("as it is took 16.2 s, 3.13 MB/s; the throttle held it");
        assert_eq!(said, "as it is took 16.2\u{a0}s, 3.13\u{a0}MB/s; the throttle held it");
        let said = unbroken("one chunk of 5 MiB (99 % of it): 1 s in B or % of 10\u{202f}000 MB.");
        let kept = "one chunk of 5\u{a0}MiB (99\u{a0}% of it): 1\u{a0}s in B or % of 10\u{202f}000\u{a0}MB.";
        assert_eq!(said, kept);
        assert_eq!(unbroken("ARS, b = 4: faster"), "ARS, b\u{a0}=\u{a0}4: faster");
    }

    #[test]
    fn pauses_say_over_what_they_are_summed() {
        let said = |chunks: Option<f64>| summed_pauses(45_000, 10_000.0, chunks);
        assert_eq!(said(Some(5.0)), "45.0 s of pauses in 10.0 s, over 5 chunks in flight");
        assert_eq!(said(Some(1.0)), "45.0 s of pauses in 10.0 s, over one chunk in flight");
        assert_eq!(said(None), "45.0 s of pauses in 10.0 s, over all chunks in flight");
    }

    #[test]
    fn sizes_and_round_trips() {
        assert_eq!(chunk(65_536), "64 KiB");
        assert_eq!(chunk(5 << 20), "5 MiB");
        assert_eq!(chunk(524_272), "524 kB");
        assert_eq!(rtt(100.0), "100 ms");
        assert_eq!(rtt(0.25), "0.25 ms");
    }
}
