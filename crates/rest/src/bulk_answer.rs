//! The answer of `_bulk`, written straight into bytes: there may be thousands of items.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;

use serde_json::json;
use store::WriteOutcome;

use super::bulk_lines::Op;
use super::document::{copies_written, result_of};
use super::error::cause_json;
use engine::state::ClusterState;
use engine::transport::{Failure, Result, Written};

/// One action and what came of it.
pub(super) struct Item {
    pub(super) op: Op,
    pub(super) index: Arc<str>,
    pub(super) id: Arc<str>,
    pub(super) routing: Option<Arc<str>>,
    /// None while it is under way.
    pub(super) result: Option<Result<Written>>,
}

/// About the bytes of an item that went well.
const ITEM_BYTES: usize = 200;

/// `{"took","errors","items"}`; without items where nobody wants them.
pub(super) fn render(
    state: &ClusterState,
    took_ms: u64,
    items: &[Item],
    with_items: bool,
    forced_refresh: bool,
) -> Vec<u8> {
    let errors = items.iter().any(|item| !matches!(item.result, Some(Ok(_))));
    let capacity = 64 + if with_items { items.len() * ITEM_BYTES } else { 0 };
    let mut out = Vec::with_capacity(capacity);
    put(&mut out, format_args!("{{\"took\":{took_ms},\"errors\":{errors}"));
    if with_items {
        let mut shards = Copies { state, by_index: BTreeMap::new() };
        out.extend_from_slice(b",\"items\":[");
        for (place, item) in items.iter().enumerate() {
            if place > 0 {
                out.push(b',');
            }
            write_item(&mut out, item, &mut shards, forced_refresh);
        }
        out.push(b']');
    }
    out.push(b'}');
    out
}

fn put(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("writing to memory does not fail");
}

fn write_item(out: &mut Vec<u8>, item: &Item, shards: &mut Copies<'_>, forced_refresh: bool) {
    put(out, format_args!("{{\"{}\":{{\"_index\":", item.op.name()));
    write_text(out, &item.index);
    out.extend_from_slice(b",\"_id\":");
    write_text(out, &item.id);
    match &item.result {
        Some(Ok(written)) => {
            let (result, status) = result_of(written.outcome);
            let (total, successful) = match written.outcome {
                WriteOutcome::Noop => (0, 0),
                _ => shards.of(&item.index, item.routing.as_ref().unwrap_or(&item.id)),
            };
            let Written { version, seq_no, primary_term, .. } = written;
            put(
                out,
                format_args!(
                    ",\"_version\":{version},\"result\":\"{result}\",\"_shards\":{{\"total\":{total},\
                     \"successful\":{successful},\"failed\":0}},\"_seq_no\":{seq_no},\
                     \"_primary_term\":{primary_term},\"status\":{status}"
                ),
            );
            if forced_refresh {
                out.extend_from_slice(b",\"forced_refresh\":true");
            }
        }
        Some(Err(failure)) => write_failure(out, item, failure),
        None => write_failure(out, item, &engine::transport::unexpected()),
    }
    out.extend_from_slice(b"}}");
}

fn write_failure(out: &mut Vec<u8>, item: &Item, failure: &Failure) {
    let mut error = cause_json(failure);
    error["index"] = json!(*item.index);
    put(out, format_args!(",\"status\":{},\"error\":{error}", failure.status));
}

/// A JSON string. Most names and ids need no escapes.
fn write_text(out: &mut Vec<u8>, text: &str) {
    let plain = |byte: &u8| (0x20..0x7f).contains(byte) && *byte != b'"' && *byte != b'\\';
    if text.as_bytes().iter().all(plain) {
        out.push(b'"');
        out.extend_from_slice(text.as_bytes());
        out.push(b'"');
    } else {
        serde_json::to_writer(out, text).expect("writing to memory does not fail");
    }
}

/// Copies of each shard, and those that have a write, looked up once for an index.
struct Copies<'a> {
    state: &'a ClusterState,
    by_index: BTreeMap<Arc<str>, Vec<(usize, usize)>>,
}

impl Copies<'_> {
    /// Those of the shard that an id or a routing leads to.
    fn of(&mut self, index: &Arc<str>, by: &str) -> (usize, usize) {
        if !self.by_index.contains_key(index) {
            let shards = self.state.indices.get(&**index).map_or(1, |meta| meta.shards);
            let copies = (0..shards).map(|n| copies_written(self.state, index, n)).collect();
            self.by_index.insert(index.clone(), copies);
        }
        let copies = &self.by_index[index];
        match copies.as_slice() {
            [first, rest @ ..] if rest.iter().all(|other| other == first) => *first,
            copies => copies[self.state.indices[&**index].shard_of(by) as usize],
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn item(id: &str, result: Result<Written>) -> Item {
        let result = Some(result);
        Item { op: Op::Index, index: "a".into(), id: id.into(), routing: None, result }
    }

    fn written(outcome: WriteOutcome) -> Result<Written> {
        Ok(Written { seq_no: 7, version: 2, primary_term: 3, outcome })
    }

    fn rendered(items: &[Item], with_items: bool) -> Value {
        let state = ClusterState::new("c", [], || 1);
        serde_json::from_slice(&render(&state, 5, items, with_items, false)).unwrap()
    }

    #[test]
    fn writes_items() {
        let failure = Failure::new(409, "version_conflict_engine_exception", "a \"b\"");
        let items = [
            item("x", written(WriteOutcome::Created)),
            item("ä\"\\\n", written(WriteOutcome::NotFound)),
            item("y", Err(failure)),
        ];
        assert_eq!(
            rendered(&items, true),
            json!({"took": 5, "errors": true, "items": [
                {"index": {
                    "_index": "a", "_id": "x", "_version": 2, "result": "created",
                    "_shards": {"total": 1, "successful": 1, "failed": 0},
                    "_seq_no": 7, "_primary_term": 3, "status": 201,
                }},
                {"index": {
                    "_index": "a", "_id": "ä\"\\\n", "_version": 2, "result": "not_found",
                    "_shards": {"total": 1, "successful": 1, "failed": 0},
                    "_seq_no": 7, "_primary_term": 3, "status": 404,
                }},
                {"index": {
                    "_index": "a", "_id": "y", "status": 409,
                    "error": {
                        "type": "version_conflict_engine_exception", "reason": "a \"b\"", "index": "a",
                    },
                }},
            ]})
        );
    }

    #[test]
    fn leaves_items_out() {
        let items = [item("x", written(WriteOutcome::Updated))];
        assert_eq!(rendered(&items, false), json!({"took": 5, "errors": false}));
    }
}
