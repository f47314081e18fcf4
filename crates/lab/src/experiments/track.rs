//! A track: its tasks one after another, some at the same time, on one cluster. It makes its indices itself.

mod failures;
mod points;
mod steps;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use clusters::Asker;
use clusters::wire::WireHost;
use futures_util::future::join_all;
use record::{LoadFigures, Row};
use world::{Env, Time};

use self::steps::go_through;
use crate::error::{Error, Result};
use crate::load::{self, Ending, Live, Load, Operation};
use crate::plan::{DeclaredStep, LEADER, Needs, Variant};
use crate::runner::{Experiment, Runner, Telemetry, Turn};
use crate::track::{Action, CompletedBy, Element, Task, Track};

/// Progress is shown, and nodes are sampled, at least this often.
const SHOW_EVERY: Duration = Duration::from_millis(500);

pub(crate) struct RunTrack(Track);

impl RunTrack {
    /// No plan has this step: a track makes it.
    pub(crate) const STEP: DeclaredStep =
        DeclaredStep { copies: false, ..DeclaredStep::new("track", Needs::OneCluster) };

    pub(crate) fn of(track: &Track) -> Self {
        RunTrack(track.clone())
    }
}

#[async_trait(?Send)]
impl Experiment for RunTrack {
    /// Loads go past the journal of a cluster that was there already, and make indices by their first document.
    async fn prepare(&mut self, run: &mut Runner<'_>, _: Option<&Variant>) -> Result<()> {
        let made = self.0.makes();
        Ok(made.into_iter().try_for_each(|index| run.clusters.will_make(LEADER, index))?)
    }

    async fn measure(&mut self, run: &mut Runner<'_>, turn: &Turn<'_>) -> Result<Row> {
        run.set_up(turn.variant).await?;
        let began = run.env.now();
        let started_here = run.clusters.faults().is_ok();
        let nodes = started_here.then_some(run.plan.leader.nodes);
        for element in &self.0.elements {
            element_of(run, turn, element, began, nodes).await?;
        }
        let loads = run.unfinished.take().map_or_else(Vec::new, |row| row.loads);
        Ok(row(run, turn, began, loads))
    }

    /// The next lap finds no index and no template of this one, whether the track deletes them or not.
    async fn clear_away(&mut self, run: &mut Runner<'_>) -> Result<()> {
        let mut names: Vec<String> = self.0.makes().into_iter().map(str::to_owned).collect();
        // Of clusters that were not started here nothing is deleted but what has the run's own names, whatever was
        // refused before.
        if self.0.makes_other_indices() && run.clusters.faults().is_ok() {
            // The cluster was started for the track: all indices are its own, but for those of the store itself.
            let all = run.ask(LEADER, "GET", "/_cat/indices?format=json&h=index", None).await?;
            let all = all.as_array().into_iter().flatten().filter_map(|row| row["index"].as_str());
            names = all.filter(|name| !name.starts_with('.')).map(str::to_owned).collect();
        }
        let indices = names.iter().map(|name| format!("/{name}"));
        for path in indices.chain(self.0.templates().into_iter().map(str::to_owned)) {
            let asked = run.ask(LEADER, "DELETE", &path, None).await;
            match asked {
                Ok(_) | Err(Error::Target(clusters::Error::Refused { status: 404, .. })) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

fn row(run: &Runner<'_>, turn: &Turn<'_>, began: Time, loads: Vec<LoadFigures>) -> Row {
    let seconds = (run.env.now() - began).as_secs_f64();
    let bytes = loads.iter().map(|figures| figures.answer_bytes).sum();
    Row { loads, ..Row::measured(&turn.variant.name, turn.lap, seconds, bytes) }
}

/// What a task needs of the run that it does not borrow.
struct Stage {
    env: Env,
    hosts: Vec<WireHost>,
    seed: u64,
    is_virtual: bool,
    /// How many nodes were started for the track; none where the cluster was there already.
    nodes: Option<u32>,
}

/// Runs an element. Each of its tasks that is reported is kept as soon as it has ended.
async fn element_of(
    run: &Runner<'_>,
    turn: &Turn<'_>,
    element: &Element,
    began: Time,
    nodes: Option<u32>,
) -> Result<()> {
    let name = &turn.variant.name;
    let stage = Stage {
        env: run.env.clone(),
        hosts: run.clusters.wire_hosts(LEADER)?,
        seed: run.plan.seed.wrapping_add(u64::from(turn.lap) << 32),
        is_virtual: run.clusters.is_virtual(),
        nodes,
    };
    let lives: Vec<Arc<Live>> = element.tasks.iter().map(|_| Arc::default()).collect();
    // In virtual time there are no threads: tasks end with their world.
    let _ending = (!stage.is_virtual).then(|| Ending(&lives));
    let askers = element.tasks.iter().map(|task| run.clusters.asker(LEADER, task.load.timeout));
    let askers: Vec<Asker> = askers.collect::<Result<_, _>>()?;
    let title: Vec<&str> = element.tasks.iter().map(|task| task.name.as_str()).collect();
    let title = title.join(", ");
    if let Some(row) = run.unfinished.borrow_mut().as_mut() {
        row.stopped_at = Some(title.clone());
    }
    let is_reported = element.tasks.iter().any(|task| task.reported);
    let phase = if is_reported { "load" } else { "task" };
    run.journal.phase(phase, true, Some(name), turn.lap)?;
    run.watch.begin(&title, Some(name), None, "requests");
    let one = |at: usize| {
        let (stage, lives, title) = (&stage, &lives, &title);
        let (task, live, asker) = (&element.tasks[at], &lives[at], &askers[at]);
        async move {
            let done = task_of(stage, asker, task, live).await;
            let ends_all = match &element.completed_by {
                CompletedBy::All => done.is_err(),
                CompletedBy::Any => true,
                CompletedBy::Task(name) => done.is_err() || *name == task.name,
            };
            if ends_all {
                lives.iter().for_each(|live| live.stop());
            }
            let figures = LoadFigures { operation_type: task.operation_type.clone(), ..done? };
            if task.reported {
                // Charts find the loads of a row by the ends of their phases, in their order.
                run.journal.phase(phase, false, Some(name), turn.lap)?;
                let mut loads = run.unfinished.take().map_or_else(Vec::new, |row| row.loads);
                loads.push(figures);
                let stopped_at = Some(title.clone());
                let so_far = Row { stopped_at, ..row(run, turn, began, loads) };
                *run.unfinished.borrow_mut() = Some(so_far);
            }
            Ok::<(), Error>(())
        }
    };
    let sequences = (0..element.at_once).map(|first| {
        let (one, lives) = (&one, &lives);
        async move {
            for at in (first..lives.len()).step_by(element.at_once) {
                // What ends the others also ends those that have not begun.
                if !lives[at].is_stopped() {
                    one(at).await?;
                }
            }
            Ok::<(), Error>(())
        }
    });
    let done = watched(run, turn, &lives, join_all(sequences)).await;
    let done: Result<()> = done.and_then(|done| done.into_iter().collect());
    run.watch.end();
    let noted = match is_reported {
        true => Ok(()),
        false => run.journal.phase(phase, false, Some(name), turn.lap),
    };
    done.and(noted)
}

/// Waits for tasks; samples nodes and shows how many requests were answered meanwhile.
async fn watched<T>(
    run: &Runner<'_>,
    turn: &Turn<'_>,
    lives: &[Arc<Live>],
    tasks: impl Future<Output = T>,
) -> Result<T> {
    let (env, every) = (&run.env, run.plan.sample.max(SHOW_EVERY));
    let telemetry = Telemetry::default();
    // Beside the tasks, so that no step waits for a sample.
    let sampling = async {
        let mut next = env.now() + every;
        loop {
            env.sleep_until(next).await;
            next = env.now() + every;
            let sample = run.sample_nodes(&turn.variant.name, turn.lap, &telemetry);
            if let Ok(Err(error)) = env.timeout(every, sample).await {
                return error;
            }
            run.watch.progress(lives.iter().map(|live| live.sent()).sum(), None);
        }
    };
    tokio::select! {
        biased;
        done = tasks => Ok(done),
        error = sampling => Err(error),
    }
}

/// Runs a task.
async fn task_of(
    stage: &Stage,
    asker: &Asker,
    task: &Task,
    live: &Arc<Live>,
) -> Result<LoadFigures> {
    let hosts = stage.hosts.iter().map(|host| host.address().to_owned()).collect();
    let load = Load { hosts, seed: stage.seed, ..task.load.clone() };
    match &task.action {
        Action::Send(operation) => send(stage, &load, operation, live).await,
        Action::Do(steps) => {
            go_through(&stage.env, asker, task, &load, steps, live, stage.nodes).await
        }
    }
}

async fn send(
    stage: &Stage,
    load: &Load,
    operation: &Operation,
    live: &Arc<Live>,
) -> Result<LoadFigures> {
    if stage.is_virtual {
        return load::in_virtual_time(&stage.env, load, operation, live).await;
    }
    load::start(load, operation, &stage.hosts, 1, live)?.figures().await
}
