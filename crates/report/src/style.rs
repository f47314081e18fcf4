//! How a terminal is written to.

use std::borrow::Cow;
use std::ffi::OsStr;

use record::text::{visible, visible_line};
use unicode_width::UnicodeWidthStr;

/// Colour and width of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Whether to use colours (ANSI escapes).
    pub color: bool,
    /// Columns of a line. Those of a table are left out where they do not fit.
    pub width: u16,
}

impl Style {
    /// Width where nothing better is known.
    pub const DEFAULT_WIDTH: u16 = 100;

    /// The style for a terminal: colour unless output is no terminal or `no_color`, the value of the
    /// environment variable `NO_COLOR`, is set to something (see no-color.org).
    pub fn detect(is_terminal: bool, no_color: Option<&OsStr>, width: Option<u16>) -> Self {
        let forbidden = no_color.is_some_and(|value| !value.is_empty());
        Style {
            color: is_terminal && !forbidden,
            width: width.unwrap_or(Self::DEFAULT_WIDTH).max(40),
        }
    }

    /// `text` in a colour, or as it is.
    pub(crate) fn paint(self, paint: Option<Paint>, text: &str) -> String {
        let Some(paint) = paint.filter(|_| self.color && !text.is_empty()) else {
            return text.to_owned();
        };
        format!("{}{text}{END}", paint.begin())
    }

    /// `text` as it may be sent to a terminal, wherever its parts come from: [`visible`] but for the colours of this
    /// module, which command nothing else.
    pub fn safe(self, text: &str) -> Cow<'_, str> {
        if !self.color || !text.contains('\x1b') {
            return visible(text);
        }
        let ours = |part: &str| {
            let begins = Paint::ALL.map(Paint::begin).into_iter().chain([END]);
            begins.map(|code| &code[1..]).find(|code| part.starts_with(code)).map_or(0, str::len)
        };
        let mut parts = text.split('\x1b');
        let mut safe = visible(parts.next().unwrap_or_default()).into_owned();
        for part in parts {
            let (code, rest) = part.split_at(ours(part));
            safe.push_str(if code.is_empty() { "\\u001b" } else { "\x1b" });
            safe.push_str(code);
            safe.push_str(&visible(rest));
        }
        Cow::Owned(safe)
    }
}

/// Words beside a label have as many columns at least.
const ROOM_MIN: usize = 28;
/// How far the lines hang that come after the first.
const HANG: usize = 4;

/// The end of any colour.
const END: &str = "\x1b[0m";

/// What a colour is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Paint {
    /// The finding.
    Bold,
    /// Frame and side remarks.
    Dim,
    /// The fastest row.
    Good,
    /// What is missing or wrong.
    Warning,
}

impl Paint {
    const ALL: [Paint; 4] = [Paint::Bold, Paint::Dim, Paint::Good, Paint::Warning];

    /// What a terminal is sent before the text.
    const fn begin(self) -> &'static str {
        match self {
            Paint::Bold => "\x1b[1m",
            Paint::Dim => "\x1b[2m",
            Paint::Good => "\x1b[32m",
            Paint::Warning => "\x1b[33m",
        }
    }
}

/// A name or a sentence from elsewhere, fit for a line of a terminal.
pub(crate) fn plain(text: &str) -> String {
    visible_line(text).into_owned()
}

/// What was found, and below it what that has no room for.
pub(crate) fn headline(text: &str, details: &[String], style: Style) -> Vec<String> {
    let mut lines = vec![paragraph(style, Some(Paint::Bold), &plain(text), 0)];
    lines.extend(details.iter().map(|text| paragraph(style, None, &plain(text), 0)));
    lines
}

/// Breaks `text` at spaces into lines of at most `width` columns; those after the first are
/// indented. A longer word keeps its line.
pub(crate) fn wrap(text: &str, width: usize, indent: usize) -> String {
    let mut lines: Vec<String> = vec![String::new()];
    // A count has spaces that no line is broken at.
    for word in text.split_ascii_whitespace() {
        let line = lines.last_mut().expect("there is always a line");
        let used = line.width();
        if used > 0 && !line.trim().is_empty() && used + 1 + word.width() > width {
            lines.push(format!("{}{word}", " ".repeat(indent)));
        } else {
            if !line.trim().is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines.join("\n")
}

/// `words` behind `label`, each of their lines over as many as it needs, below each other. Where the label leaves too
/// little room in `width` columns, they stand below it.
pub fn labelled(label: &str, words: &str, width: usize) -> String {
    let column = label.width();
    let longest = words.lines().map(|line| line.width()).max().unwrap_or(0);
    let is_beside = column + longest.min(ROOM_MIN) <= width;
    let lead = label.len() - label.trim_start_matches(' ').len();
    let indent = if is_beside { column } else { lead + HANG };
    let broken = words.lines().map(|line| wrap(line, width.saturating_sub(indent), 0));
    let broken = broken.collect::<Vec<_>>().join("\n");
    let below = format!("\n{}", " ".repeat(indent));
    let words = broken.replace('\n', &below);
    if is_beside {
        format!("{label}{words}")
    } else {
        format!("{}{below}{words}", label.trim_end())
    }
}

/// The lines of `text`; those that are wider than `width` columns are broken at spaces, and hang.
pub fn fitted(text: &str, width: usize) -> String {
    let fit = |line: &str| {
        if line.width() <= width {
            return line.to_owned();
        }
        let words = line.trim_start_matches(' ');
        let lead = " ".repeat(line.len() - words.len());
        let broken = wrap(words, width.saturating_sub(lead.len()), HANG);
        format!("{lead}{}", broken.replace('\n', &format!("\n{lead}")))
    };
    text.lines().map(fit).collect::<Vec<_>>().join("\n")
}

/// A sentence over as many lines as it needs; each is painted alone, so that a pager shows it well.
pub(crate) fn paragraph(style: Style, paint: Option<Paint>, text: &str, indent: usize) -> String {
    let wrapped = wrap(text, usize::from(style.width), indent);
    let lines: Vec<String> = wrapped.lines().map(|line| style.paint(paint, line)).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_color_counts_only_when_it_says_something() {
        let set = |value: &'static str| Some(OsStr::new(value));
        assert!(Style::detect(true, None, None).color);
        assert!(Style::detect(true, set(""), None).color);
        assert!(!Style::detect(true, set("1"), None).color);
        assert!(!Style::detect(false, None, None).color);
        assert_eq!(Style::detect(true, None, Some(10)).width, 40);
    }

    #[test]
    fn lines_break_at_spaces_and_hang() {
        assert_eq!(wrap("one two three four", 9, 2), "one two\n  three\n  four");
        assert_eq!(wrap("incomprehensibilities so", 5, 0), "incomprehensibilities\nso");
        assert_eq!(wrap("25\u{202f}000 ops", 5, 0), "25\u{202f}000\nops");
        assert_eq!(wrap("長い 名 a", 7, 0), "長い 名\na");
    }

    #[test]
    fn words_stand_beside_their_label_or_below_it() {
        let words = "one two three four five six seven\nand more";
        let beside = "ok  what  one two three four five six\n          seven\n          and more";
        assert_eq!(labelled("ok  what  ", words, 38), beside);
        let below = "ok  what\n    one two three four five six seven\n    and more";
        assert_eq!(labelled("ok  what  ", words, 37), below);
        assert_eq!(labelled("ok  what  ", "few", 13), "ok  what  few");
        assert_eq!(labelled("a ", "words as they are", usize::MAX), "a words as they are");
    }

    #[test]
    fn lines_that_fit_stay_as_they_are_and_others_hang_from_where_they_began() {
        let text = "a  table\n\n  one two three four";
        assert_eq!(fitted(text, 14), "a  table\n\n  one two\n      three\n      four");
        assert_eq!(fitted(text, usize::MAX), text);
    }

    #[test]
    fn colours_are_all_that_a_terminal_is_told() {
        let style = |color| Style { color, width: 80 };
        let painted = Paint::ALL.map(|paint| style(true).paint(Some(paint), "x")).concat();
        assert_eq!(style(true).safe(&painted), painted);
        let hostile = format!("{painted}\x1b]0;t\x07\x1b[8m\u{202e}\x1b");
        let shown = format!("{painted}\\u001b]0;t\\u0007\\u001b[8m\\u202e\\u001b");
        assert_eq!(style(true).safe(&hostile), shown);
        assert!(!style(false).safe(&painted).contains('\x1b'));
    }
}
