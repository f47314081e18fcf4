//! Which files a track may have read. It may come from anybody, and what it reads goes into the record and to the
//! cluster: the rest of this machine is no business of it.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

/// A file larger than this is no track.
const FILE_BYTES_MAX: u64 = 16 << 20;

#[derive(Clone)]
pub(super) struct Folder {
    own: PathBuf,
    /// Where other tracks of its repository lie, and the parts that they share.
    above: PathBuf,
}

impl Folder {
    pub(super) fn of(dir: &Path) -> Folder {
        // Where it is not there it has no files either.
        let own = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
        // All of a machine is no repository.
        let above = own.parent().filter(|above| above.parent().is_some()).unwrap_or(&own);
        Folder { above: above.to_owned(), own }
    }

    /// The text of a file. The error is a sentence: it cannot be read, is no text of a track, or lies elsewhere.
    pub(super) fn text(&self, path: &Path) -> Result<String, String> {
        let shown = path.display();
        let failed = |error: io::Error| format!("cannot read {shown}: {error}");
        // Without links: one may lead anywhere.
        let whole = path.canonicalize().map_err(failed)?;
        if !self.holds(&whole) {
            return Err(format!(
                "{shown} is not read: a track may read files of its own folder, and .json of the folders beside it; \
                 copy it there"
            ));
        }
        let found = fs::metadata(&whole).map_err(failed)?;
        if !found.is_file() {
            return Err(format!("{shown} is no ordinary file"));
        }
        if found.len() > FILE_BYTES_MAX {
            let bytes = found.len();
            return Err(format!("{shown} has {bytes} bytes: that is no part of a track"));
        }
        fs::read_to_string(&whole).map_err(failed)
    }

    fn holds(&self, whole: &Path) -> bool {
        let is_hidden = |part: Component<'_>| part.as_os_str().as_encoded_bytes().starts_with(b".");
        let is_json = whole.extension().is_some_and(|ending| ending == "json");
        let beside = whole.strip_prefix(&self.above).ok().filter(|_| is_json);
        whole.starts_with(&self.own)
            || beside.is_some_and(|below| !below.components().any(is_hidden))
    }
}
