//! What a primary knows of the other copies of its shard.

/// What the other copies of a follower may have that their primary has not: a primary that was promoted, or reopened
/// after it lost what was not synced, gets it from the leader again, unless following ends before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum FollowedCopies {
    /// Nothing: all that they have came from it.
    #[default]
    Equal,
    /// It was promoted or reopened, and did not read from the leader since.
    BeforeRead,
    /// Nothing above the leader's highest operation as it was then: what the leader gave is on all of its copies in
    /// sync, so on whichever is its primary. One that was opened anew may say a lower global checkpoint than before.
    UpTo(Option<u64>),
    /// Following ended while they might differ: they recover from the primary, by files alone.
    Replaced,
}

impl FollowedCopies {
    /// Whether they may have what a primary with this local checkpoint has not.
    pub(crate) fn may_differ(self, local_checkpoint: Option<u64>) -> bool {
        match self {
            FollowedCopies::Equal => false,
            FollowedCopies::BeforeRead | FollowedCopies::Replaced => true,
            FollowedCopies::UpTo(leader) => local_checkpoint < leader,
        }
    }

    pub(crate) fn after_read(self, leader_max_seq_no: Option<u64>) -> FollowedCopies {
        match self {
            FollowedCopies::BeforeRead => FollowedCopies::UpTo(leader_max_seq_no),
            other => other,
        }
    }
}

/// What a primary knows of another copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tracked {
    pub(crate) local_checkpoint: Option<u64>,
    /// The operation that it would read from if it became the primary of a follower; none while it was told nothing.
    pub(crate) needs_from: Option<u64>,
    /// New writes go to it.
    pub(crate) tracked: bool,
    /// How many tries to recover came before the one for which they do.
    pub(crate) retries: u64,
    /// It is about to be in sync: the global checkpoint waits for it already.
    pub(crate) pending_in_sync: bool,
}
