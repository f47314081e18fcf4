//! The numbers that judges compare with, and those that several judges share.
//!
//! A judge holds no number of its own: each is a [`Threshold`], declared in the file of its cause or here, and stands
//! in the rule of every cause that compares with it, which `narrows explain --rules` prints. A test reads the sources
//! of the judges and fails on a number that is not in their rule (`tests/it/thresholds.rs`).

/// A number that a judge compares with, or that a strength or a gain is reckoned from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Threshold {
    /// What the number is, in words.
    pub what: &'static str,
    /// The number.
    pub value: f64,
}

pub(crate) const fn at(what: &'static str, value: f64) -> Threshold {
    Threshold { what, value }
}

impl Threshold {
    /// A strength between this one and 1, for a share of 0 to 1.
    pub(crate) fn up_to_one(self, share: f64) -> f64 {
        self.value + share.min(1.0) * (1.0 - self.value)
    }

    /// A strength between 0 and this one, for a share of 0 to 1.
    pub(crate) fn at_most(self, share: f64) -> f64 {
        share.min(1.0) * self.value
    }
}

/// A verdict needs this strength; below it, the answer is unknown.
pub(crate) const VERDICT: Threshold = at("strength of a verdict", 0.5);
/// A recovery that takes less than this in all is not worth a finding.
pub(crate) const SHORT_S: Threshold = at("seconds that a recovery takes in all", 3.0);
/// A recovery that was seen for less than this is not judged, even where copies wait for a slot.
pub(crate) const JUDGED_MS: Threshold = at("milliseconds for which it was seen", 300.0);
/// From this rate on, one way, a recovery that nothing visible holds is healthy rather than unknown: it is past the
/// default throttle.
pub(crate) const FAST_BYTES_PER_S: Threshold =
    at("bytes a second one way of a node that is fast", 45e6);
/// Source and target move the same where their rates differ by no more than this share.
pub(crate) const SAME_RATE: Threshold = at("share by which the rates of both ends differ", 0.05);
/// Two nodes are near each other below this round trip: it explains no rate then.
pub(crate) const NEAR_MS: Threshold = at("round trip of near nodes, in ms", 1.0);
/// A node is idle while its cores and its disk are used less than this.
pub(crate) const IDLE: Threshold = at("CPU or disk use of an idle node", 0.7);
/// A recovery replays operations where at least this share of the looks found it in that stage.
pub(crate) const STAGE: Threshold = at("share of looks in the stage", 0.5);

/// The limiter of a node holds its recoveries where they use this much of its rate.
pub(crate) const LIMIT_USED: Threshold = at("rate over max_bytes_per_sec", 0.7);
/// Pauses take at least this share of the time where the limiter holds.
pub(crate) const LIMIT_PAUSED: Threshold =
    at("throttle time over wall time, source and target summed", 0.03);
/// Nearly all of the limiter's rate: whatever little pauses is held by it. Below, chunks that come in bursts pause,
/// too, and the limiter holds only where lifting it would bring something: chunks are faster without their pauses.
pub(crate) const LIMIT_FULL: Threshold =
    at("rate over max_bytes_per_sec, from which on any pauses count", 0.9);
pub(crate) const LIMIT_COSTS: Threshold =
    at("throttle time over wall time x chunks in flight, where less of the rate is used", 0.15);
/// Pauses over wall time and chunks in flight, where the limiter's rate does not tell.
pub(crate) const PAUSED_ALONE: Threshold =
    at("throttle time over wall time x chunks in flight", 0.5);
/// The limiter that is met first hides the other one, which hardly pauses then.
pub(crate) const HIDES: Threshold =
    at("pauses of one end over those of the other that moves the same, to tell which holds", 2.0);
/// Where no pauses are told, the rate alone must be this close to the limit.
pub(crate) const USED_ALONE: Threshold = at("the same where pauses are not told", 0.9);
/// A cluster lists the default of the node that answered. A node that moves so many times as much obeys another limit:
/// its own file sets one (`node.bandwidth.recovery.*`, or the same setting).
pub(crate) const PASSES: Threshold =
    at("rate over a limit that nobody set for all nodes, from which on a node has another", 1.3);
/// A limit that holds is raised by this at least.
pub(crate) const RAISE_MIN: Threshold = at("times the limit to try, at least", 2.0);
/// Latency holds where the rate reaches this much of chunk size x chunks / round trip.
pub(crate) const LITTLE_USED: Threshold = at("rate over chunk_size x chunks / round trip", 0.6);

/// A node stands still for a part of the time where so many of its answers are later than those to a second question by
/// this much, though its cores are free: no counter tells of it.
pub(crate) const LATE_MS: Threshold = at("ms by which an answer is later than the next", 100.0);
pub(crate) const LATE_SHARE: Threshold = at("share of a node's answers that are late", 0.2);
pub(crate) const LATE_ANSWERS: Threshold = at("late answers, at least", 3.0);

/// Cores that something else keeps busy hold a recovery where the node answers so late: a chunk waits for cores at one
/// end about as long as a question does.
pub(crate) const CORES_ANSWER: Threshold = at(
    "time of an answer over time of a chunk, from which on cores that something else keeps busy are the bottleneck",
    0.25,
);

/// A core, or all of them, are busy from here on.
pub(crate) const CPU_BUSY: Threshold = at("CPU use", 0.9);
/// The work is the node's own where its process uses this much of what its machine does.
pub(crate) const CPU_OWN: Threshold = at("CPU of the process over CPU of its machine", 0.33);
/// A disk is busy from here on.
pub(crate) const DISK_BUSY: Threshold = at("fs.io_stats io_time over wall time", 0.8);
/// The disk is busy with the recovery where the recovery's bytes are this much of the device's.
pub(crate) const DISK_OWN: Threshold = at("recovery bytes over device bytes", 0.33);
/// A node that is held for a share of the time is reckoned to be held for no more than this, so that a gain is finite.
pub(crate) const GIVEN_BACK: Threshold = at("share of the time that a gain counts at most", 0.9);

/// Cores or a disk count as the next limit where they are busy for this share of the time already.
pub(crate) const NEAR_USE: Threshold =
    at("use of cores or a disk that counts as the next limit", 0.1);
/// A disk that holds is busy for no more than this where a source reads and sends in one line: it idles while that
/// sends, or until the kernel has another part to write. Those that held OpenSearch were busy 84 to 94 % of the time.
pub(crate) const IN_LINE_USE: Threshold =
    at("use of a disk that holds chunks which are sent one after another", 0.9);
/// The path counts as the next limit where it is reckoned to be used for this share of the time, and for no more than
/// all of it.
pub(crate) const NEAR_PATH: Threshold = at("use of the path that counts as the next limit", 0.2);
/// How long chunks take is told by as many as are in flight at once, this many times over: one more or less at either
/// end of what was seen counts little then.
pub(crate) const ROUNDS: Threshold =
    at("chunks that came over those in flight, to tell how long one takes", 8.0);

/// Operations that a follower may lack without being called slow.
pub(crate) const LAG_OPS: Threshold = at("operations behind the leader", 1000.0);
/// A follower whose lag falls so fast that it is soon gone catches up, and needs no help.
pub(crate) const CATCHES_UP_S: Threshold =
    at("seconds until a lag that falls is gone, at most, to catch up", 180.0);
/// Over a long path thousands of operations are always on their way to a follower of a busy index. One keeps up that is
/// behind by less than its leader is written in so long, and that does not fall back by as much as the second says.
pub(crate) const LAG_S: Threshold = at("seconds of its leader's writes behind", 3.0);
pub(crate) const FALLS_BACK: Threshold =
    at("operations by which the lag grows over those that its leader is written", 0.1);

/// A follower that is behind asks for more at once. One of which nothing fails and that has asked for nothing for so
/// long stands still. Where its reads are under way, a path that carries little may keep each for longer.
pub(crate) const STILL_S: Threshold =
    at("seconds for which a follower that is behind asks for nothing", 5.0);
pub(crate) const SILENT_S: Threshold = at("the same while reads are under way", 180.0);

/// A DCP connection that is behind by less than this is well.
pub(crate) const BEHIND_S: Threshold = at("seconds by which a DCP connection is behind", 3.0);
/// Servers held replication back from so many items on (`replication_throttle_queue_cap`), before they went by memory.
pub(crate) const DISK_QUEUE: Threshold = at("items that wait for a node's disk", 1e6);
/// What a producer waits for holds its connection where it waits for this much of the time.
pub(crate) const PAUSED_FOR: Threshold = at("time that a producer waits over wall time", 0.5);
/// A producer whose window is full for most of the time is held by its disk all the same where it has nothing ready for
/// this much of it, though items are left and its streams read from disk. What is read comes in parts, and whoever
/// takes a part more slowly than it is sent fills the window; if the consumer held, something would always be ready.
pub(crate) const STARVED: Threshold =
    at("time that a producer that reads from disk has nothing ready, over wall time", 0.2);
/// A window is full from here on.
pub(crate) const WINDOW_FULL: Threshold = at("unacked_bytes over max_buffer_bytes", 0.9);
/// A full window holds a connection where at least this share of the looks found it full: from ten seconds on, servers
/// tell pauses to a second.
pub(crate) const WINDOW_LOOKS: Threshold = at("share of the looks with a full window", 0.3);
