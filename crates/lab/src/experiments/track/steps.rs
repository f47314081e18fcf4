//! Tasks that are no loads: a client goes through steps, each time as one request of the report.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use clusters::Asker;
use futures_util::future::{LocalBoxFuture, join_all, try_join_all};
use futures_util::stream::{FuturesUnordered, TryStreamExt};
use record::LoadFigures;
use serde_json::Value;
use tokio::sync::{RwLock, Semaphore};
use world::{Env, Time};

use super::failures::{failure_of, is_unreachable, status_of};
use super::points::Points;
use crate::error::{Error, Result};
use crate::load::{Failure, Live, Load, Next, Recorder, Sample, Starts};
use crate::track::{Condition, PointInTime, Request, Step, Task};

/// How often a step is tried where the answer does not even have what is waited for.
const TRIES_FOR_NOTHING: u32 = 10;
/// The pause between looks whether a health that is waited for can come.
const LOOK: Duration = Duration::from_secs(1);
/// A request that tells of all merges that go on.
const MERGES: &str = "/_tasks?actions=indices:admin/forcemerge&detailed=true";

/// Why a step was not done.
enum Lost {
    /// It counts as an error, as in a load.
    Request(Failure),
    /// What comes after it counts on it.
    Run(Box<Error>),
    /// Its task is to end.
    Stopped,
}

impl From<Error> for Lost {
    fn from(error: Error) -> Lost {
        Lost::Run(Box::new(error))
    }
}

/// Goes through steps as often as the schedule says, each time as one request. `nodes` are those that were started for
/// the track; none where the cluster was there already.
pub(super) async fn go_through(
    env: &Env,
    asker: &Asker,
    task: &Task,
    load: &Load,
    steps: &[Step],
    live: &Arc<Live>,
    nodes: Option<u32>,
) -> Result<LoadFigures> {
    let starts = RefCell::new(Starts::new(load, env.now()));
    let recorder = RefCell::new(Recorder::new(load));
    let points = Points::new(asker.is_elasticsearch());
    let openings: Vec<RwLock<()>> = (0..load.clients).map(|_| RwLock::new(())).collect();
    let between_clients = load.ramp_up / load.clients.max(1);
    let client = |number: u32| {
        let (starts, recorder, points, openings) = (&starts, &recorder, &points, &openings);
        async move {
            if !wait_until(env, env.now() + between_clients * number, live).await {
                return Ok(());
            }
            let mut free = env.now();
            loop {
                let next = starts.borrow_mut().next(free);
                let Next::Start { at, measured } = next else { return Ok(()) };
                recorder.borrow_mut().follow(&starts.borrow());
                if !wait_until(env, at, live).await {
                    return Ok(());
                }
                let started = env.now();
                let room = Semaphore::new(task.connections.unwrap_or(Semaphore::MAX_PERMITS));
                let (task, room, opening) = (&task.name, &room, &openings[number as usize]);
                let through =
                    Through { env, asker, task, live, room, nodes, points, number, opening };
                let (bytes, outcome) = match all(&through, steps).await {
                    Ok(bytes) => (bytes, Ok(())),
                    Err(Lost::Request(failure)) => (0, Err(failure)),
                    Err(Lost::Run(error)) => {
                        // The others are given up, but none that opens a point in time just now.
                        join_all(openings.iter().map(RwLock::write)).await;
                        return Err(*error);
                    }
                    Err(Lost::Stopped) => return Ok(()),
                };
                let ended = env.now();
                let counter = if outcome.is_ok() { &live.answered } else { &live.failed };
                counter.fetch_add(1, Ordering::Relaxed);
                let sample = Sample {
                    host: 0,
                    intended: at,
                    free,
                    started,
                    ended,
                    measured,
                    bytes,
                    documents: 0,
                    outcome,
                };
                recorder.borrow_mut().record(&sample);
                // What is left to be ended is no part of the request.
                free = if points.end_left(asker, Some(number)).await { env.now() } else { ended };
            }
        }
    };
    // What is under way when the task is ended may take long: what is due from then on is no longer to be sent.
    let ended = async {
        live.stopped().await;
        starts.borrow_mut().interrupt(env.now());
        std::future::pending::<()>().await;
    };
    // The others are not waited for where one fails: the next start of one may be an hour away.
    let clients: FuturesUnordered<_> = (0..load.clients).map(client).collect();
    let done = tokio::select! {
        biased;
        done = clients.try_collect::<()>() => done,
        () = ended => Ok(()),
    };
    points.end_left(asker, None).await;
    done?;
    if live.is_stopped() {
        starts.borrow_mut().interrupt(env.now());
    }
    // As of a load: the rest of the time is measured, and what was due in it counts.
    let end = starts.borrow().end();
    if let Some(end) = end {
        wait_until(env, end, live).await;
    }
    let mut recorder = recorder.into_inner();
    recorder.close_after(&mut starts.borrow_mut(), env.now());
    Ok(recorder.figures(&task.name, load))
}

/// Waits until then; answers whether the task still goes on.
async fn wait_until(env: &Env, when: Time, live: &Live) -> bool {
    if env.now() >= when {
        return !live.is_stopped();
    }
    tokio::select! {
        biased;
        () = live.stopped() => false,
        () = env.sleep_until(when) => true,
    }
}

/// What a client goes through steps with.
struct Through<'a> {
    env: &'a Env,
    asker: &'a Asker,
    task: &'a str,
    live: &'a Live,
    /// For what goes on at a time.
    room: &'a Semaphore,
    /// How many nodes were started for the track.
    nodes: Option<u32>,
    points: &'a Points,
    /// The client's.
    number: u32,
    /// The client's, read while it opens a point in time: until that is answered nobody could end it.
    opening: &'a RwLock<()>,
}

impl Through<'_> {
    /// Waits for so long, unless the task is to end before.
    async fn pause(&self, time: Duration) -> Result<(), Lost> {
        let goes_on = wait_until(self.env, self.env.now() + time, self.live).await;
        if goes_on { Ok(()) } else { Err(Lost::Stopped) }
    }
}

/// Goes through steps once; the bytes of all answers.
fn all<'a>(through: &'a Through<'a>, steps: &'a [Step]) -> LocalBoxFuture<'a, Result<u64, Lost>> {
    Box::pin(async move {
        let mut bytes = 0;
        for step in steps {
            bytes += match step {
                Step::Sleep(time) => {
                    let _room = through.room.acquire().await;
                    through.pause(*time).await?;
                    0
                }
                Step::Request(request) => {
                    let _room = through.room.acquire().await;
                    answered(through, request).await?
                }
                Step::Streams(streams) => {
                    let streams = streams.iter().map(|steps| async move {
                        let done = all(through, steps).await;
                        if done.is_err() {
                            // The others are given up, but none that opens a point in time just now.
                            drop(through.opening.write().await);
                        }
                        done
                    });
                    try_join_all(streams).await?.into_iter().sum::<u64>()
                }
            };
        }
        Ok(bytes)
    })
}

/// Sends the request of a step. Where a health is waited for that cannot come, that is said at once.
async fn answered(through: &Through<'_>, request: &Request) -> Result<u64, Lost> {
    let answer = match request.condition.as_deref() {
        Some(Condition::Health { status, .. }) if status == "green" => tokio::select! {
            biased;
            done = sent(through, request) => done,
            why = in_vain(through, &request.path) => Err(ended(through, request, why)),
        },
        _ if request.point_in_time.is_some() || request.pages > 1 => {
            return paged(through, request).await;
        }
        _ => sent(through, request).await,
    };
    Ok(answer?.len() as u64)
}

/// Sends a request about a point in time, or one for each page of a search.
async fn paged(through: &Through<'_>, request: &Request) -> Result<u64, Lost> {
    let (points, number) = (through.points, through.number);
    let wrong = |why| ended(through, request, why);
    let _opening = match request.point_in_time {
        Some(PointInTime::Opens(_)) => Some(through.opening.read().await),
        _ => None,
    };
    let mut next = Some(points.first(number, request).map_err(wrong)?);
    let mut bytes = 0;
    while let Some(asked) = next {
        let answer = sent(through, &asked).await?;
        bytes += answer.len() as u64;
        next = points.next(number, request, asked, &answer).map_err(wrong)?;
    }
    Ok(bytes)
}

/// The end of the run by a step that was not done.
fn ended(through: &Through<'_>, request: &Request, why: String) -> Lost {
    let (task, method, path) = (through.task.to_owned(), request.method, request.path.clone());
    Lost::from(Error::Task { task, method, path, why })
}

/// Sends the request of a step, again and again where that is wanted; the last answer, or nothing in place of an error
/// that is as good.
async fn sent(through: &Through<'_>, request: &Request) -> Result<Bytes, Lost> {
    let body = match &request.body {
        None => Bytes::new(),
        Some(Value::String(text)) => Bytes::from(text.clone()),
        Some(json) => Bytes::from(json.to_string()),
    };
    let ends = |why: String| Err(ended(through, request, why));
    for attempt in 1.. {
        let is_last = attempt >= request.tries;
        let (asker, method, path, body) =
            (through.asker, request.method, &request.path, body.clone());
        let asked = match request.timeout {
            None => asker.ask(method, path, body).await,
            Some(limit) => asker.ask_within(limit, method, path, body).await,
        };
        if let (Err(clusters::Error::Timeout { .. }), Some(every)) = (&asked, request.polled) {
            return until_merged(through, &request.path, every).await;
        }
        let why = match asked {
            Ok(answer) => match request.check.judge(200, &answer.body) {
                Err(failure) if request.is_counted && is_last => {
                    return Err(Lost::Request(failure));
                }
                Err(failure) => failure.to_string(),
                Ok(()) => {
                    let Some(condition) = &request.condition else { return Ok(answer.body) };
                    let said: Value = answer.json().map_err(Error::from)?;
                    if condition.holds(&said) {
                        return Ok(answer.body);
                    }
                    if let Some(name) =
                        condition.missing(&said).filter(|_| attempt >= TRIES_FOR_NOTHING)
                    {
                        return ends(format!(
                            "the answer has no {name}, so it would be waited for in vain"
                        ));
                    }
                    "the answer is not the one that is wanted".to_owned()
                }
            },
            Err(error) => {
                let status = status_of(&error).map(|(status, _)| status);
                // What is wrong about a request stays so.
                let stays = matches!(status, Some(400..=403 | 405..=407 | 409..=428 | 430..=499));
                match status {
                    Some(404) if request.may_be_missing => return Ok(Bytes::new()),
                    Some(status) if request.check.judge(status, b"").is_ok() => {
                        return Ok(Bytes::new());
                    }
                    _ if request.is_counted && (is_last || stays) && !is_unreachable(&error) => {
                        return Err(Lost::Request(failure_of(&error)));
                    }
                    _ if stays => return ends(error.to_string()),
                    _ => error.to_string(),
                }
            }
        };
        if is_last {
            let health = match request.condition.as_deref() {
                Some(Condition::Health { .. }) => health(through, &request.path).await,
                _ => None,
            };
            return ends(match health {
                Some(health) => format!("{why}; {}", health_in_words(&health, through.nodes)),
                None => why,
            });
        }
        through.pause(request.pause).await?;
    }
    unreachable!("it is tried so often, and no longer")
}

/// What the cluster says of its health, or of that of indices in a path, without waiting for anything.
async fn health(through: &Through<'_>, path: &str) -> Option<Value> {
    let bare = path.split('?').next().unwrap_or(path);
    through.asker.ask("GET", bare, Bytes::new()).await.ok()?.json().ok()
}

/// Waits until two looks one after another show copies that find no place and none on its way; says so.
async fn in_vain(through: &Through<'_>, path: &str) -> String {
    let mut before: Option<Value> = None;
    loop {
        through.env.sleep(LOOK).await;
        let health = health(through, path).await.filter(lacks_places);
        if let Some(health) = &health
            && before
                .as_ref()
                .is_some_and(|before| SAME.map(|of| &before[of]) == SAME.map(|of| &health[of]))
        {
            return health_in_words(health, through.nodes);
        }
        before = health;
    }
}

/// What is the same in two looks where nothing changes.
const SAME: [&str; 3] = ["number_of_nodes", "active_shards", "unassigned_shards"];

fn count(health: &Value, name: &str) -> u64 {
    health[name].as_u64().unwrap_or(0)
}

/// Whether all primaries are there, and replicas that wait neither for their turn nor for a node that left.
fn lacks_places(health: &Value) -> bool {
    let pending = ["initializing_shards", "relocating_shards", "delayed_unassigned_shards"];
    health["status"] == "yellow"
        && count(health, "unassigned_shards") > 0
        && pending.iter().all(|name| count(health, name) == 0)
}

/// What a cluster's health is, and what to do where it stays so.
fn health_in_words(health: &Value, nodes: Option<u32>) -> String {
    let status = health["status"].as_str().unwrap_or("unknown");
    let said = format!(
        "status {status}, nodes: {}, unassigned copies: {}, on their way: {}",
        count(health, "number_of_nodes"),
        count(health, "unassigned_shards"),
        count(health, "initializing_shards") + count(health, "relocating_shards"),
    );
    match nodes {
        _ if !lacks_places(health) => said,
        Some(nodes) => format!(
            "{said}; more replicas than nodes? --nodes {} starts one more, and an index without replicas needs none",
            nodes + 1
        ),
        None => format!("{said}; more replicas than nodes, or nodes that may not take them?"),
    }
}

/// Waits for a merge whose answer did not come in time: until no merge that goes on names the first of its indices.
async fn until_merged(through: &Through<'_>, path: &str, every: Duration) -> Result<Bytes, Lost> {
    let index = path.split(['/', ',']).nth(1).unwrap_or_default();
    loop {
        through.pause(every).await?;
        let asked = through.asker.ask("GET", MERGES, Bytes::new()).await;
        // Where this is not answered well, nobody knows: it is asked again.
        if asked.and_then(|answer| answer.json()).is_ok_and(|tasks| !is_merging(&tasks, index)) {
            return Ok(Bytes::new());
        }
    }
}

/// Whether a merge that goes on names an index: `Force-merge indices [a, b], maxSegments[1]`.
fn is_merging(tasks: &Value, index: &str) -> bool {
    let nodes = tasks["nodes"].as_object().into_iter().flatten();
    let mut tasks = nodes.flat_map(|(_, node)| node["tasks"].as_object().into_iter().flatten());
    tasks.any(|(_, task)| {
        let said = task["description"].as_str().unwrap_or_default();
        said.split(['[', ',', ' ', ']']).any(|name| name == index)
    })
}

#[cfg(test)]
mod tests;
