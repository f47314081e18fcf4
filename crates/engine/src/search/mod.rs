//! Searches over a cluster: query, then fetch.
//!
//! | file | holds |
//! | --- | --- |
//! | `mod.rs` | [`SearchSide`]: what a node keeps for searches |
//! | `coordinator.rs` | the node that was asked: every shard once, one copy each; the ordered merge |
//! | `targets.rs` | the shards, and the copies of each that may be asked |
//! | `choice.rs` | which copy is asked first; probes |
//! | `oracle.rs` | the choice of who knows everything, in the virtual world |
//! | `in_flight.rs` | requests to copies, counted until they end |
//! | `preference.rs` | `preference` |
//! | `shard.rs` | the node that has the copy: the query, and the fetch from the same view |
//! | `contexts.rs` | views that are held between the two |
//! | `thread_pool.rs` | how many searches run at once, and how many wait |

mod choice;
mod contexts;
mod coordinator;
mod in_flight;
mod oracle;
mod preference;
mod shard;
mod targets;
mod thread_pool;

use std::cell::{Cell, RefCell};
use std::time::Duration;

use serde_json::{Map, Value, json};
use world::Env;

use crate::node::Node;
use crate::settings::{Selection, Settings};
use policy::selection::{ArsForm, Policy, Selector, ServedLatency};

use contexts::Contexts;
pub(crate) use contexts::expire;
pub(crate) use coordinator::{Hit, Outcome, SearchJob, ShardFailure, search};
pub(crate) use preference::Preference;
pub(crate) use shard::{Counters, IDLE_AFTER, fetch, probe, query};
pub(crate) use thread_pool::ThreadPool;

/// What a node keeps for searches.
pub(crate) struct SearchSide {
    /// As the node that was asked.
    pub(crate) selector: RefCell<Selector>,
    /// As the node that has copies.
    pub(crate) pool: ThreadPool,
    /// For who probes it.
    pub(crate) served: RefCell<ServedLatency>,
    pub(crate) contexts: Contexts,
    pub(crate) counters: Counters,
    /// Whether every query of a copy here fails: a fault that somebody asked for.
    pub(crate) fails: Cell<bool>,
    /// Whether the pool's size follows from the cores.
    by_cores: bool,
}

impl SearchSide {
    pub(crate) fn new(settings: &Settings, cores: usize, seed: u64, first_context: u64) -> Self {
        let asked = settings.thread_pool_search_size();
        let size = if asked == 0 { threads_of(cores) } else { asked as usize };
        SearchSide {
            selector: RefCell::new(Selector::new(seed)),
            pool: ThreadPool::new(size, settings.thread_pool_search_queue_size() as usize),
            served: RefCell::default(),
            contexts: Contexts::new(first_context),
            counters: Counters::default(),
            fails: Cell::new(false),
            by_cores: asked == 0,
        }
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

/// How the copy of a shard that is asked first is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplicaSelection {
    /// A policy decides by what requests and answers showed.
    Policy(Policy),
    /// Knows the state of every node; in the virtual world alone.
    Oracle,
}

impl ReplicaSelection {
    /// As the settings say.
    pub(crate) fn of(settings: &Settings) -> ReplicaSelection {
        let adaptive = settings.use_adaptive_replica_selection();
        ReplicaSelection::Policy(match settings.search_selection() {
            Selection::Field if adaptive => Policy::Ars(ArsForm::Corrected),
            Selection::Field | Selection::None => Policy::Rotation,
            Selection::Random => Policy::Random,
            Selection::LeastOutstanding => Policy::LeastOutstanding,
            Selection::Ars61 => Policy::Ars(ArsForm::Inverted),
            Selection::Ars713 => Policy::Ars(ArsForm::Corrected),
            Selection::Ars95 => Policy::Ars(ArsForm::QueueOnly),
            Selection::C3 => Policy::C3,
            Selection::TwoChoices => Policy::TwoChoices,
            Selection::Prequal => Policy::Prequal,
            Selection::Narrows => Policy::Narrows,
            Selection::Oracle => return ReplicaSelection::Oracle,
        })
    }
}

/// The part of `_nodes/stats` about the choice of copies: as the field has it, and the rank's form and numbers.
pub(crate) fn adaptive_selection_json(node: &Node) -> Value {
    let form = match ReplicaSelection::of(&node.settings()) {
        ReplicaSelection::Policy(Policy::Ars(form)) => form,
        _ => ArsForm::Corrected,
    };
    let selector = node.search.selector.borrow();
    let rows = selector.rows(form).into_iter().map(|row| {
        let text = |ns: f64| format!("{:.1}ms", ns / 1e6);
        let value = json!({
            "outgoing_searches": selector.outstanding(&row.node),
            "avg_queue_size": row.stats.queue as u64,
            "avg_service_time": text(row.stats.service_ns),
            "avg_service_time_ns": row.stats.service_ns as u64,
            "avg_response_time": text(row.stats.response_ns),
            "avg_response_time_ns": row.stats.response_ns as u64,
            "rank": format!("{:.1}", row.rank_ms),
        });
        (row.node, value)
    });
    Value::Object(rows.collect::<Map<_, _>>())
}

/// ReplicaSelection long a node waits for a shard's answer, where the request does not say.
const SHARD_TIMEOUT: Duration = Duration::from_secs(120);
