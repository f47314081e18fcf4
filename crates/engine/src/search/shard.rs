//! The node that holds the copy: the query phase, and the fetch phase from the same view.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use policy::selection::NodeFeedback;
use query::{FetchRequest, FetchedHit, SearchLimits};
use store::{SearchView, Shard};
use world::{Task, Time};

use super::answer_budget::AnswerBudget;
use super::contexts::KEEP_ALIVE;
use super::service::SearchService;
use super::thread_pool::{PoolStats, ThreadPool};
use crate::planted;
use crate::replication::follow_mapping;
use crate::settings::IndexSettings;
use crate::shard::{LocalShard, ShardKey};
use crate::transport::{Failure, HeldView, Response, Result, ShardSearch, ShardSearched};

/// Elasticsearch's `index.search.idle.after`: a copy that nobody searched for so long is refreshed by the next
/// search, not by time. One that requests alone refresh is by neither.
pub(crate) const IDLE_AFTER: Duration = Duration::from_secs(30);

/// Searches a copy; fetches the hits at once where the request says so, or else holds the view for it.
pub(crate) async fn query(service: &Rc<SearchService>, ask: ShardSearch) -> Result<Response> {
    if service.fails.get() {
        let reason = "searches fail on this node, because it was told so";
        return Err(Failure::new(500, "illegal_state_exception", reason));
    }
    let shard = service.core.local_shard(&ask.index, ask.shard)?;
    shard.check_open(&service.core.state())?;
    let store = match service.core.env.is_planted(planted::SEARCHED_BEFORE_STARTED) {
        true => shard.store(),
        false => shard.complete_store(),
    }?;
    let (arrived, company) = (service.core.env.now(), service.pool.in_flight());
    service.follow_cores(&service.core.env);
    // Before it takes a slot: where a flush goes on, a new mapping waits for that, and other indices must not.
    follow_mapping(&service.core, &shard, &store).await?;
    let slot = service.pool.enter().await?;
    let now = service.core.env.now();
    let held = ask.held.and_then(|held| Some((held.context?, held.keep_alive)));
    refresh_idle(service, &shard, &store, now, held.is_some()).await?;
    // Only after the refresh: a search that arrives during it must wait, or it would miss documents.
    shard.last_search.set(Some(now));
    let began = service.core.env.now();
    let stop = Arc::new(AtomicBool::new(false));
    let timer = ask.request.timeout_ms.map(|limit_ms| stop_after(service, limit_ms, &stop));
    let (now_ms, max_buckets) = (ask.now_ms, ask.max_buckets as usize);
    let default_fields = default_fields(service, &ask.index);
    let index = ask.index.clone();
    let limits = SearchLimits { index, now_ms, max_buckets, default_fields, stop };
    let (hits, view, primary_term) = match held {
        None => {
            let (hits, view) = store.search(&ask.request, &limits).await?;
            (hits, view, shard.history_term())
        }
        Some(number) => {
            let (view, term) = service.contexts.renew(service.core.env.now(), &shard, number)?;
            (store.search_view(&view, &ask.request, &limits).await?, view, term)
        }
    };
    drop(timer);
    let mut fetched = None;
    let mut context = match ask.held {
        None => None,
        Some(HeldView { context: Some(number), .. }) => Some(number),
        Some(ask) => Some(service.keep(ask, &shard, view.clone())?),
    };
    if ask.fetch {
        let wanted = hits.hits.iter().skip(ask.request.from).map(|hit| (hit.segment, hit.doc));
        let wanted: Vec<(u32, u32)> = wanted.take(ask.request.size).collect();
        fetched = Some(match wanted.is_empty() {
            true => Vec::new(),
            false => {
                let request = Arc::new(ask.request.fetch());
                read_hits(service, &ask.index, &store, (&view, wanted), &request).await?
            }
        });
    } else if !hits.hits.is_empty() && context.is_none() {
        context = Some(service.contexts.hold(service.core.env.now(), shard.key().clone(), view)?);
        // It may have left this node while it was searched.
        if !service.core.is_here(&shard) {
            keep_a_moment(service, shard.key().clone(), store);
        }
    }
    let took = service.core.env.now() - began;
    service.pool.served_in(took);
    service.core.served_in(took);
    service.core.note_use_of(&shard);
    drop(slot);
    service.served.borrow_mut().note(company, service.core.env.now() - arrived);
    let feedback = feedback(&service.pool, took);
    let declared_bytes = ask.request.cost.map_or(0, |cost| cost.response_bytes);
    let counters = &service.counters;
    counters.queries.update(|queries| queries + 1);
    counters.query_time.update(|time| time + took);
    let answer = ShardSearched { hits, context, fetched, feedback, primary_term, declared_bytes };
    Ok(Response::Searched(Box::new(answer)))
}

/// Refreshes a copy that nobody searched for a while. A search of a view that is held already needs no refresh.
async fn refresh_idle(
    service: &SearchService,
    shard: &LocalShard,
    store: &Shard,
    now: Time,
    is_held: bool,
) -> Result<()> {
    let is_idle = shard.last_search.get().is_none_or(|last| now - last >= IDLE_AFTER);
    let settings = shard.settings_by(&service.core.state()).filter(|_| !is_held);
    let Some(settings) = settings else { return Ok(()) };
    let on_request = shard.apply_refresh_interval(store, &settings).await?;
    if is_idle && !on_request && store.has_unrefreshed() {
        store.refresh().await?;
    }
    Ok(())
}

/// Stops a search after a time, until this task is dropped.
fn stop_after(service: &SearchService, limit_ms: u64, stop: &Arc<AtomicBool>) -> Task<()> {
    let (env, stop) = (service.core.env.clone(), stop.clone());
    service.core.env.spawn("ends a search in time", async move {
        env.sleep(Duration::from_millis(limit_ms)).await;
        stop.store(true, Ordering::Relaxed);
    })
}

/// What the coordinator learns of this node.
fn feedback(pool: &ThreadPool, took: Duration) -> NodeFeedback {
    let PoolStats { size, queue, .. } = pool.stats();
    NodeFeedback {
        queue: queue as u64,
        service_time: pool.service_time(),
        in_flight: pool.in_flight(),
        threads: size as u64,
        took,
    }
}

/// Documents that are read before their bytes are counted against the budget of an answer.
const FETCHED_AT_ONCE: usize = 100;

/// Reads the documents of hits, and makes fragments of their texts where these are asked for.
async fn read_hits(
    service: &SearchService,
    index: &str,
    store: &Shard,
    (view, hits): (&SearchView, Vec<(u32, u32)>),
    request: &Arc<FetchRequest>,
) -> Result<Vec<FetchedHit>> {
    // Highlighting looks at words alone: it needs no bound on buckets, and no `now`.
    let (index, default_fields) = (index.to_owned(), default_fields(service, index));
    let limits = SearchLimits { index, default_fields, ..SearchLimits::default() };
    let (mut found, budget) = (Vec::with_capacity(hits.len()), AnswerBudget::default());
    for some in hits.chunks(FETCHED_AT_ONCE) {
        let part = store.fetch(view, some.to_vec(), request, &limits).await?;
        found.extend(budget.take(part)?);
    }
    Ok(found)
}

/// The fields of an index that queries ask which name none.
fn default_fields(service: &SearchService, index: &str) -> Vec<(String, f32)> {
    let state = service.core.state();
    let settings =
        state.indices.get(index).map(|meta| IndexSettings::default_fields_of(&meta.settings));
    settings.unwrap_or_default()
}

/// Answers a probe without a slot of the pool: it asks how full the pool is, and must not wait in it.
pub(crate) fn probe(service: &Rc<SearchService>) -> Response {
    Response::Probed(service.served.borrow().answer(service.pool.in_flight()))
}

/// Fetches hits from a view that a query left, and lets it go.
pub(crate) async fn fetch(
    service: &Rc<SearchService>,
    context: u64,
    hits: Vec<(u32, u32)>,
    request: &Arc<FetchRequest>,
) -> Result<Response> {
    let (key, view) = service.contexts.take(context)?;
    let shard = service.core.shards.borrow().get(&key).cloned();
    let gone = || Failure::unavailable(&key.0, key.1, "has left this node between query and fetch");
    let (index, store) = match shard {
        Some(shard) => (shard.index.clone(), shard.store()?),
        None => {
            let store = service.closing.borrow().get(&key).cloned().ok_or_else(gone)?;
            (name_of(service, &key.0), store)
        }
    };
    let slot = service.pool.enter().await?;
    let found = read_hits(service, &index, &store, (&view, hits), request).await?;
    drop(slot);
    service.counters.fetches.update(|fetches| fetches + 1);
    Ok(Response::Fetched(found))
}

/// The name of an index; its UUID once it is deleted.
fn name_of(service: &SearchService, uuid: &str) -> String {
    let state = service.core.state();
    let named = state.indices.iter().find(|(_, meta)| meta.uuid == uuid);
    named.map_or(uuid, |(name, _)| name.as_str()).to_owned()
}

/// How long a copy that has left this node is kept for fetches. It cannot be opened here again meanwhile.
const KEPT_FOR_FETCHES: Duration = Duration::from_secs(2);

/// Keeps a copy that leaves this node a moment longer, where views of it wait for their fetch: it was moved, and nobody
/// else has its view.
pub(crate) fn keep_for_fetches(service: &Rc<SearchService>, key: &ShardKey, shard: &LocalShard) {
    let Ok(store) = shard.store() else { return };
    if service.contexts.wait_for_fetch(key) {
        keep_a_moment(service, key.clone(), store);
    }
}

fn keep_a_moment(service: &Rc<SearchService>, key: ShardKey, store: Shard) {
    service.closing.borrow_mut().insert(key.clone(), store);
    let service2 = Rc::downgrade(service);
    let env = service.core.env.clone();
    service.core.keep("keeps a copy for fetches", async move {
        env.sleep(KEPT_FOR_FETCHES).await;
        let kept = service2.upgrade().and_then(|s| s.closing.borrow_mut().remove(&key));
        drop(kept);
    });
}

/// Frees views whose coordinator has not come back.
pub(crate) async fn expire(service: Rc<SearchService>) {
    loop {
        service.core.env.sleep(KEEP_ALIVE / 4).await;
        service.contexts.expire(service.core.env.now());
        service.scrolls.expire(service.core.env.now());
    }
}
