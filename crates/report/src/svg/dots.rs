//! Figures of many rows as points on one axis, a line a row: what is compared by where it stands.

use maud::{Markup, html};

use super::axis::{Scale, nice_step, nice_ticks, number};
use super::scatter::{Mark, ticks};
use super::{c, fitting, frame, text_width};

/// A figure of a row.
pub(crate) struct RowDot {
    /// Its form.
    pub mark: Mark,
    /// Where it stands on the axis.
    pub at: f64,
    /// What is shown where one points at it.
    pub title: String,
    /// Somebody else's figure: an outline that belongs to no line.
    pub theirs: bool,
}

/// A row.
pub(crate) struct DotRow {
    /// Its class, which gives it its colour.
    pub class: &'static str,
    /// What it is of.
    pub label: String,
    /// Its figures.
    pub dots: Vec<RowDot>,
}

/// Rows that belong together.
pub(crate) struct DotGroup {
    /// What they have in common; may be empty.
    pub name: String,
    /// The rows.
    pub rows: Vec<DotRow>,
}

/// A chart of rows.
pub(crate) struct DotChart {
    /// Unique in the page.
    pub id: String,
    /// Its title, for screen readers.
    pub title: String,
    /// What the chart shows, in a sentence, for screen readers.
    pub desc: String,
    /// Width.
    pub width: f64,
    /// The rows, group by group.
    pub groups: Vec<DotGroup>,
    /// Whether the axis is by factors; otherwise it begins at nothing.
    pub log: bool,
    /// What stands behind the last tick.
    pub unit: &'static str,
}

const ROW: f64 = 24.0;
const GROUP: f64 = 26.0;
const BOTTOM: f64 = 24.0;
const RIGHT: f64 = 16.0;
const HALF: f64 = 5.0;
/// Between labels and axis.
const GAP: f64 = 14.0;
/// Labels take no more of the width than this share.
const LABELS: f64 = 0.4;
/// Ticks of an axis that begins at nothing.
const TICKS: usize = 6;

impl DotChart {
    /// The SVG.
    pub fn render(&self) -> Markup {
        let heads = self.groups.iter().filter(|group| !group.name.is_empty()).count() as f64;
        let rows = self.groups.iter().map(|group| group.rows.len()).sum::<usize>() as f64;
        let bottom = rows * ROW + heads * GROUP;
        let labels = self.groups.iter().flat_map(|group| &group.rows);
        let left = labels.map(|row| text_width(&row.label)).fold(0.0, f64::max) + GAP;
        let left = left.min(self.width * LABELS);
        let (x, marks) = self.axis(left);
        let last = marks.len().saturating_sub(1);
        let inside = html! {
            @for (index, tick) in marks.iter().enumerate() {
                @let label = if index == last { format!("{} {}", number(*tick), self.unit) } else { number(*tick) };
                @let at = x.at(*tick).min(self.width - text_width(&label) / 2.0);
                line.grid x1=(c(x.at(*tick))) x2=(c(x.at(*tick))) y1="0" y2=(c(bottom)) {}
                text.tick x=(c(at)) y=(c(bottom + 18.0)) text-anchor="middle" { (label) }
            }
            (self.rows(&x, left))
        };
        frame(&self.id, (&self.title, &self.desc), (self.width, bottom + BOTTOM), &inside)
    }

    fn rows(&self, x: &Scale, left: f64) -> Markup {
        let mut top = 0.0;
        let mut parts = Vec::new();
        for group in &self.groups {
            if !group.name.is_empty() {
                let name = fitting(&group.name, self.width);
                parts.push(html! { text.group x="0" y=(c(top + 18.0)) { (name) } });
                top += GROUP;
            }
            for row in &group.rows {
                parts.push(row.render(x, top + ROW / 2.0, left));
                top += ROW;
            }
        }
        html! { @for part in parts { (part) } }
    }

    /// The axis and its ticks.
    fn axis(&self, left: f64) -> (Scale, Vec<f64>) {
        let dots = self.groups.iter().flat_map(|group| &group.rows).flat_map(|row| &row.dots);
        let known: Vec<f64> = dots.map(|dot| dot.at).filter(|at| *at > 0.0).collect();
        let most = known.iter().copied().reduce(f64::max).unwrap_or(1.0);
        let right = self.width - RIGHT;
        if !self.log {
            let step = nice_step(most, TICKS);
            let to = (most / step).ceil() * step;
            return (Scale::new(0.0, to, left, right, false), nice_ticks(to, TICKS));
        }
        let (from, to) = (known.iter().copied().fold(most, f64::min) / 1.2, most * 1.2);
        (Scale::new(from, to, left, right, true), ticks(from, to))
    }
}

impl DotRow {
    fn render(&self, x: &Scale, y: f64, left: f64) -> Markup {
        let ours = || self.dots.iter().filter(|dot| !dot.theirs).map(|dot| x.at(dot.at));
        let span = ours().reduce(f64::min).zip(ours().reduce(f64::max));
        html! {
            text x="0" y=(c(y + 4.0)) { title { (self.label) } (fitting(&self.label, left - GAP)) }
            g class=(self.class) {
                @if let Some((low, high)) = span.filter(|(low, high)| high > low) {
                    line.reach x1=(c(low)) x2=(c(high)) y1=(c(y)) y2=(c(y)) {}
                }
                // What is published lies below, and stands out around what covers it.
                @for dot in self.dots.iter().filter(|dot| dot.theirs) {
                    g.theirs { title { (dot.title) } (dot.mark.render(x.at(dot.at), y, HALF + 2.0)) }
                }
                @for dot in self.dots.iter().filter(|dot| !dot.theirs) {
                    g { title { (dot.title) } (dot.mark.render(x.at(dot.at), y, HALF)) }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dot(at: f64, theirs: bool) -> RowDot {
        RowDot { mark: Mark::Circle, at, title: format!("<{at}>"), theirs }
    }

    fn chart(log: bool, dots: Vec<RowDot>) -> String {
        let row = DotRow { class: "series-0", label: "a".to_owned(), dots };
        let groups = vec![DotGroup { name: "one".to_owned(), rows: vec![row] }];
        let (id, title, desc) = ("d".to_owned(), "t".to_owned(), "x".to_owned());
        DotChart { id, title, desc, width: 400.0, groups, log, unit: "ms" }.render().into_string()
    }

    #[test]
    fn a_row_spans_its_own_figures_and_not_those_of_others() {
        let svg = chart(true, vec![dot(10.0, false), dot(100.0, false), dot(1000.0, true)]);
        let attribute = |name: &str| -> f64 {
            let line = svg.split("class=\"reach\"").nth(1).unwrap();
            let value = line.split(&format!("{name}=\"")).nth(1).unwrap();
            value.split('"').next().unwrap().parse().unwrap()
        };
        assert!(attribute("x2") < 400.0 - RIGHT - 50.0, "theirs lies beyond: {svg}");
        assert!(attribute("x1") < attribute("x2"));
        assert!(svg.contains("&lt;1000&gt;") && svg.contains("1000 ms"), "{svg}");
    }

    #[test]
    fn an_axis_that_is_not_by_factors_begins_at_nothing() {
        let svg = chart(false, vec![dot(50.0, false)]);
        assert!(svg.contains(">0<") && svg.contains("50 ms"), "{svg}");
        // The last one ends within the chart.
        let long = chart(false, vec![dot(60_000.0, false)]);
        let label = "60\u{202f}000 ms";
        let ends = c(400.0 - text_width(label) / 2.0);
        assert!(long.contains(&format!("x=\"{ends}\"")) && long.contains(label), "{long}");
        assert!(chart(false, Vec::new()).contains("<svg"), "no figure, no panic");
    }
}
