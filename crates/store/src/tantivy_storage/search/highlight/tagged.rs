//! How fragments are written.

use query::HighlightField;

/// Writes a part of a text behind a fragment, with tags around it or without.
pub(super) fn put(fragment: &mut String, asked: &HighlightField, units: &[u16], is_tagged: bool) {
    let (before, behind) = &asked.tags;
    if is_tagged {
        fragment.push_str(before);
    }
    let text = String::from_utf16_lossy(units);
    match asked.html {
        false => fragment.push_str(&text),
        true => text.chars().for_each(|char| escape(fragment, char)),
    }
    if is_tagged {
        fragment.push_str(behind);
    }
}

/// As Lucene's `SimpleHTMLEncoder`.
fn escape(fragment: &mut String, char: char) {
    match char {
        '"' => fragment.push_str("&quot;"),
        '&' => fragment.push_str("&amp;"),
        '<' => fragment.push_str("&lt;"),
        '>' => fragment.push_str("&gt;"),
        '\'' => fragment.push_str("&#x27;"),
        '/' => fragment.push_str("&#x2F;"),
        char => fragment.push(char),
    }
}

/// A fragment without spaces around it, as Java's `trim` has it; none if nothing is left.
pub(super) fn shown(fragment: &str) -> Option<String> {
    let fragment = fragment.strip_suffix('\u{2029}').unwrap_or(fragment);
    let trimmed = fragment.trim_matches(|char: char| char <= ' ');
    (!trimmed.trim().is_empty()).then(|| trimmed.to_owned())
}
