//! A small chart a row: the same measure of several things, one below the other.

use insight::Point;
use maud::{Markup, html};

use super::axis::{Scale, time_label, time_ticks};
use super::{Path, Shaded, c, fitting, frame, shaded, short};

/// A row.
pub(crate) struct Spark<'a> {
    /// Group; rows of a group stand together below its name, where there are several groups.
    pub group: &'a str,
    /// Name at the left.
    pub name: &'a str,
    /// Words at the right.
    pub note: String,
    /// The values.
    pub points: &'a [Point],
    /// Values of another kind, as a line in a colour of its own; may be empty.
    pub line: &'a [Point],
}

/// Rows over one time axis.
pub(crate) struct SparkChart<'a> {
    /// Unique in the page.
    pub id: String,
    /// Its title, for screen readers.
    pub title: String,
    /// What the chart shows, in a sentence, for screen readers.
    pub desc: String,
    /// Width.
    pub width: f64,
    /// The rows, those of a group next to one another.
    pub rows: Vec<Spark<'a>>,
    /// Last second shown.
    pub until_s: f64,
    /// Value at the top of a row, the same for all.
    pub max: f64,
    /// Times that are shaded.
    pub shades: Vec<Shaded<'a>>,
}

const PITCH: f64 = 27.0;
const GROUP: f64 = 28.0;
const FIRST_GROUP: f64 = 14.0;
const NAME: f64 = 92.0;
/// Room for the words at the right: `< 0.1 %`, and a gap before them.
pub(crate) const NOTE: f64 = 52.0;
const LONGEST_NAME: usize = 14;

impl SparkChart<'_> {
    /// The SVG.
    pub fn render(&self) -> Markup {
        let (left, right) = (NAME, self.width - NOTE);
        let x = Scale::new(0.0, self.until_s, left, right, false);
        // A group that has no other beside it needs no name.
        let is_grouped = self.rows.windows(2).any(|pair| pair[0].group != pair[1].group);
        let mut bottom = 0.0;
        let mut group = None;
        let placed: Vec<(bool, f64, &Spark<'_>)> = self
            .rows
            .iter()
            .map(|row| {
                let begins = is_grouped && group != Some(row.group);
                bottom += PITCH;
                bottom += match (begins, group.replace(row.group)) {
                    (true, None) => FIRST_GROUP,
                    (true, Some(_)) => GROUP,
                    (false, _) => 0.0,
                };
                (begins, bottom, row)
            })
            .collect();
        let inside = html! {
            @for (begins, at, row) in placed {
                @if begins { text.group x="0" y=(c(at - PITCH - 2.0)) { (fitting(row.group, self.width)) } }
                (self.row(row, &x, at))
            }
            @for seconds in time_ticks(self.until_s, 3) {
                text.tick x=(c(x.at(seconds))) y=(c(bottom + 16.0)) text-anchor="middle" {
                    (time_label(seconds))
                }
            }
        };
        frame(&self.id, (&self.title, &self.desc), (self.width, bottom + 22.0), &inside)
    }

    fn row(&self, row: &Spark<'_>, x: &Scale, bottom: f64) -> Markup {
        let y = Scale::new(0.0, self.max, bottom, bottom - PITCH + 4.0, false);
        let (left, right) = (NAME, self.width - NOTE);
        html! {
            (shaded(&self.shades, x, bottom - PITCH + 4.0, bottom))
            text.tick x="0" y=(c(bottom - 3.0)) { title { (row.name) } (short(row.name, LONGEST_NAME)) }
            line.grid x1=(c(left)) x2=(c(right)) y1=(c(bottom)) y2=(c(bottom)) {}
            @if let Some(drawn) = Path::through(row.points, x, &y) {
                g.neutral {
                    path.area d=(drawn.area(bottom)) {}
                    path.thin d=(drawn.line()) {}
                }
            }
            @if let Some(drawn) = Path::through(row.line, x, &y) { g.series-1 { path.thin d=(drawn.line()) {} } }
            text.tick x=(c(self.width)) y=(c(bottom - 3.0)) text-anchor="end" { (row.note) }
        }
    }
}
