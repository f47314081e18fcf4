//! Runs beside each other as text: in colour for a terminal, and as Markdown.

use insight::compare::{Runs, Worse};

use super::{Line, lines, tell_of_chance, what_it_is};
use crate::grid::grid_fitting;
use crate::style::{Paint, Style, headline, paragraph, plain};

/// How a difference is to be read.
const LEGEND: &str = "Medians over laps; the interval is that of the change, from three laps on; p is the probability \
     that chance alone makes such a difference. Asterisks mark p below 5 %, 1 % and 0.1 %.";

/// The table for a terminal, its rows in `width` columns. Ends with a line break. Coloured is only what the laps
/// support.
pub fn table(runs: &Runs<'_>, worse: Option<&[Worse]>, style: Style, width: usize) -> String {
    let said = runs.headline();
    let mut blocks = headline(&said.text, &said.details, style);
    for (at, contender) in runs.contenders.iter().enumerate() {
        let line = format!("{}  {}", contender.label, plain(&what_it_is(runs, at)));
        blocks.push(paragraph(style, Some(Paint::Dim), &line, 3));
    }
    for at in 1..runs.contenders.len() {
        blocks.push(String::new());
        blocks.extend(rows(runs, at, style, width));
    }
    blocks.push(String::new());
    if (1..runs.contenders.len()).any(|at| tell_of_chance(&lines(runs, at))) {
        blocks.push(paragraph(style, Some(Paint::Dim), LEGEND, 2));
    }
    blocks.extend(
        runs.remarks.iter().map(|text| paragraph(style, Some(Paint::Warning), &plain(text), 2)),
    );
    for one in worse.unwrap_or_default() {
        let text = plain(&format!("Worse: {} in {}.", one.text, one.label));
        blocks.push(paragraph(style, Some(Paint::Warning), &text, 2));
    }
    blocks.join("\n") + "\n"
}

/// Columns before those of chance.
const CHANCE: usize = 5;

fn columns<'a>(base: &'a str, other: &'a str) -> [(&'a str, bool); 8] {
    [
        ("variant", false),
        ("figure", false),
        (base, true),
        (other, true),
        ("change %", true),
        ("", false),
        ("95 % interval", true),
        ("p", true),
    ]
}

fn cells(line: &Line<'_>) -> Vec<String> {
    let Line { base, other, .. } = line;
    vec![
        line.figure.of(),
        line.name(),
        base.clone(),
        other.clone(),
        line.change(),
        line.mark().to_owned(),
        line.interval(),
        line.p(),
    ]
}

fn rows(runs: &Runs<'_>, at: usize, style: Style, width: usize) -> Vec<String> {
    let lines = lines(runs, at);
    let columns = columns(&runs.contenders[0].label, &runs.contenders[at].label);
    // What is said of chance stands behind the change.
    let shown = if tell_of_chance(&lines) { columns.len() } else { CHANCE };
    let cells: Vec<_> = lines.iter().map(|line| cells(line)[..shown].to_vec()).collect();
    // The mark that p is small stays beside the change.
    let missed = [CHANCE + 1, CHANCE + 2];
    let missed = if shown > CHANCE { &missed[..] } else { &[] };
    let grid = grid_fitting(&columns[..shown], &cells, missed, &[0, 1], width);
    let paint = |row: usize| match row.checked_sub(2).and_then(|at| lines.get(at)) {
        None => Some(Paint::Dim),
        Some(line) => {
            line.is_better().map(|better| if better { Paint::Good } else { Paint::Warning })
        }
    };
    grid.iter().enumerate().map(|(row, text)| style.paint(paint(row), text)).collect()
}

/// The same as Markdown, with the differences that the laps support in bold.
pub fn markdown(runs: &Runs<'_>, worse: Option<&[Worse]>) -> String {
    let said = runs.headline();
    let mut text = format!("{}.\n\n", cell(&said.text));
    for sentence in &said.details {
        text += &format!("{}\n\n", cell(sentence));
    }
    for (at, contender) in runs.contenders.iter().enumerate() {
        text += &format!("- {}: {}\n", contender.label, cell(&what_it_is(runs, at)));
    }
    for at in 1..runs.contenders.len() {
        let columns = columns(&runs.contenders[0].label, &runs.contenders[at].label);
        let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
        text += "\n";
        text += &line(columns.iter().map(|(name, _)| (*name).to_owned()).collect());
        let rule = |right: bool| if right { "---:" } else { "---" }.to_owned();
        text += &line(columns.iter().map(|(_, right)| rule(*right)).collect());
        for one in lines(runs, at) {
            let mut cells: Vec<String> = cells(&one).iter().map(|text| cell(text)).collect();
            if one.is_better().is_some() {
                cells[4] = format!("**{}**", cells[4]);
            }
            text += &line(cells);
        }
    }
    text += &format!("\n{LEGEND}\n");
    for remark in &runs.remarks {
        text += &format!("\n{}\n", cell(remark));
    }
    for one in worse.unwrap_or_default() {
        text += &format!("\nWorse: {} in {}.\n", cell(&one.text), one.label);
    }
    text
}

/// Text from elsewhere as a cell of a table: it ends neither the cell nor the line.
fn cell(text: &str) -> String {
    let text = plain(text).replace('|', "\\|").replace('*', "\\*");
    text.replace('<', "&lt;").replace('>', "&gt;")
}
