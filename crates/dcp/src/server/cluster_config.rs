//! The configuration that clients ask for: one node with all vbuckets.

use record::text::authority;
use serde_json::json;

use super::shared::Shared;
use crate::bucket::Bucket;
use crate::wire::host_of;

/// Answers GET_CLUSTER_CONFIG.
pub(super) fn cluster_config(shared: &Shared, bucket: Option<&Bucket>) -> String {
    let host = host_of(&shared.address);
    let port: u16 = shared.address.rsplit(':').next().and_then(|p| p.parse().ok()).unwrap_or(0);
    let shown = authority(host, port);
    // Clients want a port for management, too. Nothing answers HTTP on this one.
    let services = json!({ "kv": port, "mgmt": port });
    let mut config = json!({
        "rev": 1,
        "revEpoch": 1,
        "nodesExt": [{ "services": services, "thisNode": true, "hostname": host }],
    });
    if let Some(bucket) = bucket {
        let settings = bucket.settings();
        config["name"] = json!(settings.name);
        config["uuid"] = json!(format!("{:032x}", bucket.uuid()));
        config["nodeLocator"] = json!("vbucket");
        config["bucketCapabilities"] = json!(["dcp", "cbhello", "cccp", "nodesExt"]);
        config["nodes"] = json!([{ "hostname": shown, "ports": { "direct": port } }]);
        let map: Vec<[i32; 1]> = (0..settings.vbuckets).map(|_| [0]).collect();
        config["vBucketServerMap"] = json!({
            "hashAlgorithm": "CRC",
            "numReplicas": 0,
            "serverList": [shown],
            "vBucketMap": map,
        });
    }
    config.to_string()
}

/// Answers ERROR_MAP: what clients may do about the statuses that they can get here.
pub(super) fn error_map() -> String {
    use crate::codec::Status;
    let attributes = |status: Status| -> &[&str] {
        match status {
            Status::Success => &["success"],
            Status::NotFound | Status::Exists | Status::NotStored => &["item-only"],
            Status::NotMyVbucket => &["fetch-config", "invalid-input"],
            Status::TemporaryFailure | Status::Busy | Status::NoMemory => {
                &["temp", "retry-later", "auto-retry"]
            }
            Status::AuthError | Status::NoBucket => &["conn-state-invalidated", "auth"],
            Status::AuthContinue => &["special-handling", "auth"],
            Status::Rollback => &["dcp", "special-handling"],
            Status::Access | Status::UnknownCommand | Status::NotSupported => &["support"],
            _ => &["invalid-input"],
        }
    };
    let errors: serde_json::Map<String, serde_json::Value> = Status::ALL
        .iter()
        .map(|status| {
            let of = json!({
                "name": status.name(), "desc": status.name(), "attrs": attributes(*status),
            });
            (format!("{:x}", status.number()), of)
        })
        .collect();
    json!({ "version": 1, "revision": 1, "errors": errors }).to_string()
}
