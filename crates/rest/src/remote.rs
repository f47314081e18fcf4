//! `_remote/info`: the clusters that this one knows.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::answer::Reply;
use super::call::Call;
use engine::remote::{NODE_CONNECTIONS, connected_nodes, connected_sockets};
use engine::settings::Remote;
use engine::transport::Result;

/// A node of a remote cluster that does not answer in this time counts as not connected.
const PATIENCE: Duration = Duration::from_secs(5);

/// `GET /_remote/info`.
pub(super) async fn info(call: Call) -> Result<Reply> {
    let settings = call.node.core().settings();
    let calls: Vec<_> = settings
        .remotes()
        .iter()
        .map(|(alias, remote)| {
            let (node, name) = (call.node.clone(), alias.clone());
            let proxy = remote.proxy.clone();
            let asking = call.node.core().env.spawn("asks a remote cluster", async move {
                match proxy {
                    Some(proxy) => connected_sockets(node.remotes(), &proxy, PATIENCE).await,
                    None => connected_nodes(node.remotes(), &name, PATIENCE).await,
                }
            });
            (alias.clone(), remote.clone(), asking)
        })
        .collect();
    let mut answer = Map::new();
    for (alias, remote, asking) in calls {
        answer.insert(alias, remote_json(&remote, asking.await.unwrap_or(0)));
    }
    Ok(Value::Object(answer).into())
}

/// `connected` counts nodes, or sockets to a proxy.
fn remote_json(remote: &Remote, connected: usize) -> Value {
    if let Some(proxy) = &remote.proxy {
        return json!({
            "connected": connected > 0,
            "mode": "proxy",
            "proxy_address": proxy.address,
            "server_name": proxy.server_name,
            "num_proxy_sockets_connected": connected,
            "max_proxy_socket_connections": proxy.sockets,
            "initial_connect_timeout": "30s",
            "skip_unavailable": false,
        });
    }
    json!({
        "connected": connected > 0,
        "mode": "sniff",
        "seeds": remote.seeds,
        "num_nodes_connected": connected,
        "max_connections_per_cluster": NODE_CONNECTIONS,
        "initial_connect_timeout": "30s",
        "skip_unavailable": false,
    })
}
