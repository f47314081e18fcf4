//! A view as lines: for logs, for pipes, and for terminals that cannot be drawn on.

use insight::diagnosis::TimeToGreen;
use insight::words;

use super::nodes::node_cells;
use super::view::{View, WaitingLine, recovery_cells};
use crate::style::plain;

/// Rows of a kind in one view. A log of a large cluster would have a thousand lines a second; `explain --json` has all.
const ROWS_MAX: usize = 20;

/// The first of some rows, and how many more there are, with those that are not among them.
fn first<T>(
    all: &[T],
    besides: usize,
    [one, many]: [&str; 2],
    row: impl Fn(&T) -> String,
) -> Vec<String> {
    let mut rows: Vec<String> = all.iter().take(ROWS_MAX).map(row).collect();
    let more = all.len().saturating_sub(ROWS_MAX) + besides;
    rows.extend((more > 0).then(|| format!("  and {}", words::counted(more, one, many))));
    rows
}

/// The lines of one view; `t_s` is the time since the first look.
pub fn plain_lines(view: &View, t_s: f64) -> Vec<String> {
    let mut lines = vec![format!("{t_s:.0} s  {}  health {}", view.title, view.health)];
    if let Some(trouble) = &view.trouble {
        // The lines of the last answer have been printed already.
        lines.push(format!("  {}", plain(trouble)));
        return lines;
    }
    lines.extend(first(&view.recoveries, 0, ["more recovery", "more recoveries"], |pace| {
        let cells = recovery_cells(pace);
        let done = cells.done.map_or_else(|| "-".to_owned(), words::done);
        format!(
            "  {} {} {} {done} {}, {} now, {} since it changed, eta {}",
            cells.name, cells.path, cells.stage, cells.amount, cells.now, cells.since, cells.eta
        )
    }));
    let nodes = view.nodes.busy_first(ROWS_MAX);
    lines.extend(first(&nodes, 0, ["more node", "more nodes"], |node| {
        let [name, cpu, disk, net, paused, recoveries, heap] = node_cells(node);
        format!(
            "  {name}: cpu {cpu}, disk r/w {disk} MB/s, net rx/tx {net} MB/s, transfers paused at once {paused}, \
             recoveries out/in {recoveries}, heap {heap}"
        )
    }));
    let followers = ["more follower", "more followers"];
    lines.extend(first(&view.followers, 0, followers, |line| format!("  follower {line}")));
    let waits = |line: &WaitingLine| format!("  waits: {}", line.text);
    let copies = ["more copy waits", "more copies wait"];
    lines.extend(first(&view.waiting, view.waiting_more, copies, waits));
    if view.green != TimeToGreen::Now {
        lines.push(format!("  green {}: {}", view.green.words(), view.green.note()));
    }
    lines.push(format!("  {}", view.verdict));
    // The first finding has been printed as the verdict.
    lines.extend(view.found.iter().enumerate().filter_map(|(index, found)| {
        let lift = found.lift.as_ref()?;
        let of = if index == 0 { String::new() } else { format!("{}: ", found.class) };
        Some(format!("    {of}{lift}"))
    }));
    lines.extend(view.notes.iter().map(|note| format!("  note: {note}")));
    lines.iter().map(|line| plain(line)).collect()
}
