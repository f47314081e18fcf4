//! A track: its tasks one after another, some at the same time, on one cluster. It makes its indices itself.

use std::cell::RefCell;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use clusters::Asker;
use clusters::wire::WireHost;
use futures_util::future::{LocalBoxFuture, join_all};
use record::{LoadFigures, Row};
use serde_json::Value;
use world::{Env, Time};

use crate::error::{Error, Result};
use crate::load::{self, Failure, Live, Load, Next, Operation, Recorder, Sample, Starts};
use crate::plan::{DeclaredStep, LEADER, Needs, Variant};
use crate::runner::{Experiment, Runner, Telemetry, Turn};
use crate::track::{Action, CompletedBy, Element, Request, Step, Task, Track};

/// Progress is shown, and nodes are sampled, at least this often.
const SHOW_EVERY: Duration = Duration::from_millis(500);
/// Pause before a step is tried again that is retried until it succeeds.
const RETRY: Duration = Duration::from_millis(500);
/// How often such a step is tried.
const TRIES_MAX: u32 = 7200;
/// How often it is tried where the answer does not even have what is waited for.
const TRIES_FOR_NOTHING: u32 = 10;
/// Throughput is counted in windows of this length.
const WINDOW: Duration = Duration::from_secs(1);

/// The experiment of a track.
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
    fn step(&self) -> &'static DeclaredStep {
        &Self::STEP
    }

    async fn prepare(&mut self, _: &mut Runner<'_>, _: Option<&Variant>) -> Result<()> {
        Ok(())
    }

    async fn measure(&mut self, run: &mut Runner<'_>, turn: &Turn<'_>) -> Result<Row> {
        run.set_up(turn.variant).await?;
        let began = run.env.now();
        let mut loads = Vec::new();
        for element in &self.0.elements {
            loads.extend(element_of(run, turn, element).await?);
        }
        let seconds = (run.env.now() - began).as_secs_f64();
        let bytes = loads.iter().map(|figures| figures.answer_bytes).sum();
        Ok(Row { loads, ..Row::measured(&turn.variant.name, turn.lap, seconds, bytes) })
    }

    /// The next lap finds no index and no template of this one, whether the track deletes them or not.
    async fn clear_away(&mut self, run: &mut Runner<'_>) -> Result<()> {
        let mut names = self.0.indices.clone();
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

/// What a task needs of the run that it does not borrow.
struct Stage {
    env: Env,
    hosts: Vec<WireHost>,
    seed: u64,
    is_virtual: bool,
}

/// Runs an element; the figures of its tasks that are reported, in their order.
async fn element_of(
    run: &mut Runner<'_>,
    turn: &Turn<'_>,
    element: &Element,
) -> Result<Vec<LoadFigures>> {
    let name = &turn.variant.name;
    let stage = Stage {
        env: run.env.clone(),
        hosts: run.clusters.wire_hosts(LEADER)?,
        seed: run.plan.seed.wrapping_add(u64::from(turn.lap) << 32),
        is_virtual: run.clusters.is_virtual(),
    };
    let lives: Vec<Arc<Live>> = element.tasks.iter().map(|_| Arc::default()).collect();
    let askers = element.tasks.iter().map(|task| run.clusters.asker(LEADER, task.timeout));
    let askers: Vec<Asker> = askers.collect::<Result<_, _>>()?;
    let title: Vec<&str> = element.tasks.iter().map(|task| task.name.as_str()).collect();
    // Charts find the loads of a row by the ends of their phases, in their order.
    let reported = element.tasks.iter().filter(|task| task.reported).count();
    let phase = if reported > 0 { "load" } else { "task" };
    run.journal.phase(phase, true, Some(name), turn.lap)?;
    run.watch.begin(&title.join(", "), Some(name), None, "requests");
    let tasks = element.tasks.iter().zip(&lives).zip(&askers).map(|((task, live), asker)| {
        let (stage, lives) = (&stage, &lives);
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
            done
        }
    });
    let done = watched(run, turn, &lives, join_all(tasks)).await;
    let told = (0..reported.max(1))
        .try_for_each(|_| run.journal.phase(phase, false, Some(name), turn.lap));
    run.watch.end();
    let mut found = Vec::new();
    for (task, figures) in element.tasks.iter().zip(done?) {
        let figures = figures?;
        found.extend(Some(figures).filter(|_| task.reported));
    }
    told?;
    Ok(found)
}

/// Waits for tasks; samples nodes and shows how many requests were answered meanwhile.
async fn watched<T>(
    run: &mut Runner<'_>,
    turn: &Turn<'_>,
    lives: &[Arc<Live>],
    tasks: impl Future<Output = T>,
) -> Result<T> {
    let env = run.env.clone();
    let every = run.plan.sample.max(SHOW_EVERY);
    let telemetry = Telemetry::default();
    let mut tasks = pin!(tasks);
    let mut next = env.now() + every;
    loop {
        tokio::select! {
            biased;
            done = &mut tasks => return Ok(done),
            () = env.sleep_until(next) => {}
        }
        next = env.now() + every;
        let sampling = run.sample_nodes(&turn.variant.name, turn.lap, &telemetry);
        if let Ok(sampled) = env.timeout(every, sampling).await {
            sampled?;
        }
        run.watch.progress(lives.iter().map(|live| live.sent()).sum(), None);
    }
}

/// Runs a task.
async fn task_of(
    stage: &Stage,
    asker: &Asker,
    task: &Task,
    live: &Arc<Live>,
) -> Result<LoadFigures> {
    let load = Load {
        hosts: stage.hosts.iter().map(|host| host.address().to_owned()).collect(),
        clients: task.clients,
        arrival: task.arrival,
        warm_up: task.warm_up,
        measured: task.measured,
        timeout: task.timeout,
        window: WINDOW,
        ramp_up: task.ramp_up,
        seed: stage.seed,
    };
    match &task.action {
        Action::Send(operation) => send(stage, &load, operation, live).await,
        Action::Do(steps) => go_through(stage, asker, task, &load, steps, live).await,
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

/// Goes through steps as often as the schedule says, each time as one request. What fails in a step that nobody repeats
/// ends the run: what comes after it counts on it.
async fn go_through(
    stage: &Stage,
    asker: &Asker,
    task: &Task,
    load: &Load,
    steps: &[Step],
    live: &Arc<Live>,
) -> Result<LoadFigures> {
    let env = &stage.env;
    let starts = RefCell::new(Starts::new(load, env.now()));
    let recorder = RefCell::new(Recorder::new(load));
    let client = || async {
        let mut free = env.now();
        loop {
            if live.is_stopped() {
                return Ok(());
            }
            let next = starts.borrow_mut().next(free);
            let Next::Start { at, measured } = next else { return Ok(()) };
            recorder.borrow_mut().follow(&starts.borrow());
            env.sleep_until(at).await;
            let started = env.now();
            let bytes = all(env, asker, &task.name, steps, live).await?;
            let ended = env.now();
            live.answered.fetch_add(1, Ordering::Relaxed);
            recorder.borrow_mut().record(&sample(at, free, started, ended, measured, bytes));
            free = ended;
        }
    };
    let done = join_all((0..load.clients).map(|_| client())).await;
    done.into_iter().collect::<Result<()>>()?;
    let mut recorder = recorder.into_inner();
    recorder.close(env.now());
    Ok(recorder.figures(&task.name, load))
}

fn sample(
    intended: Time,
    free: Time,
    started: Time,
    ended: Time,
    measured: bool,
    bytes: u64,
) -> Sample {
    let outcome: Result<(), Failure> = Ok(());
    Sample { host: 0, intended, free, started, ended, measured, bytes, documents: 0, outcome }
}

/// Goes through steps once; the bytes of all answers.
fn all<'a>(
    env: &'a Env,
    asker: &'a Asker,
    task: &'a str,
    steps: &'a [Step],
    live: &'a Live,
) -> LocalBoxFuture<'a, Result<u64>> {
    Box::pin(async move {
        let mut bytes = 0;
        for step in steps {
            bytes += match step {
                Step::Sleep(time) => {
                    env.sleep(*time).await;
                    0
                }
                Step::Request(request) => answered(env, asker, task, request, live).await?,
                Step::Streams(streams) => {
                    let streams = streams.iter().map(|steps| all(env, asker, task, steps, live));
                    let done: Result<Vec<u64>> = join_all(streams).await.into_iter().collect();
                    done?.into_iter().sum()
                }
            };
        }
        Ok(bytes)
    })
}

/// Sends the request of a step, again and again where that is wanted.
async fn answered(
    env: &Env,
    asker: &Asker,
    task: &str,
    request: &Request,
    live: &Live,
) -> Result<u64> {
    let body = request.body.as_ref().map_or_else(Bytes::new, |body| Bytes::from(body.to_string()));
    for attempt in 1.. {
        let asked = asker.ask(request.method, &request.path, body.clone()).await;
        let why = match asked {
            Ok(answer) => {
                let Some(condition) = &request.condition else {
                    return Ok(answer.body.len() as u64);
                };
                let said: Value = answer.json()?;
                if condition.holds(&said) {
                    return Ok(answer.body.len() as u64);
                }
                if let Some(name) =
                    condition.missing(&said).filter(|_| attempt >= TRIES_FOR_NOTHING)
                {
                    let why =
                        format!("the answer has no {name}, so it would be waited for in vain");
                    let (method, path) = (request.method, request.path.clone());
                    return Err(Error::Task { task: task.to_owned(), method, path, why });
                }
                "the answer is not the one that is wanted".to_owned()
            }
            Err(clusters::Error::Refused { status: 404, .. }) if request.may_be_missing => {
                return Ok(0);
            }
            Err(error) => error.to_string(),
        };
        if !request.retried || attempt >= TRIES_MAX || live.is_stopped() {
            let (method, path) = (request.method, request.path.clone());
            return Err(Error::Task { task: task.to_owned(), method, path, why });
        }
        env.sleep(RETRY).await;
    }
    unreachable!("it is tried so often, and no longer")
}
