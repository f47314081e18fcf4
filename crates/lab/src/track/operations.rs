//! What operations send: requests of a load, or steps. One function a type.

use std::time::Duration;

use query::json::Node;
use serde_json::{Map, Value, json};

use super::bulk;
use super::composite;
use super::context::{Context, Index, NOT_RENAMED, Why};
use super::embedded;
use super::live;
use super::points_in_time;
use super::reader::{Object, Refusal};
use super::template_steps;
use super::templates::{KINDS, kind_of};
use super::{Action, Condition, Request, STATUSES, Step};
use crate::load::{Check, Content, Operation};

/// How long an answer to a request of a load may take, as in Rally.
const TIMEOUT: Duration = Duration::from_secs(60);
/// How long a step that has no bound may take: a merge may take long.
const STEP_TIMEOUT: Duration = Duration::from_secs(7200);
/// The pause before a step is tried again, as in Rally.
const RETRY: Duration = Duration::from_millis(500);
/// How often a step is tried until it succeeds.
const TRIES_MAX: u32 = 7200;
/// The pause between questions whether a merge still goes on, as in Rally.
const POLL_PERIOD: Duration = Duration::from_secs(10);
/// The most requests of a composite that may be bounded to go on at a time.
const CONNECTIONS_MAX: u64 = 10_000;
const NO_DATA_STREAMS: &str = "data streams are not made here";
/// Types that Rally or OpenSearch Benchmark has and that are not sent here, with the reason.
#[rustfmt::skip]
const REFUSED: [(&str, &str); 14] = [
    ("esql", "ES|QL is in Elasticsearch from 8.11 on alone"),
    ("downsample", "downsampling is in Elasticsearch from 8.5 on alone"),
    ("sql", "SQL over REST is a plugin of the cluster"),
    ("eql", "EQL is in Elasticsearch alone"),
    ("composite-agg", "pages of composite aggregations are not sent yet"),
    ("create-data-stream delete-data-stream", NO_DATA_STREAMS),
    ("vector-search bulk-vector-data-set warmup-knn-indices train-knn-model delete-knn-model",
        "vectors are not searched here"),
    ("create-transform start-transform wait-for-transform delete-transform transform-stats",
        "transforms are a plugin of the cluster"),
    ("submit-async-search get-async-search delete-async-search",
        "asynchronous searches are a plugin of the cluster"),
    ("create-ilm-policy delete-ilm-policy",
        "policies for the life of indices are a plugin of the cluster"),
    ("put-pipeline delete-pipeline create-search-pipeline delete-search-pipeline",
        "no pipelines are made here"),
    ("create-snapshot-repository delete-snapshot-repository create-snapshot restore-snapshot \
      wait-for-snapshot-create wait-for-current-snapshots-create wait-for-recovery",
        "no snapshots are made or restored here"),
    ("shrink-index", "indices are not shrunk here"),
    ("create-ml-datafeed delete-ml-datafeed start-ml-datafeed stop-ml-datafeed create-ml-job \
      delete-ml-job open-ml-job close-ml-job",
        "machine learning is a plugin of the cluster"),
];
/// Types that are sent, by composites too.
const COMPOSED: [&str; 13] = [
    "search", PAGINATED, "field-caps", "raw-request", "cluster-health", "refresh", "index-stats",
    "sleep", "open-point-in-time", "create-point-in-time", "close-point-in-time",
    "delete-point-in-time", "list-all-point-in-time",
];
/// Types that are sent, but not by composites, beside those of templates.
const ALONE: [&str; 9] = [
    "bulk", "index", "scroll-search", "composite", "create-index", "delete-index", "force-merge",
    "node-stats", "put-settings",
];
/// Pages each of which goes on from the last hit of the one before.
const PAGINATED: &str = "paginated-search";

/// An operation that can be run.
pub(super) struct Known {
    pub(super) operation_type: String,
    pub(super) action: Action,
    pub(super) timeout: Duration,
    pub(super) reported: bool,
    /// Documents in each of its requests; none where it ends with no documents.
    pub(super) bulk_documents: Option<u64>,
    /// The most of its requests that go on at a time, where streams are bounded.
    pub(super) connections: Option<usize>,
}

/// Reads an operation of a type, under the name that it has.
pub(super) fn operation(
    context: &Context<'_>,
    name: &str,
    kind: &str,
    object: &Object<'_>,
) -> Result<Known, Refusal> {
    let known = alone_or_not(context, name, kind, object)?;
    if kind != "composite" && points_in_time::is_shared(&known.action) {
        let why = "it means a point in time of others: all of them stand in one composite";
        return Err(context.reader.refusal(object.at("operation-type"), kind, why.to_owned()));
    }
    Ok(known)
}

/// The same of one that may be a request of a composite.
fn alone_or_not(
    context: &Context<'_>,
    name: &str,
    kind: &str,
    object: &Object<'_>,
) -> Result<Known, Refusal> {
    let known = known(context, name, kind, object);
    context.unknown.take().map_or(known, Err)
}

fn known(
    context: &Context<'_>,
    name: &str,
    kind: &str,
    object: &Object<'_>,
) -> Result<Known, Refusal> {
    let reader = context.reader;
    let refuse = |word: &str, why: String| reader.refusal(object.at(word), word, why);
    if let Some(source) = reader.text(object, "param-source") {
        let why = format!("its parameters come from \"{source}\", which is Python of the track");
        return Err(refuse("param-source", why));
    }
    // A track's own runner may have the type of another.
    let has_runner = context.python.as_ref().is_some_and(|python| python.runs(kind));
    if has_runner || types().all(|known| known != kind) {
        return Err(refuse("operation-type", unknown_type(context, kind)));
    }
    let unsent = [("headers", "headers of its own are not sent"), ("data-stream", NO_DATA_STREAMS)];
    if let Some((word, why)) = unsent.iter().find(|(word, _)| object.get(word).is_some()) {
        return Err(refuse(word, (*why).to_owned()));
    }
    if object.get("assertions").is_some() {
        // As in Rally without --enable-assertions.
        context.change(format!("The assertions of {name} are not checked."));
    }
    if kind == "put-settings" && context.options.embedded {
        let body = object.plain("body").unwrap_or_default();
        check_settings(&body).map_err(|why| refuse("body", why))?;
    }
    let refused = |(word, why): Why| refuse(&word, why);
    let (mut action, bulk_documents) = match kind {
        // The name of bulk operations before Rally 0.8.
        "bulk" | "index" => {
            let (content, documents) = bulk::content(context, object).map_err(refused)?;
            (send(name, content), Some(documents))
        }
        "search" | "scroll-search" | PAGINATED => {
            (search(context, name, object, kind).map_err(refused)?, None)
        }
        "field-caps" => (field_caps(context, name, object).map_err(refused)?, None),
        "raw-request" => (raw_request(context, name, object), None),
        "composite" => {
            let read = |kind: &str, object: &Object<'_>| {
                if !COMPOSED.contains(&kind) {
                    let sent = COMPOSED.join(", ");
                    let why = format!("a composite sends no {kind} here; it sends {sent}");
                    return Err(reader.refusal(object.node, kind, why));
                }
                alone_or_not(context, kind, kind, object).map(|known| (known.action, known.timeout))
            };
            (Action::Do(composite::steps(context, object, &read)?), None)
        }
        _ => match kind_of(kind) {
            Some(_) if context.options.live => {
                return Err(refuse("operation-type", NOT_RENAMED.to_owned()));
            }
            Some(of) => (Action::Do(template_steps::of(context, of, kind, object)?), None),
            None => (Action::Do(steps(context, kind, object)?), None),
        },
    };
    // What a composite consists of says so itself.
    if let (Action::Do(steps), true) = (&mut action, kind != "composite") {
        let retries = reader.whole(object, "retries", 0, u64::from(TRIES_MAX) - 1).unwrap_or(0);
        let tries = match reader.bool(object, "retry-until-success") {
            Some(true) => TRIES_MAX,
            _ => retries as u32 + 1,
        };
        let pause = context.seconds(object, "retry-wait-period", RETRY);
        for request in steps.iter_mut().flat_map(Step::requests_mut) {
            (request.tries, request.pause) = (tries, pause);
        }
    }
    // Settings are journaled, and put back.
    if context.options.live && kind != "put-settings" {
        live::check(&action).map_err(|why| refuse("path", why))?;
    }
    embedded::check(context, kind, object, &mut action)?;
    let is_load = matches!(action, Action::Send(_)) || kind == PAGINATED;
    let otherwise = if is_load { TIMEOUT } else { STEP_TIMEOUT };
    let connections = reader.whole(object, "max-connections", 1, CONNECTIONS_MAX);
    let mut timeout = context.seconds(object, "request-timeout", otherwise);
    if context.options.embedded && object.plain("mode") == Some(json!("polling")) {
        // A merge of the embedded engine is waited for by its own answer, as the field's would be without polling.
        timeout = timeout.max(STEP_TIMEOUT);
    }
    Ok(Known {
        operation_type: kind.to_owned(),
        action,
        timeout,
        reported: context.is_reported(object).unwrap_or(true),
        bulk_documents,
        connections: connections.map(|most| most as usize),
    })
}

/// Whether the embedded engine has all settings that a body sets.
fn check_settings(body: &Value) -> Result<(), String> {
    fn check(name: &str, value: &Value) -> Result<(), String> {
        let text = match value {
            Value::Object(members) => {
                let below = |own: &String| {
                    if name.is_empty() { own.clone() } else { format!("{name}.{own}") }
                };
                return members.iter().try_for_each(|(own, value)| check(&below(own), value));
            }
            Value::Null => return Ok(()),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let checked = engine::settings::check(name, &text);
        checked.map(drop).map_err(|error| format!("the embedded engine does not take it: {error}"))
    }
    ["transient", "persistent"].iter().try_for_each(|scope| check("", &body[*scope]))
}

/// Whether there are operations of a type, be it only to be refused.
pub(super) fn is_type(context: &Context<'_>, kind: &str) -> bool {
    types().any(|known| known == kind) || why_refused(kind).is_some() || is_python(context, kind)
}

/// Every type that is sent.
fn types() -> impl Iterator<Item = &'static str> {
    let of_templates = KINDS.iter().flat_map(|kind| [kind.create, kind.delete]);
    COMPOSED.into_iter().chain(ALONE).chain(of_templates)
}

/// Whether a type is that of a runner in the track's Python.
fn is_python(context: &Context<'_>, kind: &str) -> bool {
    context.python.as_ref().is_some_and(|python| python.quotes(kind))
}

fn why_refused(kind: &str) -> Option<&'static str> {
    let refused = REFUSED.iter().find(|(names, _)| names.split(' ').any(|name| name == kind));
    refused.map(|(_, why)| *why)
}

fn unknown_type(context: &Context<'_>, kind: &str) -> String {
    if let Some(why) = why_refused(kind) {
        return format!("operations of type {kind} are not run: {why}");
    }
    if is_python(context, kind) {
        return format!("operations of type {kind} are run by Python of the track, track.py");
    }
    let near = record::names::did_you_mean(kind, types());
    let all = types().collect::<Vec<_>>().join(", ");
    format!("no operation of type {kind} is run here{near} (types: {all})")
}

fn send(name: &str, content: Content) -> Action {
    Action::Send(Operation { name: name.to_owned(), content })
}

fn search(
    context: &Context<'_>,
    name: &str,
    object: &Object<'_>,
    kind: &str,
) -> Result<Action, Why> {
    let reader = context.reader;
    let own = [
        "index", "body", "cache", "pages", "results-per-page", "response-compression-enabled",
        "type", "with-point-in-time-from",
    ];
    context.only(object, "a search", &own);
    context.no_type(object)?;
    if reader.bool(object, "response-compression-enabled") == Some(true) {
        context.change(format!("Answers to {name} are not compressed."));
    }
    let index = context.index(object, || match context.indices.as_slice() {
        [only] => only.name.clone(),
        _ => "_all".to_owned(),
    });
    let mut body = object.plain("body").unwrap_or_else(|| json!({}));
    let is_paginated = kind == PAGINATED;
    let scrolls = !is_paginated && (object.get("pages").is_some() || kind == "scroll-search");
    let mut own: Vec<(&str, String)> = Vec::new();
    if let Some(cache) = reader.bool(object, "cache") {
        own.push(("request_cache", cache.to_string()));
    }
    let size = reader.whole(object, "results-per-page", 1, 10_000);
    if let (Some(size), Some(body)) = (size, body.as_object_mut()) {
        body.insert("size".to_owned(), json!(size));
    }
    let mut pages = 1;
    if scrolls || is_paginated {
        if object.get("pages").is_none() {
            let said = format!("{kind} needs \"pages\": how many are fetched at most, or \"all\"");
            reader.wrong(object.node, kind, said);
        }
        pages = match object.plain("pages") {
            Some(Value::String(all)) if all == "all" => u32::MAX,
            _ => reader.whole(object, "pages", 1, 1_000_000).unwrap_or(1) as u32,
        };
    }
    if scrolls {
        own.push(("scroll", "10s".to_owned()));
        // As in Rally: in the order in which each shard has them.
        if let Some(body) = body.as_object_mut() {
            body.entry("sort").or_insert_with(|| json!(["_doc"]));
        }
    }
    if context.options.embedded
        && let Err(error) = query::parse_search(body.to_string().as_bytes())
    {
        let why = format!("the embedded engine does not answer it: {error}");
        return Err(("body".to_owned(), why));
    }
    let opened_by = reader.text(object, points_in_time::FROM);
    // A point in time says itself of which indices it is.
    let of = if opened_by.is_some() { String::new() } else { format!("/{index}") };
    let path = format!("{of}/_search{}", context.query(object, &own));
    if is_paginated || opened_by.is_some() {
        if scrolls {
            let why = "a scroll has a moment of its own: make it a paginated-search";
            return Err((points_in_time::FROM.to_owned(), why.to_owned()));
        }
        if pages > 1 && body.get("sort").is_none() {
            let why = "a page goes on from what the last hit before is sorted by: give the body a \"sort\"";
            return Err(("body".to_owned(), why.to_owned()));
        }
        return Ok(points_in_time::search(path, body, opened_by, pages));
    }
    let body = body.to_string();
    let content = match scrolls {
        true => Content::Scroll { path, body, pages },
        false => Content::fixed("POST", path, vec![body], Check::Search),
    };
    Ok(send(name, content))
}

/// Asks what can be done with fields; all of all indices where the operation says nothing, as in Rally.
fn field_caps(context: &Context<'_>, name: &str, object: &Object<'_>) -> Result<Action, Why> {
    let reader = context.reader;
    context.only(object, "field-caps", &["index", "fields", "body", "index_filter"]);
    let index = context.index(object, || "_all".to_owned());
    let named = reader.texts(object, "fields").join(",");
    let fields = if named.is_empty() { "*".to_owned() } else { named };
    let mut body = object.plain("body").unwrap_or_else(|| json!({}));
    if let (Some(filter), Some(body)) = (object.plain("index_filter"), body.as_object_mut()) {
        body.insert("index_filter".to_owned(), filter);
    }
    let is_empty = body.as_object().is_some_and(Map::is_empty);
    if context.options.embedded && !is_empty {
        let word = ["index_filter", "body"].into_iter().find(|word| object.get(word).is_some());
        let why = "the embedded engine has no filter of indices, and reads the names of fields from the path";
        return Err((word.unwrap_or_default().to_owned(), why.to_owned()));
    }
    let path = format!("/{index}/_field_caps{}", context.query(object, &[("fields", fields)]));
    let (method, bodies) =
        if is_empty { ("GET", Vec::new()) } else { ("POST", vec![body.to_string()]) };
    Ok(send(name, Content::fixed(method, path, bodies, Check::Status)))
}

fn raw_request(context: &Context<'_>, name: &str, object: &Object<'_>) -> Action {
    let reader = context.reader;
    context.only(object, "a raw-request", &["method", "path", "body", "ignore"]);
    let method = reader.text(object, "method").unwrap_or_else(|| "GET".to_owned()).to_uppercase();
    let path = reader.text(object, "path").unwrap_or_default();
    if !path.starts_with('/') {
        let said = format!("a path begins with a slash: \"/{path}\"");
        reader.wrong(object.at("path"), "path", said);
    }
    let query = context.query(object, &[]);
    let sign = |query: &str| {
        if path.contains('?') { query.replacen('?', "&", 1) } else { query.to_owned() }
    };
    let check = Check::of(&path);
    let check = ignored(context, object).map_or(check, |statuses| check.or(statuses));
    let bodies = object.get("body").map(body_text).into_iter().collect();
    send(name, Content::fixed(&method, format!("{path}{}", sign(&query)), bodies, check))
}

/// Statuses that are as good as those of success; none where the operation names none.
fn ignored(context: &Context<'_>, object: &Object<'_>) -> Option<[u16; 4]> {
    let texts = context.reader.texts(object, "ignore");
    let mut statuses = [0; 4];
    let mut room = statuses.iter_mut();
    for text in &texts {
        match (text.parse::<u16>(), room.next()) {
            (Ok(status @ 100..600), Some(to)) => *to = status,
            _ => {
                let found = texts.join(", ");
                let said = format!("ignore has statuses of HTTP, four at most, found {found}");
                context.reader.wrong(object.get("ignore")?, text, said);
                return None;
            }
        }
    }
    (!texts.is_empty()).then_some(statuses)
}

/// A body as it is sent: JSON, or lines of it.
fn body_text(node: &Node<'_>) -> String {
    match node.plain() {
        Value::String(text) => text,
        Value::Array(lines) => lines.iter().map(|line| format!("{line}\n")).collect(),
        other => other.to_string(),
    }
}

/// The steps of everything that is no load.
fn steps(context: &Context<'_>, kind: &str, object: &Object<'_>) -> Result<Vec<Step>, Refusal> {
    let reader = context.reader;
    let only = |own: &[&str]| context.only(object, kind, own);
    let needed = |member: &str, what: &str| {
        if object.get(member).is_none() {
            reader.wrong(object.node, kind, format!("{kind} needs \"{member}\": {what}"));
        }
    };
    let one = |found: Request| vec![Step::Request(found)];
    Ok(match kind {
        "create-index" => {
            only(&["settings", "index", "body"]);
            create_indices(context, object)?
        }
        "delete-index" => {
            only(&["index", "only-if-exists"]);
            let strict = reader.bool(object, "only-if-exists") == Some(false);
            let named = reader.texts(object, "index");
            let made = context.indices.iter().filter(|index| index.refused.is_none());
            let all = made.map(|index| index.name.clone());
            let names = if named.is_empty() { all.collect() } else { named };
            let delete = |name: &String| {
                let path = format!("/{name}{}", context.query(object, &[]));
                Step::Request(Request {
                    may_be_missing: !strict,
                    ..Request::new("DELETE", path, None)
                })
            };
            names.iter().map(delete).collect()
        }
        "cluster-health" => {
            only(&["index"]);
            one(cluster_health(context, object))
        }
        "refresh" => {
            only(&["index"]);
            let index = context.index(object, || context.all_indices());
            one(Request::new("POST", format!("/{index}/_refresh"), None))
        }
        "force-merge" => {
            only(&["index", "max-num-segments", "mode", "poll-period"]);
            one(force_merge(context, object))
        }
        "index-stats" => {
            only(&["index", "condition"]);
            one(index_stats(context, object))
        }
        "node-stats" => {
            only(&["metrics"]);
            let metrics = reader.texts(object, "metrics").join(",");
            let below = if metrics.is_empty() { metrics } else { format!("/{metrics}") };
            let path = format!("/_nodes/stats{below}{}", context.query(object, &[]));
            one(Request { is_counted: true, ..Request::new("GET", path, None) })
        }
        "put-settings" => {
            only(&["body"]);
            needed("body", "the settings");
            let body = object.plain("body").unwrap_or_else(|| json!({}));
            one(Request::new("PUT", "/_cluster/settings".to_owned(), Some(body)))
        }
        _ if kind.ends_with("-point-in-time") => {
            one(points_in_time::request(context, kind, object))
        }
        _ => {
            only(&["duration"]);
            needed("duration", "how many seconds it takes");
            vec![Step::Sleep(context.seconds(object, "duration", Duration::ZERO))]
        }
    })
}

/// Asks for the health of the cluster until it is what the operation waits for.
fn cluster_health(context: &Context<'_>, object: &Object<'_>) -> Request {
    let index = context.index(object, String::new);
    let below = if index.is_empty() { index } else { format!("/{index}") };
    let path = format!("/_cluster/health{below}{}", context.query(object, &[]));
    let params = object.plain("request-params").unwrap_or_default();
    let none_relocating =
        matches!(&params["wait_for_no_relocating_shards"], Value::Bool(true) | Value::String(_))
            && params["wait_for_no_relocating_shards"] != "false";
    let status = match &params["wait_for_status"] {
        Value::Null => "red".to_owned(),
        Value::String(text) => text.to_lowercase(),
        other => other.to_string(),
    };
    if !STATUSES.contains(&status.as_str()) {
        let near = record::names::did_you_mean(&status, STATUSES);
        let said = format!("wait_for_status is green, yellow or red, found \"{status}\"{near}");
        context.reader.wrong(object.at("request-params"), "wait_for_status", said);
    }
    let condition = Some(Box::new(Condition::Health { status, none_relocating }));
    Request { condition, ..Request::new("GET", path, None) }
}

/// Merges segments, and waits for the answer or asks for the tasks, by the operation's mode.
fn force_merge(context: &Context<'_>, object: &Object<'_>) -> Request {
    let reader = context.reader;
    let segments = reader.number(object, "max-num-segments", -1.0).filter(|most| *most >= 1.0);
    let own: Vec<(&str, String)> =
        segments.map(|most| ("max_num_segments", (most as u64).to_string())).into_iter().collect();
    let polled = match reader.text(object, "mode").as_deref() {
        Some("polling") => Some(context.seconds(object, "poll-period", POLL_PERIOD)),
        None | Some("blocking") => None,
        Some(other) => {
            let near = record::names::did_you_mean(other, ["blocking", "polling"]);
            let said = format!("mode is blocking or polling, found \"{other}\"{near}");
            reader.wrong(object.at("mode"), other, said);
            None
        }
    };
    let index = context.index(object, || context.all_indices());
    let path = format!("/{index}/_forcemerge{}", context.query(object, &own));
    Request { polled, ..Request::new("POST", path, None) }
}

/// Asks for the numbers of indices, until they are what the operation waits for where it says so.
fn index_stats(context: &Context<'_>, object: &Object<'_>) -> Request {
    let reader = context.reader;
    let index = context.index(object, || "_all".to_owned());
    let condition = object.get("condition").map(|node| {
        let condition = reader.object(node, "condition");
        reader.only(&condition, "a condition", &["path", "expected-value"]);
        let path = reader.text(&condition, "path").unwrap_or_default();
        let value = condition.plain("expected-value").unwrap_or_default();
        Box::new(Condition::Is { path: path.split('.').map(str::to_owned).collect(), value })
    });
    let path = format!("/{index}/_stats{}", context.query(object, &[]));
    let is_counted = condition.is_none();
    Request { condition, is_counted, ..Request::new("GET", path, None) }
}

/// Every index of the track, or those that the operation names, with the operation's settings on top of their own.
fn create_indices(context: &Context<'_>, object: &Object<'_>) -> Result<Vec<Step>, Refusal> {
    let reader = context.reader;
    let named = reader.texts(object, "index");
    let query = context.query(object, &[]);
    if let (Some(mut body), [name]) = (object.plain("body"), named.as_slice()) {
        context.leave_out(&format!("The index {name}"), &mut body);
        context.check_new_index(object.at("body"), &body)?;
        return Ok(vec![Step::Request(Request::new("PUT", format!("/{name}{query}"), Some(body)))]);
    }
    for name in named.iter().filter(|name| context.indices.iter().all(|index| index.name != **name))
    {
        let known = context.indices.iter().map(|index| index.name.as_str());
        let near = record::names::did_you_mean(name, known);
        reader.wrong(object.at("index"), name, format!("the track has no index \"{name}\"{near}"));
    }
    let settings = object.plain("settings").and_then(|settings| settings.as_object().cloned());
    let wanted = |index: &&Index| named.is_empty() || named.contains(&index.name);
    let wanted: Vec<&Index> = context.indices.iter().filter(wanted).collect();
    let is_refused = |index: &&&Index| index.refused.is_some();
    let refused = wanted.iter().filter(is_refused).count();
    if let Some(refusal) = wanted.iter().find_map(|index| index.refused.as_ref())
        && (refused == wanted.len() || !context.options.skip_refused)
    {
        return Err(refusal.clone());
    }
    let create = |index: &&Index| -> Result<Step, Refusal> {
        let mut body = index.body.clone();
        if let (Some(settings), Some(body)) = (&settings, body.as_object_mut()) {
            let own = body.entry("settings").or_insert_with(|| Value::Object(Map::new()));
            if let Some(own) = own.as_object_mut() {
                own.extend(settings.clone());
            }
        }
        context.leave_out(&format!("The index {}", index.name), &mut body);
        if let Some(node) = object.get("settings").filter(|_| body != index.body) {
            context.check_new_index(node, &body)?;
        }
        Ok(Step::Request(Request::new("PUT", format!("/{}{query}", index.name), Some(body))))
    };
    let mut steps = Vec::new();
    for index in &wanted {
        match &index.refused {
            None => steps.push(create(index)?),
            Some(Refusal { why, .. }) => {
                let name = &index.name;
                context.change(format!("{name} is not made, and gets no documents: {why}."));
            }
        }
    }
    Ok(steps)
}
