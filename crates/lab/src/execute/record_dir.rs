//! Names of runs, and their directories.

use std::path::{Path, PathBuf};

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Now, as RFC 3339 in UTC.
pub fn now() -> String {
    let now = OffsetDateTime::now_utc().replace_nanosecond(0).expect("zero is in range");
    now.format(&Rfc3339).expect("the year has four digits")
}

/// A new run's id and directory: `20261121-043000-remote-recovery`, with a number where that is taken.
pub fn fresh(runs: &Path, plan: &str) -> (String, PathBuf) {
    let stamp: String = now().chars().filter(char::is_ascii_digit).collect();
    let base = format!("{}-{}-{plan}", &stamp[..8], &stamp[8..]);
    let mut id = base.clone();
    let mut number = 1;
    while runs.join(&id).exists() {
        number += 1;
        id = format!("{base}-{number}");
    }
    let dir = runs.join(&id);
    (id, dir)
}
