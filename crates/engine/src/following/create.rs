//! A follower is made: an index whose primaries recover from the leader's.

use std::rc::Rc;

use query::Mapping;
use world::LocalFuture;

use super::metadata_sync::fixed_settings;
use super::service::FollowService;
use super::source::Source;
use crate::remote;
use crate::settings::{FollowParameters, Update};
use crate::state::{Event, FollowOrigin, Following, Index, Made};
use crate::transport::{LeaderShard, RemoteIndex, Result, unexpected};

/// What is to follow what, and how.
pub struct FollowRequest {
    /// Name of the follower.
    pub follower: String,
    /// Alias of the remote cluster.
    pub alias: String,
    /// Name of the index there.
    pub leader_index: String,
    /// Settings of the follower that are not the leader's.
    pub settings: Update,
    /// How it keeps up.
    pub parameters: FollowParameters,
}

/// `PUT {index}/_ccr/follow`: makes an index whose primaries recover from the leader's.
///
/// It runs to its end also where the client goes away: a follower must not stay unless its leader confirms it.
pub fn follow(service: &Rc<FollowService>, request: FollowRequest) -> LocalFuture<'_, Result<()>> {
    Box::pin(async move {
        let following = create_and_confirm(service.clone(), request);
        service.core.run_to_end("makes a follower", following).await
    })
}

/// If this node knows the leader's index already, the follower is created from that and recovery begins at once, while
/// the leader is asked whether it is still so. If it is not, the follower is deleted and created anew.
async fn create_and_confirm(service: Rc<FollowService>, request: FollowRequest) -> Result<()> {
    let asked = remote::ask_index(
        service.remotes.clone(),
        request.alias.clone(),
        request.leader_index.clone(),
    );
    let Some(known) = service.remotes.index(&request.alias, &request.leader_index) else {
        return create(&service, &request, &asked.await?).await;
    };
    let asked = service.core.env.spawn("asks what the leader's index is", asked);
    create(&service, &request, &known).await?;
    let state = service.core.state();
    let is_it = |index: &Index| {
        let leader = state.indices[&index.name].leader.as_ref();
        leader.is_some_and(|leader| leader.leader_uuid == known.uuid)
    };
    let created = state.index(&request.follower).filter(is_it);
    let now = asked.await.unwrap_or_else(|_| Err(unexpected()));
    correct(&service, &request, created, &known, now).await
}

/// Creates the follower anew if its leader's index is another by now than the one that this node knew.
async fn correct(
    service: &Rc<FollowService>,
    request: &FollowRequest,
    created: Option<Index>,
    known: &RemoteIndex,
    now: Result<RemoteIndex>,
) -> Result<()> {
    if now.as_ref().is_ok_and(|now| now.is_same(known)) {
        return Ok(());
    }
    if let Some(index) = created {
        service.core.submit(Event::DeleteIndex { index }).await?;
    }
    create(service, request, &now?).await
}

async fn create(
    service: &Rc<FollowService>,
    request: &FollowRequest,
    of: &RemoteIndex,
) -> Result<()> {
    let mappings = serde_json::from_str(&of.mappings).map_err(|_| unexpected())?;
    Mapping::stored(&mappings)?;
    let leader = FollowOrigin {
        remote_cluster: request.alias.clone(),
        leader_index: request.leader_index.clone(),
        leader_uuid: of.uuid.clone(),
        following: Following {
            parameters: request.parameters.clone(),
            own_settings: request.settings.keys().cloned().collect(),
            ..Following::default()
        },
    };
    let mut settings = fixed_settings(&of.settings);
    settings.extend(request.settings.clone());
    let event = Event::CreateFollower {
        index: request.follower.clone(),
        leader,
        shards: of.shards,
        routing_shards: of.routing_shards,
        made: Made { settings, mappings, aliases: of.aliases.clone() },
    };
    service.core.submit(event).await
}

/// Removes a follower's leases on all shards of its leader; fails if one of them does not answer.
pub fn drop_leases<'a>(
    service: &'a Rc<FollowService>,
    origin: &'a FollowOrigin,
    lease: &'a str,
    shards: Vec<(u32, String)>,
) -> LocalFuture<'a, Result<()>> {
    Box::pin(async move {
        let mut dropped = Ok(());
        for (shard, history_uuid) in shards {
            let leader = LeaderShard {
                index: origin.leader_index.clone(),
                index_uuid: origin.leader_uuid.clone(),
                shard,
                history_uuid,
            };
            let source = Source::new(&origin.remote_cluster, leader, lease.to_owned());
            if let Err(error) = source.renew(service, None).await {
                dropped = Err(error.into());
            }
        }
        dropped
    })
}
