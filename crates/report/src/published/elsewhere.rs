//! The same conclusions where time is real, beside those of virtual time.

use maud::{Markup, html};

use super::conclusion::Notes;
use super::markdown::{said, wrapped};
use super::page::{explanation, sign};
use super::place::{Found, Place, capital, verdict};
use super::{Conclusion, Document, Published, new_table};

impl Place {
    fn of(&self, conclusion: &Conclusion) -> Option<&Found> {
        let same = |found: &&Found| {
            found.document == conclusion.document && found.claim == conclusion.claim
        };
        self.conclusions.iter().find(same)
    }
}

/// The number and whether it holds.
fn cell(conclusion: &Conclusion, holds: Option<bool>, ours: Option<f64>) -> String {
    let number = ours.map(|ours| format!(", {}", conclusion.unit.show(ours)));
    format!("{}{}", verdict(holds), number.unwrap_or_default())
}

impl Published {
    /// The conclusions of a document that were tried at any place.
    fn tried<'a>(&'a self, document: &'a Document) -> Vec<&'a Conclusion> {
        let mut conclusions = self.conclusions_of(document);
        conclusions
            .retain(|conclusion| self.elsewhere.iter().any(|on| on.of(conclusion).is_some()));
        conclusions
    }

    /// What explains the conclusions of a document, here and then elsewhere, in the order in which they are shown.
    pub(super) fn explanations<'a>(&'a self, document: &'a Document) -> Vec<&'a str> {
        let own = self.conclusions_of(document).into_iter().map(|c| c.why.as_str());
        let mut all: Vec<&str> = own.filter(|why| !why.is_empty()).collect();
        all.extend(self.explained(&self.tried(document)));
        all
    }

    fn explained<'a>(&'a self, conclusions: &[&Conclusion]) -> Vec<&'a str> {
        let of = |conclusion: &&Conclusion| {
            let found = self.elsewhere.iter().filter_map(|on| on.of(conclusion));
            found.filter_map(Found::explained).collect::<Vec<&str>>()
        };
        conclusions.iter().flat_map(of).collect()
    }

    /// What is asked of one that was measured at any place, or in virtual time.
    fn asked(&self, conclusion: &Conclusion) -> String {
        let is_measured = |on: &Place| on.of(conclusion).is_some_and(|found| found.holds.is_some());
        if self.elsewhere.iter().any(is_measured) {
            conclusion.bound_text()
        } else {
            conclusion.asked()
        }
    }

    /// The section of a document's file; none where nothing was tried elsewhere.
    pub(super) fn elsewhere_markdown(
        &self,
        document: &Document,
        notes: &mut Notes<'_>,
    ) -> Vec<String> {
        let conclusions = self.tried(document);
        if conclusions.is_empty() {
            return Vec::new();
        }
        let mut table = new_table();
        let names = self.elsewhere.iter().map(|on| on.on.clone());
        let head = ["claim", "asked", "virtual time"].map(str::to_owned);
        table.set_header(head.into_iter().chain(names));
        for conclusion in &conclusions {
            let mut row = vec![
                conclusion.claim.clone(),
                self.asked(conclusion),
                cell(conclusion, conclusion.holds, conclusion.ours),
            ];
            let of = |on: &Place| {
                let Some(found) = on.of(conclusion) else { return super::dash() };
                let shown = cell(conclusion, found.holds, found.ours) + &found.in_laps();
                match found.explained().and_then(|why| notes.number(why)) {
                    Some(number) => format!("{shown}, note {number}"),
                    None => shown,
                }
            };
            row.extend(self.elsewhere.iter().map(of));
            table.add_row(row);
        }
        let mut parts = vec![
            "## Where time is real".to_owned(),
            "[The index](README.md#where-time-is-real) says what was run there.".to_owned(),
            table.to_string(),
        ];
        parts.extend(said(notes, self.explained(&conclusions).into_iter()));
        parts
    }

    /// A line for each place.
    pub(super) fn elsewhere_index(&self) -> Option<String> {
        let one =
            |on: &Place| wrapped(&format!("- {}. Made by `{}`.", on.line(), on.command), "  ");
        let lines: Vec<String> = self.elsewhere.iter().map(one).collect();
        (!lines.is_empty()).then(|| lines.join("\n"))
    }

    /// The table of a document's section; nothing where nothing was tried elsewhere.
    pub(super) fn elsewhere_table(&self, document: &Document, notes: &mut Notes<'_>) -> Markup {
        let conclusions = self.tried(document);
        html! {
            @if !conclusions.is_empty() {
                h3 { "Where time is real" }
                div.scroll tabindex="0" role="region" aria-label="Where time is real" { table.conclusions {
                    thead { tr {
                        th scope="col" { "It concludes" } th.n scope="col" { "Asked" } th.n scope="col" { "Virtual time" }
                        @for on in &self.elsewhere { th.n scope="col" { (capital(&on.on)) } }
                    } }
                    tbody { @for conclusion in conclusions { tr {
                        th scope="row" { div {
                            (conclusion.claim)
                            @for on in &self.elsewhere {
                                @if let Some(why) = on.of(conclusion).and_then(Found::explained) {
                                    small { "On " (on.on) ": " (explanation(notes, &document.id, why)) }
                                }
                            }
                        } }
                        td.n.theirs { (self.asked(conclusion)) }
                        td.n { (marked(conclusion, conclusion.holds, conclusion.ours)) }
                        @for on in &self.elsewhere { td.n {
                            @if let Some(found) = on.of(conclusion) {
                                (marked(conclusion, found.holds, found.ours)) (found.in_laps())
                            } @else { "-" }
                        } }
                    } } }
                } }
            }
        }
    }
}

fn marked(conclusion: &Conclusion, holds: Option<bool>, ours: Option<f64>) -> Markup {
    html! {
        (sign(holds))
        @if let Some(ours) = ours { " " (conclusion.unit.show(ours)) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::sample;
    use super::*;

    fn tried() -> Published {
        let found = |claim: &str, holds, ours, why: &str| Found {
            document: "benchmark-plan".to_owned(),
            claim: claim.to_owned(),
            ours,
            holds,
            why: why.to_owned(),
            laps: 3,
            laps_holding: 1,
        };
        let place = |on: &str, conclusions| Place {
            on: on.to_owned(),
            date: "2026-11-25".to_owned(),
            cores: 2,
            scale: 1.0,
            laps: 3,
            command: "narrows published --on it".to_owned(),
            conclusions,
        };
        let help = "larger chunks <help>";
        Published {
            elsewhere: vec![
                place("processes", vec![found(help, Some(true), Some(12.0), "It was to fail.")]),
                place("OpenSearch", vec![found(help, Some(false), Some(1.1), "It compresses.")]),
            ],
            ..sample()
        }
    }

    #[test]
    fn a_document_has_what_was_found_of_its_conclusions_elsewhere() {
        let files = tried().markdown();
        let (index, page) = (&files[0].1, &files[1].1);
        assert!(
            index.contains("- OpenSearch, 2026-11-25, 2 cores, 3 laps: 0 of 1 conclusion holds, and laps differ on 1")
        );
        let row = page.lines().find(|line| line.contains("holds, 12.0×")).unwrap();
        assert!(row.contains("does not hold, 1.10×") && row.contains("holds, 15.1×"), "{row}");
        assert!(row.contains("does not hold, 1.10× (holds in 1 of 3 laps), note 2"), "{row}");
        assert!(page.contains("\n2. It compresses.\n"), "{page}");
        // What holds needs no explanation.
        assert!(!page.contains("It was to fail."), "{page}");
        // What was not tried there is not in that table.
        let table = page.split("## Where time is real").nth(1).unwrap();
        assert!(!table.contains("40 seconds faster"), "{table}");
        assert!(!sample().markdown()[1].1.contains("Where time is real"));
    }

    #[test]
    fn the_page_has_it_too_and_json_reads_back() {
        let published = tried();
        let page = published.html();
        assert!(page.contains("<th class=\"n\" scope=\"col\">Processes</th>"), "{page}");
        assert!(
            page.contains("On OpenSearch: It compresses.") && !page.contains("It was to fail.")
        );
        assert!(!sample().html().contains("Where time is real"));
        let read: Vec<Place> =
            serde_json::from_value(published.json()["elsewhere"].clone()).unwrap();
        assert_eq!(read, published.elsewhere);
        let text = published.elsewhere[1].text();
        assert!(text.starts_with("does not hold  larger chunks"), "{text}");
    }
}
