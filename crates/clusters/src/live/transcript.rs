//! What a cluster was asked and what it answered, kept line by line, so that the same looks can be had again without
//! the cluster.
//!
//! The first line is a [`Header`]. The others are readings of the clock and answers, each answer with the time that it
//! took: whoever looks again reads the same clock. No credentials are in it, for no header of a request is.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use world::Time;

use super::questions::EARLIER;
use crate::{Error, Result};

/// The file in a directory.
const FILE: &str = "transcript.jsonl";
/// What this build writes, and the only one that it reads.
const FORMAT: u32 = 1;
/// A larger file is not read into memory, and not written.
const BYTES_MAX: u64 = 2 << 30;

/// Which cluster was asked, by which version, and how often.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// The format of the lines.
    pub format: u32,
    /// The version of narrows that asked.
    pub narrows: String,
    /// The hosts, in the order in which they were given.
    pub hosts: Vec<String>,
    /// How long was to be looked, in milliseconds.
    pub span_ms: u64,
    /// From one look to the next, in milliseconds.
    pub interval_ms: u64,
}

impl Header {
    /// A header as this build writes it.
    pub fn new(hosts: Vec<String>, span: Duration, interval: Duration) -> Header {
        let narrows = env!("CARGO_PKG_VERSION").to_owned();
        let ms = |time: Duration| time.as_millis() as u64;
        Header { format: FORMAT, narrows, hosts, span_ms: ms(span), interval_ms: ms(interval) }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Line {
    /// A reading of the clock, in nanoseconds.
    Clock(u64),
    /// A request and how it ended.
    Asked { host: usize, method: String, path: String, took_ns: u64, outcome: Outcome },
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Outcome {
    Answer { status: u16, body: String },
    NoConnection(String),
    Broken(String),
    NoPeer(String),
    TooLarge { limit_bytes: usize },
    Late { limit_ms: u64 },
}

/// One request to one host.
#[derive(Clone, Copy)]
pub(super) struct Request<'a> {
    pub(super) host: usize,
    pub(super) address: &'a str,
    pub(super) method: &'a str,
    pub(super) path: &'a str,
}

/// Status and body, or why there are none.
pub(super) type Exchanged = Result<(u16, Bytes)>;

impl Outcome {
    /// None for what is no failure of an exchange.
    fn of(exchanged: &Exchanged) -> Option<Outcome> {
        Some(match exchanged {
            Ok((status, body)) => {
                let body = String::from_utf8_lossy(body).into_owned();
                Outcome::Answer { status: *status, body }
            }
            Err(Error::Connection { source, .. }) => Outcome::NoConnection(source.to_string()),
            Err(Error::Broken { source, .. }) => Outcome::Broken(source.to_string()),
            Err(Error::Peer { why, .. }) => Outcome::NoPeer(why.clone()),
            Err(Error::TooLarge { limit_bytes, .. }) => {
                Outcome::TooLarge { limit_bytes: *limit_bytes }
            }
            Err(Error::Timeout { limit, .. }) => {
                Outcome::Late { limit_ms: limit.as_millis() as u64 }
            }
            Err(_) => return None,
        })
    }

    fn exchanged(self, request: Request<'_>) -> Exchanged {
        let address = request.address.to_owned();
        let (method, path) = (request.method.to_owned(), request.path.to_owned());
        Err(match self {
            Outcome::Answer { status, body } => return Ok((status, Bytes::from(body))),
            Outcome::NoConnection(why) => {
                Error::Connection { address, source: io::Error::other(why) }
            }
            Outcome::Broken(why) => {
                Error::Broken { address, method, path, source: io::Error::other(why) }
            }
            Outcome::NoPeer(why) => Error::Peer { address, why },
            Outcome::TooLarge { limit_bytes } => {
                Error::TooLarge { address, method, path, limit_bytes }
            }
            Outcome::Late { limit_ms } => {
                Error::Timeout { address, method, path, limit: Duration::from_millis(limit_ms) }
            }
        })
    }
}

/// Writes a transcript.
pub struct Transcript {
    path: PathBuf,
    file: RefCell<File>,
    /// How many bytes may come yet.
    room: Cell<u64>,
    failed: RefCell<Option<io::Error>>,
}

impl Transcript {
    /// Begins one in a directory, which is created where it is not there. Whoever else uses the machine cannot read it:
    /// it names nodes and indices. Fails where there is one already.
    pub fn create(dir: &Path, header: &Header) -> Result<Transcript> {
        let path = dir.join(FILE);
        let io = |what| {
            let path = path.clone();
            move |source| Error::Io { what, path, source }
        };
        std::fs::create_dir_all(dir).map_err(io("create the directory of"))?;
        let file = File::options().write(true).create_new(true).mode(0o600).open(&path);
        let file = file.map_err(io("create"))?;
        let (file, room) = (RefCell::new(file), Cell::new(BYTES_MAX));
        let transcript = Transcript { path, file, room, failed: RefCell::default() };
        transcript.write(header);
        Ok(transcript)
    }

    fn write(&self, line: &impl Serialize) {
        // What comes after half a line could not be read again.
        if self.failed.borrow().is_some() {
            return;
        }
        // Each line is written at once, so that what was asked before an interruption is there.
        let written = serde_json::to_vec(line).map_err(io::Error::other).and_then(|mut bytes| {
            bytes.push(b'\n');
            let room = self.room.get().checked_sub(bytes.len() as u64).ok_or_else(full)?;
            self.room.set(room);
            self.file.borrow_mut().write_all(&bytes)
        });
        if let Err(error) = written {
            self.failed.borrow_mut().get_or_insert(error);
        }
    }

    pub(super) fn clock(&self, now: Time) {
        self.write(&Line::Clock(now.0));
    }

    pub(super) fn asked(&self, request: Request<'_>, took: Duration, exchanged: &Exchanged) {
        let Some(outcome) = Outcome::of(exchanged) else { return };
        let (method, path) = (request.method.to_owned(), request.path.to_owned());
        let took_ns = took.as_nanos() as u64;
        self.write(&Line::Asked { host: request.host, method, path, took_ns, outcome });
    }

    /// The file, once everything is in it; the first failure to write otherwise. What was written before can be had
    /// again.
    pub(super) fn end(&self) -> Result<&Path> {
        match &*self.failed.borrow() {
            Some(error) => {
                let source = io::Error::new(error.kind(), error.to_string());
                Err(Error::Io { what: "write all of", path: self.path.clone(), source })
            }
            None => Ok(&self.path),
        }
    }
}

/// Why nothing more is written.
fn full() -> io::Error {
    io::Error::other(format!("{BYTES_MAX} bytes are read again at most; look for a shorter time"))
}

/// Whether a directory holds a transcript.
pub fn is_transcript(dir: &Path) -> bool {
    dir.join(FILE).is_file()
}

type Asked = (usize, String, String);

/// A transcript that answers as the cluster did: each host, method and path in its own order.
pub struct Replay {
    clock: RefCell<VecDeque<Time>>,
    last: Cell<Time>,
    has_broken_off: Cell<bool>,
    answers: RefCell<HashMap<Asked, VecDeque<(Duration, Outcome)>>>,
}

impl Replay {
    /// Reads one. A last line that breaks off is left out: whoever wrote it was interrupted.
    pub fn open(dir: &Path) -> Result<(Header, Replay)> {
        let path = dir.join(FILE);
        let io = |source| Error::Io { what: "read", path: path.clone(), source };
        let damaged = |line: usize, why: String| Error::Transcript {
            path: path.clone(),
            why: format!("is damaged in line {line}: {why}"),
        };
        let file = File::open(&path).map_err(io)?;
        let bytes = file.metadata().map_err(io)?.len();
        if bytes > BYTES_MAX {
            let why = format!("has {bytes} bytes; {BYTES_MAX} at most are read");
            return Err(Error::Transcript { path, why });
        }
        // A line may break off in the middle of a letter.
        let (mut reader, mut text) = (BufReader::new(file), Vec::new());
        reader.read_until(b'\n', &mut text).map_err(io)?;
        let header = header(&text).map_err(|why| Error::Transcript { path: path.clone(), why })?;
        let (mut clock, mut answers) = (VecDeque::new(), HashMap::<Asked, VecDeque<_>>::new());
        for number in 2.. {
            text.clear();
            if reader.read_until(b'\n', &mut text).map_err(io)? == 0 {
                break;
            }
            match serde_json::from_slice(&text) {
                Ok(Line::Clock(ns)) => clock.push_back(Time(ns)),
                Ok(Line::Asked { host, method, path, took_ns, outcome }) => {
                    let answer = (Duration::from_nanos(took_ns), outcome);
                    let path = EARLIER.iter().fold(path, |path, (was, is)| path.replace(was, is));
                    answers.entry((host, method, path)).or_default().push_back(answer);
                }
                Err(_) if !text.ends_with(b"\n") => break,
                Err(error) => return Err(damaged(number, error.to_string())),
            }
        }
        let replay = Replay {
            clock: RefCell::new(clock),
            last: Cell::new(Time::default()),
            has_broken_off: Cell::new(false),
            answers: RefCell::new(answers),
        };
        Ok((header, replay))
    }

    /// The next reading of the clock; the last one again where there is none.
    pub(super) fn now(&self) -> Time {
        match self.clock.borrow_mut().pop_front() {
            Some(now) => self.last.set(now),
            None => self.has_broken_off.set(true),
        }
        self.last.get()
    }

    /// Whether something was asked that lies behind the transcript's end.
    pub(super) fn has_broken_off(&self) -> bool {
        self.has_broken_off.get()
    }

    pub(super) fn answer(&self, request: Request<'_>) -> (Exchanged, Duration) {
        let key = (request.host, request.method.to_owned(), request.path.to_owned());
        match self.answers.borrow_mut().get_mut(&key).and_then(VecDeque::pop_front) {
            Some((took, outcome)) => (outcome.exchanged(request), took),
            None => {
                let (_, method, path) = key;
                (Err(Error::NotRecorded { method, path }), Duration::ZERO)
            }
        }
    }
}

fn header(text: &[u8]) -> Result<Header, String> {
    let header: Header = serde_json::from_slice(text)
        .map_err(|error| format!("does not begin as a transcript does: {error}"))?;
    if header.format != FORMAT {
        return Err(format!(
            "was written by narrows {} in format {}, and this build reads format {FORMAT}",
            header.narrows, header.format
        ));
    }
    Ok(header)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_breaks_off_in_the_middle_of_a_letter_is_left_out() {
        let dir = tempfile::tempdir().unwrap();
        let second = Duration::from_secs(1);
        let header = Header::new(vec!["http://a:9200".to_owned()], second, second);
        let transcript = Transcript::create(dir.path(), &header).unwrap();
        transcript.clock(Time(1));
        let request = Request { host: 0, address: "http://a:9200", method: "GET", path: "/" };
        let answer = Ok((200, Bytes::from("\u{e4}")));
        transcript.asked(request, second, &answer);
        let bytes = std::fs::read(dir.path().join(FILE)).unwrap();
        let letter = bytes.iter().position(|byte| !byte.is_ascii()).unwrap();
        std::fs::write(dir.path().join(FILE), &bytes[..=letter]).unwrap();
        let (_, replay) = Replay::open(dir.path()).unwrap();
        assert_eq!(replay.now(), Time(1));
        assert!(matches!(replay.answer(request).0, Err(Error::NotRecorded { .. })));
    }

    #[test]
    fn nothing_stands_behind_a_line_that_had_no_room() {
        let dir = tempfile::tempdir().unwrap();
        let second = Duration::from_secs(1);
        let header = Header::new(vec!["http://a:9200".to_owned()], second, second);
        let transcript = Transcript::create(dir.path(), &header).unwrap();
        transcript.clock(Time(1));
        transcript.room.set(1);
        transcript.clock(Time(2));
        transcript.room.set(BYTES_MAX);
        transcript.clock(Time(3));
        for _ in 0..2 {
            let said = transcript.end().unwrap_err().to_string();
            assert!(said.contains("look for a shorter time"), "{said}");
        }
        let (_, replay) = Replay::open(dir.path()).unwrap();
        assert_eq!((replay.now(), replay.now()), (Time(1), Time(1)));
        assert!(replay.has_broken_off());
    }
}
