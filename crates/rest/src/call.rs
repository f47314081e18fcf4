//! A request on its way: what a handler is given.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use engine::Node;
use engine::core::RunningTask;
use engine::state::{ClusterState, Event};
use engine::transport::{Failure, Result};
use record::names::did_you_mean;
use serde_json::{Map, Value, json};

use super::answer::Reply;
use super::date_names::with_dates;
use super::error::{bad_body, bad_request};
use super::names::is_pattern;
use super::parameters::Query;

/// Bytes of a body that is read as a tree, which takes up to a hundred times as much. Documents and bulks are not.
const MAX_TREE_BYTES: usize = 10 << 20;

/// `timeout` where a request does not say: what it waits for, or those that it asks.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// A request on its way: what a handler is given.
pub(super) struct Call {
    pub(super) node: Node,
    /// Parts of the path, by their names in the route.
    pub(super) parts: BTreeMap<String, String>,
    pub(super) query: Query,
    pub(super) body: Bytes,
    /// How long it may wait for the cluster's manager; none where it does not say.
    pub(super) manager_limit: Option<Duration>,
    /// As which it is listed while it is held.
    pub(super) task: Rc<RunningTask>,
}

/// Reads how long a request may wait for the cluster's manager.
pub(super) fn manager_limit(query: &Query) -> Result<Option<Duration>> {
    for name in ["cluster_manager_timeout", "master_timeout"] {
        match query.get(name) {
            None => {}
            Some("-1") => return Ok(None),
            Some(_) => return query.duration(name, Duration::ZERO).map(Some),
        }
    }
    Ok(None)
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

    /// Names of indices with the dates of now, where they are written so.
    pub(super) fn with_dates(&self, names: &str) -> Result<String> {
        with_dates(names, self.node.core().env.epoch_ms() as i64)
    }

    /// Refuses patterns where `action.destructive_requires_name` does.
    pub(super) fn refuse_patterns(&self) -> Result<()> {
        if self.node.core().settings().action_destructive_requires_name()
            && self.index().split(',').any(is_pattern)
        {
            return Err(bad_request("Wildcard expressions or all indices are not allowed"));
        }
        Ok(())
    }

    pub(super) fn state(&self) -> Arc<ClusterState> {
        self.node.core().state()
    }

    /// Has the manager handle events, one after another; whether that was done within the request's limits.
    pub(super) async fn submit(&self, events: Vec<Event>) -> Result<bool> {
        let node = self.node.clone();
        let work = async move {
            for event in events {
                node.core().submit(event).await?;
            }
            Ok(())
        };
        self.within_limits("changes the cluster", work).await
    }

    /// Does what waits for the manager. Whether that was done within the request's `timeout`: what takes longer is done
    /// all the same, and is not acknowledged. It fails where it takes longer than the request may wait for the manager;
    /// and where the manager is lost, as nobody knows then whether it is done.
    pub(super) async fn within_limits(
        &self,
        name: &'static str,
        work: impl Future<Output = Result<()>> + 'static,
    ) -> Result<bool> {
        let timeout = self.query.get("timeout").is_some();
        let timeout =
            timeout.then(|| self.query.duration("timeout", Duration::ZERO)).transpose()?;
        let Some(limit) = timeout.into_iter().chain(self.manager_limit).min() else {
            return work.await.map(|()| true);
        };
        let core = self.node.core();
        match core.env.timeout(limit, core.run_to_end(name, work)).await {
            Ok(done) => done.map(|()| true),
            Err(_) => match self.node.manager_missing() {
                Some(failure) => Err(failure),
                None if timeout == Some(limit) => Ok(false),
                None => Err(late(limit)),
            },
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
        parsed(&self.body).map_err(|error| bad_body(format!("the body is no JSON: {error}")))
    }

    /// The body, which must be there.
    pub(super) fn needed_json(&self) -> Result<Value> {
        if self.body.is_empty() {
            return Err(bad_body("request body is required"));
        }
        self.json()
    }
}

/// JSON. What stands twice in an object is refused, as in the field: one of the two would be passed over.
pub(super) fn parsed(text: &[u8]) -> serde_json::Result<Value> {
    query::json::document(text, None).map(|value| value.plain())
}

/// A body that is an object, and empty where there is none; `form` ends the sentence that says what it is.
pub(super) fn object(body: Value, form: &str) -> Result<Map<String, Value>> {
    match body {
        Value::Null => Ok(Map::new()),
        Value::Object(object) => Ok(object),
        _ => Err(bad_body(format!("the body is a JSON object{form}"))),
    }
}

/// Refuses keys of a part of a body that are not known; `place` says which part it is.
pub(super) fn refuse_unknown_keys(
    object: &Map<String, Value>,
    known: &[&str],
    place: &str,
) -> Result<()> {
    let Some(key) = object.keys().find(|key| !known.contains(&key.as_str())) else {
        return Ok(());
    };
    let near = did_you_mean(key, known.iter().copied());
    Err(bad_body(format!("unknown key [{key}] {place}{near}")))
}

/// A text, or a list of texts. The error is what is no text: a member of the list, or all of it.
pub(super) fn texts(value: &Value) -> Result<Vec<String>, &Value> {
    let all = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
    all.iter().map(|one| one.as_str().map(str::to_owned).ok_or(one)).collect()
}

/// A truth value. As in the field it may be written as a text.
pub(super) fn truth(value: &Value) -> Option<bool> {
    value.as_bool().or_else(|| value.as_str().and_then(|text| text.parse().ok()))
}

/// A small number, which may be written so, too.
pub(super) fn small_number(value: &Value) -> Option<u32> {
    match value {
        Value::String(text) => text.parse().ok(),
        _ => value.as_u64().and_then(|number| u32::try_from(number).ok()),
    }
}

fn late(limit: Duration) -> Failure {
    let reason = format!(
        "failed to process cluster event within {limit:?}, for which the request waits for the manager; it may be done \
         later"
    );
    Failure::new(503, "process_cluster_event_timeout_exception", reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_twice_is_refused() {
        let twice = parsed(br#"{"a":{"b":1,"b":2}}"#).unwrap_err();
        assert!(twice.to_string().contains("duplicate field 'b'"), "{twice}");
        let text = br#"{"b":[1,-2.5,null,true],"a":{"b":"\u00e9"},"c":12345678901234567890}"#;
        assert_eq!(parsed(text).unwrap(), serde_json::from_slice::<Value>(text).unwrap());
    }
}
