//! Parts of a whole as stacked horizontal bars.

use maud::{Markup, html};

use super::{c, fitting, frame, text_width};

/// A part of a bar.
pub(crate) struct Part {
    /// Its class, which gives it its colour.
    pub class: &'static str,
    /// What it is: `latency`.
    pub name: &'static str,
    /// How much of the whole, 0 to 1.
    pub share: f64,
    /// The share in words: `97 %`.
    pub text: String,
}

/// A bar.
pub(crate) struct Bar {
    /// What the bar is of.
    pub label: String,
    /// A remark at the end of the label's line.
    pub note: String,
    /// The parts, from left to right.
    pub parts: Vec<Part>,
}

/// Stacked bars, one below the other, each as wide as the chart.
pub(crate) struct BarChart {
    /// Unique in the page.
    pub id: String,
    /// Its title, for screen readers.
    pub title: String,
    /// What the chart shows, in a sentence, for screen readers.
    pub desc: String,
    /// Width.
    pub width: f64,
    /// The bars.
    pub bars: Vec<Bar>,
}

const LABEL: f64 = 18.0;
const HEIGHT: f64 = 26.0;
const PITCH: f64 = LABEL + HEIGHT + 14.0;

impl BarChart {
    /// The SVG.
    pub fn render(&self) -> Markup {
        let height = self.bars.len() as f64 * PITCH;
        let inside = html! {
            @for (index, bar) in self.bars.iter().enumerate() {
                (self.bar(bar, index as f64 * PITCH))
            }
        };
        frame(&self.id, (&self.title, &self.desc), (self.width, height), &inside)
    }

    fn bar(&self, bar: &Bar, top: f64) -> Markup {
        let mut from = 0.0;
        let parts: Vec<(f64, f64, &Part)> = bar
            .parts
            .iter()
            .map(|part| {
                let start: f64 = from;
                from = (start + part.share.clamp(0.0, 1.0) * self.width).min(self.width);
                (start, from - start, part)
            })
            .filter(|(_, width, _)| *width >= 0.5)
            .collect();
        let top_of_bar = top + LABEL;
        let label = fitting(&bar.label, self.width - text_width(&bar.note) - 14.0);
        html! {
            text.label x="0" y=(c(top + 12.0)) { (label) }
            text.tick x=(c(self.width)) y=(c(top + 12.0)) text-anchor="end" { (bar.note) }
            @for (x, width, part) in parts {
                g class=(part.class) {
                    // A gap of one unit keeps neighbours apart for those who see no colours.
                    rect.part x=(c(x)) y=(c(top_of_bar)) width=(c((width - 1.0).max(0.5)))
                        height=(c(HEIGHT)) {
                        title { (part.name) " " (part.text) }
                    }
                    @if let Some(words) = words(part, width) {
                        text.inside x=(c(x + 8.0)) y=(c(top_of_bar + 17.5)) { (words) }
                    }
                }
            }
        }
    }
}

/// As many words as fit.
fn words(part: &Part, width: f64) -> Option<String> {
    let full = format!("{} {}", part.name, part.text);
    [full, part.text.clone()].into_iter().find(|words| text_width(words) + 16.0 <= width)
}
