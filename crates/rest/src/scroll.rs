//! Scrolls: `_search?scroll=`, `_search/scroll`.

use query::TrackTotalHits;
use serde_json::{Value, json};

use super::answer::Reply;
use super::call::{Call, object, texts};
use super::error::{bad_body, invalid};
use super::keep_alive::scroll_keep_alive;
use super::search::{Shape, failed, found, job, search_one};
use engine::search::{clear_scroll, next_page, scroll};
use engine::transport::Result;

/// Parameters of `GET /_search/scroll`.
pub(super) const KNOWN: &[&str] = &["rest_total_hits_as_int", "scroll", "scroll_id"];
/// Parameters of `DELETE /_search/scroll`.
pub(super) const CLEAR: &[&str] = &["scroll_id"];

/// `GET /{index}/_search`: with `scroll`, the first page of one.
pub(super) async fn search(call: Call) -> Result<Reply> {
    let Some(text) = call.query.get("scroll") else { return search_one(call).await };
    let keep_alive = scroll_keep_alive(&call, Some(text))?;
    let body = call.body.clone();
    let (job, shape) = job(&call, call.indices(), &call.query, &body)?;
    let request = job.request.clone();
    let refused = [
        (request.size == 0, "[size] cannot be [0] in a scroll context"),
        (request.from > 0, "using [from] is not allowed in a scroll context"),
        (request.search_after.is_some(), "`search_after` cannot be used in a scroll context."),
        (
            !matches!(request.track_total_hits, TrackTotalHits::Unset | TrackTotalHits::All),
            "disabling [track_total_hits] is not allowed in a scroll context",
        ),
        (request.collapse.is_some(), "cannot use `collapse` in a scroll context"),
        (request.cached, "[request_cache] cannot be used in a scroll context"),
        (
            request.terminate_after.is_some(),
            "[terminate_after] of a scroll is not supported by this engine; leave it out, and read fewer pages",
        ),
        (job.point_in_time.is_some(), "using [point in time] is not allowed in a scroll context"),
    ];
    if let Some((_, why)) = refused.into_iter().find(|(is_wrong, _)| *is_wrong) {
        return Err(invalid(why));
    }
    match scroll(call.node.search(), job, keep_alive).await {
        Ok((outcome, id)) => found(&call, (&request, id.as_deref()), outcome, shape),
        Err(failures) => Ok(failed(&failures)),
    }
}

/// What a request about scrolls says: their ids, by body, path or parameter, and how long to keep them.
struct Asked {
    ids: Vec<String>,
    keep_alive: Option<String>,
}

impl Asked {
    fn read(call: &Call) -> Result<Asked> {
        let ids = call.part("scroll_id").or_else(|| call.query.get("scroll_id"));
        let mut asked = Asked {
            ids: ids.into_iter().flat_map(|ids| ids.split(',')).map(str::to_owned).collect(),
            keep_alive: call.query.get("scroll").map(str::to_owned),
        };
        let body = object(call.json()?, ": {\"scroll_id\", \"scroll\"}")?;
        // As in the field, the body stands above the path.
        for (key, value) in body {
            match (key.as_str(), value) {
                ("scroll", Value::String(text)) => asked.keep_alive = Some(text),
                ("scroll_id", ids @ (Value::String(_) | Value::Array(_))) => {
                    let wrong = |id: &Value| bad_body(format!("scroll_id [{id}] is no text"));
                    asked.ids = texts(&ids).map_err(wrong)?;
                }
                (key, value) => {
                    return Err(bad_body(format!(
                        "unknown parameter [{key}] in request body, or its value [{value}] is not of its kind; there \
                         are scroll and scroll_id"
                    )));
                }
            }
        }
        Ok(asked)
    }
}

/// `GET /_search/scroll`: the next page.
pub(super) async fn next(call: Call) -> Result<Reply> {
    let asked = Asked::read(&call)?;
    let as_int = call.query.flag("rest_total_hits_as_int", false)?;
    let shape = Shape { as_int, typed: None };
    let [id] = asked.ids.as_slice() else {
        return Err(invalid("scrollId is missing"));
    };
    let keep_alive = scroll_keep_alive(&call, asked.keep_alive.as_deref())?;
    let page = next_page(call.node.search(), id, keep_alive).await?;
    let mut request = (*page.request).clone();
    // The first page had them.
    request.aggregations.clear();
    match page.found {
        Ok(outcome) => found(&call, (&request, Some(id)), outcome, shape),
        Err(failures) => Ok(failed(&failures)),
    }
}

/// `DELETE /_search/scroll`: these end, or all of them.
pub(super) async fn clear(call: Call) -> Result<Reply> {
    let Asked { ids, .. } = Asked::read(&call)?;
    let service = call.node.search();
    let mut freed = 0;
    match ids.as_slice() {
        [] => return Err(invalid("no scroll ids specified")),
        [all] if all == "_all" => freed = clear_scroll(service, None).await?,
        ids => {
            for id in ids {
                freed += clear_scroll(service, Some(id)).await?;
            }
        }
    }
    let status = if freed > 0 { 200 } else { 404 };
    Ok(Reply::with(status, json!({ "succeeded": true, "num_freed": freed })))
}
