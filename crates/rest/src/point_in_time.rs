//! Points in time: `_search/point_in_time` as OpenSearch has it, and `_pit` as Elasticsearch has it.

use serde_json::{Value, json};

use super::answer::Reply;
use super::call::{Call, object, texts};
use super::error::{bad_body, invalid};
use super::keep_alive::point_in_time_keep_alive;
use super::names::{filter_texts, indices};
use super::search::{failed, preference, shards_json};
use engine::search::{
    Opened, PointInTime, close_point_in_time, open_point_in_time, points_in_time,
};
use engine::transport::Result;

/// Parameters of `POST /{index}/_search/point_in_time`.
pub(super) const CREATE: &[&str] =
    &["allow_partial_pit_creation", "keep_alive", "preference", "routing"];
/// Parameters of `POST /{index}/_pit`.
pub(super) const OPEN: &[&str] = &["keep_alive", "preference", "routing"];

async fn opened(call: &Call, allow_partial: bool) -> Result<Result<Opened, Reply>> {
    let text = call.query.get("keep_alive");
    let text = text.ok_or_else(|| invalid("keep alive not specified"))?;
    let keep_alive = point_in_time_keep_alive(call, text)?;
    let state = call.state();
    let names = indices(&state, call.indices(), &call.query)?;
    let filters = filter_texts(&state, call.indices(), &names);
    let searched = (names, filters, preference(&call.query)?);
    let opening = open_point_in_time(call.node.search(), searched, keep_alive, allow_partial);
    Ok(opening.await.map_err(|failures| failed(&failures)))
}

/// `POST /{index}/_search/point_in_time`.
pub(super) async fn create(call: Call) -> Result<Reply> {
    let allow_partial = call.query.flag("allow_partial_pit_creation", true)?;
    Ok(match opened(&call, allow_partial).await? {
        Err(failed) => failed,
        Ok(Opened { id, created_ms, shards, failures }) => json!({
            "pit_id": id,
            "_shards": shards_json(shards, &failures),
            "creation_time": created_ms,
        })
        .into(),
    })
}

/// `POST /{index}/_pit`.
pub(super) async fn open(call: Call) -> Result<Reply> {
    Ok(match opened(&call, false).await? {
        Err(failed) => failed,
        Ok(opened) => json!({ "id": opened.id }).into(),
    })
}

/// The one member of the body of a request that ends points in time.
fn named(call: &Call, name: &str) -> Result<Value> {
    let mut body = object(call.needed_json()?, &format!(": {{\"{name}\"}}"))?;
    let value = body.remove(name);
    if let Some(key) = body.keys().next() {
        return Err(bad_body(format!(
            "unknown parameter [{key}] in request body; there is {name}"
        )));
    }
    value.ok_or_else(|| invalid(&format!("{name} is missing")))
}

/// `DELETE /_pit`.
pub(super) async fn close(call: Call) -> Result<Reply> {
    let id = match named(&call, "id")? {
        Value::String(id) => id,
        other => return Err(bad_body(format!("[id] is a text, not {other}"))),
    };
    let point = PointInTime::parse(&id, None)?;
    let freed = close_point_in_time(call.node.search(), &point).await;
    let status = if freed > 0 { 200 } else { 404 };
    Ok(Reply::with(status, json!({ "succeeded": true, "num_freed": freed })))
}

/// `DELETE /_search/point_in_time`: these end. One that has ended already is no error, as in the field.
pub(super) async fn delete(call: Call) -> Result<Reply> {
    let given = named(&call, "pit_id")?;
    let ids = texts(&given).map_err(|odd| match given.is_array() {
        true => bad_body(format!("pit_id [{odd}] is no text")),
        false => bad_body(format!("[pit_id] is a list of texts, not {odd}")),
    })?;
    if ids.is_empty() {
        return Err(invalid("no pit ids specified"));
    }
    ended(&call, ids).await
}

/// `DELETE /_search/point_in_time/_all`.
pub(super) async fn delete_all(call: Call) -> Result<Reply> {
    let open = points_in_time(call.node.search()).await;
    ended(&call, open.into_iter().map(|open| open.id).collect()).await
}

async fn ended(call: &Call, ids: Vec<String>) -> Result<Reply> {
    let points: Vec<PointInTime> =
        ids.iter().map(|id| PointInTime::parse(id, None)).collect::<Result<_, _>>()?;
    for point in &points {
        close_point_in_time(call.node.search(), point).await;
    }
    let ended = ids.iter().map(|id| json!({ "successful": true, "pit_id": id }));
    Ok(json!({ "pits": ended.collect::<Vec<_>>() }).into())
}

/// `GET /_search/point_in_time/_all`.
pub(super) async fn list(call: Call) -> Result<Reply> {
    let open = points_in_time(call.node.search()).await;
    let shown = open.iter().map(|open| {
        json!({
            "pit_id": open.id,
            "creation_time": open.created_ms,
            "keep_alive": open.keep_alive.as_millis() as u64,
        })
    });
    Ok(json!({ "pits": shown.collect::<Vec<_>>() }).into())
}
