//! Documents from a file of newline-delimited JSON.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use crate::error::{Error, Result};

const ACTIONS: [&str; 4] = ["index", "create", "update", "delete"];

/// The longest line: more fits into no request (`http.max_content_length`), and a small file that is decompressed may
/// have a line that fills all memory.
const LINE_BYTES_MAX: u64 = 100 << 20;

/// Reads a file one document a line. The ending chooses: `.bz2`, `.gz` and `.zst` are decompressed,
/// `.json`, `.ndjson`, `.jsonl` and no ending are read as they are. Blank lines are skipped.
pub struct FileDocuments {
    path: PathBuf,
    reader: Box<dyn BufRead>,
    line: u64,
}

impl FileDocuments {
    /// Opens `path`. Errors: not readable, or an ending that is not known.
    pub fn open(path: &Path) -> Result<Self> {
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        if !["", "json", "ndjson", "jsonl", "bz2", "gz", "zst"].contains(&ending) {
            return Err(Error::CorpusEnding { path: path.to_owned(), ending: ending.to_owned() });
        }
        let io = |source| Error::Io { what: "open corpus", path: path.to_owned(), source };
        let file = File::open(path).map_err(io)?;
        let reader: Box<dyn BufRead> = match ending {
            "bz2" => Box::new(BufReader::new(bzip2::read::MultiBzDecoder::new(file))),
            "gz" => Box::new(BufReader::new(flate2::read::MultiGzDecoder::new(file))),
            "zst" => {
                let decoder = zstd::stream::read::Decoder::new(file).map_err(io)?;
                Box::new(BufReader::new(decoder))
            }
            _ => Box::new(BufReader::with_capacity(1 << 18, file)),
        };
        Ok(FileDocuments { path: path.to_owned(), reader, line: 0 })
    }

    /// Appends the next document to `out`, without its newline; false at the end of the file.
    /// Errors name file and line: the line is no JSON object, or the file cannot be read or
    /// decompressed further. `out` is as before after an error.
    pub fn read(&mut self, out: &mut Vec<u8>) -> Result<bool> {
        let first = out.len();
        if !self.next_line(out)? {
            return Ok(false);
        }
        self.check(&out[first..]).inspect_err(|_| out.truncate(first))?;
        Ok(true)
    }

    /// Appends the next action of `_bulk` and, but for `delete`, the document that follows it, with a newline between
    /// the two; false at the end of the file. Errors as of [`read`](Self::read), and if a line is no action or has no
    /// document.
    pub(crate) fn read_with_action(&mut self, out: &mut Vec<u8>) -> Result<bool> {
        let first = out.len();
        let read = self.action_and_document(out);
        read.inspect_err(|_| out.truncate(first))
    }

    fn action_and_document(&mut self, out: &mut Vec<u8>) -> Result<bool> {
        let first = out.len();
        if !self.read(out)? {
            return Ok(false);
        }
        let line = self.line;
        let action =
            serde_json::from_slice::<Map<String, Value>>(&out[first..]).unwrap_or_default();
        let why = if !is_action(&action) {
            "this is no action of _bulk, and the track says that each document has one before it"
        } else if action.contains_key("delete") {
            return Ok(true);
        } else {
            out.push(b'\n');
            if self.read(out)? {
                return Ok(true);
            }
            "this action has no document behind it"
        };
        Err(Error::CorpusLine { path: self.path.clone(), line, why: why.to_owned() })
    }

    /// Appends the next line that is not blank.
    fn next_line(&mut self, out: &mut Vec<u8>) -> Result<bool> {
        let first = out.len();
        loop {
            self.line += 1;
            let mut line = self.reader.by_ref().take(LINE_BYTES_MAX + 1);
            let count = line.read_until(b'\n', out).map_err(|source| {
                out.truncate(first);
                Error::CorpusRead { path: self.path.clone(), line: self.line, source }
            })?;
            if count as u64 > LINE_BYTES_MAX {
                out.truncate(first);
                let why = format!("it has over {} MB", LINE_BYTES_MAX >> 20);
                return Err(Error::CorpusLine { path: self.path.clone(), line: self.line, why });
            }
            if count == 0 {
                return Ok(false);
            }
            let blank = |byte: &u8| byte.is_ascii_whitespace();
            while out.len() > first && out.last().is_some_and(blank) {
                out.pop();
            }
            if out.len() > first {
                return Ok(true);
            }
        }
    }

    /// Whether the first line is an action of `_bulk`, as `{"index": {}}`. Errors as of [`read`](Self::read).
    pub(crate) fn begins_with_an_action(path: &Path) -> Result<bool> {
        let mut line = Vec::new();
        if !FileDocuments::open(path)?.read(&mut line)? {
            return Ok(false);
        }
        Ok(is_action(&serde_json::from_slice(&line).unwrap_or_default()))
    }

    /// How many documents there are, counted up to `enough`. Lines are not looked into. Errors as of
    /// [`read`](Self::read).
    pub fn count(path: &Path, enough: u64) -> Result<u64> {
        let mut file = FileDocuments::open(path)?;
        let mut line = Vec::new();
        let mut count = 0;
        while count < enough && file.next_line(&mut line)? {
            line.clear();
            count += 1;
        }
        Ok(count)
    }

    fn check(&self, document: &[u8]) -> Result<()> {
        let why = match serde_json::from_slice::<IgnoredAny>(document) {
            Err(error) => {
                let said = error.to_string();
                let what = said.split(" at line ").next().unwrap_or(&said);
                format!("{what} at column {}", error.column())
            }
            Ok(_) if document.trim_ascii_start().first() != Some(&b'{') => {
                "a document is a JSON object, this is another value".to_owned()
            }
            Ok(_) => return Ok(()),
        };
        Err(Error::CorpusLine { path: self.path.clone(), line: self.line, why })
    }
}

/// Whether documents can be read from a file: that is to be known before anything is started or sent. The error is a
/// sentence, with where a path begins (`from`) and what to write in place of a file (`generated`). Fails if there is no
/// such file, if it holds no document, or if it is one of `_bulk`.
pub fn check_file(path: &Path, from: &str, generated: &str) -> Result<(), String> {
    let first = FileDocuments::open(path).and_then(|mut file| file.read(&mut Vec::new()));
    match first {
        Ok(true) => match FileDocuments::begins_with_an_action(path) {
            Ok(true) => Err(format!(
                "{0} is a file of _bulk, whose every other line is an action; a corpus has documents alone: \
                 {1} | awk 'NR % 2 == 0' > documents.ndjson",
                path.display(),
                reader(path)
            )),
            _ => Ok(()),
        },
        Ok(false) => Err(format!(
            "{} holds no document; give a file with one JSON object a line, or write {generated}",
            path.display()
        )),
        Err(error) if !path.exists() => {
            Err(format!("{error}; give its path from {from}, or write {generated}"))
        }
        Err(error) => Err(error.to_string()),
    }
}

/// The command that writes a file's lines.
fn reader(path: &Path) -> String {
    let program = match path.extension().and_then(|ending| ending.to_str()) {
        Some("bz2") => "bzcat",
        Some("gz") => "zcat",
        Some("zst") => "zstdcat",
        _ => "cat",
    };
    format!("{program} {}", path.display())
}

/// Whether an object is an action of `_bulk`, as `{"index": {}}`.
fn is_action(object: &Map<String, Value>) -> bool {
    let is_one =
        |(name, value): (&String, &Value)| ACTIONS.contains(&name.as_str()) && value.is_object();
    object.len() == 1 && object.iter().all(is_one)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    const TEXT: &[u8] = b"{\"a\":1}\n\n{\"a\":2}\r\n{\"a\":[3]}";

    fn all(path: &Path) -> Result<Vec<String>> {
        let mut documents = FileDocuments::open(path)?;
        let mut found = Vec::new();
        let mut out = Vec::new();
        while documents.read(&mut out)? {
            found.push(String::from_utf8(std::mem::take(&mut out)).unwrap());
        }
        Ok(found)
    }

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn bzip2(text: &[u8]) -> Vec<u8> {
        let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn said(dir: &Path, error: &Error) -> String {
        error.to_string().replace(&dir.display().to_string(), "DIR")
    }

    #[test]
    fn reads_every_form() {
        let dir = tempfile::tempdir().unwrap();
        let forms = [
            ("docs.json", TEXT.to_vec()),
            ("docs.ndjson.gz", gzip(TEXT)),
            ("docs.json.bz2", bzip2(TEXT)),
            ("docs.zst", zstd::encode_all(TEXT, 1).unwrap()),
        ];
        for (name, bytes) in forms {
            let path = dir.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            let expected = ["{\"a\":1}", "{\"a\":2}", "{\"a\":[3]}"];
            assert_eq!(all(&path).unwrap(), expected, "{name}");
        }
    }

    #[test]
    fn reads_gzip_of_several_members() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("docs.gz");
        std::fs::write(&path, [gzip(b"{}\n"), gzip(b"{\"b\":0}\n")].concat()).unwrap();
        assert_eq!(all(&path).unwrap(), ["{}", "{\"b\":0}"]);
    }

    #[test]
    fn errors_name_file_and_line() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str, bytes: &[u8]| {
            let path = dir.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            said(dir.path(), &all(&path).unwrap_err())
        };
        insta::assert_snapshot!(at("a.json", b"{}\n{\"a\":}\n"), @"DIR/a.json line 2: expected value at column 6; a corpus has one JSON object on each line");
        insta::assert_snapshot!(at("b.json", b"{}\n\n[1]\n"), @"DIR/b.json line 3: a document is a JSON object, this is another value; a corpus has one JSON object on each line");
        insta::assert_snapshot!(at("c.json", b"{\"a\":1"), @"DIR/c.json line 1: EOF while parsing an object at column 6; a corpus has one JSON object on each line");
        let whole = gzip(TEXT);
        insta::assert_snapshot!(at("d.gz", &whole[..whole.len() - 12]), @"DIR/d.gz line 4: cannot be read further: incomplete deflate stream");
        insta::assert_snapshot!(at("e.zip", b"PK"), @"cannot read DIR/e.zip as a corpus: the ending .zip is not known; give newline-delimited JSON as .json, .ndjson, .jsonl, .bz2, .gz or .zst");
        let missing = FileDocuments::open(&dir.path().join("f.json")).err().unwrap();
        insta::assert_snapshot!(said(dir.path(), &missing), @"cannot open corpus DIR/f.json: No such file or directory (os error 2)");
    }

    /// A line of nothing but zeros, which packs well.
    #[test]
    fn a_line_that_does_not_end_fills_no_memory() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("bomb.json");
        File::create(&path).unwrap().set_len(2 * LINE_BYTES_MAX).unwrap();
        insta::assert_snapshot!(said(dir.path(), &all(&path).unwrap_err()), @"DIR/bomb.json line 1: it has over 100 MB; a corpus has one JSON object on each line");
        assert!(FileDocuments::count(&path, 9).is_err());
    }
}
