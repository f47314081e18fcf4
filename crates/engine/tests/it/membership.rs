//! What members know of the cluster.

use engine::transport::Request;
use serde_json::json;
use world::Env;

use crate::common::between::cluster_behind;
use crate::common::eventually;

both_worlds!(a_state_that_was_missed_is_asked_for,);

/// A publication that is lost, and no other after it: the next check says that there was one.
async fn a_state_that_was_missed_is_asked_for(env: Env) {
    let (between, cluster) = cluster_behind(&env, "one", 2, 1).await;
    between.hold(|request| matches!(request, Request::Publish(_)));
    let set = json!({ "persistent": { "indices.recovery.max_bytes_per_sec": "7mb" } });
    cluster.must("PUT", "/_cluster/settings", set).await;
    assert!(between.held() > 0);
    between.lose_what_is_held();
    let version = |number| cluster.node(number).state().version;
    eventually(&env, "both nodes have the same state", async || version(1) == version(0)).await;
    cluster.stop().await;
}
