//! Verdicts on trial: cases drawn from seeds, each judged by what `explain` does with a live cluster.
//!
//! | file | holds |
//! | --- | --- |
//! | `awaited` | how often the moment when a cluster is green lies within the interval that `watch` shows |
//! | `buckets` | cases of DCP connections |
//! | `case` | [`Case`]: what is injected into which surroundings, drawn from a seed; the deck of kinds. Pure |
//! | `cause` | what holds recoveries back, by name |
//! | `conditions` | [`conditions::Conditions`]: nodes, link, settings; what a cause and what lifts it change. Pure |
//! | `draw` | what a seed draws: its kind, its severity, and random numbers of a case. Pure |
//! | `followers` | cases of an index that follows another cluster's |
//! | `kept` | outcomes that are kept while a bench goes on |
//! | `label` | what is right of a recording |
//! | `one_cause` | the trial of what is no recovery: a bucket, a follower, searches; in which world |
//! | `searches` | cases of copies on several nodes, of which one answers late |
//! | `shown` | a case of each kind that nobody draws |
//! | `simulated` | clusters for followers and searches, in virtual time or as processes |
//! | `stage` | two nodes under conditions |
//! | `recordings` | recordings of clusters as cases, beside what somebody knows of the cause |
//! | `place` | where stages are: in virtual time, or on nodes that run as processes |
//! | `steered` | what `steer` makes of a case, beside leaving it alone and the best fixed settings |
//! | `trial` | whether a case is one, its verdict, and what the advice brings |

mod awaited;
mod buckets;
mod case;
mod cause;
mod conditions;
mod draw;
mod followers;
mod kept;
mod label;
mod one_cause;
mod place;
mod recordings;
mod searches;
mod shown;
mod simulated;
mod stage;
mod steered;
mod trial;

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, anyhow};
use clusters::Clusters;
use futures_util::future::{FutureExt, join_all};
use insight::diagnosis::Class;
use record::units::show_seconds;
use report::benched::Bench;
use world::{Env, LinkConfig};

use super::bed;
use crate::interrupt::{Ended, until_told};
pub(crate) use awaited::{Awaited, as_json as awaited_as_json, table as awaited_table};
use case::Case;
use draw::{Subject, Turn};
use kept::{Job, Kept};
use one_cause::{CaseOf, OneCause, World};
use place::{Place, Simulated};
pub(crate) use place::{Processes, nodes_with_disks};
pub(crate) use recordings::of_recordings;
pub(crate) use shown::{CASES, NamedCase, Shown};
pub(crate) use steered::{Steered, as_json, table};
use trial::{Outcome, Writes, trial};

use crate::seeds::side_by_side;
use crate::terminal::say;

/// What is tried beside recoveries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Beside {
    Nothing,
    /// Buckets, followers and searches, as processes of the embedded engine have them.
    Processes,
    /// The same as virtual time has them.
    Virtual,
}

impl Beside {
    /// What a seed draws beside a recovery.
    fn drawn(self, seed: u64) -> Option<Subject> {
        let subjects: &[Subject] = match self {
            Beside::Nothing => &[],
            Beside::Processes | Beside::Virtual => {
                &[Subject::Bucket, Subject::Follower, Subject::Searches]
            }
        };
        subjects.iter().copied().find(|subject| Turn::among(*subject, seed).is_some())
    }
}

/// What a job is about in words, its severity, and the classes that are right; none of a recovery.
fn drawn_beside(job: Job, beside: Beside) -> Option<(&'static str, usize, Vec<Class>)> {
    fn drawn<K, C>(case: CaseOf<K, C>) -> (&'static str, usize, Vec<Class>)
    where
        CaseOf<K, C>: OneCause,
    {
        (case.known().0, case.severity, case.classes())
    }
    let seed = job.seed;
    match job.subject {
        Subject::Recovery => None,
        Subject::Bucket => buckets::Case::of(seed).map(drawn),
        Subject::Follower if beside == Beside::Processes => {
            followers::Case::on_processes(seed).map(drawn)
        }
        Subject::Follower => followers::Case::of(seed).map(drawn),
        Subject::Searches => searches::Case::of(seed).map(drawn),
    }
}

/// What is drawn first from some seeds.
fn jobs(seeds: &[u64], beside: Beside) -> Vec<Job> {
    let of = |seed: &u64| {
        let subjects = [Subject::Recovery].into_iter().chain(beside.drawn(*seed));
        subjects.map(|subject| Job::first(*seed, subject)).collect::<Vec<_>>()
    };
    seeds.iter().flat_map(of).collect()
}

/// What a bench is asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) seeds: &'a [u64],
    /// Whether verdicts are also asked for with probes.
    pub(crate) probes: bool,
    /// Where what was seen is kept.
    pub(crate) recordings: Option<&'a Path>,
    /// Where outcomes are kept, and those of earlier sittings are.
    pub(crate) kept: Option<&'a Path>,
    /// Cases side by side on processes, each on nodes of its own.
    pub(crate) at_once: u16,
}

/// Every case of some seeds in virtual time, as many at once as there are cores. The first error of a case comes with
/// the cases that could be tried.
pub(crate) fn in_virtual_time(asked: Asked<'_>) -> anyhow::Result<(Bench, Option<anyhow::Error>)> {
    let journals = tempfile::tempdir()?;
    let writes = writes(&asked, journals.path());
    let one = |job: Job| {
        let began = Instant::now();
        let outcome = at_once(try_job(job, &Simulated, World::Virtual, writes));
        Ok(outcome.map(|outcome| (outcome, began.elapsed().as_secs_f64())))
    };
    // Recordings are those of recoveries.
    let beside = if asked.recordings.is_none() { Beside::Virtual } else { Beside::Nothing };
    let mut sitting = Sitting::of(&asked, "virtual", beside, Case::of)?;
    let mut todo = sitting.todo();
    let mut failed = None;
    while !todo.is_empty() {
        let mut again = Vec::new();
        side_by_side(&todo, &one, |job, tried| match tried {
            Ok((outcome, seconds)) => match sitting.came(job, *seconds, outcome.clone()) {
                Ok(next) => again.extend(next),
                Err(error) => {
                    failed.get_or_insert(error);
                }
            },
            Err(error) => {
                failed.get_or_insert_with(|| anyhow!("{error:#}"));
            }
        })?;
        todo = again;
    }
    Ok((sitting.bench(), failed))
}

fn writes<'a>(asked: &Asked<'a>, journals: &'a Path) -> Writes<'a> {
    Writes { journals: asked.probes.then_some(journals), recordings: asked.recordings }
}

/// What comes of a job: of a recovery in `place`, of anything else in `world`.
async fn try_job(
    Job { seed, subject, refused }: Job,
    place: &impl Place,
    world: World<'_>,
    writes: Writes<'_>,
) -> anyhow::Result<Outcome> {
    let none = "the seed draws no such case";
    match (subject, world) {
        (Subject::Recovery, _) => trial(place, &place.case(seed, refused), writes).await,
        (Subject::Bucket, _) => {
            one_cause::trial(world, &buckets::Case::of(seed).context(none)?).await
        }
        (Subject::Follower, World::Virtual) => {
            one_cause::trial(world, &followers::Case::of(seed).context(none)?).await
        }
        (Subject::Follower, World::Real(_)) => {
            one_cause::trial(world, &followers::Case::on_processes(seed).context(none)?).await
        }
        (Subject::Searches, _) => {
            one_cause::trial(world, &searches::Case::of(seed).context(none)?).await
        }
    }
}

/// What simulated worlds come to, which nobody waits for.
fn at_once<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    work.now_or_never().context("a simulated world was waited for")?
}

/// What `steer` makes of the cases of some seeds in virtual time.
pub(crate) fn steered_in_virtual_time(seeds: &[u64]) -> anyhow::Result<Vec<Steered>> {
    let journals = tempfile::tempdir()?;
    let one = |seed: u64| at_once(steered::steered(&Simulated, &Case::of(seed), journals.path()));
    tried(seeds, &one, |came| {
        format!("{:.2} times, {:.2} of the best", came.gain(), came.of_best())
    })
}

/// What is said of the time to green in the cases of some seeds in virtual time.
pub(crate) fn awaited_in_virtual_time(seeds: &[u64]) -> anyhow::Result<Vec<Awaited>> {
    let one = |seed: u64| at_once(awaited::awaited(&Simulated, &Case::of(seed)));
    tried(seeds, &one, Awaited::words)
}

/// What comes of each seed, or why it is no case; told as it comes.
fn tried<T: Send>(
    seeds: &[u64],
    one: &(impl Fn(u64) -> anyhow::Result<Result<T, &'static str>> + Sync),
    words: impl Fn(&T) -> String,
) -> anyhow::Result<Vec<T>> {
    let mut done = 0;
    let came = side_by_side(seeds, one, |seed, came| {
        done += 1;
        let (count, name) = (seeds.len(), Case::of(seed).name());
        let says = match came {
            Ok(came) => words(came),
            Err(why) => format!("no case: {why}"),
        };
        say!("{done} of {count}, seed {seed}, {name}: {says}");
    })?;
    Ok(came.into_iter().filter_map(Result::ok).collect())
}

/// Starts two nodes with nothing injected.
pub(crate) async fn start(clusters: &mut impl Clusters) -> anyhow::Result<()> {
    bed::start(clusters, LinkConfig::default(), &BTreeMap::new()).await
}

/// The same on nodes that are started for it, `asked.at_once` cases side by side. Whatever the end, the nodes are
/// stopped; an error comes with the cases before it.
pub(crate) async fn on_processes<C: Clusters>(
    env: &Env,
    make: impl Fn() -> anyhow::Result<C>,
    asked: Asked<'_>,
) -> anyhow::Result<(Bench, Option<anyhow::Error>)> {
    let journals = tempfile::tempdir()?;
    let writes = writes(&asked, journals.path());
    let mut all: Vec<C> = (0..asked.at_once.max(1)).map(|_| make()).collect::<Result<_, _>>()?;
    let Some(first) = all.first() else { anyhow::bail!("no nodes are asked for") };
    let name = first.name();
    // The bench is the bucket's node and its reader, as the embedded engine's processes are; that engine alone is
    // started for followers and searches.
    let is_ours = name == "embedded" && asked.recordings.is_none();
    let beside = if is_ours { Beside::Processes } else { Beside::Nothing };
    let engine = place::engine(first);
    let case = move |seed| Case::on_processes(seed, engine);
    let sitting = Sitting::of(&asked, name, beside, case)?;
    let queue = RefCell::new(VecDeque::from(sitting.todo()));
    let (sitting, failed) = (RefCell::new(sitting), RefCell::new(None));
    if !queue.borrow().is_empty() {
        say!("starting two nodes ({name}) for each of {} cases at once", all.len());
    }
    let ended = until_told(async {
        for clusters in all.iter_mut().filter(|_| !queue.borrow().is_empty()) {
            start(clusters).await?;
        }
        let worker = async |clusters: &C| {
            let next = || queue.borrow_mut().pop_front();
            let Some(mut job) = next() else { return anyhow::Ok(()) };
            let place = Processes::new(env, clusters).await?;
            loop {
                let began = Instant::now();
                match try_job(job, &place, World::Real(env), writes).await {
                    Ok(outcome) => {
                        let seconds = began.elapsed().as_secs_f64();
                        let again = sitting.borrow_mut().came(job, seconds, outcome)?;
                        queue.borrow_mut().extend(again);
                    }
                    // The next case would be on the same nodes.
                    Err(error) if job.subject == Subject::Recovery => return Err(error),
                    // The clusters of this case alone are gone: the other cases can be tried.
                    Err(error) => {
                        failed.borrow_mut().get_or_insert(error);
                    }
                }
                match next() {
                    Some(other) => job = other,
                    None => return Ok(()),
                }
            }
        };
        for ended in join_all(all.iter().map(worker)).await {
            // Those beside one that failed went on to their end.
            if let Err(error) = ended {
                failed.borrow_mut().get_or_insert(error);
            }
        }
        Ok(())
    });
    let ended = ended.await;
    for clusters in &mut all {
        clusters.stop().await;
    }
    match ended? {
        Ended::Complete => Ok((sitting.into_inner().bench(), failed.into_inner())),
        Ended::Interrupted if asked.kept.is_some() => {
            anyhow::bail!("interrupted; the nodes are stopped, and the cases so far are kept")
        }
        Ended::Interrupted => anyhow::bail!("interrupted; the nodes are stopped"),
    }
}

/// The cases of a bench, those that earlier sittings tried included.
struct Sitting<'a> {
    target: &'static str,
    beside: Beside,
    /// Every draw, those that stand in for what was no case included.
    jobs: Vec<Job>,
    kept: Kept,
    done: usize,
    case: Box<dyn Fn(u64) -> Case + 'a>,
}

impl<'a> Sitting<'a> {
    fn of(
        asked: &Asked<'_>,
        target: &'static str,
        beside: Beside,
        case: impl Fn(u64) -> Case + 'a,
    ) -> anyhow::Result<Self> {
        let (kept, useless) = Kept::open(asked.kept, target, asked.probes)?;
        let (jobs, case) = (jobs(asked.seeds, beside), Box::new(case));
        if jobs.len() > asked.seeds.len() {
            say!(
                "{} cases: a recovery of each seed, and of some a bucket, a follower or searches as well",
                jobs.len()
            );
        }
        let mut sitting = Sitting { target, beside, jobs, kept, done: 0, case };
        let mut at = 0;
        while let Some(job) = sitting.jobs.get(at).copied() {
            sitting.done += usize::from(sitting.kept.has(job));
            sitting.drawn_again(job);
            at += 1;
        }
        let (done, count) = (sitting.done, sitting.jobs.len());
        if done + useless > 0 {
            say!("{done} of {count} cases are there already; {useless} lines are of other builds");
        }
        Ok(sitting)
    }

    /// The draw that takes the place of one that is known to be no case; it is among the jobs from now on.
    fn drawn_again(&mut self, job: Job) -> Option<Job> {
        let again = match self.kept.is_refused(job) {
            true => job.redraw(&(self.case)(job.seed).classes()),
            false => None,
        };
        self.jobs.extend(again);
        again
    }

    fn todo(&self) -> Vec<Job> {
        self.jobs.iter().copied().filter(|job| !self.kept.has(*job)).collect()
    }

    /// Keeps what came of a case, and tells it. What is to be tried in its place comes back.
    fn came(&mut self, job: Job, seconds: f64, outcome: Outcome) -> anyhow::Result<Option<Job>> {
        self.done += 1;
        let came = match &outcome {
            Outcome::Admitted(scored) => scored.sentence.clone(),
            Outcome::Refused(why) => format!("no case: {why}"),
        };
        let (name, severity) = self.about(job);
        let (done, count, seed) = (self.done, self.jobs.len(), job.seed);
        let took = show_seconds(seconds);
        say!("{done} of {count}, seed {seed}, {name}, severity {severity}, {took}: {came}");
        self.kept.keep(job, seconds, outcome)?;
        Ok(self.drawn_again(job))
    }

    /// What a case is about, and its severity.
    fn about(&self, job: Job) -> (String, usize) {
        match drawn_beside(job, self.beside) {
            Some((name, severity, _)) => (name.to_owned(), severity),
            None => {
                let case = (self.case)(job.seed);
                (case.name(), case.severity)
            }
        }
    }

    fn bench(self) -> Bench {
        let target = self.target.to_owned();
        let mut bench = Bench {
            target,
            cases: vec![],
            refused: BTreeMap::new(),
            is_drawn: true,
            took_s: vec![],
        };
        for (outcome, seconds) in self.kept.of(&self.jobs) {
            bench.took_s.push(seconds);
            match outcome {
                Outcome::Admitted(scored) => bench.cases.push(*scored),
                Outcome::Refused(why) => *bench.refused.entry(why).or_default() += 1,
            }
        }
        bench
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::conditions::Engine;
    use super::draw::Draw;
    use super::*;

    /// Of 1000 seeds at a time, scored as they are: what the odd ones draw. Of draws with two causes and of all others
    /// but the healthy ones, these shares are cases.
    #[track_caller]
    fn has_its_shares(beside: Beside, admitted: (f64, f64), case: impl Fn(u64) -> Case) {
        let mut chance = Draw::of(1);
        for first in [0, 14_000, 23_000] {
            let seeds: Vec<u64> = (first..first + 1000).filter(|seed| seed % 2 == 1).collect();
            let mut queue = VecDeque::from(jobs(&seeds, beside));
            let (mut healthy, mut two, mut others) = (0.0, 0.0, 0.0);
            while let Some(job) = queue.pop_front() {
                let beside = drawn_beside(job, beside);
                let classes =
                    beside.map_or_else(|| case(job.seed).classes(), |(_, _, classes)| classes);
                let (count, share) = match classes.len() {
                    0 => (&mut healthy, 1.0),
                    2 => (&mut two, admitted.0),
                    _ => (&mut others, admitted.1),
                };
                if chance.share() < share {
                    *count += 1.0;
                } else {
                    queue.extend(job.redraw(&classes));
                }
            }
            let cases = healthy + two + others;
            let what = format!("{beside:?}, from {first} on, of {cases} cases");
            assert!(healthy >= 0.3 * cases, "{what}: {healthy} are healthy");
            assert!(two >= 0.2 * cases, "{what}: {two} have two causes");
        }
    }

    /// Where fewer of two causes are admitted than on any page of `docs/diagnosis`, and all others as there.
    #[test]
    fn three_in_ten_cases_are_healthy_and_one_in_five_has_two_causes() {
        has_its_shares(Beside::Virtual, (0.75, 0.95), Case::of);
        let on = |engine: Engine| move |seed: u64| Case::on_processes(seed, engine);
        has_its_shares(Beside::Processes, (0.6, 0.97), on(Engine::OURS));
        has_its_shares(Beside::Nothing, (0.6, 0.88), on(Engine::OPENSEARCH));
    }

    /// The page says of every class that a target has cases of it, or why not.
    #[test]
    fn a_class_that_is_not_in_the_deck_of_a_target_is_on_the_page_with_the_reason() {
        let seeds: Vec<u64> = (0..2000).collect();
        let drawn = |beside: Beside, case: fn(u64) -> Case| -> BTreeSet<Class> {
            let recoveries = seeds.iter().flat_map(|seed| case(*seed).classes());
            let drawn = |job| drawn_beside(job, beside).map(|(_, _, classes)| classes);
            let others = jobs(&seeds, beside).into_iter().filter_map(drawn).flatten();
            recoveries.chain(others).collect()
        };
        let drawn = [
            drawn(Beside::Virtual, Case::of),
            drawn(Beside::Processes, |seed| Case::on_processes(seed, Engine::OURS)),
            drawn(Beside::Nothing, |seed| Case::on_processes(seed, Engine::OPENSEARCH)),
        ];
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/diagnosis/README.md");
        let page = std::fs::read_to_string(page).unwrap();
        let table = page.split_once("\n## Which classes have cases\n").unwrap().1;
        let table = table.split_once("\n## ").unwrap().0;
        for class in Class::ALL {
            let head = format!("| {} | ", class.label());
            let row = table.lines().find_map(|line| line.strip_prefix(&head)?.strip_suffix(" |"));
            let cells: Vec<&str> = row.unwrap_or_default().split(" | ").collect();
            assert_eq!(cells.len(), drawn.len(), "{head}");
            for (cell, drawn) in cells.iter().zip(&drawn) {
                assert_eq!(*cell == "cases", drawn.contains(class), "{head}{cell}");
                assert!(!cell.is_empty(), "{head}");
            }
        }
    }

    #[test]
    fn only_what_is_to_have_its_share_is_drawn_again_and_not_for_ever() {
        use insight::diagnosis::Class::{Disk, RateLimit};
        let job = Job::first(7, Subject::Recovery);
        let two = [RateLimit, Disk];
        let draws = std::iter::successors(Some(job), |job| job.redraw(&two));
        let refused: Vec<u8> = draws.map(|job| job.refused).collect();
        assert_eq!(refused, [0, 1, 2]);
        assert!(job.redraw(&[]).is_some() && job.redraw(&[RateLimit]).is_none());
        assert_eq!(Job::first(8, Subject::Bucket).redraw(&[]), None);
    }

    /// As it is within one sitting, a draw in place of another is there in the next.
    #[test]
    fn a_sitting_draws_again_what_was_no_case_and_the_next_one_knows() {
        let dir = tempfile::tempdir().unwrap();
        // Of this seed two causes are drawn.
        let asked = Asked {
            seeds: &[4],
            probes: false,
            recordings: None,
            kept: Some(dir.path()),
            at_once: 1,
        };
        let sitting = || Sitting::of(&asked, "virtual", Beside::Nothing, Case::of).unwrap();
        let (mut first, job) = (sitting(), Job::first(4, Subject::Recovery));
        assert_eq!(first.todo(), [job]);
        let refused = Outcome::Refused("both causes hold at once".to_owned());
        let again = first.came(job, 1.0, refused).unwrap();
        assert_eq!((again, first.todo()), (Some(Job { refused: 1, ..job }), vec![again.unwrap()]));
        let next = sitting();
        assert_eq!((next.todo(), next.done), (vec![again.unwrap()], 1));
        assert_eq!(next.bench().refused.values().sum::<usize>(), 1);
    }

    #[test]
    fn a_bucket_a_follower_or_searches_are_drawn_beside_a_recovery_where_they_are_asked_for() {
        let seeds: Vec<u64> = (0..20).collect();
        let drawn = |beside: Beside, subject: Subject| {
            let all = jobs(&seeds, beside);
            let of = all.iter().filter(|job| job.subject == subject);
            of.map(|job| job.seed).collect::<Vec<_>>()
        };
        assert_eq!(drawn(Beside::Virtual, Subject::Recovery), seeds);
        assert_eq!(drawn(Beside::Virtual, Subject::Bucket), [8, 9, 18, 19]);
        assert_eq!(drawn(Beside::Virtual, Subject::Follower), [4, 5, 14, 15]);
        assert_eq!(drawn(Beside::Virtual, Subject::Searches), [0, 1, 10, 11]);
        assert_eq!(jobs(&seeds, Beside::Processes), jobs(&seeds, Beside::Virtual));
        assert_eq!(jobs(&seeds, Beside::Nothing).len(), 20);
    }
}
