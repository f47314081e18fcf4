//! What a node keeps for searches.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use policy::selection::{Selector, ServedLatency};
use world::Env;

use super::contexts::Contexts;
use super::open_scrolls::Scrolls;
use super::thread_pool::ThreadPool;
use crate::core::Core;
use crate::shard::{LocalShard, ShardKey};
use crate::transport::{HeldView, Result, ViewHolder};
use store::SearchView;

/// What a node keeps for searches.
pub struct SearchService {
    pub(super) core: Rc<Core>,
    /// As a coordinating node: which copies it asks.
    pub(super) selector: RefCell<Selector>,
    /// As a node that has copies: its search threads.
    pub(crate) pool: ThreadPool,
    /// As a node that has copies: latencies, for nodes that probe it.
    pub(super) served: RefCell<ServedLatency>,
    pub(crate) contexts: Contexts,
    /// Copies that have left this node, and whose views wait for their fetch.
    pub(super) closing: RefCell<BTreeMap<ShardKey, store::Shard>>,
    /// As a coordinating node: the scrolls that it was asked for.
    pub(super) scrolls: Scrolls,
    pub(crate) counters: Counters,
    /// Whether every query of a copy here fails: a fault that somebody asked for.
    pub(crate) fails: Cell<bool>,
    /// Whether the pool's size follows from the cores.
    by_cores: bool,
}

impl SearchService {
    pub(crate) fn new(core: &Rc<Core>, seed: u64) -> Rc<Self> {
        let (settings, cores) = (core.settings(), cores(&core.env));
        let asked = settings.thread_pool_search_size();
        let size = if asked == 0 { threads_of(cores) } else { asked as usize };
        Rc::new(SearchService {
            core: core.clone(),
            selector: RefCell::new(Selector::new(seed)),
            pool: ThreadPool::new(size, settings.thread_pool_search_queue_size() as usize),
            served: RefCell::default(),
            contexts: Contexts::new(core.first_number()),
            closing: RefCell::default(),
            scrolls: Scrolls::new(core.first_number()),
            counters: Counters::default(),
            fails: Cell::new(false),
            by_cores: asked == 0,
        })
    }

    /// The moment that `now` stands for in a search that begins, in milliseconds since 1970.
    pub(super) fn now_ms(&self) -> i64 {
        i64::try_from(self.core.env.epoch_ms()).unwrap_or(i64::MAX)
    }

    /// Keeps a view for further searches, as far as the settings allow; answers with its number.
    pub(super) fn keep(
        &self,
        ask: HeldView,
        copy: &Rc<LocalShard>,
        view: SearchView,
    ) -> Result<u64> {
        let settings = self.core.settings();
        let most = match ask.holder {
            ViewHolder::Scroll => settings.search_max_open_scroll_context(),
            ViewHolder::PointInTime => settings.search_max_open_pit_context(),
        };
        self.contexts.keep(self.core.env.now(), copy, view, (ask, most as usize))
    }

    /// In the virtual world a host may get other cores while it runs.
    pub(crate) fn follow_cores(&self, env: &Env) {
        if let Some(host) = env.virtual_host_model().filter(|_| self.by_cores) {
            self.pool.resize(threads_of(host.cores as usize));
        }
    }
}

/// As `ThreadPool.searchThreadPoolSize`.
fn threads_of(cores: usize) -> usize {
    cores * 3 / 2 + 1
}

/// Cores that searches may use. Of the virtual world's hosts the default, see [`SearchService::follow_cores`].
fn cores(env: &Env) -> usize {
    if env.is_virtual() {
        return world::model::Host::default().cores as usize;
    }
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// What a node did for searches since it started.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    /// Queries of shards.
    pub(crate) queries: Cell<u64>,
    /// Time that they took once they ran.
    pub(crate) query_time: Cell<Duration>,
    /// Fetches that followed a query.
    pub(crate) fetches: Cell<u64>,
}
