//! Values over time as lines, each labelled where it ends.

use insight::Point;
use maud::{Markup, html};

use super::axis::{Scale, log_time_ticks, nice_ticks, number, time_label, time_ticks};
use super::{Shaded, c, fitting, frame, path, shaded, text_width};

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
    /// Values to mark across the plot, each with its words.
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

impl LineChart<'_> {
    /// The SVG.
    pub fn render(&self) -> Markup {
        let y_ticks = self.y_ticks();
        let left = self.left.max(self.own_left());
        let right = self.width - 10.0;
        let x = Scale::new(self.time_s.0, self.time_s.1, left, right, self.log);
        let labels = self.place_labels(&x, left);
        let rows = labels.iter().map(|label| label.row + 1).max().unwrap_or(0);
        let top = rows as f64 * ROW + 10.0;
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
            @for (value, _) in &self.levels {
                @let at = y.at(*value);
                line.ceiling x1=(c(left)) x2=(c(right)) y1=(c(at)) y2=(c(at)) {}
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
            // Over the lines: a curve that crosses a level's words leaves them readable.
            @for (value, words) in &self.levels {
                @let (at, base, anchor) = self.level_place(y.at(*value), words, &x, &y);
                text.tick.level x=(c(at)) y=(c(base)) text-anchor=(anchor) { (words) }
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

    /// Where the words of a level stand, and which of their ends is there: above its right end, unless fewer lines pass
    /// at another of its corners.
    fn level_place(
        &self,
        level: f64,
        words: &str,
        x: &Scale,
        y: &Scale,
    ) -> (f64, f64, &'static str) {
        let width = text_width(words);
        let (left, right) = (x.at(x.from), x.at(x.to));
        let corner = |base: f64, is_left: bool| match is_left {
            true => (left + 4.0, base, "start"),
            false => (right, base, "end"),
        };
        let crossed = |&(at, base, anchor): &(f64, f64, &str)| -> f64 {
            let from = if anchor == "end" { at - width } else { at };
            let words = Words { from, to: from + width, top: base - 11.0, bottom: base + 3.0 };
            self.lines.iter().chain(&self.dashed).map(|line| words.crossed(line.points, x, y)).sum()
        };
        let (above, below) = (level - 4.0, level + 14.0);
        let corners = [(above, false), (above, true), (below, false), (below, true)]
            .map(|(base, is_left)| corner(base, is_left));
        // Below the lowest levels stand the times of the axis.
        let inside = corners.into_iter().filter(|(_, base, _)| *base <= y.at(y.from));
        let best = inside.min_by(|a, b| crossed(a).total_cmp(&crossed(b)));
        best.expect("a level has corners")
    }

    fn y_ticks(&self) -> Vec<f64> {
        nice_ticks(self.max / self.factor, (self.plot_height / 40.0).max(2.0) as usize)
    }

    fn tick(&self, value: f64) -> String {
        match value {
            0.0 => "0".to_owned(),
            1.0 if self.unit == "cores" => "1 core".to_owned(),
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
        let Some((d, from, to)) = path(line.points, x, y) else { return html! {} };
        html! {
            g class=(line.class) {
                @if self.area {
                    path.area d=(format!("{d}L{} {b}L{} {b}Z", c(to[0]), c(from[0]), b = c(bottom))) {}
                }
                path.line d=(d) { title { (line.label) } }
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

/// The room that words take.
struct Words {
    from: f64,
    to: f64,
    top: f64,
    bottom: f64,
}

impl Words {
    /// The width along which a line crosses them; 1 where it does so from top to bottom.
    fn crossed(&self, points: &[Point], x: &Scale, y: &Scale) -> f64 {
        let width = |pair: &[Point]| {
            let [a, b] = [&pair[0], &pair[1]].map(|point| [x.at(point.t_s), y.at(point.value)]);
            let (from, to) = (a[0].max(self.from), b[0].min(self.to));
            if from > to {
                return 0.0;
            }
            let at = |x: f64| a[1] + (x - a[0]) / (b[0] - a[0]) * (b[1] - a[1]);
            let (first, last) = if b[0] > a[0] { (at(from), at(to)) } else { (a[1], b[1]) };
            let is_in = first.min(last) <= self.bottom && first.max(last) >= self.top;
            if is_in { (to - from).max(1.0) } else { 0.0 }
        };
        points.windows(2).map(width).sum()
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
    let Some((d, ..)) = path(line.points, x, y) else { return html! {} };
    html! { g class=(line.class) { path.dashed d=(d) { title { (line.label) } } } }
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
            id: "a".into(),
            title: String::new(),
            desc: String::new(),
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

    /// A line along the level and above it, from second 100 on, leaves the left free; one all along it the space below.
    #[test]
    fn words_of_a_level_stand_where_no_line_passes() {
        let (x, y) =
            (Scale::new(0.0, 400.0, 0.0, 400.0, false), Scale::new(0.0, 100.0, 100.0, 0.0, false));
        let place_at = |level: f64, points: &[Point]| {
            let line = Line { label: String::new(), class: "cpu", points };
            let chart = LineChart { lines: vec![line], ..LineChart::default() };
            chart.level_place(y.at(level), "0123456789", &x, &y)
        };
        let place = |points: &[Point]| place_at(50.0, points);
        let line = |points: &[(f64, f64)]| -> Vec<Point> {
            points.iter().map(|&(t_s, value)| Point { t_s, value }).collect()
        };
        assert_eq!(place(&line(&[(0.0, 5.0), (400.0, 5.0)])), (400.0, 46.0, "end"));
        assert_eq!(place(&line(&[(0.0, 5.0), (100.0, 58.0), (400.0, 58.0)])), (4.0, 46.0, "start"));
        assert_eq!(place(&line(&[(0.0, 58.0), (400.0, 58.0)])), (400.0, 64.0, "end"));
        assert_eq!(place(&line(&[(390.0, 0.0), (390.0, 99.0)])), (4.0, 46.0, "start"));
        let axis_is_below = place_at(5.0, &line(&[(0.0, 12.0), (400.0, 12.0)]));
        assert_eq!(axis_is_below, (400.0, 91.0, "end"));
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
