//! Points in time: views of shards that are held, so that searches one after another see the same.
//!
//! As in the field, the id says which node holds which view, so that every node can be asked for a search, and nobody
//! has to remember anything else. The nodes that hold the views are told the id as well, for the list of all.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use query::{SearchRequest, TrackTotalHits};
use world::LocalFuture;

use super::asked_shards::{AskedShard, ViewOfShard};
use super::coordinator::{SearchJob, ask, search_shards};
use super::point_in_time::{PointInTime, View, id_of};
use super::preference::Preference;
use super::service::SearchService;
use super::views::{Search, search_views};
use crate::transport::{
    HeldView, OpenPointInTime, Request, Response, SearchOutcome, ShardFailure, ViewHolder,
};

/// What was opened.
pub struct Opened {
    /// By which searches, and whoever ends it, name it.
    pub id: String,
    /// When, in milliseconds since 1970.
    pub created_ms: i64,
    /// Shards that belong to it.
    pub shards: usize,
    /// Shards of which there is no view.
    pub failures: Vec<ShardFailure>,
}

/// Opens a point in time of indices (sorted names), of some of which filters let through what searches of it find.
/// Fails as [`super::search`].
pub fn open_point_in_time(
    service: &Rc<SearchService>,
    (indices, filters, preference): (Vec<String>, BTreeMap<String, String>, Preference),
    keep_alive: Duration,
    allow_partial: bool,
) -> LocalFuture<'_, Result<Opened, Vec<ShardFailure>>> {
    Box::pin(async move {
        let request = SearchRequest {
            size: 0,
            track_total_hits: TrackTotalHits::No,
            ..SearchRequest::default()
        };
        let request = Arc::new(request);
        let point_in_time = None;
        let job = SearchJob { indices, request, preference, allow_partial, point_in_time };
        let held = HeldView { context: None, keep_alive, holder: ViewHolder::PointInTime };
        let (outcome, opened) = search_shards(service, job, service.now_ms(), Some(held)).await?;
        let created_ms = service.now_ms();
        let mut of_nodes: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        let mut views = Vec::new();
        for shard in opened {
            of_nodes.entry(shard.node.clone()).or_default().push(shard.context);
            let AskedShard { index, shard: number, .. } = shard.asked;
            views.push(View { index, shard: number, node: shard.node, context: shard.context });
        }
        let id = id_of(&views, &filters);
        for (node, contexts) in of_nodes {
            let name = Request::NamePointInTime { contexts, id: id.clone(), created_ms };
            // Of a node that is gone since nothing is listed, and searches say that its shards failed.
            let _ = ask(service, &node, name).await;
        }
        Ok(Opened { id, created_ms, shards: outcome.shards, failures: outcome.failures })
    })
}

/// Searches. Fails if no shard answered, or one did not though partial results are not allowed: then with the
/// failures of the shards.
pub fn search(
    service: &Rc<SearchService>,
    job: SearchJob,
) -> LocalFuture<'_, Result<SearchOutcome, Vec<ShardFailure>>> {
    Box::pin(async move {
        match &job.point_in_time {
            Some(point) => search_again(service, &job, point).await,
            None => Ok(search_shards(service, job, service.now_ms(), None).await?.0),
        }
    })
}

/// Searches a point in time.
async fn search_again(
    service: &Rc<SearchService>,
    job: &SearchJob,
    point: &PointInTime,
) -> Result<SearchOutcome, Vec<ShardFailure>> {
    let views = point.views.iter().cloned().map(|view| {
        let View { index, shard, node, context } = view;
        let asked = AskedShard { index, shard, nodes: vec![node.clone()] };
        ViewOfShard { asked, node, context, after: None }
    });
    let search = Search {
        request: &job.request,
        now_ms: service.now_ms(),
        holder: ViewHolder::PointInTime,
        keep_alive: point.keep_alive.unwrap_or_default(),
        allow_partial: job.allow_partial,
        failed: &[],
    };
    Ok(search_views(service, &views.collect::<Vec<_>>(), search).await?.0)
}

/// Ends a point in time; answers with how many views of shards were let go.
pub fn close_point_in_time<'a>(
    service: &'a Rc<SearchService>,
    point: &'a PointInTime,
) -> LocalFuture<'a, u64> {
    Box::pin(async move {
        let mut freed = 0;
        for view in &point.views {
            // What a node that is gone held went with it.
            let free = Request::FreeContext(view.context);
            if let Ok(Response::Freed(views)) = ask(service, &view.node, free).await {
                freed += views;
            }
        }
        freed
    })
}

/// The points in time that are open in the cluster.
pub fn points_in_time(service: &Rc<SearchService>) -> LocalFuture<'_, Vec<OpenPointInTime>> {
    Box::pin(async move {
        let nodes: Vec<String> = service.core.state().present.iter().cloned().collect();
        let mut found: BTreeMap<String, OpenPointInTime> = BTreeMap::new();
        for node in nodes {
            // What a node that is gone held went with it.
            let Ok(Response::PointsInTime(open)) = ask(service, &node, Request::PointsInTime).await
            else {
                continue;
            };
            found.extend(open.into_iter().map(|open| (open.id.clone(), open)));
        }
        let mut all: Vec<OpenPointInTime> = found.into_values().collect();
        all.sort_by(|a, b| (a.created_ms, &a.id).cmp(&(b.created_ms, &b.id)));
        all
    })
}
