//! Pairs of numbers as points: how many times the one the other is, over the one, both axes by factors.

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
    /// How many times that the other number is: where it stands on the vertical axis.
    pub ratio: f64,
    /// From which ratio to which it may lie.
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

/// The ratios at the edges. What lies beyond stands at the edge, with an arrowhead.
const EDGES: (f64, f64) = (0.5, 2.0);
/// Ratios with a line across, and the words beside it.
const RATIOS: [(f64, &str); 9] = [
    (0.5, "−50 %"),
    (2.0 / 3.0, "−33 %"),
    (0.8, "−20 %"),
    (0.9, "−10 %"),
    (1.0, "0"),
    (1.1, "+10 %"),
    (1.25, "+25 %"),
    (1.5, "+50 %"),
    (2.0, "+100 %"),
];

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

impl Dot {
    /// The form where it stands, or at the edge that it lies beyond.
    fn render(&self, x: f64, y: &Scale) -> Markup {
        let at = y.at(self.ratio);
        let inwards = match self.ratio {
            ratio if ratio > EDGES.1 => 1.0,
            ratio if ratio < EDGES.0 => -1.0,
            _ => return self.mark.render(x, at, HALF),
        };
        let back = at + 5.0 * inwards;
        let head =
            format!("{},{} {},{} {},{}", c(x - HALF), c(back), c(x), c(at), c(x + HALF), c(back));
        html! {
            polyline.beyond points=(head) {}
            (self.mark.render(x, at + 12.0 * inwards, HALF))
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
        let y = Scale::new(EDGES.0, EDGES.1, bottom, TOP, true);
        let (upper, lower) = (y.at(1.0 + self.band), y.at(1.0 - self.band));
        let same = y.at(1.0);
        let inside = html! {
            @for tick in ticks(from, to) {
                @let at = x.at(tick);
                line.grid x1=(c(at)) x2=(c(at)) y1=(c(TOP)) y2=(c(bottom)) {}
                text.tick x=(c(at)) y=(c(bottom + 18.0)) text-anchor="middle" { (self.tick(tick)) }
            }
            @for (ratio, words) in RATIOS {
                @let at = y.at(ratio);
                line.grid x1=(c(LEFT)) x2=(c(right)) y1=(c(at)) y2=(c(at)) {}
                text.tick x=(c(LEFT - 8.0)) y=(c(at + 4.0)) text-anchor="end" { (words) }
            }
            rect.band x=(c(LEFT)) y=(c(upper)) width=(c(right - LEFT)) height=(c(lower - upper)) {}
            line.same x1=(c(LEFT)) y1=(c(same)) x2=(c(right)) y2=(c(same)) {}
            text.tick x=(c(right)) y=(c(height - 8.0)) text-anchor="end" { (self.axes.0) }
            text.tick x=(c(LEFT)) y="11" { (self.axes.1) }
            @for dot in &self.dots {
                g class=(dot.class) {
                    title { (dot.title) }
                    @if let Some((low, high)) = dot.range {
                        line.reach x1=(c(x.at(dot.x))) x2=(c(x.at(dot.x)))
                            y1=(c(y.at(low))) y2=(c(y.at(high))) {}
                    }
                    (dot.render(x.at(dot.x), &y))
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

    /// Lowest and highest number on the horizontal axis, with some room.
    fn bounds(&self) -> (f64, f64) {
        let numbers = self.dots.iter().map(|dot| dot.x);
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

    fn chart(ratio: f64, range: Option<(f64, f64)>) -> String {
        let dot = |x: f64, ratio, range| Dot {
            class: "predicted",
            mark: Mark::Circle,
            x,
            ratio,
            range,
            title: "<x>".to_owned(),
        };
        let chart = Scatter {
            id: "s",
            title: "t",
            desc: String::new(),
            size: (LEFT + RIGHT + 200.0, TOP + BOTTOM + 200.0),
            axes: ("published", "ours"),
            unit: "",
            band: 0.1,
            // The others stand at either side, six decades apart.
            dots: vec![dot(0.1, 0.7, None), dot(100.0, ratio, range), dot(1e5, 0.7, None)],
        };
        chart.render().into_string()
    }

    /// The number of an attribute of the first element of a class.
    fn attribute(svg: &str, class: &str, name: &str) -> f64 {
        let rest = svg.split(&format!("class=\"{class}\"")).nth(1).unwrap();
        let value = rest.split(&format!(" {name}=\"")).nth(1).unwrap();
        value.split('"').next().unwrap().parse().unwrap()
    }

    #[test]
    fn a_point_that_is_met_lies_on_the_line() {
        let svg = chart(1.0, Some((0.8, 1.25)));
        let place = format!("cx=\"{}\" cy=\"{}\"", c(LEFT + 100.0), c(TOP + 100.0));
        assert!(svg.contains(&place) && svg.contains("&lt;x&gt;"), "{svg}");
        assert!(attribute(&svg, "reach", "y1") > attribute(&svg, "reach", "y2"), "{svg}");
    }

    #[test]
    fn a_point_that_is_two_fifths_off_lies_far_from_the_band_whatever_the_axis_spans() {
        let svg = chart(1.4, None);
        let at: f64 =
            svg.split("cy=\"").nth(2).unwrap().split('"').next().unwrap().parse().unwrap();
        let (top, high) = (attribute(&svg, "band", "y"), attribute(&svg, "band", "height"));
        assert!(at < top - high && high > 20.0, "{at}, {top}, {high}: {svg}");
        assert!(!svg.contains("beyond"), "{svg}");
    }

    #[test]
    fn a_point_beyond_an_edge_stands_there_with_an_arrowhead() {
        for (ratio, edge) in [(40.0, TOP), (0.01, TOP + 200.0)] {
            let svg = chart(ratio, None);
            let tip = format!("{},{} ", c(LEFT + 100.0), c(edge));
            assert!(svg.contains("polyline class=\"beyond\"") && svg.contains(&tip), "{svg}");
        }
    }
}
