//! What a copy costs in OpenSearch, as those see it who ask its nodes.
//!
//! All primaries of an index are on one node, and then a copy of each is made elsewhere, without a rate limit and one
//! at a time. Elapsed times, so that other programs disturb them: nothing in those nodes can be asked for core time.

use std::time::{Duration, Instant};

use bytes::Bytes;
use clusters::{ClusterSpec, Clusters, TopologySpec};
use record::random::split_mix;
use serde_json::{Value, json};
use world::Env;

use super::measurement::{Measurement, failed};
use crate::error::Error;

const CLUSTER: &str = "calibrated";
const INDEX: &str = "calibrated";
const EXCLUDE: &str = "cluster.routing.allocation.exclude._name";
/// Copies of next to nothing that are made one after another.
const SMALL_COPIES: u32 = 8;
/// Bulks of the one copy whose bytes take their time: 200 MB.
const LARGE_BULKS: u64 = 200;
const DOCUMENT_BYTES: u64 = 10_000;
/// Documents of a bulk.
const DOCUMENTS: u64 = 100;

/// Measures what a copy takes in a target, of which two nodes are started for it.
///
/// # Errors
/// If the target cannot be started, or refuses something.
pub fn calibrate_target<C: Clusters>(
    target: impl FnOnce(&Env) -> C,
    laps: u32,
    tell: impl Fn(&str),
) -> Result<Vec<Measurement>, Error> {
    world::real_world::run(1, async |env| {
        let mut target = target(&env);
        let cluster = ClusterSpec {
            name: CLUSTER.to_owned(),
            nodes: 2,
            settings: Default::default(),
            attributes: Vec::new(),
        };
        tell("copies between two nodes, which are started first");
        target.start(&TopologySpec { clusters: vec![cluster], link: None, joined: false }).await?;
        let measured = measure(&target, laps).await;
        target.stop().await;
        measured
    })
}

async fn measure(target: &impl Clusters, laps: u32) -> Result<Vec<Measurement>, Error> {
    let mut open = Measurement {
        parameter: "recovery.open_copy",
        laps: Vec::new(),
        how: "eight copies of some documents each, one after another: an eighth of the time until all are started",
    };
    let mut receive = Measurement {
        parameter: "cores.receive_bytes_per_s",
        laps: Vec::new(),
        how: "a copy of 200 MB without a rate limit, as its node says how long the files took: whatever held them",
    };
    for _ in 0..laps {
        open.laps.push(time_of_a_copy(target, CLUSTER).await?.as_secs_f64());
        let (_, recoveries) = copy(target, CLUSTER, (1, LARGE_BULKS)).await?;
        receive.laps.push(rate(&recoveries)?);
    }
    Ok(vec![receive, open])
}

/// How long a copy takes in a cluster apart from its bytes: updates of the cluster state, opening, the next round of
/// the allocator. The cluster has no index that it was not given for this. Its settings of recovery and of routing are
/// taken back afterwards.
///
/// # Errors
/// If the cluster refuses something.
pub async fn time_of_a_copy(target: &impl Clusters, cluster: &str) -> Result<Duration, Error> {
    let (took, _) = copy(target, cluster, (SMALL_COPIES, 1)).await?;
    Ok(took / SMALL_COPIES)
}

/// Makes an index of so many shards and bulks on the first node, and a copy of each shard on others: how long until all
/// are started, and what `_recovery` says of them.
async fn copy(
    target: &impl Clusters,
    cluster: &str,
    (shards, bulks): (u32, u64),
) -> Result<(Duration, Value), Error> {
    let ask = async |method: &str, path: &str, body: Value| {
        let body = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
        Ok::<_, Error>(target.request(cluster, method, path, body).await?.json()?)
    };
    let set = async |settings: Value| {
        ask("PUT", "/_cluster/settings", json!({ "persistent": settings })).await
    };
    let others = target.nodes(cluster).into_iter().skip(1).map(|node| node.name);
    set(json!({
        EXCLUDE: others.collect::<Vec<_>>().join(","),
        "cluster.routing.allocation.node_concurrent_recoveries": 1,
        "cluster.routing.rebalance.enable": "none",
        "indices.recovery.max_bytes_per_sec": "-1",
    }))
    .await?;
    let field = json!({ "type": "keyword", "index": false, "doc_values": false });
    let body = json!({
        "settings": { "number_of_shards": shards, "number_of_replicas": 0 },
        "mappings": { "properties": { "t": field } },
    });
    ask("PUT", &format!("/{INDEX}"), body).await?;
    let mut letters = 1;
    for _ in 0..bulks {
        let path = format!("/{INDEX}/_bulk?filter_path=errors");
        let bulk = target.request(cluster, "POST", &path, Bytes::from(bulk(&mut letters)));
        let answer = bulk.await?.json()?;
        if answer["errors"] != false {
            return Err(failed("index documents", answer));
        }
    }
    ask("POST", &format!("/{INDEX}/_flush"), Value::Null).await?;
    set(json!({ EXCLUDE: null })).await?;
    let began = Instant::now();
    let one = json!({ "index.number_of_replicas": 1 });
    ask("PUT", &format!("/{INDEX}/_settings"), one).await?;
    let path = format!("/_cluster/health/{INDEX}?wait_for_status=green&timeout=300s");
    let health = ask("GET", &path, Value::Null).await?;
    let took = began.elapsed();
    if health["timed_out"] != false {
        return Err(failed("wait for copies", health));
    }
    let recoveries = ask("GET", &format!("/{INDEX}/_recovery"), Value::Null).await?;
    ask("DELETE", &format!("/{INDEX}"), Value::Null).await?;
    set(json!({ "indices.recovery.*": null, "cluster.routing.*": null })).await?;
    Ok((took, recoveries))
}

/// Documents that do not compress.
fn bulk(letters: &mut u64) -> String {
    let mut lines = String::new();
    for _ in 0..DOCUMENTS {
        let words = 0..DOCUMENT_BYTES / 16;
        let text: String = words.map(|_| format!("{:016x}", split_mix(letters))).collect();
        lines.push_str(&format!("{{\"index\":{{}}}}\n{{\"t\":\"{text}\"}}\n"));
    }
    lines
}

/// Bytes a second of the one copy that was made, as `_recovery` says it.
fn rate(recoveries: &Value) -> Result<f64, Error> {
    let shards = recoveries[INDEX]["shards"].as_array().into_iter().flatten();
    let copy = shards.filter(|shard| shard["type"] == "PEER").find_map(|shard| {
        let bytes = shard["index"]["size"]["recovered_in_bytes"].as_f64()?;
        let seconds = shard["index"]["total_time_in_millis"].as_f64()? / 1e3;
        (bytes > 0.0 && seconds > 0.0).then_some(bytes / seconds)
    });
    copy.ok_or_else(|| failed("time a copy", format!("none was made: {recoveries}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_that_of_the_files_of_the_copy() {
        let recovery = |recovered: u64| {
            json!({ INDEX: { "shards": [
                { "type": "EMPTY_STORE", "index": { "total_time_in_millis": 1 } },
                { "type": "PEER", "index": {
                    "size": { "recovered_in_bytes": recovered }, "total_time_in_millis": 500,
                } },
            ] } })
        };
        assert_eq!(rate(&recovery(1000)).unwrap(), 2000.0);
        let said = rate(&recovery(0)).unwrap_err().to_string();
        assert!(said.contains("none was made"), "{said}");
    }
}
