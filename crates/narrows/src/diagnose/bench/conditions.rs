//! What two nodes and the path between them are like, what is injected there, and what lifts it. Plain data.

use std::collections::BTreeMap;
use std::time::Duration;

use record::units::show_size_setting;
use world::LinkConfig;
use world::model::{DiskScheduler, Host};

use super::cause::{Cause, Load, Oddity};
use crate::diagnose::LIMIT;
use crate::diagnose::bed::{FAR, NEAR};

pub(crate) const CHUNKS: &str = "indices.recovery.max_concurrent_file_chunks";
pub(crate) const CHUNK: &str = "indices.recovery.chunk_size";
pub(crate) const SLOTS: &str = "cluster.routing.allocation.node_concurrent_recoveries";
const ENABLE: &str = "cluster.routing.allocation.enable";
pub(crate) const EXCLUDE: &str = "cluster.routing.allocation.exclude._name";
/// A setting of OpenSearch alone: the embedded engine replays one batch at a time.
pub(crate) const OPERATIONS: &str = "indices.recovery.max_concurrent_operations";
/// Every setting that conditions name, on any engine.
const NAMES: [&str; 6] = [LIMIT, CHUNKS, CHUNK, SLOTS, ENABLE, EXCLUDE];

/// The share of the rate that a severity leaves, about.
pub(super) const LEFT: [f64; 3] = [0.65, 0.35, 0.12];
/// Round trips that a severity adds.
const FAR_MS: [u64; 3] = [40, 120, 280];
/// Recoveries at once that a severity leaves of [`SLOTS_ENOUGH`].
const SLOTS_LEFT: [u32; 3] = [4, 2, 1];
pub(crate) const SLOTS_ENOUGH: u32 = 8;
/// Recoveries at once where nobody says how many.
const SLOTS_USUAL: u32 = 2;
/// How long CFQ leaves the device idle, by severity; the first is the kernel's default.
const IDLE_MS: [u64; 3] = [8, 12, 20];
/// Segments that a severity loses: one in so many.
const LOST_ONE_IN: [f64; 3] = [10_000.0, 1000.0, 100.0];
/// Batches at once that a severity leaves of [`BATCHES_MAX`].
const BATCHES_LEFT: [u32; 3] = [2, 1, 1];
/// The most batches that OpenSearch takes.
pub(crate) const BATCHES_MAX: u32 = 4;
/// Milliseconds of every second in which a paused host does not run, by severity. Most of it: what holds the
/// surroundings takes the rest, so that after shorter pauses lifting that brings more than ending them.
const PAUSED_MS: [u64; 3] = [550, 700, 850];
/// Bytes a second that a default core receives, checks and writes.
const CORE_BYTES_PER_S: f64 = 2.8e9;
/// A neighbour shares a disk that alone would carry so many times the rate.
const ROOMY_DISK: f64 = 3.0;
/// A neighbour's writes are of this size.
pub(super) const NEIGHBOUR_WRITE_BYTES: u64 = 1 << 20;
/// Connections that carry recoveries between two nodes, by default.
const CONNECTIONS: f64 = 2.0;
/// A setting of a node, which it reads when it starts.
const SOCKETS: &str = "transport.connections_per_node.recovery";
pub(super) const SOCKETS_ENOUGH: u32 = 8;
/// Connections that a severity leaves of [`SOCKETS_ENOUGH`].
const SOCKETS_LEFT: [u32; 3] = [5, 3, 1];
/// As many as are enough carry so many times the rate.
const ROOMY_SOCKETS: f64 = 1.1;
/// Another process has a core for so long at a time.
pub(super) const CROWD_SLICE: Duration = Duration::from_millis(2);
/// A chunk waits for the target's cores so often, at least: before it is asked for, when it has come, to be checked.
const CROWD_WAITS: f64 = 3.0;

/// What nodes run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Engine {
    /// Chunks in flight that it allows.
    pub(crate) chunks_max: u32,
    /// Bytes a second that a process with one core receives, checks and writes, about: of the embedded engine as it was
    /// measured with a hundredth of a core, of OpenSearch a guess on the high side.
    core_bytes_per_s: f64,
    /// With a smaller part of a core, a process hardly answers: with 0.002, its period is half a second.
    core_share_min: f64,
    /// Bytes that all recoveries together have in the queue of a slow disk, about, where that is not what they have in
    /// flight: of files, the kernel writes a part at a time. Measured with 2.19.1 beside 2 to 17 writes of 1 MiB.
    queued_bytes: Option<f64>,
    /// Settings that it alone has.
    own: &'static [&'static str],
}

impl Engine {
    pub(crate) const OURS: Engine = Engine {
        chunks_max: 8,
        core_bytes_per_s: 550e6,
        core_share_min: 0.002,
        queued_bytes: None,
        own: &[],
    };
    pub(crate) const OPENSEARCH: Engine = Engine {
        chunks_max: 5,
        core_bytes_per_s: 60e6,
        core_share_min: 0.1,
        queued_bytes: Some(0.6e6),
        own: &[OPERATIONS],
    };

    /// Every setting that conditions name.
    pub(crate) fn settings(self) -> impl Iterator<Item = &'static str> {
        NAMES.into_iter().chain(self.own.iter().copied())
    }
}

impl Default for Engine {
    fn default() -> Engine {
        Engine::OURS
    }
}

/// Everything that a run is made of.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Conditions {
    pub(crate) settings: BTreeMap<String, String>,
    /// The path between the nodes.
    pub(crate) link: LinkConfig,
    /// The node that has the primaries.
    pub(crate) near: Host,
    /// The node that recovers replicas.
    pub(crate) far: Host,
    pub(crate) engine: Engine,
    pub(crate) shards: u32,
    pub(crate) shard_bytes: u64,
    /// Segments of a shard.
    pub(crate) segments: u32,
    /// Whether replicas are asked for.
    pub(crate) recovers: bool,
    /// What clients do beside.
    pub(crate) load: Option<Load>,
    /// Bytes that somebody else always has in the queue of the far node's disk.
    pub(crate) neighbour_bytes: u64,
    /// Other processes on the far node's machine, each of which always wants a core.
    pub(crate) crowd: u32,
    /// Connections that carry recoveries; none is the default. Nodes are started with them.
    pub(crate) sockets: Option<u32>,
    /// A node that stands still for a part of each second.
    pub(crate) pauses: Option<(&'static str, Duration)>,
    /// What the far node's process may have of one core, where it is a process.
    pub(crate) quota: Option<f64>,
    /// The share of the time that collections of garbage take on the far node, where it has a collector.
    pub(crate) collections: Option<f64>,
    /// Whether what was indexed is in files. A copy of what is not replays all operations.
    pub(crate) is_flushed: bool,
}

/// Something that an operator can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Limit,
    InFlight,
    LinkRate,
    Window,
    Sockets,
    Loss,
    Slots,
    Allocation,
    Cores,
    Quota,
    Heap,
    Disks,
    Neighbour,
    Operations,
}

impl Action {
    #[rustfmt::skip]
    pub(crate) const ALL: [Action; 14] = [
        Action::Limit, Action::InFlight, Action::LinkRate, Action::Window, Action::Sockets,
        Action::Loss, Action::Slots, Action::Allocation, Action::Cores, Action::Quota,
        Action::Heap, Action::Disks, Action::Neighbour, Action::Operations,
    ];
}

impl Cause {
    /// The actions that lift it; the first is the usual one.
    pub(crate) fn lifted_by(self) -> &'static [Action] {
        match self {
            Cause::RateLimit => &[Action::Limit],
            Cause::Latency => &[Action::InFlight],
            Cause::Bandwidth => &[Action::LinkRate],
            Cause::Window => &[Action::Window],
            Cause::Sockets => &[Action::Sockets, Action::Window],
            Cause::Loss => &[Action::Loss],
            Cause::Slots => &[Action::Slots],
            Cause::Block => &[Action::Allocation],
            Cause::Cpu => &[Action::Cores],
            Cause::Quota => &[Action::Quota],
            Cause::Collections => &[Action::Heap],
            Cause::ThreadCpu => &[Action::InFlight, Action::Cores],
            Cause::DiskRead | Cause::DiskWrite | Cause::DiskScheduler => &[Action::Disks],
            Cause::Neighbour => &[Action::Neighbour, Action::Disks],
            // Chunks wait for cores side by side: more of them hide that.
            Cause::Crowd => &[Action::Neighbour, Action::Cores, Action::InFlight],
            // A batch is as large as a chunk.
            Cause::Replay => &[Action::Operations, Action::InFlight],
        }
    }
}

impl Conditions {
    pub(crate) fn set(&mut self, name: &str, value: impl ToString) {
        self.settings.insert(name.to_owned(), value.to_string());
    }

    fn set_limit(&mut self, bytes_per_s: f64) {
        self.set(LIMIT, show_size_setting((bytes_per_s as u64).max(16 << 10)));
    }

    /// Neighbours at the far node's disk, each of which always has one write in its queue.
    pub(crate) fn neighbours(&self) -> u32 {
        let count = self.neighbour_bytes.div_ceil(NEIGHBOUR_WRITE_BYTES);
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    /// Whether a disk is slower than it comes.
    pub(crate) fn has_slow_disk(&self) -> bool {
        [&self.near, &self.far].iter().any(|host| host.disk != Host::default().disk)
    }

    /// Settings with which nodes are to be started.
    pub(crate) fn node_settings(&self) -> BTreeMap<String, String> {
        self.sockets.map(|count| (SOCKETS.to_owned(), count.to_string())).into_iter().collect()
    }

    fn slots(&self) -> u32 {
        self.settings.get(SLOTS).and_then(|text| text.parse().ok()).unwrap_or(SLOTS_USUAL)
    }

    /// Bytes that one recovery keeps in flight.
    fn in_flight_bytes(&self) -> f64 {
        let number = |name: &str, default: u64| {
            let text = self.settings.get(name);
            text.and_then(|text| record::units::parse_size(text).ok()).unwrap_or(default) as f64
        };
        let count = self.settings.get(CHUNKS).and_then(|text| text.parse().ok()).unwrap_or(2.0);
        number(CHUNK, 512 << 10) * count
    }

    /// Adds a cause to surroundings in which all recoveries together go at a rate.
    pub(crate) fn inject(&mut self, cause: Cause, severity: usize, at_source: bool, rate: f64) {
        let step = severity.clamp(1, LEFT.len()) - 1;
        let left = rate * LEFT[step];
        match cause {
            Cause::RateLimit => self.set_limit(left),
            Cause::Latency => self.link.rtt = Duration::from_millis(FAR_MS[step]),
            Cause::Bandwidth => self.link.rate_bytes_per_s = Some(left as u64),
            Cause::Window => {
                let window = left * self.link.rtt.as_secs_f64() / CONNECTIONS;
                self.link.window_bytes = Some((window as u64).max(4096));
            }
            Cause::Sockets => {
                let all = rate * ROOMY_SOCKETS * self.link.rtt.as_secs_f64();
                self.link.window_bytes = Some((all as u64 / u64::from(SOCKETS_ENOUGH)).max(4096));
                self.sockets = Some(SOCKETS_LEFT[step]);
            }
            Cause::Loss => {
                self.link.tcp.get_or_insert_default().loss = 1.0 / LOST_ONE_IN[step];
            }
            Cause::Slots => self.set(SLOTS, SLOTS_LEFT[step]),
            Cause::Block => match severity {
                1 => self.set(EXCLUDE, format!("{FAR}-0")),
                2 => self.set(ENABLE, "primaries"),
                _ => self.set(ENABLE, "none"),
            },
            Cause::Cpu | Cause::ThreadCpu => {
                let host = if at_source { &mut self.near } else { &mut self.far };
                host.cores = if cause == Cause::Cpu { 1 } else { 8 };
                host.costs = host.costs.slowed(CORE_BYTES_PER_S / left);
            }
            Cause::Quota => {
                let Engine { core_bytes_per_s, core_share_min, .. } = self.engine;
                self.quota = Some((left / core_bytes_per_s).max(core_share_min));
            }
            Cause::Collections => self.collections = Some(1.0 - LEFT[step]),
            Cause::DiskRead => self.near.disk.read_bytes_per_s = left as u64,
            Cause::DiskWrite => self.far.disk.write_bytes_per_s = left as u64,
            Cause::DiskScheduler => {
                let disk = &mut self.near.disk;
                disk.scheduler = DiskScheduler::Cfq;
                disk.request_bytes = 512 << 10;
                disk.slice_idle = Duration::from_millis(IDLE_MS[step]);
            }
            Cause::Neighbour => {
                self.far.disk.write_bytes_per_s = (rate * ROOMY_DISK) as u64;
                let in_flight = self.in_flight_bytes() * f64::from(self.shards);
                let ours = self.engine.queued_bytes.unwrap_or(in_flight);
                self.neighbour_bytes = (ours * (ROOMY_DISK / LEFT[step] - 1.0)) as u64;
            }
            Cause::Crowd => {
                // With as much in flight, chunks that take so long leave that rate.
                let chunk_s = self.in_flight_bytes() * f64::from(self.shards) / left;
                let slices = chunk_s / CROWD_WAITS / CROWD_SLICE.as_secs_f64();
                self.crowd = (slices.ceil() as u32).max(1) * self.far.cores;
            }
            Cause::Replay => self.set(OPERATIONS, BATCHES_LEFT[step]),
        }
    }

    /// Adds what no class is for.
    pub(crate) fn disturb(&mut self, oddity: Oddity, severity: usize) {
        let node = match oddity {
            Oddity::SourcePauses => NEAR,
            Oddity::TargetPauses => FAR,
        };
        let paused = PAUSED_MS[severity.clamp(1, PAUSED_MS.len()) - 1];
        self.pauses = Some((node, Duration::from_millis(paused)));
    }

    /// Does something about a cause, as far as it goes.
    pub(crate) fn act(&mut self, action: Action) {
        match action {
            Action::Limit => self.set(LIMIT, "-1"),
            Action::InFlight => {
                self.set(CHUNKS, self.engine.chunks_max);
                self.set(CHUNK, "16mb");
            }
            Action::LinkRate => self.link.rate_bytes_per_s = None,
            Action::Window => self.link.window_bytes = None,
            // Where nodes have as many as they come with, these are the same conditions: what holds a path then is
            // lifted at the path.
            Action::Sockets => self.sockets = self.sockets.map(|_| SOCKETS_ENOUGH),
            Action::Loss => {
                if let Some(tcp) = &mut self.link.tcp {
                    tcp.loss = 0.0;
                }
            }
            // Where every copy has a slot, more of them are the same conditions.
            Action::Slots if self.shards > self.slots() => self.set(SLOTS, SLOTS_ENOUGH),
            Action::Slots => {}
            Action::Allocation => {
                self.settings.remove(ENABLE);
                self.settings.remove(EXCLUDE);
            }
            Action::Cores => {
                for host in [&mut self.near, &mut self.far] {
                    let Host { cores, costs, .. } = Host::default();
                    (host.cores, host.costs) = (cores.max(host.cores), costs);
                }
            }
            Action::Quota => self.quota = None,
            Action::Heap => self.collections = None,
            Action::Disks => {
                self.near.disk = Host::default().disk;
                self.far.disk = Host::default().disk;
            }
            Action::Neighbour => (self.neighbour_bytes, self.crowd) = (0, 0),
            // Where copies are files, more batches are the same conditions.
            Action::Operations if !self.is_flushed => self.set(OPERATIONS, BATCHES_MAX),
            Action::Operations => {}
        }
    }
}
