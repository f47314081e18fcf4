//! A request on its way: what a handler is given.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use engine::Node;
use engine::state::{ClusterState, Event};
use engine::transport::Result;
use serde_json::{Map, Value, json};

use super::answer::Reply;
use super::error::bad_body;
use super::parameters::Query;

/// Bytes of a body that is read as a tree, which takes up to a hundred times as much. Documents and bulks are not.
const MAX_TREE_BYTES: usize = 10 << 20;

/// A request on its way: what a handler is given.
pub(super) struct Call {
    pub(super) node: Node,
    /// Parts of the path, by their names in the route.
    pub(super) parts: BTreeMap<String, String>,
    pub(super) query: Query,
    pub(super) body: Bytes,
}

impl Call {
    /// A part of the path; none where the route that matched has none of this name.
    pub(super) fn part(&self, name: &str) -> Option<&str> {
        self.parts.get(name).map(String::as_str)
    }

    /// The expression for indices; none where the path has none.
    pub(super) fn indices(&self) -> Option<&str> {
        self.part("index")
    }

    /// The one index that a route with `{index}` is about.
    pub(super) fn index(&self) -> &str {
        self.indices().unwrap_or_default()
    }

    pub(super) fn state(&self) -> Arc<ClusterState> {
        self.node.core().state()
    }

    /// Has the manager handle events, one after another. Whether that was done within the request's `timeout`: what
    /// takes longer is done all the same, and is not acknowledged. Where the manager is lost, nobody knows whether it
    /// is, and the request fails as it does without a `timeout`.
    pub(super) async fn submit(&self, events: Vec<Event>) -> Result<bool> {
        if self.query.get("timeout").is_none() {
            return submit_all(&self.node, events).await.map(|()| true);
        }
        let limit = self.query.duration("timeout", Duration::ZERO)?;
        let (core, node) = (self.node.core(), self.node.clone());
        let work = async move { submit_all(&node, events).await };
        match core.env.timeout(limit, core.run_to_end("changes the cluster", work)).await {
            Ok(done) => done.map(|()| true),
            Err(_) => self.node.manager_missing().map_or(Ok(false), Err),
        }
    }

    /// As [`Call::submit`]; the answer says whether it was done.
    pub(super) async fn acknowledged(&self, events: Vec<Event>) -> Result<Reply> {
        let done = self.submit(events).await?;
        Ok(json!({ "acknowledged": done }).into())
    }

    /// The body as JSON; null for none.
    pub(super) fn json(&self) -> Result<Value> {
        if self.body.is_empty() {
            return Ok(Value::Null);
        }
        let bytes = self.body.len();
        if bytes > MAX_TREE_BYTES {
            return Err(bad_body(format!(
                "the body has [{bytes}] bytes, more than [{MAX_TREE_BYTES}]; send it in parts"
            )));
        }
        serde_json::from_slice(&self.body)
            .map_err(|error| bad_body(format!("the body is no JSON: {error}")))
    }

    /// The body, which must be there.
    pub(super) fn needed_json(&self) -> Result<Value> {
        if self.body.is_empty() {
            return Err(bad_body("request body is required"));
        }
        self.json()
    }
}

/// A body that is an object, and empty where there is none; `form` ends the sentence that says what it is.
pub(super) fn object(body: Value, form: &str) -> Result<Map<String, Value>> {
    match body {
        Value::Null => Ok(Map::new()),
        Value::Object(object) => Ok(object),
        _ => Err(bad_body(format!("the body is a JSON object{form}"))),
    }
}

/// A text, or a list of texts. The error is what is no text: a member of the list, or all of it.
pub(super) fn texts(value: &Value) -> Result<Vec<String>, &Value> {
    let all = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
    all.iter().map(|one| one.as_str().map(str::to_owned).ok_or(one)).collect()
}

async fn submit_all(node: &Node, events: Vec<Event>) -> Result<()> {
    for event in events {
        node.core().submit(event).await?;
    }
    Ok(())
}
