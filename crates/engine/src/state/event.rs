//! What may happen to a cluster.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::reported_extents::FoundCopy;
use super::{
    AliasAction, AutoFollowChange, ClusterInfo, DanglingCopy, FollowChange, FollowOrigin, Index,
    Made, Node, PlacedIndex, RollOver, StoredIndex, TemplateChange, TemplateKind, json_text,
};
use crate::settings::Update;

/// What an operator wants of a copy.
#[expect(missing_docs, reason = "the fields that a name says enough about have no description")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RerouteCommand {
    pub action: RerouteAction,
    pub index: String,
    pub shard: u32,
    /// The node that has the copy; of an unassigned replica, the node that is to have it.
    pub node: String,
}

/// What an operator wants.
#[expect(missing_docs, reason = "the fields that a name says enough about have no description")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RerouteAction {
    /// A started copy goes to another node.
    Move { to_node: String },
    /// A recovery or a move ends; the copy is placed anew.
    Cancel {
        /// Whether the copy may be a primary, whose data on that node is lost then.
        allow_primary: bool,
    },
    /// A replica that is on no node is placed.
    AllocateReplica,
}

impl RerouteAction {
    /// The command's name in the field.
    pub fn name(&self) -> &'static str {
        match self {
            RerouteAction::Move { .. } => "move",
            RerouteAction::Cancel { .. } => "cancel",
            RerouteAction::AllocateReplica => "allocate_replica",
        }
    }
}

/// An event that the manager handles with [`super::apply`].
#[expect(missing_docs, reason = "the fields that a name says enough about have no description")]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Event {
    /// A member is there, freshly started, with its addresses of now and these copies on its disk. What was assigned to
    /// it before is lost, unless found.
    NodeJoined { node: Node, found: Vec<FoundCopy> },
    /// A member is gone.
    NodeLeft { node: String },
    /// The manager started again from its stored state: nobody is there until he joins.
    ManagerRestarted,
    /// `PUT {index}`.
    CreateIndex { index: String, made: Made },
    /// `POST _aliases`: all of it in this order, or nothing.
    ChangeAliases { actions: Vec<AliasAction> },
    /// `POST {alias}/_rollover`, where its conditions hold. Refused where another was faster.
    RollOver(Box<RollOver>),
    /// `PUT {index}/_ccr/follow`: an index whose primaries recover from remote.
    CreateFollower {
        index: String,
        /// Its leader, in a remote cluster that is set up.
        leader: FollowOrigin,
        shards: u32,
        routing_shards: Option<u32>,
        /// With the mappings and the aliases of the leader; the number of shards is the leader's, too.
        made: Made,
    },
    /// Something changes about how an index follows its leader.
    SetFollowing { index: Index, change: FollowChange },
    /// Something changes about which indices are followed without being asked for.
    ChangeAutoFollow { name: String, change: AutoFollowChange },
    /// `PUT` or `DELETE` of `_template`, `_index_template`, `_component_template`.
    ChangeTemplate { kind: TemplateKind, name: String, change: TemplateChange },
    /// `DELETE {index}`. As in the field, the second of two that are sent at once is told that the index is gone.
    DeleteIndex { index: Index },
    /// `POST _dangling/{uuid}`: an index that the state does not know has its place again, with the copies of it that
    /// the present nodes hold.
    ImportDangling { stored: Box<StoredIndex>, copies: Vec<DanglingCopy> },
    /// `DELETE _dangling/{uuid}`.
    DeleteDangling {
        /// Its name; empty where nobody knows.
        index: String,
        uuid: String,
    },
    /// `PUT {index}/_mapping`, and fields met for the first time.
    PutMapping {
        index: Index,
        /// What to merge into its mappings.
        #[serde(with = "json_text")]
        mappings: Value,
    },
    /// `PUT {index}/_settings`.
    PutIndexSettings { index: Index, settings: Update },
    /// `POST {index}/_close`, `POST {index}/_open`.
    SetClosed { index: Index, closed: bool },
    /// `PUT _cluster/settings`.
    PutClusterSettings { persistent: Update, transient: Update },
    /// A copy finished its recovery. Ignored if that copy is no longer wanted.
    ShardStarted { index: String, shard: u32, allocation_id: String },
    /// A copy failed on its own node. Ignored if that copy is no longer wanted.
    ShardFailed {
        index: String,
        shard: u32,
        allocation_id: String,
        reason: String,
        /// Whether that was a disk without room.
        disk_full: bool,
    },
    /// A primary says that a copy has not got a write. The primary acknowledges the write once this
    /// is applied, and not at all if it is refused: so where its index was deleted, although another has the name.
    CopyOutOfSync {
        index: Index,
        shard: u32,
        /// The copy, on a node or not.
        allocation_id: String,
        /// The term of the primary that says so.
        primary_term: u64,
        reason: String,
    },
    /// `POST _cluster/reroute?retry_failed`: copies that failed too often are tried again.
    RetryFailed,
    /// `POST _cluster/reroute` with commands: all of them in this order, or nothing.
    Reroute { commands: Vec<RerouteCommand> },
    /// Copies that failed too often, last because a disk had no room, are tried once more.
    LookForRoom,
    /// It was looked at how full disks are.
    DisksSeen(Box<ClusterInfo>),
    /// A copy need wait for its node no longer.
    DelayEnded,
    /// Nothing happened. Whoever sends it is answered once all that came before is published, as `wait_for_events` is
    /// in Elasticsearch.
    Nothing,
    /// An index with its copies, which are open on their nodes already.
    PlaceIndex(Box<PlacedIndex>),
}

impl Event {
    /// Whether the cluster is worse off than its state says for as long as the event is not in it.
    pub(crate) fn is_loss(&self) -> bool {
        use Event::{CopyOutOfSync, NodeLeft, ShardFailed};
        matches!(self, ShardFailed { .. } | CopyOutOfSync { .. } | NodeLeft { .. })
    }
}
