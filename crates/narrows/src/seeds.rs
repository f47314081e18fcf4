//! Plans in virtual time, each with several seeds, side by side. A run in virtual time has one thread, so that as many
//! go on at once as there are cores.

use std::collections::VecDeque;
use std::path::Path;
use std::rc::Rc;
use std::sync::{Mutex, mpsc};
use std::thread;
use std::time::Instant;

use anyhow::{Context, anyhow};
use insight::published::{Comparison, comparisons, shards_done};
use insight::{Curves, Summary, curves, load};
use lab::conclusions::{Figure, Quantity, conclusions};
use lab::plan::Plan;
use lab::{Options, Place, Quiet};
use record::RunDir;
use record::units::show_seconds;

use crate::runs::write_page;
use crate::terminal::say;

/// A plan, and which of its variants are run.
pub(crate) struct Work {
    pub(crate) plan: String,
    pub(crate) variants: Vec<String>,
}

/// What a plan came to with one seed.
pub(crate) struct Outcome {
    /// Its published figures beside ours.
    pub(crate) rows: Vec<Comparison>,
    /// The figures that conclusions speak of.
    pub(crate) figures: Vec<(Figure, f64)>,
    /// Wall time.
    pub(crate) seconds: f64,
}

/// What every plan came to, seed by seed.
type Outcomes = Vec<Vec<Outcome>>;

#[derive(Clone, Copy)]
struct Job {
    work: usize,
    seed: u64,
    scale: f64,
}

/// At this part of its size a plan is asked whether it draws anything.
const PROBE: f64 = 0.02;

/// Runs every plan with the seeds 1 to `seeds`, and with one only where nothing is drawn: where two seeds give the
/// same, to the last digit, at a fiftieth of the size. The record of seed 1 is kept in `runs`.
pub(crate) fn run_all(
    works: &[Work],
    seeds: u64,
    scale: f64,
    runs: &Path,
) -> anyhow::Result<Outcomes> {
    let scratch = runs.join(format!(".seeds-{}", std::process::id()));
    let done = probe_and_run(works, seeds, scale, runs, &scratch);
    match std::fs::remove_dir_all(&scratch) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            done.and(Err(error).with_context(|| format!("remove {}", scratch.display())))
        }
        _ => done,
    }
}

fn probe_and_run(
    works: &[Work],
    seeds: u64,
    scale: f64,
    runs: &Path,
    scratch: &Path,
) -> anyhow::Result<Outcomes> {
    let all = |seed: u64, scale: f64| (0..works.len()).map(move |work| Job { work, seed, scale });
    let one = |job: Job| {
        let kept = job.seed == 1 && job.scale == scale;
        let name = format!("{}-{}-{}", works[job.work].plan, job.seed, job.scale);
        let folder = if kept { runs.to_owned() } else { scratch.join(name) };
        let outcome = outcome(&works[job.work], &job, &folder);
        if !kept {
            let _ = std::fs::remove_dir_all(&folder);
        }
        outcome
    };
    let run = |jobs: &[Job]| {
        side_by_side(jobs, &one, |job: Job, outcome: &Outcome| {
            let took = show_seconds(outcome.seconds);
            say!("{}, seed {}, scale {}: {took}", works[job.work].plan, job.seed, job.scale);
        })
    };
    let small: Vec<Job> = (1..=seeds.min(2)).flat_map(|seed| all(seed, scale * PROBE)).collect();
    let small = run(&small)?;
    let draws = |work: usize| {
        let mut seeds = small.iter().skip(work).step_by(works.len());
        seeds.next().zip(seeds.next()).is_some_and(|(one, two)| one.differs(two))
    };
    let drawn = (1..=seeds).flat_map(|seed| all(seed, scale));
    let jobs: Vec<Job> = drawn.filter(|job| job.seed == 1 || draws(job.work)).collect();
    let mut outcomes: Outcomes = works.iter().map(|_| Vec::new()).collect();
    for (job, outcome) in jobs.iter().zip(run(&jobs)?) {
        outcomes[job.work].push(outcome);
    }
    Ok(outcomes)
}

impl Outcome {
    /// Whether another seed found anything else.
    fn differs(&self, other: &Outcome) -> bool {
        let ours = |outcome: &Outcome| -> Vec<Option<f64>> {
            outcome.rows.iter().map(|row| row.ours).collect()
        };
        ours(self) != ours(other)
    }
}

/// Does every job on as many threads as there are cores; what comes of them is in their order. The first error ends it.
fn side_by_side<J: Copy + Sync + Send, T: Send>(
    jobs: &[J],
    one: &(impl Fn(J) -> anyhow::Result<T> + Sync),
    told: impl Fn(J, &T),
) -> anyhow::Result<Vec<T>> {
    let queue: Mutex<VecDeque<usize>> = Mutex::new((0..jobs.len()).collect());
    let (tell, hear) = mpsc::channel();
    let mut found: Vec<Option<T>> = jobs.iter().map(|_| None).collect();
    thread::scope(|scope| {
        for _ in 0..cores().min(jobs.len()) {
            let (tell, queue) = (tell.clone(), &queue);
            scope.spawn(move || {
                while let Some(next) = queue.lock().ok().and_then(|mut queue| queue.pop_front()) {
                    let done = one(jobs[next]);
                    if done.is_err()
                        && let Ok(mut queue) = queue.lock()
                    {
                        queue.clear();
                    }
                    if tell.send((next, done)).is_err() {
                        break;
                    }
                }
            });
        }
        drop(tell);
        for (at, done) in hear {
            let done = done?;
            told(jobs[at], &done);
            found[at] = Some(done);
        }
        found.into_iter().map(|done| done.ok_or_else(|| anyhow!("a thread ended early"))).collect()
    })
}

/// As many runs go on at once.
pub(crate) fn cores() -> usize {
    thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

fn outcome(work: &Work, job: &Job, runs: &Path) -> anyhow::Result<Outcome> {
    let (began, seed) = (Instant::now(), job.seed);
    let options = Options {
        scale: job.scale,
        seed: Some(seed),
        variants: work.variants.clone(),
        watch: Rc::new(Quiet),
        ..Options::new(runs)
    };
    let done = lab::execute(&Plan::open(&work.plan)?, &Place::VIRTUAL, &options)?;
    if job.scale >= 1.0 && seed == 1 {
        write_page(&done.run, &done.dir.join("report.html"))?;
    }
    done.ended.with_context(|| {
        format!("{} with seed {seed} failed; its record is in {}", work.plan, done.dir.display())
    })?;
    let summary = Summary::of(&done.run);
    Ok(Outcome {
        rows: comparisons(&summary),
        figures: figures(&work.plan, &done.run, &summary),
        seconds: began.elapsed().as_secs_f64(),
    })
}

/// The figures of a plan that conclusions speak of.
fn figures(plan: &str, run: &RunDir, summary: &Summary<'_>) -> Vec<(Figure, f64)> {
    let curves = curves(run, summary);
    let mut found: Vec<(Figure, f64)> = Vec::new();
    for figure in conclusions().flat_map(|conclusion| conclusion.measure.figures()) {
        let known = found.iter().any(|(other, _)| *other == figure);
        if figure.row.plan == plan
            && !known
            && let Some(value) = value(figure, run, summary, &curves)
        {
            found.push((figure, value));
        }
    }
    found
}

fn value(figure: Figure, run: &RunDir, summary: &Summary<'_>, curves: &[Curves]) -> Option<f64> {
    let name = figure.row.variant;
    let finished = || summary.finished().find(|(v, _)| v.name == name).map(|(_, figures)| figures);
    match figure.of {
        Quantity::Seconds => Some(finished()?.seconds),
        Quantity::NodeRate => Some(finished()?.node_bytes_per_s? / 1e6),
        Quantity::Load(metric) => {
            let load = summary.loads.iter().find(|load| load.variant == name)?;
            let all = load::figures(&load.laps);
            all.iter().find(|figure| figure.metric.name == metric)?.total
        }
        Quantity::Busy(thread) => {
            let finished = finished()?;
            let threads = &finished.stream.as_ref()?.threads;
            let thread = threads.iter().find(|one| one.name.ends_with(thread))?;
            Some(thread.busy_s / finished.seconds)
        }
        Quantity::HeldBy(limit) => {
            let limits = &finished()?.limits;
            let share = limits.iter().find(|share| share.limit == limit);
            Some(share.map_or(0.0, |share| share.share))
        }
        Quantity::PeakCores(node) => {
            let curve = curves.iter().find(|curve| curve.variant == name)?;
            Some(curve.nodes.iter().find(|curve| curve.node == node)?.max_cores)
        }
        Quantity::DoneAfter(seconds) => shards_done(run, name, seconds).map(f64::from),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_come_back_in_their_order_and_an_error_ends_them() {
        let jobs: Vec<u64> = (0..40).collect();
        let twice = side_by_side(&jobs, &|job: u64| Ok(2 * job), |_, _| {}).unwrap();
        assert_eq!(twice, (0..40).map(|job| 2 * job).collect::<Vec<u64>>());
        let failing = |job: u64| if job == 7 { Err(anyhow!("seven")) } else { Ok(job) };
        assert_eq!(side_by_side(&jobs, &failing, |_, _| {}).unwrap_err().to_string(), "seven");
        assert!(side_by_side(&[], &|job: u64| Ok(job), |_, _| {}).unwrap().is_empty());
    }
}
