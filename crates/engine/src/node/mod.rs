//! A node: what it is made of, its start and its end.

mod cgroup;
mod compression;
mod disk;
mod dispatch;
mod manager;
mod membership;
mod reconcile;
mod shards;
mod stats;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, Semaphore};
use world::{Env, Task, Time};

use crate::config::NodeConfig;
use crate::error::Error;
use crate::following::{AutoFollowing, FollowTasks, auto_follow};
use crate::ids::IdSource;
use crate::recovery::{Progress, Sessions, Stage};
use crate::remote::{Remotes, Told};
use crate::rest;
use crate::search::SearchSide;
use crate::settings::Settings;
use crate::state::{ClusterState, Event};
use crate::transport::{
    self, CallError, Class, Envelope, Failure, NodeRow, Pool, Publication, Request, Response,
};
use policy::foreground::ForegroundDetector;
use policy::rate_limiter::RateLimiter;

pub(crate) use disk::{CopyNote, NodeDisk};
pub(crate) use manager::Manager;
use membership::ManagerSeen;
pub(crate) use reconcile::Scope;
pub use shards::LocalShard;
pub(crate) use shards::ShardKey;

/// How long a node waits for its manager, at most.
pub(crate) const MANAGER_TIMEOUT: Duration = Duration::from_secs(30);

/// Which limiter a recovery is subject to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Throttle {
    /// `indices.recovery.max_bytes_per_sec`.
    Peer,
    /// `ccr.indices.recovery.max_bytes_per_sec`.
    Ccr,
}

/// A running node. Clones share it.
#[derive(Clone)]
pub struct Node {
    inner: Rc<Inner>,
}

/// What the clones of a [`Node`] share.
pub struct Inner {
    pub(crate) env: Env,
    pub(crate) config: NodeConfig,
    pub(crate) row: NodeRow,
    pub(crate) disk: NodeDisk,
    pub(crate) pool: Pool,
    pub(crate) manager: Option<Manager>,
    pub(crate) sessions: Sessions,
    /// Recoveries of copies here that are not done: a node may have thousands of copies, and each chunk asks for these.
    recovering: RefCell<Vec<Weak<Progress>>>,
    pub(crate) search: SearchSide,
    pub(crate) read_ahead: Arc<Semaphore>,
    pub(crate) shards: RefCell<BTreeMap<ShardKey, Rc<LocalShard>>>,
    pub(crate) state_changed: Notify,
    /// Settings that a transfer goes by have changed, or the number of transfers has.
    pub(crate) pace_changed: Notify,
    /// Shortest round trips seen, by address.
    pub(crate) round_trips: RefCell<BTreeMap<String, Duration>>,
    pub(crate) remotes: Remotes,
    /// What other clusters were told of this one.
    pub(crate) told: RefCell<Told>,
    pub(crate) following: FollowTasks,
    pub(crate) auto_following: AutoFollowing,
    pub(crate) started: Time,
    /// When a copy here was last written or searched, or the state changed; told to who rests until then.
    used_at: Cell<Time>,
    used: Notify,
    /// Copies that were written or searched lately: the others rest.
    in_use: RefCell<BTreeMap<ShardKey, Rc<LocalShard>>>,
    /// Something may be due to copies that rest, too: their settings may have changed, or one has a new lease.
    looks_after_all: Cell<bool>,
    /// Copies on the disk that are not open: they may be deleted once nobody needs them.
    kept: RefCell<BTreeSet<ShardKey>>,
    manager_seen: Cell<ManagerSeen>,
    state: RefCell<Arc<ClusterState>>,
    settings: RefCell<Settings>,
    peer_limiter: RefCell<RateLimiter>,
    ccr_limiter: RefCell<RateLimiter>,
    foreground: RefCell<ForegroundDetector>,
    compression: compression::Paths,
    ids: RefCell<IdSource>,
    reconcile: Notify,
    /// More than what changed in the state is to be looked at: a copy failed, or all were closed.
    reconciles_all: Cell<bool>,
    stopping: Cell<bool>,
    tasks: RefCell<Vec<Task<()>>>,
}

/// Chunks that a node has read and not yet handed to a connection, in KiB.
pub(crate) fn read_ahead_kib(settings: &Settings) -> u32 {
    u32::try_from(settings.recovery_read_ahead() >> 10).unwrap_or(u32::MAX)
}

impl Node {
    /// Starts a node: listens, joins its cluster, and brings up the copies that belong on it.
    pub async fn start(env: &Env, config: NodeConfig) -> Result<Node, Error> {
        for address in [&config.transport].into_iter().chain(&config.publish) {
            check_loopback(env, &config.name, address)?;
        }
        if config.credentials.is_none() {
            check_loopback(env, &config.name, &config.http)?;
        }
        let disk = NodeDisk::open(env, &config).await?;
        let listen = |source| Error::Listen { node: config.name.clone(), source };
        let transport = env.listen::<Envelope>(&config.transport).await.map_err(listen)?;
        let http = rest::listen(env, &config.http).await.map_err(listen)?;
        let row = NodeRow {
            name: config.name.clone(),
            cluster: config.cluster.clone(),
            transport: config.publish.clone().unwrap_or_else(|| transport.address().to_owned()),
            http: http.address().to_owned(),
        };
        let manager = match config.manager {
            None => Some(Manager::open(env, &config, &disk).await?),
            Some(_) => None,
        };
        let state = Arc::new(ClusterState::new(&config.cluster, [], || env.random_u64()));
        let settings = Settings::resolve(&[&config.settings]);
        let rotation_seed = config.rotation_seed.unwrap_or_else(|| env.random_u64());
        let ids = IdSource::new(|| env.random_u64());
        let inner = Rc::new(Inner {
            env: env.clone(),
            row,
            disk,
            pool: Pool::new(env.clone()),
            manager,
            sessions: Sessions::new(ids.first_number()),
            recovering: RefCell::default(),
            search: SearchSide::new(&settings, cores(env), rotation_seed, ids.first_number()),
            read_ahead: Arc::new(Semaphore::new(read_ahead_kib(&settings) as usize)),
            shards: RefCell::default(),
            state_changed: Notify::new(),
            pace_changed: Notify::new(),
            round_trips: RefCell::default(),
            remotes: Remotes::default(),
            told: RefCell::default(),
            following: FollowTasks::default(),
            auto_following: AutoFollowing::default(),
            started: env.now(),
            used_at: Cell::new(env.now()),
            used: Notify::new(),
            in_use: RefCell::default(),
            looks_after_all: Cell::new(true),
            kept: RefCell::default(),
            manager_seen: Cell::new(ManagerSeen::At(env.now())),
            state: RefCell::new(state),
            peer_limiter: RefCell::new(RateLimiter::new(settings.recovery_max_bytes_per_sec())),
            ccr_limiter: RefCell::new(RateLimiter::new(settings.ccr_max_bytes_per_sec())),
            settings: RefCell::new(settings),
            foreground: RefCell::new(ForegroundDetector::new()),
            compression: compression::Paths::default(),
            ids: RefCell::new(ids),
            reconcile: Notify::new(),
            reconciles_all: Cell::new(false),
            stopping: Cell::new(false),
            tasks: RefCell::default(),
            config,
        });
        let node = Node { inner };
        let handler = node.clone();
        let way = node.pool.way().clone();
        let serving = transport::serve(env.clone(), way, transport, move |request| {
            let node = handler.clone();
            async move { dispatch::handle(&node, request).await }
        });
        node.keep("transport", serving);
        node.keep("rest", rest::serve(node.clone(), http));
        node.keep("reconciles", reconcile::run(node.clone()));
        node.keep("maintains shards", shards::maintain(node.clone()));
        node.keep("lets views go", crate::search::expire(node.clone()));
        node.keep("ends idle sessions", crate::recovery::expire_sessions(node.clone()));
        if node.manager.is_some() {
            node.keep("manages", manager::run(node.clone()));
            node.keep("watches nodes", manager::watch_nodes(node.clone()));
            node.keep("follows by patterns", auto_follow(node.clone()));
        }
        membership::join(&node).await?;
        node.keep("stays a member", membership::stay(node.clone()));
        Ok(node)
    }

    /// Stops: closes every copy in order, ends every task, and gives up the addresses.
    pub async fn stop(self) {
        self.inner.stopping.set(true);
        self.following.stop();
        let shards = std::mem::take(&mut *self.inner.shards.borrow_mut());
        for shard in shards.into_values() {
            shard.close().await;
        }
        self.sessions.clear();
        self.remotes.stop().await;
        self.pool.close();
        let tasks = std::mem::take(&mut *self.inner.tasks.borrow_mut());
        for task in tasks {
            task.cancel().await;
        }
        self.disk.release();
    }

    /// Cuts it off, or heals that: nothing passes between it and other nodes or clients meanwhile. What was under way
    /// arrives afterwards, connections stay, and nobody is told.
    pub fn cut_off(&self, cut: bool) {
        self.pool.way().cut(cut);
    }

    /// Has all that it computes take so many times as long from now on; 1 is as it was. In the virtual world the host
    /// is what is slow (`Env::set_host_model`), and this does nothing.
    pub fn slow_down(&self, factor: f64) {
        self.env.slow_down(factor);
    }

    /// Has every search of a copy here fail at once, or no longer.
    pub fn fail_searches(&self, fails: bool) {
        self.search.fails.set(fails);
    }

    /// Where other nodes reach it.
    pub fn transport_address(&self) -> &str {
        &self.row.transport
    }

    /// Where REST is served.
    pub fn http_address(&self) -> &str {
        &self.row.http
    }

    /// Where the files of a copy are, on this node.
    pub fn copy_dir(&self, index_uuid: &str, shard: u32) -> std::path::PathBuf {
        self.disk.copy_dir(index_uuid, shard)
    }

    /// Name.
    pub fn name(&self) -> &str {
        &self.config.name
    }

    /// Has the maintenance look at every copy the next time, also at those that rest.
    pub(crate) fn look_after_all(&self) {
        self.inner.looks_after_all.set(true);
        self.note_use();
    }

    /// Looks again at which copies belong here, also where the state is as it was.
    fn reconcile_again(&self) {
        self.inner.reconciles_all.set(true);
        self.inner.reconcile.notify_one();
    }

    /// Starts a task that lives as long as the node.
    pub(crate) fn keep(&self, name: &'static str, task: impl Future<Output = ()> + 'static) {
        let task = self.env.spawn(name, task);
        let mut tasks = self.inner.tasks.borrow_mut();
        tasks.retain(|task| !task.is_finished());
        tasks.push(task);
    }

    /// The cluster state as this node knows it.
    pub fn state(&self) -> Arc<ClusterState> {
        self.inner.state.borrow().clone()
    }

    /// As [`Node::state`], for a question about a shard from outside. A node that is starting does not know what there
    /// is, and must not say that there is nothing.
    pub(crate) fn joined_state(
        &self,
        index: &str,
        shard: u32,
    ) -> Result<Arc<ClusterState>, Failure> {
        let state = self.state();
        if state.members.is_empty() {
            return Err(Failure::unavailable(index, shard, "is on a node that is starting"));
        }
        Ok(state)
    }

    /// The cluster's settings, with this node's own below them.
    pub fn settings(&self) -> Settings {
        self.inner.settings.borrow().clone()
    }

    /// Takes over a state, unless it is older than the one it has.
    pub(crate) fn accept_state(&self, state: Arc<ClusterState>) {
        let before = {
            let mut current = self.inner.state.borrow_mut();
            let same = current.cluster_uuid == state.cluster_uuid;
            if same && state.version < current.version {
                return;
            }
            std::mem::replace(&mut *current, state.clone())
        };
        if (&before.transient, &before.persistent) != (&state.transient, &state.persistent) {
            self.take_settings(&state);
        }
        self.inner.reconcile.notify_one();
        self.state_changed.notify_waiters();
    }

    fn take_settings(&self, state: &ClusterState) {
        let own = &self.config.settings;
        let settings = Settings::resolve(&[&state.transient, &state.persistent, own]);
        if *self.inner.settings.borrow() == settings {
            return;
        }
        let (peer, ccr) = (settings.recovery_max_bytes_per_sec(), settings.ccr_max_bytes_per_sec());
        self.inner.peer_limiter.borrow_mut().set_rate(peer);
        self.inner.ccr_limiter.borrow_mut().set_rate(ccr);
        let remotes_changed = self.inner.settings.borrow().remotes() != settings.remotes();
        *self.inner.settings.borrow_mut() = settings;
        self.pace_changed.notify_waiters();
        if remotes_changed {
            self.remotes.restart(self);
        }
    }

    /// Takes over what the manager publishes. Fails where this node lacks the state that a change follows.
    fn accept(&self, publication: Publication) -> Result<(), Failure> {
        let (diff, state) = match publication {
            Publication::Whole(state) => {
                self.accept_state(state);
                return Ok(());
            }
            Publication::Diff { diff, state } => (diff, state),
        };
        let own = self.state();
        diff.check_from(&own).map_err(|other| {
            let kind = "incompatible_cluster_state_version_exception";
            Failure::new(409, kind, other.to_string())
        })?;
        let state = match state {
            Some(state) => state,
            None => Arc::new(diff.apply(&own).expect("its version was checked")),
        };
        self.accept_state(state);
        Ok(())
    }

    /// Waits until `done` says so of the state; `false` if that takes longer than `limit`.
    pub(crate) async fn wait_for_state(
        &self,
        limit: Duration,
        done: impl Fn(&ClusterState) -> bool,
    ) -> bool {
        let waiting = async {
            while !done(&self.state()) {
                self.state_changed.notified().await;
            }
        };
        self.env.timeout(limit, waiting).await.is_ok()
    }

    /// Waits until a node is no longer in the cluster.
    pub(crate) async fn has_left(&self, name: &str) {
        while self.state().present.contains(name) {
            self.state_changed.notified().await;
        }
    }

    /// Tells the manager what happened, and waits until the new state is here.
    pub async fn submit(&self, event: Event) -> Result<(), Failure> {
        let version = match &self.manager {
            Some(manager) => manager.submit(event).await?.version,
            None => match self.ask_manager(Request::Submit(Box::new(event))).await? {
                Response::Version(version) => version,
                _ => return Err(unexpected()),
            },
        };
        // It was published before the answer, unless that failed.
        if self.state().version < version {
            match self.ask_manager(Request::State).await? {
                Response::State(state) => self.accept_state(state),
                _ => return Err(unexpected()),
            }
        }
        Ok(())
    }

    /// Tells the manager, again if it is not there at the moment, or cannot store what it is told: its disk may be the
    /// full one.
    pub(crate) async fn report(&self, event: Event) {
        while let Err(failure) = self.submit(event.clone()).await {
            if failure.status < 500 {
                return;
            }
            self.env.sleep(Duration::from_millis(200)).await;
        }
    }

    /// What came of auto-following, which the manager knows.
    pub(crate) async fn auto_follow_stats(&self) -> Result<serde_json::Value, Failure> {
        if self.manager.is_some() {
            return Ok(self.auto_following.to_json(self.env.now()));
        }
        match self.ask_manager(Request::AutoFollowStats).await? {
            Response::Json(text) => serde_json::from_str(&text).map_err(|_| unexpected()),
            _ => Err(unexpected()),
        }
    }

    async fn ask_manager(&self, request: Request) -> Result<Response, Failure> {
        let address = self.config.manager.as_ref();
        let address = address.expect("a node without a manager's address is the manager");
        let answer = self.call(address, Class::Control, request, MANAGER_TIMEOUT).await;
        answer.map_err(|error| match error {
            CallError::Failed(failure) => failure,
            CallError::Broken { reason, .. } => self.no_manager(&format!("is gone: {reason}")),
            CallError::Timeout { limit, .. } => {
                self.no_manager(&format!("did not answer within {limit:?}"))
            }
        })
    }

    /// Asks another node; itself where the address is its own.
    pub(crate) async fn call(
        &self,
        address: &str,
        class: Class,
        request: Request,
        limit: Duration,
    ) -> Result<Response, CallError> {
        if address == self.row.transport {
            let own = Box::pin(dispatch::handle(self, request));
            return Ok(own.await?.response);
        }
        self.pool.call(address, class, request, limit).await
    }

    /// The transport address of a node that is there.
    pub(crate) fn address_of(&self, name: &str) -> Option<String> {
        self.state().present_node(name).map(|node| node.transport_address.clone())
    }

    /// Waits as a recovery must before it moves `bytes`; answers how long.
    pub(crate) async fn throttle(&self, throttle: Throttle, bytes: u64) -> Duration {
        let limiter = self.limiter(throttle);
        let pause = limiter.borrow_mut().pause(self.env.now(), bytes);
        if !pause.is_zero() {
            self.env.sleep(pause).await;
        }
        pause
    }

    pub(crate) fn limiter(&self, throttle: Throttle) -> &RefCell<RateLimiter> {
        match throttle {
            Throttle::Peer => &self.inner.peer_limiter,
            Throttle::Ccr => &self.inner.ccr_limiter,
        }
    }

    /// Notes that a copy here is written or searched, or that its settings may have changed.
    pub(crate) fn note_use(&self) {
        self.inner.used_at.set(self.env.now());
        self.inner.used.notify_one();
    }

    /// Notes how long a client waited for an operation on this node.
    pub(crate) fn served_in(&self, latency: Duration) {
        self.inner.foreground.borrow_mut().sample(self.env.now(), latency);
    }

    /// Notes that a copy here is recovered from now on.
    pub(crate) fn note_recovery(&self, progress: &Rc<Progress>) {
        let mut recovering = self.recovering.borrow_mut();
        recovering.retain(is_going_on);
        recovering.push(Rc::downgrade(progress));
    }

    /// Copies here that are recovered now.
    fn recoveries_going_on(&self) -> usize {
        self.recovering.borrow().iter().filter(|one| is_going_on(one)).count()
    }

    /// Finds out whether recoveries hardly use this node: with a chunk each at most, none of them could give
    /// way any further.
    pub(crate) fn note_recovery_load(&self) {
        let mut recovering = self.recovering.borrow_mut();
        recovering.retain(is_going_on);
        let at_floor = |one: &Weak<Progress>| {
            one.upgrade().is_none_or(|p| p.in_flight_bytes.get() <= p.chunk_bytes.get())
        };
        let light = self.sessions.reads_are_light() && recovering.iter().all(at_floor);
        self.inner.foreground.borrow_mut().set_recoveries_light(self.env.now(), light);
    }

    /// Notes a round trip to an address; answers the shortest so far.
    pub(crate) fn note_round_trip(&self, address: &str, took: Duration) -> Duration {
        let mut all = self.round_trips.borrow_mut();
        let best = all.entry(address.to_owned()).or_insert(took);
        *best = (*best).min(took);
        *best
    }

    /// Whether this node's clients suffer, so that recoveries should give way.
    pub(crate) fn pressure(&self) -> bool {
        self.inner.foreground.borrow_mut().pressure(self.env.now())
    }

    /// A fresh id for a document or a copy.
    pub(crate) fn next_id(&self) -> String {
        self.inner.ids.borrow_mut().next_id()
    }
}

impl std::ops::Deref for Node {
    type Target = Inner;
    fn deref(&self) -> &Inner {
        &self.inner
    }
}

fn is_going_on(recovery: &Weak<Progress>) -> bool {
    recovery.upgrade().is_some_and(|progress| progress.stage() != Stage::Done)
}

/// The neighbour answered something else than was asked.
pub(crate) fn unexpected() -> Failure {
    Failure::new(500, "illegal_state_exception", "the node gave an answer of another kind")
}

/// Cores that searches may use. Of the virtual world's hosts the default, see [`SearchSide::follow_cores`].
fn cores(env: &Env) -> usize {
    if env.is_virtual() {
        return world::model::Host::default().cores as usize;
    }
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

fn check_loopback(env: &Env, node: &str, address: &str) -> Result<(), Error> {
    if env.is_virtual() {
        return Ok(());
    }
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let ip = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
    if host == "localhost" || ip.is_ok_and(|ip| ip.is_loopback()) {
        return Ok(());
    }
    Err(Error::NotLoopback { node: node.to_owned(), address: address.to_owned() })
}
