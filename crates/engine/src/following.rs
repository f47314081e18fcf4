//! The follower's side of cross-cluster replication: remote clusters, and the first recovery from one.

use std::time::Duration;

use store::Mapping;

use crate::node::{Node, unexpected};
use crate::settings::Update;
use crate::state::{Event, FollowOrigin};
use crate::transport::{CallError, Class, Failure, NodeRow, Request, Response, ShardLocation};

/// How long a remote cluster may take to answer.
const REMOTE_TIMEOUT: Duration = Duration::from_secs(30);

/// On a leader: what an index is, and where its primaries are.
pub(crate) fn describe(node: &Node, index: &str) -> Result<Response, Failure> {
    let state = node.state();
    let meta = state.indices.get(index).ok_or_else(|| Failure::no_such_index(index))?;
    let primaries = (0..meta.shards)
        .map(|shard| {
            let primary = state.shard(index, shard).and_then(|routing| routing.started_primary());
            ShardLocation { shard, node: primary.and_then(|primary| primary.node.clone()) }
        })
        .collect();
    Ok(Response::RemoteIndex {
        uuid: meta.uuid.clone(),
        shards: meta.shards,
        mappings: meta.mappings.to_string(),
        primaries,
    })
}

/// Where the nodes of a remote cluster are reached.
pub(crate) fn seeds(node: &Node, alias: &str) -> Result<Vec<String>, Failure> {
    let settings = node.settings();
    let remote = settings.remotes().get(alias).ok_or_else(|| {
        let known: Vec<&str> = settings.remotes().keys().map(String::as_str).collect();
        let reason = format!(
            "no such remote cluster [{alias}]; set cluster.remote.{alias}.seeds{}",
            record::names::did_you_mean(alias, known)
        );
        Failure::new(404, "no_such_remote_cluster_exception", reason)
    })?;
    Ok(remote.seeds.clone())
}

/// Connects to every seed of every remote cluster, so that the first recovery need not wait for it.
pub(crate) async fn connect_remotes(node: Node) {
    let settings = node.settings();
    let seeds = settings.remotes().values().flat_map(|remote| remote.seeds.iter());
    let recovery = (0..settings.transport_recovery_connections()).map(Class::Recovery);
    let classes: Vec<Class> = std::iter::once(Class::Control).chain(recovery).collect();
    let calls: Vec<_> = seeds
        .flat_map(|seed| classes.iter().map(move |class| (seed.clone(), *class)))
        .map(|(seed, class)| {
            let node2 = node.clone();
            node.env.spawn("connects to a seed", async move {
                // The first call connects; the second finds a warm connection.
                for _ in 0..2 {
                    let asked = node2.env.now();
                    if node2.call(&seed, class, Request::Ping, REMOTE_TIMEOUT).await.is_ok() {
                        node2.note_round_trip(&seed, node2.env.now() - asked);
                    }
                }
            })
        })
        .collect();
    for call in calls {
        let _ = call.await;
    }
}

/// The nodes of a remote cluster that answer: seed and who it is, or why not.
pub(crate) async fn remote_nodes(
    node: &Node,
    alias: &str,
) -> Result<Vec<(String, Result<NodeRow, CallError>)>, Failure> {
    let calls: Vec<_> = seeds(node, alias)?
        .into_iter()
        .map(|seed| {
            let (node2, address) = (node.clone(), seed.clone());
            let call = node.env.spawn("asks a seed", async move {
                match node2.call(&address, Class::Control, Request::Hello, REMOTE_TIMEOUT).await? {
                    Response::Hello(row) => Ok(row),
                    _ => Err(CallError::Failed(unexpected())),
                }
            });
            (seed, call)
        })
        .collect();
    let mut rows = Vec::new();
    for (seed, call) in calls {
        rows.push((seed, call.await.unwrap_or_else(|_| Err(CallError::Failed(unexpected())))));
    }
    Ok(rows)
}

/// `PUT {index}/_ccr/follow`: makes an index whose primaries recover from the leader's.
pub async fn follow(
    node: &Node,
    follower: &str,
    alias: &str,
    leader_index: &str,
    settings: Update,
) -> Result<(), Failure> {
    let mut failure = None;
    for seed in seeds(node, alias)? {
        let request = Request::RemoteIndex(leader_index.to_owned());
        match node.call(&seed, Class::Control, request, REMOTE_TIMEOUT).await {
            Ok(Response::RemoteIndex { uuid, shards, mappings, .. }) => {
                let mappings = serde_json::from_str(&mappings).map_err(|_| unexpected())?;
                Mapping::parse(&mappings)?;
                let leader = FollowOrigin {
                    remote_cluster: alias.to_owned(),
                    leader_index: leader_index.to_owned(),
                    leader_uuid: uuid,
                };
                let index = follower.to_owned();
                let event = Event::CreateFollower { index, leader, shards, settings, mappings };
                return node.submit(event).await;
            }
            Ok(_) => failure = Some(unexpected()),
            Err(CallError::Failed(refused)) => return Err(refused),
            Err(error) => failure = Some(error.into()),
        }
    }
    Err(failure.unwrap_or_else(unexpected))
}
