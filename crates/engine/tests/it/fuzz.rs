//! Requests that nobody would write, to a node of the virtual world.

use bytes::Bytes;
use rest::RestRequest;
use testbed::fuzz::{self, Budget};
use world::virtual_world;

use crate::common::Cluster;

/// Method, path and body, a line each.
const REQUESTS: [&[u8]; 14] = [
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
