//! The follower's side of cross-cluster replication: the first recovery from a remote cluster.

use store::Mapping;
use tokio::sync::oneshot;

use crate::node::{Node, unexpected};
use crate::remote;
use crate::settings::Update;
use crate::state::{Event, FollowOrigin};
use crate::transport::{Failure, RemoteIndex};

/// What is to follow what.
struct Wish {
    follower: String,
    alias: String,
    leader_index: String,
    settings: Update,
}

/// `PUT {index}/_ccr/follow`: makes an index whose primaries recover from the leader's.
///
/// What this node knows of the leader's index is taken for true, so that recovery begins at once, while the leader is asked
/// whether it still is. Where it is not, the follower is taken back.
pub async fn follow(
    node: &Node,
    follower: &str,
    alias: &str,
    leader_index: &str,
    settings: Update,
) -> Result<(), Failure> {
    let asked = remote::ask_index(node.clone(), alias.to_owned(), leader_index.to_owned());
    let wish = Wish {
        follower: follower.to_owned(),
        alias: alias.to_owned(),
        leader_index: leader_index.to_owned(),
        settings,
    };
    let Some(known) = node.remotes.index(alias, leader_index) else {
        return create(node, &wish, &asked.await?).await;
    };
    let asked = node.env.spawn("asks what the leader's index is", asked);
    create(node, &wish, &known).await?;
    let uuid = uuid_of(node, follower);
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
    if now.as_ref() == Ok(known) {
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
    };
    let (index, settings) = (wish.follower.clone(), wish.settings.clone());
    node.submit(Event::CreateFollower { index, leader, shards: of.shards, settings, mappings })
        .await
}
