//! `_ccr`: followers.

use std::time::Duration;

use record::names::did_you_mean;
use serde_json::{Value, json};
use store::ShardStats;

use super::active::Active;
use super::answer::Reply;
use super::error::{bad_body, not_supported};
use super::names::matches_any;
use super::router::Call;
use super::spread::{on_shards, primaries};
use crate::following;
use crate::settings::{Scope, Update, parse_update};
use crate::state::{FollowOrigin, IndexMeta};
use crate::transport::{Failure, ShardAction, ShardAnswer};

const PATIENCE: Duration = Duration::from_secs(30);

/// Keys of the body.
const KEYS: [&str; 3] = ["leader_index", "remote_cluster", "settings"];

/// Parameters of the field that say how a follower keeps up.
const KEEPING_UP: [&str; 10] = [
    "max_outstanding_read_requests",
    "max_outstanding_write_requests",
    "max_read_request_operation_count",
    "max_read_request_size",
    "max_retry_delay",
    "max_write_buffer_count",
    "max_write_buffer_size",
    "max_write_request_operation_count",
    "max_write_request_size",
    "read_poll_timeout",
];

/// The body of a follow.
#[derive(Debug, PartialEq)]
struct Body {
    remote_cluster: String,
    leader_index: String,
    settings: Update,
}

impl Body {
    fn read(json: &Value) -> Result<Body, Failure> {
        let object = json.as_object().ok_or_else(|| {
            bad_body("the body is a JSON object: {\"remote_cluster\", \"leader_index\"}")
        })?;
        for key in object.keys().map(String::as_str) {
            if KEEPING_UP.contains(&key) {
                let instead =
                    "it does a follower's first recovery and does not keep up after it yet";
                return Err(not_supported(&format!("[{key}]"), instead));
            }
            if !KEYS.contains(&key) {
                let near = did_you_mean(key, KEYS.into_iter().chain(KEEPING_UP));
                return Err(bad_body(format!("unknown key [{key}] for follow{near}")));
            }
        }
        let text = |key: &str| {
            let value = object.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
            value.map(str::to_owned).ok_or_else(|| {
                let reason = format!("Validation Failed: 1: {key} is missing;");
                Failure::new(400, "action_request_validation_exception", reason)
            })
        };
        let settings = object.get("settings").map(|settings| parse_update(Scope::Index, settings));
        Ok(Body {
            remote_cluster: text("remote_cluster")?,
            leader_index: text("leader_index")?,
            settings: settings.transpose()?.unwrap_or_default(),
        })
    }
}

/// `PUT /{index}/_ccr/follow`.
pub(super) async fn follow(call: Call) -> Result<Reply, Failure> {
    let active = Active::read(&call.query, 0)?;
    let limit = call.query.duration("timeout", PATIENCE)?;
    let Body { remote_cluster, leader_index, settings } = Body::read(&call.needed_json()?)?;
    let index = call.index();
    following::follow(&call.node, index, &remote_cluster, &leader_index, settings).await?;
    // Without waiting the field says no, whatever there is.
    let acked = active != Active::Count(0) && active.wait(&call.node, index, limit).await;
    Ok(json!({
        "follow_index_created": true,
        "follow_index_shards_acked": acked,
        "index_following_started": false,
    })
    .into())
}

/// `GET /_ccr/stats`, `GET /{index}/_ccr/stats`. A shard is shown once its primary is started.
pub(super) async fn stats(call: Call) -> Result<Reply, Failure> {
    let state = call.state();
    let wanted = call.indices().unwrap_or("_all");
    let followers: Vec<(String, FollowOrigin)> = state
        .indices
        .iter()
        .filter(|(name, _)| matches_any(wanted, name))
        .filter_map(|(name, meta)| Some((name.clone(), meta.leader.clone()?)))
        .collect();
    if followers.is_empty() && call.indices().is_some() {
        let reason = format!("No shard follow tasks for follower indices [{wanted}]");
        return Err(Failure::new(404, "resource_not_found_exception", reason));
    }
    let mut shown = Vec::new();
    for (index, leader) in &followers {
        let Some(meta) = state.indices.get(index) else { continue };
        let mut places = primaries(&state, std::slice::from_ref(index));
        places.retain(|place| place.node.is_some());
        let mut shards = Vec::new();
        for (place, answer) in on_shards(&call.node, places, &ShardAction::Stats, PATIENCE).await {
            if let Ok(ShardAnswer::Stats(stats)) = answer {
                shards.push(shard_json(index, leader, meta, place.shard, &stats));
            }
        }
        shown.push(json!({ "index": index, "total_global_checkpoint_lag": 0, "shards": shards }));
    }
    if call.indices().is_some() {
        return Ok(json!({ "indices": shown }).into());
    }
    Ok(json!({
        "auto_follow_stats": {
            "number_of_failed_follow_indices": 0,
            "number_of_failed_remote_cluster_state_requests": 0,
            "number_of_successful_follow_indices": 0,
            "recent_auto_follow_errors": [],
            "auto_followed_clusters": [],
        },
        "follow_stats": { "indices": shown },
    })
    .into())
}

/// What is known of a shard. A follower stands where its recovery left it, so its leader's numbers are those
/// of that moment; what only keeping up would count is zero.
fn shard_json(
    index: &str,
    leader: &FollowOrigin,
    meta: &IndexMeta,
    shard: u32,
    stats: &ShardStats,
) -> Value {
    // The field's number for "no operation yet".
    let number = |seq_no: Option<u64>| seq_no.map_or(-1, |seq_no| seq_no as i64);
    let (checkpoint, max) = (number(stats.global_checkpoint), number(stats.max_seq_no));
    let mut object = json!({
        "remote_cluster": leader.remote_cluster,
        "leader_index": leader.leader_index,
        "follower_index": index,
        "shard_id": shard,
        "leader_global_checkpoint": checkpoint,
        "leader_max_seq_no": max,
        "follower_global_checkpoint": checkpoint,
        "follower_max_seq_no": max,
        "last_requested_seq_no": max,
        "follower_mapping_version": meta.mapping_version,
        "follower_settings_version": meta.settings_version,
        "follower_aliases_version": 1,
        "read_exceptions": [],
        "time_since_last_read_millis": -1,
    });
    for name in [
        "bytes_read",
        "failed_read_requests",
        "failed_write_requests",
        "operations_read",
        "operations_written",
        "outstanding_read_requests",
        "outstanding_write_requests",
        "successful_read_requests",
        "successful_write_requests",
        "total_read_remote_exec_time_millis",
        "total_read_time_millis",
        "total_write_time_millis",
        "write_buffer_operation_count",
        "write_buffer_size_in_bytes",
    ] {
        object[name] = json!(0);
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_whom_to_follow() {
        let body = Body::read(&json!({
            "remote_cluster": "eu", "leader_index": "l", "settings": {"number_of_replicas": 0},
        }));
        let settings =
            Update::from([("index.number_of_replicas".to_owned(), Some("0".to_owned()))]);
        let (remote_cluster, leader_index) = ("eu".to_owned(), "l".to_owned());
        assert_eq!(body.unwrap(), Body { remote_cluster, leader_index, settings });
    }

    #[test]
    fn refuses_what_would_have_no_effect() {
        let said = |json: Value| Body::read(&json).unwrap_err().reason;
        assert!(said(json!({"max_read_request_size": "1mb"})).contains("does not keep up"));
        assert_eq!(
            said(json!({"leader_indx": "l"})),
            "unknown key [leader_indx] for follow; did you mean \"leader_index\"?"
        );
        assert_eq!(
            said(json!({"leader_index": "l"})),
            "Validation Failed: 1: remote_cluster is missing;"
        );
        assert!(said(Value::Null).contains("JSON object"));
    }
}
