//! The runs that there are, a line each.

use record::Status;
use serde_json::{Value, json};

use crate::grid::grid;
use crate::style::{Paint, Style};
use crate::svg::cut;

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
        match self.status {
            Some(Status::Running) => "running",
            Some(Status::Complete) => "complete",
            Some(Status::Interrupted) => "interrupted",
            Some(Status::Failed) => "failed",
            Some(Status::BrokenOff) => "broken off",
            Some(Status::Unknown) => "unknown",
            None => "unreadable",
        }
    }
}

/// The list for a terminal; `width` cuts what was found, where somebody looks at it. Ends with a line break.
pub fn listed(runs: &[Listed], style: Style, width: Option<u16>) -> String {
    let columns =
        [("run", false), ("plan", false), ("target", false), ("status", false), ("found", false)];
    let row = |run: &Listed| {
        let cells = [&run.id, &run.plan, &run.target, run.status(), &run.headline];
        cells.map(str::to_owned).to_vec()
    };
    let lines = grid(columns, runs.iter().map(row));
    let paint = |at: usize| match at.checked_sub(2).and_then(|at| runs.get(at)) {
        None => Some(Paint::Dim),
        Some(run) if run.status == Some(Status::Complete) => None,
        Some(_) => Some(Paint::Warning),
    };
    let shown = lines.iter().enumerate().map(|(at, line)| {
        let line = width.map_or_else(|| line.clone(), |width| cut(line, usize::from(width)));
        style.paint(paint(at), &line) + "\n"
    });
    shown.collect()
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
    fn a_line_is_cut_where_the_terminal_ends() {
        let run = Listed {
            id: "20261121-043000-x".to_owned(),
            plan: "x".to_owned(),
            target: "virtual".to_owned(),
            status: Some(Status::Failed),
            started: String::new(),
            headline: "größer 長い ".repeat(20),
        };
        let style = Style { color: false, width: 60 };
        let text = listed(std::slice::from_ref(&run), style, Some(60));
        assert!(text.lines().all(|line| line.width() <= 60), "{text}");
        assert!(text.ends_with("…\n") && text.contains("failed"), "{text}");
        let whole = listed(&[run], style, None);
        assert!(whole.trim_end().ends_with("長い"), "{whole}");
    }
}
