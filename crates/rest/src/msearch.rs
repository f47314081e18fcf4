//! `_msearch`: many searches in one request.

use std::fmt::Display;

use engine::search::AnswerBudget;
use engine::transport::{Failure, Result};
use serde_json::Value;

use super::answer::{Body, Reply};
use super::call::{Call, parsed};
use super::error::{bad_request, error_json};
use super::names::EXPRESSION;
use super::parameters::Query;
use super::search::{answer, read, refuse, resolved};

/// Parameters of `_msearch`.
pub(super) const MSEARCH: &[&str] = &[
    "ccs_minimize_roundtrips max_concurrent_searches max_concurrent_shard_requests pre_filter_shard_size \
     rest_total_hits_as_int search_type typed_keys",
];

/// Searches of one `_msearch`, at most.
const MAX_SEARCHES: usize = 10_000;

/// `POST /{index}/_msearch`: a line about each search, and a line with its body. As in the field, one that cannot be
/// read fails them all; where its indices are not there, or its shards cannot do it, it fails alone.
pub(super) async fn search_many(call: Call) -> Result<Reply> {
    refuse(&call.query)?;
    let began = call.node.core().env.now();
    let text = call.body.clone();
    let lines = match text.strip_suffix(b"\n") {
        None if !text.is_empty() => {
            return Err(bad_request("The msearch request must be terminated by a newline [\\n]"));
        }
        lines => lines.unwrap_or_default(),
    };
    let mut lines = lines.split(|byte| *byte == b'\n');
    let mut jobs = Vec::new();
    while let Some(head) = lines.next() {
        if head.is_empty() && lines.clone().all(<[u8]>::is_empty) {
            break;
        }
        let body = lines.next().ok_or_else(|| {
            bad_request("the last search has no body; each search is two lines, and the last ends with a newline")
        })?;
        if jobs.len() == MAX_SEARCHES {
            return Err(bad_request(format!("more than [{MAX_SEARCHES}] searches in one request")));
        }
        let (expression, query) = read_head(&call, head)?;
        let request = read(&query, body)?;
        let expression = expression.map(|names| call.with_dates(&names)).transpose();
        jobs.push(expression.and_then(|names| resolved(&call, names.as_deref(), &query, request)));
    }
    if jobs.is_empty() {
        return Err(bad_request("no requests added; each search is two lines"));
    }
    let mut text = Vec::new();
    let (budget, mut full) = (AnswerBudget::default(), None);
    // One after another: each spreads over its shards by itself, and the answer has their order. Once there is no room
    // for another answer, none is made.
    for (at, job) in jobs.into_iter().enumerate() {
        let reply = match (job, &full) {
            (_, Some(failure)) => Err(Failure::clone(failure)),
            (Ok((job, shape)), None) => answer(&call, job, shape).await,
            (Err(failure), None) => Err(failure),
        };
        if at > 0 {
            text.push(b',');
        }
        let before = text.len();
        write_response(&mut text, reply);
        if full.is_none()
            && let Err(failure) = budget.add(text.len() - before)
        {
            text.truncate(before);
            write_response(&mut text, Err(failure.clone()));
            full = Some(failure);
        }
    }
    let took = (call.node.core().env.now() - began).as_millis();
    let mut whole = format!("{{\"took\":{took},\"responses\":[").into_bytes();
    whole.append(&mut text);
    whole.extend_from_slice(b"]}");
    Ok(Reply::written(200, whole))
}

fn write_response(text: &mut Vec<u8>, reply: Result<Reply>) {
    match reply {
        Ok(Reply { status, body: Body::Written(mut json), .. }) => {
            json.pop();
            text.append(&mut json);
            text.extend_from_slice(format!(",\"status\":{status}}}").as_bytes());
        }
        Ok(Reply { body: Body::Json(value), .. }) => {
            text.extend_from_slice(value.to_string().as_bytes())
        }
        Ok(Reply { body: Body::Text(_), .. }) => text.extend_from_slice(b"null"),
        Err(failure) => text.extend_from_slice(error_json(&failure).to_string().as_bytes()),
    }
}

/// The line about a search: which indices, and parameters as in the path of `_search`.
fn read_head(call: &Call, line: &[u8]) -> Result<(Option<String>, Query)> {
    let mut expression = call.indices().map(str::to_owned);
    let mut query = Query::default();
    for name in ["rest_total_hits_as_int", "typed_keys"] {
        if call.query.flag(name, false)? {
            query.set(name, "true");
        }
    }
    // What the line says of its indices stands above what the path says.
    for name in EXPRESSION {
        if let Some(value) = call.query.get(name) {
            query.set(name, value);
        }
    }
    let line = line.trim_ascii();
    if line.is_empty() {
        return Ok((expression, query));
    }
    let wrong = |why: &dyn Display| {
        bad_request(format!("the line about a search is no JSON object: {why}"))
    };
    let Value::Object(head) = parsed(line).map_err(|error| wrong(&error))? else {
        return Err(wrong(&"it is another value"));
    };
    let text_of = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    // Clients write null for what is not set.
    for (name, value) in head.into_iter().filter(|(_, value)| !value.is_null()) {
        let text = match &value {
            Value::Array(items) => items.iter().map(text_of).collect::<Vec<_>>().join(","),
            one => text_of(one),
        };
        // As in the field some are written in two ways.
        let name = match name.as_str() {
            "searchType" => "search_type",
            "requestCache" => "request_cache",
            "ignoreThrottled" => "ignore_throttled",
            "ignoreUnavailable" => "ignore_unavailable",
            "allowNoIndices" => "allow_no_indices",
            "expandWildcards" => "expand_wildcards",
            name => name,
        };
        match name {
            "index" | "indices" => expression = Some(text),
            "preference"
            | "routing"
            | "search_type"
            | "allow_partial_search_results"
            | "ignore_throttled"
            | "ignore_unavailable"
            | "allow_no_indices"
            | "expand_wildcards"
            | "request_cache" => query.set(name, &text),
            _ => {
                return Err(bad_request(format!(
                    "key [{name}] is not supported in the metadata section"
                )));
            }
        }
    }
    Ok((expression, query))
}
