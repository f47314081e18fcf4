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
pub use conclusion::{Conclusion, Unit};
use conclusion::{holding, near_text, span};
pub use counterparts::charted;
use insight::published::{Comparison, Figure, Standing, standing};
use insight::stats::Interval;
use insight::words;
pub use place::{Found, Place};
use record::{Kind, units};
use serde_json::{Value, json};

use crate::grid::{dash, grid_fitting, signed};
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

    /// The range over seeds, where it reads as one, and whether the published figure lies in it.
    fn range_text(&self, row: &Comparison) -> Option<String> {
        let Interval { low, high } = row.range?;
        let [low, high] = [(low, high), (high, low)].map(|(value, other)| match row.figure {
            Figure::Seconds | Figure::Words => units::show_seconds_beside(value, other),
            _ => figure(row, value),
        });
        let range = (low != high).then(|| span(&low, &high));
        let inside = (self.is_within_range(row) == Some(true)).then(|| "in range".to_owned());
        let told: Vec<String> = range.into_iter().chain(inside).collect();
        (!told.is_empty()).then(|| told.join(", "))
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
                match laps(row) {
                    Some(laps) if !is_list => format!("{}, {laps}", published(row)),
                    _ => published(row),
                },
                ours(row),
                self.range_text(row).unwrap_or_else(dash),
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
            format!(
                "Not at the published size: scale {scale}. Times and bytes differ for that alone, and conclusions \
                 about them may not hold: only ratios compare."
            )
        })
    }

    /// Conclusions of which nothing was fitted, nor follows from a setting: how many hold, and how many do not.
    fn predicted_holding(&self, document: Option<&Document>) -> (usize, usize) {
        let of_it = |c: &&Conclusion| document.is_none_or(|document| document.id == c.document);
        let predicted = |c: &&Conclusion| c.kind == Kind::Predicted;
        holding(self.conclusions.iter().filter(of_it).filter(predicted))
    }

    /// How many conclusions of a document hold, and how many of them say something of the model. Ends with a period.
    fn standing_text(&self, document: &Document) -> String {
        let conclusions = self.conclusions_of(document);
        let mut text = format!("Conclusions: {}", near_text(conclusions.iter().copied()));
        let (holding, failing) = self.predicted_holding(Some(document));
        let missing = conclusions.iter().filter(|c| c.holds.is_none()).count();
        match holding + failing {
            0 => {}
            all if all == conclusions.len() - missing => text += "; all were predicted",
            some => text += &format!("; of the {some} that were predicted {holding} hold"),
        }
        match missing {
            0 => text + ".",
            missing => format!("{text}. {} not measured.", words::counted(missing, "is", "are")),
        }
    }

    /// For a terminal of so many columns. Ends with a line break.
    pub fn text(&self, width: usize) -> String {
        let rows: Vec<&Comparison> = self.rows.iter().collect();
        let fit = |text: String| fitted(&text, width);
        let mut parts: Vec<String> = self.other_size().map(fit).into_iter().collect();
        parts.extend(grid_fitting(&COLUMNS, &self.figures(&rows, true), &MISSED, &NAMES, width));
        parts.push(String::new());
        let medians = self.medians();
        if !medians.is_empty() {
            parts.extend(grid_fitting(&MEDIANS, &medians, &MEDIANS_MISSED, &MEDIANS_NAMES, width));
            parts.push(String::new());
        }
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

    /// One object. An error is a share; of a change it is in percentage points, as the change itself is in per cent.
    pub fn json(&self) -> Value {
        let in_points = |what: Option<&str>| if what == Some(CHANGES) { 100.0 } else { 1.0 };
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
                "laps_low": row.laps.map(|laps| laps.low),
                "laps_high": row.laps.map(|laps| laps.high),
                "ours": row.ours,
                "low": low,
                "high": high,
                "error": self.error(row).map(|error| error * in_points(what(row))),
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
                "median_error": g.standing.median_error.map(|error| error * in_points(Some(g.what))),
                "within_range": g.standing.within_range,
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
            let seeds = words::counted(w.seeds, "seed", "seeds");
            format!("{} {} ({seeds})", w.plan, units::show_seconds(w.seconds))
        };
        let each: Vec<String> = self.walls.iter().map(one).collect();
        format!(
            "Simulated in {} on {}. Time of a core: {}.",
            units::show_seconds(self.wall_s),
            words::counted(self.cores, "core", "cores"),
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

fn published(row: &Comparison) -> String {
    match row.published {
        Some(value) => figure_beside(row, value, row.ours),
        // What comes after is in the source.
        None => row.text.split([':', ';']).next().unwrap_or_default().to_owned(),
    }
}

/// The range of the published figure over its laps.
fn laps(row: &Comparison) -> Option<String> {
    row.laps.map(|laps| format!("laps {}", span(&figure(row, laps.low), &figure(row, laps.high))))
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
mod tests;
