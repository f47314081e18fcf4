//! Cross-cluster replication: a follower recovers from its leader, and keeps up with it.
//!
//! | file | holds |
//! | --- | --- |
//! | `following.rs` | a follower is made |
//! | `tasks` | which shards of a node follow |
//! | `follower` | one shard: reads, writes, falls back |
//! | `source` | the leader's shard as the follower reaches it, and the lease there |
//! | `carry_over` | mappings, settings and aliases |
//! | `auto_follow` | new indices of remote clusters are followed |
//! | `leader` | the other side: operations and leases |
//! | `stats` | the numbers of `_ccr/stats` |
//!
//! Decisions are in [`policy::following`](policy::following) and [`policy::retention`](policy::retention).

mod auto_follow;
mod carry_over;
mod follower;
mod leader;
mod source;
mod stats;
mod tasks;

use std::time::Duration;

use query::Mapping;
use tokio::sync::oneshot;

use crate::node::{Node, unexpected};
use crate::remote;
use crate::settings::{FollowParameters, Update};
use crate::state::{Event, FollowOrigin, Following};
use crate::transport::{Failure, LeaderShard, RemoteIndex};

pub(crate) use auto_follow::{AutoFollowing, run as auto_follow};
pub(crate) use leader::{
    add_lease, expire_leases, lease, read_changes, remove_lease, set_leases, take_leases,
};
pub(crate) use source::{lease_id, lease_of};
pub use stats::FollowStats;
pub(crate) use tasks::FollowTasks;

/// How long a leader may take to answer, beside what it was told to wait.
const REMOTE_TIMEOUT: Duration = Duration::from_secs(30);
/// The error of a leader that has not the operations that a follower lacks.
pub(crate) const OPERATIONS_GONE: &str = "resource_not_found_exception";

/// What is to follow what, and how.
pub struct Wish {
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
/// What this node knows of the leader's index is taken for true, so that recovery begins at once, while the leader is asked
/// whether it still is. Where it is not, the follower is taken back.
pub async fn follow(node: &Node, wish: Wish) -> Result<(), Failure> {
    let asked = remote::ask_index(node.clone(), wish.alias.clone(), wish.leader_index.clone());
    let Some(known) = node.remotes.index(&wish.alias, &wish.leader_index) else {
        return create(node, &wish, &asked.await?).await;
    };
    let asked = node.env.spawn("asks what the leader's index is", asked);
    create(node, &wish, &known).await?;
    let uuid = uuid_of(node, &wish.follower);
    // Whatever becomes of who asked for the follower, it does not stay unless the leader says that it is right.
    let (settled, outcome) = oneshot::channel();
    let node2 = node.clone();
    node.keep("settles what is followed", async move {
        let now = asked.await.unwrap_or_else(|_| Err(unexpected()));
        let _ = settled.send(settle(&node2, &wish, uuid, &known, now).await);
    });
    outcome.await.unwrap_or_else(|_| Err(unexpected()))
}

/// Makes of a follower that was made of what was known what it should be by what its leader says now.
async fn settle(
    node: &Node,
    wish: &Wish,
    uuid: Option<String>,
    known: &RemoteIndex,
    now: Result<RemoteIndex, Failure>,
) -> Result<(), Failure> {
    if now.as_ref().is_ok_and(|now| now.is_same(known)) {
        return Ok(());
    }
    if uuid.is_some() && uuid_of(node, &wish.follower) == uuid {
        node.submit(Event::DeleteIndex { index: wish.follower.clone() }).await?;
    }
    create(node, wish, &now?).await
}

fn uuid_of(node: &Node, index: &str) -> Option<String> {
    node.state().indices.get(index).map(|meta| meta.uuid.clone())
}

async fn create(node: &Node, wish: &Wish, of: &RemoteIndex) -> Result<(), Failure> {
    let mappings = serde_json::from_str(&of.mappings).map_err(|_| unexpected())?;
    Mapping::parse(&mappings)?;
    let leader = FollowOrigin {
        remote_cluster: wish.alias.clone(),
        leader_index: wish.leader_index.clone(),
        leader_uuid: of.uuid.clone(),
        following: Following {
            parameters: wish.parameters.clone(),
            own_settings: wish.settings.keys().cloned().collect(),
            ..Following::default()
        },
    };
    let event = Event::CreateFollower {
        index: wish.follower.clone(),
        leader,
        shards: of.shards,
        settings: wish.settings.clone(),
        mappings,
        aliases: of.aliases.clone(),
    };
    node.submit(event).await
}

/// Has the leader keep nothing more for a follower. Asks all of its shards; fails where one does not answer.
pub(crate) async fn drop_leases(
    node: &Node,
    origin: &FollowOrigin,
    lease: &str,
    shards: Vec<(u32, String)>,
) -> Result<(), Failure> {
    let mut dropped = Ok(());
    for (shard, history_uuid) in shards {
        let leader = LeaderShard {
            index: origin.leader_index.clone(),
            index_uuid: origin.leader_uuid.clone(),
            shard,
            history_uuid,
        };
        let source = source::Source::new(&origin.remote_cluster, leader, lease.to_owned());
        if let Err(error) = source.renew(node, None).await {
            dropped = Err(error.into());
        }
    }
    dropped
}
