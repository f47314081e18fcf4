//! Names of runs, and their directories.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use jiff::Timestamp;

/// Now, as RFC 3339 in UTC.
pub fn now() -> String {
    format!("{:.0}", Timestamp::now())
}

/// A new run's id and directory: `20261121-043000-remote-recovery`, with a number where that is taken. The directory is
/// made at once, so that a run that begins in the same moment takes another one; where it cannot be made, whoever
/// writes the record is told why.
pub fn fresh(runs: &Path, plan: &str) -> (String, PathBuf) {
    let stamp: String = now().chars().filter(char::is_ascii_digit).collect();
    let base = format!("{}-{}-{plan}", &stamp[..8], &stamp[8..]);
    let _ = fs::create_dir_all(runs);
    let mut id = base.clone();
    let mut number = 1;
    loop {
        let dir = runs.join(&id);
        match fs::create_dir(&dir) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                number += 1;
                id = format!("{base}-{number}");
            }
            _ => return (id, dir),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::thread;

    use super::*;

    #[test]
    fn now_has_no_fraction() {
        assert_eq!(now().len(), "2026-11-21T04:30:00Z".len());
    }

    #[test]
    fn runs_that_begin_at_once_have_directories_of_their_own() {
        let dir = tempfile::tempdir().unwrap();
        let runs = dir.path().join("runs");
        let taken: BTreeSet<(String, PathBuf)> = thread::scope(|scope| {
            let all: Vec<_> = (0..8).map(|_| scope.spawn(|| fresh(&runs, "plan"))).collect();
            all.into_iter().map(|one| one.join().unwrap()).collect()
        });
        assert_eq!(taken.len(), 8, "{taken:?}");
        assert!(taken.iter().all(|(id, dir)| dir.is_dir() && dir.ends_with(id)));
    }
}
