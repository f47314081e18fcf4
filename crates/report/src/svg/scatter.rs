//! Pairs of numbers as points, both axes by factors, beside the line on which both are the same.

use maud::{Markup, html};

use super::axis::{Scale, number};
use super::{c, frame};

/// The form of a point: what its unit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// A circle.
    Circle,
    /// A square.
    Square,
    /// A square on its corner.
    Diamond,
    /// A triangle.
    Triangle,
}

/// A point.
pub(crate) struct Dot {
    /// Its class, which gives it its colour.
    pub class: &'static str,
    /// Its form.
    pub mark: Mark,
    /// Where it stands on the horizontal axis.
    pub x: f64,
    /// Where it stands on the vertical axis.
    pub y: f64,
    /// From where to where it may lie.
    pub range: Option<(f64, f64)>,
    /// What is shown where one points at it.
    pub title: String,
}

/// A chart of points.
pub(crate) struct Scatter {
    /// Unique in the page.
    pub id: &'static str,
    /// Its title, for screen readers.
    pub title: &'static str,
    /// What the chart shows, in a sentence, for screen readers.
    pub desc: String,
    /// Width and height.
    pub size: (f64, f64),
    /// Words at the horizontal and at the vertical axis.
    pub axes: (&'static str, &'static str),
    /// What ticks are multiplied by to be shown, and written behind them.
    pub unit: &'static str,
    /// How far from the line the band reaches: 0.1 is a tenth.
    pub band: f64,
    /// The points.
    pub dots: Vec<Dot>,
}

const LEFT: f64 = 62.0;
const BOTTOM: f64 = 46.0;
const TOP: f64 = 20.0;
const RIGHT: f64 = 14.0;
/// Half the width of a point.
const HALF: f64 = 5.0;

impl Mark {
    /// The form around a place.
    pub(crate) fn render(self, x: f64, y: f64, half: f64) -> Markup {
        let at = |dx: f64, dy: f64| format!("{},{}", c(x + dx * half), c(y + dy * half));
        let polygon = |points: &[(f64, f64)]| {
            let points: Vec<String> = points.iter().map(|(dx, dy)| at(*dx, *dy)).collect();
            html! { polygon.dot points=(points.join(" ")) {} }
        };
        match self {
            Mark::Circle => html! { circle.dot cx=(c(x)) cy=(c(y)) r=(c(half)) {} },
            Mark::Square => polygon(&[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)]),
            Mark::Diamond => polygon(&[(0.0, -1.25), (1.25, 0.0), (0.0, 1.25), (-1.25, 0.0)]),
            Mark::Triangle => polygon(&[(0.0, -1.2), (1.15, 0.9), (-1.15, 0.9)]),
        }
    }
}

impl Scatter {
    /// The SVG.
    pub fn render(&self) -> Markup {
        let (width, height) = self.size;
        let (from, to) = self.bounds();
        let (right, bottom) = (width - RIGHT, height - BOTTOM);
        let x = Scale::new(from, to, LEFT, right, true);
        let y = Scale::new(from, to, bottom, TOP, true);
        let place = |a: f64, b: f64| format!("{} {}", c(x.at(a)), c(y.at(b)));
        // The band's edges leave the square where they meet its sides.
        let up = 1.0 + self.band;
        let band = format!(
            "M{}L{}L{}L{}L{}L{}Z",
            place(from, from),
            place(from, from * up),
            place(to / up, to),
            place(to, to),
            place(to, to / up),
            place(from * up, from)
        );
        let inside = html! {
            @for tick in ticks(from, to) {
                @let (at_x, at_y) = (x.at(tick), y.at(tick));
                line.grid x1=(c(at_x)) x2=(c(at_x)) y1=(c(TOP)) y2=(c(bottom)) {}
                line.grid x1=(c(LEFT)) x2=(c(right)) y1=(c(at_y)) y2=(c(at_y)) {}
                text.tick x=(c(at_x)) y=(c(bottom + 18.0)) text-anchor="middle" { (self.tick(tick)) }
                text.tick x=(c(LEFT - 8.0)) y=(c(at_y + 4.0)) text-anchor="end" { (self.tick(tick)) }
            }
            path.band d=(band) {}
            line.same x1=(c(x.at(from))) y1=(c(y.at(from))) x2=(c(x.at(to))) y2=(c(y.at(to))) {}
            text.tick x=(c(right)) y=(c(height - 8.0)) text-anchor="end" { (self.axes.0) }
            text.tick x=(c(LEFT)) y="11" { (self.axes.1) }
            @for dot in &self.dots {
                g class=(dot.class) {
                    title { (dot.title) }
                    @if let Some((low, high)) = dot.range {
                        line.reach x1=(c(x.at(dot.x))) x2=(c(x.at(dot.x)))
                            y1=(c(y.at(low))) y2=(c(y.at(high))) {}
                    }
                    (dot.mark.render(x.at(dot.x), y.at(dot.y), HALF))
                }
            }
        };
        frame(self.id, (self.title, &self.desc), (width, height), &inside)
    }

    fn tick(&self, value: f64) -> String {
        let shown = match value {
            v if v >= 1e6 => format!("{} M", number(v / 1e6)),
            v if v >= 1e4 => format!("{} k", number(v / 1e3)),
            v => number(v),
        };
        format!("{shown}{}", self.unit)
    }

    /// Lowest and highest number on both axes, with some room.
    fn bounds(&self) -> (f64, f64) {
        let numbers = self.dots.iter().flat_map(|dot| {
            let (low, high) = dot.range.unwrap_or((dot.y, dot.y));
            [dot.x, dot.y, low, high]
        });
        let numbers: Vec<f64> = numbers.filter(|n| *n > 0.0 && n.is_finite()).collect();
        let low = numbers.iter().copied().reduce(f64::min).unwrap_or(1.0);
        let high = numbers.iter().copied().reduce(f64::max).unwrap_or(10.0);
        (low / 1.3, high * 1.3)
    }
}

/// Powers of ten, and where there are few of them their doubles and halves, too.
pub(crate) fn ticks(from: f64, to: f64) -> Vec<f64> {
    let (first, last) = (from.log10().floor() as i32, to.log10().ceil() as i32);
    let few = to / from < 1e3;
    let of = |power: i32| {
        let steps: &[f64] = if few { &[1.0, 2.0, 5.0] } else { &[1.0] };
        steps.iter().map(move |step| step * 10f64.powi(power))
    };
    (first..=last).flat_map(of).filter(|tick| (from..=to).contains(tick)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_powers_or_their_parts() {
        assert_eq!(ticks(30.0, 70_000.0), [100.0, 1000.0, 10_000.0]);
        assert_eq!(ticks(0.3, 3.0), [0.5, 1.0, 2.0]);
    }

    #[test]
    fn a_point_that_is_met_lies_on_the_line() {
        let dot = Dot {
            class: "predicted",
            mark: Mark::Circle,
            x: 100.0,
            y: 100.0,
            range: Some((10.0, 1000.0)),
            title: "<x>".to_owned(),
        };
        let size = (LEFT + RIGHT + 200.0, TOP + BOTTOM + 200.0);
        let chart = Scatter {
            id: "s",
            title: "t",
            desc: String::new(),
            size,
            axes: ("published", "ours"),
            unit: "",
            band: 0.1,
            dots: vec![dot],
        };
        let svg = chart.render().into_string();
        assert!(
            svg.contains(&format!("cx=\"{}\" cy=\"{}\"", c(LEFT + 100.0), c(TOP + 100.0))),
            "{svg}"
        );
        assert!(svg.contains("&lt;x&gt;"), "{svg}");
    }
}
