//! Outcomes that are kept while a bench goes on, so that many sittings add up to one.
//!
//! A line each, as they come, in a file of the target. Those of another build, or with probes where now none are made,
//! count nothing: their verdicts may be others.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::Path;

use anyhow::Context;
use insight::diagnosis::Class;
use serde::{Deserialize, Serialize};

use super::draw::Subject;
use super::trial::Outcome;
use crate::runs::append_inside;

/// The build: its version and its commit.
const BUILD: &str = env!("NARROWS_VERSION");

/// How often a seed is drawn, at most, where its draw is no case and its kind would get less than its share of cases.
const DRAWS: u8 = 3;

/// A case to try.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
pub(super) struct Job {
    pub(super) seed: u64,
    pub(super) subject: Subject,
    /// Draws of this seed before it, which were no cases.
    #[serde(default)]
    pub(super) refused: u8,
}

impl Job {
    /// The first draw of a seed.
    pub(super) fn first(seed: u64, subject: Subject) -> Job {
        Job { seed, subject, refused: 0 }
    }

    /// The next draw of the seed, after one that was no case, of a healthy cluster or of two causes (`right`): more of
    /// these draws are no cases than of a single cause, and they are to have their shares all the same.
    pub(super) fn redraw(self, right: &[Class]) -> Option<Job> {
        let refused = self.refused + 1;
        let has_share = self.subject == Subject::Recovery && right.len() != 1;
        (has_share && refused < DRAWS).then_some(Job { refused, ..self })
    }
}

/// What is known of the cases of one target.
#[derive(Debug, Default)]
pub(super) struct Kept {
    file: Option<File>,
    probes: bool,
    known: BTreeMap<Job, Line>,
}

/// What came of a case.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct Line {
    build: String,
    probes: bool,
    #[serde(flatten)]
    job: Job,
    /// How long it took.
    seconds: f64,
    outcome: Outcome,
}

impl Kept {
    /// What a folder has of earlier sittings, and how many lines there are of no use; keeps nothing without a folder.
    /// A line that broke off is as none.
    pub(super) fn open(
        dir: Option<&Path>,
        target: &str,
        probes: bool,
    ) -> anyhow::Result<(Kept, usize)> {
        let Some(dir) = dir else { return Ok((Kept { probes, ..Kept::default() }, 0)) };
        std::fs::create_dir_all(dir).with_context(|| format!("create {}", dir.display()))?;
        let path = dir.join(format!("{target}.jsonl"));
        let file = append_inside(&path);
        let mut file = file.with_context(|| format!("write {}", path.display()))?;
        let text = std::fs::read_to_string(&path);
        let text = text.with_context(|| format!("read {}", path.display()))?;
        if !text.is_empty() && !text.ends_with('\n') {
            file.write_all(b"\n")?;
        }
        let lines: Vec<Option<Line>> =
            text.lines().map(|line| serde_json::from_str(line).ok()).collect();
        let count = lines.len();
        let usable = |line: &Line| line.build == BUILD && line.probes == probes;
        let lines = lines.into_iter().flatten().filter(usable);
        let known: BTreeMap<Job, Line> = lines.map(|line| (line.job, line)).collect();
        let useless = count - known.len();
        Ok((Kept { file: Some(file), probes, known }, useless))
    }

    pub(super) fn has(&self, job: Job) -> bool {
        self.known.contains_key(&job)
    }

    /// Whether it is known to be no case.
    pub(super) fn is_refused(&self, job: Job) -> bool {
        let line = self.known.get(&job);
        line.is_some_and(|line| matches!(line.outcome, Outcome::Refused(_)))
    }

    /// Keeps what came of a case.
    pub(super) fn keep(&mut self, job: Job, seconds: f64, outcome: Outcome) -> anyhow::Result<()> {
        let line = Line { build: BUILD.to_owned(), probes: self.probes, job, seconds, outcome };
        if let Some(file) = &mut self.file {
            let text = serde_json::to_string(&line)?;
            file.write_all(format!("{text}\n").as_bytes()).context("keep what came of a case")?;
        }
        self.known.insert(job, line);
        Ok(())
    }

    /// What came of these, as far as it is known, and how long each took.
    pub(super) fn of(self, jobs: &[Job]) -> Vec<(Outcome, f64)> {
        let Kept { mut known, .. } = self;
        let taken = jobs.iter().filter_map(|job| known.remove(job));
        taken.map(|line| (line.outcome, line.seconds)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sittings_add_up_and_what_another_build_said_counts_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let job = |seed| Job::first(seed, Subject::Recovery);
        let refused = |why: &str| Outcome::Refused(why.to_owned());
        let open = |probes| Kept::open(Some(dir.path()), "embedded", probes).unwrap();
        let (mut first, useless) = open(false);
        assert_eq!((first.has(job(1)), useless), (false, 0));
        first.keep(job(1), 2.0, refused("one")).unwrap();
        first.keep(Job { subject: Subject::Bucket, ..job(1) }, 1.0, refused("two")).unwrap();
        let path = dir.path().join("embedded.jsonl");
        let mut text = std::fs::read_to_string(&path).unwrap();
        let other = text.lines().next().unwrap().replace(BUILD, "0.0.1").replace(":1,", ":3,");
        // The last line broke off.
        text.push_str(&format!("{other}\n{}", &other[..20]));
        std::fs::write(&path, text).unwrap();
        let (mut second, useless) = open(false);
        assert_eq!((second.has(job(1)), second.has(job(3)), useless), (true, false, 2));
        assert!(second.is_refused(job(1)) && !second.is_refused(job(3)));
        second.keep(job(3), 3.0, refused("three")).unwrap();
        drop(second);
        let (third, _) = open(false);
        let all = [job(3), job(5), job(1)];
        let seconds: Vec<f64> = third.of(&all).into_iter().map(|(_, seconds)| seconds).collect();
        assert_eq!(seconds, [3.0, 2.0]);
        assert!(!open(true).0.has(job(1)), "with probes other things are said");
        std::os::unix::fs::symlink(&path, dir.path().join("link.jsonl")).unwrap();
        let refused = Kept::open(Some(dir.path()), "link", false).unwrap_err();
        assert!(format!("{refused:#}").contains("link.jsonl: something else"), "{refused:#}");
    }
}
