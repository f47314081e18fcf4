//! A twin is asked: as it is, and with settings that are tried.

use std::io;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::mpsc;
use std::thread;

use anyhow::Context;
use insight::what_if::{Answer, answers};
use lab::plan::Plan;
use lab::twin::{self, TwinPlan};
use lab::{Ended, Options, Place, Watch};
use tokio::sync::watch;

use crate::exit::{self, Usage};
use crate::interrupt;
use crate::progress::Progress;
use crate::runs;
use crate::seeds::cores;
use crate::terminal::say;

/// What a twin takes of memory: `docs/benchmarks/what_if.md` has 16 to 19 kB a copy.
const COPY_BYTES: u64 = 24_000;
const TWIN_BYTES: u64 = 100_000_000;
/// Of a thread; the first one of a process has as much.
const STACK_BYTES: usize = 8 << 20;
/// What is said where settings that are tried fail, whose record nobody reads.
const NOT_ALL: &str = "not all settings could be tried";

/// How a twin is asked, whatever it is that is asked.
#[derive(Clone, Copy)]
pub(super) struct Asking<'a> {
    /// Where runs are kept.
    pub(super) runs: &'a Path,
    /// Of everything random; the plan's own where there is none.
    pub(super) seed: Option<u64>,
    /// How often what is not known is drawn.
    pub(super) draws: u32,
}

/// The answers, and the page of the run where it is kept.
type Answered = (Vec<Answer>, Option<PathBuf>);

/// What is told of the twin, and of the settings that are tried: that may fail, or be interrupted, once the first is
/// known.
type Both = (Answered, anyhow::Result<Vec<Answer>>);

impl<'a> Asking<'a> {
    /// Asks the twin so often, and once with settings that are `tried`: at the same time where this machine has room
    /// for two worlds, which have one thread each and nothing in common. Of the two runs that of the draws is begun
    /// last, so that `last` names it.
    pub(super) fn ask(self, plan: &TwinPlan, tried: Option<&TwinPlan>) -> anyhow::Result<Both> {
        match tried {
            None => Ok((self.kept().execute(plan, self.draws)?, Ok(Vec::new()))),
            Some(tried) if has_room_for_two(tried) => self.side_by_side(plan, tried),
            Some(tried) => self.one_after_the_other(plan, tried),
        }
    }

    fn one_after_the_other(self, plan: &TwinPlan, tried: &TwinPlan) -> anyhow::Result<Both> {
        let mut kept = Kept { is_kept: false, ..self.kept() };
        let tries = kept.execute(tried, 1);
        kept.is_kept = true;
        Ok((kept.execute(plan, self.draws)?, tries.map(|(answers, _)| answers)))
    }

    fn side_by_side(self, plan: &TwinPlan, tried: &TwinPlan) -> anyhow::Result<Both> {
        // Which ends what is tried. A setting may fail that is tried, and says nothing of the twin as it is.
        let draws_failed = &watch::Sender::new(false);
        let (begins, begun) = mpsc::channel();
        thread::scope(|scope| {
            // Progress of two would be written over each other, and what is wrong with one is wrong with both.
            let tries = move || {
                let watch: Option<Rc<dyn Watch>> = Some(Rc::new(Begins(begins)));
                let beside = Some(draws_failed.subscribe());
                Kept { watch, beside, is_kept: false, ..self.kept() }.execute(tried, 1)
            };
            let thread = thread::Builder::new().stack_size(STACK_BYTES);
            let tries = thread.spawn_scoped(scope, tries).context("start a thread")?;
            // An error says that it has ended already.
            let _ = begun.recv();
            let answered = self.kept().execute(plan, self.draws);
            draws_failed.send_replace(answered.is_err());
            if answered.is_ok() && !tries.is_finished() {
                say!("narrows: settings that matter are tried ...");
            }
            let tries = tries.join().unwrap_or_else(|panic| resume_unwind(panic));
            Ok((answered?, tries.map(|(answers, _)| answers)))
        })
    }

    fn kept(self) -> Kept<'a> {
        Kept { asking: self, watch: None, beside: None, is_kept: true, instead: None }
    }
}

/// Waits until somebody says stop, or until what goes on beside has failed.
async fn until_ended(beside: Option<watch::Receiver<bool>>) -> io::Result<()> {
    let Some(mut has_failed) = beside else { return interrupt::told_to_stop().await };
    tokio::select! {
        biased;
        told = interrupt::told_to_stop() => told,
        failed = has_failed.wait_for(|failed| *failed) => failed.map(drop).map_err(io::Error::other),
    }
}

/// Shows nothing, and says when the record of a run is there.
struct Begins(mpsc::Sender<()>);

impl Watch for Begins {
    fn begin(&self, _: &str, _: Option<&str>, _: Option<u64>, _: &str) {
        // It is heard once.
        let _ = self.0.send(());
    }
}

/// Whether two cores and the memory that is free are enough for two twins. Where nobody tells, they are not.
fn has_room_for_two(plan: &TwinPlan) -> bool {
    let fits = |free: u64| two_fit(free, twin::copies(plan));
    cores() > 1 && machine::memory_free_bytes().is_some_and(fits)
}

fn two_fit(free_bytes: u64, copies: u64) -> bool {
    free_bytes / 2 >= copies.saturating_mul(COPY_BYTES).saturating_add(TWIN_BYTES)
}

/// Where the records of an answer are: where runs are kept or, where that cannot be written, in a directory that goes
/// with the command.
struct Kept<'a> {
    asking: Asking<'a>,
    /// Who watches; people where there is none.
    watch: Option<Rc<dyn Watch>>,
    /// Whether what goes on beside has failed.
    beside: Option<watch::Receiver<bool>>,
    /// Whether the record is kept: that of settings that are tried is in the answer, whole.
    is_kept: bool,
    instead: Option<tempfile::TempDir>,
}

impl Kept<'_> {
    /// Asks the twin, so often. An answer that cannot be kept is told all the same.
    fn execute(&mut self, plan: &TwinPlan, draws: u32) -> anyhow::Result<Answered> {
        if self.instead.is_none() {
            match self.execute_in(self.asking.runs, plan, draws) {
                Err(error) if is_of_record(&error) => self.say(&format!(
                    "the answer is not kept: {}; --runs DIR keeps it elsewhere",
                    exit::with_causes(&error)
                )),
                told => return told,
            }
            self.instead = Some(tempfile::tempdir().context("make a temporary directory")?);
        }
        let instead = self.instead.as_ref().map_or(self.asking.runs, |dir| dir.path());
        Ok((self.execute_in(instead, plan, draws)?.0, None))
    }

    fn execute_in(&self, runs: &Path, plan: &TwinPlan, draws: u32) -> anyhow::Result<Answered> {
        let plan = Plan::parse("the twin", &twin::text(plan))?;
        let watch = self.watch.clone().unwrap_or_else(|| Rc::new(Progress::new()));
        let beside = self.beside.clone();
        let options = Options {
            laps: Some(draws),
            seed: self.asking.seed,
            watch,
            interrupt: Rc::new(move || Box::pin(until_ended(beside.clone()))),
            ..Options::new(runs)
        };
        let executed = lab::execute(&plan, &Place::VIRTUAL, &options).map_err(without_places)?;
        let dir = executed.dir.display().to_string();
        if !self.is_kept {
            if let Err(error) = std::fs::remove_dir_all(&executed.dir) {
                self.say(&format!("the record in {dir} cannot be removed: {error}"));
            }
            if executed.ended.context(NOT_ALL)? == Ended::Interrupted {
                anyhow::bail!("interrupted: {NOT_ALL}");
            }
            return Ok((answers(&executed.run), None));
        }
        let id = executed.id;
        let ended =
            executed.ended.with_context(|| format!("run {id} failed; its record is in {dir}"))?;
        if ended == Ended::Interrupted {
            anyhow::bail!("interrupted; what was answered until then is in {dir}");
        }
        let page = executed.dir.join("report.html");
        let written = runs::write_page(&executed.run, &page);
        if let Err(error) = &written {
            self.say(&format!("there is no report: {error:#}"));
        }
        Ok((answers(&executed.run), written.is_ok().then_some(page)))
    }

    fn say(&self, what: &str) {
        if self.watch.is_none() {
            say!("narrows: {what}");
        }
    }
}

fn is_of_record(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref::<lab::Error>(), Some(lab::Error::Record(_)))
}

/// What is wrong with a twin, without its place in a text that was written for this run and that nobody has.
fn without_places(error: lab::Error) -> anyhow::Error {
    match error {
        lab::Error::Plan(mistakes) => {
            // A value and its bounds have the same name, and the same is wrong with it.
            let mut said: Vec<&str> = Vec::new();
            for mistake in mistakes.each() {
                if !said.contains(&mistake.message.as_str()) {
                    said.push(&mistake.message);
                }
            }
            Usage(said.join("\n")).into()
        }
        other => other.into(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use lab::twin::Asked;
    use record::RunDir;

    use super::*;

    const TWIN: &str = r#"
name = "twin-small"
about = "A twin of nobody."
steps = ["start", "what_if"]

[leader]
nodes = 3

[virtual]
"disk.write_bytes_per_s" = { value = "400MB/s", source = "assumed" }

[settings]
"indices.recovery.max_bytes_per_sec" = "1mb"

[twin]
node = [{ name = "a" }, { name = "b" }]
uncertain = [{ parameter = "disk.write_bytes_per_s", least = "200MB/s", most = "800MB/s" }]

[[twin.index]]
name = "logs"
replicas = 0
shard = [{ bytes = "3mb", documents = 1000, segments = 4, copies = ["a"] }]
"#;

    /// What is asked, and with settings that are tried.
    fn asked() -> (TwinPlan, TwinPlan) {
        let mut plan: TwinPlan = TWIN.parse().unwrap();
        twin::ask(&mut plan, &Asked::Replicas(BTreeMap::from([("logs".to_owned(), 1)])));
        twin::as_it_is(&mut plan);
        let mut tried = plan.clone();
        twin::trials(&mut tried);
        (plan, tried)
    }

    #[test]
    fn what_is_asked_side_by_side_is_answered_as_one_after_the_other() {
        let dir = tempfile::tempdir().unwrap();
        let (plan, tried) = asked();
        let asking = Asking { runs: dir.path(), seed: None, draws: 3 };
        let ((first, _), second) = asking.one_after_the_other(&plan, &tried).unwrap();
        let second = second.unwrap();
        let last = || runs::find(dir.path(), "last").unwrap();
        assert_eq!(answers(&RunDir::open(&last()).unwrap()), first);
        let ((told, page), settings) = asking.side_by_side(&plan, &tried).unwrap();
        let settings = settings.unwrap();
        assert_eq!((&told, &settings), (&first, &second));
        assert!(page.as_ref().is_some_and(|page| page.is_file()));
        assert_eq!(runs::list(dir.path()).unwrap().len(), 2, "one run of each: that of its draws");
        assert_eq!(page.unwrap().parent(), Some(&*last()));
        assert_eq!((told[0].draws, settings[0].draws), (3, 1));
        assert!(settings.len() > 3, "{settings:?}");
    }

    #[test]
    fn an_answer_is_told_where_what_is_tried_fails_and_ends_it_where_it_fails_itself() {
        let dir = tempfile::tempdir().unwrap();
        let (plan, tried) = asked();
        let broken = |of: &TwinPlan| {
            let mut of = of.clone();
            of.insert("steps".to_owned(), vec!["start", "nonsense"].into());
            of
        };
        let asking = Asking { runs: dir.path(), seed: None, draws: 2 };
        for ask in [Asking::one_after_the_other, Asking::side_by_side] {
            let ((answers, page), tries) = ask(asking, &plan, &broken(&tried)).unwrap();
            assert!(answers[0].draws == 2 && page.is_some() && tries.is_err());
        }
        let error = asking.side_by_side(&broken(&plan), &tried).unwrap_err().to_string();
        assert!(!error.contains("interrupted"), "what is wrong is told: {error}");
    }

    #[test]
    fn what_is_wrong_with_a_value_and_with_its_bounds_is_said_once() {
        let dir = tempfile::tempdir().unwrap();
        let mut plan: TwinPlan =
            TWIN.replace("disk.write_bytes_per_s", "disk.rite_bytes_per_s").parse().unwrap();
        twin::ask(&mut plan, &Asked::Replicas(BTreeMap::from([("logs".to_owned(), 1)])));
        twin::as_it_is(&mut plan);
        let error = Asking { runs: dir.path(), seed: None, draws: 2 }.ask(&plan, None).unwrap_err();
        let error = error.to_string();
        assert_eq!(error.matches("\"disk.rite_bytes_per_s\"").count(), 1, "{error}");
    }

    /// 1000 nodes with 100 000 shards and their replicas take 3.2 GB.
    #[test]
    fn two_twins_fit_where_twice_what_one_takes_is_free() {
        assert!(two_fit(10_000_000_000, 200_000) && !two_fit(8_000_000_000, 200_000));
        assert!(two_fit(500_000_000, 1000) && !two_fit(500_000_000, u64::MAX));
    }
}
