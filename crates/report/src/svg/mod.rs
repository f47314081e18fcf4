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
use record::units::show_span;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Width of a character of 12 units, on the safe side for a proportional face.
const CHARACTER: f64 = 7.0;

/// Width that `text` takes, about.
pub(crate) fn text_width(text: &str) -> f64 {
    text.width() as f64 * CHARACTER
}

/// A name that fits its column, cut in the middle: ends tell nodes apart. Of some scripts a character is two wide.
pub(crate) fn short(name: &str, longest: usize) -> String {
    if name.width() <= longest {
        return name.to_owned();
    }
    let half = longest.saturating_sub(1) / 2;
    let head: String = within(half, name.chars()).into_iter().collect();
    let tail: String = within(half, name.chars().rev()).into_iter().rev().collect();
    format!("{head}…{tail}")
}

/// The first of these characters, as many as have room.
pub(crate) fn within(room: usize, characters: impl Iterator<Item = char>) -> Vec<char> {
    let mut taken = 0;
    let has_room = |one: &char| {
        taken += one.width().unwrap_or(0);
        taken <= room
    };
    characters.take_while(has_room).collect()
}

/// A line that is at most so wide; the last character says that there is more.
pub(crate) fn cut(line: &str, width: usize) -> String {
    match line.width() > width {
        true => within(width.saturating_sub(1), line.chars()).into_iter().chain(['…']).collect(),
        false => line.to_owned(),
    }
}

/// A label that fits into `width`, cut in the middle where it is longer.
fn fitting(label: &str, width: f64) -> String {
    short(label, (width / CHARACTER).max(3.0) as usize)
}

/// A coordinate, short.
fn c(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
}

/// The SVG element around `inside`, with its title and, for screen readers, a description.
fn frame(
    id: &str,
    (title, desc): (&str, &str),
    (width, height): (f64, f64),
    inside: &Markup,
) -> Markup {
    let (title_id, desc_id) = (format!("{id}-t"), format!("{id}-d"));
    html! {
        svg viewBox=(format!("0 0 {} {}", c(width), c(height))) role="img"
            aria-labelledby=(format!("{title_id} {desc_id}")) {
            title id=(title_id) { (title) }
            desc id=(desc_id) { (desc) }
            (inside)
        }
    }
}

/// A line through points on two scales. A value that is no number parts it: nothing is known there.
struct Path(Vec<Vec<[f64; 2]>>);

impl Path {
    /// None where no point lies within the x scale.
    fn through(points: &[Point], x: &axis::Scale, y: &axis::Scale) -> Option<Path> {
        let parts = points.split(|point| point.value.is_nan());
        let parts: Vec<_> = parts.filter_map(|part| on_screen(part, x, y)).collect();
        (!parts.is_empty()).then_some(Path(parts))
    }

    /// The `d` of the line.
    fn line(&self) -> String {
        self.0.iter().map(|part| stroke(part)).collect()
    }

    /// The `d` of the ground below it.
    fn area(&self, bottom: f64) -> String {
        let ground = |part: &Vec<[f64; 2]>| {
            let (from, to) = (part[0], part[part.len() - 1]);
            format!("{}L{} {b}L{} {b}Z", stroke(part), c(to[0]), c(from[0]), b = c(bottom))
        };
        self.0.iter().map(ground).collect()
    }
}

fn stroke(part: &[[f64; 2]]) -> String {
    let d: Vec<String> = part.iter().map(|[x, y]| format!("{} {}", c(*x), c(*y))).collect();
    format!("M{}", d.join("L"))
}

/// Where points stand. What lies before the x scale is cut off at its edge.
fn on_screen(points: &[Point], x: &axis::Scale, y: &axis::Scale) -> Option<Vec<[f64; 2]>> {
    let after = points.iter().position(|point| point.t_s >= x.from)?;
    let mut screen: Vec<[f64; 2]> = Vec::with_capacity(points.len() + 1);
    if after > 0 && points[after].t_s > x.from {
        let (a, b) = (points[after - 1], points[after]);
        let part = (x.from - a.t_s) / (b.t_s - a.t_s);
        screen.push([x.at(x.from), y.at(a.value + part * (b.value - a.value))]);
    }
    screen.extend(points[after..].iter().map(|point| [x.at(point.t_s), y.at(point.value)]));
    Some(screen)
}

/// The shaded times of a variant.
#[derive(Clone, Copy)]
pub(crate) struct Shaded<'a> {
    /// The variant.
    pub variant: &'a str,
    /// Its class, which gives the shades their colour.
    pub class: &'static str,
    /// When, and what was so.
    pub shades: &'a [Shade],
}

/// What was so, and from when to when: `the link is cut off, 0 to 27 s`.
pub(crate) fn shade_words(shade: &Shade) -> String {
    format!("{}, {}", shade.what, show_span(shade.from_s, shade.to_s))
}

/// Times that are shaded, from `top` to `bottom`; each says what was so. Of several variants each has a lane, the first
/// at the top: at the same times they would hide each other.
fn shaded(variants: &[Shaded<'_>], x: &axis::Scale, top: f64, bottom: f64) -> Markup {
    let high = (bottom - top) / variants.len().max(1) as f64;
    html! {
        @for (lane, of) in variants.iter().enumerate() {
            @let top = top + lane as f64 * high;
            g class=(of.class) {
                @for shade in of.shades {
                    @let (from, to) = (x.at(shade.from_s), x.at(shade.to_s));
                    // What lasted for a moment is seen, too.
                    rect.shade x=(c(from)) y=(c(top)) width=(c((to - from).max(1.0))) height=(c(high)) {
                        title {
                            @if variants.len() > 1 { (of.variant) ": " }
                            (shade_words(shade))
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_is_no_number_parts_a_line() {
        let points = [(0.0, 1.0), (1.0, 2.0), (2.0, f64::NAN), (3.0, 4.0), (4.0, 0.0)];
        let points = points.map(|(t_s, value)| Point { t_s, value });
        let scale = |to: f64| axis::Scale::new(0.0, 4.0, 4.0 - to, to, false);
        let path = Path::through(&points, &scale(4.0), &scale(0.0)).unwrap();
        assert_eq!(path.line(), "M0 3L1 2M3 0L4 4");
        assert_eq!(path.area(4.0), "M0 3L1 2L1 4L0 4ZM3 0L4 4L4 4L3 4Z");
        assert!(Path::through(&points[2..3], &scale(4.0), &scale(0.0)).is_none());
    }

    #[test]
    fn long_names_keep_both_ends() {
        assert_eq!(short("follower-0", 14), "follower-0");
        assert_eq!(short("a-very-long-node-name-17", 14), "a-very…ame-17");
        assert_eq!(short("東京", 4), "東京");
        assert_eq!(short("東京-検索-17", 9), "東京…-17", "no half of a wide one");
    }

    #[test]
    fn a_label_is_as_wide_as_its_room_and_has_both_ends() {
        let long = format!("begin{}end", "-".repeat(200));
        let shown = fitting(&long, 140.0);
        assert!(text_width(&shown) <= 140.0 && shown.starts_with("begin"), "{shown}");
        assert!(shown.ends_with("end") && fitting(&long, 0.0).chars().count() == 3, "{shown}");
        assert_eq!(fitting("short", 140.0), "short");
    }
}
