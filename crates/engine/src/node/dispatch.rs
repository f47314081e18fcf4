//! What a node does with each question of another.

use std::sync::Arc;

use crate::following::{self, FollowStats};
use crate::recovery;
use crate::remote;
use crate::replication;
use crate::search;
use crate::state::{self, Event};
use crate::transport::{Failure, Reply, Request, Response, ShardAction, ShardAnswer};

use super::{Manager, Node};

/// Each answer's course is in a box of its own: as the variants of one it would be as large as the largest, and be moved and kept
/// as such for every question, however short.
pub(super) async fn handle(node: &Node, request: Request) -> Result<Reply, Failure> {
    let response = match request {
        Request::Ping => Response::Done,
        Request::Hello => Response::Hello(node.row.clone()),
        Request::Join(row, found) => {
            let joined = state::Node {
                name: row.name,
                transport_address: row.transport,
                http_address: row.http,
            };
            let joining = manager(node)?.submit(Event::NodeJoined { node: joined, found });
            Response::State(Box::pin(joining).await?)
        }
        Request::Heartbeat(name) => heartbeat(node, &name)?,
        Request::FollowerCheck => {
            node.heard_manager();
            Response::Done
        }
        Request::Publish(publication) => {
            node.heard_manager();
            node.accept(publication)?;
            Response::Done
        }
        Request::Submit(event) => {
            Response::Version(Box::pin(manager(node)?.submit(*event)).await?.version)
        }
        Request::State => Response::State(manager(node)?.state()),
        Request::Write(write) => Box::pin(replication::write(node, write)).await?,
        Request::Replicate {
            index_uuid,
            shard,
            allocation_id,
            primary_term,
            ops,
            global_checkpoint,
        } => {
            let target = replication::Target { index_uuid, shard, allocation_id, primary_term };
            Box::pin(replication::replicate(node, target, ops, global_checkpoint)).await?
        }
        Request::Shard(index, number, action) => {
            Response::Shard(Box::pin(on_shard(node, &index, number, action)).await?)
        }
        Request::NodeStats { copies } => Response::Json(node.stats(copies).to_string()),
        Request::Recoveries => Response::Json(recovery::recoveries(node).to_string()),
        Request::RemoteIndex(index) => remote::describe(node, &index)?,
        Request::RemoteIndices { known_version, wait } => {
            Box::pin(remote::describe_all(node, known_version, wait)).await?
        }
        Request::AutoFollowStats => {
            Response::Json(node.auto_following.to_json(node.env.now()).to_string())
        }
        Request::OpenSession { index, shard, kind, key } => {
            Box::pin(recovery::open_session(node, &index, shard, kind, key)).await?
        }
        Request::ReadOpening { index, shard, key, number, chunk_bytes, compress } => {
            let reading = async {
                let session = recovery::awaited_session(node, &index, shard, key).await?;
                recovery::read_opening(node, session, (number, chunk_bytes), compress).await
            };
            return Box::pin(reading).await;
        }
        Request::ReadChunk { session, file, offset, len, compress } => {
            let reading = recovery::read_chunk(node, session, (file, offset, len), compress);
            return Box::pin(reading).await;
        }
        Request::VerifyFile { session, file } => {
            Box::pin(recovery::verify_file(node, session, file)).await?
        }
        Request::ReadOps { session, from, max_ops, max_bytes } => {
            let reading = recovery::read_ops(node, session, from, max_ops as usize, max_bytes);
            Box::pin(reading).await?
        }
        Request::ReadChanges(ask) => Box::pin(following::read_changes(node, *ask)).await?,
        Request::Lease(ask) => Box::pin(following::lease(node, *ask)).await?,
        Request::Leases { index_uuid, shard, leases } => {
            Box::pin(following::take_leases(node, (index_uuid, shard), leases)).await?
        }
        Request::StartTracking(session) => recovery::start_tracking(node, session)?,
        Request::Finalize { session, local_checkpoint } => {
            recovery::finalize(node, session, local_checkpoint)?
        }
        Request::Search(ask) => Box::pin(search::query(node, *ask)).await?,
        Request::Fetch { context, hits, source } => {
            Box::pin(search::fetch(node, context, hits, &source)).await?
        }
        Request::Probe => search::probe(node),
        Request::FreeContext(context) => {
            node.search.contexts.free(context);
            Response::Done
        }
        Request::CloseSession(session) => {
            recovery::close_session(node, session);
            Response::Done
        }
    };
    Ok(response.into())
}

fn manager(node: &Node) -> Result<&Manager, Failure> {
    node.manager.as_ref().ok_or_else(|| {
        let reason = format!("[{}] is not the cluster manager", node.config.name);
        Failure::new(503, "not_master_exception", reason)
    })
}

fn heartbeat(node: &Node, name: &str) -> Result<Response, Failure> {
    let known = node.manager.as_ref().is_some_and(|manager| manager.knows(name));
    if known {
        return Ok(Response::Done);
    }
    let reason = format!("node [{name}] has left the cluster; join again");
    Err(Failure::new(404, "node_not_connected_exception", reason))
}

async fn on_shard(
    node: &Node,
    index: &str,
    number: u32,
    action: ShardAction,
) -> Result<ShardAnswer, Failure> {
    let shard = node.local_shard(index, number)?;
    let store = shard.store()?;
    Ok(match action {
        ShardAction::Following => {
            ShardAnswer::Following(FollowStats::of(node, &shard).map(Box::new))
        }
        ShardAction::History => ShardAnswer::History(store.history_uuid().to_owned()),
        ShardAction::RemoveLease { id } => {
            following::remove_lease(node, &shard, &id).await?;
            ShardAnswer::Done
        }
        ShardAction::Get { id } => {
            let began = node.env.now();
            let found = store.get(&Arc::from(id)).await?;
            node.served_in(node.env.now() - began);
            ShardAnswer::Get(
                found.map(|doc| (doc.version, doc.seq_no, doc.source.unwrap_or_default())),
            )
        }
        ShardAction::Count => ShardAnswer::Count(store.count().await?),
        ShardAction::Digest => {
            let digest = store.digest().await?;
            ShardAnswer::Digest(digest.documents, digest.hash)
        }
        ShardAction::Refresh => {
            store.refresh().await?;
            ShardAnswer::Done
        }
        ShardAction::Flush => {
            if let Some(settings) = shard.settings_by(&node.state()) {
                following::expire_leases(node, &shard, &settings).await;
            }
            store.flush().await?;
            ShardAnswer::Done
        }
        ShardAction::ForceMerge { max_num_segments } => {
            store.force_merge(max_num_segments).await?;
            ShardAnswer::Done
        }
        ShardAction::Stats => ShardAnswer::Stats(Box::new(store.stats())),
    })
}
