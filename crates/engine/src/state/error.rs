//! Why the manager refused an event.

use crate::settings::SettingError;

/// Why the manager refused an event. The state is then as it was.
#[expect(missing_docs, reason = "each message says what is wrong, and what its fields are")]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StateError {
    #[error("node [{node}] is no member of this cluster; its members are {members}")]
    NotAMember { node: String, members: String },
    #[error("no such index [{index}]{hint}")]
    NoSuchIndex {
        index: String,
        /// Empty, the nearest names, or that another index has its name by now.
        hint: String,
    },
    #[error("no such shard [{index}][{shard}]; the index has {shards}")]
    NoSuchShard { index: String, shard: u32, shards: u32 },
    #[error("no dangling index found for UUID [{uuid}]; GET _dangling lists those that there are")]
    NoDanglingIndex { uuid: String },
    #[error("index [{index}] already exists; delete it first or choose another name")]
    IndexExists { index: String },
    #[error("invalid index name [{index}]: {why}")]
    IndexName { index: String, why: &'static str },
    #[error("invalid alias name [{alias}]: {why}")]
    AliasName { alias: String, why: &'static str },
    #[error(
        "no write index is defined for alias [{alias}]: it has several indices, or one that takes no writes; \
         say which takes them with is_write_index"
    )]
    NoWriteIndex { alias: String },
    #[error("alias [{alias}] has more than one write index: {indices}")]
    ManyWriteIndices { alias: String, indices: String },
    /// The index that was to be rolled over does not take the writes of the alias.
    #[error("[{from}] does not take the writes of the alias [{alias}], but [{now}] does")]
    RolledOver {
        alias: String,
        from: String,
        /// The one that takes the writes; empty for none.
        now: String,
    },
    /// What an operator wants of a copy cannot be done.
    #[error("[{command}] of [{index}][{shard}] cannot be done: {why}")]
    Reroute {
        /// `move`, `cancel` or `allocate_replica`.
        command: &'static str,
        index: String,
        shard: u32,
        why: String,
    },
    #[error("no remote cluster [{alias}]; set cluster.remote.{alias}.seeds first{hint}")]
    NoSuchRemote {
        alias: String,
        /// Empty, or the nearest aliases.
        hint: String,
    },
    #[error(
        "auto-follow pattern [{name}] is missing; GET _ccr/auto_follow shows those that there are"
    )]
    NoAutoFollow { name: String },
    #[error("{} [{name}] missing", kind.replace(' ', "_"))]
    NoTemplate { kind: &'static str, name: String },
    #[error("template [{name}] is refused: {why}")]
    Template { name: String, why: String },
    #[error("[{index}] is not a follower index; make one with PUT {index}/_ccr/follow")]
    NoFollower { index: String },
    #[error("no shard follow tasks for [{index}]: it is paused already")]
    NotFollowing { index: String },
    #[error("[{index}] follows already; pause it first to give it other parameters")]
    Following { index: String },
    /// Only a paused follower can become an index like any other.
    #[error(
        "cannot convert the follower index [{index}] to a non-follower, because it has not been \
         paused; POST {index}/_ccr/pause_follow first"
    )]
    NotPaused { index: String },
    #[error(
        "cannot convert the follower index [{index}] to a non-follower, because it is not recovered \
         from its leader yet; wait for that, or delete it"
    )]
    NotRecovered { index: String },
    #[error("shard [{index}][{shard}] cannot be put in place: {why}")]
    Placement { index: String, shard: u32, why: String },
    #[error("{0}")]
    Mapping(String),
    /// More fields than `index.mapping.total_fields.limit`.
    #[error(
        "Limit of total fields [{limit}] has been exceeded; raise index.mapping.total_fields.limit, or map the object \
         with many fields as \"dynamic\": false"
    )]
    TooManyFields { limit: u32 },
    /// More shards than `cluster.max_shards_per_node` allows on the nodes that are there.
    #[error(
        "Validation Failed: 1: this action would add [{added}] total shards, but this cluster currently has \
         [{now}]/[{most}] maximum shards open; delete indices, add nodes, or raise cluster.max_shards_per_node"
    )]
    TooManyShards { added: u64, now: u64, most: u64 },
    #[error(transparent)]
    Setting(#[from] SettingError),
    #[error(
        "primary term [{found}] of [{index}][{shard}] is over, the term is [{current}]; \
         the sender is no longer the primary and must not acknowledge"
    )]
    StaleTerm { index: String, shard: u32, found: u64, current: u64 },
    #[error("[{index}][{shard}] has no started primary; wait until it has one")]
    NoPrimary { index: String, shard: u32 },
    #[error(
        "[{allocation_id}] is the primary of [{index}][{shard}] and cannot leave the in-sync set; \
         fail the shard instead"
    )]
    PrimaryInSync { index: String, shard: u32, allocation_id: String },
}

impl StateError {
    /// HTTP status and `error.type` with which REST answers, as Elasticsearch does.
    pub fn rest(&self) -> (u16, &'static str) {
        match self {
            StateError::NotAMember { .. } => (403, "not_a_member_exception"),
            StateError::NoSuchIndex { .. } => (404, "index_not_found_exception"),
            StateError::NoSuchShard { .. } => (404, "shard_not_found_exception"),
            StateError::IndexExists { .. } => (400, "resource_already_exists_exception"),
            StateError::IndexName { .. } => (400, "invalid_index_name_exception"),
            StateError::AliasName { .. } => (400, "invalid_alias_name_exception"),
            StateError::ManyWriteIndices { .. } => (400, "illegal_state_exception"),
            StateError::TooManyShards { .. } => (400, "validation_exception"),
            StateError::NoSuchRemote { .. } => (404, "no_such_remote_cluster_exception"),
            StateError::NoAutoFollow { .. } => (404, "resource_not_found_exception"),
            StateError::NoTemplate { .. } => (404, "index_template_missing_exception"),
            StateError::Following { .. } => (400, "resource_already_exists_exception"),
            StateError::StaleTerm { .. } => (409, "no_longer_primary_shard_exception"),
            StateError::NoPrimary { .. } => (503, "no_shard_available_action_exception"),
            _ => (400, "illegal_argument_exception"),
        }
    }
}
