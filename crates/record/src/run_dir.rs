//! The directory of one run: written while it goes on, readable whatever happened.
//!
//! Every file says its format first: the manifest in a field, the other two in a line `{"format":N}` ([`FORMAT`])
//! before all others. Files of formats 1 to 3 have no such line; they are read as they are. Once a run has ended, its
//! manifest has the lengths and hashes of the other two; those of earlier builds have none.
//!
//! Whoever writes a record holds a lock on its lines, and the kernel lets go of it with the process: so a run that
//! broke off is known from one that goes on.

mod format;
mod sums;
mod writer;

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::path::Path;

use serde::de::DeserializeOwned;

pub use self::format::{Error, FORMAT};
use self::format::{LINES, MANIFEST, ROWS, Version, io, open};
use self::sums::Sums;
pub use self::writer::{Writer, replace_manifest};
use crate::line::Line;
use crate::manifest::{Manifest, Status, TwinQuestion};
use crate::row::Row;

/// From this format on, files of lines begin with their version.
const FIRST_WITH_VERSION_LINES: u32 = 4;

/// Whether a directory holds the record of a run.
pub fn is_run(dir: &Path) -> bool {
    dir.join(MANIFEST).is_file()
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
    /// What of the record is missing or damaged and so was left out, a sentence each.
    pub damage: Vec<String>,
}

impl RunDir {
    /// Reads a run, as much of it as can be read; [`RunDir::damage`] says what cannot.
    ///
    /// # Errors
    /// If the directory cannot be read, or a newer narrows wrote it.
    pub fn open(dir: &Path) -> Result<Self, Error> {
        let mut damage = Vec::new();
        // Before the manifest is read: a run that ends meanwhile says so there before its lock goes.
        let is_left = is_left(&dir.join(LINES));
        let (mut manifest, sums) = read_manifest(dir, &mut damage)?;
        // A run that was killed breaks off in the middle of a line: that is no damage.
        let ended = manifest.status != Status::Running;
        let lines = read(&dir.join(LINES), manifest.format, ended, &sums, &mut damage)?;
        let mut rows = read(&dir.join(ROWS), manifest.format, ended, &sums, &mut damage)?;
        drop_repeated(&mut rows, &mut damage);
        if !ended && is_left {
            manifest.status = Status::BrokenOff;
        }
        Ok(RunDir { manifest, lines, rows, damage })
    }

    /// One lap of each variant by itself, with what is of no lap.
    #[must_use]
    pub fn of_lap(&self, lap: u32) -> RunDir {
        let is_of = |line: &&Line| line.lap().is_none_or(|of| of == lap);
        RunDir {
            manifest: self.manifest.clone(),
            lines: self.lines.iter().filter(is_of).cloned().collect(),
            rows: self.rows.iter().filter(|row| row.lap == lap).cloned().collect(),
            damage: self.damage.clone(),
        }
    }

    /// The word for what a twin waited for; none of other runs.
    pub fn until(&self) -> Option<&str> {
        let until = self.manifest.question.as_ref()?.until.as_str();
        let mut names = self.manifest.variants.iter().map(|variant| variant.name.as_str());
        let is_placed = names.any(|name| self.never_green(name).next().is_some());
        Some(if is_placed { TwinQuestion::PLACED } else { until })
    }

    /// Which copies of a variant of a twin find no place and why, a sentence each; none where all are made.
    pub fn never_green(&self, variant: &str) -> impl Iterator<Item = &str> {
        self.lines.iter().filter_map(move |line| match line {
            Line::Note { variant: Some(of), text, .. } if of == variant => {
                text.contains(TwinQuestion::STAYS).then_some(text.as_str())
            }
            _ => None,
        })
    }

    /// Whether it ended before anything began: its clusters did not start, or could not be reached.
    pub fn failed_to_start(&self) -> bool {
        let ended = matches!(self.manifest.status, Status::Failed | Status::Interrupted);
        let begun = |line: &Line| !matches!(line, Line::Note { .. });
        ended && self.rows.is_empty() && !self.lines.iter().any(begun)
    }
}

/// Whether nobody writes these lines any more. Where there are no locks nobody knows, and it is taken for written.
fn is_left(lines: &Path) -> bool {
    open(lines, u64::MAX).is_ok_and(|file| file.try_lock_shared().is_ok())
}

/// Leaves out rows that stand there again: a variant has one in each lap, and figures of rows are added up.
fn drop_repeated(rows: &mut Vec<Row>, damage: &mut Vec<String>) {
    let (mut seen, before) = (BTreeSet::new(), rows.len());
    rows.retain(|row| seen.insert((row.variant.clone(), row.lap)));
    let more = before - rows.len();
    if more > 0 {
        damage.push(format!("{ROWS} has variants twice in a lap: rows left out: {more}."));
    }
}

/// Bytes of a file of lines, of which all are held.
const HELD_BYTES_MAX: u64 = 4 << 30;
/// Bytes of a manifest, which grows with no run: a plan, its settings and its nodes.
const MANIFEST_BYTES_MAX: u64 = 256 << 20;

/// The manifest; one that knows nothing but the run's name where it cannot be read.
fn read_manifest(dir: &Path, damage: &mut Vec<String>) -> Result<(Manifest, Sums), Error> {
    let path = dir.join(MANIFEST);
    let mut bytes = Vec::new();
    let read = open(&path, MANIFEST_BYTES_MAX).and_then(|mut file| file.read_to_end(&mut bytes));
    read.map_err(io("read", &path))?;
    // The version first: what else stands in a newer manifest is not known here.
    let version = serde_json::from_slice::<Version>(&bytes);
    if let Ok(version) = &version {
        version.check(&path)?;
    }
    let read = version.and_then(|_| {
        Ok((serde_json::from_slice(&bytes)?, serde_json::from_slice(&bytes).unwrap_or_default()))
    });
    read.or_else(|error| {
        damage.push(format!(
            "{MANIFEST} is damaged ({error}): the plan, its settings and how the run ended are not known."
        ));
        let name = dir.file_name().unwrap_or(dir.as_os_str());
        Ok((Manifest::unknown(&name.to_string_lossy(), FORMAT), Sums::default()))
    })
}

/// Reads a file of lines, after the one with its version. `format` is that of the manifest; in a run that `ended`, a
/// last line that is cut off is damage, too.
fn read<T: DeserializeOwned>(
    path: &Path,
    format: u32,
    ended: bool,
    sums: &Sums,
    damage: &mut Vec<String>,
) -> Result<Vec<T>, Error> {
    let (name, said) = (path.file_name().unwrap_or_default().to_string_lossy(), damage.len());
    let file = match open(path, HELD_BYTES_MAX) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            damage.push(format!("{name} is missing, and with it all that it held."));
            return Ok(Vec::new());
        }
        Err(error) if error.kind() == ErrorKind::InvalidInput => {
            damage.push(format!("{name} is left out: {error}."));
            return Ok(Vec::new());
        }
        opened => opened.map_err(io("open", path))?,
    };
    let mut reader = BufReader::new(file);
    let (mut values, mut bad, mut bytes) = (Vec::new(), Vec::new(), Vec::new());
    let mut has_version = format < FIRST_WITH_VERSION_LINES;
    for number in 1.. {
        bytes.clear();
        if reader.read_until(b'\n', &mut bytes).map_err(io("read", path))? == 0 {
            break;
        }
        if number == 1
            && let Ok(version) = serde_json::from_slice::<Version>(&bytes)
        {
            version.check(path)?;
            has_version = true;
            continue;
        }
        match serde_json::from_slice(&bytes) {
            Ok(value) => values.push(value),
            Err(_) if !bytes.ends_with(b"\n") && !ended => {}
            Err(_) if !bytes.ends_with(b"\n") => {
                damage.push(format!("{name} breaks off in line {number}, which is left out."));
            }
            Err(_) => bad.push(number),
        }
    }
    if !has_version && ended {
        damage.push(format!("{name} has lost its beginning."));
    }
    if let [first, more @ ..] = bad.as_slice() {
        let more =
            if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
        damage.push(format!("{name}: line {first}{more} cannot be read and is left out."));
    }
    // What no line shows: lines that are gone, digits that are others, the file of another run.
    if damage.len() == said {
        damage.extend(sums.files.get(&*name).and_then(|sum| sum.damage(&name, path)));
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use super::*;
    use crate::line::Phase;

    fn row(variant: &str) -> String {
        serde_json::to_string(&Row::measured(variant, 1, 1.0, 1)).unwrap() + "\n"
    }

    fn read_rows(bytes: &[u8], ended: bool) -> Result<(Vec<String>, Vec<String>), Error> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(ROWS);
        fs::write(&path, bytes).unwrap();
        let mut damage = Vec::new();
        let rows = read::<Row>(&path, FORMAT, ended, &Sums::default(), &mut damage)?;
        Ok((rows.into_iter().map(|row| row.variant).collect(), damage))
    }

    #[test]
    fn what_is_no_ordinary_file_is_left_out() {
        for path in ["/dev/zero", "/dev", "/proc/self/fd"] {
            let mut damage = Vec::new();
            let rows = read::<Row>(Path::new(path), FORMAT, true, &Sums::default(), &mut damage);
            assert!(
                rows.unwrap().is_empty() && damage[0].contains("no ordinary file"),
                "{damage:?}"
            );
        }
    }

    #[test]
    fn a_run_that_was_killed_is_read_up_to_its_last_moment() {
        let version = format!("{{\"format\":{FORMAT}}}\n");
        let rows = |text: &str| {
            let (rows, damage) = read_rows(text.as_bytes(), false).unwrap();
            assert_eq!(damage, [""; 0], "{text}");
            rows
        };
        assert_eq!(rows(&(version.clone() + &row("a"))), ["a"]);
        assert_eq!(rows(&version[..4]), [""; 0], "killed at its first line");
        assert_eq!(rows(&(version + &row("a") + &row("b")[..9])), ["a"], "killed later");
    }

    #[test]
    fn damage_is_told_and_the_rest_is_read() {
        let version = format!("{{\"format\":{FORMAT}}}\n");
        let torn = version.clone() + &row("a") + &row("b")[..9];
        let (rows, damage) = read_rows(torn.as_bytes(), true).unwrap();
        assert_eq!(rows, ["a"]);
        assert_eq!(damage, ["rows.jsonl breaks off in line 3, which is left out."]);
        let (rows, damage) = read_rows(b"", true).unwrap();
        assert_eq!(
            (rows.len(), damage),
            (0, vec!["rows.jsonl has lost its beginning.".to_owned()])
        );
        let mut bytes = (version + &row("a")).into_bytes();
        bytes.extend(b"oops\n\xff\xfe\n");
        bytes.extend(row("b").into_bytes());
        let (rows, damage) = read_rows(&bytes, true).unwrap();
        assert_eq!(rows, ["a", "b"]);
        assert_eq!(damage, ["rows.jsonl: line 3 and 1 more cannot be read and is left out."]);
    }

    #[test]
    fn a_file_that_is_too_long_is_left_out() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(ROWS);
        File::create(&path).unwrap().set_len(HELD_BYTES_MAX + 1).unwrap();
        let mut damage = Vec::new();
        let rows = read::<Row>(&path, FORMAT, true, &Sums::default(), &mut damage).unwrap();
        assert!(rows.is_empty() && damage[0].contains("more than"), "{damage:?}");
        let path = dir.path().join(MANIFEST);
        File::create(&path).unwrap().set_len(MANIFEST_BYTES_MAX + 1).unwrap();
        let refused = RunDir::open(dir.path()).unwrap_err().to_string();
        assert!(refused.contains("more than"), "{refused}");
    }

    #[test]
    fn a_row_that_stands_twice_counts_once() {
        let mut rows = ["a", "b", "a"].map(|variant| Row::measured(variant, 1, 1.0, 1)).to_vec();
        rows.push(Row::measured("a", 2, 1.0, 1));
        let mut damage = Vec::new();
        drop_repeated(&mut rows, &mut damage);
        let left = rows.iter().map(|row| (row.variant.as_str(), row.lap));
        assert_eq!(left.collect::<Vec<_>>(), [("a", 1), ("b", 1), ("a", 2)]);
        assert_eq!(damage, ["rows.jsonl has variants twice in a lap: rows left out: 1."]);
    }

    #[test]
    fn a_lap_by_itself_has_its_rows_and_lines_and_those_of_no_lap() {
        let phase = |lap| Line::Phase {
            t_ms: f64::from(lap),
            variant: Some("a".to_owned()),
            lap,
            phase: Phase { name: "load".to_owned(), begins: true },
        };
        let note = Line::Note { t_ms: 0.0, variant: None, text: "a node is slow".to_owned() };
        let run = RunDir {
            manifest: Manifest::unknown("r", FORMAT),
            lines: vec![note.clone(), phase(1), phase(2)],
            rows: [1, 2].map(|lap| Row::measured("a", lap, 1.0, 1)).to_vec(),
            damage: Vec::new(),
        };
        let second = run.of_lap(2);
        assert_eq!((second.lines, second.rows), (vec![note, phase(2)], run.rows[1..].to_vec()));
    }

    #[test]
    fn a_run_that_nobody_writes_any_more_broke_off() {
        let dir = tempfile::tempdir().unwrap();
        let mut manifest = Manifest::unknown("r", FORMAT);
        manifest.status = Status::Running;
        let writer = Writer::create(dir.path(), &manifest).unwrap();
        let status = || RunDir::open(dir.path()).unwrap().manifest.status;
        assert_eq!(status(), Status::Running);
        let held = writer.hold().unwrap();
        drop(writer);
        assert_eq!(status(), Status::Running, "its end is about to be written");
        drop(held);
        assert_eq!(status(), Status::BrokenOff);
        manifest.status = Status::Interrupted;
        replace_manifest(dir.path(), &manifest).unwrap();
        assert_eq!(status(), Status::Interrupted);
    }

    /// A record of a run that ended, of two variants.
    fn ended(dir: &Path, seconds: f64) {
        let mut manifest = Manifest::unknown("r", FORMAT);
        manifest.status = Status::Running;
        let mut writer = Writer::create(dir, &manifest).unwrap();
        for variant in ["a", "b"] {
            let text = format!("{seconds} s of {variant}");
            writer.line(&Line::Note { t_ms: 1.0, variant: None, text }).unwrap();
            writer.row(&Row::measured(variant, 1, seconds, 1)).unwrap();
        }
        drop(writer);
        manifest.status = Status::Complete;
        replace_manifest(dir, &manifest).unwrap();
    }

    /// Whatever happens to a file of a record at rest, it is said.
    #[test]
    fn no_damage_to_a_record_goes_unsaid() {
        let dirs = [1.25, 2.5].map(|seconds| {
            let dir = tempfile::tempdir().unwrap();
            ended(dir.path(), seconds);
            dir
        });
        let [dir, other] = [dirs[0].path(), dirs[1].path()];
        let whole = RunDir::open(dir).unwrap();
        assert_eq!((whole.damage.len(), whole.lines.len(), whole.rows.len()), (0, 2, 2));
        for name in [LINES, ROWS] {
            let (path, bytes) = (dir.join(name), fs::read(dir.join(name)).unwrap());
            let said = |damaged: &[u8]| {
                fs::write(&path, damaged).unwrap();
                let damage = RunDir::open(dir).map(|run| run.damage);
                // A version that was turned may be that of a newer narrows.
                damage.unwrap_or_else(|error| vec![format!("{name} {error}")])
            };
            for len in 0..bytes.len() {
                let damage = said(&bytes[..len]);
                assert!(!damage.is_empty() && damage[0].contains(name), "cut at {len}: {damage:?}");
            }
            for at in 0..bytes.len() {
                let mut turned = bytes.clone();
                turned[at] ^= 1;
                let damage = said(&turned);
                assert!(!damage.is_empty() && damage[0].contains(name), "{at} turned: {damage:?}");
            }
            let end = bytes.iter().take(bytes.len() - 1).rposition(|byte| *byte == b'\n').unwrap();
            let older = said(&bytes[..=end]);
            assert!(older[0].starts_with(&format!("{name} is cut off")), "{older:?}");
            let exchanged = said(&fs::read(other.join(name)).unwrap());
            assert!(exchanged[0].contains(name), "{exchanged:?}");
            fs::remove_file(&path).unwrap();
            assert!(RunDir::open(dir).unwrap().damage[0].contains("missing"));
            assert_eq!(said(&bytes), [""; 0]);
        }
    }

    #[test]
    fn a_newer_file_is_refused() {
        let newer = format!("{{\"format\":{}}}\n", FORMAT + 1);
        let newer = read_rows(newer.as_bytes(), true).unwrap_err();
        assert!(matches!(newer, Error::Newer { found, .. } if found == FORMAT + 1), "{newer}");
    }

    #[test]
    fn without_a_manifest_that_can_be_read_the_rows_are_still_there() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(MANIFEST), "{\"format\":4,\"run\":\"r").unwrap();
        fs::write(dir.path().join(ROWS), format!("{{\"format\":4}}\n{}", row("a"))).unwrap();
        let run = RunDir::open(dir.path()).unwrap();
        assert_eq!((run.rows.len(), run.manifest.status), (1, Status::Unknown));
        let [manifest, lines] = run.damage.as_slice() else { panic!("{:?}", run.damage) };
        assert!(manifest.starts_with("manifest.json is damaged"), "{manifest}");
        assert!(lines.starts_with("lines.jsonl is missing"), "{lines}");
    }
}
