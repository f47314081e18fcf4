//! Searches of views that nodes hold: by the pages of a scroll, and at a point in time.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use query::SearchRequest;

use super::asked_shards::ViewOfShard;
use super::coordinator::{Answered, Gathered, Views, ask};
use super::service::SearchService;
use crate::transport::{
    HeldView, Request, Response, SearchOutcome, ShardFailure, ShardSearch, ViewHolder, unexpected,
};

/// How views are searched.
#[derive(Clone, Copy)]
pub(super) struct Search<'a> {
    pub(super) request: &'a SearchRequest,
    /// The moment that `now` stands for, in milliseconds since 1970.
    pub(super) now_ms: i64,
    pub(super) holder: ViewHolder,
    /// How long they are held from now on.
    pub(super) keep_alive: Duration,
    pub(super) allow_partial: bool,
    /// Shards that have had no part in it from the beginning.
    pub(super) failed: &'a [ShardFailure],
}

/// What views answer to a request, and where the next goes on. Fails as [`super::search`].
pub(super) async fn search_views(
    service: &Rc<SearchService>,
    views: &[ViewOfShard],
    search: Search<'_>,
) -> Result<(SearchOutcome, Vec<ViewOfShard>), Vec<ShardFailure>> {
    let began = service.core.env.now();
    let whole = Arc::new(search.request.clone());
    let asked = views.iter().map(|view| {
        let request = match &view.after {
            None => whole.clone(),
            after => {
                Arc::new(SearchRequest { search_after: after.clone(), ..search.request.clone() })
            }
        };
        let (context, keep_alive) = (Some(view.context), search.keep_alive);
        let of_shard = ShardSearch {
            index: view.asked.index.clone(),
            shard: view.asked.shard,
            request,
            now_ms: search.now_ms,
            max_buckets: service.core.settings().search_max_buckets(),
            fetch: views.len() == 1,
            held: Some(HeldView { context, keep_alive, holder: search.holder }),
        };
        let (asked, node) = (view.asked.clone(), view.node.clone());
        let unanswered = asked.failed(Some(&node), unexpected());
        let asker = service.clone();
        let task = service.core.env.spawn("searches a view that is held", async move {
            match ask(&asker, &node, Request::Search(Box::new(of_shard))).await {
                Ok(Response::Searched(found)) => Ok(Answered { asked, node, searched: *found }),
                Ok(_) => Err(asked.failed(Some(&node), unexpected())),
                Err(failure) => Err(asked.failed(Some(&node), failure)),
            }
        });
        (unanswered, task)
    });
    let gathered = Gathered::of(began, asked.collect(), search.failed.to_vec()).await;
    gathered.merge(service, search.request, search.allow_partial, Views::Held).await
}
