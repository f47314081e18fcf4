//! The directory of one run: written while it goes on, readable whatever happened.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{FORMAT, Line, Manifest, Row};

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
    /// A file is there but not what it should be.
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
        /// The manifest.
        path: PathBuf,
        /// Its version.
        found: u32,
    },
}

fn io<'a>(what: &'static str, path: &'a Path) -> impl FnOnce(std::io::Error) -> Error + 'a {
    move |source| Error::Io { what, path: path.to_owned(), source }
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
            File::create(&path).map(BufWriter::new).map_err(io("create", &path))
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
        let any: serde_json::Value = serde_json::from_str(&text).map_err(damaged)?;
        let found = any["format"].as_u64().unwrap_or(0) as u32;
        if found > FORMAT {
            return Err(Error::Newer { path, found });
        }
        let manifest = serde_json::from_value(any).map_err(damaged)?;
        Ok(RunDir { manifest, lines: read(&dir.join(LINES))?, rows: read(&dir.join(ROWS))? })
    }
}

fn read<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>, Error> {
    let file = File::open(path).map_err(io("open", path))?;
    let mut reader = BufReader::new(file);
    let mut values = Vec::new();
    let mut text = String::new();
    loop {
        text.clear();
        if reader.read_line(&mut text).map_err(io("read", path))? == 0 {
            return Ok(values);
        }
        match serde_json::from_str(&text) {
            Ok(value) => values.push(value),
            Err(_) if !text.ends_with('\n') => return Ok(values),
            Err(source) => {
                let line = values.len() + 1;
                return Err(Error::Damaged { path: path.to_owned(), line, source });
            }
        }
    }
}
