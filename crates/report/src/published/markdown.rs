//! The published figures as Markdown: one file for each document, and an index.

use insight::published::Comparison;

use super::conclusion::{BOUNDS, Notes, near_text};
use super::counterparts::REQUESTS;
use super::place::WHERE_TIME_IS_REAL;
use super::{
    COLUMNS, Conclusion, Document, MEDIANS, Published, beside, markdown_table, new_table, requests,
};
use crate::style::wrap;

/// What makes the files.
const WRITE: &str = "--write docs/published";

impl Published {
    /// The files of a folder, by their names: `README.md` with the medians, and one for each document.
    pub fn markdown(&self) -> Vec<(String, String)> {
        let mut files = vec![("README.md".to_owned(), self.index())];
        let one = |document: &Document| (format!("{}.md", document.id), self.page_of(document));
        files.extend(self.documents.iter().map(one));
        files
    }

    fn index(&self) -> String {
        let mut parts = vec![
            "# Published figures and ours".to_owned(),
            format!(
                "The figures of five documents beside those of the virtual world, at the published size. Made by\n\
                 `{}`;\n\
                 the same as one page for a browser: `narrows published --html`. The parameters and their sources are in\n\
                 `plans/test-beds/`.",
                self.command(WRITE)
            ),
        ];
        if self.scale != 1.0 {
            parts.push(format!("**Not at the published size: scale {}.**", self.scale));
        }
        parts.push(
            "- *predicted*: nothing was chosen by the row.\n\
             - *calibrated*: a value of the model was chosen by the row, or by one that comes to the same arithmetic.\n\
             - *implied*: arithmetic on a setting, such as bytes over a throttle, or a comparison of two rows that differ\n\
               in nothing that is in the model.\n\n\
             A conclusion has a kind, too: *predicted* where one of its rows is. Only those try the model: that a fitted\n\
             row holds was to be expected."
                .to_owned(),
        );
        parts.push(
            "What is drawn at random (hosts, where each shard's rotation of copies begins, the order of the network) is\n\
             drawn for each seed; a figure is the median over seeds, beside lowest and highest. *In range* are published\n\
             figures between these. Where two seeds give the same, nothing is drawn, and one is all; where they differ\n\
             by no more than a thousandth, two are all.\n\n\
             What was tried to come nearer, and what the model lacks, is in [model.md](model.md)."
                .to_owned(),
        );
        parts.push("## Errors by kind".to_owned());
        parts.push(markdown_table(&MEDIANS, self.medians()));
        parts.push("## What is asked of a conclusion".to_owned());
        let asked = |(bound, why): &(&str, &str)| wrapped(&format!("- *{bound}*: {why}"), "  ");
        parts.push(BOUNDS.iter().map(asked).collect::<Vec<_>>().join("\n"));
        let all = format!("Of all conclusions {}.", near_text(self.conclusions.iter()));
        parts.push(wrapped(&all, ""));
        parts.push("## Documents".to_owned());
        let line = |document: &Document| {
            let Document { id, title, by, .. } = document;
            let line = format!("- [{title}]({id}.md) ({by}). {}", self.standing_text(document));
            wrapped(&line, "  ")
        };
        parts.push(self.documents.iter().map(line).collect::<Vec<_>>().join("\n"));
        parts.extend(self.elsewhere_index().map(|lines| {
            format!("## Where time is real\n\n{}\n\n{lines}", wrapped(WHERE_TIME_IS_REAL, ""))
        }));
        parts.push(wrapped(&self.wall_line(), ""));
        parts.join("\n\n") + "\n"
    }

    fn page_of(&self, document: &Document) -> String {
        let mut parts = vec![
            format!("# {}", document.title),
            format!(
                "{}. Made by `{}`;\n[the index](README.md) says how to read it.",
                document.by,
                self.command(WRITE)
            ),
        ];
        let rows: Vec<&Comparison> = self.rows_of(document).collect();
        if !rows.is_empty() {
            parts.push("## Figures".to_owned());
            parts.push(markdown_table(&COLUMNS, self.figures(&rows, false)));
        }
        if let Some(table) = beside::markdown(&rows) {
            parts.push(format!("## {}", beside::TITLE));
            parts.push(wrapped(beside::WHY, ""));
            parts.push(table);
        }
        if let Some(table) = requests::markdown(&document.plans, &self.first_seeds) {
            parts.push(format!("## {REQUESTS}"));
            parts.push(wrapped(requests::WHY, ""));
            parts.push(table);
        }
        let conclusions = self.conclusions_of(document);
        parts.push("## What it concludes".to_owned());
        let mut notes = Notes::of(self.explanations(document).into_iter());
        parts.push(conclusion_grid(&conclusions, &notes));
        if let Some(said) = said(&mut notes, conclusions.iter().map(|c| c.why.as_str())) {
            parts.push("## Notes".to_owned());
            parts.push(said);
        }
        parts.extend(self.elsewhere_markdown(document, &mut notes));
        let verdicts = verdicts(&rows);
        if !verdicts.is_empty() {
            parts.push("## Why each was as fast as it was".to_owned());
            parts.push(verdicts);
        }
        parts.join("\n\n") + "\n"
    }
}

/// Those of these explanations that were not said before, each with its number.
pub(super) fn said<'a>(
    notes: &mut Notes<'_>,
    whys: impl Iterator<Item = &'a str>,
) -> Option<String> {
    let line = |why: &str| {
        let (number, is_new) = notes.say(why)?;
        let mark = format!("{number}. ");
        is_new.then(|| wrapped(&format!("{mark}{why}"), &" ".repeat(mark.len())))
    };
    let lines: Vec<String> = whys.filter_map(line).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

fn conclusion_grid(conclusions: &[&Conclusion], notes: &Notes<'_>) -> String {
    let mut table = new_table();
    table.set_header([
        "", "note", "claim", "where", "document", "asked", "ours", "of seeds", "kind", "rows",
    ]);
    for c in conclusions {
        table.add_row([
            c.holds().to_owned(),
            notes.number(&c.why).map_or_else(super::dash, |number| number.to_string()),
            c.claim.clone(),
            c.place.clone(),
            c.published.map_or_else(super::dash, |value| c.unit.show(value)),
            c.asked(),
            c.ours(),
            c.range_text().unwrap_or_else(super::dash),
            c.holds.map_or_else(super::dash, |_| c.kind.label().to_owned()),
            c.rows.clone(),
        ]);
    }
    table.to_string()
}

fn verdicts(rows: &[&Comparison]) -> String {
    let mut lines: Vec<String> = Vec::new();
    for row in rows.iter().filter(|row| !row.is_of_load()) {
        let Some(verdict) = &row.verdict else { continue };
        let line = wrapped(&format!("- {}, {}: {verdict}.", row.plan, row.variant), "  ");
        if lines.last() != Some(&line) {
            lines.push(line);
        }
    }
    lines.join("\n")
}

/// Lines of at most 120 characters; all but the first begin with `indent`.
pub(super) fn wrapped(text: &str, indent: &str) -> String {
    wrap(text, 120, indent.len())
}

#[cfg(test)]
mod tests {
    use super::super::tests::sample;
    use super::*;

    #[test]
    fn a_conclusion_that_is_not_measured_asks_for_nothing() {
        let mut published = sample();
        let first = &mut published.conclusions[0];
        (first.ours, first.holds, first.within) = (None, None, (Some(1.0), None));
        let files = published.markdown();
        let line = files[1].1.lines().find(|line| line.contains("larger chunks")).unwrap();
        assert!(line.contains("not measured"), "{line}");
        for shown in [line, published.html().as_str(), published.text(usize::MAX).as_str()] {
            assert!(!shown.contains("at least 1.00×"), "{shown}");
        }
        let text = published.text(usize::MAX);
        assert!(
            text.contains("\n1 conclusion is not measured; ") && !text.contains("larger chunks"),
            "{text}"
        );
    }

    /// What explains several is said once, here and on the page.
    #[test]
    fn an_explanation_stands_once() {
        let mut published = sample();
        let slower = Conclusion {
            claim: "50 seconds slower".to_owned(),
            ..published.conclusions[1].clone()
        };
        published.conclusions.push(slower);
        let (page, html) = (published.markdown().remove(1).1, published.html());
        let noted = |claim: &str| {
            let is_it = |line: &&str| line.contains(claim);
            page.lines().find(is_it).unwrap().split('|').nth(2).unwrap().trim().to_owned()
        };
        let claims = ["larger chunks", "40 seconds faster", "50 seconds slower"];
        assert_eq!(claims.map(noted), ["-", "1", "1"], "{page}");
        for shown in [&page, &html] {
            assert_eq!(shown.matches("Bytes bind.").count(), 1, "{shown}");
        }
        let said = "<span id=\"benchmark-plan-note-1\">Note 1: Bytes bind.</span>";
        let referred = "<a href=\"#benchmark-plan-note-1\">Note 1</a>";
        assert!(html.contains(said) && html.contains(referred), "{html}");
        assert!(!sample().html().contains("Note 1"), "one that stands alone needs no number");
    }

    #[test]
    fn there_is_an_index_and_a_file_for_each_document() {
        let files = sample().markdown();
        let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["README.md", "benchmark-plan.md"]);
        let (index, page) = (&files[0].1, &files[1].1);
        let command = "`narrows published --seeds 20 --write docs/published`";
        assert!(index.contains(command) && page.contains(command));
        assert!(index.contains("| Benchmark plan | times   | predicted "), "{index}");
        let flat = index.replace("\n  ", " ").replace('\n', " ");
        // What holds by half of an effect is counted apart from what is near the document's figure.
        let near = "1 of 2 hold, 0 of them within 10 % of the document's own figure, which it gives for 1 of them";
        for said in
            [format!("Of all conclusions {near}."), format!("Conclusions: {near}; of the 1 that")]
        {
            assert!(flat.contains(&said), "{said}: {index}");
        }
        assert!(
            index.contains("- *A range*: ") && flat.contains("the root of its ratio"),
            "{index}"
        );
        let fitted = page.lines().find(|line| line.contains("| 40 seconds faster")).unwrap();
        assert!(fitted.contains("| 2:28 to 2:30 | calibrated |"), "{fitted}");
        assert!(!index.contains("Not at the published size"));
        assert!(page.contains("| remote-recovery | 1 MB x 1 "), "{page}");
        assert!(fitted.contains("| does not hold | 1 "), "{fitted}");
        assert!(page.contains("## Notes\n\n1. Bytes bind."), "{page}");
        let small = Published { scale: 0.1, ..sample() }.markdown();
        assert!(small[0].1.contains("**Not at the published size: scale 0.1.**"));
        let command = "`narrows published --seeds 20 --scale 0.1 --write docs/published`";
        assert!(small[0].1.contains(command));
        let wide = |line: &&str| line.chars().count() > 120 && !line.starts_with('|');
        assert_eq!(files.iter().flat_map(|(_, text)| text.lines()).find(wide), None);
    }
}
