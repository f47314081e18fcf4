//! `_search` and `_count`.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};

use query::{
    Mapping, NO_TIMEOUT_MS, SearchRequest, ShownHit, Text, TrackTotalHits, add_columns_of_path,
    parse_search, parse_sort, parse_track_total_hits,
};

use super::answer::Reply;
use super::call::Call;
use super::error::{bad_request, cause_json, not_supported};
use super::keep_alive::point_in_time;
use super::names::{filters, indices, read_filters};
use super::parameters::{Query, filter_source};
use super::typed_keys::{TypedKey, typed};
use super::uri_query::uri_query;
use engine::search::{Preference, SearchJob, SearchOutcome, ShardFailure, search};
use engine::state::ClusterState;
use engine::transport::Result;

/// Parameters of `_search`. Some are known so that they are refused in words.
pub(super) const SEARCH: &[&str] = &[
    "_source _source_excludes _source_includes allow_partial_search_results batched_reduce_size \
     ccs_minimize_roundtrips docvalue_fields explain from max_concurrent_shard_requests pre_filter_shard_size \
     preference request_cache rest_total_hits_as_int routing scroll search_pipeline search_type \
     seq_no_primary_term size sort stats stored_fields suggest_field suggest_mode suggest_size suggest_text \
     terminate_after timeout track_scores track_total_hits typed_keys version",
];

const UNSUPPORTED: [(&str, &str); 3] = [
    ("search_pipeline stats", "leave it out: there are no pipelines, and no groups of searches"),
    ("stored_fields", "send [_source]"),
    ("suggest_field suggest_mode suggest_size suggest_text", "send [match] with [fuzziness]"),
];

/// Bytes of the body of one search. Those of `_msearch` count each for itself.
const MAX_SEARCH_BYTES: usize = 10 << 20;

/// `GET /{index}/_search`.
pub(super) async fn search_one(call: Call) -> Result<Reply> {
    let body = call.body.clone();
    // As in the field commas alone name all indices.
    let names = call.indices().filter(|names| !names.trim_end_matches(',').is_empty());
    let (job, shape) = job(&call, names, &call.query, &body)?;
    answer(&call, job, shape).await
}

fn check_size(body: &[u8]) -> Result<()> {
    if body.len() <= MAX_SEARCH_BYTES {
        return Ok(());
    }
    Err(bad_request(format!(
        "the body of the search has [{}] bytes, more than [{MAX_SEARCH_BYTES}]; send fewer terms",
        body.len()
    )))
}

/// How an answer is written.
#[derive(Debug)]
pub(super) struct Shape {
    /// Whether the total is a bare number.
    pub(super) as_int: bool,
    /// Names of aggregations, where they are to begin with their type.
    pub(super) typed: Option<Vec<TypedKey>>,
}

impl Shape {
    fn of(query: &Query, job: &SearchJob, state: &ClusterState) -> Result<Shape> {
        let as_int = query.flag("rest_total_hits_as_int", false)?;
        let mut shape = Shape { as_int, typed: None };
        if query.flag("typed_keys", false)? {
            let mappings = job.indices.iter().map(|name| &state.indices[name].mappings);
            let mappings = mappings.map(Mapping::stored).collect::<Result<Vec<_>, _>>()?;
            shape.typed = Some(TypedKey::all(&job.request.aggregations, &mappings));
        }
        Ok(shape)
    }
}

/// What is to be searched, by body and parameters; and how it is answered.
pub(super) fn job(
    call: &Call,
    expression: Option<&str>,
    query: &Query,
    body: &[u8],
) -> Result<(SearchJob, Shape)> {
    resolved(call, expression, query, read(query, body)?)
}

/// What body and parameters ask for, whatever indices there are.
pub(super) fn read(query: &Query, body: &[u8]) -> Result<SearchRequest> {
    check_size(body)?;
    refuse(query)?;
    let mut request = parse_search(body)?;
    parameters(query, &mut request)?;
    // As in the field it stands above the query of the body.
    if let Some(query) = uri_query(query)? {
        request.query = query;
    }
    Ok(request)
}

/// The same of the indices that an expression names.
pub(super) fn resolved(
    call: &Call,
    expression: Option<&str>,
    query: &Query,
    mut request: SearchRequest,
) -> Result<(SearchJob, Shape)> {
    let state = call.state();
    let point_in_time = point_in_time(call, (expression, query), &request)?;
    let names = match &point_in_time {
        // What was deleted since is known by the nodes that have it no more.
        Some(point) => {
            request.query = request.query.within(read_filters(point.filters())?);
            let there = |name: &String| state.indices.contains_key(name);
            point.indices().into_iter().filter(there).collect()
        }
        None => {
            let names = indices(&state, expression, query)?;
            request.query = request.query.within(filters(&state, expression, &names)?);
            names
        }
    };
    request.query = request.query.first(request.terminate_after);
    // As in the field: answers with hits are cached only where the request asks for that.
    let mut cached = request.size == 0 && point_in_time.is_none();
    for name in &names {
        let meta = &state.indices[name];
        cached &= meta.requests_cache_enable();
        let window = meta.max_result_window() as usize;
        let reach = request.from.saturating_add(request.size);
        if reach > window {
            return Err(bad_request(format!(
                "Result window is too large, from + size must be less than or equal to: [{window}] but was \
                 [{reach}]. This limit can be set by changing the [index.max_result_window] index level setting; \
                 or go on with search_after."
            )));
        }
    }
    let settings = call.node.core().settings();
    let limit = settings.search_default_search_timeout().map(|time| time.as_millis() as u64);
    request.timeout_ms = request.timeout_ms.or(limit).filter(|ms| *ms != NO_TIMEOUT_MS);
    request.cached = query.flag("request_cache", cached)?;
    let preference = preference(query)?;
    let default = settings.search_default_allow_partial_results();
    let allow_partial = query.flag("allow_partial_search_results", default)?;
    let request = Arc::new(request);
    let job = SearchJob { indices: names, request, preference, allow_partial, point_in_time };
    let shape = Shape::of(query, &job, &state)?;
    Ok((job, shape))
}

/// Which shards and copies are asked.
pub(super) fn preference(query: &Query) -> Result<Preference> {
    let preference = Preference::parse(query.get("preference").unwrap_or_default())?;
    Ok(preference.routed(query.get("routing")))
}

/// Refuses what the engine does not have.
pub(super) fn refuse(query: &Query) -> Result<()> {
    if query.flag("explain", false)? {
        return Err(not_supported("[explain]", "leave it out"));
    }
    for (names, instead) in UNSUPPORTED {
        if let Some(name) = names.split(' ').find(|name| query.get(name).is_some()) {
            return Err(not_supported(&format!("[{name}] of a path"), instead));
        }
    }
    match query.get("search_type") {
        None | Some("" | "query_then_fetch") => Ok(()),
        Some(other) => {
            let instead = "send query_then_fetch, which scores each shard by its own statistics";
            Err(not_supported(&format!("search_type [{other}]"), instead))
        }
    }
}

/// Parameters of the path stand above the body; as in the field its keys of the order follow those of the body.
fn parameters(query: &Query, request: &mut SearchRequest) -> Result<()> {
    request.from = query.number("from")?.unwrap_or(request.from);
    request.size = query.number("size")?.unwrap_or(request.size);
    if let Some(text) = query.get("sort") {
        request.sort.extend(parse_sort(text)?);
    }
    if let Some(names) = query.get("docvalue_fields") {
        add_columns_of_path(names, &mut request.column_fields)?;
    }
    if let Some(after) = &request.search_after {
        let (values, keys) = (after.len(), request.sort.len());
        if values != keys {
            let reason = format!("search_after has {values} value(s) but sort has {keys}");
            return Err(bad_request(reason));
        }
        if request.from > 0 {
            let reason = "`from` parameter must be set to 0 when `search_after` is used";
            return Err(bad_request(reason));
        }
    }
    if let Some(text) = query.get("track_total_hits") {
        let wrong =
            || bad_request(format!("failed to parse parameter [track_total_hits]: [{text}]"));
        request.track_total_hits = parse_track_total_hits(text).ok_or_else(wrong)?;
    }
    // A bare number cannot say that there are more.
    if query.flag("rest_total_hits_as_int", false)? {
        match request.track_total_hits {
            TrackTotalHits::Unset => request.track_total_hits = TrackTotalHits::All,
            TrackTotalHits::UpTo(limit) => {
                return Err(bad_request(format!(
                    "[rest_total_hits_as_int] cannot be used if the tracking of total hits is not \
                     accurate, got {limit}"
                )));
            }
            TrackTotalHits::No | TrackTotalHits::All => {}
        }
    }
    match query.get("timeout") {
        None => {}
        Some("-1") => request.timeout_ms = Some(NO_TIMEOUT_MS),
        Some(_) => {
            let time = query.duration("timeout", Duration::ZERO)?;
            request.timeout_ms = Some(time.as_millis() as u64);
        }
    }
    let most = query.number("terminate_after")?.filter(|most: &u64| *most > 0);
    request.terminate_after = most.or(request.terminate_after);
    request.check_terminate_after()?;
    request.track_scores = query.flag("track_scores", request.track_scores)?;
    request.version = query.flag("version", request.version)?;
    request.seq_no_primary_term = query.flag("seq_no_primary_term", request.seq_no_primary_term)?;
    filter_source(query, &mut request.source);
    Ok(())
}

pub(super) async fn answer(call: &Call, job: SearchJob, shape: Shape) -> Result<Reply> {
    let request = job.request.clone();
    match search(call.node.search(), job).await {
        Ok(outcome) => found(call, (&request, None), outcome, shape),
        Err(failures) => Ok(failed(&failures)),
    }
}

/// The answer to a search, with the id of its scroll.
pub(super) fn found(
    call: &Call,
    (request, scroll): (&SearchRequest, Option<&str>),
    outcome: SearchOutcome,
    shape: Shape,
) -> Result<Reply> {
    let max_buckets = call.node.core().settings().search_max_buckets() as usize;
    Ok(Reply::written(200, written((request, scroll), outcome, &shape, max_buckets)?))
}

/// The answer, with sources byte for byte.
fn written(
    (request, scroll): (&SearchRequest, Option<&str>),
    mut outcome: SearchOutcome,
    shape: &Shape,
    max_buckets: usize,
) -> Result<Vec<u8>> {
    let sources = outcome.hits.iter().filter_map(|hit| hit.document.source.as_ref());
    let sources_bytes: usize = sources.map(|source| source.len()).sum();
    let mut text = Vec::with_capacity(512 + 256 * outcome.hits.len() + sources_bytes);
    let total = match (request.track_total_hits, shape.as_int) {
        (TrackTotalHits::No, false) => None,
        // A bare number is always there, as old clients rely on it: where nothing was counted it is the field's -1.
        (TrackTotalHits::No, true) => Some(json!(-1)),
        (_, true) => Some(json!(outcome.total)),
        (_, false) => {
            let relation = if outcome.more { "gte" } else { "eq" };
            Some(json!({ "value": outcome.total, "relation": relation }))
        }
    };
    let mut to = Text(&mut text);
    to.open(b'{');
    let point = request.point_in_time.as_ref().map(|point| ("pit_id", point.id.as_str()));
    if let Some((name, id)) = scroll.map(|id| ("_scroll_id", id)).or(point) {
        to.member(name, id);
    }
    to.member("took", &(outcome.took.as_millis() as u64));
    to.member("timed_out", &outcome.timed_out);
    if let Some(terminated) = outcome.terminated_early {
        to.member("terminated_early", &terminated);
    }
    to.member("_shards", &shards_json(outcome.shards, &outcome.failures));
    to.name("hits");
    to.open(b'{');
    if let Some(total) = total {
        to.member("total", &total);
    }
    let max_score = outcome.max_score.filter(|_| request.shows_scores());
    to.member("max_score", &max_score.map(f64::from));
    to.name("hits");
    to.open(b'[');
    for hit in &outcome.hits {
        let shown = ShownHit {
            index: &hit.index,
            found: &hit.found,
            document: &hit.document,
            version: request.version,
            primary_term: request.seq_no_primary_term.then_some(hit.primary_term),
            sort: !request.sort.is_empty(),
        };
        shown.write(&mut to);
    }
    to.close(b']');
    to.close(b'}');
    // As in the field they are left out where no shard was asked.
    if !request.aggregations.is_empty() && outcome.shards > 0 {
        to.name("aggregations");
        let begin = to.0.len();
        outcome.aggregations.totals_as_int = shape.as_int;
        outcome.aggregations.write(&request.aggregations, max_buckets, to.0)?;
        if let Some(keys) = &shape.typed {
            let read = serde_json::from_slice(&to.0.split_off(begin));
            let mut answers: Map<String, Value> = read.expect("an object was written");
            typed(keys, &mut answers);
            to.json(&Value::Object(answers).to_string());
        }
    }
    to.close(b'}');
    Ok(text)
}

fn failure_json(failure: &ShardFailure) -> Value {
    let mut object = json!({
        "shard": failure.shard,
        "index": failure.index,
        "reason": cause_json(&failure.failure),
    });
    if let Some(node) = &failure.node {
        object["node"] = json!(node);
    }
    object
}

/// The first of those that failed of the same in an index, as the field groups them: an index may have many shards.
fn grouped(failures: &[ShardFailure]) -> impl Iterator<Item = &ShardFailure> {
    let mut seen = BTreeSet::new();
    failures.iter().filter(move |of| seen.insert((&of.index, &of.failure.kind, &of.failure.reason)))
}

/// `_shards` of the answer to a search.
pub(super) fn shards_json(total: usize, failures: &[ShardFailure]) -> Value {
    let mut shards = json!({
        "total": total,
        "successful": total - failures.len(),
        "skipped": 0,
        "failed": failures.len(),
    });
    if !failures.is_empty() {
        shards["failures"] = grouped(failures).map(failure_json).collect();
    }
    shards
}

/// A search without an answer: the causes, and for each shard why.
pub(super) fn failed(failures: &[ShardFailure]) -> Reply {
    // A wrong request (4xx) comes before errors that may pass.
    let status = failures.iter().map(|f| f.failure.status).min().unwrap_or(503).max(400);
    let status = if failures.iter().any(|f| f.failure.status == 429) { 429 } else { status };
    let cause = |failure: &ShardFailure| {
        let mut cause = cause_json(&failure.failure);
        cause["index"] = json!(failure.index);
        cause
    };
    let reason = match failures.first() {
        Some(_) if status != 503 => "all shards failed",
        _ => "shards failed, and partial results are not allowed or there are none",
    };
    let error = json!({
        "root_cause": grouped(failures).map(cause).collect::<Vec<_>>(),
        "type": "search_phase_execution_exception",
        "reason": reason,
        "phase": "query",
        "grouped": true,
        "failed_shards": grouped(failures).map(failure_json).collect::<Vec<_>>(),
    });
    Reply::with(status, json!({ "error": error, "status": status }))
}

/// Counts by a query: a search that wants no hits.
pub(super) async fn count_by(call: &Call, query: query::Query) -> Result<Reply> {
    let state = call.state();
    let names = indices(&state, call.indices(), &call.query)?;
    let request = SearchRequest {
        query: query.within(filters(&state, call.indices(), &names)?),
        size: 0,
        track_total_hits: TrackTotalHits::All,
        ..SearchRequest::default()
    };
    let job = SearchJob {
        indices: names,
        request: Arc::new(request),
        preference: preference(&call.query)?,
        allow_partial: call.node.core().settings().search_default_allow_partial_results(),
        point_in_time: None,
    };
    match search(call.node.search(), job).await {
        Ok(outcome) => {
            let shards = shards_json(outcome.shards, &outcome.failures);
            Ok(json!({ "count": outcome.total, "_shards": shards }).into())
        }
        Err(failures) => Ok(failed(&failures)),
    }
}

#[cfg(test)]
mod tests {
    use engine::transport::Failure;

    use super::*;

    fn asked(query: &str, body: &str) -> Result<SearchRequest, String> {
        let mut request = parse_search(body.as_bytes()).unwrap();
        let read = parameters(&Query::parse(query).unwrap(), &mut request);
        read.map(|()| request).map_err(|failure| failure.reason)
    }

    #[test]
    fn the_path_adds_to_the_order_and_replaces_what_is_shown() {
        let both = parse_search(br#"{"sort":["a",{"b":"desc"}]}"#).unwrap();
        assert_eq!(asked("sort=b:desc", r#"{"sort":["a"]}"#), Ok(both));
        let after = r#"{"sort":["a"],"search_after":[1]}"#;
        assert!(asked("from=0", after).is_ok());
        assert!(asked("from=5", after).unwrap_err().contains("`from` parameter must be set to 0"));
        assert!(asked("sort=b", after).unwrap_err().contains("1 value(s) but sort has 2"));
        for (query, enabled, includes, excludes) in [
            ("size=3", false, "", "x"),
            ("_source=true", true, "", ""),
            ("_source_includes=n", true, "n", ""),
            ("_source_excludes=m", true, "", "m"),
            ("_source=false", false, "", ""),
        ] {
            let mut request = parse_search(br#"{"_source":{"excludes":["x"]}}"#).unwrap();
            request.source.enabled = false;
            parameters(&Query::parse(query).unwrap(), &mut request).unwrap();
            let shown = request.source;
            let lists = (shown.includes.join(","), shown.excludes.join(","));
            assert_eq!(shown.enabled, enabled, "{query}");
            assert_eq!(lists, (includes.to_owned(), excludes.to_owned()), "{query}");
        }
    }

    #[test]
    fn the_path_adds_to_the_columns_that_hits_show() {
        let both = parse_search(br#"{"docvalue_fields":["a","b","c*"]}"#).unwrap();
        assert_eq!(asked("docvalue_fields=b,,c*", r#"{"docvalue_fields":["a"]}"#), Ok(both));
        let many = format!("docvalue_fields={}", vec!["b"; 100].join(","));
        assert!(asked(&many, "{}").is_ok());
        let said = |query: &str| asked(query, r#"{"docvalue_fields":["a"]}"#).unwrap_err();
        assert!(said(&many).contains("but was [101]"));
        assert!(said("docvalue_fields=_seq_no").contains("metadata field [_seq_no]"));
    }

    #[test]
    fn shards_that_failed_of_the_same_are_shown_once() {
        let failed_of = |index: &str, shard, reason: &str| {
            let (index, failure) = (index.to_owned(), Failure::new(400, "x", reason));
            ShardFailure { index, shard, node: None, failure }
        };
        let failures = [
            failed_of("a", 0, "one"),
            failed_of("a", 1, "one"),
            failed_of("b", 0, "one"),
            failed_of("a", 2, "two"),
        ];
        let shown = shards_json(5, &failures);
        let places = |of: &Value| [of["index"].clone(), of["shard"].clone()];
        let shown_of: Vec<_> = shown["failures"].as_array().unwrap().iter().map(places).collect();
        assert_eq!(json!(shown_of), json!([["a", 0], ["b", 0], ["a", 2]]));
        assert_eq!((&shown["failed"], &shown["successful"]), (&json!(4), &json!(1)));
    }

    #[test]
    fn a_total_that_is_a_bare_number_is_exact() {
        let counted = |query, body| asked(query, body).map(|request| request.track_total_hits);
        assert_eq!(counted("", "{}"), Ok(TrackTotalHits::Unset));
        let as_int = "rest_total_hits_as_int=true";
        assert_eq!(counted(as_int, "{}"), Ok(TrackTotalHits::All));
        assert_eq!(counted(as_int, r#"{"track_total_hits":false}"#), Ok(TrackTotalHits::No));
        assert_eq!(counted(as_int, r#"{"track_total_hits":-1}"#), Ok(TrackTotalHits::No));
        assert_eq!(counted(as_int, r#"{"track_total_hits":2147483647}"#), Ok(TrackTotalHits::All));
        let said = counted(as_int, r#"{"track_total_hits":10000}"#).unwrap_err();
        let why = "cannot be used if the tracking of total hits is not accurate, got 10000";
        assert_eq!(said, format!("[rest_total_hits_as_int] {why}"));
    }
}
