//! Values over time as lines, each labelled where it ends.

use insight::Point;
use maud::{Markup, html};

use super::axis::{Scale, log_time_ticks, nice_ticks, number, time_label, time_ticks};
use super::{Path, Shaded, c, fitting, frame, shaded, text_width};

/// One line.
pub(crate) struct Line<'a> {
    /// What it shows, for its tooltip and, with [`LineChart::labels`], its end.
    pub label: String,
    /// Its class, which gives it its colour.
    pub class: &'static str,
    /// The values.
    pub points: &'a [Point],
}

/// A chart of lines over time.
#[derive(Default)]
pub(crate) struct LineChart<'a> {
    /// Unique in the page.
    pub id: String,
    /// Its title, for screen readers.
    pub title: String,
    /// What the chart shows, in a sentence, for screen readers.
    pub desc: String,
    /// Width.
    pub width: f64,
    /// Height of the plot, without labels and axis.
    pub plot_height: f64,
    /// The lines.
    pub lines: Vec<Line<'a>>,
    /// Lines that these are held against, dashed and without labels.
    pub dashed: Vec<Line<'a>>,
    /// Points to mark, each with the class that gives it its colour, and with its words.
    pub dots: Vec<(&'static str, Point, String)>,
    /// First and last second shown.
    pub time_s: (f64, f64),
    /// Whether time grows by factors.
    pub log: bool,
    /// Highest value.
    pub max: f64,
    /// Values are divided by this for the ticks.
    pub factor: f64,
    /// Unit of the ticks.
    pub unit: &'static str,
    /// Values to mark across the plot, each with its words, which stand above it: no curve passes there. Two at most.
    pub levels: Vec<(f64, String)>,
    /// Seconds to mark from top to bottom.
    pub marks_s: Vec<f64>,
    /// Whether lines are labelled above the place where they end.
    pub labels: bool,
    /// Whether the space below a line is tinted.
    pub area: bool,
    /// Times that are shaded, of each variant that has any.
    pub shades: Vec<Shaded<'a>>,
    /// Least room for ticks at the left: charts below each other share their axis of time.
    pub left: f64,
}

const ROW: f64 = 18.0;
const AXIS: f64 = 24.0;
const TICK_SPACE: f64 = 64.0;
/// Length of the piece of a level's line that stands beside its words.
const PIECE: f64 = 24.0;

impl LineChart<'_> {
    /// The SVG.
    pub fn render(&self) -> Markup {
        let y_ticks = self.y_ticks();
        let left = self.left.max(self.own_left());
        let right = self.width - 10.0;
        let x = Scale::new(self.time_s.0, self.time_s.1, left, right, self.log);
        let labels = self.place_labels(&x, left);
        let rows = labels.iter().map(|label| label.row + 1).max().unwrap_or(0);
        let top = (self.levels.len() + rows) as f64 * ROW + 10.0;
        let bottom = top + self.plot_height;
        let y = Scale::new(0.0, self.max, bottom, top, false);
        let inside = html! {
            (shaded(&self.shades, &x, top, bottom))
            @for value in &y_ticks {
                @let at = y.at(value * self.factor);
                line.grid x1=(c(left)) x2=(c(right)) y1=(c(at)) y2=(c(at)) {}
                text.tick x=(c(left - 6.0)) y=(c(at + 4.0)) text-anchor="end" { (self.tick(*value)) }
            }
            (self.time_axis(&x, left, right, bottom))
            @for (row, (value, words)) in self.levels.iter().enumerate() {
                @let at = y.at(*value);
                @let base = 12.0 + row as f64 * ROW;
                g class=[(row > 0).then_some("second")] {
                    line.ceiling x1=(c(left)) x2=(c(right)) y1=(c(at)) y2=(c(at)) {}
                    line.ceiling x1=(c(left)) x2=(c(left + PIECE)) y1=(c(base - 4.0)) y2=(c(base - 4.0)) {}
                    text.tick x=(c(left + PIECE + 8.0)) y=(c(base)) { (fitting(words, right - left - PIECE - 8.0)) }
                }
            }
            @for at_s in &self.marks_s {
                @let at = x.at(*at_s);
                line.ceiling x1=(c(at)) x2=(c(at)) y1=(c(top)) y2=(c(bottom)) {}
            }
            @for line in &self.dashed { (dashed(line, &x, &y)) }
            @for line in &self.lines { (self.line(line, &x, &y, bottom)) }
            @for (class, point, words) in &self.dots {
                g class=(class) {
                    circle.ring cx=(c(x.at(point.t_s))) cy=(c(y.at(point.value))) r="5" { title { (words) } }
                }
            }
            @let ends = labels.iter().zip(&self.lines).filter(|(_, line)| !line.points.is_empty());
            @for (label, line) in ends.clone() { (leader(label, line, &y, top)) }
            // Over all leaders: where there is little room, one passes behind a label and leaves it readable.
            @for (label, _) in ends {
                text.label x=(c(label.to)) y=(c(label.base(top))) text-anchor="end" { (label.text) }
            }
        };
        frame(&self.id, (&self.title, &self.desc), (self.width, bottom + AXIS), &inside)
    }

    fn y_ticks(&self) -> Vec<f64> {
        nice_ticks(self.max / self.factor, (self.plot_height / 40.0).max(2.0) as usize)
    }

    fn tick(&self, value: f64) -> String {
        match value {
            0.0 => "0".to_owned(),
            1.0 if self.unit == "cores" => "1 core".to_owned(),
            _ if self.unit.is_empty() => number(value),
            _ => format!("{} {}", number(value), self.unit),
        }
    }

    /// The room that its own ticks need at the left.
    pub fn own_left(&self) -> f64 {
        self.y_ticks().iter().map(|v| text_width(&self.tick(*v))).fold(0.0, f64::max) + 8.0
    }

    fn time_axis(&self, x: &Scale, left: f64, right: f64, bottom: f64) -> Markup {
        let most = ((right - left) / TICK_SPACE).max(2.0) as usize;
        let ticks = if self.log {
            log_time_ticks(self.time_s.0, self.time_s.1, most)
        } else {
            time_ticks(self.time_s.1, most)
        };
        html! {
            line.base x1=(c(left)) x2=(c(right)) y1=(c(bottom)) y2=(c(bottom)) {}
            @for seconds in ticks {
                @let at = x.at(seconds);
                @let label = time_label(seconds);
                @let half = text_width(&label) / 2.0;
                line.base x1=(c(at)) x2=(c(at)) y1=(c(bottom)) y2=(c(bottom + 4.0)) {}
                text.tick x=(c(at.min(self.width - half))) y=(c(bottom + 18.0))
                    text-anchor="middle" { (label) }
            }
        }
    }

    fn line(&self, line: &Line<'_>, x: &Scale, y: &Scale, bottom: f64) -> Markup {
        let Some(drawn) = Path::through(line.points, x, y) else { return html! {} };
        html! {
            g class=(line.class) {
                @if self.area { path.area d=(drawn.area(bottom)) {} }
                path.line d=(drawn.line()) { title { (line.label) } }
            }
        }
    }

    /// Labels end where their lines end, in the lowest row in which neither a label nor a leader to
    /// a higher one is in the way. Near the left edge a label reaches beyond the end of its line
    /// instead. Empty without labels; else one for each line, in their order.
    fn place_labels(&self, x: &Scale, left: f64) -> Vec<Label> {
        if !self.labels {
            return Vec::new();
        }
        let mut labels: Vec<Label> = self
            .lines
            .iter()
            .map(|line| {
                let at = x.at(line.points.last().map_or(x.from, |point| point.t_s));
                let text = fitting(&line.label, x.at(x.to) - left);
                let width = text_width(&text);
                Label { text, at, from: (at - width).max(left), to: at.max(left + width), row: 0 }
            })
            .collect();
        let mut order: Vec<usize> = (0..labels.len()).collect();
        order.sort_by(|a, b| labels[*a].at.total_cmp(&labels[*b].at));
        for (placed, &index) in order.iter().enumerate() {
            let free = |row: usize| {
                order[..placed].iter().all(|&other| {
                    let (own, other) = (&labels[index], &labels[other]);
                    let in_row = other.row == row && own.from < other.to + 10.0;
                    let leader = other.row > row && own.from < other.at + 6.0;
                    !in_row && !leader
                })
            };
            let row = (0..).find(|row| free(*row)).expect("a row above all others is free");
            labels[index].row = row;
        }
        labels
    }
}

struct Label {
    text: String,
    at: f64,
    from: f64,
    to: f64,
    row: usize,
}

impl Label {
    /// Where its words stand over a plot that begins at `top`.
    fn base(&self, top: f64) -> f64 {
        top - 12.0 - self.row as f64 * ROW
    }
}

fn dashed(line: &Line<'_>, x: &Scale, y: &Scale) -> Markup {
    let Some(drawn) = Path::through(line.points, x, y) else { return html! {} };
    html! { g class=(line.class) { path.dashed d=(drawn.line()) { title { (line.label) } } } }
}

fn leader(label: &Label, line: &Line<'_>, y: &Scale, top: f64) -> Markup {
    let Some(end) = line.points.last() else { return html! {} };
    let end = y.at(end.value);
    html! {
        g class=(line.class) {
            line.leader x1=(c(label.at)) x2=(c(label.at)) y1=(c(label.base(top) + 4.0)) y2=(c(end)) {}
            circle.dot cx=(c(label.at)) cy=(c(end)) r="4" {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(ends: &[f64]) -> Vec<Label> {
        let points: Vec<[Point; 1]> =
            ends.iter().map(|t| [Point { t_s: *t, value: 1.0 }]).collect();
        let chart = LineChart {
            width: 400.0,
            plot_height: 100.0,
            lines: points
                .iter()
                .map(|points| Line { label: "0123456789".into(), class: "cpu", points })
                .collect(),
            time_s: (0.0, 400.0),
            max: 1.0,
            factor: 1.0,
            labels: true,
            ..LineChart::default()
        };
        chart.place_labels(&Scale::new(0.0, 400.0, 0.0, 400.0, false), 0.0)
    }

    #[test]
    fn labels_never_overlap_and_no_leader_crosses_one() {
        for ends in [&[100.0, 105.0, 110.0, 180.0, 400.0][..], &[390.0, 80.0, 85.0, 200.0, 388.0]] {
            let labels = labels(ends);
            for (i, a) in labels.iter().enumerate() {
                for b in &labels[i + 1..] {
                    let overlap = a.row == b.row && a.from < b.to && b.from < a.to;
                    assert!(!overlap, "{ends:?}: labels overlap");
                    for (a, b) in [(a, b), (b, a)] {
                        let crosses = a.row > b.row && a.at > b.from && a.at < b.to;
                        assert!(!crosses, "{ends:?}: a leader crosses a label");
                    }
                }
            }
        }
        assert!(labels(&[100.0, 200.0, 300.0]).iter().all(|label| label.row == 0));
    }

    /// Two long labels of lines that end near the left edge: the leader of one passes the other, behind it.
    #[test]
    fn labels_are_drawn_over_leaders() {
        let points = [100.0, 200.0].map(|t_s| [Point { t_s, value: 1.0 }]);
        let line = |points| Line { label: "0123456789".repeat(4), class: "cpu", points };
        let lines = points.iter().map(|points| line(&points[..])).collect();
        let (width, time_s, max, factor) = (420.0, (0.0, 400.0), 1.0, 1.0);
        let chart =
            LineChart { lines, width, time_s, max, factor, labels: true, ..LineChart::default() };
        let drawn = chart.render().into_string();
        let (last_leader, first_label) = (drawn.rfind("\"leader\""), drawn.find("\"label\""));
        assert!(last_leader.is_some() && last_leader < first_label, "{drawn}");
    }

    #[test]
    fn words_of_levels_stand_above_the_plot_and_its_labels() {
        let points = [0.0, 400.0].map(|t_s| Point { t_s, value: 90.0 });
        let lines = vec![Line { label: "line".into(), class: "cpu", points: &points }];
        let levels = vec![(50.0, "one".to_owned()), (80.0, "two".to_owned())];
        let (width, plot_height, time_s, max, factor) = (400.0, 100.0, (0.0, 400.0), 100.0, 1.0);
        let chart = LineChart {
            lines,
            levels,
            width,
            plot_height,
            time_s,
            max,
            factor,
            labels: true,
            ..LineChart::default()
        };
        let drawn = chart.render().into_string();
        // From the top: both levels, the label of the line, and the plot, whose highest value is its first coordinate.
        for place in
            ["y=\"12\">one<", "y=\"30\">two<", "y=\"52\" text-anchor=\"end\">line<", " 74L390 74"]
        {
            assert!(drawn.contains(place), "{place} is not in {drawn}");
        }
        assert_eq!(
            drawn.matches("class=\"ceiling\"").count(),
            4,
            "each with a piece beside its words"
        );
        assert_eq!(drawn.matches("<g class=\"second\">").count(), 1, "which tells them apart");
    }

    #[test]
    fn a_long_label_ends_within_its_chart() {
        let points = [Point { t_s: 1.0, value: 1.0 }];
        let line = Line { label: "0123456789".repeat(20), class: "cpu", points: &points };
        let chart = LineChart { lines: vec![line], labels: true, ..LineChart::default() };
        let placed = chart.place_labels(&Scale::new(0.0, 400.0, 50.0, 400.0, false), 50.0);
        assert!(placed[0].from >= 50.0 && placed[0].to <= 400.0, "{}", placed[0].to);
    }
}
