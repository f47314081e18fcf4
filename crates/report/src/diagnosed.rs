//! The table of injected causes and the verdicts on them: for terminals, as Markdown, as JSON.

use insight::diagnosis::probe::ProbeResult;
use serde::Serialize;
use serde_json::{Value, json};

use crate::style::wrap;

/// Columns of prose on a page of documentation.
const WIDTH: usize = 120;

/// A verdict.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Judged {
    /// Whether it is what was injected.
    pub is_right: bool,
    /// Class of the first finding; `healthy` where there is none.
    pub class: String,
    /// Its sentence.
    pub sentence: String,
    /// Classes of the other findings.
    pub others: Vec<String>,
    /// The setting that lifts it, with its value and the one to try.
    pub lift: Option<String>,
}

/// One case on one cluster.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// What was diagnosed, with its version.
    pub cluster: String,
    /// The case.
    pub case: String,
    /// What was injected.
    pub injected: String,
    /// The classes that are right; none where nothing is to be found.
    pub expected: Vec<String>,
    /// The verdict without probes.
    pub passive: Judged,
    /// The verdict with probes; none where nothing could be probed.
    pub probed: Option<Judged>,
    /// What the probes said.
    pub probes: Vec<ProbeResult>,
}

/// All that `narrows diagnose` found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Diagnosed {
    /// A row for every case and cluster.
    pub rows: Vec<Row>,
}

impl Diagnosed {
    /// Verdicts that are not what was injected, by looking or with probes.
    pub fn wrong(&self) -> usize {
        let verdicts = self.rows.iter().flat_map(|row| [Some(&row.passive), row.probed.as_ref()]);
        verdicts.flatten().filter(|judged| !judged.is_right).count()
    }

    /// For a terminal. Ends with a line break.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for row in &self.rows {
            let mark = |judged: &Judged| if judged.is_right { "right" } else { "WRONG" };
            text.push_str(&format!("{}, {}: {}\n", row.cluster, row.case, row.injected));
            text.push_str(&format!(
                "  looking  {}  {}: {}\n",
                mark(&row.passive),
                row.passive.class,
                row.passive.sentence
            ));
            if let Some(probed) = &row.probed {
                text.push_str(&format!("  probing  {}  {}\n", mark(probed), probed.class));
            }
            for outcome in &row.probes {
                text.push_str(&format!("           {}\n", outcome.sentence()));
            }
        }
        text
    }

    /// As a page of documentation; `command` of `build` made it.
    pub fn markdown(&self, command: &str, build: &str) -> String {
        let begins = format!(
            "Written by `{command}` of narrows {build}. It starts two nodes of each kind, injects one cause after \
             another, and has `narrows explain` look at it for six seconds, then with `--probe`. Bold is wrong. \
             `narrows explain --rules` prints what each class is recognised by."
        );
        let mut text = format!(
            "# Diagnosis\n\n{}\n\n| injected | cluster | looking | with `--probe` | also found | what lifts it |\n\
             | --- | --- | --- | --- | --- | --- |\n",
            wrap(&begins, WIDTH, 0)
        );
        let shown = |judged: &Judged| match judged.is_right {
            true => cell(&judged.class),
            false => format!("**{}**", cell(&judged.class)),
        };
        for row in self.in_order() {
            let last = row.probed.as_ref().unwrap_or(&row.passive);
            text.push_str(&format!(
                "| {}: {} | {} | {} | {} | {} | {} |\n",
                cell(&row.case),
                cell(&row.injected),
                cell(&row.cluster),
                shown(&row.passive),
                row.probed.as_ref().map_or_else(|| "-".to_owned(), shown),
                cell(&last.others.join(", ")),
                cell(last.lift.as_deref().unwrap_or("-")),
            ));
        }
        text.push_str("\n## In words\n");
        for row in self.in_order() {
            text.push_str(&format!("\n### {}, {}\n", cell(&row.case), cell(&row.cluster)));
            let (class, sentence) = (&row.passive.class, &row.passive.sentence);
            // A diagnosis that finds nothing begins with that word.
            let of_class = sentence.strip_prefix(&format!("{class}: ")).unwrap_or(sentence);
            text.push_str(&format!("{}\n", wrap(&format!("{class}: {of_class}."), WIDTH, 0)));
            for outcome in &row.probes {
                let line = format!("- {}", outcome.sentence());
                text.push_str(&format!("{}\n", wrap(&line, WIDTH, 2)));
            }
        }
        text
    }

    /// As one object.
    pub fn json(&self) -> Value {
        json!({ "wrong": self.wrong(), "rows": self.rows })
    }

    /// The same case on one cluster after the other.
    fn in_order(&self) -> Vec<&Row> {
        let first = |row: &Row| self.rows.iter().position(|other| other.case == row.case);
        let mut rows: Vec<&Row> = self.rows.iter().collect();
        rows.sort_by_key(|row| first(row));
        rows
    }
}

/// Text in a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(case: &str, cluster: &str, is_right: bool) -> Row {
        Row {
            cluster: cluster.to_owned(),
            case: case.to_owned(),
            injected: "a|b".to_owned(),
            expected: vec!["latency".to_owned()],
            passive: Judged {
                is_right,
                class: "latency".to_owned(),
                sentence: "it is far".to_owned(),
                others: vec![],
                lift: None,
            },
            probed: None,
            probes: vec![],
        }
    }

    #[test]
    fn wrong_verdicts_are_counted_and_seen() {
        let rows =
            vec![row("link", "os", true), row("cpu", "os", true), row("link", "engine", false)];
        let diagnosed = Diagnosed { rows };
        assert_eq!(diagnosed.wrong(), 1);
        assert!(diagnosed.text().contains("WRONG"), "{}", diagnosed.text());
        let page = diagnosed.markdown("narrows diagnose", "0.1.0");
        let lines: Vec<&str> = page.lines().filter(|line| line.starts_with("| ")).collect();
        // The same case stands together, whatever was diagnosed first.
        let cases: Vec<&str> = lines[2..].iter().map(|line| &line[2..6]).collect();
        assert_eq!(cases, ["link", "link", "cpu:"], "{page}");
        assert!(lines[3].contains("**latency**") && lines[3].contains("a\\|b"), "{page}");
        assert_eq!(diagnosed.json()["rows"][2]["passive"]["is_right"], false);
    }

    #[test]
    fn the_page_names_its_build_and_keeps_to_the_width_of_documents() {
        let mut far = row("link", "os", true);
        far.passive.sentence = "it is far away ".repeat(20);
        let page = Diagnosed { rows: vec![far] }.markdown("narrows diagnose", "0.1.0 (abc)");
        assert!(page.contains("Written by `narrows diagnose` of narrows 0.1.0 (abc). "), "{page}");
        let wide = |line: &&str| line.chars().count() > WIDTH && !line.starts_with('|');
        assert_eq!(page.lines().filter(wide).count(), 0, "{page}");
    }
}
