//! Remote clusters: how they are reached, and what a node knows of their indices.
//!
//! A node asks each remote cluster for its indices when it connects, and again from time to time. So a follow begins
//! without asking first, which saves a round trip. With its indices a cluster says where its nodes are, so that one
//! seed leads to all of them (`sniff` in the field). With mode `proxy` there is one address, and the node that answers
//! there passes on what is for others.

pub(crate) mod claims;
mod forwarding;
mod sniffed;
mod wrong_seed;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::{Notify, mpsc};
use world::Task;

use self::forwarding::Forwarding;
use self::sniffed::Sniffed;
pub use self::wrong_seed::why_no_seed;
use crate::core::{Core, address_via};
use crate::settings::{Proxy, Remote};
use crate::state::{Event, Index, IndexMeta, IndexShardRoutingTable};
use crate::transport::{
    CallError, Class, Failure, RemoteIndex, Request, Response, Result, UNAVAILABLE, unexpected,
};

/// How long a remote cluster may take to answer.
const REMOTE_TIMEOUT: Duration = Duration::from_secs(30);
/// How often a remote cluster is asked what has changed.
const REFRESH: Duration = Duration::from_secs(30);
/// The pause before it is asked again because a node of it did not answer.
const SNIFF_PACE: Duration = Duration::from_secs(1);
/// Nodes of a remote cluster that the field connects to (`cluster.remote.*.node_connections`).
pub const NODE_CONNECTIONS: usize = 3;
/// How long a node is waited for where others can be asked, and a seed that gave no answer before.
const SILENT_PATIENCE: Duration = Duration::from_secs(5);
/// Bytes of the descriptions of indices in one answer; further indices are asked for one by one.
const DESCRIBED_BYTES_MAX: u64 = 1 << 20;

/// What a node knows of remote clusters, and what it told them of this one.
pub struct RemoteClusterService {
    core: Rc<Core>,
    by_alias: RefCell<BTreeMap<String, Known>>,
    /// Where the nodes of each are.
    sniffed: RefCell<BTreeMap<String, Sniffed>>,
    /// By alias: a node of the cluster did not answer, so that the cluster is to be asked where its nodes are.
    missed: RefCell<BTreeMap<String, Rc<Notify>>>,
    /// The address of each that answered last.
    answered: RefCell<BTreeMap<String, String>>,
    keeping: RefCell<Option<Task<()>>>,
    /// On a leader: its indices as they were described last, each with its description.
    described: RefCell<Described>,
    /// On a leader: requests that it passes on.
    pub(crate) forwarding: Forwarding,
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
            sniffed: RefCell::default(),
            missed: RefCell::default(),
            answered: RefCell::default(),
            keeping: RefCell::default(),
            described: RefCell::default(),
            forwarding: Forwarding::new(),
        })
    }

    /// Begins with the remote clusters of the node's own configuration; those of the state are begun with as it comes.
    pub(crate) fn begin(self: &Rc<Self>) {
        if self.keeping.borrow().is_none() && !self.core.settings().remotes().is_empty() {
            self.restart();
        }
    }

    /// Connects to the remote clusters of the settings and keeps asking them. What was known before is forgotten, but
    /// for the nodes of those whose seeds are the same: a seed may be gone by now.
    pub(crate) fn restart(self: &Rc<Self>) {
        self.by_alias.borrow_mut().clear();
        let mut before = self.sniffed.take();
        let settings = self.core.settings();
        let sniffed = settings.remotes().iter().map(|(alias, remote)| {
            let known = before.remove(alias).filter(|known| known.is_of(&remote.seeds));
            (alias.clone(), known.unwrap_or_else(|| Sniffed::of(&remote.seeds)))
        });
        let sniffed = sniffed.collect();
        self.sniffed.replace(sniffed);
        let missed = settings.remotes().keys().map(|alias| (alias.clone(), Rc::default()));
        self.missed.replace(missed.collect());
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

    /// A node of a remote cluster did not answer: the cluster is asked again soon where its nodes are. Where the seeds
    /// lead to every node, there is nothing to learn.
    pub(crate) fn sniff_again(&self, alias: &str) {
        if self.sniffed.borrow().get(alias).is_some_and(Sniffed::knows_more_than_seeds)
            && let Some(missed) = self.missed.borrow().get(alias)
        {
            missed.notify_one();
        }
    }

    /// Notes which node answered at a seed.
    fn note_seed(&self, alias: &str, seed: &str, answer: &Result<Response, CallError>) {
        let node = match answer {
            Ok(Response::Hello(row)) => Some(row.transport.clone()),
            _ => None,
        };
        if let Some(known) = self.sniffed.borrow_mut().get_mut(alias) {
            known.note_seed(seed, node);
        }
    }

    fn version(&self, alias: &str) -> Option<u64> {
        self.by_alias.borrow().get(alias).map(|known| known.version)
    }
}

/// On a leader: describes an index.
pub(crate) fn describe(core: &Core, index: &str) -> Result<Response> {
    let state = core.joined_state(index, 0)?;
    let meta = state.indices.get(index).ok_or_else(|| Failure::no_such_index(index))?;
    if meta.closed {
        let reason = format!(
            "the index [{index}] is closed there; POST {index}/_open before it is followed"
        );
        return Err(Failure { reason, ..Failure::index_closed(index, &meta.uuid) });
    }
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
        // A closed index is asked for again before it is followed: it must be open by then.
        if bytes > DESCRIBED_BYTES_MAX || meta.closed {
            others.insert(name.clone(), one.1.uuid.clone());
        } else {
            indices.insert(name.clone(), one.1.clone());
        }
        described.insert(name.clone(), one);
    }
    service.described.replace(described);
    let nodes = state.present_nodes().map(|node| node.transport_address.clone()).collect();
    let cluster = state.cluster_uuid.clone();
    Ok(Response::RemoteIndices { version: state.version, cluster, nodes, indices, others })
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

/// Where the nodes of a remote cluster are reached: at the settings' seeds, and then where the cluster says. With a
/// proxy: each through it, and before they are known, whichever is there.
pub(crate) fn addresses(service: &RemoteClusterService, alias: &str) -> Result<Vec<String>> {
    let remote = remote_of(service, alias)?;
    let sniffed = service.sniffed.borrow();
    let known = sniffed.get(alias).filter(|known| known.is_of(&remote.seeds));
    if let (Some(proxy), Some(known)) = (&remote.proxy, known)
        && !known.nodes().is_empty()
    {
        return Ok(known.nodes().iter().map(|node| address_via(node, &proxy.address)).collect());
    }
    Ok(known.map_or_else(|| remote.seeds.clone(), Sniffed::addresses))
}

/// Where any node of a remote cluster answers.
fn addresses_of_any(service: &RemoteClusterService, alias: &str) -> Result<Vec<String>> {
    let remote = remote_of(service, alias)?;
    if remote.proxy.is_some() { Ok(remote.seeds) } else { addresses(service, alias) }
}

fn remote_of(service: &RemoteClusterService, alias: &str) -> Result<Remote> {
    let settings = service.core.settings();
    settings.remotes().get(alias).cloned().ok_or_else(|| {
        let known: Vec<&str> = settings.remotes().keys().map(String::as_str).collect();
        let reason = format!(
            "no such remote cluster [{alias}]; set cluster.remote.{alias}.seeds{}",
            record::names::did_you_mean(alias, known)
        );
        Failure::new(404, "no_such_remote_cluster_exception", reason)
    })
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
        Response::RemoteIndices { version, indices, others, .. } => {
            let mut uuids = others;
            uuids.extend(indices.into_iter().map(|(name, index)| (name, index.uuid.clone())));
            Ok(Some(Listing { version, uuids }))
        }
        _ => Err(unexpected()),
    }
}

/// Asks the nodes one after another until one answers, for half a minute in all; a long poll may take `wait` longer.
/// Begins with the one that answered last, so that one which stands still is waited for only once. Where the nodes are
/// is noted, if that is what the answer says.
async fn ask_any(
    service: &Rc<RemoteClusterService>,
    alias: &str,
    request: Request,
    wait: Duration,
) -> Result<Response> {
    let env = &service.core.env;
    let mut failure = None;
    let mut addresses = addresses_of_any(service, alias)?;
    let last = service.answered.borrow().get(alias).cloned();
    let begin = addresses.iter().position(|one| Some(one) == last.as_ref()).unwrap_or(0);
    addresses.rotate_left(begin);
    let patience = if addresses.len() > 1 { SILENT_PATIENCE } else { REMOTE_TIMEOUT };
    let give_up = env.now() + REMOTE_TIMEOUT + wait;
    for address in addresses {
        let limit = patience + wait;
        let answer = service.core.call(&address, Class::Control, request.clone(), limit).await;
        if let Ok(Response::RemoteIndices { cluster, nodes, .. }) = &answer
            && let Some(known) = service.sniffed.borrow_mut().get_mut(alias)
            && !known.note_nodes(&address, cluster, nodes)
        {
            let why = format!("at {address} there is another cluster by now");
            failure = Some(Failure::new(503, UNAVAILABLE, why));
            continue;
        }
        if matches!(answer, Ok(_) | Err(CallError::Failed(_))) {
            service.answered.borrow_mut().insert(alias.to_owned(), address);
        }
        match answer {
            Ok(response) => return Ok(response),
            Err(CallError::Failed(refused)) => return Err(refused),
            Err(error) => failure = Some(error.into()),
        }
        if env.now() >= give_up {
            break;
        }
    }
    Err(failure.unwrap_or_else(unexpected))
}

async fn keep_in_touch(service: Rc<RemoteClusterService>) {
    let (env, aliases) = (&service.core.env, service.missed.borrow().clone());
    // Each by itself: a cluster that stands still holds up no other.
    let refreshing = aliases.into_iter().map(|(alias, missed)| {
        let refreshing = keep_fresh(service.clone(), alias, missed);
        env.spawn("keeps in touch with a remote cluster", refreshing)
    });
    let refreshing: Vec<_> = refreshing.collect();
    let connecting = env.spawn("connects to remote clusters", connect(service.clone()));
    for task in refreshing {
        let _ = task.await;
    }
    drop(connecting);
}

async fn keep_fresh(service: Rc<RemoteClusterService>, alias: String, missed: Rc<Notify>) {
    loop {
        refresh(&service, &alias).await;
        tokio::select! {
            biased;
            () = missed.notified() => service.core.env.sleep(SNIFF_PACE).await,
            () = service.core.env.sleep(REFRESH) => {}
        }
    }
}

async fn refresh(service: &Rc<RemoteClusterService>, alias: &str) {
    // The answer below may name a node that has come back: whether its seed leads to it must be known before.
    let silent = service.sniffed.borrow().get(alias).map(Sniffed::silent).unwrap_or_default();
    for seed in silent {
        let answer =
            service.core.call(&seed, Class::Control, Request::Hello, SILENT_PATIENCE).await;
        service.note_seed(alias, &seed, &answer);
    }
    let known_version = service.version(alias);
    let request = Request::RemoteIndices { known_version, wait: Duration::ZERO };
    // Without an answer the old description stays: a follow confirms it with the leader.
    if let Ok(Response::RemoteIndices { version, indices, .. }) =
        ask_any(service, alias, request, Duration::ZERO).await
    {
        let known = Known { version, indices };
        service.by_alias.borrow_mut().insert(alias.to_owned(), known);
    }
    reopen_sockets(service, alias).await;
}

/// Connects to every seed of every remote cluster, so that the first recovery need not wait for it, and asks who is
/// there.
async fn connect(service: Rc<RemoteClusterService>) {
    let settings = service.core.settings();
    let mut calls = Vec::new();
    for (alias, remote) in settings.remotes() {
        let classes: Vec<Class> = match &remote.proxy {
            Some(proxy) => (0..proxy.sockets).map(Class::Proxied).collect(),
            None => {
                let recovery = (0..settings.transport_recovery_connections()).map(Class::Recovery);
                std::iter::once(Class::Control).chain(recovery).collect()
            }
        };
        for seed in &remote.seeds {
            calls.extend(classes.iter().map(|class| (alias.clone(), seed.clone(), *class)));
        }
    }
    let calls: Vec<_> = calls
        .into_iter()
        .map(|(alias, seed, class)| {
            let service2 = service.clone();
            service.core.env.spawn("connects to a seed", async move {
                let asks_who = matches!(class, Class::Control | Class::Proxied(0));
                let question = if asks_who { Request::Hello } else { Request::Ping };
                // The first call connects; the second finds a warm connection.
                for _ in 0..2 {
                    let asked = service2.core.env.now();
                    let answer =
                        service2.core.call(&seed, class, question.clone(), REMOTE_TIMEOUT).await;
                    if asks_who {
                        service2.note_seed(&alias, &seed, &answer);
                    }
                    if answer.is_ok() {
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

/// Opens the sockets to a proxy that are not open, until one fails, and closes those beyond what the settings ask for.
async fn reopen_sockets(service: &Rc<RemoteClusterService>, alias: &str) {
    let proxy = remote_of(service, alias).ok().and_then(|remote| remote.proxy);
    let Some(Proxy { address, sockets, .. }) = proxy else { return };
    let core = &service.core;
    let open = core.pool.open_sockets(&address);
    for number in open.range(sockets..) {
        core.pool.close_unused(&address, Class::Proxied(*number));
    }
    for class in (0..sockets).filter(|number| !open.contains(number)).map(Class::Proxied) {
        if core.call(&address, class, Request::Ping, SILENT_PATIENCE).await.is_err() {
            return;
        }
    }
}

/// How many sockets to the proxy of a remote cluster are open, of those that the settings ask for. Where there are any,
/// the proxy is asked as well, and waited for within `limit`, so that the time of the answer tells the round trip as it
/// does for nodes. That goes over a connection of its own: in the sockets it would wait for what they carry.
pub async fn connected_sockets(
    service: &RemoteClusterService,
    proxy: &Proxy,
    limit: Duration,
) -> usize {
    let open = || service.core.pool.open_sockets(&proxy.address).range(..proxy.sockets).count();
    if open() > 0 {
        // A proxy that does not answer is told by its sockets, which end.
        let asked = service.core.pool.call(&proxy.address, Class::Control, Request::Hello, limit);
        let _ = asked.await;
    }
    open()
}

/// How many nodes of a remote cluster answer within `limit`, of those that the field connects to.
pub async fn connected_nodes(
    service: &Rc<RemoteClusterService>,
    alias: &str,
    limit: Duration,
) -> usize {
    let calls: Vec<_> = addresses(service, alias)
        .unwrap_or_default()
        .into_iter()
        .map(|address| {
            let (service2, alias) = (service.clone(), alias.to_owned());
            service.core.env.spawn("asks a node of a remote cluster", async move {
                let answer =
                    service2.core.call(&address, Class::Control, Request::Hello, limit).await;
                service2.note_seed(&alias, &address, &answer);
                match answer {
                    Ok(Response::Hello(row)) => Some(row.transport),
                    _ => None,
                }
            })
        })
        .collect();
    // Two seeds may lead to one node.
    let mut nodes = BTreeSet::new();
    for call in calls {
        nodes.extend(call.await.ok().flatten());
    }
    nodes.len().min(NODE_CONNECTIONS)
}

/// Waits for several calls at once; the first success is the answer, and the other calls are dropped. If all fail, any
/// other failure is preferred to "not here". Once another node has answered, one that is silent is not waited for until
/// its call's limit: where the others say at once that it is not there, they are to be asked again soon.
pub(crate) async fn first_of<S, F>(
    core: &Rc<Core>,
    calls: Vec<(S, F)>,
    address: fn(&S) -> &str,
) -> Result<(S, Response), CallError>
where
    S: 'static,
    F: Future<Output = Result<Response, CallError>> + 'static,
{
    let (answers, mut answered) = mpsc::unbounded_channel();
    let heard = Rc::new(Heard::default());
    let began = core.env.now();
    let tasks: Vec<_> = calls
        .into_iter()
        .map(|(source, call)| {
            let (core2, answers, heard) = (core.clone(), answers.clone(), heard.clone());
            core.env.spawn("asks one of several", async move {
                let answer = tokio::select! {
                    biased;
                    answer = call => answer,
                    error = until_silent(&core2, address(&source), heard) => Err(error),
                };
                let _ = answers.send((source, answer));
            })
        })
        .collect();
    drop(answers);
    let mut failure = None;
    while let Some((source, answer)) = answered.recv().await {
        if matches!(answer, Err(CallError::Failed(_))) {
            heard.after(core.env.now() - began);
        }
        match answer {
            Ok(response) => return Ok((source, response)),
            Err(error) if failure.is_none() || !is_elsewhere(&error) => failure = Some(error),
            Err(_) => {}
        }
    }
    drop(tasks);
    Err(failure.unwrap_or_else(|| CallError::Failed(unexpected())))
}

/// How long the first of several took to answer. Those who wait for it are woken in the order in which they came, so
/// that a seed has one trace.
#[derive(Default)]
struct Heard {
    took: Cell<Option<Duration>>,
    is_known: Notify,
}

impl Heard {
    fn after(&self, took: Duration) {
        if self.took.get().is_none() {
            self.took.set(Some(took));
            self.is_known.notify_waiters();
        }
    }

    async fn took(&self) -> Duration {
        loop {
            if let Some(took) = self.took.get() {
                return took;
            }
            self.is_known.notified().await;
        }
    }
}

/// Waits until a node does not answer a ping, once another has answered its call after `heard`. One that only takes
/// long for the call answers a ping, and so does one behind a full link: there all that is asked takes as long as that.
async fn until_silent(core: &Core, address: &str, heard: Rc<Heard>) -> CallError {
    let patience = SILENT_PATIENCE.max(heard.took().await * 2);
    loop {
        core.env.sleep(patience).await;
        match core.call(address, Class::Control, Request::Ping, patience).await {
            Err(error @ (CallError::Broken { .. } | CallError::Timeout { .. })) => return error,
            Ok(_) | Err(CallError::Failed(_)) => {}
        }
    }
}

fn is_elsewhere(error: &CallError) -> bool {
    matches!(error, CallError::Failed(failure) if failure.kind == "unavailable_shards_exception")
}
