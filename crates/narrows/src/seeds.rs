//! Plans in virtual time, each with several seeds, side by side. A run in virtual time has one thread, so that as many
//! go on at once as there are cores.

use std::collections::{BTreeMap, VecDeque};
use std::ops::RangeInclusive;
use std::path::Path;
use std::rc::Rc;
use std::sync::{Mutex, mpsc};
use std::thread;
use std::time::Instant;

use anyhow::{Context, anyhow};
use insight::node_use::{self, Used, node_use};
use insight::published::{Comparison, comparisons, shards_done};
use insight::{Summary, curves, load};
use lab::conclusions::{Figure, Quantity, When, conclusions};
use lab::plan::Plan;
use lab::{Options, Place, Quiet};
use record::units::show_seconds;
use record::{FollowFigures, RunDir};
use report::published::{FirstSeed, charted};

use crate::interrupt::{self, is_told};
use crate::runs::write_page;
use crate::terminal::say;

/// A plan, and which of its variants are run.
pub(crate) struct Work {
    pub(crate) plan: String,
    pub(crate) variants: Vec<String>,
    /// For a plan without published rows: the part of its size at which one run stands for all seeds.
    pub(crate) part: Option<f64>,
}

impl Work {
    /// The size at which it is run where `scale` is asked for.
    fn scale(&self, scale: f64) -> f64 {
        scale * self.part.unwrap_or(1.0)
    }
}

/// What a plan came to with one seed.
pub(crate) struct Outcome {
    /// Its published figures beside ours.
    pub(crate) rows: Vec<Comparison>,
    /// The figures that conclusions speak of.
    pub(crate) figures: Vec<(Figure, f64)>,
    /// What is drawn of it, of seed 1 at the size that was asked for alone.
    pub(crate) drawn: Option<FirstSeed>,
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

/// And at no smaller one: segments would have no room for their documents.
const PROBE_MIN: f64 = 0.0004;

/// Two seeds that differ by no more than this share in every row stand for all: what is drawn does not matter.
const MATTERS: f64 = 0.001;

/// Runs every plan with the seeds 1 to `seeds`; with one only where nothing is drawn, as two seeds give the same at a
/// fiftieth of the size, to the last digit; and with two where what is drawn does not matter. A plan of which a part
/// stands for all is run once. The record of seed 1 is kept in `runs`.
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
    let one = |job: Job| {
        let kept = job.seed == 1 && job.scale == scale;
        let name = format!("{}-{}-{}", works[job.work].plan, job.seed, job.scale);
        let folder = if kept { runs.to_owned() } else { scratch.join(name) };
        let outcome = outcome(&works[job.work], &job, &folder, kept);
        if !kept {
            let _ = std::fs::remove_dir_all(&folder);
        }
        outcome
    };
    let run = |jobs: &[Job]| {
        side_by_side(jobs, &one, |job: Job, outcome: &Outcome| {
            let took = show_seconds(outcome.seconds);
            let work = &works[job.work];
            say!("{}, seed {}, scale {}: {took}", work.plan, job.seed, work.scale(job.scale));
        })
    };
    let (once, mut all): (Vec<usize>, Vec<usize>) =
        (0..works.len()).partition(|work| works[*work].part.is_some());
    let mut small: Outcomes = works.iter().map(|_| Vec::new()).collect();
    let mut outcomes: Outcomes = works.iter().map(|_| Vec::new()).collect();
    let add = |outcomes: &mut Outcomes, jobs: Vec<Job>| {
        for (job, outcome) in jobs.iter().zip(run(&jobs)?) {
            outcomes[job.work].push(outcome);
        }
        anyhow::Ok(())
    };
    add(&mut small, jobs(&all, 1..=seeds.min(2), (scale * PROBE).max(PROBE_MIN)))?;
    // The longest first, so that no core is left with one of them at the end.
    all.sort_by(|a, b| small[*b][0].seconds.total_cmp(&small[*a][0].seconds));
    let mut first = jobs(&once, 1..=1, scale);
    first.extend(jobs(&all, 1..=1, scale));
    all.retain(|work| differ(&small[*work], 0.0));
    first.extend(jobs(&all, 2..=seeds.min(2), scale));
    add(&mut outcomes, first)?;
    all.retain(|work| differ(&outcomes[*work], MATTERS));
    add(&mut outcomes, jobs(&all, 3..=seeds, scale))?;
    Ok(outcomes)
}

/// A job for each of these plans, seed by seed.
fn jobs(works: &[usize], seeds: RangeInclusive<u64>, scale: f64) -> Vec<Job> {
    let of = |seed: u64| works.iter().map(move |work| Job { work: *work, seed, scale });
    seeds.flat_map(of).collect()
}

/// Whether the first two seeds differ in any row, by more than this share.
fn differ(seeds: &[Outcome], share: f64) -> bool {
    let ours = |outcome: &Outcome| -> Vec<Option<f64>> {
        outcome.rows.iter().map(|row| row.ours).collect()
    };
    matches!(seeds, [one, two, ..] if figures_differ(&ours(one), &ours(two), share))
}

fn figures_differ(one: &[Option<f64>], two: &[Option<f64>], share: f64) -> bool {
    let differ = |(one, two): (&Option<f64>, &Option<f64>)| match (one, two) {
        (Some(one), Some(two)) => (one - two).abs() > share * one.abs().max(two.abs()),
        _ => one != two,
    };
    one.len() != two.len() || one.iter().zip(two).any(differ)
}

/// Does every job on as many threads as there are cores; what comes of them is in their order. The first error ends it,
/// and whoever says stop.
pub(crate) fn side_by_side<J: Copy + Sync + Send, T: Send>(
    jobs: &[J],
    one: &(impl Fn(J) -> anyhow::Result<T> + Sync),
    mut told: impl FnMut(J, &T),
) -> anyhow::Result<Vec<T>> {
    let queue: Mutex<VecDeque<usize>> = Mutex::new((0..jobs.len()).collect());
    let (tell, hear) = mpsc::channel();
    let mut found: Vec<Option<T>> = jobs.iter().map(|_| None).collect();
    thread::scope(|scope| {
        for _ in 0..cores().min(jobs.len()) {
            let (tell, queue) = (tell.clone(), &queue);
            scope.spawn(move || {
                while !is_told()
                    && let Some(next) = queue.lock().ok().and_then(|mut queue| queue.pop_front())
                {
                    let done = one(jobs[next]);
                    // What was under way came to nothing.
                    let done = if is_told() { Err(anyhow!("interrupted")) } else { done };
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
        let why = if is_told() { "interrupted" } else { "a thread ended early" };
        found.into_iter().map(|done| done.ok_or_else(|| anyhow!(why))).collect()
    })
}

/// As many runs go on at once.
pub(crate) fn cores() -> usize {
    thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// `kept` are runs whose charts are shown.
fn outcome(work: &Work, job: &Job, runs: &Path, kept: bool) -> anyhow::Result<Outcome> {
    let (began, seed) = (Instant::now(), job.seed);
    let options = Options {
        scale: work.scale(job.scale),
        seed: Some(seed),
        variants: work.variants.clone(),
        watch: Rc::new(Quiet),
        interrupt: Rc::new(|| Box::pin(interrupt::told_to_stop())),
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
        figures: figures(wanted(&work.plan), &done.run, &summary),
        drawn: kept.then(|| drawn(&work.plan, &done.run, &summary)),
        seconds: began.elapsed().as_secs_f64(),
    })
}

/// The samples that charts need of the first seed, of the variants that have a chart.
fn drawn(plan: &str, run: &RunDir, summary: &Summary<'_>) -> FirstSeed {
    let has_chart = |variant: &str| charted().any(|one| one == (plan, variant));
    let names = summary.loads.iter().map(|load| load.variant.as_str());
    FirstSeed {
        plan: plan.to_owned(),
        searches: names
            .filter(|name| has_chart(name))
            .map(|name| (name.to_owned(), searches(summary, name)))
            .collect(),
        curves: curves(run, summary).into_iter().filter(|one| has_chart(&one.variant)).collect(),
    }
}

/// The figures of a plan that conclusions speak of.
fn wanted(plan: &str) -> impl Iterator<Item = Figure> {
    let all = conclusions().flat_map(|conclusion| conclusion.measure.figures());
    all.filter(move |figure| figure.row.plan == plan)
}

/// Figures of a run, each once; without those that it does not have.
pub(crate) fn figures(
    wanted: impl Iterator<Item = Figure>,
    run: &RunDir,
    summary: &Summary<'_>,
) -> Vec<(Figure, f64)> {
    let mut found: Vec<(Figure, f64)> = Vec::new();
    for figure in wanted {
        let known = found.iter().any(|(other, _)| *other == figure);
        if !known && let Some(value) = value(figure, run, summary) {
            found.push((figure, value));
        }
    }
    found
}

fn value(figure: Figure, run: &RunDir, summary: &Summary<'_>) -> Option<f64> {
    let name = figure.row.variant;
    let finished = || summary.finished().find(|(v, _)| v.name == name).map(|(_, figures)| figures);
    match figure.of {
        Quantity::Seconds => Some(finished()?.seconds),
        Quantity::NodeRate => Some(finished()?.node_bytes_per_s? / 1e6),
        Quantity::DocumentRate => Some(finished()?.bytes_per_s / 1e6),
        Quantity::Rollbacks => Some(finished()?.stream.as_ref()?.rollbacks as f64),
        Quantity::Streamed => {
            let finished = finished()?;
            let again = finished.stream.as_ref()?.again_bytes as f64;
            Some((finished.bytes as f64 + again) / 1e9)
        }
        Quantity::Load(metric) => {
            let load = summary.loads.iter().find(|load| load.variant == name)?;
            load::total(&load.laps, metric)
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
        Quantity::Cores(when, node) => node_use(run, name, node, Used::Cores, part(when)),
        Quantity::Sent(when, node) => {
            Some(node_use(run, name, node, Used::Sent, part(when))? / 1e6)
        }
        Quantity::Received(when, node) => {
            Some(node_use(run, name, node, Used::Received, part(when))? / 1e6)
        }
        Quantity::DoneAfter(seconds) => shards_done(run, name, seconds).map(f64::from),
        Quantity::SearchesOf(node) => {
            let (mut those, others): (Vec<_>, Vec<_>) =
                searches(summary, name).into_iter().partition(|(other, _)| other == node);
            let mean = others.iter().map(|(_, count)| count).sum::<f64>() / others.len() as f64;
            those.pop().map(|(_, count)| count / mean)
        }
        Quantity::SearchesSpread => {
            let counts = || searches(summary, name).into_values();
            Some(counts().reduce(f64::max)? / counts().reduce(f64::min)?)
        }
        Quantity::Persisted => finished()?.stream.as_ref()?.persisted_s,
        Quantity::MemoryPeak => {
            let memory = finished()?.stream.as_ref()?.memory?;
            Some(memory.used_bytes_max as f64 / memory.quota_bytes as f64)
        }
        Quantity::Stopped => {
            let finished = finished()?;
            Some(finished.stream.as_ref()?.memory?.stopped_s / finished.seconds)
        }
        Quantity::LongestCatchUp => {
            let following = following(run, name)?;
            let waits = following.catch_ups.iter().chain(&following.restarts);
            waits.map(|wait| wait.seconds).reduce(f64::max)
        }
        Quantity::LagMax => Some(following(run, name)?.lag_s_max),
        Quantity::Rollovers => Some(following(run, name)?.rollovers as f64),
        Quantity::DocumentsAnIndex => {
            let following = following(run, name)?;
            // The last index is still written to: it is no whole one.
            let rolled = following.rolled_operations as f64;
            (rolled > 0.0).then(|| rolled / following.rollovers as f64 / 1e6)
        }
    }
}

/// How the first lap of a variant followed.
fn following<'a>(run: &'a RunDir, variant: &str) -> Option<&'a FollowFigures> {
    run.rows.iter().find(|row| row.variant == variant)?.following.as_ref()
}

fn part(when: When) -> node_use::When {
    match when {
        When::Peak => node_use::When::Peak,
        When::LastShard => node_use::When::LastShard,
    }
}

/// Searches of shards that each node ran in all laps of a variant; only nodes that ran any.
fn searches(summary: &Summary<'_>, variant: &str) -> BTreeMap<String, f64> {
    let load = summary.loads.iter().find(|load| load.variant == variant);
    let laps = load.into_iter().flat_map(|load| &load.laps);
    let mut found = BTreeMap::new();
    for (node, count) in laps.flat_map(|lap| &lap.searches).filter(|(_, count)| **count > 0) {
        *found.entry(node.clone()).or_default() += *count as f64;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_differ_by_more_than_a_share() {
        let one = [Some(1000.0), None];
        assert!(!figures_differ(&one, &one, 0.0));
        assert!(figures_differ(&one, &[Some(1000.5), None], 0.0));
        assert!(!figures_differ(&one, &[Some(1000.5), None], MATTERS));
        assert!(figures_differ(&one, &[Some(1002.0), None], MATTERS));
        assert!(figures_differ(&one, &[Some(1000.0), Some(1.0)], MATTERS));
        assert!(figures_differ(&one, &one[..1], MATTERS));
    }

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
