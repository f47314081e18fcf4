//! What was measured of a parameter of the virtual world.

use world::model::{ModelError, Models, Parameter, parameters};

use crate::error::Error;

/// A parameter of the virtual world, as it was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurement {
    /// Its name in [`parameters`].
    pub parameter: &'static str,
    /// A value for each lap: bytes a second, seconds, or times, as the parameter is.
    pub laps: Vec<f64>,
    /// What was done.
    pub how: &'static str,
}

impl Measurement {
    /// The row of the parameter's table.
    pub fn row(&self) -> &'static Parameter {
        let found = parameters().iter().find(|row| row.name == self.parameter);
        found.expect("only what has a row is measured")
    }

    /// A value of this parameter as plans write it, in three digits. Fails if it is out of the parameter's range.
    pub fn text(&self, value: f64) -> Result<String, ModelError> {
        let row = self.row();
        let rounded = three_digits(value);
        let given = match row.unit {
            "bytes/s" => format!("{rounded:.0}B/s"),
            "time" => format!("{:.0}ns", rounded * 1e9),
            _ => rounded.to_string(),
        };
        let mut models = Models::default();
        models.set(self.parameter, &given)?;
        Ok(row.text(&models))
    }
}

fn three_digits(value: f64) -> f64 {
    format!("{value:.2e}").parse().expect("a number that was just written")
}

/// A parameter that was not measured, so that it stays what it is assumed to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotMeasured {
    /// Its name.
    pub parameter: &'static str,
    /// Why, as the end of a sentence.
    pub why: String,
}

/// What was found out of a target: nodes that were started for it, or a cluster that was there.
#[derive(Clone, Debug, PartialEq)]
pub struct TargetCalibration {
    /// What was measured.
    pub measured: Vec<Measurement>,
    /// What was not measured, and why.
    pub not_measured: Vec<NotMeasured>,
}

impl TargetCalibration {
    /// Of what was tried, and of parameters that are out of reach.
    pub(super) fn of(
        tried: impl IntoIterator<Item = Figure>,
        out_of_reach: impl IntoIterator<Item = Needs>,
    ) -> TargetCalibration {
        let (mut measured, mut not_measured) = (Vec::new(), Vec::new());
        for Figure { measured: one, why } in tried {
            match one.laps.is_empty() {
                true => not_measured.push(NotMeasured { parameter: one.parameter, why }),
                false => measured.push(one),
            }
        }
        for (parameter, needs) in out_of_reach {
            not_measured.push(NotMeasured { parameter, why: format!("it needs {needs}") });
        }
        TargetCalibration { measured, not_measured }
    }
}

/// A parameter, and what it would need to be measured.
pub(super) type Needs = (&'static str, &'static str);

/// What core constants need that are measured on this machine alone.
pub(super) const CORE_TIME: &str = "core time of a thread, which no API tells";
const DISK: &str = "the disk of a node by itself, which no API reaches";
/// What is measured on this machine and in no target, and what that would need.
pub(super) const OUT_OF_REACH: [Needs; 7] = [
    ("cores.copy_bytes_per_s", CORE_TIME),
    ("cores.zstd_bytes_per_s", "nodes that send in Zstandard, which those of the field do not"),
    ("cores.parse_bytes_per_s", CORE_TIME),
    ("disk.read_bytes_per_s", DISK),
    ("disk.write_bytes_per_s", DISK),
    ("disk.seek", DISK),
    ("disk.sync", DISK),
];

/// A parameter that is measured: its laps, or why it has none.
pub(super) struct Figure {
    measured: Measurement,
    why: String,
}

impl Figure {
    pub(super) fn new(parameter: &'static str, how: &'static str) -> Figure {
        Figure { measured: named(parameter, how), why: "no lap was done of it".to_owned() }
    }

    pub(super) fn lap(&mut self, value: Result<f64, String>) {
        match value {
            Ok(value) => self.measured.laps.push(value),
            Err(why) => self.why = why,
        }
    }
}

/// A measurement of which no lap was done yet.
pub(super) fn named(parameter: &'static str, how: &'static str) -> Measurement {
    Measurement { parameter, laps: Vec::new(), how }
}

/// An [`Error`] of a part of the engine.
pub(super) fn failed(what: &'static str, reason: impl ToString) -> Error {
    Error::Calibration { what, reason: reason.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_as_plans_read_them() {
        let text =
            |parameter, value| Measurement { parameter, laps: vec![value], how: "" }.text(value);
        assert_eq!(text("cores.lz4_bytes_per_s", 1_234_567_890.0).unwrap(), "1.23GB/s");
        assert_eq!(text("disk.sync", 1.236e-4).unwrap(), "124µs");
        assert_eq!(text("cores.index_document", 2.3456e-6).unwrap(), "2.35µs");
        assert_eq!(text("cores.decompress_speedup", 4.3256).unwrap(), "4.33");
        let refused = text("disk.sync", 11.0).unwrap_err().to_string();
        assert!(refused.contains("out of range"), "{refused}");
    }
}
