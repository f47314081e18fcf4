//! Documents, and tables in them, that are written by the code which they describe, or by the bench that measured them.
//!
//! A table stands between `<!-- NAME -->` and `<!-- /NAME -->`.

use std::path::PathBuf;

/// The variable that, set to 1, has tests write what they would compare.
pub const WRITE: &str = "NARROWS_WRITE";

/// Whether tests are to write what they would compare.
pub fn writes() -> bool {
    std::env::var(WRITE).is_ok_and(|value| value == "1")
}

/// A file of this workspace.
pub(crate) fn path_of(file: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join(file)
}

fn marks(name: &str) -> (String, String) {
    (format!("<!-- {name} -->\n"), format!("<!-- /{name} -->"))
}

/// The text before, between and behind the marks.
fn split<'a>(whole: &'a str, name: &str) -> Option<(&'a str, &'a str, &'a str)> {
    let (begin, end) = marks(name);
    let from = whole.find(&begin)? + begin.len();
    let len = whole[from..].find(&end)?;
    Some((&whole[..from], &whole[from..from + len], &whole[from + len..]))
}

/// What stands between the marks in a document of this workspace; none without them.
pub fn read(document: &str, name: &str) -> Option<String> {
    let whole = std::fs::read_to_string(path_of(document)).ok()?;
    split(&whole, name).map(|(_, there, _)| there.to_owned())
}

/// Puts `table` where the marks are in a document of this workspace.
///
/// # Panics
/// Where the document cannot be read or written, or has no such marks.
pub fn write(document: &str, name: &str, table: &str) {
    let path = path_of(document);
    let whole =
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{document}: {error}"));
    let (begin, end) = marks(name);
    let parts = split(&whole, name);
    let (before, _, behind) = parts
        .unwrap_or_else(|| panic!("{document} needs the lines {} and {end}", begin.trim_end()));
    let new = format!("{before}{table}{behind}");
    std::fs::write(&path, new).unwrap_or_else(|error| panic!("{document}: {error}"));
}

/// Compares `table` with what stands between the marks in a document of this workspace; with [`WRITE`] set to 1, writes
/// it.
///
/// # Panics
/// Where they differ.
pub fn check(document: &str, name: &str, table: &str) {
    if writes() {
        return write(document, name, table);
    }
    let there = read(document, name);
    assert_eq!(
        there.as_deref(),
        Some(table),
        "{document} is out of date: run this test with {WRITE}=1"
    );
}

/// Compares `page` with the whole of a document of this workspace; with [`WRITE`] set to 1, writes it.
///
/// # Panics
/// Where they differ, or it cannot be written.
pub fn check_page(document: &str, page: &str) {
    let path = path_of(document);
    if writes() {
        std::fs::write(&path, page).unwrap_or_else(|error| panic!("{document}: {error}"));
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(there == page, "{document} is out of date: run this test with {WRITE}=1");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_is_between_the_marks() {
        let whole = "a\n<!-- x -->\nold\n<!-- /x -->\nb\n";
        assert_eq!(split(whole, "x"), Some(("a\n<!-- x -->\n", "old\n", "<!-- /x -->\nb\n")));
        assert_eq!(split(whole, "y"), None);
    }
}
