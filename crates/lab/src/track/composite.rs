//! Composites: requests one after another, and streams of them that go on at the same time.

use std::time::Duration;

use query::json::Node;
use serde_json::Value;

use super::context::{Context, Why};
use super::points_in_time;
use super::reader::{Object, Refusal};
use super::{Action, Request, Step};
use crate::load::{Content, Operation};

/// What an operation of a type does that stands in a composite, and how long an answer may take; refused where it is
/// of a type that composites do not send.
type Read<'r> = &'r dyn Fn(&str, &Object<'_>) -> Result<(Action, Duration), Refusal>;

/// Steps one after another; streams among them go on at the same time.
pub(super) fn steps(
    context: &Context<'_>,
    object: &Object<'_>,
    read: Read<'_>,
) -> Result<Vec<Step>, Refusal> {
    let reader = context.reader;
    context.only(object, "a composite", &["requests", "max-connections"]);
    let Some(requests) = object.get("requests") else {
        let said = "a composite has requests: \"requests\": [{ \"stream\": [...] }]";
        reader.wrong(object.node, "", said);
        return Ok(Vec::new());
    };
    let mut steps = sequence(context, requests, read, 0)?;
    if let Some(name) = points_in_time::unopened(&steps) {
        let why = format!("no request before opens a point in time that is called \"{name}\"");
        return Err(reader.refusal(requests, name, why));
    }
    let mut all: Vec<&mut Request> = steps.iter_mut().flat_map(Step::requests_mut).collect();
    // What others of them write would be missing after an error that is only counted.
    if !all.iter().all(|request| request.is_counted || request.method == "GET") {
        all.iter_mut().for_each(|request| request.is_counted = false);
    }
    Ok(steps)
}

/// Streams that stand next to each other go on at the same time.
fn sequence(
    context: &Context<'_>,
    node: &Node<'_>,
    read: Read<'_>,
    depth: u32,
) -> Result<Vec<Step>, Refusal> {
    let reader = context.reader;
    let mut steps = Vec::new();
    for item in reader.list(node, "requests") {
        let object = reader.object(item, "a request of a composite");
        if let Some(stream) = object.get("stream") {
            if depth > 16 {
                reader.wrong(item, "stream", "streams lie too deep in streams");
                continue;
            }
            let stream = sequence(context, stream, read, depth + 1)?;
            match steps.last_mut() {
                Some(Step::Streams(streams)) => streams.push(stream),
                _ => steps.push(Step::Streams(vec![stream])),
            }
            continue;
        }
        let kind = reader.text(&object, "operation-type").unwrap_or_default();
        let (action, timeout) = read(&kind, &object)?;
        let mut own = match action {
            Action::Do(own) => own,
            Action::Send(operation) => {
                let refuse = |(word, why): Why| reader.refusal(object.at(&word), &word, why);
                vec![Step::Request(as_step(operation).map_err(refuse)?)]
            }
        };
        if object.get("request-timeout").is_some() {
            let requests = own.iter_mut().flat_map(Step::requests_mut);
            requests.for_each(|request| request.timeout = Some(timeout));
        }
        steps.extend(own);
    }
    Ok(steps)
}

/// A request of a load as one of a composite.
fn as_step(operation: Operation) -> Result<Request, Why> {
    const METHODS: [&str; 5] = ["GET", "POST", "PUT", "DELETE", "HEAD"];
    let is_counted = operation.is_read_only();
    let Content::Pattern { method, path, bodies, check, .. } = operation.content else {
        let why =
            "a composite sends no scrolls here: make it a paginated-search, or search beside it";
        return Err(("pages".to_owned(), why.to_owned()));
    };
    let Some(known) = METHODS.into_iter().find(|known| *known == method) else {
        let why = format!("a composite sends no {method} here; it sends {}", METHODS.join(", "));
        return Err(("method".to_owned(), why));
    };
    // Lines of JSON are a text, and so is a single one.
    let body = bodies.into_iter().next().map(|body| match serde_json::from_str(&body) {
        Ok(json) if !body.ends_with('\n') => json,
        _ => Value::String(body),
    });
    Ok(Request { check, is_counted, ..Request::new(known, path, body) })
}
