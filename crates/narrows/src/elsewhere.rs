//! The conclusions of the documents where time is real: on processes of the embedded engine, and on OpenSearch.

use std::path::Path;

use anyhow::Context;
use clusters::{DEFAULT_HEAP, Release};
use insight::Summary;
use lab::conclusions::{Conclusion, DOCUMENTS, Elsewhere, Figure};
use lab::plan::Plan;
use lab::{Ended, OpenSearchNodes, Options, Place};
use report::published::{Found, Place as Shown};

use crate::seeds::figures;
use crate::terminal::say;

/// The name of its file in a folder of published figures.
pub(crate) fn file_name(on: Elsewhere) -> String {
    format!("{}.json", on.id())
}

/// What is said of a conclusion that a place has no figure of.
const NEWER: &str = "Not tried: this row is newer than the run.";

/// What was written into a folder; a place that was never tried is left out.
pub(crate) fn read(folder: &Path) -> anyhow::Result<Vec<Shown>> {
    let mut found = Vec::new();
    for on in Elsewhere::ALL {
        let path = folder.join(file_name(on));
        match std::fs::read_to_string(&path) {
            Ok(text) => {
                let shown = with_newer(on, &text);
                found.push(shown.with_context(|| format!("read {}", path.display()))?);
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(error).with_context(|| format!("read {}", path.display())),
        }
    }
    Ok(found)
}

/// What docs/published has of every place.
pub(crate) fn known() -> anyhow::Result<Vec<Shown>> {
    let known = |on: Elsewhere| {
        with_newer(on, on.known()).with_context(|| format!("read what is known of {}", on.id()))
    };
    Elsewhere::ALL.into_iter().map(known).collect()
}

/// Every conclusion that says the same at a place, with its document's id.
fn compared(on: Elsewhere) -> impl Iterator<Item = (&'static str, &'static Conclusion)> {
    let all = DOCUMENTS.iter().flat_map(|d| d.conclusions.iter().map(move |c| (d.id, c)));
    all.filter(move |(_, conclusion)| on.can_compare(&conclusion.measure))
}

/// What was found at a place, and those that its run did not know.
fn with_newer(on: Elsewhere, text: &str) -> serde_json::Result<Shown> {
    let mut shown: Shown = serde_json::from_str(text)?;
    let is_known = |document: &str, claim: &str| {
        shown.conclusions.iter().any(|one| one.document == document && one.claim == claim)
    };
    let missing = compared(on).filter(|(document, one)| !is_known(document, one.claim));
    let untried = |(document, one): (&str, &Conclusion)| Found {
        document: document.to_owned(),
        claim: one.claim.to_owned(),
        why: NEWER.to_owned(),
        ..Found::default()
    };
    let untried: Vec<Found> = missing.map(untried).collect();
    shown.conclusions.extend(untried);
    Ok(shown)
}

/// What was found at a place, and what went wrong there: the conclusions of a plan that failed have no figure.
pub(crate) struct Tried {
    pub(crate) found: Shown,
    pub(crate) failed: Vec<String>,
}

/// Runs every plan of a place, with `options` for each, and judges what can be compared. `theirs` are the documents'
/// figures.
pub(crate) fn run(
    on: Elsewhere,
    place: &Place,
    options: impl Fn(Vec<String>) -> Options,
    theirs: impl Fn(Figure) -> Option<f64>,
) -> anyhow::Result<Tried> {
    let mapped = move |figure: Figure| on.row(figure.row).map(|row| Figure { row, ..figure });
    let wanted = || compared(on).flat_map(|(_, c)| c.measure.figures()).filter_map(mapped);
    let mut values: Vec<(Figure, f64)> = Vec::new();
    let mut by_lap: Vec<Vec<(Figure, f64)>> = Vec::new();
    let mut failed = Vec::new();
    for plan in on.plans() {
        let of_plan = || wanted().filter(move |figure| figure.row.plan == *plan);
        let mut variants: Vec<String> = Vec::new();
        for figure in of_plan() {
            if !variants.iter().any(|known| known == figure.row.variant) {
                variants.push(figure.row.variant.to_owned());
            }
        }
        let done = lab::execute(&Plan::open(plan)?, place, &options(variants))?;
        match done.ended {
            Ok(Ended::Complete) => {}
            Ok(Ended::Interrupted) => anyhow::bail!("interrupted in {plan}"),
            Err(error) => {
                say!("{plan} failed: {error}");
                failed.push(format!("{plan}: {error}; its record is in {}", done.dir.display()));
            }
        }
        values.extend(figures(of_plan(), &done.run, &Summary::of(&done.run)));
        let laps = done.run.rows.iter().map(|row| row.lap).max().unwrap_or(0);
        by_lap.resize_with(by_lap.len().max(laps as usize), Vec::new);
        for (lap, values) in (1..=laps).zip(&mut by_lap) {
            let run = done.run.of_lap(lap);
            values.extend(figures(of_plan(), &run, &Summary::of(&run)));
        }
    }
    let judged = |(document, conclusion): (&str, &Conclusion)| {
        let published = conclusion.measure.value(&theirs);
        let judge = |values: &[(Figure, f64)]| {
            let ours = |figure: Figure| {
                let figure = mapped(figure)?;
                values.iter().find(|(other, _)| *other == figure).map(|(_, value)| *value)
            };
            conclusion.judge(conclusion.measure.value(ours), published)
        };
        let all = judge(&values);
        let laps: Vec<bool> = by_lap.iter().filter_map(|values| judge(values).holds).collect();
        let laps_holding = laps.iter().filter(|holds| **holds).count();
        let why = on.why(document, conclusion.claim, all.holds, laps_holding > 0);
        Found {
            document: document.to_owned(),
            claim: conclusion.claim.to_owned(),
            ours: all.value,
            holds: all.holds,
            why: why.to_owned(),
            laps: laps.len(),
            laps_holding,
        }
    };
    let asked = options(Vec::new());
    let laps = asked.laps.unwrap_or(1);
    let found = Shown {
        on: match place {
            Place::OpenSearch(nodes) => format!("OpenSearch {}", nodes.release.name),
            _ => "processes".to_owned(),
        },
        date: lab::now()[..10].to_owned(),
        cores: crate::seeds::cores(),
        scale: asked.scale,
        laps,
        command: again(on, place, asked.scale, laps),
        conclusions: compared(on).map(judged).collect(),
    };
    Ok(Tried { found, failed })
}

/// The command that makes the same again. Of a node's options those that are not the default are in it.
fn again(on: Elsewhere, place: &Place, scale: f64, laps: u32) -> String {
    let mut command = format!("narrows published --on {}", on.id());
    if let Place::OpenSearch(OpenSearchNodes { release, heap, home }) = place {
        if let Some(home) = home {
            command += &format!(" --opensearch-home {}", home.display());
        } else if release.name != Release::DEFAULT {
            command += &format!(" --opensearch-version {}", release.name);
        }
        if heap != DEFAULT_HEAP {
            command += &format!(" --heap {heap}");
        }
    }
    command + &format!(" --scale {scale} --laps {laps} --write docs/published")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conclusion_that_is_newer_than_a_run_is_said_not_to_have_been_tried() {
        let dir = tempfile::tempdir().unwrap();
        let (document, first) = compared(Elsewhere::Embedded).next().unwrap();
        let tried = Found {
            document: document.to_owned(),
            claim: first.claim.to_owned(),
            ours: Some(4.0),
            holds: Some(true),
            ..Found::default()
        };
        let written = Shown { conclusions: vec![tried.clone()], ..Shown::default() };
        let path = dir.path().join(file_name(Elsewhere::Embedded));
        std::fs::write(path, serde_json::to_string(&written).unwrap()).unwrap();
        let places = read(dir.path()).unwrap();
        let [shown] = places.as_slice() else { panic!("one place was tried: {places:?}") };
        let (of_run, newer) = shown.conclusions.split_first().unwrap();
        assert_eq!(of_run, &tried);
        assert_eq!(newer.len() + 1, compared(Elsewhere::Embedded).count());
        assert!(newer.iter().all(|one| one.holds.is_none() && one.why == NEWER), "{newer:?}");
        for (on, place) in Elsewhere::ALL.into_iter().zip(known().unwrap()) {
            assert_eq!(place.conclusions.len(), compared(on).count(), "{}", place.on);
        }
    }

    #[test]
    fn what_was_found_says_the_command_that_finds_it_again() {
        let nodes = |name: &str, heap: &str| {
            let (release, heap) = (Release::named(name).unwrap(), heap.to_owned());
            Place::OpenSearch(OpenSearchNodes { release, heap, home: None })
        };
        let place = nodes(Release::DEFAULT, DEFAULT_HEAP);
        assert_eq!(
            again(Elsewhere::OpenSearch, &place, 0.5, 2),
            "narrows published --on opensearch --scale 0.5 --laps 2 --write docs/published"
        );
        let place = nodes("1.3.13", "1g");
        assert_eq!(
            again(Elsewhere::OpenSearch, &place, 1.0, 1),
            "narrows published --on opensearch --opensearch-version 1.3.13 --heap 1g --scale 1 --laps 1 --write \
             docs/published"
        );
    }
}
