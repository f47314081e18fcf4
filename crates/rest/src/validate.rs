//! `_validate/query`: whether a query can be carried out, as a shard of each index sees it.

use std::sync::Arc;

use query::{SearchRequest, TrackTotalHits};
use serde_json::json;

use super::answer::Reply;
use super::call::Call;
use super::error::{invalid, not_supported};
use super::maintenance::query_alone;
use super::names::{filters, indices, no_such_index};
use super::search::failed;
use super::uri_query::URI_QUERY;
use engine::search::{Preference, SearchJob, search};
use engine::transport::Result;

/// Parameters of `_validate/query`.
pub(super) const KNOWN: &[&str] = &["all_shards", "explain", "rewrite"];

/// `GET /{index}/_validate/query`. The field says only with `explain` why a query is not valid.
pub(super) async fn validate(call: Call) -> Result<Reply> {
    for name in KNOWN {
        if call.query.flag(name, false)? {
            let instead =
                "leave it out: a shard of each index is asked, and says why a query is not valid";
            return Err(not_supported(&format!("[{name}]"), instead));
        }
    }
    // As in the field, where no body at all asks for every document.
    if call.json().is_ok_and(|body| body == json!({})) {
        return Err(invalid("query cannot be null"));
    }
    let has_parameters = URI_QUERY.iter().any(|name| call.query.get(name).is_some());
    let query = match query_alone(&call) {
        // A parameter is wrong, and not the query.
        Err(failure) if has_parameters && failure.kind == "illegal_argument_exception" => {
            return Err(failure);
        }
        Err(failure) => return Ok(json!({ "valid": false, "error": failure.reason }).into()),
        Ok(query) => query,
    };
    let state = call.state();
    let names = indices(&state, call.indices(), &call.query)?;
    // As in the field, other than of a search.
    if names.is_empty() && !call.query.flag("allow_no_indices", false)? {
        return Err(no_such_index(&state, call.indices().unwrap_or("_all")));
    }
    let total = names.len();
    let query = query.within(filters(&state, call.indices(), &names)?);
    // What is wrong with it is known by the first document.
    let most = (!query.is_match_all()).then_some(1);
    let request = SearchRequest {
        query: query.first(most),
        size: 0,
        track_total_hits: TrackTotalHits::No,
        ..SearchRequest::default()
    };
    let job = SearchJob {
        indices: names,
        request: Arc::new(request),
        // Any text leads to one shard of each index.
        preference: Preference::default().routed(Some("0")),
        allow_partial: false,
        point_in_time: None,
    };
    let mut answer = json!({
        "_shards": { "total": total, "successful": total, "failed": 0 }, "valid": true,
    });
    if let Err(failures) = search(call.node.search(), job).await {
        let Some(wrong) = failures.iter().find(|of| of.failure.status == 400) else {
            return Ok(failed(&failures));
        };
        (answer["valid"], answer["error"]) = (json!(false), json!(wrong.failure.reason));
    }
    Ok(answer.into())
}
