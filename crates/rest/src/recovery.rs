//! `_recovery`: how copies came, or come, to their nodes.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use record::Limit;
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::answer::Reply;
use super::call::Call;
use super::identity::host;
use super::names::{Closed, indices_with};
use super::spread::{PATIENCE, ask_nodes};
use engine::state::ClusterState;
use engine::transport::{RecoveryState, Request, Response, Result};

/// About the bytes of a recovery in an answer, without its files one by one.
const RECOVERY_BYTES: usize = 1600;

/// `GET /{index}/_recovery`. Nodes that do not answer are left out, as in the field.
pub(super) async fn recovery(call: Call) -> Result<Reply> {
    let active_only = call.query.flag("active_only", false)?;
    let detailed = call.query.flag("detailed", false)?;
    let state = call.state();
    let names = indices_with(&state, call.indices(), &call.query, Closed::Expanded)?;
    let all = recoveries(&call, &state, &names, active_only, detailed).await;
    Ok(Reply::written(200, written(&state, &all, detailed)))
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
    let all = recoveries(call, &state, names, active_only, detailed).await;
    let tree = |one: &RecoveryState| {
        serde_json::to_value(shape(&state, one, detailed)).expect("a recovery is plain data")
    };
    all.iter().map(|one| (one.index.clone(), tree(one))).collect()
}

/// Every recovery of the indices, whose names are in order; by index and shard, the primary first.
async fn recoveries(
    call: &Call,
    state: &ClusterState,
    names: &[String],
    active_only: bool,
    detailed: bool,
) -> Vec<RecoveryState> {
    let nodes = state.present.iter().cloned().collect();
    let mut all = Vec::new();
    let asked = Request::Recoveries { active_only, detailed };
    for (_, answer) in ask_nodes(&call.node, nodes, &asked, PATIENCE).await {
        let Ok(Response::Recoveries(recoveries)) = answer else { continue };
        let is_wanted = |one: &RecoveryState| names.binary_search(&one.index).is_ok();
        all.extend(recoveries.into_iter().filter(is_wanted));
    }
    all.sort_by(|a, b| {
        let order = |one: &RecoveryState| (one.shard, !one.primary);
        a.index.cmp(&b.index).then_with(|| order(a).cmp(&order(b)))
    });
    all
}

/// Recoveries on these nodes that could not begin so far, though it was tried; each says why.
pub(super) async fn not_begun(
    call: &Call,
    nodes: BTreeSet<String>,
    limit: Duration,
) -> Vec<RecoveryState> {
    let asked = Request::Recoveries { active_only: true, detailed: false };
    let answers = ask_nodes(&call.node, nodes.into_iter().collect(), &asked, limit).await;
    let recoveries = answers.into_iter().filter_map(|(_, answer)| match answer {
        Ok(Response::Recoveries(recoveries)) => Some(recoveries),
        _ => None,
    });
    recoveries.flatten().filter(|one| one.stage == "INIT" && one.failure.is_some()).collect()
}

/// The answer, straight as bytes: there may be thousands of recoveries, and who follows them asks again and again.
fn written(state: &ClusterState, all: &[RecoveryState], detailed: bool) -> Vec<u8> {
    let mut by_index: BTreeMap<&str, Shards<'_>> = BTreeMap::new();
    for one in all {
        by_index.entry(&one.index).or_default().shards.push(shape(state, one, detailed));
    }
    let mut out = Vec::with_capacity(64 + all.len() * RECOVERY_BYTES);
    serde_json::to_writer(&mut out, &by_index).expect("writing to memory does not fail");
    out
}

#[derive(Default, Serialize)]
struct Shards<'a> {
    shards: Vec<Shard<'a>>,
}

/// A recovery in the field's shape; under `narrows`, what the field does not have. Its fields are in the order of their
/// names, as in answers that are trees.
#[derive(Serialize)]
struct Shard<'a> {
    id: u32,
    index: Index<'a>,
    narrows: Narrows<'a>,
    primary: bool,
    source: End<'a>,
    stage: &'a str,
    start_time_in_millis: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop_time_in_millis: Option<u64>,
    target: End<'a>,
    total_time_in_millis: u64,
    translog: Translog,
    #[serde(rename = "type")]
    kind: &'a str,
    verify_index: VerifyIndex,
}

#[derive(Serialize)]
struct Index<'a> {
    files: Files<'a>,
    size: Size,
    source_throttle_time_in_millis: u64,
    target_throttle_time_in_millis: u64,
    total_time_in_millis: u64,
}

#[derive(Serialize)]
struct Files<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<Vec<File<'a>>>,
    percent: Percent,
    recovered: u64,
    reused: u64,
    total: u64,
}

#[derive(Serialize)]
struct File<'a> {
    length: u64,
    name: &'a str,
    recovered: u64,
}

#[derive(Serialize)]
struct Size {
    percent: Percent,
    recovered_in_bytes: u64,
    reused_in_bytes: u64,
    total_in_bytes: u64,
}

#[derive(Serialize)]
struct Narrows<'a> {
    charged_ns: &'a BTreeMap<Limit, u64>,
    chunk_bytes: u64,
    connections: u32,
    connections_max: u32,
    elapsed_ns: u64,
    failure: Option<&'a str>,
    in_flight_bytes: u64,
    in_flight_bytes_max: u64,
    operations_bytes: u64,
    refetched_chunks: u64,
    retries: u64,
}

/// A node at one end, or the remote cluster that is read: what is known of it.
type End<'a> = BTreeMap<&'static str, Cow<'a, str>>;

#[derive(Serialize)]
struct Translog {
    percent: Percent,
    recovered: u64,
    total: u64,
    total_on_start: u64,
    total_time_in_millis: u64,
}

#[derive(Serialize)]
struct VerifyIndex {
    check_index_time_in_millis: u64,
    total_time_in_millis: u64,
}

/// A part of a whole, as `33.3%`.
struct Percent(u64, u64);

impl Serialize for Percent {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        let Percent(part, whole) = *self;
        let share = if whole == 0 { 1.0 } else { part as f64 / whole as f64 };
        out.collect_str(&format_args!("{:.1}%", share * 100.0))
    }
}

fn shape<'a>(state: &'a ClusterState, one: &'a RecoveryState, detailed: bool) -> Shard<'a> {
    let files = &one.files;
    let details = files.details.iter();
    let details = details.map(|(name, length, recovered)| File {
        length: *length,
        name,
        recovered: *recovered,
    });
    let mut source = end(one.source.as_deref(), one.source_address.as_deref());
    let leader = state.indices.get(&one.index).and_then(|meta| meta.leader.as_ref());
    if one.kind == "SNAPSHOT"
        && let Some(leader) = leader
    {
        // The field shows a recovery from remote as the restore of a snapshot of the other cluster.
        source.insert("index", Cow::Borrowed(&leader.leader_index));
        source.insert("repository", Cow::Owned(format!("_ccr_{}", leader.remote_cluster)));
        source.insert("snapshot", Cow::Borrowed("_latest_"));
    }
    Shard {
        id: one.shard,
        index: Index {
            files: Files {
                details: detailed.then(|| details.collect()),
                percent: Percent(files.recovered, files.count.saturating_sub(files.reused)),
                recovered: files.recovered,
                reused: files.reused,
                total: files.count,
            },
            size: Size {
                percent: Percent(
                    files.recovered_bytes,
                    files.bytes.saturating_sub(files.reused_bytes),
                ),
                recovered_in_bytes: files.recovered_bytes,
                reused_in_bytes: files.reused_bytes,
                total_in_bytes: files.bytes,
            },
            source_throttle_time_in_millis: one.source_throttle_ms,
            target_throttle_time_in_millis: one.target_throttle_ms,
            total_time_in_millis: one.index_ms,
        },
        narrows: Narrows {
            charged_ns: &one.charged_ns,
            chunk_bytes: one.chunk_bytes,
            connections: one.connections,
            connections_max: one.connections_max,
            elapsed_ns: one.elapsed_ns,
            failure: one.failure.as_deref(),
            in_flight_bytes: one.in_flight_bytes,
            in_flight_bytes_max: one.in_flight_bytes_max,
            operations_bytes: one.ops_bytes,
            refetched_chunks: one.refetched_chunks,
            retries: one.retries,
        },
        primary: one.primary,
        source,
        stage: &one.stage,
        start_time_in_millis: one.began_epoch_ms,
        stop_time_in_millis: one.ended.then(|| one.began_epoch_ms + one.total_ms),
        target: end(Some(&one.target), Some(&one.target_address)),
        total_time_in_millis: one.total_ms,
        translog: Translog {
            percent: Percent(one.ops_recovered, one.ops_total),
            recovered: one.ops_recovered,
            total: one.ops_total,
            total_on_start: one.ops_total,
            total_time_in_millis: one.translog_ms,
        },
        kind: &one.kind,
        verify_index: VerifyIndex {
            check_index_time_in_millis: 0,
            total_time_in_millis: one.verify_ms,
        },
    }
}

/// A node at one end. A copy that recovers from nothing has no source, and that of another may not be known yet.
fn end<'a>(name: Option<&'a str>, address: Option<&'a str>) -> End<'a> {
    let host = address.map(host);
    let id = name.filter(|_| address.is_some());
    let all =
        [("host", host), ("id", id), ("ip", host), ("name", name), ("transport_address", address)];
    all.into_iter().filter_map(|(key, value)| Some((key, Cow::Borrowed(value?)))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use engine::state::{FollowOrigin, IndexMeta};
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

    fn answer(account: RecoveryState, detailed: bool) -> String {
        String::from_utf8(written(&follower(), &[account], detailed)).unwrap()
    }

    #[test]
    fn takes_the_shape_of_the_field() {
        let answer: Value = serde_json::from_str(&answer(account("EMPTY_STORE"), false)).unwrap();
        let shard = &answer["f"]["shards"][0];
        assert_eq!(shard["index"]["size"]["total_in_bytes"], 5);
        assert_eq!(shard["index"]["files"].get("details"), None);
        assert_eq!(shard.get("stop_time_in_millis"), None);
        assert_eq!(shard["source"], json!({}));
        assert_eq!(shard["target"]["host"], "127.0.0.1");
        assert_eq!(shard["target"]["id"], "n1");
    }

    /// Of a recovery from remote, which is a restore, with its files. Virtual time depends on its length.
    #[test]
    fn the_whole_answer_is_that_of_a_tree() {
        let account = RecoveryState {
            shard: 3,
            stage: "DONE".to_owned(),
            began_epoch_ms: 1000,
            total_ms: 30,
            ended: true,
            source: Some("eu".to_owned()),
            source_address: Some("[::1]:9301".to_owned()),
            files: RecoveredFiles {
                count: 3,
                recovered: 1,
                bytes: 50,
                reused_bytes: 10,
                recovered_bytes: 20,
                details: vec![("a.\"fast\"".to_owned(), 5, 2)],
                ..Default::default()
            },
            charged_ns: BTreeMap::from([(Limit::DiskRead, 7)]),
            failure: Some("no \\ room".to_owned()),
            ..account("SNAPSHOT")
        };
        let shard = json!({
            "id": 3, "type": "SNAPSHOT", "stage": "DONE", "primary": true,
            "start_time_in_millis": 1000, "total_time_in_millis": 30, "stop_time_in_millis": 1030,
            "source": {
                "host": "::1", "ip": "::1", "transport_address": "[::1]:9301", "id": "eu", "name": "eu",
                "repository": "_ccr_eu", "snapshot": "_latest_", "index": "l",
            },
            "target": {
                "host": "127.0.0.1", "ip": "127.0.0.1", "transport_address": "127.0.0.1:9300",
                "id": "n1", "name": "n1",
            },
            "index": {
                "size": {
                    "total_in_bytes": 50, "reused_in_bytes": 10, "recovered_in_bytes": 20,
                    "percent": "50.0%",
                },
                "files": {
                    "total": 3, "reused": 0, "recovered": 1, "percent": "33.3%",
                    "details": [{ "name": "a.\"fast\"", "length": 5, "recovered": 2 }],
                },
                "total_time_in_millis": 0, "source_throttle_time_in_millis": 0,
                "target_throttle_time_in_millis": 0,
            },
            "translog": {
                "recovered": 0, "total": 0, "percent": "100.0%", "total_on_start": 0,
                "total_time_in_millis": 0,
            },
            "verify_index": { "check_index_time_in_millis": 0, "total_time_in_millis": 0 },
            "narrows": {
                "charged_ns": { "disk_read": 7 }, "elapsed_ns": 0, "chunk_bytes": 0,
                "in_flight_bytes": 0, "in_flight_bytes_max": 0, "connections": 0, "connections_max": 0,
                "operations_bytes": 0, "refetched_chunks": 0, "retries": 0, "failure": "no \\ room",
            },
        });
        assert_eq!(answer(account, true), json!({ "f": { "shards": [shard] } }).to_string());
    }
}
