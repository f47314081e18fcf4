//! The table of published figures beside ours: for terminals, as Markdown, as JSON.

use comfy_table::presets::{ASCII_MARKDOWN, NOTHING};
use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Table};
use insight::published::{Comparison, Figure, Standing, standing};
use insight::words;
use record::units;
use serde_json::{Value, json};

/// A conclusion of the source documents, and whether our figures support it.
#[derive(Clone, Debug, PartialEq)]
pub struct Conclusion {
    /// What is concluded.
    pub claim: String,
    /// Who concludes it.
    pub source: String,
    /// The rows: `1 MB x 1 before 64 KB x 1`.
    pub rows: String,
    /// Whether it holds; none where a row is missing.
    pub holds: Option<bool>,
    /// What was compared, as text.
    pub compared: String,
}

/// What a plan took.
#[derive(Clone, Debug, PartialEq)]
pub struct Wall {
    /// Plan.
    pub plan: String,
    /// Wall time.
    pub seconds: f64,
}

/// All that `narrows published` found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Published {
    /// A row for every figure.
    pub rows: Vec<Comparison>,
    /// The conclusions.
    pub conclusions: Vec<Conclusion>,
    /// What each plan took.
    pub walls: Vec<Wall>,
    /// Scale of the plans; 1 is the published size.
    pub scale: f64,
}

const HEADERS: [&str; 7] = ["plan", "row", "published", "ours", "error", "", "held by"];

impl Published {
    /// For a terminal. Ends with a line break.
    pub fn text(&self) -> String {
        let mut parts = vec![self.grid(false), String::new()];
        parts.extend(self.standing_lines());
        parts.push(String::new());
        parts.extend(self.conclusions.iter().map(|c| {
            format!("{:14} {} ({}): {}; {}", holds(c.holds), c.claim, c.source, c.rows, c.compared)
        }));
        parts.push(String::new());
        parts.push(self.wall_line());
        parts.join("\n") + "\n"
    }

    /// The page `docs/published.md`. `made_with` is the command that makes it anew.
    pub fn markdown(&self, made_with: &str) -> String {
        let mut parts = vec![
            "# Published figures and ours".to_owned(),
            format!(
                "Every bundled plan that has published rows, in the virtual world, at the published size. Made by\n\
                 `{made_with}`; the parameters and their sources are in `plans/test-beds/`.\n\
                 A row is *calibrated* where a parameter was fitted to it, and *predicted* otherwise."
            ),
            self.grid(true),
            self.standing_lines().join("\n"),
            "## What the documents conclude".to_owned(),
            self.conclusion_grid(),
            "## Why each was as fast as it was".to_owned(),
            self.verdicts(),
            self.wall_line(),
        ];
        if self.scale != 1.0 {
            parts.insert(1, format!("**Not at the published size: scale {}.**", self.scale));
        }
        parts.join("\n\n") + "\n"
    }

    /// One object.
    pub fn json(&self) -> Value {
        let row = |row: &Comparison| {
            json!({
                "plan": row.plan,
                "variant": row.variant,
                "name": row.name(),
                "figure": match row.figure {
                    Figure::Seconds => "seconds",
                    Figure::NodeBytesPerS => "node_bytes_per_s",
                    Figure::Load(metric, _) => metric,
                    Figure::Change(_) => "change_percent",
                    Figure::Words => "words",
                },
                "published": row.published,
                "published_text": row.text,
                "ours": row.ours,
                "error": row.error(),
                "calibrated": row.calibrated,
                "held_by": row.held_by,
                "verdict": row.verdict,
            })
        };
        let (loads, recoveries) = self.by_kind();
        let changes = standing(&self.rows);
        json!({
            "scale": self.scale,
            "rows": self.rows.iter().map(row).collect::<Vec<_>>(),
            "recoveries": standing_json(&recoveries),
            "loads": standing_json(&loads),
            "changes": changes.changes,
            "median_change_error": changes.median_change_error,
            "orderings": self.conclusions.iter().map(|c| json!({
                "claim": c.claim, "source": c.source, "rows": c.rows, "holds": c.holds,
                "compared": c.compared,
            })).collect::<Vec<_>>(),
            "wall_s": self.walls.iter().map(|w| (w.plan.clone(), json!(w.seconds))).collect::<serde_json::Map<_, _>>(),
        })
    }

    fn grid(&self, markdown: bool) -> String {
        let mut table = Table::new();
        let style = if markdown {
            ASCII_MARKDOWN
        } else {
            NOTHING.header_separator(LineStyle::none().fill('─').junction('─'))
        };
        table.load_style(style).set_content_arrangement(ContentArrangement::Disabled);
        table.set_header(HEADERS);
        let mut last = "";
        for row in &self.rows {
            let name = if row.plan == last && !markdown { "" } else { &row.plan };
            last = &row.plan;
            table.add_row([
                name.to_owned(),
                row.name(),
                published(row),
                ours(row),
                row.error().map_or_else(dash, |error| match row.figure {
                    Figure::Change(_) => format!("{:+.1} points", error * 100.0),
                    _ => format!("{:+.1} %", error * 100.0),
                }),
                match row.figure {
                    Figure::Words => String::new(),
                    _ if row.calibrated => "calibrated".to_owned(),
                    _ => "predicted".to_owned(),
                },
                row.held_by.map_or_else(dash, |limit| limit.label().to_owned()),
            ]);
        }
        for column in [2, 3, 4] {
            if let Some(column) = table.column_mut(column) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        table.to_string()
    }

    fn standing_lines(&self) -> Vec<String> {
        let (loads, recoveries) = self.by_kind();
        let mut lines = standing_of("Recoveries", &recoveries);
        if !loads.is_empty() {
            lines.extend(standing_of("Loads", &loads));
        }
        lines.extend(self.standing_of_changes());
        lines
    }

    /// Rows of loads, and rows of recoveries: an error of a percentile is not to be mixed with one of a duration.
    fn by_kind(&self) -> (Vec<Comparison>, Vec<Comparison>) {
        self.rows.iter().cloned().partition(Comparison::is_of_load)
    }

    fn standing_of_changes(&self) -> Option<String> {
        let Standing { changes, median_change_error, worst_change, .. } = standing(&self.rows);
        let (plan, variant, worst) = worst_change?;
        Some(format!(
            "{changes} changes between loads predicted. Median error: {:.1} percentage points; the worst is {plan}, \
             {variant}: {:+.1}.",
            median_change_error? * 100.0,
            worst * 100.0
        ))
    }

    fn conclusion_grid(&self) -> String {
        let mut table = Table::new();
        table.load_style(ASCII_MARKDOWN).set_content_arrangement(ContentArrangement::Disabled);
        table.set_header(["conclusion", "source", "rows", "here", ""]);
        for c in &self.conclusions {
            let cells = [&c.claim, &c.source, &c.rows, &c.compared];
            let cells = cells.into_iter().cloned().chain([holds(c.holds).to_owned()]);
            table.add_row(cells.collect::<Vec<_>>());
        }
        table.to_string()
    }

    fn verdicts(&self) -> String {
        let mut lines: Vec<String> = Vec::new();
        for row in self.rows.iter().filter(|row| !row.is_of_load()) {
            let Some(verdict) = &row.verdict else { continue };
            let line = format!("- {}, {}: {verdict}.", row.plan, row.variant);
            if lines.last() != Some(&line) {
                lines.push(line);
            }
        }
        lines.join("\n")
    }

    fn wall_line(&self) -> String {
        let one = |w: &Wall| format!("{} {}", w.plan, units::show_seconds(w.seconds));
        let all: f64 = self.walls.iter().map(|wall| wall.seconds).sum();
        let each: Vec<String> = self.walls.iter().map(one).collect();
        format!("Wall time: {}; together {}.", each.join(", "), units::show_seconds(all))
    }
}

fn standing_of(what: &str, rows: &[Comparison]) -> Vec<String> {
    let Standing { predicted, calibrated, median_error, worst, .. } = standing(rows);
    let mut lines = match median_error {
        None => vec![format!("{what}: no predicted row has a number; {calibrated} calibrated on.")],
        Some(median) => vec![format!(
            "{what}: {predicted} rows predicted, {calibrated} calibrated on. Median error of the predicted rows: {:.1} %.",
            median * 100.0
        )],
    };
    if let Some((plan, variant, factor)) = worst {
        lines.push(format!("The worst is {plan}, {variant}: off by a factor of {factor:.2}."));
    }
    lines
}

fn standing_json(rows: &[Comparison]) -> Value {
    let standing = standing(rows);
    json!({
        "predicted": standing.predicted,
        "calibrated": standing.calibrated,
        "median_error": standing.median_error,
        "worst": standing.worst.map(
            |(plan, variant, factor)| json!({ "plan": plan, "variant": variant, "factor": factor }),
        ),
    })
}

fn dash() -> String {
    "-".to_owned()
}

fn holds(holds: Option<bool>) -> &'static str {
    match holds {
        Some(true) => "holds",
        Some(false) => "does not hold",
        None => "not run",
    }
}

fn published(row: &Comparison) -> String {
    match (row.figure, row.published) {
        (Figure::Seconds, Some(seconds)) => units::show_seconds(seconds),
        (Figure::NodeBytesPerS, Some(rate)) => format!("{} a node", words::rate(rate)),
        (Figure::Load(_, unit), Some(value)) => format!("{} {unit}", words::three_digits(value)),
        (Figure::Change(_), Some(percent)) => format!("{percent:+.1} %"),
        // What comes after is in the source.
        _ => row.text.split([':', ';']).next().unwrap_or_default().to_owned(),
    }
}

fn ours(row: &Comparison) -> String {
    row.ours.map_or_else(dash, |ours| match row.figure {
        Figure::NodeBytesPerS => format!("{} a node", words::rate(ours)),
        Figure::Load(_, unit) => format!("{} {unit}", words::three_digits(ours)),
        Figure::Change(_) => format!("{ours:+.1} %"),
        Figure::Seconds | Figure::Words => units::show_seconds(ours),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::Limit;

    fn sample() -> Published {
        let row = |variant: &str, figure, published, ours, calibrated| Comparison {
            plan: "remote-recovery".to_owned(),
            variant: variant.to_owned(),
            figure,
            published,
            text: "charts only: one | two".to_owned(),
            ours,
            calibrated,
            held_by: Some(Limit::Latency),
            verdict: Some("97 % latency".to_owned()),
        };
        Published {
            rows: vec![
                row("64 KB x 1", Figure::Seconds, Some(14384.9), Some(14000.0), true),
                row("1 MB x 1", Figure::Seconds, Some(844.0), Some(928.4), false),
                row("2gb", Figure::NodeBytesPerS, Some(66e6), Some(61e6), false),
                row("plain", Figure::Words, None, Some(75.0), false),
                row("none", Figure::Load("Throughput", "ops/s"), Some(95.8), Some(95.8), true),
                row("ARS", Figure::Change("Throughput"), Some(115.8), Some(127.1), false),
            ],
            conclusions: vec![Conclusion {
                claim: "larger chunks help".to_owned(),
                source: "benchmark plan".to_owned(),
                rows: "1 MB x 1 before 64 KB x 1".to_owned(),
                holds: Some(true),
                compared: "15:28 and 3:53:20".to_owned(),
            }],
            walls: vec![Wall { plan: "remote-recovery".to_owned(), seconds: 4.0 }],
            scale: 1.0,
        }
    }

    #[test]
    fn the_table_has_a_line_for_each_figure_and_judges_the_predicted() {
        let text = sample().text();
        let line = |with: &str| text.lines().find(|line| line.contains(with)).unwrap().to_owned();
        assert!(line("64 KB x 1  ").contains("calibrated"), "{text}");
        assert!(line("1 MB x 1  ").contains("+10.0 %"), "{text}");
        assert!(
            line("2gb").contains("66 MB/s a node") || line("2gb").contains("66.0 MB/s a node"),
            "{text}"
        );
        assert!(
            line("plain").contains("charts only") && !line("plain").contains("predicted"),
            "{text}"
        );
        assert!(line("none, throughput").contains("95.8 ops/s"), "{text}");
        let change = line("ARS, throughput");
        assert!(change.contains("+115.8 %") && change.contains("+11.3 points"), "{text}");
        assert!(text.contains("1 changes between loads predicted. Median error: 11.3"), "{text}");
        assert!(text.contains("Recoveries: 2 rows predicted, 1 calibrated on."), "{text}");
        assert!(text.contains("Loads: no predicted row has a number; 1 calibrated on."), "{text}");
        assert!(text.contains("Median error of the predicted rows: 8.8 %."), "{text}");
        assert!(text.contains("holds          larger chunks help"), "{text}");
        assert!(text.ends_with("together 4.00 s.\n"), "{text}");
    }

    #[test]
    fn markdown_is_a_table_and_says_how_it_is_made() {
        let page = sample().markdown("narrows published --write docs/published.md");
        assert!(page.contains("| remote-recovery | 1 MB x 1 "), "{page}");
        assert!(page.contains("`narrows published --write docs/published.md`"));
        assert!(!page.contains("Not at the published size"));
        let small = Published { scale: 0.1, ..sample() }.markdown("x");
        assert!(small.contains("**Not at the published size: scale 0.1.**"));
    }

    #[test]
    fn json_has_the_same() {
        let json = sample().json();
        assert_eq!(json["rows"].as_array().unwrap().len(), 6);
        assert_eq!(json["recoveries"]["predicted"], 2);
        assert_eq!(json["recoveries"]["worst"]["variant"], "1 MB x 1");
        assert_eq!(json["loads"]["calibrated"], 1);
        assert_eq!(json["orderings"][0]["holds"], true);
        assert_eq!(json["wall_s"]["remote-recovery"], 4.0);
    }
}
