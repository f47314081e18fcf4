//! Columns of text with a rule below their headers, and differences as they stand in them.

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Table};
use insight::stats::Interval;
use unicode_width::UnicodeWidthStr;

use crate::style::{labelled, plain};

/// Columns between two cells: two of padding, and the separator's one.
const GAP: usize = 3;

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

/// The same in `width` columns: where a row is wider, what its last cell says is broken at spaces. Each text is a row,
/// of as many lines as it needs.
pub(crate) fn grid_within(
    columns: &[(&str, bool)],
    rows: &[Vec<String>],
    width: usize,
) -> Vec<String> {
    let whole = grid(columns.iter().copied(), rows.iter().cloned());
    let (Some(((header, _), before)), Some(widest)) =
        (columns.split_last(), whole.iter().map(|line| line.width()).max())
    else {
        return whole;
    };
    if widest <= width {
        return whole;
    }
    let without_last = rows.iter().map(|row| row[..before.len()].to_vec());
    let labels = grid(before.iter().copied(), without_last);
    let column = labels.iter().map(|line| line.width()).max().unwrap_or(0);
    let one = |label: &String, words: &str| {
        let gap = " ".repeat(column - label.width() + GAP);
        labelled(&format!("{label}{gap}"), &plain(words), width).trim_end().to_owned()
    };
    let rule = "─".repeat(widest.min(width));
    let said = rows.iter().map(|row| row.last().map_or("", String::as_str));
    let shown = labels[2..].iter().zip(said).map(|(label, words)| one(label, words));
    [one(&labels[0], header), rule].into_iter().chain(shown).collect()
}

/// A difference with its sign; one that rounds to nothing has that of zero.
pub(crate) fn signed(difference: f64) -> String {
    let text = format!("{difference:+.1}");
    if text == "-0.0" { "+0.0".to_owned() } else { text }
}

/// A range of differences: `+1.0 to +2.0`.
pub(crate) fn signed_range(range: Interval) -> String {
    format!("{} to {}", signed(range.low), signed(range.high))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_that_rounds_to_nothing_has_the_sign_of_zero() {
        assert_eq!([-0.04, 0.0, -0.06, 3.0].map(signed), ["+0.0", "+0.0", "-0.1", "+3.0"]);
    }

    #[test]
    fn what_a_row_says_last_is_broken_where_it_is_too_long() {
        let columns = [("run", false), ("laps", true), ("found", false)];
        let said = "one two three four five six seven eight nine ten";
        let rows = [vec!["a".to_owned(), "12".to_owned(), said.to_owned()]];
        let lines = grid_within(&columns, &rows, 42);
        let row = "a       12   one two three four five six\n             seven eight nine ten";
        assert_eq!(lines, ["run   laps   found", &"─".repeat(42), row]);
        assert_eq!(grid_within(&columns, &rows, 100), grid(columns, rows.clone()));
        let below = "a       12\n    one two three four five six seven\n    eight nine ten";
        assert_eq!(grid_within(&columns, &rows, 40)[2], below);
    }

    #[test]
    fn both_ends_of_a_range_have_their_sign() {
        assert_eq!(signed_range(Interval { low: -0.01, high: 2.0 }), "+0.0 to +2.0");
    }
}
