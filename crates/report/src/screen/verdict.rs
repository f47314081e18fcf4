//! The foot of the screen: what holds, what lifts it, and what should be known besides.

use insight::words::counted;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use super::palette::Palette;
use super::view::{Found, View};
use crate::style::{plain, wrap};

/// Findings that are shown beside other parts; the others are counted.
const SHOWN: usize = 3;
/// The mark before the setting or action that lifts a finding.
const ARROW: &str = "  → ";

/// What is said of a cluster, wrapped to a width: the lines of each finding, and those of each note.
pub(super) struct Said {
    found: Vec<Vec<Line<'static>>>,
    notes: Vec<Vec<Line<'static>>>,
    dim: Style,
}

impl Said {
    pub(super) fn of(view: &View, width: u16, paint: Palette) -> Said {
        let width = usize::from(width).max(20);
        let bold = Style::new().add_modifier(Modifier::BOLD);
        let found = if view.found.is_empty() {
            let is_well = view.verdict.starts_with("healthy");
            let style = if is_well { paint.good() } else { Style::new() };
            vec![wrapped(&view.verdict, width, "", style.patch(bold))]
        } else {
            view.found.iter().map(|found| finding(found, width, paint)).collect()
        };
        let note = |note: &String| wrapped(&format!("note: {note}"), width, "  ", Style::new());
        Said { found, notes: view.notes.iter().map(note).collect(), dim: paint.dim() }
    }

    /// The rows that the findings want beside other parts, and the row that says that there are notes.
    pub(super) fn rows(&self) -> [usize; 2] {
        let shown: usize = self.found.iter().take(SHOWN).map(Vec::len).sum();
        let more = usize::from(self.found.len() > SHOWN);
        [shown + more, usize::from(!self.notes.is_empty())]
    }

    /// So many rows of findings, and so many of notes: each of them whole, and of those that have no room how many they
    /// are. The first finding is cut where it has no room alone.
    pub(super) fn folded(self, [found, notes]: [usize; 2]) -> Vec<Line<'static>> {
        let (all, first) = (self.found.len(), self.found[0].clone());
        let hidden = |hidden: usize| format!("and {hidden} more: Tab");
        let mut lines = fold(self.found, SHOWN, found, self.dim, hidden);
        if lines.len() == 1 && first.len() > 1 {
            let cut = format!("cut here, {} in all: Tab", counted(all, "finding", "findings"));
            lines = first.into_iter().take(found - 1).collect();
            lines.push(Line::styled(cut, self.dim));
        }
        let hidden = |hidden: usize| counted(hidden, "more note", "more notes") + ": Tab";
        lines.extend(fold(self.notes, usize::MAX, notes, self.dim, hidden));
        lines
    }

    /// All of it.
    pub(super) fn whole(self) -> Vec<Line<'static>> {
        self.found.into_iter().chain(self.notes).flatten().collect()
    }
}

fn finding(found: &Found, width: usize, paint: Palette) -> Vec<Line<'static>> {
    let text = format!("{}: {}", found.class, found.sentence);
    let style = if found.over { paint.dim() } else { paint.warning() };
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let mut lines = wrapped(&text, width, "  ", style.patch(bold));
    let Some(lift) = &found.lift else { return lines };
    let indent = " ".repeat(ARROW.chars().count());
    let text = wrap(&plain(lift), width - indent.len(), 0);
    for (index, line) in text.lines().enumerate() {
        let before = if index == 0 { ARROW.to_owned() } else { indent.clone() };
        let before = Span::styled(before, paint.good());
        lines.push(Line::from(vec![before, Span::raw(line.to_owned())]));
    }
    lines
}

/// The first blocks of lines that have room in so many rows, `most` of them at most; `hidden` says how many have none.
fn fold(
    blocks: Vec<Vec<Line<'static>>>,
    most: usize,
    rows: usize,
    dim: Style,
    hidden: impl Fn(usize) -> String,
) -> Vec<Line<'static>> {
    let all = blocks.len();
    let is_whole = all <= most && blocks.iter().map(Vec::len).sum::<usize>() <= rows;
    let room = if is_whole { rows } else { rows.saturating_sub(1) };
    let (mut lines, mut shown) = (Vec::new(), 0);
    for block in blocks.into_iter().take(most) {
        if lines.len() + block.len() > room {
            break;
        }
        lines.extend(block);
        shown += 1;
    }
    if shown < all && rows > 0 {
        lines.push(Line::styled(hidden(all - shown), dim));
    }
    lines
}

/// Lines of one style, all but the first indented.
pub(super) fn wrapped(text: &str, width: usize, indent: &str, style: Style) -> Vec<Line<'static>> {
    let text = wrap(&plain(text), width, indent.len());
    text.lines().map(|line| Line::styled(line.to_owned(), style)).collect()
}
