//! Remote clusters: how they are reached, and what a node knows of their indices.
//!
//! A node asks each remote cluster for its indices when it connects, and again from time to time. So a follow begins
//! without asking first, which saves a round trip.

pub(crate) mod claims;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::mpsc;
use world::{Env, Task};

use crate::core::Core;
use crate::state::{Event, Index, IndexMeta, IndexShardRoutingTable};
use crate::transport::{
    CallError, Class, Failure, NodeRow, RemoteIndex, Request, Response, Result, UNAVAILABLE,
    unexpected,
};

/// How long a remote cluster may take to answer.
const REMOTE_TIMEOUT: Duration = Duration::from_secs(30);
/// How often a remote cluster is asked what has changed.
const REFRESH: Duration = Duration::from_secs(30);
/// Indices in one answer; further ones are asked for one by one.
const TOLD_AT_ONCE_BYTES: u64 = 1 << 20;

/// What a node knows of remote clusters, and what it told them of this one.
pub struct RemoteClusterService {
    core: Rc<Core>,
    by_alias: RefCell<BTreeMap<String, Known>>,
    /// The seed of each that answered last.
    answered: RefCell<BTreeMap<String, String>>,
    keeping: RefCell<Option<Task<()>>>,
    /// On a leader: its indices as they were described last, each with its description.
    described: RefCell<Described>,
}

/// A remote cluster's indices, as they were at a version of its state.
struct Known {
    version: u64,
    indices: BTreeMap<String, Arc<RemoteIndex>>,
}

type Described = BTreeMap<String, (Arc<IndexMeta>, Arc<RemoteIndex>)>;

impl RemoteClusterService {
    pub(crate) fn new(core: &Rc<Core>) -> Rc<Self> {
        Rc::new(RemoteClusterService {
            core: core.clone(),
            by_alias: RefCell::default(),
            answered: RefCell::default(),
            keeping: RefCell::default(),
            described: RefCell::default(),
        })
    }

    /// Connects to the remote clusters of the settings and keeps asking them; what was known before is forgotten.
    pub(crate) fn restart(self: &Rc<Self>) {
        self.by_alias.borrow_mut().clear();
        let keeping = keep_in_touch(self.clone());
        let task = self.core.env.spawn("keeps in touch with remote clusters", keeping);
        *self.keeping.borrow_mut() = Some(task);
    }

    /// Stops asking.
    pub(crate) async fn stop(&self) {
        let task = self.keeping.borrow_mut().take();
        if let Some(task) = task {
            task.cancel().await;
        }
    }

    /// What an index was when the cluster was last asked.
    pub(crate) fn index(&self, alias: &str, name: &str) -> Option<Arc<RemoteIndex>> {
        self.by_alias.borrow().get(alias)?.indices.get(name).cloned()
    }

    fn version(&self, alias: &str) -> Option<u64> {
        self.by_alias.borrow().get(alias).map(|known| known.version)
    }
}

/// On a leader: describes an index.
pub(crate) fn describe(core: &Core, index: &str) -> Result<Response> {
    let state = core.joined_state(index, 0)?;
    let meta = state.indices.get(index).ok_or_else(|| Failure::no_such_index(index))?;
    Ok(Response::RemoteIndex(description(meta)))
}

/// On a leader: the indices whose primaries have started. An asker that knows this version waits for a change.
pub(crate) async fn describe_all(
    service: &Rc<RemoteClusterService>,
    known_version: Option<u64>,
    wait: Duration,
) -> Result<Response> {
    let deadline = service.core.env.now() + wait;
    let state = loop {
        let changed = service.core.published.changed.notified();
        let state = service.core.state();
        if state.members.is_empty() {
            let why = "the node that was asked is starting; try again";
            return Err(Failure::new(503, UNAVAILABLE, why));
        }
        if known_version != Some(state.version) {
            break state;
        }
        if service.core.env.now() >= deadline {
            return Ok(Response::Done);
        }
        tokio::select! {
            biased;
            () = changed => {}
            () = service.core.env.sleep_until(deadline) => {}
        }
    };
    let mut bytes = 0;
    let mut indices = BTreeMap::new();
    let mut others = BTreeMap::new();
    // Few of hundreds of indices have changed since the last question.
    let mut before = service.described.take();
    let mut described = Described::new();
    for (name, shards) in &state.routing {
        let Some(meta) = state.indices.get(name) else { continue };
        if !shards.iter().all(IndexShardRoutingTable::was_started) {
            continue;
        }
        let one = before.remove(name).filter(|(of, _)| Arc::ptr_eq(of, meta));
        let one = one.unwrap_or_else(|| (meta.clone(), Arc::new(description(meta))));
        bytes += one.1.wire_bytes();
        if bytes > TOLD_AT_ONCE_BYTES {
            others.insert(name.clone(), one.1.uuid.clone());
        } else {
            indices.insert(name.clone(), one.1.clone());
        }
        described.insert(name.clone(), one);
    }
    service.described.replace(described);
    Ok(Response::RemoteIndices { version: state.version, indices, others })
}

fn description(meta: &IndexMeta) -> RemoteIndex {
    RemoteIndex {
        uuid: meta.uuid.clone(),
        shards: meta.shards,
        mappings: meta.mappings.to_string(),
        mapping_version: meta.mapping_version,
        settings: meta.settings.clone(),
        settings_version: meta.settings_version,
        aliases: meta.aliases.clone(),
        aliases_version: meta.aliases_version,
    }
}

/// Where the nodes of a remote cluster are reached.
pub(crate) fn seeds(core: &Core, alias: &str) -> Result<Vec<String>> {
    let settings = core.settings();
    let remote = settings.remotes().get(alias).ok_or_else(|| {
        let known: Vec<&str> = settings.remotes().keys().map(String::as_str).collect();
        let reason = format!(
            "no such remote cluster [{alias}]; set cluster.remote.{alias}.seeds{}",
            record::names::did_you_mean(alias, known)
        );
        Failure::new(404, "no_such_remote_cluster_exception", reason)
    })?;
    Ok(remote.seeds.clone())
}

/// Asks a remote cluster to describe one of its indices.
pub(crate) async fn ask_index(
    service: Rc<RemoteClusterService>,
    alias: String,
    index: String,
) -> Result<RemoteIndex> {
    match ask_any(&service, &alias, Request::RemoteIndex(index), Duration::ZERO).await? {
        Response::RemoteIndex(described) => Ok(described),
        _ => Err(unexpected()),
    }
}

/// Gives a follower its leader's mappings.
pub(crate) async fn take_mappings(core: &Core, index: Index, leader: &RemoteIndex) -> Result<()> {
    let mappings: Value = serde_json::from_str(&leader.mappings).map_err(|error| {
        let reason = format!("the leader's mappings of [{}] cannot be read: {error}", index.name);
        Failure::new(500, "transport_exception", reason)
    })?;
    let state = core.state();
    let meta = state.indices.get(&index.name).filter(|meta| meta.uuid == index.uuid);
    if meta.is_none_or(|meta| meta.mappings == mappings) {
        return Ok(());
    }
    core.submit(Event::PutMapping { index, mappings }).await
}

/// The indices of a remote cluster, at a version of its state.
pub struct Listing {
    /// Of its state.
    pub version: u64,
    /// Uuids by name, of those whose primaries have been started.
    pub uuids: BTreeMap<String, String>,
}

/// Asks a remote cluster for its indices; none where it is still at the version that is known after a wait.
pub async fn list(
    service: &Rc<RemoteClusterService>,
    alias: &str,
    known_version: Option<u64>,
    wait: Duration,
) -> Result<Option<Listing>> {
    let request = Request::RemoteIndices { known_version, wait };
    match ask_any(service, alias, request, wait).await? {
        Response::Done => Ok(None),
        Response::RemoteIndices { version, indices, others } => {
            let mut uuids = others;
            uuids.extend(indices.into_iter().map(|(name, index)| (name, index.uuid.clone())));
            Ok(Some(Listing { version, uuids }))
        }
        _ => Err(unexpected()),
    }
}

/// Asks the seeds one after another until one answers; a long poll may take `wait` longer. Begins with the seed that
/// answered last, so that a seed which stands still is waited for only once.
async fn ask_any(
    service: &Rc<RemoteClusterService>,
    alias: &str,
    request: Request,
    wait: Duration,
) -> Result<Response> {
    let limit = REMOTE_TIMEOUT + wait;
    let mut failure = None;
    let mut seeds = seeds(&service.core, alias)?;
    let last = service.answered.borrow().get(alias).cloned();
    let begin = seeds.iter().position(|seed| Some(seed) == last.as_ref()).unwrap_or(0);
    seeds.rotate_left(begin);
    for seed in seeds {
        let answer = service.core.call(&seed, Class::Control, request.clone(), limit).await;
        if matches!(answer, Ok(_) | Err(CallError::Failed(_))) {
            service.answered.borrow_mut().insert(alias.to_owned(), seed);
        }
        match answer {
            Ok(response) => return Ok(response),
            Err(CallError::Failed(refused)) => return Err(refused),
            Err(error) => failure = Some(error.into()),
        }
    }
    Err(failure.unwrap_or_else(unexpected))
}

async fn keep_in_touch(service: Rc<RemoteClusterService>) {
    let aliases: Vec<String> = service.core.settings().remotes().keys().cloned().collect();
    let connecting =
        service.core.env.spawn("connects to remote clusters", connect(service.clone()));
    while !aliases.is_empty() {
        for alias in &aliases {
            refresh(&service, alias).await;
        }
        service.core.env.sleep(REFRESH).await;
    }
    drop(connecting);
}

async fn refresh(service: &Rc<RemoteClusterService>, alias: &str) {
    let known_version = service.version(alias);
    let request = Request::RemoteIndices { known_version, wait: Duration::ZERO };
    // Without an answer the old description stays: a follow confirms it with the leader.
    if let Ok(Response::RemoteIndices { version, indices, .. }) =
        ask_any(service, alias, request, Duration::ZERO).await
    {
        let known = Known { version, indices };
        service.by_alias.borrow_mut().insert(alias.to_owned(), known);
    }
}

/// Connects to every seed of every remote cluster, so that the first recovery need not wait for it.
async fn connect(service: Rc<RemoteClusterService>) {
    let settings = service.core.settings();
    let seeds = settings.remotes().values().flat_map(|remote| remote.seeds.iter());
    let recovery = (0..settings.transport_recovery_connections()).map(Class::Recovery);
    let classes: Vec<Class> = std::iter::once(Class::Control).chain(recovery).collect();
    let calls: Vec<_> = seeds
        .flat_map(|seed| classes.iter().map(move |class| (seed.clone(), *class)))
        .map(|(seed, class)| {
            let service2 = service.clone();
            service.core.env.spawn("connects to a seed", async move {
                // The first call connects; the second finds a warm connection.
                for _ in 0..2 {
                    let asked = service2.core.env.now();
                    if service2.core.call(&seed, class, Request::Ping, REMOTE_TIMEOUT).await.is_ok()
                    {
                        service2.core.note_round_trip(&seed, service2.core.env.now() - asked);
                    }
                }
            })
        })
        .collect();
    for call in calls {
        let _ = call.await;
    }
}

/// Every seed of a remote cluster, with the node that answered there, or why none did.
pub async fn remote_nodes(
    service: &Rc<RemoteClusterService>,
    alias: &str,
) -> Result<Vec<(String, Result<NodeRow, CallError>)>> {
    let calls: Vec<_> = seeds(&service.core, alias)?
        .into_iter()
        .map(|seed| {
            let (service2, address) = (service.clone(), seed.clone());
            let call = service.core.env.spawn("asks a seed", async move {
                match service2
                    .core
                    .call(&address, Class::Control, Request::Hello, REMOTE_TIMEOUT)
                    .await?
                {
                    Response::Hello(row) => Ok(row),
                    _ => Err(CallError::Failed(unexpected())),
                }
            });
            (seed, call)
        })
        .collect();
    let mut rows = Vec::new();
    for (seed, call) in calls {
        rows.push((seed, call.await.unwrap_or_else(|_| Err(CallError::Failed(unexpected())))));
    }
    Ok(rows)
}

/// Waits for several calls at once; the first success is the answer, and the other calls are dropped. If all fail, any
/// other failure is preferred to "not here".
pub(crate) async fn first_of<S, F>(
    env: &Env,
    calls: Vec<(S, F)>,
) -> Result<(S, Response), CallError>
where
    S: 'static,
    F: Future<Output = Result<Response, CallError>> + 'static,
{
    let (answers, mut answered) = mpsc::unbounded_channel();
    let tasks: Vec<_> = calls
        .into_iter()
        .map(|(source, call)| {
            let answers = answers.clone();
            env.spawn("asks one of several", async move {
                let answer = call.await;
                let _ = answers.send((source, answer));
            })
        })
        .collect();
    drop(answers);
    let mut failure = None;
    while let Some((source, answer)) = answered.recv().await {
        match answer {
            Ok(response) => return Ok((source, response)),
            Err(error) if failure.is_none() || !is_elsewhere(&error) => failure = Some(error),
            Err(_) => {}
        }
    }
    drop(tasks);
    Err(failure.unwrap_or_else(|| CallError::Failed(unexpected())))
}

fn is_elsewhere(error: &CallError) -> bool {
    matches!(error, CallError::Failed(failure) if failure.kind == "unavailable_shards_exception")
}
