//! The directory of one run: written while it goes on, readable whatever happened.
//!
//! Every file says its format first: the manifest in a field, the other two in a line `{"format":4}` before all
//! others. Files of formats 1 to 3 have no such line; they are read as they are.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::line::Line;
use crate::manifest::Manifest;
use crate::row::Row;

/// The version of the format that this build writes. Older ones still open. 2 added observations of live clusters, 3
/// what following is like, 4 a first line with the version to `lines.jsonl` and `rows.jsonl`.
pub const FORMAT: u32 = 4;

const MANIFEST: &str = "manifest.json";
const LINES: &str = "lines.jsonl";
const ROWS: &str = "rows.jsonl";

/// Why a run's directory could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file system said no.
    #[error("{what} {path}: {source}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// On which path.
        path: PathBuf,
        /// What was found.
        source: std::io::Error,
    },
    /// A line of a file cannot be parsed.
    #[error("{path} line {line}: {source}; the run cannot be read beyond this")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What the parser said.
        source: serde_json::Error,
    },
    /// Written by a newer narrows.
    #[error("{path} has format {found}, this narrows reads up to {FORMAT}; use a newer one")]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
    },
}

fn io<'a>(what: &'static str, path: &'a Path) -> impl FnOnce(std::io::Error) -> Error + 'a {
    move |source| Error::Io { what, path: path.to_owned(), source }
}

/// What a file says of itself: a field of the manifest, and the first line of the others.
#[derive(Serialize, Deserialize)]
struct Version {
    format: u32,
}

impl Version {
    /// Refuses the file if it is newer than this build.
    fn check(&self, path: &Path) -> Result<(), Error> {
        if self.format <= FORMAT {
            return Ok(());
        }
        Err(Error::Newer { path: path.to_owned(), found: self.format })
    }
}

/// Whether a directory holds the record of a run.
pub fn is_run(dir: &Path) -> bool {
    dir.join(MANIFEST).is_file()
}

/// Appends to the record of a run in progress. Each line reaches the file system before the call
/// returns, so a killed run is readable up to its last moment.
#[derive(Debug)]
pub struct Writer {
    dir: PathBuf,
    lines: BufWriter<File>,
    rows: BufWriter<File>,
}

impl Writer {
    /// Creates `dir` and its files. Fails if the directory cannot be written, before anything ran.
    pub fn create(dir: &Path, manifest: &Manifest) -> Result<Self, Error> {
        fs::create_dir_all(dir).map_err(io("create run directory", dir))?;
        let open = |name: &str| {
            let path = dir.join(name);
            let mut file = File::create(&path).map(BufWriter::new).map_err(io("create", &path))?;
            append(&mut file, &Version { format: FORMAT }).map_err(io("append to", &path))?;
            Ok(file)
        };
        let writer = Writer { dir: dir.to_owned(), lines: open(LINES)?, rows: open(ROWS)? };
        writer.manifest(manifest)?;
        Ok(writer)
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Replaces the manifest atomically.
    pub fn manifest(&self, manifest: &Manifest) -> Result<(), Error> {
        replace_manifest(&self.dir, manifest)
    }

    /// Appends a line.
    pub fn line(&mut self, line: &Line) -> Result<(), Error> {
        append(&mut self.lines, line).map_err(io("append to", &self.dir.join(LINES)))
    }

    /// Appends a row.
    pub fn row(&mut self, row: &Row) -> Result<(), Error> {
        append(&mut self.rows, row).map_err(io("append to", &self.dir.join(ROWS)))
    }
}

/// Replaces the manifest of the run in `dir` atomically; for when its writer is gone already.
pub fn replace_manifest(dir: &Path, manifest: &Manifest) -> Result<(), Error> {
    let (path, fresh) = (dir.join(MANIFEST), dir.join("manifest.json.new"));
    let text = serde_json::to_string_pretty(manifest).expect("a manifest is plain data");
    fs::write(&fresh, text).map_err(io("write", &fresh))?;
    fs::rename(&fresh, &path).map_err(io("replace", &path))
}

fn append(file: &mut BufWriter<File>, value: &impl Serialize) -> std::io::Result<()> {
    serde_json::to_writer(&mut *file, value)?;
    file.write_all(b"\n")?;
    file.flush()
}

/// A finished or interrupted run, read back.
#[derive(Clone, Debug, PartialEq)]
pub struct RunDir {
    /// The manifest.
    pub manifest: Manifest,
    /// Every line, in the order of time.
    pub lines: Vec<Line>,
    /// Every row.
    pub rows: Vec<Row>,
}

impl RunDir {
    /// Reads a run. A last line that was cut off by a kill is left out; damage elsewhere is an error.
    pub fn open(dir: &Path) -> Result<Self, Error> {
        let path = dir.join(MANIFEST);
        let text = fs::read_to_string(&path).map_err(io("read", &path))?;
        let damaged = |source| Error::Damaged { path: path.clone(), line: 1, source };
        // The version first: what else stands in a newer manifest is not known here.
        serde_json::from_str::<Version>(&text).map_err(damaged)?.check(&path)?;
        let manifest = serde_json::from_str(&text).map_err(damaged)?;
        Ok(RunDir { manifest, lines: read(&dir.join(LINES))?, rows: read(&dir.join(ROWS))? })
    }
}

/// Reads a file of lines, after the one with its version where it has one.
fn read<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>, Error> {
    let file = File::open(path).map_err(io("open", path))?;
    let mut reader = BufReader::new(file);
    let mut values = Vec::new();
    let mut text = String::new();
    let mut number = 0;
    loop {
        text.clear();
        number += 1;
        if reader.read_line(&mut text).map_err(io("read", path))? == 0 {
            return Ok(values);
        }
        if number == 1
            && let Ok(version) = serde_json::from_str::<Version>(&text)
        {
            version.check(path)?;
            continue;
        }
        match serde_json::from_str(&text) {
            Ok(value) => values.push(value),
            Err(_) if !text.ends_with('\n') => return Ok(values),
            Err(source) => {
                return Err(Error::Damaged { path: path.to_owned(), line: number, source });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(variant: &str) -> String {
        serde_json::to_string(&Row::measured(variant, 1, 1.0, 1)).unwrap() + "\n"
    }

    fn rows(text: &str) -> Result<Vec<String>, Error> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(ROWS);
        fs::write(&path, text).unwrap();
        Ok(read::<Row>(&path)?.into_iter().map(|row| row.variant).collect())
    }

    #[test]
    fn rows_are_read_after_the_version_or_without_one() {
        let version = format!("{{\"format\":{FORMAT}}}\n");
        assert_eq!(rows(&(version.clone() + &row("a"))).unwrap(), ["a"]);
        assert_eq!(rows(&(row("a") + &row("b"))).unwrap(), ["a", "b"], "formats 1 to 3");
        assert_eq!(rows(&version[..4]).unwrap(), [""; 0], "killed at its first line");
        assert_eq!(rows(&(version + &row("a") + &row("b")[..9])).unwrap(), ["a"], "killed later");
    }

    #[test]
    fn a_newer_file_is_refused_and_damage_is_told_with_its_line() {
        let newer = rows(&format!("{{\"format\":{}}}\n", FORMAT + 1)).unwrap_err();
        assert!(matches!(newer, Error::Newer { found, .. } if found == FORMAT + 1), "{newer}");
        let damaged = rows(&format!("{{\"format\":{FORMAT}}}\n{}oops\n", row("a"))).unwrap_err();
        assert!(matches!(damaged, Error::Damaged { line: 3, .. }), "{damaged}");
    }
}
