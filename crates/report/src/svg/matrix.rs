//! A table of counts, the darker the more: what was right on the left, what was said above.

use maud::{Markup, html};

use super::{c, frame, text_width};

/// A chart of counts.
pub(crate) struct Matrix {
    /// Unique in the page.
    pub id: &'static str,
    /// Its title, for screen readers.
    pub title: String,
    /// Rows and columns.
    pub labels: Vec<String>,
    /// By row, then by column.
    pub counts: Vec<Vec<usize>>,
}

const CELL: f64 = 30.0;
const GAP: f64 = 8.0;
/// The least and the most that a cell is filled.
const FAINT: f64 = 0.15;

impl Matrix {
    /// The SVG.
    pub fn render(&self) -> Markup {
        let names = self.labels.iter().map(|label| text_width(label)).fold(0.0, f64::max) + GAP;
        let side = self.labels.len() as f64 * CELL;
        let (width, height) = (names + side + GAP, names + side + GAP);
        let place = |at: usize| names + at as f64 * CELL;
        let inside = html! {
            @for (at, label) in self.labels.iter().enumerate() {
                @let middle = place(at) + CELL / 2.0;
                text.tick x=(c(names - GAP)) y=(c(middle + 4.0)) text-anchor="end" { (label) }
                text.tick transform=(format!("translate({} {}) rotate(-90)", c(middle + 4.0), c(names - GAP))) {
                    (label)
                }
            }
            @for (row, counts) in self.counts.iter().enumerate() {
                @let all = counts.iter().sum::<usize>().max(1) as f64;
                @for (column, count) in counts.iter().enumerate() {
                    @let class = if row == column { "right" } else { "wrong" };
                    @let fill = if *count == 0 { 0.0 } else { FAINT + (1.0 - FAINT) * *count as f64 / all };
                    g class=(class) {
                        rect.grid x=(c(place(column))) y=(c(place(row))) width=(c(CELL)) height=(c(CELL))
                            fill-opacity=(format!("{fill:.2}")) {}
                        @if *count > 0 {
                            text.count x=(c(place(column) + CELL / 2.0)) y=(c(place(row) + CELL / 2.0 + 4.0))
                                text-anchor="middle" { (count) }
                        }
                    }
                }
            }
        };
        frame(self.id, (&self.title, &self.described()), (width, height), &inside)
    }

    /// The counts in words, as who does not see the picture hears them.
    fn described(&self) -> String {
        let mut text = "Rows: what was right. Columns: what was said.".to_owned();
        for (label, counts) in self.labels.iter().zip(&self.counts) {
            let said = self.labels.iter().zip(counts).filter(|(_, count)| **count > 0);
            let said: Vec<String> = said.map(|(said, count)| format!("{said} {count}")).collect();
            if !said.is_empty() {
                text.push_str(&format!(" {label}: {}.", said.join(", ")));
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_right_lies_on_the_diagonal_and_zeros_are_empty() {
        let matrix = Matrix {
            id: "m",
            title: "t".to_owned(),
            labels: vec!["a".to_owned(), "<b>".to_owned()],
            counts: vec![vec![3, 1], vec![0, 0]],
        };
        let svg = matrix.render().into_string();
        assert_eq!(svg.matches("text.count").count() + svg.matches("class=\"count\"").count(), 2);
        assert!(svg.contains("fill-opacity=\"0.79\"") && svg.contains("&lt;b&gt;"), "{svg}");
        assert!(svg.contains("what was said. a: a 3, &lt;b&gt; 1.</desc>"), "{svg}");
    }
}
