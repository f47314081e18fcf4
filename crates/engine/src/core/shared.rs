//! What a node's features share.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use policy::foreground::ForegroundDetector;
use tokio::sync::{Notify, oneshot};
use world::{Env, LocalFuture, Task, Time};

use super::activity::Activity;
use super::compression::Paths;
use super::config::NodeConfig;
use super::published::Published;
use super::task_manager::TaskManager;
use super::throttles::Throttles;
use super::warning::warns_once;
use crate::ids::IdSource;
use crate::settings::Settings;
use crate::shard::{LocalShard, NodeDisk, ShardKey};
use crate::state::{ClusterState, Event};
use crate::transport::{Failure, NodeRow, Pool, Reply, Request, Result};

/// What a node's features share.
pub struct Core {
    /// The world that the node lives in.
    pub env: Env,
    /// What the node was started with.
    pub config: NodeConfig,
    pub(crate) row: NodeRow,
    pub(crate) disk: NodeDisk,
    pub(crate) pool: Pool,
    pub(crate) published: Published,
    pub(crate) shards: RefCell<BTreeMap<ShardKey, Rc<LocalShard>>>,
    pub(crate) activity: Activity,
    pub(crate) throttles: Throttles,
    /// The settings of transfers have changed, or the number of transfers that share the memory.
    pub(crate) pace_changed: Notify,
    pub(crate) foreground: RefCell<ForegroundDetector>,
    pub(super) compression: RefCell<Paths>,
    /// Shortest round trips seen, by address.
    pub(super) round_trips: RefCell<BTreeMap<String, Duration>>,
    /// Which socket to a proxy is next.
    pub(super) next_socket: Cell<u32>,
    ids: RefCell<IdSource>,
    pub(crate) started: Time,
    pub(crate) upward: OnceCell<Upward>,
    /// What it works on for clients.
    pub task_manager: Rc<TaskManager>,
    /// None once they are ended.
    tasks: RefCell<Option<Vec<Task<()>>>>,
}

/// Handles an event on the manager; answers with the version of the new state.
pub(crate) type Submit = Box<dyn Fn(Event) -> LocalFuture<'static, Result<u64>>>;

/// What is called of the parts above, handed over when the node starts.
pub(crate) struct Upward {
    /// Answers a request of this node to itself.
    pub(crate) dispatch: Box<dyn Fn(Request) -> LocalFuture<'static, Result<Reply>>>,
    /// On the manager alone.
    pub(crate) submit: Option<Submit>,
    /// The remote clusters of the settings are others than before.
    pub(crate) remotes_changed: Box<dyn Fn()>,
    /// A promotion is settled: the copy may have to follow its leader from here on.
    pub(crate) promoted: Box<dyn Fn()>,
}

impl Core {
    pub(crate) fn new(
        env: &Env,
        config: NodeConfig,
        row: NodeRow,
        disk: NodeDisk,
        state: ClusterState,
    ) -> Rc<Core> {
        let settings = Settings::resolve(&[&config.settings]);
        let ids = IdSource::new(|| env.random_u64());
        Rc::new(Core {
            env: env.clone(),
            row,
            disk,
            pool: Pool::that_warns(env.clone(), warns_once(env, &config.name)),
            shards: RefCell::default(),
            activity: Activity::new(env.now()),
            throttles: Throttles::new(&settings),
            published: Published::new(state, settings),
            pace_changed: Notify::new(),
            foreground: RefCell::default(),
            compression: RefCell::default(),
            round_trips: RefCell::default(),
            next_socket: Cell::default(),
            task_manager: TaskManager::new(env, &config.name, ids.first_number()),
            ids: RefCell::new(ids),
            started: env.now(),
            upward: OnceCell::new(),
            tasks: RefCell::new(Some(Vec::new())),
            config,
        })
    }

    /// Name.
    pub fn name(&self) -> &str {
        &self.config.name
    }

    /// Starts a task that lives as long as the node.
    pub fn keep(&self, name: &'static str, task: impl Future<Output = ()> + 'static) {
        let mut tasks = self.tasks.borrow_mut();
        let Some(tasks) = &mut *tasks else { return };
        let task = self.env.spawn(name, task);
        // Each write keeps one or more: those that have ended are looked for when there is no room.
        if tasks.len() == tasks.capacity() {
            tasks.retain(|task| !task.is_finished());
        }
        tasks.push(task);
    }

    /// Runs `work` to its end while the node lives, even if its caller goes away. A request is dropped when its
    /// connection closes; work that must not stop half way runs in a task of its own.
    pub async fn run_to_end<T: 'static>(
        &self,
        name: &'static str,
        work: impl Future<Output = Result<T>> + 'static,
    ) -> Result<T> {
        let (answer, answered) = oneshot::channel();
        self.keep(name, async move {
            // This fails where nobody waits any more.
            let _ = answer.send(work.await);
        });
        answered.await.unwrap_or_else(|_| {
            let reason = format!("node [{}] is going down", self.config.name);
            Err(Failure::new(503, "node_closed_exception", reason))
        })
    }

    /// Ends every task of [`Core::keep`]; from now on none is started.
    pub(crate) async fn end_tasks(&self) {
        let tasks = self.tasks.take();
        for task in tasks.into_iter().flatten() {
            task.cancel().await;
        }
    }

    /// Where this node's session and context numbers begin; after a restart they begin elsewhere.
    pub(crate) fn first_number(&self) -> u64 {
        self.ids.borrow().first_number()
    }

    /// A fresh id for a document or a copy.
    pub fn next_id(&self) -> String {
        self.ids.borrow_mut().next_id()
    }

    pub(crate) fn upward(&self) -> &Upward {
        self.upward.get().expect("a node hands these over before it does anything else")
    }
}
