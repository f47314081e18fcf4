//! Published figures beside ours: for terminals, as Markdown, as JSON, and as one page.

mod beside;
mod charts;
mod conclusion;
mod counterparts;
mod elsewhere;
mod markdown;
mod page;
mod place;
mod requests;

pub use charts::FirstSeed;
use comfy_table::presets::ASCII_MARKDOWN;
use comfy_table::{CellAlignment, ContentArrangement, Table};
use conclusion::holding;
pub use conclusion::{Conclusion, Unit};
pub use counterparts::charted;
use insight::published::{Comparison, Figure, Standing, standing};
use insight::stats::Interval;
use insight::words;
pub use place::{Found, Place};
use record::{Kind, units};
use serde_json::{Value, json};

use crate::grid::{grid_fitting, signed};
use crate::style::{fitted, labelled};

/// One of the source documents.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// Its name in file names and in JSON.
    pub id: String,
    /// Its title.
    pub title: String,
    /// Who wrote it, and when.
    pub by: String,
    /// The plans that repeat its experiments.
    pub plans: Vec<String>,
}

/// What a plan took.
#[derive(Clone, Debug, PartialEq)]
pub struct Wall {
    /// Plan.
    pub plan: String,
    /// Seeds that were drawn.
    pub seeds: usize,
    /// Seconds of a core, over all of them.
    pub seconds: f64,
}

/// All that `narrows published` found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Published {
    /// The documents.
    pub documents: Vec<Document>,
    /// A row for every figure.
    pub rows: Vec<Comparison>,
    /// The conclusions.
    pub conclusions: Vec<Conclusion>,
    /// What was found of them where time is real.
    pub elsewhere: Vec<Place>,
    /// What the page draws of each plan.
    pub first_seeds: Vec<FirstSeed>,
    /// What each plan took.
    pub walls: Vec<Wall>,
    /// What all of it took, from beginning to end.
    pub wall_s: f64,
    /// How many cores it had.
    pub cores: usize,
    /// Seeds that were asked for.
    pub seeds: u64,
    /// Scale of the plans; 1 is the published size.
    pub scale: f64,
}

/// Rows that are judged together.
struct Group<'a> {
    document: &'a Document,
    what: &'static str,
    kind: Kind,
    standing: Standing,
}

impl Group<'_> {
    fn median(&self) -> String {
        let share = self.standing.median_error;
        share.map_or_else(dash, |share| match self.what {
            CHANGES => format!("{:.1} points", share * 100.0),
            _ => per_cent(share),
        })
    }

    fn worst(&self) -> String {
        let worst = self.standing.worst.as_ref();
        worst.map_or_else(dash, |(name, error)| match self.what {
            CHANGES => format!("{name}: {} points", signed(error * 100.0)),
            _ => format!("{name}: {} %", signed(error * 100.0)),
        })
    }
}

/// Seeds where nobody says how many. With fewer a conclusion near its bound may come out either way.
pub const SEEDS: u64 = 20;

const TIMES: &str = "times";
const RATES: &str = "rates";
const LOADS: &str = "loads";
const CHANGES: &str = "changes";

/// The columns of figures, those that a narrow terminal has no room for, the first to go first, and those of names.
const COLUMNS: [(&str, bool); 8] = [
    ("plan", false),
    ("row", false),
    ("published", true),
    ("ours", true),
    ("of seeds", true),
    ("error", true),
    ("kind", false),
    ("held by", false),
];
const MISSED: [usize; 4] = [7, 4, 6, 5];
const NAMES: [usize; 2] = [0, 1];

/// The same of medians.
const MEDIANS: [(&str, bool); 7] = [
    ("document", false),
    ("of", false),
    ("kind", false),
    ("rows", true),
    ("median error", true),
    ("in range", true),
    ("furthest off", false),
];
const MEDIANS_MISSED: [usize; 3] = [6, 5, 3];
const MEDIANS_NAMES: [usize; 1] = [0];

/// What kind of number a row has; none where it has words alone.
fn what(row: &Comparison) -> Option<&'static str> {
    match row.figure {
        Figure::Seconds => Some(TIMES),
        Figure::NodeBytesPerS => Some(RATES),
        Figure::Load(..) => Some(LOADS),
        Figure::Change(_) => Some(CHANGES),
        Figure::Words | Figure::Beside(..) => None,
    }
}

impl Published {
    /// Whether an outcome other than the expected one means that something changed: smaller indices and fewer seeds
    /// find other things.
    pub fn can_tell_changes(&self) -> bool {
        self.scale == 1.0 && self.seeds >= SEEDS
    }

    /// Whether ours stands for what was published: of smaller indices changes alone do, whatever the model is worth.
    fn compares(&self, what: Option<&str>) -> bool {
        self.scale == 1.0 || what == Some(CHANGES)
    }

    /// How far ours is off; none where it does not stand for what was published.
    fn error(&self, row: &Comparison) -> Option<f64> {
        row.error().filter(|_| self.compares(what(row)))
    }

    /// The same in words.
    fn error_text(&self, row: &Comparison) -> String {
        self.error(row).map_or_else(dash, |error| match row.figure {
            Figure::Change(_) => format!("{} points", signed(error * 100.0)),
            _ => format!("{} %", signed(error * 100.0)),
        })
    }

    /// Whether the published figure lies in the range over seeds; none where ours does not stand for it.
    fn is_within_range(&self, row: &Comparison) -> Option<bool> {
        self.compares(what(row)).then(|| row.is_within_range())
    }

    /// The range over seeds, and whether the published figure lies in it.
    fn range_text(&self, row: &Comparison) -> String {
        let Some(Interval { low, high }) = row.range else { return dash() };
        let inside = if self.is_within_range(row) == Some(true) { ", it is in" } else { "" };
        format!("{} to {}{inside}", figure(row, low), figure(row, high))
    }

    /// A row of figures for each that is compared. In a list the name of a plan stands once.
    fn figures(&self, rows: &[&Comparison], is_list: bool) -> Vec<Vec<String>> {
        let (mut last, mut found) = ("", Vec::new());
        for row in rows.iter().filter(|row| !row.is_beside()) {
            let name = if row.plan == last && is_list { "" } else { &row.plan };
            last = &row.plan;
            found.push(vec![
                name.to_owned(),
                row.name(),
                published(row),
                ours(row),
                self.range_text(row),
                self.error_text(row),
                kind(row).to_owned(),
                row.held_by.map_or_else(dash, |limit| limit.label().to_owned()),
            ]);
        }
        found
    }

    /// What found this, with `options`.
    fn command(&self, options: &str) -> String {
        let scale =
            if self.scale == 1.0 { String::new() } else { format!(" --scale {}", self.scale) };
        format!("narrows published --seeds {}{scale} {options}", self.seeds)
    }

    /// That indices have not the published size, where they have another.
    fn other_size(&self) -> Option<String> {
        (self.scale != 1.0).then(|| {
            let scale = self.scale;
            format!("Not at the published size: scale {scale}. Times differ for that alone: only ratios compare.")
        })
    }

    /// Conclusions of which nothing was fitted, nor follows from a setting: how many hold, and how many do not.
    fn predicted_holding(&self, document: Option<&Document>) -> (usize, usize) {
        let of_it = |c: &&Conclusion| document.is_none_or(|document| document.id == c.document);
        let predicted = |c: &&Conclusion| c.kind == Kind::Predicted;
        holding(self.conclusions.iter().filter(of_it).filter(predicted))
    }

    /// For a terminal of so many columns. Ends with a line break.
    pub fn text(&self, width: usize) -> String {
        let rows: Vec<&Comparison> = self.rows.iter().collect();
        let fit = |text: String| fitted(&text, width);
        let mut parts: Vec<String> = self.other_size().map(fit).into_iter().collect();
        parts.extend(grid_fitting(&COLUMNS, &self.figures(&rows, true), &MISSED, &NAMES, width));
        parts.push(String::new());
        let medians = self.medians();
        parts.extend(grid_fitting(&MEDIANS, &medians, &MEDIANS_MISSED, &MEDIANS_NAMES, width));
        parts.push(String::new());
        let (measured, missing): (Vec<&Conclusion>, Vec<&Conclusion>) =
            self.conclusions.iter().partition(|c| c.holds.is_some());
        parts.extend(measured.into_iter().map(|c| {
            let is_new = !c.expected && self.can_tell_changes();
            let changed = if is_new { ", which is NEW" } else { "" };
            let ours = if c.ours.is_some() {
                format!(": {}, {}, asked {}", c.ours(), c.kind.label(), c.asked())
            } else {
                String::new()
            };
            let said = format!("{} ({}, {}){ours}{changed}", c.claim, c.document, c.place);
            labelled(&format!("{:14} ", c.holds()), &said, width)
        }));
        let missing = match missing.len() {
            0 => None,
            1 => Some("1 conclusion is not measured; --html lists it.".to_owned()),
            many => Some(format!("{many} conclusions are not measured; --html lists them.")),
        };
        parts.extend(missing.map(fit));
        parts.push(String::new());
        parts.push(fit(self.wall_line()));
        parts.join("\n") + "\n"
    }

    /// One object.
    pub fn json(&self) -> Value {
        let row = |row: &Comparison| {
            let (low, high) = match row.range {
                Some(range) => (Some(range.low), Some(range.high)),
                None => (row.ours, row.ours),
            };
            json!({
                "document": self.document_of(row).map(|document| &document.id),
                "plan": row.plan,
                "row": row.name(),
                "variant": row.variant,
                "unit": match row.figure {
                    Figure::Seconds | Figure::Words => "s",
                    Figure::NodeBytesPerS => "B/s",
                    Figure::Load(_, unit) | Figure::Beside(_, unit) => unit,
                    Figure::Change(_) => "%",
                },
                "published": row.published,
                "published_text": row.text,
                "ours": row.ours,
                "low": low,
                "high": high,
                "error": self.error(row),
                "within_range": self.is_within_range(row),
                "kind": row.kind,
                "held_by": row.held_by,
                "verdict": row.verdict,
            })
        };
        let conclusion = |c: &Conclusion| {
            json!({
                "document": c.document, "place": c.place, "claim": c.claim, "rows": c.rows,
                "published": c.published, "low": c.within.0, "high": c.within.1, "ours": c.ours,
                "ours_low": c.range.map(|range| range.low), "ours_high": c.range.map(|range| range.high),
                "holds": c.holds, "within_tenth": c.is_near, "kind": c.holds.map(|_| c.kind), "expected": c.expected, "why": c.why,
            })
        };
        let group = |g: &Group| {
            json!({
                "document": g.document.id, "of": g.what, "kind": g.kind, "rows": g.standing.rows,
                "median_error": g.standing.median_error, "within_range": g.standing.within_range,
            })
        };
        json!({
            "scale": self.scale,
            "seeds": self.seeds,
            "rows": self.rows.iter().map(row).collect::<Vec<_>>(),
            "conclusions": self.conclusions.iter().map(conclusion).collect::<Vec<_>>(),
            "elsewhere": self.elsewhere,
            "medians": self.groups().iter().map(group).collect::<Vec<_>>(),
            "wall_s": self.wall_s,
            "core_s": self.walls.iter().map(|w| (w.plan.clone(), json!(w.seconds))).collect::<serde_json::Map<_, _>>(),
        })
    }

    fn document_of(&self, row: &Comparison) -> Option<&Document> {
        self.documents.iter().find(|document| document.plans.contains(&row.plan))
    }

    fn rows_of<'a>(&'a self, document: &'a Document) -> impl Iterator<Item = &'a Comparison> {
        self.rows.iter().filter(|row| document.plans.contains(&row.plan))
    }

    fn conclusions_of<'a>(&'a self, document: &'a Document) -> Vec<&'a Conclusion> {
        self.conclusions.iter().filter(|c| c.document == document.id).collect()
    }

    /// Errors by document, by what is measured and by kind; without those of which there is none.
    fn groups(&self) -> Vec<Group<'_>> {
        let mut groups = Vec::new();
        for document in &self.documents {
            let all = [TIMES, RATES, LOADS, CHANGES].into_iter();
            for measured in all.filter(|measured| self.compares(Some(measured))) {
                for kind in Kind::ALL {
                    let rows = self
                        .rows_of(document)
                        .filter(|row| row.kind == kind && what(row) == Some(measured));
                    let standing = standing(rows);
                    if standing.rows > 0 {
                        groups.push(Group { document, what: measured, kind, standing });
                    }
                }
            }
        }
        groups
    }

    /// How well the predicted times are met, over all documents.
    fn predicted_times(&self) -> Standing {
        let is_it = |row: &&Comparison| row.kind == Kind::Predicted && what(row) == Some(TIMES);
        standing(self.rows.iter().filter(is_it))
    }

    fn medians(&self) -> Vec<Vec<String>> {
        let row = |group: Group<'_>| {
            vec![
                group.document.title.clone(),
                group.what.to_owned(),
                group.kind.label().to_owned(),
                group.standing.rows.to_string(),
                group.median(),
                group.standing.within_range.to_string(),
                group.worst(),
            ]
        };
        self.groups().into_iter().map(row).collect()
    }

    fn wall_line(&self) -> String {
        let one = |w: &Wall| {
            let seeds = if w.seeds == 1 { "seed" } else { "seeds" };
            format!("{} {} ({} {seeds})", w.plan, units::show_seconds(w.seconds), w.seeds)
        };
        let each: Vec<String> = self.walls.iter().map(one).collect();
        format!(
            "Simulated in {} on {} cores. Time of a core: {}.",
            units::show_seconds(self.wall_s),
            self.cores,
            each.join(", ")
        )
    }
}

/// A table as Markdown.
fn markdown_table(columns: &[(&str, bool)], rows: Vec<Vec<String>>) -> String {
    let mut table = new_table();
    table.set_header(columns.iter().map(|(name, _)| *name));
    table.add_rows(rows);
    let right = columns.iter().enumerate().filter(|(_, (_, is_right))| *is_right);
    align_right(&mut table, &right.map(|(at, _)| at).collect::<Vec<_>>());
    table.to_string()
}

fn new_table() -> Table {
    let mut table = Table::new();
    table.load_style(ASCII_MARKDOWN).set_content_arrangement(ContentArrangement::Disabled);
    table
}

fn align_right(table: &mut Table, columns: &[usize]) {
    for column in columns {
        if let Some(column) = table.column_mut(*column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
}

fn kind(row: &Comparison) -> &'static str {
    if row.figure == Figure::Words { "" } else { row.kind.label() }
}

/// An error as tables have it.
fn per_cent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn dash() -> String {
    "-".to_owned()
}

fn published(row: &Comparison) -> String {
    match row.published {
        Some(value) => figure_beside(row, value, row.ours),
        // What comes after is in the source.
        None => row.text.split([':', ';']).next().unwrap_or_default().to_owned(),
    }
}

fn ours(row: &Comparison) -> String {
    row.ours.map_or_else(dash, |ours| figure_beside(row, ours, row.published))
}

/// A number of a row, a time as the other one of the row is written.
fn figure_beside(row: &Comparison, value: f64, other: Option<f64>) -> String {
    match (row.figure, other) {
        (Figure::Seconds, Some(other)) => units::show_seconds_beside(value, other),
        _ => figure(row, value),
    }
}

/// A number of a row, with its unit.
fn figure(row: &Comparison, value: f64) -> String {
    match row.figure {
        Figure::NodeBytesPerS => words::rate(value),
        Figure::Load(_, unit) | Figure::Beside(_, unit) => {
            format!("{} {unit}", words::three_digits(value))
        }
        Figure::Change(_) => format!("{} %", signed(value)),
        Figure::Seconds | Figure::Words => units::show_seconds(value),
    }
}

#[cfg(test)]
mod tests {
    use record::Limit;
    use unicode_width::UnicodeWidthStr;

    use super::*;

    pub(super) fn sample() -> Published {
        let row = |variant: &str, figure, published, ours, kind| Comparison {
            plan: "remote-recovery".to_owned(),
            variant: variant.to_owned(),
            figure,
            published,
            text: "charts only: one | two".to_owned(),
            ours,
            range: None,
            kind,
            held_by: Some(Limit::Latency),
            verdict: Some("97 % latency".to_owned()),
        };
        let (predicted, calibrated) = (Kind::Predicted, Kind::Calibrated);
        let drawn = Some(Interval { low: 80.0, high: 130.0 });
        Published {
            documents: vec![Document {
                id: "benchmark-plan".to_owned(),
                title: "Benchmark plan".to_owned(),
                by: "somebody, 2019".to_owned(),
                plans: vec!["remote-recovery".to_owned()],
            }],
            rows: vec![
                row("64 KB x 1", Figure::Seconds, Some(14384.9), Some(14000.0), calibrated),
                row("1 MB x 1", Figure::Seconds, Some(844.0), Some(928.4), predicted),
                row("20mb", Figure::Seconds, Some(604_800.0), Some(604_000.0), Kind::Implied),
                row("2gb", Figure::NodeBytesPerS, Some(66e6), Some(61e6), predicted),
                row("plain", Figure::Words, None, Some(75.0), predicted),
                row(
                    "none",
                    Figure::Load("Throughput", "ops/s"),
                    Some(95.8),
                    Some(95.8),
                    calibrated,
                ),
                Comparison {
                    range: drawn,
                    ..row("ARS", Figure::Change("Throughput"), Some(115.8), Some(127.1), predicted)
                },
            ],
            conclusions: vec![
                Conclusion {
                    document: "benchmark-plan".to_owned(),
                    place: "experiment 1".to_owned(),
                    claim: "larger chunks <help>".to_owned(),
                    rows: "1 MB x 1, 64 KB x 1".to_owned(),
                    unit: Unit::Times,
                    published: Some(17.0),
                    within: (Some(4.1), None),
                    ours: Some(15.1),
                    range: None,
                    holds: Some(true),
                    is_near: Some(false),
                    kind: predicted,
                    expected: true,
                    why: String::new(),
                },
                Conclusion {
                    document: "benchmark-plan".to_owned(),
                    place: "experiment 1".to_owned(),
                    claim: "40 seconds faster".to_owned(),
                    rows: "1 less 2".to_owned(),
                    unit: Unit::Seconds,
                    published: Some(40.6),
                    within: (Some(36.5), Some(44.6)),
                    ours: Some(149.0),
                    range: Some(Interval { low: 148.0, high: 150.0 }),
                    holds: Some(false),
                    is_near: Some(false),
                    kind: calibrated,
                    expected: false,
                    why: "Bytes bind.".to_owned(),
                },
            ],
            elsewhere: Vec::new(),
            first_seeds: Vec::new(),
            walls: vec![Wall { plan: "remote-recovery".to_owned(), seeds: 20, seconds: 4.0 }],
            wall_s: 2.5,
            cores: 2,
            seeds: 20,
            scale: 1.0,
        }
    }

    #[test]
    fn the_table_has_a_line_for_each_figure_and_judges_each_kind() {
        let text = sample().text(usize::MAX);
        let line = |with: &str| text.lines().find(|line| line.contains(with)).unwrap().to_owned();
        assert!(line("64 KB x 1  ").contains("calibrated"), "{text}");
        assert!(line("1 MB x 1  ").contains("+10.0 %"), "{text}");
        assert!(line("20mb  ").contains("implied"), "{text}");
        let mut alike = sample();
        (alike.rows[1].published, alike.rows[1].ours) = (Some(73.3), Some(103.0));
        let both = alike.text(usize::MAX);
        let both = both.lines().find(|line| line.contains("1 MB x 1  ")).unwrap();
        assert!(both.contains(" 1:13 ") && both.contains(" 1:43 "), "{both}");
        assert!(line("2gb").contains("66.0 MB/s"), "{text}");
        let words = line("plain");
        assert!(words.contains("charts only") && !words.contains("predicted"), "{text}");
        assert!(line("none, throughput").contains("95.8 ops/s"), "{text}");
        let change = line("ARS, throughput");
        assert!(change.contains("+115.8 %") && change.contains("+11.3 points"), "{text}");
        assert!(change.contains("+80.0 % to +130.0 %, it is in"), "{text}");
        let median = |what: &str, kind: &str| {
            let of = |line: &&str| line.contains(what) && line.contains(kind);
            text.lines().filter(|line| line.starts_with("Benchmark plan")).find(of).unwrap()
        };
        assert!(median("times", "predicted").contains("10.0 %"), "{text}");
        assert!(median("changes", "predicted").contains("11.3 points"), "{text}");
        assert!(line("larger chunks").starts_with("holds   "), "{text}");
        let changed = line("40 seconds faster");
        assert!(
            changed.starts_with("does not hold") && changed.ends_with("which is NEW"),
            "{text}"
        );
        assert!(changed.contains("2:29, calibrated, asked 36.5 s to 44.6 s"), "{text}");
        // With fewer seeds, or smaller indices, it may come out either way.
        for few in [Published { seeds: 1, ..sample() }, Published { scale: 0.1, ..sample() }] {
            assert!(!few.can_tell_changes() && !few.text(usize::MAX).contains("NEW"));
        }
        let small = Published { scale: 0.1, ..sample() };
        assert!(
            small.text(usize::MAX).starts_with("Not at the published size: scale 0.1."),
            "{text}"
        );
        assert!(!small.text(usize::MAX).contains("+10.0 %"), "{}", small.text(usize::MAX));
        let error = |at: usize| small.json()["rows"][at]["error"].clone();
        assert!(error(0).is_null() && error(6).is_number(), "a change is one at every size");
        assert!(small.json()["rows"][0]["within_range"].is_null());
        assert!(small.groups().iter().all(|group| group.what == CHANGES));
        assert!(text.ends_with("Time of a core: remote-recovery 4.00 s (20 seeds).\n"), "{text}");
    }

    #[test]
    fn a_narrow_terminal_has_fewer_columns_and_broken_sentences() {
        let text = sample().text(60);
        assert!(text.lines().all(|line| line.width() <= 60), "{text}");
        let row = text.lines().find(|line| line.contains("1 MB x 1 ")).unwrap();
        assert!(row.contains("14:04") && row.contains("15:28"), "{text}");
        assert!(!text.contains("held by") && !text.contains("furthest off"), "{text}");
    }

    #[test]
    fn json_has_the_same() {
        let json = sample().json();
        assert_eq!(json["rows"].as_array().unwrap().len(), 7);
        let row = &json["rows"][6];
        for (key, value) in [
            ("document", json!("benchmark-plan")),
            ("plan", json!("remote-recovery")),
            ("row", json!("ARS, throughput")),
            ("unit", json!("%")),
            ("published", json!(115.8)),
            ("ours", json!(127.1)),
            ("low", json!(80.0)),
            ("high", json!(130.0)),
            ("kind", json!("predicted")),
        ] {
            assert_eq!(row[key], value, "{key}");
        }
        assert_eq!(json["rows"][0]["low"], 14000.0, "one seed is its own range");
        assert_eq!(json["conclusions"][0]["holds"], true);
        assert_eq!(json["conclusions"][0]["within_tenth"], false);
        assert_eq!(json["conclusions"][1]["kind"], "calibrated");
        assert_eq!(json["conclusions"][1]["ours_low"], 148.0);
        assert_eq!(json["conclusions"][1]["claim"], "40 seconds faster");
        assert_eq!(json["medians"][0]["kind"], "predicted");
        assert_eq!(json["wall_s"], 2.5);
    }
}
