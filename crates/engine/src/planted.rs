//! Faults that tests put into the virtual world, to see whether checkers find them ([`world::Env::plant`]).

/// Declares faults, and the list of all of them.
macro_rules! planted {
    ($(#[$about:meta])* $list:ident { $($(#[$each:meta])* $name:ident = $text:literal;)+ }) => {
        $($(#[$each])* pub const $name: &str = $text;)+
        $(#[$about])*
        pub const $list: &[&str] = &[$($name),+];
    };
}

planted! {
    /// All that random runs with faults must find, or a history of their own where these hardly ever meet them.
    ALL {
        /// A replica that fails a write is not taken out of the copies in sync, and the write is acknowledged all the
        /// same.
        FAILED_REPLICA_IGNORED = "engine: a replica's failure is ignored";
        /// A copy in sync that is on no node stays in sync when a write is acknowledged.
        MISSING_COPY_STAYS_IN_SYNC = "engine: a missing copy stays in sync";
        /// Nobody says how far the copies on a disk go, and what they know of the others.
        EXTENTS_UNSAID = "engine: how far copies go is not said";
        /// A write looks for copies that are on no node once its replicas have answered: by a state that may have
        /// another primary.
        MISSING_COPIES_OF_LATER = "engine: missing copies are those of a later state";
        /// The manager is not told of a failed copy once the write has given up.
        STALE_COPY_FORGOTTEN = "engine: a failed copy is forgotten when its write gives up";
        /// A copy that failed a write gets no more of them, and the global checkpoint does not wait for it, before the
        /// manager knows.
        FAILED_COPY_UNTRACKED = "engine: a failed copy is left behind before the manager knows";
        /// A write is acknowledged before the primary's log is synced.
        ACKNOWLEDGED_BEFORE_SYNC = "engine: acknowledged before the primary's sync";
        /// A write is acknowledged before its replicas answered.
        ACKNOWLEDGED_BEFORE_REPLICAS = "engine: acknowledged before the replicas";
        /// A replica answers before its log is synced.
        REPLICA_NOT_SYNCED = "engine: a replica does not sync";
        /// A replica takes operations from a primary whose term is over.
        OLD_TERM_ACCEPTED = "engine: a replica heeds no terms";
        /// A write ends with the connection that asked for it.
        WRITE_STOPS_HALF_WAY = "engine: a write stops half way";
        /// A write that may have been done is answered as refused.
        REFUSED_WHAT_MAY_BE_DONE = "engine: what may be done is refused";
        /// A write that is sent again is answered with its own conflict.
        CONFLICT_WITH_ITSELF = "engine: a write conflicts with itself";
        /// Another copy that becomes the primary goes on beside copies that may have something else.
        PROMOTION_LEAVES_COPIES = "engine: a promotion leaves the other copies as they are";
        /// Places that an old primary gave and nobody has stay empty.
        GAPS_STAY = "engine: a new primary leaves gaps";
        /// The global checkpoint is the primary's own.
        CHECKPOINT_OF_ONE_COPY = "engine: the global checkpoint is the primary's own";
        /// The global checkpoint does not wait for a copy that is about to be in sync.
        JOINING_COPY_NOT_COUNTED = "engine: a joining copy is not counted";
        /// A copy that is being brought up gets no writes.
        TRACKED_COPY_LEFT_OUT = "engine: a tracked copy gets no writes";
        /// A copy of an earlier term goes on with what it has.
        OWN_COPY_TRUSTED = "engine: a copy of an earlier term is trusted";
        /// Sessions are numbered from 1 on after every start.
        SESSIONS_BEGIN_AGAIN = "engine: session numbers begin again";
        /// A node that missed a state learns of it by the next one alone.
        STATE_MISSED = "engine: a state that was missed stays missed";
        /// A follower's lease does not keep what a read asks for that is still to be tried again.
        LEASE_LEAVES_READS = "engine: a lease leaves reads behind";
        /// A copy that is open is reported once, although the manager has it opened again.
        STARTED_ONCE = "engine: a copy that is open is not reported again";
        /// The manager publishes what it did not write.
        STATE_NOT_WRITTEN = "engine: the manager does not write the state";
        /// A recovery from remote gets what not every copy of the leader has.
        REMOTE_BEYOND_CHECKPOINT = "engine: a remote recovery reads beyond the checkpoint";
        /// A follower gets what not every copy of the leader has.
        CHANGES_BEYOND_CHECKPOINT = "engine: a follower reads beyond the checkpoint";
        /// A follower goes on after the highest operation that it has, and not after the last that every copy has.
        CHECKPOINT_SKIPPED = "engine: a follower skips its checkpoint";
        /// The second operation of each page of changes is lost, and nobody looks for holes.
        CHANGE_SKIPPED = "engine: a page of changes loses an operation";
        /// A read of a follower that failed keeps its place among those that may be under way at once
        /// (`max_outstanding_read_requests`), and is not sent again.
        WINDOW_MISCOUNTED = "engine: a failed read keeps its place in the window";
        /// A follower's primary does not send what it wrote before.
        FOLLOWED_REPEATS_NOT_SENT = "engine: a follower's repeats are not sent to its replicas";
        /// A follower's primary sends its replicas nothing.
        FOLLOWED_NOT_SENT = "engine: a follower's primary sends its replicas nothing";
        /// Following ends without any care for what copies lack.
        UNFOLLOW_LEAVES_GAPS = "engine: the end of following leaves gaps";
        /// A primary takes writes while it has still to end its following: other copies may have operations in their
        /// places.
        WRITTEN_BEFORE_THE_END = "engine: a primary is written before following has ended";
        /// A follower's primary that was opened anew gives other clusters what a copy in sync may lack.
        CHECKPOINT_NOT_CONFIRMED = "engine: a reopened follower gives what a copy in sync may lack";
        /// A primary that is lost before it counts as started leaves its term to the next one.
        TERM_LEFT_TO_ANOTHER = "engine: a primary that was never started leaves its term";
        /// What a leader gave a follower is bounded by its global checkpoint, which is lower once it was opened anew.
        LEADER_BOUND_BY_CHECKPOINT = "engine: what a leader gave ends at its checkpoint";
        /// A write whose shard is in the state no more is sent to no copy, and acknowledged.
        ACKNOWLEDGED_WITHOUT_SHARD = "engine: acknowledged although the shard is gone";
        /// A try to recover that comes late ends the tracking of its copy, which a later try began.
        LATE_TRY_UNTRACKS = "engine: a late try untracks its copy";
        /// A replica syncs by the durability that it has heard of, whatever its primary goes by.
        DURABILITY_UNHEARD = "engine: a replica goes by the durability that it knows";
        /// A copy takes a list of leases that comes after a later one.
        OLD_LEASES_TAKEN = "engine: an older list of leases is taken";
        /// A primary that has handed over says of copies that a refresh of them counts.
        HANDED_OVER_AND_COUNTING = "engine: a primary that has handed over counts copies";
        /// Leases are gone after a restart.
        LEASES_FORGOTTEN = "engine: a restart forgets the leases";
        /// A lease is kept by the primary in memory, and nothing is kept for it.
        LEASE_KEEPS_NOTHING = "engine: a lease keeps nothing";
        /// A search answers with the shards that answered, and says that they are all.
        FAILED_SHARD_UNSAID = "engine: a search does not say that a shard failed";
        /// A search asks a copy before it has everything.
        SEARCHED_BEFORE_STARTED = "engine: a search reads a copy that is still recovering";
    }
}

planted! {
    /// All that random runs in which copies are moved must find.
    OF_MOVES {
        /// A primary that is moved hands over while operations run.
        HAND_OFF_WAITS_FOR_NOTHING = "engine: a hand-off waits for no operations";
        /// A primary that has handed over takes operations, and acknowledges them.
        HANDED_OVER_AND_TAKEN = "engine: a primary that has handed over takes writes";
        /// The target of a primary is reported as started before the primary has handed over.
        STARTED_BEFORE_HAND_OFF = "engine: a target is started before the hand-off";
        /// A primary that hands over gives its target no leases.
        HAND_OFF_WITHOUT_LEASES = "engine: a hand-off leaves the leases behind";
    }
}
