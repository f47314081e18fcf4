//! `_ccr/auto_follow`: which indices of remote clusters are followed once they are made.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::answer::Reply;
use super::call::{self, Call};
use super::ccr::{read_follower, text};
use super::error::{bad_body, invalid};
use super::names::{is_pattern, matches_any};
use engine::remote;
use engine::state::{AutoFollow, AutoFollowChange, Event};
use engine::transport::{Failure, Result};

const KEYS: [&str; 5] = [
    "follow_index_pattern",
    "leader_index_exclusion_patterns",
    "leader_index_patterns",
    "remote_cluster",
    "settings",
];

fn read(json: Value) -> Result<AutoFollow> {
    let (object, follower) = read_follower(json, "auto_follow", "leader_index_patterns", &KEYS)?;
    let leader_index_patterns = texts(&object, "leader_index_patterns")?;
    if leader_index_patterns.is_empty() {
        return Err(invalid("leader_index_patterns is missing"));
    }
    let follow_index_pattern = object.contains_key("follow_index_pattern");
    Ok(AutoFollow {
        remote_cluster: text(&object, "remote_cluster")?,
        leader_index_patterns,
        leader_index_exclusion_patterns: texts(&object, "leader_index_exclusion_patterns")?,
        follow_index_pattern: follow_index_pattern
            .then(|| text(&object, "follow_index_pattern"))
            .transpose()?,
        settings: follower.settings,
        parameters: follower.parameters,
        active: true,
        settled: Default::default(),
    })
}

fn texts(object: &Map<String, Value>, key: &str) -> Result<Vec<String>> {
    let Some(list) = object.get(key).filter(|list| !list.is_null()) else { return Ok(Vec::new()) };
    let all = call::texts(list).ok().filter(|_| list.is_array());
    all.ok_or_else(|| bad_body(format!("[{key}] is a list of texts")))
}

/// `PUT /_ccr/auto_follow/{name}`. Indices that are there already are not followed, as in the field. Those that the
/// pattern of that name was to follow before still are: it may not have come to them yet, or have failed at them.
pub(super) async fn put(call: Call) -> Result<Reply> {
    let mut pattern = read(call.needed_json()?)?;
    let listing =
        remote::list(call.node.remotes(), &pattern.remote_cluster, None, Duration::ZERO).await?;
    let there = listing.map(|listing| listing.uuids).unwrap_or_default();
    let state = call.state();
    let before = state.auto_follow.get(call.part("name").unwrap_or_default());
    let before = before.filter(|before| before.remote_cluster == pattern.remote_cluster);
    let is_old =
        |index: &str| pattern.fits(index) && !before.is_some_and(|before| before.fits(index));
    let old = there.into_iter().filter(|(index, _)| is_old(index)).map(|(_, uuid)| uuid);
    pattern.settled = old.collect();
    change(call, AutoFollowChange::Put(Box::new(pattern))).await
}

/// Changes a pattern: also `DELETE /_ccr/auto_follow/{name}`, and `POST` to `pause` and `resume` below it.
pub(super) async fn change(call: Call, change: AutoFollowChange) -> Result<Reply> {
    let name = call.part("name").unwrap_or_default().to_owned();
    call.acknowledged(vec![Event::ChangeAutoFollow { name, change }]).await
}

/// `GET /_ccr/auto_follow`, `GET /_ccr/auto_follow/{name}`.
pub(super) async fn get(call: Call) -> Result<Reply> {
    let state = call.state();
    let wanted = call.part("name").unwrap_or("_all");
    let patterns: Vec<Value> = state
        .auto_follow
        .iter()
        .filter(|(name, _)| matches_any(wanted, name))
        .map(|(name, pattern)| json!({ "name": name, "pattern": shown(pattern) }))
        .collect();
    if patterns.is_empty() && !is_pattern(wanted) {
        let reason = format!("auto-follow pattern [{wanted}] is missing");
        return Err(Failure::new(404, "resource_not_found_exception", reason));
    }
    Ok(json!({ "patterns": patterns }).into())
}

fn shown(pattern: &AutoFollow) -> Value {
    let mut object = pattern.parameters.to_json();
    object["active"] = json!(pattern.active);
    object["remote_cluster"] = json!(pattern.remote_cluster);
    object["leader_index_patterns"] = json!(pattern.leader_index_patterns);
    object["leader_index_exclusion_patterns"] = json!(pattern.leader_index_exclusion_patterns);
    if let Some(name) = &pattern.follow_index_pattern {
        object["follow_index_pattern"] = json!(name);
    }
    if !pattern.settings.is_empty() {
        object["settings"] = json!(pattern.settings);
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_pattern() {
        let pattern = read(json!({
            "remote_cluster": "eu", "leader_index_patterns": ["logs-*"],
            "leader_index_exclusion_patterns": ["*-test"],
            "follow_index_pattern": "{{leader_index}}-copy", "max_read_request_size": "1mb",
        }))
        .unwrap();
        assert!(pattern.fits("logs-1") && !pattern.fits("logs-test") && pattern.active);
        let shown = shown(&pattern);
        assert_eq!(shown["follow_index_pattern"], "{{leader_index}}-copy");
        assert_eq!(shown["max_read_request_size"], "1mb");
    }

    #[test]
    fn says_what_is_wrong_with_it() {
        let said = |json: Value| read(json).unwrap_err().reason;
        let missing = said(json!({"remote_cluster": "eu"}));
        assert!(missing.contains("leader_index_patterns is missing"), "{missing}");
        let missing = said(json!({"leader_index_patterns": ["a"]}));
        assert!(missing.contains("remote_cluster is missing"), "{missing}");
        let near = said(json!({"remote_clster": "eu", "leader_index_patterns": ["a"]}));
        assert!(near.contains("did you mean \"remote_cluster\""), "{near}");
        assert!(said(json!({"leader_index_patterns": "a"})).contains("list of texts"));
        assert!(said(json!([])).contains("JSON object"));
    }
}
