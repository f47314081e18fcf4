//! What work costs on this machine: the constants that the virtual world's cores and disk need, measured with
//! the engine's own code on real sockets and files.
//!
//! | file | measures |
//! | --- | --- |
//! | `cores` | checksums, copies, compression of segment files |
//! | `indexing` | parsing and indexing documents |
//! | `transport` | sending and receiving messages |
//! | `disk` | sequential reads and writes, small reads, syncs |
//! | `clock` | core time of a thread and of the process |
//!
//! Core constants are core time, not elapsed time: other programs on the machine disturb them little. Disk
//! constants are elapsed time.

pub(crate) mod clock;
mod cores;
mod disk;
mod indexing;
mod transport;

use std::path::Path;

use world::model::{ModelError, Models, Parameter, parameters};

use crate::Error;

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

    /// A value of this parameter as plans write it, in three digits.
    ///
    /// # Errors
    /// If it is out of the parameter's range.
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

/// Measures everything, some seconds a lap, with files in a directory of its own below `dir`. `tell` hears
/// what is measured next.
///
/// # Errors
/// If the directory cannot be written, or something of the engine fails.
pub fn calibrate(dir: &Path, laps: u32, tell: impl Fn(&str)) -> Result<Vec<Measurement>, Error> {
    let io = |source| Error::Io { what: "make a directory in", path: dir.to_owned(), source };
    let own = tempfile::Builder::new().prefix("narrows-calibrate-").tempdir_in(dir).map_err(io)?;
    let mut measured = world::real_world::run(1, async |env| {
        tell("parsing and indexing");
        let (mut measured, chunks) = indexing::measure(&env, own.path(), laps).await?;
        tell("checksums, copies, compression");
        measured.extend(cores::measure(&env, &chunks, laps).await?);
        Ok::<_, Error>(measured)
    })?;
    tell("messages between nodes");
    measured.extend(transport::measure(laps)?);
    tell("the disk");
    measured.extend(disk::measure(own.path(), laps)?);
    let place = |m: &Measurement| parameters().iter().position(|row| row.name == m.parameter);
    measured.sort_by_key(place);
    Ok(measured)
}

/// An [`Error`] of a part of the engine.
fn failed(what: &'static str, reason: impl ToString) -> Error {
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
        assert_eq!(text("disk.sync", 1.236e-4).unwrap(), "124us");
        assert_eq!(text("cores.index_document", 2.3456e-6).unwrap(), "2350ns");
        assert_eq!(text("cores.decompress_speedup", 4.3256).unwrap(), "4.33");
        let refused = text("disk.sync", 11.0).unwrap_err().to_string();
        assert!(refused.contains("out of range"), "{refused}");
    }

    /// Small, and in whatever build tests run: the figures mean nothing, that they come does.
    #[test]
    fn everything_is_measured_and_fits_the_table() {
        let dir = tempfile::tempdir().unwrap();
        let measured = calibrate(dir.path(), 1, |_| {}).unwrap();
        let names: Vec<&str> = measured.iter().map(|m| m.parameter).collect();
        let all = parameters().iter().map(|row| row.name);
        let expected: Vec<&str> = all
            .filter(|name| name.starts_with("cores.") || name.starts_with("disk."))
            .filter(|name| {
                let given = [
                    "count",
                    "request_bytes",
                    "queue_depth",
                    "scheduler",
                    "slice_idle",
                    "competitors",
                    "spread",
                    // Of searches nothing is measured yet; a message waits for no thread here.
                    "search_document",
                    "search_bytes_per_s",
                    "dispatch",
                ];
                !given.iter().any(|end| name.ends_with(end))
            })
            .collect();
        assert_eq!(names, expected);
        for m in &measured {
            assert_eq!(m.laps.len(), 1);
            m.text(m.laps[0]).unwrap_or_else(|error| panic!("{error}"));
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "nothing is left");
    }
}
