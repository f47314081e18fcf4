//! Scales and the round numbers to mark on them.

use record::units::show_count;

/// Maps values to coordinates, linearly or by their logarithm. Values outside are held at the edge.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    /// Lowest value.
    pub from: f64,
    /// Highest value.
    pub to: f64,
    start: f64,
    end: f64,
    log: bool,
}

impl Scale {
    /// `from..to` onto `start..end`. A scale without extent, or a logarithm of nothing, is widened.
    pub fn new(from: f64, to: f64, start: f64, end: f64, log: bool) -> Self {
        let from = if log { from.max(1e-9) } else { from };
        let to = if to > from && to.is_finite() { to } else { from + 1.0 };
        Scale { from, to, start, end, log }
    }

    /// The coordinate of `value`.
    pub fn at(&self, value: f64) -> f64 {
        let value = if value.is_finite() { value.clamp(self.from, self.to) } else { self.from };
        let part = if self.log {
            (value / self.from).ln() / (self.to / self.from).ln()
        } else {
            (value - self.from) / (self.to - self.from)
        };
        self.start + part * (self.end - self.start)
    }
}

/// The smallest of 1, 2, 5, 10, ... that divides `max` into at most `most` steps.
pub(crate) fn nice_step(max: f64, most: usize) -> f64 {
    let rough = max / most as f64;
    if rough <= 0.0 || !rough.is_finite() {
        return 1.0;
    }
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().find(|step| step * power >= rough * 0.999_999);
    step.unwrap_or(10.0) * power
}

/// Round values from 0 up to `max`; 0 alone where that is beyond all numbers.
pub(crate) fn nice_ticks(max: f64, most: usize) -> Vec<f64> {
    let step = match nice_step(max, most) {
        // A finer one has no more than `most` either, and 0 alone would say nothing.
        step if step > max && most > 1 => nice_step(max / 2.0, most),
        step => step,
    };
    let count = if max.is_finite() { (max / step * 1.000_001).floor() as usize } else { 0 };
    (0..=count).map(|i| i as f64 * step).collect()
}

/// A number without trailing zeros, for a tick; a large one is written as counts are.
pub(crate) fn number(value: f64) -> String {
    if value >= 1e4 && value.fract() == 0.0 {
        return show_count(value as u64);
    }
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Factor and unit in which values of bytes up to `max` read well.
pub(crate) fn byte_unit(max: f64) -> (f64, &'static str) {
    match max {
        m if m >= 2e12 => (1e12, "TB"),
        m if m >= 2e9 => (1e9, "GB"),
        m if m >= 2e6 => (1e6, "MB"),
        m if m >= 2e3 => (1e3, "kB"),
        _ => (1.0, "B"),
    }
}

const MINUTE: f64 = 60.0;
const HOUR: f64 = 3600.0;
const DAY: f64 = 86_400.0;

/// A round time: `0.1 s`, `30 s`, `1:20`, `10 min`, `3 h`.
pub(crate) fn time_label(seconds: f64) -> String {
    match seconds {
        0.0 => "0".to_owned(),
        // In seconds it would have more digits than are shown.
        s if s < 0.01 => format!("{} ms", number(s * 1e3)),
        s if s < MINUTE => format!("{} s", number(s)),
        s if s < HOUR && s % MINUTE != 0.0 => {
            format!("{:.0}:{:02.0}", (s / MINUTE).floor(), s % MINUTE)
        }
        s if s < HOUR => format!("{} min", number(s / MINUTE)),
        s if s < DAY && s % HOUR != 0.0 => {
            format!("{:.0}:{:02.0} h", (s / HOUR).floor(), s % HOUR / MINUTE)
        }
        s if s % DAY != 0.0 => format!("{} h", number(s / HOUR)),
        s => format!("{} d", number(s / DAY)),
    }
}

/// Round times on an axis that grows by factors: those of the densest row that has at most `most`.
pub(crate) fn log_time_ticks(from: f64, to: f64, most: usize) -> Vec<f64> {
    const COARSE: [f64; 11] = [1e-3, 1e-2, 0.1, 1.0, 10.0, 60.0, 600.0, HOUR, 36e3, DAY, 864e3];
    const BETWEEN: [f64; 9] = [3e-3, 3e-2, 0.3, 3.0, 30.0, 180.0, 1800.0, 3.0 * HOUR, 259_200.0];
    let within = |ticks: &[f64]| -> Vec<f64> {
        ticks.iter().copied().filter(|t| *t >= from * 0.999 && *t <= to * 1.001).collect()
    };
    let coarse = within(&COARSE);
    let mut dense = [coarse.clone(), within(&BETWEEN)].concat();
    dense.sort_by(f64::total_cmp);
    if dense.len() <= most { dense } else { coarse }
}

/// Round times from 0 up to `to`, at most about `most` of them.
pub(crate) fn time_ticks(to: f64, most: usize) -> Vec<f64> {
    const STEPS: [f64; 17] = [
        1.0, 2.0, 5.0, 10.0, 20.0, 30.0, MINUTE, 120.0, 300.0, 600.0, 1200.0, 1800.0, HOUR, 7200.0,
        21_600.0, 43_200.0, DAY,
    ];
    let rough = to / most as f64;
    if rough < 1.0 {
        return nice_ticks(to, most);
    }
    let step = STEPS.into_iter().find(|step| *step >= rough);
    let step = step.unwrap_or_else(|| nice_step(to / DAY, most) * DAY);
    (0..=(to / step * 1.000_001) as usize).map(|i| i as f64 * step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_few() {
        assert_eq!(nice_ticks(320.0, 4), [0.0, 100.0, 200.0, 300.0]);
        assert_eq!(nice_ticks(4.57, 2), [0.0, 2.0, 4.0]);
        assert_eq!([0.0, f64::INFINITY].map(|max| nice_ticks(max, 4)), [[0.0]; 2]);
        assert_eq!([2.50, 2000.0, 20_000.0].map(number), ["2.5", "2000", "20\u{202f}000"]);
        assert_eq!(time_ticks(163.0, 4), [0.0, 60.0, 120.0]);
        assert_eq!(time_ticks(2.9, 4), [0.0, 1.0, 2.0]);
        assert_eq!(time_ticks(14_385.0, 4), [0.0, 3600.0, 7200.0, 10_800.0, 14_400.0][..4]);
        assert_eq!(log_time_ticks(0.1, 164.0, 9), [0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 60.0]);
        assert_eq!(log_time_ticks(0.1, 164.0, 5), [0.1, 1.0, 10.0, 60.0]);
        for most in 1..20 {
            for max in [1e-6, 0.3, 1.0, 4.57, 7.7, 1e12] {
                assert!(nice_ticks(max, most).len() <= most + 1, "{max} {most}");
            }
        }
    }

    #[test]
    fn times_have_their_unit() {
        let times = [0.0, 0.1, 30.0, 80.0, 600.0, 4800.0, 7200.0, 5e-4, 129_600.0, 172_800.0];
        let labels = times.map(time_label);
        assert_eq!(labels[..7], ["0", "0.1 s", "30 s", "1:20", "10 min", "1:20 h", "2 h"]);
        assert_eq!(labels[7..], ["0.5 ms", "36 h", "2 d"]);
    }

    #[test]
    fn scales_stay_within_their_edges_and_never_divide_by_zero() {
        let log = Scale::new(0.1, 1000.0, 0.0, 400.0, true);
        assert!((log.at(1.0) - 100.0).abs() < 1e-9);
        assert_eq!(log.at(0.0), 0.0);
        let empty = Scale::new(0.0, 0.0, 0.0, 100.0, false);
        assert!(empty.at(f64::NAN).is_finite() && empty.at(5.0) == 100.0);
    }
}
