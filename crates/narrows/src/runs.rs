//! Run directories: finding one again, and the page in it.

use std::path::{Path, PathBuf};

use anyhow::Context;
use record::RunDir;

use crate::exit::Usage;

/// Where runs are kept, below the current directory, unless told otherwise.
pub(crate) const DEFAULT_DIR: &str = "runs";

/// The directory of an earlier run: a path, an id below `runs`, or `last`.
pub(crate) fn find(runs: &Path, given: &str) -> anyhow::Result<PathBuf> {
    let as_path = Path::new(given);
    if record::is_run(as_path) {
        return Ok(as_path.to_owned());
    }
    if record::is_run(&runs.join(given)) {
        return Ok(runs.join(given));
    }
    let mut ids = list(runs)?;
    if given == "last" {
        let last = ids.pop();
        let none = || {
            Usage(format!(
                "there are no runs in {} yet; `narrows run remote-recovery` makes one",
                runs.display()
            ))
        };
        return Ok(runs.join(last.ok_or_else(none)?));
    }
    let hint = record::names::did_you_mean(given, ids.iter().map(String::as_str));
    let text = format!(
        "no run is called \"{given}\" in {}{hint}; give an id, a directory, or \"last\"",
        runs.display()
    );
    Err(Usage(text).into())
}

/// Ids of all runs, oldest first.
fn list(runs: &Path) -> anyhow::Result<Vec<String>> {
    if !runs.exists() {
        return Ok(Vec::new());
    }
    let entries = std::fs::read_dir(runs).with_context(|| format!("read {}", runs.display()))?;
    let mut ids: Vec<String> = entries
        .filter_map(Result::ok)
        .filter(|entry| record::is_run(&entry.path()))
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    ids.sort();
    Ok(ids)
}

/// Writes the HTML page into the run's directory, or to `to`.
pub(crate) fn write_page(run: &RunDir, to: &Path) -> anyhow::Result<()> {
    let fresh = to.with_extension("html.new");
    std::fs::write(&fresh, report::html(run)).and_then(|()| std::fs::rename(&fresh, to)).map_err(
        |error| {
            // A part of a page helps nobody, and takes room where there may be none.
            let _ = std::fs::remove_file(&fresh);
            anyhow::anyhow!("write {}: {error}", to.display())
        },
    )
}
