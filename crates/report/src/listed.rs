//! The runs that there are, a line each.

use record::Status;
use serde_json::{Value, json};

use crate::grid::grid_within;
use crate::style::{Paint, Style};

/// A run, as a list shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Listed {
    /// Its id.
    pub id: String,
    /// Its plan.
    pub plan: String,
    /// Where it ran.
    pub target: String,
    /// How it ended; none where it cannot be read.
    pub status: Option<Status>,
    /// Its start, RFC 3339, UTC.
    pub started: String,
    /// What was found, or why it cannot be read.
    pub headline: String,
}

impl Listed {
    fn status(&self) -> &'static str {
        self.status.map_or("unreadable", status)
    }
}

/// How a run ended, in words.
pub(crate) fn status(status: Status) -> &'static str {
    match status {
        Status::Running => "running",
        Status::Complete => "complete",
        Status::Interrupted => "interrupted",
        Status::Failed => "failed",
        Status::BrokenOff => "broken off",
        Status::Unknown => "unknown",
    }
}

/// The list in `width` columns. What was found is broken where it is longer. Ends with a line break.
pub fn listed(runs: &[Listed], style: Style, width: usize) -> String {
    let whole = grid_of(runs, true, width);
    // An id has the plan's name in it.
    let is_named = runs.iter().all(|run| run.plan == "-" || run.id.contains(&run.plan));
    let is_broken = whole.iter().any(|row| row.contains('\n'));
    let rows = if is_broken && is_named { grid_of(runs, false, width) } else { whole };
    let paint = |at: usize| match at.checked_sub(2).and_then(|at| runs.get(at)) {
        None => Some(Paint::Dim),
        Some(run) if run.status == Some(Status::Complete) => None,
        Some(_) => Some(Paint::Warning),
    };
    let lines = |(at, row): (usize, &String)| -> String {
        row.lines().map(|line| style.paint(paint(at), line) + "\n").collect()
    };
    rows.iter().enumerate().map(lines).collect()
}

fn grid_of(runs: &[Listed], with_plan: bool, width: usize) -> Vec<String> {
    let mut columns = vec![
        ("run", false),
        ("plan", false),
        ("target", false),
        ("status", false),
        ("found", false),
    ];
    let row = |run: &Listed| {
        let cells = [&run.id, &run.plan, &run.target, run.status(), &run.headline];
        cells.map(str::to_owned).to_vec()
    };
    let mut rows: Vec<Vec<String>> = runs.iter().map(row).collect();
    if !with_plan {
        columns.remove(1);
        rows.iter_mut().for_each(|row| drop(row.remove(1)));
    }
    grid_within(&columns, &rows, width)
}

/// One object with `runs`, the oldest first.
pub fn listed_json(runs: &[Listed]) -> Value {
    let one = |run: &Listed| {
        json!({
            "run": run.id,
            "plan": run.plan,
            "target": run.target,
            "status": run.status(),
            "started": run.started,
            "headline": run.headline,
        })
    };
    json!({ "runs": runs.iter().map(one).collect::<Vec<Value>>() })
}

#[cfg(test)]
mod tests {
    use unicode_width::UnicodeWidthStr;

    use super::*;

    #[test]
    fn what_was_found_is_broken_where_the_terminal_ends() {
        let run = Listed {
            id: "20261121-043000-x".to_owned(),
            plan: "x".to_owned(),
            target: "virtual".to_owned(),
            status: Some(Status::Failed),
            started: String::new(),
            headline: "größer 長い ".repeat(20).trim_end().to_owned(),
        };
        let style = Style { color: false, width: 60 };
        let text = listed(std::slice::from_ref(&run), style, 60);
        assert!(text.lines().all(|line| line.width() <= 60), "{text}");
        assert!(text.contains("failed") && !text.contains("plan"), "{text}");
        assert_eq!(text.matches("長い").count(), 20, "{text}");
        let whole = listed(&[run], style, usize::MAX);
        assert!(whole.trim_end().ends_with("長い") && whole.contains("plan"), "{whole}");
        assert_eq!(whole.lines().count(), 3, "{whole}");
    }
}
