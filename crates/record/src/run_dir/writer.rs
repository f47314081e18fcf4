//! Writes the files of a run.

use std::fs::{self, File};
use std::io::{ErrorKind, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::format::{Error, FORMAT, LINES, MANIFEST, ROWS, Version, io};
use super::sums::{Sum, Sums};
use crate::line::Line;
use crate::manifest::{Manifest, Status};
use crate::row::Row;

/// `manifest.json`, whole.
#[derive(Serialize)]
struct Stored<'a> {
    #[serde(flatten)]
    manifest: &'a Manifest,
    #[serde(flatten)]
    sums: Sums,
}

/// Appends to the record of a run in progress. Each line reaches the file system before the call
/// returns, so a killed run is readable up to its last moment.
#[derive(Debug)]
pub struct Writer {
    dir: PathBuf,
    lines: File,
    rows: File,
}

impl Writer {
    /// Creates `dir` and its files. Fails if the directory cannot be written, before anything ran.
    pub fn create(dir: &Path, manifest: &Manifest) -> Result<Self, Error> {
        fs::create_dir_all(dir).map_err(io("create run directory", dir))?;
        Self::begin(dir, manifest).inspect_err(|_| {
            // Without its manifest it is no run, and nobody would find what is left of it.
            for name in [LINES, ROWS] {
                let _ = fs::remove_file(dir.join(name));
            }
            let _ = fs::remove_dir(dir);
        })
    }

    fn begin(dir: &Path, manifest: &Manifest) -> Result<Self, Error> {
        let open = |name: &str| {
            let path = dir.join(name);
            let mut file = create(&path).map_err(io("create", &path))?;
            append(&mut file, &Version { format: FORMAT }).map_err(io("append to", &path))?;
            Ok(file)
        };
        let writer = Writer { dir: dir.to_owned(), lines: open(LINES)?, rows: open(ROWS)? };
        // Where the file system has no locks, what broke off is taken for running.
        let _ = writer.lines.try_lock();
        write_manifest(dir, manifest, Sums::default())?;
        Ok(writer)
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Keeps the run from counting as broken off once the writer is gone, for as long as it takes to say how it ended.
    /// None where no more files can be opened.
    pub fn hold(&self) -> Option<File> {
        self.lines.try_clone().ok()
    }

    /// As [`replace_manifest`]. Of a run that has ended nothing is to be appended afterwards.
    pub fn manifest(&self, manifest: &Manifest) -> Result<(), Error> {
        replace_manifest(&self.dir, manifest)
    }

    /// Appends a line. Fails if it cannot be written, as all of these do.
    pub fn line(&mut self, line: &Line) -> Result<(), Error> {
        append(&mut self.lines, line).map_err(io("append to", &self.dir.join(LINES)))
    }

    /// Appends a row.
    pub fn row(&mut self, row: &Row) -> Result<(), Error> {
        append(&mut self.rows, row).map_err(io("append to", &self.dir.join(ROWS)))
    }
}

/// Replaces the manifest of the run in `dir` atomically; for when its writer is gone already. That of a run that has
/// ended gets the lengths and hashes of the other files. Fails if these cannot be read, or it cannot be written.
pub fn replace_manifest(dir: &Path, manifest: &Manifest) -> Result<(), Error> {
    let mut sums = Sums::default();
    for name in [LINES, ROWS].iter().filter(|_| manifest.status != Status::Running) {
        let path = dir.join(name);
        sums.files.insert((*name).to_owned(), Sum::of(&path).map_err(io("read", &path))?);
    }
    write_manifest(dir, manifest, sums)
}

fn write_manifest(dir: &Path, manifest: &Manifest, sums: Sums) -> Result<(), Error> {
    let (path, fresh) = (dir.join(MANIFEST), dir.join("manifest.json.new"));
    let stored = Stored { manifest, sums };
    let text = serde_json::to_string_pretty(&stored).expect("a manifest is plain data");
    let written = create(&fresh).and_then(|mut file| file.write_all(text.as_bytes()));
    let written = written.map_err(io("write", &fresh));
    let replaced = written.and_then(|()| fs::rename(&fresh, &path).map_err(io("replace", &path)));
    replaced.inspect_err(|_| {
        // On a disk that is full there is a part of it.
        let _ = fs::remove_file(&fresh);
    })
}

/// Makes a file in place of what has its name: a link there may lead to any file of whoever writes the record.
fn create(path: &Path) -> std::io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => File::create_new(path),
    }
}

/// Appends a line, or nothing: a part of one, on a disk that is full, would take the next line with it once there is
/// room.
fn append(file: &mut File, value: &impl Serialize) -> std::io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    let begins = file.stream_position()?;
    file.write_all(&line).inspect_err(|_| {
        // Where this fails, too, the part is found when the record is read.
        let _ = file.set_len(begins).and_then(|()| file.seek(SeekFrom::Start(begins)));
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_cannot_begin_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let run = dir.path().join("run");
        // What stands in the manifest's place is in its way, as a full disk would be.
        let obstacle = run.join(MANIFEST);
        fs::create_dir_all(obstacle.join("full")).unwrap();
        Writer::create(&run, &Manifest::unknown("run", FORMAT)).unwrap_err();
        let left = fs::read_dir(&run).unwrap().map(|entry| entry.unwrap().path());
        assert_eq!(left.collect::<Vec<_>>(), [obstacle]);
    }

    #[test]
    fn a_record_goes_through_no_link_in_its_directory() {
        let dir = tempfile::tempdir().unwrap();
        let (mine, run) = (dir.path().join("mine"), dir.path().join("run"));
        fs::write(&mine, "mine").unwrap();
        fs::create_dir(&run).unwrap();
        for name in [LINES, ROWS, MANIFEST, "manifest.json.new"] {
            std::os::unix::fs::symlink(&mine, run.join(name)).unwrap();
        }
        Writer::create(&run, &Manifest::unknown("run", FORMAT)).unwrap();
        assert_eq!(fs::read_to_string(&mine).unwrap(), "mine");
        assert!([LINES, ROWS, MANIFEST].iter().all(|name| !run.join(name).is_symlink()));
    }

    #[test]
    fn a_line_that_has_no_room_leaves_no_part_of_it() {
        let mut file = tempfile::tempfile().unwrap();
        // As far as the file system lets a file reach: there it is full.
        let (mut ends, mut beyond) = (0, u64::MAX / 2 + 1);
        while beyond - ends > 1 {
            let middle = ends + (beyond - ends) / 2;
            match file.seek(SeekFrom::Start(middle)) {
                Ok(_) => ends = middle,
                Err(_) => beyond = middle,
            }
        }
        let begins = file.seek(SeekFrom::Start(ends - 4)).unwrap();
        assert!(append(&mut file, &"more than four bytes").is_err());
        assert_eq!(file.metadata().unwrap().len(), begins);
        assert_eq!(file.stream_position().unwrap(), begins);
    }
}
