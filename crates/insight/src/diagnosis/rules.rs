//! Every rule in one place, for operators and for the code: what is recognised by what, and what lifts it.
//!
//! The thresholds are the very constants that the code compares with.

use super::Class;

/// A number that a rule compares with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Threshold {
    /// What is compared, in words.
    pub what: &'static str,
    /// With this.
    pub value: f64,
}

/// One row of the table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rule {
    /// The class.
    pub class: Class,
    /// How it shows, in words.
    pub signature: &'static str,
    /// The APIs and fields that are read.
    pub reads: &'static str,
    /// What is compared with what.
    pub thresholds: &'static [Threshold],
    /// The setting or action that lifts it.
    pub lift: &'static str,
    /// The setting's default; empty where there is no setting.
    pub default: &'static str,
    /// The experiment that tells it from its neighbours.
    pub probe: &'static str,
}

const fn at(what: &'static str, value: f64) -> Threshold {
    Threshold { what, value }
}

/// A verdict needs this strength; below it, the answer is unknown.
pub const VERDICT: Threshold = at("strength of a verdict", 0.5);
/// A transfer that takes less than this in all is not worth a finding, in seconds.
pub const SHORT_S: Threshold = at("seconds that a transfer takes in all", 3.0);
/// From this rate on, a transfer that nothing visible holds is healthy rather than unknown: it is past the default
/// throttle.
pub const FAST_BYTES_PER_S: Threshold = at("bytes a second of a node", 45e6);
/// A node's transfers use this much of the limiter's rate when it holds them.
pub const LIMIT_USED: Threshold = at("rate over max_bytes_per_sec", 0.7);
/// Pauses take at least this share of the time when the limiter holds.
pub const LIMIT_PAUSED: Threshold =
    at("throttle time over wall time, source and target summed", 0.03);
/// Pauses over wall time and chunks in flight, where the limiter's rate does not tell.
pub const LIMIT_PAUSED_ALONE: Threshold =
    at("throttle time over wall time x chunks in flight", 0.5);
/// The rate reaches this much of chunk x chunks / round trip when latency holds.
pub const LITTLE_USED: Threshold = at("rate over chunk_size x chunks / round trip", 0.6);
/// The same where cores or disks are busy besides: then only a rate that the round trip explains speaks for it.
pub const LITTLE_USED_BUSY: Threshold = at("the same beside busy cores or disks", 0.8);
/// Without a measured round trip, chunks must take this long for latency to be a guess, in milliseconds.
pub const LITTLE_IMPLIED_MS: Threshold = at("chunk_size x chunks / rate, in ms", 10.0);
/// A part of a node is idle below this.
pub const IDLE: Threshold = at("CPU or disk use of an idle node", 0.7);
/// A core, or all of them, are busy from here on.
pub const CPU_BUSY: Threshold = at("CPU use", 0.9);
/// The process uses this much of what its machine does when the work is its own.
pub const CPU_OWN: Threshold = at("CPU of the process over CPU of its machine", 0.33);
/// A busy neighbour is a suspicion at most this strong: what explains the rate itself comes before it.
pub const NEIGHBOUR: Threshold = at("strength of a busy neighbour", 0.75);
/// A disk is busy from here on.
pub const DISK_BUSY: Threshold = at("fs.io_stats io_time over wall time", 0.8);
/// Recovery bytes are this much of the disk's when the disk is busy with the recovery.
pub const DISK_OWN: Threshold = at("recovery bytes over device bytes", 0.33);
/// A level rate varies less than this around its mean.
pub const LEVEL: Threshold = at("spread of the rate around its mean", 0.15);
/// A fast and near path is full only where the rate is that of a card: this much below a usual one, at most.
pub const CARD: Threshold = at("share below 1, 10, 25 or 100 Gbit/s", 0.12);
/// A node kept from running for this share of the time.
pub const QUOTA: Threshold = at("cgroup time_throttled over wall time", 0.1);
/// Collections for this share of the time.
pub const GC: Threshold = at("GC time over wall time", 0.15);
/// Merges held back for this share of the time.
pub const MERGES: Threshold = at("merge throttle time over wall time", 0.2);
/// A stage that a transfer spends this share of its time in.
pub const STAGE: Threshold = at("share of looks in the stage", 0.5);
/// Operations that a follower may be behind without being called slow.
pub const LAG_OPS: Threshold = at("operations behind the leader", 1000.0);
/// Share of read time that is not the leader's work.
pub const READ_NETWORK: Threshold = at("read time outside of the leader over read time", 0.5);
/// A write buffer of this much of its bound holds reads back.
pub const BUFFER_FULL: Threshold = at("write buffer over max_write_buffer_size", 0.5);
/// A node ranks this much worse than the median of the others.
pub const RANK: Threshold = at("adaptive_selection rank over the median", 4.0);

/// The table.
pub static RULES: [Rule; 20] = [
    Rule {
        class: Class::RateLimit,
        signature: "pauses rise, and the node moves as much as its limiter lets through",
        reads: "_recovery index.{source,target}_throttle_time_in_millis; _nodes/stats \
                indices.recovery.throttle_time_in_millis; _cluster/settings",
        thresholds: &[LIMIT_USED, LIMIT_PAUSED, LIMIT_PAUSED_ALONE],
        lift: "indices.recovery.max_bytes_per_sec (ccr.indices.recovery.max_bytes_per_sec from remote)",
        default: "40mb",
        probe: "limit -20 %: rate -20 %",
    },
    Rule {
        class: Class::Latency,
        signature: "no pauses that bind, CPU and disk idle, rate = chunk x chunks / round trip",
        reads: "_recovery bytes over time; round trips measured through _nodes/stats; _cluster/settings",
        thresholds: &[LITTLE_USED, LITTLE_USED_BUSY, LITTLE_IMPLIED_MS, IDLE],
        lift: "max_concurrent_file_chunks, then chunk_size",
        default: "2 and 512kb; from remote 5 and 1mb",
        probe: "chunks x2: rate x2",
    },
    Rule {
        class: Class::Bandwidth,
        signature: "near nodes or chunks enough, no pauses, CPU and disk idle, and the rate is level",
        reads: "_nodes/stats transport.{rx,tx}_size_in_bytes; _recovery bytes over time",
        thresholds: &[LEVEL, LITTLE_USED, IDLE, CARD],
        lift: "the link; with a cap for each flow, transport.connections_per_node.recovery",
        default: "2",
        probe: "1 against 8 streams",
    },
    Rule {
        class: Class::OperationReplay,
        signature: "the stage is TRANSLOG most of the time",
        reads: "_recovery stage, translog.{recovered,total}",
        thresholds: &[STAGE],
        lift: "indices.recovery.max_concurrent_operations",
        default: "1",
        probe: "operations 1 to 2",
    },
    Rule {
        class: Class::AllocationSlots,
        signature: "copies wait, the decider \"throttling\" says so, and what has a slot is not held elsewhere",
        reads: "_cluster/allocation/explain deciders; _cat/shards",
        thresholds: &[],
        lift: "cluster.routing.allocation.node_concurrent_recoveries",
        default: "2",
        probe: "one more slot: does the total rise?",
    },
    Rule {
        class: Class::AllocationBlock,
        signature: "copies wait, and deciders say NO on every node",
        reads: "_cluster/allocation/explain node_allocation_decisions",
        thresholds: &[],
        lift: "what the decider asks for: room on disks, filters, _cluster/reroute?retry_failed",
        default: "",
        probe: "_cluster/reroute?dry_run",
    },
    Rule {
        class: Class::Disk,
        signature: "the disk is busy nearly all the time, mostly with the transfer's bytes",
        reads: "_nodes/stats fs.io_stats.total.{io_time_in_millis,read_kilobytes,write_kilobytes}",
        thresholds: &[DISK_BUSY, DISK_OWN],
        lift: "the device, its scheduler, its IOPS",
        default: "",
        probe: "chunks up gives nothing",
    },
    Rule {
        class: Class::Cpu,
        signature: "all cores of the source or of the target are busy",
        reads: "_nodes/stats os.cpu.percent, process.cpu.total_in_millis",
        thresholds: &[CPU_BUSY],
        lift: "more cores, or less work on the node",
        default: "",
        probe: "chunks up gives nothing",
    },
    Rule {
        class: Class::ThreadCpu,
        signature: "one thread in TLS, compression or the event loop, while other cores are free",
        reads: "_nodes/hot_threads frames; _nodes/stats os.cpu.percent, process.cpu.total_in_millis",
        thresholds: &[CPU_BUSY],
        lift: "max_concurrent_file_chunks, transport.compress",
        default: "2",
        probe: "chunks up gains at low latency",
    },
    Rule {
        class: Class::CpuQuota,
        signature: "the control group keeps the node from running",
        reads: "_nodes/stats os.cgroup.cpu.stat.time_throttled_nanos",
        thresholds: &[QUOTA],
        lift: "the quota (cpu.max, limits.cpu)",
        default: "",
        probe: "raise the quota",
    },
    Rule {
        class: Class::Gc,
        signature: "collections take much of the time",
        reads: "_nodes/stats jvm.gc.collectors.*.collection_time_in_millis",
        thresholds: &[GC],
        lift: "heap; smaller chunks x fewer of them",
        default: "",
        probe: "dips align with pauses",
    },
    Rule {
        class: Class::Memory,
        signature: "breakers trip, or indexing pressure refuses requests",
        reads: "_nodes/stats breakers.*.tripped, indexing_pressure.memory.total.*_rejections",
        thresholds: &[],
        lift: "indexing_pressure.memory.limit, heap",
        default: "10%",
        probe: "a lull in indexing",
    },
    Rule {
        class: Class::MergeThrottle,
        signature: "merges hold indexing back while operations are replayed or followed",
        reads: "_nodes/stats indices.indexing.is_throttled, indices.merges.total_throttled_time_in_millis",
        thresholds: &[MERGES],
        lift: "index.merge.scheduler.max_thread_count",
        default: "max(1, min(4, cores / 2))",
        probe: "a lull in indexing",
    },
    Rule {
        class: Class::NoisyNeighbour,
        signature: "the disk or the cores are busy, and mostly not with this",
        reads: "_nodes/stats fs.io_stats.total.*_kilobytes, os.cpu.percent, process.cpu.total_in_millis, \
                 indices.search.query_total, indexing.index_total",
        thresholds: &[DISK_BUSY, DISK_OWN, CPU_BUSY, CPU_OWN, NEIGHBOUR],
        lift: "move or cap the neighbour",
        default: "",
        probe: "a control recovery elsewhere",
    },
    Rule {
        class: Class::FollowerReader,
        signature: "the lag does not fall, reads are all under way, and most of their time is not the leader's",
        reads: "_ccr/stats total_read_time_millis, total_read_remote_exec_time_millis, outstanding_read_requests",
        thresholds: &[LAG_OPS, READ_NETWORK],
        lift: "max_outstanding_read_requests, max_read_request_size (follow parameters)",
        default: "12 and 32mb",
        probe: "double the reads",
    },
    Rule {
        class: Class::FollowerWriter,
        signature: "the lag does not fall, and what was read waits to be written",
        reads: "_ccr/stats write_buffer_size_in_bytes, write_buffer_operation_count",
        thresholds: &[LAG_OPS, BUFFER_FULL],
        lift: "max_outstanding_write_requests (follow parameter), the follower's disks and cores",
        default: "9",
        probe: "double the reads: nothing gained",
    },
    Rule {
        class: Class::FollowerStopped,
        signature: "a fatal exception",
        reads: "_ccr/stats fatal_exception",
        thresholds: &[],
        lift: "resume_follow after its cause is gone; follow anew where operations or history are lost",
        default: "",
        probe: "",
    },
    Rule {
        class: Class::Proxy,
        signature: "the remote cluster is reached by proxy, with fewer sockets than there should be",
        reads: "_remote/info mode, num_proxy_sockets_connected, max_proxy_socket_connections",
        thresholds: &[],
        lift: "cluster.remote.<alias>.proxy_socket_connections",
        default: "18",
        probe: "direct against proxied",
    },
    Rule {
        class: Class::ReplicaRouting,
        signature: "one node ranks far worse than the others, and searches are spread without looking",
        reads: "_nodes/stats adaptive_selection.*.rank; cluster.routing.use_adaptive_replica_selection",
        thresholds: &[RANK],
        lift: "cluster.routing.use_adaptive_replica_selection",
        default: "true",
        probe: "preference A/B",
    },
    Rule {
        class: Class::Unknown,
        signature: "slow, and nothing that REST shows is near a limit",
        reads: "all of the above",
        thresholds: &[VERDICT, SHORT_S, FAST_BYTES_PER_S],
        lift: "look longer, or from the other cluster too; --probe where the cluster may be changed",
        default: "",
        probe: "brake each limit by 20 %",
    },
];

/// The row of a class.
pub fn rule(class: Class) -> &'static Rule {
    // Every class has a row; a test says so.
    RULES.iter().find(|rule| rule.class == class).unwrap_or(&RULES[RULES.len() - 1])
}
