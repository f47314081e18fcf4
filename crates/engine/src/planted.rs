//! Faults that tests put into the virtual world, to see whether checkers find them ([`world::Env::plant`]).

/// A replica that fails a write is not taken out of the copies in sync, and the write is acknowledged all the same.
pub const FAILED_REPLICA_IGNORED: &str = "engine: a replica's failure is ignored";
/// A copy in sync that is on no node stays in sync when a write is acknowledged.
pub const MISSING_COPY_STAYS_IN_SYNC: &str = "engine: a missing copy stays in sync";
/// Nobody says how far the copies on a disk go, and what they know of the others.
pub const EXTENTS_UNSAID: &str = "engine: how far copies go is not said";
/// A write looks for copies that are on no node once its replicas have answered: by a state that may have another
/// primary.
pub const MISSING_COPIES_OF_LATER: &str = "engine: missing copies are those of a later state";
/// The manager is not told of a failed copy once the write has given up.
pub const STALE_COPY_FORGOTTEN: &str = "engine: a failed copy is forgotten when its write gives up";
/// A copy that failed a write gets no more of them, and the global checkpoint does not wait for it, before the manager
/// knows.
pub const FAILED_COPY_UNTRACKED: &str =
    "engine: a failed copy is left behind before the manager knows";
/// A write is acknowledged before the primary's log is synced.
pub const ACKNOWLEDGED_BEFORE_SYNC: &str = "engine: acknowledged before the primary's sync";
/// A write is acknowledged before its replicas answered.
pub const ACKNOWLEDGED_BEFORE_REPLICAS: &str = "engine: acknowledged before the replicas";
/// A replica answers before its log is synced.
pub const REPLICA_NOT_SYNCED: &str = "engine: a replica does not sync";
/// A replica takes operations from a primary whose term is over.
pub const OLD_TERM_ACCEPTED: &str = "engine: a replica heeds no terms";
/// A write ends with the connection that asked for it.
pub const WRITE_STOPS_HALF_WAY: &str = "engine: a write stops half way";
/// A write that may have been done is answered as refused.
pub const REFUSED_WHAT_MAY_BE_DONE: &str = "engine: what may be done is refused";
/// A write that is sent again is answered with its own conflict.
pub const CONFLICT_WITH_ITSELF: &str = "engine: a write conflicts with itself";
/// Another copy that becomes the primary goes on beside copies that may have something else.
pub const PROMOTION_LEAVES_COPIES: &str = "engine: a promotion leaves the other copies as they are";
/// Places that an old primary gave and nobody has stay empty.
pub const GAPS_STAY: &str = "engine: a new primary leaves gaps";
/// The global checkpoint is the primary's own.
pub const CHECKPOINT_OF_ONE_COPY: &str = "engine: the global checkpoint is the primary's own";
/// The global checkpoint does not wait for a copy that is about to be in sync.
pub const JOINING_COPY_NOT_COUNTED: &str = "engine: a joining copy is not counted";
/// A copy that is being brought up gets no writes.
pub const TRACKED_COPY_LEFT_OUT: &str = "engine: a tracked copy gets no writes";
/// A copy of an earlier term goes on with what it has.
pub const OWN_COPY_TRUSTED: &str = "engine: a copy of an earlier term is trusted";
/// Sessions are numbered from 1 on after every start.
pub const SESSIONS_BEGIN_AGAIN: &str = "engine: session numbers begin again";
/// A node that missed a state learns of it by the next one alone.
pub const STATE_MISSED: &str = "engine: a state that was missed stays missed";
/// A follower's lease does not keep what a read asks for that is still to be tried again.
pub const LEASE_LEAVES_READS: &str = "engine: a lease leaves reads behind";
/// A copy that is open is reported once, although the manager has it opened again.
pub const STARTED_ONCE: &str = "engine: a copy that is open is not reported again";
/// The manager publishes what it did not write.
pub const STATE_NOT_WRITTEN: &str = "engine: the manager does not write the state";
/// A recovery from remote gets what not every copy of the leader has.
pub const REMOTE_BEYOND_CHECKPOINT: &str = "engine: a remote recovery reads beyond the checkpoint";
/// A follower gets what not every copy of the leader has.
pub const CHANGES_BEYOND_CHECKPOINT: &str = "engine: a follower reads beyond the checkpoint";
/// A follower goes on after the highest operation that it has, and not after the last that every copy has.
pub const CHECKPOINT_SKIPPED: &str = "engine: a follower skips its checkpoint";
/// The second operation of each page of changes is lost, and nobody looks for holes.
pub const CHANGE_SKIPPED: &str = "engine: a page of changes loses an operation";
/// A read of a follower that failed keeps its place among those that may be under way at once
/// (`max_outstanding_read_requests`), and is not sent again.
pub const WINDOW_MISCOUNTED: &str = "engine: a failed read keeps its place in the window";
/// A follower's primary does not send what it wrote before.
pub const FOLLOWED_REPEATS_NOT_SENT: &str =
    "engine: a follower's repeats are not sent to its replicas";
/// A follower's primary sends its replicas nothing.
pub const FOLLOWED_NOT_SENT: &str = "engine: a follower's primary sends its replicas nothing";
/// Following ends without any care for what copies lack.
pub const UNFOLLOW_LEAVES_GAPS: &str = "engine: the end of following leaves gaps";
/// A primary takes writes while it has still to end its following: other copies may have operations in their places.
pub const WRITTEN_BEFORE_THE_END: &str = "engine: a primary is written before following has ended";
/// A follower's primary that was opened anew gives other clusters what a copy in sync may lack.
pub const CHECKPOINT_NOT_CONFIRMED: &str =
    "engine: a reopened follower gives what a copy in sync may lack";
/// A primary that is lost before it counts as started leaves its term to the next one.
pub const TERM_LEFT_TO_ANOTHER: &str = "engine: a primary that was never started leaves its term";
/// What a leader gave a follower is bounded by its global checkpoint, which is lower once it was opened anew.
pub const LEADER_BOUND_BY_CHECKPOINT: &str = "engine: what a leader gave ends at its checkpoint";
/// A write whose shard is in the state no more is sent to no copy, and acknowledged.
pub const ACKNOWLEDGED_WITHOUT_SHARD: &str = "engine: acknowledged although the shard is gone";
/// A try to recover that comes late ends the tracking of its copy, which a later try began.
pub const LATE_TRY_UNTRACKS: &str = "engine: a late try untracks its copy";
/// A replica syncs by the durability that it has heard of, whatever its primary goes by.
pub const DURABILITY_UNHEARD: &str = "engine: a replica goes by the durability that it knows";
/// A copy that has taken over from its primary takes that one's leases, too.
pub const LATE_LEASES_TAKEN: &str = "engine: late leases reach who has taken over";
/// A primary that has handed over says of copies that a refresh of them counts.
pub const HANDED_OVER_AND_COUNTING: &str = "engine: a primary that has handed over counts copies";
/// Leases are gone after a restart.
pub const LEASES_FORGOTTEN: &str = "engine: a restart forgets the leases";
/// A lease is kept by the primary in memory, and nothing is kept for it.
pub const LEASE_KEEPS_NOTHING: &str = "engine: a lease keeps nothing";
/// A search answers with the shards that answered, and says that they are all.
pub const FAILED_SHARD_UNSAID: &str = "engine: a search does not say that a shard failed";
/// A search asks a copy before it has everything.
pub const SEARCHED_BEFORE_STARTED: &str = "engine: a search reads a copy that is still recovering";

/// A primary that is moved hands over while operations run.
pub const HAND_OFF_WAITS_FOR_NOTHING: &str = "engine: a hand-off waits for no operations";
/// A primary that has handed over takes operations, and acknowledges them.
pub const HANDED_OVER_AND_TAKEN: &str = "engine: a primary that has handed over takes writes";
/// The target of a primary is reported as started before the primary has handed over.
pub const STARTED_BEFORE_HAND_OFF: &str = "engine: a target is started before the hand-off";
/// A primary that hands over gives its target no leases.
pub const HAND_OFF_WITHOUT_LEASES: &str = "engine: a hand-off leaves the leases behind";

/// All that random runs with faults must find, or a history of their own where these hardly ever meet them.
pub const ALL: &[&str] = &[
    FAILED_REPLICA_IGNORED,
    MISSING_COPY_STAYS_IN_SYNC,
    MISSING_COPIES_OF_LATER,
    EXTENTS_UNSAID,
    STALE_COPY_FORGOTTEN,
    FAILED_COPY_UNTRACKED,
    ACKNOWLEDGED_BEFORE_SYNC,
    ACKNOWLEDGED_BEFORE_REPLICAS,
    REPLICA_NOT_SYNCED,
    OLD_TERM_ACCEPTED,
    WRITE_STOPS_HALF_WAY,
    REFUSED_WHAT_MAY_BE_DONE,
    CONFLICT_WITH_ITSELF,
    PROMOTION_LEAVES_COPIES,
    GAPS_STAY,
    CHECKPOINT_OF_ONE_COPY,
    JOINING_COPY_NOT_COUNTED,
    TRACKED_COPY_LEFT_OUT,
    OWN_COPY_TRUSTED,
    SESSIONS_BEGIN_AGAIN,
    STATE_MISSED,
    LEASE_LEAVES_READS,
    STARTED_ONCE,
    STATE_NOT_WRITTEN,
    REMOTE_BEYOND_CHECKPOINT,
    CHANGES_BEYOND_CHECKPOINT,
    CHECKPOINT_SKIPPED,
    CHANGE_SKIPPED,
    WINDOW_MISCOUNTED,
    FOLLOWED_REPEATS_NOT_SENT,
    FOLLOWED_NOT_SENT,
    UNFOLLOW_LEAVES_GAPS,
    WRITTEN_BEFORE_THE_END,
    CHECKPOINT_NOT_CONFIRMED,
    TERM_LEFT_TO_ANOTHER,
    LEADER_BOUND_BY_CHECKPOINT,
    ACKNOWLEDGED_WITHOUT_SHARD,
    LATE_TRY_UNTRACKS,
    DURABILITY_UNHEARD,
    LATE_LEASES_TAKEN,
    HANDED_OVER_AND_COUNTING,
    LEASES_FORGOTTEN,
    LEASE_KEEPS_NOTHING,
    FAILED_SHARD_UNSAID,
    SEARCHED_BEFORE_STARTED,
];

/// All that random runs in which copies are moved must find.
pub const OF_MOVES: &[&str] = &[
    HAND_OFF_WAITS_FOR_NOTHING,
    HANDED_OVER_AND_TAKEN,
    STARTED_BEFORE_HAND_OFF,
    HAND_OFF_WITHOUT_LEASES,
];
