//! `_recovery`: how copies came, or come, to their nodes.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::answer::Reply;
use super::call::Call;
use super::identity::host;
use super::names::indices;
use super::spread::on_nodes;
use engine::state::ClusterState;
use engine::transport::{Failure, Request};

const PATIENCE: Duration = Duration::from_secs(10);

/// `GET /{index}/_recovery`. Nodes that do not answer are left out, as in the field.
pub(super) async fn recovery(call: Call) -> Result<Reply, Failure> {
    let active_only = call.query.flag("active_only", false)?;
    let detailed = call.query.flag("detailed", false)?;
    let names = indices(&call.state(), call.indices(), &call.query)?;
    let mut answer: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for (index, shard) in rows(&call, &names, active_only, detailed).await {
        answer.entry(index).or_default().push(shard);
    }
    let shown = |(index, shards): (String, Vec<Value>)| (index, json!({ "shards": shards }));
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
    for (_, answer) in on_nodes(&call.node, nodes, &asked, PATIENCE).await {
        let Ok(Value::Array(recoveries)) = answer else { continue };
        rows.extend(recoveries.into_iter().filter_map(|recovery| shape(&state, recovery)));
    }
    rows.retain(|(index, _)| names.contains(index));
    let order = |shard: &Value| (shard["id"].as_u64(), shard["primary"].as_bool() != Some(true));
    rows.sort_by(|a, b| a.0.cmp(&b.0).then_with(|| order(&a.1).cmp(&order(&b.1))));
    rows
}

/// A node's own account of a recovery, in the field's shape; none if it is no such account.
fn shape(state: &ClusterState, recovery: Value) -> Option<(String, Value)> {
    let Value::Object(mut shard) = recovery else { return None };
    let Some(Value::String(index)) = shard.remove("index") else { return None };
    let details = shard.remove("index_details").unwrap_or_else(|| json!({}));
    shard.insert("index".to_owned(), details);
    for end in ["source", "target"] {
        if let Some(Value::Object(end)) = shard.get_mut(end) {
            name_end(end);
        }
    }
    let leader = state.indices.get(&index).and_then(|meta| meta.leader.as_ref());
    if shard.get("type") == Some(&json!("SNAPSHOT"))
        && let (Some(leader), Some(Value::Object(source))) = (leader, shard.get_mut("source"))
    {
        // The field shows a recovery from remote as the restore of a snapshot of the other cluster.
        let alias = &leader.remote_cluster;
        source.insert("repository".to_owned(), json!(format!("_ccr_{alias}")));
        source.insert("snapshot".to_owned(), json!("_latest_"));
        source.insert("index".to_owned(), json!(leader.leader_index));
    }
    Some((index, Value::Object(shard)))
}

fn name_end(end: &mut Map<String, Value>) {
    let Some(address) = end.get("transport_address").and_then(Value::as_str).map(str::to_owned)
    else {
        // A copy that recovers from nothing has no source, and the source of another may not be known yet.
        end.retain(|_, value| !value.is_null());
        return;
    };
    let host = json!(host(&address));
    end.insert("host".to_owned(), host.clone());
    end.insert("ip".to_owned(), host);
    if let Some(name) = end.get("name").cloned() {
        end.insert("id".to_owned(), name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::state::{ClusterState, FollowOrigin, IndexMeta};

    fn account(kind: &str) -> Value {
        json!({
            "index": "f", "id": 0, "type": kind, "primary": true,
            "index_details": {"size": {"total_in_bytes": 5}},
            "source": {"name": null, "transport_address": null},
            "target": {"name": "n1", "transport_address": "127.0.0.1:9300"},
        })
    }

    fn follower() -> ClusterState {
        let mut state = ClusterState::new("c", [], || 1);
        let leader = FollowOrigin {
            remote_cluster: "eu".into(),
            leader_index: "l".into(),
            leader_uuid: "u".into(),
            following: Default::default(),
        };
        let meta = IndexMeta {
            uuid: "v".into(),
            shards: 1,
            replicas: 0,
            mappings: json!({}),
            mapping_version: 1,
            settings: Default::default(),
            settings_version: 1,
            aliases: Default::default(),
            aliases_version: 1,
            created_ms: 0,
            leader: Some(leader),
        };
        state.indices.insert("f".into(), meta.into());
        state
    }

    #[test]
    fn takes_the_shape_of_the_field() {
        let (index, shard) = shape(&follower(), account("EMPTY_STORE")).unwrap();
        assert_eq!(index, "f");
        assert_eq!(shard["index"], json!({"size": {"total_in_bytes": 5}}));
        assert_eq!(shard.get("index_details"), None);
        assert_eq!(shard["source"], json!({}));
        assert_eq!(shard["target"]["host"], "127.0.0.1");
        assert_eq!(shard["target"]["id"], "n1");
    }

    #[test]
    fn a_recovery_from_remote_is_a_restore() {
        let (_, shard) = shape(&follower(), account("SNAPSHOT")).unwrap();
        let source = json!({"repository": "_ccr_eu", "snapshot": "_latest_", "index": "l"});
        assert_eq!(shard["source"], source);
        assert_eq!(shape(&follower(), json!([])), None);
    }
}
