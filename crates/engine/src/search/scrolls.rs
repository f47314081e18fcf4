//! Scrolls: a search whose hits are read page by page from the views that its first page saw.
//!
//! The node that was asked keeps where each shard goes on. Every node can be asked for the next page: the id names that
//! node. Hits of the same rank are told apart by where they lie in the view: none is missed, and none comes twice.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use query::{SearchRequest, SortKey, SortTarget, TrackTotalHits};
use world::LocalFuture;

use super::asked_shards::ViewOfShard;
use super::contexts::missing;
use super::coordinator::{SearchJob, ask, free_view, search_shards};
use super::open_scrolls::{Open, Scroll};
use super::service::SearchService;
use super::views::{Search, search_views};
use crate::transport::{
    Failure, HeldView, Request, Response, Result, ScrollPage, SearchOutcome, ShardFailure,
    ViewHolder, unexpected,
};

/// The request as shards are asked: what is equal is told apart by where it lies.
fn searched(asked: &SearchRequest) -> SearchRequest {
    let mut request = asked.clone();
    if request.sort.is_empty() {
        request.sort.push(SortKey::of("_score", None));
    }
    if request.sort.iter().all(|key| key.target != SortTarget::Doc) {
        request.sort.push(SortKey::of("_doc", None));
    }
    request.track_total_hits = TrackTotalHits::All;
    request
}

/// Shows of hits what the request asks for.
fn show(asked: &SearchRequest, outcome: &mut SearchOutcome) {
    for hit in &mut outcome.hits {
        hit.found.sort.truncate(asked.sort.len());
    }
}

/// The first page of a scroll, and the id by which the next is asked for; none where no shard was searched, as in the
/// field.
pub type FirstPage = (SearchOutcome, Option<String>);

/// Begins a scroll. Fails as [`super::search`].
pub fn scroll(
    service: &Rc<SearchService>,
    job: SearchJob,
    keep_alive: Duration,
) -> LocalFuture<'_, Result<FirstPage, Vec<ShardFailure>>> {
    Box::pin(async move {
        let asked = job.request.clone();
        let mut request = searched(&asked);
        let job = SearchJob { request: Arc::new(request.clone()), ..job };
        let held = HeldView { context: None, keep_alive, holder: ViewHolder::Scroll };
        let now_ms = service.now_ms();
        let (mut outcome, shards) = search_shards(service, job, now_ms, Some(held)).await?;
        request.aggregations.clear();
        let scroll = Scroll {
            asked: asked.clone(),
            request,
            now_ms,
            total: outcome.total,
            max_score: outcome.max_score,
            shards,
            failed: outcome.failures.clone(),
        };
        let id = (!scroll.shards.is_empty()).then(|| {
            let number = service.scrolls.enter(service.core.env.now() + keep_alive, scroll);
            id(service.core.name(), number)
        });
        show(&asked, &mut outcome);
        Ok((outcome, id))
    })
}

fn id(node: &str, number: u64) -> String {
    URL_SAFE_NO_PAD.encode(format!("{number}:{node}"))
}

/// The node and the number of a scroll, by its id.
fn parse(id: &str) -> Result<(String, u64)> {
    let read = || {
        let text = String::from_utf8(URL_SAFE_NO_PAD.decode(id).ok()?).ok()?;
        let (number, node) = text.split_once(':')?;
        Some((node.to_owned(), number.parse().ok()?))
    };
    let wrong = || Failure::new(400, "illegal_argument_exception", "Cannot parse scroll id");
    read().ok_or_else(wrong)
}

/// The next page of a scroll, of whichever node.
pub fn next_page<'a>(
    service: &'a Rc<SearchService>,
    id: &'a str,
    keep_alive: Duration,
) -> LocalFuture<'a, Result<ScrollPage>> {
    Box::pin(async move {
        let (node, number) = parse(id)?;
        match ask(service, &node, Request::Scroll { number, keep_alive }).await? {
            Response::Scrolled(page) => Ok(*page),
            _ => Err(unexpected()),
        }
    })
}

/// The next page of a scroll that this node was asked for.
pub(crate) async fn page_here(
    service: &Rc<SearchService>,
    number: u64,
    keep_alive: Duration,
) -> Result<ScrollPage> {
    let now = service.core.env.now();
    let open = {
        let mut open = service.scrolls.open.borrow_mut();
        let found = open.get_mut(&number).filter(|open| open.until > now);
        let found = found.ok_or_else(|| missing(number))?;
        found.until = found.until.max(now + keep_alive);
        found.clone()
    };
    let mut scroll = open.scroll.lock().await;
    let found = page(service, &mut scroll, keep_alive).await;
    Ok(ScrollPage { request: scroll.asked.clone(), found })
}

async fn page(
    service: &Rc<SearchService>,
    scroll: &mut Scroll,
    keep_alive: Duration,
) -> Result<SearchOutcome, Vec<ShardFailure>> {
    let search = Search {
        request: &scroll.request,
        now_ms: scroll.now_ms,
        holder: ViewHolder::Scroll,
        keep_alive,
        allow_partial: true,
        failed: &scroll.failed,
    };
    let (mut outcome, continued) = search_views(service, &scroll.shards, search).await?;
    for ViewOfShard { asked, after, .. } in continued {
        let same = |shard: &&mut ViewOfShard| shard.asked == asked;
        if let Some(shard) = scroll.shards.iter_mut().find(same) {
            shard.after = after.or(shard.after.take());
        }
    }
    (outcome.total, outcome.more, outcome.max_score) = (scroll.total, false, scroll.max_score);
    show(&scroll.asked, &mut outcome);
    Ok(outcome)
}

/// Ends a scroll, or without an id all of the cluster; answers with how many views of shards were let go.
pub fn clear_scroll<'a>(
    service: &'a Rc<SearchService>,
    id: Option<&'a str>,
) -> LocalFuture<'a, Result<u64>> {
    Box::pin(async move {
        let asked = match id {
            Some(id) => {
                let (node, number) = parse(id)?;
                vec![(node, Some(number))]
            }
            None => service.core.state().present.iter().map(|node| (node.clone(), None)).collect(),
        };
        let mut freed = 0;
        for (node, number) in asked {
            // What a node that is gone held went with it.
            if let Ok(Response::Freed(views)) =
                ask(service, &node, Request::ClearScroll(number)).await
            {
                freed += views;
            }
        }
        Ok(freed)
    })
}

/// Ends a scroll that this node was asked for, or all of them.
pub(crate) async fn clear_here(service: &Rc<SearchService>, number: Option<u64>) -> u64 {
    let ended: Vec<Open> = {
        let mut open = service.scrolls.open.borrow_mut();
        match number {
            Some(number) => open.remove(&number).into_iter().collect(),
            None => std::mem::take(&mut *open).into_values().collect(),
        }
    };
    let mut freed = 0;
    for Open { scroll, .. } in ended {
        // A page that is being read ends first.
        let scroll = scroll.lock().await;
        for shard in &scroll.shards {
            free_view(service, &shard.node, shard.context);
            freed += 1;
        }
    }
    freed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_names_a_node_and_a_number() {
        assert_eq!(parse(&id("a:b", 7)), Ok(("a:b".to_owned(), 7)));
        for wrong in ["", "x", "DnF1ZXJ5", &URL_SAFE_NO_PAD.encode("x:y")] {
            assert_eq!(parse(wrong).unwrap_err().status, 400, "{wrong}");
        }
    }
}
