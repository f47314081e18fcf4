//! `_recovery`: how copies came, or come, to their nodes.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::answer::Reply;
use super::call::Call;
use super::identity::host;
use super::names::indices;
use super::spread::ask_nodes;
use engine::state::ClusterState;
use engine::transport::{RecoveryState, Request, Response, Result};

const PATIENCE: Duration = Duration::from_secs(10);

/// `GET /{index}/_recovery`. Nodes that do not answer are left out, as in the field.
pub(super) async fn recovery(call: Call) -> Result<Reply> {
    let active_only = call.query.flag("active_only", false)?;
    let detailed = call.query.flag("detailed", false)?;
    let names = indices(&call.state(), call.indices(), &call.query)?;
    let mut answer: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for (index, shard) in rows(&call, &names, active_only, detailed).await {
        answer.entry(index).or_default().push(shard);
    }
    // `json!` would copy each of them.
    let shards_of = |shards| Value::Object(Map::from_iter([("shards".to_owned(), shards)]));
    let shown = |(index, shards): (String, Vec<Value>)| (index, shards_of(Value::Array(shards)));
    Ok(Value::Object(answer.into_iter().map(shown).collect()).into())
}

/// Every recovery of the indices, in the field's shape, with the name of its index; by index and shard, the
/// primary first.
pub(super) async fn rows(
    call: &Call,
    names: &[String],
    active_only: bool,
    detailed: bool,
) -> Vec<(String, Value)> {
    let state = call.state();
    let nodes = state.present.iter().cloned().collect();
    let mut rows = Vec::new();
    let asked = Request::Recoveries { active_only, detailed };
    for (_, answer) in ask_nodes(&call.node, nodes, &asked, PATIENCE).await {
        let Ok(Response::Recoveries(recoveries)) = answer else { continue };
        rows.extend(recoveries.into_iter().filter(|one| names.contains(&one.index)));
    }
    rows.sort_by(|a, b| {
        let order = |one: &RecoveryState| (one.shard, !one.primary);
        a.index.cmp(&b.index).then_with(|| order(a).cmp(&order(b)))
    });
    rows.into_iter().map(|one| (one.index.clone(), shape(&state, one, detailed))).collect()
}

/// A recovery in the field's shape; under `narrows`, what the field does not have.
fn shape(state: &ClusterState, one: RecoveryState, detailed: bool) -> Value {
    let files = &one.files;
    let new_bytes = files.bytes.saturating_sub(files.reused_bytes);
    let mut shard = json!({
        "id": one.shard,
        "type": one.kind,
        "stage": one.stage,
        "primary": one.primary,
        "start_time_in_millis": one.began_epoch_ms,
        "total_time_in_millis": one.total_ms,
        "source": end(one.source, one.source_address),
        "target": end(Some(one.target), Some(one.target_address)),
        "index": {
            "size": {
                "total_in_bytes": files.bytes,
                "reused_in_bytes": files.reused_bytes,
                "recovered_in_bytes": files.recovered_bytes,
                "percent": percent(files.recovered_bytes, new_bytes),
            },
            "files": {
                "total": files.count,
                "reused": files.reused,
                "recovered": files.recovered,
                "percent": percent(files.recovered, files.count - files.reused),
            },
            "total_time_in_millis": one.index_ms,
            "source_throttle_time_in_millis": one.source_throttle_ms,
            "target_throttle_time_in_millis": one.target_throttle_ms,
        },
        "translog": {
            "recovered": one.ops_recovered,
            "total": one.ops_total,
            "percent": percent(one.ops_recovered, one.ops_total),
            "total_on_start": one.ops_total,
            "total_time_in_millis": one.translog_ms,
        },
        "verify_index": { "check_index_time_in_millis": 0, "total_time_in_millis": one.verify_ms },
        "narrows": {
            "charged_ns": one.charged_ns,
            "elapsed_ns": one.elapsed_ns,
            "chunk_bytes": one.chunk_bytes,
            "in_flight_bytes": one.in_flight_bytes,
            "in_flight_bytes_max": one.in_flight_bytes_max,
            "connections": one.connections,
            "connections_max": one.connections_max,
            "operations_bytes": one.ops_bytes,
            "refetched_chunks": one.refetched_chunks,
            "retries": one.retries,
            "failure": one.failure,
        },
    });
    if one.ended {
        shard["stop_time_in_millis"] = json!(one.began_epoch_ms + one.total_ms);
    }
    if detailed {
        let files = files.details.iter().map(|(name, length, recovered)| {
            json!({ "name": name, "length": length, "recovered": recovered })
        });
        shard["index"]["files"]["details"] = files.collect();
    }
    let leader = state.indices.get(&one.index).and_then(|meta| meta.leader.as_ref());
    if one.kind == "SNAPSHOT"
        && let Some(leader) = leader
    {
        // The field shows a recovery from remote as the restore of a snapshot of the other cluster.
        let alias = &leader.remote_cluster;
        shard["source"]["repository"] = json!(format!("_ccr_{alias}"));
        shard["source"]["snapshot"] = json!("_latest_");
        shard["source"]["index"] = json!(leader.leader_index);
    }
    shard
}

/// A node at one end. A copy that recovers from nothing has no source, and that of another may not be known yet.
fn end(name: Option<String>, address: Option<String>) -> Value {
    let mut end = Map::new();
    if let Some(address) = address {
        let host = json!(host(&address));
        end.insert("host".to_owned(), host.clone());
        end.insert("ip".to_owned(), host);
        end.insert("transport_address".to_owned(), json!(address));
        if let Some(name) = &name {
            end.insert("id".to_owned(), json!(name));
        }
    }
    if let Some(name) = name {
        end.insert("name".to_owned(), json!(name));
    }
    Value::Object(end)
}

fn percent(part: u64, whole: u64) -> String {
    let share = if whole == 0 { 1.0 } else { part as f64 / whole as f64 };
    format!("{:.1}%", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::state::{ClusterState, FollowOrigin, IndexMeta};
    use engine::transport::RecoveredFiles;

    fn account(kind: &str) -> RecoveryState {
        RecoveryState {
            index: "f".to_owned(),
            kind: kind.to_owned(),
            primary: true,
            target: "n1".to_owned(),
            target_address: "127.0.0.1:9300".to_owned(),
            files: RecoveredFiles { bytes: 5, ..Default::default() },
            ..Default::default()
        }
    }

    fn follower() -> ClusterState {
        let mut state = ClusterState::new("c", [], || 1);
        let leader = FollowOrigin {
            remote_cluster: "eu".into(),
            leader_index: "l".into(),
            leader_uuid: "u".into(),
            following: Default::default(),
        };
        let meta = IndexMeta { leader: Some(leader), ..Default::default() };
        state.indices.insert("f".into(), meta.into());
        state
    }

    #[test]
    fn takes_the_shape_of_the_field() {
        let shard = shape(&follower(), account("EMPTY_STORE"), false);
        assert_eq!(shard["index"]["size"]["total_in_bytes"], 5);
        assert_eq!(shard["index"]["files"].get("details"), None);
        assert_eq!(shard.get("stop_time_in_millis"), None);
        assert_eq!(shard["source"], json!({}));
        assert_eq!(shard["target"]["host"], "127.0.0.1");
        assert_eq!(shard["target"]["id"], "n1");
    }

    #[test]
    fn a_recovery_from_remote_is_a_restore() {
        let shard = shape(&follower(), account("SNAPSHOT"), false);
        let source = json!({"repository": "_ccr_eu", "snapshot": "_latest_", "index": "l"});
        assert_eq!(shard["source"], source);
    }

    #[test]
    fn files_are_listed_where_they_are_asked_for() {
        let mut account = account("PEER");
        account.files.details = vec![("a.fast".to_owned(), 5, 2)];
        let shard = shape(&follower(), account, true);
        let listed = json!([{"name": "a.fast", "length": 5, "recovered": 2}]);
        assert_eq!(shard["index"]["files"]["details"], listed);
    }
}
