//! Columns of text with a rule below their headers, and differences as they stand in them.

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Table};
use insight::stats::Interval;

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
    fn both_ends_of_a_range_have_their_sign() {
        assert_eq!(signed_range(Interval { low: -0.01, high: 2.0 }), "+0.0 to +2.0");
    }
}
