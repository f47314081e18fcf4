//! Copies that are kept from full disks, and leave them: of the machine in the real world, of a size that is given to
//! them in the virtual one.

use crate::common::{Cluster, ask, eventually};
use engine::{DiskSize, Node};
use serde_json::{Value, json};
use world::Env;

testbed::both_worlds!(a_copy_waits_for_room_and_a_full_disk_is_left);

/// More than any disk has.
const EVERYTHING: &str = "4000tb";

async fn set_marks(cluster: &Cluster, low: &str, high: &str) {
    let settings = json!({
        "cluster.routing.allocation.disk.threshold_enabled": true,
        "cluster.routing.allocation.disk.watermark.low": low,
        "cluster.routing.allocation.disk.watermark.high": high,
    });
    cluster.set(settings).await;
}

/// What a node that does not manage the cluster says of a copy of the one shard.
async fn explained(cluster: &Cluster, primary: bool) -> Value {
    let body = json!({ "index": "a", "shard": 0, "primary": primary });
    let (_, answer) = ask(&cluster.nodes["c-1"], "GET", "/_cluster/allocation/explain", body).await;
    answer
}

pub async fn a_copy_waits_for_room_and_a_full_disk_is_left(env: Env) {
    let cluster = Cluster::start(&env, "c", 2).await;
    if env.is_virtual() {
        let nodes: Vec<Node> = cluster.nodes.values().cloned().collect();
        let (total_bytes, free_bytes) = (1 << 40, 1 << 39);
        let size = |node: &Node| DiskSize { node: node.name().to_owned(), total_bytes, free_bytes };
        let disks: Vec<DiskSize> = nodes.iter().map(size).collect();
        engine::place(&nodes, &[], &disks).await.unwrap();
    }
    set_marks(&cluster, EVERYTHING, "1b").await;
    eventually(&env, "the disks are looked at", async || {
        cluster.any().state().info.disks.len() == 2
    })
    .await;
    let settings = json!({ "settings": { "number_of_shards": 1, "number_of_replicas": 1 } });
    cluster.must("PUT", "/a?wait_for_active_shards=1", settings).await;
    eventually(&env, "the replica waits for room", async || {
        let said = explained(&cluster, false).await;
        let nodes = said["node_allocation_decisions"].as_array().cloned().unwrap_or_default();
        let deciders = nodes.iter().map(|node| node["deciders"][0]["decider"].as_str());
        said["can_allocate"] == "no" && deciders.flatten().any(|name| name == "disk_threshold")
    })
    .await;
    set_marks(&cluster, EVERYTHING, EVERYTHING).await;
    eventually(&env, "the primary is not to stay", async || {
        let said = explained(&cluster, true).await;
        said["can_remain_on_current_node"] == "no"
            && said["can_remain_decisions"][0]["decider"] == "disk_threshold"
            && said["can_move_to_other_node"] == "no"
    })
    .await;
    set_marks(&cluster, "1b", "1b").await;
    let green = "/_cluster/health?wait_for_status=green&timeout=300s";
    assert_eq!(cluster.get(green).await["status"], "green");
}
