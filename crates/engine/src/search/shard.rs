//! The node that holds the copy: the query phase, and the fetch phase from the same view.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use query::{SearchLimits, SourceFilter};

use crate::node::Node;
use crate::transport::{Failure, Response, ShardSearch, ShardSearched};
use policy::selection::NodeFeedback;

/// Elasticsearch's `index.search.idle.after`: a copy that nobody searched for so long is refreshed by the next
/// search, not by time.
pub(crate) const IDLE_AFTER: Duration = Duration::from_secs(30);

/// Searches a copy; fetches the hits at once where the request says so, or else holds the view for it.
pub(crate) async fn query(node: &Node, ask: ShardSearch) -> Result<Response, Failure> {
    if node.search.fails.get() {
        let reason = "searches fail on this node, because it was told so";
        return Err(Failure::new(500, "illegal_state_exception", reason));
    }
    let shard = node.local_shard(&ask.index, ask.shard)?;
    let store = shard.store()?;
    if !shard.is_started() {
        return Err(Failure::unavailable(&ask.index, ask.shard, "is still recovering; try again"));
    }
    let (arrived, company) = (node.env.now(), node.search.pool.in_flight());
    node.search.follow_cores(&node.env);
    let slot = node.search.pool.enter().await?;
    let now = node.env.now();
    let idle = shard.last_search.get().is_none_or(|last| now - last >= IDLE_AFTER);
    if (idle || ask.fresh) && store.has_unrefreshed() {
        store.refresh().await?;
    }
    // Not before: whoever comes meanwhile waits, too, or would miss what the copy was given before.
    shard.last_search.set(Some(now));
    let began = node.env.now();
    let stop = Arc::new(AtomicBool::new(false));
    let timer = ask.request.timeout_ms.map(|limit_ms| {
        let (env, stop) = (node.env.clone(), stop.clone());
        node.env.spawn("ends a search in time", async move {
            env.sleep(Duration::from_millis(limit_ms)).await;
            stop.store(true, Ordering::Relaxed);
        })
    });
    let limits = SearchLimits { now_ms: ask.now_ms, max_buckets: ask.max_buckets as usize, stop };
    let (hits, view) = store.search(&ask.request, &limits).await?;
    drop(timer);
    let mut fetched = None;
    let mut context = None;
    if ask.fetch {
        let wanted = hits.hits.iter().skip(ask.request.from).map(|hit| (hit.segment, hit.doc));
        let wanted: Vec<(u32, u32)> = wanted.take(ask.request.size).collect();
        fetched = Some(match wanted.is_empty() {
            true => Vec::new(),
            false => store.fetch(&view, wanted, &ask.request.source).await?,
        });
    } else if !hits.hits.is_empty() {
        context = Some(node.search.contexts.hold(node.env.now(), shard.key(), view)?);
    }
    let took = node.env.now() - began;
    node.search.pool.served_in(took);
    node.served_in(took);
    shard.note_use(node);
    drop(slot);
    node.search.served.borrow_mut().note(company, node.env.now() - arrived);
    let pool = &node.search.pool;
    let feedback = NodeFeedback {
        queue: pool.queue() as u64,
        service_time: pool.service_time(),
        in_flight: pool.in_flight(),
        threads: pool.size() as u64,
        took,
    };
    let declared_bytes = ask.request.cost.map_or(0, |cost| cost.response_bytes);
    let primary_term = shard.term();
    let counters = &node.search.counters;
    counters.queries.set(counters.queries.get() + 1);
    counters.query_time.set(counters.query_time.get() + took);
    let answer = ShardSearched { hits, context, fetched, feedback, primary_term, declared_bytes };
    Ok(Response::Searched(Box::new(answer)))
}

/// Answers a probe without a slot of the pool: it asks how full the pool is, and must not wait in it.
pub(crate) fn probe(node: &Node) -> Response {
    Response::Probed(node.search.served.borrow().answer(node.search.pool.in_flight()))
}

/// Fetches hits from a view that a query left, and lets it go.
pub(crate) async fn fetch(
    node: &Node,
    context: u64,
    hits: Vec<(u32, u32)>,
    source: &SourceFilter,
) -> Result<Response, Failure> {
    let (key, view) = node.search.contexts.take(context)?;
    let shard = node.shards.borrow().get(&key).cloned();
    let gone = || Failure::unavailable(&key.0, key.1, "has left this node between query and fetch");
    let store = shard.ok_or_else(gone)?.store()?;
    let slot = node.search.pool.enter().await?;
    let found = store.fetch(&view, hits, source).await?;
    drop(slot);
    let fetches = &node.search.counters.fetches;
    fetches.set(fetches.get() + 1);
    Ok(Response::Fetched(found))
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
