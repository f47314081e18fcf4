//! What a node does with each request of another node.

use std::sync::Arc;
use std::time::Duration;

use policy::failures::Component;

use super::disk_usage;
use super::manager::{Manager, version_of};
use super::parts::{Node, Parts};
use crate::following;
use crate::planted;
use crate::recovery;
use crate::remote;
use crate::replication;
use crate::search;
use crate::state::{self, Event};
use crate::transport::{
    Class, Failure, Reply, Request, Response, Result, ShardAction, ShardAnswer, unexpected,
};

/// How long the next primary may take to answer a read that came to the one before.
const READ_PATIENCE: Duration = Duration::from_secs(30);

/// Answers a follower check without a task where this node has the newest state, as nearly always.
pub(super) fn at_once(node: &Node, request: &Request) -> Option<Response> {
    let Request::FollowerCheck(version) = request else { return None };
    let is_known = node.core().state().version >= *version;
    is_known.then(|| {
        node.heard_manager();
        Response::Done
    })
}

/// The future of each kind of request has a box of its own: unboxed, the future of every request would be as large as
/// the largest of them.
pub(super) async fn handle(node: &Node, request: Request) -> Result<Reply> {
    let Parts { core, recovery, remotes, search, .. } = &*node.parts;
    let response = match request {
        Request::Ping => Response::Done,
        Request::DiskLook => Response::DiskLook(Box::new(disk_usage::look(core))),
        Request::Hello => Response::Hello(Box::new(core.row.clone())),
        Request::Join(row, found) => {
            if row.cluster != core.config.cluster {
                return Err(other_cluster(node, &row.cluster));
            }
            let joined = state::Node {
                name: row.name,
                transport_address: row.transport,
                http_address: row.http,
                attributes: row.attributes,
            };
            let manager = manager(node)?;
            manager.note_join(core.env.now(), &joined.name);
            let joining = manager.submit(Event::NodeJoined { node: joined, found });
            Response::State(Box::pin(joining).await?)
        }
        Request::Heartbeat(name) => heartbeat(node, &name)?,
        Request::FollowerCheck(version) => {
            node.heard_manager();
            if core.state().version < version && !core.env.is_planted(planted::STATE_MISSED) {
                Box::pin(core.ask_for_state()).await?;
            }
            Response::Done
        }
        Request::Publish(publication) => {
            node.heard_manager();
            core.accept(publication)?;
            Response::Done
        }
        Request::Submit(event) => {
            Response::Version(version_of(Box::pin(manager(node)?.submit(*event)).await)?)
        }
        Request::State => Response::State(manager(node)?.state()),
        Request::Published => Response::Published {
            version: manager(node)?.published.get(),
            hides_loss: core.state_hides_loss(),
        },
        Request::Write(write) => Box::pin(replication::write(core, write)).await?,
        Request::Replicate(sent) => Box::pin(replication::replicate(core, sent)).await?,
        Request::Shard(index, number, action) => {
            Response::Shard(Box::pin(on_shard(node, &index, number, action)).await?)
        }
        Request::NodeStats { copies } => Response::Json(node.stats(copies).to_string()),
        Request::Dangling(uuid) => {
            let found = Box::pin(node.dangling_index(&uuid)).await;
            Response::Json(serde_json::to_string(&found).expect("plain data"))
        }
        Request::Recoveries { active_only, detailed } => {
            Response::Recoveries(recovery::recoveries(recovery, active_only, detailed))
        }
        Request::RemoteIndex(index) => remote::describe(core, &index)?,
        Request::RemoteIndices { known_version, wait } => {
            Box::pin(remote::describe_all(remotes, known_version, wait)).await?
        }
        Request::Forward { to, class, request, limit } => {
            let forwarding = remotes.forwarding.forward(core, (to, class), *request, limit);
            return Box::pin(forwarding).await;
        }
        Request::AutoFollowStats => Response::Json(node.parts.auto_following.to_json().to_string()),
        Request::OpenSession { index, shard, kind, key } => {
            Box::pin(recovery::open_session(recovery, &index, shard, kind, key)).await?
        }
        Request::ReadOpening { index, shard, key, number, chunk_bytes, compress } => {
            let reading = async {
                let session = recovery::awaited_session(recovery, &index, shard, key).await?;
                recovery::read_opening(recovery, session, (number, chunk_bytes), compress).await
            };
            return Box::pin(reading).await;
        }
        Request::ReadChunk { session, file, offset, len, compress } => {
            let reading = recovery::read_chunk(recovery, session, (file, offset, len), compress);
            return Box::pin(reading).await;
        }
        Request::VerifyFile { session, file } => {
            Box::pin(recovery::verify_file(recovery, session, file)).await?
        }
        Request::ReadOps { session, from, max_ops, max_bytes } => {
            let reading = recovery::read_ops(recovery, session, from, max_ops as usize, max_bytes);
            Box::pin(reading).await?
        }
        Request::ReadChanges(ask) => Box::pin(following::read_changes(core, ask)).await?,
        Request::Lease(ask) => Box::pin(following::lease(core, *ask)).await?,
        Request::Leases { index_uuid, shard, primary_term, leases } => {
            let key = (index_uuid, shard);
            Box::pin(replication::take_leases(core, key, primary_term, leases)).await?
        }
        Request::StartTracking(session) => recovery::start_tracking(recovery, session)?,
        Request::Finalize { session, local_checkpoint } => {
            recovery::finalize(recovery, session, local_checkpoint)?
        }
        Request::HandOff { index_uuid, shard, allocation_id } => {
            Box::pin(replication::hand_off(core, (index_uuid, shard), &allocation_id)).await?
        }
        Request::Search(ask) => Box::pin(search::query(search, *ask)).await?,
        Request::Fetch { context, hits, request } => {
            Box::pin(search::fetch(search, context, hits, &request)).await?
        }
        Request::Probe => search::probe(search),
        Request::FreeContext(context) => Response::Freed(search.contexts.free(context).into()),
        Request::Scroll { number, keep_alive } => {
            let page = Box::pin(search::page_here(search, number, keep_alive)).await?;
            Response::Scrolled(Box::new(page))
        }
        Request::NamePointInTime { contexts, id, created_ms } => {
            search.contexts.name(&contexts, &id, created_ms);
            Response::Done
        }
        Request::PointsInTime => {
            Response::PointsInTime(search.contexts.points_in_time(core.env.now()))
        }
        Request::Tasks => Response::Json(core.task_manager.list().to_string()),
        Request::Task(number) => Response::Json(core.task_manager.get(number).to_string()),
        Request::CancelTasks(numbers) => {
            Response::Json(core.task_manager.cancel(&numbers).to_string())
        }
        Request::RethrottleTasks(numbers, per_second) => {
            Response::Json(core.task_manager.rethrottle(&numbers, per_second).to_string())
        }
        Request::ClearScroll(number) => {
            Response::Freed(Box::pin(search::clear_here(search, number)).await)
        }
        Request::CloseSession(session) => {
            recovery::close_session(recovery, session);
            Response::Done
        }
    };
    Ok(response.into())
}

pub(super) fn manager(node: &Node) -> Result<&Manager> {
    node.parts.manager.as_ref().ok_or_else(|| {
        let reason = format!("[{}] is not the cluster manager", node.name());
        Failure::new(503, "not_master_exception", reason)
    })
}

/// Refuses a request of another cluster. Addresses are reused: this one may have been that cluster's node's before.
fn other_cluster(node: &Node, asks: &str) -> Failure {
    let (name, own) = (node.name(), &node.core().config.cluster);
    let reason = format!(
        "node [{name}] is of the cluster [{own}], and was asked by one of [{asks}]; check the addresses"
    );
    Failure::new(400, "illegal_state_exception", reason)
}

fn heartbeat(node: &Node, name: &str) -> Result<Response> {
    let known = node.parts.manager.as_ref().is_some_and(|manager| manager.knows(name));
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
) -> Result<ShardAnswer> {
    let core = node.core();
    let shard = core.local_shard(index, number)?;
    // Whoever asks may have an older state: what is read comes from a copy that has everything.
    let reads = matches!(action, ShardAction::Get { .. } | ShardAction::Digest);
    let store = if reads { shard.complete_store() } else { shard.store() }?;
    if matches!(action, ShardAction::Get { .. }) {
        shard.check_open(&core.state())?;
        if let Some(next) = Box::pin(replication::next_primary(core, &shard)).await? {
            let read = Request::Shard(index.to_owned(), number, action);
            let answer = core.call(&next, Class::Control, read, READ_PATIENCE);
            return match Box::pin(answer).await? {
                Response::Shard(answer) => Ok(answer),
                _ => Err(unexpected()),
            };
        }
    }
    let failed = |error: &store::Error| core.store_failed(Component::Maintenance, &shard, error);
    Ok(match action {
        ShardAction::Following => ShardAnswer::Following(
            following::stats_of(core, &node.parts.follow_tasks, &shard).map(Box::new),
        ),
        ShardAction::History => ShardAnswer::History(store.history_uuid().to_owned()),
        ShardAction::RemoveLease { id } => {
            let _operation = shard.begin_operation()?;
            replication::remove_lease(core, &shard, &id).await?;
            ShardAnswer::Done
        }
        ShardAction::Get { id } => {
            let began = core.env.now();
            let found = store.get(&Arc::from(id)).await?;
            core.served_in(core.env.now() - began);
            ShardAnswer::Get(
                found.map(|doc| {
                    (doc.version, doc.seq_no, doc.source.unwrap_or_default(), doc.routing)
                }),
            )
        }
        ShardAction::Digest => {
            let digest = store.digest().await?;
            ShardAnswer::Digest(digest.documents, digest.hash)
        }
        ShardAction::EndWrites => {
            replication::end_writes(core, &shard).await?;
            ShardAnswer::Done
        }
        ShardAction::Refresh => {
            store.refresh().await.inspect_err(failed)?;
            let is_planted = core.env.is_planted(planted::HANDED_OVER_AND_COUNTING);
            ShardAnswer::Refreshed(shard.refreshed(&core.state(), is_planted))
        }
        ShardAction::Flush => {
            if let Some(settings) = shard.settings_by(&core.state()) {
                replication::expire_leases(core, &shard, &settings).await;
            }
            store.flush().await.inspect_err(failed)?;
            ShardAnswer::Done
        }
        ShardAction::ForceMerge { max_num_segments } => {
            store.force_merge(max_num_segments).await.inspect_err(failed)?;
            ShardAnswer::Done
        }
        ShardAction::Stats { segments } => {
            let segment_list = if segments { store.segments() } else { Vec::new() };
            ShardAnswer::Stats(Box::new(store::ShardStats { segment_list, ..store.stats() }))
        }
        ShardAction::ClearCaches { requests, others } => {
            store.clear_caches(requests, others);
            ShardAnswer::Done
        }
        ShardAction::Terms { field, begin, most } => {
            ShardAnswer::Terms(store.terms(&field, &begin, most).await?)
        }
    })
}
