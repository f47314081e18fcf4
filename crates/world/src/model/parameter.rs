//! A model parameter: what text it accepts, and what text its value is written as. `table.rs` holds them all.

use std::time::Duration;

use record::units::{parse_duration, parse_rate, parse_size, show_size_setting, show_time_setting};

use super::{CongestionControl, DiskScheduler, Models};

/// A parameter cannot be set.
#[expect(missing_docs, reason = "each message says what its fields are")]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// No parameter has this name.
    #[error("there is no model parameter \"{name}\"{hint}")]
    Unknown { name: String, hint: String },
    /// The text is no value of this kind.
    #[error("{name} = \"{text}\": {meaning} Write {example}; {bounds}")]
    NotAValue {
        name: &'static str,
        text: String,
        meaning: &'static str,
        example: &'static str,
        bounds: String,
    },
    /// The value is not within the bounds.
    #[error("{name} = \"{text}\" is out of range: {meaning} It is {bounds}")]
    OutOfRange { name: &'static str, text: String, meaning: &'static str, bounds: String },
}

/// The field of [`Models`] that a parameter sets, by the kind of its value.
pub(super) enum Field<'a> {
    Count(&'a mut u32),
    Bytes(&'a mut u64),
    Segment(&'a mut u32),
    MaybeBytes(&'a mut Option<u64>),
    Rate(&'a mut u64),
    MaybeRate(&'a mut Option<u64>),
    Time(&'a mut Duration),
    Number(&'a mut f64),
    Switch(&'a mut bool),
    Scheduler(&'a mut DiskScheduler),
    Control(&'a mut CongestionControl),
}

/// A value as text gave it, before its range is checked.
enum Value {
    Number(f64),
    Unlimited,
    Switch(bool),
    Scheduler(DiskScheduler),
    Control(CongestionControl),
}

/// A row of the table.
pub struct Parameter {
    /// As plans write it, for example `disk.seek`.
    pub name: &'static str,
    /// Of the value, for people: `bytes`, `bytes/s`, `time`.
    pub unit: &'static str,
    /// One sentence.
    pub meaning: &'static str,
    /// Where the default comes from.
    pub source: &'static str,
    /// Least and greatest, in bytes, bytes a second, seconds or plain numbers.
    pub(super) range: (f64, f64),
    /// The path of the field of [`Models`] that it sets.
    pub(super) path: &'static str,
    pub(super) field: for<'a> fn(&'a mut Models) -> Field<'a>,
}

const SCHEDULERS: [(&str, DiskScheduler); 3] = [
    ("noop", DiskScheduler::Noop),
    ("deadline", DiskScheduler::Deadline),
    ("cfq", DiskScheduler::Cfq),
];
const CONTROLS: [(&str, CongestionControl); 2] =
    [("cubic", CongestionControl::Cubic), ("reno", CongestionControl::Reno)];
const UNLIMITED: &str = "unlimited";

impl Parameter {
    /// The value in `models`, as plans write it: setting it again changes nothing.
    pub fn text(&self, models: &Models) -> String {
        let mut models = models.clone();
        match (self.field)(&mut models) {
            Field::Count(n) => n.to_string(),
            Field::Segment(n) => show_size_setting(u64::from(*n)),
            Field::Bytes(n) => show_size_setting(*n),
            Field::MaybeBytes(n) => n.map_or_else(|| UNLIMITED.to_owned(), show_size_setting),
            Field::Rate(n) => show_rate(*n),
            Field::MaybeRate(n) => n.map_or_else(|| UNLIMITED.to_owned(), show_rate),
            Field::Time(d) => show_time_setting(*d),
            Field::Number(n) => n.to_string(),
            Field::Switch(on) => (if *on { "on" } else { "off" }).to_owned(),
            Field::Scheduler(s) => name_of(&SCHEDULERS, *s).to_owned(),
            Field::Control(c) => name_of(&CONTROLS, *c).to_owned(),
        }
    }

    /// The value in `models` as a number, in bytes, bytes a second, seconds or as it is; none where it is a name, or
    /// without limit.
    pub fn number(&self, models: &Models) -> Option<f64> {
        let mut models = models.clone();
        match (self.field)(&mut models) {
            Field::Count(n) | Field::Segment(n) => Some(f64::from(*n)),
            Field::Bytes(n) | Field::Rate(n) => Some(*n as f64),
            Field::MaybeBytes(n) | Field::MaybeRate(n) => n.map(|n| n as f64),
            Field::Time(time) => Some(time.as_secs_f64()),
            Field::Number(n) => Some(*n),
            Field::Switch(_) | Field::Scheduler(_) | Field::Control(_) => None,
        }
    }

    /// Sets the parameter from such a number, or from the nearest that it can be. Nothing changes where it is a name.
    pub fn set_number(&self, models: &mut Models, number: f64) {
        let (min, max) = self.range;
        if self.number(&Models::default()).is_some() {
            self.put(models, Value::Number(number.clamp(min, max)));
        }
    }

    /// Least and greatest, or the names that are accepted.
    pub fn bounds(&self) -> String {
        let (min, max) = self.range;
        let between = |show: &dyn Fn(f64) -> String| format!("{} to {}", show(min), show(max));
        match (self.field)(&mut Models::default()) {
            Field::Count(_) | Field::Number(_) => between(&|n| n.to_string()),
            Field::Bytes(_) | Field::Segment(_) => between(&|n| show_size_setting(n as u64)),
            Field::MaybeBytes(_) => {
                format!("{}, or {UNLIMITED}", between(&|n| show_size_setting(n as u64)))
            }
            Field::Rate(_) => between(&|n| show_rate(n as u64)),
            Field::MaybeRate(_) => format!("{}, or {UNLIMITED}", between(&|n| show_rate(n as u64))),
            Field::Time(_) => between(&|s| show_time_setting(Duration::from_secs_f64(s))),
            Field::Switch(_) => "on or off".to_owned(),
            Field::Scheduler(_) => names(&SCHEDULERS),
            Field::Control(_) => names(&CONTROLS),
        }
    }

    fn parse(&self, text: &str) -> Option<Value> {
        let text = text.trim();
        let whole = |text: &str| text.parse::<u32>().ok().map(f64::from);
        let size = |text: &str| parse_size(text).ok().map(|n| n as f64);
        // Rates as links have them (1gbit, 66MB/s), or as settings have them (66mb, a power of 1024 a second).
        let rate =
            |text: &str| parse_rate(text).or_else(|_| parse_size(text)).ok().map(|n| n as f64);
        let limited = |number: Option<f64>| match number {
            None if text == UNLIMITED => Some(Value::Unlimited),
            number => number.map(Value::Number),
        };
        match (self.field)(&mut Models::default()) {
            Field::Count(_) => whole(text).map(Value::Number),
            Field::Bytes(_) | Field::Segment(_) => size(text).map(Value::Number),
            Field::MaybeBytes(_) => limited(size(text)),
            Field::Rate(_) => rate(text).map(Value::Number),
            Field::MaybeRate(_) => limited(rate(text)),
            Field::Time(_) => parse_duration(text).ok().map(|d| Value::Number(d.as_secs_f64())),
            Field::Number(_) => number(text).map(Value::Number),
            Field::Switch(_) => match text {
                "on" | "true" | "1" => Some(Value::Switch(true)),
                "off" | "false" | "0" => Some(Value::Switch(false)),
                _ => None,
            },
            Field::Scheduler(_) => find(&SCHEDULERS, text).map(Value::Scheduler),
            Field::Control(_) => find(&CONTROLS, text).map(Value::Control),
        }
    }

    fn example(&self) -> &'static str {
        match (self.field)(&mut Models::default()) {
            Field::Count(_) => "a whole number",
            Field::Bytes(_) | Field::Segment(_) => "a size, for example 512kb",
            Field::MaybeBytes(_) => "a size, for example 4mb, or unlimited",
            Field::Rate(_) => "a rate, for example 10gbit, 66MB/s or 66mb",
            Field::MaybeRate(_) => "a rate, for example 300MB/s, or unlimited",
            Field::Time(_) => "a time, for example 8ms or 20micros",
            Field::Number(_) => "a number, for example 0.001, or a share in %, for example 0.1%",
            Field::Switch(_) => "on or off",
            Field::Scheduler(_) | Field::Control(_) => "one of the names",
        }
    }

    /// Sets the parameter from text. Nothing changes on an error.
    pub(super) fn set(&self, models: &mut Models, text: &str) -> Result<(), ModelError> {
        let (name, meaning) = (self.name, self.meaning);
        let value = self.parse(text).ok_or_else(|| ModelError::NotAValue {
            name,
            text: text.to_owned(),
            meaning,
            example: self.example(),
            bounds: self.bounds(),
        })?;
        let (min, max) = self.range;
        if matches!(value, Value::Number(n) if !(min..=max).contains(&n)) {
            let (text, bounds) = (text.to_owned(), self.bounds());
            return Err(ModelError::OutOfRange { name, text, meaning, bounds });
        }
        self.put(models, value);
        Ok(())
    }

    fn put(&self, models: &mut Models, value: Value) {
        match ((self.field)(models), value) {
            (Field::Count(place) | Field::Segment(place), Value::Number(n)) => *place = n as u32,
            (Field::Bytes(place) | Field::Rate(place), Value::Number(n)) => *place = n as u64,
            (Field::MaybeBytes(place) | Field::MaybeRate(place), Value::Number(n)) => {
                *place = Some(n as u64);
            }
            (Field::MaybeBytes(place) | Field::MaybeRate(place), Value::Unlimited) => *place = None,
            (Field::Time(place), Value::Number(n)) => *place = Duration::from_secs_f64(n),
            (Field::Number(place), Value::Number(n)) => *place = n,
            (Field::Switch(place), Value::Switch(on)) => *place = on,
            (Field::Scheduler(place), Value::Scheduler(s)) => *place = s,
            (Field::Control(place), Value::Control(c)) => *place = c,
            _ => unreachable!("a value of the kind that parse() made for this field"),
        }
    }
}

fn number(text: &str) -> Option<f64> {
    let (digits, factor) = text.strip_suffix('%').map_or((text, 1.0), |text| (text, 0.01));
    digits.trim().parse::<f64>().ok().map(|n| n * factor).filter(|n| n.is_finite())
}

fn find<T: Copy>(known: &[(&str, T)], text: &str) -> Option<T> {
    known.iter().find(|(name, _)| *name == text).map(|(_, value)| *value)
}

fn name_of<T: PartialEq>(known: &[(&'static str, T)], value: T) -> &'static str {
    known.iter().find(|(_, one)| *one == value).map_or("", |(name, _)| name)
}

fn names<T>(known: &[(&'static str, T)]) -> String {
    known.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(" or ")
}

/// A rate that reads back as it is.
fn show_rate(bytes_per_s: u64) -> String {
    for (unit, factor) in [("GB/s", 1_000_000_000), ("MB/s", 1_000_000), ("kB/s", 1000)] {
        if bytes_per_s >= factor && bytes_per_s.is_multiple_of(factor / 1000) {
            return format!("{}{unit}", bytes_per_s as f64 / factor as f64);
        }
    }
    format!("{bytes_per_s}B/s")
}
