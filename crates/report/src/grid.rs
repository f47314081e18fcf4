//! Columns of text with a rule below their headers.

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Table};

use crate::style::plain;

/// The lines: header, rule, one a row. Columns that are `right` are aligned there.
pub fn grid<'a>(
    columns: impl IntoIterator<Item = (&'a str, bool)>,
    rows: impl IntoIterator<Item = Vec<String>>,
) -> Vec<String> {
    let (headers, right): (Vec<&str>, Vec<bool>) = columns.into_iter().unzip();
    let mut table = Table::new();
    table
        .load_style(NOTHING.header_separator(LineStyle::none().fill('─').junction('─')))
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(headers);
    table.add_rows(
        rows.into_iter().map(|row| row.iter().map(|cell| plain(cell)).collect::<Vec<_>>()),
    );
    for (index, is_right) in right.iter().enumerate() {
        let shown = table.column_mut(index).expect("as many columns as headers");
        shown.set_padding((0, if index + 1 < right.len() { 2 } else { 0 }));
        if *is_right {
            shown.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.lines().map(|line| line.trim_end().to_owned()).collect()
}
