//! The foot of the screen: what holds, what lifts it, and what should be known besides.

use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use super::palette::Palette;
use super::view::View;
use crate::style::{plain, wrap};

/// Findings that are shown; the others are counted.
const SHOWN: usize = 3;
/// The mark before the setting or action that lifts a finding.
const ARROW: &str = "  → ";

/// The lines, wrapped to a width.
pub(super) fn lines(view: &View, width: u16, paint: Palette) -> Vec<Line<'static>> {
    let width = usize::from(width).max(20);
    let bold = Style::new().add_modifier(Modifier::BOLD);
    if view.found.is_empty() {
        let style = if view.verdict.starts_with("healthy") { paint.good() } else { Style::new() };
        return wrapped(&view.verdict, width, "", style.patch(bold));
    }
    let mut lines = Vec::new();
    for found in view.found.iter().take(SHOWN) {
        let text = format!("{}: {}", found.class, found.sentence);
        let style = if found.over { paint.dim() } else { paint.warning() };
        lines.extend(wrapped(&text, width, "  ", style.patch(bold)));
        if let Some(lift) = &found.lift {
            let indent = " ".repeat(ARROW.chars().count());
            let text = wrap(&plain(lift), width - indent.len(), 0);
            for (index, line) in text.lines().enumerate() {
                let before = if index == 0 { ARROW.to_owned() } else { indent.clone() };
                lines.push(Line::from(vec![
                    Span::styled(before, paint.good()),
                    Span::raw(line.to_owned()),
                ]));
            }
        }
    }
    match view.found.len().saturating_sub(SHOWN) {
        0 => {}
        more => lines.push(Line::styled(format!("and {more} more: narrows explain"), paint.dim())),
    }
    lines
}

/// What holds nothing and should be known all the same, in so many rows at most: each note whole or not at all.
pub(super) fn notes(view: &View, width: u16, rows: usize, paint: Palette) -> Vec<Line<'static>> {
    let width = usize::from(width).max(20);
    let line = |note: &String| wrapped(&format!("note: {note}"), width, "  ", Style::new());
    let notes: Vec<Vec<Line<'static>>> = view.notes.iter().map(line).collect();
    let is_whole = notes.iter().map(Vec::len).sum::<usize>() <= rows;
    let room = if is_whole { rows } else { rows.saturating_sub(1) };
    let (mut lines, mut hidden) = (Vec::new(), notes.len());
    for note in notes {
        if lines.len() + note.len() > room {
            break;
        }
        lines.extend(note);
        hidden -= 1;
    }
    if hidden > 0 && rows > 0 {
        let text = format!("notes that have no room: {hidden}; narrows explain");
        lines.push(Line::styled(text, paint.dim()));
    }
    lines
}

/// Lines of one style, all but the first indented.
fn wrapped(text: &str, width: usize, indent: &str, style: Style) -> Vec<Line<'static>> {
    let text = wrap(&plain(text), width, indent.len());
    text.lines().map(|line| Line::styled(line.to_owned(), style)).collect()
}
