//! Verdicts on cases whose causes are known: scores for terminals, as a page of documentation, as JSON, as pictures.

use std::collections::{BTreeMap, BTreeSet};

use insight::diagnosis::Class;
use insight::diagnosis::score::{
    Scored, Scores, Verdicts, confusion, held_out, is_right, label, majority, passive,
    passive_seconds, probed, probed_seconds, scores,
};
use insight::stats::median;
use insight::words;
use maud::Markup;
use serde_json::{Value, json};

use crate::grid::{dash, grid};
use crate::svg::matrix::Matrix;
use crate::svg::scatter::{Dot, Mark, Scatter};

/// What is told of each who judged.
const COLUMNS: [&str; 9] = [
    "", "cases", "AC@1", "AC@3", "macro-F1", "false alarms", "unknown", "gain off by",
    "right after",
];
const HALVES: &str =
    "Scores are those of the odd seeds; thresholds are chosen by looking at the even ones alone.";
/// Mistakes that are told.
const WORST: usize = 5;
const CSS: &str = "text{font:12px sans-serif;fill:#333}.grid{stroke:#ccc}.right rect{fill:#2a7d4f}\
    .wrong rect{fill:#b3261e}.dot{fill:#2a5d9f}.band{fill:#8884}.same{stroke:#888}.reach{stroke:#2a5d9f}\
    @media(prefers-color-scheme:dark){text{fill:#ddd}.grid{stroke:#555}}";

/// What the bench found on one target.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bench {
    /// Where: `virtual`, `embedded`, `opensearch`, `recordings`.
    pub target: String,
    /// Cases with their verdicts.
    pub cases: Vec<Scored>,
    /// Draws that are no cases, by why.
    pub refused: BTreeMap<String, usize>,
    /// Whether cases were drawn from seeds, so that scores are those of the odd ones. Otherwise all are scored.
    pub is_drawn: bool,
    /// How long each draw took, seconds; empty where that is not told.
    pub took_s: Vec<f64>,
}

/// A line of the table of scores.
struct Line {
    who: String,
    cases: usize,
    scores: Scores,
    /// When the verdict was right and stayed so, median; of those who only look once there is none.
    right_after_s: Option<f64>,
}

impl Bench {
    /// The cases that scores are of.
    fn scored(&self) -> Vec<&Scored> {
        if self.is_drawn { held_out(&self.cases) } else { self.cases.iter().collect() }
    }

    /// How many of the scored cases have another first verdict than the one that is right.
    pub fn wrong(&self) -> usize {
        self.scored().iter().filter(|case| !is_right(case, &case.verdicts)).count()
    }

    /// One object for scripts. Scores are those of the held-out half of the seeds, where cases were drawn.
    pub fn json(&self) -> Value {
        let name = |class: &Class| json!(class).as_str().unwrap_or_default().to_owned();
        let class = |case: &Scored| match &case.classes[..] {
            [] => "healthy".to_owned(),
            several => several.iter().map(name).collect::<Vec<_>>().join("+"),
        };
        let cases: Vec<Value> = self
            .cases
            .iter()
            .map(|case| {
                json!({
                    "target": case.target,
                    "class": class(case),
                    "severity": case.severity,
                    "seed": case.seed,
                    "verdicts": case.verdicts,
                    "next": case.next,
                    "promised": case.promised,
                    "got": case.got,
                    "seconds": case.seconds,
                })
            })
            .collect();
        json!({ "cases": cases, "scores": scores(&self.scored(), &passive) })
    }

    /// For a terminal. Ends with a line break.
    pub fn text(&self) -> String {
        let rows = self.lines().into_iter().map(|line| cells(&line));
        let mut text = grid(COLUMNS.map(|name| (name, !name.is_empty())), rows).join("\n");
        text.push_str(&format!("\n\n{}\n", self.about().join("\n")));
        if self.is_drawn {
            text.push_str(&format!("{HALVES}\n"));
        }
        let mistakes = self.mistakes();
        if !mistakes.is_empty() {
            text.push_str("\nmistakes\n");
        }
        for case in mistakes {
            text.push_str(&format!("  {}\n", mistake(case, self.is_drawn)));
        }
        text
    }

    /// A page of documentation; `command` of `build` made it, and pictures stand beside it.
    pub fn markdown(&self, command: &str, build: &str) -> String {
        let mut text = format!(
            "# Verdicts on trial: {}\n\nWritten by `{command}`\nof narrows {build}.\n\n{HALVES}\n\
             [README.md](README.md) says what a case is and what each figure means.\n\n",
            self.target
        );
        text.push_str(&format!(
            "|{} |\n|{}\n",
            COLUMNS.join(" | "),
            " --- |".repeat(COLUMNS.len())
        ));
        for line in self.lines() {
            text.push_str(&format!("| {} |\n", cells(&line).join(" | ")));
        }
        text.push('\n');
        for line in self.about() {
            text.push_str(&format!("- {line}\n"));
        }
        let target = &self.target;
        text.push_str(&format!(
            "\n![what was right, and what was said]({target}-matrix.svg)\n\n\
             ![the gain that was promised, and the one that came]({target}-gains.svg)\n\n\
             ## By cause\n\n| cause | cases | right |\n| --- | --- | --- |\n"
        ));
        let mut kinds: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        for case in self.scored() {
            let counts = kinds.entry(&case.name).or_default();
            counts.0 += 1;
            counts.1 += usize::from(is_right(case, &case.verdicts));
        }
        for (name, (all, right)) in kinds {
            text.push_str(&format!("| {name} | {all} | {right} |\n"));
        }
        text.push_str("\n## What was said\n\n| right | said | cases |\n| --- | --- | --- |\n");
        for ((right, said), count) in confusion(&self.scored(), &passive) {
            text.push_str(&format!("| {} | {} | {count} |\n", label(right), label(said)));
        }
        text.push_str("\n## Draws that are no cases\n\n| why | draws |\n| --- | --- |\n");
        for (why, count) in &self.refused {
            text.push_str(&format!("| {why} | {count} |\n"));
        }
        text.push_str("\n## Mistakes\n\n");
        let mistakes = self.mistakes();
        text.push_str(if mistakes.is_empty() {
            "None.\n"
        } else {
            "| case | said | why |\n| --- | --- | --- |\n"
        });
        let cell = |words: &str| words.replace('|', "\\|");
        for case in mistakes {
            let right = right_of(case);
            let (said, why) = (cell(&case.sentence), cell(reason(case)));
            text.push_str(&format!(
                "| {}, severity {}, seed {} ({right}) | {said} | {why} |\n",
                case.name, case.severity, case.seed
            ));
        }
        text
    }

    /// The confusion matrix of looking alone, as a picture by itself.
    pub fn matrix_svg(&self) -> String {
        let counts = confusion(&self.scored(), &passive);
        let labels: BTreeSet<Option<Class>> =
            counts.keys().flat_map(|(right, said)| [*right, *said]).collect();
        let row = |right: &Option<Class>| {
            labels.iter().map(|said| counts.get(&(*right, *said)).copied().unwrap_or(0)).collect()
        };
        let matrix = Matrix {
            id: "matrix",
            title: format!("What was right and what was said, {}", self.target),
            labels: labels.iter().map(|one| label(*one).to_owned()).collect(),
            counts: labels.iter().map(row).collect(),
        };
        alone(matrix.render())
    }

    /// Gains promised and gains got, as a picture by itself.
    pub fn gains_svg(&self) -> String {
        let dot = |case: &&Scored| {
            let (promised, got) = (case.promised?, case.got.filter(|got| *got > 0.0)?);
            Some(Dot {
                class: "gain",
                mark: Mark::Circle,
                x: promised,
                ratio: got / promised,
                range: None,
                title: format!("{}, seed {}", case.name, case.seed),
            })
        };
        let dots: Vec<Dot> = self.scored().iter().filter_map(dot).collect();
        let scatter = Scatter {
            id: "gains",
            title: "Gains promised and gains got",
            desc: words::counted(dots.len(), "finding", "findings") + " that named a setting.",
            size: (480.0, 360.0),
            axes: ("promised", "got, off by"),
            unit: "×",
            band: 0.15,
            dots,
        };
        alone(scatter.render())
    }

    fn lines(&self) -> Vec<Line> {
        let cases = self.scored();
        let line = |who: &str, of: &[&Scored], verdicts: Verdicts<'_>| Line {
            who: who.to_owned(),
            cases: of.len(),
            scores: scores(of, verdicts),
            right_after_s: None,
        };
        let timed = |line: Line, of: &[&Scored], seconds: fn(&Scored) -> Option<f64>| {
            let all: Vec<f64> = of.iter().filter_map(|case| seconds(case)).collect();
            Line { right_after_s: median(&all), ..line }
        };
        let looking =
            |who: &str, of: &[&Scored]| timed(line(who, of, &passive), of, passive_seconds);
        let mut lines = vec![looking("looking", &cases)];
        if cases.iter().any(|case| case.probed.is_some()) {
            lines.push(timed(line("with probes", &cases, &probed), &cases, probed_seconds));
        }
        let severities: &[u32] = if self.is_drawn { &[1, 2, 3] } else { &[] };
        for &severity in severities {
            let of: Vec<&Scored> = cases
                .iter()
                .copied()
                .filter(|case| case.severity == severity && !case.classes.is_empty())
                .collect();
            lines.push(looking(&format!("looking, severity {severity}"), &of));
        }
        let two: Vec<&Scored> = cases.iter().copied().filter(|c| c.classes.len() > 1).collect();
        lines.push(looking("looking, two causes", &two));
        // What these say is chosen on the other half, as thresholds are.
        let other: Vec<&Scored> = self.cases.iter().filter(|case| case.seed % 2 == 0).collect();
        let most = majority(if self.is_drawn { &other } else { &cases });
        let without_gains: Vec<Scored> = cases
            .iter()
            .map(|case| Scored { promised: None, got: None, ..(*case).clone() })
            .collect();
        let plain: Vec<&Scored> = without_gains.iter().collect();
        let one = |class: Option<Class>| class.into_iter().collect::<Vec<_>>();
        lines.push(line("always the commonest", &plain, &|_| one(most)));
        lines.push(line("lint of settings", &plain, &|case| one(case.guesses.lint)));
        lines.push(line("highest utilisation", &plain, &|case| one(case.guesses.utilisation)));
        lines
    }

    fn about(&self) -> Vec<String> {
        let cases = self.scored();
        let share = |is: fn(&&&Scored) -> bool| {
            words::percent(cases.iter().filter(is).count() as f64 / cases.len().max(1) as f64)
        };
        let refused: usize = self.refused.values().sum();
        let mut about = vec![format!(
            "{} of the {} scored cases are healthy, {} have two causes, {} are of no class",
            share(|case| case.classes.is_empty()),
            cases.len(),
            share(|case| case.classes.len() > 1),
            share(|case| case.classes == [Class::Unknown]),
        )];
        if let Some(next) = scores(&cases, &passive).next {
            about.push(format!(
                "next right: {}, of the cases with two causes whose first finding by looking is right",
                words::percent(next)
            ));
        }
        if self.is_drawn {
            let were = words::counted(
                refused,
                "draw of both halves was no case",
                "draws of both halves were no cases",
            );
            about.push(were);
        }
        // In virtual time nobody waits for a case.
        if let Some(s) = median(&self.took_s).filter(|_| self.target != "virtual") {
            about.push(format!("a draw took {s:.0} s, median, from its first run to its last"));
        }
        about
    }

    /// Wrong verdicts of the held-out half: alarms on what is healthy first, then wrong causes, then what stayed
    /// unknown.
    fn mistakes(&self) -> Vec<&Scored> {
        let mut wrong: Vec<&Scored> =
            self.scored().into_iter().filter(|case| !is_right(case, &case.verdicts)).collect();
        let badness = |case: &&Scored| match case.verdicts.first() {
            Some(_) if case.classes.is_empty() => 0,
            Some(Class::Unknown) | None => 2,
            Some(_) => 1,
        };
        // The stronger a cause, the worse it is to miss it.
        wrong.sort_by_key(|case| (badness(case), 3 - case.severity.min(3), case.seed));
        wrong.truncate(WORST);
        wrong
    }
}

fn cells(line: &Line) -> Vec<String> {
    // The next limit stands below the table.
    let Scores { ac1, ac3, macro_f1, false_alarms, unknown, gain_error_median, next: _ } =
        line.scores;
    let share = |value: Option<f64>| value.map_or_else(dash, words::percent);
    let f1 = macro_f1.map_or_else(dash, |value| format!("{value:.2}"));
    let shares = [share(false_alarms), share(unknown), share(gain_error_median)];
    let mut cells = vec![line.who.clone(), line.cases.to_string(), share(ac1), share(ac3), f1];
    cells.extend(shares);
    cells.push(line.right_after_s.map_or_else(dash, |s| format!("{s:.1} s")));
    cells
}

fn right_of(case: &Scored) -> String {
    let names: Vec<&str> = case.classes.iter().map(|class| class.label()).collect();
    if names.is_empty() { "healthy".to_owned() } else { names.join(", then ") }
}

fn mistake(case: &Scored, is_drawn: bool) -> String {
    let Scored { name, severity, seed, sentence, .. } = case;
    let drawn =
        if is_drawn { format!(", severity {severity}, seed {seed}") } else { String::new() };
    let why = reason(case);
    format!("{name}{drawn}: right is {}; said: {sentence}; why: {why}", right_of(case))
}

/// Why another cause was named than the one that is right.
fn reason(case: &Scored) -> &str {
    case.reason.as_deref().unwrap_or("nothing tells")
}

/// A chart that is a file of its own.
fn alone(svg: Markup) -> String {
    let text = svg.into_string();
    let (head, rest) = text.split_once('>').unwrap_or((&text, ""));
    let head = head.replacen("<svg", "<svg xmlns=\"http://www.w3.org/2000/svg\"", 1);
    format!("{head}><style>{CSS}</style>{rest}\n")
}

#[cfg(test)]
mod tests {
    use insight::diagnosis::score::Guesses;

    use super::*;

    fn case(seed: u64, classes: &[Class], verdicts: &[Class]) -> Scored {
        Scored {
            target: "virtual".to_owned(),
            name: "a case".to_owned(),
            classes: classes.to_vec(),
            severity: 2,
            seed,
            verdicts: verdicts.to_vec(),
            sentence: "so | so".to_owned(),
            reason: Some("1 | 2".to_owned()),
            promised: Some(2.0),
            got: Some(1.9),
            seconds: Some(0.5),
            guesses: Guesses { lint: Some(Class::RateLimit), utilisation: None },
            ..Scored::default()
        }
    }

    fn bench() -> Bench {
        let cases = vec![
            case(1, &[Class::RateLimit, Class::Disk], &[Class::RateLimit]),
            case(2, &[], &[]),
            case(3, &[], &[Class::Latency]),
        ];
        let refused = [("it costs nothing".to_owned(), 2)].into();
        let took_s = vec![20.0, 30.0, 90.0];
        Bench { target: "virtual".to_owned(), cases, refused, is_drawn: true, took_s }
    }

    #[test]
    fn scripts_get_the_fields_that_are_documented_and_no_others() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/diagnosis/json.md");
        let page = std::fs::read_to_string(page).unwrap();
        let (_, of_bench) = page.split_once("\n## `narrows diagnose --bench --json`\n").unwrap();
        let cell = |line: &str| Some(line.strip_prefix("| `")?.split_once("` |")?.0.to_owned());
        let documented: BTreeSet<String> = of_bench.lines().filter_map(cell).collect();
        let json = bench().json();
        let parts = [("", &json), ("cases[].", &json["cases"][0]), ("scores.", &json["scores"])];
        let found = parts.into_iter().flat_map(|(path, part)| {
            let keys = part.as_object().unwrap().keys();
            keys.map(move |key| format!("{path}{key}"))
        });
        assert_eq!(found.collect::<BTreeSet<String>>(), documented);
        assert_eq!(json["cases"][0]["class"], "rate_limit+disk");
        assert_eq!(json["cases"][1]["class"], "healthy");
        assert_eq!(json["scores"]["false_alarms"], 1.0);
    }

    #[test]
    fn how_often_the_next_limit_is_right_stands_below_the_scores_where_there_are_two_causes() {
        let mut bench = bench();
        let says = |bench: &Bench, words: &str| {
            let page = bench.markdown("narrows diagnose", "0.1.0");
            [bench.text(), page].iter().all(|all| all.contains(words))
        };
        assert!(says(&bench, "next right: 0 %, of the cases with two causes"), "{}", bench.text());
        bench.cases[0].next = Some(Class::Disk);
        assert!(
            says(&bench, "next right: 100 %, of the cases with two causes"),
            "{}",
            bench.text()
        );
        assert_eq!(bench.json()["scores"]["next"], 1.0);
        assert_eq!(bench.json()["cases"][0]["next"], "disk");
        bench.cases.remove(0);
        assert!(!bench.text().contains("next right"), "{}", bench.text());
    }

    #[test]
    fn a_verdict_is_right_after_a_time_by_looking_and_another_with_probes() {
        let mut bench = bench();
        let first = |text: &str, who: &str| {
            let line = text.lines().find(|line| line.starts_with(who)).unwrap().to_owned();
            line.trim_end_matches([' ', '|']).to_owned()
        };
        bench.cases[0].seconds = Some(0.7);
        bench.cases[2].seconds = None;
        bench.cases[0].probed = Some(vec![Class::RateLimit]);
        bench.cases[0].probed_seconds = Some(12.3);
        let page = bench.markdown("narrows diagnose", "0.1.0");
        assert!(first(&page, "| looking |").ends_with("| 0.7 s"), "{page}");
        assert!(first(&page, "| with probes |").ends_with("| 12.3 s"), "{page}");
        assert!(first(&page, "| looking, severity 2 |").ends_with("| 0.7 s"), "{page}");
        assert!(first(&page, "| always the commonest |").ends_with("| -"), "{page}");
    }

    #[test]
    fn the_worst_mistakes_are_told_and_pictures_stand_alone() {
        let bench = bench();
        let halves = "\nScores are those of the odd seeds; ";
        assert!(bench.text().contains(halves), "two of three cases are scored: {}", bench.text());
        assert!(bench.text().contains("right is healthy; said: so | so"), "{}", bench.text());
        let page = bench.markdown("narrows diagnose", "0.1.0");
        assert!(
            page.contains("\n| | cases | AC@1 |")
                && page.contains("| gain off by | right after |\n"),
            "{page}"
        );
        assert!(bench.text().contains("; why: 1 | 2\n"), "{}", bench.text());
        assert!(page.contains("| case | said | why |\n") && page.contains("| 1 \\| 2 |"), "{page}");
        assert!(page.contains("\nWritten by `narrows diagnose`\nof narrows 0.1.0.\n"), "{page}");
        assert!(page.contains("so \\| so") && page.contains("| it costs nothing | 2 |"), "{page}");
        let said = "| right | said | cases |\n| --- | --- | --- |\n| healthy | latency | 1 |\n";
        assert!(page.contains(said), "the picture's counts, in text: {page}");
        for svg in [bench.matrix_svg(), bench.gains_svg()] {
            assert!(svg.starts_with("<svg xmlns=") && svg.trim_end().ends_with("</svg>"), "{svg}");
        }
    }
}
