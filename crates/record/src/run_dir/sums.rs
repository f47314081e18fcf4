//! Lengths and hashes of the files of a run that has ended, by which damage is seen.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3Default;

use super::format::open;

/// What a file of lines was like when the run had ended.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Sum {
    bytes: u64,
    /// 16 hexadecimal digits.
    xxh3: String,
}

impl Sum {
    pub(super) fn of(path: &Path) -> std::io::Result<Sum> {
        let (mut file, mut hash, mut bytes) = (open(path, u64::MAX)?, Xxh3Default::new(), 0);
        let mut buffer = vec![0; 64 << 10];
        loop {
            let read = file.read(&mut buffer)?;
            if read == 0 {
                return Ok(Sum { bytes, xxh3: format!("{:016x}", hash.digest()) });
            }
            hash.update(&buffer[..read]);
            bytes += read as u64;
        }
    }

    /// What is to be said of a file as it is now.
    pub(super) fn damage(&self, name: &str, path: &Path) -> Option<String> {
        let now = Sum::of(path).ok().filter(|now| now != self)?;
        Some(match now.bytes < self.bytes {
            true => {
                format!("{name} is cut off: {} of its {} bytes are there.", now.bytes, self.bytes)
            }
            false => format!("{name} is not as it was written: what is shown of it may be wrong."),
        })
    }
}

/// What the manifest says beside what the run was.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Sums {
    /// By the names of the files.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) files: BTreeMap<String, Sum>,
}
