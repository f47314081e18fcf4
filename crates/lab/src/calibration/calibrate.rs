//! Measuring everything.

use std::path::Path;

use clusters::TemporaryDir;
use world::model::parameters;

use super::measurement::Measurement;
use super::{cpu, disk, indexing, transport};
use crate::error::{Error, Result};
use crate::machine::is_in_memory;

/// Measures everything, some seconds a lap, with files in a directory of its own below `dir`. `tell` hears what is
/// measured next. Where `dir` is in memory nothing is measured of the disk. Fails if the directory cannot be written,
/// or something of the engine fails.
pub fn calibrate(dir: &Path, laps: u32, tell: &dyn Fn(&str)) -> Result<Vec<Measurement>> {
    let io = |source| Error::Io { what: "make a directory in", path: dir.to_owned(), source };
    let own = TemporaryDir::make_in(dir).map_err(io)?;
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
