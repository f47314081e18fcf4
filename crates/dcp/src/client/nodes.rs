//! The nodes of a bucket, from the cluster configuration that one of them sends.

use serde_json::Value;

use super::{Client, ClientOptions};
use crate::Result;
use crate::codec::{Answer, Body, Status};
use crate::wire::{host_of, is_loopback};

/// The most nodes that a bucket is taken to have; a cluster has some tens.
pub(crate) const NODES_MAX: usize = 256;

/// The addresses of all data nodes; if the configuration has none, that of the node asked. Fails if nothing valid is
/// answered.
pub(crate) async fn nodes_known_to(
    client: &mut Client,
    options: &ClientOptions,
) -> Result<Vec<String>> {
    let response = client.ask(0, Body::GetClusterConfig).await?;
    let config = match (&response.answer, response.is(Status::Success)) {
        (Answer::Value(text), true) => serde_json::from_slice(text).unwrap_or(Value::Null),
        _ => Value::Null,
    };
    let found = of_config(&config, host_of(&options.address), options.tls.is_some());
    Ok(if found.is_empty() { vec![options.address.clone()] } else { found })
}

/// Nodes with a data service. `host` is the node asked: entries without a host mean that node. So do those of another
/// machine that name loopback: here somebody else may listen there, and loopback alone is sent a password as it is.
fn of_config(config: &Value, host: &str, tls: bool) -> Vec<String> {
    let service = if tls { "kvSSL" } else { "kv" };
    let nodes = config["nodesExt"].as_array().map(Vec::as_slice).unwrap_or_default();
    let address = |node: &Value| {
        let port = node["services"][service].as_u64()?;
        let is_asked = |name: &str| name == "$HOST" || is_loopback(name) && !is_loopback(host);
        let named = node["hostname"].as_str().filter(|name| !is_asked(name)).unwrap_or(host);
        let shown = if named.contains(':') { format!("[{named}]") } else { named.to_owned() };
        Some(format!("{shown}:{port}"))
    };
    nodes.iter().filter_map(address).take(NODES_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_with_data_are_found() {
        let config = serde_json::json!({ "nodesExt": [
            { "services": { "mgmt": 8091, "kv": 11210, "kvSSL": 11207 }, "thisNode": true },
            { "services": { "mgmt": 8091, "n1ql": 8093 }, "hostname": "b" },
            { "services": { "mgmt": 8091, "kv": 11310, "kvSSL": 11307 }, "hostname": "c" },
            { "services": { "kv": 11210 }, "hostname": "2001:db8::1" },
            { "services": { "kv": 11410 }, "hostname": "$HOST" },
        ] });
        assert_eq!(
            of_config(&config, "a", false),
            ["a:11210", "c:11310", "[2001:db8::1]:11210", "a:11410"]
        );
        assert_eq!(of_config(&config, "a", true), ["a:11207", "c:11307"]);
        assert!(of_config(&Value::Null, "a", false).is_empty());
    }

    /// Whoever changes it on the way could have the password sent to a port of this machine.
    #[test]
    fn no_other_machine_says_who_is_asked_on_this_one() {
        let config = serde_json::json!({ "nodesExt": [
            { "services": { "kv": 11210 }, "hostname": "127.0.0.1" },
            { "services": { "kv": 11310 }, "hostname": "localhost" },
            { "services": { "kv": 11410 }, "hostname": "::1" },
        ] });
        assert_eq!(of_config(&config, "a", false), ["a:11210", "a:11310", "a:11410"]);
        let here = ["127.0.0.1:11210", "localhost:11310", "[::1]:11410"];
        assert_eq!(of_config(&config, "localhost", false), here);
    }

    #[test]
    fn a_configuration_without_end_has_no_more_nodes_than_a_cluster() {
        let node = |n: usize| serde_json::json!({ "services": { "kv": 11210 }, "hostname": format!("n{n}") });
        let nodes: Vec<Value> = (0..2 * NODES_MAX).map(node).collect();
        let config = serde_json::json!({ "nodesExt": nodes });
        assert_eq!(of_config(&config, "a", false).len(), NODES_MAX);
    }
}
