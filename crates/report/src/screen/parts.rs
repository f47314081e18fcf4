//! What all parts of the screen are made of: a line with a title, and tables.

use ratatui::layout::Constraint;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Cell, Row, Table};

use super::palette::Palette;

/// A part of the screen: a line above it with its title.
pub(super) fn block(title: String, paint: Palette) -> Block<'static> {
    Block::new()
        .borders(Borders::TOP)
        .border_style(paint.dim())
        .title(Span::styled(format!("{title} "), Style::new().add_modifier(Modifier::BOLD)))
}

pub(super) fn cell(text: String, is_number: bool) -> Cell<'static> {
    let line = Line::from(text);
    Cell::from(if is_number { line.right_aligned() } else { line })
}

pub(super) fn table<'a>(
    rows: Vec<Row<'a>>,
    widths: &[Constraint],
    header: Row<'a>,
    title: String,
    paint: Palette,
) -> Table<'a> {
    Table::new(rows, widths.to_vec())
        .header(header.style(paint.dim()))
        .column_spacing(1)
        .block(block(title, paint))
}
