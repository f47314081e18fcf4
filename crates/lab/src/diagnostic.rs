//! An error in a plan, with the line it is in.

use std::fmt;
use std::ops::Range;

/// Characters of a line that are shown.
const SHOWN_MAX: usize = 200;
/// Characters of a message: lists of known names are long, a value that is repeated may be longer.
const MESSAGE_MAX: usize = 2000;
/// Mistakes of one plan that are shown.
const MISTAKES_MAX: usize = 20;

/// What is wrong where; displays as
///
/// ```text
/// plans/mine.toml:12:1: unknown key "rt"; did you mean "rtt"? Keys here: rtt, rate, window
///    |
/// 12 | rt = "100ms"
///    | ^^
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// The file, as the user named it.
    pub origin: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// What was found and what to do.
    pub message: String,
    /// The line's text, or the part of a long one around the place.
    source: String,
    /// Where in it the place is, from 1.
    mark_at: usize,
    /// Characters to underline, at least one.
    width: usize,
    /// Where in the file the place begins, in bytes.
    at: usize,
}

impl std::error::Error for Diagnostic {}

/// All that is wrong with a plan, in the order of its text; at least one mistake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistakes(Vec<Diagnostic>);

impl std::error::Error for Mistakes {}

impl From<Diagnostic> for Mistakes {
    fn from(mistake: Diagnostic) -> Self {
        Mistakes(vec![mistake])
    }
}

impl Mistakes {
    /// The mistakes as one value; none where there are none.
    pub(crate) fn of(mistakes: impl IntoIterator<Item = Diagnostic>) -> Option<Self> {
        let mut all: Vec<Diagnostic> = mistakes.into_iter().collect();
        all.sort_by(|a, b| (&a.origin, a.at).cmp(&(&b.origin, b.at)));
        // What variants share is checked for each of them.
        let mut once: Vec<Diagnostic> = Vec::new();
        for mistake in all {
            let mut here = once
                .iter()
                .rev()
                .take_while(|known| (known.at, &known.origin) == (mistake.at, &mistake.origin));
            if !here.any(|known| *known == mistake) {
                once.push(mistake);
            }
        }
        (!once.is_empty()).then_some(Mistakes(once))
    }

    /// Each mistake.
    pub fn each(&self) -> &[Diagnostic] {
        &self.0
    }

    /// The mistakes of both.
    pub(crate) fn and(self, other: Mistakes) -> Mistakes {
        Mistakes::of(self.0.into_iter().chain(other.0)).expect("there are some")
    }

    /// The mistakes that begin in none of the places.
    pub(crate) fn outside(&self, places: &[Range<usize>]) -> Option<Mistakes> {
        let is_within = |at: usize| {
            places.iter().any(|place| place.contains(&at) || (place.start, place.end) == (at, at))
        };
        Mistakes::of(self.0.iter().filter(|mistake| !is_within(mistake.at)).cloned())
    }
}

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Mistakes(all) = self;
        if let [only] = all.as_slice() {
            return only.fmt(f);
        }
        let mut files: Vec<&str> = all.iter().map(|mistake| mistake.origin.as_str()).collect();
        files.sort_unstable();
        files.dedup();
        match files.as_slice() {
            [file] => write!(f, "{} mistakes in {file}", all.len())?,
            several => write!(f, "{} mistakes in {} files", all.len(), several.len())?,
        }
        for mistake in all.iter().take(MISTAKES_MAX) {
            write!(f, "\n\n{mistake}")?;
        }
        match all.len().saturating_sub(MISTAKES_MAX) {
            0 => Ok(()),
            more => write!(f, "\n\nand {more} more"),
        }
    }
}

impl Diagnostic {
    /// At the bytes `span` of `text`; only its first line is underlined.
    pub(crate) fn new(origin: &str, text: &str, span: Range<usize>, message: String) -> Self {
        // Spans come from the parser; one behind the end or within a character is pulled back.
        let start = text.floor_char_boundary(span.start);
        let end = text.floor_char_boundary(span.end.max(start));
        let line_at = text[..start].rfind('\n').map_or(0, |at| at + 1);
        let line_end = text[start..].find('\n').map_or(text.len(), |at| start + at);
        let column = text[line_at..start].chars().count() + 1;
        let width = text[start..end.min(line_end)].chars().count().max(1);
        let (source, left) = excerpt(text[line_at..line_end].trim_end(), column);
        Diagnostic {
            origin: origin.to_owned(),
            line: text[..line_at].matches('\n').count() + 1,
            column,
            message: shortened(message),
            width: width.min((source.chars().count() + 1).saturating_sub(column - left)).max(1),
            mark_at: column - left,
            source,
            at: start,
        }
    }

    /// What the TOML reader found, in our words.
    pub(crate) fn from_toml(origin: &str, text: &str, error: &toml::de::Error) -> Self {
        let mut span = error.span().unwrap_or(0..0);
        if span.start == 0 {
            // The file as a whole: point at its first key rather than at a comment above.
            let blank = |line: &&str| line.trim().is_empty() || line.trim_start().starts_with('#');
            span.start = text.split_inclusive('\n').take_while(blank).map(str::len).sum();
        }
        let said = with_a_colon(text, span.start).unwrap_or_else(|| {
            match error.message().starts_with("string values must be quoted") {
                true => in_quotes(text, span.clone()),
                false => in_our_words(error.message()),
            }
        });
        Diagnostic::new(origin, text, span, said)
    }
}

/// Quotes that word processors put in the place of straight ones.
const TYPOGRAPHIC: [char; 9] = ['“', '”', '„', '‟', '‘', '’', '‚', '«', '»'];

/// What to write in place of a line that has `key: value`.
fn with_a_colon(text: &str, at: usize) -> Option<String> {
    let line = text.get(..at)?.rfind('\n').map_or(0, |before| before + 1);
    let (key, value) = text.get(line..)?.lines().next()?.split_once(':')?;
    let (key, value) = (key.trim(), value.split(" #").next()?.trim());
    let is_bare = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    if key.is_empty() || value.is_empty() || !key.chars().all(is_bare) {
        return None;
    }
    let is_whole = toml::from_str::<toml::Table>(&format!("x = {value}")).is_ok();
    let value = if is_whole { value.to_owned() } else { format!("\"{value}\"") };
    Some(format!("a key and its value are joined by =; write {key} = {value}"))
}

/// What to write in place of a text without quotes, with its key where that stands before it.
fn in_quotes(text: &str, span: Range<usize>) -> String {
    let before = text.get(..span.start).unwrap_or_default();
    let before = before.rsplit('\n').next().unwrap_or_default().trim_start();
    let key = if before.trim_end().ends_with('=') { before } else { "" };
    let line = text.get(span.start..).and_then(|rest| rest.lines().next()).unwrap_or_default();
    if let Some(value) = line.strip_prefix(TYPOGRAPHIC) {
        let value = value.split(TYPOGRAPHIC).next().unwrap_or_default().trim_end();
        return format!(
            "these are typographic quotes, and a text stands in straight ones; write {key}\"{value}\""
        );
    }
    match text.get(span).unwrap_or_default().trim() {
        "" if key.is_empty() => "a value is missing".to_owned(),
        "" => format!("{} has no value", key.trim_end_matches([' ', '=']).trim_end()),
        value => format!("a text stands in quotes; write {key}\"{value}\""),
    }
}

/// The part of a line around a column, and how many characters of the line its text no longer has on the left.
fn excerpt(line: &str, column: usize) -> (String, usize) {
    let characters: Vec<char> = line.chars().collect();
    if characters.len() <= SHOWN_MAX {
        return (line.to_owned(), 0);
    }
    let from = column.saturating_sub(SHOWN_MAX / 2).min(characters.len().saturating_sub(SHOWN_MAX));
    let to = (from + SHOWN_MAX).min(characters.len());
    let mut shown: String = characters[from..to].iter().collect();
    if to < characters.len() {
        shown.push('…');
    }
    match from {
        0 => (shown, 0),
        // The mark takes the place of one character.
        _ => (format!("…{}", shown.split_off(characters[from].len_utf8())), from),
    }
}

/// A message that repeats a long value says its beginning and its end.
fn shortened(message: String) -> String {
    let length = message.chars().count();
    if length <= MESSAGE_MAX {
        return message;
    }
    let begin: String = message.chars().take(MESSAGE_MAX / 2).collect();
    let end: String = message.chars().skip(length - MESSAGE_MAX / 2).collect();
    format!("{begin} … {end}")
}

/// A sentence of the TOML reader in one line, with our quotes. That a key is unknown or missing it never says: keys are
/// checked before.
fn in_our_words(said: &str) -> String {
    let quotes = if said.trim().starts_with("invalid type") { "" } else { "\"" };
    said.trim().replace('\n', "; ").replace('`', quotes)
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Diagnostic { origin, line, column, message, source, mark_at, width, .. } = self;
        let gutter = " ".repeat(line.to_string().len());
        // Tabs stay tabs, so that the carets stand below what they mean at any tab width.
        let indent: String =
            source.chars().take(mark_at - 1).map(|c| if c == '\t' { c } else { ' ' }).collect();
        writeln!(f, "{origin}:{line}:{column}: {message}")?;
        writeln!(f, "{gutter} |")?;
        writeln!(f, "{line} | {source}")?;
        write!(f, "{gutter} | {indent}{}", "^".repeat(*width))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_below_tabs_and_wide_characters() {
        let text = "a = 1\n\tnäme = \"ö\" # x\nb = 2\n";
        let at = text.find("\"ö\"").unwrap();
        let shown = Diagnostic::new("p.toml", text, at..at + 4, "no".to_owned()).to_string();
        assert_eq!(shown, "p.toml:2:9: no\n  |\n2 | \tnäme = \"ö\" # x\n  | \t       ^^^");
    }

    #[test]
    fn mistakes_that_variants_share_at_one_place_are_told_once() {
        let one = |said: &str| Diagnostic::new("p", "a = 1", 0..1, said.to_owned());
        let all = Mistakes::of(["x", "y", "x", "y"].map(one)).unwrap();
        let said: Vec<&str> = all.each().iter().map(|mistake| mistake.message.as_str()).collect();
        assert_eq!(said, ["x", "y"]);
    }

    #[test]
    fn a_long_line_is_shown_around_the_place() {
        let text = format!("a = \"{}\" b = \"{}\"", "x".repeat(100_000), "y".repeat(5000));
        let at = text.find(" b = ").unwrap() + 1;
        let wrong = Diagnostic::new("p.toml", &text, at..at + 1, "z".repeat(9000));
        let shown = wrong.to_string();
        assert!(shown.len() < 3000, "{}", shown.len());
        assert!(
            shown.contains(&format!("p.toml:1:{}: ", wrong.column)),
            "the column is that of the line"
        );
        let lines: Vec<&str> = shown.lines().collect();
        let marked = lines[3].find('^').unwrap();
        let source: Vec<char> = lines[2].chars().collect();
        assert_eq!(source[marked], 'b');
        assert!(source.contains(&'…'));
        let wide = Diagnostic::new("p.toml", &text, 4..text.len(), String::new()).to_string();
        assert!(wide.len() < 600, "{wide}");
    }

    #[test]
    fn spans_over_lines_and_behind_the_end_are_cut() {
        let text = "a = [\n1,\n]";
        let wide = Diagnostic::new("p", text, 4..text.len(), String::new());
        assert_eq!((wide.line, wide.column, wide.width), (1, 5, 1));
        let behind = Diagnostic::new("p", text, 99..120, String::new());
        assert_eq!((behind.line, behind.column, behind.width), (3, 2, 1));
        let empty = Diagnostic::new("p", "", 0..0, String::new());
        assert_eq!((empty.line, empty.column), (1, 1));
    }
}
