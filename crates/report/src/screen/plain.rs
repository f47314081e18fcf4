//! A view as lines: for logs, for pipes, and for terminals that cannot be drawn on.

use insight::diagnosis::TimeToGreen;

use super::view::{View, node_cells, recovery_cells};
use crate::style::plain;

/// The lines of one view; `t_s` is the time since the first look.
pub fn plain_lines(view: &View, t_s: f64) -> Vec<String> {
    let mut lines = vec![format!("{t_s:.0} s  {}  health {}", view.title, view.health)];
    if let Some(trouble) = &view.trouble {
        // The lines of the last answer have been printed already.
        lines.push(format!("  {}", plain(trouble)));
        return lines;
    }
    for pace in &view.recoveries {
        let cells = recovery_cells(pace);
        let done =
            cells.done.map_or_else(|| "-".to_owned(), |done| format!("{:.0} %", done * 100.0));
        lines.push(format!(
            "  {} {} {} {done} {}, {} now, {} since it changed, eta {}",
            cells.name, cells.path, cells.stage, cells.amount, cells.now, cells.since, cells.eta
        ));
    }
    for node in &view.nodes {
        let [name, cpu, disk, net, paused, recoveries, heap] = node_cells(node);
        lines.push(format!(
            "  {name}: cpu {cpu}, disk r/w {disk} MB/s, net rx/tx {net} MB/s, transfers pausing {paused}, \
             recoveries out/in {recoveries}, heap {heap}"
        ));
    }
    lines.extend(view.followers.iter().map(|line| format!("  follower {line}")));
    lines.extend(view.waiting.iter().map(|line| format!("  waits: {line}")));
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
    lines.iter().map(|line| plain(line)).collect()
}
