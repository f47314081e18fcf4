//! Run directories: finding one again, and the page in it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use record::{RunDir, Status};
use tempfile::NamedTempFile;

use crate::exit::{Usage, refuse};
use crate::terminal::say;

/// Where runs are kept, below the current directory, unless told otherwise.
pub(crate) const DEFAULT_DIR: &str = "runs";

/// Refuses a file in place of the directory of runs.
pub(crate) fn refuse_file(runs: &Path) -> anyhow::Result<()> {
    if !runs.is_file() {
        return Ok(());
    }
    refuse!("{} is a file; write --runs DIR, a directory to keep runs in", runs.display());
}

/// The directory of an earlier run: a path, an id below `runs`, or `last`.
pub(crate) fn find(runs: &Path, given: &str) -> anyhow::Result<PathBuf> {
    find_or(runs, given, "")
}

/// The same. `otherwise` says what else may have been meant, where no run has a similar name.
pub(crate) fn find_or(runs: &Path, given: &str, otherwise: &str) -> anyhow::Result<PathBuf> {
    let as_path = Path::new(given);
    if record::is_run(as_path) {
        return Ok(as_path.to_owned());
    }
    if record::is_run(&runs.join(given)) {
        return Ok(runs.join(given));
    }
    let ids = list(runs)?;
    if given != "last" && as_path.is_dir() {
        refuse!(
            "{given} is a directory, but holds no run: it has no manifest.json; `narrows runs --runs {given}` lists \
             the runs below it"
        );
    }
    if given == "last" {
        return last(runs, ids);
    }
    let hint = record::names::did_you_mean(given, ids.iter().map(String::as_str));
    let runs = runs.display();
    if !hint.is_empty() {
        refuse!(
            "no run is called \"{given}\" in {runs}{hint} An id, a directory or \"last\" can be given"
        );
    }
    let list = if ids.is_empty() { "" } else { "; `narrows runs` lists them" };
    refuse!(
        "no run is called \"{given}\" in {runs}; give an id, a directory, or \"last\"{list}{otherwise}"
    );
}

/// Whether the name is that of a run, or could be no other thing.
pub(crate) fn is_named(runs: &Path, given: &str) -> bool {
    is_here(runs, given) || is_id(given)
}

/// Whether a run that is named so is kept here.
pub(crate) fn is_here(runs: &Path, given: &str) -> bool {
    given == "last" || record::is_run(Path::new(given)) || record::is_run(&runs.join(given))
}

/// Whether it looks like an id that a run was given: `20261121-043000-remote-recovery`.
fn is_id(given: &str) -> bool {
    let mut parts = given.splitn(3, '-');
    let mut digits = |count: usize| {
        let part = parts.next().unwrap_or_default();
        part.len() == count && part.bytes().all(|byte| byte.is_ascii_digit())
    };
    digits(8) && digits(6)
}

/// The newest of these runs that did start.
fn last(runs: &Path, ids: Vec<String>) -> anyhow::Result<PathBuf> {
    let mut skipped = Vec::new();
    for id in ids.into_iter().rev() {
        let dir = runs.join(&id);
        // What cannot be read is no reason to show an older run in its place: whoever opens it is told.
        if RunDir::open(&dir).is_ok_and(|run| run.failed_to_start()) {
            skipped.push(id);
            continue;
        }
        if !skipped.is_empty() {
            say!("narrows: the last run that started; after it {} did not", skipped.join(", "));
        }
        return Ok(dir);
    }
    let text = match skipped.first() {
        None => none_yet(runs),
        Some(newest) => format!(
            "none of the runs in {} did start; `narrows show {newest}` shows the newest of them",
            runs.display()
        ),
    };
    Err(Usage(text).into())
}

/// Fails where the manifest of a run is damaged, once what is left of the run was shown: nobody is to take that for the
/// run.
pub(crate) fn check_manifest(run: &RunDir, dir: &Path) -> anyhow::Result<()> {
    let shown =
        "what is shown comes from the other files there, without the plan and how the run ended";
    refuse_damaged(run, dir, shown)
}

/// Opens a run that is compared or stored. Fails where its manifest is damaged: what is left is not set beside others.
pub(crate) fn open_whole(dir: &Path) -> anyhow::Result<RunDir> {
    let run = RunDir::open(dir)?;
    refuse_damaged(&run, dir, "without it nobody knows what was measured there")?;
    Ok(run)
}

fn refuse_damaged(run: &RunDir, dir: &Path, so: &str) -> anyhow::Result<()> {
    if run.manifest.status != Status::Unknown {
        return Ok(());
    }
    anyhow::bail!("manifest.json of {} is damaged: {so}; put a copy of it back", dir.display())
}

/// What is said where there are no runs.
pub(crate) fn none_yet(runs: &Path) -> String {
    format!("there are no runs in {} yet; `narrows run remote-recovery` makes one", runs.display())
}

/// Ids of all runs, oldest first.
pub(crate) fn list(runs: &Path) -> anyhow::Result<Vec<String>> {
    refuse_file(runs)?;
    if !runs.exists() {
        return Ok(Vec::new());
    }
    let entries = fs::read_dir(runs).with_context(|| format!("read {}", runs.display()))?;
    let mut ids: Vec<String> = entries
        .filter_map(Result::ok)
        .filter(|entry| record::is_run(&entry.path()))
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    ids.sort();
    Ok(ids)
}

/// Writes the HTML page into the run's directory.
pub(crate) fn write_page(run: &RunDir, to: &Path) -> anyhow::Result<()> {
    write_inside(&report::html(run), to)
}

/// Writes a text into a file that somebody has named. A link is followed, be it /dev/stdout.
pub(crate) fn write(text: &str, to: &Path) -> anyhow::Result<()> {
    match to.is_symlink() {
        true => fs::write(to, text).with_context(|| written(to)),
        false => write_inside(text, to),
    }
}

/// Writes a text into a file of a folder that somebody has named, as [`put`] does; the error says which. The folder may
/// be a link; one in the file's place is replaced. A file in a folder that takes no other one is written where it is.
pub(crate) fn write_inside(text: &str, to: &Path) -> anyhow::Result<()> {
    let stays = !to.is_symlink() && to.is_file() && fresh(to).is_err();
    let put = if stays { fs::write(to, text) } else { put(text, to) };
    put.with_context(|| written(to))
}

/// Opens a file of such a folder to append to it, and makes it where it is missing. What a link leads to is left as it
/// is, and nobody waits for the reader of a pipe.
pub(crate) fn append_inside(to: &Path) -> io::Result<File> {
    if fs::symlink_metadata(to).is_ok_and(|found| !found.is_file()) {
        return Err(io::Error::other("something else than a file is there; remove it"));
    }
    OpenOptions::new().create(true).append(true).open(to)
}

/// Fails where nothing can be written to, before it is measured what is to be written. Leaves no file.
pub(crate) fn check_written(to: &Path) -> anyhow::Result<()> {
    let opened = match fs::metadata(to) {
        // Whoever reads a pipe would take this for its end.
        Ok(there) if !there.is_file() && !there.is_dir() => Ok(()),
        Ok(_) => OpenOptions::new().append(true).open(to).map(drop),
        Err(_) => fresh(to).map(drop),
    };
    opened.with_context(|| written(to))
}

/// What an error says that was tried with a file, and which directory has to be made first.
fn written(to: &Path) -> String {
    let dir = to.parent().filter(|dir| !dir.as_os_str().is_empty() && !dir.exists());
    let hint = dir.map_or_else(String::new, |dir| format!(" (first mkdir -p {})", dir.display()));
    format!("write {}{hint}", to.display())
}

/// Puts a text in place of what was there, whole or not at all: a part of a page helps nobody, and takes room where
/// there may be none. Until then it has a name that nobody knows before: the directory of a run may come from somebody
/// else, and a link in it may lead to any file of whoever reads the run.
pub(crate) fn put(text: &str, to: &Path) -> io::Result<()> {
    // A pipe or a device gets the text. It is not replaced by a file of its name, as a link to one is.
    if fs::symlink_metadata(to).is_ok_and(|there| !there.is_file() && !there.is_symlink()) {
        return fs::write(to, text);
    }
    let mut fresh = fresh(to)?;
    fresh.as_file_mut().write_all(text.as_bytes())?;
    fresh.persist(to)?;
    Ok(())
}

/// A file beside that one, which goes unless it takes its place.
fn fresh(to: &Path) -> io::Result<NamedTempFile> {
    let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty());
    // Errors of the crate have that name: it opens no file here, and writes none.
    tempfile::Builder::new()
        .make_in(folder.unwrap_or(Path::new(".")), |path| File::create_new(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_of_a_similar_name_is_offered_in_a_sentence_of_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let run = dir.path().join("20261121-043000-remote-recovery");
        fs::create_dir(&run).unwrap();
        fs::write(run.join("manifest.json"), "{}").unwrap();
        let said = |given: &str| find(dir.path(), given).unwrap_err().to_string();
        let near = said("20261121-043000-remote-recover");
        assert!(
            near.contains("; did you mean \"20261121-043000-remote-recovery\"? An id, "),
            "{near}"
        );
        assert!(said("x").ends_with("; `narrows runs` lists them"), "{}", said("x"));
    }

    #[test]
    fn a_directory_that_is_not_there_is_to_be_made_first() {
        let dir = tempfile::tempdir().unwrap();
        let page = dir.path().join("no/page.html");
        let tried = format!(
            "write {} (first mkdir -p {})",
            page.display(),
            dir.path().join("no").display()
        );
        assert_eq!(written(&page), tried);
        assert!(!written(&dir.path().join("page.html")).contains("mkdir"));
        let found = put("page", &page).unwrap_err().to_string();
        assert!(!found.contains(".tmp"), "nobody asked for that file: {found}");
        assert_eq!(check_written(&page).unwrap_err().to_string(), tried);
    }

    #[test]
    fn a_file_is_not_made_nor_changed_before_there_is_something_to_write() {
        let dir = tempfile::tempdir().unwrap();
        let (new, old) = (dir.path().join("new"), dir.path().join("old"));
        fs::write(&old, "old").unwrap();
        check_written(&new).and_then(|()| check_written(&old)).unwrap();
        assert_eq!(fs::read_to_string(&old).unwrap(), "old");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "no other file is left");
        assert!(check_written(dir.path()).is_err(), "a directory is no file");
    }

    #[test]
    fn a_link_and_a_pipe_that_somebody_names_are_written_to() {
        let dir = tempfile::tempdir().unwrap();
        let [file, link, pipe] = ["file", "link", "pipe"].map(|name| dir.path().join(name));
        std::os::unix::fs::symlink(&file, &link).unwrap();
        for text in ["one", "other"] {
            check_written(&link).and_then(|()| write(text, &link)).unwrap();
            assert_eq!(fs::read_to_string(&file).unwrap(), text);
        }
        assert!(link.is_symlink());
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let from = pipe.clone();
        let reads = std::thread::spawn(move || fs::read_to_string(from).unwrap());
        check_written(&pipe).and_then(|()| write("page", &pipe)).unwrap();
        assert_eq!(reads.join().unwrap(), "page");
    }

    #[test]
    fn a_page_goes_through_no_link_that_came_with_a_run() {
        let dir = tempfile::tempdir().unwrap();
        let (mine, page) = (dir.path().join("mine"), dir.path().join("report.html"));
        fs::write(&mine, "mine").unwrap();
        let device = dir.path().join("device");
        for (to, link) in [
            (&*mine, "report.html"),
            (&*mine, "report.html.new"),
            (Path::new("/dev/null"), "device"),
        ] {
            std::os::unix::fs::symlink(to, dir.path().join(link)).unwrap();
        }
        let read = |path: &Path| fs::read_to_string(path).unwrap();
        append_inside(&page).unwrap_err();
        for place in [&page, &device] {
            write_inside("page", place).unwrap();
            assert_eq!((read(&mine).as_str(), read(place).as_str()), ("mine", "page"));
            assert!(!place.is_symlink());
        }
    }
}
