//! How a file of the operation log begins.

use std::path::Path;

use crate::{Error, Result};

const MAGIC: [u8; 7] = *b"nrwslog";
/// Version 1 had the magic alone; version 2 had no records with a routing.
const VERSION: u8 = 3;
const FIRST_HEADER_BYTES: u64 = 8;
pub(super) const HEADER_BYTES: u64 = 36;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) history: u64,
    /// Generation of the file before, and where it ended; zeros where there was none.
    pub(super) before: (u64, u64),
}

impl Header {
    pub(super) fn bytes(self) -> [u8; HEADER_BYTES as usize] {
        let mut bytes = [0; HEADER_BYTES as usize];
        bytes[..7].copy_from_slice(&MAGIC);
        bytes[7] = VERSION;
        for (at, field) in [self.history, self.before.0, self.before.1].into_iter().enumerate() {
            bytes[8 + at * 8..16 + at * 8].copy_from_slice(&field.to_le_bytes());
        }
        let crc = crc32c::crc32c(&bytes[..32]);
        bytes[32..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// The header, none in a file of version 1, and how many bytes it has.
    pub(super) fn read(path: &Path, file: &[u8]) -> Result<(Option<Header>, u64)> {
        let damaged = || Error::log_damaged(path, 0, "it does not begin as a log does");
        let begin = file.first_chunk::<8>().filter(|begin| begin[..7] == MAGIC);
        match begin.ok_or_else(damaged)?[7] {
            1 => return Ok((None, FIRST_HEADER_BYTES)),
            2 | VERSION => {}
            found if found > VERSION => {
                let (path, found, known) = (path.to_owned(), found.into(), VERSION.into());
                return Err(Error::Newer { path, found, known });
            }
            _ => return Err(damaged()),
        }
        let bytes = file.first_chunk::<{ HEADER_BYTES as usize }>().ok_or_else(damaged)?;
        if crc32c::crc32c(&bytes[..32]).to_le_bytes() != bytes[32..] {
            return Err(damaged());
        }
        let field = |at: usize| {
            u64::from_le_bytes(bytes[8 + at * 8..16 + at * 8].try_into().expect("eight bytes"))
        };
        let header = Header { history: field(0), before: (field(1), field(2)) };
        Ok((Some(header), HEADER_BYTES))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_an_earlier_version_is_read_and_one_of_a_later_is_refused_as_newer() {
        let header = Header { history: 7, before: (3, 900) };
        let of_version = |version: u8| {
            let mut bytes = header.bytes();
            bytes[7] = version;
            let crc = crc32c::crc32c(&bytes[..32]);
            bytes[32..].copy_from_slice(&crc.to_le_bytes());
            Header::read(Path::new("oplog-1.log"), &bytes)
        };
        for version in [2, VERSION] {
            assert_eq!(of_version(version).unwrap(), (Some(header), HEADER_BYTES));
        }
        let found = u32::from(VERSION) + 1;
        let error = of_version(VERSION + 1).unwrap_err();
        assert!(matches!(error, Error::Newer { found: it, .. } if it == found), "{error}");
    }
}
