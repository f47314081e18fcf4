//! Measuring everything.

use std::path::Path;

use world::model::parameters;

use super::measurement::Measurement;
use super::{cpu, disk, indexing, transport};
use crate::error::{Error, Result};
use crate::machine::is_in_memory;

/// Measures everything, some seconds a lap, with files in a directory of its own below `dir`. `tell` hears what is
/// measured next. Where `dir` is in memory nothing is measured of the disk. Fails if the directory cannot be written,
/// or something of the engine fails.
pub fn calibrate(dir: &Path, laps: u32, tell: impl Fn(&str)) -> Result<Vec<Measurement>> {
    let io = |source| Error::Io { what: "make a directory in", path: dir.to_owned(), source };
    let own = tempfile::Builder::new().prefix("narrows-calibrate-").tempdir_in(dir).map_err(io)?;
    let mut measured = world::real_world::run(1, async |env| {
        tell("parsing and indexing");
        let (mut measured, chunks) = indexing::measure(&env, own.path(), laps).await?;
        tell("checksums, copies, compression");
        measured.extend(cpu::measure(&env, &chunks, laps).await?);
        Ok::<_, Error>(measured)
    })?;
    tell("messages between nodes");
    measured.extend(transport::measure(laps)?);
    if !is_in_memory(own.path()) {
        tell("the disk");
        measured.extend(disk::measure(own.path(), laps)?);
    }
    let place = |m: &Measurement| parameters().iter().position(|row| row.name == m.parameter);
    measured.sort_by_key(place);
    Ok(measured)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Small, and in whatever build tests run: the figures mean nothing, that they come does. Of memory no disk is
    /// measured: below `/dev/shm` files are in memory where they are anywhere.
    #[test]
    fn everything_is_measured_and_fits_the_table() {
        check(&tempfile::tempdir().unwrap());
        match tempfile::tempdir_in("/dev/shm") {
            Ok(dir) => check(&dir),
            Err(error) => println!("ignored, because nothing can be written in /dev/shm: {error}"),
        }
    }

    fn check(dir: &tempfile::TempDir) {
        let has_disk = !is_in_memory(dir.path());
        let measured = calibrate(dir.path(), 1, |_| {}).unwrap();
        let names: Vec<&str> = measured.iter().map(|m| m.parameter).collect();
        let all = parameters().iter().map(|row| row.name);
        let expected: Vec<&str> = all
            .filter(|name| name.starts_with("cores.") || (has_disk && name.starts_with("disk.")))
            .filter(|name| {
                let given = [
                    "count", "request_bytes", "queue_depth", "scheduler", "slice_idle",
                    "competitors", "spread",
                    // Of searches nothing is measured yet; a message waits for no thread here.
                    "search_document", "search_bytes_per_s", "dispatch",
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
