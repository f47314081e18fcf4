//! How a terminal is written to.

use std::ffi::OsStr;

/// Colour and width of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Whether to use colours (ANSI escapes).
    pub color: bool,
    /// Characters in a line. Columns are left out where they do not fit.
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
        let code = match paint {
            Paint::Bold => "1",
            Paint::Dim => "2",
            Paint::Good => "32",
            Paint::Warning => "33",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}

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

/// Replaces control characters: names come from plan files and must not send commands to the terminal.
pub(crate) fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// Breaks `text` at spaces into lines of at most `width` characters; those after the first are
/// indented. A longer word keeps its line.
pub(crate) fn wrap(text: &str, width: usize, indent: usize) -> String {
    let mut lines: Vec<String> = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is always a line");
        let used = line.chars().count();
        if used > 0 && !line.trim().is_empty() && used + 1 + word.chars().count() > width {
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
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        assert_eq!(plain("a\x1b[31mb\n"), "a\u{fffd}[31mb\u{fffd}");
    }
}
