//! Charts as inline SVG. Colours are classes that the page's style sheet knows, so a chart follows
//! light, dark and print. Sizes are in user units; text is 12 units high.

pub(crate) mod axis;
pub(crate) mod bars;
pub(crate) mod dots;
pub(crate) mod line;
pub(crate) mod matrix;
pub(crate) mod scatter;
pub(crate) mod spark;

use insight::{Point, Shade};
use maud::{Markup, html};

/// Width of a character of 12 units, on the safe side for a proportional face.
const CHARACTER: f64 = 7.0;

/// Width that `text` takes, about.
pub(crate) fn text_width(text: &str) -> f64 {
    text.chars().count() as f64 * CHARACTER
}

/// A coordinate, short.
fn c(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
}

/// The `d` of a path through `points` on two scales, and where it begins and ends. What lies before
/// the x scale is cut off at its edge.
fn path(
    points: &[Point],
    x: &axis::Scale,
    y: &axis::Scale,
) -> Option<(String, [f64; 2], [f64; 2])> {
    let after = points.iter().position(|point| point.t_s >= x.from)?;
    let mut screen: Vec<[f64; 2]> = Vec::with_capacity(points.len() + 1);
    if after > 0 && points[after].t_s > x.from {
        let (a, b) = (points[after - 1], points[after]);
        let part = (x.from - a.t_s) / (b.t_s - a.t_s);
        screen.push([x.at(x.from), y.at(a.value + part * (b.value - a.value))]);
    }
    screen.extend(points[after..].iter().map(|point| [x.at(point.t_s), y.at(point.value)]));
    let d: Vec<String> = screen.iter().map(|[x, y]| format!("{} {}", c(*x), c(*y))).collect();
    Some((format!("M{}", d.join("L")), screen[0], screen[screen.len() - 1]))
}

/// Times that are shaded, from `top` to `bottom`; each says what was so.
fn shaded(shades: &[&Shade], x: &axis::Scale, top: f64, bottom: f64) -> Markup {
    html! {
        @for shade in shades {
            @let (from, to) = (x.at(shade.from_s), x.at(shade.to_s));
            // What lasted for a moment is seen, too.
            rect.shade x=(c(from)) y=(c(top)) width=(c((to - from).max(1.0))) height=(c(bottom - top)) {
                title { (shade.what) }
            }
        }
    }
}
