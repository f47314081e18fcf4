//! Requests that nobody would write, to a node of the virtual world, and frames that no node would send.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use engine::settings::{
    self, SettingScope, SettingsMap, Update, When, check_update, parse_cluster_update, parse_update,
};
use engine::transport::{
    Changes, Envelope, Failure, LeaderShard, Operations, ReadChanges, Replicate, Request, Response,
    SessionOpened, ShardSearch, Versions,
};
use rest::RestRequest;
use serde_json::Value;
use store::{Commit, FileMeta, OpKind, Operation};
use testbed::fuzz::{self, Budget};
use world::{Message, virtual_world};

use crate::common::Cluster;

/// Method, path and body, a line each.
const REQUESTS: [&[u8]; 15] = [
    b"POST /_bulk?refresh=true\n{\"index\":{\"_index\":\"a\",\"_id\":\"1\"}}\n{\"x\":1}\n{\"delete\":{\"_id\":\"2\"}}\n",
    b"POST /a/_bulk?filter_path=items.*.status,-took\n{\"create\":{}}\n{\"x\":[1,2,{\"y\":null}]}\n",
    b"PUT /b\n{\"settings\":{\"index.number_of_shards\":2,\"index\":{\"translog\":{\"durability\":\"async\"}}},\"mappings\":{\"properties\":{\"t\":{\"type\":\"date\"}}}}",
    b"PUT /_cluster/settings?flat_settings=true\n{\"persistent\":{\"indices.recovery.max_bytes_per_sec\":\"20mb\"},\"transient\":null}",
    b"PUT /a/_settings\n{\"index.refresh_interval\":\"-1\"}",
    b"GET /_cluster/health/a?level=shards&wait_for_status=yellow&timeout=1ms\n",
    b"GET /_cat/shards?format=json&h=index,shard&s=store:desc&bytes=kb\n",
    b"GET /a,b*,-c/_search?q=x&size=1&filter_path=**.total,hits.**.x\n{\"query\":{\"match_all\":{}},\"size\":0}",
    b"GET /a/_count\n{\"query\":{\"term\":{\"x\":1}}}",
    b"PUT /a/_doc/1?version=3&version_type=external\n{\"x\":1}",
    b"POST /_aliases\n{\"actions\":[{\"add\":{\"index\":\"a\",\"alias\":\"z\"}},{\"remove\":{\"index\":\"a\",\"alias\":\"y\"}}]}",
    b"PUT /c/_ccr/follow?wait_for_active_shards=0\n{\"remote_cluster\":\"r\",\"leader_index\":\"a\",\"max_read_request_size\":\"1mb\"}",
    b"GET /_nodes/stats/os,process?filter_path=nodes.*.os.cpu\n",
    b"POST /_cluster/reroute?dry_run=true&retry_failed=true\n{\"commands\":[]}",
    b"POST /_cluster/reroute?metric=routing_table\n{\"commands\":[{\"move\":{\"index\":\"a\",\"shard\":0,\"from_node\":\"n\",\"to_node\":\"m\"}}]}",
];

fn request_of(input: &[u8]) -> Option<RestRequest> {
    let line = input.split(|byte| *byte == b'\n').next()?;
    let body = Bytes::copy_from_slice(input.get(line.len() + 1..).unwrap_or_default());
    let (method, path) = std::str::from_utf8(line).ok()?.split_once(' ')?;
    let is_path = path.starts_with('/') && path.bytes().all(|byte| byte.is_ascii_graphic());
    // What no HTTP library lets through comes to no handler.
    is_path.then(|| RestRequest { method: method.to_owned(), path: path.to_owned(), body })
}

#[test]
fn requests() {
    // A node is started for each, so that one input cannot depend on another.
    let budget = Budget { allocations: 50_000, bytes: 16 << 20, ..Budget::default() };
    fuzz::search("requests", &REQUESTS, 3_000, budget, |input| {
        let Some(request) = request_of(input) else { return };
        virtual_world::run(7, |env| async move {
            let cluster = Cluster::start(&env, "one", 1).await;
            let node = cluster.nodes.values().next().expect("a node").clone();
            // An index for those that need one.
            let make = RestRequest { method: "PUT".into(), path: "/a".into(), body: Bytes::new() };
            rest::handle(&node, make).await;
            rest::handle(&node, request).await;
            cluster.stop().await;
        });
    });
}

/// Settings in every form, as bodies have them: what is accepted is shown, and read again as the same.
#[test]
fn settings() {
    let samples: [&[u8]; 4] = [
        br#"{"persistent": {"indices.recovery.max_bytes_per_sec": "20mb", "cluster": {"remote": {"eu": {"seeds": ["a:1", "b:2"]}}}}, "transient": {"transport.compress": null}}"#,
        br#"{"persistent": {"cluster.routing.allocation.disk.watermark.low": "85%", "indices.recovery.*": null}}"#,
        br#"{"settings": {"index": {"number_of_replicas": 1, "translog": {"durability": "async", "sync_interval": "5s"}}, "refresh_interval": -1}}"#,
        br#"{"index.routing.allocation.include._name": "n-*,m", "index.query.default_field": ["a^2", "b*"], "index.priority": "7"}"#,
    ];
    fuzz::search("settings", &samples, 20_000, Budget::default(), |bytes| {
        let Ok(json) = serde_json::from_slice::<Value>(bytes) else { return };
        if let Ok(update) = parse_cluster_update(&json) {
            for update in [update.persistent, update.transient] {
                shown_and_read_again(SettingScope::Cluster, &update);
            }
        }
        if let Ok(update) = parse_update(SettingScope::Index, &json) {
            shown_and_read_again(SettingScope::Index, &update);
        }
    });
}

fn shown_and_read_again(scope: SettingScope, update: &Update) {
    let Ok(checked) = check_update(scope, When::Start, update) else { return };
    let set: SettingsMap =
        checked.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
    for shown in [settings::flat(&set), settings::nested(&set)] {
        let read = parse_update(scope, &shown).expect("what is shown is read");
        let again = check_update(scope, When::Start, &read).expect("and accepted");
        let again: SettingsMap =
            again.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
        assert_eq!(again, set);
    }
}

/// What nodes say to each other.
fn envelopes() -> Vec<Envelope> {
    let leader = LeaderShard {
        index: "a".to_owned(),
        index_uuid: "uuid".to_owned(),
        shard: 1,
        history_uuid: "history".to_owned(),
    };
    let read = ReadChanges {
        leader: leader.into(),
        from: 300,
        max_ops: 5120,
        max_bytes: 32 << 20,
        poll_timeout: Duration::from_secs(60),
        known: Some(Versions { mappings: 1, settings: 2, aliases: 3 }),
        heard: Some((1, Some(299))),
        compress: 1,
    };
    let op = |seq_no, kind| Operation { seq_no, version: 1, id: "id".into(), kind };
    let source = Bytes::from_static(b"{\"x\":1}");
    let ops = vec![
        op(7, OpKind::Index { source, auto_id: true, routing: Some("r".into()) }),
        op(8, OpKind::Delete),
        op(9, OpKind::NoOp),
    ];
    let changes = Changes {
        ops: Operations::Plain(Arc::new(ops.clone())),
        global_checkpoint: Some(9),
        max_seq_no: Some(9),
        primary_term: 1,
        versions: Versions::default(),
        served: Duration::from_millis(1),
        waited: Duration::ZERO,
        pressure: false,
    };
    let file = FileMeta { name: "segment.store".into(), len: 1 << 20, xxh3: 7 };
    let opened = SessionOpened {
        session: 5,
        commit: Some(Commit {
            files: vec![file; 3].into(),
            max_seq_no: Some(6),
            ..Commit::default()
        }),
        from_seq_no: 7,
        max_seq_no: Some(9),
        history_uuid: "history".to_owned(),
        leases: Default::default(),
    };
    let body =
        br#"{"query":{"bool":{"must":[{"term":{"x":1}}]}},"aggs":{"t":{"terms":{"field":"x"}}}}"#;
    let search = ShardSearch {
        index: "a".to_owned(),
        shard: 0,
        request: Arc::new(query::parse_search(body).expect("a search")),
        now_ms: 1,
        max_buckets: 10,
        fetch: true,
        held: None,
    };
    let scored =
        br#"{"query":{"function_score":{"query":{"match_all":{}},"functions":[{"weight":2,"filter":
        {"function_score":{"weight":3,"query":{"dis_max":{"queries":[{"term":{"x":1}}]}}}}}]}}}"#;
    let scored = Arc::new(query::parse_search(scored).expect("a search"));
    let scored = ShardSearch { request: scored, ..search.clone() };
    let replicate = Request::Replicate(Replicate {
        index_uuid: "uuid".to_owned(),
        shard: 0,
        allocation_id: "copy".to_owned(),
        primary_term: 2,
        ops: Arc::new(ops.clone()),
        global_checkpoint: None,
        mapping_version: 3,
        sync: true,
    });
    vec![
        Envelope::Request(1, Request::Ping),
        Envelope::Request(2, Request::ReadChanges(Box::new(read))),
        Envelope::Request(3, Request::Search(Box::new(search))),
        Envelope::Request(3, Request::Search(Box::new(scored))),
        Envelope::Request(4, replicate),
        Envelope::Response(5, Ok(Response::Changes(Box::new(changes)))),
        Envelope::Response(6, Ok(Response::Session(Box::new(opened)))),
        Envelope::Response(7, Ok(Response::Ops { ops, mapping_version: 3 })),
        Envelope::Response(8, Err(Failure::new(503, "unavailable_shards_exception", "try again"))),
    ]
}

#[test]
fn frames() {
    let samples: Vec<Vec<u8>> =
        envelopes().into_iter().map(|envelope| envelope.encode().head).collect();
    let samples: Vec<&[u8]> = samples.iter().map(Vec::as_slice).collect();
    fuzz::search("frames", &samples, 20_000, Budget::default(), |head| {
        let Ok(envelope) = Envelope::decode(head, Bytes::new()) else { return };
        envelope.wire_bytes();
        // What can be read can be passed on, and is read as the same.
        let again = envelope.clone().encode();
        let read = Envelope::decode(&again.head, again.tail).expect("what was written is read");
        assert_eq!(format!("{read:?}"), format!("{envelope:?}"));
    });
}
