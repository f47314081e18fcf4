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
