//! Verdicts on trial: cases drawn from seeds, each judged by what `explain` does with a live cluster.
//!
//! | file | holds |
//! | --- | --- |
//! | `awaited` | how often the moment when a cluster is green lies within the interval that `watch` shows |
//! | `case` | [`Case`]: what is injected into which surroundings, drawn from a seed; the deck of kinds. Pure |
//! | `cause` | what holds recoveries back, by name |
//! | `conditions` | [`conditions::Conditions`]: nodes, link, settings; what a cause and what lifts it change. Pure |
//! | `label` | what is right of a recording |
//! | `stage` | two nodes under conditions |
//! | `recordings` | recordings of clusters as cases, beside what somebody knows of the cause |
//! | `place` | where stages are: in virtual time, or on nodes that run as processes |
//! | `steered` | what `steer` makes of a case, beside leaving it alone and the best fixed settings |
//! | `trial` | whether a case is one, its verdict, and what the advice brings |

mod awaited;
mod case;
mod cause;
mod conditions;
mod label;
mod place;
mod recordings;
mod stage;
mod steered;
mod trial;

use std::collections::BTreeMap;
use std::path::Path;
use std::pin::pin;
use std::task::{Poll, Waker};

use anyhow::{Context, anyhow};
use clusters::Clusters;
use report::benched::Bench;
use world::{Env, LinkConfig};

use super::bed::two_nodes;
use crate::interrupt::{Ended, until_told};
pub(crate) use awaited::{Awaited, as_json as awaited_as_json, table as awaited_table};
use place::{Place, Processes, Simulated};
pub(crate) use recordings::of_recordings;
pub(crate) use steered::{Steered, as_json, table};
use trial::{Outcome, Writes, trial};

use crate::seeds::side_by_side;
use crate::terminal::say;

/// Every case of some seeds in virtual time, as many at once as there are cores. `probes` says whether the verdict is
/// also asked for with probes; `recordings` is where what was seen is kept. The first error of a case comes with the
/// cases that could be tried.
pub(crate) fn in_virtual_time(
    seeds: Vec<u64>,
    probes: bool,
    recordings: Option<&Path>,
) -> anyhow::Result<(Bench, Option<anyhow::Error>)> {
    let journals = tempfile::tempdir()?;
    let writes = Writes { journals: probes.then_some(journals.path()), recordings };
    let one = |seed: u64| at_once(trial(&Simulated, &Simulated.case(seed), writes));
    let mut told = Told::new(&Simulated, seeds.len());
    let tried = side_by_side(&seeds, &|seed| Ok(one(seed)), |seed, outcome| {
        if let Ok(outcome) = outcome {
            told.tell(seed, outcome);
        }
    })?;
    let (outcomes, failed): (Vec<_>, Vec<_>) = tried.into_iter().partition(Result::is_ok);
    let bench = bench(&Simulated, outcomes.into_iter().flatten().collect());
    Ok((bench, failed.into_iter().find_map(Result::err)))
}

/// What simulated worlds come to, which nobody waits for.
fn at_once<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    match pin!(work).poll(&mut std::task::Context::from_waker(Waker::noop())) {
        Poll::Ready(outcome) => outcome,
        Poll::Pending => Err(anyhow!("a simulated world was waited for")),
    }
}

/// What `steer` makes of the cases of some seeds in virtual time.
pub(crate) fn steered_in_virtual_time(seeds: &[u64]) -> anyhow::Result<Vec<Steered>> {
    let journals = tempfile::tempdir()?;
    let one =
        |seed: u64| at_once(steered::steered(&Simulated, &Simulated.case(seed), journals.path()));
    tried(seeds, &one, |came| {
        format!("{:.2} times, {:.2} of the best", came.gain(), came.of_best())
    })
}

/// What is said of the time to green in the cases of some seeds in virtual time.
pub(crate) fn awaited_in_virtual_time(seeds: &[u64]) -> anyhow::Result<Vec<Awaited>> {
    let one = |seed: u64| at_once(awaited::awaited(&Simulated, &Simulated.case(seed)));
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
        let (count, name) = (seeds.len(), Simulated.case(seed).name());
        let says = match came {
            Ok(came) => words(came),
            Err(why) => format!("no case: {why}"),
        };
        say!("{done} of {count}, seed {seed}, {name}: {says}");
    })?;
    Ok(came.into_iter().filter_map(Result::ok).collect())
}

/// The same on nodes that are started for it, one case after another. Whatever the end, the nodes are stopped; an error
/// comes with the cases before it.
pub(crate) async fn on_processes<C: Clusters>(
    env: &Env,
    mut clusters: C,
    seeds: Vec<u64>,
    probes: bool,
    recordings: Option<&Path>,
) -> anyhow::Result<(Bench, Option<anyhow::Error>)> {
    let journals = tempfile::tempdir()?;
    let writes = Writes { journals: probes.then_some(journals.path()), recordings };
    say!("starting two nodes ({})", clusters.name());
    let mut found = None;
    clusters.start(&two_nodes(LinkConfig::default())).await.context("start two nodes")?;
    let ended = until_told(async {
        let place = Processes::new(env, &clusters).await?;
        let mut told = Told::new(&place, seeds.len());
        let (mut outcomes, mut failed) = (Vec::new(), None);
        for seed in seeds {
            match trial(&place, &place.case(seed), writes).await {
                Ok(outcome) => {
                    told.tell(seed, &outcome);
                    outcomes.push(outcome);
                }
                Err(error) => {
                    failed = Some(error);
                    break;
                }
            }
        }
        found = Some((bench(&place, outcomes), failed));
        Ok(())
    });
    let ended = ended.await;
    clusters.stop().await;
    match ended? {
        Ended::Complete => found.context("every case was tried"),
        Ended::Interrupted => anyhow::bail!("interrupted; the nodes are stopped"),
    }
}

/// Tells what came of one case after another.
struct Told<'a, P> {
    place: &'a P,
    done: usize,
    count: usize,
}

impl<'a, P: Place> Told<'a, P> {
    fn new(place: &'a P, count: usize) -> Self {
        Told { place, done: 0, count }
    }

    fn tell(&mut self, seed: u64, outcome: &Outcome) {
        self.done += 1;
        let came = match outcome {
            Outcome::Admitted(scored) => scored.sentence.clone(),
            Outcome::Refused(why) => format!("no case: {why}"),
        };
        let case = self.place.case(seed);
        let (done, count, name, severity) = (self.done, self.count, case.name(), case.severity);
        say!("{done} of {count}, seed {seed}, {name}, severity {severity}: {came}");
    }
}

fn bench(place: &impl Place, outcomes: Vec<Outcome>) -> Bench {
    let target = place.name().to_owned();
    let mut bench = Bench { target, cases: vec![], refused: BTreeMap::new(), is_drawn: true };
    for outcome in outcomes {
        match outcome {
            Outcome::Admitted(scored) => bench.cases.push(*scored),
            Outcome::Refused(why) => *bench.refused.entry(why.to_owned()).or_default() += 1,
        }
    }
    bench
}
