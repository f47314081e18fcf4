//! How much is read and written at once: as the field's parameters say, or as the path carries.
//!
//! The adaptive pace has no parameters but the memory that it may fill. A read is a chunk to the controller
//! that recoveries use ([`Adaptive`]); only reads of times with more to read than the window lets through tell it
//! anything: an idle leader says nothing about the path. What is in flight, in the buffer and being
//! written together stay within the memory, so that a follower that writes slower than it reads stops reading.

use std::time::Duration;

use world::Time;

use super::Limits;
use crate::transfer::adaptive::Adaptive;
use crate::transfer::bandwidth_delay_product::REQUEST_COST_BYTES;
use crate::transfer::chunk::Delivery;
use crate::transfer::path::Trip;

/// How much at once.
#[derive(Debug)]
pub enum Pace {
    /// As the field does.
    Field(Limits),
    /// As the path carries.
    Adaptive(Box<AdaptivePace>),
}

/// What a shard holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Reads in flight.
    pub reads: usize,
    /// Bytes that they are thought to bring.
    pub reading_bytes: u64,
    /// Operations in the buffer.
    pub buffer_ops: u64,
    /// Their bytes.
    pub buffer_bytes: u64,
    /// Bytes that are being written.
    pub writing_bytes: u64,
}

/// One read's way there and back.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReadTrip {
    pub(super) began: Time,
    pub(super) ops: u64,
    pub(super) bytes: u64,
    pub(super) waited: Duration,
    pub(super) served: Duration,
    pub(super) pressure: bool,
    /// Whether more would have been asked for if the pace had let it.
    pub(super) was_full: bool,
}

/// Bytes of an operation before any was seen: about a line of a log.
const FIRST_OP_BYTES: f64 = 512.0;
/// How much of the estimate a read replaces.
const OP_BYTES_STEP: f64 = 0.25;
/// Operations of a read, however small they are: the leader holds them all before it answers.
const READ_OPS_MAX: u64 = 50_000;
/// A read that looks whether there is anything.
const POLL_BYTES: u64 = 1 << 20;
/// Batches that are written at once: while one is synced and replicated, the next is applied.
const WRITES_MAX: usize = 9;
/// As many as the field, and not more: documents are read before they are indexed, and should still be in the core's cache.
const WRITE_BYTES_MAX: u64 = 2 << 20;
const WRITE_OPS_MAX: u64 = 5120;
/// As in the field.
const RETRY_DELAY_MAX: Duration = Duration::from_millis(500);
/// A link that died without a word is found out after so long at the latest.
const POLL_TIMEOUT_MAX: Duration = Duration::from_secs(600);

/// The pace without parameters.
#[derive(Debug)]
pub struct AdaptivePace {
    memory_max_bytes: u64,
    op_bytes: f64,
    /// From the first moment on when there was more to read than one read brings.
    controller: Option<Adaptive>,
    was_behind: bool,
}

impl AdaptivePace {
    fn new(memory_max_bytes: u64) -> Self {
        AdaptivePace {
            memory_max_bytes,
            op_bytes: FIRST_OP_BYTES,
            controller: None,
            was_behind: false,
        }
    }

    fn read_bytes(&self) -> u64 {
        let bytes = self.controller.as_ref().map_or(POLL_BYTES, Adaptive::chunk_bytes);
        bytes.min((self.memory_max_bytes / 4).max(1))
    }

    /// Whether there is memory for so many bytes more.
    fn fits(&self, load: &Load, bytes: u64) -> bool {
        let held = load.reading_bytes + load.buffer_bytes + load.writing_bytes;
        held + bytes <= self.memory_max_bytes || held == 0
    }

    fn may_read(&self, now: Time, load: &Load) -> Option<(u64, u64)> {
        let bytes = self.read_bytes();
        let fits = self.fits(load, bytes);
        let lets = match &self.controller {
            None => load.reads == 0,
            Some(path) => {
                let len = u32::try_from(bytes).unwrap_or(u32::MAX);
                path.may_start(now, len, load.reading_bytes, load.reads)
            }
        };
        let ops = ((bytes as f64 / self.op_bytes) as u64).clamp(1, READ_OPS_MAX);
        // Operations differ in size: a read may bring twice as much before it is cut.
        (fits && lets).then_some((ops, bytes * 2))
    }
}

impl Pace {
    /// The pace without parameters, which holds no more than so many bytes.
    pub fn adaptive(memory_max_bytes: u64) -> Pace {
        Pace::Adaptive(Box::new(AdaptivePace::new(memory_max_bytes)))
    }

    /// Operations and bytes that a read may ask for now; none if none may.
    pub(super) fn may_read(&self, now: Time, load: &Load) -> Option<(u64, u64)> {
        match self {
            Pace::Field(limits) => {
                let may = (load.reads as u64) < limits.max_outstanding_read_requests
                    && load.buffer_bytes < limits.max_write_buffer_size
                    && load.buffer_ops < limits.max_write_buffer_count;
                may.then_some((
                    limits.max_read_request_operation_count.max(1),
                    limits.max_read_request_size,
                ))
            }
            Pace::Adaptive(pace) => pace.may_read(now, load),
        }
    }

    /// Operations and bytes that a write may hold beside `writes` others of `writing_bytes`; none if none may.
    pub(super) fn may_write(&self, writes: usize, writing_bytes: u64) -> Option<(u64, u64)> {
        match self {
            Pace::Field(limits) => {
                let may = (writes as u64) < limits.max_outstanding_write_requests;
                may.then_some((
                    limits.max_write_request_operation_count.max(1),
                    limits.max_write_request_size,
                ))
            }
            Pace::Adaptive(pace) => {
                let bytes = WRITE_BYTES_MAX.min(pace.memory_max_bytes / 4);
                let may = writes == 0
                    || (writes < WRITES_MAX && writing_bytes + bytes <= pace.memory_max_bytes / 2);
                may.then_some((WRITE_OPS_MAX, bytes))
            }
        }
    }

    /// Bytes that so many operations are thought to take. The field does not think of it.
    pub(super) fn expected_bytes(&self, ops: u64) -> u64 {
        match self {
            Pace::Field(_) => 0,
            Pace::Adaptive(pace) => (ops as f64 * pace.op_bytes) as u64,
        }
    }

    /// When a read may start though nothing happens.
    pub(super) fn wake_at(&self, load: &Load) -> Option<Time> {
        let Pace::Adaptive(pace) = self else { return None };
        let bytes = pace.read_bytes();
        if !pace.fits(load, bytes) {
            return None;
        }
        let len = u32::try_from(bytes).unwrap_or(u32::MAX);
        pace.controller.as_ref()?.wake_at(len, load.reading_bytes, load.reads)
    }

    /// A read was answered; `load` is what is held after it, and `is_behind` whether the leader has more.
    pub(super) fn read_done(&mut self, now: Time, trip: ReadTrip, load: &Load, is_behind: bool) {
        let Pace::Adaptive(pace) = self else { return };
        if trip.ops > 0 {
            let found = trip.bytes as f64 / trip.ops as f64;
            pace.op_bytes += OP_BYTES_STEP * (found - pace.op_bytes);
        }
        if let Some(controller) = &mut pace.controller
            && trip.was_full
        {
            let delivery = Delivery {
                requested_at: trip.began,
                arrived_at: now,
                server_time: trip.served + trip.waited,
                throttled: Duration::ZERO,
                foreground_pressure: trip.pressure,
            };
            let took = (now - trip.began).saturating_sub(trip.waited);
            let cost = |reads: usize, bytes: u64| bytes + reads as u64 * REQUEST_COST_BYTES;
            let way = Trip { at: now, took, bytes: cost(1, trip.bytes) };
            let flying = cost(load.reads + 1, load.reading_bytes + trip.bytes);
            controller.delivered(way, &delivery, flying);
        }
        match &mut pace.controller {
            None if is_behind => pace.controller = Some(Adaptive::new(pace.memory_max_bytes, now)),
            Some(controller) if is_behind && !pace.was_behind => controller.resume(now),
            _ => {}
        }
        pace.was_behind = is_behind;
    }

    pub(super) fn set_memory_max_bytes(&mut self, memory_max_bytes: u64) {
        if let Pace::Adaptive(pace) = self {
            pace.memory_max_bytes = memory_max_bytes;
            if let Some(controller) = &mut pace.controller {
                controller.set_memory_max_bytes(memory_max_bytes);
            }
        }
    }

    pub(super) fn max_retry_delay(&self) -> Duration {
        match self {
            Pace::Field(limits) => limits.max_retry_delay,
            Pace::Adaptive(_) => RETRY_DELAY_MAX,
        }
    }

    /// `read_poll_timeout`. Where nobody gave it, the longer, the longer nothing has come: an index that nobody writes to
    /// any more is not asked for every minute.
    pub(super) fn read_poll_timeout(&self, nothing_for: Duration) -> Duration {
        let limits = match self {
            Pace::Field(limits) => *limits,
            Pace::Adaptive(_) => Limits::default(),
        };
        match limits.may_rest {
            true => nothing_for.clamp(limits.read_poll_timeout, POLL_TIMEOUT_MAX),
            false => limits.read_poll_timeout,
        }
    }
}
