//! Columns of text with a rule below their headers, and differences as they stand in them.

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Table};
use insight::stats::Interval;
use unicode_width::UnicodeWidthStr;

use crate::style::{Paint, Style, labelled, plain};
use crate::svg::short;

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

/// A grid on a terminal, with its header and its rule dim.
pub(crate) fn painted(lines: Vec<String>, style: Style) -> Vec<String> {
    let paint = |index: usize| (index < 2).then_some(Paint::Dim);
    lines.iter().enumerate().map(|(index, line)| style.paint(paint(index), line)).collect()
}

/// A grid in `width` columns: where a row is wider, what its last cell says is broken at spaces. Each text is a row,
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

/// Columns that a name is not cut below.
const NAME_MIN: usize = 10;

/// The same in `width` columns where each cell is a figure or a name. Columns that can be missed are left out, the
/// first of `missed` first, until the rest fits; where not even that is enough, `names` are cut in their middle.
pub(crate) fn grid_fitting(
    columns: &[(&str, bool)],
    rows: &[Vec<String>],
    missed: &[usize],
    names: &[usize],
    width: usize,
) -> Vec<String> {
    let shown = |left_out: usize, cut: usize| {
        let kept = |at: &usize| !missed[..left_out].contains(at);
        let kept: Vec<usize> = (0..columns.len()).filter(kept).collect();
        let cell = |row: &[String], at: usize| match names.contains(&at) {
            true => short(&plain(&row[at]), cut),
            false => row[at].clone(),
        };
        let row =
            |row: &Vec<String>| -> Vec<String> { kept.iter().map(|at| cell(row, *at)).collect() };
        grid(kept.iter().map(|at| columns[*at]), rows.iter().map(row))
    };
    let over = |lines: &[String]| {
        let widest = lines.iter().map(|line| line.width()).max().unwrap_or(0);
        widest.saturating_sub(width)
    };
    let mut lines = shown(0, usize::MAX);
    for left_out in 1..=missed.len() {
        if over(&lines) == 0 {
            return lines;
        }
        lines = shown(left_out, usize::MAX);
    }
    let cells = rows.iter().flat_map(|row| names.iter().map(move |at| plain(&row[*at]).width()));
    let mut cut = cells.max().unwrap_or(0);
    while over(&lines) > 0 && cut > NAME_MIN {
        cut -= 1;
        lines = shown(missed.len(), cut);
    }
    lines
}

/// What stands where there is no figure.
pub(crate) fn dash() -> String {
    "-".to_owned()
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
    fn columns_that_can_be_missed_are_left_out_before_names_are_cut() {
        let columns = [("name", false), ("a", true), ("b", true), ("c", true)];
        let row = |name: &str| [name, "1.00", "2.00", "3.00"].map(str::to_owned).to_vec();
        let rows = [row("the name of one"), row("the name of another")];
        let header = |width: usize| {
            let lines = grid_fitting(&columns, &rows, &[3, 1], &[0], width);
            assert!(lines.iter().all(|line| line.width() <= width), "{lines:#?}");
            (lines[0].split_whitespace().map(str::to_owned).collect::<Vec<_>>(), lines[3].clone())
        };
        assert_eq!(header(usize::MAX).0, ["name", "a", "b", "c"]);
        assert_eq!(header(39).0, ["name", "a", "b"]);
        assert_eq!(header(28), (vec!["name".to_owned(), "b".to_owned()], header(30).1));
        assert_eq!(header(20).1, "the na…nother   2.00");
    }

    #[test]
    fn both_ends_of_a_range_have_their_sign() {
        assert_eq!(signed_range(Interval { low: -0.01, high: 2.0 }), "+0.0 to +2.0");
    }
}
