//! What a host's disk is like.

use std::time::Duration;

/// The kernel's order of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DiskScheduler {
    /// First come, first served.
    #[default]
    Noop,
    /// Ordered by place and by age, which nothing here depends on: it leaves the device idle for nobody, as noop.
    Deadline,
    /// Completely Fair Queuing: after a read or a sync it leaves the device idle for [`Disk::slice_idle`] in the
    /// hope that the same process asks for a nearby sector, and serves one process at a time.
    Cfq,
}

/// A disk.
#[derive(Clone, Debug, PartialEq)]
pub struct Disk {
    /// Sequential reads, all requests together.
    pub read_bytes_per_s: u64,
    /// Sequential writes, all requests together.
    pub write_bytes_per_s: u64,
    /// Time of a request before its first byte.
    pub seek: Duration,
    /// Time of making earlier writes durable.
    pub sync: Duration,
    /// Larger operations are split into requests of this size.
    pub request_bytes: u64,
    /// Operations that the device serves concurrently; they share its rate.
    pub queue_depth: u32,
    /// The kernel's order of requests.
    pub scheduler: DiskScheduler,
    /// How long CFQ waits after a request.
    pub slice_idle: Duration,
}

impl Default for Disk {
    fn default() -> Self {
        Disk {
            read_bytes_per_s: 2_000_000_000,
            write_bytes_per_s: 2_000_000_000,
            seek: Duration::from_micros(20),
            sync: Duration::from_micros(110),
            request_bytes: 1280 << 10,
            queue_depth: 1,
            scheduler: DiskScheduler::Noop,
            slice_idle: Duration::from_millis(8),
        }
    }
}
